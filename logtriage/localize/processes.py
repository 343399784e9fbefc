"""Ranks of process ids, by what launchers and NCCL say of the processes of one host, or of the job."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from logtriage.localize.scene import Scene
from logtriage.model import JOB_ROLES
from logtriage.regex import regex

Process = tuple[str | None, int]  # host and process id

_SPAWNED = regex(r"process (\d{1,9}) spawned with command: .*'--local_rank=(\d{1,4})'")
_ENDED = regex(r"sigkill_handler\] Killing subprocess (\d{1,9})\b")
# `gpu-4:90:91 [2] `, with which NCCL begins what it says, behind whatever a launcher put before it.
OF_NCCL = regex(
    r"(?:^|[\s>)\]])(?P<host>[A-Za-z][\w.-]{1,80}):(?P<pid>\d{1,9}):\d{1,9} \[(?P<device>\d{1,3})\] "
)


def local_ranks(scene: Scene, sizes: Mapping[str, int]) -> dict[Process, int]:
    """Local rank by host and process id; `sizes` tells how many ranks a host has, as far as it is known.

    DeepSpeed's launcher spawns its processes in turn, and ends all of them in the same order; the command
    behind which it prints a return code is that of the process it spawned last, whoever failed. NCCL prints
    host, process and CUDA device, which is the local rank where no two processes of a host have the same one.
    """
    spawned: dict[Process, int] = {}
    ended: dict[tuple[str, str | None], list[int]] = defaultdict(list)
    devices: dict[str, dict[int, int]] = defaultdict(dict)
    for reading in scene.readings:
        for line in reading.lines:
            if " NCCL " in line.text and (told := OF_NCCL.search(line.text[:300])):
                devices[told["host"]].setdefault(int(told["pid"]), int(told["device"]))
            elif "sigkill_handler] Killing" in line.text and (told := _ENDED.search(line.text[:400])):
                ended[line.file, line.host].append(int(told[1]))
            elif "spawned with command" in line.text and (told := _SPAWNED.search(line.text[:4000])):
                spawned[line.host, int(told[1])] = int(told[2])
    found = dict(spawned)
    for host, device_of in devices.items():
        if len(device_of) == len(set(device_of.values())) > 1:
            for pid, device in device_of.items():
                found.setdefault((host, pid), device)
    for (_, where), pids in ended.items():
        in_turn = list(dict.fromkeys(pids))
        if len(in_turn) >= sizes.get(where or "", 0):  # else some are missing, nobody knows at which places
            for place, pid in enumerate(in_turn):
                found.setdefault((where, pid), place)
    return found


def node_processes(scene: Scene, host_of_rank: Mapping[int, str], *, on_one_host: bool) -> dict[Process, int]:
    """Rank by host and process, by local ranks, of hosts all of whose ranks are known; else by devices.

    Where all runs `on_one_host`, local ranks are the job's.
    """
    places = local_ranks(scene, Counter(host_of_rank.values()))
    counts: dict[str | None, int] = defaultdict(int)
    for (where, _), local in places.items():
        counts[where] = max(counts[where], local + 1)
    ranks_of: dict[str | None, list[int]] = defaultdict(list)
    for rank, host in sorted(host_of_rank.items()):
        ranks_of[host].append(rank)
    found: dict[Process, int] = {}
    for (where, pid), local in places.items():
        if len(ranks_of[where]) >= counts[where]:
            found[where, pid] = ranks_of[where][local]
        elif on_one_host:
            found[where, pid] = local
    return {**device_ranks(scene, host_of_rank), **found}


NODE_SIZES = (2, 4, 8, 16)  # ranks of one node


def device_ranks(scene: Scene, host_of_rank: Mapping[int, str]) -> dict[Process, int]:
    """Rank by host and process, of those of which NCCL prints the CUDA device on a host whose ranks are known
    in part: device 6 is that of rank 22 where each of several hosts has eight ranks in turn.
    """
    if len(set(host_of_rank.values())) < 2:
        return {}
    by_device: dict[tuple[str, int], set[int]] = defaultdict(set)
    for size in NODE_SIZES:
        if _are_in_turn(host_of_rank, size):
            for rank, host in host_of_rank.items():
                by_device[host, rank % size].add(rank)
    found: dict[Process, int] = {}
    for reading in scene.readings:
        for line in reading.lines:
            if " NCCL " not in line.text or (told := OF_NCCL.search(line.text[:300])) is None:
                continue
            ranks = by_device.get((told["host"], int(told["device"])), set())
            if len(ranks) == 1:
                found.setdefault((told["host"], int(told["pid"])), *ranks)
    return found if len(set(found.values())) == len(found) else {}


def _are_in_turn(host_of_rank: Mapping[int, str], size: int) -> bool:
    """Whether hosts can have so many ranks each: no two share one's, and none has ranks of two."""
    blocks = {(host, rank // size) for rank, host in host_of_rank.items()}
    return len(blocks) == len({host for host, _ in blocks}) == len({block for _, block in blocks})


OF_COMMUNICATOR = regex(r"\brank (\d{1,6}) nranks (\d{1,6})\b")


def communicating_processes(scene: Scene) -> dict[Process, int]:
    """Rank by host and process where a label names the process alone: NCCL says its rank behind it.

    Of the largest communicator, whose ranks are the job's; empty where one process is of several ranks. Of a
    process whose rank was not read, its CUDA device tells, where those of its host follow their devices.
    """
    told: dict[Process, dict[int, int]] = defaultdict(dict)
    known: dict[Process, int] = {}  # where lines bear their rank already
    devices: dict[Process, int] = {}
    for reading in scene.readings:
        if reading.source.role not in JOB_ROLES:
            continue
        of_file = reading.source.rank  # worker-3.log counts nodes where its lines bear several ranks
        if of_file is not None and all(line.rank == of_file for line in reading.lines):
            continue
        for line in reading.lines:
            if line.pid is None or " NCCL " not in line.text:
                continue
            process = line.host, line.pid
            if line.rank is not None and line.rank != of_file:
                known[process] = line.rank
            elif " nranks " in line.text and (found := OF_COMMUNICATOR.search(line.text[:1000])) is not None:
                told[process][int(found[2])] = int(found[1])
            if process not in devices and (own := OF_NCCL.search(line.text[:300])) is not None:
                devices[process] = int(own["device"])
    world = max((size for sizes in told.values() for size in sizes), default=0)
    ranks = {process: sizes[world] for process, sizes in told.items() if world in sizes}
    if len(set(ranks.values())) < len(ranks):
        return {}
    ranks |= _by_devices({**known, **ranks}, devices)
    return ranks if len(ranks) > 1 and len(set(ranks.values())) == len(ranks) else {}


def _by_devices(ranks: Mapping[Process, int], devices: Mapping[Process, int]) -> dict[Process, int]:
    """Ranks of the other processes of hosts whose known ones lie a constant number above their devices."""
    first: dict[str | None, set[int]] = defaultdict(set)
    for process in ranks.keys() & devices.keys():
        first[process[0]].add(ranks[process] - devices[process])
    return {
        process: min(first[process[0]]) + device
        for process, device in devices.items()
        if process not in ranks and len(first[process[0]]) == 1
    }


_ON_BUS = regex(r"\brank (\d{1,6}) nranks (\d{1,6}) .{0,80}?busId ([0-9a-f]{1,9})\b")


def gpu_ranks(scene: Scene) -> dict[tuple[str, str], int]:
    """Rank by host and GPU (`3b:00`), of the largest communicator: its ranks are the job's.

    NCCL prints a bus id as domain, bus, device and function in one hexadecimal number.
    """
    largest: dict[tuple[str, str], tuple[int, int]] = {}
    for reading in scene.readings:
        for line in reading.lines:
            if line.host is None or "busId" not in line.text:
                continue
            if not (found := _ON_BUS.search(line.text[:1000])):
                continue
            number, size = int(found[3], 16), int(found[2])
            place = (line.host, f"{number >> 12 & 0xFF:02x}:{number >> 4 & 0xFF:02x}")
            if size > largest.get(place, (0, 0))[0]:
                largest[place] = (size, int(found[1]))
    world = max((size for size, _ in largest.values()), default=0)
    return {place: rank for place, (size, rank) in largest.items() if size == world}
