"""Which ranks stand elsewhere than the others, by their stacks.

After ByteRobust (SOSP'25): stacks of the training threads are grouped by equality, the largest group is
healthy, and of several rounds the one that stands out most often is meant. Before that XPUTimer's question
(FLARE): who is outside of all collectives while the others wait in one.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from logtriage.artefacts.comparison import Stand, told_ranks
from logtriage.artefacts.stack_text import Spot, StackDump, Thread
from logtriage.regex import regex

MOST_ROUNDS = 5  # the last ones


class Process(NamedTuple):
    """Who a stack is of: a rank, or as far as it is known."""

    rank: int | None
    host: str | None
    pid: int | None
    file: str

    @property
    def told(self) -> str:
        if self.rank is not None:
            return f"rank {self.rank}"
        return f"process {self.pid}" if self.pid is not None else self.file


@dataclass(frozen=True, slots=True)
class StackComparison:
    """`odd` stand elsewhere than the others, in `there`; most others stand in `usual`."""

    stand: Stand
    odd: tuple[Process, ...]
    others: tuple[Process, ...]
    there: Spot
    usual: Spot
    rounds: int

    @property
    def told(self) -> str:
        odd, others = _told(self.odd), _told(self.others)
        verb = "stands" if len(self.odd) == 1 else "stand"
        waits = "waits" if len(self.others) == 1 else "wait"
        if self.stand is Stand.ELSEWHERE:
            waits = "stands" if len(self.others) == 1 else "stand"
        often = f" in {self.rounds} dumps in a row" if self.rounds > 1 else ""
        return f"{odd} {verb} in {self.there.told}{often} while {others} {waits} in {self.usual.told}"


def _told(processes: Sequence[Process]) -> str:
    ranks = [each.rank for each in processes if each.rank is not None]
    if len(ranks) == len(processes):
        return told_ranks(ranks)
    return ", ".join(each.told for each in processes[:8])


class _Stood(NamedTuple):
    """The training thread of a process as it is compared."""

    key: tuple[str, ...]
    waits_in: Spot | None  # the innermost frame that is a collective
    place: Spot  # the innermost frame of the user's own code, or else the innermost


def compare_stacks(dumps: Iterable[tuple[Process, StackDump]]) -> StackComparison | None:
    """The odd ones out of the last rounds; None where too few left a stack or no majority stands out."""
    rounds: dict[Process, list[_Stood]] = defaultdict(list)
    for process, dump in dumps:
        thread = training_thread(dump)
        if thread is not None and (stood := _stood(thread)) is not None:
            rounds[process].append(stood)
    if len(rounds) < 2:
        return None
    depth = min(MOST_ROUNDS, max(map(len, rounds.values())))
    found: list[StackComparison] = []
    compared = 0
    for back in range(1, depth + 1):
        now = {process: stood[-back] for process, stood in rounds.items() if len(stood) >= back}
        if len(now) < 2 or len(now) * 2 < len(rounds):
            continue
        compared += 1
        one = _of_one_round(now)
        if one is not None:
            found.append(one)
    votes = Counter(process for each in found for process in each.odd)
    odd = sorted((process for process, count in votes.items() if count * 2 > compared), key=_order)
    if not odd:
        return None
    latest = next(each for each in found if set(each.odd) & set(odd))
    return StackComparison(latest.stand, tuple(odd), latest.others, latest.there, latest.usual, votes[odd[0]])


def _order(process: Process) -> tuple[bool, int, str, int]:
    return (process.rank is None, process.rank or 0, process.file, process.pid or 0)


def _of_one_round(now: Mapping[Process, _Stood]) -> StackComparison | None:
    waiting = {process: stood for process, stood in now.items() if stood.waits_in is not None}
    outside = {process: stood for process, stood in now.items() if stood.waits_in is None}
    if waiting and outside:
        if len(outside) * 2 >= len(now) and not (len(outside) == len(waiting) == 1):
            return None
        usual = _usual(waiting)
        return _comparison(Stand.OUTSIDE, outside, waiting, usual.waits_in or usual.place)
    groups: dict[tuple[str, ...], dict[Process, _Stood]] = defaultdict(dict)
    for process, stood in now.items():
        groups[stood.key][process] = stood
    if len(groups) == 1 and not waiting:  # the same functions: perhaps other lines of them
        groups = defaultdict(dict)
        for process, stood in now.items():
            groups[stood.place.path, str(stood.place.number)][process] = stood
    largest = max(groups.values(), key=lambda group: (len(group), [-(each.rank or 0) for each in group]))
    odd = {process: stood for process, stood in now.items() if process not in largest}
    if not odd or len(odd) * 3 > len(now):
        return None
    usual = _usual(largest)
    if not waiting:
        return _comparison(Stand.ELSEWHERE, odd, largest, usual.place)
    names = {stood.waits_in.function for stood in odd.values() if stood.waits_in is not None}
    if (
        usual.waits_in is None
        or usual.waits_in.function in names
        or _is_transfer(odd)
        or _is_transfer(largest)
    ):
        return None  # stages of a pipeline wait in transfers at places of their own
    return _comparison(Stand.OTHER_COLLECTIVE, odd, largest, usual.waits_in)


def _usual(group: Mapping[Process, _Stood]) -> _Stood:
    counts = Counter(stood.key for stood in group.values())
    most = max(counts.values())
    return next(stood for _, stood in sorted(group.items(), key=lambda item: _order(item[0]))
                if counts[stood.key] == most)  # fmt: skip


def _comparison(
    stand: Stand, odd: Mapping[Process, _Stood], others: Mapping[Process, _Stood], usual: Spot
) -> StackComparison:
    first = min(odd, key=_order)
    there = odd[first].waits_in or odd[first].place
    ordered = tuple(sorted(odd, key=_order))
    return StackComparison(stand, ordered, tuple(sorted(others, key=_order)), there, usual, 1)


# --- one stack ---------------------------------------------------------------------------------------

_COLLECTIVE_PATH = regex(
    r"distributed_c10d|c10d_logger|_functional_collectives|p2p_communication|deepspeed/comm/|horovod/|mpi4py"
    r"|libnccl|librccl|torch/distributed/nn/functional"
)
_ENDINGS = r"(?:_base|_coalesced|_into_tensor|_tensor|_single|_object|_object_list|_async|_v)*_?$"
_COLLECTIVE = regex(
    r"(?:\w+\.)?_?(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|barrier|monitored_barrier"
    r"|batch_isend_irecv|isend|irecv|wait_for_everyone)"
    + _ENDINGS
    + r"|nccl[A-Z]\w+|MPI_\w+|.*ProcessGroupNCCL"
    r"|.*WorkNCCL|.*c10d::",
    re.IGNORECASE,
)
# Names that any program may have for something else: collectives in a library only.
_COMMON_NAME = regex(r"(?:\w+\.)?_?(?:broadcast|gather|scatter|reduce|send|recv)" + _ENDINGS)
_TRANSFER = regex(r"send|recv|p2p", re.IGNORECASE)
_WAITS_ON_GPU = regex(r"c(?:u|uda)(?:Stream|Event|Ctx|Device)Synchronize")
_INTERPRETER = regex(
    r"_?Py[A-Z_]\w*$|_PyEval|py(?:main|run)_|cfunction_|method_vectorcall|do_call_core|run_(?:mod|eval)|slot_tp_"
    r"|__libc_start|_start$|start_thread|clone3?$|thread_run|pythread_wrapper|partial_vectorcall|0x[0-9a-f]+$"
    r"|vectorcall_|function_code_fastcall|__clone"
)
_LIBRARY = regex(r"site-packages|dist-packages|lib/python\d|^<frozen|\.so\b")
# py-spy and others print paths from the import path on: the first part is the module.
_MODULES = frozenset(sys.stdlib_module_names) | {
    "accelerate", "apex", "datasets", "deepspeed", "flax", "horovod", "jax", "lightning", "mmengine", "numpy",
    "pytorch_lightning", "ray", "streaming", "tensorflow", "torch", "torchdata", "transformer_engine",
    "transformers", "triton", "webdataset", "xformers",
}  # fmt: skip
# What is no trainer: data loaders' workers, launchers, Python's own servants.
_SERVANT = regex(
    r"_worker_loop|resource_tracker|forkserver|_monitor_workers|_invoke_run|launch_agent|elastic_launch"
)


def training_thread(dump: StackDump) -> Thread | None:
    """The thread in which a process trains; None for workers of data loaders, launchers and the like."""
    functions = {spot.function for thread in dump.threads for spot in thread.spots}
    if any(_SERVANT.search(function) for function in functions):
        return None
    stacks = [thread for thread in dump.threads if thread.spots]
    mains = [thread for thread in stacks if thread.name == "MainThread"] or [
        thread for thread in stacks if thread.spots[-1].function in ("<module>", "_run_module_as_main")
    ]
    if mains:
        return mains[0]
    if stacks and all(thread.ident.isdecimal() for thread in stacks):  # gdb numbers the first thread 1
        return min(stacks, key=lambda thread: int(thread.ident))
    others = [thread for thread in stacks if not thread.spots[-1].function.endswith("_bootstrap")]
    return others[-1] if others else None  # faulthandler begins with the youngest thread


def _stood(thread: Thread) -> _Stood | None:
    spots = [spot for spot in thread.spots if not _INTERPRETER.match(spot.function)]
    if not spots:
        return None
    python = [spot for spot in spots if spot.path.endswith(".py") or spot.function == "<module>"]
    compared = python or spots
    waits_in = next((spot for spot in spots if _is_collective(spot)), None)
    own = next((spot for spot in compared if not _is_library(spot)), compared[0])
    # The collective's inner parts and wrappers tell less than the call that has its name.
    named = waits_in
    for spot in spots[spots.index(waits_in) :] if waits_in else ():
        if not _is_collective(spot):
            break
        if _COLLECTIVE.match(spot.function) or _COMMON_NAME.match(spot.function):
            named = spot
    key = tuple(f"{spot.path.rsplit('/', 1)[-1]}:{spot.function}" for spot in compared)
    return _Stood(key, named, own)


def _is_collective(spot: Spot) -> bool:
    return (
        _COLLECTIVE.match(spot.function) is not None
        or _COLLECTIVE_PATH.search(spot.path) is not None
        or _WAITS_ON_GPU.match(spot.function) is not None
        or (_COMMON_NAME.match(spot.function) is not None and _is_library(spot))
    )


def _is_library(spot: Spot) -> bool:
    module = spot.path.split("/")[0].removesuffix(".py")
    return not spot.path or _LIBRARY.search(spot.path) is not None or module in _MODULES


def _is_transfer(group: Mapping[Process, _Stood]) -> bool:
    return any(
        stood.waits_in is not None and _TRANSFER.search(f"{stood.waits_in.function} {stood.waits_in.path}")
        for stood in group.values()
    )
