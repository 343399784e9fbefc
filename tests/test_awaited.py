"""Who is late is known by who waits for nobody; and forms in which times of devices and of input are told."""

from __future__ import annotations

from pathlib import Path

from scenes import clock, findings, job, judged, reading

from logtriage.localize.durations import timings
from logtriage.localize.slow import Slowness
from logtriage.pipeline import triage

RANKS = 4


def waited(late: int, *, begins: int = 8, size: int = RANKS, field: str = "barrier_wait") -> str:
    """What all ranks print of 30 steps; from one step on all but the late one wait for most of it."""
    return "".join(
        f"[rank {rank}] iter {number} fwd 0.21s bwd 0.4{rank}s "
        f"{field} {(0.02 if rank == late or number < begins else 7.3) + rank / 100:.2f}s\n"
        for number in range(30)
        for rank in range(size)
    )


def told(text: str) -> Slowness | None:
    return findings(reading("train.log", text)).slowness


def test_the_one_rank_that_waits_for_nobody_is_who_all_wait_for() -> None:
    found = told(waited(2))
    assert found is not None and (found.failure_type, found.ranks) == ("slow.straggler", (2,))
    assert "[rank 2] iter 8 " in found.lines[0].text
    assert found.lines[1].text.startswith(("[rank 0] iter 8 ", "[rank 1] iter 8 "))


def test_waits_prove_nothing_where_stages_take_turns_or_all_are_alike() -> None:
    assert told(waited(2, field="recv_wait")) is None
    assert told(waited(late=-1)) is None  # all wait: for what, nobody tells
    assert told(waited(2, begins=30)) is None


def test_of_a_job_of_which_some_ranks_tell_nothing_nobody_is_named() -> None:
    assert told("using world size: 16, data-parallel size: 16\n" + waited(2)) is None


def test_devices_of_machines_are_ranks_where_their_machines_tell_which(tmp_path: Path) -> None:
    def log(node: int, device: int, forward: float, wait: float) -> str:
        head = f"2026-01-31,08:00:00 | INFO | host=ml-{node + 3} global ranks {4 * node}..{4 * node + 3}\n"
        return head + "".join(
            f"2026-01-31,08:{number:02d}:07 | INFO | Train Epoch: 1 [{number * 4096:>8}/4000000] host "
            f"ml-{node + 3} gpu:{device} forward {forward:.3f}s wait {wait:.3f}s Data (t): 0.010 "
            f"Batch (t): 0.910 Loss: 2.{number}\n"
            for number in range(1, 20)
        )

    files = {f"out-{node}.log": log(node, 1, 0.2, 0.5) for node in range(4)}
    files["out-2.log"] = log(2, 3, 0.7, 0.01)
    verdict = judged(tmp_path, files).verdict
    assert verdict.failure_type == "slow.straggler"
    assert (verdict.culprits.ranks, verdict.culprits.hosts) == ((11,), ("ml-5",))


def test_times_in_a_printed_dict_are_read() -> None:
    assert timings("{'lr': 0.1, 'input_wait_ms': 250.0, 'compute_ms': 70.0}") == {
        "input_wait": 0.25,
        "compute": 0.07,
    }


def test_a_job_whose_metrics_are_printed_as_a_dict_waits_for_its_input(tmp_path: Path) -> None:
    text = "".join(
        f"{clock(number)} INFO controller.py:31] step: {number * 50} | output: "
        f"{{'loss': 2.{number % 10}, 'data_wait_ms': {4.1 if number < 9 else 310.5}, 'compute_ms': 80}}\n"
        for number in range(1, 30)
    )
    assert triage(job(tmp_path, {"train.log": text}), offline=True).verdict.failure_type == "slow.data"
