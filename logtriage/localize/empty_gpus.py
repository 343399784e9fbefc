"""GPUs on which nothing was left when somebody looked: the job had ended by then, and stands nowhere."""

from __future__ import annotations

from logtriage.localize.onlookers import LEAST_MIB
from logtriage.localize.scene import Scene
from logtriage.regex import regex

# `1, 0 %, 17422 MiB`, and nvidia-smi's table: `|  21W / 300W |   3MiB / 49140MiB |   0%   Default |`.
_USED = regex(r"(?<![\d.])(?P<used>\d{1,7}) ?MiB\b(?: ?[/,] ?\d{1,7} ?MiB)?")
_LOAD = regex(r"(?<![\d.])\d{1,3} ?%")
_OF_PROCESS = regex(r"^\| +\d{1,3} .{1,120}MiB +\|\s*$")


def are_empty(scene: Scene, file: str) -> bool:
    """Whether a look shows GPUs, and none of them with the memory of a process that trains."""
    used = [
        int(row["used"])
        for line in scene.lines(file)
        if "MiB" in line.text[:300]
        and _OF_PROCESS.match(line.text[:300]) is None
        and _LOAD.search(line.text[:300]) is not None
        and (row := _USED.search(line.text[:300])) is not None
    ]
    return bool(used) and max(used) < LEAST_MIB
