"""Numbers that tell which rank wrote a line, whatever stands before them."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from scenes import clock, judged, reading, traceback

from logtriage.localize.numbered_writers import numbered_writers

RANKS, HOSTS, FAULTY = 16, 4, 9
Labelled = Callable[[int, int], str]


def files(label: Labelled) -> dict[str, str]:
    """What four machines wrote, each the lines of four ranks in any order, one of which fails."""
    told = {}
    for host in range(HOSTS):
        dice = random.Random(host)
        lines = []
        for step in range(40):
            ranks = list(range(4 * host, 4 * host + 4))
            dice.shuffle(ranks)
            lines += [f"{clock(6.0 * step)} {label(rank, dice.randrange(9))} lap done\n" for rank in ranks]
        if host == FAULTY // 4:
            lines.append(f"{clock(250)} {label(FAULTY, 3)} block 4 gave nan, own loss is nan\n")
        told[f"box{host}.log"] = "".join(lines)
    return told


@pytest.mark.parametrize(
    "label",
    [
        lambda rank, other: f"<member {rank}> helper {other} of 9:",
        lambda rank, other: f"(box, elf-{rank}) tray={other}",
        lambda rank, other: f"node={rank % 4} place:{rank} queue {other}",
    ],
)
def test_numbers_in_blocks_of_machines_are_ranks(tmp_path: Path, label: Labelled) -> None:
    forms = numbered_writers([reading(name, text) for name, text in files(label).items()])
    assert set(forms) == {f"box{host}.log" for host in range(HOSTS)}
    for rank in range(RANKS):
        found = forms["box0.log"].match(f"{clock(7)} {label(rank, 5)} lap done")
        assert found is not None and int(found[1]) == rank
    body = judged(tmp_path, files(label)).verdict
    assert (body.failure_type, body.culprits.ranks) == ("numerics.nan", (FAULTY,))


@pytest.mark.parametrize(
    "label",
    [
        lambda rank, other: f"helper {other} of 9:",  # the same numbers everywhere
        lambda rank, other: f"device {rank % 4} says:",
        lambda rank, other: f"elf-{rank * 7 % RANKS} says:",  # of no block
        lambda rank, other: f"elf-{rank + 100} says:",  # not from 0 on
    ],
)
def test_other_numbers_are_none(label: Labelled) -> None:
    assert not numbered_writers([reading(name, text) for name, text in files(label).items()])


def test_ranks_that_lines_tell_are_left_as_they_are() -> None:
    told = files(lambda rank, other: f"[rank{rank}]: elf-{rank} {other}")
    assert not numbered_writers([reading(name, text) for name, text in told.items()])


def test_one_file_alone_tells_nothing() -> None:
    name, text = next(iter(files(lambda rank, _: f"elf-{rank} says:").items()))
    assert not numbered_writers([reading(name, text + traceback("KeyError: 'a'"))])
