"""What many verdicts say of each host: how much it ran, what broke there, and whether chance explains that.

A lemon is a host that fails again and again. The signals are those of "Revisiting Reliability in Large-Scale
Machine Learning Research Clusters" (Kokolis et al., HPCA 2025, arXiv:2410.21680), as far as logs and
accounting hold them: failures of multi-node and of single-node jobs that began at the host, the rate of the
latter, distinct Xid codes, and how often the host itself was lost (by the verdict, or as the scheduler
declared it), over 28 days. Its other signals (users' exclusion lists, repair tickets, times out of service)
are in no log.

The paper sets thresholds on the signals by hand. Here each host is compared with all others by the hours it
ran: that of n machine faults at least k fell on a host that ran a share s of all hours has the chance
P(Binomial(n, s) >= k), the exact test of two Poisson rates (Przyborowski and Wilenski, Biometrika 1940). The
chance is multiplied by the number of hosts that are compared (Bonferroni).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import exp, lgamma, log, log1p, log10
from statistics import median
from types import MappingProxyType

from logtriage.fleet.jobs import HOUR, is_failure, seconds_run
from logtriage.report.document import Verdict, seconds_of
from logtriage.taxonomy import taxonomy

WINDOW_DAYS = 28  # of the paper
LEMON_CHANCE = 0.01  # that any host of the fleet looks like this without being worse than the others
WATCH_CHANCE = 0.05  # of this host alone, before the number of hosts is counted
MOST_SCORE = 100.0
LOST = "host.node_lost"
LEAST_FAULTS = 2  # one fault makes no lemon, however little its host ran
_XID = re.compile(r"\bXid\b[^\d\n]{0,12}\([^)\n]{0,40}\)[^\d\n]{0,4}(\d{1,3})\b|\bXid[ :=]{1,3}(\d{1,3})\b")
_ADDRESS = re.compile(r"[\d.]+|[0-9a-f:]*:[0-9a-f:.]*")


@dataclass(frozen=True, slots=True)
class HostFigures:
    """One host over the window.

    `hours` are node-hours; of jobs that tell no times the median of the others' counts, and with no times at
    all each job counts as one. `faults` are jobs that a fault of this machine ended, `expected` how many the
    rate of all other hosts would give it. `score` is -log10 of the chance that any host of the fleet has so
    many or more without being worse than the others: 2 is one in a hundred, 6 one in a million.
    """

    host: str
    jobs: int
    failed_jobs: int
    hours: float
    faults: int
    multi_node_faults: int
    single_node_jobs: int
    single_node_faults: int
    lost: int  # jobs under which the host itself was lost
    xids: tuple[int, ...]
    kinds: tuple[tuple[str, int], ...]  # failure types of the faults, most frequent first
    expected: float | None
    score: float
    standing: str  # lemon | watch | ""

    @property
    def single_node_rate(self) -> float | None:
        """Failures of its single-node jobs by its own fault, a job."""
        return self.single_node_faults / self.single_node_jobs if self.single_node_jobs else None


@dataclass(slots=True)
class _Tally:
    names: Counter[str] = field(default_factory=Counter)
    runs: list[float | None] = field(default_factory=list)  # seconds of each job
    failed: int = 0
    single_jobs: int = 0
    faults: list[tuple[str, bool]] = field(
        default_factory=list
    )  # failure type, whether the job had several nodes
    lost: int = 0
    xids: set[int] = field(default_factory=set)


def host_figures(
    verdicts: Iterable[Verdict],
    window_days: float | None = WINDOW_DAYS,
    lost: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> list[HostFigures]:
    """Figures of every host that the verdicts name, the most suspicious first.

    The window ends with the job that ended last; jobs without a time are inside it. None: all jobs count. Of
    verdicts with one id the last one counts. `lost` are the hosts that the scheduler declared lost under a
    job, by the id of its verdict.
    """
    known = list({verdict.id: verdict for verdict in verdicts}.values())
    if window_days is not None:
        ends = [seconds_of(verdict.job.ended) for verdict in known]
        last = max((end for end in ends if end is not None), default=0.0)
        oldest = last - window_days * 86_400
        known = [each for each, end in zip(known, ends, strict=True) if end is None or end >= oldest]
    tallies: dict[str, _Tally] = defaultdict(_Tally)
    for verdict in known:
        _count(verdict, frozenset(map(host_key, lost.get(verdict.id, ()))), tallies)
    runs = [run for tally in tallies.values() for run in tally.runs if run is not None]
    usual = median(runs) / HOUR if runs and median(runs) > 0 else 1.0
    hours = {
        host: sum(usual if run is None else run / HOUR for run in tally.runs)
        for host, tally in tallies.items()
    }
    faults = {host: len(tally.faults) for host, tally in tallies.items()}
    lemons: set[str] = set()
    while True:  # what lemons add to the rate of "all others" would hide the next one
        judged = _judged(faults, hours, lemons)
        more = {host for host in judged if _is_lemon(faults[host], judged[host][1] * len(judged))} - lemons
        if not more:
            break
        lemons |= more
    figures = [_figures(tally, hours[host], *judged[host], len(tallies)) for host, tally in tallies.items()]
    return sorted(figures, key=lambda each: (-each.score, -each.faults, each.host))


def machine_fault_hosts(verdict: Verdict) -> tuple[str, ...]:
    """The hosts whose own fault ended the job; none where many are named at once: that is no one machine."""
    body = verdict.verdict
    is_machine = body.failure_type == "gpu.unavailable" or (
        body.failure_type in taxonomy() and taxonomy()[body.failure_type].action == "restart_excluding_node"
    )
    hosts = tuple(dict.fromkeys(map(host_key, body.culprits.hosts)))
    several = len({host_key(host) for host in verdict.job.hosts} | set(hosts))
    return hosts if is_machine and len(hosts) <= max(1, several // 2) else ()


def host_key(name: str) -> str:
    """One machine under its short and its full name: the first label in lower case; addresses stay whole."""
    name = name.strip().lower()
    return name if _ADDRESS.fullmatch(name) else name.split(".")[0] or name


def _count(verdict: Verdict, lost: Set[str], tallies: dict[str, _Tally]) -> None:
    """Count a job for its hosts, and for those that an earlier run lost, for which no times are known."""
    culprits = machine_fault_hosts(verdict)
    kind = verdict.verdict.failure_type
    run = seconds_run(seconds_of(verdict.job.started), seconds_of(verdict.job.ended))
    hosts = {host_key(name): name for name in (*verdict.verdict.culprits.hosts, *verdict.job.hosts)}
    for host, name in hosts.items():
        tally = tallies[host]
        tally.names[name] += 1
        tally.runs.append(run)
        tally.failed += is_failure(verdict) or host in lost
        tally.single_jobs += len(hosts) == 1
    for host in sorted(lost - hosts.keys()):
        tally = tallies[host]
        tally.names[host] += 1
        tally.runs.append(None)
        tally.failed += 1
    for host in {*culprits, *lost}:
        fault = kind if host in culprits else LOST
        # Of an earlier run it is not known whether it had the node for itself.
        tallies[host].faults.append((fault, len(hosts) > 1 or host not in hosts))
        tallies[host].lost += host in lost or fault == LOST
    for host, xid in _xids(verdict, culprits):
        if host in hosts:
            tallies[host].xids.add(xid)


def _xids(verdict: Verdict, culprits: tuple[str, ...]) -> Iterable[tuple[str, int]]:
    """(host, Xid code) of cited lines; a line that names no host speaks of the only culprit."""
    only = culprits[0] if len(culprits) == 1 else ""
    for cited in verdict.verdict.evidence:
        for found in _XID.finditer(cited.text[:2_000]):
            if host := host_key(cited.host) if cited.host else only:
                yield host, int(found[1] or found[2])


def _judged(
    faults: Mapping[str, int], hours: Mapping[str, float], lemons: set[str]
) -> dict[str, tuple[float | None, float]]:
    """(faults expected of each host, the chance of as many as it had) by the rate of the others."""
    all_hours = sum(each for host, each in hours.items() if host not in lemons)
    all_faults = sum(each for host, each in faults.items() if host not in lemons)
    judged: dict[str, tuple[float | None, float]] = {}
    for host, own in hours.items():
        other_hours = all_hours - (0.0 if host in lemons else own)
        other_faults = all_faults - (0 if host in lemons else faults[host])
        if other_hours <= 1e-9 * all_hours:
            judged[host] = None, 1.0
            continue
        chance = _tail(faults[host] + other_faults, own / (own + other_hours), faults[host])
        judged[host] = other_faults / other_hours * own, chance
    return judged


def _tail(trials: int, share: float, least: int) -> float:
    """P(Binomial(trials, share) >= least)."""
    if least <= 0 or share >= 1:
        return 1.0
    if share <= 0:
        return 0.0
    told = lgamma(trials + 1)
    terms = (
        told - lgamma(hit + 1) - lgamma(trials - hit + 1) + hit * log(share) + (trials - hit) * log1p(-share)
        for hit in range(least, trials + 1)
    )
    return min(1.0, sum(exp(term) for term in terms))


def _is_lemon(faults: int, chance: float) -> bool:
    return faults >= LEAST_FAULTS and chance < LEMON_CHANCE


def _figures(
    tally: _Tally, hours: float, expected: float | None, chance: float, compared: int
) -> HostFigures:
    overall = min(1.0, chance * compared)
    count = len(tally.faults)
    several = sum(is_multi for _, is_multi in tally.faults)
    kinds = Counter(kind for kind, _ in tally.faults)
    score = min(MOST_SCORE, abs(log10(overall))) if overall > 0 else MOST_SCORE
    standing = ""
    if _is_lemon(count, overall):
        standing = "lemon"
    elif count >= LEAST_FAULTS and chance < WATCH_CHANCE:
        standing = "watch"
    return HostFigures(
        host=min(tally.names, key=lambda name: (-tally.names[name], name)),
        jobs=len(tally.runs),
        failed_jobs=tally.failed,
        hours=round(hours, 3),
        faults=count,
        multi_node_faults=several,
        single_node_jobs=tally.single_jobs,
        single_node_faults=count - several,
        lost=tally.lost,
        xids=tuple(sorted(tally.xids)),
        kinds=tuple(sorted(kinds.items(), key=lambda each: (-each[1], each[0]))),
        expected=None if expected is None else round(expected, 3),
        score=round(score, 1),
        standing=standing,
    )
