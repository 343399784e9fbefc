"""What lies in the folder that was asked about: its logs, and what could not be read.

Nothing here is executed, followed out of the folder, or waited for. A fault of one file is written down
and never stops the rest.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from logtriage.forks import shared_out
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
    is_text,
    narrowed,
    wide_encoding,
)
from logtriage.intake.documents import is_document
from logtriage.intake.dumps import artefact_kind
from logtriage.intake.identity import Identity, identify_all
from logtriage.intake.newest_first import MOST_BYTES, stands_newest_first
from logtriage.intake.overlays import MOST_BYTES as MOST_OVERLAID
from logtriage.intake.overlays import learn_overlays, lifted, overlays_as
from logtriage.intake.places import NothingReadable, candidates, local_paths, why
from logtriage.intake.roles import content_role
from logtriage.intake.sections import begins_with_section
from logtriage.intake.streams import read_ranges
from logtriage.model import JOB_ROLES, Artefact, ArtefactKind, Overlay, Source, SourceRole, Unreadable

__all__ = ["Inventory", "NothingReadable", "discover"]

SNIFFED = 64 << 10
_TAIL = 16 << 10
_THREADS = 4
# The product's own documents, which people leave beside the logs: `--json` and `--html`.
_OWN_REPORTS = (b'"schema": "logtriage.verdict/', b'<meta name="generator" content="logtriage">')
_BATCH = 8
MOST_HANDED_ON = 100  # files, whose lines may be quoted or numbered; more come from where they were written
# Whose lines may stand newest first: what jobs and kernels write; None are jobs' own, until names tell more.
_TURNED_ROLES = (None, *JOB_ROLES, SourceRole.KERNEL)

_NO_LOGS = (SourceRole.ENVIRONMENT, SourceRole.METRICS)


@dataclass(frozen=True, slots=True)
class Inventory:
    """The sources of a job in one canonical order; `other_files` counts files that are no text.

    `artefacts` are read by readers of their own; those of them that are text are sources as well.
    """

    root: Path
    sources: tuple[Source, ...]
    unreadable: tuple[Unreadable, ...]
    other_files: int
    artefacts: tuple[Artefact, ...] = ()


@dataclass(frozen=True, slots=True)
class _Found:
    """A readable text before its name has been put beside the others."""

    file: str
    size: int
    role: SourceRole | None
    artefact: ArtefactKind | None = None
    is_newest_first: bool | None = False  # None where it alone does not tell
    overlays: tuple[Overlay, ...] = ()
    is_document: bool = False  # none of the job's logs, if there are any
    is_section: bool = False


@dataclass(slots=True)
class _Findings:
    texts: list[_Found]
    unreadable: list[Unreadable]
    others: int = 0
    dumps: list[_Found] = field(default_factory=list)  # artefacts that are no text
    are_few: bool = True  # as when a person hands them on

    def add(self, more: _Findings) -> None:
        self.texts += more.texts
        self.dumps += more.dumps
        self.unreadable += more.unreadable
        self.others += more.others


def discover(
    paths: str | Path | Sequence[str | Path],
    *,
    processes: int = 1,
    meanwhile: Callable[[int], None] | None = None,
) -> Inventory:
    """All logs at PATH: a folder, a file, several, a glob, `-` (standard input), or an fsspec address.

    Many files are looked at by so many processes; `meanwhile` is called once, with the bytes that all files
    have as they are stored, while others than this one are at work, if there are any. Raises NothingReadable
    if there is no log.
    """
    asked = [str(one) for one in ([paths] if isinstance(paths, str | Path) else paths)]
    found = _Findings([], [])
    if not asked:
        raise NothingReadable("no path was given: name the folder that holds the job's logs")
    root, given = local_paths(asked, found.unreadable)
    files = candidates(root, given, found.unreadable)
    # Batches: handing each file over by itself costs more than sniffing it.
    names = list(files)
    batches = [names[at : at + _BATCH] for at in range(0, len(names), _BATCH)]
    shares = [batches[at : at + _THREADS] for at in range(0, len(batches), _THREADS)]

    def examined(at: int) -> list[_Findings]:
        try:
            with ThreadPoolExecutor(_THREADS) as pool:  # while one waits for a file, another's is looked at
                return list(pool.map(lambda batch: _examined(batch, files), shares[at]))
        except RuntimeError:  # no more threads (ulimit -u, a container's limit of processes)
            return [_examined(batch, files) for batch in shares[at]]

    def at_that_time() -> None:
        if meanwhile is not None:
            meanwhile(sum(map(_stored, files.values())))

    for share in shared_out(examined, len(shares), processes, at_that_time):
        for one in share:
            found.add(one)
    if not found.texts and not found.dumps:
        raise NothingReadable(_complaint(asked, found))
    laid: Counter[tuple[Overlay, ...]] = Counter()
    for text in found.texts:
        laid[text.overlays] += text.size * bool(text.overlays)
    if likely := max(laid, key=lambda overlays: laid[overlays], default=()):
        found.texts = [
            text if text.overlays == likely else _as_others(root, text, likely) for text in found.texts
        ]
    if any(text.is_newest_first for text in found.texts):
        found.texts = [
            replace(text, is_newest_first=True) if text.is_newest_first is None else text
            for text in found.texts
        ]
    if any(text.role not in _NO_LOGS and not text.is_document for text in found.texts):
        found.texts = [
            replace(text, role=SourceRole.ENVIRONMENT) if text.is_document else text for text in found.texts
        ]
    identities = identify_all(text.file for text in found.texts)
    sources = sorted((_source(text, identities[text.file]) for text in found.texts), key=_order)
    unreadable = sorted(set(found.unreadable), key=lambda one: (one.file, one.reason))
    kinds = {one.file: one.artefact for one in (*found.texts, *found.dumps) if one.artefact is not None}
    named = identify_all(dump.file for dump in found.dumps)
    binary = sorted((_source(dump, named[dump.file]) for dump in found.dumps), key=_order)
    artefacts = [Artefact(one, kinds[one.file]) for one in (*sources, *binary) if one.file in kinds]
    return Inventory(root, tuple(sources), tuple(unreadable), found.others, tuple(artefacts))


def _stored(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # gone, or closed: said where it is read


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
        is_newest_first=text.is_newest_first is True,
        overlays=text.overlays,
        is_section=text.is_section,
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


# --- one file --------------------------------------------------------------------------------------


def _examined(batch: Sequence[str], files: Mapping[str, Path]) -> _Findings:
    found = _Findings([], [], are_few=len(files) <= MOST_HANDED_ON)
    for file in batch:
        _examine(file, files[file], found)
    return found


def _examine(file: str, path: Path, found: _Findings) -> None:
    """What one file is: a text, an archive of texts, something else, or unreadable."""
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
        if archive_kind(plain[:512]) or (not packed and begins_with_section(plain[:512])):
            archive = open_archive(path)
            if archive is not None:
                _expand(archive, file, found, nested=False)
                return
    except OSError as error:
        found.unreadable.append(Unreadable(file, why(error)))
        return
    except StreamFault as error:
        _unread(file, str(error), found)
        return
    except Exception as error:  # a library that chokes on hostile bytes must not end the walk
        found.unreadable.append(Unreadable(file, f"cannot be read ({type(error).__name__}: {error})"))
        return
    _judge(file, size, plain, tail, size > len(head) or packed, fault, found)


def _expand(archive: Archive, file: str, found: _Findings, *, nested: bool) -> None:
    before = len(found.texts)
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
    if archive.sections is not None:
        found.texts[before:] = [replace(text, is_section=True) for text in found.texts[before:]]


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
    if any(mark in head[:2048] for mark in _OWN_REPORTS):
        found.others += 1  # what was said of the job is no log of it
    elif kind := foreign_compression(head):
        found.unreadable.append(Unreadable(file, f"compressed with {kind}: decompress it first"))
    elif fault is not None and not head:
        found.unreadable.append(Unreadable(file, fault))
    elif (artefact := artefact_kind(head, tail)) is not None and not is_text(head):
        found.dumps.append(_Found(file, size, SourceRole.ENVIRONMENT, artefact))
    elif is_text(head):
        may_be_laid = found.are_few and size <= MOST_OVERLAID
        overlays = learn_overlays(head, is_cut=partial) if may_be_laid else ()
        found.texts.append(_text(file, size, head, tail, partial, artefact, overlays))
    elif _named_as_log(file):
        found.unreadable.append(Unreadable(file, "not text"))
    else:
        found.others += 1


def _text(
    file: str,
    size: int,
    head: bytes,
    tail: bytes,
    partial: bool,
    artefact: ArtefactKind | None,
    overlays: tuple[Overlay, ...],
) -> _Found:
    if overlays:
        head, tail = lifted(head, overlays)[0], lifted(tail, overlays)[0]
    role = content_role(file, head + b"\n" + tail if tail else head)
    if partial and role is SourceRole.ENVIRONMENT and head.lstrip()[:1] not in (b"{", b"["):
        role = None  # a log may begin with pages of settings
    if artefact is ArtefactKind.FLIGHT_RECORDER:
        role = SourceRole.ENVIRONMENT  # its own reader knows what it says
    turned = stands_newest_first(head, tail) if role in _TURNED_ROLES and size <= MOST_BYTES else False
    return _Found(file, size, role, artefact, turned, overlays, role is None and is_document(file, head))


def _as_others(root: Path, text: _Found, likely: tuple[Overlay, ...]) -> _Found:
    """A text whose lines are too few to tell what was laid over them, as what lies beside it tells."""
    if text.size > MOST_OVERLAID:
        return text
    try:
        source = Source(text.file, text.size, SourceRole.MERGED)
        (head,) = read_ranges(root, source, [(0, SNIFFED)])
    except StreamFault:
        return text
    partial = len(head) == SNIFFED
    overlays = overlays_as(likely, head, is_cut=partial)
    if not overlays or (text.overlays and overlays != likely):
        return text
    read = _text(text.file, text.size, head, b"", partial, text.artefact, overlays)
    return replace(read, is_section=text.is_section)


def _named_as_log(file: str) -> bool:
    name = file.rsplit("/", 1)[-1].lower()
    return re.search(r"\.(log|out|err|txt|jsonl|stdout|stderr|dmesg)(\W\w{1,12})*$", name) is not None
