"""What a model may look up: each tool reads the job's own files or the rule bank, and answers in a few lines.

Every answer is bounded (`Measure`), without secrets, and without lines that talk to the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from logtriage.agent.addressed import is_addressed
from logtriage.agent.desk import Desk, normal
from logtriage.agent.evidence_file import SPEAKING
from logtriage.agent.search import PatternFault, matching_lines
from logtriage.localize.exits import decode, describe
from logtriage.report.document import iso_time
from logtriage.rulebank.bank import Bank

ANSWER = 1000  # characters of an answer to a vote


@dataclass(frozen=True, slots=True)
class Measure:
    """How much an answer may hold: characters in all, lines, characters a line, lines on each side of one."""

    answer: int = ANSWER
    lines: int = 12
    width: int = 120
    around: int = 4


IN_A_VOTE = Measure()


def toolbox(desk: Desk, measure: Measure = IN_A_VOTE) -> list[Callable[..., str]]:
    """The tools as plain functions; their docstrings are what the model is told of them."""

    def read_lines(place: str) -> str:
        """Lines around a place such as F2:38."""
        line = desk.found(place)
        if line is None:
            return "there is no such line"
        numbers = range(line.number - measure.around, line.number + measure.around + 1)
        around = (desk.line(line.file, number) for number in numbers)
        there = [each for each in around if each is not None and each.text.strip()]
        shown = (each for each in there if each is line or not desk.is_routine(each))
        return _told((desk.cited(each, measure.width) for each in shown), measure)

    def search_log(pattern: str) -> str:
        """Lines of all logs that match a regular expression (RE2)."""
        return _told(_search(desk, pattern, measure), measure)

    def compare_ranks(words: str) -> str:
        """How often each rank wrote lines with these words."""
        return _told(_compare(desk, words), measure)

    def timeline(start: str, end: str) -> str:
        """What was found between two times (HH:MM:SS)."""
        return _told(_between(desk, start, end), measure)

    def look_up(code: str) -> str:
        """What an Xid, NCCL error or exit code means, e.g. "xid 79", "exit 137", "ncclRemoteError"."""
        return _told(meaning(desk.bank, code), measure)

    def similar_incidents() -> str:
        """Confirmed diagnoses of similar jobs."""
        found = [f"{each.failure_type} ({each.likeness:.2f}): {each.title}; {each.mitigation}"
                 for each in desk.precedents]  # fmt: skip
        return _told((desk.told(each) for each in found), measure)

    def job_configuration(name: str) -> str:
        """Settings in the logs whose name holds this word."""
        return _told(_settings(desk, name, measure), measure)

    return [read_lines, search_log, compare_ranks, timeline, look_up, similar_incidents, job_configuration]


def _told(lines: Iterable[str], measure: Measure) -> str:
    kept: list[str] = []
    size = 0
    for line in lines:
        size += len(line) + 1
        if size > measure.answer or len(kept) == measure.lines:
            kept.append("(more was left out)")
            break
        kept.append(line)
    return "\n".join(kept) or "nothing found"


def _search(desk: Desk, pattern: str, measure: Measure) -> Iterable[str]:
    """The last match of each file first told, then earlier ones."""
    try:
        matches, unread = matching_lines(desk, pattern)
    except PatternFault as fault:
        return [str(fault)]
    kept = matches[-(measure.lines - 1) :] if len(matches) >= measure.lines else matches
    told = [desk.cited(line, measure.width) for line in kept]
    if unread:
        told.append(f"({unread} files were not searched to their end for lack of time)")
    return told


def _compare(desk: Desk, words: str) -> Iterable[str]:
    wanted = normal(words).lower()
    if not wanted:
        return
    rank_of = {source.file: source.rank for source in desk.inventory.sources}
    rank_of |= desk.findings.topology.rank_of_file
    counts: dict[str, int] = {
        f"rank {rank}" if rank is not None else file: 0
        for file, rank in rank_of.items()
        if any(source.file == file and source.role in SPEAKING for source in desk.inventory.sources)
    }
    kinds = 0
    for row, shown in zip(desk.catalogue.rows, desk.redacted_templates(), strict=True):
        if wanted in shown.lower():
            kinds += 1
            for file, count in row.files.items():
                rank = rank_of.get(file)
                name = f"rank {rank}" if rank is not None else file
                counts[name] = counts.get(name, 0) + count
    if kinds:
        yield f"{kinds} kinds of lines"
        ordered = sorted(counts.items(), key=lambda item: (item[1], item[0]))
        yield ", ".join(f"{desk.told(name)}: {count}" for name, count in ordered[:24])


_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")


def _between(desk: Desk, start: str, end: str) -> Iterable[str]:
    bounds = [_seconds_of_day(each) for each in (start, end)]
    if bounds[0] is None or bounds[1] is None:
        yield "times look like 18:05:39"
        return
    seen: set[tuple[str, int | None]] = set()
    for each in sorted(desk.findings.candidates, key=lambda one: one.time or 0.0):
        moment = each.time
        if moment is None or not bounds[0] <= moment % 86_400 < bounds[1] + 1:
            continue
        if (each.failure_type, each.rank) not in seen:
            seen.add((each.failure_type, each.rank))
            yield f"{each.failure_type}{' (survived)' if each.recovered else ''} {desk.cited(each.line, 100)}"
    for trace in desk.findings.progress.traces[:4]:
        inside = [
            point
            for point in trace.points
            if point.line.time is not None and bounds[0] <= point.line.time % 86_400 < bounds[1] + 1
        ]
        if inside:
            rank = f"rank {trace.rank}" if trace.rank is not None else trace.file
            last = (iso_time(inside[-1].line.time) or "")[11:19]
            yield desk.told(f"{rank}: steps {inside[0].step} to {inside[-1].step}, the last at {last}")


def _seconds_of_day(text: str) -> int | None:
    match = _CLOCK.search(text)
    return int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3] or 0) if match else None


def meaning(bank: Bank, code: str) -> Iterable[str]:
    """What rules and the table of exit codes say of an Xid, an error by name, or the end of a process."""
    asked = normal(code).lower()
    number = re.search(r"-?\d{1,6}", asked)
    if "exit" in asked or "code" in asked or "signal" in asked:
        if number:
            value = int(number[0])
            yield describe(-value if "signal" in asked and value > 0 else decode(value))
        return
    for rule in bank.rules:
        captured = {value for example in rule.examples for key, value in example.captures if key == "xid"}
        told = bool(number and number[0] in captured) if "xid" in asked else (
            len(asked) > 4 and asked in " ".join((rule.pattern, *rule.keywords)).lower()
        )  # fmt: skip
        if told and rule.failure_type:
            helps = f" {rule.mitigation[0].text}" if rule.mitigation else ""
            yield f"{rule.failure_type} ({rule.role.value}): {rule.title}.{helps}"[:320]


_SETTING = re.compile(r"""[\w.\-]{2,60}["']?\s{0,3}(?:=|:|\.{3,40})\s{0,3}["']?[^\s,;"'{}\[\]]{1,80}""")


def _settings(desk: Desk, name: str, measure: Measure) -> Iterable[str]:
    wanted = normal(name).lower()
    if len(wanted) < 2:
        return
    seen: set[str] = set()
    for reading in desk.findings.scene.readings:
        for line, text in zip(reading.lines, desk.redacted_lines(reading), strict=True):
            # Looked for in what may be seen: whether a word is in a secret is told to nobody.
            if wanted not in text.lower() or is_addressed(line.text):
                continue
            for setting in _SETTING.findall(text[:4096]):
                if wanted in setting.lower() and setting not in seen:
                    seen.add(setting)
                    yield f"{desk.place(line.file, line.number)} {setting}"
            if len(seen) > measure.lines:
                return
