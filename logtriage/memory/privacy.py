"""The data folder, with what was said of jobs, is its owner's alone."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from pathlib import Path

# What this program puts into its data folder; a folder that holds nothing else was made by it.
_OWN = re.compile(
    r"(?:ledger\.sqlite3|slack\w*\.sqlite3|nightly\w*\.sqlite3)(?:-wal|-shm|-journal)?|.*\.lock|"
    r"verdicts|rules|index|families|collected|nightly.*|slack.*|incidents.*|logtriage\.toml"
)
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def close_to_others(data_dir: Path) -> None:
    """Take from others what they may do with the data folder and the ledger in it, where both are ours.

    A folder that holds other things as well, or that its group may write to, is left as it is: somebody
    shares it. The files that hold diagnoses are closed in any case but the latter.
    """
    with contextlib.suppress(OSError):
        mode = data_dir.stat()
        if mode.st_uid != os.getuid() or mode.st_mode & stat.S_IWGRP:
            return
        names = [each.name for each in data_dir.iterdir()] if mode.st_mode & _OTHERS else []
        if names and all(map(_OWN.fullmatch, names)):
            data_dir.chmod(0o700)
        for name in names:
            if name.startswith("ledger.sqlite3") or name == "verdicts":
                path = data_dir / name
                path.chmod(path.stat().st_mode & ~_OTHERS)


def open_to_others(data_dir: Path) -> str:
    """How far others may look into a data folder with diagnoses, as `mode 755`; empty where they may not."""
    with contextlib.suppress(OSError):
        mode = stat.S_IMODE(data_dir.stat().st_mode)
        seen = [data_dir / name for name in ("ledger.sqlite3", "verdicts") if (data_dir / name).exists()]
        if mode & (stat.S_IROTH | stat.S_IXOTH) and any(each.stat().st_mode & stat.S_IRWXO for each in seen):
            return f"mode {mode:o}"
    return ""
