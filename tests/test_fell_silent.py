"""The rank whose signs of life end while its peers still say that they wait."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import judged


def clock(seconds: int) -> str:
    return f"31.01.2026 {8 + seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def of_machine(ranks: range, silent: frozenset[int], *, stands_at: int = 900, until: int = 2400) -> str:
    """Each peer tells every 20 s where it is; the round goes up until it stands."""
    rows = [f"machine has peers {ranks[0]} to {ranks[-1]}\n"]
    for at in range(0, until, 20):
        for peer in ranks:
            if peer in silent and at > stands_at:
                continue
            state = f"waits since {at - stands_at} s" if at > stands_at else "works"
            rows.append(f"{clock(at)} peer {peer} in round {min(at, stands_at) // 4}, {state}\n")
    return "".join(rows)


@pytest.mark.parametrize(
    ("silent", "ranks", "hosts"),
    [({5}, (5,), ("ant-2",)), ({0, 1, 5, 6}, (), ()), (set(), (), ())],
)
def test_who_says_no_more_while_its_peers_wait_is_waited_for(
    tmp_path: Path, silent: set[int], ranks: tuple[int, ...], hosts: tuple[str, ...]
) -> None:
    files = {
        f"ant-{machine}.log": of_machine(range(3 * machine - 3, 3 * machine), frozenset(silent))
        for machine in (1, 2, 3)
    }
    found = judged(tmp_path, files).verdict
    assert found.failure_type == "hang.silent"
    assert (tuple(found.culprits.ranks), tuple(found.culprits.hosts)) == (ranks, hosts)
