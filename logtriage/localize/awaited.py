"""The one rank for which all others wait, where no time of its own tells why.

What keeps a rank from its collective may be nothing that it measures: its process was stopped, its batch came
late. But the last who comes waits for nobody. So of a job all of whose ranks tell how long they waited, the
one that hardly does while all others do is who they wait for, if they wait longer than they work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from logtriage.localize.durations import DATA, WAIT, WORK, Duration
from logtriage.localize.progress import median
from logtriage.localize.stragglers import (
    FAR_LONGER,
    LEAST_SECONDS,
    LEAST_VALUES,
    PERSISTENT,
    Straggling,
    late_values,
    onset,
)
from logtriage.model import Line
from logtriage.regex import regex

LEAST_RANKS = 3
# Stages of a pipeline wait for each other by turns, and whoever reads data waits for no rank.
_BY_TURNS = regex(r"(?i)recv|receive|send|p2p|pipe|bubble|stage|token|queue|lock|disk|save|ckpt|checkpoint")


def awaited(told: Iterable[Duration], size: int) -> Straggling | None:
    """That rank, where each of the `size` ranks of the job tells of its waits."""
    kinds: dict[tuple[str, str], dict[int, list[Duration]]] = defaultdict(lambda: defaultdict(list))
    for each in told:
        kinds[each.kind][each.rank].append(each)
    for (form, field), by_rank in sorted(kinds.items()):
        if WAIT.search(field) is None or DATA.search(field) or _BY_TURNS.search(field):
            continue
        enough = {rank: values for rank, values in by_rank.items() if len(values) >= LEAST_VALUES}
        if len(enough) < max(LEAST_RANKS, size):
            continue
        late = {rank: late_values(values) for rank, values in enough.items()}
        usual = {rank: median(values) for rank, values in late.items()}
        last = min(usual, key=lambda rank: usual[rank])
        peers = sorted(seconds for rank, values in late.items() if rank != last for seconds in values)
        least = min(value for rank, value in usual.items() if rank != last)
        work = sum(
            median([seconds for values in of.values() for seconds in late_values(values)])
            for (other, name), of in kinds.items()
            if other == form and WORK.search(name) and not WAIT.search(name)
        )
        few = peers[len(peers) // 10]  # that nine of ten waits of the peers are longer than
        persistent = sum(seconds < few for seconds in late[last]) >= PERSISTENT * len(late[last])
        if not persistent or least <= max(work, FAR_LONGER * max(usual[last], LEAST_SECONDS)):
            continue
        half_way = (usual[last] + least) / 2
        waits = {rank: onset(values, half_way) for rank, values in enough.items() if rank != last}
        begun = min(
            (line for line in waits.values() if line is not None),
            key=lambda line: (line.time is None, line.time or 0.0, line.file, line.number),
            default=None,
        )
        own = _beside([each.line for each in enough[last]], begun)
        other = begun or next(each.line for rank, each in _longest(enough).items() if rank != last)
        return Straggling(
            ranks=(last,),
            factor=(work + least) / max(work + usual[last], LEAST_SECONDS),
            field="",
            lines=tuple(dict.fromkeys((own, other, enough[last][-1].line))),
            since=own if begun is not None else None,
            first=((last, own),),
            kind=(form, field),
            bar=half_way,
        )
    return None


def _longest(by_rank: dict[int, list[Duration]]) -> dict[int, Duration]:
    return {rank: max(values, key=lambda each: each.seconds) for rank, values in by_rank.items()}


def _beside(lines: list[Line], begun: Line | None) -> Line:
    """The line of the awaited rank at which its peers began to wait: in their file the next, else by time."""
    if begun is None:
        return lines[-1]
    if lines[0].file == begun.file:
        return next((line for line in lines if line.number > begun.number), lines[-1])
    dated = [line for line in lines if line.time is not None and begun.time is not None]
    return next((line for line in dated if (line.time or 0.0) >= (begun.time or 0.0)), lines[-1])
