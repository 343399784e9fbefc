"""What each event of `kubectl get events -o yaml` or `-o json` is about: its `involvedObject`.

In such a dump the object stands lines above the reason and the message, in fields of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from logtriage.model import Line
from logtriage.regex import regex

_KIND = regex(r"\bkind\"?: ?\"?(?P<kind>[A-Z]\w{1,40})")
_NAME = regex(r"(?<![\w-])name\"?: ?\"?(?P<name>[a-z0-9][\w.-]{0,252})")
FIELDS = 10  # lines of the object's own fields, where they do not stand in one


@dataclass(frozen=True, slots=True)
class EventObjects:
    """Kind and name of the object that the lines from each number on are about, in order of lines."""

    numbers: tuple[int, ...] = ()
    objects: tuple[tuple[str, str], ...] = ()

    def named(self, line: Line, kind: str) -> str | None:
        """The name of a line's object if it is of a kind."""
        at = bisect_right(self.numbers, line.number)
        return self.objects[at - 1][1] if at and self.objects[at - 1][0] == kind else None


def event_objects(lines: Sequence[Line]) -> EventObjects:
    """The objects of one file's events; none where it is no such dump."""
    numbers, objects = [], []
    for at, line in enumerate(lines):
        if "involvedObject" not in line.text:
            continue
        own = line.text[line.text.index("involvedObject") :][:2000]
        text = (
            own
            if "{" in own and "}" in own
            else "\n".join(each.text[:300] for each in lines[at : at + FIELDS])
        )
        kind, name = _KIND.search(text), _NAME.search(text)
        if kind is not None and name is not None:
            numbers.append(line.number)
            objects.append((kind["kind"], name["name"]))
    return EventObjects(tuple(numbers), tuple(objects))
