"""Spikes that a run left behind, and ends that others brought about: who is not to blame, and who is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, clock, judged, steps, traceback


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


def losses(count: int, *, first: int = 1, loss: float = 2.5, rise: float = 0.0) -> str:
    return "".join(
        f"{clock(2.0 * step)} INFO step {step} loss: {loss + rise * number + 0.01 * (step % 7):.3f}\n"
        for number, step in enumerate(range(first, first + count))
    )


SPIKES = (
    "WARNING:guard:Unexpected result tensor(9.1) on rank 3 at iteration #40 (message='Spiky loss')\n",
    f"{clock(80)} WARNING loss spike at step 40: 8.70 (running mean 2.53)\n",
)


@pytest.mark.parametrize("spike", SPIKES)
def test_a_spike_after_which_the_loss_came_back_is_none(tmp_path: Path, spike: str) -> None:
    verdict = judged(tmp_path, {"train.out": losses(40) + spike + losses(60, first=41)})
    assert verdict.verdict.failure_type == "none.running"


@pytest.mark.parametrize("spike", SPIKES)
def test_a_spike_after_which_the_loss_stayed_high_counts(tmp_path: Path, spike: str) -> None:
    verdict = judged(tmp_path, {"train.out": losses(40) + spike + losses(60, first=41, loss=7.9)})
    assert verdict.verdict.failure_type == "numerics.divergence"


LIMIT = "slurmstepd: error: *** JOB 5150 ON cn-2 CANCELLED AT 2026-01-31T08:03:20 DUE TO TIME LIMIT ***\n"
ENDS = (
    "srun: error: cn-4: task 2: Exited with exit code 1\n",
    "srun: error: cn-3: tasks 1-2: Exited with exit code 3\n",
)


@pytest.mark.parametrize("end", ENDS)
def test_a_task_that_fails_once_the_limit_ended_the_job_did_not_end_it(tmp_path: Path, end: str) -> None:
    verdict = judged(tmp_path, {"slurm-5150.out": losses(99) + LIMIT + end})
    assert verdict.verdict.failure_type == "scheduler.time_limit"
    assert verdict.verdict.culprits.ranks == ()


STEP_OVER = (
    "srun: error: n-11: task 2: Exited with exit code 1\n"
    "slurmstepd-n-10: error: *** STEP 77.0 ON n-10 CANCELLED AT 2026-01-31T08:00:40 ***\n"
    "srun: error: n-10: task 1: Terminated\nsrun: error: n-9: task 0: Terminated\n"
    "srun: error: n-12: task 3: Terminated\n"
)
REFUSED = (
    "slurmstepd-n-11: error: pyxis: failed to create container filesystem\n"
    "slurmstepd-n-11: error: pyxis: couldn't start container\n",
    "slurmstepd-n-11: error: execve(): /opt/env/bin/python: No such file or directory\n" * 5,
)


@pytest.mark.parametrize("refused", REFUSED)
def test_slurms_daemon_speaks_for_the_host_in_its_name(tmp_path: Path, refused: str) -> None:
    verdict = judged(tmp_path, {"slurm-77.out": refused + STEP_OVER})
    assert verdict.verdict.failure_type == "scheduler.launch"
    told = verdict.verdict.culprits
    assert (told.ranks, told.hosts) == ((2,), ("n-11",))


FP8 = (
    "[rank0]: torch._inductor.exc.InductorError: CompilationError: at 3:12:\n"
    "[rank0]: def triton_red_fused_1(in_ptr0, out_ptr0, XBLOCK : tl.constexpr):\n"
    "[rank0]:     x = tl.load(in_ptr0)\n[rank0]:             ^\n"
    "[rank0]: ValueError('tile of 3 elements is no power of two')\n"
)
NAMED = (
    "triton.compiler.errors.CompilationError: at 8:4:\n"
    "def gather(a, b, n: tl.constexpr):\n    y = a[b]\n    ^^^^^^^^\n"
    "NameError: b is not a tensor\n"
)


@pytest.mark.parametrize(("text", "reason"), [(FP8, "no power of two"), (NAMED, "b is not a tensor")])
def test_a_compilers_reason_behind_the_source_that_it_quotes_is_cited(
    tmp_path: Path, text: str, reason: str
) -> None:
    verdict = judged(tmp_path, {"train.out": steps(9) + text})
    assert verdict.verdict.failure_type == "code.compile"
    assert any(reason in each.text for each in verdict.verdict.evidence)


def left_alone(code: int, count: int = 4) -> str:
    entries = [
        f"[{at}]:\n  time      : 2026-01-31_08:01:40\n  host      : cn-1\n"
        f"  rank      : {rank} (local_rank: {rank})\n"
        f"  exitcode  : {code} (pid: {70 + rank})\n  error_file: <N/A>\n"
        for at, rank in ((*((rank, rank) for rank in range(1, count)), (0, 0)))
    ]
    told = "Root Cause (first observed failure):\n"
    return "=====\nFailures:\n" + "".join(entries[:-1]) + "-----\n" + told + entries[-1] + "=====\n"


@pytest.mark.parametrize("code", [1, 2])
def test_of_ranks_that_all_ended_alike_and_said_nothing_none_went_first(tmp_path: Path, code: int) -> None:
    verdict = judged(tmp_path, {"job.out": steps(30) + left_alone(code)})
    assert verdict.verdict.failure_type == "unknown"
    assert verdict.verdict.culprits.ranks == ()
    assert "(pid: 70)" in next(each.text for each in verdict.verdict.evidence if "exitcode" in each.text)


def oom(gpu: int) -> str:
    head = "cn-5: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
    killed = "".join(
        f"cn-5: [2026-01-31 08:02:0{local},118] [INFO] [launch.py:316:sigkill_handler] "
        f"Killing subprocess {local + 31}\n"
        for local in range(4)
    )
    return head + f"GPU {gpu} has a total capacity of 79.15 GiB of which 1.92 GiB is free.\n" + killed


@pytest.mark.parametrize(("gpu", "rank"), [(1, 5), (3, 7)])
def test_the_device_that_ran_full_is_that_of_its_hosts_nth_rank(tmp_path: Path, gpu: int, rank: int) -> None:
    hosts = "{'cn-4': [0, 1, 2, 3], 'cn-5': [0, 1, 2, 3]}"
    began = "".join(
        f"{host}: [2026-01-31 07:59:05,801] [INFO] [launch.py:145:main] WORLD INFO DICT: {hosts}\n"
        f"{host}: [2026-01-31 07:59:05,802] [INFO] [launch.py:151:main] "
        f"nnodes=2, num_local_procs=4, node_rank={at}\n"
        for at, host in enumerate(("cn-4", "cn-5"))
    )
    went = "".join(f"cn-4: {line}\n" for line in steps(20).splitlines())
    verdict = judged(tmp_path, {"launch.log": began + went + oom(gpu)})
    told = verdict.verdict.culprits
    assert (verdict.verdict.failure_type, told.ranks, told.hosts) == (
        "cuda.out_of_memory",
        (rank,),
        ("cn-5",),
    )


REASONS = ("ReadTimeout", "SSLError")


@pytest.mark.parametrize("reason", REASONS)
def test_a_data_set_that_no_request_reached_is_no_missing_one(tmp_path: Path, reason: str) -> None:
    said = f"ConnectionError: Couldn't reach 'lab/notes' on the Hub ({reason})\n"
    assert judged(tmp_path, {"out.txt": steps(9) + said}).verdict.failure_type == "network.connection"


@pytest.mark.parametrize("reason", [" (HfHubHTTPError)", ""])
def test_a_data_set_that_is_not_there_is_missing(tmp_path: Path, reason: str) -> None:
    said = f"ConnectionError: Couldn't reach 'lab/notes' on the Hub{reason}\n"
    assert judged(tmp_path, {"out.txt": steps(9) + said}).verdict.failure_type == "data.missing"


def keyed(rank: int, form: str) -> str:
    return "".join(
        f"{clock(3.0 * step)} batch {step} loss 2.{step:03d} {form.format(rank)}\n" for step in range(40)
    )


@pytest.mark.parametrize("form", ["rank {}", "global_rank={}"])
def test_files_whose_lines_end_with_their_rank_are_those_ranks(tmp_path: Path, form: str) -> None:
    broken = "tarfile.ReadError: unexpected end of data\n"
    lost = "RuntimeError: [/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.1.1.1]:9\n"
    files = {f"speech-{rank}.log": keyed(rank, form) + (broken if rank == 8 else lost) for rank in (7, 8, 9)}
    assert judged(tmp_path, files).verdict.culprits.ranks == (8,)


@pytest.mark.parametrize("names", [("sft-a-host", "sft-b-host"), ("ft-a-node", "ft-b-node")])
def test_machines_told_apart_by_a_letter_before_what_they_are(tmp_path: Path, names: tuple[str, str]) -> None:
    calm, struck = names
    broken = "[rank9]: EOFError: Ran out of input\n"
    files = {f"{calm}.launch.log": steps(30), f"{struck}.launch.log": steps(30) + broken}
    assert judged(tmp_path, files).verdict.culprits.hosts == (struck,)


def restored(rank: int, failed: list[int], of: int) -> str:
    return (
        f"[rank{rank}]: Traceback (most recent call last):\n"
        f'[rank{rank}]:   File "/app/t.py", line 8, in main\n'
        f"[rank{rank}]:     load(state)\n"
        f"[rank{rank}]: torch.distributed.checkpoint.api.CheckpointException: CheckpointException "
        f"ranks:dict_keys({failed})\n"
        f"[rank{rank}]: Traceback (most recent call last): (RANK {of})\n"
        f'[rank{rank}]:   File "/opt/torch/distributed/checkpoint/filesystem.py", line 5, in read_metadata\n'
        f"[rank{rank}]:     with open(path) as file:\n"
        f"[rank{rank}]: FileNotFoundError: [Errno 2] No such file or directory: '/ck/1/.metadata'\n"
    )


@pytest.mark.parametrize("failed", [[4, 5], [6, 7]])
def test_ranks_that_failed_together_each_speak_for_themselves(tmp_path: Path, failed: list[int]) -> None:
    began = "".join(f"[rank{rank}]: {clock(rank)} restoring\n" for rank in range(8))
    own = "".join(restored(rank, failed, failed[0]) for rank in failed)
    others = "".join(restored(rank, failed, failed[0]) for rank in (0, 1))
    verdict = judged(tmp_path, {"all.log": began + own + others})
    assert verdict.verdict.culprits.ranks == tuple(failed)


UNREACHED = (
    "[c10d] The client socket has failed to connect to [10.9.0.4]:29500 (errno: 113 - No route to host).",
    "[c10d] The client socket has failed to connect to [10.9.0.4]:29500 (errno: 110 - Connection timed out).",
)


@pytest.mark.parametrize("said", UNREACHED)
def test_the_ranks_of_the_host_that_is_cut_off_are_named(tmp_path: Path, said: str) -> None:
    waited = "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. "
    waited += "8/12 clients joined."
    ends = (waited, waited, f"[W131 08:00:01.123456789 socket.cpp:752] {said}")
    files = {
        f"hx-{node + 1}.out": "".join(
            f"[hx-{node + 1}] rank {4 * node + local}/12 up\n" for local in range(4)
        )
        + f"{ends[node]}\n" * 3
        for node in range(3)
    }
    told = judged(tmp_path, files).verdict
    assert (told.failure_type, told.culprits.hosts) == ("network.rendezvous", ("hx-3",))
    assert told.culprits.ranks == (8, 9, 10, 11)


@pytest.mark.parametrize("code", [1, 3])
def test_a_step_that_is_cancelled_for_a_task_that_failed_gives_no_reason(tmp_path: Path, code: int) -> None:
    said = "".join(
        f"{rank}: {clock(2.0 * step)} step={step} loss=1.7\n" for step in range(9) for rank in range(4)
    )
    end = (
        f"srun: error: c-4: task 2: Exited with exit code {code}\n"
        "slurmstepd: error: *** STEP 919.0 ON c-4 CANCELLED AT 2026-01-31T08:00:19 ***\n"
        "srun: error: c-4: tasks 0-1,3: Terminated\n"
    )
    verdict = judged(tmp_path, {"slurm-919.out": said + end}).verdict
    assert (verdict.failure_type, verdict.culprits.ranks) == ("unknown", (2,))


@pytest.mark.parametrize("ahead", [1200.0, 7200.0])
def test_what_stands_above_was_written_before_whatever_its_clock_says(tmp_path: Path, ahead: float) -> None:
    went = "".join(f"{clock(ahead + 10.0 * step)} INFO step {step} loss: 0.087\n" for step in range(40))
    broke = (
        f"{clock(30)} ERROR loader failed\n[rank6]: Traceback (most recent call last):\n"
        '[rank6]:   File "/app/frames.py", line 9, in frame\n[rank6]:     return frames[at]\n'
        "[rank6]: IndexError: frame 412 of 412\n"
    )
    assert judged(tmp_path, {"all.log": went + broke}).verdict.failure_type == "code.index"


@pytest.mark.parametrize("first_rank", [8, 24])
def test_numbers_between_tabs_that_no_node_has_count_ranks(tmp_path: Path, first_rank: int) -> None:
    def said(host: str, rank: int, text: str, at: float) -> str:
        stamp = clock(at).replace("T", " ")[:19]
        return f"{stamp}.211\t{host}:{rank}\tolmo_core.train.trainer:1210\t{text}\n"

    def node(host: str, rank: int) -> str:
        return "".join(said(host, rank, f"DEBUG\tstep {step} done", 9.0 * step) for step in range(30))

    broke = said("aus-41", first_rank + 3, "CRITICAL\tUncaught AcceleratorError", 290.0)
    broke += "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered\n"
    files = {"replica-0.log": node("aus-40", 0), "replica-1.log": node("aus-41", first_rank) + broke}
    assert judged(tmp_path, files).verdict.culprits.ranks == (first_rank + 3,)


@pytest.mark.parametrize("lacked", ["ephemeral-storage", "memory"])
def test_a_pod_that_its_node_evicts_for_what_the_node_lacks_names_the_node(
    tmp_path: Path, lacked: str
) -> None:
    described = (
        "Name:             tune-worker-1\nNamespace:        lab\n"
        "Node:             pool-x-41/10.4.0.7\nStart Time:       Sat, 31 Jan 2026 07:59:00 +0000\n"
        "Status:           Failed\nReason:           Evicted\n"
        f"Message:          The node was low on resource: {lacked}. Threshold quantity: 100.\n"
        "Events:\n  Type     Reason   Age   From     Message\n  ----     ------   ----  ----     -------\n"
        f"  Warning  Evicted  3m    kubelet  The node was low on resource: {lacked}.\n"
    )
    files = {"describe_tune-worker-1.txt": described}
    files |= {f"pods/tune-worker-{at}.log": steps(30) for at in range(3)}
    assert judged(tmp_path, files).verdict.culprits.hosts == ("pool-x-41",)


@pytest.mark.parametrize("got", ["Failed to recv, got 0 bytes", "failed to recv, got 0 bytes"])
def test_who_lost_the_store_raised_no_error_of_its_own(tmp_path: Path, got: str) -> None:
    said = f"[rank3]: torch.distributed.DistNetworkError: {got}. Connection was likely closed.\n"
    verdict = judged(tmp_path, {"rank3.log": steps(9) + said}).verdict
    assert verdict.failure_type == "collective.remote_error"


@pytest.mark.parametrize("label", ["", "[rank2]: "])
@pytest.mark.parametrize(
    ("norms", "told"),
    [
        (("3.10423517", "7.77120348", "3.10423517"), "collective.desync"),
        (("nan", "nan", "nan"), "numerics.nan"),
    ],
)
def test_ranks_that_differ_because_they_have_no_numbers_are_not_apart(
    tmp_path: Path, label: str, norms: tuple[str, ...], told: str
) -> None:
    said = (
        traceback("FloatingPointError: Fatal error: gradients are inconsistent between workers. Try another.")
        + f"\n{'-' * 80}\ngrad_norm across the workers:\n"
        + "".join(f"rank {rank:3d} = {norm}\n" for rank, norm in enumerate(norms))
        + f"\n{'-' * 80}\n"
    )
    words = "".join(label + line for line in said.splitlines(keepends=True))
    assert judged(tmp_path, {"train.out": losses(60) + words}).verdict.failure_type == told


@pytest.mark.parametrize(
    "words",
    [
        "RuntimeError: Critical error in pipeline:\nError when executing CPU operator decoders__Image "
        "encountered:\nError in thread 6: [/opt/dali/dali/operators/decoder/host/host_decoder.cc:41] "
        "[/opt/dali/dali/image/image_factory.cc:98] GIF images are not supported.\nStacktrace (8 entries):",
        "tensorflow.errors_impl.InvalidArgumentError: Invalid JPEG data or crop window, data "
        "size 7219\n\t [[{{node DecodeJpeg}}]]",
    ],
)
def test_a_decoder_says_below_the_exception_what_it_met(tmp_path: Path, words: str) -> None:
    body = judged(tmp_path, {"train.out": losses(60) + traceback(words)}).verdict
    assert body.failure_type == "data.corrupt"


def test_a_model_that_diverged_is_not_the_fault_of_the_process_that_is_heard_first(tmp_path: Path) -> None:
    end = traceback("torch.multiprocessing.spawn.ProcessRaisedException: ")
    end += "\n-- Process 3 terminated with the following error:\n"
    end += traceback(
        "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding."
    )
    body = judged(tmp_path, {"train.out": losses(60) + end}).verdict
    assert body.failure_type == "numerics.divergence"
    assert body.culprits.ranks == ()
