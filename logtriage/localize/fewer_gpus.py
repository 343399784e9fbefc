"""A host that lists fewer GPUs than its peers, or than it did before: one is gone, and no line says so.

`nvidia-smi -L` and `-q`, `lspci` and the topology that NCCL dumps name what a machine has.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from logtriage.localize.candidates import Candidate
from logtriage.localize.progress import Progress
from logtriage.localize.scene import Scene
from logtriage.localize.topology import Topology
from logtriage.model import Line, SourceRole
from logtriage.regex import regex
from logtriage.rulebank.rule import Role, Strength

_BY_TOOLS = (SourceRole.HARDWARE, SourceRole.ENVIRONMENT, SourceRole.MERGED)
LEAST_HOSTS = 3  # of two that differ nobody knows which is as it should be
_LISTED = regex(
    r"^(?P<smi>GPU) \d{1,3}: .{2,80} \(UUID: "
    r"|^Attached GPUs +: (?P<attached>\d{1,3})$"
    r"|^(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] (?:3D|VGA compatible) controller(?: \[\w{4}\])?: "
    r"(?P<lspci>NVIDIA) .{0,200}\(rev (?!ff)"
    r"|^\s*<(?P<topology>gpu) dev=\"\d"
)
_WORDS = ("GPU", "NVIDIA", "<gpu ")


@dataclass(slots=True)
class _Listing:
    """What one tool listed last on a host, and at most before."""

    line: Line
    count: int
    most: int


def fewer_gpus(scene: Scene, progress: Progress, topology: Topology) -> list[Candidate]:
    """A candidate for each host that lacks a GPU."""
    listed: dict[str, dict[str, _Listing]] = defaultdict(dict)
    for reading in scene.readings:
        host = reading.source.host
        if host is None or reading.source.role not in _BY_TOOLS:
            continue
        for form, listing in _listings(reading.lines).items():
            listed[form].setdefault(topology.machine(host) or host, listing)
    ranks = Counter(topology.machine(host) or host for host in topology.host_of_rank.values())
    found: dict[str, Candidate] = {}
    for of_host in listed.values():
        most = max(max(each.count, each.most) for each in of_host.values())
        fewer = {host: each for host, each in of_host.items() if each.count < most}
        if len(fewer) * 2 >= len(of_host) or len(of_host) < LEAST_HOSTS:
            fewer = {host: each for host, each in fewer.items() if each.count < each.most}
        elif len({each.count for host, each in of_host.items() if host not in fewer}) > 1:
            continue  # no two machines alike
        for host, listing in fewer.items():
            if 0 < ranks[host] <= listing.count:
                continue  # it has all that its ranks need
            found.setdefault(host, _candidate(host, listing, most, was_there=bool(progress.traces)))
    return list(found.values())


def _listings(lines: tuple[Line, ...]) -> dict[str, _Listing]:
    """By tool what it listed; a list ends where another begins or where other text stands for long."""
    found: dict[str, _Listing] = {}
    for line in lines:
        if not any(word in line.text for word in _WORDS) or (told := _LISTED.search(line.text)) is None:
            continue
        form = told.lastgroup or ""
        known = found.get(form)
        if form == "attached":
            count = int(told["attached"])
        elif known is None or _begins_anew(form, line.text):
            count = 1
        else:
            count = known.count + 1
        found[form] = _Listing(line, count, max(count, known.most if known is not None else 0))
    return found


def _begins_anew(form: str, text: str) -> bool:
    return form == "smi" and text.startswith("GPU 0:")


def _candidate(host: str, listing: _Listing, most: int, *, was_there: bool) -> Candidate:
    return Candidate(
        failure_type="gpu.fell_off_bus" if was_there else "gpu.unavailable",
        role=Role.CAUSE,
        strength=Strength.LIKELY,
        title=f"{host} lists {listing.count} GPUs where there should be {most}",
        line=listing.line,
        time=listing.line.time,
        rank=None,
        host=host,
        attempt=None,
        source_role=SourceRole.HARDWARE,
    )
