"""What a watching script notes of a job: the step that it stands at, and GPUs that do nothing.

And notes that look alike of jobs that are well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from scenes import bank_read_once, judged


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


UNDATED = "".join(f"step {n}/9000 loss 2.{n} tok/s 81{n}\n" for n in range(1, 61))


def notes(*rows: tuple[str, int]) -> str:
    return "".join(
        f"2026-01-31 {clock}:00 probe ok gpu_util=100 current_step={step}\n" for clock, step in rows
    )


STANDS = notes(("10:00", 41), ("11:00", 60), ("12:00", 60), ("13:00", 60))
GOES_ON = notes(("10:00", 20), ("11:00", 41), ("12:00", 60))
GROWS = notes(("10:00", 60), ("10:10", 60), ("10:20", 60))
ANOTHER = notes(("10:00", 7), ("12:00", 7), ("14:00", 7))


@pytest.mark.parametrize(
    ("noted", "failure_type"),
    [(STANDS, "hang.silent"), (GOES_ON, "none.running"), (GROWS, "none.running"), (ANOTHER, "none.running")],
    ids=["stands", "goes on", "not for long", "another job's step"],
)
def test_notes_of_one_step_for_hours_show_a_job_that_stands(
    tmp_path: Path, noted: str, failure_type: str
) -> None:
    assert judged(tmp_path, {"out.log": UNDATED, "probe.log": noted}).verdict.failure_type == failure_type


START = (
    "2026-01-31 08:00:01,000 INFO world of 2 on one machine\n2026-01-31 08:00:09,000 INFO building groups\n"
)
SMI = "timestamp, index, utilization.gpu [%], memory.used [MiB]\n"


def polled(busy: int, mib: int, hours: range = range(8, 12)) -> str:
    rows = (f"2026/01/31 {at:02d}:01:00.002, {gpu}, {busy} %, {mib} MiB\n" for at in hours for gpu in (0, 1))
    return SMI + "".join(rows)


IDLE: dict[str, tuple[Mapping[str, str], bool]] = {
    "idle for hours": ({"run.log": START, "smi.csv": polled(0, 1870)}, True),
    "busy without a word": ({"run.log": START, "smi.csv": polled(97, 60870)}, False),
    "nobody on the GPUs": ({"run.log": START, "smi.csv": polled(0, 4)}, False),
    "polled long after": ({"run.log": START, "smi.csv": polled(0, 1870, range(14, 18))}, False),
    "not for long": ({"run.log": START, "smi.csv": polled(0, 1870, range(8, 9))}, False),
    "an error": (
        {"run.log": START + "2026-01-31 08:00:10,000 ERROR gave up\n", "smi.csv": polled(0, 1870)}, False
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "hangs"), IDLE.values(), ids=IDLE)
def test_idle_gpus_in_use_for_hours_show_a_job_that_stands_before_its_first_step(
    tmp_path: Path, files: Mapping[str, str], hangs: bool
) -> None:
    assert (judged(tmp_path, files).verdict.failure_type == "hang.silent") is hangs
