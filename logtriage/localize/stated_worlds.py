"""Rank to host as launchers state it of the whole job before they start it: DeepSpeed's world, Paddle's list.

Of a host whose processes never came up no line tells its ranks; what the launcher meant to start there does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from logtriage.model import Line
from logtriage.regex import regex

# `WORLD INFO DICT: {'cn-1': [0, 1], 'cn-2': [0, 1]}`: devices of each host; ranks count on in this order.
_WORLD = regex(r"WORLD INFO DICT: \{(?P<hosts>'[\w.-]{1,200}': \[[\d, ]{0,400}\](?:, ?'[^}\n]{0,60000})?)\}")
_DEVICES = regex(r"'(?P<host>[\w.-]{1,200})': \[(?P<devices>[\d, ]{0,400})\]")
# What Paddle's launchers print before they start: `ips: 10.0.0.4,10.0.0.5`, and in a table of the environment
# `PADDLE_TRAINERS_NUM    16`.
_ADDRESSES = regex(r"(?:^|\s)ips: (?P<hosts>[\w.-]{1,200}(?:,[\w.-]{1,200}){1,999})\s*$")
_TRAINERS = regex(r"\bPADDLE_TRAINERS_NUM\s{1,80}(?P<size>\d{1,6})\b")
MOST_TRAINERS = 100_000


def stated_worlds(lines: Iterable[Line]) -> Iterator[tuple[int, str]]:
    """Ranks and their hosts."""
    given: tuple[str, ...] = ()
    trainers = 0
    for line in lines:
        text = line.text[:65_536]
        if "WORLD INFO DICT: " in text and (world := _WORLD.search(text)) is not None:
            rank = 0
            for host, devices in _DEVICES.findall(world["hosts"]):
                for _ in devices.split(","):
                    yield rank, host
                    rank += 1
        elif "ips: " in text and (found := _ADDRESSES.search(text)) is not None:
            given = tuple(dict.fromkeys(found["hosts"].split(",")))
        elif "PADDLE_TRAINERS_NUM" in text and (number := _TRAINERS.search(text)) is not None:
            trainers = int(number["size"])
    if len(given) > 1 and len(given) <= trainers <= MOST_TRAINERS and trainers % len(given) == 0:
        each = trainers // len(given)
        yield from ((rank, given[rank // each]) for rank in range(trainers))
