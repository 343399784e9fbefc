"""What the stacks and flight recordings of all ranks decide, where the text shows only that ranks waited.

The order of trust is Mycroft's (SOSP'25): stacks and recorder before what the collective library says. An
error that a log states with certainty, or a fault of a machine, stands above both and never comes here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from logtriage.artefacts.comparison import PROGRAM_FAULTS, Comparison, Fault, Stand
from logtriage.diagnose.decision import Decision
from logtriage.diagnose.stacked import odd_stacks, ras_evidence, ras_ranks, stack_evidence
from logtriage.localize.candidates import Candidate
from logtriage.localize.cascade import CONSEQUENCES, Group
from logtriage.localize.collectives import Suspects
from logtriage.localize.findings import ZONES_SECONDS, Findings
from logtriage.model import Culprits, Evidence
from logtriage.rulebank.rule import Role

if TYPE_CHECKING:  # their readers are loaded for jobs that left such files
    from logtriage.artefacts.ras import RasFinding
    from logtriage.artefacts.stacks import StackComparison

# A program that went on for so long after the operation that waits was not held up by it.
WENT_ON_SECONDS = 120.0

_CONFIDENCE = {
    Fault.MISMATCH: 0.88, Fault.ALONE: 0.8, Fault.CROSSED: 0.75, Fault.ABSENT: 0.82, Fault.STALLED: 0.8,
    Fault.NOT_STARTED: 0.75, Fault.NO_DUMP: 0.62, Fault.JOINED: 0.5,
}  # fmt: skip
_TITLES = {
    Fault.MISMATCH: "Ranks issued different collectives",
    Fault.ALONE: "A collective was issued by few of its ranks only",
    Fault.CROSSED: "Ranks issued collectives in different orders and wait for each other",
    Fault.ABSENT: "A collective waited for {ranks} until it timed out",
    Fault.STALLED: "A collective waited for {ranks} until it timed out",
    Fault.NOT_STARTED: "A collective waited for {ranks} until it timed out",
    Fault.NO_DUMP: "A collective waited for {ranks} until it timed out",
    Fault.JOINED: "A collective that all ranks joined did not complete",
}


def recorded_suspects(findings: Findings) -> Suspects | None:
    """The ranks that held the others up, where dumps name them and it is no fault of the program."""
    found = _comparison(findings)
    if found is not None and found.fault in PROGRAM_FAULTS:
        return None
    stood = odd_stacks(findings)
    if stood is not None and stood.stand is not Stand.OTHER_COLLECTIVE and (ranks := _ranks(stood)):
        return Suspects(ranks, f"held the others up: by their stacks, {stood.told}")
    if found is None or not found.ranks:
        ras = _ras(findings)
        ranks = ras_ranks(ras, findings) if ras else ()
        return Suspects(ranks, f"is behind: {ras.told}") if ras and ranks else None
    return Suspects(found.ranks, f"held the others up; by their flight recordings, {found.told}")


def recorded_desync(findings: Findings, root: Group) -> Decision | None:
    """Different programs on different ranks, behind a collective that timed out."""
    found = _comparison(findings)
    if found is not None and found.fault in PROGRAM_FAULTS:
        return _decision(findings, found, "collective.desync", _cited(root.causes), root)
    stood = odd_stacks(findings)
    if stood is not None and stood.stand is Stand.OTHER_COLLECTIVE:
        return _by_stacks(findings, stood, "collective.desync", root)
    return None


def recorded_alone(findings: Findings, root: Group | None) -> Decision | None:
    """A decision from dumps where no line of text states an error with certainty."""
    found = _comparison(findings)
    stood = odd_stacks(findings)
    outcome = findings.outcome
    if found is not None and found.fault is Fault.JOINED and (root or findings.progress.traces):
        found = None  # every running job has open operations
    if outcome.kind == "completed":
        return None
    if found is None and stood is None:
        ras = _ras(findings)
        return _by_ras(findings, ras) if ras is not None and ras.is_sure else None
    by_stacks = stood is not None and (found is None or found.fault not in PROGRAM_FAULTS)
    ranks = _ranks(stood) if stood is not None and by_stacks else found.ranks if found else ()
    words = [
        each
        for each in findings.candidates
        if each.rank in ranks
        and each.role is Role.CAUSE
        and not each.recovered
        and each.failure_type not in CONSEQUENCES
    ]
    is_silent = bool(findings.progress.traces) and not findings.candidates
    if stood is not None and by_stacks:
        kind = "collective.desync" if stood.stand is Stand.OTHER_COLLECTIVE else "hang.silent"
        decision = _by_stacks(findings, stood, kind, None)
    else:
        assert found is not None
        kind = "hang.silent" if is_silent else "collective.timeout"
        kind = "collective.desync" if found.fault in PROGRAM_FAULTS else kind
        decision = _decision(findings, found, kind, (), None)
    if words and kind != "collective.desync":
        return replace(
            decision,
            failure_type=words[-1].failure_type,
            title=words[-1].title,
            confidence=0.65,
            evidence=(*_cited(words[::-1]), *decision.evidence),
            root=words[-1],
        )
    last = (Evidence(outcome.line, "the last sign of progress"),) if outcome.line is not None else ()
    said = [each for each in findings.candidates if each.failure_type == kind and each.role is Role.CAUSE]
    return replace(decision, evidence=(*decision.evidence, *_cited(said), *last))


def _by_stacks(findings: Findings, stood: StackComparison, kind: str, root: Group | None) -> Decision:
    ranks = _ranks(stood)
    hosts = set(findings.topology.hosts_of(ranks)) if len(findings.topology.hosts) > 1 else set()
    hosts |= {each.host for each in stood.odd if each.host is not None}
    agrees = (found := _comparison(findings)) is not None and set(found.ranks) == set(ranks)
    several = len(stood.odd) > 1
    named = ", ".join(each.told for each in stood.odd[:8])
    title = {
        Stand.OUTSIDE: f"{named} {'hold' if several else 'holds'} up the others outside of any collective",
        Stand.OTHER_COLLECTIVE: "Ranks wait in different collectives",
        Stand.ELSEWHERE: f"{named} {'stand' if several else 'stands'} elsewhere than the others",
    }[stood.stand]
    evidence = (*(_cited(root.causes[:1]) if root else ()), *stack_evidence(stood))
    return Decision(
        failure_type=kind,
        title=title[:1].upper() + title[1:],
        confidence=min(0.9, _BY_STACKS[stood.stand] + 0.08 * agrees),
        culprits=Culprits(ranks=ranks, hosts=tuple(sorted(hosts))),
        evidence=evidence,
        decided_by="localisation",
        why=f"their stacks show that {stood.told}",
        outcome="failed",
        root=root.causes[0] if root and root.causes else None,
        symptoms=tuple(root.members[:3]) if root else (),
    )


def _ras(findings: Findings) -> RasFinding | None:
    return findings.deposits.ras if findings.deposits else None


def _by_ras(findings: Findings, ras: RasFinding) -> Decision:
    ranks = ras_ranks(ras, findings)
    hosts = {each.host for each in ras.peers if each.host is not None}
    gpus = {each.gpu for each in ras.peers if each.gpu is not None}
    named = f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks[:8]))}" if ranks else "a process"
    return Decision(
        failure_type="collective.timeout",
        title=f"By {ras.by} the collectives wait for {named}",
        confidence=0.7,
        culprits=Culprits(ranks=ranks, hosts=tuple(sorted(hosts)), gpus=tuple(sorted(gpus))),
        evidence=ras_evidence(ras),
        decided_by="localisation",
        why=ras.told,
        outcome="failed",
    )


_BY_STACKS = {Stand.OUTSIDE: 0.8, Stand.OTHER_COLLECTIVE: 0.72, Stand.ELSEWHERE: 0.68}


def _ranks(stood: StackComparison) -> tuple[int, ...]:
    return tuple(sorted({each.rank for each in stood.odd if each.rank is not None}))


_OF_A_MACHINE = ("gpu.", "host.", "network.infiniband", "storage.")


def recorded_elsewhere(findings: Findings, root: Group) -> Decision | None:
    """The dumps' decision where the text blames a machine, not surely, and it is not the suspects' one."""
    suspects = recorded_suspects(findings)
    if suspects is None or root.sureness > 2 or not root.failure_type.startswith(_OF_A_MACHINE):
        return None
    blamed = {each.host for each in root.causes if each.host is not None}
    hosts = set(findings.topology.hosts_of(suspects.ranks))
    if not blamed or len(hosts) == 0 or blamed & hosts:
        return None
    return recorded_alone(findings, root)


def with_recorded_ranks(findings: Findings, decision: Decision) -> Decision:
    """The ranks that dumps name beside a machine's fault that names none, unless they ran on other hosts."""
    if decision.culprits.ranks or not decision.failure_type.startswith(_OF_A_MACHINE):
        return decision
    suspects = recorded_suspects(findings)
    if suspects is None:
        return decision
    hosts = set(findings.topology.hosts_of(suspects.ranks))
    if hosts and decision.culprits.hosts and not hosts <= set(decision.culprits.hosts):
        return decision
    told = f"rank {', '.join(map(str, suspects.ranks))} {suspects.reason}"
    return replace(
        decision,
        culprits=replace(decision.culprits, ranks=suspects.ranks),
        why=f"{decision.why}; {told}" if decision.why else told,
    )


def _cited(candidates: Sequence[Candidate]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(each.line, each.title, each.rule.id if each.rule else None) for each in candidates[:3]
    )


def dump_lines(findings: Findings) -> tuple[Evidence, ...]:
    """The lines of dumps that name the suspects."""
    stood = odd_stacks(findings)
    if stood is not None:
        return stack_evidence(stood)
    if findings.deposits is None:
        return ()
    ras = _ras(findings)
    return findings.deposits.cited or (ras_evidence(ras) if ras else ())


def beside_recordings(findings: Findings) -> tuple[str, ...]:
    """What to collect next time beside the flight recordings that are here."""
    found = _comparison(findings)
    return _collect(found) if found else ()


def _comparison(findings: Findings) -> Comparison | None:
    """What the recordings show, unless the job went on for long after they were made."""
    found = findings.deposits.comparison if findings.deposits else None
    last = findings.progress.last_time
    if found is None or found.since is None or last is None:
        return found
    later = last - found.since
    # A log's clock may be in another time zone than the dumps, which count in UTC: some quarters of an hour.
    zone = round(later / 900) * 900
    same_time = abs(later - zone) <= WENT_ON_SECONDS / 2 and 0 < zone <= ZONES_SECONDS
    return found if later <= WENT_ON_SECONDS or same_time else None


def _decision(
    findings: Findings, found: Comparison, kind: str, evidence: tuple[Evidence, ...], root: Group | None
) -> Decision:
    hosts = findings.topology.hosts_of(found.ranks) if len(findings.topology.hosts) > 1 else []
    told = f"the flight recordings of {len(found.recorded)} ranks show that {found.told}"
    if found.here is not None and found.there is not None:
        told += (
            f"; the others wait in {found.there.function} ({found.there.path}:{found.there.line}), "
            f"it was last in {found.here.function} ({found.here.path}:{found.here.line})"
        )
    named = ", ".join(map(str, found.ranks[:8]))
    cited = findings.deposits.cited if findings.deposits else ()
    return Decision(
        failure_type=kind,
        title=_TITLES[found.fault].format(ranks=f"rank{'s' if len(found.ranks) > 1 else ''} {named}"),
        confidence=_CONFIDENCE[found.fault],
        culprits=Culprits(ranks=found.ranks, hosts=tuple(hosts)),
        evidence=(*cited, *evidence) if found.fault in PROGRAM_FAULTS or not root else (*evidence, *cited),
        decided_by="localisation",
        why=told,
        outcome="failed",
        root=root.causes[0] if root and root.causes else None,
        symptoms=tuple(root.members[:3]) if root else (),
        collect_next=_collect(found),
    )


def _collect(found: Comparison) -> tuple[str, ...]:
    if found.fault in PROGRAM_FAULTS:
        return ()
    named = ", ".join(map(str, found.ranks[:8])) or "all ranks"
    return (
        f"A stack of rank {named} while it hangs (py-spy dump --pid PID), and the kernel log of its host.",
    )
