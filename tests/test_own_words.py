"""What one rank alone says in words that no rule knows, where it names the cause."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import clock, first, judged, steps, traceback

from logtriage.diagnose.own_words import unequal

DIGESTS = "INFO feed: 77 came as 0x9f31ab22cd4e11ff, was put down as 0x11aa33bb44cc55dd"


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (DIGESTS, "data.corrupt"),
        ("WARN halver: tower 3 tops out at inf, nll NaN", "numerics.nan"),
        ("INFO feed: 77 came as 0x9f31ab22cd4e11ff, was put down as 0x9f31ab22cd4e11ff", "code.runtime"),
        ("INFO feed: moved to 0x7f31ab22cd4e, from 0x7f11aa33bb44", "code.runtime"),
        ("INFO halver: 0 nans so far", "code.runtime"),
        ("INFO vault: weights came as 9f31ab22cd4e11ff, not 11aa33bb44cc55dd", "code.runtime"),
    ],
)
def test_what_it_said_before_an_exception_of_a_class_that_nobody_knows(
    tmp_path: Path, said: str, kind: str
) -> None:
    files = {
        f"rank{rank}.log": steps(40)
        + (f"{clock(81)} {said}\n{traceback('feed.NotTaken: 77')}" if rank == 2 else "")
        for rank in range(4)
    }
    verdict = judged(tmp_path, files)
    assert (verdict.verdict.failure_type, verdict.verdict.culprits.ranks) == (kind, (2,))
    if kind != "code.runtime":
        assert first(verdict) == ("rank2.log", f"{clock(81)} {said}")


def test_what_other_ranks_say_as_well_tells_no_cause(tmp_path: Path) -> None:
    files = {
        f"rank{rank}.log": steps(40)
        + f"{clock(81)} {DIGESTS}\n"
        + (traceback("feed.NotTaken: 77") if rank == 2 else "")
        for rank in range(4)
    }
    assert judged(tmp_path, files).verdict.failure_type == "code.runtime"


HEX = st.text("0123456789abcdef", min_size=16, max_size=16)


@given(HEX, HEX)
def test_the_same_digest_twice_is_never_unequal(one: str, other: str) -> None:
    assert not unequal(f"wrote {one}, read {one}")
    assert unequal(f"wrote {one}, read {other}") == unequal(f"wrote {other}, read {one}")


def test_parts_of_an_uuid_are_no_digests() -> None:
    one, other = "9f31ab22-cd4e-11ff-8a3b-0123456789ab", "11aa33bb-44cc-55dd-8a3b-0123456789ab"
    assert not unequal(f"GPU-{one} beside GPU-{other}")
