"""How shells and launchers report ends by signals that are neither a crash nor a kill.

And the helpers that a script ends by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, judged

STEPS = "".join(f"step {n}/900 loss 2.{n}\n" for n in range(1, 41))


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


@pytest.mark.parametrize(
    ("end", "failure_type"),
    [
        ("job.sh: line 19: 5121 Terminated              python train.py", "process.killed"),
        (
            "job.sh: line 19: 5121 Hangup                  torchrun --nproc_per_node=4 sft.py",
            "process.killed",
        ),
        ("job.sh: line 19: 5121 User defined signal 2   srun python -u main.py", "process.killed"),
        (
            "job.sh: line 19: 5121 Trace/breakpoint trap   (core dumped) python train.py",
            "process.native_crash",
        ),
        (
            "job.sh: line 19: 5121 CPU time limit exceeded (core dumped) python train.py",
            "host.resource_limit",
        ),
        ("[launch] python train.py exited with code 152", "host.resource_limit"),
        ("[launch] python train.py exited with code 153", "host.resource_limit"),
    ],
)
def test_the_end_of_the_training_is_read(tmp_path: Path, end: str, failure_type: str) -> None:
    assert judged(tmp_path, {"job.log": f"{STEPS}{end}\n"}).verdict.failure_type == failure_type


@pytest.mark.parametrize(
    "end",
    [
        "job.sh: line 30: 5099 Terminated              nvidia-smi dmon -s pu > gpu.txt",
        "job.sh: line 30: 5099 Terminated              while sleep 60; do df -h; done",
    ],
)
def test_a_helper_that_the_script_ends_ends_no_job(tmp_path: Path, end: str) -> None:
    assert judged(tmp_path, {"job.log": f"{STEPS}{end}\n"}).verdict.failure_type == "none.running"
