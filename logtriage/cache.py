"""Files that can be made again, kept to save time: each holds a checksum and then its content."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from logtriage.written import write

MOST_ALIKE = 3


def cache_folder() -> Path:
    """Where they lie: below XDG_CACHE_HOME, or ~/.cache."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return Path(home) / "logtriage"


def kept(path: Path) -> bytes:
    """The content of a kept file. Raises OSError where there is none, ValueError where it is damaged."""
    checksum, content = path.read_bytes().split(b"\n", 1)
    if hashlib.sha256(content).hexdigest().encode() != checksum:
        raise ValueError(f"{path} is damaged")
    return content


def keep(path: Path, content: bytes) -> None:
    """Write a file; of those of its kind (the name up to the first `-`) the newest few stay beside it.

    So two versions of the product on one machine do not rob each other. A full or read-only disk only costs
    the time that the file would have saved.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        alike = path.parent.glob(f"{path.name.split('-', 1)[0]}-*{path.suffix}")
        for old in sorted(alike, key=lambda each: each.stat().st_mtime)[:-MOST_ALIKE]:
            old.unlink(missing_ok=True)
        write(path, hashlib.sha256(content).hexdigest().encode() + b"\n" + content, 0o600)
    except OSError:
        return
