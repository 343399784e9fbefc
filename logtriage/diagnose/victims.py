"""Behind a consequence: a time-out, a lost peer or a kill is rarely where it began, so who went first?"""

from __future__ import annotations

import signal
from collections.abc import Sequence, Set
from dataclasses import replace

from logtriage.diagnose.culprits import blame
from logtriage.diagnose.decision import Decision
from logtriage.diagnose.left_alone import left_alone
from logtriage.diagnose.other_version import with_other_version
from logtriage.diagnose.quiet import slow_job
from logtriage.diagnose.recorded import beside_recordings, dump_lines, recorded_desync, recorded_suspects
from logtriage.diagnose.stated import from_group
from logtriage.localize.candidates import GENERAL_TYPES, Candidate
from logtriage.localize.cascade import CONSEQUENCES, Group
from logtriage.localize.collectives import (
    accused,
    mismatch,
    missed_at_barrier,
    naming,
    odd_words,
    silent_ranks,
    waits,
)
from logtriage.localize.courses import own_files
from logtriage.localize.departed import departed
from logtriage.localize.exits import Exit, describe
from logtriage.localize.findings import Findings
from logtriage.model import JOB_ROLES, Culprits, Evidence, Line
from logtriage.regex import regex
from logtriage.rulebank.rule import Role, Strength


def behind_a_consequence(findings: Findings, root: Group) -> Decision | None:
    """A time-out, a lost peer or a kill is rarely where it began: look for who went first."""
    recorded = recorded_suspects(findings)
    if recorded is None and (decision := recorded_desync(findings, root)) is not None:
        return decision
    if root.failure_type.startswith("collective."):
        waiting = waits(findings.scene)
        differing = mismatch(waiting) or missed_at_barrier(findings.scene, waiting)
        # Stacks are of a moment, and of those ranks alone that somebody looked at.
        if differing is not None and (recorded is None or differing.odd):
            apart, left = differing.odd, list[Line]()
            if not apart:
                apart, left = departed(findings.scene, findings.topology, waiting)
            return Decision(
                failure_type="collective.desync",
                title="Ranks issued different collectives",
                confidence=0.8,
                culprits=Culprits(ranks=apart, hosts=tuple(findings.topology.hosts_of(apart))),
                evidence=(
                    *(Evidence(line, f"only rank {_list(apart)} said this") for line in left),
                    *(Evidence(line, differing.text) for line in differing.lines[:3]),
                ),
                decided_by="localisation",
                why=f"the ranks waited in different operations: {differing.text}",
                outcome="failed",
                root=root.causes[0],
                symptoms=tuple(root.members[:3]),
            )
        slow = findings.slowness if recorded is None else None
        if slow is not None and slow.failure_type == "slow.straggler" and slow.factor > 4:
            return slow_job(findings, slow, tuple(root.members[:3]))
    if root.failure_type == "collective.desync":
        return None
    if root.failure_type == "collective.init" and (other := with_other_version(findings, root)) is not None:
        return other
    if root.failure_type == "collective.init" and not accused(findings.scene)[0]:
        return None  # a communicator that fails on its own is no victim
    ended = {each.host for each in root.causes if each.host is not None}
    some = 0 < len(ended) < len(findings.topology.hosts)
    if root.failure_type.startswith("process.") and (root.ranks or some):
        return None  # the process that died is named, or those hosts whose processes were ended
    if recorded is None and (uneven := left_alone(findings, root)) is not None:
        return uneven
    suspects = recorded or silent_ranks(
        findings.candidates, findings.topology, findings.progress, findings.scene
    )
    if suspects is not None and not suspects.sure and (died := died_first(findings, ())) is not None:
        return died
    if suspects is None:
        return died_first(findings, ()) or _silent_host(findings, root)
    hosts = findings.topology.hosts_of(suspects.ranks) if findings.topology.is_spread else []
    if not hosts and len(suspects.ranks) == 1:
        hosts = list(blame(root, findings.topology, findings.candidates)[0].hosts)  # the one that all lost
    culprits = Culprits(ranks=suspects.ranks, hosts=tuple(hosts))
    hints = [
        each
        for each in findings.candidates
        if each.rank in suspects.ranks
        and each.role is Role.CAUSE
        and not each.recovered
        and each.failure_type not in CONSEQUENCES
        and not _met_nobody(each, root)
    ]
    hints = hints or _dropped_data(findings, suspects.ranks)
    if hints:
        # What names a cause says more than the exception that a program raises in the end.
        last_hint = ([each for each in hints if each.failure_type not in GENERAL_TYPES] or hints)[-1]
        alike = [each for each in hints if each.failure_type == last_hint.failure_type]
        own = sorted({each.rank for each in alike if each.rank is not None} & set(suspects.ranks))
        if 0 < len(own) < len(suspects.ranks):  # of the others what they said last was not read, or is lost
            there = findings.topology.hosts_of(own) if findings.topology.is_spread else []
            culprits = Culprits(ranks=tuple(own), hosts=tuple(there))
        return Decision(
            failure_type=last_hint.failure_type,
            title=last_hint.title,
            confidence=0.65,
            culprits=culprits,
            evidence=tuple(
                Evidence(each.line, each.title, each.rule.id if each.rule else None)
                for each in [last_hint, *(other for other in hints if other is not last_hint)][:3]
            ),
            decided_by="localisation",
            why=f"rank {_list(suspects.ranks)} {suspects.reason}; its own last words are the cause",
            outcome="failed",
            root=last_hint,
            symptoms=tuple(root.members[:3]),
        )
    if (killed := _ended_for_its_launcher(findings, suspects.ranks)) is not None:
        return replace(killed, culprits=culprits)
    died = died_first(findings, suspects.ranks)
    if died is not None:
        return died
    decision = from_group(findings, root, decided_by="localisation")
    last = _last_words(findings, suspects.ranks)
    if recorded:
        last += dump_lines(findings)
    odd = tuple(
        Evidence(line, f"only rank {line.rank if line.rank is not None else _list(suspects.ranks)} says this")
        for line in odd_words(findings.scene, findings.topology, suspects.ranks)
    )
    stated = {(each.line.file, each.line.number) for each in decision.evidence}
    told = suspects.told
    if told is None and len(suspects.ranks) == 1:
        told = naming(findings.scene, findings.topology, suspects.ranks[0])
    if told is not None and (told.file, told.number) not in stated:
        odd = (Evidence(told, f"names rank {_list(suspects.ranks)}"), *odd)[:3]
    # Of a rank that reported no step, what it was about to do says more than a third complaint.
    complaints = 3 - len(odd) - (bool(last) and len(odd) < 2 and not _steps_of(suspects.ranks, findings))
    # That some never came is all that a meeting tells; who is missed by name makes it no less sure.
    is_listed = root.failure_type == "network.rendezvous" and suspects.told is not None
    return Decision(
        failure_type=root.failure_type,
        title=decision.title,
        confidence=decision.confidence if is_listed else min(decision.confidence, 0.75),
        culprits=culprits,
        evidence=odd + decision.evidence[:complaints] + last + decision.evidence[complaints:],
        decided_by="localisation",
        why=f"rank{'s' * (len(suspects.ranks) > 1)} {_list(suspects.ranks)} {suspects.reason}",
        outcome="failed",
        root=decision.root,
        symptoms=decision.symptoms,
        alternatives=decision.alternatives,
        collect_next=beside_recordings(findings)
        if recorded
        else (
            f"A stack of rank {_list(suspects.ranks)} while it hangs (py-spy dump --pid PID).",
            "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1, so that the flight "
            "recorder shows who is missing.",
        ),
    )


CLOCKS_APART = 90.0  # seconds
_NOBODY_THERE = regex(r"(?i)\b(?:refused|reset by (?:remote )?peer|broken pipe|closed by|socket closed)\b")


def _met_nobody(candidate: Candidate, root: Group) -> bool:
    """Whether a suspect only lost, or did not find, the peers that had long given up waiting for it.

    Of a service outside of the job it may have waited for longer than its peers for it.
    """
    text = candidate.line.message[:1000]
    if _NOBODY_THERE.search(text) is None or "://" in text:
        return False
    gave_up = [each.time for each in root.causes if each.time is not None]
    return (
        candidate.failure_type.startswith("network.")
        and candidate.time is not None
        and bool(gave_up)
        and candidate.time - max(gave_up) > CLOCKS_APART
    )


def _dropped_data(findings: Findings, ranks: Sequence[int]) -> list[Candidate]:
    """Faults of data that the suspect outlived and no other rank met: who has fewer batches leaves early."""
    of_data = [
        each
        for each in findings.candidates
        if each.role is Role.CAUSE and each.rule is not None and each.failure_type.startswith("data.")
    ]
    elsewhere = {each.rule.id for each in of_data if each.rule is not None and each.rank not in ranks}
    return [
        each
        for each in of_data
        if each.rule is not None and each.rule.id not in elsewhere and each.strength is not Strength.HINT
    ]


def _silent_host(findings: Findings, root: Group) -> Decision | None:
    """The one host whose files say nothing of the end while the others complain."""
    spoke = {each.host for each in findings.candidates if each.host is not None}
    there = {
        findings.topology.host_of_file[reading.source.file]
        for reading in findings.scene.readings
        if reading.source.file in findings.topology.host_of_file and reading.source.role in JOB_ROLES
    }
    silent = sorted(there - spoke)
    if len(silent) != 1 or len(there) < 2:
        return None
    ranks = tuple(sorted(r for r, host in findings.topology.host_of_rank.items() if host == silent[0]))
    decision = from_group(findings, root, decided_by="localisation")
    its = [file for file, host in findings.topology.host_of_file.items() if host == silent[0]]
    ends = (line for file in its for line in reversed(findings.scene.lines(file)) if line.text.strip())
    last = tuple(Evidence(line, f"the last that {silent[0]} wrote") for line in [*ends][:1])
    return replace(
        decision,
        confidence=min(decision.confidence, 0.7),
        culprits=Culprits(ranks=ranks, hosts=(silent[0],)),
        evidence=(*decision.evidence[:3], *last, *decision.evidence[3:]),
        why=f"{silent[0]} said nothing of the end while the other hosts complained",
    )


def _ended_for_its_launcher(findings: Findings, silent: Sequence[int]) -> Decision | None:
    """The end of a silent rank by a signal that its own launcher saw before any other end on that host.

    Where peers on other hosts ended by the same signal, it is how their watchdogs end a process that waits.
    """
    alike = {exit_.code for exit_ in findings.exits if exit_.claimed_root and exit_.rank not in silent}
    aborted = {each.rank for each in waits(findings.scene)}  # by their own watchdog
    for exit_ in findings.exits:
        if not exit_.claimed_root or exit_.failure_type is None or exit_.rank not in silent:
            continue
        if exit_.code in alike or (exit_.code == -signal.SIGABRT and exit_.rank in aborted):
            continue
        for rival in findings.cascade.rivals:
            if rival.failure_type == exit_.failure_type and exit_.rank in rival.ranks:
                return replace(
                    from_group(findings, rival, decided_by="localisation"),
                    why=f"rank {exit_.rank} went with {describe(exit_.code)}; its peers waited for it",
                )
    return None


def died_first(findings: Findings, silent: Sequence[int]) -> Decision | None:
    """A process that ended by itself (no SIGTERM from the launcher) and left no word of its own."""
    speaking = {each.rank for each in findings.candidates if each.rule is not None and each.rank is not None}
    heard = {  # hosts that gave a reason, whichever of their ranks wrote it
        each.host
        for each in findings.candidates
        if each.rule is not None and each.rank is None and each.role is Role.CAUSE and not each.recovered
        # That a step was cancelled is how Slurm ends it for whatever reason.
        if each.strength is not Strength.HINT or each.failure_type != "scheduler.cancelled"
    }
    if _all_went_alike(findings, speaking):
        return None
    for exit_ in findings.exits:
        rank = exit_.rank
        if exit_.host is not None and exit_.host in heard:
            continue
        if exit_.failure_type or exit_.code in (0, -15) or exit_.code < 0 or rank is None:
            continue
        if rank in speaking or (silent and rank not in silent) or findings.topology.size < 2:
            continue
        if _ended_with_the_job(exit_, findings.cascade.root):
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


def _all_went_alike(findings: Findings, speaking: Set[int]) -> bool:
    """Whether all ranks ended by themselves with one code and none wrote why: nobody is known to be first."""
    codes = {each.rank: each.code for each in findings.exits if each.rank is not None and each.code > 0}
    alike = len(codes) >= max(2, findings.topology.size) and len(set(codes.values())) == 1
    return alike and speaking.isdisjoint(codes)


def _ended_with_the_job(exit_: Exit, root: Group | None) -> bool:
    """Whether a process ended when the scheduler had already said that it ends the job, and why."""
    if root is None or not root.failure_type.startswith("scheduler."):
        return False
    at = exit_.line
    notices = [each for each in root.causes if each.strength is Strength.DEFINITE]
    return any(
        each.line.number < at.number
        if each.line.file == at.file
        else each.time is not None and at.time is not None and each.time <= at.time
        for each in notices
    )


def _last_words(findings: Findings, ranks: Sequence[int]) -> tuple[Evidence, ...]:
    words = []
    for rank in ranks[:2]:
        ends = [trace.last for trace in findings.progress.traces if trace.rank == rank]
        if ends:
            point = max(ends, key=lambda each: each.step)
            words.append(Evidence(point.line, f"the last step that rank {rank} reported"))
        elif (own := _last_of(rank, findings)) is not None:
            words.append(Evidence(own, f"the last that rank {rank} wrote"))
    return tuple(words)


def _steps_of(ranks: Sequence[int], findings: Findings) -> bool:
    return any(trace.rank in ranks for trace in findings.progress.traces)


def _last_of(rank: int, findings: Findings) -> Line | None:
    """The last line of a rank with a file of its own, above what a launcher writes there of others' ends."""
    reading = own_files(findings.scene, findings.topology).get(rank)
    if reading is None:
        return None
    others = [each.line for each in findings.exits if each.rank != rank]
    others += [each.line for each in findings.candidates if each.rank not in (rank, None)]
    end = min((line.number for line in others if line.file == reading.source.file), default=None)
    own = [line for line in reading.lines if end is None or line.number < end]
    return next((line for line in reversed(own) if line.text.strip()), None)


def _list(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))
