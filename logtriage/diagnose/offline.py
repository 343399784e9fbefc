"""The offline decision: from the scene of a job to one root cause, its culprits and its lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from logtriage.diagnose.confidence import confidence
from logtriage.diagnose.culprits import blame
from logtriage.diagnose.decision import Decision
from logtriage.localize.candidates import GENERAL_TYPES, Candidate, gather_candidates
from logtriage.localize.cascade import CONSEQUENCES, Cascade, Group, group, untangle
from logtriage.localize.collectives import mismatch, odd_words, silent_ranks, waits
from logtriage.localize.exits import Exit, describe, gather_exits
from logtriage.localize.outcome import Outcome, judge
from logtriage.localize.progress import Progress, gather
from logtriage.localize.scene import Scene
from logtriage.localize.slow import Slowness, slowness
from logtriage.localize.topology import Topology, gather_topology
from logtriage.model import Culprits, Evidence, Line, SourceRole
from logtriage.rulebank.bank import Bank
from logtriage.rulebank.rule import Role, Strength


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that the offline decision looked at; reports and agents read it too."""

    scene: Scene
    progress: Progress
    topology: Topology
    exits: tuple[Exit, ...]
    candidates: tuple[Candidate, ...]
    cascade: Cascade
    outcome: Outcome
    slowness: Slowness | None


def find(scene: Scene, bank: Bank) -> Findings:
    """Run the localisation on a scene."""
    progress = gather(scene)
    exits = gather_exits(scene)
    topology = gather_topology(scene, exits)
    candidates = gather_candidates(scene, progress, topology, exits)
    final = final_attempt(candidates, scene)
    cascade = untangle(group(final, bank.explains))
    return Findings(
        scene=scene,
        progress=progress,
        topology=topology,
        exits=tuple(exits),
        candidates=tuple(candidates),
        cascade=cascade,
        outcome=judge(scene, progress, exits),
        slowness=slowness(progress),
    )


def final_attempt(candidates: Sequence[Candidate], scene: Scene) -> list[Candidate]:
    """The candidates that can have ended the job: of its last attempt, or later than its start.

    An attempt that wrote anything counts, also one without an error: it may have recovered.
    """
    candidates = _of_this_job(candidates, scene)
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
                began is None
                or each.time is None
                or each.time >= began
                or each.source_role in _MACHINE_ROLES
            )
        )
    ]


# A machine's log may hold weeks. Clocks can differ by a time zone, so anything within a day's zones counts.
ZONES_SECONDS = 15 * 3600.0


def _of_this_job(candidates: Sequence[Candidate], scene: Scene) -> list[Candidate]:
    """Without the events of a machine's log that lie days before or after the job."""
    times = [
        line.time
        for reading in scene.readings
        if reading.source.role not in _MACHINE_ROLES
        for line in reading.lines
        if line.time is not None
    ]
    if not times:
        return list(candidates)
    first, last = min(times) - ZONES_SECONDS, max(times) + ZONES_SECONDS
    return [
        each
        for each in candidates
        if each.source_role not in _MACHINE_ROLES or each.time is None or first <= each.time <= last
    ]


# What a machine's own logs say belongs to no attempt.
_MACHINE_ROLES = (SourceRole.KERNEL, SourceRole.HARDWARE, SourceRole.SCHEDULER, SourceRole.KUBERNETES)


def decide(findings: Findings) -> Decision:
    """One decision. Where the evidence does not decide, the type is `unknown` and says what to collect."""
    root = findings.cascade.root
    sure = root is not None and root.sureness >= 2
    finished = findings.outcome.kind == "completed" and root is not None and not _is_fatal(root)
    if root is None or not sure or finished:
        quiet = _without_error(findings, root)
        if quiet is not None:
            return quiet
    if root is None:
        return _unknown(findings)
    if root.failure_type in CONSEQUENCES or root.failure_type == "collective.desync":
        deeper = _behind_a_consequence(findings, root)
        if deeper is not None:
            return deeper
    if root.failure_type == "unknown":
        return _unknown(findings)
    return _from_group(findings, root)


def _is_fatal(root: Group) -> bool:
    """Whether the root ends processes: an exception or exit, or a fault below the program."""
    return any(
        each.record is not None or each.capture("exitcode") or each.source_role in _MACHINE_ROLES
        for each in root.causes
        if each.strength is not Strength.HINT
    ) or root.failure_type.startswith(("scheduler.", "numerics."))


def _from_group(findings: Findings, root: Group, *, decided_by: str = "rules", why: str = "") -> Decision:
    culprits, told = blame(root, findings.topology, findings.candidates, findings.exits)
    evidence = _evidence(root, culprits, findings)
    lead = root.causes[0] if root.causes else root.members[0]
    return Decision(
        failure_type=root.failure_type,
        title=_lead(root, culprits).title,
        confidence=confidence(root, findings.cascade.rivals, findings.outcome),
        culprits=culprits,
        evidence=evidence,
        decided_by=decided_by,
        why=why or told,
        outcome="slow" if root.failure_type.startswith("slow.") else "failed",
        root=lead,
        symptoms=_symptoms(findings, root),
        alternatives=_alternatives(findings, root),
    )


def _lead(root: Group, culprits: Culprits) -> Candidate:
    """The member that speaks for the group: the surest, of a culprit if possible, the earliest."""
    order = {Strength.DEFINITE: 0, Strength.LIKELY: 1, Strength.HINT: 2}
    members = root.causes or root.members
    return min(
        members,
        key=lambda each: (
            order[each.strength],
            bool(culprits.ranks) and each.rank not in culprits.ranks,
            each.rule is None,
            not culprits.ranks and each.rank is not None and each.rank,  # all alike: rank 0 speaks
            each.time is None,
            each.time or 0.0,
        ),
    )


def _evidence(root: Group, culprits: Culprits, findings: Findings) -> tuple[Evidence, ...]:
    """The lead's line first, then lines that say it in another way, in another file or of another rank.

    A recurrence in an earlier attempt comes last: it shows that a restart does not help.
    """
    lead = _lead(root, culprits)
    chosen = [lead]
    rest = [each for each in root.members if each is not lead and not each.recovered]
    rest.sort(
        key=lambda each: (
            bool(culprits.ranks) and each.rank not in culprits.ranks,
            each.strength is Strength.HINT,
            each.role is not Role.CAUSE and each.record is not lead.record,
            each.rank or 0,
            each.time is None,
            each.time or 0.0,
        )
    )

    def told(each: Candidate) -> str | None:
        return each.rule.id if each.rule else None

    stated = [each for each in rest if each.role is Role.CAUSE or each.record is lead.record is not None]
    novelties: tuple[Callable[[Candidate], bool], ...] = (
        lambda each: told(each) not in {told(other) for other in chosen},
        lambda each: each.line.file not in {other.line.file for other in chosen},
        lambda each: each.rank not in {other.rank for other in chosen},
        lambda each: each.strength is not Strength.HINT and len(chosen) < 3,
    )
    for novel in novelties:
        for each in stated:
            if len(chosen) < 4 and each not in chosen and novel(each):
                chosen.append(each)
    chosen += [each for each in rest if each not in chosen][: max(0, 2 - len(chosen))]
    if root.failure_type.startswith("numerics."):  # and the check by which the program stopped itself
        stopped = [
            each
            for group_ in findings.cascade.followers
            for each in group_.causes
            if each.record is not None and each.failure_type in GENERAL_TYPES
        ]
        chosen[1:1] = sorted(stopped, key=lambda each: each.rank or 0)[:1]
    again = [
        each
        for each in findings.candidates
        if each.failure_type == root.failure_type
        and each.role is Role.CAUSE
        and told(each) == told(lead)
        and each.attempt is not None
        and lead.attempt is not None
        and each.attempt < lead.attempt
    ]
    cited = [Evidence(each.line, each.title, told(each)) for each in chosen]
    if again:
        cited.insert(1, Evidence(again[0].line, f"the same in attempt {again[0].attempt}", told(again[0])))
    return tuple(cited)


def _symptoms(findings: Findings, root: Group) -> tuple[Candidate, ...]:
    followers = [member for each in findings.cascade.followers for member in each.members[:3]]
    followers += [member for each in findings.cascade.rivals for member in each.members[:1]]
    followers += [member for member in root.members if member.role is not Role.CAUSE][:2]
    followers.sort(key=lambda each: (each.time is None, each.time or 0.0))
    return tuple(followers)


def _alternatives(
    findings: Findings, root: Group
) -> tuple[tuple[str, float, tuple[Evidence, ...]], ...]:
    found = []
    for rival in findings.cascade.rivals[:3]:
        if rival.failure_type == "unknown" or rival is root:
            continue
        lead = rival.causes[0]
        weight = 0.25 if rival.sureness >= root.sureness else 0.12
        cited = Evidence(lead.line, lead.title, lead.rule.id if lead.rule else None)
        found.append((rival.failure_type, weight, (cited,)))
    return tuple(found)


def _behind_a_consequence(findings: Findings, root: Group) -> Decision | None:
    """A time-out, a lost peer or a kill is rarely where it began: look for who went first."""
    if root.failure_type.startswith("collective."):
        differing = mismatch(waits(findings.scene))
        if differing is not None:
            return Decision(
                failure_type="collective.desync",
                title="Ranks issued different collectives",
                confidence=0.8,
                culprits=Culprits(
                    ranks=differing.odd, hosts=tuple(findings.topology.hosts_of(differing.odd))
                ),
                evidence=tuple(Evidence(line, differing.text) for line in differing.lines[:3]),
                decided_by="localisation",
                why=f"the ranks waited in different operations: {differing.text}",
                outcome="failed",
                root=root.causes[0],
                symptoms=tuple(root.members[:3]),
            )
        slow = findings.slowness
        if slow is not None and slow.failure_type == "slow.straggler" and slow.factor > 4:
            return _slow(findings, slow, tuple(root.members[:3]))
    if root.failure_type == "collective.desync":
        return None
    if root.failure_type.startswith("process.") and root.ranks:
        return None  # the process that died is named
    suspects = silent_ranks(findings.candidates, findings.topology, findings.progress, findings.scene)
    if suspects is not None and not suspects.sure and (died := _died_first(findings, ())) is not None:
        return died
    if suspects is None:
        return _died_first(findings, ()) or _silent_host(findings, root)
    hosts = findings.topology.hosts_of(suspects.ranks) if len(findings.topology.hosts) > 1 else []
    culprits = Culprits(ranks=suspects.ranks, hosts=tuple(hosts))
    hints = [
        each
        for each in findings.candidates
        if each.rank in suspects.ranks
        and each.role is Role.CAUSE
        and not each.recovered
        and each.failure_type not in CONSEQUENCES
    ]
    if hints:
        last_hint = hints[-1]
        return Decision(
            failure_type=last_hint.failure_type,
            title=last_hint.title,
            confidence=0.65,
            culprits=culprits,
            evidence=tuple(
                Evidence(each.line, each.title, each.rule.id if each.rule else None)
                for each in [last_hint, *hints[:-1]][:3]
            ),
            decided_by="localisation",
            why=f"rank {_list(suspects.ranks)} {suspects.reason}; its own last words are the cause",
            outcome="failed",
            root=last_hint,
            symptoms=tuple(root.members[:3]),
        )
    died = _died_first(findings, suspects.ranks)
    if died is not None:
        return died
    decision = _from_group(findings, root, decided_by="localisation")
    last = _last_words(findings, suspects.ranks)
    odd = tuple(
        Evidence(line, f"only rank {line.rank if line.rank is not None else _list(suspects.ranks)} says this")
        for line in odd_words(findings.scene, findings.topology, suspects.ranks)
    )
    return Decision(
        failure_type=root.failure_type,
        title=decision.title,
        confidence=min(decision.confidence, 0.75),
        culprits=culprits,
        evidence=odd + decision.evidence[: 3 - len(odd)] + last + decision.evidence[3 - len(odd) :],
        decided_by="localisation",
        why=f"rank {_list(suspects.ranks)} {suspects.reason}",
        outcome="failed",
        root=decision.root,
        symptoms=decision.symptoms,
        alternatives=decision.alternatives,
        collect_next=(
            f"A stack of rank {_list(suspects.ranks)} while it hangs (py-spy dump --pid PID).",
            "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1, so that the flight "
            "recorder shows who is missing.",
        ),
    )


def _silent_host(findings: Findings, root: Group) -> Decision | None:
    """The one host whose files say nothing of the end while the others complain."""
    spoke = {each.host for each in findings.candidates if each.host is not None}
    there = {
        findings.topology.host_of_file[reading.source.file]
        for reading in findings.scene.readings
        if reading.source.file in findings.topology.host_of_file
        and reading.source.role in (SourceRole.WORKER, SourceRole.MERGED, SourceRole.LAUNCHER)
    }
    silent = sorted(there - spoke)
    if len(silent) != 1 or len(there) < 2:
        return None
    ranks = tuple(sorted(r for r, host in findings.topology.host_of_rank.items() if host == silent[0]))
    decision = _from_group(findings, root, decided_by="localisation")
    return replace(
        decision,
        confidence=min(decision.confidence, 0.7),
        culprits=Culprits(ranks=ranks, hosts=(silent[0],)),
        why=f"{silent[0]} said nothing of the end while the other hosts complained",
    )


def _died_first(findings: Findings, silent: Sequence[int]) -> Decision | None:
    """A process that ended by itself (no SIGTERM from the launcher) and left no word of its own."""
    speaking = {each.rank for each in findings.candidates if each.rule is not None and each.rank is not None}
    for exit_ in findings.exits:
        rank = exit_.rank
        if exit_.failure_type or exit_.code in (0, -15) or exit_.code < 0 or rank is None:
            continue
        if rank in speaking or (silent and rank not in silent) or len(findings.topology.ranks) < 2:
            continue
        hosts = findings.topology.hosts_of([rank]) if len(findings.topology.hosts) > 1 else []
        own = odd_words(findings.scene, findings.topology, [rank])
        return Decision(
            failure_type="unknown",
            title=f"Rank {rank} ended with {describe(exit_.code)} and wrote no reason",
            confidence=0.55,
            culprits=Culprits(ranks=(rank,), hosts=tuple(hosts)),
            evidence=tuple(Evidence(line, f"only rank {rank} says this") for line in own[-1:])
            + tuple(
                Evidence(each.line, f"rank {rank} went first, with {describe(exit_.code)}")
                for each in sorted(findings.exits, key=lambda each: each.line.number)
                if each is exit_ or (each.pid is not None and each.pid == exit_.pid)
            ),
            decided_by="localisation",
            why=f"rank {rank} ended by itself; the other ranks only lost their connection to it",
            outcome="failed",
            symptoms=tuple(findings.cascade.root.members[:3] if findings.cascade.root else ()),
            collect_next=(
                "The standard error of every rank (torchrun --log-dir DIR --redirects 3), and @record on "
                "main() so that the launcher keeps the traceback.",
            ),
        )
    return None


def _last_words(findings: Findings, ranks: Sequence[int]) -> tuple[Evidence, ...]:
    words = []
    for rank in ranks[:2]:
        ends = [trace.last for trace in findings.progress.traces if trace.rank == rank]
        if ends:
            point = max(ends, key=lambda each: each.step)
            words.append(Evidence(point.line, f"the last step that rank {rank} reported"))
    return tuple(words)


def _without_error(findings: Findings, root: Group | None) -> Decision | None:
    """Slow, silent, finished or still running: what progress says where no error is sure."""
    outcome, slow = findings.outcome, findings.slowness
    fatal = root is not None and (_is_fatal(root) or outcome.kind != "completed")
    hints = root.causes if root and fatal and root.failure_type != "unknown" else ()
    if root is None and any(
        each.failure_type == "code.subprocess" and each.role is Role.SYMPTOM and not each.recovered
        for each in findings.candidates
    ):
        return None  # a launcher says that the job failed: whatever the steps look like, it is not well
    if outcome.kind == "hang" and not hints:
        return _hang(findings, outcome)
    if slow is not None and not hints:
        return _slow(findings, slow, ())
    if outcome.kind == "completed" and outcome.line is not None:
        return Decision(
            "none.completed",
            "The job ended well",
            0.93,
            Culprits(),
            (Evidence(outcome.line, "the program says that it is done"),),
            "rules",
            outcome.why,
            "completed",
        )
    if hints:
        return None
    if outcome.kind == "running" and outcome.line is not None:
        sure = root is None
        return Decision(
            "none.running",
            "Nothing failed: the log ends among regular steps",
            0.85 if sure else 0.6,
            Culprits(),
            (Evidence(outcome.line, "the last step in the log"),),
            "localisation",
            outcome.why,
            "running",
        )
    return None


def _hang(findings: Findings, outcome: Outcome) -> Decision:
    evidence = [Evidence(outcome.line, "the last sign of progress")] if outcome.line else []
    last = _last_line(findings.scene)
    if last is not None and (not evidence or last != evidence[0].line):
        evidence.append(Evidence(last, "the log goes on without a step"))
    return Decision(
        "hang.silent",
        "Progress stopped and no error was written",
        0.7,
        Culprits(),
        tuple(evidence),
        "localisation",
        outcome.why,
        "failed",
        collect_next=(
            "Stacks of all ranks while it hangs: py-spy dump --pid PID for each process.",
            "A collective time-out that is shorter than your patience, so that the watchdog names the "
            "operation.",
        ),
    )


def _slow(findings: Findings, slow: Slowness, symptoms: tuple[Candidate, ...]) -> Decision:
    hosts = findings.topology.hosts_of(slow.ranks) if len(findings.topology.hosts) > 1 else []
    return Decision(
        slow.failure_type,
        slow.summary[0].upper() + slow.summary[1:],
        0.75,
        Culprits(ranks=slow.ranks, hosts=tuple(hosts)),
        tuple(Evidence(line, slow.summary) for line in slow.lines),
        "localisation",
        slow.summary,
        "slow",
        symptoms=symptoms,
    )


def _unknown(findings: Findings) -> Decision:
    root = findings.cascade.root
    evidence: tuple[Evidence, ...] = ()
    if root is not None:
        evidence = tuple(
            Evidence(each.line, "an error that no rule knows", each.rule.id if each.rule else None)
            for each in sorted(root.causes, key=lambda each: each.time or 0.0)[-3:]
        )
    died = _died_first(findings, ())
    if died is not None and not evidence:
        return died
    last = _last_line(findings.scene)
    if not evidence and last is not None:
        evidence = (Evidence(last, "the last line of the log"),)
    return Decision(
        "unknown",
        "The logs do not show why the job ended",
        0.35,
        Culprits(),
        evidence,
        "rules",
        "no line states a cause that can be trusted",
        "unknown",
        collect_next=(
            "The output of every rank, standard error included.",
            "The kernel log of each node (dmesg -T) and the scheduler's record (sacct -j JOB --format=ALL).",
        ),
    )


def _last_line(scene: Scene) -> Line | None:
    last: Line | None = None
    for reading in scene.readings:
        for line in reversed(reading.lines):
            if line.text.strip():
                if last is None or (line.time or 0.0) > (last.time or 0.0):
                    last = line
                break
    return last


def _list(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))
