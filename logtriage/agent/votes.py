"""Many votes, one answer: self-consistency (Wang et al., ICLR'23) over types, culprits and cited lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from logtriage.agent.bearing import Bearing
from logtriage.agent.grounding import Vote
from logtriage.model import Line

MOST_LINES = 4
MOST_MITIGATIONS = 4

_Item = TypeVar("_Item", int, str)


@dataclass(frozen=True, slots=True)
class Pool:
    """What the votes agree on. `failure_type` is None for a tie or where less than half of all agree."""

    failure_type: str | None
    agreement: float  # share of the votes that came back, valid or not, that name the leading type
    overlap: float  # share of the agreeing votes that cite the line cited most
    tally: dict[str, int]
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()
    support: Bearing = Bearing.NOT
    cause: str = ""
    mitigations: tuple[str, ...] = ()


def is_settled(tally: Counter[str], outstanding: int) -> bool:
    """Whether the votes that are still out cannot change which type leads."""
    ranked = [count for _, count in tally.most_common(2)]
    lead = ranked[0] - (ranked[1] if len(ranked) > 1 else 0) if ranked else 0
    return lead > outstanding


def pool(votes: Sequence[Vote], returned: int) -> Pool:
    """The common answer of the valid votes among `returned` ones, the same for any order of them."""
    ordered = sorted(votes, key=_order)
    tally = Counter(vote.failure_type for vote in ordered)
    counts = dict(sorted(tally.items(), key=lambda item: (-item[1], item[0])))
    leaders = [name for name, count in counts.items() if count == max(counts.values())]
    if len(leaders) != 1 or counts[leaders[0]] * 2 <= returned:
        share = max(counts.values(), default=0) / max(1, returned)
        return Pool(None, share, 0.0, counts, mitigations=())
    name = leaders[0]
    agreeing = [vote for vote in ordered if vote.failure_type == name]
    cited = Counter(line for vote in agreeing for line in vote.lines)
    best = {line: max(vote.support for vote in agreeing if line in vote.lines) for line in cited}
    lines = sorted(cited, key=lambda line: (-cited[line], -best[line], line.file, line.number))
    return Pool(
        failure_type=name,
        agreement=len(agreeing) / max(1, returned),
        overlap=max(cited.values(), default=0) / len(agreeing),
        tally=counts,
        ranks=_common([vote.ranks for vote in agreeing]),
        hosts=_common([vote.hosts for vote in agreeing]),
        lines=tuple(lines[:MOST_LINES]),
        support=max(vote.support for vote in agreeing),
        cause=next((vote.cause for vote in agreeing if vote.cause), ""),
        mitigations=merged([text for vote in agreeing for text in vote.mitigations]),
    )


def _order(vote: Vote) -> tuple[object, ...]:
    places = [(line.file, line.number) for line in vote.lines]
    return (vote.failure_type, -vote.support, places, vote.ranks, vote.hosts, vote.cause, vote.mitigations)


def _common(choices: Sequence[tuple[_Item, ...]]) -> tuple[_Item, ...]:
    """What more than half of the agreeing votes name."""
    counts = Counter(item for choice in choices for item in choice)
    return tuple(sorted(item for item, count in counts.items() if count * 2 > len(choices)))


def merged(texts: Sequence[str], known: Sequence[str] = ()) -> tuple[str, ...]:
    """Advice without repetitions (most of the words alike), what most votes say first."""
    kept: list[tuple[int, str, frozenset[str]]] = []
    there = [_content(text) for text in known]
    for text in texts:
        words = _content(text)
        if not words or any(_alike(words, each) for each in there):
            continue
        for index, (count, first, others) in enumerate(kept):
            if _alike(words, others):
                kept[index] = (count + 1, first, others)
                break
        else:
            kept.append((1, text, words))
    kept.sort(key=lambda entry: -entry[0])
    return tuple(text for _, text, _ in kept[:MOST_MITIGATIONS])


def _content(text: str) -> frozenset[str]:
    words = "".join(each if each.isalnum() else " " for each in text.lower()).split()
    return frozenset(word for word in words if len(word) > 2)


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= 0.6 * max(1, min(len(one), len(other)))


_SUPPORTED = {Bearing.NOT: 0.0, Bearing.WORDS: 0.05, Bearing.SYMPTOM: 0.08, Bearing.CAUSE: 0.15}


def confidence(
    agreement: float, overlap: float, support: Bearing, *, offline_agrees: float = 0.0, likeness: float = 0.0
) -> float:
    """How sure a verdict of votes is, 0.05 to 0.9; it grows with each argument.

    `offline_agrees` is the offline confidence where it names the same type, `likeness` that of the nearest
    confirmed diagnosis of this type. The weights are set so that a bare majority on words alone stays below
    0.5 and full agreement on a line that a rule knows as a cause reaches 0.8. They are not fitted: no
    labelled jobs with answers of a real model were at hand.
    """
    voted = 0.2 + 0.35 * agreement + 0.1 * overlap * agreement + _SUPPORTED[support] + 0.1 * likeness
    joint = 1 - (1 - voted) * (1 - 0.6 * offline_agrees)
    return round(min(0.9, max(0.05, joint)), 2)
