"""Pieces of work that machines are dealt, and how long each took: tasks of an executor, jobs of an iteration.

Who deals them out tells of each when it is done and where it ran (`finished task 7 in 61908 ms on cn-3`), or
each is a process with a log of its own, which says where it runs and at its end how long it took. Pieces are
alike, whoever has them: a machine that takes far longer for all of its own holds the others up.
"""

from __future__ import annotations

from collections.abc import Iterator

from logtriage.localize.durations import Duration
from logtriage.localize.rosters import HOST_WORD, is_host
from logtriage.localize.scene import Scene
from logtriage.localize.topology import Topology
from logtriage.model import JOB_ROLES, Line
from logtriage.regex import regex
from logtriage.rulebank.matcher import without_digits

_DONE_ON = regex(
    r"(?i)\b(?:finish|complet|done|process|took|ended|ran)\w{0,4}\b[^\n]{0,80}?\b(?:in|after|took) "
    r"(?P<value>\d{1,9}(?:\.\d{1,6})?) ?(?P<unit>ms|s|sec|seconds)\b,? (?:on|at|by) (?:host |node |worker )?"
    rf"(?P<host>{HOST_WORD})(?![\w.-])"
)
_TOOK = regex(
    r"(?i)\b(?:elapsed(?: time)?|took|ran for|duration|wall ?(?:clock )?time|(?:finished|done|completed) in)"
    r"[ :=]{1,3}(?P<value>\d{1,7}(?:\.\d{1,6})?) ?(?P<unit>s|secs?|seconds)\b"
)
LAST_LINES = 4  # of a process's log, in which it says how long it took
MOST_LINES = 200_000


def pieces(scene: Scene, topology: Topology, hosts: dict[str, int]) -> Iterator[Duration]:
    """The durations of pieces of work; `rank` is the number of the host, which is put into `hosts`."""
    count = 0
    for reading in scene.readings:
        if reading.source.role not in JOB_ROLES or not reading.lines:
            continue
        for line in reading.lines:
            text = line.message[:400]
            count += 1
            if count > MOST_LINES:
                break
            if ("s on " in text or "s at " in text or "s by " in text) and (said := _DONE_ON.search(text)):
                seconds = float(said["value"]) * (0.001 if said["unit"].lower() == "ms" else 1.0)
                if is_host(said["host"]):
                    form = without_digits(text[: said.start("value")])[:80]
                    yield _piece(hosts, said["host"], form, seconds, line)
        host = topology.host_of_file.get(reading.source.file) or reading.source.host
        for line in reading.lines[-LAST_LINES:] if host is not None else ():
            if (told := _TOOK.search(line.message[:300])) is not None:
                form = f"{without_digits(reading.source.file)} {without_digits(told[0])}"
                yield _piece(hosts, host or "", form, float(told["value"]), line)
                break


def _piece(hosts: dict[str, int], host: str, form: str, seconds: float, line: Line) -> Duration:
    return Duration(hosts.setdefault(host, len(hosts)), (form, "step"), seconds, line)
