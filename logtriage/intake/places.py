"""Where the logs lie: what was asked about, made local, and every file below it.

Nothing is followed out of the folder that was asked about, and nothing is opened that could make one
wait: no pipe, no device, no socket.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from logtriage.intake.archives import shown_name
from logtriage.intake.compression import CHUNK
from logtriage.model import Unreadable

MOST_FILES = 200_000
DEEPEST = 100


class NothingReadable(Exception):
    """There is no log at the place asked about; the message is one line that says what to do."""


def local_paths(asked: Sequence[str], unreadable: list[Unreadable]) -> tuple[Path, list[Path]]:
    """The common folder and the local paths of all that was asked for; streams are copied first."""
    remote = [one for one in asked if _is_stream(one) or _is_address(one)]
    if remote:
        if len(remote) < len(asked):
            raise NothingReadable(f"{remote[0]} cannot be mixed with local paths; ask about it alone")
        return _spooled(remote, unreadable)
    given: list[Path] = []
    for one in (one.removeprefix("file://") for one in asked):
        path = Path(os.path.normpath(Path.cwd() / os.path.expanduser(one)))  # noqa: PTH111 - ~nobody stays
        if os.path.lexists(path):  # False as well for a name too long or in a closed folder
            given.append(path)
        elif glob.has_magic(one) and (matches := _matches(path)):
            given += [Path(match) for match in matches]
        else:
            reason = "matches nothing" if glob.has_magic(one) else "no such file or folder; check the path"
            unreadable.append(Unreadable(shown_name(one), reason))
    given = list(dict.fromkeys(given))
    folders = [path if path.is_dir() else path.parent for path in given]
    return Path(os.path.commonpath(folders)) if folders else Path.cwd(), given


def _matches(pattern: Path) -> list[str]:
    # pathlib's globs would match hidden files as well
    return sorted(glob.glob(str(pattern), recursive=True))  # noqa: PTH207


def _is_stream(path: str) -> bool:
    return path == "-" or re.fullmatch(r"/dev/(stdin|fd/\d+)|/proc/self/fd/\d+", path) is not None


def _is_address(path: str) -> bool:
    return re.match(r"(?!file://)[a-z][a-z0-9+.-]+(::|://)", path) is not None


_spools: list[tempfile.TemporaryDirectory[str]] = []  # removed when the process ends


def _spooled(remote: Sequence[str], unreadable: list[Unreadable]) -> tuple[Path, list[Path]]:
    """Copies of standard input or of remote folders in a temporary folder."""
    spool = tempfile.TemporaryDirectory(prefix="logtriage-")
    _spools.append(spool)
    root = Path(spool.name)
    for number, address in enumerate(remote, 1):
        if _is_address(address):
            fetch(address, root / str(number) if len(remote) > 1 else root, unreadable)
            continue
        place = root / ("stdin" if len(remote) == 1 else f"stdin-{number}")
        try:
            if address in ("-", "/dev/stdin"):
                if sys.stdin is None:
                    raise NothingReadable("standard input is closed")
                _copy(sys.stdin.buffer, place)
            else:
                with Path(address).open("rb") as pipe:
                    _copy(pipe, place)
        except OSError as error:
            raise NothingReadable(f"{address} cannot be copied to {root}: {error.strerror}") from error
        if not place.stat().st_size:
            raise NothingReadable("standard input was empty" if address == "-" else f"{address} was empty")
    return root, [root]


def _copy(pipe: BinaryIO, place: Path) -> None:
    with place.open("wb") as copy:
        shutil.copyfileobj(pipe, copy, CHUNK)


_DRIVERS = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs"}


def driver_of(address: str) -> str:
    """How to install what reads an address."""
    return f"pip install fsspec {_DRIVERS.get(address.split(':', 1)[0], '')}".strip()


def fetch(address: str, root: Path, unreadable: list[Unreadable]) -> None:
    """Copies of the files below a remote address; those that cannot be copied are named.

    Raises NothingReadable if the store cannot be reached or none could be copied.
    """
    try:
        import fsspec  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise NothingReadable(
            f"{address} needs fsspec, which is not installed: {driver_of(address)}"
        ) from error
    copied = 0
    last = ""
    try:
        system, path = fsspec.core.url_to_fs(address)
        files: list[tuple[str, str]] = []
        for match in system.glob(path) if glob.has_magic(path) else [path]:
            above = match.rstrip("/") if match == path else match.rpartition("/")[0]
            names = system.find(match) if system.isdir(match) else [match]
            files += [(name, name[len(above) :] or name.rpartition("/")[2]) for name in names]
        for name, local in files[:MOST_FILES]:
            parts = [part for part in local.split("/") if part not in ("", ".", "..")]
            if not parts or any(part.startswith(".") for part in parts):
                continue
            place = root.joinpath(*parts)
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                system.get_file(name, str(place))
                copied += 1
            except Exception as error:  # one object may be closed or gone
                last = _told(error)
                unreadable.append(Unreadable("/".join(map(shown_name, parts)), f"cannot be fetched: {last}"))
    except Exception as error:  # every store has its own exceptions
        raise NothingReadable(f"{address} cannot be read: {_told(error)}") from error
    if not copied:
        raise NothingReadable(f"no file could be read at {address}{last and ': '}{last}")


def _told(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def candidates(root: Path, given: Iterable[Path], unreadable: list[Unreadable]) -> dict[str, Path]:
    """Every regular file below what was given, by its name relative to `root`.

    Links that lead out, pipes, sockets, devices and closed folders are added to `unreadable`.
    """
    files: dict[str, Path] = {}
    for path in given:
        shown = "/".join(shown_name(part) for part in path.relative_to(root).parts)
        try:
            kind = path.stat().st_mode
        except OSError as error:
            unreadable.append(Unreadable(shown, why(error)))
            continue
        if stat.S_ISREG(kind):
            files.setdefault(shown, path)
        elif not stat.S_ISDIR(kind):
            unreadable.append(Unreadable(shown, _special(kind)))
        else:
            for file, entry in _walk(shown, path, unreadable):
                if len(files) >= MOST_FILES:
                    unreadable.append(
                        Unreadable(shown, f"more than {MOST_FILES:,} files; the rest was left out")
                    )
                    return files
                files.setdefault(file, entry)
    return files


def _walk(shown_top: str, top: Path, unreadable: list[Unreadable]) -> Iterator[tuple[str, Path]]:
    """(shown name, path) of the regular files below a folder; no link to a folder is ever followed."""
    real_top = os.path.realpath(top)
    waiting = [(shown_top, str(top), 0)]
    while waiting:
        shown_folder, folder, depth = waiting.pop()
        if depth > DEEPEST:
            unreadable.append(Unreadable(shown_folder, f"more than {DEEPEST} folders deep; left out"))
            continue
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            unreadable.append(Unreadable(shown_folder or ".", why(error)))
            continue
        below: list[tuple[str, str, int]] = []
        for entry in entries:
            if entry.name.startswith("."):
                continue
            name = shown_name(entry.name)
            shown = f"{shown_folder}/{name}" if shown_folder else name
            try:
                if entry.is_symlink():
                    fault = _link_fault(entry.path, real_top)
                    if fault == "":
                        yield shown, Path(entry.path)
                    elif fault is not None:
                        unreadable.append(Unreadable(shown, fault))
                elif entry.is_dir(follow_symlinks=False):
                    below.append((shown, entry.path, depth + 1))
                elif entry.is_file(follow_symlinks=False):
                    yield shown, Path(entry.path)
                else:
                    mode = entry.stat(follow_symlinks=False).st_mode
                    unreadable.append(Unreadable(shown, _special(mode)))
            except OSError as error:
                unreadable.append(Unreadable(shown, why(error)))
        waiting += reversed(below)


def _link_fault(path: str, top: str) -> str | None:
    """Why a link is not followed; None if its target is met anyway, "" if it must be read by the link."""
    target = os.path.realpath(path)
    inside = os.path.relpath(target, top)
    if inside == ".." or inside.startswith("../"):
        return "a link that leads out of the folder: not followed"
    if not Path(target).exists():
        return "a link to nothing"
    # A Kubernetes volume keeps its files in hidden folders and shows them by links.
    hidden = any(part.startswith(".") for part in inside.split("/") if part != ".")
    return "" if hidden and Path(target).is_file() else None


def _special(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a pipe: never opened"
    if stat.S_ISSOCK(mode):
        return "a socket: never opened"
    return "a device: never opened"


def why(error: Exception) -> str:
    return f"cannot be read: {getattr(error, 'strerror', None) or error}"
