"""One rank's flight recorder dump as plain records, whichever version and form it has.

Keys and their meaning: torch/csrc/distributed/c10d/FlightRecorder.hpp of PyTorch 2.2 to 2.12 (dump versions
1.x to 2.10). The JSON form has no stacks, numbers as text in `pg_status`, and 0 for a time that is not known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import prod
from typing import Any

from logtriage.artefacts.pickles import plain_pickle
from logtriage.model import Frame
from logtriage.regex import regex

MOST_JSON_BYTES = 16 << 20  # takes up to 30 times as much memory; a dump of 2000 entries has 1 MB
MOST_ENTRIES = 100_000
KEPT_COMPLETED = 600
MOST_GROUPS = 20_000
MOST_MEMBERS = 200_000
MOST_FRAMES = 60
MOST_TENSORS = 4096


class RecordingFault(Exception):
    """Why a dump is no flight recording that can be compared."""


@dataclass(frozen=True, slots=True)
class Group:
    """A process group as a rank knows it; `ranks` are global, in the group's order, empty if not told."""

    name: str
    description: str
    ranks: tuple[int, ...]

    @property
    def title(self) -> str:
        told = self.description if self.description not in ("", "undefined") else ""
        return f"{told} ({self.name})" if told and told != self.name else f"group {self.name}"


@dataclass(frozen=True, slots=True)
class Operation:
    """One entry of a recorder: a collective or a send or receive, as one rank issued it.

    `sequence` counts the group's collectives, or its sends and receives. `source` and `target` are ranks
    within the group, for sends and receives only. Sizes are elements of all tensors together, None if
    the entry does not tell. `created` is in seconds since 1970.
    """

    record: int
    group: str
    sequence: int
    name: str
    state: str  # scheduled | started | completed
    is_p2p: bool
    source: int | None
    target: int | None
    elements_in: int | None
    elements_out: int | None
    shape: str
    types: tuple[str, ...]
    created: float | None
    stack: Any = field(default=None, repr=False, compare=False)  # as the dump has it

    @property
    def told(self) -> str:
        """`all_reduce of [4096, 8] BFloat16`"""
        what = f"{self.shape} {'/'.join(self.types)}".strip()
        return f"{self.name} of {what}" if what else self.name

    @property
    def user_frame(self) -> Frame | None:
        return next((frame for frame in _frames(self.stack) if frame.is_user_code), None)


@dataclass(frozen=True, slots=True)
class Status:
    """A group's counters by a rank's watchdog: -1 where nothing was counted; sends and receives mixed in."""

    enqueued: int
    started: int
    completed: int


@dataclass(frozen=True, slots=True)
class Recording:
    """What one rank's recorder held. Operations are in the order in which the rank issued them."""

    file: str
    rank: int
    version: str
    groups: Mapping[str, Group]
    operations: tuple[Operation, ...]
    status: Mapping[str, Status]
    tells_completion: bool = True  # False: states are guessed from the order, see `_guessed`

    @property
    def last_time(self) -> float:
        return max((each.created for each in self.operations if each.created is not None), default=0.0)


def read_recording(file: str, data: bytes) -> Recording:
    """A dump, as pickle or JSON, of the rank that its name or its groups tell.

    Raises PickleFault for a pickle that is not plain data, RecordingFault for what is no recording.
    """
    start = data[:64].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start[:1] == b"{":
        if len(data) > MOST_JSON_BYTES:
            raise RecordingFault(f"larger than {MOST_JSON_BYTES >> 20} MiB")
        try:
            dump = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise RecordingFault(f"broken JSON ({type(error).__name__})") from error
    else:
        dump = plain_pickle(data)
    if not isinstance(dump, dict) or not dump.keys() & {"entries", "pg_config", "pg_status"}:
        raise RecordingFault("no flight recorder dump")
    groups = _groups(dump.get("pg_config"))
    entries = _items(dump.get("entries"))
    found = [operation for entry in _telling(entries) if (operation := _operation(entry)) is not None]
    found.sort(key=lambda each: each.record)
    for entry in islice(entries, MOST_ENTRIES):  # groups that only entries name
        named = entry.get("process_group") if isinstance(entry, dict) else None
        if isinstance(named, list | tuple) and len(named) == 2 and isinstance(named[0], str):
            groups.setdefault(named[0], Group(named[0], _word(named[1]), ()))
    for operation in found:
        groups.setdefault(operation.group, Group(operation.group, "", ()))
    rank = _rank(file, groups, found)
    if rank is None:
        raise RecordingFault("neither its name nor its groups tell whose rank's dump it is")
    status = _statuses(dump.get("pg_status"), groups, entries)
    guessed = _guessed(found, entries)
    return Recording(
        file, rank, str(dump.get("version", "")), groups, tuple(guessed or found), status, guessed is None
    )


def _telling(entries: Sequence[Any]) -> list[dict[Any, Any]]:
    """Entries that matter: what is not completed, the last KEPT_COMPLETED, and the last of every group."""
    kept = []
    groups: set[tuple[str, bool]] = set()
    for position, entry in enumerate(reversed(entries[-MOST_ENTRIES:])):
        if not isinstance(entry, dict):
            continue
        if entry.get("state") == "completed" and position >= KEPT_COMPLETED:
            key = (str(entry.get("process_group", entry.get("pg_id"))), entry.get("is_p2p") is True)
            if key in groups:
                continue
            groups.add(key)
        kept.append(entry)
    return kept


def _guessed(operations: list[Operation], entries: Sequence[Any]) -> list[Operation] | None:
    """Operations with states by their order, where the recorder knows no states; None where it does.

    Backends without events (Gloo) leave every operation `scheduled` and mark it as retired once it ended,
    well or not. Such programs wait for each operation, so only the last one can be open.
    """
    retired = {
        _int(entry.get("record_id"), 0)
        for entry in islice(entries, MOST_ENTRIES)
        if isinstance(entry, dict) and entry.get("retired") is True
    }
    if not retired or any(each.state != "scheduled" for each in operations):
        return None
    return [
        replace(each, state="completed")
        if each.record in retired and position < len(operations) - 1
        else each
        for position, each in enumerate(operations)
    ]


def entry_place(data: bytes, record: int) -> int | None:
    """Where a JSON dump names the operation of an entry, in bytes; None for a pickle."""
    if data[:64].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] != b"{":
        return None
    found = re.search(rb'"record_id"\s*:\s*%d\b' % record, data)
    if found is None:
        return None
    start, end = data.rfind(b"{", 0, found.start()), data.find(b"}", found.start())
    named = data.find(b'"profiling_name"', max(0, start), end if end >= 0 else len(data))
    return named if named >= 0 else found.start()


def _groups(config: Any) -> dict[str, Group]:
    """By name. Versions before 2.2 have none."""
    found: dict[str, Group] = {}
    for name, told in islice(config.items() if isinstance(config, dict) else (), MOST_GROUPS):
        if isinstance(told, dict):
            ranks = told.get("ranks", ())
            members = re.findall(r"\d{1,9}", ranks[: MOST_MEMBERS * 8]) if isinstance(ranks, str) else ranks
            if isinstance(members, list | tuple):
                whole = [int(each) for each in islice(members, MOST_MEMBERS) if str(each).isdecimal()]
                found[str(name)] = Group(str(name), _word(told.get("desc")), tuple(dict.fromkeys(whole)))
    return found


def _items(value: Any) -> list[Any] | tuple[Any, ...]:
    return value if isinstance(value, list | tuple) else ()


def _word(value: Any, most: int = 200) -> str:
    return value[:most] if isinstance(value, str) else ""


def _int(value: Any, default: int = -1) -> int:
    if isinstance(value, int):
        return int(value) if abs(value) < 1 << 63 else default
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value):
        return int(value)
    return default


_P2P = regex(r"(?P<name>send|recv) (?P<a>\d{1,9})(?P<way>->|<-)(?P<b>\d{1,9})$")


def _operation(entry: Mapping[Any, Any]) -> Operation | None:
    title = _word(entry.get("profiling_name"))
    name = title.rsplit(":", 1)[-1]
    group = entry.get("process_group", entry.get("pg_id"))
    if isinstance(group, list | tuple):
        group = group[0] if group else None
    if not name or not isinstance(group, str | int):
        return None
    way = _P2P.search(name)
    source = target = None
    if way is not None:
        name, ends = way["name"], (int(way["a"]), int(way["b"]))
        source, target = ends if way["way"] == "->" else (ends[1], ends[0])
    is_p2p = way is not None or entry.get("is_p2p") is True
    sequence = entry.get("p2p_seq_id") if is_p2p else entry.get("collective_seq_id", entry.get("seq_id"))
    taken, given = _sizes(entry.get("input_sizes")), _sizes(entry.get("output_sizes"))
    types = [
        _word(each, 40)
        for key in ("input_dtypes", "output_dtypes")
        for each in islice(_items(entry.get(key)), MOST_TENSORS)
    ]
    created = _int(entry.get("time_created_ns"), 0)
    state = entry.get("state")
    return Operation(
        record=_int(entry.get("record_id", entry.get("id")), 0),
        group=str(group),
        sequence=_int(sequence),
        name=name,
        state=state if state in ("scheduled", "started", "completed") else "scheduled",
        is_p2p=is_p2p,
        source=source,
        target=target,
        elements_in=_elements(taken),
        elements_out=_elements(given),
        shape=_shape(taken or given),
        types=tuple(dict.fromkeys(filter(None, types))),
        created=created / 1e9 if created > 0 else None,
        stack=entry.get("frames"),
    )


def _sizes(value: Any) -> list[list[int]] | None:
    if not isinstance(value, list | tuple):
        return None
    return [
        [_int(one, 0) for one in islice(each, 32)] if isinstance(each, list | tuple) else []
        for each in islice(value, MOST_TENSORS)
    ]


def _elements(sizes: list[list[int]] | None) -> int | None:
    return sum(prod(each) for each in sizes) if sizes else None


def _shape(sizes: list[list[int]] | None) -> str:
    if not sizes:
        return ""
    return str(sizes[0]) if len(sizes) == 1 else f"{len(sizes)} tensors from {sizes[0]}"


_LIBRARY = regex(r"[\\/](?:site|dist)-packages[\\/]|[\\/]lib[\\/]python\d|^<frozen|^<__|\.(?:cpp|so|cu|h)$")


def _frames(value: Any) -> Iterator[Frame]:
    """Innermost first, as the recorder has them."""
    for each in islice(_items(value), MOST_FRAMES):
        if isinstance(each, dict):
            path = _word(each.get("filename"), 500)
            own = bool(path) and path != "??" and _LIBRARY.search(path) is None
            yield Frame(path, _int(each.get("line"), 0), _word(each.get("name")), own)


# --- whose dump ------------------------------------------------------------------------------------

_NAMED_RANK = regex(r"(?i)rank[-_.]?(\d{1,7})(?!\d)")
_LAST_NUMBER = regex(r"(\d{1,7})(?:\.[A-Za-z]\w{0,9}){0,3}$")


def _rank(file: str, groups: Mapping[str, Group], operations: Iterable[Operation]) -> int | None:
    """The file name's number, unless the dump's own groups show that it counts something else."""
    name = file.rsplit("/", 1)[-1]
    numbers = [*_LAST_NUMBER.findall(name), *_NAMED_RANK.findall(file)[::-1]]
    members = [set(group.ranks) for group in groups.values() if group.ranks]
    possible = set.intersection(*members) if members else set()
    if len(possible) == 1:
        return possible.pop()
    for number in map(int, numbers):
        if not members or number in possible:
            return number
    for each in operations:  # its own end of a send or receive
        own = each.source if each.name == "send" else each.target
        ranks = groups[each.group].ranks if each.group in groups else ()
        if own is not None and own < len(ranks):
            return ranks[own]
    return int(numbers[0]) if numbers and not members else None


def _statuses(told: Any, groups: Mapping[str, Group], entries: Iterable[Any]) -> dict[str, Status]:
    """The watchdog's counters by the name of the group.

    The dump keys them by a number of the process's own. Entries show which group it is; where all groups
    are there and their names are numbers, both count up in the order in which groups were made.
    """
    if not isinstance(told, dict):
        return {}
    counted = islice(told.items(), MOST_GROUPS)
    numbers = {_int(key): value for key, value in counted if isinstance(value, dict)}
    names: dict[int, str] = {}
    if len(numbers) == len(groups) and all(name.isdecimal() for name in groups):
        names = dict(zip(sorted(numbers), sorted(groups, key=int), strict=True))
    for entry in islice(entries, MOST_ENTRIES):
        if isinstance(entry, dict) and isinstance(entry.get("process_group"), list | tuple):
            group = entry["process_group"]
            if group:
                names[_int(entry.get("pg_id"))] = str(group[0])
    return {
        names[number]: Status(
            _int(value.get("last_enqueued_collective")),
            _int(value.get("last_started_collective")),
            _int(value.get("last_completed_collective")),
        )
        for number, value in numbers.items()
        if number in names
    }
