"""Ranks by the names of machines that count them: numbered pods, replicas, hosts with one process each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from logtriage.localize.scene import Scene
from logtriage.regex import regex

_POD_NUMBER = regex(r"^(?!ip-\d)(?P<base>.+?)-(?P<role>worker|w|replica|trainer|node)?-?(?P<number>\d{1,5})$")


SPARSE = 8  # of so many pods one at least has left its log, where their numbers are ranks


def pod_ranks(hosts: set[str], host_of_rank: dict[int, str], masters: set[str]) -> dict[str, int]:
    """Ranks of numbered pods, one rank a pod: the pod's index, or one more where a master is rank 0.

    Kubeflow's PyTorchJob counts its workers from 0 beside a master; StatefulSets and Indexed Jobs count
    all pods. `masters` are named as the place where all meet. Nothing where the lines themselves told which
    rank runs on which of these hosts.
    """
    if set(host_of_rank.values()) & hosts and len(host_of_rank) > len(hosts):
        return {}
    pods = {host: found for host in hosts if (found := _POD_NUMBER.match(host)) is not None}
    rows: dict[tuple[str, str | None], dict[int, str]] = defaultdict(dict)
    for host, found in pods.items():
        if str(int(found["number"])) == found["number"]:  # Kubernetes counts without leading zeros
            rows[found["base"], found["role"]][int(found["number"])] = host
    ranks: dict[str, int] = {}
    for (base, role), row in rows.items():
        has_master = f"{base}-master-0" in hosts | masters
        if base.endswith(("-master", "-chief", "-launcher")) or len(row) + has_master < 2:
            continue
        if role in (None, "node") and (max(row) >= SPARSE * len(row) or min(row) > 1):
            continue  # numbers of racks, addresses or an inventory: they count no ranks
        beside_master = role is not None and has_master and 0 in row
        ranks.update({host: number + beside_master for number, host in row.items()})
    return ranks


def ranks_alone(host_of_rank: dict[int, str], hosts: Collection[str], world: int | None) -> dict[str, int]:
    """Ranks by host where each of several hosts runs one process, as far as all of them are known."""
    count = len(host_of_rank)
    complete = set(host_of_rank) == set(range(count)) and set(host_of_rank.values()) == set(hosts)
    if count < 2 or len(hosts) != count or not complete or (world or count) != count:
        return {}
    return {host: rank for rank, host in host_of_rank.items()}


def as_said(rank_of_pod: dict[str, int], host_of_rank: dict[int, str]) -> dict[str, int]:
    """What a pod's own lines say of its rank counts more than its name."""
    said = {host: rank for rank, host in host_of_rank.items()}
    return {pod: said.get(pod, rank) for pod, rank in rank_of_pod.items()}


_REPLICA = regex(r"\bworkerpool([01])-(\d{1,4})\b")


def replica_ranks(scene: Scene, ranks: set[int]) -> dict[str, int]:
    """Ranks of Vertex AI's replicas, one rank a replica: pool 0 is the one chief, pool 1 the workers."""
    found: dict[str, int] = {}
    for reading in scene.readings:
        for line in reading.lines:
            if "workerpool" in line.text:
                for name in _REPLICA.finditer(line.text[:4000]):
                    found[name[0]] = int(name[1]) + int(name[2])
    return found if len(found) > 1 and max(ranks, default=0) <= max(found.values()) else {}
