"""tar and zip archives as folders: an index of members, and each member as a stream.

Nothing is ever unpacked under a name that an archive chose. A plain tar or zip is read where it lies; a
compressed or nested one is first copied, decompressed, to one private temporary file, so that each
member can be sought directly. Archives in archives are opened one level deep.
"""

from __future__ import annotations

import contextlib
import io
import os
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from logtriage.intake.compression import CHUNK, GROWTH_FLOOR, MOST_GROWTH, StreamFault, decompressed, is_text
from logtriage.intake.sections import MOST_BYTES as LARGEST_SECTIONS
from logtriage.intake.sections import Ranges, begins_with_section, sections
from logtriage.intake.spool import MOST_BYTES, spooled

MOST_MEMBERS = 20_000
# What file systems allow; longer names in an archive are an attack on whoever reads them.
_LONGEST_NAME, _LONGEST_PART = 4096, 255
# tarfile reads long names and extended headers in one go, as long as the header says they are.
_LONGEST_HEADER = 1 << 20
_ZIP_DIRECTORY = 32 << 20
# A compressed archive above this size (of model files, most often) is looked into before it is copied.
_LOOK_FIRST = 64 << 20
_LOOKED_AT = 32 << 20
_GLANCE = 64 << 10
_PACKAGE_PARTS = ("data.pkl", ".npy", "META-INF/MANIFEST.MF", "[Content_Types].xml", ".dist-info/RECORD")


@dataclass(frozen=True, slots=True)
class Member:
    """A regular file in an archive; `offset` is its place in a plain tar, -1 in a zip."""

    name: str
    size: int
    offset: int


@dataclass(frozen=True, slots=True)
class Archive:
    """A readable archive; `unreadable` are (member or "", reason) of what had to be left out."""

    path: Path
    members: Mapping[str, Member]
    unreadable: tuple[tuple[str, str], ...]
    _zip: zipfile.ZipFile | None = None
    _infos: Mapping[str, zipfile.ZipInfo] | None = None
    sections: Mapping[str, Ranges] | None = None  # of a text that is made of them, its members

    def chunks(self, member: Member, start: int = 0) -> Iterator[bytes]:
        """The stored bytes of a member from byte `start` on. Raises StreamFault at a break."""
        if self.sections is not None:
            yield _of_ranges(self.path, self.sections[member.name])[start:]
            return
        if self._zip is None or self._infos is None:
            yield from _tar_chunks(self.path, member, start)
            return
        left_out = start
        try:
            with self._zip.open(self._infos[member.name]) as stream:
                step = _GLANCE
                while data := stream.read(step):
                    step = CHUNK
                    if left_out:
                        left_out, data = max(0, left_out - len(data)), data[left_out:]
                    if data:
                        yield data
        except RuntimeError as error:  # what zipfile raises where a password is needed
            raise StreamFault(f"the archive member cannot be read: {error}") from error
        except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError, ValueError) as error:
            raise StreamFault(f"the archive member is broken ({error})") from error
        except Exception as error:  # zlib.error, lzma.LZMAError: no common class
            raise StreamFault(f"the archive member is broken ({error})") from error


def shown_name(name: str) -> str:
    """A file name as it can be printed: undecodable bytes and control characters as \\x escapes."""
    if name.isprintable():
        return name
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in text)


def archive_kind(head: bytes) -> str | None:
    """tar | zip, or None, by the first bytes (512 are enough) of the decompressed file."""
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    if len(head) >= 512 and head[0]:
        try:
            stated = int(head[148:156].strip(b"\0 ") or b"0", 8)
        except ValueError:
            return None
        if stated and stated == sum(head[:148]) + 8 * 32 + sum(head[156:512]):
            return "tar"
    return None


def open_archive(path: Path) -> Archive | None:
    """The archive at `path`, or None if the file is none (or is a zip by form only, such as a checkpoint).

    Raises StreamFault if it is one and nothing in it can be read, OSError if the file cannot be opened.
    """
    status = path.stat()
    archive = _open(str(path), status.st_mtime_ns, status.st_size, os.getpid())
    if archive is not None and not archive.path.exists():  # another process made the copy and has ended
        _open.cache_clear()
        archive = _open(str(path), status.st_mtime_ns, status.st_size, os.getpid())
    return archive


# The process is in the key because a zip keeps its file open: a forked child must not share the position.
@lru_cache(maxsize=4)
def _open(path: str, changed: int, size: int, process: int) -> Archive | None:
    with Path(path).open("rb") as file:
        head = file.read(512)
        kind = archive_kind(head)
        if kind is None and size <= LARGEST_SECTIONS and begins_with_section(head):
            found = sections(head + file.read())
            if not found:
                return None
            members = {
                name: Member(name, sum(end - start for start, end in ranges), -1)
                for name, ranges in found.items()
            }
            return Archive(Path(path), members, (), sections=found)
        if kind is None and archive_kind(_first(decompressed(_file_chunks(file, head)), 512)) is None:
            return None
    if kind is not None:
        return _index(Path(path), kind, None)
    if size > _LOOK_FIRST and not _begins_with_text(_stored(Path(path))):
        raise StreamFault("the archive is large and begins without any text; unpack it to read it")
    place, fault = spooled(f"{path}\0{changed}\0{size}", _stored(Path(path)))
    return _index(place, None, fault)


def open_nested(outer: Archive, member: Member) -> Archive | None:
    """The archive that is a member of another one, or None if it is none. Raises as `open_archive`."""
    head = _first(decompressed(outer.chunks(member)), 512)
    if archive_kind(head) is None:
        return None
    status = outer.path.stat()
    key = f"{outer.path}\0{status.st_mtime_ns}\0{status.st_size}\0{member.name}"
    place, fault = spooled(key, outer.chunks(member))
    status = place.stat()
    nested = _open(str(place), status.st_mtime_ns, status.st_size, os.getpid())
    if nested is not None and fault:
        nested = Archive(
            nested.path, nested.members, (*nested.unreadable, ("", fault)), nested._zip, nested._infos
        )
    return nested


def find_member(archive: Archive, name: str) -> tuple[Archive, Member]:
    """The member of that name, in the archive or in an archive that is a member of it.

    Raises StreamFault if there is none.
    """
    if name in archive.members:
        return archive, archive.members[name]
    parts = name.split("/")
    for cut in range(1, len(parts)):
        outer = archive.members.get("/".join(parts[:cut]))
        if outer is None:
            continue
        nested = open_nested(archive, outer)
        inner = "/".join(parts[cut:])
        if nested is not None and inner in nested.members:
            return nested, nested.members[inner]
    raise StreamFault(f"no member {name} in the archive")


def _index(path: Path, kind: str | None, fault: str | None) -> Archive | None:
    if kind is None:
        with path.open("rb") as file:
            kind = archive_kind(file.read(512))
    archive = _index_zip(path) if kind == "zip" else _index_tar(path)
    if archive is None or not fault:
        return archive
    return Archive(
        archive.path, archive.members, (*archive.unreadable, ("", fault)), archive._zip, archive._infos
    )


class _ShortReads(io.FileIO):
    """A file that refuses to be read in pieces as large as a hostile header may ask for."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0 or size > _LONGEST_HEADER:
            raise tarfile.ReadError("a header of the archive is too long")
        return super().read(size) or b""


def _index_tar(path: Path) -> Archive:
    members: dict[str, Member] = {}
    unreadable: list[tuple[str, str]] = []
    with _ShortReads(path) as file:
        try:
            with tarfile.open(fileobj=file, mode="r:", errorlevel=0, ignore_zeros=False) as tar:
                for count, info in enumerate(tar):
                    if count >= MOST_MEMBERS:
                        unreadable.append(("", f"more than {MOST_MEMBERS:,} members; the rest was left out"))
                        break
                    name = _clean(info.name)
                    if info.isdir() or info.islnk():
                        continue  # a hard link repeats a member that is there already
                    if name is None:
                        unreadable.append(_misnamed(info.name))
                    elif info.issym():
                        if _leads_out(info.name, info.linkname):
                            unreadable.append((name, "a link that leads out of the archive"))
                    elif info.issparse():
                        unreadable.append((name, "a sparse member; unpack the archive to read it"))
                    elif info.isreg():
                        members[name] = Member(name, info.size, info.offset_data)
                    else:
                        unreadable.append((name, "a device, pipe or socket: never opened"))
        # Broken headers reach the surface as almost anything; what was listed before stays readable.
        except Exception as error:
            unreadable.append(("", f"the archive is cut off or broken ({error})"))
    if not members and unreadable and not unreadable[-1][0]:
        raise StreamFault(unreadable[-1][1])
    return Archive(path, members, tuple(unreadable))


def _index_zip(path: Path) -> Archive | None:
    try:
        if _zip_directory_size(path) > _ZIP_DIRECTORY:
            raise StreamFault("the archive has far too many members")
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError) as error:
        raise StreamFault(f"the zip archive is cut off or broken ({error})") from error
    members: dict[str, Member] = {}
    infos: dict[str, zipfile.ZipInfo] = {}
    unreadable: list[tuple[str, str]] = []
    total = 0
    stored = path.stat().st_size
    for info in archive.infolist():
        if info.is_dir():
            continue
        if _is_package(info.filename):
            return None
        if len(members) >= MOST_MEMBERS:
            unreadable.append(("", f"more than {MOST_MEMBERS:,} members; the rest was left out"))
            break
        total += info.file_size
        if total > MOST_BYTES or total > max(GROWTH_FLOOR, MOST_GROWTH * stored):
            unreadable.append(("", f"grows more than {MOST_GROWTH} times over; the rest was left out"))
            break
        name = _clean(info.filename)
        if name is None:
            unreadable.append(_misnamed(info.filename))
        elif (info.external_attr >> 16) & 0o170000 == 0o120000:
            unreadable.append((name, "a link: not followed"))
        elif info.flag_bits & 1:
            unreadable.append((name, "encrypted; unpack the archive to read it"))
        else:
            members[name] = Member(name, info.file_size, -1)
            infos[name] = info
    return Archive(path, members, tuple(unreadable), archive, infos)


def _begins_with_text(stored: Iterator[bytes]) -> bool:
    """Whether one of the members in the first bytes of a compressed tar is text."""
    start = io.BytesIO(_first(decompressed(stored), _LOOKED_AT))
    with contextlib.suppress(Exception), tarfile.open(fileobj=start, mode="r:") as tar:
        for info in tar:
            member = start.getbuffer()[info.offset_data : info.offset_data + min(info.size, 4096)]
            if info.isreg() and info.size and is_text(bytes(member)):
                return True
    return False


def _is_package(name: str) -> bool:
    """A name that gives away a file that is a zip only by form: checkpoint, array, wheel, office file."""
    return name.endswith(_PACKAGE_PARTS)


def _zip_directory_size(path: Path) -> int:
    """Bytes of the central directory as the end of the file states it; 0 if that is not found."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - (66 << 10)))
        tail = file.read()
    wide = tail.rfind(b"PK\x06\x06")
    if wide >= 0 and len(tail) >= wide + 48:
        return int.from_bytes(tail[wide + 40 : wide + 48], "little")
    plain = tail.rfind(b"PK\x05\x06")
    return int.from_bytes(tail[plain + 12 : plain + 16], "little") if plain >= 0 else 0


def _clean(name: str) -> str | None:
    """A member's name without leading `./` and `/`; None if it climbs out with `..` or is too long."""
    if len(name) > _LONGEST_NAME:
        return None
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts or ".." in parts or max(map(len, parts)) > _LONGEST_PART:
        return None
    return shown_name("/".join(parts))


def _misnamed(name: str) -> tuple[str, str]:
    if len(name) > _LONGEST_PART:
        return shown_name(name[:_LONGEST_PART]) + "…", "its name is too long"
    return shown_name(name), "its name leads out of the archive"


def _leads_out(name: str, target: str) -> bool:
    return target.startswith("/") or os.path.normpath(f"{Path(name).parent}/{target}").startswith("..")


def _tar_chunks(path: Path, member: Member, start: int) -> Iterator[bytes]:
    left = member.size - start
    try:
        with path.open("rb") as file:
            file.seek(member.offset + start)
            step = _GLANCE  # a member is often only sniffed
            while left > 0:
                data = file.read(min(step, left))
                step = CHUNK
                if not data:
                    raise StreamFault(f"the archive is cut off inside this member ({left:,} bytes missing)")
                left -= len(data)
                yield data
    except OSError as error:
        raise StreamFault(f"the archive cannot be read: {error.strerror or error}") from error


def _of_ranges(path: Path, ranges: Ranges) -> bytes:
    try:
        with path.open("rb") as file:
            parts = []
            for start, end in ranges:
                file.seek(start)
                parts.append(file.read(end - start))
            return b"".join(parts)
    except OSError as error:
        raise StreamFault(f"the file cannot be read: {error.strerror or error}") from error


def _stored(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from _file_chunks(file, b"")


def _file_chunks(file: io.BufferedReader, head: bytes) -> Iterator[bytes]:
    if head:
        yield head
    while data := file.read(CHUNK):
        yield data


def _first(chunks: Iterator[bytes], size: int) -> bytes:
    data = bytearray()
    with contextlib.suppress(StreamFault):
        for chunk in chunks:
            data += chunk
            if len(data) >= size:
                break
    return bytes(data[:size])
