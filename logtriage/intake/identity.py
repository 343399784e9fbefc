"""Which rank, host, attempt and stream each log of a job belongs to, as far as the paths tell."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from logtriage.intake.names import (
    BARE_NUMBER,
    INDEXED_POD,
    LOG_WORD,
    NODE_RANK,
    OF_KUBECTL,
    OTHER_WORD,
    PACKED,
    POD,
    SLURM_TASK,
    Identity,
    host_number,
    identify,
)
from logtriage.regex import regex

__all__ = ["Identity", "identify", "identify_all"]


def identify_all(files: Iterable[str]) -> dict[str, Identity]:
    """What the paths of a job's logs tell, each read beside the others.

    Names that differ in one number show what the number counts; machines that hold the same local ranks
    give global ones where the order of the machines is plain.
    """
    names = list(dict.fromkeys(files))
    known = {file: identify(file) for file in names}
    _bare_rotation(known)
    _first_of_ranks(known)
    _sibling_machines(known)
    _gpu_files(known)
    _node_ranks(known)
    _global_ranks(known)
    _paired_streams(known)
    _ordered_parts(known)
    return known


def _folder(file: str) -> str:
    return file.rpartition("/")[0]


def _bare_rotation(known: dict[str, Identity]) -> None:
    """`log.1` is a part of `log` where that lies beside it, else the output of rank 1."""
    for file, one in known.items():
        name = file.rsplit("/", 1)[-1]
        if (found := BARE_NUMBER.match(PACKED.sub("", name))) and one.rank is not None:
            whole = file[: len(file) - len(name)] + found[0].rpartition(".")[0]
            if whole in known:
                known[file] = replace(one, rank=None, family=whole, part=-int(found["number"]))


_RANK_END = regex(r"^(?P<base>.{1,200})\.rank[-_]?(?P<rank>\d{1,6})$")


def _first_of_ranks(known: dict[str, Identity]) -> None:
    """`log.txt` is rank 0's where only the others' have their number added: `log.txt.rank1` and so on."""
    ranks: dict[str, set[int]] = {}
    for file in known:
        if (ended := _RANK_END.match(PACKED.sub("", file))) is not None:
            ranks.setdefault(ended["base"], set()).add(int(ended["rank"]))
    for file, numbers in ranks.items():
        one = known.get(file)
        if one is not None and one.rank is None and one.host is None and min(numbers) == 1:
            known[file] = replace(one, rank=0)


_COUNTED = regex(r"^(?P<base>[A-Za-z](?:[\w.-]*?[A-Za-z_.-])?)(?P<count>\d{1,6}|(?<=-)[a-z])$")


_KIND = regex(r"[-_](?:host|node|machine|server|box)$")  # behind what counts it: `tr-a-host`

# A job runs on machines of one kind or two; a folder of many numbered kinds is a collection.
_MOST_KINDS = 3


def _sibling_machines(known: dict[str, Identity]) -> None:
    """Machines that only their like beside them give away: n121 and n122, dsw-0 to dsw-3, mds-a and mds-b."""
    places: dict[str, list[tuple[str, str]]] = defaultdict(list)  # file -> (folder above, name)
    groups: dict[tuple[str, str], set[str]] = defaultdict(set)
    for file in known:
        parts = file.split("/")
        stem = known[file].family.rsplit("/", 1)[-1].split(".")[0]
        inner = LOG_WORD.match(stem)
        candidates = [("/".join(parts[:depth]), parts[depth]) for depth in range(len(parts) - 1)]
        if known[file].rank is None and not OF_KUBECTL.match(stem):
            candidates.append((_folder(file), inner["host"] if inner else stem))
        for above, name in candidates:
            if found := _COUNTED.match(_KIND.sub("", name)):
                places[file].append((above, name))
                groups[above, found["base"]].add(found["count"])
    bases: dict[str, set[str]] = defaultdict(set)
    for (above, base), counts in groups.items():
        if _counts_machines(base, counts):
            bases[above].add(base)
    machines = {
        (above, base + count)
        for above, found_bases in bases.items()
        if len(found_bases) <= _MOST_KINDS
        for base in found_bases
        for count in groups[above, base]
    }
    named = {one.host for one in known.values() if one.host}
    for file, one in known.items():
        if one.host is None:
            for above, name in places[file]:
                if (above, _KIND.sub("", name)) in machines or name in named:
                    node = host_number(name) if one.node_rank is None else one.node_rank
                    rank = None if _RUN_TREE.match(file) else one.rank  # there it is that on the machine
                    known[file] = replace(one, host=name, node_rank=node, rank=rank)
                    break


def _counts_machines(base: str, counts: set[str]) -> bool:
    word = base.rstrip("-_.")
    # behind the number of a job stands a task or an array index
    if len(counts) < 2 or not word or OTHER_WORD.search(word) or re.search(r"(?:^|[-_.])\d{3,}$", word):
        return False
    if not all(count.isdecimal() for count in counts):
        return _letters(counts) is not None and base.endswith("-")
    numbers = sorted(int(count) for count in counts)
    if _GPU_FILE.match(f"{base}0") and numbers == list(range(len(numbers))):
        return False  # the GPUs of one machine
    if base.endswith("-"):
        return (
            numbers[0] == 0 or numbers[0] >= 10 or any(count[0] == "0" and len(count) < 4 for count in counts)
        )
    return base[-1].isalpha() and all(len(count) > 1 for count in counts) and base == base.lower()


def _letters(counts: Iterable[str]) -> dict[str, int] | None:
    """a, b, c … → 0, 1, 2 …; None if the letters are no such run."""
    ordered = sorted(counts)
    if ordered == [chr(ord("a") + at) for at in range(len(ordered))]:
        return {letter: at for at, letter in enumerate(ordered)}
    return None


_GPU_FILE = regex(r"(?i)^(?P<base>.*?(?<![a-z])(?:gpu|device|npu|cuda|xpu)[-_.:]?)(?P<number>\d{1,3})$")


def _gpu_files(known: dict[str, Identity]) -> None:
    """gpu0 … gpu7 beside each other, as files or folders, are the local ranks of a machine."""
    groups: dict[tuple[str, str], dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for file, one in known.items():
        if one.rank is not None or one.local_rank is not None:
            continue
        parts = one.family.split("/")
        parts[-1] = parts[-1].split(".")[0]
        for depth, name in enumerate(parts):
            if found := _GPU_FILE.match(name):
                above = "/".join(parts[:depth])
                groups[above, found["base"]][int(found["number"])].append(file)
    for numbers in groups.values():
        if len(numbers) > 1 and sorted(numbers) == list(range(len(numbers))):
            for number, members in numbers.items():
                for file in members:
                    known[file] = replace(known[file], local_rank=number)


def _split_host(host: str) -> tuple[str, str] | None:
    found = re.match(r"^(.*?)(\d{1,9}|(?:(?<=-)|(?<=_)|(?<=node)|(?<=host))[A-Za-z])$", host.split(".")[0])
    return (found[1], found[2]) if found else None


def _order_of(hosts: set[str]) -> tuple[dict[str, int] | None, bool]:
    """The machines' places in their plain order, and whether they start at the first one."""
    split = {host: _split_host(host) for host in hosts}
    bases = {pair[0] for pair in split.values() if pair}
    counts = {host: pair[1] for host, pair in split.items() if pair}
    if len(bases) != 1 or len(counts) < len(hosts):
        return None, False
    if all(count.isdecimal() for count in counts.values()):
        ordered = sorted(hosts, key=lambda host: int(counts[host]))
        numbers = [int(counts[host]) for host in ordered]
        if len(set(numbers)) < len(numbers):
            return None, False
        complete = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        # Schedulers hand out machines in a row: gn04 and gn05 are the first and the second.
        begins = numbers[0] == 0 or len(numbers) > 1
        return {host: at for at, host in enumerate(ordered)}, begins and complete
    letters = _letters(count.lower() for count in counts.values())
    if letters is None:
        return None, False
    return {host: letters[count.lower()] for host, count in counts.items()}, True


def _node_ranks(known: dict[str, Identity]) -> None:
    """The place of a machine in the job, where names count on from the first one without a gap."""
    hosts = {one.host for one in known.values() if one.host}
    pods = {host: pod for host in hosts if (pod := POD.match(host)) and pod["role"] != "node"}
    indexed = {host for host in hosts if host in pods or INDEXED_POD.match(host)}
    leads = {pod["base"].rsplit("-", 1)[0] for pod in pods.values() if pod["role"] in ("master", "chief")}
    order, complete = _order_of(hosts - indexed) if hosts - indexed else (None, False)
    for file, one in known.items():
        if not one.host or NODE_RANK.search(file) or SLURM_TASK.match(file.rsplit("/", 1)[-1]):
            continue
        node_rank = one.node_rank
        if one.host in pods:
            node_rank = _pod_rank(pods[one.host], leads)
        elif one.host not in indexed:
            node_rank = order[one.host] if order and complete else None
            if order and node_rank is None and (numbers := _from_zero(order)):
                node_rank = numbers[one.host]
        if node_rank != one.node_rank:
            known[file] = replace(one, node_rank=node_rank)


def _pod_rank(pod: re.Match[str], leads: set[str]) -> int | None:
    if pod["role"] in ("master", "chief", "head"):
        return 0
    if pod["role"] in ("launcher", "driver", "ps", "executor") or not pod["number"]:
        return None
    # Where there is a master, it is node 0 and the first worker node 1.
    return int(pod["number"]) + (pod["base"].rsplit("-", 1)[0] in leads)


def _from_zero(hosts: Iterable[str]) -> dict[str, int] | None:
    """Numbers of machines some of which left no log, if they count from 0 and without leading zeros."""
    numbers = {host: pair[1] for host in hosts if (pair := _split_host(host))}
    plain = all(number.isdecimal() and str(int(number)) == number for number in numbers.values())
    if plain and "0" in numbers.values():
        return {host: int(number) for host, number in numbers.items()}
    return None


_RUN_TREE = regex(r"^(?P<run>(?:.*/)?[^/]+)/attempt_\d{1,4}/\d{1,5}/[^/]+$")


def _global_ranks(known: dict[str, Identity]) -> None:
    """Global ranks from local ones: machine times ranks of a machine, where both are plain."""
    by_host: dict[str, set[int]] = defaultdict(set)
    counted: list[str] = []
    for file, one in known.items():
        number = one.local_rank if one.local_rank is not None else one.rank
        if one.host and number is not None and not (one.rank is not None and one.local_rank is not None):
            by_host[one.host].add(number)
            counted.append(file)
    if len(by_host) > 1:
        _over_machines(known, by_host, counted)
        return
    for file in counted:  # one machine with ranks: it may be the only one, or one of several
        one = known[file]
        if one.local_rank is not None and one.rank is None and one.node_rank == 0:
            known[file] = replace(one, rank=one.local_rank)
    _over_runs(known)


def _over_machines(known: dict[str, Identity], by_host: dict[str, set[int]], counted: Sequence[str]) -> None:
    sizes = {len(ranks) for ranks in by_host.values()}
    alike = len(sizes) == 1 and all(ranks == set(range(len(ranks))) for ranks in by_host.values())
    disjoint = sum(len(ranks) for ranks in by_host.values()) == len(set().union(*by_host.values()))
    order, _ = _order_of(set(by_host))
    for file in counted:
        one = known[file]
        local = one.local_rank
        if local is None and not disjoint:
            local = one.rank  # the same ranks on several machines can only be local
        if local is None:
            continue
        node = one.node_rank if one.node_rank is not None else (order or {}).get(one.host or "")
        rank = node * sizes.copy().pop() + local if alike and node is not None else None
        known[file] = replace(one, local_rank=local, rank=rank, node_rank=node)


def _over_runs(known: dict[str, Identity]) -> None:
    """torchrun trees without machine: one tree is one machine, several may be several of one job."""
    runs: dict[str, set[str]] = defaultdict(set)
    for file in known:
        if found := _RUN_TREE.match(file):
            runs[_launch_of(found["run"])].add(found["run"])
    shared = {run for group in runs.values() if len(group) > 1 for run in group}
    for file, one in known.items():
        if one.host is None and (found := _RUN_TREE.match(file)) and found["run"] in shared:
            known[file] = replace(one, rank=None)


_RUN_ID = regex(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def _launch_of(run: str) -> str:
    """What tells one launch from another; "" if the tree may be a machine of the same launch as others."""
    for name in run.split("/"):
        bare = re.sub(r"[-_.]?\d+$", "", name)
        if bare != name and OTHER_WORD.search(bare):
            return run  # run_1 and run_2 came one after the other
    # torchrun makes up such an id for a launch on a single machine
    found = _RUN_ID.search(run)
    return found[0] if found else ""


def _paired_streams(known: dict[str, Identity]) -> None:
    """x.out is standard output where x.err lies beside it."""
    families = {one.family for one in known.values()}
    for file, one in known.items():
        if one.stream is None and one.family.endswith(".out") and one.family[:-4] + ".err" in families:
            known[file] = replace(one, stream="stdout")


def _ordered_parts(known: dict[str, Identity]) -> None:
    families: dict[str, list[str]] = defaultdict(list)
    for file, one in known.items():
        families[one.family].append(file)
    for files in families.values():
        for at, file in enumerate(sorted(files, key=lambda file: (known[file].part, file))):
            if known[file].part != at:
                known[file] = replace(known[file], part=at)
