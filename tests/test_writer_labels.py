"""Labels in front of lines: which of them number the writers, and which count something else."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import bank_read_once, clock, judged, reading, steps, traceback

from logtriage.localize.writer_labels import writer_label

CLOSED = "RuntimeError: [../gloo/transport/tcp/pair.cc:5] Connection closed by peer [10.1.1.4]:9\n"

LABELS = (
    "trainer-{}  | ", "llm-worker-{} pytorch ", "trainer/{} ", "[R{}] ", "[GPU{}] ", "[cuda:{}] ",
    "[{}/8] ", "r{}> ", "[worker {}] ", "gpu-a rank{}: ",
)  # fmt: skip


def log(label: str) -> str:
    lines = [f"{label.format(rank)}step {step} loss 2.{step}" for step in range(1, 9) for rank in range(8)]
    lines += [
        f"{label.format(5)}{line}" for line in traceback("ZeroDivisionError: division by zero").splitlines()
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("label", LABELS)
def test_a_label_that_alternates_names_the_rank(tmp_path: Path, label: str) -> None:
    with bank_read_once():
        body = judged(tmp_path, {"train.log": log(label)}).verdict
    assert (body.failure_type, body.culprits.ranks) == ("code.zero_division", (5,))


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"[{epoch}/9] batch {n} loss 2.1\n" for epoch in range(9) for n in range(20)),  # epochs go up
        "".join(f"[{n}/90] Compiling kernel_{n}.cu\n" for n in range(90)),  # each number once
        "".join(f"node-{n}  | step {s} loss 2.1\n" for s in range(9) for n in range(4)),  # machines
        "".join(f"trainer-{n}  | step {s} loss 2.1\n" for s in range(9) for n in (3, 7)),  # not from 0
        "".join(f"[rank{n}]: step {s} loss 2.1\n" for s in range(9) for n in range(4)),  # told without labels
        "\n" * 50,
    ],
)  # fmt: skip
def test_other_numbers_are_no_writers(text: str) -> None:
    label = writer_label(reading("train.log", text).lines)
    assert label is None or "rank" in text


def test_the_rank_behind_determineds_container(tmp_path: Path) -> None:
    text = "".join(
        f"[2026-01-31T08:00:{n:02d}.226970Z] 8d{rank:02d}ca81 [rank={rank}] || INFO: batch {n} loss=2.1\n"
        for n in range(1, 9)
        for rank in range(3)
    )
    text += (
        "[2026-01-31T08:00:20.226970Z] 8d02ca81 [rank=2] || torch.cuda.OutOfMemoryError: CUDA out of memory. "
        "Tried to allocate 3.80 GiB (GPU 1; 39.39 GiB total capacity)\n"
        "[2026-01-31T08:00:21.226970Z]          || ERROR: allocation failed\n"
    )
    assert judged(tmp_path, {"trial.log": text}).verdict.culprits.ranks == (2,)


@pytest.mark.parametrize(
    ("files", "failure_type", "ranks", "hosts"),
    [
        pytest.param(
            {
                "fa3.log": steps(20) + CLOSED,
                "fa4.log": steps(20),
                "journalctl_fa4.txt": "Jan 31 07:59:01 fa4 systemd[1]: Started cron jobs.\n"
                "Jan 31 08:00:41 fa4 smartd[16]: Device: /dev/nvme0, 41 Celsius\n"
                "-- Boot 3f2a0c1d9b8e4f6aa1b2c3d4e5f60718 --\n"
                "Jan 31 08:05:12 fa4 kernel: Linux version 6.8.0-41-generic \n"
                "Jan 31 08:05:12 fa4 systemd-journald[6]: File /j/3f2/system.journal corrupted or "
                "uncleanly shut down, renaming and replacing.\n",
            },
            "host.node_lost",
            None,
            ("fa4",),
            id="a host that booted anew is lost when it last wrote",
        ),
        pytest.param(
            {
                "driver.log": "".join(
                    f"(TrainWorker pid={70 + rank}, ip=10.3.0.{rank // 2 + 1}) [rank {rank}] opening files\n"
                    for rank in range(4)
                )
                + "(TrainWorker pid=70, ip=10.3.0.1) step 5 loss 2.1\n"
                + "".join(
                    f"(TrainWorker pid=73, ip=10.3.0.2) {line}\n"
                    for line in traceback("ZeroDivisionError: division by zero").splitlines()
                )
            },
            "code.zero_division",
            (3,),
            ("10.3.0.2",),
            id="a process that said its rank before",
        ),
        pytest.param(
            {
                "job.log": "".join(
                    f"[1,mpirank:{rank},algo-{rank // 2 + 1}]<stderr>:step {step} loss 2.0\n"
                    for step in range(1, 9)
                    for rank in range(4)
                )
                + "[1,mpirank:3,algo-2]<stderr>:ZeroDivisionError: division by zero\n"
                + f'{clock(60)} toolkit ERROR ErrorMessage "ZeroDivisionError: division by zero"\n'
            },
            "code.zero_division",
            (3,),
            ("algo-2",),
            id="a toolkit that repeats a rank's words",
        ),
        pytest.param(
            {
                "slurm.out": "".join(
                    f"{rank}: step {step} loss 2.0\n"
                    for step in range(1, 9)
                    for rank in range(8)
                    if rank != 5
                )
                + "srun: error: cn2: task 5: Out Of Memory\nsrun: error: cn1: tasks 0-3: Terminated\n"
                + "srun: error: cn2: tasks 4,6-7: Terminated\n"
            },
            "host.out_of_memory",
            (5,),
            ("cn2",),
            id="a task that srun names",
        ),
        pytest.param(
            {
                "node-10.4.0.7/launch.log": steps(9),
                "node-10.4.0.8/launch.log": steps(3) + traceback("KeyError: 'x'"),
            },
            "code.key",
            None,
            ("10.4.0.8",),
            id="a folder named after an address",
        ),
        pytest.param(
            {
                f"bq-{at}.log": "".join(
                    f"{clock(n)} [bq-{at}][rank{8 * at}] step {n} loss 2\n" for n in range(9)
                )
                + (at != 3) * (traceback("ValueError: lost", "wait") + traceback(CLOSED.strip()))
                for at in range(1, 5)
            }
            | {"bq-3.err": ""},
            "collective.remote_error",
            None,
            ("bq-3",),
            id="files that begin with the labels of their hosts",
        ),
    ],
)
def test_who_it_was(
    tmp_path: Path,
    files: dict[str, str],
    failure_type: str,
    ranks: tuple[int, ...] | None,
    hosts: tuple[str, ...],
) -> None:
    body = judged(tmp_path, files).verdict
    assert (body.failure_type, body.culprits.hosts) == (failure_type, hosts)
    assert ranks is None or body.culprits.ranks == ranks


def test_a_year_in_words_dates_lines_that_have_none(tmp_path: Path) -> None:
    pod = (
        "Name:             job-worker-1\nNode:             n7/10.0.0.7\n"
        "Start Time:       Mon, 03 Mar 2025 07:58:10 +0000\nStatus:   Failed\nReason:   Evicted\n"
        "Message:          The node was low on resource: memory.\nContainers:\n  main:\n"
        "    State:          Terminated\n      Reason:       Error\n      Exit Code:    137\n"
    )
    lost = "[rank0]:[E0303 08:26:24.087353611 ProcessGroupNCCL.cpp:1] NCCL error: remote process exited\n"
    body = judged(
        tmp_path, {"describe_1.txt": pod, "master-0.log": " 8%|#  | 51/600 [09:41<9:47, 3.1s/it]\n" + lost}
    )
    assert (body.verdict.failure_type, body.verdict.culprits.hosts) == ("scheduler.preempted", ("n7",))


def test_one_label_a_file_names_the_host_of_its_rank(tmp_path: Path) -> None:
    def of(rank: int, end: str = "") -> str:
        host = f"n4-{rank // 2 + 6:02d}"
        return "".join(f"[{host}:{rank % 2}] {clock(2 * n)} step={n} loss=2.5\n" for n in range(1, 12)) + end

    error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has\n"
    files = {f"rank_{rank}.log": of(rank, error if rank == 3 else "") for rank in range(4)}
    body = judged(tmp_path, files).verdict
    assert (body.culprits.ranks, body.culprits.hosts) == ((3,), ("n4-07",))
