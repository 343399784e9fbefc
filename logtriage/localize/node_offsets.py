"""The first global rank of each node, as its launcher tells: what `[default3]:` on that node counts from."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from logtriage.localize.exits import Exit
from logtriage.localize.scene import Scene
from logtriage.model import JOB_ROLES, Line
from logtriage.regex import regex

# The label of `torchrun --tee`; what a process says of itself (`[rank3]:`) is no local rank.
# And TorchX's, of the process in a replica: `trainer/1 [3]:`.
_TEE = regex(
    r"(?:[\w.-]{1,100}(?:: ?| {0,40}\| ?)|[A-Za-z][\w.-]{0,60}/\d{1,5} )?"
    r"\[(?!(?i:rank))[A-Za-z][A-Za-z_-]{0,40}(\d{1,5})\]:"
    r"|[A-Za-z][\w.-]{0,60}/\d{1,5} \[(\d{1,4})\]:"
)
# torchelastic's agent: `group_rank=1 … global_ranks=[8, 9, 10, 11]`, on one line or on lines of their own.
_GLOBAL = regex(r"\bglobal_ranks=\[(\d{1,6}(?:, ?\d{1,6}){0,63})\]")
# A launcher's command or settings: `--nproc_per_node=8 … --node_rank=1`; DeepSpeed's
# `num_local_procs=4, node_rank=2`.
_NODE = regex(r"(?:--node[-_]rank|--machine[-_]rank|\b(?:node|machine)_rank)[= :]{1,3}(\d{1,5})\b")
_EACH = regex(
    r"(?:--nproc[-_]per[-_]node|\bnproc_per_node|\bnum_local_procs|\bnum_processes_per_machine)"
    r"[= :]{1,3}(\d{1,3})\b"
)
_IN_ALL = regex(r"(?:--num[-_]processes|\bnum_processes)[= :]{1,3}(\d{1,6})\b")
_MACHINES = regex(r"(?:--num[-_]machines|\bnum_machines)[= :]{1,3}(\d{1,5})\b")
# Detectron2's launcher counts its GPUs by machine.
_GPUS = regex(r"(?:--num[-_]gpus|\bnum_gpus)[= :]{1,3}(\d{1,3})\b")
MOST_LINES = 400  # of a file, where a launcher's settings stand


@dataclass(frozen=True, slots=True)
class NodeOffsets:
    """First global ranks by host and, where one node alone wrote a file, by file; all ranks by either."""

    by_host: dict[str, int] = field(default_factory=dict)
    by_file: dict[str, int] = field(default_factory=dict)
    ranks_of_host: dict[str, tuple[int, ...]] = field(default_factory=dict)
    ranks_of_file: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def rank(self, line: Line, host: str | None = None) -> int | None:
        """The global rank of a line that is labelled with a local one; None where its node is not known."""
        if not (self.by_host or self.by_file) or (label := _TEE.match(line.text[:160])) is None:
            return None
        local = int(label[1] or label[2])
        if line.rank not in (None, local):
            return None  # its own words, or the file, told better already
        first = self.first(line, host)
        return None if first is None else first + local

    def first(self, line: Line, host: str | None = None) -> int | None:
        """The first global rank of the node that wrote a line, on `host` unless the line says which."""
        place = line.host or host
        found = self.by_host.get(place) if place is not None else None
        # a file that one node wrote may have its host from elsewhere
        return self.by_file.get(line.file) if found is None and line.host is None else found


def node_offsets(scene: Scene, exits: Sequence[Exit]) -> NodeOffsets:
    """First ranks by host and file; where reports differ, the commonest one counts."""
    votes: dict[str, Counter[int]] = defaultdict(Counter)
    file_votes: dict[str, Counter[int]] = defaultdict(Counter)
    ranks: dict[str, tuple[int, ...]] = {}
    ranks_of_file: dict[str, tuple[int, ...]] = {}
    for each in exits:
        if each.rank is not None and each.local_rank is not None and each.rank >= each.local_rank:
            for host in {each.host, each.line.host} - {None}:  # as it calls itself, and as it is labelled
                votes[str(host)][each.rank - each.local_rank] += 1
            file_votes[each.line.file][each.rank - each.local_rank] += 1
    for reading in scene.readings:
        if reading.source.role not in JOB_ROLES:
            continue
        for line, first, count in _told(reading.lines):
            host = line.host or reading.source.host
            if host is not None:
                votes[host][first] += 1
                if count > 1:
                    ranks[host] = tuple(range(first, first + count))
            file_votes[line.file][first] += 1
            if count > 1:
                ranks_of_file[line.file] = tuple(range(first, first + count))
    of_many = {
        reading.source.file
        for reading in scene.readings
        if len({line.host for line in reading.lines if line.host is not None}) > 1
    }
    by_file = {
        file: next(iter(count))
        for file, count in file_votes.items()
        if len(count) == 1 and file not in of_many
    }
    return NodeOffsets(
        {host: count.most_common(1)[0][0] for host, count in votes.items()},
        by_file,
        _apart(ranks),
        _apart({file: there for file, there in ranks_of_file.items() if file in by_file}),
    )


def _apart(ranks: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Ranks by node, if no two nodes have one in common."""
    told = [rank for there in ranks.values() for rank in there]
    return ranks if len(set(told)) == len(told) else {}


def _told(lines: Sequence[Line]) -> Iterator[tuple[Line, int, int]]:
    """Lines by which a launcher tells which ranks are its own: the first of them, and their number."""
    for at, line in enumerate(lines):
        text = line.text[:4000]
        if "global_ranks=" in text and (found := _GLOBAL.search(text)) is not None:
            ranks = [int(number) for number in found[1].split(",")]
            if ranks == list(range(ranks[0], ranks[0] + len(ranks))):
                yield line, ranks[0], len(ranks)
        elif at >= MOST_LINES or "rank" not in text or not ("node" in text or "machine" in text):
            continue
        elif (node := _NODE.search(text)) is not None:
            each, in_all, machines = _EACH.search(text), _IN_ALL.search(text), _MACHINES.search(text)
            if each is not None:
                yield line, int(node[1]) * int(each[1]), int(each[1])
            elif machines is not None and int(machines[1]):
                gpus = _GPUS.search(text)
                size = int(in_all[1]) // int(machines[1]) if in_all else int(gpus[1]) if gpus else 0
                if size:
                    yield line, int(node[1]) * size, size
