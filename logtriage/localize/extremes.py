"""Reports that name only the fastest and the slowest: Megatron's straggler detector, or words to that effect.

`MnRtt/Rnk: 5974.1ms/0 | MxRtt/Rnk: 9650.4ms/28 | … | MnEtpt/Rnk: 241.2TF/28 | …` gives of each measure the
least and the most with the ranks that had them. Some rank is the slowest in every report: it is a straggler
if it is the same one, report after report, and far behind the fastest. Others say it in words, of a rank or a
machine: `own work: median 2.4 s, longest 9.1 s (cn-3)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from logtriage.localize.progress import median
from logtriage.localize.rosters import HOST_WORD, is_host
from logtriage.localize.scene import Scene
from logtriage.localize.topology import Topology
from logtriage.model import JOB_ROLES, Line
from logtriage.regex import regex
from logtriage.rulebank.matcher import without_digits

# Of the round trip the most, of the throughput the least belongs to the slowest.
_EXTREME = regex(
    r"\bM(?P<end>[nx])(?P<measure>Rtt|Etpt|TFLOP)s?(?:/Rnk)?: ?(?P<value>\d{1,12}(?:\.\d{1,6})?) ?"
    r"[A-Za-z]{0,3}/(?P<rank>\d{1,7})\b"
)
LEAST_REPORTS = 4
SLOWER = 1.2  # than the fastest: healthy jobs differ by some hundredths


_VALUE = r"(?P<{0}>\d{{1,7}}(?:\.\d{{1,6}})?) ?(?P<{0}_unit>ms|s|sec|seconds)\b"
_USUAL = regex(
    r"(?i)\b(?:middle|median|mean|avg|average|typical|usual|fastest|shortest|best|min(?:imum)?)\b[ =:]{1,3}"
    + _VALUE.format("usual")
)
_WHO = (
    r"(?:(?:by|on|at|of|from|host|node|machine) )?"
    rf"(?P<GROUP>[Rr]ank[ =:#]{{0,2}}\d{{1,7}}|{HOST_WORD})(?![\w.-])"
)
_WORST = regex(
    r"(?i)\b(?:longest|slowest|worst|max(?:imum)?)\b(?:[ =:]{1,3}"
    + _VALUE.format("worst")
    + r",? ?[(\[]?"
    + _WHO.replace("GROUP", "who")
    + r"|[ =:]{1,2}"
    + _WHO.replace("GROUP", "named")
    + r"[ ,:=(]{1,3}(?:with |took |at )?"
    + _VALUE.format("told")
    + ")"
)
FAR_SLOWER = 1.5  # than the usual, which is nearer to the slowest than the fastest is
LEAST_NAMED = 3  # machines that such reports name, where nothing else says that they are some


@dataclass(frozen=True, slots=True)
class Slowest:
    """The rank or host that was the slowest in all of the last reports; `lines` are those, oldest first."""

    rank: int | None
    factor: float
    lines: tuple[Line, ...]
    host: str | None = None


def slowest_of_reports(scene: Scene, topology: Topology) -> Slowest | None:
    """Whom the last reports name, far behind the fastest; None where they name several or none."""
    for reports, slower in ((_reports(scene), SLOWER), (_in_words(scene, topology), FAR_SLOWER)):
        run: list[tuple[float, Line]] = []
        slowest: int | str | None = None
        for who, factor, line in reports:
            if factor < slower:
                run, slowest = [], None
                continue
            if who != slowest:
                run, slowest = [], who
            run.append((factor, line))
        if slowest is not None and len(run) >= LEAST_REPORTS:
            factor, lines = median([factor for factor, _ in run]), tuple(line for _, line in run)
            if isinstance(slowest, int):
                return Slowest(slowest, factor, lines)
            return Slowest(None, factor, lines, slowest)
    return None


def _in_words(scene: Scene, topology: Topology) -> list[tuple[int | str, float, Line]]:
    """Of each report in words the slowest rank or host, and how many times as long as the usual it took."""
    found: list[tuple[int | str, float, Line]] = []
    for reading in scene.readings:
        for line in reading.lines if reading.source.role in JOB_ROLES else ():
            text = line.message[:400]
            if not any(word in text for word in ("est", "ax", "orst")):
                continue
            worst, usual = _WORST.search(text), _USUAL.search(text)
            if worst is None or usual is None:
                continue
            value, unit = worst["worst"] or worst["told"], worst["worst_unit"] or worst["told_unit"]
            if unit != usual["usual_unit"] or float(usual["usual"]) <= 0:
                continue
            who = worst["who"] or worst["named"]
            rank = int(who[4:].lstrip(" =:#")) if who.lower().startswith("rank") else None
            found.append((who if rank is None else rank, float(value) / float(usual["usual"]), line))
    hosts = {who for who, _, _ in found if isinstance(who, str)}
    alike = {without_digits(host) for host in hosts}
    are_hosts = len(hosts) >= LEAST_NAMED and len(alike) == 1 and all(map(is_host, hosts))
    return found if not hosts or are_hosts or hosts <= {*topology.hosts} else []


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
