"""A job that was gone when somebody looked at its GPUs, and one that was there."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import judged, steps

TABLE = "| 30%   33C    P8    21W / 300W | {:>8}MiB / 49140MiB |      0%      Default |\n"
PROCESS = "|    0   N/A  N/A      2211      G   /usr/lib/xorg/Xorg              30009MiB |\n"
QUERY = "{}, 0 %, {} MiB\n"


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        (TABLE.format(3) * 4 + PROCESS, "unknown"),
        (QUERY.format(0, 4) + QUERY.format(1, 4), "unknown"),
        (TABLE.format(3) + TABLE.format(31002), "hang.silent"),
        (QUERY.format(0, 4) + QUERY.format(1, 40110), "hang.silent"),
        ("", "hang.silent"),
    ],
)
def test_a_job_that_left_its_gpus_does_not_stand_still(tmp_path: Path, rows: str, kind: str) -> None:
    look = "kim@g4:~$ date; ls -l; nvidia-smi\nSat Jan 31 13:42:20 UTC 2026\n"
    look += f"-rw-r--r-- 1 kim lab 91120 Jan 31 08:01 train.log\n{rows}"
    files = {"train.log": steps(40), "look.txt": look}
    assert judged(tmp_path, files).verdict.failure_type == kind
