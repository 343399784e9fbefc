"""Slow without an error: proved by contrast between ranks or within a step, never by speed alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from scenes import clock, findings, judged, of_rank, reading, steps

from logtriage.diagnose.offline import decide
from logtriage.localize.durations import timings
from logtriage.localize.slow import Slowness

FAST, SLOW = 0.2, 0.6


def measured(compute: list[float], wait: list[float], *, data: float = 0.01) -> str:
    """Steps with the time that each spent in its parts."""
    return "".join(
        f"{clock(2.0 * number)} INFO step {number} loss 2.0 data_time: {data:.3f} s "
        f"compute_time: {own:.3f} s comm_time: {other:.3f} s\n"
        for number, (own, other) in enumerate(zip(compute, wait, strict=True), 1)
    )


def told(*texts: str) -> Slowness | None:
    return findings(*(of_rank(rank, text) for rank, text in enumerate(texts))).slowness


def test_durations_are_read_with_their_units() -> None:
    assert timings("step 3 compute_time: 0.25 s comm_time: 120 ms iter 7 loss 2.5") == {
        "compute_time": 0.25,
        "comm_time": pytest.approx(0.12),
    }
    assert timings("data 0.2 compute 610.9 comm 281.2") == {"data": 0.2, "compute": 610.9, "comm": 281.2}
    assert timings("time (ms) backward(ms): 30.5") == {"backward": pytest.approx(0.0305)}
    assert timings("Data Time: 9.5s | Step Time: 2.5s") == {"data_time": 9.5, "step_time": 2.5}
    assert timings("time/load_wait_per_step: 3.5") == {"load_wait": 3.5}


@pytest.mark.parametrize(
    "text", ["", "no numbers", "rank 3 of 8", "loss 2.5 lr 1e-4", "=" * 100_000, "a" * 100_000]
)
def test_what_is_no_duration_is_none(text: str) -> None:
    assert timings(text) == {}


def test_a_rank_that_works_long_while_its_peers_wait_is_the_straggler() -> None:
    peers = measured([FAST] * 20, [SLOW - FAST] * 20)
    slow = measured([SLOW] * 20, [0.01] * 20)
    found = told(peers, peers, slow, peers)
    assert found is not None
    assert (found.failure_type, found.ranks) == ("slow.straggler", (2,))
    assert found.factor == pytest.approx(SLOW / FAST, rel=0.01)
    assert all(line.file == "rank2.log" for line in found.lines)


def test_the_step_from_which_it_was_slow_is_known() -> None:
    peers = measured([FAST] * 40, [0.01] * 20 + [SLOW - FAST] * 20)
    slow = measured([FAST] * 20 + [SLOW] * 20, [0.01] * 40)
    found = told(peers, peers, slow, peers)
    assert found is not None and found.since is not None
    assert "INFO step 21 " in found.since.text


def test_a_slow_rank_for_which_nobody_waits_is_no_straggler() -> None:
    peers = measured([FAST] * 20, [0.01] * 20)
    slow = measured([SLOW] * 20, [0.01] * 20)
    assert told(peers, peers, slow, peers) is None


def test_noise_is_no_straggler() -> None:
    dice = random.Random(7)
    ranks = [
        measured(
            [FAST * dice.uniform(0.7, 1.4) for _ in range(40)],
            [0.05 * dice.uniform(0.5, 2) for _ in range(40)],
        )
        for _ in range(8)
    ]
    assert told(*ranks) is None


def test_one_slow_step_is_no_straggler() -> None:
    peers = measured([FAST] * 20, [0.01] * 10 + [5.0] + [0.01] * 9)
    hiccup = measured([FAST] * 10 + [5.0] + [FAST] * 9, [0.01] * 20)
    assert told(peers, hiccup, peers, peers) is None


def test_where_half_are_slow_nobody_is_the_straggler() -> None:
    fast, slow = measured([FAST] * 20, [SLOW - FAST] * 20), measured([SLOW] * 20, [0.01] * 20)
    assert told(fast, slow, fast, slow) is None


def test_a_job_that_waits_for_its_data_is_starved() -> None:
    found = told(measured([FAST] * 20, [0.01] * 20, data=0.5))
    assert found is not None
    assert (found.failure_type, found.ranks) == ("slow.data", ())
    assert found.lines


def test_a_job_that_hides_its_loading_is_not_starved() -> None:
    assert told(measured([FAST] * 20, [0.01] * 20, data=0.02)) is None


def test_a_few_slow_first_batches_are_not_starvation() -> None:
    warm = measured([FAST] * 20, [0.01] * 20)
    first = measured([FAST] * 2, [0.01] * 2, data=9.0)
    assert told(first + warm) is None


def test_steps_without_durations_prove_nothing() -> None:
    even = "".join(f"{clock(2.0 * step)} INFO step {step} loss 2.0\n" for step in range(1, 20))
    late = "".join(f"{clock(9.0 * step)} INFO step {step} loss 2.0\n" for step in range(1, 20))
    assert told(even, even, late) is None


def test_a_straggler_is_blamed_with_its_host() -> None:
    peers = measured([FAST] * 20, [SLOW - FAST] * 20)
    slow = measured([SLOW] * 20, [0.01] * 20)
    texts = [peers, peers, slow, peers]
    found = findings(*(of_rank(rank, text, host=f"node-{rank // 2}") for rank, text in enumerate(texts)))
    decision = decide(found)
    assert (decision.failure_type, decision.outcome) == ("slow.straggler", "slow")
    assert (decision.culprits.ranks, decision.culprits.hosts) == ((2,), ("node-1",))
    assert decision.evidence[0].line.file == "rank2.log"


def test_an_error_outweighs_slowness() -> None:
    peers = measured([FAST] * 20, [SLOW - FAST] * 20)
    slow = measured([SLOW] * 20, [0.01] * 20)
    error = f"{clock(50)} ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    found = findings(*(of_rank(rank, text) for rank, text in enumerate([peers + error, peers, slow, peers])))
    assert decide(found).failure_type == "cuda.out_of_memory"


def test_durations_in_one_shared_file_are_as_good() -> None:
    lines = [
        f"[rank{rank}]: step {step} loss 2.0 compute_time: {SLOW if rank == 1 else FAST} s "
        f"comm_time: {0.01 if rank == 1 else SLOW - FAST:.2f} s\n"
        for step in range(1, 20)
        for rank in range(4)
    ]
    found = findings(reading("all.log", "".join(lines))).slowness
    assert found is not None
    assert found.ranks == (1,)


def test_one_of_four_hosts_that_all_others_wait_for_is_slow_by_little(tmp_path: Path) -> None:
    def lines(host: str, forward: int, wait: int) -> str:
        return "".join(
            f"{clock(step)} {host} step={step} fwd_ms={forward + step % 3} sync_wait_ms={wait + step % 5}\n"
            for step in range(1, 30)
        )

    usual = {f"{host}.log": lines(host, 500, 350) for host in ("gx-1", "gx-2", "gx-4")}
    verdict = judged(tmp_path, {**usual, "gx-3.log": lines("gx-3", 820, 12)}).verdict
    assert (verdict.failure_type, verdict.culprits.hosts) == ("slow.straggler", ("gx-3",))


def timer_table(step: int, generator: float, *, in_a_line: bool) -> str:
    """What Megatron prints of a step: the batch generator runs within the forward pass."""
    head = f"{clock(8.0 * step)} iteration {step:8d}/ 9000 | elapsed time per iteration (ms): 8000.0 |\n"
    if in_a_line:
        return (
            head
            + f"time (ms) | forward-compute: {generator + 900:.2f} | backward-compute: 1800.00 "
            + f"| batch-generator: {generator:.2f}\n"
        )
    return (
        head
        + "(min, max) time across ranks (ms):\n"
        + f"    forward-backward ......................: ({generator + 2600:.2f}, {generator + 2700:.2f})\n"
        + f"    batch-generator ................................: ({generator - 50:.2f}, {generator:.2f})\n"
        + "    optimizer ......................................: (20.10, 22.30)\n"
    )


@pytest.mark.parametrize("in_a_line", [True, False])
def test_timers_of_megatron_tell_that_a_job_waits_for_data(tmp_path: Path, in_a_line: bool) -> None:
    waiting = "".join(timer_table(step, 4100.0 + step, in_a_line=in_a_line) for step in range(1, 15))
    body = judged(tmp_path / "slow", {"train.log": waiting}).verdict
    assert body.failure_type == "slow.data"
    assert "batch-generator" in body.evidence[0].text
    assert any("workers" in each.text for each in body.mitigations)
    healthy = "".join(timer_table(step, 60.0, in_a_line=in_a_line) for step in range(1, 15))
    assert judged(tmp_path / "well", {"train.log": healthy}).verdict.failure_type == "none.running"


def pipeline_timers(step: int, read: float) -> str:
    """The same of DeepSpeed's pipelines, which read the batch within the forward pass."""
    return (
        f" samples/sec: 61.2 | iteration {10 * step:8d}/  90000 | elapsed time per iteration (ms): "
        f"{read + 3000:.1f} | learning rate: 1.0E-04 | lm_loss: 2.{step:03d}E+00 |\n"
        f"time (ms) | forward: {read + 900:.2f} | batch_input: {read:.2f} | backward: 1800.00 | step: 210.1\n"
    )


def test_the_pipelines_own_timer_of_batches_tells_it_as_well(tmp_path: Path) -> None:
    waiting = "".join(pipeline_timers(step, 9.0 if step < 5 else 7100.0 + step) for step in range(1, 15))
    body = judged(tmp_path / "slow", {"train.log": waiting}).verdict
    assert (body.failure_type, "batch_input: 71" in body.evidence[0].text) == ("slow.data", True)
    healthy = "".join(pipeline_timers(step, 9.0) for step in range(1, 15))
    assert judged(tmp_path / "well", {"train.log": healthy}).verdict.failure_type == "none.running"


def extremes(step: int, slowest: int, worst: float) -> str:
    return (
        f"{clock(9.0 * step)} | MnRtt/Rnk: 3453.08ms/8 | MxRtt/Rnk: {worst:.2f}ms/{slowest} | "
        f"MnPwr/Rnk: 601.79W/8 | MnEtpt/Rnk: 296.02TF/{slowest} | MxEtpt/Rnk: 297.32TF/8\n"
    )


def test_the_slowest_rank_of_each_report_is_a_straggler_if_it_is_far_behind(tmp_path: Path) -> None:
    reports = "".join(extremes(step, 21, 5100.0) for step in range(5, 12))
    before = "".join(extremes(step, (7 * step) % 24, 3468.2) for step in range(5))
    places = "ranks 0-7: cn-a1\nranks 8-15: cn-a2\nranks 16-23: cn-a3\n"
    files = {"train.log": steps(30) + before + reports, "placement.txt": places}
    body = judged(tmp_path / "slow", files).verdict
    assert body.failure_type == "slow.straggler"
    assert (body.culprits.ranks, body.culprits.hosts) == ((21,), ("cn-a3",))
    alike = "".join(extremes(step, 21, 3468.2) for step in range(12))
    assert judged(tmp_path / "a", {"train.log": steps(30) + alike}).verdict.failure_type == "none.running"
    in_turn = "".join(extremes(step, step, 5100.0) for step in range(12))
    assert judged(tmp_path / "b", {"train.log": steps(30) + in_turn}).verdict.failure_type == "none.running"


def test_open_clips_times_are_read() -> None:
    assert timings("Data (t): 5.916 Batch (t): 6.514, 41.874/s") == {"data_time": 5.916, "batch_time": 6.514}


def test_rows_of_ranks_and_of_hosts_name_the_machine_that_is_slow(tmp_path: Path) -> None:
    def of_ranks(slow: int) -> str:
        return "times across ranks (ms):\n" + "".join(
            f"    rank {rank:2d} (cn-{rank // 4 + 1}): forward-backward-compute "
            f"{9100.5 if rank // 4 == slow else 5200.0 + rank}  wait-in-collectives "
            f"{90.0 if rank // 4 == slow else 4000.0}\n"
            for rank in range(0, 16, 2)
        )

    def of_hosts(slow: int) -> str:
        return "".join(
            f"  xb{at} ranks {4 * at}-{4 * at + 3}: h2d_copy {1.31 if at == slow else 0.05 + at / 1000:.3f}s "
            f"wait_allreduce {0.06 if at == slow else 1.3:.3f}s\n"
            for at in range(4)
        )

    def many(table: object) -> str:
        return "".join(steps(1, first=n, at=9.0 * n) + table(2) for n in range(1, 10))  # type: ignore[operator]

    first = judged(tmp_path / "ranks", {"train.log": many(of_ranks)}).verdict
    assert (first.failure_type, first.culprits.hosts) == ("slow.straggler", ("cn-3",))
    second = judged(tmp_path / "hosts", {"train.log": many(of_hosts)}).verdict
    assert (second.failure_type, second.culprits.hosts) == ("slow.straggler", ("xb2",))
    assert second.culprits.ranks == (8, 9, 10, 11)


def test_a_host_whose_lines_tell_no_rank_is_held_against_the_others(tmp_path: Path) -> None:
    def of(host: str, own: float, wait: float) -> str:
        return "".join(
            f"{clock(6.0 * n)[11:]} [{host}] step {n} fwd_bwd {own + n / 1000:.2f}s grad_sync_wait {wait}s\n"
            for n in range(1, 30)
        )

    files = {f"run.k{n}.out": of(f"k{n}", *((5.9, 0.1) if n == 3 else (2.0, 4.0))) for n in range(1, 5)}
    body = judged(tmp_path, files).verdict
    assert (body.failure_type, body.culprits.hosts) == ("slow.straggler", ("k3",))
    alike = {f"run.k{n}.out": of(f"k{n}", 2.0, 4.0) for n in range(1, 5)}
    assert not judged(tmp_path / "b", alike).verdict.failure_type.startswith("slow.")


def test_of_two_ranks_the_one_for_which_the_other_waits(tmp_path: Path) -> None:
    def of(rank: int, own: float, wait: float) -> str:
        return "".join(
            f'{{"ts": "2026-01-31T08:{n:02d}:00Z", "host": "rk-{rank}", "rank": {rank}, "step": {n}, '
            f'"loss": 2.5, "compute_s": {own + n / 1000:.3f}, "allreduce_wait_s": {wait}}}\n'
            for n in range(1, 50)
        )

    files = {"a.jsonl": of(0, 1.8, 4.1), "b.jsonl": of(1, 5.6, 0.2)}
    body = judged(tmp_path, files).verdict
    assert (body.failure_type, body.culprits.ranks) == ("slow.straggler", (1,))
    even = {"a.jsonl": of(0, 1.8, 0.4), "b.jsonl": of(1, 3.6, 0.2)}
    assert judged(tmp_path / "b", even).verdict.failure_type == "none.running"


def together(step: float, own: float, read: float = 0.001) -> str:
    """Steps that take as long on every rank; each tells its own part, but nobody how long it waits."""
    return "".join(
        f"{clock(2.0 * at)} INFO update {at} "
        f"step_time {step:.3f} fwd_bwd_time {own:.3f} data_time {read:.4f}\n"
        for at in range(1, 16)
    )


@pytest.mark.parametrize(
    ("own", "is_slow"), [((0.03, 0.36), True), ((0.14, 0.15), False), ((0.02, 0.06), False)]
)
def test_of_two_ranks_the_one_whose_own_part_fills_the_step(own: tuple[float, float], is_slow: bool) -> None:
    found = told(*(together(0.4, each) for each in own))
    assert (found is not None and found.ranks == (1,)) == is_slow


def test_a_rank_that_waits_for_its_data_lets_the_others_wait(tmp_path: Path) -> None:
    found = told(together(0.9, 0.05), together(0.9, 0.05, read=0.8))
    assert found is not None and (found.failure_type, found.ranks) == ("slow.data", ())
    assert told(together(0.9, 0.05), together(0.9, 0.05, read=0.1)) is None


def table(form: str, at: int, slow: int, now: bool) -> str:
    """A row of the host (or rank) `at`: its own work, the wait for the others, the optimizer's time."""
    own, wait = (6020.5, 20.1) if at == slow and now else (2711.0 + at, 3300.0 - at)
    return form.format(at=at, host=f"mi-{at + 40}", own=own, wait=wait, first=4 * at, last=4 * at + 3)


@pytest.mark.parametrize(
    ("heading", "row"),
    [
        ("times per rank, forward-compute / reduce-wait / optimizer (ms):",
         "   rank {at:3d} ({host}): {own} / {wait} / 9.1"),
        ("rank | host | fwd_bwd | comm_wait | optimizer (ms)", " {at} | {host} | {own} | {wait} | 9.1"),
        ("perf: per-host forward+backward over 50 steps (ms), before all-reduce",
         "perf:   {host} ranks {first}-{last}   {own}   wait {wait}"),
        ("host            compute_ms   wait_ms", "{host}           {own}       {wait}"),
        ("mean step compute by node (ms):", "  {host}: {own}"),
        ("node,compute (ms),wait (ms)", "{host},{own},{wait}"),
    ],
)  # fmt: skip
def test_bare_values_are_named_by_the_heading_of_their_table(tmp_path: Path, heading: str, row: str) -> None:
    def log(slow: int) -> str:
        return "".join(
            steps(5, first=5 * n, at=20.0 * n - 10)
            + f"{clock(20.0 * n + 1)} INFO {heading}\n"
            + "".join(f"{clock(20.0 * n + 1)} INFO {table(row, at, slow, n > 4)}\n" for at in range(6))
            for n in range(1, 16)
        )

    body = judged(tmp_path / "slow", {"train.log": log(3)}).verdict
    assert (body.failure_type, body.culprits.hosts) == ("slow.straggler", ("mi-43",))
    assert judged(tmp_path / "even", {"train.log": log(99)}).verdict.failure_type == "none.running"


PROFILED = """FIT Profiler Report

|  Action                                      |  Mean duration (s) |  Num calls |  Total time (s) |  %  |
|  Total                                       |  -                 |  9031      |  412.5          | 100 |
|  run_training_epoch                          |  201.1             |  2         |  402.2          | 97  |
|  [_TrainingEpochLoop].train_dataloader_next  |  {mean}            |  400       |  {total}        | 70  |
|  run_training_batch                          |  0.12              |  400       |  48.2           | 11  |
"""


@pytest.mark.parametrize(("total", "is_slow"), [(320.0, True), (8.0, False)])
def test_a_profiler_that_sums_up_the_run_shows_that_it_waited_for_data(total: float, is_slow: bool) -> None:
    table = PROFILED.format(mean=total / 400, total=total)
    slow = findings(of_rank(0, steps(20) + table)).slowness
    assert (slow is not None and slow.failure_type == "slow.data") is is_slow


def of_ranges(label: Callable[[int, int], str], slow: int) -> str:
    """Eight steps of four hosts with four ranks each, of whom one works longer while the others wait."""
    return "".join(
        f"{label(step, host)}ranks {4 * host}-{4 * host + 3}: compute={SLOW if host == slow else FAST}s "
        f"comm_wait={0.01 if host == slow else SLOW - FAST}s\n"
        for step in range(8)
        for host in range(4)
    )


@pytest.mark.parametrize(
    ("label", "hosts"),
    [
        (lambda step, host: f"{clock(60.0 * step)}\tcn-{host}:0\ttimes:71\tINFO\t[step={step}] ", ("cn-2",)),
        (lambda step, host: f"{clock(60.0 * step)} INFO [step={step}] ", ()),
    ],
    ids=["each host of itself", "one of all ranks"],
)
def test_times_are_told_of_several_ranks_together(
    tmp_path: Path, label: Callable[[int, int], str], hosts: tuple[str, ...]
) -> None:
    verdict = judged(tmp_path, {"train.log": of_ranges(label, 2)}).verdict
    assert verdict.failure_type == "slow.straggler"
    assert (verdict.culprits.ranks, verdict.culprits.hosts) == ((8, 9, 10, 11), hosts)


@pytest.mark.parametrize("begins", [3, 9])
def test_the_step_from_which_on_a_job_waits_for_its_data_is_cited(tmp_path: Path, begins: int) -> None:
    text = "".join(
        f"Epoch: [1][{20 * step}/5005] Time {0.2 if step < begins else 8 + step % 7 / 10:.3f} "
        f"Data {0.03 if step < begins else 7.6 + step % 7 / 10:.3f} Loss 2.1\n"
        for step in range(40)
    )
    body = judged(tmp_path, {"train.log": text}).verdict
    assert body.failure_type == "slow.data"
    assert any(f"[{20 * begins}/5005]" in each.text for each in body.evidence[:3])


@pytest.mark.parametrize(("waits", "is_slow"), [((10.2, 20.4), True), ((3.1,), False), ((), False)])
def test_a_loader_that_complains_between_most_steps_shows_that_they_wait(
    waits: tuple[float, ...], is_slow: bool
) -> None:
    said = "{at} WARN reader: loading data is slow: waited {waited} seconds for the next 64 samples\n"
    text = "".join(
        "".join(said.format(at=clock(30 * n + waited), waited=waited) for waited in waits)
        + f"{clock(30 * n + 28)} INFO step {n} loss 2.1\n"
        for n in range(20)
    )
    slow = findings(of_rank(0, text)).slowness
    assert (slow is not None and slow.failure_type == "slow.data") is is_slow


@pytest.mark.parametrize(("waited", "is_slow"), [(7.5, True), (0.4, False)])
def test_a_wait_that_is_told_beside_a_bar_is_held_against_its_pace(waited: float, is_slow: bool) -> None:
    text = "".join(
        f"loader: waited for the next batch for {waited + n % 3 / 10:.1f} sec\n"
        f"train:  {n}%|#    | {n}/100 [{n // 6:02d}:{10 * n % 60:02d}<16:40, 10.0{n % 9}s/it, loss=2.{n}]\n"
        for n in range(1, 25)
    )
    slow = findings(of_rank(0, text)).slowness
    assert (slow is not None and slow.failure_type == "slow.data") is is_slow


def pace(rank: int, times: list[float], own: float) -> str:
    """What was read of one rank among many: few of its steps."""
    return "".join(
        f"[rank{rank}] {clock(at)} INFO step {int(at / 2)} compute={own + at / 1e5:.4f}s wait={1 - own}s\n"
        for at in times
    )


@pytest.mark.parametrize(("own", "ranks"), [(0.9, tuple(range(20, 24))), (0.5, None)])
def test_of_very_many_ranks_those_of_a_machine_tell_together_that_it_is_slow(
    own: float, ranks: tuple[int, ...] | None
) -> None:
    logs = [
        reading(
            f"m{host}.log",
            "".join(
                pace(rank, [8.0 * rank + 2 * step for step in range(5 if rank % 8 == 0 else 2)], mine)
                for rank in range(4 * host, 4 * host + 4)
            ),
            host=f"m{host}",
        )
        for host in range(12)
        for mine in [own if host == 5 else 0.5]
    ]
    found = findings(*logs).slowness
    assert (found.ranks if found is not None else None) == ranks


@pytest.mark.parametrize(("last", "size"), [([10.0], 8), ([10.0, 70.0], 7)])
def test_a_rank_beside_slow_ones_is_slow_unless_it_told_of_a_usual_time_since(
    last: list[float], size: int
) -> None:
    def of(rank: int) -> str:
        early = [2.0 * step for step in range(1, 20)]
        late = [2.0 * step for step in range(20, 40)]
        if rank == 7:
            return pace(rank, last, 0.5)
        return pace(rank, early, 0.5) + pace(rank, late, 0.9 if rank < 7 else 0.5)

    logs = [
        reading(f"m{host}.log", "".join(map(of, range(8 * host, 8 * host + 8))), host=f"m{host}")
        for host in range(4)
    ]
    found = findings(*logs).slowness
    assert found is not None
    assert found.ranks == tuple(range(size))


@pytest.mark.parametrize(("waited", "is_slow"), [(6.0, True), (0.1, False)])
def test_metrics_one_a_line_below_their_step_tell_that_it_waits_for_data(
    waited: float, is_slow: bool
) -> None:
    text = "".join(
        f"[batch={step}/900]:\n   * loss/total: 2.{step}\n   * time/data_wait_per_step: {waited}\n"
        f"   * time/compute_per_step: 2.5\n   * tokens/total: {step * 4096}\n"
        for step in range(1, 30)
    )
    found = findings(reading("out.log", text)).slowness
    assert (found is not None and found.failure_type == "slow.data") == is_slow
    assert found is None or "data_wait" in found.lines[0].text


def test_a_slow_rank_has_its_host_where_that_of_no_other_rank_is_known() -> None:
    peers = measured([FAST] * 20, [SLOW - FAST] * 20)
    slow = measured([SLOW] * 20, [0.01] * 20)
    texts = {0: peers, 8: peers, 16: slow, 24: peers}
    found = findings(
        *(of_rank(rank, text, host="gpu-c" if rank == 16 else None) for rank, text in texts.items())
    )
    assert decide(found).culprits.hosts == ("gpu-c",)


def test_of_a_rank_that_was_slow_all_along_its_first_steps_are_cited() -> None:
    slow = measured([SLOW + number / 1000 for number in range(20)], [0.01] * 20)
    found = told(*[measured([FAST] * 20, [SLOW - FAST] * 20)] * 3, slow)
    assert found is not None and [line.number for line in found.lines] == [20, 1]


def bursts(every: int, wait: float, count: int = 60, words: str = "load_s:{wait:.3f} updt_s:0.310") -> str:
    """Steps of which every n-th waits."""
    return "".join(
        f"{clock(number)} INFO step {number} loss 2.1 "
        + words.format(wait=wait if number % every == 0 else 0.004)
        + "\n"
        for number in range(count)
    )


SAID = "| took {wait:.2f}s, of which waiting for the next batch {wait:.2f}s, forward 0.31s"


@pytest.mark.parametrize(
    ("text", "failure_type"),
    [
        pytest.param(bursts(7, 9.0), "slow.data", id="every-seventh"),
        pytest.param(bursts(7, 9.0, words=SAID), "slow.data", id="in-words"),
        pytest.param(bursts(7, 0.9), "none.running", id="a-third-of-the-time"),
        pytest.param(bursts(60, 90.0), "none.running", id="the-first-starts-the-workers"),
        pytest.param(bursts(40, 90.0), "none.running", id="one-long-wait"),
        pytest.param(bursts(7, 9.0, count=18), "none.running", id="too-few-steps"),
    ],
)
def test_steps_of_which_every_nth_waits_for_data(text: str, failure_type: str) -> None:
    assert decide(findings(reading("train.log", text))).failure_type == failure_type


def test_the_ranks_that_a_slowed_down_device_holds_up_are_named(tmp_path: Path) -> None:
    columns = "timestamp, index, temperature.gpu, clocks.sm, clocks_throttle_reasons.hw_thermal_slowdown\n"
    states = "".join(
        f"2026/02/03 10:{minute:02}:00.000, {gpu}, {state}\n"
        for minute in range(8)
        for gpu, state in enumerate([*["55, 1410 MHz, Not Active"] * 2, "88, 420 MHz, Active"])
    )
    files = {
        f"rank{rank}.log": f"{clock(0)} INFO rank {rank} on tn-{rank // 4}\n"
        + measured([SLOW if rank == 6 else FAST] * 60, [0.01 if rank == 6 else SLOW] * 60)
        for rank in range(8)
    }
    verdict = judged(tmp_path, {**files, "tn-1_gpu_state.csv": columns + states}).verdict
    assert verdict.failure_type == "gpu.thermal_power"
    assert (list(verdict.culprits.ranks), list(verdict.culprits.hosts)) == ([6], ["tn-1"])


def test_an_average_behind_a_metric_and_the_phase_before_its_name_hide_no_wait() -> None:
    below = "".join(
        f"--> STEP: {step}/9000 -- GLOBAL_STEP: {step}\n     | > loss: 0.0{step}  (0.0718812)\n"
        f"     | > step_time: 0.31  (0.3088812)\n     | > loader_time: 2.7{step}  (2.7132)\n\n"
        for step in range(10, 30)
    )
    phases = "".join(
        f"{clock(3.0 * step)} INFO step {step} train.data_time : 2.4 s train.compute_time : 0.4 s\n"
        for step in range(1, 30)
    )
    for text in (below, phases):
        found = findings(reading("out.log", text)).slowness
        assert found is not None
        assert found.failure_type == "slow.data"


def epochs_after(reads: float, words: str) -> str:
    """Epochs of 50 steps in 100 s, before each of which a count goes up to its total."""
    text, now = "", 0.0
    for epoch in range(1, 7):
        text += f"Epoch {epoch}/30\n"
        for part in range(1, 11):
            now += reads / 10
            text += f"{clock(now)} INFO {words} {part * 400} of 4000\n"
        for step in (25, 50):
            now += 50.0
            text += f"{clock(now)} INFO step {step}/50 loss 2.{epoch}\n"
    return text


@pytest.mark.parametrize(
    ("reads", "words", "failure_type"),
    [
        (300.0, "reading clips into the pool:", "slow.data"),
        (10.0, "reading clips into the pool:", "none.running"),
        (300.0, "evaluating, clips read:", "none.running"),
        (300.0, "loading model shards:", "none.running"),
    ],
)
def test_input_that_is_read_anew_before_each_epoch_for_longer_than_it_takes(
    reads: float, words: str, failure_type: str
) -> None:
    assert decide(findings(reading("out.log", epochs_after(reads, words)))).failure_type == failure_type


@pytest.mark.parametrize(
    ("load", "late", "hosts"), [(188.3, 9.0, ("cn-7",)), (188.3, 2.0, ()), (11.2, 9.0, ())]
)
def test_a_machine_of_far_more_load_than_the_others_holds_slow_steps_up(
    load: float, late: float, hosts: tuple[str, ...]
) -> None:
    text = steps(40, every=2.0) + steps(40, first=41, at=80.0, every=late)
    loads = {"cn-4": 8.1, "cn-5": 7.9, "cn-7": load, "cn-8": 8.4}
    look = "".join(
        f"=== {host} ===\n 09:0{at}:11 up 31 days,  2 users,  load average: {now}, {now}, 8.00\n"
        for at, (host, now) in enumerate(loads.items())
    )
    slow = findings(reading("out.log", text), reading("look.txt", look)).slowness
    assert (slow.hosts if slow is not None else ()) == hosts


@pytest.mark.parametrize(
    ("form", "late", "expected"),
    [
        ("compute: median 1.9 s, longest {:.1f} s (nd-{})", 6.2, ((), ("nd-5",))),
        ("compute avg=1.9 s, max={:.1f} s on rank {}", 6.2, ((5,), ())),
        ("compute: typical 1.9 s; slowest rank {1} with {0:.1f} s", 6.2, ((5,), ())),
        ("compute: median 1.9 s, longest {:.1f} s (nd-{})", 2.1, None),  # somebody is always the slowest
        ("queue: median 1.9 s, longest {:.1f} s (attempt {})", 6.2, None),
    ],
)
def test_who_is_the_slowest_of_each_report_in_words(
    form: str, late: float, expected: tuple[tuple[int, ...], tuple[str, ...]] | None
) -> None:
    text = "".join(
        f"{clock(5.0 * step)} INFO step {step} loss 2.5; "
        + (form.format(2.0, step % 7) if step < 20 else form.format(late, 5))
        + "\n"
        for step in range(1, 40)
    )
    slow = findings(reading("out.log", text)).slowness
    assert ((slow.ranks, slow.hosts) if slow is not None else None) == expected


@pytest.mark.parametrize(
    ("form", "slow", "expected"),
    [
        ("local throughput {} samples/s", 118.5, (2,)),
        ("loss 2.1 | images_per_sec: {} | lr 0.1", 118.5, (2,)),
        ("local throughput {} samples/s", 701.3, ()),  # somebody always is a little slower
        ("reading at {} MB/s", 118.5, ()),
        (
            "Generating:  41%|████     | 41/100 [00:41<00:59, {} tokens/s]",
            118.5,
            (),
        ),  # each its own questions
    ],
)
def test_a_rank_that_gets_far_less_done_in_a_second(
    form: str, slow: float, expected: tuple[int, ...]
) -> None:
    texts = [
        "".join(
            f"{clock(5.0 * step)} INFO step {step} "
            + form.format((slow if rank == 2 else 812.4) + step % 3)
            + "\n"
            for step in range(1, 30)
        )
        for rank in range(4)
    ]
    found = told(*texts)
    assert (found.ranks if found is not None else ()) == expected


def test_a_host_that_gets_far_less_done_in_a_second() -> None:
    texts = {
        host: "".join(
            f"{host}: round {step}, {31.2 if host == 'nd-6' else 240.5 + step % 5} batches/s\n"
            for step in range(1, 30)
        )
        for host in ("nd-2", "nd-4", "nd-6", "nd-9")
    }
    slow = findings(*(reading(f"{host}.log", text, host=host) for host, text in texts.items())).slowness
    assert slow is not None
    assert slow.hosts == ("nd-6",)
