"""Who wrote a line and where, in the words of launchers that say it in many ways: small jobs of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import WATCHDOG, bank_read_once, behind, clock, judged, place, steps, traceback


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


KEY_ERROR = traceback("KeyError: 'caption'")
OUT_OF_MEMORY = traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.")
NO_KERNEL = traceback("RuntimeError: CUDA error: no kernel image is available for execution on the device")


@pytest.mark.parametrize(
    "label", ["[{host}:{rank}/8] ", "{host}:{rank}: ", "[{host}/{rank}] ", "[{host}:{rank}]: "]
)
def test_a_label_holds_host_and_rank(tmp_path: Path, label: str) -> None:
    text = ""
    for rank in range(8):
        own = label.format(host=f"hx-{rank // 4 + 21}", rank=rank)
        text += behind(own, f"loaded {rank} shards of the tokenizer")
    for rank in range(4, 8):
        text += behind(label.format(host="hx-22", rank=rank), NO_KERNEL)
    text += "all tasks are told to end\nwaiting for other tasks\n"
    body = judged(tmp_path, {"job.out": text}).verdict
    assert (body.failure_type, body.culprits.ranks, body.culprits.hosts) == (
        "cuda.version_mismatch", (4, 5, 6, 7), ("hx-22",)
    )  # fmt: skip


@pytest.mark.parametrize(
    "ends",
    [
        "task 5 on host hx-22 exited with code 1\nlauncher: tasks 0-4,6-7 on hx-21 killed by signal 15\n",
        "rank 5 on node hx-22 failed with exit code 1\nranks 0-4 on hx-21 were terminated by signal 15\n",
        "srun: error: hx-22: task 5: Exited with exit code 1\nsrun: error: hx-21: tasks 0-4: Terminated\n",
        "[1]: host : hx-22 rank : 5 (local_rank: 1) exitcode : 1 (pid: 77)\n",
    ],
)
def test_a_launcher_places_who_ended(tmp_path: Path, ends: str) -> None:
    body = judged(tmp_path, {"job.out": steps(9) + KEY_ERROR + ends}).verdict
    assert (body.failure_type, body.culprits.ranks, body.culprits.hosts) == ("code.key", (5,), ("hx-22",))


LOADS = [
    "[Torch] Loading checkpoint from /c/global_step9/zero_pp_rank_{rank}_mp_rank_00_model_states.pt...",
    "reading /c/step9/__{rank}_0.distcp",
    "loading rng_state_{rank}.pth",
]


@pytest.mark.parametrize("load", LOADS)
def test_the_shards_that_a_host_loads_are_those_of_its_ranks(tmp_path: Path, load: str) -> None:
    """So that the local rank of a command that ended is a global one."""
    text = "".join(f"h-{rank // 4 + 3}: {load.format(rank=rank)}\n" for rank in range(8))
    text += behind("h-4: ", KEY_ERROR)
    text += (
        "h-4: [2026-01-31 08:00:31,100] [ERROR] [launch.py:325:sigkill_handler] ['/usr/bin/python', 't.py', "
        "'--local_rank=2'] exits with return code = 1\n"
    )
    body = judged(tmp_path, {"pdsh.log": text}).verdict
    assert (body.failure_type, body.culprits.ranks, body.culprits.hosts) == ("code.key", (6,), ("h-4",))


def test_the_command_of_the_process_spawned_last_names_nobody(tmp_path: Path) -> None:
    text = "".join(f"h-{rank // 4 + 3}: {LOADS[0].format(rank=rank)}\n" for rank in range(8))
    text += behind("h-4: ", KEY_ERROR)
    text += (
        "h-4: [2026-01-31 08:00:31,100] [ERROR] [launch.py:325:sigkill_handler] ['/usr/bin/python', 't.py', "
        "'--local_rank=3'] exits with return code = 1\n"
    )
    assert judged(tmp_path, {"pdsh.log": text}).verdict.culprits.ranks == ()


def test_torchx_numbers_replicas_and_their_processes(tmp_path: Path) -> None:
    text = "".join(behind(f"sft/{n % 2} [{n % 4}]:", f"step {n} loss 2.1") for n in range(40))
    text += behind("sft/1 [3]:", KEY_ERROR)
    text += behind(
        "sft/1 [0]:",
        "Root Cause (first observed failure):\n  host      : sft-x2k4-sft-1-0\n"
        "  rank      : 7 (local_rank: 3)\n  exitcode  : 1 (pid: 46)\n",
    )
    body = judged(tmp_path, {"torchx.log": text}).verdict
    assert (body.failure_type, body.culprits.ranks) == ("code.key", (7,))
    assert body.culprits.hosts == ("sft-x2k4-sft-1-0",)


def test_skypilot_numbers_nodes(tmp_path: Path) -> None:
    label = "(worker{n}, rank={n}, pid=22{n}, ip=172.31.4.1{n}) "
    text = "".join(behind(label.format(n=n % 2 + 1), f"setting up {n}") for n in range(8))
    text += behind(label.format(n=2), KEY_ERROR)
    text += behind(
        label.format(n=2),
        "E0131 08:01:21.500000 2216 torch/distributed/elastic/multiprocessing/api.py:874] failed "
        "(exitcode: 1) local_rank: 1 (pid: 2241) of binary: /usr/bin/python\n[0]:\n  host      : worker2\n"
        "  rank      : 9 (local_rank: 1)\n  exitcode  : 1 (pid: 2241)\n=====\n",
    )
    body = judged(tmp_path, {"run.log": text}).verdict
    assert (body.failure_type, body.culprits.ranks, body.culprits.hosts) == ("code.key", (9,), ("worker2",))


def test_a_launchers_label_names_the_machine_whatever_nccl_calls_it(tmp_path: Path) -> None:
    text = "".join(
        behind(f"10.4.0.{n % 2 + 6}: ", f"[Rank {n % 2 * 8}] step={n}, skipped=0") for n in range(20)
    )
    text += behind(
        "10.4.0.7: ", "gx07:3121:3998 [3] NCCL WARN NET/IB : mlx5_3:1 Got async event : port error\n"
    )
    text += behind("10.4.0.6: ", "[rank1]: ncclRemoteError: A call failed possibly due to a network error")
    body = judged(tmp_path, {"pdsh.log": text, "hostfile": "10.4.0.6 slots=8\n10.4.0.7 slots=8\n"}).verdict
    assert (body.failure_type, body.culprits.hosts) == ("network.infiniband", ("10.4.0.7",))


def test_who_repeats_the_exception_of_another_rank_is_not_where_it_was_raised(tmp_path: Path) -> None:
    full = "OSError: [Errno 28] No space left on device"
    above = 'Traceback (most recent call last): (RANK 5)\n  File "/a.py", line 3, in w\n'
    first = behind("[rank0]: ", above + full)
    second = behind("[rank5]: ", traceback(full)) + (
        "[0]:\n  host      : cz-2\n  rank      : 5 (local_rank: 1)\n  exitcode  : 1 (pid: 46)\n=====\n"
    )
    body = judged(tmp_path, {"cz-1.log": steps(9) + first, "cz-2.log": second}).verdict
    assert (body.failure_type, body.culprits.ranks, body.culprits.hosts) == (
        "host.disk_full", (5,), ("cz-2",)
    )  # fmt: skip


@pytest.mark.parametrize("name", ["fairseq2", "espnet2", "torch2"])
def test_a_library_with_a_number_is_no_host(tmp_path: Path, name: str) -> None:
    text = "".join(f"2026-01-31 08:{n:02d}:00 INFO {name} Rank 0 - step {n} loss 2.1\n" for n in range(30))
    text += behind("[rank3]: ", OUT_OF_MEMORY) + "srun: error: q-1: tasks 0-3: Exited with exit code 1\n"
    verdict = judged(tmp_path, {"job.log": text})
    assert name not in verdict.job.hosts


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:575] Connection closed by peer "
        "[10.9.1.33]:16062",
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer "
        "[10.9.1.33]:2081",
    ],
)
def test_a_lone_complaint_tells_of_the_other_side(tmp_path: Path, line: str) -> None:
    body = judged(tmp_path, {"rank4.log": steps(9) + traceback(line)}).verdict
    assert (body.failure_type, body.culprits.hosts) == ("collective.remote_error", ("10.9.1.33",))


def test_the_device_that_failed_is_that_of_the_rank_that_says_so(tmp_path: Path) -> None:
    form = "{rank}: ip-10-1-0-{host}:41:42 [1] NCCL WARN NET/OFI Request 0x7f completed with error. "
    form += "RC: {error}\n"
    text = "".join(f"{n % 8}: step {n} loss 2.1\n" for n in range(40))
    text += form.format(rank=2, host=8, error="103. Error: 4123 (Receiver not ready)")
    text += form.format(rank=5, host=9, error="5. Error: 4098 (Internal QP error (local))")
    text += form.format(rank=6, host=9, error="103. Error: 4123 (Receiver not ready)")
    text += "srun: error: ip-10-1-0-9: tasks 4-7: Terminated\n"
    text += "srun: error: ip-10-1-0-8: tasks 0-3: Terminated\n"
    body = judged(tmp_path, {"slurm-9.out": text}).verdict
    assert (body.failure_type, body.culprits.ranks, body.culprits.hosts) == (
        "network.infiniband", (5,), ("ip-10-1-0-9",)
    )  # fmt: skip


@pytest.mark.parametrize(
    "row",
    [
        "  Rank {rank} (node: hq-n02): GPU score 0.47 < threshold 0.70",
        "rank={rank} on hq-n02: speed 0.51 is below the threshold 0.8",
        "WARN rank {rank}, host hq-n02: step time ratio 1.9 > threshold 1.2",
    ],
)
def test_a_detector_holds_ranks_against_its_threshold(tmp_path: Path, row: str) -> None:
    text = "".join(steps(4, first=4 * n + 1, at=8.0 * n) + row.format(rank=13) + "\n" for n in range(9))
    body = judged(tmp_path, {"out.log": text}).verdict
    assert (body.failure_type, body.culprits.ranks) == ("slow.straggler", (13,))
    assert body.culprits.hosts == ("hq-n02",)
    assert body.evidence[0].text == row.format(rank=13)


@pytest.mark.parametrize(
    ("label", "host"),
    [
        pytest.param("[{rank}] ", None, id="Intel MPI"),
        pytest.param("sft-{node} trainer [rank{rank}]: ", "sft-1", id="stern"),
        pytest.param("sft-{node} › trainer [rank{rank}]: ", "sft-1", id="stern with a pointer"),
        pytest.param("llm.sft/{node} [default{local}]:[rank{rank}] ", None, id="TorchX around torchrun"),
        pytest.param("[1,mpirank:{rank},algo-{node}]<stdout>:", "algo-1", id="SageMaker"),
        pytest.param("[{rank}]<stdout>: ", None, id="Horovod"),
    ],
)
def test_labels_of_further_launchers(tmp_path: Path, label: str, host: str | None) -> None:
    def own(rank: int) -> str:
        return label.format(rank=rank, node=rank // 4, local=rank % 4)

    text = "".join(behind(own(rank), f"warm-up {n}") for n in range(6) for rank in range(8))
    body = judged(tmp_path, {"job.log": text + behind(own(6), KEY_ERROR)}).verdict
    assert (body.failure_type, body.culprits.ranks) == ("code.key", (6,))
    assert host is None or body.culprits.hosts == (host,)


def test_what_enumerates_labels_nobody(tmp_path: Path) -> None:
    text = "".join(f"[{n}] loss {3 - n / 100:.2f} lr 1e-4\n" for n in range(90)) + KEY_ERROR
    body = judged(tmp_path, {"job.log": text}).verdict
    assert (body.failure_type, body.culprits.ranks) == ("code.key", ())


LOST = traceback("RuntimeError: DataLoader worker (pid(s) 77) exited unexpectedly")


@pytest.mark.parametrize("name", ["dino_{}.err", "7712_{}/stderr.txt", "part-{}.log"])
@pytest.mark.parametrize("late", [2, 5])
def test_a_file_is_of_the_rank_of_its_number_where_those_beside_it_say_so(
    tmp_path: Path, name: str, late: int
) -> None:
    files = {name.format(rank): LOST if rank == late else WATCHDOG.format(rank=rank, op="ALLREDUCE")
             for rank in range(6)}  # fmt: skip
    expected = (late,) if "/" not in name else ()  # a number of a folder may be the job's
    assert place(tmp_path, files)[0] == expected


@pytest.mark.parametrize(
    ("label", "ranks"),
    [
        ("[Learner-{}]", (3,)),
        ("worker={} |", (3,)),
        ("[fold {}]", ()),  # one after the other
        ("[node {}]", ()),  # of which each may have several
        ("[Learner-7]", ()),  # of another file
    ],
)
def test_labels_that_agree_with_the_number_of_their_file_are_ranks(
    tmp_path: Path, label: str, ranks: tuple[int, ...]
) -> None:
    def text(number: int) -> str:
        lines = [f"{clock(9.0 * at)} {label.format(number)} batch {at} loss 2.1\n" for at in range(1, 20)]
        return "".join(lines) + (LOST if number == 3 else "")

    files = {f"out_{number}.log": text(number) for number in range(5)}
    assert place(tmp_path, files)[0] == ranks


def test_numbers_of_files_some_of_which_are_not_there_tell_no_rank(tmp_path: Path) -> None:
    files = {f"run{n}.err": WATCHDOG.format(rank=n, op="ALLREDUCE") for n in (1, 2, 4, 6)}
    assert place(tmp_path, {**files, "run9.err": LOST})[0] == ()
