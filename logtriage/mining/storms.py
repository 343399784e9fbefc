"""Lines of a storm, told apart by what they say: all but the time."""

from __future__ import annotations

from collections.abc import Sequence

from logtriage.mining.kinds import Lines, alike
from logtriage.regex import regex

# What differs between two lines of a storm that say the same.
_TIME = regex(
    rb"\b\d{4}-\d\d-\d\d[T ]?|\b\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?![:\w])"
    rb"|\[ *\d+\.\d{6}\]|\b1[6-9]\d{8}(?:\.\d+)?\b"
)
_DIGITS = frozenset(b"0123456789")
MANY_LINES = 8_192  # fewer are looked at one by one before arrays are loaded for them
# What stands where a blur has a zero, as letters that no blur hides.
_SPELT = bytes.maketrans(b"0123456789abcdefABCDEF", b"ghijklmnopqrstuvGHIJKL")


def saying_alike(lines: Lines, members: Sequence[int]) -> list[Sequence[int]]:
    """Lines of one blur, by index, in groups of those that are the same without their times."""
    if len(members) >= MANY_LINES:
        groups = _by_columns(lines, members)
        if groups is not None:
            return groups
    said: dict[bytes, list[int]] = {}
    for index, line in zip(members, lines.texts(members), strict=True):
        said.setdefault(_TIME.sub(b"", line), []).append(index)
    return list(said.values())


def _by_columns(lines: Lines, members: Sequence[int]) -> list[Sequence[int]] | None:
    """The same in bulk: such lines are as long as each other, and their times stand in the same columns.

    None where a line has something else than a time there.
    """
    import numpy as np

    from logtriage.mining.tally import tally

    sample = lines.line(members[0])
    spans = [found.span() for found in _TIME.finditer(sample)]
    timed = [column for start, stop in spans for column in range(start, stop) if sample[column] in _DIGITS]
    indices = np.asarray(members)
    starts = np.asarray(lines.starts)[indices]
    data = np.frombuffer(lines.data, dtype=np.uint8)
    for column in timed:
        signs = data[starts + column]
        if not ((signs >= ord("0")) & (signs <= ord("9"))).all():
            return None
    for start, stop in spans:  # seconds since 1970 are known by their first two digits
        if stop - start >= 10 and sample[start : start + 10].isdigit():
            second = data[starts + start + 1]
            if not ((data[starts + start] == ord("1")) & (second >= ord("6"))).all():
                return None
    blur = lines.kinds[int(lines.codes[members[0]])].blur
    asked = sorted({column for column, sign in enumerate(blur) if sign == ord("0")}.difference(timed))
    if not asked:
        return [members]
    rows = np.full((len(members), len(asked) + 1), ord("\n"), dtype=np.uint8)
    for place, column in enumerate(asked):
        rows[:, place] = data[starts + column]
    codes = tally(rows.tobytes().translate(_SPELT))[1]
    return [indices[same].tolist() for same in alike(codes)]
