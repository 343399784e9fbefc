"""With files missing a verdict becomes less certain, never wrong and certain."""

from __future__ import annotations

from itertools import combinations

import pytest
from scenes import WATCHDOG, clock, findings, of_rank, reading, steps, traceback

from logtriage.diagnose.decision import Decision
from logtriage.diagnose.offline import decide
from logtriage.intake.reading import Reading
from logtriage.model import SourceRole

CERTAIN = 0.9
LOST = (
    f"{clock(62)} ERROR ncclRemoteError: A call failed possibly due to a network error or a remote process "
    "exiting prematurely.\n"
)
KILLED = (
    "E0131 08:01:03.000000 77 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) "
    "local_rank: 0 (pid: 4242) of binary: /usr/bin/python\n"
    "============================================================\n"
    "train.py FAILED\n"
    "------------------------------------------------------------\n"
    "Root Cause (first observed failure):\n"
    "[0]:\n"
    "  time      : 2026-01-31_08:01:02\n"
    "  host      : node-1\n"
    "  rank      : 2 (local_rank: 0)\n"
    "  exitcode  : -9 (pid: 4242)\n"
    "  error_file: <N/A>\n"
    "  traceback : Signal 9 (SIGKILL) received by PID 4242\n"
    "============================================================\n"
)
OOM = (
    "[Sat Jan 31 08:01:01 2026] python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0\n"
    "[Sat Jan 31 08:01:01 2026] Memory cgroup out of memory: Killed process 4242 (python) total-vm:99kB, "
    "anon-rss:99kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:9kB oom_score_adj:0\n"
)


def killed_by_the_kernel() -> list[Reading]:
    return [
        *(
            of_rank(rank, steps(30) + ("" if rank == 2 else LOST), host=f"node-{rank // 2}")
            for rank in range(4)
        ),
        reading("node-1.dmesg", OOM, SourceRole.KERNEL, host="node-1"),
        reading("node-1.out", KILLED, SourceRole.LAUNCHER, host="node-1"),
    ]


def raised_on_one_rank() -> list[Reading]:
    own = traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
    return [
        of_rank(
            rank,
            steps(30) + (own if rank == 2 else WATCHDOG.format(rank=rank, op="ALLREDUCE")),
            host=f"node-{rank // 2}",
        )
        for rank in range(4)
    ]


def what_is_left(job: list[Reading]) -> list[Decision]:
    """The decisions on all that is left when one, two or three files are gone."""
    return [
        decide(findings(*left))
        for gone in (1, 2, 3)
        for left in combinations(job, len(job) - gone)
        if any(each.source.role is SourceRole.WORKER for each in left)
    ]


@pytest.mark.parametrize(
    ("job", "truth", "follows"),
    [
        (killed_by_the_kernel(), "host.out_of_memory", ("process.killed", "collective.remote_error")),
        (raised_on_one_rank(), "cuda.out_of_memory", ("collective.timeout",)),
    ],
)
def test_what_is_missing_never_makes_a_wrong_verdict_certain(
    job: list[Reading], truth: str, follows: tuple[str, ...]
) -> None:
    whole = decide(findings(*job))
    assert (whole.failure_type, whole.culprits.ranks) == (truth, (2,))
    for decision in what_is_left(job):
        if decision.failure_type != truth:
            assert decision.failure_type in (*follows, "unknown", "none.running")
            assert decision.confidence < whole.confidence
            assert decision.confidence <= CERTAIN


def test_where_other_hosts_left_their_kernel_logs_a_missing_one_leaves_doubt() -> None:
    quiet = "[Sat Jan 31 07:00:01 2026] usb 1-1: new high-speed USB device number 2 using xhci_hcd\n" * 3
    job = [
        of_rank(rank, steps(30) + WATCHDOG.format(rank=rank, op="ALLREDUCE"), host=f"node-{rank // 2}")
        for rank in range(4)
    ]
    kernels = [reading(f"{host}.dmesg", quiet, SourceRole.KERNEL, host=host) for host in ("node-0", "node-1")]
    whole, part = decide(findings(*job, *kernels)), decide(findings(*job, *kernels[:1]))
    assert whole.failure_type == part.failure_type == "collective.timeout"
    assert part.confidence < whole.confidence and part.confidence < 0.8


def test_a_lost_peer_of_which_no_launcher_tells_is_not_certain() -> None:
    job = [of_rank(rank, steps(30) + LOST) for rank in range(4)]
    decision = decide(findings(*job))
    assert decision.failure_type == "collective.remote_error"
    assert decision.confidence < 0.8


BROKEN = (
    "{host}:{pid}:99 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.6.0.4<7> "
    "with error 12, opcode 0, len 0, vendor err 129 (Recv)\n"
)


def test_transfers_that_broke_are_no_sure_sign_of_the_network_while_a_rank_s_words_are_missing() -> None:
    def judged_with(last: int) -> Decision:
        rows = [steps(30) + BROKEN.format(host=f"n{rank}", pid=40 + rank) for rank in range(3)]
        logs = [of_rank(rank, f"rank {rank} of 4\n{text}", host=f"n{rank}") for rank, text in enumerate(rows)]
        silent = of_rank(3, f"rank 3 of 4\n{steps(30)}", host="n3")
        known = reading("hosts.txt", "".join(f"rank {rank} on n{rank}, world_size=4\n" for rank in range(4)))
        return decide(findings(*logs, *([silent] if last else []), known))

    with_all, without = judged_with(1), judged_with(0)
    assert with_all.failure_type == without.failure_type == "network.infiniband"
    assert without.confidence < 0.8 < with_all.confidence
