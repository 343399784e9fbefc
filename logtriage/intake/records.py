"""Lines → records: what one writer wrote as one thing, also where other writers' lines stand between.

A writer is a rank, or else a process of a host. Each writer has at most one open record. A record is
passed on once it is complete and all records that began before it are, so that what waits is bounded by
the longest open record and by `_MOST_WAITING`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from logtriage.intake.frames import BARE_FRAME, HEADER, Part, Traceback
from logtriage.intake.native import OpenBlock, begin_block
from logtriage.model import Line, Record

_MOST_WAITING = 20_000

_Writer = int | tuple[str | None, int | None]


@dataclass(slots=True)
class _Growing:
    """A record in the making; a `void` one has lent its line to another record."""

    lines: list[Line]
    writer: _Writer
    grammar: Traceback | OpenBlock | None = None
    is_open: bool = False
    is_void: bool = False
    pending: list[_Growing] = field(default_factory=list)

    def record(self) -> Record:
        if isinstance(self.grammar, Traceback):
            raised = self.grammar.raised()
            if raised or len(self.lines) > 1:
                return Record("traceback", tuple(self.lines), raised)
        elif isinstance(self.grammar, OpenBlock) and len(self.lines) > 1:
            return Record(self.grammar.block.kind, tuple(self.lines))
        return Record("line", tuple(self.lines))


def records(lines: Iterable[Line]) -> Iterator[Record]:
    """Group the lines of one file into records, each line in exactly one, ordered by first lines."""
    queue: deque[_Growing] = deque()
    growing: dict[_Writer, _Growing] = {}
    before: _Growing | None = None  # the open record that the line before belongs to
    waiting = 0
    for line in lines:
        writer: _Writer = line.rank if line.rank is not None else (line.host, line.pid)
        current = growing.get(writer)
        if current is None and line.pid is None and line.rank is None:
            # A logger's prefix stands on the first line only; what follows without one belongs to it.
            current = before if before is not None and before.is_open else None
        taken = False
        if current is not None and current.is_open:
            taken = _feed(current, line, queue)
            if not current.is_open:
                growing.pop(current.writer, None)
        if taken:
            before = current
        else:
            new = _begin(line, writer)
            queue.append(new)
            if new.is_open and current is not None and current.is_open:
                # Another writer's line between the open record's own: only a sure beginning ends that one.
                if isinstance(new.grammar, OpenBlock) and new.grammar.block.is_doubtful:
                    new.is_open = False
                else:
                    _close(current)
                    growing.pop(current.writer, None)
            if new.is_open:
                growing[writer] = before = new
            elif current is None or not current.is_open:
                before = None
        waiting += 1
        while queue and (not queue[0].is_open or waiting > _MOST_WAITING):
            first = queue.popleft()
            if first.is_open:
                if first.grammar is None:  # a pending line; its record can no longer claim it
                    first.is_open = False
                else:
                    _close(first)
                    growing.pop(first.writer, None)
            if not first.is_void:
                waiting -= len(first.lines)
                yield first.record()
    for left in queue:
        if not left.is_void:
            yield left.record()


def _begin(line: Line, writer: _Writer) -> _Growing:
    """The record that a line begins: one that may grow, or the line alone."""
    message = line.message
    if HEADER.search(message) or ('File "' in message and BARE_FRAME.match(message)) or "╭─" in message:
        return _begin_traceback(line, writer)
    block = begin_block(message, line)
    return _Growing([line], writer, block, is_open=block is not None)


def _begin_traceback(line: Line, writer: _Writer) -> _Growing:
    """A traceback's first line; the whole of it where a JSON record or an escaped text holds it all."""
    grammar = Traceback()
    message = line.message
    if "\n" not in message and "\\n" in message and HEADER.search(message):
        message = message.replace("\\n", "\n").replace('\\"', '"').replace("\\'", "'")
    parts = message.split("\n")
    start = next((index for index, part in enumerate(parts) if HEADER.search(part)), 0)
    for part in parts[start:]:
        if grammar.feed(part, line) is Part.END:
            break
    return _Growing([line], writer, grammar, is_open=len(parts) - start == 1 or not grammar.is_named)


def _feed(current: _Growing, line: Line, queue: deque[_Growing]) -> bool:
    """Offer a line to an open record; True where the line has its place (also as a pending one)."""
    grammar = current.grammar
    assert grammar is not None
    part = Part.OWN
    for piece in line.message.split("\n") if "\n" in line.message else (line.message,):
        part = grammar.feed(piece, line)
        if part in (Part.END, Part.FOREIGN):
            break
    if part is Part.OWN:
        for waiting in current.pending:
            if waiting.is_open:
                waiting.is_open, waiting.is_void = False, True
                current.lines += waiting.lines
        current.pending.clear()
        current.lines.append(line)
        return True
    if part is Part.PENDING:
        waiting = _Growing([line], current.writer, is_open=True)
        queue.append(waiting)
        current.pending.append(waiting)
        return True
    if part is Part.END:
        _close(current)
    return False


def _close(growing: _Growing) -> None:
    growing.is_open = False
    for waiting in growing.pending:
        waiting.is_open = False
    growing.pending.clear()
