"""A stream that is made by a thread while what it gave before is being looked at.

Decompressors and what looks at blocks of lines both let go of the interpreter, so two cores have work.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Generator, Iterable

HELD_CHUNKS = 8  # that are ready before the thread waits: of a compressed stream, 16 MiB
PATIENCE_SECONDS = 1.0  # with a thread that makes nothing more, once nobody wants it


def ahead(chunks: Iterable[bytes]) -> Generator[bytes]:
    """The same chunks; an error that they raise comes where they would have raised it.

    The thread has ended when this has, whether it was read to its end or closed before, unless a read hangs.
    """
    ready: queue.Queue[bytes | BaseException | None] = queue.Queue(HELD_CHUNKS)
    is_closed = False

    def make() -> None:
        last: BaseException | None = None
        try:
            for chunk in chunks:
                ready.put(chunk)
                if is_closed:
                    break
        except BaseException as error:
            last = error
        ready.put(last)

    thread = threading.Thread(target=make, daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no more threads
        yield from chunks
        return
    is_made = False
    try:
        while not is_made:
            chunk = ready.get()
            is_made = not isinstance(chunk, bytes)
            if isinstance(chunk, BaseException):
                raise chunk
            if isinstance(chunk, bytes):
                yield chunk
    finally:
        is_closed = True
        with contextlib.suppress(queue.Empty):  # a disk does not answer: the thread is left to that
            while not is_made:  # it may wait for room
                is_made = not isinstance(ready.get(timeout=PATIENCE_SECONDS), bytes)
            thread.join()
