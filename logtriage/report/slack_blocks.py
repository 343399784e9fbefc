"""A verdict, and answers about it, as messages of Slack (Block Kit).

Log text is hostile: `&<>` are escaped, so that no mention, channel call or link in it is one; every
text is `verbatim`, so that Slack makes none of its own; backticks cannot end a code block. What is shown
must have gone through :func:`logtriage.report.redacted.redacted` before. Limits as Slack documents them:
50 blocks a message, 3,000 characters a section, 150 a header, 75 a button or option.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from logtriage.regex import regex
from logtriage.report import words
from logtriage.report.document import CitedLine, Verdict
from logtriage.report.visible import prose, visible

Block = dict[str, Any]

MOST_BLOCKS = 50
SECTION, HEADER, LABEL, CONTEXT = 3000, 150, 75, 2000
FALLBACK = 400  # characters of the text that notifications show
LINE = 600  # characters of a cited line
PROOF = 3  # cited lines of a verdict
CONFIRM, WRONG, REPORT = "logtriage_confirm", "logtriage_wrong", "logtriage_report"

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_CALL = regex(r"(?i)@(?=channel|here|everyone)")


@dataclass(frozen=True, slots=True)
class Message:
    """What a message shows, and the text for notifications and readers without blocks."""

    text: str
    blocks: tuple[Block, ...]


def escaped(text: str, most: int = SECTION) -> str:
    """Any text for mrkdwn, in at most `most` characters after escaping; `…` marks that there was more."""
    text = _CALL.sub("@\u2060", text)
    parts: list[str] = []
    size = 0
    for number, sign in enumerate(text):
        part = _ENTITIES.get(sign, sign)
        if size + len(part) > most - (number < len(text) - 1):
            return "".join(parts) + "…"
        parts.append(part)
        size += len(part)
    return "".join(parts)


def told(text: str, most: int = SECTION) -> str:
    """Paragraphs for mrkdwn: escaped, and without backticks that would open code."""
    shown = "\n".join(prose(line) for line in text.split("\n"))
    return escaped(shown.replace("`", "'"), most)


def code(text: str, most: int = LINE) -> str:
    """One line of a log as a code block, cut around its telling words."""
    shown, _ = words.shortened(text.strip() or " ", most)
    return "```" + escaped(shown.replace("`", "'"), most * 2) + "```"


def section(text: str) -> Block:
    """A section of mrkdwn that is escaped already."""
    return {"type": "section", "text": {"type": "mrkdwn", "text": text[:SECTION], "verbatim": True}}


def context(*texts: str) -> Block:
    """Small print, escaped here."""
    elements = [{"type": "mrkdwn", "text": told(each, CONTEXT), "verbatim": True} for each in texts if each]
    return {"type": "context", "elements": elements[:10]}


def button(action: str, label: str, value: str, style: str = "") -> Block:
    made: Block = {
        "type": "button",
        "action_id": action,
        "text": {"type": "plain_text", "text": label[:LABEL], "emoji": False},
        "value": value[:2000],
    }
    return {**made, "style": style} if style else made


def plain(text: str, *more: Block) -> Message:
    """A message of one paragraph, and what follows it."""
    return Message(told(text, FALLBACK), (section(told(text)), *more)[:MOST_BLOCKS])


def cited_block(file: str, line: int | None, text: str, facts: str = "") -> Block:
    """A cited line: its place, what is known of it, and its text where it is known."""
    place = told(words.place(file, line), 600)
    about = f"  {told(facts, 300)}" if facts else ""
    return section(f"`{place}`{about}" + (f"\n{code(text)}" if text else ""))


def answer_message(text: str, lines: Iterable[Block], head: Sequence[Block] = ()) -> Message:
    """An answer in plain words with the lines that it stands on."""
    return Message(told(text, FALLBACK), (*head, section(told(text)), *lines)[:MOST_BLOCKS])


def verdict_message(verdict: Verdict, note: str = "", lead: Sequence[Block] = ()) -> Message:
    """The verdict: what, who, three lines of proof, what to do, and the buttons.

    `note` is small print at the end (a model that is being asked), `lead` what goes before it all.
    """
    body = verdict.verdict
    title = prose(body.title) or words.type_name(body.failure_type)
    blocks: list[Block] = [*lead, _header(title), section(_what(verdict))]
    blocks += [section(summary)] if (summary := told(body.summary)).strip() else []
    blocks += [_proof(each, verdict) for each in body.evidence[:PROOF]]
    blocks.append(section(_action(verdict)))
    blocks.append(context(*_small_print(verdict, note)))
    blocks.append(_buttons(verdict))
    fallback = f"{verdict.job.name}: {title}"
    return Message(told(fallback, FALLBACK), tuple(blocks[:MOST_BLOCKS]))


def _header(title: str) -> Block:
    # Plain text is not parsed, and its escapes are shown as they are: only what looks like a mark is changed.
    shown = visible(words.sentence(title), HEADER * 2).replace("<", "‹").replace(">", "›")
    shown = _CALL.sub("@\u2060", shown)
    cut = shown if len(shown) <= HEADER else shown[: HEADER - 1] + "…"
    return {"type": "header", "text": {"type": "plain_text", "text": cut, "emoji": False}}


def _what(verdict: Verdict) -> str:
    body = verdict.verdict
    is_failure = not body.failure_type.startswith(("none.", "unknown"))
    kind = f" · {told(body.failure_class, 100)}" if is_failure else ""
    sure = f"{words.confidence_words(body.confidence)} ({words.percent(body.confidence)})"
    name, type_ = told(words.type_name(body.failure_type), 200), told(body.failure_type, 100)
    what = f"*{name}* `{type_}`{kind} · {sure}, decided {told(words.decided_by(body), 200)}"
    where, code = words.where_words(verdict), words.code_words(body)
    what += f"\n*Where:* {told(where, 1500)}" if where else ""
    return what + (f"\n*Code:* {told(code, 300)}" if code else "")


def _proof(cited: CitedLine, verdict: Verdict) -> Block:
    facts = " · ".join(filter(None, (words.origin(cited, verdict.job), words.reason(cited, verdict.verdict))))
    return cited_block(cited.file, cited.line, cited.text, facts)


def _action(verdict: Verdict) -> str:
    body = verdict.verdict
    parts = [f"*What to do:* {told(words.action_words(body), 500)}"]
    parts += [told(restart, 400)] if (restart := words.restart_words(body)) else []
    for number, each in enumerate(words.mitigations(body)[:PROOF], 1):
        origin = {"memory": " (from a confirmed earlier case)", "llm": " (from a language model)"}
        parts.append(f"{number}. {told(each.text, 500)}{origin.get(each.source, '')}")
    return "\n".join(parts)


def _small_print(verdict: Verdict, note: str) -> list[str]:
    body = verdict.verdict
    prints = [" · ".join(words.job_facts(verdict.job))]
    followed = dict.fromkeys(words.type_name(each.failure_type) for each in verdict.symptoms)
    prints += [f"What followed: {'; '.join(list(followed)[:4])}"] if followed else []
    others = [
        f"{words.type_name(each.failure_type)} ({words.percent(each.confidence)})"
        for each in body.alternatives
    ]
    prints += [f"It could also be: {', '.join(others[:2])}"] if others else []
    prints += [words.model_words(verdict)]
    if verdict.unreadable:
        first = verdict.unreadable[0]
        more = f" and {len(verdict.unreadable) - 1} more" if len(verdict.unreadable) > 1 else ""
        prints.append(f"Not read: {first.file} ({first.reason}){more}")
    prints += [f"Left out: {verdict.mining.left_out[0]}"] if verdict.mining.left_out else []
    prints += [f"{verdict.id} · {words.mined_words(verdict)}", note]
    return prints


def _buttons(verdict: Verdict) -> Block:
    unknown = verdict.verdict.failure_type == "unknown"
    made = [] if unknown else [button(CONFIRM, "Confirm", verdict.id, "primary")]
    made.append(button(WRONG, "Say what it was…" if unknown else "Wrong…", verdict.id))
    made.append(button(REPORT, "Full report", verdict.id))
    return {"type": "actions", "elements": made}
