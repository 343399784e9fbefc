"""The scene: all that was read closely, with the signs that rules see on each line.

A sign on a source-code line inside a traceback says what the program's text says, not what happened, so
inside tracebacks only the lines that name an exception (and their messages) count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from logtriage.forks import shared_out
from logtriage.intake.lines import segments
from logtriage.intake.reading import Choice, Reading, sharing
from logtriage.intake.records import records
from logtriage.intake.state_reports import BELOW, is_report, statements
from logtriage.intake.text import without_escapes
from logtriage.intake.transcripts import of_the_job
from logtriage.localize.dialogue import is_dialogue
from logtriage.localize.jobs import other_jobs
from logtriage.localize.kernel_words import is_of_another
from logtriage.localize.openings import last_opening
from logtriage.localize.spoken_labels import with_spoken_ranks
from logtriage.mining.summary import Summary
from logtriage.model import JOB_ROLES, Level, Line, Raised, Record, Source
from logtriage.regex import regex
from logtriage.rulebank.matcher import Hit, Matcher, without_digits
from logtriage.rulebank.rule import Mark, Role, Rule


@dataclass(frozen=True, slots=True)
class Sign:
    """One rule on one line of one file, and the exception that the line names, if it does."""

    hit: Hit
    line: Line
    source: Source
    raised: Raised | None = None
    link: int = 0  # position of the exception in its chain, 0 = the first that was raised
    links: int = 1
    record: Record | None = None
    text: str = ""  # the part of the line that matched (a segment of it)
    is_ignored: bool = False  # a finalizer raised it, and Python says that it goes on
    is_logged: bool = False  # a warning introduces it: the program caught it and said so

    @property
    def rule(self) -> Rule:
        return self.hit.rule

    @property
    def rank(self) -> int | None:
        """The writer of the line: its own prefix or file first, what the message says second."""
        if self.line.rank is not None:
            return self.line.rank
        named = self.hit.capture("rank")
        return int(named) if named is not None and named.isdigit() and len(named) < 8 else None

    @property
    def host(self) -> str | None:
        return self.line.host or self.hit.capture("host")


@dataclass(slots=True)
class Scene:
    """All signs of a job by role, in file order, with the lines they stand on."""

    readings: Sequence[Reading]
    causes: list[Sign] = field(default_factory=list)
    symptoms: list[Sign] = field(default_factory=list)
    context: list[Sign] = field(default_factory=list)
    progress: list[Sign] = field(default_factory=list)
    records: dict[str, list[Record]] = field(default_factory=dict)
    _lines: dict[str, Sequence[Line]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._lines = {each.source.file: each.lines for each in self.readings}

    def marked(self, mark: Mark) -> Iterable[Sign]:
        for sign in (*self.progress, *self.context):
            if sign.rule.marks is mark:
                yield sign

    @property
    def sources(self) -> list[Source]:
        return [reading.source for reading in self.readings]

    def lines(self, file: str) -> Sequence[Line]:
        """The lines of one file."""
        return self._lines.get(file, ())

    def job_times(self) -> list[float]:
        """The times of the job's own lines, in order of files."""
        return [
            line.time
            for reading in self.readings
            if reading.source.role in JOB_ROLES
            for line in reading.lines
            if line.time is not None
        ]

    @property
    def tells_zone(self) -> bool:
        """Whether all times of the job's own lines were given with a zone, so that they are of UTC."""
        dated = [
            reading.layout.is_zoned
            for reading in self.readings
            if reading.source.role in JOB_ROLES and any(line.time is not None for line in reading.lines)
        ]
        return bool(dated) and all(dated)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A sign before it is known whether it concerns the job; of its rule the id alone, which is soon sent."""

    rule: str
    captures: tuple[tuple[str, str], ...]
    line: Line
    raised: Raised | None
    link: int
    links: int
    record: Record
    text: str
    is_ignored: bool
    is_logged: bool


@dataclass(frozen=True, slots=True)
class _Examined:
    """One file, its records, and what the rules see on its lines: all that can be said of it by itself."""

    reading: Reading
    records: list[Record]
    seen: list[_Seen]


def read_scene(
    choices: Sequence[Choice], matcher: Matcher, processes: int = 1, summaries: Sequence[Summary] = ()
) -> Scene:
    """Read what was chosen, match it and sort what was found, in so many processes.

    By the `summaries` of the files it is told where the last of several runs begins in one: nothing is read
    of those before it, unless the log itself tells of a restart.
    """

    def examined(at: int) -> _Examined:
        found = _examined(of_the_job(choices[at].read()), matcher)
        told = [(by_id[each.rule], each.line.number) for each in found.seen]
        if not summaries or any(rule.marks is Mark.RESTART for rule, _ in told):
            return found
        ends = (
            number
            for rule, number in told
            if rule.role is Role.CAUSE or rule.marks in (Mark.COMPLETED, Mark.EXIT)
        )
        steps = {number for rule, number in told if rule.marks is Mark.STEP}
        starts = last_opening(found.reading, summaries[at], ends, steps)
        if starts is None:
            return found
        lines = tuple(line for line in found.reading.lines if line.number >= starts)
        return _examined(replace(found.reading, lines=lines, earlier=starts - 1), matcher)

    by_id = {rule.id: rule for rule in matcher.bank.rules}

    processes = sharing(sum(each.size for each in choices), processes)
    return _sorted(shared_out(examined, len(choices), processes), matcher)


def build_scene(readings: Sequence[Reading], matcher: Matcher) -> Scene:
    """Match all closely read lines and sort what was found."""
    return _sorted([_examined(each, matcher) for each in readings], matcher)


def _sorted(files: Sequence[_Examined], matcher: Matcher) -> Scene:
    readings = [each.reading for each in files]
    scene = Scene(readings)
    shelves = {
        Role.CAUSE: scene.causes,
        Role.SYMPTOM: scene.symptoms,
        Role.CONTEXT: scene.context,
        Role.PROGRESS: scene.progress,
    }
    others = other_jobs(readings)
    by_id = {rule.id: rule for rule in matcher.bank.rules}
    for file in files:
        source = file.reading.source
        of_many_jobs = source.file in others.files
        scene.records[source.file] = file.records
        for each in file.seen:
            rule = by_id[each.rule]
            if of_many_jobs and others.concern(each.line, rule.role):
                continue
            hit = Hit(rule, each.captures)
            shelves[rule.role].append(
                Sign(
                    hit, each.line, source, each.raised, each.link, each.links, each.record, each.text,
                    each.is_ignored, each.is_logged,
                )
            )  # fmt: skip
    return scene


def _examined(reading: Reading, matcher: Matcher) -> _Examined:
    reading = with_spoken_ranks(reading, reading.labelled)
    grouped = list(records(reading.lines))
    found = _Examined(reading, grouped, [])
    for record, (said, next_said) in zip(grouped, _neighbours(grouped), strict=True):
        naming = _naming_lines(record)
        ignored = said is not None and _IGNORED.search(said.message[-400:]) is not None
        logged = naming is not None and _is_logged(said, record.lines[0], next_said)
        for line in record.lines:
            named = naming.get(line.number) if naming is not None else (None, 0, 1)
            if named is None:
                continue
            hits = list(_hits(line, reading.source, matcher))
            # What was said to a model, or by one, did not happen. Steps are many, and tell little.
            if naming is None and _matters(hits) and is_dialogue(line.text):
                continue
            for hit, text in hits:
                rule, captures = hit.rule.id, hit.captures
                found.seen.append(_Seen(rule, captures, line, *named, record, text, ignored, logged))
    if is_report(reading.source.role, reading.lines):
        found.seen.extend(_stated(reading, matcher))
    return found


def _stated(reading: Reading, matcher: Matcher) -> Iterable[_Seen]:
    """What a report of a machine's state says on lines that only mean something below their headings."""
    for line, text in statements(reading.lines):
        if matcher.touches(without_digits(text)):
            for hit in matcher.match(text, reading.source.role):
                if BELOW in hit.rule.pattern:  # others are about lines as they stand
                    record = Record("line", (line,))
                    yield _Seen(hit.rule.id, hit.captures, line, None, 0, 1, record, text, False, False)


# As the releases of Python say it of finalizers, of what is done at the end, and of callbacks.
_IGNORED = regex(r"Exception ignored (?:in(?: [a-z]\w{0,20} callback)?:? <|while [a-z]\w{0,20} )")


def _matters(hits: Sequence[tuple[Hit, str]]) -> bool:
    return any(hit.rule.marks is not Mark.STEP for hit, _ in hits)


# What a program says of an error that it caught.
_CAUGHT = regex(
    r"(?i)\b(?:retry|retries|retrying|attempt|error|fail(?:ed|ure|ing)?|exception|caught|ignor\w+|skipp\w+"
    r"|fall(?:ing)? ?back|backing off|recover\w*|problem|could not|cannot)\b"
)
_CALM = (Level.DEBUG, Level.INFO, Level.WARNING)


def _neighbours(grouped: Sequence[Record]) -> list[tuple[Line | None, Line | None]]:
    """The lines before and after each record by the same writer."""
    before: list[Line | None] = []
    last: dict[int | None, Line] = {}
    for record in grouped:
        before.append(last.get(record.lines[0].rank))
        last[record.lines[0].rank] = record.lines[-1]
    after: list[Line | None] = []
    last.clear()
    for record in reversed(grouped):
        after.append(last.get(record.lines[0].rank))
        last[record.lines[0].rank] = record.lines[0]
    return list(zip(before, reversed(after), strict=True))


def _is_logged(said: Line | None, header: Line, next_said: Line | None) -> bool:
    """Whether a traceback that begins at `header` is part of a log record below ERROR.

    `logger.warning("… failed, retrying", exc_info=True)` prints it right below its own line, and the program
    goes on calmly: what ends a program is not logged as a warning. What PyTorch's hook prints for an
    exception that nobody caught bears the rank on each line, which a log record does not.
    """
    return (
        said is not None
        and next_said is not None
        and said.level in _CALM
        and next_said.level in _CALM
        and header.level is None
        and ".cpp:" not in said.text[:400]
        and header.number - said.number <= INTRODUCED_LINES
        and _is_labelled(said) == _is_labelled(header)
        and _CAUGHT.search(said.message[:600]) is not None
    )


def _is_labelled(line: Line) -> bool:
    return "[rank" in line.text[: line.text.find(line.message[:40])]


INTRODUCED_LINES = 8  # lines of other writers that may stand between in a shared file
MESSAGE_LINES = 40  # of an exception's message that spans many lines


def _naming_lines(record: Record) -> dict[int, tuple[Raised | None, int, int]] | None:
    """Of a traceback: the lines that speak (exceptions and their messages). None: all lines speak."""
    if record.kind != "traceback" or not record.raised:
        return None
    speaking: dict[int, tuple[Raised | None, int, int]] = {}
    links = len(record.raised)
    for link, raised in enumerate(record.raised):
        speaking[raised.at.number] = (raised, link, links)
    current: tuple[Raised | None, int, int] | None = None
    since = 0
    for line in record.lines:  # message lines follow the naming line up to the next part of the traceback
        if line.number in speaking:
            current, since = speaking[line.number], 0
        elif current is not None:
            since += 1
            if since > MESSAGE_LINES or _is_machinery(line.message):
                current = None
            else:
                speaking[line.number] = current
    return speaking


def _is_machinery(message: str) -> bool:
    """A traceback's own lines: headers, frames, source text, joints between links."""
    stripped = message.lstrip(" |+-│")
    return stripped.startswith(("Traceback (most recent", 'File "', "During handling", "The above exception"))


def _hits(line: Line, source: Source, matcher: Matcher) -> Iterable[tuple[Hit, str]]:
    clean = without_escapes(line.text)
    if len(clean) <= 4096 and not matcher.touches(without_digits(clean)):
        return
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    for part in segments(clean):
        for hit in matcher.match(part, source.role):
            identity = (hit.rule.id, hit.captures)
            if identity in seen or is_of_another(hit.rule, clean):
                continue
            if hit.rule.admits(line.level, line.text):
                seen.add(identity)
                yield hit, part
