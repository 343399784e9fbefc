"""What is missing: what to collect, from whom, by which command, and how much of the doubt each would settle.

The doubt of a verdict is what its confidence leaves. It is spread evenly over the rivals: the types that can
bring the verdict's type about (`rules/explains.yaml`) and its alternatives. A thing's weight is the part of
the doubt that lies on types which it would show or rule out, so it follows from causes alone and not from
guesses about their frequency.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from logtriage.diagnose.decision import Decision
from logtriage.diagnose.last_words import NOT_KNOWN
from logtriage.localize.findings import Findings
from logtriage.model import JOB_ROLES, Source, SourceRole
from logtriage.report.document import Collect
from logtriage.rulebank.bank import Bank
from logtriage.taxonomy import taxonomy

SURE = 0.9  # from here on nothing more is asked for
MOST = 5
LEAST_WEIGHT = 0.02
MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class _Thing:
    """A thing that can be collected; `shows` are the types, or beginnings of them, that it would tell of."""

    what: str
    shows: tuple[str, ...]
    command: str | None = None  # now, on the machine
    setting: str | None = None  # for the next run
    of: str = "hosts"  # hosts | ranks | job: whose it is
    when: tuple[str, ...] = ("",)  # the verdicts that it could change, by the beginnings of their types


_WAITING = ("collective.", "hang.", "unknown")
_GPU, _PROGRAM = ("gpu.",), ("code.", "cuda.", "data.", "numerics.", "checkpoint.", "auth.", "host.disk_full")
_KERNEL = _Thing(
    "the kernel log",
    (*_GPU, "host.", "network.infiniband", "storage.filesystem", "process."),
    command="dmesg -T, or journalctl -k -b --no-pager",
)
_SCHEDULER = _Thing(
    "the scheduler's record",
    ("scheduler.", "host.node_lost", "host.out_of_memory", "process.killed"),
    command="sacct -j JOB --format=ALL --parsable2, or kubectl describe pod POD",
    of="job",
)
_OUTPUT = _Thing(
    "the standard output and error",
    _PROGRAM,
    setting="one file a rank (torchrun --log-dir DIR --redirects 3, srun --output=%j-%t.out)",
    of="ranks",
)
_STACKS = _Thing(
    "stacks while it hangs",
    ("hang.", "collective.desync", "data.loader_worker", "storage.", "code."),
    command="py-spy dump --native --pid PID",
    of="ranks",
    when=_WAITING,
)
_RECORDER = _Thing(
    "flight recorder dumps of all ranks",
    ("collective.", "hang.", "gpu.", "code."),
    setting="TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1",
    of="job",
    when=_WAITING,
)
_GPU_STATE = _Thing(
    "the state of the GPUs", _GPU, command="nvidia-smi -q, nvidia-smi nvlink -e, dcgmi diag -r 2"
)
_FABRIC = _Thing(
    "the state and the counters of the network ports",
    ("network.infiniband", "collective.remote_error"),
    command="ibstat, perfquery -x, ethtool -S IF",
)
_NCCL = _Thing(
    "NCCL's own log",
    ("collective.init", "network.", "collective.remote_error"),
    setting="NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,ENV",
    of="job",
    when=(*_WAITING, "network."),
)
_CORE = _Thing(
    "the core dump",
    ("process.native_crash", "cuda.library"),
    command="coredumpctl info PID",
    setting="ulimit -c unlimited, PYTHONFAULTHANDLER=1",
    of="ranks",
    when=("process.", "unknown"),
)
_BLOCKING = _Thing(
    "the kernel that failed, by launching one at a time",
    ("cuda.illegal_memory_access", "cuda.device_assert", "cuda.launch_failure"),
    setting="CUDA_LAUNCH_BLOCKING=1, or compute-sanitizer on one rank",
    of="ranks",
    when=("cuda.", "unknown"),
)
_LAUNCHER = _Thing(
    "the launcher's own output",
    ("process.", "code.subprocess", "network.rendezvous", "scheduler.launch"),
    of="job",
)
# What an end without a known cause can be.
_ANY_CAUSE = (*_PROGRAM, *_GPU, "host.", "network.", "storage.", "scheduler.", "collective.", "process.")


def missing(
    findings: Findings, decision: Decision, sources: Sequence[Source], bank: Bank
) -> tuple[Collect, ...]:
    """The most helpful first; empty where the verdict is sure, or the job went well."""
    if decision.confidence >= SURE or decision.outcome == "completed":
        return ()
    rivals = _rivals(decision, bank)
    doubt = 1.0 - decision.confidence
    found = []
    for thing in _absent(findings, decision, sources):
        told = sorted(each for each in rivals if each.startswith(thing.shows))
        weight = doubt * len(told) / max(1, len(rivals))
        if weight >= LEAST_WEIGHT and decision.failure_type.startswith(thing.when):
            found.append(_wanted(thing, decision, told, round(weight, 2)))
    found.sort(key=lambda each: -each.weight)
    return tuple(found[:MOST])


def _rivals(decision: Decision, bank: Bank) -> set[str]:
    """The types that the verdict could turn out to be."""
    kind = decision.failure_type
    causes = {cause for cause, effects in bank.explains.items() if kind in effects}
    if kind == "unknown":
        causes = {each for each in taxonomy().types if each.startswith(_ANY_CAUSE)}
    return ((causes or {kind}) | {name for name, _, _ in decision.alternatives}) - {"unknown"}


def _absent(findings: Findings, decision: Decision, sources: Sequence[Source]) -> Iterable[_Thing]:
    """The things that the folder lacks."""
    roles = {source.role for source in sources}
    hosts = set(decision.culprits.hosts)
    of_kernel = {source.host for source in sources if source.role is SourceRole.KERNEL}
    if SourceRole.KERNEL not in roles or (None not in of_kernel and not hosts <= of_kernel):
        yield _KERNEL
    if not roles & {SourceRole.SCHEDULER, SourceRole.KUBERNETES}:
        yield _SCHEDULER
    if SourceRole.LAUNCHER not in roles:
        yield _LAUNCHER
    if SourceRole.HARDWARE not in roles:
        yield _GPU_STATE
        yield _FABRIC
    seen = findings.topology.ranks
    ranks = set(decision.culprits.ranks)
    spoke = {each.rank for each in findings.candidates} | findings.progress.ranks()
    if not roles & set(JOB_ROLES) or len(seen) < findings.topology.size or (ranks and not ranks <= spoke):
        yield _OUTPUT
    deposits = findings.deposits
    waited = not decision.title.startswith(NOT_KNOWN)  # who died of an error of his own waited for nobody
    if waited and (deposits is None or not deposits.stacks):
        yield _STACKS
    if waited and (deposits is None or deposits.comparison is None):
        yield _RECORDER
    if not any("NCCL INFO" in line.text for each in findings.scene.readings for line in each.lines[:200]):
        yield _NCCL
    yield _CORE
    yield _BLOCKING


def _wanted(thing: _Thing, decision: Decision, tells: Sequence[str], weight: float) -> Collect:
    ranks = decision.culprits.ranks if thing.of == "ranks" else ()
    hosts = decision.culprits.hosts if thing.of == "hosts" else ()
    whose = " of the job"
    if thing.of == "ranks":
        whose = f" of rank {', '.join(map(str, ranks[:MOST_NAMED]))}" if ranks else " of every rank"
    elif thing.of == "hosts":
        whose = f" of {', '.join(hosts[:MOST_NAMED])}" if hosts else " of each node"
    elif thing is _RECORDER:
        whose = ""
    how = f": {thing.command}" if thing.command else ""
    how += f"{'; ' if how else ', '}next run with {thing.setting}" if thing.setting else ""
    what = thing.what[0].upper() + thing.what[1:]
    return Collect(
        text=f"{what}{whose}{how}.",
        command=thing.command,
        setting=thing.setting,
        hosts=hosts,
        ranks=ranks,
        tells_apart=tuple(tells),
        weight=weight,
    )
