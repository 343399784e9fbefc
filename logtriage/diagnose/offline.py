"""The offline decision: from what was found to one root cause, its culprits and its lines."""

from __future__ import annotations

import signal
from dataclasses import replace

from logtriage.diagnose.cut_short import may_be_cut_away
from logtriage.diagnose.decision import Decision
from logtriage.diagnose.fewer_adapters import with_fewer_adapters
from logtriage.diagnose.odd_one_out import with_odd_one
from logtriage.diagnose.own_words import behind_own_words
from logtriage.diagnose.quiet import hang, slow_job, undecided, without_error
from logtriage.diagnose.recorded import recorded_alone, recorded_elsewhere, with_recorded_ranks
from logtriage.diagnose.slowed_down import with_slow_ranks
from logtriage.diagnose.stated import from_group, is_fatal
from logtriage.diagnose.victims import behind_a_consequence, died_first
from logtriage.diagnose.warned import is_only_warned
from logtriage.localize.candidates import Candidate
from logtriage.localize.cascade import CONSEQUENCES, Group
from logtriage.localize.cleared_away import cleared_away
from logtriage.localize.endings import (
    STEPS_SINCE,
    earlier_containers,
    endings,
    says_status_zero,
    steps_between,
    taken_up,
)
from logtriage.localize.findings import Findings
from logtriage.localize.own_codes import is_own_code
from logtriage.localize.unison import all_wait, in_unison
from logtriage.model import Culprits, Line, SourceRole
from logtriage.rulebank.rule import Strength


def decide(findings: Findings) -> Decision:
    """One decision. Where the evidence does not decide, the type is `unknown` and says what to collect.

    Of a job that hangs or is slow, and for which nobody is blamed, it says whether all ranks did alike.
    """
    decision = with_fewer_adapters(findings, behind_own_words(findings, _decided(findings)))
    if decision.confidence > PART_CONFIDENCE and may_be_cut_away(decision.failure_type, findings):
        decision = replace(decision, confidence=PART_CONFIDENCE)
    where = findings.scene, findings.progress, findings.topology
    decision = with_slow_ranks(findings, with_odd_one(findings, decision))
    if decision.failure_type.startswith(_OF_ALL_RANKS) and decision.culprits == Culprits():
        if (alike := in_unison(*where)) is not None:
            return replace(decision, why="; ".join(filter(None, (decision.why, alike))))
    elif decision.failure_type in _WENT_WELL and _lacks_ranks(findings) and all_wait(where[0], where[2]):
        why = f"{decision.why}; all ranks that are seen wait for one that is not"
        return replace(decision, confidence=min(decision.confidence, PART_CONFIDENCE), why=why)
    return decision


_OF_ALL_RANKS = ("hang.", "slow.", "collective.timeout")
_WENT_WELL = ("none.completed", "none.running")


def _lacks_ranks(findings: Findings) -> bool:
    """Whether of some of the job's ranks nothing tells how far they came, though several others do."""
    return 1 < len(findings.progress.ranks()) < findings.topology.size


def _decided(findings: Findings) -> Decision:
    root = findings.cascade.root
    sure = root is not None and root.sureness >= 2
    finished = (
        findings.outcome.kind == "completed"
        and root is not None
        and (not is_fatal(root) or _came_before(root, findings) or _is_its_end(root, findings))
    )
    if is_only_warned(findings) and (running := without_error(findings, None)) is not None:
        return running
    if not sure:
        recorded = recorded_alone(findings, root)
        if recorded is not None:
            return recorded
    if root is None or not sure or finished:
        quiet = without_error(findings, root)
        if quiet is not None:
            return quiet
    if root is None:
        return died_first(findings, ()) or undecided(findings)
    seen = findings.scene, findings.progress, findings.topology, findings.outcome
    if (still := cleared_away(*seen, root)) is not None:
        return hang(findings, still, tuple(root.members))
    is_open = root.failure_type in (*CONSEQUENCES, "collective.desync", "collective.init")
    if is_open and not root.is_learned:
        deeper = behind_a_consequence(findings, root)
        if deeper is not None:
            return deeper
    if root.failure_type == "unknown":
        return undecided(findings)
    elsewhere = recorded_elsewhere(findings, root)
    if elsewhere is not None:
        return elsewhere
    slow = findings.slowness if root.failure_type.startswith("slow.") else None
    if slow is not None and any(each.line in slow.lines for each in root.causes):
        return slow_job(findings, slow, ())  # a detector's warning: its reports name the ranks and hosts
    decision = with_recorded_ranks(findings, from_group(findings, root))
    if not root.is_learned and _may_be_hidden(root, findings):
        decision = replace(decision, confidence=min(decision.confidence, PART_CONFIDENCE))
    return decision


# What only victims report may have begun at a rank whose file is not here.
_TOLD_BY_VICTIMS = ("collective.timeout", "collective.remote_error")
# What a kernel knows the reason of, where one is to be known.
_UNDER_A_KERNEL = (*_TOLD_BY_VICTIMS, "process.killed", "process.native_crash", "cuda.launch_failure")
PART_CONFIDENCE = 0.78  # of 106 jobs with files taken away, all wrong verdicts but one were of these types


def _may_be_hidden(root: Group, findings: Findings) -> bool:
    """Whether a file that is not here may hold the cause: a rank's, a launcher's, or a kernel's."""
    kind = root.failure_type
    if kind in _TOLD_BY_VICTIMS and _is_part(root, findings):
        return True
    if _is_told_by_others(root) and _lacks_words(findings):
        return True
    if kind == "process.native_crash" and all(
        each.capture("exitcode") == str(-signal.SIGABRT) for each in root.causes
    ):
        return True  # who aborts says why; where only its end is reported, these words are missing
    if kind == "collective.remote_error" and not findings.exits:
        return True  # no launcher says how the peer ended
    of_kernel = {each.host for each in findings.scene.sources if each.role is SourceRole.KERNEL}
    if kind == "process.killed" and not of_kernel:
        return any(each.code == -signal.SIGKILL for each in findings.exits)  # the OOM killer's way
    machines = {findings.topology.machine(host) for host in findings.topology.hosts}
    return kind in _UNDER_A_KERNEL and bool(of_kernel - {None}) and not machines <= of_kernel


def _is_told_by_others(root: Group) -> bool:
    """Whether those that it befell say nothing of it themselves: peers, a supervisor or a kernel do.

    Of a transfer it is known to be the network only where a port is reported as well.
    """
    if root.failure_type == "network.infiniband":
        return root.sureness < 3 and all(each.capture("peer") for each in root.causes)
    return root.failure_type.startswith("process.") and all(
        each.source_role in (SourceRole.KERNEL, SourceRole.HARDWARE)
        for each in root.causes
        if each.strength is not Strength.HINT
    )


def _lacks_words(findings: Findings) -> bool:
    """Whether some ranks wrote nothing that is here."""
    topology = findings.topology
    wrote = {
        topology.rank(line)
        for reading in findings.scene.readings
        if reading.source.role in (SourceRole.WORKER, SourceRole.MERGED)
        for line in reading.lines
    }
    return len(wrote - {None}) < max(2, topology.size)


def _is_part(root: Group, findings: Findings) -> bool:
    """Whether fewer ranks are seen than the job has; a collective has two at least."""
    seen = findings.topology.ranks | root.ranks
    return len(seen) < max(2, findings.topology.size)


def _came_before(root: Group, findings: Findings) -> bool:
    """Whether the job said that it is done well after all that the root shows: a restart or a retry saved it.

    A run that NaN ruined says that it is done, too.
    """
    if root.failure_type.startswith(("numerics.", "slow.")):
        return False
    said = [line for line in (findings.outcome.line, *endings(findings.scene, findings.progress)) if line]
    past = earlier_containers(findings.scene)
    causes = [each for each in root.causes if (each.line.file, each.line.number) not in past]
    return any(all(_long_before(each, done, findings) for each in causes) for done in said)


def _is_its_end(root: Group, findings: Findings) -> bool:
    """Whether all that the root shows are interrupts right below the words by which the program was done.

    Servers of metrics and agents that live beside the training are stopped so, once there is nothing to do.
    Or its parent raised for the code with which it chose to leave.
    """
    if root.causes and all(is_own_code(each.line) for each in root.causes):
        return True
    if root.failure_type != "scheduler.cancelled":
        return False
    return any(
        all(
            each.line.file == done.file
            and each.line.number > done.number
            and (each.time or 0.0) - (done.time or each.time or 0.0) <= SECONDS_SINCE
            for each in root.causes
        )
        for done in endings(findings.scene, findings.progress)
    )


SECONDS_SINCE = 120.0


def _long_before(candidate: Candidate, done: Line, findings: Findings) -> bool:
    """Not just before: a peer may still write that it is done in the moment in which another rank dies."""
    if says_status_zero(done) and candidate.line.file == done.file and candidate.line.number < done.number:
        return True
    if candidate.time is not None and done.time is not None and done.time - candidate.time > SECONDS_SINCE:
        return True
    if candidate.failure_type.startswith("scheduler.") and taken_up(findings.progress, candidate.line, done):
        return True  # the requeued run goes on in the same log, and came to its end
    return steps_between(findings.progress, candidate.line, done) >= STEPS_SINCE
