"""All that a job left besides its logs, read and compared across ranks: paths in, findings out."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from logtriage.artefacts.comparison import Comparison
from logtriage.artefacts.flight_recorder import compare
from logtriage.artefacts.pickles import PickleFault
from logtriage.artefacts.recording import Recording, RecordingFault, read_recording
from logtriage.intake.streams import StreamFault, stream
from logtriage.model import Artefact, ArtefactKind, Source, Unreadable

# What is read of all dumps together: reading takes about a second for each 3 MB.
JOB_BYTES = 192 << 20


@dataclass(frozen=True, slots=True)
class Deposits:
    """`comparison` is what the flight recordings show together; `ranks` are all that they know of.

    `digest` is of all bytes that were read, in order; `left_out` says in words what was not.
    """

    comparison: Comparison | None
    ranks: frozenset[int]
    unreadable: tuple[Unreadable, ...]
    digest: str
    left_out: tuple[str, ...] = ()


def read_deposits(root: Path, artefacts: Sequence[Artefact]) -> Deposits | None:
    """The findings of a job's artefacts; None if it has none. No fault of a file stops the others."""
    if not artefacts:
        return None
    digest = hashlib.sha256()
    unreadable: list[Unreadable] = []
    recordings: list[Recording] = []
    spare = JOB_BYTES
    unread = 0
    for artefact in artefacts:
        if artefact.kind is not ArtefactKind.FLIGHT_RECORDER:
            continue
        file = artefact.source.file
        data, fault = _bytes(root, artefact.source, spare)
        if data is None:
            unread += 1
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
    return Deposits(
        comparison=compare(recordings),
        ranks=frozenset(
            {each.rank for each in recordings}
            | {rank for each in recordings for group in each.groups.values() for rank in group.ranks}
        ),
        unreadable=tuple(unreadable),
        digest=digest.hexdigest(),
        left_out=left_out,
    )


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
