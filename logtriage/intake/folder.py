"""What lies in the folder that was asked about: its logs, and what could not be read.

Nothing here is executed, followed out of the folder, or waited for. A fault of one file is written down
and never stops the rest.
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from logtriage.intake.archives import (
    Archive,
    archive_kind,
    open_archive,
    open_nested,
    shown_name,
)
from logtriage.intake.compression import (
    CHUNK,
    StreamFault,
    compression_of,
    decompressed,
    foreign_compression,
    narrowed,
    wide_encoding,
)
from logtriage.intake.identity import Identity, identify_all
from logtriage.intake.roles import content_role
from logtriage.model import Source, SourceRole, Unreadable

SNIFFED = 64 << 10
_TAIL = 16 << 10
MOST_FILES = 200_000
_THREADS = 8
_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class Inventory:
    """The sources of a job in one canonical order; `other_files` counts files that are no text."""

    root: Path
    sources: tuple[Source, ...]
    unreadable: tuple[Unreadable, ...]
    other_files: int


class NothingReadable(Exception):
    """There is no log at the place asked about; the message is one line that says what to do."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A readable text before its name has been put beside the others."""

    file: str
    size: int
    role: SourceRole | None


@dataclass(slots=True)
class _Findings:
    texts: list[_Found]
    unreadable: list[Unreadable]
    others: int = 0

    def add(self, more: _Findings) -> None:
        self.texts += more.texts
        self.unreadable += more.unreadable
        self.others += more.others


def discover(paths: str | Path | Sequence[str | Path]) -> Inventory:
    """All logs at PATH: a folder, a file, several, a glob, `-` (standard input), or an fsspec address.

    Raises NothingReadable if there is none.
    """
    asked = [str(one) for one in ([paths] if isinstance(paths, str | Path) else paths)]
    found = _Findings([], [])
    if not asked:
        raise NothingReadable("no path was given: name the folder that holds the job's logs")
    root, given = _local(asked, found)
    candidates = _candidates(root, given, found)
    with ThreadPoolExecutor(_THREADS) as pool:
        for one in pool.map(lambda pair: _examined(*pair), candidates, chunksize=32):
            found.add(one)
    if not found.texts:
        raise NothingReadable(_complaint(asked, found))
    names = [text.file for text in found.texts]
    identities = identify_all(names)
    sources = sorted((_source(text, identities[text.file]) for text in found.texts), key=_order)
    unreadable = sorted(set(found.unreadable), key=lambda one: (one.file, one.reason))
    return Inventory(root, tuple(sources), tuple(unreadable), found.others)


def _source(text: _Found, known: Identity) -> Source:
    own = known.rank is not None or known.local_rank is not None
    return Source(
        file=text.file,
        size=text.size,
        role=text.role or (SourceRole.WORKER if own else SourceRole.MERGED),
        rank=known.rank,
        local_rank=known.local_rank,
        node_rank=known.node_rank,
        host=known.host,
        attempt=known.attempt,
        stream=known.stream,
        family=known.family,
        part=known.part,
    )


def _order(source: Source) -> tuple[list[tuple[int, int, str]], int, str]:
    """Natural order of the families, oldest part first: rank 2 before rank 10."""
    pieces = re.split(r"(\d{1,18})", source.family or source.file)
    return (
        [(1, int(one), "") if one.isdecimal() and one.isascii() else (0, 0, one) for one in pieces],
        (source.part),
        source.file,
    )


def _complaint(asked: Sequence[str], found: _Findings) -> str:
    where = ", ".join(shown_name(one) for one in asked[:3]) + (" …" if len(asked) > 3 else "")
    if found.unreadable:
        first = min(found.unreadable, key=lambda one: one.file)
        name = "" if first.file in asked else f"{first.file}: "
        return f"nothing readable at {where}: {name}{first.reason}"
    if found.others:
        return f"no log at {where}: {found.others} files, none of them text; name the folder of the logs"
    return f"no file at {where}; name the folder that holds the job's logs"


# --- what was asked about --------------------------------------------------------------------------


def _local(asked: Sequence[str], found: _Findings) -> tuple[Path, list[Path]]:
    """The common folder and the local paths of all that was asked for; streams are copied first."""
    remote = [one for one in asked if _is_stream(one) or _is_address(one)]
    if remote:
        if len(remote) < len(asked):
            raise NothingReadable(f"{remote[0]} cannot be mixed with local paths; ask about it alone")
        return _spooled(remote)
    given: list[Path] = []
    for one in asked:
        path = Path(os.path.normpath(Path.cwd() / Path(one).expanduser()))
        if path.exists() or path.is_symlink():
            given.append(path)
        elif glob.has_magic(one) and (matches := sorted(glob.iglob(str(path), recursive=True))):
            given += [Path(match) for match in matches]
        else:
            reason = "matches nothing" if glob.has_magic(one) else "no such file or folder; check the path"
            found.unreadable.append(Unreadable(shown_name(one), reason))
    given = list(dict.fromkeys(given))
    folders = [path if path.is_dir() else path.parent for path in given]
    return Path(os.path.commonpath(folders)) if folders else Path.cwd(), given


def _is_stream(path: str) -> bool:
    return path == "-" or re.fullmatch(r"/dev/(stdin|fd/\d+)|/proc/self/fd/\d+", path) is not None


def _is_address(path: str) -> bool:
    return re.match(r"[a-z][a-z0-9+.-]+(::|://)", path) is not None


_spools: list[tempfile.TemporaryDirectory[str]] = []  # removed when the process ends


def _spooled(remote: Sequence[str]) -> tuple[Path, list[Path]]:
    """Copies of standard input or of remote folders in a temporary folder."""
    spool = tempfile.TemporaryDirectory(prefix="logtriage-")
    _spools.append(spool)
    root = Path(spool.name)
    for address in remote:
        if _is_address(address):
            _fetch(address, root)
        elif address in ("-", "/dev/stdin"):
            with (root / "stdin").open("wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy, CHUNK)
        else:
            with Path(address).open("rb") as pipe, (root / f"stdin-{Path(address).name}").open("wb") as copy:
                shutil.copyfileobj(pipe, copy, CHUNK)
    return root, [root]


def _fetch(address: str, root: Path) -> None:
    try:
        import fsspec  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise NothingReadable(
            f"{address} needs fsspec, which is not installed: pip install 'logtriage[remote]' "
            "(and the driver of the store, such as s3fs or gcsfs)"
        ) from error
    try:
        system, path = fsspec.core.url_to_fs(address)
        if system.isdir(path):
            base = path.rstrip("/")
            files = [(name, name[len(base) :].lstrip("/")) for name in system.find(path)]
        else:
            files = [(name, name.rsplit("/", 1)[-1]) for name in system.glob(path) or [path]]
        for name, local in files[:MOST_FILES]:
            parts = [part for part in local.split("/") if part not in ("", ".", "..")]
            if not parts or any(part.startswith(".") for part in parts):
                continue
            place = root.joinpath(*parts)
            place.parent.mkdir(parents=True, exist_ok=True)
            system.get_file(name, str(place))
    except Exception as error:  # every store has its own exceptions
        reason = " ".join(str(error).split()) or type(error).__name__
        raise NothingReadable(f"{address} cannot be read: {reason}") from error


# --- the walk --------------------------------------------------------------------------------------


def _candidates(root: Path, given: Iterable[Path], found: _Findings) -> list[tuple[str, Path]]:
    """(shown file, path) of every regular file below what was given, links resolved or named."""
    files: dict[str, Path] = {}
    for path in given:
        try:
            kind = path.stat().st_mode
        except OSError as error:
            found.unreadable.append(Unreadable(_shown(root, path), _why(error)))
            continue
        if stat.S_ISDIR(kind):
            walk: Iterable[Path] = _walk(root, path, found)
        elif stat.S_ISREG(kind):
            walk = [path]
        else:
            found.unreadable.append(Unreadable(_shown(root, path), _special(kind)))
            continue
        for file in walk:
            if len(files) >= MOST_FILES:
                reason = f"more than {MOST_FILES:,} files; the rest was left out"
                found.unreadable.append(Unreadable(_shown(root, path), reason))
                return list(files.items())
            files.setdefault(_shown(root, file), file)
    return list(files.items())


def _walk(root: Path, top: Path, found: _Findings) -> Iterator[Path]:
    waiting = [(str(top), 0)]
    real_top = os.path.realpath(top)
    while waiting:
        folder, depth = waiting.pop()
        if depth > _DEEPEST:
            reason = f"more than {_DEEPEST} folders deep; left out"
            found.unreadable.append(Unreadable(_shown(root, Path(folder)), reason))
            continue
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            found.unreadable.append(Unreadable(_shown(root, Path(folder)), _why(error)))
            continue
        below: list[tuple[str, int]] = []
        for entry in entries:
            if entry.name.startswith("."):
                continue
            try:
                if entry.is_symlink():
                    fault = _link_fault(entry.path, real_top)
                    if fault == "":
                        yield Path(entry.path)
                    elif fault is not None:
                        found.unreadable.append(Unreadable(_shown(root, Path(entry.path)), fault))
                elif entry.is_dir(follow_symlinks=False):
                    below.append((entry.path, depth + 1))
                elif entry.is_file(follow_symlinks=False):
                    yield Path(entry.path)
                else:
                    mode = entry.stat(follow_symlinks=False).st_mode
                    found.unreadable.append(Unreadable(_shown(root, Path(entry.path)), _special(mode)))
            except OSError as error:
                found.unreadable.append(Unreadable(_shown(root, Path(entry.path)), _why(error)))
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


def _why(error: Exception) -> str:
    return f"cannot be read: {getattr(error, 'strerror', None) or error}"


def _shown(root: Path, path: Path) -> str:
    relative = os.path.relpath(path, root)
    return "/".join(shown_name(part) for part in relative.split("/"))


# --- one file --------------------------------------------------------------------------------------


def _examined(file: str, path: Path) -> _Findings:
    """What one file is: a text, an archive of texts, something else, or unreadable."""
    found = _Findings([], [])
    try:
        with path.open("rb", buffering=0) as handle:
            size = os.fstat(handle.fileno()).st_size
            head = handle.read(SNIFFED)
            tail = b""
            if size > len(head) + _TAIL and compression_of(head) is None:
                handle.seek(size - _TAIL)
                tail = handle.read(_TAIL)
            packed = compression_of(head) is not None
            rest = iter(lambda: handle.read(CHUNK), b"")
            plain, fault = _sniff(_chain(head, rest)) if packed else (head, None)
        if archive_kind(plain[:512]):
            archive = open_archive(path)
            if archive is not None:
                _expand(archive, file, found, nested=False)
                return found
    except OSError as error:
        found.unreadable.append(Unreadable(file, _why(error)))
        return found
    except StreamFault as error:
        _unread(file, str(error), found)
        return found
    except Exception as error:  # a library that chokes on hostile bytes must not end the walk
        found.unreadable.append(Unreadable(file, f"cannot be read ({type(error).__name__}: {error})"))
        return found
    _judge(file, size, plain, tail, size > len(head) or packed, fault, found)
    return found


def _expand(archive: Archive, file: str, found: _Findings, *, nested: bool) -> None:
    for name, reason in archive.unreadable:
        found.unreadable.append(Unreadable(f"{file}/{name}" if name else file, reason))
    for member in archive.members.values():
        if any(part.startswith(".") for part in member.name.split("/")):
            continue
        shown = f"{file}/{member.name}"
        try:
            plain, fault = _sniff(archive.chunks(member))
            if archive_kind(plain[:512]):
                if nested:
                    found.unreadable.append(Unreadable(shown, "an archive in an archive in an archive"))
                    continue
                inner = open_nested(archive, member)
                if inner is not None:
                    _expand(inner, shown, found, nested=True)
                    continue
        except (StreamFault, OSError) as error:
            _unread(shown, str(error), found)
            continue
        _judge(shown, member.size, plain, b"", len(plain) != member.size, fault, found)


def _unread(file: str, reason: str, found: _Findings) -> None:
    """A broken zip is most often a checkpoint: only what is named as an archive or a log is missed."""
    if re.search(r"(?i)\.(zip|tar|tgz|tbz2?|txz|tzst|gz|zst|xz|bz2)$", file) or _named_as_log(file):
        found.unreadable.append(Unreadable(file, reason))
    else:
        found.others += 1


def _sniff(stored: Iterable[bytes]) -> tuple[bytes, str | None]:
    """The first bytes of a stream, decompressed, and what is wrong with it if it ends before them."""
    plain = b""
    try:
        for chunk in decompressed(stored):
            plain += chunk[: SNIFFED - len(plain)]
            if len(plain) >= SNIFFED:
                break
    except StreamFault as error:
        return plain, str(error)
    return plain, None


def _chain(head: bytes, rest: Iterable[bytes]) -> Iterator[bytes]:
    yield head
    yield from rest


def _judge(
    file: str, size: int, head: bytes, tail: bytes, partial: bool, fault: str | None, found: _Findings
) -> None:
    if wide_encoding(head):
        head = b"".join(narrowed([head]))
        tail = b""
    if kind := foreign_compression(head):
        found.unreadable.append(Unreadable(file, f"compressed with {kind}: decompress it first"))
    elif fault is not None and not head:
        found.unreadable.append(Unreadable(file, fault))
    elif is_text(head):
        role = content_role(file, head + b"\n" + tail if tail else head)
        if partial and role is SourceRole.ENVIRONMENT and head.lstrip()[:1] not in (b"{", b"["):
            role = None  # a log may begin with pages of settings
        found.texts.append(_Found(file, size, role))
    elif _named_as_log(file):
        found.unreadable.append(Unreadable(file, "not text"))
    else:
        found.others += 1


def _named_as_log(file: str) -> bool:
    name = file.rsplit("/", 1)[-1].lower()
    return re.search(r"\.(log|out|err|txt|jsonl|stdout|stderr|dmesg)(\W\w{1,12})*$", name) is not None


_CONTROLS = bytes(code for code in (*range(1, 8), *range(14, 27), *range(28, 32), 127))
_BINARY_MAGIC = (
    b"\x7fELF",
    b"PK\x03\x04",
    b"\x80\x02",
    b"\x80\x03",
    b"\x80\x04",
    b"\x80\x05",
    b"\x89PNG",
    b"\x89HDF",
    b"\xff\xd8\xff",
    b"GIF8",
    b"%PDF",
    b"\x93NUMPY",
    b"PAR1",
    b"GGUF",
    b"SQLite format 3\0",
)


def is_text(sample: bytes) -> bool:
    """Whether bytes look like lines of text in any 8-bit encoding, holes of NULs allowed."""
    if not sample:
        return True
    if sample.startswith(_BINARY_MAGIC):
        return False
    nuls = sample.count(0)
    if nuls:
        text = re.sub(rb"\0{16,}", b"", sample)  # a hole in the file, left by a crash or a network drive
        if not text:
            return False
        if text.count(0) * 10 > len(text):
            return False
        sample = text.replace(b"\0", b"")
    strange = len(sample) - len(sample.translate(None, _CONTROLS))
    if strange == 0:
        return True
    try:
        sample.decode("utf-8")
        valid = nuls == 0
    except UnicodeDecodeError as error:
        valid = nuls == 0 and error.start >= len(sample) - 3
    return strange * (10 if valid else 50) <= len(sample)
