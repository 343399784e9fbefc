"""Pickles of plain data, read without running anything.

Python's own unpickler calls what a pickle names and lets a few bytes ask for gigabytes of memo, so foreign
dumps are read by a small machine of their own: containers, strings, numbers and bytes, nothing callable.
Opcodes as documented in the standard library's `pickletools`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

MOST_BYTES = 32 << 20
MOST_CONTAINERS = 2_000_000  # an empty one takes 64 bytes of memory and one of the file
MOST_VALUES = 20_000_000  # values that a dump may build, shared ones counted at every use
DEEPEST = 100  # containers inside containers; a recorder's dump needs seven


class PickleFault(Exception):
    """Why a pickle is not read: cut, broken, too large, or asking for more than plain data."""


_UINT32 = struct.Struct("<I").unpack_from
_INT32 = struct.Struct("<i").unpack_from
_UINT64 = struct.Struct("<Q").unpack_from
_DOUBLE = struct.Struct(">d").unpack_from

# Opcodes that name or call code, or take objects from outside.
_CODE = {
    ord("c"): "GLOBAL", ord("R"): "REDUCE", ord("b"): "BUILD", ord("i"): "INST", ord("o"): "OBJ",
    0x81: "NEWOBJ", 0x92: "NEWOBJ_EX", 0x93: "STACK_GLOBAL", ord("P"): "PERSID", ord("Q"): "BINPERSID",
    0x82: "EXT1", 0x83: "EXT2", 0x84: "EXT4", 0x97: "NEXT_BUFFER", 0x98: "READONLY_BUFFER",
}  # fmt: skip


def plain_pickle(data: bytes) -> Any:
    """The value of a pickle that holds nothing but dicts, lists, tuples, sets, text, bytes and numbers.

    Raises PickleFault for everything else, and for what is cut, broken, deeper than DEEPEST, or larger
    than MOST_BYTES, MOST_CONTAINERS or MOST_VALUES. Nothing that the pickle names is imported or called.
    """
    if len(data) > MOST_BYTES:
        raise PickleFault(f"larger than {MOST_BYTES >> 20} MiB")
    try:
        value = _run(data)
    except PickleFault:
        raise
    except (IndexError, KeyError, struct.error, ValueError, TypeError, UnicodeError) as error:
        raise PickleFault(f"a cut or broken pickle ({type(error).__name__})") from error
    if type(value) in _CONTAINERS:
        _extent(value, 1, {})
    return value


def _run(data: bytes) -> Any:
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}
    push = stack.append
    at, size, built = 0, len(data), 0
    while at < size:
        code = data[at]
        at += 1
        if code == 0x71:  # BINPUT
            memo[data[at]] = stack[-1]
            at += 1
        elif code == 0x72:  # LONG_BINPUT
            memo[_UINT32(data, at)[0]] = stack[-1]
            at += 4
        elif code == 0x68:  # BINGET
            push(memo[data[at]])
            at += 1
        elif code == 0x6A:  # LONG_BINGET
            push(memo[_UINT32(data, at)[0]])
            at += 4
        elif code == 0x94:  # MEMOIZE
            memo[len(memo)] = stack[-1]
        elif code == 0x58:  # BINUNICODE
            end = at + 4 + _UINT32(data, at)[0]
            _within(end, size)
            push(data[at + 4 : end].decode("utf-8", "surrogatepass"))
            at = end
        elif code == 0x8C:  # SHORT_BINUNICODE
            end = at + 1 + data[at]
            _within(end, size)
            push(data[at + 1 : end].decode("utf-8", "surrogatepass"))
            at = end
        elif code == 0x4B:  # BININT1
            push(data[at])
            at += 1
        elif code == 0x4D:  # BININT2
            push(data[at] | data[at + 1] << 8)
            at += 2
        elif code == 0x4A:  # BININT
            push(_INT32(data, at)[0])
            at += 4
        elif code == 0x8A:  # LONG1
            end = at + 1 + data[at]
            _within(end, size)
            push(int.from_bytes(data[at + 1 : end], "little", signed=True))
            at = end
        elif code == 0x28:  # MARK
            marks.append(len(stack))
        elif code == 0x65:  # APPENDS
            start = marks.pop()
            _list(stack[start - 1]).extend(stack[start:])
            del stack[start:]
        elif code == 0x75:  # SETITEMS
            start = marks.pop()
            items = iter(stack[start:])
            _dict(stack[start - 1]).update(zip(items, items, strict=True))
            del stack[start:]
        elif code == 0x2E:  # STOP
            if marks or len(stack) != 1:
                raise PickleFault("a broken pickle (unfinished)")
            return stack[0]
        elif (constant := _CONSTANTS.get(code)) is not None:
            push(constant())
            built += 1
            if built > MOST_CONTAINERS:
                raise PickleFault(f"more than {MOST_CONTAINERS:,} containers")
        elif code in _CODE:
            raise PickleFault(f"not plain data (it holds {_CODE[code]}), so it is not read")
        else:
            at = _rare(code, data, at, stack, marks, memo)
            built += 1
            if built > MOST_CONTAINERS:
                raise PickleFault(f"more than {MOST_CONTAINERS:,} containers")
    raise PickleFault("a cut pickle (no end)")


_CONSTANTS: dict[int, Callable[[], Any]] = {
    0x7D: dict, 0x5D: list, 0x29: tuple, 0x8F: set, 0x4E: lambda: None, 0x88: lambda: True,
    0x89: lambda: False,
}  # fmt: skip


def _rare(code: int, data: bytes, at: int, stack: list[Any], marks: list[int], memo: dict[int, Any]) -> int:
    """The opcodes that torch's own writer seldom or never uses; where to go on."""
    if code == 0x80:  # PROTO
        if data[at] > 5:
            raise PickleFault(f"pickle protocol {data[at]} is not known")
        return at + 1
    if code == 0x95:  # FRAME
        _within(at + 8, len(data))
        return at + 8
    if code == 0x47:  # BINFLOAT
        stack.append(_DOUBLE(data, at)[0])
        return at + 8
    if code in (0x61, 0x73):  # APPEND, SETITEM
        value = stack.pop()
        if code == 0x61:
            _list(stack[-1]).append(value)
        else:
            key = stack.pop()
            _dict(stack[-1])[key] = value
    elif code in (0x85, 0x86, 0x87):  # TUPLE1, TUPLE2, TUPLE3
        count = code - 0x84
        if len(stack) - (marks[-1] if marks else 0) < count:
            raise PickleFault("a broken pickle (empty stack)")
        stack[-count:] = [tuple(stack[-count:])]
    elif code in (0x74, 0x6C, 0x64, 0x91, 0x90):  # TUPLE, LIST, DICT, FROZENSET, ADDITEMS
        start = marks.pop()
        held = stack[start:]
        del stack[start:]
        if code == 0x90:
            if not isinstance(stack[-1], set):
                raise PickleFault("a broken pickle (no set)")
            stack[-1].update(held)
        elif code == 0x64:
            items = iter(held)
            stack.append(dict(zip(items, items, strict=True)))
        else:
            stack.append({0x74: tuple, 0x6C: list, 0x91: frozenset}[code](held))
    elif code in (0x30, 0x31, 0x32):  # POP, POP_MARK, DUP
        if code == 0x32:
            stack.append(stack[-1])
        elif code == 0x31:
            del stack[marks.pop() :]
        else:
            stack.pop()
    elif code in _SIZED:
        unpack, width, decode = _SIZED[code]
        at, raw = _counted(data, at, unpack, width)
        stack.append(decode(raw))
    elif code in _LINES:
        end = data.index(b"\n", at)
        _textual(code, data[at:end], stack, memo)
        return end + 1
    else:
        raise PickleFault(f"a broken pickle (opcode 0x{code:02x})")
    return at


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")


def _number(raw: bytes) -> int:
    if len(raw) > 64:
        raise PickleFault("a number of more than 64 bytes")
    return int.from_bytes(raw, "little", signed=True)


def _one(data: bytes, at: int) -> tuple[int]:
    return (data[at],)


_SIZED: dict[int, tuple[Callable[[bytes, int], tuple[int, ...]], int, Callable[[bytes], Any]]] = {
    0x8D: (_UINT64, 8, _text),  # BINUNICODE8
    0x43: (_one, 1, bytes),  # SHORT_BINBYTES
    0x42: (_UINT32, 4, bytes),  # BINBYTES
    0x8E: (_UINT64, 8, bytes),  # BINBYTES8
    0x96: (_UINT64, 8, bytes),  # BYTEARRAY8
    0x55: (_one, 1, lambda raw: raw.decode("utf-8", "replace")),  # SHORT_BINSTRING
    0x54: (_UINT32, 4, lambda raw: raw.decode("utf-8", "replace")),  # BINSTRING
    0x8B: (_UINT32, 4, _number),  # LONG4
}
_LINES = b"ILFSVpg"  # the opcodes of protocol 0, each with its argument on a line


def _textual(code: int, raw: bytes, stack: list[Any], memo: dict[int, Any]) -> None:
    if len(raw) > 64 and code not in b"SV":
        raise PickleFault("a number of more than 64 digits")
    if code == 0x70:  # PUT
        memo[int(raw)] = stack[-1]
    elif code == 0x67:  # GET
        stack.append(memo[int(raw)])
    elif code == 0x46:  # FLOAT
        stack.append(float(raw))
    elif code == 0x56:  # UNICODE
        stack.append(raw.decode("raw-unicode-escape"))
    elif code == 0x53:  # STRING, in quotes
        stack.append(raw.strip()[1:-1].decode("utf-8", "replace"))
    else:  # INT (01 and 00 are booleans), LONG
        stack.append({b"01": True, b"00": False}[raw] if raw in (b"01", b"00") else int(raw.rstrip(b"L")))


def _counted(
    data: bytes, at: int, unpack: Callable[[bytes, int], tuple[int, ...]], width: int
) -> tuple[int, bytes]:
    """(behind it, the bytes) of an argument that begins with its length."""
    start = at + width
    end = start + unpack(data, at)[0]
    _within(end, len(data))
    return end, data[start:end]


def _within(end: int, size: int) -> None:
    if end > size:
        raise PickleFault("a cut pickle")


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise PickleFault("a broken pickle (no list)")
    return value


def _dict(value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise PickleFault("a broken pickle (no dict)")
    return value


_CONTAINERS = frozenset({dict, list, tuple, set, frozenset})


def _extent(value: Any, depth: int, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """(values, containers deep) of a container, shared ones counted at every use.

    Refuses what is small in the file and huge or endless when walked. Each container is walked once, so
    this takes no longer than the file is long.
    """
    if depth > DEEPEST:
        raise PickleFault(f"more than {DEEPEST} containers deep")
    known[id(value)] = (0, 0)
    total, height = 1 + len(value), 1
    for one in (*value, *value.values()) if type(value) is dict else value:
        if type(one) in _CONTAINERS:
            inner = known.get(id(one)) or _extent(one, depth + 1, known)
            if not inner[0]:
                raise PickleFault("a value that holds itself")
            total += inner[0]
            height = max(height, inner[1] + 1)
    if total > MOST_VALUES:
        raise PickleFault(f"more than {MOST_VALUES:,} values")
    if depth + height > DEEPEST + 1:
        raise PickleFault(f"more than {DEEPEST} containers deep")
    known[id(value)] = (total, height)
    return total, height
