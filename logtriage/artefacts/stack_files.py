"""The stack dumps that lie in a job's files: text, also inside of logs, and py-spy's JSON."""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path
from typing import Any

from logtriage.artefacts.stack_text import MOST_SPOTS, MOST_THREADS, Spot, StackDump, Thread, parse_stacks
from logtriage.artefacts.tails import from_first, lines_of, read_tail
from logtriage.intake.dumps import STACK_HEAD
from logtriage.intake.reading import Extent
from logtriage.model import Line, Source


def read_stacks(root: Path, source: Source, extent: Extent) -> list[StackDump]:
    """The dumps of one file in its order; of a long file those near its end."""
    tail = read_tail(root, source, extent)
    if tail.is_whole and tail.data.lstrip()[:1] == b"[" and b'"os_thread_id"' in tail.data:
        return _json_dumps(tail.data, source)
    return list(parse_stacks(lines_of(from_first(tail, STACK_HEAD), source)))


def _json_dumps(data: bytes, source: Source) -> list[StackDump]:
    """py-spy's `dump --json`: a list of threads, each with its process."""
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        return []
    # Names stand in the file in the order in which they are met here, so the n-th is on the n-th place.
    places = iter(re.finditer(rb'"(?:thread_name|name)"\s*:', data))
    seen = {"line": 1, "at": 0}

    def next_line() -> Line:
        place = next(places, None)
        at = place.start() if place else seen["at"]
        seen["line"] += data.count(b"\n", seen["at"], at)
        seen["at"] = at
        start = data.rfind(b"\n", 0, at) + 1
        end = data.find(b"\n", at)
        text = data[start : end if end >= 0 else len(data)][:4000].decode("utf-8", "replace").rstrip("\r")
        return Line(source.file, seen["line"], start, text, text, rank=source.rank, host=source.host)

    threads: dict[int | None, list[Thread]] = {}
    for each in islice(told if isinstance(told, list) else (), MOST_THREADS):
        if not isinstance(each, dict):
            continue
        line = next_line()
        frames = each.get("frames")
        spots = []
        for frame in islice(frames if isinstance(frames, list) else (), MOST_SPOTS):
            if isinstance(frame, dict):
                name, path = _text(frame.get("name")), _text(frame.get("filename"))
                spots.append(Spot(name, path, _number(frame.get("line")), next_line()))
                kept = frame.get("locals")
                for _ in kept if isinstance(kept, list) else ():
                    next(places, None)
        ident = str(_number(each.get("os_thread_id")) or 0)
        thread = Thread(ident, _text(each.get("thread_name")), tuple(spots), line)
        threads.setdefault(_number(each.get("pid")), []).append(thread)
    return [
        StackDump(source.file, source.rank, source.local_rank, source.host, pid, "", tuple(its))
        for pid, its in threads.items()
        if any(thread.spots for thread in its)
    ]


def _text(value: Any) -> str:
    return value[:500] if isinstance(value, str) else ""


def _number(value: Any) -> int | None:
    return int(value) if isinstance(value, int) and 0 <= value < 1 << 63 else None
