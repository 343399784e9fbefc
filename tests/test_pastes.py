"""Output that somebody pasted: what it fails of is said in a library's own words, or not said at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, first, judged, traceback


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


TENSORSTORE = (
    'ValueError: NOT_FOUND: Error opening "zarr3" driver: Metadata at local file "{}" does not exist'
)
PROBED = "I0104 09:00:01.100 77 xla_bridge.py:889] Unable to initialize backend 'tpu': {}\n"


@pytest.mark.parametrize(
    ("text", "failure_type"),
    [
        (traceback("ValueError: lilcom: Cannot decompress the header"), "data.corrupt"),
        (traceback("OSError: Invalid data stream"), "data.corrupt"),
        (traceback(TENSORSTORE.format("/mnt/tokenized/wiki/data/zarr.json")), "data.missing"),
        (traceback(TENSORSTORE.format("/home/me/corpus-3/part/zarr.json")), "data.missing"),
        (traceback(TENSORSTORE.format("/out/run7/900/params.kernel/zarr.json")), "checkpoint.corrupt"),
        (
            traceback("my.core.CheckpointingException: /out/iter_90 is not a distributed checkpoint"),
            "checkpoint.corrupt",
        ),
        (traceback("fsspec.exceptions.FSTimeoutError"), "network.connection"),
        (
            PROBED.format("libtpu.so: cannot open shared object file: No such file or directory")
            + traceback("KeyError: 'lr'"),
            "code.key",
        ),
        (
            "INFO:jax._src.xla_bridge:Unable to initialize backend 'rocm': librocm.so: cannot open shared "
            "object file: No such file or directory\n" + traceback("KeyError: 'lr'"),
            "code.key",
        ),
        (
            traceback("tensorflow.errors.UnavailableError: Collective ops is aborted by: Socket closed"),
            "collective.remote_error",
        ),
    ],
)  # fmt: skip
def test_a_librarys_words_tell_what_a_paste_failed_of(tmp_path: Path, text: str, failure_type: str) -> None:
    assert judged(tmp_path, {"out.txt": text}).verdict.failure_type == failure_type


@pytest.mark.parametrize(
    "form",
    [
        "{{'loss': {loss}, 'learning_rate': 2e-05, 'train_speed(s/it)': 3.1, 'iteration': '{step}/900'}}\n",
        "{{'loss': {loss}, 'lr': 2e-05, 'iter': '{step}/900'}}\n",
        "10:00:{second:02}-Speed 911.20 samples/sec   Loss {loss}   Epoch: 0   Global Step: {step}\n",
    ],
)
def test_steps_that_stand_behind_their_loss_are_steps(tmp_path: Path, form: str) -> None:
    lines = (
        form.format(loss=f"{3 - number / 50:.4f}", step=10 * number, second=number) for number in range(1, 41)
    )
    assert judged(tmp_path, {"run.log": "".join(lines)}).verdict.failure_type == "none.running"


BAR = "100%|##########| 700/700 [21:02<00:00,  1.80s/it, loss={loss}]\nepoch {epoch} done, loss {loss}\n"
TAKEN = (
    "slurmstepd: error: *** JOB 77 ON n4 CANCELLED AT 2026-01-31T08:10:00 DUE TO PREEMPTION ***\n"
    "loading the last snapshot\n"
)


@pytest.mark.parametrize(
    "end", ["## job 77: state COMPLETED, exit code 0:0\n", "JobID=77 State=COMPLETED ExitCode=0:0\n"]
)
def test_a_job_that_was_taken_up_and_done_was_not_preempted(tmp_path: Path, end: str) -> None:
    epochs = [BAR.format(epoch=epoch, loss=f"{9 / epoch:.2f}") for epoch in range(1, 9)]
    text = "".join([*epochs[:5], TAKEN, *epochs[5:]])
    assert judged(tmp_path, {"log.txt": text + end}).verdict.failure_type == "none.completed"
    unfinished = judged(tmp_path / "not", {"log.txt": "".join([*epochs, TAKEN])})
    assert unfinished.verdict.failure_type == "scheduler.preempted"
    assert "PREEMPTION" in first(unfinished)[1]


ASKED = (
    "'(ReadTimeoutError(\"HTTPSConnectionPool(host='hub.example', port=443): Read timed out.\"))' "
    "thrown while requesting GET https://hub.example/datasets/x/resolve/main/part-00071.jsonl.zst\n"
)
LACKED = traceback("FileNotFoundError: zstd://{0}::hf://datasets/x@2d0a/{0}")


@pytest.mark.parametrize(
    ("tries", "lacked", "failure_type"),
    [
        (
            "Retrying in 1s [Retry 1/2].\nRetrying in 2s [Retry 2/2].\n",
            "part-00071.jsonl.zst",
            "network.connection",
        ),
        ("attempt 3 of 3 failed\n", "part-00071.jsonl.zst", "network.connection"),
        ("Retrying in 1s [Retry 1/5].\n", "part-00071.jsonl.zst", "data.missing"),  # which may have gone well
        ("Retrying in 8s [Retry 5/5].\n", "other-00001.jsonl.zst", "data.missing"),
    ],
)
def test_what_could_not_be_fetched_is_not_missing(
    tmp_path: Path, tries: str, lacked: str, failure_type: str
) -> None:
    verdict = judged(tmp_path, {"out.txt": ASKED + tries + LACKED.format(lacked)})
    assert verdict.verdict.failure_type == failure_type
