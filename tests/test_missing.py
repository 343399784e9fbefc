"""What to collect: only what is not there, from whom, and how much it would help."""

from __future__ import annotations

from pathlib import Path

from scenes import WATCHDOG, judged, steps, traceback

from logtriage.report.document import VerdictBody

KERNEL = "[Sat Jan 31 08:00:01 2026] usb 1-1: new high-speed USB device number 2 using xhci_hcd\n" * 3


def waiting(folder: Path, **more: str) -> VerdictBody:
    """The verdict on four ranks of two nodes of which rank 2 says nothing while the others wait."""
    files = {
        f"node-{rank // 2}/rank{rank}.log": steps(30)
        + ("" if rank == 2 else WATCHDOG.format(rank=rank, op="X"))
        for rank in range(4)
    }
    return judged(folder, files | {name.replace("__", "."): text for name, text in more.items()}).verdict


def test_a_silent_rank_is_asked_for_by_name_and_so_is_its_node(tmp_path: Path) -> None:
    body = waiting(tmp_path)
    assert body.culprits.ranks == (2,)
    stacks = next(each for each in body.collect if each.command and "py-spy" in each.command)
    assert stacks.ranks == (2,) and "rank 2" in stacks.text
    kernel = next(each for each in body.collect if each.command and "dmesg" in each.command)
    assert kernel.hosts == body.culprits.hosts
    assert "host.node_lost" in kernel.tells_apart and kernel.weight > 0
    assert any(each.setting and "TORCH_NCCL_DUMP_ON_TIMEOUT=1" in each.setting for each in body.collect)
    assert body.collect_next == tuple(each.text for each in body.collect)


def test_what_would_help_most_comes_first_and_nothing_helps_more_than_there_is_doubt(tmp_path: Path) -> None:
    body = waiting(tmp_path)
    weights = [each.weight for each in body.collect]
    assert weights == sorted(weights, reverse=True)
    assert max(weights) <= 1 - body.confidence + 0.005


def test_what_is_there_is_not_asked_for(tmp_path: Path) -> None:
    body = waiting(tmp_path, dmesg__log=KERNEL)
    assert not any(each.command and "dmesg" in each.command for each in body.collect)


def test_a_sure_verdict_asks_for_nothing(tmp_path: Path) -> None:
    own = traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
    body = judged(tmp_path, {"rank0.log": steps(30) + own, "rank1.log": steps(30)}).verdict
    assert body.confidence >= 0.9
    assert body.collect == ()
