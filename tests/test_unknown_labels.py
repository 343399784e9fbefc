"""Whose a line is behind labels of which nobody knows what they mean."""

from __future__ import annotations

from pathlib import Path

from scenes import clock, judged, traceback


def test_what_pytorch_calls_its_rank_counts_behind_any_label(tmp_path: Path) -> None:
    raised = traceback("FileNotFoundError: [Errno 2] No such file or directory: '/data/a.bin'").splitlines()
    wrote = [f"{clock(at)} INFO step {at} loss 2.1" for at in range(40)]
    text = "".join(f"unit~{9 + at % 2} {line}\n" for at, line in enumerate(wrote))
    text += "".join(f"unit~9 [rank5]: {line}\n" for line in raised)
    verdict = judged(tmp_path, {"all.log": text}).verdict
    assert (verdict.failure_type, verdict.culprits.ranks) == ("code.file_not_found", (5,))


def timed(host: str, ranks: range, slow: bool) -> str:
    """What the ranks of a machine write of each step, with a label that nobody knows."""
    least = 6200 if slow else 4200
    lines = [
        f"{host}-main #{rank} <{clock(6.0 * at + rank * 0.01)}> {host} id={rank}: round {at} "
        f"compute_ms={least + rank + at % 7}.0 wait_ms={6500 - least}.0\n"
        f"{host}-main #{rank} {host}:81{rank}:91{rank} [{rank % 4}] NCCL INFO AllReduce: opCount {at:x}\n"
        for at in range(40)
        for rank in ranks
    ]
    return "".join(lines)


def test_slow_ranks_whose_log_is_one_machine_s_are_of_that_machine(tmp_path: Path) -> None:
    logs = {
        f"part-{node}.log": timed(f"zx{node}a-gpu", range(4 * node, 4 * node + 4), slow=node == 1)
        for node in range(3)
    }
    verdict = judged(tmp_path, logs).verdict
    assert (verdict.failure_type, verdict.culprits.ranks) == ("slow.straggler", (4, 5, 6, 7))
    assert verdict.culprits.hosts == ("zx1a-gpu",)
