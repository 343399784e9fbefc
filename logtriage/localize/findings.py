"""Everything that the localisation found out about a job, in one record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from logtriage.localize.actors import with_actors
from logtriage.localize.alike import without_usual_states
from logtriage.localize.announced import announced_ends
from logtriage.localize.brought_back import as_brought_back
from logtriage.localize.candidates import GENERAL_TYPES, Candidate, gather_candidates
from logtriage.localize.cascade import Cascade, group, may_explain, untangle
from logtriage.localize.closing_words import with_closing_times
from logtriage.localize.communicators import broken_in_the_run
from logtriage.localize.counters import Counter, step_counters, with_counted
from logtriage.localize.exit_ranks import placed
from logtriage.localize.exits import Exit, gather_exits
from logtriage.localize.fewer_gpus import fewer_gpus
from logtriage.localize.habits import NO_KINDS, Kinds
from logtriage.localize.incarnations import without_earlier_incarnations
from logtriage.localize.looks import as_seen
from logtriage.localize.outcome import Outcome, judge
from logtriage.localize.progress import Progress, gather
from logtriage.localize.rank_reports import with_reports
from logtriage.localize.runs import superseded
from logtriage.localize.scene import Scene
from logtriage.localize.slow import Slowness, slowness
from logtriage.localize.survival import survivors
from logtriage.localize.timeline import aligned, clock_offsets
from logtriage.localize.topology import Topology, gather_topology
from logtriage.localize.unjoined import without_unjoined
from logtriage.localize.used_up import with_used_up
from logtriage.localize.waited_out import before_the_limit
from logtriage.model import ClockOffset, Line, SourceRole
from logtriage.regex import regex
from logtriage.rulebank.bank import Bank
from logtriage.rulebank.rule import Mark, Role, Strength

if TYPE_CHECKING:  # its readers are loaded for jobs that left such files
    from logtriage.artefacts.deposits import Deposits


@dataclass(frozen=True, slots=True)
class Findings:
    """What decisions, reports and agents read."""

    scene: Scene
    progress: Progress
    topology: Topology
    exits: tuple[Exit, ...]
    candidates: tuple[Candidate, ...]
    cascade: Cascade
    outcome: Outcome
    find_slowness: Callable[[], Slowness | None]  # asked of jobs alone that no sure error ended
    offsets: dict[str, ClockOffset]  # by file, where its clock differs from the job's axis
    deposits: Deposits | None = None  # what dumps of the job's ranks show
    counters: frozenset[Counter] = frozenset()  # what counts the steps where no rule knows them
    kinds: Kinds = NO_KINDS

    @property
    def slowness(self) -> Slowness | None:
        """What made the job slow, if it was."""
        return self.find_slowness()

    def time(self, line: Line) -> float | None:
        """A line's time on the job's axis."""
        if line.time is None or line.file not in self.offsets:
            return line.time
        return line.time + self.offsets[line.file].seconds


def find(scene: Scene, bank: Bank, deposits: Deposits | None = None, kinds: Kinds = NO_KINDS) -> Findings:
    """Run the localisation on a scene; `kinds` are those of all lines, also of those not read closely."""
    progress = gather(scene)
    counters = frozenset[Counter]() if progress.is_told else step_counters(scene)
    progress = with_counted(progress, scene, counters)
    exits = gather_exits(scene)
    topology = gather_topology(scene, exits)
    exits = placed(exits, topology)
    candidates = with_actors(gather_candidates(scene, progress, topology, exits), scene, topology)
    candidates += announced_ends(scene, progress, topology, candidates)
    candidates += fewer_gpus(scene, progress, topology)
    candidates = without_earlier_incarnations(with_closing_times(candidates, scene), scene)
    candidates = with_used_up(survivors(candidates, scene, progress, topology, kinds), scene)
    candidates = without_unjoined(candidates, scene, progress, topology, bank.explains)
    candidates = as_seen(without_usual_states(candidates, scene), scene, progress, topology)
    candidates = broken_in_the_run(candidates, scene, progress)
    candidates = as_brought_back(candidates, scene, topology, kinds)
    offsets = clock_offsets(progress, candidates, bank.explains)
    candidates = aligned(candidates, offsets)
    past = superseded(scene, progress)
    final = final_attempt([each for each in candidates if each.line.file not in past], scene)
    cascade = untangle(group(final, bank.explains))
    came_back = _came_back(final, cascade, topology)
    if came_back:
        candidates = [replace(each, recovered=False) if each in came_back else each for each in candidates]
        final = [replace(each, recovered=False) if each in came_back else each for each in final]
        cascade = untangle(group(final, bank.explains))
    broken = _broken_before(candidates, final, cascade, bank)
    if broken:
        cascade = untangle(group([*final, *broken], bank.explains))
    cascade = before_the_limit(cascade, progress, scene)
    return Findings(
        scene=scene,
        progress=progress,
        topology=topology,
        exits=tuple(exits),
        candidates=tuple(candidates),
        cascade=cascade,
        outcome=judge(
            scene, progress.without(past), [each for each in exits if each.line.file not in past], kinds
        ),
        find_slowness=cache(lambda: with_reports(slowness(progress, scene, topology), scene)),
        offsets=offsets,
        deposits=deposits,
        counters=counters,
        kinds=kinds,
    )


def final_attempt(candidates: Sequence[Candidate], scene: Scene) -> list[Candidate]:
    """The candidates that can have ended the job: of its last attempt, or later than its start.

    An attempt that wrote anything counts, also one without an error: it may have recovered.
    """
    candidates = _since_restart(_of_this_job(candidates, scene), scene)
    starts: dict[int, list[float]] = {}
    for reading in scene.readings:
        for line in reading.lines:
            if line.attempt is not None and line.text.strip():
                starts.setdefault(line.attempt, [])
                if line.time is not None:
                    starts[line.attempt].append(line.time)
    if len(starts) < 2:
        return list(candidates)
    last = max(starts)
    began = min(starts[last], default=None)
    return [
        each
        for each in candidates
        if each.attempt == last
        or (
            each.attempt is None
            and (
                began is None or each.time is None or each.time >= began or each.source_role in MACHINE_ROLES
            )
        )
    ]


# A machine's log may hold weeks. Clocks can differ by a time zone, so anything within a day's zones counts.
ZONES_SECONDS = 15 * 3600.0


# What a restart meets because of how the attempt before it ended.
INHERITED = (
    "checkpoint.", "data.corrupt", "data.missing", "collective.init", "network.rendezvous",
    "network.address_in_use",
)  # fmt: skip


def _broken_before(
    candidates: Sequence[Candidate], final: Sequence[Candidate], cascade: Cascade, bank: Bank
) -> list[Candidate]:
    """Causes of earlier attempts that made the last one fail: a full disk that cut its checkpoint short."""
    root = cascade.root
    if root is None or not root.failure_type.startswith(INHERITED):
        return []
    kept = set(map(id, final))
    earlier = [each for each in candidates if id(each) not in kept]
    return [
        member
        for each in group(earlier, bank.explains)
        if each.failure_type != root.failure_type and may_explain(each, root)
        for member in each.members
    ]


# A writer that could not store its part leaves a checkpoint that nobody can use later.
STORES = ("host.disk_full", "storage.", "host.resource_limit")
_UNUSABLE = ("checkpoint.corrupt", "data.missing", "data.corrupt")
_OF_CHECKPOINT = regex(r"(?i)checkpoint|ckpt|snapshot")


def _came_back(final: Sequence[Candidate], cascade: Cascade, topology: Topology) -> list[Candidate]:
    """Failures to store a part of a checkpoint that their writers outlived, if the job died of it later."""
    root = cascade.root
    if root is None or root.failure_type not in (*GENERAL_TYPES, *_UNUSABLE):
        return []
    of_checkpoint = any(_OF_CHECKPOINT.search(each.line.message[:600]) for each in root.causes)
    by_all = len(root.ranks) * 2 > topology.size > 1  # raised alike on most ranks: of what they share
    if not root.ranks:  # where nobody names itself, on most machines
        by_all = len(root.hosts) * 2 > len(topology.hosts) > 1
    if not of_checkpoint and not by_all:
        return []
    back = [
        each
        for each in final
        if each.recovered
        and each.role is Role.CAUSE
        and each.strength is not Strength.HINT
        and each.failure_type.startswith(STORES)
    ]
    # What many met and lived with is not the one part that was lost, where somebody alone lost one.
    writers: dict[str, set[str]] = defaultdict(set)
    for each in back:
        writers[each.failure_type].add(each.line.file)
    lone = [each for each in back if len(writers[each.failure_type]) == 1]
    return lone or back


def _since_restart(candidates: Sequence[Candidate], scene: Scene) -> list[Candidate]:
    """Without what stands before the last restart that a log itself tells of, if anything failed after it."""
    restarts: dict[str, int] = {}
    for sign in scene.marked(Mark.RESTART):
        restarts[sign.line.file] = max(restarts.get(sign.line.file, 0), sign.line.number)
    failed_after = {
        each.line.file
        for each in candidates
        if each.role is Role.CAUSE
        and not each.recovered
        and each.strength is not Strength.HINT
        and each.line.number > restarts.get(each.line.file, each.line.number)
    }
    return [
        each
        for each in candidates
        if each.line.file not in failed_after or each.line.number > restarts[each.line.file]
    ]


def _of_this_job(candidates: Sequence[Candidate], scene: Scene) -> list[Candidate]:
    """Without the events of a machine's log that lie days before or after the job."""
    times = [
        line.time
        for reading in scene.readings
        if reading.source.role not in MACHINE_ROLES
        for line in reading.lines
        if line.time is not None
    ]
    if not times:
        return list(candidates)
    first, last = min(times) - ZONES_SECONDS, max(times) + ZONES_SECONDS
    kept = []
    for each in candidates:
        if each.source_role not in MACHINE_ROLES or each.time is None or first <= each.time <= last:
            kept.append(each)
        elif _UPTIME.match(each.line.text[:80]):
            kept.append(replace(each, time=None))  # when that machine started was guessed, and wrongly
    return kept


_UPTIME = regex(r"\s*(?:<\d+>)?\[ *\d{1,9}\.\d{3,9}\] ")


# What a machine's own logs say belongs to no attempt.
MACHINE_ROLES = (SourceRole.KERNEL, SourceRole.HARDWARE, SourceRole.SCHEDULER, SourceRole.KUBERNETES)
