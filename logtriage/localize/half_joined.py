"""A communicator that most of its ranks have joined, and of which a few never say that they did.

NCCL says of each rank when it begins to join and when it has joined. Who has not, and is seen alive by a
person who looks at its processes, stands still there; its peers went on to the first collective, and wait.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from logtriage.localize.scene import Scene
from logtriage.model import Line
from logtriage.regex import regex

_JOINS = regex(
    r"\bncclComm(?:Init|Split)\w{0,20} comm \S{1,24} rank (?P<rank>\d{1,7}) nranks (?P<size>\d{1,7}) "
    r"[^\n]{0,200}?commId (?P<id>\S{1,24}) - Init (?P<state>START|COMPLETE)\b"
)
_LOOKS = regex(r"\$ (?:sudo )?(?:ps|top|htop|pgrep|pstree|py-spy|gdb|pstack|nvidia-smi|cat /proc)\b")
_NUMBER = regex(r"(?<![\d.:])\d{2,9}(?![\d.:])")
ROWS_BELOW = 40  # of what somebody looked at


@dataclass(slots=True)
class _Joining:
    begun: dict[int, Line] = field(default_factory=dict)
    joined: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class HalfJoined:
    """Where those who never joined began to, the last line of one of them, and what shows it alive."""

    begun: tuple[Line, ...]
    last: Line
    seen: Line


def half_joined(scene: Scene) -> HalfJoined | None:
    """The ranks that never joined the last communicator that most others joined, if one is seen alive."""
    found: dict[tuple[str, int], _Joining] = defaultdict(_Joining)
    for reading in scene.readings:
        for line in reading.lines:
            if " - Init " in line.text and (said := _JOINS.search(line.text[:1000])) is not None:
                here = found[said["id"], int(said["size"])]
                here.begun.setdefault(int(said["rank"]), line)
                if said["state"] == "COMPLETE":
                    here.joined.add(int(said["rank"]))
    for (_, size), each in reversed(found.items()):
        missing = sorted(each.begun.keys() - each.joined)
        if len(each.begun) < size or not 0 < len(missing) * 2 <= size:
            continue
        for rank in missing:
            begun = each.begun[rank]
            if begun.pid is None or (alive := _alive(scene, begun.pid)) is None:
                continue
            own = [
                line
                for line in scene.lines(begun.file)
                if line.pid == begun.pid and line.text.strip() and line.number >= begun.number
            ]
            own = [line for line in own if line.file != alive.file or line.number < alive.number]
            stopped = tuple(each.begun[rank] for rank in missing)
            return HalfJoined(stopped, own[-1] if own else begun, alive)
    return None


def _alive(scene: Scene, pid: int) -> Line | None:
    """The row below a person's command that shows the process."""
    for reading in scene.readings:
        looked: int | None = None
        for line in reading.lines:
            if "$ " in line.text[:200] and _LOOKS.search(line.text[:200]) is not None:
                looked = line.number
            elif (
                looked is not None
                and line.number - looked <= ROWS_BELOW
                and str(pid) in _NUMBER.findall(line.text[:300])
            ):
                return line
    return None
