"""A digest as a message for chat: what a team must know in the morning, in a few lines.

Nothing in it mentions, calls or links anybody. What is shown must have gone through `without_secrets` before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from logtriage.fleet.digest import Digest
from logtriage.fleet.hosts import HostFigures
from logtriage.fleet.incidents import Incident
from logtriage.redaction import Redaction
from logtriage.report import words
from logtriage.report.slack_blocks import SECTION, Message, context, escaped, section
from logtriage.report.visible import visible

MOST_TOLD = 5  # of each kind


def headline(digest: Digest) -> str:
    failed = len(digest.failed)
    told = f"{words.counted(failed, 'job')} failed" if failed else "No job failed"
    if not (digest.tonight or digest.untriaged):
        told = "No job ended since the last night" if digest.before else "No job has ended"
    if digest.lemons:
        return f"{told}; {words.counted(len(digest.lemons), 'host')} to take out"
    return told


def broken(host: HostFigures) -> str:
    """What broke on a host: `gpu.nvlink 7, host.node_lost 2, Xid 74`."""
    xids = [f"Xid {', '.join(map(str, host.xids))}"] if host.xids else []
    return ", ".join([f"{kind} {count}" for kind, count in host.kinds] + xids)


def chat(digest: Digest) -> str:
    """A text in Slack's mrkdwn."""
    first = f"*{_mrkdwn(headline(digest))}* ({_mrkdwn(_place(digest))}, {digest.date})"
    return "\n".join([first, *(line for lines in _paragraphs(digest) for line in lines)]) + "\n"


def chat_message(digest: Digest) -> Message:
    """The same as blocks of Slack's Block Kit."""
    counts = ", ".join((
        f"{words.counted(len(digest.tonight), 'job')} triaged",
        f"{len(digest.running):,} still running",
        f"{len(digest.untriaged):,} could not be triaged",
    ))  # fmt: skip
    head = headline(digest)
    blocks = [
        section(f"*{_mrkdwn(head)}*"),
        *(section(_fitted(lines)) for lines in _paragraphs(digest)),
        context(f"{_place(digest)}, night of {digest.date}: {counts}"),
    ]
    return Message(_mrkdwn(head), tuple(blocks))


def _paragraphs(digest: Digest) -> Iterator[list[str]]:
    """Lines that belong together; those of what there is none of are left out."""
    lost = [f"Lost: {digest.lost.hours:,.1f} GPU-hours"] if digest.lost.parts else []
    if digest.classes:
        lost.append("Of the class " + _mrkdwn(", ".join(f"{name} {count}" for name, count in digest.classes)))
    if lost:
        yield lost
    if digest.lemons:
        yield _first("take out", [_lemon(host) for host in digest.lemons])
    for name, rows in (("new", digest.new_incidents), ("again", digest.recurring)):
        if rows:
            yield _first(name, [f"{name}: {_incident(each)}" for each in rows])
    if person := len(digest.unknowns) + len(digest.untriaged):
        yield [f"• {words.counted(person, 'job')} for a person to look at"]


def _first(kind: str, told: Sequence[str]) -> list[str]:
    more = [f"• {kind}: {len(told) - MOST_TOLD} more"] if len(told) > MOST_TOLD else []
    return [f"• {each}" for each in told[:MOST_TOLD]] + more


def _lemon(host: HostFigures) -> str:
    told = f"{words.counted(host.faults, 'machine fault')} in {words.counted(host.jobs, 'job')}"
    return f"take out *{_mrkdwn(host.host)}*: {told} ({_mrkdwn(broken(host))})"


def _incident(incident: Incident) -> str:
    where = f" on {_mrkdwn(words.listed(incident.hosts, 3))}" if incident.hosts else ""
    return f"{_mrkdwn(incident.title)}: {words.counted(incident.tonight, 'job')}{where}"


def _place(digest: Digest) -> str:
    return visible(Redaction().redact(digest.place), 200)  # a path may hold the name of a user


def _mrkdwn(text: str) -> str:
    # A zero-width space keeps them from being markup; inside a word an underscore is none.
    return re.sub(r"([*~`]|(?<!\w)_|_(?!\w))", "\u200b\\1", escaped(visible(text, 200)))


def _fitted(lines: Sequence[str]) -> str:
    """As many whole lines as one section takes."""
    shown = ""
    for line in lines:
        if len(shown) + len(line) + 2 > SECTION:
            return f"{shown}…"
        shown += f"{line}\n"
    return shown.rstrip("\n")
