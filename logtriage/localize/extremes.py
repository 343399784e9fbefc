"""Reports that name only the fastest and the slowest rank: Megatron's straggler detector.

`MnRtt/Rnk: 5974.1ms/0 | MxRtt/Rnk: 9650.4ms/28 | … | MnEtpt/Rnk: 241.2TF/28 | …` gives of each measure the
least and the most with the ranks that had them. Some rank is the slowest in every report: it is a straggler
if it is the same one, report after report, and far behind the fastest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from logtriage.localize.progress import median
from logtriage.localize.scene import Scene
from logtriage.model import JOB_ROLES, Line
from logtriage.regex import regex

# Of the round trip the most, of the throughput the least belongs to the slowest.
_EXTREME = regex(
    r"\bM(?P<end>[nx])(?P<measure>Rtt|Etpt|TFLOP)s?(?:/Rnk)?: ?(?P<value>\d{1,12}(?:\.\d{1,6})?) ?"
    r"[A-Za-z]{0,3}/(?P<rank>\d{1,7})\b"
)
LEAST_REPORTS = 4
SLOWER = 1.2  # than the fastest: healthy jobs differ by some hundredths


@dataclass(frozen=True, slots=True)
class Slowest:
    """The rank that was the slowest in all of the last reports; `lines` are those reports, oldest first."""

    rank: int
    factor: float
    lines: tuple[Line, ...]


def slowest_rank(scene: Scene) -> Slowest | None:
    """The rank that the last reports name, far behind the fastest; None where they name several or none."""
    run: list[tuple[float, Line]] = []
    slowest = None
    for rank, factor, line in _reports(scene):
        if factor < SLOWER:
            run, slowest = [], None
            continue
        if rank != slowest:
            run, slowest = [], rank
        run.append((factor, line))
    if slowest is None or len(run) < LEAST_REPORTS:
        return None
    return Slowest(slowest, median([factor for factor, _ in run]), tuple(line for _, line in run))


def _reports(scene: Scene) -> Iterator[tuple[int, float, Line]]:
    """Of each report the slowest rank, and by which factor the fastest was ahead of it."""
    for reading in scene.readings:
        if reading.source.role not in JOB_ROLES:
            continue
        for line in reading.lines:
            if "/Rnk:" not in line.message:
                continue
            told = {
                (each["measure"], each["end"]): (float(each["value"]), int(each["rank"]))
                for each in _EXTREME.finditer(line.message[:2000])
            }
            for measure, slow, fast in (("Rtt", "x", "n"), ("Etpt", "n", "x"), ("TFLOP", "n", "x")):
                if (measure, slow) in told and (measure, fast) in told:
                    (worst, rank), (best, _) = told[measure, slow], told[measure, fast]
                    if worst > 0 and best > 0:
                        yield rank, max(worst / best, best / worst), line
                        break
