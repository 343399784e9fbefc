"""Which rank ran where: gathered from file names, line prefixes and launchers' reports."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from logtriage.localize.aliases import NO_HOSTS, other_names
from logtriage.localize.containers import Containers, placed_containers
from logtriage.localize.exits import Exit
from logtriage.localize.file_hosts import labelled_hosts, machine_files
from logtriage.localize.file_ranks import ranks_of_files
from logtriage.localize.headings import Headings, headings
from logtriage.localize.host_tables import hosts_of_tasks, tabled_hosts
from logtriage.localize.meeting_hosts import meeting_hosts, meeting_rows
from logtriage.localize.node_offsets import NodeOffsets, node_offsets
from logtriage.localize.numbered_writers import numbered_writers
from logtriage.localize.pods import gather_pods
from logtriage.localize.processes import OF_NCCL, communicating_processes, gpu_ranks, node_processes
from logtriage.localize.replicas import as_said, pod_ranks, ranks_alone, replica_ranks
from logtriage.localize.rosters import (
    STATES_RANGE,
    USUAL_RANKS,
    gather_roster,
    in_blocks,
    introduced_processes,
    introductions,
    mapped_hosts,
)
from logtriage.localize.scene import Scene
from logtriage.localize.shard_files import shard_hosts
from logtriage.localize.stated_worlds import files_of_nodes
from logtriage.localize.writer_labels import LABEL_WIDTH, HostLabels, host_labels, said_ranks, writer_label
from logtriage.model import JOB_ROLES, Line, SourceRole
from logtriage.regex import regex

# A rank that introduces itself: `host ml-a python 3.9`, `running on gpu-17`.
_SAYS_HOST = regex(
    r"(?i)\b(?:host(?:name)?|node(?: ?name)?|on agent|running on|started on|launched on"
    r"|rank \d{1,6} (?:of|/) ?\d{1,6},? on)[ =:]{1,2}"
    r"(?P<host>(?=[\w.-]*[-\d])[a-z][\w-]*(?:\.[\w-]+)*)\b"
)

# `NCCL INFO Bootstrap : Using eth0:10.30.0.61<0>` and `NET/Socket : Using [0]eth0:10.30.0.61<0>`.
_OWN_ADDRESS = regex(r"Using (?:\[\d+\])?[\w.-]+:((?:\d{1,3}\.){3}\d{1,3}|[0-9a-f:]{6,39})<\d+>")

_BEGINS_WITH_HOST = regex(r"([A-Za-z][\w.-]{1,62}): (?=\S)")


@dataclass(frozen=True, slots=True)
class Topology:
    """Ranks and hosts of a job as far as its logs tell."""

    host_of_rank: dict[int, str]
    rank_of_file: dict[str, int]
    host_of_file: dict[str, str]
    rank_of_pid: dict[tuple[str | None, int], int]
    ranks: frozenset[int]
    hosts: tuple[str, ...]
    world_size: int | None
    host_of_address: dict[str, str]
    number_of_file: dict[str, int]  # numbers in file names that the lines themselves belie
    rank_of_pod: dict[str, int]
    rank_alone: dict[str, int]  # by host, where each runs one process
    has_tasks: bool  # srun reported the ends of tasks by number
    label_of_file: dict[str, re.Pattern[str]]  # how lines begin that `[w-3]` and the like label
    host_labels_of_file: dict[str, HostLabels]
    headings_of_file: dict[str, Headings]
    host_named: dict[str, str]  # other names of hosts: of files, of pods' nodes
    node_of_pod: dict[str, str]
    rank_of_gpu: dict[tuple[str, str], int]  # by host and PCI bus:device, as NCCL tells
    rank_of_process: dict[tuple[str | None, int], int]  # as it tells where labels name processes, not ranks
    containers: Containers
    offsets: NodeOffsets

    @property
    def size(self) -> int:
        """How many ranks the job has at least: a rank 8 implies the ranks 0 to 7."""
        return max(self.world_size or 0, len(self.ranks), max(self.ranks, default=-1) + 1)

    def only_host_in(self, text: str) -> str | None:
        """The one host of the job that a text names, if it names but one."""
        words = set(re.findall(r"[A-Za-z][\w.-]{1,100}\w", text[:2000]))
        named = words & {*self.hosts, *self.host_named}
        return named.pop() if len(named) == 1 else None

    def rank(self, line: Line, named: int | None = None) -> int | None:
        """The global rank that wrote a line; `named` is what the message says of its writer."""
        if line.file in self.rank_of_file:
            return self.rank_of_file[line.file]
        if (rank := self.offsets.rank(line, self.host_of_file.get(line.file))) is not None:
            return rank
        if line.rank is not None and line.rank != self.number_of_file.get(line.file):
            return line.rank
        if (tagged := mpi_rank(line)) is not None:
            return tagged
        if self.has_tasks and (task := _TASK_LABEL.match(line.text[:16])) is not None:
            number = int(task[1])
            return number if number in self.ranks else named
        if (rank := self.host_labels_of_file[line.file].rank(line)) is not None:
            return rank
        if named is not None and named == self.number_of_file.get(line.file):
            named = None
        if line.file in self.label_of_file and (
            label := self.label_of_file[line.file].match(line.text[:LABEL_WIDTH])
        ):
            return int(label[1])
        if named is None and line.pid is not None:
            return self.rank_of_process.get((line.host, line.pid))
        return named

    @property
    def is_spread(self) -> bool:
        """Whether the job runs on several machines: of one alone all ranks that are known run there."""
        elsewhere = self.size > max(USUAL_RANKS, len(self.host_of_rank))
        return len(self.hosts) > 1 or (bool(self.hosts) and elsewhere)

    def machine(self, host: str | None) -> str | None:
        """The machine under a pod, or the host itself."""
        return None if host is None else self.node_of_pod.get(host, host)

    def host(self, line: Line, rank: int | None = None) -> str | None:
        found = self._host(line, rank)
        return None if found is None else self.host_named.get(found, found)

    def _host(self, line: Line, rank: int | None) -> str | None:
        if rank is not None and rank in self.host_of_rank and mpi_rank(line) is not None:
            return self.host_of_rank[rank]  # mpirun gathers the output of all hosts in one file
        if line.host is None and (said := _NCCL_HOST.search(line.text[:160])) is not None:
            return said[1]
        if line.host:
            return self.host_of_address.get(line.host, line.host)
        if labelled := self.host_labels_of_file[line.file].host(line):
            return labelled
        if line.file in self.host_of_file:
            return self.host_of_file[line.file]
        if (under := self.containers.host(line)) is not None:
            return under
        if line.file in self.headings_of_file and (above := self.headings_of_file[line.file].host(line)):
            return above
        if rank is not None and rank in self.host_of_rank:
            return self.host_of_rank[rank]
        # What one host of the job wrote among lines that no label names: `cn-3: …`.
        begun = _BEGINS_WITH_HOST.match(line.message[:80]) if ": " in line.message[:80] else None
        return begun[1] if begun is not None and begun[1] in self.hosts else None

    def global_rank(self, host: str | None, local_rank: int) -> int | None:
        """The rank of a host's n-th process, where the ranks of that host are known without gaps."""
        if host is None:
            return local_rank if len(self.hosts) <= 1 else None
        ranks = sorted(rank for rank, where in self.host_of_rank.items() if where == host)
        if len(ranks) > local_rank and ranks[-1] - ranks[0] == len(ranks) - 1:
            return ranks[local_rank]
        return None

    def hosts_of(self, ranks: Iterable[int]) -> list[str]:
        known = (self.host_of_rank[rank] for rank in sorted(ranks) if rank in self.host_of_rank)
        return list(dict.fromkeys(known))


def gather_topology(scene: Scene, exits: Sequence[Exit]) -> Topology:
    """Join what sources, lines and exits say; where they conflict, the majority wins."""
    sizes = (sign.hit.capture("world_size") for sign in scene.context)
    world = max((int(size) for size in sizes if size and size.isdigit()), default=None)
    labels = {
        reading.source.file: form
        for reading in scene.readings
        if reading.source.role is SourceRole.MERGED and (form := writer_label(reading.lines)) is not None
    }
    labels = {**numbered_writers(scene.readings), **labels}
    by_label = {
        each.source.file: host_labels(each.lines, world)
        if each.source.role in (*JOB_ROLES, SourceRole.HARDWARE)
        else HostLabels()
        for each in scene.readings
    }
    pods, containers = gather_pods(scene.readings), placed_containers(scene.readings)
    aliases, file_labels = other_names(scene, exits, pods), labelled_hosts(scene)
    file_labels = {**machine_files(scene), **file_labels}
    roster = gather_roster(scene)
    votes: dict[int, Counter[str]] = defaultdict(Counter)
    ranks: set[int] = set()
    hosts: Counter[str] = Counter()
    pids: dict[tuple[str | None, int], int] = {}
    introduced: Counter[int] = Counter()
    named_hosts: set[str] = pods.names
    named_hosts.update(roster.hosts)
    belied: dict[str, int] = {}
    ended_on: dict[str, set[int]] = defaultdict(set)
    for exit_ in exits:
        if exit_.host is not None and exit_.rank is not None:
            ended_on[exit_.host].add(exit_.rank)
    silent: set[str] = set()
    rank_of_file = ranks_of_files(scene, exits)
    offsets = node_offsets(scene, exits)
    of_nodes, stated = files_of_nodes(scene.readings, rank_of_file)
    file_labels, world = of_nodes | file_labels, max(world or 0, stated if of_nodes else 0) or None
    for reading in scene.readings:
        source = reading.source
        if source.role in (*JOB_ROLES, SourceRole.ENVIRONMENT):
            for at, process, introduced_rank in introduced_processes(reading.lines):
                pids.setdefault((at, process), introduced_rank)
        if source.role is SourceRole.ENVIRONMENT:
            for introduced_rank, host in introductions(reading.lines, silent):
                votes[introduced_rank][host] += 1
        if source.role in (SourceRole.ENVIRONMENT, SourceRole.METRICS):
            continue
        whole_file = rank_of_file.get(source.file, source.rank)
        named_after = ended_on.get(source.file.rsplit("/", 1)[-1].rsplit(".", 1)[0])
        if whole_file is not None and (
            source.file in of_nodes
            or (named_after is not None and whole_file not in named_after)
            or any(line.rank is not None and line.rank != whole_file for line in reading.lines)
        ):
            # std_log_process_1.txt with lines of [rank12]: the number counts nodes, not ranks. And that of
            # rack-3-node-71.log is part of the name of a host on which other ranks ran.
            belied[source.file], whole_file = whole_file, None
        if whole_file is not None:
            ranks.add(whole_file)
            if source.host:
                votes[whole_file][source.host] += 5
        if source.host:
            hosts[source.host] += 1
        if source.role not in JOB_ROLES:
            continue
        writers = {line.host for line in reading.lines if line.host}
        named_hosts.update(writers)
        if reading.layout.columns.tells_places:
            hosts.update(writers)
        if said_by := said_ranks(reading.lines):
            pids |= said_by
            ranks.update(said_by.values())
        behind_places = reading.layout.columns.places is not None
        for introduced_rank, host in set(introductions(reading.lines, silent, behind_places=behind_places)):
            ranks.add(introduced_rank)
            votes[introduced_rank][host] += 1
        for line in reading.lines:
            if "world_rank=" in line.text and (worker := _RAY_WORKER.search(line.text[:1000])) is not None:
                ranks.add(int(worker[3]))
                pids.setdefault((worker[1], int(worker[2])), int(worker[3]))
                votes[int(worker[3])][worker[1]] += 3
            rank = whole_file if whole_file is not None else offsets.rank(line, source.host)
            rank = rank if rank is not None else line.rank
            if rank is not None and rank == belied.get(source.file):
                rank = None
            if rank is None and (tagged := mpi_rank(line)) is not None:
                rank = tagged
            label = labels.get(source.file) if rank is None else None
            if label is not None and (tag := label.match(line.text[:LABEL_WIDTH])) is not None:
                ranks.add(told_rank := int(tag[1]))
                if " NCCL " in line.text[:300] and (told := OF_NCCL.search(line.text[:300])) is not None:
                    votes[told_rank][told["host"]] += 2
                elif (there := source.host or file_labels.get(source.file)) and not votes[told_rank]:
                    votes[told_rank][there] += 1
            if rank is None and (rank := by_label[source.file].rank(line)) is None:
                continue
            ranks.add(rank)
            # mpirun gathers the output of all hosts in a file of its own host
            gathered = line.host == source.host and mpi_rank(line) is not None
            labelled = line.host or by_label[source.file].host(line) or file_labels.get(source.file)
            labelled = labelled or containers.host(line)
            if labelled and not gathered:
                votes[rank][labelled] += 1
            elif introduced[rank] < 40:
                introduced[rank] += 1
                said = _SAYS_HOST.search(line.message[:200])
                if said is not None and not STATES_RANGE.search(line.message[:300]):
                    votes[rank][said["host"]] += 1
            if line.pid is not None:
                pids.setdefault((line.host or source.host, line.pid), rank)
    tabled = {**hosts_of_tasks(scene, world), **tabled_hosts(scene, set(rank_of_file.values()))}
    for rank, host in tabled.items():
        votes[rank][host] += 5
    for exit_ in exits:
        if exit_.rank is None:
            continue
        ranks.add(exit_.rank)
        if exit_.host:
            votes[exit_.rank][exit_.host] += 3
        if exit_.pid is not None:
            pids.setdefault((exit_.host, exit_.pid), exit_.rank)
    for host, of_node in offsets.ranks_of_host.items():
        ranks.update(of_node)
        for rank in of_node:
            votes[rank][host] += 2
    communicating = communicating_processes(scene)
    for (host_said, _), rank in communicating.items():
        ranks.add(rank)
        if host_said is not None:
            votes[rank][host_said] += 1
    pids = {**communicating, **pids}
    mapped = mapped_hosts(scene) or shard_hosts(scene)
    for rank, host in mapped.items():
        ranks.add(rank)
        votes[rank][host] += 5
    for count in votes.values():
        for host in [each for each in count if each in aliases]:
            count[aliases[host]] += count.pop(host)
    host_of_rank = {rank: count.most_common(1)[0][0] for rank, count in votes.items()}
    host_of_rank |= in_blocks(host_of_rank, roster, world, max(ranks, default=0))
    hosts.update(host_of_rank.values())
    for found in by_label.values():
        hosts.update(found.hosts.values())
    hosts = Counter(aliases.get(host, host) for host in hosts)
    on_one_host = len(hosts) < 2 and not mapped
    pids = {**node_processes(scene, host_of_rank, on_one_host=on_one_host), **pids}
    for exit_ in exits if on_one_host else ():  # where local ranks are the job's
        if exit_.rank is None and exit_.local_rank is not None and exit_.pid is not None:
            pids.setdefault((exit_.host, exit_.pid), exit_.local_rank)
    host_of_file = {
        source.file: aliases.get(source.host, source.host)
        for source in scene.sources
        if source.host and source.host not in NO_HOSTS
    }
    for file, host in file_labels.items():
        host_of_file.setdefault(file, host)
        hosts[host] += 1
    launched = {each.host for each in exits if each.host}
    for file, host in host_of_file.items():  # ft_tg09.out of a host that its launcher calls tg09
        if host not in launched and len(ends := {each for each in launched if host.endswith(each)}) == 1:
            host_of_file[file] = ends.pop()
    pod_rows = {re.sub(r"\d+$", "", pod) for pod in pods.names if re.search(r"-\d+$", pod)}
    meeting = meeting_hosts(scene)
    pod_rows |= meeting_rows(scene, meeting)
    for source in scene.sources:  # a file named after a host that other lines know
        if source.file not in host_of_file and source.role in JOB_ROLES:
            words = set(re.split(r"[/._]", source.file)) | {source.file.rsplit("/", 1)[-1].rsplit(".", 1)[0]}
            siblings = {each for each in words if re.sub(r"\d+$", "", each) in pod_rows}
            if len(named := words & (set(hosts) | named_hosts) or siblings) == 1:
                host_of_file[source.file] = named.pop()
                of_node = offsets.ranks_of_file.get(source.file, ())
                if host_of_rank.keys().isdisjoint(of_node):
                    host_of_rank |= dict.fromkeys(of_node, host_of_file[source.file])
                    hosts.update(host_of_file[source.file] for _ in of_node)
                    ranks.update(of_node)
    by_pod = pod_ranks(set(host_of_file.values()) - {*of_nodes.values()}, host_of_rank, meeting)
    if not host_of_rank and max(ranks, default=0) < len(by_pod) == (world or len(by_pod)):
        host_of_rank = {rank: pod for pod, rank in by_pod.items()}
        hosts.update(by_pod)
        of_pods = {each.file: host_of_file.get(each.file) for each in scene.sources if each.role in JOB_ROLES}
        rank_of_file |= {file: by_pod[pod] for file, pod in of_pods.items() if pod in by_pod}
    addresses: dict[str, str] = {}
    for reading in scene.readings:
        for line in reading.lines:
            writer = line.host or reading.source.host
            if writer and "NCCL INFO" in line.text and (match := _OWN_ADDRESS.search(line.text[:1024])):
                addresses.setdefault(match[1], writer)
    if world is not None and ranks and max(ranks) >= world:
        world = max(ranks) + 1
    return Topology(
        host_of_rank=host_of_rank,
        rank_of_file=rank_of_file,
        host_of_file=host_of_file,
        rank_of_pid=pids
        | {(aliases[host], pid): rank for (host, pid), rank in pids.items() if host in aliases},
        ranks=frozenset(ranks),
        hosts=tuple(sorted(hosts)),
        world_size=world,
        host_of_address=addresses,
        has_tasks=any("srun: error:" in each.line.text and each.rank is not None for each in exits),
        label_of_file=labels,
        host_labels_of_file=by_label,
        headings_of_file={
            each.source.file: headings(each.lines, hosts, of_job=each.source.role in JOB_ROLES)
            for each in scene.readings
            if each.source.file not in host_of_file
        },
        number_of_file=belied,
        rank_of_pod=as_said(by_pod, host_of_rank) | replica_ranks(scene, ranks),
        rank_alone=ranks_alone(host_of_rank, hosts, world),
        host_named=aliases,
        node_of_pod=pods.node_of_row | pods.node_of_pod,
        rank_of_gpu=gpu_ranks(scene),
        rank_of_process=communicating,
        containers=containers,
        offsets=offsets,
    )


# Ray Train introduces its workers: `- (node_id=…, ip=10.0.0.7, pid=905) world_rank=5, local_rank=1, …`.
_RAY_WORKER = regex(r"\bip=([\w.:-]{1,60}), pid=(\d{1,9})\) world_rank=(\d{1,6})\b")
_MPI_TAG = regex(r"\[\d{1,6},(\d{1,6})\]<std(?:out|err)>:")


def mpi_rank(line: Line) -> int | None:
    """The rank that `mpirun --tag-output` puts before a line: `[1,7]<stderr>:`."""
    tag = _MPI_TAG.search(line.text[:80]) if "]<std" in line.text[:80] else None
    return None if tag is None else int(tag[1])


_TASK_LABEL = regex(r" {0,5}(\d{1,5}): \S")
_NCCL_HOST = regex(r"(?:>:|^)\s*([a-zA-Z][\w.-]{1,80}):\d{1,8}:\d{1,8} \[\d{1,3}\] ")
