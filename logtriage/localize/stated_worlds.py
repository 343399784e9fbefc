"""Rank to host as launchers state it of the whole job before they start it: DeepSpeed's world, Paddle's list.

Of a host whose processes never came up no line tells its ranks; what the launcher meant to start there does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from logtriage.intake.reading import Reading
from logtriage.model import JOB_ROLES, Line
from logtriage.regex import regex

# `WORLD INFO DICT: {'cn-1': [0, 1], 'cn-2': [0, 1]}`: devices of each host; ranks count on in this order.
_WORLD = regex(r"WORLD INFO DICT: \{(?P<hosts>'[\w.-]{1,200}': \[[\d, ]{0,400}\](?:, ?'[^}\n]{0,60000})?)\}")
_DEVICES = regex(r"'(?P<host>[\w.-]{1,200})': \[(?P<devices>[\d, ]{0,400})\]")
# What Paddle's launchers print before they start: `ips: 10.0.0.4,10.0.0.5`, and in a table of the environment
# `PADDLE_TRAINERS_NUM    16`.
_ADDRESSES = regex(r"(?:^|\s)ips: (?P<hosts>[\w.-]{1,200}(?:,[\w.-]{1,200}){1,999})\s*$")
_TRAINERS = regex(r"\bPADDLE_TRAINERS_NUM\s{1,80}(?P<size>\d{1,6})\b")
MOST_TRAINERS = 100_000


def stated_worlds(lines: Iterable[Line]) -> Iterator[tuple[int, str]]:
    """Ranks and their hosts."""
    given: tuple[str, ...] = ()
    trainers = 0
    for line in lines:
        text = line.text[:65_536]
        if "WORLD INFO DICT: " in text and (world := _WORLD.search(text)) is not None:
            rank = 0
            for host, devices in _DEVICES.findall(world["hosts"]):
                for _ in devices.split(","):
                    yield rank, host
                    rank += 1
        elif "ips: " in text and (found := _ADDRESSES.search(text)) is not None:
            given = tuple(dict.fromkeys(found["hosts"].split(",")))
        elif "PADDLE_TRAINERS_NUM" in text and (number := _TRAINERS.search(text)) is not None:
            trainers = int(number["size"])
    if len(given) > 1 and len(given) <= trainers <= MOST_TRAINERS and trainers % len(given) == 0:
        each = trainers // len(given)
        yield from ((rank, given[rank // each]) for rank in range(trainers))


# DLRover's master tells of each node how many processes run there; torchrun's agent prints its settings.
_JOINED = regex(
    r"\brendezvous of elastic-training is \{(?P<nodes>\d{1,5}: ?\d{1,3}(?:, ?\d{1,5}: ?\d{1,3}){0,9999})\}"
)
_NODES = regex(r"(?:^\s*max_nodes {1,12}: |--nnodes[= ])(?:\d{1,5}:)?(?P<count>\d{1,5})\b")
_EACH = regex(r"(?:^\s*nproc_per_node {1,12}: |--nproc[-_]per[-_]node[= ])(?P<count>\d{1,3})\b")
_WORDS = ("rendezvous of", "nodes", "nproc")


def stated_nodes(lines: Iterable[Line]) -> dict[int, int]:
    """How many processes each node of the job runs, by the node's number; empty where that is not told."""
    count = each = 0
    joined: dict[int, int] = {}
    for line in lines:
        text = line.text[:65_536]
        if not any(word in text for word in _WORDS):
            continue
        if (told := _JOINED.search(text)) is not None:
            pairs = (pair.split(":") for pair in told["nodes"].split(","))
            joined = {int(node): int(processes) for node, processes in pairs}
        if (nodes := _NODES.search(text)) is not None:
            count = int(nodes["count"])
        if (processes := _EACH.search(text)) is not None:
            each = int(processes["count"])
    return joined or (dict.fromkeys(range(count), each) if each else {})


def files_of_nodes(
    readings: Sequence[Reading], rank_of_file: Mapping[str, int]
) -> tuple[dict[str, str], int]:
    """Files `worker-3.log` that are numbered as the nodes are, each of which runs several processes.

    The number is no rank then; what the file is called is the node's name. And how many ranks there are.
    """
    job = [each for each in readings if each.source.role in JOB_ROLES]
    nodes = stated_nodes(line for each in job for line in each.lines)
    if len(nodes) < 2 or min(nodes.values()) < 2:
        return {}, 0
    numbered = {
        each.source.file: rank
        for each in job
        if each.source.host is None
        and (rank := rank_of_file.get(each.source.file, each.source.rank)) is not None
        and all(line.rank in (None, rank) for line in each.lines)
    }
    if sorted(numbered.values()) != sorted(nodes):
        return {}, sum(nodes.values())
    names = {file: file.rsplit("/", 1)[-1].partition(".")[0] for file in numbered}
    return (names if len(set(names.values())) == len(names) else {}), sum(nodes.values())
