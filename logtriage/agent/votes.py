"""Many votes, one answer: self-consistency (Wang et al., ICLR'23) over types, culprits and cited lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
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
    tally: dict[str, int]
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()
    support: Bearing = Bearing.NOT
    bearing: frozenset[tuple[str, int]] = frozenset()  # file and number of the lines that bear the type
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
        return Pool(None, share, counts)
    name = leaders[0]
    agreeing = [vote for vote in ordered if vote.failure_type == name]
    cited = Counter(line for vote in agreeing for line in vote.lines)
    # A vote's first line is the one that bears its claim best; the others may bear nothing.
    leading = Counter(vote.lines[0] for vote in agreeing if vote.lines)
    lines = sorted(cited, key=lambda line: (-leading[line], -cited[line], line.file, line.number))
    return Pool(
        failure_type=name,
        agreement=len(agreeing) / max(1, returned),
        tally=counts,
        ranks=_common([vote.ranks for vote in agreeing]),
        hosts=_common([vote.hosts for vote in agreeing]),
        lines=tuple(lines[:MOST_LINES]),
        support=max(vote.support for vote in agreeing),
        bearing=frozenset((line.file, line.number) for vote in agreeing for line in vote.bearing),
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


# Log odds, fitted by benchmarks/vote_calibration.py on votes of made-up models.
_BIAS, _AGREEMENT, _CONFIRMS, _OFFLINE = -2.2, 4.1, 0.7, 1.0
# By benchmarks/likeness_weight.py not to be told from 0 (-0.24, in nine of ten draws -1.04 to 0.48):
# of the types that a line's words fit, wrong ones are alike as often. More than half a unit is refuted.
_LIKENESS = 0.25
LEAST, MOST = 0.05, 0.95


def confidence(agreement: float, *, offline_agrees: float = 0.0, likeness: float = 0.0) -> float:
    """How sure a verdict of votes is, 0.05 to 0.95; it grows with each argument.

    `agreement` is the share of all votes, void ones included, that name the type; `offline_agrees` the
    offline confidence where that verdict names the same type, else 0; `likeness` that of the nearest
    confirmed diagnosis of this type.
    """
    odds = _BIAS + _AGREEMENT * agreement + _LIKENESS * likeness
    if offline_agrees > 0:
        known = min(MOST, max(LEAST, offline_agrees))
        odds += max(0.0, _CONFIRMS + _OFFLINE * log(known / (1 - known)))
    return round(min(MOST, max(LEAST, 1 / (1 + exp(-odds)))), 2)
