"""Jobs that finished, or still step, with words in their logs that look like an end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, clock, judged, steps, traceback


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


DONE = f"{clock(900)} INFO training finished after 400 steps\n"
RAN = steps(200)
MORE = steps(200, first=201, at=420.0)


def late(text: str) -> str:
    """Right at the end of a log among steps."""
    return RAN + MORE + text


RUNNING = {
    "a bad sample at the end": late(
        f"{clock(821)} WARNING skipping sample 88121: PIL.UnidentifiedImageError: cannot identify image file "
        "'a.jpg'\n"
    ),
    "a bad sample without a level": late(
        "Error reading clip 00912.mp4 (moov atom not found), using another one\n"
    ),
    "a shard that is read again": late(
        f"{clock(821)} WARNING webdataset: shard 0041.tar: connection reset by peer, moving on to the next "
        "one\n"
    ),
    "OOM of one batch": late(
        f"{clock(821)} WARNING | fairseq.trainer | attempting to recover from OOM in forward/backward pass\n"
        f"{clock(821)} WARNING ran out of memory with exception: CUDA out of memory. Tried to allocate "
        "2.00 GiB; skipping batch\n"
    ),
    "an overflow": late(
        f"{clock(821)} INFO [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, "
        "reducing to 32768\n"
    ),
    "errors in names and counts": RAN + "".join(
        f"{clock(420 + 2 * n)} INFO step {201 + n} loss 2.1 lr 1e-4 wer_error 0.31 timeout_count 0 "
        "nan_skipped 0 file /data/error_correction/fatal_errors_17.parquet\n" for n in range(100)
    ),
    "a heartbeat that failed once": RAN + f"{clock(410)} ERROR heartbeat to the tracking server failed: "
    "ConnectionError: [Errno 111] Connection refused\n" + MORE,
    "a push that is refused": RAN + f"{clock(410)} ERROR mlflow: 403 Forbidden on log_metrics\n" + MORE,
    "a traceback that was caught": RAN + f"{clock(410)} WARNING could not decode, retrying\n"
    + traceback("ValueError: invalid literal", "decode") + MORE,
    "NaN losses that were skipped": "".join(
        f"[batch={n}/900]:\n\t Train loss/train/total: 4.{n % 10}29\n"
        + ("WARNING: train loss is NaN, skipping this update\n" if n in (40, 90) else "")
        for n in range(1, 200)
    ),
    "fp16's own overflows": "".join(
        f" iteration {n:5d}/ 5000 | lm loss: 2.{n % 10}1E+00 | loss scale: 65536 | grad norm: "
        f"{'inf' if n % 50 == 0 else '0.7'} | number of skipped iterations: {int(n % 50 == 0)} |\n"
        for n in range(1, 240)
    ),
    "an error of every day at the end": "".join(
        f"[rank{n % 8}]: {clock(n)} INFO step {n // 8} loss 2.1\n"
        + (f"[rank{n % 8}]: {clock(n)} ERROR failed to decode shard-{n}.tar\n" if n % 70 == 3 else "")
        for n in range(800)
    ) + f"[rank3]: {clock(801)} ERROR failed to decode shard-801.tar\n",
    "a requeue in the same log": RAN
    + "slurmstepd: error: *** JOB 77 ON cn-1 CANCELLED AT 2026-01-31T08:07:00 DUE TO JOB REQUEUE ***\n"
    + f"{clock(600)} INFO resuming from checkpoint at step 200\n" + steps(200, first=201, at=620),
    "a kernel that falls back": RAN + f"{clock(410)} WARNING flash attention failed: no kernel image is "
    "available; falling back to sdpa\n" + MORE,
}  # fmt: skip


@pytest.mark.parametrize("text", RUNNING.values(), ids=RUNNING)
def test_a_job_that_lives_with_it_runs(tmp_path: Path, text: str) -> None:
    assert judged(tmp_path, {"train.log": text}).verdict.failure_type == "none.running"


FINISHED = {
    "restarted by a supervisor": RAN + "[supervisor] trainer exited with code 137, starting again\n"
    f"{clock(415)} INFO resumed from step 200\n" + MORE + DONE + "[supervisor] trainer exited with code 0\n",
    "preempted once": RAN + f"{clock(410)} WARNING received SIGTERM (preemption), saved, exiting\n"
    f"{clock(415)} INFO resuming from checkpoint at step 200\n" + MORE + DONE,
    "a restart of the elastic agent": RAN + "[rank1]: RuntimeError: NCCL error: remote process exited\n"
    "W0131 08:06:50.100000 77 torch/distributed/elastic/agent/server/api.py:900] [default] Worker group "
    "FAILED. 3/3 attempts left; will restart worker group\n" + MORE + DONE,
    "skips to the end": late(f"{clock(821)} WARNING skipping corrupt sample 7: truncated file\n") + DONE,
    "errors at the exit": RAN + MORE + DONE
    + "Exception ignored in: <function _DataLoaderIter.__del__ at 0x7f>\n"
    + traceback("AssertionError: can only test a child process", "__del__"),
    "errors of what is done at the exit": RAN + MORE + DONE
    + "Exception ignored in atexit callback <function _bye at 0x7f>:\n"
    + traceback("AssertionError: can only join a child process", "_bye"),
    "a teardown warning": RAN + MORE + DONE + "[W131 08:15:01.1 ProcessGroupNCCL.cpp:1250] Warning: WARNING: "
    "process group has NOT been destroyed before we destruct ProcessGroupNCCL.\n",
    "the controller's word": RAN + MORE + f"{clock(830)} INFO pod phase changed from Running to Succeeded\n",
    "an upload that was tried again": RAN + MORE
    + f"{clock(830)} ERROR upload of model.bin failed: 503 SlowDown, "
    f"retry 1 of 5\n{clock(833)} INFO upload of model.bin completed\n" + DONE,
    "the epochs of Keras": "".join(
        f"Epoch {n}/5\n100/100 - 12s - loss: 0.{9 - n} - accuracy: 0.{n + 3} - 12s/epoch - 120ms/step\n"
        + ("W tensorflow/core/framework/op_kernel.cc:1839] OP_REQUIRES failed at collective_ops.cc:5 : "
           "UNAVAILABLE: Collective ops is aborted by: task:1 is preempted\n[a] worker exited with code 42"
           f", restarting\nEpoch {n}/5\n100/100 - 12s - loss: 0.{9 - n}\n" if n == 3 else "")
        for n in range(1, 6)
    ) + "saved, training finished\n",
    "a sweep with a failed trial before": RAN + "trial 3 failed: CUDA out of memory, pruned\n" + MORE + DONE,
}  # fmt: skip


@pytest.mark.parametrize("text", FINISHED.values(), ids=FINISHED)
def test_a_job_that_came_to_its_end_finished(tmp_path: Path, text: str) -> None:
    assert judged(tmp_path, {"train.log": text}).verdict.failure_type == "none.completed"


FAILED = {
    "too many bad samples": (
        late(f"{clock(821)} ERROR too many corrupt samples were skipped, aborting\n")
        + traceback("RuntimeError: 1000 consecutive samples could not be decoded, giving up"),
        {"data.corrupt", "code.runtime"},
    ),
    "a last restart": (
        RAN + "[supervisor] trainer exited with code 137, starting again\n" + MORE
        + "[supervisor] trainer exited with code 137, giving up\n", {"process.killed"},
    ),
    "NaN to the end": (
        RAN + "".join(f"{clock(420 + n)} INFO step {201 + n} loss nan lr 1e-4\n" for n in range(60)),
        {"numerics.nan"},
    ),
    "an error of a kind that no one saw before": (
        late(f"{clock(821)} ERROR grimoire of shard 7 is sealed\n"), {"unknown"},
    ),
    "a requeue that is the end": (
        RAN + "slurmstepd: error: *** JOB 7 ON cn-1 CANCELLED AT 2026-01-31T08:07:00 DUE TO PREEMPTION ***\n",
        {"scheduler.preempted"},
    ),
    "OOM that is not survived": (
        late(traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")),
        {"cuda.out_of_memory"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "types"), FAILED.values(), ids=FAILED)
def test_what_ends_a_job_still_does(tmp_path: Path, text: str, types: set[str]) -> None:
    assert judged(tmp_path, {"train.log": text}).verdict.failure_type in types
