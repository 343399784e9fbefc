"""Bytes of a line → the text that is read."""

from __future__ import annotations

from logtriage.regex import regex

HEAD_BYTES = 48 * 1024
TAIL_BYTES = 16 * 1024
_LIMIT = HEAD_BYTES + TAIL_BYTES

# Also as rsyslog writes an escape character (#033) and as some terminals show it (^[).
_ESCAPES = regex(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]"
    r"|(?:#033|\^\[)\[[0-9;]*[mK]|[\x00\x08\x1b]"
)


def decoded(raw: bytes) -> str:
    """The text of one line without its line end; of a very long one the head and the tail."""
    raw = raw.rstrip(b"\r\n")
    if len(raw) <= _LIMIT:
        return raw.decode("utf-8", "replace")
    head = raw[:HEAD_BYTES].decode("utf-8", "replace").rstrip("\ufffd")
    return head + raw[-TAIL_BYTES:].decode("utf-8", "replace").lstrip("\ufffd")


def without_escapes(text: str) -> str:
    """The text without terminal escapes, NULs and backspaces."""
    if "\x1b" in text or "\x00" in text or "#033[" in text or "^[[" in text or "\x08" in text:
        return _ESCAPES.sub("", text)
    return text
