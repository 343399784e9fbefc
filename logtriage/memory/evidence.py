"""The line that a diagnosis rests on: found where a person points, or picked where nobody does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from logtriage.intake.folder import Inventory, discover
from logtriage.intake.lines import plain, segments
from logtriage.intake.reading import Extent, Reading, read_closely
from logtriage.intake.records import records
from logtriage.intake.stored_lines import StoredLines, stored_lines
from logtriage.intake.streams import StreamFault, pieces
from logtriage.memory.beside import states_beside
from logtriage.memory.ledger import Cited
from logtriage.memory.sightings import level_of
from logtriage.memory.usual import UsualLines
from logtriage.memory.wording import patterns, vocabulary
from logtriage.mining.masks import mask
from logtriage.model import Level, Line, Raised, Record, Source, SourceRole
from logtriage.rulebank.matcher import Hit, Matcher
from logtriage.rulebank.rule import Role, Strength, gravity

MOST_ALIKE = 400  # other lines of a job that may show what varies in a line
ROUTINE = 12  # a line of a kind that stands so often in one file, from its first half on, is routine


class EvidenceFault(Exception):
    """The named line cannot be had; the message says why and what could be named instead."""


@dataclass(frozen=True, slots=True)
class Witness:
    """A line of a job, as its file has it (`cited`) and as rules see it.

    `messages` are its parts without heads (times, ranks, levels), the one that says most first; `alike` are
    messages of other lines; `is_clear`: a person pointed at it, or no other line could be meant.
    """

    cited: Cited
    role: SourceRole
    messages: tuple[str, ...]
    alike: tuple[str, ...]
    is_clear: bool = True
    is_routine: bool = False
    is_outlived: bool = False  # its writer went on as ever after it
    is_complaint: bool = True  # an exception, a line at an error's level, or one with words of failure
    level: Level | None = None
    beside: tuple[tuple[str, str], ...] = ()  # states that a JSON record tells beside its message
    moved_from: int | None = None  # the line that was named, where another line of its traceback speaks

    @property
    def message(self) -> str:
        return self.messages[0] if self.messages else self.cited.text


def witness_at(paths: Sequence[str], place: str, matcher: Matcher) -> Witness:
    """The line at `FILE:LINE`, with FILE as verdicts name it, or any ending of it that is unique.

    Of a traceback only the lines that name an exception speak: any other stands for the next of those.
    Raises EvidenceFault, and NothingReadable where the logs are gone.
    """
    name, colon, number = place.rpartition(":")
    if not colon or not number.isdigit() or not int(number):
        raise EvidenceFault(f"{place!r} is not FILE:LINE")
    inventory = discover(list(paths))
    line = int(number)
    source, stored = _section(inventory, name, line) or _stored_source(inventory, name)
    read_as = stored.line(line) if stored is not None else line
    extent, offset = _extent(inventory.root, source, read_as)
    if offset is None:
        raise EvidenceFault(f"{source.file} has no line {line}; it ends at {extent.lines}")
    extent = Extent(extent.bytes, extent.lines, ((read_as, offset),))
    (reading,) = read_closely(inventory.root, [source], [extent])
    if stored is not None:
        lines = tuple(
            replace(each, number=at[0], file=stored.file or each.file)
            for each in reading.lines
            if (at := stored.place(each.number)) is not None
        )
        reading = replace(reading, lines=lines)
        line = (stored.place(read_as) or (line, 0))[0]
    for record in records(reading.lines):
        for each in record.lines:
            if each.number == line:
                spoken = _speaking(record, each)
                below = _below(spoken, reading)
                moved = line if below.number != line else None
                is_raised = bool(record.raised) or below is not spoken
                return _witness(below, reading, is_raised=is_raised, is_clear=True, moved_from=moved)
    raise EvidenceFault(f"{source.file}:{line} could not be read")


def _section(inventory: Inventory, name: str, line: int) -> tuple[Source, StoredLines] | None:
    """The section that holds a line of a file made of them. Raises EvidenceFault where none of them does."""
    is_whole = False
    for source in inventory.sources:
        stored = stored_lines(inventory.root, source) if source.is_section else None
        if stored is not None and f"/{stored.file}".endswith(f"/{name.lstrip('./')}"):
            is_whole = True
            if line - 1 in stored.order:
                return source, stored
    if is_whole:
        raise EvidenceFault(f"{name}:{line} is no line of a log that stands in {name}")
    return None


def _stored_source(inventory: Inventory, name: str) -> tuple[Source, StoredLines | None]:
    source = _source(inventory, name)
    return source, stored_lines(inventory.root, source)


def _source(inventory: Inventory, name: str) -> Source:
    shown = name.replace("\\", "/")
    full = str(Path(shown).absolute())
    found = [
        each for each in inventory.sources if each.file == shown or str(inventory.root / each.file) == full
    ]
    found = found or [
        each for each in inventory.sources if f"/{each.file}".endswith(f"/{shown.lstrip('./')}")
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise EvidenceFault(f"{name} could be {found[0].file} or {found[1].file}; name more of the path")
    files = ", ".join(each.file for each in inventory.sources[:5])
    more = ", …" if len(inventory.sources) > 5 else ""
    raise EvidenceFault(f"no log of this job is called {name}; there are {files}{more}")


def _extent(root: Path, source: Source, line: int = 0) -> tuple[Extent, int | None]:
    """How large a file is, and at which byte a line begins in it."""
    size = lines = 0
    offset = None
    try:
        for piece in pieces(root, source):
            count = piece.data.count(b"\n")
            if piece.first_line <= line <= piece.first_line + count and piece.data:
                before = piece.data.split(b"\n", line - piece.first_line)
                rest = before[-1]
                if rest or line < piece.first_line + count:
                    offset = piece.offset + len(piece.data) - len(rest)
            size += len(piece.data) + piece.elided
            lines += count
    except StreamFault:
        pass  # what was readable counts
    return Extent(size, lines, ()), offset


def _speaking(record: Record, line: Line) -> Line:
    if record.kind != "traceback" or not record.raised:
        return line
    for raised in record.raised:
        if raised.at.number <= line.number and not _is_machinery(line.message):
            return line  # an exception, or a later line of its message
    later = [raised for raised in record.raised if raised.at.number >= line.number]
    return min(later, key=lambda raised: raised.at.number).at if later else record.raised[-1].at


_PANIC = re.compile(r"\bpanicked at \S+:\d+:\d+:\s*$")


def _below(line: Line, reading: Reading) -> Line:
    """The line that says why, where this one only says where (as Rust's panics do since 1.73)."""
    if _PANIC.search(line.message) is None:
        return line
    return next((each for each in reading.lines if each.number == line.number + 1), line)


def _is_machinery(message: str) -> bool:
    stripped = message.lstrip(" |+-")
    return stripped.startswith(("Traceback (most", 'File "', "During handling", "The above exception"))


def _witness(
    line: Line, reading: Reading, *, is_raised: bool, is_clear: bool, moved_from: int | None = None
) -> Witness:
    messages = _messages(line)
    usual = UsualLines(reading, line.number)
    alike = _nearest(messages[0] if messages else "", [each for each in reading.lines if each != line])
    numbers = frozenset(each.number for each in alike)
    lived: set[str] = set()
    is_outlived = usual.went_on(line, numbers)
    if not is_outlived:
        lived = {mask(each.message) for each in alike if usual.went_on(each, numbers)}
    # What calmer lines have in its place, and those that the job survived, tells them from this one.
    own = [each.message for each in alike if mask(each.message) not in lived and not _is_calmer(each, line)]
    return Witness(
        cited=Cited(line.file, line.number, line.text),
        role=reading.source.role,
        messages=messages,
        alike=tuple(dict.fromkeys(own)),
        is_clear=is_clear,
        is_routine=_is_routine(line, reading),
        is_outlived=is_outlived,
        is_complaint=is_raised or _complains(line.level, messages),
        level=line.level,
        beside=states_beside(line.text, line.message, (each.text for each in reading.lines if each != line)),
        moved_from=moved_from,
    )


def _complains(level: Level | None, messages: Sequence[str]) -> bool:
    grave = level is not None and gravity(level) >= gravity(Level.ERROR)
    words = (found.group().lower() for each in messages for found in _FAULTY.finditer(each))
    told = any(_NO_COMPLAINT.fullmatch(word) is None for word in words)
    return grave or told or any(map(_MISHAP.search, messages))


# A loss scale is made to overflow now and then; an evictor is there to evict.
_NO_COMPLAINT = re.compile(r"overflow|(?:evict|terminat|drain|cancel|kill)\w*(?:or|er)[sd]?")


def _is_calmer(line: Line, than: Line) -> bool:
    return line.level is not None and than.level is not None and gravity(line.level) < gravity(than.level)


def cited_witness(text: str, file: str, number: int) -> Witness:
    """A line that a verdict cites, where the logs are not there any more."""
    parts = tuple(part for part in segments(plain(text.encode("utf-8", "surrogatepass"))) if part.strip())
    level = level_of(text.encode("utf-8", "surrogatepass"))
    complains = _complains(level, parts)
    cited, beside = Cited(file, number, text), states_beside(text, parts[0] if parts else "", ())
    merged = SourceRole.MERGED
    return Witness(cited, merged, _by_content(parts), (), is_complaint=complains, level=level, beside=beside)


def _messages(line: Line) -> tuple[str, ...]:
    parts = [part for part in line.message.split("\n") if part.strip()]
    if not parts:
        parts = [part for part in segments(plain(line.text.encode("utf-8", "surrogatepass"))) if part.strip()]
    return _by_content(parts)


def _by_content(parts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(parts, key=lambda part: -_content(part)))


def _content(message: str) -> int:
    wording = next(patterns(message), None)
    return len(set(wording.content)) if wording is not None else 0


def _nearest(message: str, others: Iterable[Line]) -> list[Line]:
    """Other lines of as many words, of which some are the same: the rest shows what varies."""
    words = message.split()
    found = []
    for other in others:
        theirs = other.message.split()
        same = sum(a == b for a, b in zip(words, theirs, strict=False))
        if theirs and len(theirs) == len(words) and same * 2 >= len(words):
            found.append(other)
            if len(found) >= MOST_ALIKE:
                break
    return found


def _is_routine(line: Line, reading: Reading) -> bool:
    masked = mask(line.message)
    alike = [each for each in reading.lines if not _is_calmer(each, line)]
    numbers = [each.number for each in alike if mask(each.message) == masked]
    last = reading.lines[-1].number if reading.lines else 1
    return len(numbers) >= ROUTINE and numbers[0] < last / 2


_FAULTY = re.compile(
    r"(?i)\b(?:errors?|exceptions?|faults?|fail(?:ed|ing|ure|s)?|fatal|abort\w*|abandon\w*|cannot|can't|"
    r"could not|refus\w+|reject\w+|denied|revoked|expired|evict\w*|cancel\w*|drain\w*|quarantin\w*|"
    r"dissolv\w*|killed|invalid|illegal|bad|wrong|corrupt\w*|poisoned|mismatch\w*|violat\w+|assert\w*|"
    r"unexpected\w*|never|missing|lost|los(?:es|ing)|timed? ?out|timeout|exceed\w*|out of|unable|panic|"
    r"over(?:flow|run|heat)\w*|giving up|gave up|unreachable|disconnect\w*|crash\w*|broken|dead|stuck|"
    r"stall\w*|unhealthy|degraded|collaps\w*|storm|terminat\w+|unrecover\w+|bailing out|"
    r"no (?:space|route|such|response|progress|headway)|(?:shutting|tearing) \w* ?\w* ?down|"
    r"not (?:found|responding|available|ready|permitted|allowed|supported))\b"
    r"|fehler|fehlgeschlagen|abbruch|abgebrochen|erreur|échec|échou|fallo\b|falló|falha|erro\b|errore\b|ошибк|сбо[йя]"
    r"|错误|失败|异常|中止|终止|エラー|失敗|異常|오류|실패"
)

# What broke by other words. They pick no line, but one that a person names is no calm one with them.
_MISHAP = re.compile(
    r"(?i)\b(?:jammed|torn|snapped|burst|sank|sunken|tripped|frozen|froze|hung|choked|halted|ceased|blown|"
    r"vanished|ruptur\w+|leak(?:ed|ing)|shattered|seized|cracked|melted|burnt|orphaned|starved of|no longer|"
    r"\w+(?:Error|Exception|Fault|Failure))\b"
)


def picked(paths: Sequence[str], matcher: Matcher) -> Witness | None:
    """The line that most looks like what ended the job, where nobody names one; None without any.

    Exceptions first, then lines at an error level, then lines with words of failure; what a rule knows as a
    mere consequence or as a fault of its own, and what stands in the log again and again, is not taken. Of
    equals the earliest. Where nothing looks like a failure, what was said only once and at the very end.
    """
    readings = closely_read(paths)
    return _first_telling(_ranked(readings, matcher), matcher) or _first_telling(
        _last_words(readings, matcher), matcher
    )


def _first_telling(found: Sequence[tuple[int, Line, Reading]], matcher: Matcher) -> Witness | None:
    known = vocabulary(matcher.bank)
    for position, (sort, line, reading) in enumerate(found):
        if not _is_telling(line.message, known) or _is_routine(line, reading):
            continue
        others = {mask(each.message): each.message for rank, each, _ in found[position:] if rank == sort}
        del others[mask(line.message)]
        is_clear = not any(_is_telling(other, known) for other in others.values())
        below = _below(line, reading)
        is_raised = sort >= RAISED or below is not line
        return _witness(below, reading, is_raised=is_raised, is_clear=is_clear)
    return None


LAST_WORDS = 3  # lines of a file that are its last words


def _last_words(readings: Sequence[Reading], matcher: Matcher) -> list[tuple[int, Line, Reading]]:
    """Of each file's last lines those that stand there once: (sort, line, its file), warnings before others.

    None that a shipped rule knows; one that an earlier job taught is still what a person means.
    """
    found: list[tuple[int, Line, Reading]] = []
    for reading in readings:
        counts = Counter(mask(line.message) for line in reading.lines)
        for line in reading.lines[-LAST_WORDS:]:
            is_alone = line.message.strip() and counts[mask(line.message)] == 1
            if is_alone and all(hit.rule.provenance for hit in hits_of(line, reading, matcher)):
                found.append((int(line.level is Level.WARNING), line, reading))
    found.sort(key=lambda each: (-each[0], each[1].time or float("inf")))
    return found


def hits_of(line: Line, reading: Reading, matcher: Matcher) -> list[Hit]:
    """The hits of rules on a line, as a triage has them."""
    text = plain(line.text.encode("utf-8", "surrogatepass"))
    hits = matcher.match_segments(segments(text), reading.source.role)
    return [hit for hit in hits if hit.rule.admits(line.level, line.text)]


def telling_lines(readings: Sequence[Reading], matcher: Matcher, most: int = 6) -> list[Line]:
    """The lines of a job that most look like a failure, one of each kind, the most telling first."""
    kinds: dict[str, Line] = {}
    for _, line, _ in _ranked(readings, matcher):
        kinds.setdefault(mask(line.message), line)
    return list(kinds.values())[:most]


def closely_read(paths: Sequence[str]) -> list[Reading]:
    """The files of a job that can accuse somebody, as closely as a triage reads them."""
    inventory = discover(list(paths))
    silent = (SourceRole.ENVIRONMENT, SourceRole.METRICS, SourceRole.HARDWARE)
    sources = [each for each in inventory.sources if each.role not in silent] or list(inventory.sources)
    extents = [_extent(inventory.root, source)[0] for source in sources]
    return read_closely(inventory.root, sources, extents)


MOST_RANKED = 50


def _ranked(readings: Sequence[Reading], matcher: Matcher) -> list[tuple[int, Line, Reading]]:
    """Lines that look like a failure: (sort, line, its file), the gravest first, of equals the earliest."""
    found: list[tuple[int, float, int, Line, Reading]] = []
    for reading in readings:
        for weight, line in _faulty_lines(reading, matcher):
            found.append((-weight, line.time or float("inf"), len(found), line, reading))
    found.sort(key=lambda each: each[:3])
    return [(_sort(weight), line, reading) for weight, _, _, line, reading in found[:MOST_RANKED]]


RAISED = 2  # the sort of exceptions


def _sort(weight: int) -> int:
    """Exceptions, lines at an error level, lines with words of failure."""
    return abs(weight) // 2


def _is_telling(message: str, known: Mapping[str, int]) -> bool:
    return any(wording.fault is None for wording in patterns(message, known=known))


def _faulty_lines(reading: Reading, matcher: Matcher) -> Iterator[tuple[int, Line]]:
    counts: Counter[str] = Counter()
    for record in records(reading.lines):
        raised: Sequence[Raised] = record.raised if record.kind == "traceback" else ()
        lines = [(4, each.at) for each in raised[:1]] or [(0, each) for each in record.lines[:1]]
        for weight, line in lines:
            grave = line.level in (Level.ERROR, Level.CRITICAL)
            weight = weight or 2 * grave + (_FAULTY.search(line.message[:400]) is not None)
            if not weight:
                continue
            masked = mask(line.message)
            counts[masked] += 1
            if counts[masked] > 3:
                continue
            hits = hits_of(line, reading, matcher)
            if any(hit.rule.role is not Role.CAUSE for hit in hits):
                continue
            if any(hit.rule.strength is Strength.DEFINITE and not hit.rule.provenance for hit in hits):
                continue
            yield weight, line
