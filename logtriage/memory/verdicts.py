"""The verdicts that were given, one JSON file each, so that `confirm ID` finds what it is about.

Written by every triage, therefore without any import that the triage has not made already, bounded in number
and age, and never in the way: where the disk is full or read-only the triage goes on without it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from logtriage.memory.privacy import close_to_others
from logtriage.report.document import Verdict, iso_time, read_verdict

MOST_KEPT = 2_000
LONGEST_KEPT = 365 * 86_400.0  # seconds
MOST_INDICATIONS = 200  # of the up to 10,000 of a document
MOST_BYTES = 32 << 20  # of a kept file: many times what the longest document takes
_ID = re.compile(r"v-\w{1,64}", re.ASCII)  # is shown and asked for as it is
# What a file of another version, a half written one or one that somebody else made may bring up.
NO_VERDICT = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)
FOLDER = "verdicts"


@dataclass(frozen=True, slots=True)
class KeptVerdict:
    """A verdict, when it was given (seconds since 1970) and the absolute paths that were asked about."""

    verdict: Verdict
    at: float
    paths: tuple[str, ...]


def keep(verdict: Verdict, paths: Sequence[str | Path], data_dir: Path, user: str = "") -> bool:
    """Write a verdict down under its id; False where that was not possible.

    `user` is whose job it was; where nobody says so, the owner of the logs.
    """
    folder = data_dir / FOLDER
    document = verdict.to_dict()
    document["indications"] = document["indications"][:MOST_INDICATIONS]
    entry = {
        "at": time.time(),
        "user": user or _owner(paths),
        "paths": [_absolute(path) for path in paths],
        "verdict": document,
    }
    try:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.mkdir(exist_ok=True, mode=0o700)
        close_to_others(data_dir)
        target = folder / f"{verdict.id}.json"
        part = folder / f".{verdict.id}.{os.getpid()}"
        try:
            part.write_text(json.dumps(entry, ensure_ascii=True), encoding="utf-8")
            part.replace(target)
        except OSError:
            part.unlink(missing_ok=True)
            raise
        _prune(folder)
    except OSError:
        return False
    return True


def _absolute(path: str | Path) -> str:
    text = str(path)
    return text if "://" in text or text == "-" else os.path.abspath(text)  # noqa: PTH100 - globs stay as they are


def _owner(paths: Sequence[str | Path]) -> str:
    for path in paths:
        with contextlib.suppress(OSError, KeyError, ValueError):
            return Path(path).owner()
    return ""


def _prune(folder: Path) -> None:
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    if len(names) <= MOST_KEPT and int(time.time()) % 50:
        return  # ages are looked at now and then only
    ages: list[tuple[float, Path]] = []
    for name in names:
        with contextlib.suppress(FileNotFoundError):  # another process prunes too
            ages.append(((folder / name).stat().st_mtime, folder / name))
    ages.sort(reverse=True)
    oldest = time.time() - LONGEST_KEPT
    for position, (written, path) in enumerate(ages):
        if position >= MOST_KEPT or written < oldest:
            path.unlink(missing_ok=True)


def kept_files(data_dir: Path, since: float | None = None) -> list[Path]:
    """The files of verdicts that were given at `since` or later, the newest first."""
    files: list[tuple[float, Path]] = []
    for path in (data_dir / FOLDER).glob("*.json"):
        with contextlib.suppress(OSError):
            written = path.stat().st_mtime
            if since is None or written >= since:  # a file is never older than its verdict
                files.append((written, path))
    return [path for _, path in sorted(files, reverse=True)]


def kept_verdicts(data_dir: Path) -> Iterator[KeptVerdict]:
    """All verdicts that can still be read, the newest first."""
    for path in kept_files(data_dir):
        if (kept := _read(path)) is not None:
            yield kept


def kept_verdict(verdict_id: str, data_dir: Path) -> KeptVerdict:
    """The verdict whose id is, or begins with, `verdict_id`. Raises KeyError that says what to do."""
    folder = data_dir / FOLDER
    wanted = verdict_id.strip()
    names = sorted(path.stem for path in folder.glob("*.json")) if wanted else []
    found = [name for name in names if name == wanted] or [
        name for name in names if name.startswith((wanted, f"v-{wanted}"))
    ]
    if len(found) > 1:
        raise KeyError(f"{len(found)} verdicts begin with {wanted!r}; give more of the id")
    kept = _read(folder / f"{found[0]}.json") if found else None
    if kept is None:
        raise KeyError(f"there is no verdict {wanted!r} on this machine; see `logtriage history`")
    return kept


def kept_entry(path: Path) -> dict[str, Any]:
    """What stands in a kept file, unchecked but for its id and paths.

    Raises one of NO_VERDICT where it holds no verdict.
    """
    known = path.stat()
    if not stat.S_ISREG(known.st_mode) or known.st_size > MOST_BYTES:
        # A pipe would be waited for, a device never ends.
        raise ValueError(f"{path} is no kept verdict")
    entry: dict[str, Any] = json.loads(path.read_bytes())
    if not _ID.fullmatch(entry["verdict"]["id"]):
        raise ValueError(f"{path} holds no verdict of this program")
    for each in entry["paths"]:
        os.fsencode(each)  # fails for what can name no file
    return entry


def _read(path: Path) -> KeptVerdict | None:
    try:
        entry = kept_entry(path)
        return KeptVerdict(read_verdict(entry["verdict"]), float(entry["at"]), tuple(entry["paths"]))
    except NO_VERDICT:
        return None


def when(kept: KeptVerdict) -> str:
    """The day and minute (UTC) in which it was given."""
    return (iso_time(kept.at) or "")[:16].replace("T", " ")
