"""Which places of a large file are worth reading closely, by what the pass over it saw."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from logtriage.mining.summary import Summary
from logtriage.rulebank.rule import Mark, Role, Rule, Strength

COMMON = 16  # hits of a rule that captured the same …
RARE = 16  # … and so many times fewer that captured something else

FEW = 16  # a cause that so many times fewer files state than there are is odd
ODD_SHARE = 4  # how much closer a file that states one is read …
REPORTER_SHARE = 8  # … and the one that reports most steps, for all ranks

Odd = tuple[str, tuple[str, str]]  # a rule's id, and the name and the value of what it captured


def odd_captures(summaries: Sequence[Summary]) -> frozenset[Odd]:
    """By rule, what a few of its hits captured where nearly all captured another: who waits in another
    collective than all others stands between many who wait.
    """
    values: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for summary in summaries:
        for (rule_id, captures), sightings in summary.hits.items():
            for name, value in captures:
                values[rule_id, name][value] += sightings.count
    return frozenset(
        (rule_id, (name, value))
        for (rule_id, name), counts in values.items()
        for most in (max(counts.values()),)
        if most >= COMMON and most * 4 > sum(counts.values()) * 3
        for value, count in counts.items()
        if count * RARE < most
    )


def places(
    summary: Summary, by_id: dict[str, Rule], odd: frozenset[Odd] = frozenset()
) -> tuple[tuple[int, int], ...]:
    """The places of a file that are worth reading closely, most telling first."""
    order = {Strength.DEFINITE: 0, Strength.LIKELY: 1, Strength.HINT: 3}
    ranked: list[tuple[int, int, int]] = []
    for (rule_id, captures), sightings in summary.hits.items():
        rule = by_id[rule_id]
        if any((rule_id, each) in odd for each in captures):
            weight = -1
        elif rule.role in (Role.CAUSE, Role.SYMPTOM):
            weight = order[rule.strength] + (rule.role is Role.SYMPTOM)
        elif rule.marks is not None:
            weight = 5
        else:
            continue
        sighted = sightings.kept()
        kept = sighted if weight < 5 else [*sighted[:2], *sighted[-4:]]
        ranked += [(weight + position // 8, line, offset) for position, (line, offset) in enumerate(kept)]
    ranked.sort()
    return tuple((line, offset) for _, line, offset in ranked)


def shares(summaries: Sequence[Summary], by_id: dict[str, Rule]) -> list[int]:
    """How much closer than the others each file is read, in a job of so many that most are read little."""
    steps: list[int] = []
    stating: dict[str, set[int]] = defaultdict(set)
    for index, summary in enumerate(summaries):
        stepped = 0
        for (rule_id, _), sightings in summary.hits.items():
            rule = by_id[rule_id]
            if rule.marks is Mark.STEP:
                stepped += sightings.count
            elif rule.role is Role.CAUSE and rule.strength is not Strength.HINT:
                stating[rule_id].add(index)
        steps.append(stepped)
    odd = {index for files in stating.values() if len(files) * FEW <= len(summaries) for index in files}
    found = [ODD_SHARE if index in odd else 1 for index in range(len(summaries))]
    if any(steps):
        found[steps.index(max(steps))] = REPORTER_SHARE
    return found
