"""Lines of logs that were read from their end, named as they stand in the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from logtriage.report.document import Part, Verdict


def with_stored_places(verdict: Verdict, places: Mapping[str, Sequence[tuple[int, int]]]) -> Verdict:
    """The verdict, with other numbers and offsets of lines: `places` has those of each line of a file."""
    stored: Verdict = _stored(verdict, places)
    return stored


def _stored(part: Any, places: Mapping[str, Sequence[tuple[int, int]]]) -> Any:
    if isinstance(part, tuple):
        return tuple(_stored(each, places) for each in part)
    if not isinstance(part, Part):
        return part
    changed: dict[str, Any] = {}
    for name in type(part).model_fields:
        value = getattr(part, name)
        if (inside := _stored(value, places)) != value:
            changed[name] = inside
    told = places.get(getattr(part, "file", None) or "")
    line = getattr(part, "line", None)
    if told is not None and line is not None and line <= len(told):
        number, offset = told[line - 1]
        changed["line"] = number
        if hasattr(part, "offset"):
            changed["offset"] = offset
    return part.model_copy(update=changed) if changed else part
