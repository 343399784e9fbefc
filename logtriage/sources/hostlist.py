"""Slurm's lists of nodes, `gpu[01-03,7],login1`, as names."""

from __future__ import annotations

import re
from itertools import islice

MOST_NODES = 20_000
_PART = re.compile(r"((?:[^,\[\]]|\[[^\[\]]*\])+)")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_NO_NODES = ("", "(null)", "None", "None assigned", "N/A")


def node_names(text: str) -> tuple[str, ...]:
    """The nodes of a hostlist in its order, at most MOST_NODES; what is no list is a name by itself.

    Ranges keep their leading zeros and may stand several in a name (`r[1-2]n[0-3]`), as `scontrol show
    hostnames` has it.
    """
    if text.strip() in _NO_NODES:
        return ()
    if text.count("[") != text.count("]"):
        return (text.strip(),)
    names: list[str] = []
    for part in _PART.findall(text[:65_536]):
        expanded = [""]
        at = 0
        for found in _BRACKETS.finditer(part):
            between, numbers = part[at : found.start()], _numbers(found[1])
            every = (f"{head}{between}{number}" for head in expanded for number in numbers)
            expanded = list(islice(every, MOST_NODES))
            at = found.end()
        names += [head + part[at:] for head in expanded if head + part[at:]]
        if len(names) >= MOST_NODES:
            break
    return tuple(names[:MOST_NODES])


def _numbers(text: str) -> list[str]:
    found: list[str] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not (dash and first.isdecimal() and last.isdecimal()) or len(first) > 9 or len(last) > 9:
            found.append(part.strip())
            continue
        count = min(int(last) - int(first) + 1, MOST_NODES)
        found += [str(int(first) + step).zfill(len(first)) for step in range(count)]
        if len(found) >= MOST_NODES:
            break
    return found[:MOST_NODES]
