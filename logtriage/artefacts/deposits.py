"""All that a job left besides its logs, read and compared across ranks: paths in, findings out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from logtriage.artefacts.analyses import read_analysis
from logtriage.artefacts.comparison import Comparison
from logtriage.artefacts.flight_recorder import compare
from logtriage.artefacts.pickles import MOST_BYTES, PickleFault
from logtriage.artefacts.ras import RasFinding, RasReport, judge_reports, ras_json, ras_reports
from logtriage.artefacts.recording import Recording, RecordingFault, entry_place, read_recording
from logtriage.artefacts.stack_files import read_stacks
from logtriage.artefacts.stack_text import StackDump
from logtriage.artefacts.tails import lines_of, read_tail
from logtriage.intake.reading import Extent
from logtriage.intake.streams import StreamFault, stream
from logtriage.model import Artefact, ArtefactKind, Evidence, Line, Source, Unreadable

# What is read of all dumps together: reading takes about a second for each 3 MB.
JOB_BYTES = 192 << 20


@dataclass(frozen=True, slots=True)
class Deposits:
    """`comparison` is what the flight recordings show together; `ranks` are all that they know of.

    `cited` are lines of dumps that are text and say it; a pickle has no lines to cite. `stacks` are all stack
    dumps in the order of files and lines. `ras` is what NCCL's own reports show, or an analysis.
    `digest` is of all bytes that were read, in order; `left_out` says in words what was not.
    """

    comparison: Comparison | None
    ranks: frozenset[int]
    cited: tuple[Evidence, ...]
    stacks: tuple[StackDump, ...]
    ras: RasFinding | None
    unreadable: tuple[Unreadable, ...]
    digest: str
    left_out: tuple[str, ...] = ()


def read_deposits(
    root: Path, artefacts: Sequence[Artefact], extents: Mapping[str, Extent]
) -> Deposits | None:
    """The findings of a job's artefacts; None if it has none. No fault of a file stops the others.

    `extents` are those of the files that are text, by name.
    """
    if not artefacts:
        return None
    digest = hashlib.sha256()
    unreadable: list[Unreadable] = []
    recordings: list[Recording] = []
    spare = JOB_BYTES
    unread = 0
    stacks: list[StackDump] = []
    reports: list[RasReport] = []
    analysis: RasFinding | None = None
    for artefact in _of_last_attempt(artefacts):
        extent = extents.get(artefact.source.file)
        if extent is not None and artefact.kind is ArtefactKind.STACKS:
            stacks += read_stacks(root, artefact.source, extent)
        if extent is not None and artefact.kind is ArtefactKind.RAS:
            reports += _ras(root, artefact.source, extent)
        if extent is not None and artefact.kind is ArtefactKind.ANALYSIS:
            analysis = (
                read_analysis(lines_of(read_tail(root, artefact.source, extent), artefact.source)) or analysis
            )
        if artefact.kind is not ArtefactKind.FLIGHT_RECORDER:
            continue
        file = artefact.source.file
        data, fault = _bytes(root, artefact.source, min(spare, MOST_BYTES))
        if data is None and spare >= MOST_BYTES:
            unreadable.append(Unreadable(file, f"a flight recorder dump of more than {MOST_BYTES >> 20} MiB"))
        if data is None:
            unread += spare < MOST_BYTES
            continue
        spare -= len(data)
        digest.update(f"\0{file}\0{len(data)}\0".encode("utf-8", "surrogateescape"))
        digest.update(data)
        try:
            if fault:
                raise RecordingFault(fault)
            recordings.append(read_recording(file, data))
        except (PickleFault, RecordingFault) as error:
            unreadable.append(Unreadable(file, f"a flight recorder dump, but {error}"))
    left_out = (f"{unread} dumps beyond the first {JOB_BYTES >> 20} MiB were not compared",) if unread else ()
    comparison = compare(recordings)
    return Deposits(
        comparison=comparison,
        cited=_cited(root, artefacts, comparison) if comparison else (),
        stacks=tuple(stacks),
        ras=judge_reports(reports) or analysis,
        ranks=frozenset(
            {each.rank for each in recordings}
            | {rank for each in recordings for group in each.groups.values() for rank in group.ranks}
        ),
        unreadable=tuple(unreadable),
        digest=digest.hexdigest(),
        left_out=left_out,
    )


def _of_last_attempt(artefacts: Sequence[Artefact]) -> list[Artefact]:
    """Without those that a folder's name gives to an earlier start of the job."""
    numbers = {each.source.attempt for each in artefacts if each.source.attempt is not None}
    last = max(numbers, default=None)
    return [each for each in artefacts if each.source.attempt in (None, last)]


def _ras(root: Path, source: Source, extent: Extent) -> list[RasReport]:
    tail = read_tail(root, source, extent)
    lines = list(lines_of(tail, source))
    if tail.is_whole and tail.data.lstrip()[:1] == b"{":
        first = next((line for line in lines if "communicators" in line.text), None)
        return ras_json(tail.data, first) if first else []
    return ras_reports(lines)


LONGEST_CITED = 2000  # characters of a line that is cited: a dump is often one line


def _cited(root: Path, artefacts: Sequence[Artefact], comparison: Comparison) -> tuple[Evidence, ...]:
    """The lines of JSON dumps on which the comparison's entries stand."""
    sources = {artefact.source.file: artefact.source for artefact in artefacts}
    found = []
    for entry in comparison.entries:
        data, _ = _bytes(root, sources[entry.file], JOB_BYTES)
        place = entry_place(data, entry.record) if data else None
        if data and place is not None:
            start = data.rfind(b"\n", 0, place) + 1
            end = data.find(b"\n", place)
            text = data[start : end if end >= 0 else len(data)][: 4 * LONGEST_CITED].decode(
                "utf-8", "replace"
            )
            text = text.rstrip("\r")[:LONGEST_CITED]
            number = data.count(b"\n", 0, place) + 1
            line = Line(entry.file, number, start, text, text, rank=entry.rank)
            found.append(Evidence(line, entry.why))
    return tuple(found)


def _bytes(root: Path, source: Source, most: int) -> tuple[bytes | None, str]:
    """The whole file and what is wrong with its end; None where it is longer than `most`."""
    parts: list[bytes] = []
    size = 0
    try:
        for chunk in stream(root, source):
            size += len(chunk)
            if size > most:
                return None, ""
            parts.append(chunk)
    except StreamFault as error:
        return b"".join(parts), str(error)
    return b"".join(parts), ""
