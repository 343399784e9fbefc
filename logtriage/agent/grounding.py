"""The check of a model's answer against the logs: a vote with one invented line is no vote."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from logtriage.agent.addressed import is_addressed
from logtriage.agent.answer import Answer, Citation
from logtriage.agent.bearing import Bearing, bearing
from logtriage.agent.dangers import is_dangerous
from logtriage.agent.desk import Desk, normal
from logtriage.model import Line
from logtriage.rulebank.vocabulary import Vocabulary
from logtriage.taxonomy import taxonomy

SHORTEST_QUOTE = 6  # characters, unless the line itself is shorter
MOST_MITIGATION = 240
# Types that no line states: what matters is what is missing, and the localisation judges that.
_UNSTATED = ("hang.", "slow.", "none.")


@dataclass(frozen=True, slots=True)
class Vote:
    """An answer that passed: every line of it is there and bears what is claimed."""

    failure_type: str
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    lines: tuple[Line, ...]
    support: Bearing
    bearing: tuple[Line, ...] = ()  # those of the lines that bear the type
    cause: str = ""  # empty where the model's sentence names what no line shows
    mitigations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Void:
    """An answer that does not count, and why in a few words."""

    reason: str


def check(answer: Answer, desk: Desk, words: Vocabulary) -> Vote | Void:
    """The vote of an answer, or why it is void."""
    name = answer.failure_type.strip().lower()
    if name not in taxonomy():
        return Void("no such failure type")
    if name == "unknown":
        return Vote(name, (), (), (), Bearing.NOT)
    if name.startswith("none.") and desk.decision.failure_type != name:
        return Void("says that nothing failed, and the logs do not")
    lines = cited_lines(answer.citations, desk)
    if isinstance(lines, Void):
        return lines
    held = {line: bearing(line, name, desk, words) for line in lines}
    support = max(held.values())
    if support is Bearing.NOT and name.startswith(_UNSTATED) and desk.decision.failure_type == name:
        support = Bearing.WORDS
    if support is Bearing.NOT:
        return Void("no cited line bears the failure type")
    lines.sort(key=lambda line: -held[line])
    return Vote(
        name,
        _ranks(answer.culprit_ranks, lines, desk),
        _hosts([desk.redaction.restore(host) for host in answer.culprit_hosts], lines, desk),
        tuple(lines),
        support,
        tuple(line for line in lines if held[line] is not Bearing.NOT),
        sentence(answer.cause, lines, desk),
        tuple(text for each in answer.mitigations if (text := advice(each, desk))),
    )


def cited_lines(citations: Sequence[Citation], desk: Desk) -> list[Line] | Void:
    """The lines that are cited, if each of them is there, says what is quoted, and talks to nobody."""
    if not citations:
        return Void("cites nothing")
    lines: list[Line] = []
    for citation in citations:
        line = desk.found(citation.place)
        if line is None:
            return Void("cites a line that does not exist")
        if is_addressed(normal(line.text)):
            return Void("cites a line that talks to its reader")
        # In the text as it was shown: whoever sees which votes count must not learn a secret from it.
        if not _is_quoted(citation.quote, desk.hidden(normal(line.text))):
            return Void("the cited line does not say that")
        if line not in lines:
            lines.append(line)
    return lines


def _is_quoted(quote: str, text: str) -> bool:
    wanted = normal(quote).replace("```", "'''").strip("… ").removesuffix("...").strip()
    return len(wanted) >= min(SHORTEST_QUOTE, len(text)) and bool(wanted) and wanted in text


def _ranks(claimed: Sequence[int], lines: Sequence[Line], desk: Desk) -> tuple[int, ...]:
    """The claimed ranks that wrote a cited line, are named in one, or that the localisation blames."""
    topology = desk.findings.topology
    writers = {topology.rank(line) for line in lines}
    named = {int(each) for line in lines for each in _RANK.findall(normal(line.text)[:4096])}
    held = writers | named | set(desk.decision.culprits.ranks)
    return tuple(sorted({rank for rank in claimed if rank in held and rank in topology.ranks}))


_RANK = re.compile(r"(?i)\brank[s ]{0,2}[:=#\[(]? ?(\d{1,7})\b")


def _hosts(claimed: Sequence[str], lines: Sequence[Line], desk: Desk) -> tuple[str, ...]:
    topology = desk.findings.topology
    text = " ".join(normal(line.text) for line in lines)
    writers = {topology.host(line, topology.rank(line)) for line in lines}
    held = writers | set(desk.decision.culprits.hosts) | {host for host in topology.hosts if host in text}
    return tuple(sorted({host for host in claimed if host in held and host in topology.hosts}))


# What only a log can tell: numbers, paths, names with signs in them, quoted texts.
_CHECKABLE = re.compile(r"\"[^\"]{2,200}\"|'[^']{2,200}'|`[^`]{1,200}`|[\w./:-]*[\d/][\w./:-]*")


def sentence(said: str, lines: Sequence[Line], desk: Desk) -> str:
    """What the model said, if all that it names stands in the cited lines or in what localisation found.

    Names are put back, secrets are not.
    """
    text = normal(desk.redaction.restore(said))[:400]
    if not text or is_addressed(text) or is_dangerous(text):
        return ""
    texts = [*(normal(line.text) for line in lines), *(line.file for line in lines)]
    seen = " ".join([*texts, *desk.findings.topology.hosts]).lower()
    ranks = {str(rank) for rank in desk.findings.topology.ranks}
    for match in _CHECKABLE.findall(text):
        token = match.strip("\"'`.,:;()").lower()
        if token and token not in seen and token not in ranks:
            return ""
    return normal(_with_names(said, desk))[:400]


_SECRET = re.compile(r"(<secret-\d+>)")


def _with_names(said: str, desk: Desk) -> str:
    """What a model said, with hosts, users and addresses for their placeholders.

    Those of secrets stay: what it says is repeated in chats and kept in the memory, where the logs are not.
    """
    parts = _SECRET.split(said)
    return "".join(part if at % 2 else desk.redaction.restore(part) for at, part in enumerate(parts))


def advice(said: str, desk: Desk) -> str:
    """One piece of a model's advice as it is shown; empty where it must not be repeated."""
    whole, text = normal(desk.redaction.restore(said)), normal(_with_names(said, desk))
    if not text or len(text) > MOST_MITIGATION or is_dangerous(whole) or is_addressed(whole):
        return ""
    return text
