"""Kinds of lines that set a time or a place of the job apart, whatever they say.

L4 (FSE'25) finds failure-indicating lines by comparison instead of by words: with earlier good runs (what
they also wrote indicates nothing), between nodes (in a synchronous job healthy ones write alike), and between
iterations. Half of such lines are no errors by their level. Here a kind of lines is a shape of
`mining/kinds`. Without earlier runs the healthy part of the same run, up to its last good step, serves as
the history.
"""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from logtriage.intake.lines import LineReader
from logtriage.intake.reading import Reading
from logtriage.intake.streams import Piece, StreamFault, blocks_between, is_seekable, newlines, pieces
from logtriage.localize.progress import Progress
from logtriage.localize.topology import Topology
from logtriage.mining.kinds import SHAPE_LEAST, Lines, keyed, lines_of
from logtriage.mining.summary import Key, KeyCount, Place, Summary
from logtriage.mining.survey import BULK_BYTES
from logtriage.model import JOB_ROLES, Line, Source, SourceRole
from logtriage.regex import regex

LEAST_STEPS = 10  # a healthy part with fewer steps is no history, whether all of them were read …
LEAST_READ = 3  # … or only so many: of large files the first and last are
ODD_TIMES = 2  # so many times as many lines of its own as any other host has
LEAST_HOSTS = 4  # of fewer nodes none is odd
LEAST_WRITERS = 4  # of fewer ranks of one file none stands for itself
LABEL_MOST, LABEL_KINDS = 80, 3  # bytes of a label, and so many kinds of lines that bear it
MOST_ASKED = 64  # lines of one kind that are asked for their ranks
REPORTED_SECONDS = 30.0  # within which all ranks report a step
DATED_BY = 64  # lines before a gap, of all writers of a file, whose times those behind it can carry on
START_SHARE = 0.1  # of a file's lines: a kind that stands only there belongs to its start-up
PIECE_BYTES = 8 << 20
MOST_SCANNED = 256 << 20  # bytes of files that are searched for rare lines, together

# A kind by chance: an empty line of a labelled writer, or what came to stand on a line with a progress bar.
_BY_CHANCE = regex(
    rb"\W*[\w.-]*[\]:>|]+\s*$"
    rb"|\s*(?:[\w./:-]{1,80} ){0,3}[\[(<][A-Za-z][\w ./:=,-]{0,100}\d[\])>]+:?(?: \|+)?\s*$"
    rb"|[^\n]{0,80}\d%\|"
)
_GLUED = regex(r"\d%\|[^|\n]{0,150}\|[^\]\n]{0,150}\][^\r\n]*[A-Za-z]{3}")

Window = tuple[int, int]  # numbers of the first and last line


def late_kinds(
    sources: Sequence[Source],
    summaries: Sequence[Summary],
    windows: Mapping[str, Sequence[Window]],
    usual: Collection[Key] = frozenset(),
) -> frozenset[Key]:
    """The kinds that stand nowhere but in the windows of their files, and not among the `usual` ones."""
    found: set[Key] = set()
    elsewhere: set[Key] = set(usual)
    for source, summary in zip(sources, summaries, strict=True):
        spans = windows.get(source.file, ())
        for key, count in summary.keys.items():
            if any(first <= count.first[0] and count.last[0] <= last for first, last in spans):
                if (
                    source.role in JOB_ROLES
                    and len(key) >= SHAPE_LEAST
                    and not _BY_CHANCE.match(count.sample)
                ):
                    found.add(key)
            else:
                elsewhere.add(key)
    late = found - elsewhere
    return frozenset(key for key in late if len(key) > LABEL_MOST or not _is_label(key, summaries))


def _is_label(key: Key, summaries: Sequence[Summary]) -> bool:
    """Whether several other kinds of lines begin as this one is: it is what stands before their words."""
    begin = key.rstrip()
    having = next((each for each in summaries if key in each.keys), None)
    longer = sum(each.startswith(begin) for each in having.keys) if having is not None else 0
    return longer > LABEL_KINDS


def failing_windows(
    readings: Sequence[Reading],
    summaries: Mapping[str, Summary],
    progress: Progress,
    began: float,
    writers: Collection[str],
    earlier: int = 0,
) -> dict[str, list[Window]]:
    """Where the failure lies, by file: behind the last step of all, and of `writers` (files) around `began`.

    With `earlier` behind the step that came so many before the last. Empty where too few steps were made
    before to know what is usual.
    """
    made = _made(readings, progress)
    before = [each for each in made if each[0] <= began]
    if not before or not _is_long({step for _, step in made}):
        return {}
    since = _first_told(before)
    until = next((time for time, step in made if time > began and step > before[-1][1]), None)
    ended = _first_told([each for each in made if each[1] <= made[-1][1] - earlier] or made)
    windows: dict[str, list[Window]] = {}
    for reading in readings:
        spans = []
        if reading.source.file in writers and until is not None:
            inside = [line.number for line in _dated(reading) if since <= _at(line) <= until]
            spans += [(min(inside), max(inside))] if inside else []
        if (behind := _behind(reading, summaries.get(reading.source.file), ended)) is not None:
            spans.append((behind, 1 << 62))
        if spans:
            windows[reading.source.file] = spans
    return windows


def _made(readings: Sequence[Reading], progress: Progress) -> list[tuple[float, int]]:
    """When each step was reported, in the order of time.

    What another process wrote behind a bar dates that line, and came later: there, the line above tells.
    """
    lines_of = {reading.source.file: reading.lines for reading in readings}
    found = []
    for trace in progress.traces:
        lines = lines_of.get(trace.file, ())
        for point in trace.points:
            time = point.line.time
            if _GLUED.search(point.line.text):
                at = bisect.bisect_left(lines, point.line.number, key=lambda line: line.number)
                time = lines[at - 1].time if at else None
            if time is not None:
                found.append((time, point.step))
    return sorted(found)


def _behind(reading: Reading, summary: Summary | None, ended: float) -> int | None:
    """The number of the first line of a file that was written after a time; None where none is known.

    Where that lies in a gap of the reading, the first line of each kind in it tells, which the pass kept.
    What stands behind a gap without a time of its own is dated by the lines before it, so it tells nothing.
    """
    lines = reading.lines
    at = min(
        (at for at, line in enumerate(lines) if line.time is not None and line.time >= ended), default=None
    )
    if at is None:
        return None
    gap = at
    while gap and lines[gap].number - lines[gap - 1].number == 1:
        gap -= 1
    known = {line.time for line in lines[max(0, gap - DATED_BY) : gap]}
    if any(line.time not in known for line in lines[gap:at]):
        gap = at
    number, before = lines[at].number, lines[gap - 1].number if gap else 0
    if summary is not None and number - before > 1:
        reader = LineReader(reading.source, reading.layout)
        # From the end: few kinds are new there, and each that is read costs.
        firsts = sorted(((each.first, each.sample) for each in summary.keys.values()), reverse=True)
        for place, sample in firsts:
            if before < place[0] < number:
                time = reader.read(sample, *place).time
                if time is not None and time < ended:
                    break
                if time is not None:
                    number = place[0]
    return number


def _is_long(steps: Collection[int]) -> bool:
    """Whether the job went on for long, though few of its steps were read."""
    return len(steps) >= LEAST_STEPS or (len(steps) >= LEAST_READ and max(steps) - min(steps) >= LEAST_STEPS)


def _first_told(made: Sequence[tuple[float, int]]) -> float:
    """When the last of these steps was first reported: ranks report it one after another."""
    last, step = made[-1]
    return min(time for time, same in made if same == step and time > last - REPORTED_SECONDS)


def _dated(reading: Reading) -> Iterator[Line]:
    return (line for line in reading.lines if line.time is not None)


def _at(line: Line) -> float:
    return line.time or 0.0


def lone_kinds(
    sources: Sequence[Source],
    summaries: Sequence[Summary],
    readings: Sequence[Reading],
    topology: Topology,
    host: str,
) -> frozenset[Key]:
    """The kinds that only the processes of one host wrote, most of them, and not only when they started.

    Empty where too few hosts are seen to tell, or where another has many lines of its own, too: no odd node.
    A host whose output is one file is not judged where the rank is in it that reports for all.
    """
    host_of_writers: dict[str, str] = {}
    for reading in readings:
        ranks = {line.rank for line in reading.lines if line.rank is not None}
        there = {topology.host_of_rank[rank] for rank in ranks if rank in topology.host_of_rank}
        if len(there) == 1:
            host_of_writers[reading.source.file] = there.pop()
    files: dict[str | None, list[tuple[Source, Summary]]] = {}
    for source, summary in zip(sources, summaries, strict=True):
        if source.role in (SourceRole.WORKER, SourceRole.MERGED):
            whose = topology.host_of_file.get(source.file) or source.host or host_of_writers.get(source.file)
            if whose is None and source.rank is not None:
                whose = topology.host_of_rank.get(source.rank)
            files.setdefault(topology.machine(whose), []).append((source, summary))
    if host not in files or len(files.keys() - {None}) < LEAST_HOSTS:
        return frozenset()
    # The first rank reports for all, or the last one does.
    reporting = {topology.machine(topology.host_of_rank.get(rank)) for rank in (0, topology.size - 1)}
    if len(files[host]) == 1 and host in reporting:
        return frozenset()
    hosts_of: dict[Key, set[str | None]] = {}
    for each, members in files.items():
        for _, summary in members:
            for key in summary.keys:
                hosts_of.setdefault(key, set()).add(each)
    own = {each: _own_kinds(files[each], hosts_of) for each in files}
    others = max(
        (sum(kinds.values()) for each, kinds in own.items() if each not in {host, None, *reporting}),
        default=0,
    )
    return frozenset(own[host]) if sum(own[host].values()) > ODD_TIMES * others else frozenset()


def _own_kinds(
    members: Sequence[tuple[Source, Summary]], hosts_of: Mapping[Key, set[str | None]]
) -> dict[Key, int]:
    """Lines by kind: of kinds that no other host wrote, half of its files did, and not only at the start."""
    written: dict[Key, list[int]] = {}
    for _, summary in members:
        for key, count in summary.keys.items():
            is_late = count.last[0] > START_SHARE * summary.lines
            if is_late and len(hosts_of[key]) == 1 and len(key) >= SHAPE_LEAST:
                written.setdefault(key, []).append(count.count)
    return {key: sum(counts) for key, counts in written.items() if len(counts) * 2 >= len(members)}


def lines_of_kinds(
    root: Path, sources: Sequence[Source], summaries: Sequence[Summary], kinds: Collection[Key]
) -> Iterator[tuple[str, int]]:
    """File and number of all lines of these kinds, each once; beyond MOST_SCANNED bytes files are left out.

    Of two lines of a kind in a file the pass has told. For further ones what lies between the first and the
    last of them is looked at.
    """
    for source, summary in zip(sources, summaries, strict=True):
        if source.role in JOB_ROLES:
            found = [each for key in summary.keys.keys() & kinds if _is_told(each := summary.keys[key])]
            yield from {(source.file, place[0]) for each in found for place in (each.first, each.last)}
    for source, summary, piece, lines in _scanned(root, sources, summaries, kinds):
        many = {key for key in summary.keys.keys() & kinds if not _is_told(summary.keys[key])}
        codes = {int(lines.codes[kind.first]) for key, kind in keyed(lines) if key in many}
        yield from ((source.file, piece.first_line + index) for index in lines.of_codes(codes))


def _is_told(count: KeyCount) -> bool:
    """Whether the pass has told where all lines of a kind stand in a file."""
    return count.count <= 2


def of_most_ranks(
    root: Path,
    sources: Sequence[Source],
    summaries: Sequence[Summary],
    readings: Sequence[Reading],
    topology: Topology,
    kinds: Collection[Key],
) -> frozenset[Key]:
    """Without the kinds that too few of the ranks of their file wrote, as far as lines tell of their ranks.

    What all ranks of one machine say and no others is of that machine; what one rank of it says is its own.
    """
    layouts = {reading.source.file: reading.layout for reading in readings}
    writers: dict[str, set[int]] = {}
    for reading in readings:
        ranks = {rank for line in reading.lines if (rank := topology.rank(line)) is not None}
        writers[reading.source.file] = ranks
    kept = {
        key
        for key in kinds
        if not any(
            key in each.keys and each.keys[key].count * 2 < len(writers.get(source.file, ())) >= LEAST_WRITERS
            for source, each in zip(sources, summaries, strict=True)
        )
    }
    said: dict[tuple[str, Key], set[int | None]] = {}
    for source, _, piece, lines in _scanned(root, sources, summaries, kept):
        if len(writers.get(source.file, ())) < LEAST_WRITERS:
            continue
        reader = LineReader(source, layouts[source.file])
        for key, kind in keyed(lines):
            if key in kept:
                found = lines.of_codes({int(lines.codes[kind.first])})
                for index in found[:: max(1, len(found) // MOST_ASKED)]:
                    number, offset = piece.first_line + index, piece.offset + int(lines.starts[index])
                    line = reader.read(lines.line(index), number, offset)
                    said.setdefault((source.file, key), set()).add(topology.rank(line))
    for (file, key), own in said.items():
        if None not in own and len(own) * 2 < len(writers[file]):
            kept.discard(key)
    return frozenset(kept)


def _scanned(
    root: Path, sources: Sequence[Source], summaries: Sequence[Summary], kinds: Collection[Key]
) -> Iterator[tuple[Source, Summary, Piece, Lines]]:
    """What lies between the first and the last line of these kinds, file by file, in pieces.

    Files in which there are no more lines of a kind than the pass has told are left out.
    """
    spare = MOST_SCANNED
    in_bulk = sum(each.bytes for each in summaries) >= BULK_BYTES
    for source, summary in zip(sources, summaries, strict=True):
        found = [each for key in summary.keys.keys() & kinds if not _is_told(each := summary.keys[key])]
        if source.role not in JOB_ROLES or not found:
            continue
        first, last = min(each.first for each in found), max(each.last for each in found)
        try:
            sought = is_seekable(root, source)
            size = last[1] - first[1] if sought else summary.bytes
            if size > spare:
                continue
            spare -= size
            read = _pieces_between(root, source, first, last) if sought else pieces(root, source)
            for piece in read:
                if piece.offset > last[1]:
                    break
                if piece.offset + len(piece.data) + piece.elided <= first[1]:
                    continue
                yield source, summary, piece, lines_of(piece.data, in_bulk=in_bulk)
        except StreamFault:
            continue


def _pieces_between(root: Path, source: Source, first: Place, last: Place) -> Iterator[Piece]:
    """The lines from one place to another, both included."""
    line, offset = first
    for data, elided in blocks_between(root, source, offset, last[1] + 1, PIECE_BYTES):
        yield Piece(data, offset, line, elided)
        offset += len(data) + elided
        line += newlines(data)
