"""Hostile text made harmless for terminals, pages and messages, before anything else is done with it."""

from __future__ import annotations

import unicodedata

from logtriage.regex import regex

# What a terminal or a browser would obey instead of show: controls, formatting characters (bidi overrides,
# zero widths), surrogates, private use, code points without a character, line and paragraph separators.
_OBEYED = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_PLAIN = regex(r"[\x20-\x7e]*")
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": " "}


def visible(text: str, most: int = 4000) -> str:
    """One line of hostile text made harmless: what a terminal would obey is shown as `\\x1b`, `\\u202e`, …

    No more than `most` characters of the text are looked at; `…` marks that there was more.
    """
    if len(text) > most:
        text = text[:most] + "…"
    if _PLAIN.fullmatch(text):
        return text
    return "".join(
        character if unicodedata.category(character) not in _OBEYED else _escaped(character)
        for character in text
    )


def _escaped(character: str) -> str:
    code = ord(character)
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def prose(text: str) -> str:
    """Sentences as one harmless paragraph."""
    return visible(" ".join(text.split()))
