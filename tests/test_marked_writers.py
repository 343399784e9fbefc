"""Writers that labels, headings, file names and tables mark, each in a small job of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, behind, clock, judged, steps, traceback

from logtriage.intake.names import identify
from logtriage.report.document import VerdictBody

ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered"
REMOTE = "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, remote process exited"
WATCHDOG = (
    "[rank{rank}]:[E131 08:30:00.100000000 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, "
    "Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
)


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


def verdict(folder: Path, **files: str) -> VerdictBody:
    return judged(folder, {name.replace("__", "."): text for name, text in files.items()}).verdict


def named(body: VerdictBody) -> tuple[str, tuple[int, ...], tuple[str, ...]]:
    return body.failure_type, body.culprits.ranks, body.culprits.hosts


def test_hosts_in_brackets_that_do_not_take_turns_but_stand_before_ranks(tmp_path: Path) -> None:
    log = (
        behind("[q7-n3] ", steps(30))
        + behind("[q9-n1] [rank9]: ", traceback(ECC))
        + behind("[q8-n2] [rank5]: ", REMOTE)
    )
    assert named(verdict(tmp_path, out__log=log)) == ("gpu.ecc_uncorrectable", (9,), ("q9-n1",))


def test_labels_that_say_themselves_that_they_name_a_machine(tmp_path: Path) -> None:
    def line(host: str, rank: int, at: float, text: str) -> str:
        return behind(f"[{clock(at)}] c0ffee [node={host}] [rank={rank}] || ", text)

    log = "".join(line("hx-a", 0, at, f"INFO: step {at} loss 2.5") for at in range(20))
    log += line("hx-b", 11, 30, traceback(ECC)) + line("hx-a", 2, 31, REMOTE)
    assert named(verdict(tmp_path, trial__log=log)) == ("gpu.ecc_uncorrectable", (11,), ("hx-b",))


def test_ranks_that_introduce_themselves_behind_the_label_of_a_host_without_a_number(tmp_path: Path) -> None:
    hosts = ("trainer-a", "trainer-b", "trainer-c")
    log = "".join(f"{hosts[rank // 2]}: rank {rank} of 6 is up (gpu {rank % 2})\n" for rank in range(6))
    log += "".join(f"{host}: {clock(at)} step {at} loss 2.1\n" for at in range(1, 20) for host in hosts)
    log += (
        "trainer-a: RuntimeError: [Rank 0]: Ranks 4, 5 failed to pass monitoredBarrier in 600000 ms\n"
        "trainer-b: RuntimeError: Rank 2 successfully reached monitoredBarrier, but received errors while "
        "waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank.\n"
    )
    assert named(verdict(tmp_path, pdsh__log=log)) == ("collective.timeout", (4, 5), ("trainer-c",))


def test_files_of_a_row_in_which_ranks_follow_each_other_are_machines(tmp_path: Path) -> None:
    body = verdict(
        tmp_path,
        **{
            f"hz-b{host}__log": "".join(WATCHDOG.format(rank=rank) for rank in ranks)
            for host, ranks in ((1, (0, 1, 2, 3)), (2, (4, 5, 7)))
        },
        analysis__txt=(
            "Not all ranks joining collective, sequence number: 9\ncollective: nccl:all_reduce\n"
            "missing ranks: {6}\nworld size: 8\n"
        ),
    )
    assert named(body) == ("collective.timeout", (6,), ("hz-b2",))
    assert any("missing ranks: {6}" in each.text for each in body.evidence)


def test_files_that_slurm_named_after_a_job_and_numbered_are_no_machines(tmp_path: Path) -> None:
    nodes = {
        f"log-pretrain-9b_70411_{node}__out": "".join(
            f"{rank}: {clock(2.0 * step)} rank={rank} step {step} loss 2.5\n"
            for step in range(20)
            for rank in (2 * node, 2 * node + 1)
        )
        for node in range(3)
    }
    nodes["log-pretrain-9b_70411_1__out"] += "3: [rank3]: " + ECC + "\n"
    ended = "srun: error: hz-b8: task 3: Exited with exit code 1\n"
    body = verdict(tmp_path, **nodes, slurm__out=ended)
    assert named(body) == ("gpu.ecc_uncorrectable", (3,), ("hz-b8",))


def test_a_file_in_a_launchers_folder_whose_lines_say_the_global_rank(tmp_path: Path) -> None:
    died = behind("INFO:my.app:[rank 6] ", "step 1 loss 2.5\nstep 2 loss 2.4\nstep 3 loss 2.4")
    died += "Fatal Python error: Segmentation fault\n\n"
    died += "Current thread 0x00007f1c90d58740 (most recent call first):\n"
    died += '  File "/app/read.py", line 3 in decode\n'
    peer = behind("INFO:my.app:[rank 5] ", "step 1 loss 2.5\nstep 2 loss 2.4\nstep 3 loss 2.4")
    folder = "elastic_x/run_9/attempt_0"
    files = {f"{folder}/2/stderr.log": died, f"{folder}/1/stderr.log": peer}
    body = judged(tmp_path, files).verdict
    assert named(body)[:2] == ("process.native_crash", (6,))


def test_the_device_that_stands_behind_a_label_is_the_rank(tmp_path: Path) -> None:
    hosts = ("10.9.0.4", "10.9.0.8")
    log = "".join(
        f"{clock(at)[:19]} {host} [{index}] | epoch 001 | step {at} | loss 4.2\n"
        for at in range(1, 20)
        for index, host in enumerate(hosts)
    )
    error = "[Errno 28] No space left on device"
    died = f"Exception in device=TPU:9: {error}\n" + traceback(f"OSError: {error}")
    log += behind(f"{clock(40)[:19]} 10.9.0.8 [1] ", died)
    assert named(verdict(tmp_path, dist__log=log)) == ("host.disk_full", (9,), ("10.9.0.8",))


def test_the_host_whose_device_is_held_not_those_that_wait_for_it(tmp_path: Path) -> None:
    waits = (
        "UserWarning: TPU backend initialization is taking more than 60.0 seconds. Did you run your code on "
        "all TPU hosts?\n"
    )
    held = (
        "RuntimeError: Unable to initialize backend 'tpu': ABORTED: The TPU is already in use by process "
        "with pid 88. Not attempting to load libtpu.so in this process.\n"
    )
    told = (waits, held, waits, waits)
    files = {f"gemma-w-{at}.log": f"{clock(at)} INFO start\n{text}" for at, text in enumerate(told)}
    body = judged(tmp_path, files).verdict
    assert named(body) == ("gpu.unavailable", (1,), ("gemma-w-1",))


@pytest.mark.parametrize(
    "name", ["dmon_rk-7.txt", "nvsmi_q_rk-7.log", "nvidia-smi-q_rk-7.txt", "sel_rk-7.txt"]
)
def test_files_called_after_a_tool_and_its_machine(name: str) -> None:
    assert identify(name).host == "rk-7"


def test_a_file_called_after_an_address() -> None:
    assert identify("node_172.16.4.9.log").host == "172.16.4.9"


def test_the_device_whose_heartbeat_was_lost_is_on_the_host_to_blame(tmp_path: Path) -> None:
    log = steps(20) + (
        "[rank0]:EI0002: [PID: 77] 2026-01-31-08:31:10.201.337 The wait execution of the Notify register "
        "times out. there are(is) 1 abnormal device(s):\n"
        "\tCluster Exception Location[IP/ID]:[172.16.4.10/2], Arrival Time:[Sat Jan 31 08:29:44 2026], "
        "Discoverer:[172.16.4.9/2], ExceptionType:[Heartbeat Lost Occurred], Possible Reason:1. Process has "
        "exited, 2. Network Disconnected\n"
        "[ERROR] 2026-01-31-08:31:10 (PID:77, Device:0, RankID:0) ERR02200 DIST call hccl api failed.\n"
    )
    body = judged(tmp_path, {"node_172.16.4.9.log": log}).verdict
    assert (body.failure_type, body.culprits.hosts) == ("collective.remote_error", ("172.16.4.10",))


def test_the_user_before_a_host_is_no_part_of_its_name(tmp_path: Path) -> None:
    log = (
        "$ horovodrun -np 6 -H tf-a1:2,tf-a2:2,tf-a3:2 python train.py\nChecking ssh on all remote hosts.\n"
        "ssh not successful for host tf-a2:\nme@tf-a2: Permission denied (publickey,password).\n"
    )
    assert named(verdict(tmp_path, console__txt=log)) == ("scheduler.launch", (), ("tf-a2",))


@pytest.mark.parametrize("words", [{"msg": "timing"}, {}])
def test_records_whose_only_difference_is_the_writers_name_are_compared(
    tmp_path: Path, words: dict[str, str]
) -> None:
    records = [
        {
            **words,
            "host": f"tk-{'xyz'[rank // 2]}",
            "rank": rank,
            "step": step,
            "forward_s": 5.2 if rank < 2 else 2.1,
            "comm_wait_s": 0.1 if rank < 2 else 3.1,
        }
        for step in range(1, 12)
        for rank in range(6)
    ]
    body = verdict(tmp_path, steps__jsonl="".join(json.dumps(each) + "\n" for each in records))
    assert named(body) == ("slow.straggler", (0, 1), ("tk-x",))


def test_records_of_steps_that_wait_for_their_data(tmp_path: Path) -> None:
    records = [
        {"time": f"2026-01-31T08:00:{step:02d}", "step": step, "loss": 2, "step_time": 6.1, "data_wait": 4.4}
        for step in range(1, 30)
    ]
    body = verdict(tmp_path, metrics__jsonl="".join(json.dumps(each) + "\n" for each in records))
    assert body.failure_type == "slow.data"


def test_a_silent_rank_that_was_aborted_as_its_peers_were_is_not_the_one_that_crashed(tmp_path: Path) -> None:
    def log(rank: int) -> str:
        waited = WATCHDOG.format(rank=rank) if rank < 3 else ""
        return steps(20) + waited + (
            f"{clock(1900)} torch.distributed.elastic: [ERROR] failed (exitcode: -6) local_rank: 0 (pid: 40) "
            "of binary: python\n=====\nRoot Cause (first observed failure):\n[0]:\n"
            f"  host      : u{rank}\n  rank      : {rank} (local_rank: 0)\n  exitcode  : -6 (pid: 40)\n"
            "  error_file: <N/A>\n  traceback : Signal 6 (SIGABRT) received by PID 40\n=====\n"
        )

    body = judged(tmp_path, {f"node_{rank}.out": log(rank) for rank in range(4)}).verdict
    assert named(body) == ("collective.timeout", (3,), ("u3",))


def test_an_end_with_status_0_on_a_line_of_its_own_is_a_good_end(tmp_path: Path) -> None:
    bar = "Steps: 100%|████| 20/20 [00:40<00:00,  1.5s/it]\nConfiguration saved in /out/config.json\n"
    assert verdict(tmp_path, train__log=steps(20) + bar + "program exited with status 0\n").failure_type == (
        "none.completed"
    )


def test_ranks_beside_those_that_missed_a_file_ended_of_the_same(tmp_path: Path) -> None:
    missing = traceback("FileNotFoundError: [Errno 2] No such file or directory: '/local/vocab.bpe'")
    log = "".join(f"{clock(at)} INFO hm{host} start\n" for at in range(9) for host in (1, 2))
    log += "".join(behind(f"[rank{rank}]: ", missing) for rank in (4, 5))
    entry = "[{0}]:\n  host      : hm2\n  rank      : {1} (local_rank: {0})\n  exitcode  : 1 (pid: 9{1})\n"
    log += "=====\nFailures:\n" + "".join(entry.format(at, at + 4) for at in (1, 2, 3))
    log += "Root Cause (first observed failure):\n" + entry.format(0, 4) + "=====\n"
    log += "".join(f"srun: error: hm1: task {rank}: Terminated\n" for rank in range(4))
    body = verdict(tmp_path, job__out=log)
    assert named(body)[1:] == ((4, 5, 6, 7), ("hm2",))


@pytest.mark.parametrize(
    "words",
    [
        "barrier timed out: ranks not joined: [5]",
        "barrier: 7/8 ranks arrived, missing: [5]",
        "still waiting for rank(s) 5",
        "Ranks [5] did not reach the barrier",
        "rank 5 never joined all_reduce seq 9",
        "missing ranks: {5}",
    ],
)
def test_words_for_the_rank_that_did_not_come(tmp_path: Path, words: str) -> None:
    log = steps(20) + "".join(WATCHDOG.format(rank=rank) for rank in range(8))
    body = verdict(tmp_path, train__log=f"{log}{words}\n")
    assert named(body)[:2] == ("collective.timeout", (5,))
    assert any(words in each.text for each in body.evidence)


def test_a_rank_that_others_wait_for_in_a_sentence_of_their_own_is_not_absent(tmp_path: Path) -> None:
    log = steps(20) + "".join(WATCHDOG.format(rank=rank) for rank in range(8))
    log += "rank 5 received errors while waiting for send/recv from rank 0\n"
    assert verdict(tmp_path, train__log=log).culprits.ranks == ()


def test_where_each_host_runs_one_process_its_rank_is_the_hosts(tmp_path: Path) -> None:
    files = {
        f"ga{at}.log": f"{clock(0)} INFO rank={at - 1} hostname=ga{at}\n"
        + steps(20)
        + (traceback(ECC) if at == 2 else f"{REMOTE}\n")
        for at in (1, 2, 3)
    }
    assert named(judged(tmp_path, files).verdict) == ("gpu.ecc_uncorrectable", (1,), ("ga2",))


def test_workers_as_a_cloud_labels_them(tmp_path: Path) -> None:
    log = "".join(f"[worker :{at}] step {n} loss 2.5\n" for n in range(1, 20) for at in range(4))
    log += behind("[worker :2] ", traceback("OSError: [Errno 28] No space left on device"))
    assert named(verdict(tmp_path, run__log=log))[:2] == ("host.disk_full", (2,))


@pytest.mark.parametrize(
    "head", ["# {host} gpu{local} (global rank {rank}) pid 7{rank}", "[{host}] rank{rank}:"]
)
def test_the_heading_of_a_stack_tells_the_host_of_its_rank(tmp_path: Path, head: str) -> None:
    def stack(rank: int) -> str:
        odd = "recv_into (ssl.py:1304)\n    get (app/data.py:9)"
        frame = odd if rank == 5 else "wait (torch/distributed/distributed_c10d.py:2810)"
        return (
            head.format(host=f"b{rank // 2}x", local=rank % 2, rank=rank)
            + f'\nProcess 7{rank}: python train.py\nThread 7{rank} (idle): "MainThread"\n    {frame}\n'
        )

    body = verdict(tmp_path, train__log=steps(40), pyspy__txt="".join(map(stack, range(6))))
    assert named(body) == ("hang.silent", (5,), ("b2x",))


HOSTS = ("gx-1", "gx-2", "gx-3", "gx-4", "gx-5")
TIMES = {host: (905, 20) if host == "gx-3" else (410, 520) for host in HOSTS}
BY_HOST = {
    "a table": "times by host (ms):\n"
    + "".join(f"  {h}  fwd {f}  comm {w}\n" for h, (f, w) in TIMES.items()),
    "fields": "".join(f"[perf] host={h} fwd_ms={f} wait_ms={w}\n" for h, (f, w) in TIMES.items()),
}


@pytest.mark.parametrize("form", BY_HOST)
def test_times_that_are_told_of_hosts_name_the_slow_host(tmp_path: Path, form: str) -> None:
    log = "".join(steps(10, first=10 * k, at=20 * k) + BY_HOST[form] for k in range(8))
    body = verdict(tmp_path, train__log=log)
    assert (body.failure_type, body.culprits.hosts) == ("slow.straggler", ("gx-3",))
    assert "gx-3" in body.evidence[0].text


def test_times_of_layers_are_no_hosts(tmp_path: Path) -> None:
    table = "times by layer (ms):\n" + BY_HOST["a table"].split("\n", 1)[1].replace("gx-", "block-")
    log = "".join(steps(10, first=10 * k, at=20 * k) + table for k in range(8))
    assert verdict(tmp_path, train__log=log).failure_type == "none.running"


def test_machines_that_a_monitor_names_once_each(tmp_path: Path) -> None:
    log = (
        "gx-1: gpu 0 61C 1980 MHz\ngx-2: gpu 0 62C 1980 MHz\n"
        "gx-2: gpu 4 93C 705 MHz clocks_event_reasons.hw_thermal_slowdown: Active\n"
    )
    body = verdict(tmp_path, train__log=steps(40), monitor__log=log)
    assert (body.failure_type, body.culprits.hosts) == ("gpu.thermal_power", ("gx-2",))


def test_the_last_word_of_a_log_that_stopped_is_its_own_not_the_commands_below(tmp_path: Path) -> None:
    log = steps(40) + f"{clock(82)} INFO gathered 61/64 samples\n"
    log += f"$ date\n{clock(9000)}\n$ nvidia-smi -L\nGPU 0\n"
    body = verdict(tmp_path, train__log=log)
    assert body.failure_type == "hang.silent"
    assert any("gathered 61/64" in each.text for each in body.evidence)


@pytest.mark.parametrize(
    "label",
    ["n-b{1} | rank {0} | ", "(n-b{1}, rank {0}) ", "n-b{1}/{0} ", "n-b{1}:{0}: ", "rank{0}@n-b{1}: "],
)
def test_labels_that_tell_host_and_rank(tmp_path: Path, label: str) -> None:
    heads = [label.format(rank, 1 + rank // 8) for rank in (0, 8)]
    log = "".join(f"{head}step {at} loss 2.1\n" for at in range(9) for head in heads)
    log += behind(label.format(9, 2), traceback(ECC)) + behind(label.format(3, 1), REMOTE)
    assert named(verdict(tmp_path, train__log=log)) == ("gpu.ecc_uncorrectable", (9,), ("n-b2",))


def test_counters_of_shards_are_no_hosts(tmp_path: Path) -> None:
    log = "".join(f"block{at % 3}/40: step {at} loss 2.1\n" for at in range(30)) + traceback(ECC)
    assert verdict(tmp_path, train__log=log).culprits.ranks == ()


def test_a_rank_that_says_the_name_of_its_host_in_letters_alone(tmp_path: Path) -> None:
    def start(name: str, rank: int) -> str:
        return f"[{clock(0)}][INFO][r{rank}] host {name}: rank {rank} of 2 up\n"

    files = {
        "a.log": start("trainer-x", 0) + steps(20) + f"[rank0]: {REMOTE}\n",
        "b.log": start("trainer-y", 1) + steps(20) + behind("[rank1]: ", traceback(ECC)),
    }
    assert named(judged(tmp_path, files).verdict) == ("gpu.ecc_uncorrectable", (1,), ("trainer-y",))
