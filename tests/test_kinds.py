"""Lines are told apart alike by hand and by the tally in machine code."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage.mining import kinds
from logtriage.mining.kinds import Lines, Sliced, lines_of
from logtriage.mining.tally import tally
from logtriage.rulebank.blur import blur

pytestmark = pytest.mark.usefixtures("tally_for_small_data")


@pytest.fixture(scope="module")
def tally_for_small_data() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kinds, "TALLY_LEAST", 1)
        yield


def told(lines: Lines) -> object:
    return np.asarray(lines.starts).tolist(), np.asarray(lines.codes).tolist(), lines.kinds, list(lines.rare)


# The borders of what is blurred, of what is looked at at once, and bytes beyond ASCII.
SIGNS = st.sampled_from([bytes([code]) for code in b"\n\n0/9:`afg@AFG{ \x00\x7f\x80\xb0\xe6\xff"])
DATA = st.one_of(
    st.binary(min_size=1, max_size=800),
    st.lists(SIGNS, min_size=1, max_size=200).map(b"".join),
    st.lists(
        st.sampled_from(
            [b"step 1 of 9", b"step 12 of 9", b"rank 3: deadbeef", b"", b"ok", b"x" * 31, b"y" * 64]
        ),
        min_size=1,
    )
    .map(b"\n".join)
    .filter(bool),
)


@given(DATA, st.integers(0, 3), st.integers(0, 1000))
@settings(max_examples=300, deadline=None)
def test_both_ways_find_the_same(data: bytes, shift: int, slice: int) -> None:
    # A piece of a file of whose slices there are some before it.
    sliced = Sliced(slice * 7, shift + max(0, len(data).bit_length() - 4))
    assert told(lines_of(data, sliced, in_bulk=True)) == told(lines_of(data, sliced))


@given(
    st.lists(
        st.binary(max_size=100).map(lambda line: line.replace(b"\n", b" ")),
        min_size=1,
        max_size=30,
    )
)
@settings(max_examples=100, deadline=None)
def test_lines_have_one_code_if_and_only_if_they_have_one_blur(lines: list[bytes]) -> None:
    codes = tally(b"\n".join(lines) + b"\n")[1].tolist()
    blurs = [blur(line) for line in lines]
    assert codes == [blurs.index(each) for each in blurs]


def test_more_lines_and_kinds_than_guessed_are_told_apart() -> None:
    short = b"\n".join(b"x" * (number % 3) for number in range(300_000)) + b"\n"
    assert told(lines_of(short)) == told(lines_of(short, in_bulk=True))
    letters = "ghijklmnopqrstuvwxyz"
    words = ("".join(letters[number // 20**place % 20] for place in range(4)) for number in range(160_000))
    diverse = "\n".join(words).encode() + b"\n"
    found = lines_of(diverse, in_bulk=True)
    assert told(lines_of(diverse)) == told(found)
    assert len(found.kinds) == kinds.MOST_KINDS and len(found.kinds) + len(found.rare) == 160_000
