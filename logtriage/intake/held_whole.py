"""Streams that can only be changed when all of them is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from logtriage.intake.compression import StreamFault


def changed_whole(chunks: Iterable[bytes], change: Callable[[bytes], bytes], most: int) -> Iterator[bytes]:
    """A stream as `change` makes it; one of more than `most` bytes as it is.

    Raises the StreamFault of the stream behind what was readable.
    """
    held = bytearray()
    fault: StreamFault | None = None
    rest = iter(chunks)
    try:
        for chunk in rest:
            held += chunk
            if len(held) > most:
                yield bytes(held)
                yield from rest
                return
    except StreamFault as error:
        fault = error
    yield change(bytes(held))
    if fault is not None:
        raise fault
