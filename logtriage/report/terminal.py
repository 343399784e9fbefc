"""A verdict on one screen of a terminal.

Everything that came from a log, a file name or a model is put into rich `Text` objects as plain characters
after :func:`logtriage.report.visible.visible`: neither markup nor escapes in it are ever obeyed.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from logtriage.regex import regex
from logtriage.report import words
from logtriage.report.document import CitedLine, Verdict
from logtriage.report.visible import prose, visible

_NUMBERED = regex(r"\d+\. ")
SHORT_ID = 10  # characters of a verdict's id that tell it from others
MOST_LINES, MOST_CELLS = 40, 4000  # 40 lines of 100 columns, more where they are narrower


@dataclass(frozen=True, slots=True)
class Amount:
    """How much of each list is shown; the rest is counted."""

    evidence: int
    followed: int
    mitigations: int
    attempts: int
    alternatives: int
    notes: int
    summary_lines: int
    entry_lines: int  # at most so many for one evidence place, mitigation, step or note


# From generous to scant: the first that fits on the screen is taken.
_AMOUNTS = (
    Amount(5, 4, 5, 6, 3, 4, summary_lines=8, entry_lines=3),
    Amount(4, 3, 4, 4, 2, 3, summary_lines=6, entry_lines=2),
    Amount(3, 3, 3, 3, 2, 2, summary_lines=5, entry_lines=2),
    Amount(3, 2, 2, 2, 1, 2, summary_lines=4, entry_lines=1),
    Amount(2, 1, 1, 1, 1, 1, summary_lines=3, entry_lines=1),
)


def render(verdict: Verdict, console: Console, *, kept: bool = False) -> None:
    """Print the verdict: at most about 40 lines on a screen 100 columns wide.

    Of one that was `kept` and knows no cause it is said how a person teaches it.
    """
    width = max(40, min(console.width, 110))
    for amount in _AMOUNTS:
        lines = _layout(verdict, amount, width, console, kept)
        if len(lines) <= max(MOST_LINES, MOST_CELLS // width):
            break
    for line in lines:
        console.print(line, markup=False, highlight=False, emoji=False, overflow="ellipsis", no_wrap=True)


def draw_flowed(text: str, console: Console) -> None:
    """Print lines of plain text, each broken at blanks and further indented than its beginning."""
    width = max(40, min(console.width, 110))
    for line in text.splitlines():
        told = line.lstrip()
        indent = " " * (len(line) - len(told))
        rest = indent + ("   " if _NUMBERED.match(told) else "  " if indent else "")
        for piece in _wrapped(told, indent, rest, width, len(line) + 1, console) or [Text()]:
            console.print(piece, markup=False, highlight=False, emoji=False, overflow="fold", no_wrap=True)


def _layout(verdict: Verdict, amount: Amount, width: int, console: Console, kept: bool) -> list[Text]:
    body = verdict.verdict

    def wrapped(text: Text | str, indent: str = "  ", rest: str | None = None, most: int = 3) -> list[Text]:
        return _wrapped(text, indent, indent if rest is None else rest, width, most, console)

    lines = _headline(verdict, width, console)
    if body.summary:
        lines += [Text(), *wrapped(prose(body.summary), most=amount.summary_lines)]

    if body.evidence:
        lines += _section("Evidence")
        for cited in body.evidence[: amount.evidence]:
            lines += _cited(cited, verdict, amount.entry_lines, width, console)
        lines += _more(len(body.evidence) - amount.evidence, "line")

    followed = _followed(verdict, amount.followed)
    if followed:
        lines += _section("What followed")
        for number, text in enumerate(followed[: amount.followed], 1):
            lines += wrapped(text, f"  {number}. ", "     ", amount.entry_lines)
        lines += [Text("  ").append_text(text) for text in followed[amount.followed :]]

    lines += _section("What to do now")
    lines += wrapped(Text(words.action_words(body), style="bold"))
    restart = words.restart_words(body)
    if restart:
        lines += wrapped(restart, most=amount.entry_lines + 1)
    mitigations = words.mitigations(body)
    for number, mitigation in enumerate(mitigations[: amount.mitigations], 1):
        text = Text(prose(mitigation.text))
        if mitigation.source in ("memory", "llm"):
            origin = "a confirmed earlier case" if mitigation.source == "memory" else "a language model"
            text.append(f" (from {origin})", style="dim")
        lines += wrapped(text, f"  {number}. ", "     ")
    lines += _more(len(mitigations) - amount.mitigations, "suggestion")

    lines += _attempts(verdict, amount.attempts, width, console)

    facts = words.job_facts(verdict.job)
    if facts:
        lines += _section("The job")
        lines += wrapped(" · ".join(facts))
        lost = words.lost_words(body)
        lines += wrapped(Text("Lost: ", style="dim").append(lost, style="not dim"), most=2) if lost else []

    notes = _notes(verdict, amount)
    if kept and body.failure_type == "unknown":
        how = f"logtriage correct {visible(verdict.id[:SHORT_ID], 80)} --type TYPE"
        notes.insert(0, Text(f"When you know it: {how} --evidence FILE:LINE (the next one is then named)"))
    if notes:
        lines += _section("Worth knowing")
        for note in notes:
            lines += wrapped(note, "  - ", "    ", amount.entry_lines + 1)

    lines += [Text()]
    lines += wrapped(Text(f"{visible(verdict.id, 80)} · {words.mined_words(verdict)}", style="dim"), "")
    return lines


def _headline(verdict: Verdict, width: int, console: Console) -> list[Text]:
    body = verdict.verdict
    well = body.failure_type.startswith("none.")
    undecided = body.failure_type == "unknown" or body.failure_type.startswith("slow.")
    colour = "green" if well else "yellow" if undecided else "red"
    title = prose(body.title) or words.type_name(body.failure_type)
    lines = _wrapped(Text(title, style=f"bold {colour}"), "", "", width, 2, console)

    name = words.type_name(body.failure_type)
    said = "" if name.casefold() == title.casefold() else f"{name} · "
    kind = "" if well or body.failure_type == "unknown" else f" · {visible(body.failure_class, 40)}"
    sure = f"{words.confidence_words(body.confidence)} ({words.percent(body.confidence)})"
    facts = Text(f"{said}{visible(body.failure_type, 80)}{kind} · ")
    facts.append(sure, style="bold").append(f", decided {words.decided_by(body)}")
    lines += _wrapped(facts, "", "", width, 2, console)

    where = words.where_words(verdict)
    if where:
        named = body.culprits.ranks or body.culprits.hosts or body.culprits.gpus
        began = Text("Where: ", style="dim").append(where, style="bold" if named else "not dim")
        lines += _wrapped(began, "", "  ", width, 2, console)
    if code := words.code_words(body):
        raised = Text("Code: ", style="dim").append(code, style="not dim")
        lines += _wrapped(raised, "", "  ", width, 2, console)
    if when := words.stage_words(body):
        told = Text("When: ", style="dim").append(when, style="not dim")
        lines += _wrapped(told, "", "  ", width, 1, console)
    return lines


def _section(title: str) -> list[Text]:
    return [Text(), Text(title, style="bold cyan")]


def _more(number: int, noun: str, indent: str = "  ") -> list[Text]:
    return [Text(f"{indent}… and {words.counted(number, f'more {noun}')}", style="dim")] if number > 0 else []


def _cited(cited: CitedLine, verdict: Verdict, most: int, width: int, console: Console) -> list[Text]:
    head = Text(words.place(cited.file, cited.line), style="cyan")
    origin, why = words.origin(cited, verdict.job), words.reason(cited, verdict.verdict)
    head.append(f"  {origin}" if origin else "", style="dim").append(
        f"  {why}" if why else "", style="dim italic"
    )
    shown, spans = words.shortened(cited.text.strip(), (width - 6) * min(most, 2))
    text = Text(shown)
    for start, end in spans:
        text.stylize("bold red", start, end)
    quoted = _wrapped(text, "    ", "      ", width, most, console)
    return [*_wrapped(head, "  ", "    ", width, max(most, 2), console), *quoted]


def _followed(verdict: Verdict, most: int) -> list[Text]:
    """The steps after the root cause; where no chain is known, the after-effects."""
    steps = verdict.verdict.chain[1:]
    if steps:
        lines = []
        for step in steps[:most]:
            text = Text(prose(step.text) or words.type_name(step.failure_type))
            place = words.place(step.file, step.line)
            text.append(f"  {place}" if place else "", style="cyan")
            text.append(f"  {prose(step.follows_by)}" if step.follows_by else "", style="dim")
            lines.append(text)
        return lines + _more(len(steps) - most, "step", "")
    lines = []
    for symptom in verdict.symptoms[:most]:
        text = Text(words.type_name(symptom.failure_type))
        affected = words.places(symptom.ranks, symptom.hosts)
        text.append(f" on {affected}" if affected else "")
        text.append(f"  {words.place(symptom.file, symptom.line)}", style="cyan")
        lines.append(text)
    return lines + _more(len(verdict.symptoms) - most, "after-effect", "")


def _attempts(verdict: Verdict, most: int, width: int, console: Console) -> list[Text]:
    if len(verdict.attempts) < 2:
        return []
    lines = _section(f"Attempts ({len(verdict.attempts)})")
    left = len(verdict.attempts) - most
    if left > 0:
        lines += [Text(f"  … {words.counted(left, 'earlier attempt')}", style="dim")]
    for attempt in verdict.attempts[-most:]:
        where = words.places(attempt.culprits.ranks, attempt.culprits.hosts, attempt.culprits.gpus)
        facts = [prose(attempt.title) or words.type_name(attempt.failure_type)]
        facts += [where] if where else []
        facts += [f"last step {attempt.last_step:,}"] if attempt.last_step is not None else []
        ended = words.clock(attempt.ended, beside=verdict.job.started)
        facts += [f"ended {ended}"] if ended else []
        text = Text(f"{attempt.attempt}  ", style="bold").append(" · ".join(facts), style="not bold")
        lines += _wrapped(text, "  ", "     ", width, 2, console)
    return lines


def _notes(verdict: Verdict, amount: Amount) -> list[Text]:
    """Alternatives, what was not read, what was bounded, what to collect next time."""
    notes = []
    for other in verdict.verdict.alternatives[: amount.alternatives]:
        sure = words.percent(other.confidence)
        note = Text(f"It could also be: {words.type_name(other.failure_type)} ({sure})")
        if other.evidence:
            note.append(f"  {words.place(other.evidence[0].file, other.evidence[0].line)}", style="cyan")
        notes.append(note)
    if told := words.model_words(verdict):
        notes.append(Text(told))
    if verdict.unreadable:
        lost = verdict.unreadable
        named = [f"{visible(entry.file, 120)} ({prose(entry.reason)})" for entry in lost]
        most = max(1, amount.notes // 2)
        more = f" and {len(named) - most} more" if len(named) > most else ""
        notes.append(Text("Not read: " + "; ".join(named[:most]) + more, style="yellow"))
    notes += [Text(f"Left out: {prose(note)}") for note in verdict.mining.left_out[: amount.notes]]
    notes += [
        Text(f"To collect next time: {prose(what)}") for what in verdict.verdict.collect_next[: amount.notes]
    ]
    return notes


def _wrapped(text: Text | str, first: str, rest: str, width: int, most: int, console: Console) -> list[Text]:
    """At most `most` lines of `width` cells; the first begins with `first`, the others with `rest`."""
    whole = Text(text) if isinstance(text, str) else text
    pieces = list(whole.wrap(console, width - max(len(first), len(rest))))
    lines = [Text(rest if number else first).append_text(piece) for number, piece in enumerate(pieces[:most])]
    if len(pieces) > most and lines:
        lines[-1].rstrip()
        lines[-1].truncate(width - 1)
        lines[-1].append("…")
    for line in lines:
        line.rstrip()
    return lines
