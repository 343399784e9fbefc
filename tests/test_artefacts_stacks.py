"""Who stands elsewhere than the others, by the stacks that py-spy, faulthandler and gdb print."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recordings import a_job
from scenes import of_rank, reading

from logtriage import triage
from logtriage.artefacts import tails
from logtriage.artefacts.comparison import Stand
from logtriage.artefacts.stack_text import StackDump, parse_stacks
from logtriage.artefacts.stacks import Process, StackComparison, compare_stacks
from logtriage.intake.folder import discover
from logtriage.report.document import Verdict

IN_ALL_REDUCE = (
    "    all_reduce (torch/distributed/distributed_c10d.py:2806)\n"
    "    wrapper (torch/distributed/c10d_logger.py:81)\n"
    "    reduce_gradients (pretrain.py:88)\n"
)
IN_BARRIER = (
    "    barrier (torch/distributed/distributed_c10d.py:4159)\n"
    "    wrapper (torch/distributed/c10d_logger.py:81)\n"
    "    save_checkpoint (pretrain.py:140)\n"
)
IN_LOADER = (
    "    wait (multiprocessing/connection.py:948)\n"
    "    _try_get_data (torch/utils/data/dataloader.py:1163)\n"
    "    __next__ (torch/utils/data/dataloader.py:701)\n"
    "    next_batch (pretrain.py:44)\n"
)
IN_FORWARD = "    forward (pretrain.py:60)\n"
IN_RECV = (
    "    irecv (torch/distributed/distributed_c10d.py:2100)\n    _communicate (p2p_communication.py:150)\n"
    "    recv_forward (p2p_communication.py:220)\n"
)
IN_SEND = (
    "    isend (torch/distributed/distributed_c10d.py:2050)\n    _communicate (p2p_communication.py:150)\n"
    "    send_forward (p2p_communication.py:260)\n"
)


def spy(pid: int, frames: str, command: str = "python pretrain.py", line: int = 210) -> str:
    """What `py-spy dump` prints of a process with two threads."""
    return (
        f"Process {pid}: {command}\nPython v3.11.7 (/usr/bin/python3.11)\n\n"
        f'Thread {pid} (active): "MainThread"\n{frames}    train (pretrain.py:{line})\n'
        "    <module> (pretrain.py:305)\n"
        f'Thread 0x7F2B00 (idle): "Thread-1 (_monitor)"\n    wait (threading.py:327)\n'
        "    Thread._bootstrap_inner (threading.py:1045)\n    Thread._bootstrap (threading.py:1002)\n"
    )


def dumps(rank: int, text: str) -> list[tuple[Process, StackDump]]:
    process = Process(rank, None, None, "")
    return [(process, dump) for dump in parse_stacks(of_rank(rank, text).lines)]


def compared(frames: Mapping[int, str]) -> StackComparison | None:
    return compare_stacks(
        each for rank, where in frames.items() for each in dumps(rank, spy(100 + rank, where))
    )


def folder(tmp_path: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def check_cited(verdict: Verdict, root: Path) -> None:
    assert verdict.verdict.evidence
    for line in verdict.verdict.evidence:
        assert (root / line.file).read_text().split("\n")[line.line - 1] == line.text


# --- who is odd ------------------------------------------------------------------------------------


def test_the_rank_outside_of_the_collective_is_odd() -> None:
    found = compared({rank: IN_LOADER if rank == 3 else IN_ALL_REDUCE for rank in range(8)})
    assert found is not None and found.stand is Stand.OUTSIDE
    assert [each.rank for each in found.odd] == [3]
    assert found.there.told == "next_batch (pretrain.py:44)" and found.usual.function == "all_reduce"
    assert found.told == (
        "rank 3 stands in next_batch (pretrain.py:44) while ranks 0-2, 4-7 wait in all_reduce "
        "(distributed/distributed_c10d.py:2806)"
    )


def test_of_two_ranks_the_one_outside_of_the_collective_is_odd() -> None:
    found = compared({0: IN_ALL_REDUCE, 1: IN_LOADER})
    assert found is not None and [each.rank for each in found.odd] == [1]


def test_a_rank_in_another_collective_took_another_path() -> None:
    found = compared({rank: IN_BARRIER if rank == 0 else IN_ALL_REDUCE for rank in range(4)})
    assert found is not None and found.stand is Stand.OTHER_COLLECTIVE
    assert [each.rank for each in found.odd] == [0]


def test_where_nobody_is_in_a_collective_the_majority_is_healthy() -> None:
    found = compared({rank: IN_LOADER if rank == 5 else IN_FORWARD for rank in range(8)})
    assert found is not None and found.stand is Stand.ELSEWHERE
    assert [each.rank for each in found.odd] == [5]


def test_the_same_functions_are_told_apart_by_the_line_of_the_program() -> None:
    found = compare_stacks(
        each for rank in range(4) for each in dumps(rank, spy(rank, "", line=77 if rank == 2 else 91))
    )
    assert found is not None and [each.rank for each in found.odd] == [2]
    assert found.there.number == 77 and found.usual.number == 91


@pytest.mark.parametrize(
    "frames",
    [
        dict.fromkeys(range(8), IN_ALL_REDUCE),
        {0: IN_RECV, 1: IN_SEND, 2: IN_SEND, 3: IN_SEND},  # stages of a pipeline
        {0: IN_ALL_REDUCE, 1: IN_LOADER, 2: IN_FORWARD, 3: IN_FORWARD},
        {0: IN_FORWARD, 1: IN_FORWARD, 2: IN_LOADER, 3: IN_LOADER},
        {0: IN_LOADER},
        {},
    ],
    ids=["all alike", "pipeline", "most outside", "even", "alone", "none"],
)
def test_without_a_majority_nobody_is_blamed(frames: dict[int, str]) -> None:
    assert compared(frames) is None


def test_workers_of_data_loaders_and_launchers_are_no_ranks() -> None:
    worker = "    get (queues.py:103)\n    _worker_loop (torch/utils/data/_utils/worker.py:240)\n"
    launcher = (
        "    _invoke_run (torch/distributed/elastic/agent/server/api.py:880)\n    launch_agent (api.py:260)\n"
    )
    found = compared({0: IN_ALL_REDUCE, 1: IN_ALL_REDUCE, 2: worker, 3: launcher})
    assert found is None


def test_several_rounds_vote() -> None:
    """Rank 1 was slow once; rank 6 stood there in every dump."""
    rounds = []
    for number in range(3):
        for rank in range(8):
            odd = rank == 6 or (rank == 1 and number == 1)
            rounds += dumps(rank, spy(rank, IN_FORWARD if odd else IN_ALL_REDUCE))
    found = compare_stacks(rounds)
    assert found is not None and [each.rank for each in found.odd] == [6] and found.rounds == 3
    assert "in 3 dumps in a row" in found.told


@settings(max_examples=40, deadline=None)
@given(st.integers(3, 12), st.data())
def test_addresses_threads_and_order_change_nothing(size: int, data: st.DataObject) -> None:
    odd = data.draw(st.integers(0, size - 1))
    order = data.draw(st.permutations(range(size)))
    native = {
        rank: f"    0x7f{data.draw(st.integers(0, 0xFFFFFF)):06x} (libc.so.6)\n"
        if data.draw(st.booleans())
        else ""
        for rank in range(size)
    }
    found = compare_stacks(
        each
        for rank in order
        for each in dumps(rank, spy(rank * 7, native[rank] + (IN_LOADER if rank == odd else IN_ALL_REDUCE)))
    )
    assert found is not None and [each.rank for each in found.odd] == [odd]


# --- the forms -------------------------------------------------------------------------------------


def test_py_spy_with_variables_and_native_frames() -> None:
    text = (
        "Process 51: python train.py --local_rank=3\nPython v3.10.12 (/usr/bin/python3.10)\n\n"
        'Thread 51 (active+gil): "MainThread"\n    clock_nanosleep (libc.so.6)\n'
        "    std::vector<int>::at(unsigned) (lib.so)\n"
        "    step (train.py:12)\n        Arguments:\n            batch: <Tensor at 0x7f0 (cpu:0)>\n"
        '        Locals:\n            name: "a (b.py:3)"\n'
        "    <module> (train.py:40)\n    0x7f92 (libc.so.6)\n"
        "Thread 0x7F15 (idle)\n    wait (threading.py:320)\n"
    )
    (dump,) = parse_stacks(of_rank(0, text).lines)
    assert (dump.pid, dump.local_rank) == (51, 3)
    assert [thread.name for thread in dump.threads] == [
        "MainThread",
        "",
    ]
    assert [spot.function for spot in dump.threads[0].spots] == [
        "clock_nanosleep", "std::vector<int>::at(unsigned)", "step", "<module>", "0x7f92"
    ]  # fmt: skip
    assert dump.threads[0].spots[2].number == 12 and dump.threads[0].spots[2].line.number == 7


def test_faulthandler_among_log_lines_of_several_ranks() -> None:
    """Two ranks write to one file, line by line in turn, with torchrun's prefixes."""

    def one(function: str) -> list[str]:
        return [
            "Timeout (0:05:00)!", "Thread 0x00007f01 (most recent call first):",
            '  File "/usr/lib/python3.11/threading.py", line 324 in wait',
            '  File "/usr/lib/python3.11/threading.py", line 1002 in _bootstrap', "",
            "Thread 0x00007f02 [python] (most recent call first):",
            f'  File "/workspace/train.py", line 7 in {function}',
            '  File "/workspace/train.py", line 99 in <module>',
        ]  # fmt: skip

    pairs = zip(one("all_reduce"), one("load"), strict=True)
    text = "".join(f"[default0]:{a}\n[default1]:{b}\n" for a, b in pairs)
    found = list(parse_stacks(reading("job.log", text).lines))
    assert [len(dump.threads) for dump in found] == [2, 2]
    assert {dump.rank: dump.threads[1].spots[0].function for dump in found} == {0: "all_reduce", 1: "load"}


def test_gdb_threads_with_python_frames() -> None:
    text = (
        '[New LWP 77]\nThread 2 (Thread 0x7f2 (LWP 77) "pt_nccl"):\n'
        "#0  0x00007f01 in __futex_wait () from /lib/libc.so.6\n"
        "#1  0x00007f02 in start_thread () from /lib/libc.so.6\n"
        '\nThread 1 (Thread 0x7f1 (LWP 70) "python"):\n'
        "#0  0x00007f11 in cuStreamSynchronize () from /usr/lib/libcuda.so.1\n"
        "#1  0x00007f12 in c10d::ProcessGroupNCCL::WorkNCCL::wait (this=0x55, timeout=...) at Work.cpp:700\n"
        "#2  0x00007f13 in _PyEval_EvalFrameDefault (tstate=<optimized out>) at Python/ceval.c:4769\n"
        "#3  Frame 0x7f14, for file /workspace/train.py, line 31, in step (batch=<...>)\n"
        "[Inferior 1 (process 70) detached]\n"
    )
    (dump,) = parse_stacks(of_rank(4, text).lines)
    assert dump.pid == 70 and [thread.ident for thread in dump.threads] == ["2", "1"]
    assert [spot.function for spot in dump.threads[1].spots][-1] == "step"
    assert dump.threads[1].spots[-1].path == "/workspace/train.py"


def test_a_single_gdb_backtrace() -> None:
    text = "#0  0x7f1 in read () from /lib/libc.so.6\n#1  0x7f2 in load_shard (path=0x55) at loader.cc:40\n"
    (dump,) = parse_stacks(of_rank(4, text).lines)
    assert [spot.function for spot in dump.threads[0].spots] == ["read", "load_shard"]


def test_py_spy_json(tmp_path: Path) -> None:
    for rank in range(4):
        names = ("load" if rank == 1 else "all_reduce", "<module>")
        frames = [
            {"name": name, "filename": "/workspace/train.py", "module": None, "short_filename": "train.py",
             "line": 9, "locals": [{"name": "name", "addr": 1, "arg": True, "repr": "1"}]}
            for name in names
        ]  # fmt: skip
        told = [{"pid": 7, "thread_id": 1, "thread_name": "MainThread", "os_thread_id": 7, "active": True,
                 "owns_gil": False, "frames": frames, "process_info": None}]  # fmt: skip
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(told, indent=2))
    verdict = triage(tmp_path, offline=True)
    assert verdict.verdict.culprits.ranks == (1,)
    assert verdict.verdict.evidence[0].text.strip() == '"name": "load",'
    check_cited(verdict, tmp_path)


PROGRAM = """
import faulthandler, os, sys, threading, time
rank = int(os.environ["RANK"])
def all_reduce(x): time.sleep(60)
def load_batch(): time.sleep(60)
def step():
    if rank == 2:
        load_batch()
    all_reduce(1)
print("step 1/10", flush=True)
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
faulthandler.dump_traceback_later(0.2, repeat=True)
step()
"""


def test_processes_that_really_hang_and_dump_themselves(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    logs = tmp_path / "logs"
    logs.mkdir()
    running = []
    for rank in range(4):
        with (logs / f"rank{rank}.log").open("wb") as log:
            running.append(
                subprocess.Popen(
                    [sys.executable, str(tmp_path / "train.py")],
                    env={**os.environ, "RANK": str(rank)}, stdout=log, stderr=log,
                )
            )  # fmt: skip
    try:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline and any(
            (logs / f"rank{rank}.log").read_text().count("Timeout") < 3 for rank in range(4)
        ):
            time.sleep(0.1)
    finally:
        for process in running:
            process.kill()
            process.wait()
    verdict = triage(logs, offline=True)
    body = verdict.verdict
    assert (body.failure_type, body.culprits.ranks) == ("hang.silent", (2,))
    assert "load_batch" in body.evidence[0].text and "all_reduce" in body.evidence[1].text
    check_cited(verdict, logs)


# --- in a verdict ----------------------------------------------------------------------------------


def test_one_file_a_node_with_all_its_processes(tmp_path: Path) -> None:
    """Whose a process is, is told by its local rank where the job has one host."""
    text = "".join(
        spy(500 + local, IN_LOADER if local == 1 else IN_ALL_REDUCE, f"python train.py --local-rank={local}")
        for local in range(4)
    )
    body = triage(folder(tmp_path, {"stacks.txt": text}), offline=True).verdict
    assert body.culprits.ranks == (1,) and "next_batch" in body.summary


def test_ranks_named_by_lines_between_the_dumps(tmp_path: Path) -> None:
    text = "".join(
        f"=== rank {rank} ===\n" + spy(500 + rank, IN_LOADER if rank == 6 else IN_ALL_REDUCE)
        for rank in range(8)
    )
    body = triage(folder(tmp_path, {"all_stacks.txt": text}), offline=True).verdict
    assert body.culprits.ranks == (6,)


def test_processes_without_a_rank_are_named_by_their_number(tmp_path: Path) -> None:
    files = {f"pyspy.{n}.txt": spy(500 + n, IN_LOADER if n == 1 else IN_ALL_REDUCE) for n in range(3)}
    body = triage(folder(tmp_path, files), offline=True).verdict
    assert body.culprits.ranks == () and "process 501" in body.summary.lower()


def test_dumps_after_which_the_process_went_on_say_nothing(tmp_path: Path) -> None:
    steps = "".join(f"2026-09-21 14:00:{s:02d} step {s}/1000 loss 2.3\n" for s in range(30))
    later = "".join(f"2026-09-21 14:01:{s:02d} step {s + 30}/1000 loss 2.3\n" for s in range(30))
    files = {
        f"rank{rank}.log": steps + spy(rank, IN_LOADER if rank == 1 else IN_ALL_REDUCE) + later
        for rank in range(4)
    }
    assert triage(folder(tmp_path, files), offline=True).verdict.failure_type == "none.running"


def test_one_rank_that_crashed_is_no_odd_one_out(tmp_path: Path) -> None:
    crash = (
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f01 (most recent call first):\n"
        '  File "/workspace/train.py", line 7 in decode\n  File "/workspace/train.py", line 99 in <module>\n'
    )
    steps = "".join(f"step {s}/1000 loss 2.3\n" for s in range(30))
    files = {f"rank{rank}.log": steps + (crash if rank == 1 else "") for rank in range(4)}
    body = triage(folder(tmp_path, files), offline=True).verdict
    assert (body.failure_type, body.culprits.ranks) == ("process.native_crash", (1,))


def test_stacks_are_asked_before_the_recorder(tmp_path: Path) -> None:
    """By the recorder rank 5 never joined; by their stacks it was rank 5, too, and what it did instead."""
    job = a_job(8)
    job.ranks[5].freezes_at = 13
    job.run()
    job.write(tmp_path / "fr")
    files = {
        f"stacks/rank{rank}.txt": spy(rank, IN_LOADER if rank == 5 else IN_ALL_REDUCE) for rank in range(8)
    }
    body = triage(folder(tmp_path, files), offline=True).verdict
    assert body.culprits.ranks == (5,) and "next_batch" in body.summary and body.confidence > 0.85


def test_different_collectives_by_the_stacks_are_a_desync(tmp_path: Path) -> None:
    files = {f"rank{rank}.txt": spy(rank, IN_BARRIER if rank == 0 else IN_ALL_REDUCE) for rank in range(4)}
    body = triage(folder(tmp_path, files), offline=True).verdict
    assert (body.failure_type, body.culprits.ranks) == ("collective.desync", (0,))


pieces = st.sampled_from([
    "Process 1: python", 'Thread 1 (active): "MainThread"', "    f (a.py:1)", "rank 3", "[rank2]: hi", "",
    "Thread 0x7f (most recent call first):", '  File "a.py", line 1 in f', "Current thread 0x1 (most",
    "#0  0x1 in f () from x.so", "#1  g (a=1) at b.c:2", "Thread 1 (LWP 3):", "Timeout (0:00:01)!",
    "Fatal Python error: x", "        Locals:", "  x: (", "(" * 300, "#0 " + "(" * 500,
    "Thread " + "9" * 400 + " (idle)", "Process " + "9" * 300 + ": x",
])  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(pieces | st.text(max_size=30), max_size=40))
def test_no_lines_end_the_reading(lines: list[str]) -> None:
    text = "\n".join(lines)
    found = list(parse_stacks(of_rank(0, text).lines))
    for dump in found:
        assert dump.first_line <= dump.last_line
    compare_stacks((Process(number, None, None, ""), dump) for number, dump in enumerate(found))


def test_a_long_log_is_read_at_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tails, "TAIL_BYTES", 32 << 10)
    noise = "2026-09-21 14:00:00 a line of a log that says nothing at all, again and again\n" * 3000
    files = {
        f"rank{n}.log": noise * (n == 0) + spy(n, IN_LOADER if n == 2 else IN_ALL_REDUCE) for n in range(3)
    }
    root = folder(tmp_path, files)
    assert len(discover(root).artefacts) == 3
    verdict = triage(root, offline=True)
    assert verdict.verdict.culprits.ranks == (2,)
    assert verdict.verdict.evidence[1].file == "rank0.log" and verdict.verdict.evidence[1].line > 3000
    check_cited(verdict, root)
