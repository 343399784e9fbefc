"""Reports of NCCL's RAS subsystem (`ncclras`): who launched fewer collectives, and who no longer answers.

Text since NCCL 2.24, JSON since 2.28.7 (src/ras/client_support.cc and the troubleshooting guide). Ranks in
it are those of a communicator, which are the job's where the communicator is the largest. Counts that differ
by one are normal in a job that runs: who is behind is behind in every report, by more than one, or the
counts no longer move.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from logtriage.artefacts.comparison import told_ranks
from logtriage.model import Line
from logtriage.regex import regex

MOST_RANKS = 1_000_000


@dataclass(frozen=True, slots=True)
class Peer:
    """A process as RAS names it; `rank` is that of the communicator."""

    rank: int | None
    host: str | None = None
    pid: int | None = None
    gpu: str | None = None


@dataclass(slots=True)
class Communicator:
    """One communicator of one report: launched operations by rank, and who is missing."""

    name: str
    size: int = 0
    launched: dict[str, dict[int, int]] = field(default_factory=dict)  # operation: rank: count, outliers only
    usual: dict[str, int] = field(default_factory=dict)  # operation: the count of most ranks
    missing: set[int] = field(default_factory=set)
    lines: dict[int, Line] = field(default_factory=dict)  # rank: where the report tells of it


@dataclass(frozen=True, slots=True)
class RasReport:
    communicators: tuple[Communicator, ...]
    peers: Mapping[int, Peer]  # by rank of the largest communicator
    lost: tuple[tuple[Peer, Line], ...]  # processes that do not answer


@dataclass(frozen=True, slots=True)
class RasFinding:
    """Who is to blame by the last report, and the lines that say it. `is_sure`: no accident of the moment."""

    peers: tuple[Peer, ...]
    told: str
    lines: tuple[Line, ...]
    is_sure: bool
    by: str = "NCCL's own report"


_GROUP = regex(r"#(?P<name>\d+-\d+ \([0-9a-f]+\)) (?P<status>MISMATCH|INCOMPLETE|TIMEOUT)?")
_KIND = regex(r"Communicator ranks have different (?P<operation>\w+) operation counts")
_COUNT = regex(
    r"(?P<count>\d{1,7}) ranks have (?:launched up to operation (?P<number>\d{1,18})|not launched)"
)
_ONE = regex(
    r"Rank (?P<rank>\d{1,7})"
    r"(?: has (?:launched up to operation (?P<number>\d{1,18})|(?P<none>not launched any)[\w ]*))?"
    r" -- (?:GPU (?P<gpu>\S+) managed by process (?P<pid>\d{1,10}) on node (?P<host>\S+))?"
)
_MISSING = regex(r"The missing ranks?: (?P<ranks>[\d, -]+)")
_PROCESS = regex(r"Process (?P<pid>\d{1,10}) on node (?P<host>\S+) managing GPUs? (?P<gpu>\S+)")
_SIZE = regex(r"\d+ +\d+ +\d+ +[\d-]+ +(?P<size>\d{1,7}) +\d+ +[A-Z]+ +[A-Z]+")
_BEGIN = regex(r"Job summary|Communicators\.\.\.")
_WORDS = ("Rank ", "The missing", "Missing", "Process ", "#", "Communicator", "Job summary")


def ras_reports(lines: Iterable[Line]) -> list[RasReport]:
    """The reports in the lines of one file, in order."""
    found: list[_Open] = []
    current = _Open()
    for line in lines:
        text = line.message.strip()[:500]
        if not text.startswith(_WORDS) and not text[:1].isdigit() and "PEER_DEAD" not in text:
            continue
        if _BEGIN.match(text) and (current.communicators or current.lost):
            found.append(current)
            current = _Open()
        current.take(text, line)
    return [each.report() for each in (*found, current) if each.communicators or each.lost]


@dataclass(slots=True)
class _Open:
    """A report in the making."""

    communicators: list[Communicator] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)  # by number of the group
    peers: dict[tuple[str, int], Peer] = field(default_factory=dict)
    lost: list[tuple[Peer, Line]] = field(default_factory=list)
    operation: str = ""
    number: int = 0
    most: int = 0

    def take(self, text: str, line: Line) -> None:
        if (size := _SIZE.match(text)) is not None:
            self.sizes[text.split()[0]] = int(size["size"])
        elif (group := _GROUP.match(text)) is not None:
            self.communicators.append(Communicator(group["name"], self.sizes.get(text[1:].split("-")[0], 0)))
        elif (process := _PROCESS.search(text)) is not None:
            self.lost.append((Peer(None, process["host"], int(process["pid"]), process["gpu"]), line))
        elif self.communicators:
            self._take_rank(self.communicators[-1], text, line)

    def _take_rank(self, communicator: Communicator, text: str, line: Line) -> None:
        if (kind := _KIND.match(text)) is not None:
            self.operation, self.most = kind["operation"], 0
        elif (count := _COUNT.match(text)) is not None:
            self.number = int(count["number"] or 0)
            if int(count["count"]) > self.most:  # the most frequent comes first
                self.most = int(count["count"])
                communicator.usual[self.operation] = self.number
        elif (missing := _MISSING.match(text)) is not None:
            for rank in islice(re.findall(r"\d{1,7}", missing["ranks"]), MOST_RANKS):
                communicator.missing.add(int(rank))
                communicator.lines.setdefault(int(rank), line)
        elif (one := _ONE.match(text)) is not None:
            rank = int(one["rank"])
            told = int(one["number"]) if one["number"] else 0 if one["none"] else self.number
            if self.operation:
                communicator.launched.setdefault(self.operation, {})[rank] = told
            else:
                communicator.missing.add(rank)
            communicator.lines.setdefault(rank, line)
            if one["host"]:
                peer = Peer(rank, one["host"], int(one["pid"]), one["gpu"])
                self.peers[communicator.name, rank] = peer
        elif text.startswith("Missing communicator data"):
            self.operation = ""

    def report(self) -> RasReport:
        return _report(self.communicators, self.peers, self.lost)


def _report(
    communicators: Sequence[Communicator],
    peers: Mapping[tuple[str, int], Peer],
    lost: Sequence[tuple[Peer, Line]],
) -> RasReport:
    largest = max((each.size for each in communicators), default=0)
    whole = {each.name for each in communicators if each.size == largest}
    known = {rank: peer for (name, rank), peer in sorted(peers.items()) if name in whole}
    named = []
    for peer, line in lost:
        ranks = {rank for rank, each in known.items() if (each.host, each.pid) == (peer.host, peer.pid)}
        named.append((replace(peer, rank=ranks.pop() if len(ranks) == 1 else None), line))
    return RasReport(tuple(each for each in communicators if each.size == largest), known, tuple(named))


def ras_json(data: bytes, line: Line) -> list[RasReport]:
    """The report of `ncclras -f json`; all of it is told on the line where it begins."""
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        return []
    items = told.get("communicators") if isinstance(told, dict) else None
    communicators = []
    peers: dict[tuple[str, int], Peer] = {}
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict):
            continue
        name = str(item.get("hash"))
        communicator = Communicator(name, _number(item.get("size")) or 0)
        for key in ("ranks", "missing_ranks"):
            ranks = item.get(key)
            for each in islice(ranks if isinstance(ranks, list) else (), MOST_RANKS):
                rank = _number(each.get("rank")) if isinstance(each, dict) else None
                if rank is None:
                    continue
                host = each.get("host")
                peers[name, rank] = Peer(
                    rank, host if isinstance(host, str) else None, _number(each.get("pid")),
                    str(each.get("cuda_dev")),
                )  # fmt: skip
                communicator.lines[rank] = line
                if key == "missing_ranks":
                    communicator.missing.add(rank)
                counts = each.get("collective_counts")
                for operation, count in counts.items() if isinstance(counts, dict) else ():
                    communicator.launched.setdefault(str(operation), {})[rank] = _number(count) or 0
        for operation, by_rank in communicator.launched.items():
            communicator.usual[operation] = Counter(by_rank.values()).most_common(1)[0][0]
        communicators.append(communicator)
    return [_report(communicators, peers, ())] if communicators else []


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 1 << 62 else None


def judge_reports(reports: Sequence[RasReport]) -> RasFinding | None:
    """Who is missing, or else behind, in the last report and in none of the earlier ones was not."""
    if not reports:
        return None
    last = reports[-1]
    missing = sorted({rank for each in last.communicators for rank in each.missing})
    if missing and not _too_many(missing, last):
        lines = [each.lines[rank] for rank in missing for each in last.communicators if rank in each.lines]
        peers = tuple(_peer(rank, last) for rank in missing)
        return RasFinding(
            peers, f"{told_ranks(missing)} no longer answers NCCL's RAS", tuple(lines[:3]), True
        )
    if last.lost and not last.communicators:
        peers = tuple(peer for peer, _ in last.lost)
        names = ", ".join(f"process {peer.pid} on {peer.host}" for peer in peers[:4])
        lines = [line for _, line in last.lost]
        return RasFinding(peers, f"{names} no longer answers NCCL's RAS", tuple(lines[:3]), True)
    return _behind(reports)


def _behind(reports: Sequence[RasReport]) -> RasFinding | None:
    last = reports[-1]
    behind: dict[int, tuple[str, int, int, Communicator]] = {}
    for communicator in last.communicators:
        for operation, by_rank in communicator.launched.items():
            usual = communicator.usual.get(operation, 0)
            for rank, count in by_rank.items():
                if count < usual and rank not in behind:
                    behind[rank] = (operation, count, usual, communicator)
    for earlier in reports[:-1]:
        behind = {rank: told for rank, told in behind.items() if _was_behind(rank, told[0], earlier)}
    if not behind or _too_many(list(behind), last):
        return None
    ranks = sorted(behind)
    operation, count, usual, communicator = behind[ranks[0]]
    stands = len(reports) > 1 and all(
        each.usual.get(operation) == usual
        for report in reports
        for each in report.communicators
        if each.name == communicator.name
    )
    kind = "" if operation == "collective" else f" {operation}"
    told = f"{told_ranks(ranks)} launched{kind} operation {count} last while most others are at {usual}"
    if stands:
        told += f", in {len(reports)} reports"
    lines = tuple(behind[rank][3].lines[rank] for rank in ranks[:3])
    return RasFinding(tuple(_peer(rank, last) for rank in ranks), told, lines, stands or usual - count > 1)


def _was_behind(rank: int, operation: str, report: RasReport) -> bool:
    return any(
        each.launched.get(operation, {}).get(rank, each.usual.get(operation, 0))
        < each.usual.get(operation, 0)
        for each in report.communicators
    )


def _too_many(ranks: Sequence[int], report: RasReport) -> bool:
    size = max((each.size for each in report.communicators), default=0)
    return size > 0 and len(ranks) * 2 > size


def _peer(rank: int, report: RasReport) -> Peer:
    known = report.peers.get(rank)
    if known is not None:
        return known
    lost = [peer for peer, _ in report.lost]
    return replace(lost[0], rank=rank) if len(lost) == 1 else Peer(rank)
