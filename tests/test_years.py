"""The year of times that have none of their own (syslog, glog): that of the job's other lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, judged


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


@pytest.mark.parametrize(
    "moment",
    ["[03/09/24 11:{0:02d}:00]", "03/09/2024, 11:{0:02d}:00", "2024/03/09 11:{0:02d}:00",
     "2024-Mar-09 11:{0:02d}:00.1", "I20240309 11:{0:02d}:00.000001 71 loop.py:9]",
     "09 Mar 2024 11:{0:02d}:00", "24/03/09 11:{0:02d}:00"],
)  # fmt: skip
def test_a_kernel_log_lies_in_the_year_of_the_job(tmp_path: Path, moment: str) -> None:
    text = "".join(f"{moment.format(n)} INFO step {n} loss 2.1\n" for n in range(30))
    text += moment.format(31) + " ERROR RuntimeError: CUDA error: unspecified launch failure\n"
    kernel = (
        "Mar 09 11:30:58 gx-4 kernel: NVRM: Xid (PCI:0000:3b:00): 74, pid=71, name=python, NVLink: fatal "
        "error detected on link 2(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)\n"
    )
    verdict = judged(tmp_path, {"out.log": text, "kern.log": kernel})
    assert verdict.verdict.failure_type == "gpu.nvlink"
    assert {(each.time or "")[:4] for each in verdict.verdict.evidence} == {"2024"}
