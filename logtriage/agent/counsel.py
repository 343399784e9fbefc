"""From votes to a verdict: what they may change of the offline decision, and what is told of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from logtriage.agent.ask import Asked
from logtriage.agent.bearing import Bearing, says_little
from logtriage.agent.desk import Desk, normal
from logtriage.agent.endpoint import host
from logtriage.agent.occasion import UNSURE
from logtriage.agent.votes import Pool, confidence, merged, pool
from logtriage.diagnose.decision import Decision
from logtriage.diagnose.stated import from_group
from logtriage.localize.cascade import CONSEQUENCES, Group, depth
from logtriage.localize.topology import Topology
from logtriage.model import Culprits, Evidence, Level, Line
from logtriage.report.document import UNRECORDED, Mitigation, ModelUse, Spending, Verdict, Votes
from logtriage.settings import Settings
from logtriage.taxonomy import taxonomy

LONGEST_TITLE = 120
# The most that a verdict can reach whose lines no rule knows: what unanimous votes of a model are worth that
# is right every second time (benchmarks/results/vote-calibration.md).
WORDS_ALONE = 0.65
# The most that votes add to an offline verdict which they agree with on its own lines: who repeats what he
# was shown is no second witness.
AGREEING_ALONE = 0.05


@dataclass(frozen=True, slots=True)
class Counsel:
    """The decision after the votes, and what the document says of them."""

    decision: Decision
    use: ModelUse
    votes: Votes | None
    mitigations: tuple[str, ...] = ()


def weigh(desk: Desk, asked: Asked, settings: Settings, why: str) -> Counsel:
    """The votes against the offline decision. It stands wherever the votes do not agree on something better.

    A model may name a cause where rules found none, or another of several that nothing explains. It may not
    overrule a cause that rules are sure of, nor take for the cause what the localisation knows as an effect.
    """
    pooled = pool(asked.votes, asked.returned)
    offline = desk.decision
    votes = Votes(asked=asked.returned, valid=len(asked.votes), votes_for=pooled.tally)
    decision, told = offline, _untold(asked, pooled)
    mitigations: tuple[str, ...] = ()
    if asked.is_stopped:
        pass  # a few votes that happened to be quick are no majority of those that were wanted
    elif pooled.failure_type is not None and pooled.failure_type != "unknown":
        if pooled.failure_type == offline.failure_type:
            decision, told = _confirmed(desk, pooled), "the votes agree with the offline verdict"
            mitigations = pooled.mitigations
        elif _may_replace(desk, pooled):
            decision, told = _replaced(desk, pooled), "the votes decide"
            mitigations = pooled.mitigations
        else:
            told = f"the votes name {pooled.failure_type}, which the evidence does not bear out"
    elif pooled.failure_type is None and asked.votes:
        decision = _competing(offline, asked, pooled)
    if asked.unkept:
        told += f"{UNRECORDED}{asked.unkept}"
    use = _use(desk, asked, settings, why, told)
    return Counsel(decision, use, votes if asked.returned else None, mitigations)


def _untold(asked: Asked, pooled: Pool) -> str:
    if asked.fault:
        return f"the offline verdict stands: {asked.fault}"
    if pooled.failure_type == "unknown":
        return "the offline verdict stands: the model finds no decisive line either"
    if not asked.votes:
        return "the offline verdict stands: no vote passed the check against the logs"
    return "the offline verdict stands: the votes do not agree"


def _confirmed(desk: Desk, pooled: Pool) -> Decision:
    offline = desk.decision
    sure = confidence(pooled.agreement, offline_agrees=offline.confidence)
    name = offline.failure_type
    own = [each.line for each in desk.findings.candidates if each.failure_type == name]
    known = {(line.file, line.number) for line in (*own, *(each.line for each in offline.evidence))}
    most = round(offline.confidence + AGREEING_ALONE, 2)
    if pooled.bearing - known:
        most = max(most, WORDS_ALONE)  # what rules know of this type is among the known ones
    return replace(offline, confidence=max(offline.confidence, min(sure, most)))


def _may_replace(desk: Desk, pooled: Pool) -> bool:
    offline, cascade = desk.decision, desk.findings.cascade
    name = pooled.failure_type
    if name is None or name.startswith("none.") or pooled.support < Bearing.WORDS:
        return False
    if any(each.failure_type == name for each in cascade.followers):
        return False
    lead, root = pooled.lines[0], cascade.root
    if offline.failure_type == "unknown":
        # Where the localisation knows who ended first, what others wrote is no cause.
        writer = desk.findings.topology.rank(lead)
        ranks = offline.culprits.ranks
        return pooled.support is not Bearing.SYMPTOM and (writer is None or not ranks or writer in ranks)
    says_nothing = offline.failure_type == "code.runtime" and pooled.support is Bearing.WORDS
    if not says_nothing and name in desk.bank.explains.get(offline.failure_type, ()):
        return False  # what follows from the offline verdict is no better cause
    if pooled.support is not Bearing.SYMPTOM and root is not None and _is_open(root):
        # A better name for the very line that it rests on, or for an error that was logged.
        own = any((each.line.file, each.line.number) == (lead.file, lead.number) for each in root.causes)
        return own or lead.level in (Level.ERROR, Level.CRITICAL) or pooled.support is Bearing.CAUSE
    weak = root is None or root.sureness < 2 or offline.failure_type in CONSEQUENCES
    if weak and pooled.support is Bearing.WORDS and offline.confidence < UNSURE:
        return offline.failure_type in desk.bank.explains.get(name, ())  # what brought the consequence about
    rival = next((each for each in cascade.rivals if each.failure_type == name), None)
    if pooled.support < Bearing.CAUSE or rival is None or root is None:
        return False
    # Where rules left it to time alone which came first, or are unsure of what is mostly a consequence.
    is_tie = rival.sureness == root.sureness and depth(name) == depth(offline.failure_type)
    return is_tie or (weak and offline.confidence < UNSURE and name not in CONSEQUENCES)


def _is_open(root: Group) -> bool:
    """Whether the offline verdict says little: that something was raised, or what a mere hint may mean."""
    return all(says_little(each.failure_type, each.strength) for each in root.causes)


def _replaced(desk: Desk, pooled: Pool) -> Decision:
    offline, findings = desk.decision, desk.findings
    name = pooled.failure_type or "unknown"
    group = _group(desk, name)
    sure = confidence(pooled.agreement, likeness=_likeness(desk, name))
    voted = f"{round(100 * pooled.agreement)} % of a model's votes agree"
    base = from_group(findings, group) if group is not None and pooled.support is Bearing.CAUSE else None
    if base is None:
        lead = pooled.lines[0]
        ranks = pooled.ranks
        base = replace(
            offline,
            title=_title(lead, name),
            culprits=Culprits(ranks=ranks, hosts=pooled.hosts or _hosts(ranks, findings.topology)),
            evidence=(),
            root=None,
            outcome="failed",
        )
        sure = min(sure, WORDS_ALONE)
    cited = {(each.line.file, each.line.number) for each in base.evidence}
    shown = [Evidence(line, voted) for line in pooled.lines if (line.file, line.number) not in cited]
    others = [entry for entry in base.alternatives if entry[0] not in (name, offline.failure_type)]
    if offline.failure_type != "unknown":
        left = round(min(offline.confidence, 1 - sure), 2)
        others.insert(0, (offline.failure_type, left, offline.evidence[:1]))
    return replace(
        base,
        failure_type=name,
        confidence=sure,
        evidence=(*base.evidence, *shown)[:5],
        decided_by="llm",
        why=pooled.cause or f"{voted} on this",
        alternatives=tuple(others),
        collect_next=offline.collect_next,
    )


def _competing(offline: Decision, asked: Asked, pooled: Pool) -> Decision:
    """The answers that compete, as alternatives of a verdict that stays as it was."""
    known = {offline.failure_type, "unknown", *(name for name, _, _ in offline.alternatives)}
    others: list[tuple[str, float, tuple[Evidence, ...]]] = []
    for name, count in pooled.tally.items():
        if name in known:
            continue
        line = next(vote.lines[0] for vote in asked.votes if vote.failure_type == name)
        share = round(0.5 * count / asked.returned, 2)
        others.append((name, share, (Evidence(line, f"{count} of {asked.returned} votes of a model"),)))
    return replace(offline, alternatives=(*offline.alternatives, *others[:3]))


def _group(desk: Desk, name: str) -> Group | None:
    cascade = desk.findings.cascade
    groups = [each for each in (cascade.root, *cascade.rivals, *cascade.followers) if each is not None]
    return next((each for each in groups if each.failure_type == name and each.causes), None)


def _hosts(ranks: tuple[int, ...], topology: Topology) -> tuple[str, ...]:
    return tuple(topology.hosts_of(ranks)) if len(topology.hosts) > 1 else ()


def _likeness(desk: Desk, name: str) -> float:
    return max((each.likeness for each in desk.precedents if each.failure_type == name), default=0.0)


def _title(line: Line, name: str) -> str:
    """The line's own words: a title made by a model could say what no line says."""
    text = normal(line.message) or normal(line.text) or taxonomy()[name].means
    return text if len(text) <= LONGEST_TITLE else text[: LONGEST_TITLE - 1] + "…"


def _use(desk: Desk, asked: Asked, settings: Settings, why: str, told: str) -> ModelUse:
    return ModelUse(
        asked=True,
        wanted=True,
        why=why,
        result=told,
        model=settings.llm_model or None,
        endpoint=host(settings),
        prompt=f"{asked.prompt.id}/{asked.prompt.version}",
        voids=dict(sorted(asked.voids.items())),
        budget=Spending(
            votes=settings.llm_votes,
            tokens_per_vote=settings.llm_tokens_per_vote,
            tokens=settings.llm_votes * settings.llm_tokens_per_vote,
            seconds=settings.llm_seconds,
        ),
        spent=Spending(
            votes=asked.started,
            tokens_per_vote=asked.largest_vote,
            tokens=asked.sent + asked.received,
            seconds=asked.seconds,
            requests=asked.requests,
            look_ups=asked.tool_calls,
        ),
        redacted=desk.redaction.counts,
    )


def applied(verdict: Verdict, counsel: Counsel) -> Verdict:
    """The composed document with the votes, the model's advice and what asking it cost."""
    body = verdict.verdict
    known = [each.text for each in body.mitigations]
    advice = tuple(Mitigation(text=text, source="llm") for text in merged(counsel.mitigations, known))
    told = body.model_copy(update={"votes": counsel.votes, "mitigations": (*body.mitigations, *advice)})
    return verdict.model_copy(update={"verdict": told, "model": counsel.use})
