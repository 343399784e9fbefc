"""Whether the logs of a job have changed since they were read, told without reading them again."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

END_BYTES = 4_096  # at the head and at the tail of each file
MOST_FILES = 50_000  # of one job; further ones count by nothing but their number


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Of a job's files: names, sizes, times of change, first and last bytes.

    `changed` is when the newest changed (seconds since 1970, None without files), `bytes` their size.
    """

    digest: str
    changed: float | None
    files: int
    bytes: int


def fingerprint(paths: Sequence[str], beside: str = "") -> Fingerprint:
    """The fingerprint of local files and folders; `beside` (what accounting says) is part of it.

    An address such as s3://… counts by its name alone, what cannot be read by its name and time.
    """
    digest = hashlib.sha256(beside.encode("utf-8", "surrogateescape"))
    changed, files, size = None, 0, 0
    for top in paths:
        digest.update(b"\0top\0" + os.fsencode(Path(top).name))
        if "://" in top:
            digest.update(os.fsencode(top))
            continue
        for name, path in _files(top):
            files += 1
            if files > MOST_FILES:
                continue
            try:
                known = path.stat()
            except OSError:
                digest.update(b"\0gone\0" + os.fsencode(name))
                continue
            if not stat.S_ISREG(known.st_mode):
                continue  # opening a pipe would wait for ever
            digest.update(b"\0%s\0%d\0%d\0" % (os.fsencode(name), known.st_size, known.st_mtime_ns))
            digest.update(_ends(path, known.st_size))
            changed = max(changed or 0.0, known.st_mtime)
            size += known.st_size
    digest.update(b"\0%d" % files)
    return Fingerprint(digest.hexdigest(), changed, files, size)


def _files(top: str) -> Iterator[tuple[str, Path]]:
    """(name below `top`, path) of each file, in one order; links to folders are not followed."""
    if not Path(top).is_dir():
        yield "", Path(top)
        return
    for folder, folders, names in os.walk(top):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            yield os.path.relpath(path, top), path


def _ends(path: Path, size: int) -> bytes:
    try:
        with path.open("rb", buffering=0) as file:
            head = file.read(END_BYTES)
            if size <= END_BYTES:
                return head
            file.seek(max(END_BYTES, size - END_BYTES))
            return head + b"\0" + file.read(END_BYTES)
    except OSError as error:
        return str(error.errno).encode()
