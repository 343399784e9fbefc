"""The few ranks that stopped writing while all others write on, and no step comes any more.

Programs with signs of life (`alive`, `waiting since 90 s`) show of a job that stands whose process is the one
that is not where its peers wait: its signs end.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from logtriage.localize.progress import median
from logtriage.localize.scene import Scene
from logtriage.localize.topology import Topology
from logtriage.model import JOB_ROLES, Line

LEAST_RANKS = 3
LEAST_LINES = 10  # of each rank before, and …
LEAST_SINCE = 5  # … of each other rank since the last of the silent ones
PAUSES = 5.0  # of the usual ones of its own
AT_THE_END = 2.0  # usual pauses before the last line of all, within which all others still wrote


def fell_silent(scene: Scene, topology: Topology) -> dict[int, Line]:
    """The last lines of those ranks; empty where all, or many, stopped at about the same time."""
    written: dict[int, list[Line]] = defaultdict(list)
    for reading in scene.readings:
        if reading.source.role in JOB_ROLES:
            if not reading.whole:
                return {}
            for line in reading.lines:
                if line.time is not None and (rank := topology.rank(line)) is not None:
                    written[rank].append(line)
    if len(written) < max(LEAST_RANKS, topology.size) or min(map(len, written.values())) < LEAST_LINES:
        return {}
    times = {rank: sorted(line.time or 0.0 for line in lines) for rank, lines in written.items()}
    end = max(own[-1] for own in times.values())
    pause = median([median([later - earlier for earlier, later in pairwise(own)]) for own in times.values()])
    if pause <= 0:
        return {}
    silent = {rank for rank, own in times.items() if end - own[-1] > PAUSES * pause}
    others = [own for rank, own in times.items() if rank not in silent]
    if not silent or len(silent) * 3 > len(written):
        return {}
    since = max(times[rank][-1] for rank in silent)
    speak_on = all(
        end - own[-1] <= AT_THE_END * pause and sum(time > since for time in own) >= LEAST_SINCE
        for own in others
    )
    return {rank: written[rank][-1] for rank in sorted(silent)} if speak_on else {}
