"""A cause that the logs state: who speaks for it, which lines prove it, what followed from it."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from logtriage.diagnose.confidence import confidence
from logtriage.diagnose.culprits import blame
from logtriage.diagnose.decision import Decision
from logtriage.diagnose.struck_ranks import VICTIMS_SPEAK
from logtriage.localize.candidates import GENERAL_TYPES, Candidate
from logtriage.localize.cascade import Group
from logtriage.localize.collectives import accused
from logtriage.localize.exits import describe
from logtriage.localize.findings import MACHINE_ROLES, Findings
from logtriage.localize.survival import RETRYING
from logtriage.model import Culprits, Evidence, Line
from logtriage.regex import regex
from logtriage.rulebank.rule import Role, Strength

_NUMBERS = regex(r"[\da-f]*\d[\da-f]*")


def from_group(findings: Findings, root: Group, *, decided_by: str = "rules", why: str = "") -> Decision:
    culprits, told = blame(root, findings.topology, findings.candidates, findings.exits)
    if not culprits.ranks and all(each.rank is None for each in root.members):
        named = accused(findings.scene)[0]
        if len(named) == 1:  # it did not say which rank it is; those who lost it do
            hosts = culprits.hosts or tuple(findings.topology.hosts_of(named))
            culprits = replace(culprits, ranks=tuple(named), hosts=hosts)
            told = f"its peers lost rank {next(iter(named))}"
    culprits = _slowed(root, culprits, findings)
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


def _slowed(root: Group, culprits: Culprits, findings: Findings) -> Culprits:
    """With the ranks that were seen to be slow where heat or power held back a GPU that no line places."""
    if root.failure_type != "gpu.thermal_power" or culprits.ranks:
        return culprits
    slow = findings.slowness
    if slow is None or slow.failure_type != "slow.straggler":
        return culprits
    there = {*findings.topology.hosts_of(slow.ranks), *slow.hosts}
    return replace(culprits, ranks=slow.ranks) if there <= set(culprits.hosts) else culprits


def _lead(root: Group, culprits: Culprits) -> Candidate:
    """The member that speaks for the group: the surest, of a culprit if possible, the earliest."""
    order = {Strength.DEFINITE: 0, Strength.LIKELY: 1, Strength.HINT: 2}
    members = root.causes or root.members
    return min(
        members,
        key=lambda each: (
            root.failure_type in VICTIMS_SPEAK and _is_elsewhere(each, culprits),  # others only wait for it
            order[each.strength],
            bool(culprits.ranks) and each.rank not in culprits.ranks,
            _is_elsewhere(each, culprits),
            _is_retried(each),
            each.rule is None,
            not culprits.ranks and each.rank is not None and each.rank,  # all alike: rank 0 speaks
            each.time is None,
            each.time or 0.0,
            -len(each.captures),  # of several undated lines the one that says most
        ),
    )


def _words(candidate: Candidate) -> str:
    return _NUMBERS.sub("", candidate.line.message)[:200]


def _is_retried(candidate: Candidate) -> bool:
    """Whether its line says that this was not yet the end of it."""
    return RETRYING.search(candidate.line.text[:2000]) is not None


def _is_elsewhere(candidate: Candidate, culprits: Culprits) -> bool:
    return bool(culprits.hosts) and candidate.host not in (*culprits.hosts, None)


def _evidence(root: Group, culprits: Culprits, findings: Findings) -> tuple[Evidence, ...]:
    """The lead's line first, then lines that say it in another way, in another file or of another rank.

    A recurrence in an earlier attempt comes last: it shows that a restart does not help.
    """

    def told(each: Candidate) -> str | None:
        return each.rule.id if each.rule else None

    lead = _lead(root, culprits)
    chosen = [lead]
    rest = [each for each in root.members if each is not lead and not each.recovered]
    rest.sort(
        key=lambda each: (
            bool(culprits.ranks) and each.rank not in culprits.ranks,
            _is_elsewhere(each, culprits),
            each.strength is Strength.HINT,
            _is_retried(each),
            each.role is not Role.CAUSE and each.record is not lead.record,
            told(each) == told(lead) and len(each.captures) < len(lead.captures),  # says less of the same
            each.rank or 0,
            each.time is None,
            each.time or 0.0,
        )
    )

    stated = [each for each in rest if each.role is Role.CAUSE or each.record is lead.record is not None]

    def is_beside(each: Candidate) -> bool:
        return each.record is lead.record is not None or each.rank == lead.rank is not None

    novelties: tuple[Callable[[Candidate], bool], ...] = (
        lambda each: told(each) not in {told(other) for other in chosen},
        lambda each: is_beside(each) and _words(each) not in {_words(other) for other in chosen},
        lambda each: each.line.file not in {other.line.file for other in chosen},
        lambda each: each.rank not in {other.rank for other in chosen},
        lambda each: each.strength is not Strength.HINT and len(chosen) < 3,
    )
    for novel in novelties:
        for each in stated:
            if len(chosen) < 4 and each not in chosen and novel(each):
                chosen.append(each)
    chosen += [each for each in rest if each not in chosen][: max(0, 2 - len(chosen))]
    chosen += [each for each in rest if each not in chosen and is_beside(each)][: max(0, 3 - len(chosen))]
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
    first = [
        each
        for each in root.causes
        if told(each) == told(lead) and each.line.file == lead.line.file and not _is_elsewhere(each, culprits)
    ]
    earliest = min(first, key=lambda each: each.line.number, default=lead)
    if earliest.line.number < lead.line.number:
        chosen = [lead, earliest, *(each for each in chosen if each not in (lead, earliest))]
    cited = [Evidence(each.line, each.title, told(each)) for each in chosen]
    if (above := _code_above(lead, findings)) is not None:
        cited.insert(1, Evidence(above, "the code that raised it"))
    if (below := _introduced(lead, findings)) is not None and below not in [each.line for each in cited]:
        cited.insert(1, Evidence(below, "what it introduces"))
    if (heading := _heading(lead, findings)) is not None and heading not in [each.line for each in cited]:
        cited.insert(1, Evidence(heading, "the same, as its process was caught"))
    for end in findings.exits:
        if end.beside is not None and any(end.line == each.line for each in chosen):
            cited.append(Evidence(end.beside, f"ended with {describe(end.code)}"))
    if again:
        cited.insert(1, Evidence(again[0].line, f"the same in attempt {again[0].attempt}", told(again[0])))
    return tuple(cited)


_BARE = regex(r"(?:[\w.]{1,100}\.)?[A-Z]\w{1,60}(?:Error|Exception|Interrupt)?:?\s*$")


def _code_above(lead: Candidate, findings: Findings) -> Line | None:
    """The line of code in a traceback right above an exception that has no words of its own."""
    if lead.record is None or _BARE.match(lead.line.message.strip()) is None:
        return None
    above = [line for line in findings.scene.lines(lead.line.file) if line.number == lead.line.number - 1]
    code = [
        line
        for line in above
        if line.message.startswith("    ") and not line.message.lstrip().startswith(("raise ", "^", "~"))
    ]
    return code[0] if code else None


LEAST_SAID = 24  # characters of an exception's words by which its repetition is known


def _heading(lead: Candidate, findings: Findings) -> Line | None:
    """The line right above a traceback that tells its exception's words already, and of whom it is."""
    _, _, words = lead.line.message.partition(": ")
    if lead.record is None or len(words := words.strip()[:200]) < LEAST_SAID:
        return None
    begin = lead.record.lines[0].number
    above = [line for line in findings.scene.lines(lead.line.file) if 0 < begin - line.number <= 2]
    said = [line for line in above if words in line.text and not line.message.startswith(" ")]
    return said[-1] if said else None


_CARET = regex(r"^[ ~]*\^[\^~ ]*$")
_REASON = regex(r"(?:[A-Za-z_][\w.]{0,80}(?:Error|Exception|Failure|Exit|Interrupt)|error)\b ?[(:]")
SOURCE_LINES = 60  # of the program that a compiler refused, between the head and the reason


def _introduced(lead: Candidate, findings: Findings) -> Line | None:
    """What one introduces that says nothing more (`backend='inductor' raised:`): mostly the line below it.

    A compiler's reason stands behind the source that it quotes, and behind the caret under that.
    """
    if not lead.line.text.rstrip().endswith(":"):
        return None
    lines = findings.scene.lines(lead.line.file)
    at = bisect.bisect_right(lines, lead.line.number, key=lambda line: line.number)
    quoted = [line for line in lines[at : at + SOURCE_LINES] if line.rank == lead.line.rank]
    for above, line in pairwise(quoted):
        if _CARET.match(above.message) and _REASON.match(line.message.strip()):
            return line
    below = [
        line
        for line in lines[at : at + 2]
        if 0 < line.number - lead.line.number <= 2 and line.message.strip()
    ]
    return below[0] if below else None


def _symptoms(findings: Findings, root: Group) -> tuple[Candidate, ...]:
    followers = [member for each in findings.cascade.followers for member in each.members[:3]]
    followers += [member for each in findings.cascade.rivals for member in each.members[:1]]
    followers += [member for member in root.members if member.role is not Role.CAUSE][:2]
    followers.sort(key=lambda each: (each.time is None, each.time or 0.0))
    return tuple(followers)


def _alternatives(findings: Findings, root: Group) -> tuple[tuple[str, float, tuple[Evidence, ...]], ...]:
    found = []
    for rival in findings.cascade.rivals[:3]:
        if rival.failure_type == "unknown" or rival is root:
            continue
        lead = rival.causes[0]
        weight = 0.25 if rival.sureness >= root.sureness else 0.12
        cited = Evidence(lead.line, lead.title, lead.rule.id if lead.rule else None)
        found.append((rival.failure_type, weight, (cited,)))
    return tuple(found)


# How records of platforms give the reason for which a job failed, whatever its program said before.
_IS_REASON = regex(r"(?i)\bfailure_?(?:reason|message)\W{1,4}[A-Z]|\bfailed\. reason: ")


def is_fatal(root: Group) -> bool:
    """Whether the root ends jobs: an exception or exit, a fault below the program, a platform's reason."""
    return any(
        each.record is not None
        or each.capture("exitcode")
        or each.source_role in MACHINE_ROLES
        or _IS_REASON.search(each.line.text[:1000])
        for each in root.causes
        if each.strength is not Strength.HINT
    ) or root.failure_type.startswith(("scheduler.", "numerics."))
