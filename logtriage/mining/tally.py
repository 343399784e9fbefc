"""The lines of a block told apart by their blurs in one loop of machine code: many times as fast as Arrow.

LLVM makes it of `tally.ll` for the processor at hand, in a tenth of a second, so it is for much data; what
it finds is what `kinds` finds without it.
"""

from __future__ import annotations

import ctypes
import secrets
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np

from logtriage.mining.slices import WHOLE

# Logs are hostile: who does not know where a hash begins cannot write two lines that share one.
_SEED = secrets.randbits(64)

_LINE_BYTES = 32  # a guess: of shorter lines the block is gone through again with more room
_KINDS = 1 << 16
_NO_ROOM = -1

_NUMBER, _ARRAY = ctypes.c_int64, ctypes.c_void_p
_ARGUMENTS = (
    *(ctypes.c_char_p, _NUMBER, ctypes.c_uint64, _ARRAY, _ARRAY, _NUMBER),
    *(_ARRAY, _ARRAY, _ARRAY, _ARRAY, _NUMBER, _ARRAY, _NUMBER),
    *(_NUMBER, _NUMBER, _ARRAY, _NUMBER, _NUMBER, _ARRAY),
)


@lru_cache(maxsize=1)
def machine_code() -> tuple[Any, Any]:
    """The function of `tally.ll`, and the engine that its code lives as long as."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    text = resources.files("logtriage.mining").joinpath("tally.ll").read_text("utf-8")
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    function = ctypes.CFUNCTYPE(_NUMBER, *_ARGUMENTS)(engine.get_function_address("told_apart"))
    return function, engine


def tally(
    data: bytes, offset: int = 0, shift: int = WHOLE, rows: int = 0
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """The starts and codes of the lines of a block, as `Lines` has them; first, last and count of each kind.

    The kinds are in the order of their first lines. The last array has a row for each of the first `rows`
    kinds: its counts in the slices of 2 ** `shift` bytes in which the block lies, which begins at `offset`.
    """
    told_apart, _ = machine_code()
    lines, kinds = len(data) // _LINE_BYTES + 1, _KINDS
    slices = ((offset + len(data)) >> shift) - (offset >> shift) + 1
    while True:
        starts = np.empty(lines + 1, np.int64)
        codes = np.empty(lines, np.int64)
        first, last, counts = np.empty((3, kinds), np.int64)
        hashes = np.empty(kinds, np.uint64)
        slots = np.full(2 * kinds, -1, np.int32)
        told = np.empty(1, np.int64)
        by_slice = np.zeros((rows + 1, slices), np.uint32)  # the last row is for all further kinds
        seen = told_apart(
            *(data, len(data), _SEED, starts.ctypes.data, codes.ctypes.data, lines),
            *(each.ctypes.data for each in (first, last, counts, hashes)),
            *(kinds, slots.ctypes.data, len(slots) - 1),
            *(offset, shift, by_slice.ctypes.data, rows, slices, told.ctypes.data),
        )
        if seen == _NO_ROOM:
            lines = len(data)
        elif told[0] == _NO_ROOM:
            kinds *= 8
        else:
            count = int(told[0])
            columns = first[:count], last[:count], counts[:count]
            return starts[: seen + 1], codes[:seen], *columns, by_slice[: min(rows, count)]
