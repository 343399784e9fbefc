"""What a framework's own detector of stragglers reports: the slowest rank and the fastest, or scores."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from logtriage.localize.progress import median
from logtriage.localize.scene import Scene
from logtriage.localize.slow import Slowness
from logtriage.model import Line, SourceRole
from logtriage.regex import regex

MOST_LINES = 20_000  # of a job, the last ones


def slow_by_reports(scene: Scene) -> Slowness | None:
    """The ranks that the detector of their framework shows to be slow all along."""
    return (
        _extremes(_holding(scene, "MnEtpt/Rnk"))
        or _warned(_holding(scene, *_REPORT))
        or _named(_holding(scene, *_WORDS))
    )


def with_reports(found: Slowness | None, scene: Scene) -> Slowness | None:
    """What the ranks' own times show, with what a detector says of the same ranks; or that alone."""
    told = slow_by_reports(scene)
    if found is None or told is None:
        return found or told
    if (found.failure_type, set(found.ranks)) != (told.failure_type, set(told.ranks)):
        return found
    return replace(found, lines=(*told.lines[:1], *found.lines), hosts=found.hosts or told.hosts)


def _holding(scene: Scene, *words: str) -> list[Line]:
    return [
        line
        for reading in scene.readings
        if reading.source.role in (SourceRole.WORKER, SourceRole.MERGED)
        for line in reading.lines
        if any(word in line.text[:4000] for word in words)
    ][-MOST_LINES:]


# Megatron-LM's straggler detector: the least and the most throughput, each with its rank.
_THROUGHPUT = regex(r"MnEtpt/Rnk: ([\d.]{1,12})TF/(\d{1,6}) \| MxEtpt/Rnk: ([\d.]{1,12})TF/\d{1,6}")
REPORTS = 3
RATIO = 1.5  # of the best rank's throughput to the worst one's


def _extremes(lines: Iterable[Line]) -> Slowness | None:
    found: list[tuple[int, float, Line]] = []
    for line in lines:
        if (told := _THROUGHPUT.search(line.text[:4000])) is not None and float(told[1]) > 0:
            found.append((int(told[2]), float(told[3]) / float(told[1]), line))
    slow = [each for each in found[-max(REPORTS, len(found) // 2) :] if each[1] >= RATIO]
    if len(slow) < REPORTS:
        return None
    rank, count = Counter(rank for rank, _, _ in slow).most_common(1)[0]
    if count * 3 < len(slow) * 2:
        return None
    own = [(ratio, line) for each, ratio, line in slow if each == rank]
    factor = median([ratio for ratio, _ in own])
    told_by = tuple(line for _, line in own)
    summary = f"rank {rank} has {1 / factor:.0%} of the throughput of the fastest rank in {count} reports"
    return Slowness("slow.straggler", (rank,), (told_by[0], *told_by[-2:]), factor, summary)


# NVIDIA's resiliency extension: a score of each rank, 1 at best, and a warning below a threshold (0.7).
_WARNING = regex(r"(?i)stragglers?\b.{0,120}Affected ranks: ?[\[{(](?P<ranks>\d[\d, ]{0,2000})?")
_STRAGGLER = regex(r"StragglerId\(rank=(?P<rank>\d{1,6}), node='?(?P<host>[\w.-]{1,253})")
_SCORE = regex(r"\bRank=(?P<rank>\d{1,6}) Node=(?P<host>[\w.-]{1,253}) Score=(?P<score>\d(?:\.\d{1,4})?)\b")
_HEADING = regex(r"GPU (?P<kind>relative|individual) performance:")
_REPORT = ("Affected ranks", " Score=", " performance:")
THRESHOLD = 0.7  # the extension's own, for both of its scores
AGAIN_WELL = 0.9  # what a rank scores that is slow no more


def _warned(lines: Iterable[Line]) -> Slowness | None:
    """The ranks of most of the newer warnings, without those that later scored well."""
    warnings: list[tuple[frozenset[int], Line]] = []
    scores: dict[int, tuple[float, Line]] = {}  # of the last report
    hosts: dict[int, str] = {}
    heading: tuple[str, Line] | None = None
    for line in lines:
        text = line.text[:4000]
        if (row := _SCORE.search(text)) is not None:
            rank, score = int(row["rank"]), float(row["score"])
            scores[rank] = min(scores.get(rank, (score, line)), (score, line), key=lambda each: each[0])
            hosts[rank] = row["host"]
        elif (head := _HEADING.search(text)) is not None:
            if heading is None or head["kind"] in ("relative", heading[0]):  # the first of a report
                scores = {}
            heading = head["kind"], line
        elif (told := _WARNING.search(text)) is not None:
            placed = {int(each["rank"]): each["host"] for each in _STRAGGLER.finditer(text)}
            hosts.update(placed)
            listed = re.findall(r"\d{1,6}", told["ranks"] or "")
            warnings.append((frozenset((*map(int, listed), *placed)), line))
    newer = warnings[len(warnings) // 2 :]
    if not newer:
        return None
    last = newer[-1][1]
    counts = Counter(rank for ranks, _ in newer for rank in ranks)
    named = {rank for rank, count in counts.items() if count * 3 >= len(newer) * 2}
    if heading is not None and heading[1].file == last.file and heading[1].number > last.number:
        named = {rank for rank in named if rank in scores and scores[rank][0] < AGAIN_WELL}
    slow = tuple(sorted(named))
    if not slow:
        return None
    shown = sorted((scores[rank] for rank in slow if rank in scores), key=lambda each: each[0])
    factor = 1 / max(median([score for score, _ in shown]) if shown else THRESHOLD, 0.01)
    first = next(line for ranks, line in warnings if ranks & set(slow))
    told_by = dict.fromkeys((first, last, *(line for _, line in shown[:2])))
    summary = f"the straggler detection names rank {_listed(slow)}: {factor:.1f} times as slow as the fastest"
    where = tuple(dict.fromkeys(hosts[rank] for rank in slow if rank in hosts))
    return Slowness("slow.straggler", slow, tuple(told_by), factor, summary, since=first, hosts=where)


# Monitors of people's own: `straggler detected: rank 5 (cn-3)`, `rank 5 is a straggler`, `slow ranks: [5]`.
# Not `slowest rank: 5`: one of them is always the slowest.
_WORDS = ("traggler", "low rank", "hreshold")
_SAID = regex(
    r"(?i)\b(?:stragglers?|slow)\b(?: (?:detected|found|warning))?[^\w\n]{0,6}(?:(?:is|at|on|global) ){0,2}"
    r"ranks?[ =:]{0,3}[\[{(]?(?P<ranks>\d{1,6}(?:, ?\d{1,6}){0,63})\b"
    r"(?:[\])},]{0,2} ?(?:(?:on |at )?(?:host|node)[ =:]|\(|on )(?P<host>[a-z][\w-]{0,60}\d[\w.-]{0,60}))?"
    r"|\brank[ =:](?P<rank>\d{1,6})\b[^.;\n]{0,40}\b(?:is|was) (?:a |the )?straggler\b"
)


# What a detector holds against its threshold: `Rank 3 (node: cn-3): GPU score 0.47 < threshold 0.70`.
_BEYOND = regex(
    r"(?i)\brank[ =:#]{1,2}(?P<ranks>\d{1,6})\b"
    r"(?:,? ?[(\[]?(?:(?:host|node)[ =:]{1,2}|on )(?P<host>[a-z][\w.-]{0,60}\d[\w.-]{0,60}))?[^.;\n]{0,12}"
    r"\b(?:(?:score|speed|throughput|performance|perf)\b[^;\n]{0,40}(?:<|\bbelow\b|\bunder\b)"
    r"|(?:time|latency|duration|ratio)\b[^;\n]{0,40}(?:>|\babove\b|\bover\b|\bexceeds\b))[^;\n]{0,24}\bthreshold\b"
)


def _named(lines: Iterable[Line]) -> Slowness | None:
    """The ranks that a job's own monitor calls slow again and again, with the hosts that it tells."""
    said: list[tuple[frozenset[int], str | None, Line]] = []
    for line in lines:
        text = line.text[:4000]
        if (told := _SAID.search(text) or _BEYOND.search(text)) is not None:
            ranks = re.findall(r"\d{1,6}", told["ranks"] or told["rank"])
            said.append((frozenset(map(int, ranks)), told["host"], line))
    newer = said[len(said) // 2 :]
    counts = Counter(rank for ranks, _, _ in newer for rank in ranks)
    slow = tuple(sorted(rank for rank, count in counts.items() if count * 3 >= len(newer) * 2))
    own = [(host, line) for ranks, host, line in said if ranks & set(slow)]
    if not slow or len(own) < REPORTS:
        return None
    summary = f"the job's monitor calls rank {_listed(slow)} slow, {len(own)} times"
    shown = tuple(dict.fromkeys((own[0][1], own[-1][1])))
    hosts = tuple(dict.fromkeys(host for host, _ in own if host))
    return Slowness("slow.straggler", slow, shown, 1 / THRESHOLD, summary, since=own[0][1], hosts=hosts)


def _listed(ranks: tuple[int, ...]) -> str:
    return ", ".join(map(str, ranks[:8])) + (", …" if len(ranks) > 8 else "")
