"""A line without what varies in it, and a pattern as it looks on such a line.

A line's *blur* has a 0 in place of each digit and each letter of hexadecimal numbers. It is as long as the
line, and word borders stay where they are; so a pattern whose literals and classes are blurred in the same
way matches the blur of every line that the pattern itself matches. One look at a blur then tells of
millions of lines, whatever their numbers, that none of them can match.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

HEXADECIMAL = b"0123456789abcdefABCDEF"
TABLE = bytes(ord("0") if code in HEXADECIMAL else code for code in range(256))
_VARYING = frozenset(HEXADECIMAL.decode())
_ACCENTED = "\N{LATIN SMALL LETTER E WITH ACUTE}"


def blur(data: bytes) -> bytes:
    """The blur of a line, or of many."""
    return data.translate(TABLE)


def blurred(tokens: Sequence[str]) -> list[str]:
    """The tokens of an expression (see `wider`) as they match blurs."""
    return [_blurred(token) for token in tokens]


def _blurred(token: str) -> str:
    if token in _VARYING or token == r"\d":
        return "0"
    if token == r"\D":
        return r"[\D0]"
    if token.startswith("[") and len(token) > 1:
        return _class(token)
    if token.startswith(r"\x"):
        return "0" if chr(int(token[2:].strip("{}"), 16)) in _VARYING else token
    # Letters beyond ASCII, and what a class of Unicode holds, are not told apart here.
    if len(token) == 1 and not token.isascii():
        return r"[\x7f-\xff]"
    return "." if token[:2] in (r"\p", r"\P") or not token.isascii() else token


@functools.cache
def _class(token: str) -> str:
    """A class holds a 0 where it held any digit or hexadecimal letter."""
    holds = re.compile(token)
    if all(map(holds.fullmatch, _VARYING)):
        return token  # as the complement of some signs does
    held = {chr(code) for code in range(128) if holds.fullmatch(chr(code))}
    signs = {"0" if sign in _VARYING else sign for sign in held}
    beyond = r"\x7f-\xff" if not token.isascii() or holds.fullmatch(_ACCENTED) else ""
    return "[" + "".join(f"\\x{ord(sign):02x}" for sign in sorted(signs)) + beyond + "]"
