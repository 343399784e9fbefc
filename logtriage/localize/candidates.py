"""Candidates: what could have ended the job, each with its place, time and what came after it."""

from __future__ import annotations

import bisect
import re
import signal
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from logtriage.intake.reading import Reading
from logtriage.localize.exits import Exit, describe
from logtriage.localize.pods import gather_pods
from logtriage.localize.progress import Progress
from logtriage.localize.scene import Scene, Sign
from logtriage.localize.topology import Topology
from logtriage.model import Level, Line, Record, SourceRole
from logtriage.rulebank.rule import Role, Rule, Strength

# Files that hold no log of the job: what they contain is context, never a cause.
_SILENT_ROLES = {SourceRole.ENVIRONMENT, SourceRole.METRICS}
# A rank that dies of these stops a synchronous job at once: steps of any rank long after show that it lived.
_STOPS_ALL = ("code.", "network.connection", "unknown")
OUTLIVED_SECONDS = 300.0
RECOVERED_STEPS = 2  # so many progress lines of the same writer after an error: it was survived
# Of these a program may write progress lines after the fault and still be ruined by it.
_OUTLIVES_PROGRESS = ("numerics.", "slow.", "gpu.thermal_power", "scheduler.")


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


def gather_candidates(
    scene: Scene, progress: Progress, topology: Topology, exits: Sequence[Exit]
) -> list[Candidate]:
    """All candidates of a job in file order: rule hits (one a line, one a traceback) and process exits."""
    found: list[Candidate] = []
    clocks = {reading.source.file: _is_dated(reading) for reading in scene.readings}
    pods = gather_pods(scene.readings)
    introduced = {reading.source.file: _introduced_ranks(reading) for reading in scene.readings}
    for sign in _one_a_record(_one_a_line([*scene.causes, *scene.symptoms])):
        if sign.source.role in _SILENT_ROLES and not sign.rule.where:
            continue
        service = _SERVICE.search(sign.text[:200]) if sign.source.role is SourceRole.MERGED else None
        rank = None if service else topology.rank(sign.line, sign.rank)
        if rank is None and (spoken := _SPEAKER.search(sign.text[:400])) is not None:
            rank = int(spoken[1] or spoken[2])
        if rank is None and sign.raised is not None:
            rank = introduced[sign.line.file].get(sign.line.number)
        host = topology.host(sign.line, rank) or sign.host or (service["host"] if service else None)
        if host is not None and re.fullmatch(r"(?i)rank[-_]?\d+", host):
            host = None
        own_words = sign.source.role is SourceRole.KERNEL or sign.rule.id.startswith(("kernel.", "host.reboot"))
        if host is None and sign.source.role is SourceRole.KUBERNETES:
            host = pods.host(sign.line)
        if rank is None and (pod := pods.pod(sign.line) or host) is not None:
            rank = topology.rank_of_pod.get(pod)
        if sign.rule.failure_type == "host.node_lost" and not own_words:
            host = sign.hit.capture("host") or sign.hit.capture("node")  # who tells of it has survived it
        found.append(
            Candidate(
                failure_type=_refined(sign),
                role=sign.rule.role,
                strength=_weighed(sign),
                title=sign.rule.entitled(dict(sign.hit.captures)),
                line=sign.line,
                time=sign.line.time if clocks[sign.line.file] else _death(rank, sign.line, progress),
                rank=rank,
                host=host,
                attempt=sign.line.attempt,
                rule=sign.rule,
                captures=sign.hit.captures,
                record=sign.record if sign.raised is not None else None,
                source_role=sign.source.role,
            )
        )
    found += _unruled(scene, topology, clocks, progress)
    ended = {(each.line.file, each.line.number): each for each in exits if each.failure_type}
    by_rule = {(each.line.file, each.line.number): each for each in found}
    found = [each for each in found if (each.line.file, each.line.number) not in ended]
    for place, exit_ in ended.items():
        told = by_rule.get(place)
        candidate = _from_exit(exit_, topology)
        same = told is not None and told.failure_type == candidate.failure_type
        found.append(replace(candidate, rule=told.rule) if told is not None and same else candidate)
    words = _calm_words(scene, topology)
    found = [_with_outcome(candidate, progress, words) for candidate in found]
    return [_promoted(candidate, found) for candidate in found]


_PYTHON_WARNING = re.compile(r"\b[A-Z]\w*Warning: ")
_WEAKER = {Strength.DEFINITE: Strength.LIKELY, Strength.LIKELY: Strength.HINT, Strength.HINT: Strength.HINT}


def _weighed(sign: Sign) -> Strength:
    """A rule's strength on this line: an exception ended something, a Python warning ended nothing."""
    if _is_wrapper(sign) or _is_ignored(sign):
        return Strength.HINT
    if sign.raised is None:
        warned = _PYTHON_WARNING.search(sign.text[:600])
        return _WEAKER[sign.rule.strength] if warned else sign.rule.strength
    if sign.rule.strength is Strength.HINT and sign.rule.role is Role.CAUSE:
        return Strength.LIKELY
    return sign.rule.strength


def _is_ignored(sign: Sign) -> bool:
    """Python prints `Exception ignored in: …` for what a finalizer raised, and goes on."""
    return sign.is_ignored


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


# Where an exception was raised can say more than its class: a truncated file is a checkpoint when it was
# being restored and data when a dataset read it. (type by rule, frames, type by place)
_RESTORING = re.compile(
    r"restore|load_checkpoint|load_state|from_pretrained|load_model|resume|checkpoint|ckpt", re.I
)
_READING_DATA = re.compile(
    r"dataset|dataloader|data_loader|__getitem__|collate|tokeniz|load_data|read_shard", re.I
)
_BY_PLACE = (
    ("data.corrupt", _RESTORING, "checkpoint.corrupt"),
    ("checkpoint.corrupt", _READING_DATA, "data.corrupt"),
    ("code.file_not_found", _READING_DATA, "data.missing"),
)


def _refined(sign: Sign) -> str:
    failure_type = str(sign.rule.failure_type)
    if sign.raised is None:
        return failure_type
    inner = [f"{frame.path.rsplit('/', 1)[-1]} {frame.function}" for frame in sign.raised.frames]
    for told, frames, meant in _BY_PLACE:
        if failure_type != told or not any(frames.search(each) for each in inner):
            continue
        other = _READING_DATA if frames is _RESTORING else _RESTORING
        if not any(other.search(each) for each in inner):
            return meant
    return failure_type


# An exception that begins with its own rank: `RuntimeError: Rank 1, node gpu-3: …`, `rank2: formats: …`.
_SPEAKER = re.compile(
    r"(?:(?:Error|Exception|Interrupt): \[?[Rr]ank[ =:]?|^\[?[Rr]ank[-_ ]?)(\d{1,6})(?:[\],:]|\b, )"
    r"| on /job:worker/replica:\d+/task:(\d{1,6})/device"
)


# What Slurm's daemons write into a step's output is labelled with a task, but no rank said it.
_SERVICE = re.compile(r"\b(?:slurmstepd|slurmd|srun)(?:-(?P<host>[\w.-]+))?: ")
_LAUNCHER_FRAME = re.compile(
    r"launcher/(?:launch|api|runner)\.py$|torch/distributed/(?:launch|run)\.py$|commands/launch\.py$|"
    r"elastic/(?:agent|multiprocessing|launcher)/|multiprocessing/spawn\.py$"
)


def _is_wrapper(sign: Sign) -> bool:
    """An exception that a launcher raised about its child says that a child died, not why."""
    frames = sign.raised.frames if sign.raised else ()
    return bool(frames) and _LAUNCHER_FRAME.search(frames[-1].path) is not None


# Lines by which a parent introduces the traceback of a child.
_INTRODUCED = re.compile(
    r"-- Process (?P<rank>\d+) terminated with|\bworld_rank=(?P<world>\d+)\b.*(?:failed|error)"
)


def _introduced_ranks(reading: Reading) -> dict[int, int]:
    """Line number to rank, for the lines that follow `-- Process 0 terminated with the following error:`."""
    ranks: dict[int, int] = {}
    current: tuple[int, int] | None = None
    for line in reading.lines:
        found = _INTRODUCED.search(line.text[:400])
        if found:
            current = (int(found["rank"] or found["world"]), line.number)
        elif current is not None and line.number - current[1] < 200:
            ranks[line.number] = current[0]
    return ranks


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


def _one_a_line(signs: Sequence[Sign]) -> list[Sign]:
    """Of several rules on one line, the strongest cause, or else the strongest symptom."""
    order = {Strength.DEFINITE: 0, Strength.LIKELY: 1, Strength.HINT: 2}
    best: dict[tuple[str, int], Sign] = {}
    for sign in signs:
        key = (sign.line.file, sign.line.number)
        known = best.get(key)
        if known is None or _precedence(sign, order) < _precedence(known, order):
            best[key] = sign
    return list(best.values())


def _precedence(sign: Sign, order: dict[Strength, int]) -> tuple[int, bool, bool]:
    # A symptom rule that is sure of itself beats a general exception rule on the same line.
    return (
        order[sign.rule.strength],
        sign.rule.role is Role.CAUSE and sign.rule.failure_type in GENERAL_TYPES,
        sign.rule.role is not Role.CAUSE,
    )


GENERAL_TYPES = {
    "code.runtime", "code.value", "code.type", "code.key", "code.index", "code.assertion", "code.attribute",
    "code.os_error", "unknown",
}  # fmt: skip


def _one_a_record(signs: Sequence[Sign]) -> list[Sign]:
    """Of a chained traceback one sign stays a candidate: the one that says most, the first if equal.

    The first exception is the likelier root: later ones were raised while it was handled. But a
    first link that only says `KeyError` while a later one names a known failure is a failed look-up.
    """
    chains: dict[int, list[Sign]] = defaultdict(list)
    kept: list[Sign] = []
    for sign in signs:
        if sign.raised is not None and sign.record is not None:
            chains[id(sign.record)].append(sign)
        else:
            kept.append(sign)
    for chain in chains.values():
        chain.sort(key=lambda sign: _chain_order(sign))
        kept.append(chain[0])
        kept += [_demoted(sign) for sign in chain[1:] if sign.line.number != chain[0].line.number]
    kept.sort(key=lambda sign: (sign.line.file, sign.line.number))
    plain_causes: dict[str, list[Sign]] = defaultdict(list)
    for sign in kept:
        if sign.raised is None and sign.rule.role is Role.CAUSE and sign.rule.strength is Strength.DEFINITE:
            plain_causes[sign.line.file].append(sign)
    return [_demoted(sign) if _explained_below(sign, plain_causes[sign.line.file]) else sign for sign in kept]


BELOW_LINES = 10


def _explained_below(sign: Sign, causes: Sequence[Sign]) -> bool:
    """A general exception whose reason is printed right below it, in lines of their own (`causes`)."""
    if sign.raised is None or sign.rule.failure_type not in GENERAL_TYPES:
        return False
    first = bisect.bisect_right(causes, sign.line.number, key=lambda cause: cause.line.number)
    return any(
        other.line.number - sign.line.number <= BELOW_LINES and other.line.rank in (None, sign.line.rank)
        for other in causes[first : first + BELOW_LINES]
    )


def _chain_order(sign: Sign) -> tuple[int, int, int, int]:
    strength = {Strength.DEFINITE: 0, Strength.LIKELY: 1, Strength.HINT: 2}[sign.rule.strength]
    general = sign.rule.failure_type in GENERAL_TYPES
    return (sign.rule.role is not Role.CAUSE, strength + general, sign.link, sign.line.number)


def _demoted(sign: Sign) -> Sign:
    rule = replace(sign.rule, role=Role.SYMPTOM)
    return replace(sign, hit=replace(sign.hit, rule=rule))


def _from_exit(exit_: Exit, topology: Topology) -> Candidate:
    rank = exit_.rank
    if rank is None and exit_.pid is not None:
        rank = topology.rank_of_pid.get((exit_.host, exit_.pid), topology.rank_of_pid.get((None, exit_.pid)))
    if rank is None and exit_.local_rank is not None:
        rank = topology.global_rank(exit_.host, exit_.local_rank)
    whose = f"rank {rank}" if rank is not None else "a process"
    return Candidate(
        failure_type=str(exit_.failure_type),
        role=Role.CAUSE,
        # An abort is how a watchdog or an uncaught C++ exception ends a process: mostly a consequence.
        strength=Strength.HINT if exit_.signal == signal.SIGABRT else Strength.LIKELY,
        title=f"{whose} ended with {describe(exit_.code)}",
        line=exit_.line,
        time=exit_.line.time,
        rank=rank,
        host=exit_.host or (topology.host_of_rank.get(rank) if rank is not None else None),
        attempt=exit_.line.attempt,
        captures=(("exitcode", str(exit_.code)),),
        source_role=SourceRole.LAUNCHER,
    )


def _promoted(candidate: Candidate, all_: Sequence[Candidate]) -> Candidate:
    """An abort is a finding of its own where its rank (or the whole job) shows nothing that led to it."""
    if candidate.failure_type != "process.native_crash" or candidate.strength is not Strength.HINT:
        return candidate
    for other in all_:
        if other.role is not Role.CAUSE or other.recovered or other.strength is Strength.HINT:
            continue
        if other.failure_type == "collective.timeout":
            return candidate  # a watchdog's abort
        if candidate.rank is None or other.rank is None or other.rank == candidate.rank:
            return candidate
    return replace(candidate, strength=Strength.LIKELY)


def _calm_words(scene: Scene, topology: Topology) -> dict[tuple[str, int | None], list[float]]:
    """When each rank wrote something calm (at INFO or DEBUG), by file and rank, in order of time."""
    words: dict[tuple[str, int | None], list[float]] = defaultdict(list)
    for reading in scene.readings:
        if reading.source.role in (SourceRole.WORKER, SourceRole.MERGED):
            for line in reading.lines:
                if line.time is not None and line.level in (Level.INFO, Level.DEBUG):
                    words[line.file, topology.rank(line)].append(line.time)
    return {key: sorted(times) for key, times in words.items()}


CALM_LINES = 20  # so many calm lines of a rank …
CALM_SECONDS = 5.0  # … so long after its exception: a process that died writes no more


def _with_outcome(
    candidate: Candidate, progress: Progress, words: dict[tuple[str, int | None], list[float]]
) -> Candidate:
    """Mark what the writer survived: it went on making steps, or calmly writing, afterwards."""
    if candidate.failure_type.startswith(_OUTLIVES_PROGRESS):
        return candidate
    if candidate.source_role in (SourceRole.WORKER, SourceRole.MERGED):
        last = progress.last_time
        if (
            candidate.failure_type.startswith(_STOPS_ALL)
            and candidate.attempt is None  # the steps of a later attempt say nothing of this one
            and candidate.time is not None
            and last is not None
            and last > candidate.time + OUTLIVED_SECONDS
        ):
            return replace(candidate, recovered=True)
        calm = words.get((candidate.line.file, candidate.rank), []) if candidate.rank is not None else []
        if candidate.failure_type.startswith(_STOPS_ALL) and candidate.time is not None:
            later = len(calm) - bisect.bisect_right(calm, candidate.time + CALM_SECONDS)
            if later >= CALM_LINES:
                return replace(candidate, recovered=True)
        survived = progress.steps_after(candidate.line) >= RECOVERED_STEPS
        return replace(candidate, recovered=True) if survived else candidate
    return candidate
