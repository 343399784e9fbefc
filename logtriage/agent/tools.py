"""What a model may look up: each tool reads the job's own files or the rule bank, and answers in a few lines.

Every answer is bounded (`Measure`), without secrets, and without lines that talk to the model.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from logtriage.agent.addressed import is_addressed
from logtriage.agent.desk import LOOK_SECONDS, Desk, normal
from logtriage.agent.evidence_file import SPEAKING
from logtriage.intake.lines import plain
from logtriage.intake.streams import StreamFault, pieces
from logtriage.localize.exits import decode, describe
from logtriage.model import Line
from logtriage.report.document import iso_time
from logtriage.rulebank.bank import Bank

ANSWER = 1000  # characters of an answer to a vote
LONGEST_PATTERN = 200


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
        return _told((desk.hidden(normal(each)) for each in found), measure)

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
    import re2

    if len(pattern) > LONGEST_PATTERN:
        return [f"the pattern is longer than {LONGEST_PATTERN} characters"]
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 8 << 20
    options.case_sensitive = False
    options.never_nl = True
    try:
        wanted = re2.compile(desk.redaction.restore(pattern).encode("utf-8", "replace"), options=options)
    except re2.error as fault:
        return [f"no such pattern: {str(fault)[:80]}"]
    return _found(desk, wanted, measure)


def _found(desk: Desk, wanted: Any, measure: Measure) -> Iterable[str]:
    """The last match of each file first told, then earlier ones: what ends a job stands at the end."""
    until = time.monotonic() + LOOK_SECONDS
    matches: list[Line] = []
    unread = 0
    for source in desk.inventory.sources:
        if time.monotonic() > until:
            unread += 1
            continue
        own: list[Line] = []
        try:
            for piece in pieces(desk.inventory.root, source, size=1 << 20):
                if wanted.search(piece.data) is not None:
                    own += _of_piece(desk, source.file, piece, wanted)
                    own = [own[0], *own[-5:]] if len(own) > 6 else own
                if time.monotonic() > until:
                    unread += 1
                    break
        except StreamFault:
            pass
        matches += own
    kept = matches[-(measure.lines - 1) :] if len(matches) >= measure.lines else matches
    yield from (desk.cited(line, measure.width) for line in kept)
    if unread:
        yield f"({unread} files were not searched to their end for lack of time)"


def _of_piece(desk: Desk, file: str, piece: Any, wanted: Any) -> list[Line]:
    found: list[tuple[int, int, bytes]] = []
    offset = piece.offset
    for number, raw in enumerate(piece.data.split(b"\n"), piece.first_line):
        if wanted.search(raw) is not None:
            found.append((number, offset, raw))
        offset += len(raw) + 1
    lines = []
    for number, at, raw in [*found[:1], *found[1:][-5:]]:
        text = plain(raw)
        if not is_addressed(normal(text)):
            lines.append(desk.line(file, number) or Line(file, number, at, text, text))
    return lines


def _compare(desk: Desk, words: str) -> Iterable[str]:
    wanted = normal(desk.redaction.restore(words)).lower()
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
    for row in desk.catalogue.rows:
        if wanted in row.template.lower():
            kinds += 1
            for file, count in row.files.items():
                rank = rank_of.get(file)
                name = f"rank {rank}" if rank is not None else file
                counts[name] = counts.get(name, 0) + count
    if kinds:
        yield f"{kinds} kinds of lines"
        shown = sorted(counts.items(), key=lambda item: (item[1], item[0]))
        yield desk.hidden(", ".join(f"{name}: {count}" for name, count in shown[:24]))


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
            yield desk.hidden(f"{rank}: steps {inside[0].step} to {inside[-1].step}, the last at {last}")


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
        for line in reading.lines:
            if wanted not in line.text.lower() or is_addressed(line.text):
                continue
            # Hidden before it is cut: the head of an address with a password is no longer known as one.
            for setting in _SETTING.findall(desk.hidden(normal(line.text))[:4096]):
                if wanted in setting.lower() and setting not in seen:
                    seen.add(setting)
                    yield f"{desk.place(line.file, line.number)} {setting}"
            if len(seen) > measure.lines:
                return
