"""Candidates: what could have ended the job, each with its place, time and what came after it."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace

from logtriage.intake.documents import is_note
from logtriage.intake.reading import Reading
from logtriage.localize.barrier_tasks import barrier_ranks
from logtriage.localize.chains import GENERAL_TYPES, one_a_line, one_a_record
from logtriage.localize.exits import Exit, describe
from logtriage.localize.gathered import files_beside, gathering_files, is_of_no_rank
from logtriage.localize.introduced import INTRODUCED_LINES, headings_of_codes, introduced_ranks
from logtriage.localize.pods import gather_pods
from logtriage.localize.processes import OF_NCCL
from logtriage.localize.progress import Progress
from logtriage.localize.raised_places import refined
from logtriage.localize.scene import Scene, Sign
from logtriage.localize.shard_files import rank_of_shard
from logtriage.localize.topology import Topology
from logtriage.model import JOB_ROLES, Line, Record, SourceRole
from logtriage.regex import regex
from logtriage.rulebank.rule import Role, Rule, Strength

__all__ = ["GENERAL_TYPES", "Candidate", "gather_candidates"]

_OF_A_MACHINE = (SourceRole.KERNEL, SourceRole.HARDWARE)
# Files that hold no log of the job: what they contain is context, never a cause.
_SILENT_ROLES = {SourceRole.ENVIRONMENT, SourceRole.METRICS}


@dataclass(frozen=True, slots=True)
class Candidate:
    """One line that may be, or follow from, the root cause."""

    failure_type: str
    role: Role
    strength: Strength
    title: str
    line: Line
    time: float | None
    rank: int | None
    host: str | None
    attempt: int | None
    rule: Rule | None = None
    captures: tuple[tuple[str, str], ...] = ()
    record: Record | None = None
    source_role: SourceRole = SourceRole.MERGED
    recovered: bool = False

    def capture(self, name: str) -> str | None:
        return next((value for key, value in self.captures if key == name), None)


# Of one process, which their line may name by its number alone.
_OF_A_PROCESS = ("process.", "cuda.", "gpu.unavailable", "host.out_of_memory")


def gather_candidates(
    scene: Scene, progress: Progress, topology: Topology, exits: Sequence[Exit]
) -> list[Candidate]:
    """All candidates of a job in file order: rule hits (one a line, one a traceback) and process exits."""
    found: list[Candidate] = []
    clocks = {reading.source.file: _is_dated(reading) for reading in scene.readings}
    pods, pids = gather_pods(scene.readings), topology.rank_of_pid
    raised_by = {reading.source.file: _raised_by(reading, topology) for reading in scene.readings}
    introduced = {each.source.file: introduced_ranks(each, topology, exits) for each in scene.readings}
    gathering, barrier = gathering_files(scene, exits), barrier_ranks(scene)
    beside = files_beside(scene, gathering, topology)
    notes = frozenset(source.file for source in scene.sources if is_note(source.file))
    if all(source.file in notes for source in scene.sources if source.role in JOB_ROLES):
        notes = frozenset()  # nothing else tells of the job
    signs = one_a_record(one_a_line([*scene.causes, *scene.symptoms]))
    headings = headings_of_codes(signs)
    for sign in signs:
        if (sign.line.file, sign.line.number) in headings:
            continue
        if (sign.source.role in _SILENT_ROLES and not sign.rule.where) or sign.source.file in notes:
            continue
        of_all = sign.source.role is SourceRole.MERGED or sign.line.file in gathering
        service = _SERVICE.search(sign.text[:200]) if of_all else None
        task = topology.rank(sign.line, sign.rank)
        named = sign.hit.capture("rank") if service and topology.has_tasks else None
        rank = (int(named) if named and re.fullmatch(r"\d{1,6}", named) else None) if service else task
        rank = raised_by[sign.line.file].get(sign.line.number, rank)
        spoken = _SPEAKER.search(sign.text[:400])
        spoken_rank = int(next(filter(None, spoken.groups()))) if spoken is not None else None
        if rank is None:
            rank = barrier.get((sign.line.file, sign.line.number), spoken_rank)
        by = introduced[sign.line.file].get(sign.line.number)
        if by is not None and sign.raised is None and sign.line.number - by.number > INTRODUCED_LINES:
            by = None
        if by is not None and (rank is None or by.host is not None):
            # What a driver repeats stands behind whoever wrote before it; its own words may name the rank.
            rank = by.rank if by.rank is not None else spoken_rank
        host = (service["host"] if service else None) or topology.host(sign.line, rank) or sign.host
        if service and (sign.source.rank is not None or sign.line.file in topology.rank_of_file):
            host, task = service["host"] or sign.host, None
        if is_of_no_rank(sign, beside):
            rank, host = spoken_rank, sign.hit.capture("host")
        if raised_by[sign.line.file].get(sign.line.number, task) != task:
            host = topology.host_of_rank.get(rank) if rank is not None else None  # not where it is repeated
        if by is not None and by.host is not None:
            host = topology.host_of_address.get(by.host, topology.host_named.get(by.host, by.host))
        if host is None and service and task is not None:
            host = topology.host_of_rank.get(task)
        if rank is None and not str(sign.rule.failure_type).startswith("collective."):
            rank = pids.get(_process(sign))  # whose own fault it may be; a victim's rank tells nothing
        if rank is None and str(sign.rule.failure_type).startswith(_OF_A_PROCESS):  # of whose it was
            pid = sign.hit.capture("pid")
            there = topology.hosts if host is None and len(topology.hosts) == 1 else ()
            places = [(where, int(pid)) for where in (host, None, *there)] if pid and pid.isdigit() else []
            rank = next((pids[place] for place in places if place in pids), None)
        if rank is None and sign.source.role is SourceRole.KERNEL:
            rank = topology.rank_of_gpu.get((host or "", (sign.hit.capture("pci") or "")[-5:].lower()))
        if sign.rule.failure_type == "slow.straggler" and (named := sign.hit.capture("rank")) is not None:
            rank, host = int(named), sign.hit.capture("host") or topology.host_of_rank.get(int(named))
        if host is not None and re.fullmatch(r"(?i)rank[-_]?\d+", host):
            host = None
        own_words = sign.source.role is SourceRole.KERNEL
        own_words = own_words or sign.rule.id.startswith(("kernel.", "host.reboot"))
        if host is None and sign.source.role is SourceRole.KUBERNETES:
            is_limit = sign.rule.failure_type == "host.out_of_memory"  # the pod's own limit, not its node's
            host = (pods.pod(sign.line) if is_limit else None) or pods.host(sign.line)
            host = topology.host_named.get(host, host) if host else None
        if rank is None and sign.source.role in JOB_ROLES:
            shard = rank_of_shard(sign, scene)
            rank = shard if topology.world_size is None or (shard or 0) < topology.world_size else None
            host = topology.host_of_rank.get(rank) if host is None and rank is not None else host
        if rank is None and sign.rule.failure_type == "cuda.out_of_memory":
            rank = _rank_of_device(sign.hit.capture("gpu"), host, topology)
        if rank is None and (pod := pods.pod(sign.line) or host) is not None:
            rank = topology.rank_of_pod.get(pod)
        if rank is None and (pod := pods.pod(sign.line)) is not None:
            rank = topology.rank_alone.get(pod)
        if rank is None and host is not None and sign.source.role in JOB_ROLES:
            rank = topology.rank_alone.get(host)
        if sign.rule.failure_type == "host.node_lost" and not own_words:
            # Who tells of it has survived it.
            host = sign.hit.capture("host") or sign.hit.capture("node") or pods.node(sign.line)
            if host is None and sign.source.role in (SourceRole.HARDWARE, SourceRole.ENVIRONMENT):
                host = sign.source.host  # whose report somebody else made, or its management controller
            if host is None and not sign.rule.id.startswith("slurm."):  # its notice names who wrote it
                host = topology.only_host_in(sign.line.message)
                is_speaker = host is not None and host == topology.host(sign.line, rank)
                host = None if is_speaker and not sign.rule.id.startswith("cloud.") else host
        found.append(
            Candidate(
                failure_type=refined(sign, has_begun=bool(progress.traces)),
                role=sign.rule.role,
                strength=_weighed(sign),
                title=sign.rule.entitled(dict(sign.hit.captures)),
                line=sign.line,
                time=_fell_silent(sign, scene)
                if sign.rule.id == "kernel.unclean_boot"
                else sign.line.time
                if clocks[sign.line.file]
                else _death(rank, sign.line, progress),
                rank=rank,
                host=host,
                attempt=sign.line.attempt,
                rule=sign.rule,
                captures=sign.hit.captures,
                record=sign.record if sign.raised is not None else None,
                source_role=sign.source.role,
                recovered=sign.is_ignored or (sign.line.file, sign.line.number) in pods.overcome,
            )
        )
    found += _unruled(scene, topology, clocks, progress)
    ended = {(each.line.file, each.line.number): each for each in exits if each.failure_type}
    by_rule = {(each.line.file, each.line.number): each for each in found}
    of_machines = {each.file: each.role for each in scene.sources if each.role in _OF_A_MACHINE}
    found = [each for each in found if (each.line.file, each.line.number) not in ended]
    for place, exit_ in ended.items():
        told = by_rule.get(place)
        candidate = _from_exit(exit_, topology)
        if exit_.line.file in of_machines:  # which keeps what ended long ago as well
            candidate = replace(candidate, source_role=of_machines[exit_.line.file])
        if told is not None and _tells_more(told, candidate):
            found.append(
                replace(
                    told,
                    rank=candidate.rank if told.rank is None else told.rank,
                    host=told.host or candidate.host,
                )
            )
            continue
        same = told is not None and told.failure_type == candidate.failure_type
        found.append(replace(candidate, rule=told.rule) if told is not None and same else candidate)
    return found


def _tells_more(told: Candidate, ended: Candidate) -> bool:
    """Whether a line that reports how a process ended says why: `exit code 137: out of memory`."""
    return (
        told.role is Role.CAUSE
        and told.strength is Strength.DEFINITE
        and ended.failure_type.startswith("process.")
        and not told.failure_type.startswith("process.")
    )


def _process(sign: Sign) -> tuple[str | None, int]:
    """Host and process id that a line names as its writer's; process -1 where it names none."""
    if sign.line.host is not None and sign.line.pid is not None:
        return sign.line.host, sign.line.pid
    told = OF_NCCL.search(sign.line.text[:160])
    return (told["host"], int(told["pid"])) if told else (None, -1)


_PYTHON_WARNING = regex(r"\b[A-Z]\w*Warning: ")
_WEAKER = {Strength.DEFINITE: Strength.LIKELY, Strength.LIKELY: Strength.HINT, Strength.HINT: Strength.HINT}


def _weighed(sign: Sign) -> Strength:
    """A rule's strength on this line: an exception ended something, a Python warning ended nothing."""
    if _is_wrapper(sign) or sign.is_logged:
        return Strength.HINT  # of a child's death, or of what was caught and logged as a warning
    if sign.raised is None:
        warned = _PYTHON_WARNING.search(sign.text[:600])
        return _WEAKER[sign.rule.strength] if warned else sign.rule.strength
    if sign.rule.strength is Strength.HINT and sign.rule.role is Role.CAUSE:
        return Strength.LIKELY
    return sign.rule.strength


_NO_FAILURE = ("SystemExit", "GeneratorExit", "StopIteration", "StopAsyncIteration")


def _unruled(
    scene: Scene, topology: Topology, clocks: dict[str, bool], progress: Progress
) -> list[Candidate]:
    """Tracebacks whose exceptions no rule knows: programs raise classes of their own."""
    told = {
        (sign.line.file, sign.record.lines[0].number)
        for sign in (*scene.causes, *scene.symptoms, *scene.context)
        if sign.record is not None and (sign.raised is not None or sign.rule.voids)
    }
    found = []
    for reading in scene.readings:
        if reading.source.role in _SILENT_ROLES:
            continue
        for record in scene.records[reading.source.file]:
            if not record.raised or (reading.source.file, record.lines[0].number) in told:
                continue
            first = record.raised[0]
            if first.type.rsplit(".", 1)[-1] in _NO_FAILURE:
                continue
            rank = topology.rank(first.at)
            found.append(
                Candidate(
                    failure_type="code.runtime",
                    role=Role.CAUSE,
                    strength=Strength.LIKELY,
                    title=f"{first.type}: {first.message}"[:160].rstrip(": "),
                    line=first.at,
                    time=first.at.time if clocks[first.at.file] else _death(rank, first.at, progress),
                    rank=rank,
                    host=topology.host(first.at, rank),
                    attempt=first.at.attempt,
                    record=record,
                    source_role=reading.source.role,
                )
            )
    return found


# Words that begin with their own rank: `RuntimeError: Rank 1, node gpu-3: …`, `rank2: formats: …`,
# `… | WARNING | loader | rank=2 …`.
_SPEAKER = regex(
    r"(?:(?:Error|Exception|Interrupt): \[?[Rr]ank[ =:]?|^\[?[Rr]ank[-_ ]?)(\d{1,6})(?:[\],:]|\b, )"
    r"| on /job:worker/replica:\d+/task:(\d{1,6})/device|(?:^|[\]:|] +)Exception in device=\w+:(\d{1,5}): "
    r"|(?:^|[|\]] +)\[?[Rr]ank=(\d{1,6})\b"
    # PyTorch's own label, behind one that nobody knows.
    r"|^[^\[\]\n]{1,80} \[rank(\d{1,6})\]: "
)


def _rank_of_device(number: str | None, host: str | None, topology: Topology) -> int | None:
    """The rank whose device a process names by number. Each may see its own alone, and call it 0."""
    if number is None or not 0 < int(number) < topology.size:
        return None
    rank = topology.global_rank(host, int(number))
    return rank if rank in topology.ranks else None


# A checkpoint's exception carries the traceback of the rank that failed to every rank.
_RAISED_BY = regex(r"Traceback \(most recent call last\): \(RANK (\d{1,6})\)")


_FAILED_TOGETHER = regex(r"ranks:dict_keys\(\[([\d, ]{1,4000})\]\)")


def _raised_by(reading: Reading, topology: Topology) -> dict[int, int]:
    """Line number to rank, for the lines of such a traceback.

    Not where its writer is among those that failed: what it repeats was its own error as well.
    """
    ranks: dict[int, int] = {}
    failed: frozenset[int] = frozenset()
    current: tuple[int, int] | None = None
    for line in reading.lines:
        if "Traceback (" in line.text:
            found = _RAISED_BY.search(line.text[:400])
            is_own = topology.rank(line) in failed
            current = (int(found[1]), line.number) if found and not is_own else None
        elif "dict_keys" in line.text and (listed := _FAILED_TOGETHER.search(line.text[:5000])) is not None:
            failed = frozenset(int(rank) for rank in listed[1].split(",") if rank.strip())
        elif current is not None and line.number - current[1] < 200:
            ranks[line.number] = current[0]
    return ranks


# What Slurm's daemons write into a step's output is labelled with a task, but no rank said it.
_SERVICE = regex(r"\b(?:slurmstepd|slurmd|srun)(?:-(?P<host>[\w.-]+))?: ")
_LAUNCHER_FRAME = regex(
    r"launcher/(?:launch|api|runner)\.py$|torch/distributed/(?:launch|run)\.py$|commands/launch\.py$|"
    r"elastic/(?:agent|multiprocessing|launcher)/|multiprocessing/spawn\.py$"
)


def _is_wrapper(sign: Sign) -> bool:
    """An exception that a launcher raised about its child says that a child died, not why."""
    frames = sign.raised.frames if sign.raised else ()
    return bool(frames) and _LAUNCHER_FRAME.search(frames[-1].path) is not None


def _is_dated(reading: Reading) -> bool:
    """Whether the times of a file's lines mean anything: not when two start-up warnings are all it has.

    A rank's standard error often begins with one dated warning and ends, hours later, in a traceback
    without a date, which would then seem to be as old as the warning.
    """
    if len(reading.lines) < 8:
        return all(line.time is not None for line in reading.lines[-1:])
    return len({line.time for line in reading.lines if line.time is not None}) * 10 >= len(reading.lines)


def _death(rank: int | None, line: Line, progress: Progress) -> float | None:
    """When an undated last word was said: not before the last step that the rank reported."""
    ends = [trace.last.line.time for trace in progress.traces if rank is not None and trace.rank == rank]
    known = [each for each in (*ends, line.time) if each is not None]
    return max(known, default=None)


_BOOT = regex(r"^-- (?:Boot [0-9a-f]{32}|Reboot) --|\bkernel: (?:\[ *0\.0+\] )?Linux version \d")


def _fell_silent(sign: Sign, scene: Scene) -> float | None:
    """When a host that booted anew had last written before: it was lost then, not when it came back."""
    before = sign.line.time
    written: float | None = None
    for line in scene.lines(sign.line.file):
        if line.number >= sign.line.number:
            break
        if _BOOT.search(line.text[:200]) is not None and written is not None:
            before, written = written, None
        elif line.time is not None:
            written = line.time
    return before


def _from_exit(exit_: Exit, topology: Topology) -> Candidate:
    rank = exit_.rank
    if rank is None and exit_.pid is not None:
        rank = topology.rank_of_pid.get((exit_.host, exit_.pid), topology.rank_of_pid.get((None, exit_.pid)))
    if rank is None and exit_.local_rank is not None:
        rank = topology.global_rank(exit_.host, exit_.local_rank)
    whose = f"rank {rank}" if rank is not None else "a process"
    host = exit_.host or (topology.host_of_rank.get(rank) if rank is not None else None)
    return Candidate(
        failure_type=str(exit_.failure_type),
        role=Role.CAUSE,
        # An abort is how a watchdog or an uncaught C++ exception ends a process: mostly a consequence.
        strength=Strength.HINT if exit_.signal == signal.SIGABRT else Strength.LIKELY,
        title=f"{whose} ended with {describe(exit_.code)}",
        line=exit_.line,
        time=exit_.line.time,
        rank=rank,
        host=topology.host_named.get(host, host) if host else None,
        attempt=exit_.line.attempt,
        captures=(("exitcode", str(exit_.code)),),
        source_role=SourceRole.LAUNCHER,
    )
