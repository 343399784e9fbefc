"""All lines that indicate the failure: what speaks for the cause or follows from it, with its whole text.

A traceback, a native stack, a dump of the kernel or a launcher's table is one thing of many lines, and each
of them belongs to the failure. What the job survived, and what a machine complained of long before or on
another host, does not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from logtriage.diagnose.decision import Decision
from logtriage.intake.reading import Reading
from logtriage.localize.announced import new_since, starters
from logtriage.localize.candidates import Candidate
from logtriage.localize.cascade import CONSEQUENCES
from logtriage.localize.findings import Findings
from logtriage.localize.topology import Topology
from logtriage.model import Line, Record, SourceRole
from logtriage.regex import regex
from logtriage.report.document import Indication
from logtriage.rulebank.rule import Role, Strength

BEFORE_SECONDS = 120.0  # clocks differ and messages are flushed late; what is older than that did not follow
# Slurm waits 300 s (SlurmdTimeout) and Kubernetes about as long before they call a node lost that its peers
# have long missed.
BEFORE_NOTICE_SECONDS = 900.0
BEFORE_SECONDS_OF_STARTERS = 5.0  # what a starter never said before is of the end, in whatever words
# What goes on has no end of which a starter could tell.
_NO_END = ("none.", "slow.", "hang.")
MOST_FOLLOWING = 80  # lines of one writer that may go on with what it said

# Lines by which an error goes on without a frame of its own: NCCL's way up its calls, CUDA's advice, c10's
# text, and what else a watchdog reports.
_GOES_ON = regex(
    r"NCCL INFO \S+:\d+ -> -?\d+|CUDA kernel errors might be asynchronously|CUDA_LAUNCH_BLOCKING=1"
    r"|TORCH_USE_CUDA_DSA|^\s*what\(\):|^terminate called|^Exception raised from|^\s*frame #\d+"
    r"|^Last error:|^nccl(?:Remote|System|Internal|UnhandledCuda)Error|^Original Traceback"
    r"|NET/IB ?: Got completion|^\s*NVRM: |ProcessGroup\w+\.cpp:\d+\]"
)
# What a launcher puts before the lines of each writer, and nothing behind it.
_LABEL_ALONE = regex(
    r"\s*(?:(?:[\w./:-]{1,80} ){1,3}[\[(<]|[\[(<](?=[A-Za-z]))[\w ./:=,-]{0,100}\d[\])>:|]+(?: \|+)?\s*$"
)
_RULE = regex(r"^[=\-*]{20,}\s*$")
_FAILED = regex(r"\bFAILED\b")
MOST_TABLE = 2_000  # lines of a launcher's table of failures


def indications(
    findings: Findings, decision: Decision, rare: Collection[tuple[str, int]] = ()
) -> tuple[Indication, ...]:
    """The failure-indicating lines of a job, in order of files and lines; none of a job that went well.

    `rare` are lines (file, number) that no rule knows and that came only where the failure lies.
    """
    if decision.failure_type.startswith("none."):
        return ()
    found: dict[tuple[str, int], Indication] = {}

    def add(lines: Iterable[Line], role: str, failure_type: str) -> None:
        for line in lines:
            place = line.file, line.number
            if place not in found and line.message.strip() and _LABEL_ALONE.match(line.text[:200]) is None:
                found[place] = Indication(
                    file=line.file,
                    line=line.number,
                    role=role,  # type: ignore[arg-type]
                    failure_type=failure_type,
                )

    chosen = [each for each in findings.candidates if _belongs(each, decision, findings.topology)]
    for each in chosen:
        add((each.line,), _role(each, decision), each.failure_type)
    cited = [each.line for each in decision.evidence]
    if decision.failure_type == "hang.silent":  # its last step itself was well, and so is who writes on
        last = findings.outcome.line
        rare = {place for place in rare if last is None or place != (last.file, last.number)}
        stepped = {trace.file for trace in findings.progress.traces}
        cited = (
            [each for each in cited if (each.file, each.number) in rare]
            or [each for each in cited if each != last and each.file in stepped]
            or cited
        )
    add(cited, "cause", decision.failure_type)
    began = _began(decision)
    ended = [each.line for each in findings.exits if each.code != 0 and _is_recent(each.line.time, began)]
    add(ended, "symptom", "code.subprocess")
    if began is not None and not decision.failure_type.startswith(_NO_END):
        for reading in starters(findings.scene, findings.progress, findings.topology):
            add(new_since(reading, began - BEFORE_SECONDS_OF_STARTERS), "symptom", "code.subprocess")
    by_file: dict[str, list[Candidate]] = {}
    for each in chosen:
        by_file.setdefault(each.line.file, []).append(each)
    for reading in findings.scene.readings:
        file = reading.source.file
        if file in by_file:
            lone = reading.source.rank is not None or file in findings.topology.rank_of_file
            whole = _Whole(reading, findings.scene.records.get(file, ()), lone=lone)
            for each in by_file[file]:
                add(whole.around(each.line), _role(each, decision), each.failure_type)
            add(_tables(reading.lines), "symptom", "code.subprocess")
    for file, number in rare:
        told = Indication(file=file, line=number, role="context", failure_type=decision.failure_type)
        found.setdefault((file, number), told)
    return tuple(found[key] for key in sorted(found))


def _role(candidate: Candidate, decision: Decision) -> str:
    """What a line is to this verdict: a time-out that states a failure may be what followed from another."""
    kind = candidate.failure_type
    followed = kind != decision.failure_type and kind in {each.failure_type for each in decision.symptoms}
    return "cause" if candidate.role is Role.CAUSE and not followed else "symptom"


def _belongs(candidate: Candidate, decision: Decision, topology: Topology) -> bool:
    """Whether a candidate is part of this failure: survived, weak and old ones are not."""
    if candidate.recovered or _is_of_another_pod(candidate, topology):
        return False
    began = _began(decision)
    if began is not None and decision.failure_type == "host.node_lost":
        began -= BEFORE_NOTICE_SECONDS
    is_recent = _is_recent(candidate.time, began)
    if candidate.failure_type == decision.failure_type:
        return is_recent or candidate.strength is not Strength.HINT
    if candidate.role is not Role.CAUSE:
        blamed = decision.culprits.hosts
        machine = decision.failure_type.startswith(_OF_A_MACHINE)
        elsewhere = candidate.host is not None and candidate.host not in (blamed if machine else ())
        return is_recent and not (elsewhere and candidate.source_role is SourceRole.KERNEL)
    return is_recent and (candidate.strength is not Strength.HINT or candidate.failure_type in CONSEQUENCES)


_POD = regex(r"\bpod/([\w.-]+)")


def _is_of_another_pod(candidate: Candidate, topology: Topology) -> bool:
    """Whether an event tells of a pod that is none of the job's, whose pods are known."""
    told = _POD.search(candidate.line.text[:1000]) if topology.node_of_pod else None
    return told is not None and told[1] not in (*topology.node_of_pod, *topology.hosts)


# Of other failures, what a kernel says of its GPUs is no consequence: another process's channel was reset.
_OF_A_MACHINE = ("gpu.", "cuda.", "host.", "network.infiniband")


def _is_recent(time: float | None, began: float | None) -> bool:
    return time is None or began is None or time >= began - BEFORE_SECONDS


def _began(decision: Decision) -> float | None:
    times = [each.line.time for each in decision.evidence if each.line.time is not None]
    if decision.root is not None and decision.root.time is not None:
        times.append(decision.root.time)
    return min(times, default=None)


def _is_label_of(line: Line, other: Line) -> bool:
    """Whether a line holds but what stands before another one's words: its writer wrote an empty one."""
    return line is not other and other.text.startswith(line.text.rstrip()) and line.text != other.text


class _Whole:
    """One file's lines and records, to find all that belongs to a line; a lone rank wrote all of its file."""

    def __init__(self, reading: Reading, records: Sequence[Record], *, lone: bool) -> None:
        self._lone = lone
        self._record: dict[int, Record] = {}
        for record in records:
            if record.kind != "line":
                self._record.update({line.number: record for line in record.lines})
        self._of_rank: dict[int | None, list[Line]] = {}
        self._place: dict[int, int] = {}
        for line in reading.lines:
            same = self._of_rank.setdefault(self._writer(line), [])
            self._place[line.number] = len(same)
            same.append(line)

    def _writer(self, line: Line) -> int | None:
        return None if self._lone else line.rank

    def around(self, line: Line) -> Iterator[Line]:
        """The lines of its record, and those by which the same writer went on with it."""
        record = self._record.get(line.number)
        if record is not None:
            yield from (each for each in record.lines if not _is_label_of(each, record.lines[0]))
            line = record.lines[-1]
        same = self._of_rank.get(self._writer(line), [])
        start = self._place.get(line.number, len(same)) + 1
        for following in same[start : start + MOST_FOLLOWING]:
            record = self._record.get(following.number)
            if not following.message.strip() or _is_label_of(following, line):
                continue
            if record is None and _GOES_ON.search(following.message[:400]) is None:
                return
            yield following


def _tables(lines: Sequence[Line]) -> Iterator[Line]:
    """The lines of torchrun's tables of failed processes, ruled above and below."""
    begin: int | None = None
    for index, line in enumerate(lines):
        if begin is not None and index - begin > MOST_TABLE:
            begin = None
        if not _RULE.match(line.message):
            continue
        if begin is None:
            if index + 1 < len(lines) and _FAILED.search(lines[index + 1].message[:400]):
                begin = index
        elif line.message.strip() == lines[begin].message.strip():
            yield from lines[begin : index + 1]
            begin = None
