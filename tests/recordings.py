"""A small distributed job that is played through by hand, and the dumps that its flight recorders leave.

Every rank issues its operations in the order of its program, at most `AHEAD` before the oldest of them is
completed; an operation completes once it is the oldest open one of all its ranks. That is how the CPU runs
ahead of the GPU in a real job, and how one rank that stands still stops the others in different places.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

AHEAD = 6
BEGAN_NS = 1_790_000_000_000_000_000


@dataclass(frozen=True)
class Step:
    """One operation of a program: of a group, or a transfer between two ranks of it."""

    group: str
    name: str
    size: tuple[int, ...] = (128, 64)
    dtype: str = "BFloat16"
    source: int | None = None  # global ranks
    target: int | None = None
    line: int = 40


@dataclass
class Issued:
    step: Step
    sequence: int
    record: int
    time: int
    completed: bool = False
    seen: bool = False  # whether the rank's watchdog noticed the end


@dataclass
class Rank:
    rank: int
    program: Sequence[Step]
    issued: list[Issued] = field(default_factory=list)
    counts: dict[tuple[str, bool], int] = field(default_factory=dict)
    freezes_at: int | None = None  # the CPU issues so many operations and no more
    blind_from: int | None = None  # from this operation on no end is noticed: the GPU or the watchdog is lost

    @property
    def open(self) -> list[Issued]:
        return [each for each in self.issued if not each.completed]


@dataclass
class Job:
    groups: Mapping[str, tuple[str, tuple[int, ...]]]
    ranks: dict[int, Rank]

    def run(self) -> None:
        """Until nothing moves."""
        clock = BEGAN_NS
        moved = True
        while moved:
            moved = False
            for rank in self.ranks.values():
                unseen = sum(not each.seen for each in rank.issued)
                at = len(rank.issued)
                if at >= len(rank.program) or unseen >= AHEAD or at == rank.freezes_at:
                    continue
                clock += 1_000_000
                step = rank.program[at]
                key = (step.group, step.source is not None)
                rank.counts[key] = rank.counts.get(key, 0) + 1
                rank.issued.append(Issued(step, rank.counts[key], at, clock))
                moved = True
            moved = self._complete() or moved

    def _complete(self) -> bool:
        for rank in self.ranks.values():
            if not rank.open:
                continue
            head = rank.open[0]
            sides = [self._side(head, other) for other in self._members(head.step)]
            if all(each is not None for each in sides):
                for other, each in zip(self._members(head.step), sides, strict=True):
                    assert each is not None
                    each.completed = True
                    peer = self.ranks[other]
                    each.seen = peer.blind_from is None or peer.issued.index(each) < peer.blind_from
                return True
        return False

    def _members(self, step: Step) -> tuple[int, ...]:
        if step.source is not None and step.target is not None:
            return (step.source, step.target)
        return self.groups[step.group][1]

    def _side(self, head: Issued, rank: int) -> Issued | None:
        """The same operation on another rank, if that is its oldest open one and is the same."""
        if rank not in self.ranks or not self.ranks[rank].open:
            return None
        its = self.ranks[rank].open[0]
        one, two = head.step, its.step
        if one.source is not None:
            return its if (one.group, one.source, one.target) == (two.group, two.source, two.target) else None
        same = (one.group, one.name, one.size, one.dtype) == (two.group, two.name, two.size, two.dtype)
        return its if same and head.sequence == its.sequence else None

    # --- dumps ---------------------------------------------------------------------------------

    def dump(self, rank: int, *, only_open: bool = False, frames: bool = True) -> dict[str, Any]:
        one = self.ranks[rank]
        own = {name: told for name, told in self.groups.items() if rank in told[1]}
        numbers = {name: number for number, name in enumerate(own)}
        entries = [
            self._entry(one, each, numbers, frames)
            for each in one.issued
            if not (only_open and each.completed and each.seen)
        ]
        status = {}
        for name, number in numbers.items():
            mine = [each for each in one.issued if each.step.group == name]
            done = [each.sequence for each in mine if each.completed and each.seen]
            status[str(number)] = {
                "last_enqueued_collective": mine[-1].sequence if mine else -1,
                "last_started_collective": -1,
                "last_completed_collective": done[-1] if done else -1,
            }
        return {
            "version": "2.9",
            "pg_config": {
                name: {"name": name, "desc": told, "ranks": str(list(ranks))}
                for name, (told, ranks) in own.items()
            },
            "nccl_version": "2.27.3",
            "pg_status": status,
            "entries": entries,
        }

    def _entry(self, rank: Rank, issued: Issued, numbers: Mapping[str, int], frames: bool) -> dict[str, Any]:
        step = issued.step
        title = f"nccl:{step.name}"
        if step.source is not None and step.target is not None:
            ranks = self.groups[step.group][1]
            source, target = ranks.index(step.source), ranks.index(step.target)
            title += f" {source}->{target}" if step.name == "send" else f" {target}<-{source}"
        entry = {
            "record_id": issued.record,
            "pg_id": numbers[step.group],
            "process_group": (step.group, self.groups[step.group][0]),
            "collective_seq_id": 0 if step.source is not None else issued.sequence,
            "p2p_seq_id": issued.sequence if step.source is not None else 0,
            "op_id": issued.record,
            "profiling_name": title,
            "time_created_ns": issued.time,
            "input_sizes": [list(step.size)],
            "input_dtypes": [step.dtype],
            "output_sizes": [list(step.size)],
            "output_dtypes": [step.dtype],
            "state": "completed" if issued.completed and issued.seen else "scheduled",
            "time_discovered_started_ns": None,
            "time_discovered_completed_ns": issued.time if issued.completed and issued.seen else None,
            "retired": issued.completed and issued.seen,
            "timeout_ms": 600_000,
            "is_p2p": step.source is not None,
        }
        if frames:
            entry["frames"] = [
                {
                    "name": step.name,
                    "filename": "/opt/venv/lib/python3.11/site-packages/torch/c10d.py",
                    "line": 9,
                },
                {"name": "training_step", "filename": "/workspace/pretrain.py", "line": step.line},
            ]
        return entry

    def write(self, folder: Path, form: str = "pickle", *, without: Sequence[int] = (), **how: Any) -> None:
        """One dump a rank: as pickle under the name that torch gives it, or as JSON."""
        folder.mkdir(parents=True, exist_ok=True)
        for rank in self.ranks:
            if rank in without:
                continue
            dump = self.dump(rank, **how)
            if form == "pickle":
                (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump, 2))
            else:
                for entry in dump["entries"]:
                    entry.pop("frames", None)
                dump["pg_status"] = {
                    key: {name: str(number) for name, number in told.items()}
                    for key, told in dump["pg_status"].items()
                }
                text = json.dumps(dump, indent=None if form == "json" else 1, sort_keys=True)
                (folder / f"nccl_trace_rank_{rank}.json").write_text(text)


def a_job(
    world: int = 8, *, tensor: int = 2, stages: int = 1, steps: int = 6,
    change: Callable[[int, list[Step]], None] | None = None,
) -> Job:  # fmt: skip
    """Tensor, data and pipeline parallel: neighbours share a layer, stages are blocks of ranks."""
    stage_size = world // stages
    groups: dict[str, tuple[str, tuple[int, ...]]] = {"0": ("default_pg", tuple(range(world)))}

    def add(title: str, ranks: Sequence[int]) -> str:
        name = str(len(groups))
        groups[name] = (title, tuple(ranks))
        return name

    tp = {}
    dp = {}
    pp = {}
    for start in range(0, world, tensor):
        name = add("TENSOR_PARALLEL", range(start, start + tensor))
        tp |= dict.fromkeys(range(start, start + tensor), name)
    for stage in range(stages):
        for offset in range(tensor):
            ranks = range(stage * stage_size + offset, (stage + 1) * stage_size, tensor)
            name = add("DATA_PARALLEL", ranks)
            dp |= dict.fromkeys(ranks, name)
    for offset in range(stage_size):
        ranks = range(offset, world, stage_size)
        name = add("PIPELINE_PARALLEL", ranks)
        pp |= dict.fromkeys(ranks, name)
    programs: dict[int, list[Step]] = {rank: [] for rank in range(world)}
    for rank, program in programs.items():
        before, after = rank - stage_size, rank + stage_size
        for _ in range(steps):
            if before >= 0:
                program.append(Step(pp[rank], "recv", source=before, target=rank, line=31))
            program += [
                Step(tp[rank], "_all_gather_base", line=33),
                Step(tp[rank], "_reduce_scatter_base", line=35),
            ]
            if after < world:
                program.append(Step(pp[rank], "send", source=rank, target=after, line=37))
            program.append(Step(dp[rank], "all_reduce", (4096,), "Float", line=48))
            program.append(Step("0", "all_reduce", (1,), "Float", line=52))
        if change is not None:
            change(rank, program)
    return Job(groups, {rank: Rank(rank, program) for rank, program in programs.items()})
