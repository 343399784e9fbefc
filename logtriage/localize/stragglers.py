"""Ranks whose own work takes longer than their peers', with the peers waiting for them.

In a synchronous job every rank's step takes as long as the slowest, so whole steps prove nothing; what proves
a straggler is its own part of them. Each rank's late median is held against its peers' by a robust distance
(median and median absolute deviation), and must stay out in most of its late values: Minder (NSDI'25) and
GREYHOUND (ATC'25) ask for such persistence, too. Where all are alike, nobody is named.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from logtriage.localize.durations import DATA, WAIT, WORK, Duration
from logtriage.localize.progress import median
from logtriage.model import Line

FEW_RANKS = 8  # so few that their spread tells little: the contrast must be large
FEW_SLOWER = 1.8
FAR_LONGER = 3.0  # so much longer than one rank all others wait: that proves it, however few they are
MANY_SLOWER = 1.2
LEAST_SECONDS = 0.002
DEVIATIONS = 6.0  # robust standard deviations from the peers
NORMAL = 1.4826  # of a normal distribution, standard deviation over median absolute deviation
LEAST_VALUES = 4
PERSISTENT = 0.75  # share of a rank's late values that must lie beyond nine of ten of the peers'
PERSISTENT_BESIDE = 0.5  # the same of a rank beside one that is persistent
ALIKE_FACTORS = 0.9  # of the highest, by which two kinds of lines tell the same
MOST_VALUES = 400  # of one rank and kind, the last ones


@dataclass(frozen=True, slots=True)
class Straggling:
    """The slow ranks, by which factor, in which field, and the lines that show it, most telling first."""

    ranks: tuple[int, ...]
    factor: float
    field: str
    lines: tuple[Line, ...]
    since: Line | None  # the first from which on one of them was slow, None where all were all along
    first: tuple[tuple[int, Line], ...]  # of each of them that line, or the first of its lines
    kind: tuple[str, str]  # what was compared (see Duration) …
    bar: float  # … and the seconds between the usual and the slow


@dataclass(frozen=True, slots=True)
class Alike:
    """So many ranks told of their times, and none stands out."""

    ranks: int


def compare(told: Iterable[Duration], least: int = LEAST_VALUES) -> Straggling | Alike | None:
    """The ranks that hold the others up; Alike where enough ranks are told of and none does.

    Those of whom there are `least` values of a kind are compared.
    """
    kinds: dict[tuple[str, str], dict[int, list[Duration]]] = defaultdict(lambda: defaultdict(list))
    for each in told:
        kinds[each.kind][each.rank].append(each)
    found: list[tuple[Straggling, frozenset[int]]] = []  # with the ranks that were compared
    compared = 0
    for (form, field), by_rank in sorted(kinds.items()):
        if WAIT.search(field) or not (WORK.search(field) or DATA.search(field)):
            continue
        enough = {rank: values[-MOST_VALUES:] for rank, values in by_rank.items() if len(values) >= least}
        if len(enough) < 2:
            continue
        around = {name: each for (other, name), each in kinds.items() if other == form and name != field}
        waits = [of_rank for name, of_rank in around.items() if WAIT.search(name)]
        if len(enough) == 2 and not waits and not DATA.search(field):
            waits = [rest for whole in around.values() if (rest := _rest(enough, whole)) is not None]
        compared = max(compared, len(enough))
        slow = _slow(enough, (form, field), waits)
        if slow is not None:
            found.append((slow, frozenset(enough)))
    if not found:
        return Alike(compared) if compared > 2 else None
    highest = max(slower.factor for slower, _ in found)
    best, seen = max(  # of those that tell it alike the finest: from when on it was, too
        (each for each in found if each[0].factor >= ALIKE_FACTORS * highest),
        key=lambda each: (sum(len(kinds[each[0].kind][rank]) for rank in each[0].ranks), each[0].factor),
    )
    newest = {rank: values[-1].seconds for rank, values in kinds[best.kind].items()}
    # Of a rank without such lines another kind of them may tell, and of one with too few since it is slow.
    beside = {rank for each, _ in found for rank in each.ranks if rank not in seen or newest[rank] > best.bar}
    # One with too few lines to be compared is as slow as the slow ones where its last ones of all kinds are.
    last: dict[int, list[bool]] = defaultdict(list)
    for slower, _ in found:
        for rank, values in kinds[slower.kind].items():
            last[rank] += [value.seconds > slower.bar for value in values[-2:]]
    few = {rank for rank, late in last.items() if rank not in seen and len(late) > 1 and all(late)}
    return replace(best, ranks=tuple(sorted({*best.ranks, *beside, *few})))


def late_values(values: Sequence[Duration]) -> list[float]:
    """The seconds of the last third of the durations, three of them at least."""
    return [each.seconds for each in values[-max(3, len(values) // 3) :]]


def _slow(
    by_rank: dict[int, list[Duration]],
    kind: tuple[str, str],
    waits: Sequence[dict[int, list[Duration]]],
) -> Straggling | None:
    late = {rank: late_values(values) for rank, values in by_rank.items()}
    usual = {rank: median(values) for rank, values in late.items()}
    middle = median(list(usual.values()))
    spread = NORMAL * median([abs(value - middle) for value in usual.values()])
    few = len(usual) < FEW_RANKS and not _waits_for(waits, max(usual, key=lambda rank: usual[rank]))
    slower = FEW_SLOWER if few else MANY_SLOWER
    out = [
        rank
        for rank, value in usual.items()
        if value > slower * middle and value - middle > max(DEVIATIONS * spread, LEAST_SECONDS)
    ]
    if len(usual) == 2:  # of two the other must wait for it all the time
        (_, middle), (behind, longest) = sorted(usual.items(), key=lambda each: each[1])
        out = [behind] if longest > FEW_SLOWER * middle and _waits_for(waits, behind, least=1) else []
    peers = [value for rank, values in late.items() if rank not in out for value in values]
    if not out or not peers or (len(out) * 3 > len(usual) and len(usual) > 2):
        return None
    bar = sorted(peers)[min(len(peers) - 1, len(peers) * 9 // 10)]
    beyond = {rank: sum(value > bar for value in late[rank]) / len(late[rank]) for rank in out}
    sure = any(share >= PERSISTENT for share in beyond.values())
    out = [rank for rank in out if sure and beyond[rank] >= PERSISTENT_BESIDE]
    if not out or not _others_wait(waits, out, len(usual)):
        return None
    worst = max(out, key=lambda rank: usual[rank])
    half_way = (middle + median(late_values(by_rank[worst]))) / 2
    onsets = {rank: onset(by_rank[rank], half_way) for rank in sorted(out)}
    since = earliest(line for line in onsets.values() if line is not None)
    return Straggling(
        ranks=tuple(sorted(out)),
        factor=usual[worst] / max(middle, 1e-9),
        field=kind[1],
        lines=_telling(by_rank, out, worst, since),
        since=since,
        first=tuple((rank, line or by_rank[rank][0].line) for rank, line in onsets.items()),
        kind=kind,
        bar=half_way,
    )


def as_slow(values: Sequence[Duration], bar: float) -> bool:
    """Whether a rank is beyond the bar in its late values, as those beside a persistent one must be."""
    late = late_values(values)
    return len(values) >= LEAST_VALUES and sum(each > bar for each in late) >= PERSISTENT_BESIDE * len(late)


EQUAL = 1.1  # of two ranks that step together the steps take equally long, within so much


def _rest(
    own: dict[int, list[Duration]], whole: dict[int, list[Duration]]
) -> dict[int, list[Duration]] | None:
    """What is left of steps that take equally long on both ranks beside their own part: so long they wait."""
    if any(len(whole.get(rank, ())) < len(values) for rank, values in own.items()):
        return None
    steps = {rank: median(late_values(whole[rank])) for rank in own}
    parts = {rank: median(late_values(values)) for rank, values in own.items()}
    if max(steps.values()) > EQUAL * min(steps.values()) or any(parts[r] > steps[r] for r in own):
        return None
    if max(parts.values()) * 2 < max(steps.values()):
        return None  # neither holds the step up
    return {
        rank: [
            replace(step, seconds=max(0.0, step.seconds - part.seconds))
            for part, step in zip(values, whole[rank][-len(values) :], strict=True)
        ]
        for rank, values in own.items()
    }


def _others_wait(waits: Sequence[dict[int, list[Duration]]], slow: Sequence[int], size: int) -> bool:
    """Whether the peers wait longer than the slow; without a word on waiting, three ranks at least decide."""
    told = False
    for of_rank in waits:
        usual = {rank: median(late_values(values)) for rank, values in of_rank.items()}
        own = [value for rank, value in usual.items() if rank in slow]
        others = [value for rank, value in usual.items() if rank not in slow]
        if own and others:
            told = True
            if median(others) > 1.2 * median(own):
                return True
    return not told and size >= 3


def _waits_for(waits: Sequence[dict[int, list[Duration]]], rank: int, *, least: int = 2) -> bool:
    """Whether each of at least so many other ranks waits far longer than this one."""
    for of_rank in waits:
        usual = {each: median(late_values(values)) for each, values in of_rank.items()}
        own = usual.pop(rank, None)
        if (
            own is not None
            and len(usual) >= least
            and min(usual.values()) > FAR_LONGER * max(own, LEAST_SECONDS)
        ):
            return True
    return False


def earliest(lines: Iterable[Line]) -> Line | None:
    """The first of them by time; None of none."""
    return min(lines, key=lambda line: (line.time is None, line.time or 0.0), default=None)


def onset(values: Sequence[Duration], bar: float) -> Line | None:
    """The line from which on the durations of a rank lie above the bar; None where they did all along.

    Of all places to cut them, the one at which fewest lie on the wrong side.
    """
    wrong = best = sum(each.seconds <= bar for each in values)  # were all of them slow
    at = 0
    for index, each in enumerate(values, 1):
        wrong += 1 if each.seconds > bar else -1
        if wrong < best:
            best, at = wrong, index
    return values[at].line if 0 < at < len(values) else None


def _telling(
    by_rank: dict[int, list[Duration]], slow: Sequence[int], worst: int, since: Line | None
) -> tuple[Line, ...]:
    """The slowest value of the worst rank, its first slow one, and the slowest ones of other slow ranks."""

    def slowest(rank: int) -> Line:
        values = by_rank[rank]
        late = values[-max(3, len(values) // 3) :]
        if since is not None and values[0].line.file == since.file:
            late = [each for each in values if each.line.number >= since.number] or late
        return max(late, key=lambda each: each.seconds).line

    lines = [slowest(worst), since or by_rank[worst][0].line, *map(slowest, slow)]
    return tuple(dict.fromkeys(lines))[:4]
