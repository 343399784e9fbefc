"""Files written in one step: nobody finds half of one, and a full disk takes away nothing that was there."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


def write(target: str | Path, content: str | bytes, mode: int | None = None) -> None:
    """Write a file, text in UTF-8; by default with the mode that it has, or that a new one would get.

    What is no plain file (a pipe, /dev/stdout), and a file beside which none can be made, is written as it
    lies. Raises OSError with the name of the target.
    """
    raw = content if isinstance(content, bytes) else content.encode()
    try:
        if not _exchanged(Path(os.path.realpath(target)), raw, mode):
            Path(target).write_bytes(raw)
    except OSError as fault:  # a full disk shows only when the content is written, and then without a name
        raise OSError(fault.errno, fault.strerror, str(target)) from fault


def _exchanged(place: Path, raw: bytes, mode: int | None) -> bool:
    """Whether the file could be exchanged for a new one."""
    try:
        known = place.stat().st_mode
        if not stat.S_ISREG(known):
            return False
        mode = stat.S_IMODE(known) if mode is None else mode
    except FileNotFoundError:
        mode = 0o666 & ~_umask() if mode is None else mode
    try:
        # Hidden, and without an ending by which somebody would collect it.
        descriptor, part = tempfile.mkstemp(prefix=f".{place.name[:64]}.", dir=place.parent)
    except PermissionError:
        return False
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(raw)
        Path(part).chmod(mode)
        Path(part).replace(place)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
    return True


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
