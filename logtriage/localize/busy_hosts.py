"""A machine of the job on which something else runs: its load stands far above that of all others.

A load alone is no fault, and neither are slow steps. Together, in a look at all machines of a job whose steps
take far longer than they did, they tell whom the others wait for.
"""

from __future__ import annotations

from dataclasses import dataclass

from logtriage.localize.progress import median
from logtriage.localize.scene import Scene
from logtriage.localize.topology import Topology
from logtriage.model import Line
from logtriage.regex import regex

_LOAD = regex(r"\bload averages?: (?P<now>\d{1,6}[.,]\d{1,2})")
LEAST_HOSTS = 3
TIMES = 4.0  # the load of a machine in the middle of the others …
LEAST_LOAD = 16.0  # … and so much at least: a machine with little to do may have many times nothing


@dataclass(frozen=True, slots=True)
class BusyHost:
    """The machine, the line that tells its load, and how many times that of the others it is."""

    host: str
    line: Line
    factor: float


def busy_host(scene: Scene, topology: Topology) -> BusyHost | None:
    """The one machine whose load is many times that of all others, where somebody looked at all of them."""
    for reading in scene.readings:
        loads: dict[str, tuple[float, Line]] = {}
        for line in reading.lines:
            told = _LOAD.search(line.text[:400]) if "load average" in line.text[:400] else None
            if told is not None and (host := topology.host(line)) is not None:
                loads[host] = float(told["now"].replace(",", ".")), line
        if len(loads) < LEAST_HOSTS:
            continue
        most = max(loads, key=lambda host: loads[host][0])
        others = [load for host, (load, _) in loads.items() if host != most]
        load, line = loads[most]
        if load >= max(LEAST_LOAD, TIMES * max(others)):
            return BusyHost(most, line, load / max(median(others), 0.1))
    return None
