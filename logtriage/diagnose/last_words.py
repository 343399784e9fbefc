"""Errors that no rule knows and that were the last words of whoever wrote them: that job is not running."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from logtriage.localize.dialogue import is_dialogue
from logtriage.localize.findings import Findings
from logtriage.localize.outcome import HANG_SECONDS
from logtriage.mining.kinds import key_of
from logtriage.model import Level, Line, Record, SourceRole
from logtriage.regex import regex
from logtriage.rulebank.matcher import without_digits

_SPEAKING = (SourceRole.WORKER, SourceRole.MERGED, SourceRole.LAUNCHER)
TIDY_SECONDS = 10.0  # within which a program that made no step says goodbye
LAST_RECORDS = 3  # what follows the error itself: a line of a clean-up, where a dump was put
_LOUD = regex(
    r"\b(?:FATAL|CRITICAL|PANIC|ERROR)\b|\b(?i:fatal|panic|error|exception|abort(?:ed|ing)?)(?: error)? ?:"
    r"|(?i:\b(?:panicked at|fatal error|unrecoverable|cannot continue|giving up|aborting|bailing out))\b"
    r"|\b[A-Z]\w{0,80}(?:Error|Exception|Fault|Panic)\b ?:|^(?:Aborted|Segmentation fault|Bus error|Killed)\b"
    r"|致命|错误[:：]|エラー[:：]|오류[:：]|(?i:\bfehler ?:|\berreur ?:|\berror fatal\b|ошибка ?:)"
)
# The words of a writer that goes on.
_GOES_ON = regex(
    r"(?i)\b(?:retry\w*|retries|attempt|try(?:ing)? again|ignor\w+|skipp\w+|fall(?:ing)? ?back|backing off"
    r"|recover(?:ed|ing)|continu\w+|non-?fatal|deprecated|disabl\w+|warning|0 errors?|no errors?)\b"
)


def last_errors(findings: Findings) -> tuple[Line, ...]:
    """For each file that ends so, the error that its last lines tell; the latest last.

    No rule knows it, no step of its writer came after it, nothing says that the writer goes on, and the rest
    of the job was not seen at work for much longer.
    """
    scene, progress = findings.scene, findings.progress
    shelves = (scene.causes, scene.symptoms, scene.context, scene.progress)
    known = {(sign.line.file, sign.line.number) for shelf in shelves for sign in shelf}
    stepped = {trace.file for trace in progress.traces}
    found = []
    for reading in scene.readings:
        file = reading.source.file
        if reading.source.role not in _SPEAKING:
            continue
        told = [each for each in scene.records[file] if any(line.text.strip() for line in each.lines)]
        for record in told[-LAST_RECORDS:]:
            line = _error(record)
            if line is None or any((each.file, each.number) in known for each in record.lines):
                continue
            if line.time is None or progress.last_time is None:
                is_end = file in stepped or not stepped
            else:
                is_end = line.time + HANG_SECONDS >= progress.last_time
                is_end = is_end and (file in stepped or line.time + TIDY_SECONDS >= progress.last_time)
            if is_end and not progress.steps_after(line) and not _is_usual(line, findings):
                found.append(line)
                break
    return tuple(sorted(found, key=lambda line: line.time or 0.0))


LONGEST_TOLD = 160  # characters of an error in a title
NOT_SHOWN, NOT_KNOWN = "The logs do not show why the job ended", "No rule knows this error"


def title_of(unknown: Sequence[Line]) -> str:
    """The title of a verdict that knows no cause: the first error of which no rule knows what it means."""
    told = next((" ".join(each.message[:1000].split()) for each in unknown), "")
    if not told:
        return NOT_SHOWN
    short = told if len(told) <= LONGEST_TOLD else told[: LONGEST_TOLD - 2].rsplit(" ", 1)[0] + " …"
    return f"{NOT_KNOWN}: {short}"


# What a watcher says of who does not move.
_OF_SILENCE = regex(
    r"(?i)\b(?:hang(?:s|ing)?|hung|stuck|stall\w*|dead-?lock\w*|unresponsive|frozen|idle|silent|silence|watchdog"
    r"|heart-?beats?|time[sd]?[ -]?out|timeout|inactiv\w+|not respond\w*|(?:no|without|lack of) \w* ?"
    r"(?:progress|headway|steps?|activity|response|output|updates?))\b|超时|无响应|タイムアウト|応答なし"
)


def tells_of_silence(line: Line) -> bool:
    """Whether an error is that nothing happens."""
    return _OF_SILENCE.search(line.message[:1000]) is not None


TWICE = 2


LEAST_FILES = 2  # that have such a line …
WRITTEN_ON = 100  # … and so many others behind it


def _is_usual(line: Line, findings: Findings) -> bool:
    """Whether its file has lines of the same form after which steps were made, or several have gone on."""
    key = key_of(line.text)
    gone_on = (
        key in each.keys and each.lines - each.keys[key].first[0] >= WRITTEN_ON
        for each in findings.kinds.of_files.values()
    )
    if sum(gone_on) >= LEAST_FILES or key in findings.kinds.of_good_runs:
        return True
    form = without_digits(line.message[:200])
    above = (each for each in findings.scene.lines(line.file) if each.number < line.number)
    alike = (
        each for each in above if each.level is line.level and without_digits(each.message[:200]) == form
    )
    return sum(findings.progress.steps_after(each) > 0 for each in islice(alike, TWICE)) >= TWICE


def _error(record: Record) -> Line | None:
    line = record.raised[-1].at if record.raised else record.lines[0]
    message = line.message[:1000]
    if line.level not in (Level.ERROR, Level.CRITICAL) and _LOUD.search(message) is None:
        return None
    if line.level in (Level.DEBUG, Level.INFO, Level.WARNING) and not record.raised:
        return None
    return line if _GOES_ON.search(message) is None and not is_dialogue(line.text) else None
