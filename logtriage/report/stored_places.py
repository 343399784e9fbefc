"""Lines of logs that were read in another form or order than their files have, named as they stand there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from logtriage.report.document import CitedLine, Part, Verdict


class StoredLines(Protocol):
    """The lines of a file, by their numbers as they were read.

    They stand in another `file` than the one by whose name they were read, if it is not None.
    """

    @property
    def file(self) -> str | None: ...

    def place(self, line: int) -> tuple[int, int] | None:
        """The number and the offset of the same line in the file."""

    def text(self, line: int) -> str:
        """The line as the file holds it."""


def with_stored_places(verdict: Verdict, files: Mapping[str, StoredLines]) -> Verdict:
    """The verdict, with the numbers, offsets and texts that lines have in their files."""
    stored: Verdict = _stored(verdict, files)
    return stored


def _stored(part: Any, files: Mapping[str, StoredLines]) -> Any:
    if isinstance(part, tuple):
        return tuple(_stored(each, files) for each in part)
    if not isinstance(part, Part):
        return part
    changed: dict[str, Any] = {}
    for name in type(part).model_fields:
        value = getattr(part, name)
        if (inside := _stored(value, files)) != value:
            changed[name] = inside
    told = files.get(getattr(part, "file", None) or "")
    line = getattr(part, "line", None)
    if told is not None and line is not None and (place := told.place(line)) is not None:
        changed["line"] = place[0]
        if told.file is not None:
            changed["file"] = told.file
        if hasattr(part, "offset"):
            changed["offset"] = place[1]
        if isinstance(part, CitedLine):
            changed["text"] = told.text(line)
    return part.model_copy(update=changed) if changed else part
