"""Foreign pickles: plain data is read as Python reads it, and nothing else is read at all."""

from __future__ import annotations

import os
import pickle
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from growth import CATASTROPHE
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage.artefacts import pickles
from logtriage.artefacts.pickles import PickleFault, plain_pickle

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
)
keys = st.text() | st.integers()
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.tuples(inner, inner)
        | st.dictionaries(keys, inner, max_size=5)
        | st.sets(keys, max_size=5)
        | st.frozensets(keys, max_size=5)
    ),
    max_leaves=30,
)


@given(values, st.integers(4, 5))
def test_plain_data_is_read_as_python_reads_it(value: Any, protocol: int) -> None:
    assert plain_pickle(pickle.dumps(value, protocol)) == value


older_scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False)
older_values = st.recursive(
    older_scalars | st.text(alphabet="ab\\'\"\n é☃", max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=15,
)


@given(older_values, st.integers(0, 3))
def test_older_protocols_are_read_as_well(value: Any, protocol: int) -> None:
    """Sets and bytes aside, which these write as calls."""
    assert plain_pickle(pickle.dumps(value, protocol)) == value


def test_what_is_shared_stays_shared() -> None:
    frame = {"name": "step", "line": 7}
    read = plain_pickle(pickle.dumps([[frame], [frame]], 2))
    assert read == [[frame], [frame]] and read[0][0] is read[1][0]


class _Runs:
    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self.place),))


@pytest.mark.parametrize("protocol", range(6))
def test_code_in_a_pickle_is_never_run(tmp_path: Path, protocol: int) -> None:
    place = tmp_path / "made"
    data = pickle.dumps({"entries": [_Runs(place)]}, protocol)
    with pytest.raises(PickleFault, match="not plain data"):
        plain_pickle(data)
    assert not place.exists()
    pickle.loads(data)
    assert place.exists(), "the pickle would have run"


def test_even_a_harmless_class_is_not_loaded() -> None:
    with pytest.raises(PickleFault, match="not plain data"):
        plain_pickle(pickle.dumps(OrderedDict(a=1)))


BOMBS = {
    "a memo slot of four billion": b"\x80\x02]r\xff\xff\xff\xff.",
    "a text longer than the file": b"\x80\x04\x8d" + b"\xff" * 7 + b"\x00abc.",
    "a number of a gigabyte": b"\x80\x02\x8b\x00\x00\x00\x40" + b"\x01" * 100 + b".",
    "a number of many digits": b"I" + b"9" * 100_000 + b"\n.",
    "lists a hundred thousand deep": b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".",
    "a list that holds itself": b"\x80\x02]q\x00h\x00a.",
    "a billion laughs": b"\x80\x02]q\x00" + b"".join(
        b"]q%c(" % (n + 1) + (b"h%c" % n) * 10 + b"e" for n in range(40)
    ) + b"0" * 0 + b"(l.",
    "two million lists": b"\x80\x02(" + b"]" * 2_100_000 + b"l.",
    "no end": b"\x80\x02]",
    "an empty stack": b"\x80\x02.",
    "a mark that is not there": b"\x80\x02e.",
    "an append to a number": b"\x80\x02K\x01K\x02a.",
    "an unhashable key": b"\x80\x02}]K\x01s.",
    "an odd number of items": b"\x80\x02}(K\x01u.",
    "a slot that is not there": b"\x80\x02h\x07.",
    "a persistent object": b"\x80\x02K\x01Q.",
    "nothing": b"",
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_at_once(name: str) -> None:
    started = time.process_time()
    try:
        plain_pickle(BOMBS[name])
    except PickleFault:
        pass
    else:
        assert name == "a memo slot of four billion"  # a plain list, in a slot with a large name
    assert time.process_time() - started < CATASTROPHE


def test_a_small_pickle_that_is_huge_when_walked_is_refused() -> None:
    laugh: list[Any] = ["ha"] * 10
    for _ in range(30):
        laugh = [laugh] * 10
    data = pickle.dumps(laugh)
    assert len(data) < 2000
    with pytest.raises(PickleFault, match="values"):
        plain_pickle(data)


def test_depth_counts_also_where_containers_are_shared() -> None:
    inner: list[Any] = []
    for _ in range(pickles.DEEPEST - 2):
        inner = [inner]
    outer: Any = [inner, inner]
    assert plain_pickle(pickle.dumps(outer)) == outer
    for _ in range(3):
        outer = [outer, inner]
    with pytest.raises(PickleFault, match="deep"):
        plain_pickle(pickle.dumps([inner, outer]))


@settings(max_examples=300)
@given(st.binary(max_size=200), st.binary(max_size=4), st.integers(0, 200))
def test_no_bytes_bring_anything_but_a_value_or_a_fault(noise: bytes, patch: bytes, at: int) -> None:
    good = bytearray(
        pickle.dumps({"version": "2.9", "entries": [{"a": [1, 2.5, None], "b": ("x", True)}]}, 2)
    )
    good[at % len(good) : at % len(good) + len(patch)] = patch
    for data in (noise, b"\x80\x02" + noise, bytes(good)):
        try:
            plain_pickle(data)
        except PickleFault as fault:
            assert str(fault)
