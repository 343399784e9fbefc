"""How much each rank, or each machine, gets done in a second by its own lines, held against the others.

Where all wait for all, all tell the same rate. Where each tells its own, the one that gets far less done than
all others, for as long as it tells, holds them up, or does so at the end.
"""

from __future__ import annotations

from collections.abc import Iterator

from logtriage.localize.durations import Duration
from logtriage.localize.scene import Scene
from logtriage.localize.topology import Topology
from logtriage.model import JOB_ROLES
from logtriage.regex import regex
from logtriage.rulebank.matcher import without_digits

_THINGS = (
    r"(?:samples?|images?|imgs?|tokens?|tok|examples?|sequences?|seqs?|frames?|steps?|batch(?:es)?|records?)"
)
_NUMBER = r"\d{1,9}(?:\.\d{1,6})?k?"
_A_SECOND = r"(?:/|_per_| per )s(?:ec(?:ond)?)?\b"
_RATE = regex(
    rf"(?i)(?<![\w.])(?P<told>{_NUMBER}) ?(?P<things>{_THINGS}){_A_SECOND}"
    rf"|\b(?P<named>{_THINGS}){_A_SECOND}[\"']?(?: ?[=:] ?| )(?P<value>{_NUMBER})"
)
_PER_SECOND = ("/s", "per_s", "per s")
MOST_LINES = 200_000
_THOUSAND = 1000.0


def rates(scene: Scene, topology: Topology, hosts: dict[str, int] | None = None) -> Iterator[Duration]:
    """The seconds that one thing takes, by the rates that lines tell of a known rank.

    With `hosts`, of a known host: `rank` then is its number, which is put there.
    """
    count = 0
    for reading in scene.readings:
        if reading.source.role not in JOB_ROLES:
            continue
        for line in reading.lines:
            text = line.text[:600] if line.text.lstrip().startswith("{") else line.message[:600]
            if "%|" in text or not any(each in text for each in _PER_SECOND):
                continue
            if (said := _RATE.search(text)) is None:
                continue
            count += 1
            if count > MOST_LINES:
                return
            number = said["told"] or said["value"]
            value = float(number.rstrip("kK")) * (_THOUSAND if number[-1] in "kK" else 1.0)
            host = topology.host(line) if hosts is not None else None
            rank = topology.rank(line) if hosts is None else None
            if hosts is not None and host is not None:
                rank = hosts.setdefault(host, len(hosts))
            if rank is None or value <= 0:
                continue
            form = without_digits(text[: said.start()])
            form = form.replace(without_digits(host), "") if host is not None else form
            yield Duration(rank, (form[-60:], f"step_of_{said['things'] or said['named']}"), 1 / value, line)
