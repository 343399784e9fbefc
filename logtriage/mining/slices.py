"""How often something stands in each slice of a file, packed in one number.

A file is cut into at most MOST_SLICES slices of equally many bytes, a power of two: twice as many wherever
the file outgrows them. A slice begins at a multiple of its size, so that the counts of a file's pieces add up
to those of the file, however it was cut; lines belong to the slice in which they begin. Of the counts each
takes LANE_BITS of an integer, the first slice's the lowest: adding two files' pieces is one addition, and a
kind of lines that stands in few places takes little memory.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

MOST_SLICES = 32
LANE_BITS = 32
LEAST_SHIFT = 14  # a smaller file is one slice of 16 KiB: it is read closely as a whole
WHOLE = 62  # the shift by which everything lies in one slice
_LANE_BYTES, _MOST = LANE_BITS // 8, (1 << LANE_BITS) - 1  # more lines of a slice are not counted


def shift_of(size: int) -> int:
    """The binary logarithm of the bytes of each slice of a file of `size` bytes."""
    return max(LEAST_SHIFT, (max(0, size - 1) // MOST_SLICES).bit_length())


def packed(counts: bytes, first: int) -> int:
    """The counts of slices from `first` on, given as little-endian lanes."""
    return int.from_bytes(counts, "little") << (LANE_BITS * first)


def counts_of(slices: int) -> tuple[int, ...]:
    """The count of each slice, up to the last that is not 0."""
    lanes = -(-slices.bit_length() // LANE_BITS)
    return struct.unpack(f"<{lanes}I", slices.to_bytes(lanes * _LANE_BYTES, "little"))


def of_counts(counts: Sequence[int]) -> int:
    """The opposite of `counts_of`."""
    return packed(struct.pack(f"<{len(counts)}I", *counts), 0)


def coarser(slices: int, doublings: int) -> int:
    """The same in slices whose size was doubled so often."""
    if not doublings or not slices:
        return slices
    counts, together = counts_of(slices), 1 << doublings
    return of_counts([min(_MOST, sum(counts[at : at + together])) for at in range(0, len(counts), together)])
