"""One physical line → a `Line`: who wrote it, when, how grave, and its own words."""

from __future__ import annotations

from dataclasses import replace

from logtriage.intake.exports import exported
from logtriage.intake.json_lines import JsonRecord, read_json
from logtriage.intake.labels import Columns, Head
from logtriage.intake.layout import Layout
from logtriage.intake.prefixes import read_head
from logtriage.intake.printed import message_of, printed_records
from logtriage.intake.text import decoded, without_escapes
from logtriage.intake.times import DAY, Stamp, inner_time
from logtriage.model import Level, Line, Source
from logtriage.regex import regex

_JSON_LIMIT = 1_000_000
_NO_COLUMNS = Columns()
# A progress bar is not ended by a line end, so that a record of the logger can stand right behind it.
_GLUED = regex(r"(?:it/s|s/it)[^\]\n]{0,200}\] ?(?=\[?\d{4}-\d\d-\d\d|\[?\d\d:\d\d:\d\d|\[rank\d|\w+: )")
LABEL_WIDTH, MOST_LABELS = 16, 64
STALE_SECONDS = 60.0  # so long after a rank's last time its words without one are as late as the lines around
_BODY = regex(
    r"\s|$|Traceback \(most|During handling of|The above exception|Original Traceback|[A-Za-z_][\w.]{0,150}"
    r"(?:Error|Exception|Interrupt|Exit|Warning)\b|Exception raised from|frame #\d"
)


def plain(raw: bytes) -> str:
    """The text of a raw line: decoded, without terminal escapes, NULs and line end, at most 64 KiB."""
    return without_escapes(decoded(raw))


def segments(text: str) -> list[str]:
    """The parts of a line that rules match on, each a line of its own as the writer meant it.

    Parts are separated by carriage returns; a JSON record gives the lines of its message and exception
    and, last, its other fields as `key=value`.
    """
    position = text.find('{"')
    if 0 <= position < 200 and text.rstrip().endswith("}"):
        record = read_json(text[position:])
        if record is not None:
            parts = record.message.split("\n")
            return [part for part in [*parts, record.extra] if part] or [text]
    if (said := message_of(text[:65_536])) is not None:
        return [part for part in said.split("\n") if part] or [text]
    if (inner := exported(text)) is not None:
        return segments(inner)
    if "\r" not in text:
        return [text]
    return [part for part in text.split("\r") if part.strip()] or [""]


class LineReader:
    """Reads one file's lines in order and keeps its running context: the last time, the open record."""

    def __init__(self, source: Source, layout: Layout) -> None:
        self._source = source
        self._layout = layout
        self._columns = layout.columns
        self._year = layout.year
        self._last: float | None = None
        self._last_of: dict[int, float] = {}
        self._next_line: int | None = None
        self._stamps = 0  # lines that told a time of their own
        self._labels: set[str] = set()  # what stood before a time inside a line
        self._record_rank: int | None = None
        self._in_record = False

    def read_block(self, data: bytes, first_line: int, offset: int) -> list[Line]:
        """Read whole lines that follow each other; a last piece without line end counts as a line.

        Behind a gap, the lines before the first one with a time have its time, not that of before the gap.
        """
        is_behind_gap = self._next_line not in (None, first_line)
        stamps, undated = self._stamps, 0
        pieces = data.split(b"\n")
        if pieces[-1] == b"":
            pieces.pop()
        lines: list[Line] = []
        printed = {start: (stop, record) for start, stop, record in printed_records(pieces, self._year)}
        until = 0
        for index, piece in enumerate(pieces):
            line = self.read(piece, first_line + index, offset)
            if index in printed:
                until, record = printed[index]
                writer = self._written(record)
            if index < until:
                is_own = index in printed and until == index + 1  # a record of one line
                message = writer.message if is_own or message_of(line.text) is not None else ""
                line = replace(
                    writer, number=line.number, offset=line.offset, text=line.text, message=message
                )
            lines.append(line)
            undated += self._stamps == stamps
            offset += len(piece) + 1
        self._next_line = first_line + len(pieces)
        if is_behind_gap and 0 < undated < len(lines) and (time := lines[undated].time) is not None:
            lines[:undated] = [replace(line, time=time) for line in lines[:undated]]
        return lines

    def _written(self, record: JsonRecord) -> Line:
        """What all lines of a record that is printed over many have in common: writer, time and message."""
        head, source = Head(), self._source
        message, level, stamp, rank, host, pid = self._of_json(record, head)
        rank = self._rank(rank, head, host, pid, message)
        time = self._time(stamp, head, rank)
        return Line(
            source.file, 0, 0, "", message, rank, host or source.host, source.attempt, time, level, pid
        )

    def read(self, raw: bytes, number: int, offset: int) -> Line:
        """Read one line, with or without its line end, that starts at byte `offset` of the file."""
        text = decoded(raw)
        clean = without_escapes(text)
        if "\r" in clean or "/s" in clean or "s/it" in clean:
            head = self._read_parts(clean)
        else:
            head = read_head(clean, self._columns, self._year)
        level = head.level
        message = head.message
        stamp = head.stamp
        rank = head.rank
        host = head.host
        pid = head.pid
        if message.startswith('{"') and message.endswith("}"):
            whole = raw.decode("utf-8", "replace") if len(text) < len(raw) < _JSON_LIMIT else message
            record = read_json(whole[whole.find('{"') :], self._year, with_extra=False)
            if record is not None:
                message, level, stamp, rank, host, pid = self._of_json(record, head)
        rank = self._rank(rank, head, host, pid, message)
        time = self._time(stamp, head, rank)
        if time is None and stamp is None:
            time = self._inherited(clean, message, rank)
        source = self._source
        host = host or source.host
        return Line(source.file, number, offset, text, message, rank, host, source.attempt, time, level, pid)

    def _read_parts(self, clean: str) -> Head:
        """Read a line of several parts: the first gives the writer, the last one with a time the time."""
        parts = [part for part in clean.split("\r") if part.strip()] or [""]
        if len(parts) == 1 and not (glued := _GLUED.search(parts[0])):
            return read_head(parts[0], self._columns, self._year)
        if glued := _GLUED.search(parts[-1]):
            tail = parts.pop()
            parts += [tail[: glued.end()].rstrip(), tail[glued.end() :]]
        first = read_head(parts[0], self._columns, self._year)
        messages = [first.message]
        for part in parts[1:-4]:
            messages.append(part)
        for part in parts[max(1, len(parts) - 4) :]:
            head = read_head(part, self._columns, self._year)
            messages.append(head.message)
            first.stamp = head.stamp or first.stamp
            first.level = head.level or first.level
            first.rank = head.rank if head.rank is not None else first.rank
            first.host = head.host or first.host
            first.pid = head.pid if head.pid is not None else first.pid
        first.message = "\n".join(messages)
        return first

    def _of_json(
        self, record: JsonRecord, head: Head
    ) -> tuple[str, Level | None, Stamp | None, int | None, str | None, int | None]:
        inner = read_head(record.message, _NO_COLUMNS, self._year)
        rank = record.rank if record.rank is not None else inner.rank
        pid = record.pid if record.pid is not None else inner.pid
        if record.process is not None:
            if self._layout.process_is_rank:
                rank = record.process if rank is None else rank
            elif pid is None:
                pid = record.process
        if rank is None:
            head.local = record.local if record.local is not None else inner.local
        return (
            inner.message[:65_536],
            record.level or inner.level or head.level,
            head.stamp or record.stamp or inner.stamp,
            rank if rank is not None else head.rank,
            record.host or inner.host or head.host,
            pid,
        )

    def _rank(
        self, rank: int | None, head: Head, host: str | None, pid: int | None, message: str
    ) -> int | None:
        """The writer's global rank, from the line itself, the file, or the record that it continues."""
        layout = self._layout
        if rank is None and head.local is not None and not (layout.is_of_hosts and head.host):
            rank = self._global(head.local)
        if rank is None and pid is not None and layout.writers:
            rank = layout.writers.get((host or "", pid))
        if rank is not None:
            if "process group" in head.styles and self._source.rank is not None:
                rank = self._source.rank
            self._record_rank = rank
            begins = "Traceback (most recent call last)" in message
            begins = begins or head.level in (Level.ERROR, Level.CRITICAL)
            # Ray labels every line of an actor: what has no label is the driver's.
            self._in_record = begins and "ray" not in head.styles
            return rank
        if self._source.rank is not None:
            return self._source.rank
        if self._in_record:
            if head.stamp is None and head.level is None and _BODY.match(message):
                return self._record_rank
            self._in_record = False
        return None

    def _global(self, local: int) -> int:
        layout, source = self._layout, self._source
        if layout.rank_offset is not None:
            return local + layout.rank_offset
        if source.rank is not None:
            return source.rank
        if source.node_rank is not None and layout.ranks_per_node is not None:
            return source.node_rank * layout.ranks_per_node + local
        return local

    def _time(self, stamp: Stamp | None, head: Head, rank: int | None) -> float | None:
        """The stamp on the UTC axis; also remembers it for the lines that follow."""
        if stamp is None:
            return None
        seconds = self._seconds(stamp)
        if stamp.kind == "monotonic":
            if self._layout.boot is None:
                return None
            seconds += self._layout.boot
        elif not stamp.has_date:
            seconds = self._with_date(seconds)
        elif not stamp.has_year and self._last is not None and abs(seconds - self._last) > 183 * DAY:
            # The year ended while the job ran.
            turn = 365 * DAY if seconds < self._last else -365 * DAY
            if abs(seconds + turn - self._last) < 30 * DAY:
                seconds += turn
        self._last = seconds
        self._stamps += 1
        if rank is not None:
            self._last_of[rank] = seconds
        return seconds

    def _seconds(self, stamp: Stamp) -> float:
        is_local = stamp.east and stamp.east == self._layout.local_zone
        return stamp.seconds + (stamp.east if is_local else 0.0)  # as the lines around it, which name no zone

    def _with_date(self, clock: float) -> float:
        """A time of day with the date of the time before it; the clock may have passed midnight."""
        last = self._last
        if last is None:
            return (self._layout.day or 0.0) + clock
        seconds = last // DAY * DAY + clock
        if seconds < last - DAY / 2:
            return seconds + DAY
        return seconds - DAY if seconds > last + DAY / 2 and seconds - DAY >= 0 else seconds

    def _inherited(self, clean: str, message: str, rank: int | None) -> float | None:
        """The time of a line without a prefix of time: a date inside it, else that of the line before."""
        last = self._last
        stamp = inner_time(clean[:400], year=self._year) if ":" in clean else None
        seconds = self._seconds(stamp) if stamp is not None and (stamp.has_year or self._year) else None
        if stamp is not None and seconds is not None and (last is None or abs(seconds - last) < 1.5 * DAY):
            if not self._layout.is_timed or self._leads(clean, stamp):
                self._last = seconds
            return seconds
        own = self._last_of.get(rank) if rank is not None and _BODY.match(message) else None
        if own is not None and (last is None or last - own <= STALE_SECONDS):
            return own  # it goes on with what that rank wrote there
        return last

    def _leads(self, clean: str, stamp: Stamp) -> bool:
        """Whether a time inside a line is that of the line: a short word stands before it, as in others.

        `(mon) 2026-02-01T10:00:00 gpu7 up` dates the bare lines below it, other than what mentions a time.
        """
        label = clean[: stamp.start]
        if len(label) > LABEL_WIDTH or not label.strip() or (self._last or 0.0) > stamp.seconds:
            return False
        known = label in self._labels
        if len(self._labels) < MOST_LABELS:
            self._labels.add(label)
        return known
