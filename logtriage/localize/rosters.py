"""Which hosts a job was given, and which of its ranks run there: lists of hosts and words of introduction."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from logtriage.intake.names import OTHER_WORD
from logtriage.localize.stated_worlds import stated_worlds
from logtriage.model import Line
from logtriage.regex import regex
from logtriage.rulebank.matcher import without_digits

if TYPE_CHECKING:  # a scene is built with what is known of labels
    from logtriage.localize.scene import Scene

MOST_HOSTS = 20_000  # of one list
# An address, a name with a number in it, or a name that a cloud's batch service drew (Azure's nodes).
HOST_WORD = (
    r"(?:(?:\d{1,3}\.){3}\d{1,3}|(?=[\w.-]{0,100}\d)[A-Za-z][\w-]{0,62}(?:\.[\w-]{1,62}){0,6}"
    r"|(?=[0-9a-f]{0,40}[a-f])[0-9a-f]{16,40}(?:_\d{1,6})?(?![\w-]))"
)
# A row of a hostfile of mpirun or DeepSpeed: `cn-3 slots=8`, of MPICH: `cn-3:8`.
_SLOTS = regex(rf"^\s*({HOST_WORD})(?:\s+slots\s*=\s*(\d{{1,3}})|:(\d{{1,2}})\s*$)")
# What ssh says of the hosts that mpirun starts its daemons on, in their order.
_KNOWN_HOSTS = regex(r"^Warning: Permanently added '\[?([A-Za-z][\w-]{0,62})(?:\.[\w.-]{1,200})?\]?[,' :]")
# `mpirun --host cn-3:8,cn-4:8`, `horovodrun -H …`
_OPTION = regex(
    r"(?:mpirun|mpiexec|horovodrun) .{0,400}?-(?:H|-?hosts?)[ =]([\w.:-]{1,100}(?:,[\w.:-]{1,100}){1,999})"
)
_PER_HOST = regex(
    r"(?:--n?proc[-_]per[-_]node|--ntasks-per-node|-npernode|-ppn|SLURM_N?TASKS_PER_NODE|SLURM_GPUS_ON_NODE)"
    r"[= ](\d{1,3})\b"
)
# Slurm's environment and `scontrol show job`.
_NODELIST = regex(r"(?:\bSLURM_(?:JOB_|STEP_)?NODELIST|^\s*NodeList)=[\"']?([\w.,\[\]-]{2,4000})")
_GROUP = regex(r"([^,\[\]]+)(?:\[([\d,-]+)\])?([^,\[\]]*)(?:,|$)")
_RANK = (
    r"(?:(?:(?:global|world)[-_ ])?[Rr]ank|RANK|SLURM_PROCID|OMPI_COMM_WORLD_RANK|PMI_RANK)[ =:]{0,6}"
    r"(?P<rank>\d{1,6})\b"
)
_PLACE = r"(?:on|@|(?i:host(?:name)?|node(?:[-_ ]?name)?|on agent)|SLURMD_NODENAME)"
_INTRODUCED = (
    # `cn-3 rank 17: …`, `[cn-3] rank=17`, `cn-3 cuda:1 rank=17`
    # `=== cn-3 local_rank 1 (rank 17) pid 77 ===`
    regex(
        rf"^(?:[=#*-]{{1,80}} )?[\[(<]?(?P<host>{HOST_WORD})[\])>]?:?,? {{1,3}}"
        rf"(?:\S{{1,20}} ){{0,2}}?\(?{_RANK}"
    ),
    # `rank 17 on cn-3`, `RANK=17 LOCAL_RANK=1 HOSTNAME=cn-3`
    regex(rf"\b{_RANK}[^.;]{{0,60}}?[ ,(]{_PLACE}[ =:]{{1,2}}(?P<host>{HOST_WORD})(?![\w.-])"),
    # `rank 17 last record: sequence number 9 …, host cn-3`
    regex(rf"\b{_RANK}[^.;]{{0,120}}?, host[ =:]{{1,2}}(?P<host>{HOST_WORD})(?![\w.-])"),
    # `task 3 = cn-3`, `Rank 17: cn-3 pid 90`
    regex(
        rf"^\W{{0,4}}(?i:task|process|rank) {{0,2}}(?P<rank>\d{{1,6}}) ?(?:=|->|:) "
        rf"(?P<host>{HOST_WORD})(?=$| pid )"
    ),
    # `task 3 host cn-3 gpu 3 pid 90`
    regex(
        rf"^\W{{0,4}}(?i:task|process|proc)[ =:]{{1,2}}(?P<rank>\d{{1,6}})[ ,:;]{{1,3}}{_PLACE}[ =:]{{1,2}}"
        rf"(?P<host>{HOST_WORD})(?![\w.-])"
    ),
    # `rank 17 cn-3 forward 1900 …`, a row of values
    regex(
        r"^\W{0,4}[Rr]ank[ =:]{1,2}(?P<rank>\d{1,6})[ ,|]{1,3}"
        r"(?P<host>[a-z]\w{0,30}(?:-\w{1,30}){0,4}-[a-z]{0,8}\d{1,5})[ ,|]{1,3}"
        r"[a-z_]{2,40}[ =:]{1,8}[\d.]{1,12}\b"
    ),
    # `rank 17: 2701.1ms (cn-3)`, a row of what each took
    regex(
        rf"^\W{{0,4}}{_RANK}[:=]? {{0,8}}\d{{1,9}}(?:\.\d{{1,9}})? ?(?:ms|us|s|%|x)? {{1,8}}"
        rf"[(@\[] ?(?P<host>{HOST_WORD})[)\]]?\s*$"
    ),
    # `process 3/4 on cn-3`, as JAX counts processes
    regex(
        r"\b(?i:process|proc|task)(?:[-_ ](?i:index|id))?[ =:#]{1,2}(?P<rank>\d{1,6}) ?(?:/|of) ?\d{1,6}"
        rf",? (?:running )?{_PLACE}[ =:]{{1,2}}(?P<host>{HOST_WORD})(?![\w.-])"
    ),
    # `rank 17 (cn-3): …`
    regex(rf"\b{_RANK} \((?P<host>{HOST_WORD})\)"),
    # `host=cn-3 rank=17`
    regex(rf"\b{_PLACE}[ =:]{{1,2}}(?P<host>{HOST_WORD})[ ,:)]{{1,3}}[^.;]{{0,40}}?\b{_RANK}"),
    # `host trainer-b: rank 17 of 32`
    regex(
        r"\b(?i:host(?:name)?|node(?:[-_ ]?name)?)[ =:]{1,2}(?P<host>(?=[\w.]{0,60}-)[A-Za-z][\w.-]{0,100}\w)"
        rf"[ ,:)]{{1,3}}[^.;]{{0,20}}?\b{_RANK}"
    ),
)
# `cn-3: starting 8 processes, ranks 8-15`, `ranks 8..15 on cn-3`, `rank 8-15: cn-3`
_RANGE = r"(?i:\branks?)[ =:]{0,2}\[?(?P<first>\d{1,6}) ?(?:-|\.\.|to) ?(?P<last>\d{1,6})\b"
STATES_RANGE = regex(r"\b[Rr]anks[ =:]{0,2}\[?\d{1,6} ?(?:-|\.\.|to) ?\d{1,6}\b")
_RANGES = (
    regex(rf"^[\[(<]?(?P<host>{HOST_WORD})(?:[\])>]:?|:) .{{0,120}}?{_RANGE}"),
    regex(rf"^\W{{0,4}}(?P<host>{HOST_WORD}),? {_RANGE}\]?:"),
    regex(
        rf"^(?:\[[^\]]{{1,60}}\] ?){{0,3}}(?P<host>{HOST_WORD}),? {_RANGE}\]?"
        r"(?: (?:(?:are|is) )?(?:ready|up|started|launched|joined|alive|here|initiali[sz]ed))?\s*$"
    ),
    regex(rf"^\W{{0,4}}{_RANGE}\]? ?(?:[:=|]|->) ?(?P<host>{HOST_WORD})(?=\s|,|$)"),
    regex(rf"{_RANGE}\]?,? .{{0,40}}?\b{_PLACE}[ =:]{{1,2}}(?P<host>{HOST_WORD})(?![\w.-])"),
    regex(rf"\b{_PLACE}[ =:]{{1,2}}(?P<host>{HOST_WORD})[ ,:)].{{0,40}}?{_RANGE}"),
)
USUAL_RANKS = 8  # of one host: two hosts whose first ranks lie farther apart may have others between them
MOST_RANKS = 1_024  # of one host


@dataclass(frozen=True, slots=True)
class Roster:
    """The hosts that a job was given, in order, and how many ranks run on each, if that is told."""

    hosts: tuple[str, ...] = ()
    per_host: int | None = None


def gather_roster(scene: Scene) -> Roster:
    """The longest list of hosts in the logs: rows of a hostfile, mpirun's option or Slurm's node list."""
    longest: tuple[str, ...] = ()
    counts: set[int] = set()
    for reading in scene.readings:
        rows: dict[str, None] = {}
        for line in reading.lines:
            text = line.text[:5000]
            if (len(text) < 120 or "slots" in text[:200]) and (row := _SLOTS.match(text)):
                rows[row[1]] = None
                counts.add(int(row[2] or row[3]))
            elif text.startswith("Warning: Perm") and (known := _KNOWN_HOSTS.match(text)):
                rows[known[1]] = None
            elif ("NODELIST=" in text or "NodeList=" in text) and (found := _NODELIST.search(text)):
                longest = max(longest, expanded(found[1]), key=len)
            elif ("-H" in text or "-host" in text) and (found := _OPTION.search(text)):
                entries = [each.partition(":") for each in found[1].split(",")]
                longest = max(longest, tuple(dict.fromkeys(host for host, _, _ in entries)), key=len)
                counts |= {int(count) for _, _, count in entries if count.isdecimal() and len(count) < 4}
            if "node" in text or "_NODE" in text or "-ppn" in text:
                counts.update(int(count) for count in _PER_HOST.findall(text))
        longest = max(longest, tuple(rows), key=len)
    return Roster(longest, max(counts, default=None))


def expanded(nodelist: str) -> tuple[str, ...]:
    """The hosts of a list as Slurm writes it: `a[08-10,12],b3` → a08, a09, a10, a12, b3."""
    hosts: list[str] = []
    for base, numbers, rest in _GROUP.findall(nodelist):
        for part in numbers.split(",") if numbers else [""]:
            first, _, last = part.partition("-")
            if not last:
                hosts.append(base + first + rest)
                continue
            if not (first.isdigit() and last.isdigit()) or int(last) - int(first) + len(hosts) > MOST_HOSTS:
                continue
            hosts += [f"{base}{at:0{len(first)}d}{rest}" for at in range(int(first), int(last) + 1)]
    return tuple(dict.fromkeys(hosts[:MOST_HOSTS]))


_MAP_ENTRY = regex(r"'([\w.-]{1,100})': \[([\d, ]+)\]")


# Open MPI's `--display map`: a node, and below it the processes that run there.
_MAP_NODE = regex(r"^\s*Data for node: (?:Name: )?(?P<host>[\w.-]{1,100})\s")
_MAP_RANK = regex(r"^\s*Process (?:OMPI )?jobid: \S{1,40} App: \d{1,3} Process rank: (?P<rank>\d{1,6})\b")
# A row of a file of ranks that mpirun was given: `rank 5=cn-3 slot=1`.
_RANKFILE = regex(rf"^\s*rank\s+(?P<rank>\d{{1,6}})\s*=\s*(?P<host>{HOST_WORD})\s+slots?\s*=")
# Intel MPI's start-up: `[0] MPI startup(): 5   24421   cn-3   {0,1,2}` below the names of the columns.
_PINNED = regex(
    r"^\[\d{1,6}\] MPI startup\(\): (?P<rank>\d{1,6}) {1,12}\d{1,9} {1,12}(?P<host>[A-Za-z][\w.-]{1,100}) "
)


def _job_maps(lines: Iterable[Line]) -> Iterator[tuple[int, str]]:
    """Ranks and hosts of what MPI's launchers print of where they start processes."""
    host: str | None = None
    for line in lines:
        text = line.text[:400]
        if "Data for node: " in text and (node := _MAP_NODE.match(text)) is not None:
            host = node["host"]
        elif host is not None and "Process rank: " in text and (process := _MAP_RANK.match(text)) is not None:
            yield int(process["rank"]), host
        elif ("slot" in text and (row := _RANKFILE.match(text)) is not None) or (
            "MPI startup(): " in text and (row := _PINNED.match(text)) is not None
        ):
            yield int(row["rank"]), row["host"]


# What TensorFlow is given: `cluster_spec = {'worker': ['10.0.0.4:2222', …]}`, `"cluster": {"worker": […`.
_TF_CLUSTER = regex(
    r"\bcluster(?:_spec)?[\"']? ?[=:] ?\{[\"']worker[\"']: ?"
    r"\[((?:[\"'][\w.-]{1,100}:\d{1,5}[\"'],? ?){2,2000})\]"
)
_TASK = regex(r"([\w.-]{1,100}):(\d{1,5})")


def mapped_hosts(scene: Scene) -> dict[int, str]:
    """Rank to host from the maps of MPI's launchers, from DeepSpeed's
    `global_rank_mapping=defaultdict(<class 'list'>, {'node-a': [0, 1], …})`, and from TensorFlow's cluster.
    """
    found: dict[int, str] = {}
    for reading in scene.readings:
        found |= dict(_job_maps(reading.lines)) | dict(stated_worlds(reading.lines))
        for line in reading.lines:
            if (at := line.text.find("global_rank_mapping=")) >= 0:
                for host, ranks in _MAP_ENTRY.findall(line.text[at : at + 65_536]):
                    found |= {int(rank): host for rank in ranks.split(",") if rank.strip()}
            elif "cluster" in line.text[:400] and (given := _TF_CLUSTER.search(line.text[:65_536])):
                tasks = [host for host, _ in _TASK.findall(given[1])]
                found |= dict(enumerate(tasks)) if len(set(tasks)) > 1 else {}
    return found


# `rank 3 of 16 is up`, behind the label of the host that says so.
_COUNTED_IN = regex(r"\W{0,3}[Rr]ank[ =:]?(\d{1,6}) ?(?:of|/) ?\d{1,6}\b")


# `process 3 of 4`, `process_index=3/4`, as JAX counts the processes of a job, one on each machine.
COUNTED_PROCESS = regex(
    r"\b(?:[Rr]ank of (?:current|this) )?[Pp]rocess(?:[-_ ](?:index|id))?[ =:#]{1,2}(?P<rank>\d{1,6})"
    r"(?: ?(?:/|of) ?|[.,;] (?:[Ww]orld|[Gg]roup)[ _]size[ =:]{1,2})(?P<size>\d{1,6})\b"
)


def _counted_processes(told: Mapping[str, set[tuple[int, int]]]) -> Iterator[tuple[int, str]]:
    """Ranks of hosts each of which says but one number, another each, of one count."""
    numbers = [number for own in told.values() for number in own]
    sizes, ranks = {size for _, size in numbers}, {rank for rank, _ in numbers}
    if len(ranks) == len(numbers) == len(told) > 1 and len(sizes) == 1 and max(ranks) < max(sizes):
        yield from ((next(iter(own))[0], host) for host, own in told.items())


# DeepSpeed's launcher, one a node: `nnodes=3, num_local_procs=4, node_rank=2`.
_NODE_OF_MANY = regex(r"\bnnodes=\d{1,6}, num_local_procs=(?P<each>\d{1,3}), node_rank=(?P<node>\d{1,6})\b")


# A table of ranks with a column of their hosts.
_RANKS_AND_HOSTS = regex(
    r"(?i)^\W{0,8}(?:global[ _])?rank\s*[|,\t]\s*(?:host(?:[ _]?name)?|node(?:[ _]?name)?)\b"
)
_RANK_AND_HOST = regex(rf"^[\s|]{{0,12}}(?P<rank>\d{{1,6}})\s*[|,\t]\s*(?P<host>{HOST_WORD})(?=[\s|,]|$)")


_WHERE = ("on ", "@ ", "host", "node")


def _with_own_rank(line: Line) -> str:
    """The message, with the rank before it where that was read off as its writer's: `rank 17 on cn-3`."""
    message = line.message[:300]
    if line.rank is not None and message.startswith(_WHERE):
        return f"rank {line.rank} {message}"
    return message


# `ranks 8-15: …`, which are those of the host that the line is from or, in a table, of any.
RANGE_FIRST = regex(rf"^(?:[\w.]{{1,80}}:\d{{1,6}} )?(?:\[[^\]]{{1,60}}\] ?)?{_RANGE}\]? ?[:=|,]")


def _own_ranges(told: Mapping[str, set[tuple[int, int]]]) -> Iterator[tuple[int, str]]:
    """Ranks of hosts that each tell of one range, which no other tells of."""
    ranges = sorted((*each, host) for host, own in told.items() for each in own)
    if len(ranges) == len(told) > 1 and all(last < then for (_, last, _), (then, _, _) in pairwise(ranges)):
        yield from ((rank, host) for first, last, host in ranges for rank in range(first, last + 1))


_ADDRESS = regex(r"\b(?:0x[0-9a-f]+|(?=[a-f]*\d)[0-9a-f]{8,})\b")  # in memory; no host is called so


def _may_introduce(message: str) -> bool:
    # Asked of every line: one after the other these are found ten times as fast as by a pattern.
    return (
        "ank" in message or "RANK" in message or "proc" in message or "task" in message or "PROCID" in message
    )


def introductions(
    lines: Iterable[Line], silent: set[str] | None = None, *, behind_places: bool = False
) -> Iterator[tuple[int, str]]:
    """Ranks that lines say to run on a host, each with that host.

    Of lines that differ in numbers alone all are read only if the first one of them says so; `silent` are the
    others, without their numbers, which further files need not be asked for again. Where lines stand
    `behind_places`, labels with their hosts, those are read with them.
    """
    silent = set() if silent is None else silent
    in_table = False
    own_ranges: dict[str, set[tuple[int, int]]] = defaultdict(set)
    counted: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for line in lines:
        message = _with_own_rank(line)
        if behind_places and line.host is not None:
            message = f"{line.host} {message}"
        if in_table and (row := _RANK_AND_HOST.match(message)) is not None:
            if is_host(row["host"]):
                yield int(row["rank"]), row["host"]
            continue
        in_table = "ank" in message and _RANKS_AND_HOSTS.match(message) is not None
        if not _may_introduce(message):
            continue
        # mpirun gathers the output of all hosts in a file of its own host.
        by_host = line.host if "]<std" not in line.text[:40] else None
        if by_host and (own := _COUNTED_IN.match(message)) is not None:
            yield from list(_introduced(message)) or [(int(own[1]), by_host)]
            continue
        if line.host and (launcher := _NODE_OF_MANY.search(message)) is not None:
            first = int(launcher["node"]) * int(launcher["each"])
            yield from ((rank, line.host) for rank in range(first, first + int(launcher["each"])))
            continue
        if by_host and (own := RANGE_FIRST.match(message)) is not None:
            first, last = int(own["first"]), int(own["last"])
            if first < last < first + MOST_RANKS:
                own_ranges[by_host].add((first, last))
            continue
        if by_host and "rocess" in message and (own := COUNTED_PROCESS.search(message)) is not None:
            counted[by_host].add((int(own["rank"]), int(own["size"])))
        if (shape := without_digits(_ADDRESS.sub("", message))) in silent:
            continue
        found = list(_introduced(message))
        yield from found
        if not found:
            silent.add(shape)
    yield from _own_ranges(own_ranges)
    yield from _counted_processes(counted)


# Behind the rank and the host that a line introduces, the process: `rank 17 on cn-3, pid 90`.
_PROCESS = regex(r"\b(?:pid|PID)[ =:]{1,2}(\d{1,9})\b")


def introduced_processes(lines: Iterable[Line]) -> Iterator[tuple[str, int, int]]:
    """Host, process id and rank, of lines that introduce a rank and say all three."""
    for line in lines:
        if "pid" not in line.message and "PID" not in line.message:
            continue
        message = _with_own_rank(line)
        if _may_introduce(message) and (process := _PROCESS.search(message)):
            yield from ((host, int(process[1]), rank) for rank, host in _introduced(message))


# What a peer on that host says of a rank that it waits for, which may be anywhere.
_COMPLAINT = regex(
    r"\]?,? (?:\([^()]{1,60}\) )?(?:failed to (?:pass|join|reach|enter|arrive)|(?:has|have|did) not "
    r"|didn't |never |(?:is|seems) (?:missing|late|silent|unresponsive|stuck|behind))"
)


def _introduced(message: str) -> Iterator[tuple[int, str]]:
    of_range = STATES_RANGE.search(message) is not None  # the number before it is not that of a rank
    for pattern in () if of_range else _INTRODUCED:
        if (said := pattern.search(message)) and is_host(said["host"]):
            if _COMPLAINT.match(message, said.end("rank")) is None:
                yield int(said["rank"]), said["host"]
            return
    for pattern in _RANGES:
        if (said := pattern.search(message)) and is_host(said["host"]):
            first, last = int(said["first"]), int(said["last"])
            if first < last < first + MOST_RANKS:
                yield from ((rank, said["host"]) for rank in range(first, last + 1))
            return


_NO_HOST = regex(
    r"(?i)^(?:rank|r|worker|w|gpu|npu|cuda|xpu|device|dev|core|actor|replica|group|epoch|iteration|default"
    r"|fp|bf|tf|nf|u?int|float"
    r"|localhost|fairseq|espnet|detectron|python|torch|llama|qwen|gpt|dinov|speechbrain|mmengine)"
    r"[-_.:]?\d*$|^container_[\d_]+$|\.(?:py|cpp|cc|cu|h|sh|json|yaml|txt|log|out|err|pt|bin)$"
)


def is_host(word: str) -> bool:
    """Whether a word with a number in it can name a machine, and counts nothing else."""
    return not _NO_HOST.search(word) and not OTHER_WORD.search(re.sub(r"[-_.]?\d+$", "", word))


def _between(known: Mapping[str, Sequence[int]]) -> dict[int, str]:
    """Hosts of ranks that stand between others of one host, where no host's ranks reach into another's."""
    blocks = sorted((ranks[0], ranks[-1], host) for host, ranks in known.items())
    if len(blocks) < 2 or any(last - first >= MOST_RANKS for first, last, _ in blocks):
        return {}
    if any(first[1] >= then[0] for first, then in pairwise(blocks)):
        return {}
    return {rank: host for first, last, host in blocks for rank in range(first, last + 1)}


def in_blocks(
    host_of_rank: Mapping[int, str], roster: Roster, world: int | None, most: int
) -> dict[int, str]:
    """Hosts of all ranks where each host runs as many in turn, as launchers lay them out by default.

    Nothing where a known rank says otherwise. Without a list, the hosts are those that are known, if half of
    each one's share or the first rank of every share is. `world` is the number of ranks as far as it is told,
    `most` the largest rank seen.
    """
    known: dict[str, list[int]] = defaultdict(list)
    for rank, host in sorted(host_of_rank.items()):
        known[host].append(rank)
    if world is None and (between := _between(known)):
        return between
    listed = set(known) <= set(roster.hosts) and len(roster.hosts) > 1
    hosts = list(roster.hosts if listed else known)
    if world is None and listed and roster.per_host and most < roster.per_host * len(hosts):
        world = roster.per_host * len(hosts)
    if world is None and listed and not (most + 1) % len(hosts):
        world = most + 1
    if world is None or most >= world or len(hosts) < 2 or world % len(hosts) or world == len(hosts):
        return {}
    size = world // len(hosts)
    if any(hosts[min(rank // size, len(hosts) - 1)] != host for rank, host in host_of_rank.items()):
        return {}
    begins = size <= USUAL_RANKS and all(
        ranks[0] == at * size for at, ranks in enumerate(sorted(known.values()))
    )
    if not listed and not begins and any((ranks[-1] - ranks[0]) * 2 < size for ranks in known.values()):
        return {}
    return {rank: hosts[rank // size] for rank in range(world)}
