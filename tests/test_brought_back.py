"""A damaged file that bears its rank's number, and what all ranks did when it was found."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import clock, judged, steps, traceback

CUT = (
    "OSError: Unable to open file (truncated file: eof = 96, sblock->base_addr = 0, stored_eof = 2048): '{}'"
)


@pytest.mark.parametrize(
    ("said", "before", "file", "kind"),
    [
        ("keeper: fetching 3.1 GiB", "", "/out/run/t70/piece2.h5", "checkpoint.corrupt"),
        ("keeper: fetching 3.1 GiB", "", "/pool/piece7.h5", "data.corrupt"),  # another's number
        ("", "", "/pool/piece2.h5", "data.corrupt"),
        (
            "keeper: fetching 3.1 GiB",
            "keeper: fetching 2.0 GiB",
            "/pool/piece2.h5",
            "data.corrupt",
        ),  # all day
    ],
)
def test_what_all_ranks_did_once_before_one_found_its_own_file_damaged_is_to_resume(
    tmp_path: Path, said: str, before: str, file: str, kind: str
) -> None:
    files = {
        f"rank{rank}.log": f"{clock(0)} INFO {before}\n" * bool(before)
        + steps(100, at=2)
        + f"{clock(203)} INFO {said}\n" * bool(said)
        + (traceback(CUT.format(file), "bring", "/app/keeper.py") if rank == 2 else "")
        for rank in range(5)
    }
    verdict = judged(tmp_path, files).verdict
    assert (verdict.failure_type, verdict.culprits.ranks) == (kind, (2,))
