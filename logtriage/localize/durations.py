"""What lines say of how long things took: named durations, and whose they are.

Programs print their times in many forms: on each rank's own lines (`step 7 | data 2.1ms compute 610.9ms`,
DeepSpeed's `time (ms) | fwd_microstep: 3.1 | …`), in JSON records, or as a table that one rank prints of all
(Megatron's `times across ranks (ms)`, NVIDIA's straggler reports). All become one kind of record here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from logtriage.localize.duration_tables import cells, columns, is_heading
from logtriage.localize.rank_lists import listed_times
from logtriage.localize.rosters import HOST_WORD, MOST_RANKS, RANGE_FIRST, is_host
from logtriage.localize.scene import Scene
from logtriage.localize.topology import Topology
from logtriage.model import JOB_ROLES, Line
from logtriage.regex import regex
from logtriage.rulebank.matcher import without_digits

_TIMING = regex(
    r"(?P<name>(?:[A-Za-z]{2,12} (?=[Tt]ime\b)|[Ww]ait(?:ing|ed|s)? (?:for|on) (?:the )?"
    r"(?=(?:others?|peers?|ranks|all|everyone|machines|hosts|nodes|workers)\b))?"
    r"[A-Za-z][A-Za-z0-9_+/.-]{0,38}?)"
    r"(?: ?\((?P<named_unit>ms|s|sec|seconds|t)\))?\s*[:=]?\s*"
    r"(?P<value>\d+(?:\.\d+)?(?:e[-+]?\d{1,3})?)\s*(?P<unit>ms|msec|milliseconds|s|sec|secs|seconds)?\b(?![-:]\d)"
)
# Programs print `data 0.2 compute 610.9 comm 281.2` without a unit: such names mean durations anyhow.
_DURATION = regex(
    r"^(?:time|(?:iter|step|batch)_(?:time|cost)|(?:avg_)?(?:batch|reader|data)_cost"
    r"|data(?:_(?:wait|load(?:ing)?|fetch(?:ing)?))?|(?:data_?loader|loader|input)_(?:wait|time)"
    r"|fwd_bwd|forward_backward|compute|comp|comm|wait|load|forward|backward|fwd|bwd|optim\w*|train"
    r"|(?:fwd|bwd|step|bwd_inner|bwd_allreduce)_microstep)(?:[_ ]?time)?$"
    r"|^t_(?!max|mult|min|cur|init|end|start|warm|total)[a-z]\w{2,20}$"  # `t_fwd=3.1`: what took so long
)
# So do several such words together, of which one at least is work or waiting: `forward-backward-compute`.
_COMPOSED = regex(
    r"^(?=.{0,40}(?:fwd|bwd|forward|backward|comp|comm|wait|copy|h2d|d2h|all_?reduce))"
    r"(?:(?:time|iter|step|batch|cost|data|load(?:er|ing)?|fetch|reader|input|wait|fwd|bwd|forward|backward"
    r"|comp(?:ute)?|comm|optim(?:izer)?|inner|all_?reduce|reduce|scatter|gather|h2d|d2h|copy|kernel"
    r"|collectives?|in|for|sync|queue)(?:[_-]|$)){2,6}$"
)
_SUFFIX = regex(r"_(ms|msec|s|sec|secs|seconds)$")
_QUOTES = str.maketrans("", "", "\"'")  # around the names of records: JSON's, and what a dict prints
_OF_EACH = regex(r"(?:[\w.-]{1,30}/){0,3}([a-z]\w{1,30}?)_per_(?:batch|step|iter(?:ation)?)$")
WAIT = regex(r"wait|comm|all.?reduce|sync|barrier|allgather|reduce", re.IGNORECASE)
DATA = regex(r"data|load|fetch|input|reader|batch.?gen", re.IGNORECASE)
WORK = regex(
    r"comp|forward|backward|fwd|bwd|step|iter|train|optim|model|copy|h2d|d2h|upda?t|(?<![a-z])work(?![a-z])",
    re.IGNORECASE,
)


def timings(text: str) -> dict[str, float]:
    """The named durations of one line, in seconds (or in the line's own unit where it names none)."""
    found: dict[str, float] = {}
    for match in _TIMING.finditer(text[-2_000:].translate(_QUOTES)):
        unit = match["unit"] or match["named_unit"]
        name = match["name"].strip(" -._").lower().replace(" ", "_")
        if unit == "t":  # open_clip's `Data (t): 5.9 Batch (t): 6.5`
            name, unit = f"{name}_time", "s"
        if (of_each := _OF_EACH.match(name)) is not None:  # `time/data_wait_per_batch`
            name = of_each[1]
        if unit is None and (suffix := _SUFFIX.search(name)):
            name, unit = name[: suffix.start()], suffix[1]
        if unit is None:
            if not _DURATION.match(name) and not _COMPOSED.match(name):
                continue
            unit = "s"
        value = float(match["value"]) * (0.001 if unit.startswith("m") else 1.0)
        found.setdefault(name, value)
    return found


@dataclass(frozen=True, slots=True)
class Duration:
    """How long one thing took on one rank, once. `kind` tells apart what is not to be compared."""

    rank: int
    kind: tuple[str, str]  # the line without its numbers, and the field's name
    seconds: float
    line: Line


# A row of a table names the rank that it is about, first of all.
_LOGGER = regex(r"^[A-Za-z_][A-Za-z_.-]{0,40}: +")
_ROW = regex(r"^\W{0,8}(?:\[[\w. -]{1,40}\]\s*)?[Rr](?:ank)?[ _=:#]{0,3}(?P<rank>\d{1,7})\b(?P<rest>.*)$")
# Below a heading whose first column is the rank, a number alone names it.
_NUMBER_ROW = regex(r"^[\s|]{0,12}(?P<rank>\d{1,7})\s*[|,\t](?P<rest>.*)$")
_RANK_FIRST = regex(r"(?i)^\W{0,8}(?:global[ _])?rank\b")
_NAMED = regex(r"(?i)\brank[ =:_]{0,2}(\d{1,7})\b")
_MEASURED = regex(
    r"(?i)_ms\b|\bms\b|\(ms\)|\d ?m?s\b|sec|time|wait|compute|fwd|bwd|forward|backward|microstep"
)
_FIELD = regex(r'"([\w./-]{1,60})"\s{0,4}:')
_STRIPPED = str.maketrans("", "", "0123456789.\"'")
MOST_DURATIONS = 400_000
HEADING_LINES = 3  # a heading stands right above its table


# Megatron's timers: `    batch-generator ......: (4099.36, 4288.46)` (the least and most of all ranks) in
# rows below a heading, or `time (ms) | forward-compute: 4766.8 | batch-generator: 4099.4` in one line.
_TIMER_ROW = regex(
    r"^\s*(?P<name>[A-Za-z][\w /+-]{1,60}?) ?\.{3,}: ?\(?(?P<least>\d+\.?\d*)(?:, (?P<most>\d+\.?\d*)\))?\s*$"
)
_TIMER_LINE = regex(r"^\s*time \(ms\) \| ")
_TIMER = regex(r"\| (?P<name>[A-Za-z][\w /+-]{1,60}?): (?P<value>\d+\.?\d*)")


def timer_tables(scene: Scene) -> Iterator[dict[str, tuple[float, Line]]]:
    """The timers that one rank prints of a step, in the table's own unit (the most of all ranks)."""
    for reading in scene.readings:
        if reading.source.role not in JOB_ROLES:
            continue
        rows: dict[str, tuple[float, Line]] = {}
        for line in reading.lines:
            row = _TIMER_ROW.match(line.message[:200]) if "...:" in line.message else None
            if row is not None and row["name"] not in rows:
                rows[row["name"]] = float(row["most"] or row["least"]), line
                continue
            if rows:
                yield rows
                rows = {}
            if row is not None:
                rows[row["name"]] = float(row["most"] or row["least"]), line
            elif _TIMER_LINE.match(line.message[:100]):
                yield {
                    each["name"]: (float(each["value"]), line)
                    for each in _TIMER.finditer(line.message[:4000])
                }
        if rows:
            yield rows


# A row, or a field, that names the host that it is about.
_HOST_ROW = regex(rf"^\W{{0,8}}({HOST_WORD})(?:\]?:| \||,|\s)")
_HOST_FIELD = regex(rf"\b(?:host(?:name)?|node(?:name)?)[\"']?[=:] ?[\"']?({HOST_WORD})(?![\w.-])")


def _host_told(text: str, heading: str, topology: Topology) -> str | None:
    """The host that a line of times is about: by a field, or first in a row where it is known to be one."""
    if (said := _HOST_FIELD.search(text[:400])) is not None:
        return said[1]
    row = _HOST_ROW.match(text[:160])
    if row is None or not is_host(row[1]):
        return None
    return row[1] if row[1] in topology.hosts or _OF_HOSTS.search(heading) else None


# `host ml-3 cuda:5`: who reports is a device of a machine.
_DEVICE = regex(
    rf"\b(?:host(?:name)?|node(?:name)?|on)[\"']?[=: ] ?[\"']?({HOST_WORD})[\"']?[ ,/|:]{{1,3}}"
    r"(?:cuda|gpu|device|hip|npu|xpu|local[ _]?rank)[=:# ]{0,2}(\d{1,2})\b"
)
_VALUES = regex(r"[\s|:,(]\d+(?:\.\d+)?(?=[\s|,;/)]|$)")
_OF_HOSTS = regex(r"(?i)\b(?:host|node|machine)s?\b")


def durations(scene: Scene, topology: Topology, hosts: dict[str, int] | None = None) -> Iterator[Duration]:
    """All durations that lines tell of a known rank, in the order of files and lines.

    With `hosts`, those that lines tell of a host: `rank` then is its number, which is put there.
    """
    timed: dict[str, bool] = {}  # shapes of lines: do they hold a duration?
    listing: dict[str, bool] = {}  # … or lists of all ranks' durations?
    forms: dict[str, str] = {}
    count = 0
    for reading in scene.readings:
        if reading.source.role not in JOB_ROLES:
            continue
        heading, heading_line = "", 0
        for line in reading.lines:
            is_record = line.text.lstrip().startswith("{")
            text = line.text if is_record else line.message
            shape = without_digits(text[:1000])
            known = timed.get(shape)
            if known is None:
                bare = _LOGGER.sub("", text[:200])
                of_host = hosts is not None and _HOST_ROW.match(bare) is not None
                known = timed[shape] = (
                    _ROW.match(bare) is not None
                    or _NUMBER_ROW.match(bare) is not None
                    or (of_host and _VALUES.search(bare) is not None)
                    or (_MEASURED.search(text) is not None and bool(timings(text)))
                )
            if hosts is None and (of_all := listing.get(shape, True)) and "rank" in text:
                of_all = False
                whole = " ".join(shape.translate(_STRIPPED).split())[:120]
                for name, values in listed_times(text):
                    of_all = True
                    yield from (Duration(n, (whole, name), value, line) for n, value in enumerate(values))
                listing[shape] = of_all
                if of_all:
                    continue
            if not known:
                if is_heading(text):
                    heading, heading_line = _LOGGER.sub("", text.strip()), line.number
                continue
            text = _LOGGER.sub("", text) if not is_record else text
            count += 1
            if count > MOST_DURATIONS:
                return
            row = _ROW.match(text)
            if row is None and line.number - heading_line <= HEADING_LINES and _RANK_FIRST.match(heading):
                row = _NUMBER_ROW.match(text)
            rank = int(row["rank"]) if row is not None else topology.rank(line)
            several = RANGE_FIRST.match(text[:200]) if row is None and "anks" in text[:200] else None
            if hosts is None and several is not None:
                rank = int(several["first"])
            rest = row["rest"] if row is not None else None
            if hosts is not None:
                # Where no line tells a rank, each host's first process speaks for its host.
                told = _host_told(text, heading, topology)
                if (host := told or topology.host(line)) is None:
                    continue
                rank = hosts.setdefault(host, len(hosts))
                shape = shape.replace(without_digits(host), "")
                if told is not None and row is None and (named := _HOST_ROW.match(text[:160])):
                    rest = text[named.end(1) :]
            elif rank is None and (named := _NAMED.search(text[:400])) is not None:
                rank = int(named[1])  # `INFO step 7 rank=13 forward=3.1s wait=0.1s` in a file of many ranks
            elif rank is None and (device := _DEVICE.search(text[:400])) is not None:
                rank = topology.global_rank(device[1], int(device[2]))
            if rank is None:
                continue
            if (form := forms.get(shape)) is None:
                # Of a record its fields alone: their values can name the writer.
                words = " ".join(_FIELD.findall(shape)) if is_record else shape
                form = forms[shape] = " ".join(words.translate(_STRIPPED).split())[:120]
            if rest is not None:
                values, rest = cells(rest)
                names = columns(heading, len(values)) if values else None
                if names is not None and line.number - heading_line <= HEADING_LINES:
                    heading_line = line.number  # the rows of a table carry its heading on
                    for name, value in zip(names, values, strict=True):
                        yield Duration(rank, (form, name), value, line)
            else:
                rest = text
            last = int(several["last"]) if several is not None and hosts is None else rank
            alike = range(rank, last + 1) if last < rank + MOST_RANKS else ()
            for name, value in timings(rest).items():
                yield from (Duration(each, (form, name), value, line) for each in alike)
