"""Private copies of compressed streams, decompressed, so that any byte of them can be sought."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from logtriage.intake.compression import StreamFault, decompressed

MOST_BYTES = 64 << 30
# The disk that takes the copy shall not be filled to the brim.
_SPARE_DISK = 512 << 20
_STALE_SECONDS = 24 * 3600


def _spool_folder() -> Path:
    """A folder of this user alone: all processes of one triage find the same copy in it."""
    folder = Path(tempfile.gettempdir()) / f"logtriage-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if folder.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise StreamFault(f"{folder} is open to other users; remove it or set TMPDIR")
    return folder


def spooled(key: str, stored: Iterator[bytes]) -> tuple[Path, str | None]:
    """A decompressed copy of the stream, and what is wrong with it (None: nothing).

    The copy is removed when the process that made it ends. Raises StreamFault if there is no room.
    """
    folder = _spool_folder()
    place = folder / hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    note = place.with_suffix(".fault")
    if place.exists():
        return place, note.read_text() if note.exists() else None
    for old in folder.iterdir():  # left behind by processes that were killed
        with contextlib.suppress(OSError):
            if old.stat().st_mtime < time.time() - _STALE_SECONDS:
                old.unlink()
    room = min(MOST_BYTES, shutil.disk_usage(folder).free - _SPARE_DISK)
    fault: str | None = None
    handle, draft = tempfile.mkstemp(dir=folder)
    atexit.register(_remove, os.getpid(), Path(draft), place, note)
    with os.fdopen(handle, "wb") as copy:
        written = 0
        try:
            for chunk in decompressed(stored):
                written += len(chunk)
                if written > room:
                    raise StreamFault(f"no room to unpack more than {room:,} bytes in {folder}")
                copy.write(chunk)
        except StreamFault as error:
            fault = str(error)
        except OSError as error:
            raise StreamFault(f"cannot be unpacked to {folder}: {error.strerror}") from error
    if fault:
        note.write_text(fault)
    Path(draft).replace(place)
    return place, fault


def _remove(process: int, *files: Path) -> None:
    if os.getpid() == process:
        for file in files:
            with contextlib.suppress(OSError):
                file.unlink()
