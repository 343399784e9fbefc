"""An input pipeline that cannot keep up: how long steps waited for data, against how long they took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from logtriage.localize.durations import DATA, WAIT, WORK, timer_tables, timings
from logtriage.localize.progress import Trace, median
from logtriage.localize.scene import Scene
from logtriage.localize.spoken_waits import spoken_wait, told_share
from logtriage.localize.step_blocks import step_blocks
from logtriage.model import JOB_ROLES, Line
from logtriage.regex import regex

# Durations of a whole iteration, waiting for data included.
_WHOLE = regex(r"^(?:time|(?:iter|step|batch)_time|(?:avg_)?batch_cost)$")

DATA_SHARE = 0.3  # of a step spent waiting for data: healthy jobs hide loading behind computing
MOST_POINTS = 400


@dataclass(frozen=True, slots=True)
class Starving:
    """The share of the steps' time that they waited for data, the lines that show it, and how it is told."""

    share: float
    lines: tuple[Line, ...]
    told: str


def starved(traces: Sequence[Trace], scene: Scene) -> Starving | None:
    """A job that waits for data longer than it computes, in most of the steps that it reports."""
    shares = _shares_of_timers(scene)
    waits: list[tuple[float, float, Line]] = []
    for line in (point.line for trace in traces for point in trace.points[:MOST_POINTS]):
        if (step := _waited(_timings(line)) or spoken_wait(line.message)) is not None:
            waits.append((*step, line))
        elif of_input := told_share(line.message):
            shares.append((of_input, line))
    shares += [(waited / whole, line) for waited, whole, line in waits]
    if len(shares) < 4:
        shares += _shares_of_blocks(traces, scene)
    if len(shares) < 4 and (profiled := _profiled(scene)) is not None:
        share, line = profiled
        told = f"the profiler says that {share:.0%} of the training was waiting for data"
        return Starving(share, (line,), told)
    if len(shares) < 4:
        shares = _complaints(traces, scene)
    if len(shares) < 4:
        return None
    typical = median([share for share, _ in shares])
    if typical < DATA_SHARE and (most := _of_one_rank(shares)) is not None:
        typical = most  # who waits for its data lets all others wait
    if typical < DATA_SHARE:
        return _in_the_end(waits) or _in_bursts(waits)
    begun = next(line for share, line in shares if share >= DATA_SHARE)
    shares.sort(key=lambda item: -item[0])
    plainest, *others = (line for _, line in shares[:3])
    lines = tuple(dict.fromkeys((plainest, begun, *others)))[:3]
    told = f"steps spend {typical:.0%} of their time waiting for data"
    return Starving(typical, lines, told)


LEAST_OF_RANK = 8  # steps


def _of_one_rank(shares: Sequence[tuple[float, Line]]) -> float | None:
    """The largest typical share of one file's steps, where that is most of them; of two files at least."""
    files: dict[str, list[float]] = {}
    for share, line in shares:
        files.setdefault(line.file, []).append(share)
    enough = [median(of_file) for of_file in files.values() if len(of_file) >= LEAST_OF_RANK]
    most = max(enough, default=0.0)
    return most if len(files) > 1 and most >= BURST_SHARE else None


# What a step's durations are headed with says of which phase they are, and nothing of what took so long.
_PHASE = regex(r"^(?:train(?:ing)?|time(?:rs?)?|perf(?:ormance)?|stats?)[./](?=[a-z])")


def _waited(told: Mapping[str, float]) -> tuple[float, float] | None:
    """How long a step waited for data, and how long it took, by its named durations."""
    values = {_PHASE.sub("", name): value for name, value in told.items()}
    data = [
        value
        for name, value in values.items()
        if DATA.search(name) and not (WORK.search(name) or _WHOLE.match(name))
    ]
    whole = [value for name, value in values.items() if _WHOLE.match(name)]
    work = [
        value
        for name, value in values.items()
        if WORK.search(name) and not DATA.search(name) and not WAIT.search(name)
    ]
    if {"iter_time", "forward_time", "train_time"} <= values.keys():  # ESPnet's wait for the next batch
        data, whole = [values["iter_time"]], [values["train_time"]]
    if data and whole and max(data) <= max(whole) and max(whole) > 0:
        return max(data), max(whole)
    return (max(data), max(data) + max(work)) if data and work and max(work) > 0 else None


def _timings(line: Line) -> dict[str, float]:
    """The named durations of a step, with what it waited for data where words say that instead of a name."""
    values = timings(line.message)
    if "wait" in line.message and not any(DATA.search(name) for name in values):
        found = _COMPLAINT.search(line.message[:400])
        if found is not None and found["waited"]:
            values["data_wait"] = float(found["waited"])
    return values


LEAST_LATE = 10  # steps with which a job ends, all of which wait
LATE_SHARE, LONGER = 0.5, 1.5  # of their time; and how much longer they take than those before


def _in_the_end(waits: Sequence[tuple[float, float, Line]]) -> Starving | None:
    """Steps that since some time all wait, though those before found their input ready."""
    count = next(
        (n for n, (waited, whole, _) in enumerate(reversed(waits)) if waited < DATA_SHARE * whole), 0
    )
    late, before = waits[len(waits) - count :], waits[: len(waits) - count]
    if count < LEAST_LATE or not before or len({line.file for _, _, line in waits}) > 1:
        return None
    share = median([waited / whole for waited, whole, _ in late])
    if share < LATE_SHARE or median([e[1] for e in late]) < LONGER * median([e[1] for e in before]):
        return None
    told = f"since some time steps spend {share:.0%} of their time waiting for data"
    plainest = max(late, key=lambda each: each[0] / each[1])
    return Starving(share, tuple(dict.fromkeys((plainest[2], late[0][2], late[-1][2]))), told)


LEAST_STEPS = 20  # of which some wait for long and most do not
LEAST_BURSTS = 4
BURST_SHARE = 0.5  # of the time of all steps


def _in_bursts(waits: Sequence[tuple[float, float, Line]]) -> Starving | None:
    """Steps of which every n-th waits for as long as the loader's workers need for n batches.

    Most steps find theirs ready; so the seconds count, not the steps. The first wait starts the workers, and
    one long wait can have a reason of its own.
    """
    since = waits[1:]
    if len(since) < LEAST_STEPS:
        return None
    longest = max(since, key=lambda each: each[0])
    rest = [each for each in since if each is not longest]
    share = sum(waited for waited, _, _ in rest) / sum(whole for _, whole, _ in rest)
    bursts = [each for each in since if each[0] >= BURST_SHARE * each[1] and each[0] >= longest[0] / 4]
    half = since[len(since) // 2][2]
    late = sum(line.file != half.file or line.number >= half.number for _, _, line in bursts)
    if share < BURST_SHARE or len(bursts) < LEAST_BURSTS or not 0 < late < len(bursts):
        return None
    bursts.sort(key=lambda each: -each[0])
    told = f"every few steps one waits {longest[0]:.1f} s for data: {share:.0%} of the time of all steps"
    return Starving(share, tuple(line for _, _, line in bursts[:3]), told)


def _shares_of_blocks(traces: Sequence[Trace], scene: Scene) -> list[tuple[float, Line]]:
    """The same of metrics that stand one a line below their step."""
    shares = []
    for trace in {trace.file: trace for trace in reversed(traces)}.values():
        for block in step_blocks(trace, scene):
            waited = _waited({name: seconds for name, (seconds, _) in block.items()})
            told = max(
                (each for name, each in block.items() if DATA.search(name) and not WORK.search(name)),
                key=lambda each: each[0],
                default=None,
            )
            if waited is not None and told is not None:
                shares.append((waited[0] / waited[1], told[1]))
    return shares


# What a loader says of itself while a step waits for it: `data loading is slow: 20.4 seconds so far`.
_COMPLAINT = regex(
    r"(?i)\b(?:data ?-?load(?:ing|er)s?|loading (?:the )?data|input pipeline|(?:next|data) batch)\b"
    r"[^\n]{0,60}?\b(?:long|slow\w{0,4}|stall\w{0,4}|wait\w{0,4}|starv\w{0,4}|blocked)\b[^\n]{0,40}?"
    r"\b(?P<seconds>\d{1,5}(?:\.\d{1,3})?) ?s(?:ec(?:ond)?s?)?\b"
    # `waited for the next batch: 20.4 s`
    r"|\b(?:wait(?:ed|ing|s)?|block(?:ed|s)|stall(?:ed|s)|starv(?:ed|es)) (?:for|on|by) "
    r"(?:[\w'-]{1,20} ){0,3}?(?:batch(?:es)?|data|samples?|inputs?|data ?-?loaders?)\b[^\n\d]{0,24}?"
    r"\b(?P<waited>\d{1,5}(?:\.\d{1,3})?) ?s(?:ec(?:ond)?s?)?\b"
)
_OF_LOADERS = ("oad", "nput", "batch", "data", "ample")
# What a bar without times says of its steps.
_PACE = regex(r"[ ,](?P<seconds>\d{1,5}(?:\.\d{1,3})?)s/it\b")
LEAST_INTERVALS = 10  # between steps, of which most hold a complaint


def _complaints(traces: Sequence[Trace], scene: Scene) -> list[tuple[float, Line]]:
    """Of the times between steps the share that the program says, between them, it waited for data."""
    shares: list[tuple[float, Line]] = []
    for trace in traces:
        dated = [each.line for each in trace.points if each.line.time is not None]
        bars = [each.line for each in trace.points if _pace(each.line) is not None]
        points = (bars if len(bars) > len(dated) else dated)[:MOST_POINTS]
        at, waited, said = 0, 0.0, None
        for line in scene.lines(trace.file) if len(points) > LEAST_INTERVALS else ():
            if at < len(points) and line.number >= points[at].number:
                took = _took(points[at - 1], points[at])
                if at > 0 and took > 0:
                    shares.append((min(1.0, waited / took), said or points[at]))
                at, waited, said = at + 1, 0.0, None
            elif any(word in line.message for word in _OF_LOADERS):
                found = _COMPLAINT.search(line.message[:400])
                if found is None:
                    continue
                if (told := float(found["seconds"] or found["waited"])) > waited:
                    waited, said = told, line
    return shares if len(shares) >= LEAST_INTERVALS else []


def _pace(step: Line) -> float | None:
    """The seconds that a step takes, as its bar says."""
    found = _PACE.search(step.text[:600]) if "s/it" in step.text else None
    return float(found["seconds"]) if found is not None else None


def _took(before: Line, step: Line) -> float:
    """The seconds from one step to the next: by their times, else by the pace of the bar."""
    if step.time is not None and before.time is not None and step.time > before.time:
        return step.time - before.time
    return _pace(step) or 0.0


_BATCH_TIMERS = ("batch-generator", "batch generator", "batch_input")


def _shares_of_timers(scene: Scene) -> list[tuple[float, Line]]:
    """Of the timers of Megatron, or of DeepSpeed's pipelines, the share of the longest, within which it runs,
    that reading a batch took."""
    shares = []
    for table in islice(timer_tables(scene), MOST_POINTS):
        waited = next((table[name] for name in _BATCH_TIMERS if name in table), None)
        longest = max(seconds for seconds, _ in table.values())
        if waited is not None and len(table) > 1 and longest > 0:
            shares.append((waited[0] / longest, waited[1]))
    return shares


# Lightning's SimpleProfiler sums up a run: action | mean duration | number of calls | total time | share.
_PROFILED = regex(
    r"^[\s|]{0,8}(?P<action>[\w\[\]./ -]{3,120}?)\s{0,99}\|\s{0,40}(?:[\d.]{1,20}(?:e-?\d+)?|-)\s{0,40}"
    r"\|\s{0,40}(?P<calls>\d{1,12})\s{0,40}\|\s{0,40}(?P<total>\d{1,12}(?:\.\d{1,12})?)\s*\|"
)
_FETCHES = ("train_dataloader_next", "get_train_batch", "fetch_next_train_batch")
PROFILED_CALLS = 20  # of fewer the first, which starts the workers, is most
PROFILED_SHARE = 0.5


# The profiler of TensorFlow and JAX judges a step: by its percentages, whatever it calls them.
_INPUT_BOUND = regex(
    r"\bYour program is (?:HIGHLY|MODERATELY) input-bound because (?P<percent>\d{1,3}(?:\.\d{1,4})?) ?%"
)


def _profiled(scene: Scene) -> tuple[float, Line] | None:
    """The share of its training that a profiler says was spent on data, if it is most of it."""
    for reading in scene.readings:
        for line in reading.lines:
            judged = _INPUT_BOUND.search(line.text[:400]) if "input-bound" in line.text else None
            if judged is not None and (share := float(judged["percent"]) / 100) >= DATA_SHARE:
                return min(1.0, share), line
        whole = 0.0
        for line in reading.lines if reading.source.role in JOB_ROLES else ():
            row = _PROFILED.match(line.message[:400]) if line.message.count("|") >= 3 else None
            if row is None:
                continue
            total = float(row["total"])
            if row["action"].endswith("run_training_epoch"):
                whole = total
            is_fetched = row["action"].endswith(_FETCHES) and int(row["calls"]) >= PROFILED_CALLS
            if is_fetched and PROFILED_SHARE * whole <= total <= whole > 0:
                return total / whole, line
    return None
