"""Machines that take far longer for the pieces of work that they are dealt, and pieces that never end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from scenes import clock, findings, judged, reading

from logtriage.diagnose.offline import decide

HOSTS = ("wk-3", "wk-4", "wk-6", "wk-9")


def dealt(seconds: Sequence[float], *, rounds: int = 8) -> str:
    """What one who deals out shards tells of each: each machine gets its next one when it is done."""
    done: list[tuple[float, str]] = []
    hosts = [*HOSTS, *(f"wk-{number}" for number in range(20, 30))][: len(seconds)]
    for host, took in zip(hosts, seconds, strict=True):
        done += [
            (took * (number + 1), f"completed shard in {took:.1f} s on {host}") for number in range(rounds)
        ]
    return "".join(f"{clock(at)} INFO dealer: {text}\n" for at, text in sorted(done))


@pytest.mark.parametrize(
    ("seconds", "hosts"),
    [
        ((40, 41, 39, 40), ()),
        ((40, 41, 170, 40), ("wk-6",)),
        ((40, 41, 50, 40), ()),
        ((40, 170, 170, 40), ()),
        ((40,) * 9 + (62,), ()),  # a machine of another kind
    ],
)
def test_a_machine_that_takes_longer_for_each_piece_of_work(
    seconds: tuple[float, ...], hosts: tuple[str, ...]
) -> None:
    slow = findings(reading("dealer.log", dealt(seconds))).slowness
    assert (slow.hosts if slow is not None else ()) == hosts


def of_process(host: str, number: int, took: int) -> str:
    ended = f"{number:02d}:{took // 60:02d}:{took % 60:02d}"
    return (
        f"# Running on {host}\n# Started at Thu Mar 12 {number:02d}:00:00 PDT 2026\n"
        f"LOG read 4000 utterances\nLOG objective -0.11\n"
        f"# Ended (code 0) at Thu Mar 12 {ended} PDT 2026, elapsed time {took} seconds\n"
    )


@pytest.mark.parametrize("slow", [None, "wk-9"])
def test_a_machine_whose_processes_take_longer_though_each_has_a_log_of_its_own(
    tmp_path: Path, slow: str | None
) -> None:
    # The one who starts them names no zone, they do: nobody was silent for the hours between the clocks.
    files = {
        f"jobs/align.{number}.{place}.log": of_process(host, number, 1900 if host == slow else 240 + place)
        for number in range(1, 7)
        for place, host in enumerate(HOSTS)
    }
    files["align.log"] = "".join(
        f"2026-03-12 {part // 6:02d}:{part % 6}0:00,125 [align.py:88 - INFO ] iteration {part}/900 lr 0.004\n"
        for part in range(6, 42)
    )
    verdict = judged(tmp_path, files).verdict
    assert verdict.failure_type == ("none.running" if slow is None else "slow.straggler")
    assert tuple(verdict.culprits.hosts) == (() if slow is None else (slow,))


@pytest.mark.parametrize("slow", [None, "wk-4"])
def test_a_machine_for_whose_work_the_others_say_that_they_wait(slow: str | None) -> None:
    def of_host(host: str) -> str:
        work, wait = (9.1, 0.1) if host == slow else (2.0, 7.2 if slow else 0.2)
        return "".join(
            f"{host}: round {number * 50}, own work {work} s, waited for the others {wait} s\n"
            for number in range(1, 20)
        )

    decision = decide(findings(*(reading(f"{host}.log", of_host(host), host=host) for host in HOSTS)))
    assert decision.culprits.hosts == (() if slow is None else (slow,))
    assert decision.failure_type == ("none.running" if slow is None else "slow.straggler")


def of_dealer(open_piece: int | None, *, quiet: float, count: int = 60) -> str:
    """Work that one deals out to four machines at once, each piece of which takes about 30 s."""
    told: list[tuple[float, str]] = []
    for piece in range(count):
        host, begun = HOSTS[piece % 4], 7.5 * piece
        told.append((begun, f"assigned chunk {piece} of pass 2 to {host}"))
        if piece != open_piece:
            told.append((begun + 28.0, f"chunk writer: completed chunk {piece} of pass 2"))
    end = max(at for at, _ in told) + quiet
    told += [(end - quiet * share / 6, "dealer: lease renewed") for share in range(6)]
    return "".join(f"{clock(at)} INFO {text}\n" for at, text in sorted(told))


@pytest.mark.parametrize(
    ("open_piece", "quiet", "failure_type", "hosts"),
    [
        (None, 30.0, "none.running", ()),
        (50, 9000.0, "hang.silent", ("wk-6",)),
        (50, 60.0, "none.running", ()),  # a long one may still end
    ],
)
def test_a_piece_that_never_ends_is_what_the_job_waits_for(
    open_piece: int | None, quiet: float, failure_type: str, hosts: tuple[str, ...]
) -> None:
    decision = decide(findings(reading("dealer.log", of_dealer(open_piece, quiet=quiet))))
    assert (decision.failure_type, decision.culprits.hosts) == (failure_type, hosts)
    assert not hosts or any("assigned chunk 50 " in each.line.text for each in decision.evidence)
