"""Whom a machine's complaint befell: a program, a service or a daemon that is none of the ranks."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from logtriage.localize.candidates import Candidate
from logtriage.localize.jobs import is_event
from logtriage.localize.machine_complaints import (
    AWAKE_SECONDS,
    BY_KILL,
    OF_MACHINES,
    RANKS_ARE,
    STEPS_BY_ALL,
    steps_since,
)
from logtriage.localize.topology import Topology
from logtriage.model import SourceRole
from logtriage.regex import regex
from logtriage.rulebank.rule import Role

_CONTROLLERS = (SourceRole.SCHEDULER, SourceRole.KUBERNETES)


def is_of_controller(candidate: Candidate) -> bool:
    """Whether a scheduler or Kubernetes wrote it: its events are often kept in a file of no such role."""
    return candidate.source_role in _CONTROLLERS or is_event(candidate.line)


_PROCESS = regex(r"\bpid='?(?P<pid>\d{1,9})'?, name='?(?P<name>[^,'<>\n]{1,60}?)'?,")


def is_of_no_rank(candidate: Candidate, lived: Collection[str], topology: Topology) -> bool:
    """Whether a driver names a program that is not called as ranks are, and that is none of them.

    The job lived without one of that name, or the numbers of the ranks' processes on that machine are known.
    """
    told = _PROCESS.search(candidate.line.text[:400])
    if told is None or RANKS_ARE.match(told["name"]) or not candidate.failure_type.startswith("cuda."):
        return False
    known = [pid for host, pid in topology.rank_of_pid if host is not None and host == candidate.host]
    return told["name"] in lived or (len(known) > 1 and int(told["pid"]) not in known)


def program_of(candidate: Candidate) -> str | None:
    told = _PROCESS.search(candidate.line.text[:400])
    return told["name"] if told is not None else None


_VICTIM = regex(r"\bvictim process: (?P<name>[^\s,]{1,60})|\bKilled process \d+ \((?P<killed>[^)\n]{1,60})\)")


def _victim(candidate: Candidate) -> str | None:
    told = _VICTIM.search(candidate.line.text[:1000])
    return candidate.capture("name") or (told["name"] or told["killed"] if told is not None else None)


def may_be_beside(candidate: Candidate) -> bool:
    """Whether a machine or a controller tells by name of a program that crashed or was killed."""
    of_machine = candidate.source_role in OF_MACHINES or is_of_controller(candidate)
    is_open = of_machine and not candidate.recovered
    return is_open and candidate.failure_type.startswith(_CRASHES) and _victim(candidate) is not None


_CRASHES = ("process.", "host.out_of_memory")


def is_beside(
    crash: Candidate,
    own: Sequence[Candidate],
    alone: Sequence[Candidate],
    dated: Sequence[tuple[float, int]],
    killed: bool,
) -> bool:
    """Whether the program was none of the ranks, by its name and by what befell these.

    One that is called as ranks are may be one of their workers, without which they step for a while.
    """
    if RANKS_ARE.match(_victim(crash) or ""):
        stepped = steps_since(dated, crash.time or 0.0) >= STEPS_WITHOUT
        return stepped and len(alone) == len(own) > 0 and not killed
    return bool(alone) or (crash.time is not None and stepped_on(crash, dated))


_SERVICE = regex(r"/system\.slice/(?P<unit>[\w@:.-]{1,60})\.service\b")

_STARTERS = regex(r"(?i)slurm|docker|containerd|crio|podman|kubelet|pbs|lsf|sge|ssh|ray|run-")


def service(candidate: Candidate) -> str | None:
    """The service of which a machine says that it met a limit, unless it starts jobs."""
    if candidate.source_role not in OF_MACHINES or candidate.recovered:
        return None
    named = _SERVICE.search(candidate.line.text[:600])
    return named["unit"] if named is not None and _STARTERS.match(named["unit"]) is None else None


# As a machine's journal names who speaks, behind its time and its own name: a process with its number.
_SPEAKER = regex(
    r"^(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d\S{0,8}|\d{4}-\d\d-\d\d[T ]\S{8,32}) \S{1,64} "
    r"(?P<program>[\w./@-]{1,40})(?:\[[\w.@-]{1,40}\])?\[\d{1,8}\]: "
)

_OF_JOBS = regex(
    r"(?i)kernel|slurm|nv-|nvidia|dcgm|docker|containerd|crio|kubelet|pbs|sge|lsf|python|torch|mpi"
)


def daemon(candidate: Candidate) -> str | None:
    """The daemon that complained in a machine's journal, where it has nothing to do with jobs."""
    if candidate.source_role not in OF_MACHINES or candidate.recovered:
        return None
    said = _SPEAKER.search(candidate.line.text[:240])
    name = said["program"].rsplit("/", 1)[-1] if said is not None else None
    return None if name is None or _OF_JOBS.match(name) else name


def is_told_to_be_killed(candidates: Sequence[Candidate]) -> bool:
    """Whether a launcher or a rank says that somebody was killed."""
    return any(
        each.capture("exitcode") in BY_KILL
        or (each.failure_type == "process.killed" and each.role is Role.CAUSE)
        for each in candidates
        if each.source_role not in OF_MACHINES and not each.recovered
    )


# Who met it, and devices on which no data set lies.
_COMM = regex(r"\bcomm (?P<name>[\w.+-]{1,40})")

_ODD_DEVICE = regex(r"\bdev(?:ice)? (?:sr|fd|loop)\d")


def befell_another(candidate: Candidate, dated: Sequence[tuple[float, int]]) -> bool:
    """Whether an error of files befell a program that is no rank, or an odd device, and all stepped on."""
    if not candidate.failure_type.startswith("storage."):
        return False
    text = candidate.line.text[:400]
    told = _COMM.search(text)
    is_odd = _ODD_DEVICE.search(text) if told is None else RANKS_ARE.match(told["name"]) is None
    return bool(is_odd) and stepped_on(candidate, dated)


STEPS_WITHOUT = 2  # that all make when one of the ranks is gone already: none, but clocks differ


def stepped_on(candidate: Candidate, dated: Sequence[tuple[float, int]]) -> bool:
    """Whether all made steps soon after; the clocks of one machine agree well enough for that."""
    return steps_since(dated, (candidate.time or 0.0) + AWAKE_SECONDS) >= STEPS_BY_ALL
