"""Ranks by the files that each rank of a job writes for itself, where no line says who wrote it."""

from __future__ import annotations

from bisect import bisect_left

from logtriage.localize.scene import Scene, Sign
from logtriage.regex import regex

# DeepSpeed's shards of the optimizer (without model parallelism they count all ranks), PyTorch's distributed
# checkpoints, the Trainer's and Accelerate's states of random numbers, Composer's and others' `…-rank3.pt`.
_SHARD = regex(
    r"zero_pp_rank_(\d{1,6})_mp_rank_00_(?:optim|model)_states\.pt|(?<![\w])__(\d{1,6})_\d{1,4}\.distcp\b"
    r"|\brng_state_(\d{1,6})\.pth\b|\brandom_states_(\d{1,6})\.pkl\b"
    r"|(?:^|[-_./\\])rank[-_]?(\d{1,6})(?:[-_]of[-_]?\d{1,6})?\.(?:pt|pth|pkl|bin|ckpt|distcp|safetensors|npz)\b"
)
_MODEL_PARALLEL = regex(r"mp_rank_(?!00)\d{2,3}_")
_OF_FILES = ("host.disk_full", "storage.", "checkpoint.", "code.os_error", "code.permission", "code.runtime")
_WORDS = ("_rank_", "rng_state_", "random_states_", ".distcp")
LEAST_SHARDS = 4


def shard_hosts(scene: Scene) -> dict[int, str]:
    """Rank to host by the shards that each host's own lines load or save; empty where hosts share one."""
    found: dict[int, set[str]] = {}
    for reading in scene.readings:
        for line in reading.lines:
            if line.host is None or not any(word in line.text for word in _WORDS):
                continue
            if _MODEL_PARALLEL.search(line.text[:2000]) is None:
                for named in _SHARD.findall(line.text[:2000]):
                    found.setdefault(int(next(filter(None, named))), set()).add(line.host)
    alone = {rank: next(iter(hosts)) for rank, hosts in found.items() if len(hosts) == 1}
    return alone if len(alone) == len(found) >= LEAST_SHARDS and len(set(alone.values())) > 1 else {}


LINES_ABOVE = 2  # of a traceback, where its writer said which file comes next


def rank_of_shard(sign: Sign, scene: Scene) -> int | None:
    """The rank whose own file a failure was about: named in its words, or right above its traceback.

    None where several are named.
    """
    if not str(sign.rule.failure_type).startswith(_OF_FILES):
        return None
    told = [sign.line.text[:2000]]
    if sign.record is not None and sign.raised is not None:
        told += [each.message[:2000] for each in sign.record.raised]
        start = sign.record.lines[0]
        lines = scene.lines(start.file)
        at = bisect_left(lines, start.number, key=lambda line: line.number)
        above = lines[max(0, at - LINES_ABOVE) : at]
        told += [line.text[:2000] for line in above if (line.host, line.rank) == (start.host, start.rank)]
    if any(_MODEL_PARALLEL.search(text) for text in told):
        return None
    named = {next(filter(None, found)) for text in told for found in _SHARD.findall(text)}
    return int(named.pop()) if len(named) == 1 else None
