"""Which files are dumps that a reader of their own understands, told by their first and last bytes."""

from __future__ import annotations

import re

import re2

from logtriage.model import ArtefactKind

_RECORDER_KEYS = (b"pg_config", b"pg_status", b"profiling_name")
_JSON_KEYS = (b'"pg_config"', b'"pg_status"', b'"collective_seq_id"', b'"profiling_name"')
# py-spy heads each process, faulthandler and gdb each thread. C++ exceptions, too, give a stack "(most recent
# call first)", which tells nothing of a hang. Many alternatives over 64 KiB are what re2 is quick at.
STACK_HEAD: re.Pattern[bytes] = re2.compile(
    rb"(?m)(?:[Tt]hread 0x[0-9a-fA-F]{1,16}(?: \[[^\]\n]{0,64}\])?|\bStack) \(most recent call first\)"
    rb"|^Thread (?:0x[0-9a-fA-F]+|\d+) \((?:active|idle|LWP|Thread)"
    rb"|^Process \d+: .*\n(?:Python v|Host Name)|^#0 +(?:0x[0-9a-f]+ in )?[\w:~<>]+ ?\("
    rb"|\"os_thread_id\""
)
_STACK_WORDS = (b"recent call first", b"\nThread ", b"\nProcess ", b"\n#0 ", b'"os_thread_id"')

_RAS_WORDS = (
    b"Communicator ranks have different ", b"Missing communicator data from ", b"via the RAS network",
)  # fmt: skip


def artefact_kind(head: bytes, tail: bytes = b"") -> ArtefactKind | None:
    """The kind of dump that a file is or holds, or None for most files.

    `head` are its first bytes after decompression, `tail` its last where it is longer.
    """
    start = head[:64].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start[:1] == b"\x80" or start[:3] in (b"(dp", b"(d\n"):  # a pickle, of protocol 2 to 5 or 0
        return ArtefactKind.FLIGHT_RECORDER if any(key in head for key in _RECORDER_KEYS) else None
    if start[:1] == b"{" and sum(key in head for key in _JSON_KEYS) >= 2:
        return ArtefactKind.FLIGHT_RECORDER
    if b'"communicators_count"' in head or any(word in part for part in (head, tail) for word in _RAS_WORDS):
        return ArtefactKind.RAS
    if b"hanging ranks: [" in head or b"hanging ranks: [" in tail:
        return ArtefactKind.ANALYSIS
    for part in (head, tail):
        below = b"\n" + part
        if any(word in below for word in _STACK_WORDS) and STACK_HEAD.search(part):
            return ArtefactKind.STACKS
    return None
