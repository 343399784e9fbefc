"""Ranks and machines that a job tells by counting its processes, and those that lists and files name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, behind, clock, judged, place, steps, traceback

IMPORT = traceback("ModuleNotFoundError: No module named 'einops'")
KILLED = "State: Terminated\n      Reason: OOMKilled\n      Exit Code: 137\n"


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


@pytest.mark.parametrize("words", ["process {} of 4", "process_index={}/4, 16 devices", "Process id: {}/4"])
def test_files_whose_names_count_from_one_say_which_process_wrote_them(tmp_path: Path, words: str) -> None:
    files = {
        f"vm-{number + 1}.INFO": f"I0131 08:00:00.100 77 run.py:8] {words.format(number)}\n{steps(9)}"
        + (IMPORT if number == 2 else "")
        for number in range(4)
    }
    assert place(tmp_path, files)[0] == (2,)


@pytest.mark.parametrize("number", ["{0}", "0"])  # the second: all say the same
def test_workers_that_count_themselves_on_each_machine_are_no_ranks(tmp_path: Path, number: str) -> None:
    files = {
        f"vm-{host + 1}.INFO": "".join(
            f"I0131 08:00:00.100 77 load.py:8] decoder process {number.format(worker)} of 4 is up\n"
            for worker in range(4)
        )
        + steps(9)
        + (IMPORT if host == 2 else "")
        for host in range(4)
    }
    assert place(tmp_path, files)[0] in ((), (3,))


@pytest.mark.parametrize("words", ["initialized! process {} of 3", "process {}/3 on slice, 4 chips"])
def test_a_pod_that_ran_out_of_memory_had_said_which_process_it_is(tmp_path: Path, words: str) -> None:
    log = "".join(
        f"[pod/lm-0-{number}-{end}/tpu] I0131 08:00:0{number}.1 1 run.py:2] {words.format(number)}\n"
        for number, end in enumerate(("x8k2p", "b7m4q", "c2v9d"))
    ) + behind("[pod/lm-0-0-x8k2p/tpu] ", steps(30))
    described = f"Name:  lm-0-1-b7m4q\nNamespace: ml\nNode:  tpu-vm-7/10.0.0.4\n    {KILLED}"
    files = {"logs.txt": log, "describe_lm-0-1.txt": described}
    assert place(tmp_path, files)[0] == (1,)


@pytest.mark.parametrize(
    ("row", "hosts"),
    [("rank {rank}={host} slot={slot}", ("gn-b2",)), ("rank  {rank} = {host} slots=0:{slot}", ("gn-b2",)),
     ("rank {rank}=+n{node} slot={slot}", ())],
)  # fmt: skip
def test_a_file_of_ranks_that_mpirun_was_given(tmp_path: Path, row: str, hosts: tuple[str, ...]) -> None:
    rows = "".join(
        row.format(rank=rank, host=f"gn-b{1 + rank // 4}", node=rank // 4, slot=rank % 4) + "\n"
        for rank in range(8)
    )
    log = behind("[1,0]<stdout>:", steps(20)) + behind("[1,6]<stderr>:", IMPORT)
    assert place(tmp_path, {"ranks.txt": rows, "job.log": log}) == ((6,), hosts)


NAMES = [f"hx-{number:02d}" for number in range(4)]
TABLE = "".join(f"{name}   10.9.3.{4 + at}   {8 * at}-{8 * at + 7}\n" for at, name in enumerate(NAMES))


@pytest.mark.parametrize("table", [f"node   ip   ranks\n{TABLE}", TABLE.replace("   ", ", ")])
def test_a_list_tells_whose_address_ray_names(tmp_path: Path, table: str) -> None:
    log = "".join(
        behind(f"(Trainer pid={70 + at}, ip=10.9.3.{4 + at}) ", f"{clock(n)} batch {n} loaded\n")
        for n in range(9)
        for at in range(4)
    )
    log += (
        "ray.exceptions.RayTaskError(ValueError): ray::Trainer.fit() (pid=72, ip=10.9.3.6, actor_id=0a)\n"
        '  File "/w/actor.py", line 8, in fit\n    check(loss)\n'
        "ValueError: Rank 19, node {}, device 3, iteration 15: Unexpected result nan (message='found NaN in "
        "local forward loss calculation')\n"
    )
    assert place(tmp_path, {"nodes.txt": table, "driver.log": log.format("hx-02")}) == ((19,), ("hx-02",))


@pytest.mark.parametrize("prompt", ["me@{host}:~/run$ ", "(lm) [me@{host} run]$ "])
def test_the_prompts_above_what_they_ran_name_the_hosts(tmp_path: Path, prompt: str) -> None:
    files = {
        f"p{number}.log": prompt.format(host=f"slice-w-{number}")
        + f"python train.py | tee p{number}.log\n"
        + f"I0131 08:00:00.100 77 run.py:8] process {number} of 3\n{steps(9)}"
        + (IMPORT if number == 1 else "")
        for number in range(3)
    }
    assert place(tmp_path, files) == ((1,), ("slice-w-1",))
    alone = {"p.log": prompt.format(host="login-3") + f"srun python train.py\n{steps(9)}{IMPORT}"}
    assert place(tmp_path / "alone", alone)[1] == ()


@pytest.mark.parametrize("launcher", ["torchrun_", "deepspeed-", "launcher."])
def test_files_that_are_called_after_a_launcher_and_its_host(tmp_path: Path, launcher: str) -> None:
    def node(first: int) -> str:
        ranks = (first, first + 1)
        return "".join(
            f"[rank{rank}]: {clock(2 * n)} INFO batch {n} done\n" for n in range(9) for rank in ranks
        )

    files = {
        f"{launcher}fog-a1.log": node(0),
        f"{launcher}fog-a2.log": node(2) + behind("[rank3]: ", IMPORT),
    }
    assert place(tmp_path, files) == ((3,), ("fog-a2",))


def test_a_machine_whose_kernel_log_is_missing_is_called_as_the_others_of_its_row_are(tmp_path: Path) -> None:
    def written(node: int) -> str:
        named = f"cx{node + 4}:4090{node}:4095{node} [0] NCCL INFO Connected all rings\n"
        return named * 3 + steps(20) + (traceback("KeyError: 'tokens'") if node == 2 else "")

    booted = "[Sat Jan 31 08:00:01 2026] Linux version 5.14.0-1 (root@build) (gcc 12)\n"
    kernels = {f"kern/cx{node + 4}.dmesg": booted for node in (0, 1, 3)}
    files = {f"ray-worker-{node}.log": written(node) for node in range(4)}
    assert place(tmp_path, files | kernels)[1] == ("cx6",)


def test_what_srun_gathers_into_the_file_of_one_task_is_not_all_of_its_machine(tmp_path: Path) -> None:
    gathered = (
        f"{clock(62)[:19]} slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.0.\n"
        f"{clock(99)[:19]} ended\n"
        "srun: error: cx6: task 2: Out Of Memory\n"
    )
    said = "host: cx{} rank {} of 4 up\n"
    files = {f"7_{task}_log.out": said.format(task + 4, task) + steps(30) for task in range(4)}
    files["7_0_log.out"] += gathered
    assert place(tmp_path, files)[1] == ("cx6",)


@pytest.mark.parametrize("beside", [True, False])
def test_a_tool_s_words_in_the_file_of_one_task_are_not_those_of_its_rank(
    tmp_path: Path, beside: bool
) -> None:
    gathered = (
        "Unable to determine the device handle for GPU 0000:5E:00.0: GPU is lost.  Reboot the system to "
        "recover this GPU\nsrun: error: cx6: tasks 2-3: Aborted (core dumped)\n"
    )
    said = "host: cx{} rank {} of 4 up\n"
    files = {f"logs/rank_{rank}.log": said.format(rank + 4, rank) + steps(30) for rank in range(4)}
    name = "9_0_log.out" if beside else "out/rank_0.out"
    if not beside:
        del files["logs/rank_0.log"]
    files[name] = (said.format(4, 0) if not beside else "up\n") + steps(30) + gathered
    assert ("cx4" in place(tmp_path, files)[1]) is not beside


def test_a_label_that_is_no_machine_s_name_is_that_of_the_machine_whose_file_it_fills(tmp_path: Path) -> None:
    files = {
        f"tasks/cn-{4 + node}.log": behind(
            f"(member{node}, pid={300 + node}) ", steps(20) + (IMPORT if node == 1 else "")
        )
        for node in range(3)
    }
    kernels = {
        f"dmesg/cn-{4 + node}.log": "[    1.000000] Linux version 6.1.0 (gcc)\n[    2.000000] ACPI: ready\n"
        for node in range(3)
    }
    assert place(tmp_path, files | kernels)[1] == ("cn-5",)


def test_a_kernel_log_of_no_named_machine_names_none(tmp_path: Path) -> None:
    log = (
        "".join(f"gx-b7:41{n}:41{n} [{n}] NCCL INFO cudaDriverVersion 12080\n" for n in range(4))
        + behind("[rank2]: ", traceback("RuntimeError: CUDA error: uncorrectable ECC error encountered"))
        + "[0]:\n  time      : 2026-01-31_08:00:09\n  host      : gx-b7\n  rank      : 2 (local_rank: 2)\n"
        "  exitcode  : 1 (pid: 412)\n"
    )
    kernel = "[Sat Jan 31 07:59:58 2026] systemd[1]: Started Session 3 of user ops.\n" * 4
    assert place(tmp_path, {"dmesg.txt": kernel, "train.log": log}) == ((2,), ("gx-b7",))


def test_files_of_one_machine_that_are_called_after_their_writers_are_of_that_machine(tmp_path: Path) -> None:
    files = {}
    for rank in range(4):
        host = f"cn-{rank // 2}"
        said = f"{host}:{70 + rank}:{90 + rank} [0] NCCL INFO comm 0x5 rank {rank} nranks 4 - Init COMPLETE\n"
        files[f"log-fit-asr-{rank}"] = said * 3 + steps(20) + (IMPORT if rank == 3 else "")
    kernels = {
        f"dmesg/cn-{node}.log": "[    1.000000] Linux version 6.1.0 (gcc)\n[    2.000000] ACPI: ready\n"
        for node in range(2)
    }
    assert place(tmp_path, files | kernels) == ((3,), ("cn-1",))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tune-{at}.log", "pod tune-{at} on {host}"),  # the pod's name is the file's
        ("out_{at}.txt", "pod tune-{at} on {host}"),
        ("out_{at}.txt", "Running on host {host}"),
        ("out_{at}.txt", "hostname: {host}"),
    ],
)
def test_the_first_words_of_each_file_tell_where_it_runs(tmp_path: Path, name: str, words: str) -> None:
    def of_node(at: int, host: str) -> str:
        head = f"2026-05-01 10:00:00 INFO {words.format(at=at, host=host)}, 8 processes\n"
        return head + "".join(f"2026-05-01 10:01:{n:02d} INFO step {n} loss 2.{n}\n" for n in range(30))

    error = "[rank9]: OSError: [Errno 28] No space left on device: '/scratch/z'\n"
    files = {name.format(at=0): of_node(0, "rk-7"), name.format(at=1): of_node(1, "rk-4") + error}
    assert judged(tmp_path, files).verdict.culprits.hosts == ("rk-4",)


def test_the_one_machine_that_a_line_on_a_lost_one_names_is_it(tmp_path: Path) -> None:
    files = {f"cn-{node}.log": steps(20) for node in range(4)}
    files["batch.log"] = "platform: replica 2: Host EC2 (instance i-0ab12cd34ef56ab78) terminated. (cn-2)\n"
    assert place(tmp_path, files)[1] == ("cn-2",)
