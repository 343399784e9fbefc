"""How one file's lines are built, learned from samples of it.

Some prefixes look like ordinary text (`3: `, `[3]:`, `node-a: `, `rank 3 …`); whether they name the
writer can only be told from many lines together. What is learned here does not change while a file is
read, so that pieces of a file can be read apart.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from logtriage.intake.clocks import boot_anchor
from logtriage.intake.exports import host_column
from logtriage.intake.json_lines import read_json
from logtriage.intake.labels import PREPENDED, Columns, Head, bar_labels, counts_other
from logtriage.intake.levels import level_named
from logtriage.intake.place_labels import place_labels
from logtriage.intake.prefixes import BARE_HOST, RANK_NAME, RANK_WORD, read_head
from logtriage.intake.text import decoded, without_escapes
from logtriage.intake.times import DAY, Stamp, inner_time
from logtriage.model import Source, SourceRole
from logtriage.regex import regex

MOST_LINES = 6000
_PERMISSIVE = Columns()

_SRUN = regex(r" {0,5}(\d{1,6}):(?: +\S|$)")
_SRUN_RANK = regex(r" {0,5}(\d{1,6}): +\[rank(\d{1,6})\]:")
_TEE_NUMBER = regex(r"(?:\[[^\]]{1,60}\]:?)?\[(\d{1,5})\]:(?=.*\S)")
_HOST_LABEL = regex(r"([A-Za-z0-9][\w.-]{1,99}):(?: |$)")
_SYSLOG_HOST = regex(r" ([\w.:-]{1,100}) (?!\d+:)[\w./@()-]{1,100}(?:\[\d{1,10}\])?: ")
# What pdsh and DeepSpeed's runner say of the hosts whose output they gather, each behind its name.
_PDSH = regex(
    r"(?:\bpdsh@[\w.-]{1,100}: |Running on the following workers: )([\w.-]{1,100}(?:,[\w.-]{1,100}){0,999})"
)
_NO_HOST = regex(
    r"(?i)(?:.*(?:error|exception|warning|interrupt)|debug|info|warn|critical|fatal|error|note|usage|srun|slurmstepd"
    r"|salloc|sbatch|step|epoch|iter|iteration|loss|line|file|time|total|train|eval|step-?\d+|epoch-?\d+|wandb"
    r"|.*\.(?:py|cpp|cc|cu|h|c|sh|go|rs))$"
)
_RAY_WORKER = regex(r"\bip=([\w.:-]{1,60}), pid=(\d{1,10})\) world_rank=(\d{1,6})")
_OWN_WORLD_RANK = regex(r"(?:\w{1,40}[ :]{1,2})?world_rank=(\d{1,6})\b")  # behind the label of a Ray worker
_COMM = regex(r"\bcomm 0x[0-9a-f]+ rank (\d{1,6}) nranks (\d{1,6})\b")


@dataclass(frozen=True, slots=True)
class Layout:
    """What is known of a file before its lines are read one by one.

    `ranks_per_node` and `rank_offset` turn a local rank into a global one. `year` completes times without
    a year, `day` (seconds since 1970 at a midnight) times without a date, `boot` (seconds since 1970 at
    the start of the machine) the kernel's clock; each is None where neither file nor caller tells it.
    `local_zone` is the zone (seconds east) that some lines name behind a clock that others give bare;
    `is_zoned` says that every time of day was given with its zone, so that all are of UTC.
    """

    columns: Columns = field(default_factory=Columns)
    styles: frozenset[str] = frozenset()  # rank and host prefixes that were seen
    is_json: bool = False
    is_cri: bool = False
    is_timed: bool = False  # a good part of the lines begins with a time of its own
    ranks: frozenset[int] = frozenset()
    ranks_per_node: int | None = None
    rank_offset: int | None = None
    is_of_hosts: bool = False  # several hosts say local ranks there: such a number alone is no rank
    process_is_rank: bool = False  # the JSON field "process" counts ranks, not processes
    writers: Mapping[tuple[str, int], int] = field(default_factory=dict)  # (host or "", pid) → rank
    year: int | None = None
    day: float | None = None
    boot: float | None = None
    local_zone: float | None = None
    is_zoned: bool = False


def completed(layouts: Sequence[Layout]) -> list[Layout]:
    """The layouts of a job's files, where a year or a day that one lacks is taken from the others.

    The year is the commonest one, the day the first; without this, times of day alone are counted from
    1970-01-01, and may not be compared with those of other files.
    """
    years = Counter(layout.year for layout in layouts if layout.year is not None)
    year = years.most_common(1)[0][0] if years else None
    day = min((layout.day for layout in layouts if layout.day is not None), default=None)
    return [
        replace(
            layout,
            year=year if layout.year is None else layout.year,
            day=day if layout.day is None else layout.day,
        )
        for layout in layouts
    ]


def learn_layout(
    source: Source, samples: Sequence[bytes], *, year: int | None = None, most_lines: int = MOST_LINES
) -> Layout:
    """Learn how a file's lines are built from pieces of it, the head and the tail as a rule.

    Of each piece at most about `most_lines` are read, evenly thinned.
    """
    texts = _lines(samples, most_lines)
    heads = [read_head(text, _PERMISSIVE, year) for text in texts]
    columns = _columns(source, texts, heads)
    if columns != _PERMISSIVE:
        heads = [read_head(text, columns, year) for text in texts]
    styles = Counter(style for head in heads for style in head.styles)
    stamps = [head.stamp for head in heads if head.stamp is not None]
    years: Counter[int] = Counter()
    day: float | None = None
    for stamp in stamps:
        if stamp.has_year:
            years[_year_of(stamp.seconds)] += 1
        if stamp.has_date and day is None and (stamp.has_year or year is not None):
            day = stamp.seconds // DAY * DAY
    records = [read_json(head.message, year) for head in heads if head.message.startswith('{"')]
    found = [record for record in records if record is not None]
    for record in found:
        if record.stamp is not None and record.stamp.has_year:
            years[_year_of(record.stamp.seconds)] += 1
            day = record.stamp.seconds // DAY * DAY if day is None else day
    told = [*stamps, *(record.stamp for record in found if record.stamp is not None)]
    clocks = [stamp for stamp in told if stamp.kind != "monotonic"]
    local_zone = _local_zone(_with_said_times(texts, heads))
    processes = {record.process for record in found if record.process is not None}
    ranks = {head.rank for head in heads if head.rank is not None}
    ranks |= {record.rank for record in found if record.rank is not None}
    locals_ = {head.local for head in heads if head.local is not None}
    offsets = Counter(
        head.rank - head.local for head in heads if head.rank is not None and head.local is not None
    )
    offset = offsets.most_common(1)[0][0] if offsets else None
    speakers = {head.host for head in heads if head.local is not None and head.rank is None}
    return Layout(
        columns=columns,
        styles=frozenset(styles),
        is_json=len(found) * 2 > len(texts),
        is_cri=sum(" stdout F " in text[:60] or " stderr F " in text[:60] for text in texts) * 2 > len(texts),
        is_timed=len(stamps) * 5 > len(texts),
        ranks=frozenset(ranks),
        ranks_per_node=max(locals_) + 1 if len(locals_) > 1 else None,
        rank_offset=offset if offset is not None and offset >= 0 else None,
        is_of_hosts=len(speakers - {None}) > 1,
        process_is_rank=0 in processes and max(processes) < 100_000,
        writers=_writers(heads),
        year=year if not years else years.most_common(1)[0][0],
        day=day,
        boot=boot_anchor(texts, year=year) if _is_kernel(source, heads) else None,
        local_zone=local_zone,
        is_zoned=bool(clocks) and local_zone is None and all(stamp.has_zone for stamp in clocks),
    )


# What `date` says in a wrapper's sentence: `# Started at Sat Jan 31 08:00:00 EST 2026`.
_SAID_BY_DATE = regex(r"\d\d:\d\d:\d\d [A-Z]{3,4} \d{4}\b")


def _with_said_times(texts: Sequence[str], heads: Sequence[Head]) -> list[Stamp]:
    """The times of lines, and of those without one what their words say with a zone."""
    stamps = []
    for text, head in zip(texts, heads, strict=True):
        stamp = head.stamp
        if stamp is None and _SAID_BY_DATE.search(text[:400]) is not None:
            said = inner_time(text[:400])
            stamp = said if said is not None and said.has_zone else None
        if stamp is not None:
            stamps.append(stamp)
    return stamps


SAME_CLOCK_SECONDS = 120.0  # neighbours of one clock are not further apart, as a rule; zones are


def _local_zone(stamps: Sequence[Stamp]) -> float | None:
    """The zone behind some of a file's times whose other times are of the same clock, but bare.

    Two loggers of one program can differ in that. What they wrote side by side tells that it is one clock.
    """
    zones: Counter[float] = Counter()
    apart = 0
    for one, other in itertools.pairwise(stamps):
        zoned, bare = (one, other) if one.has_zone else (other, one)
        if not zoned.east or bare.has_zone or not (bare.has_date and bare.has_year):
            continue
        passed = (bare.seconds - zoned.seconds - zoned.east) * (1 if one is zoned else -1)
        if abs(passed) <= SAME_CLOCK_SECONDS:
            zones[zoned.east] += 1
        # Hours may pass in silence, but no clock goes back.
        elif passed < 0 or abs(zoned.seconds - bare.seconds) <= SAME_CLOCK_SECONDS:
            apart += 1
    zone, count = next(iter(zones.most_common(1)), (None, 0))
    return zone if count > apart else None


def _lines(samples: Sequence[bytes], most: int) -> list[str]:
    """The lines of the samples that are not blank, evenly thinned to a bounded number."""
    texts: list[str] = []
    for sample in dict.fromkeys(samples):  # of a small file, head and tail are the same
        pieces = sample.split(b"\n", MOST_LINES * 4)[: MOST_LINES * 4]
        for piece in pieces[:: len(pieces) // most + 1]:
            text = without_escapes(decoded(piece))
            if text.strip():
                texts.append(text.rsplit("\r", 1)[-1])
    return texts


def _year_of(seconds: float) -> int:
    return 1970 + int(seconds // (365.2425 * DAY))


def _is_kernel(source: Source, heads: Sequence[Head]) -> bool:
    return source.role is SourceRole.KERNEL or any(
        head.uptime is not None or (head.stamp is not None and head.stamp.kind == "monotonic")
        for head in heads
    )


MOST_OF_A_NODE = 8  # processes, mostly: a node whose first has this number has those of others before it


def _tabs_count_ranks(heads: Sequence[Head]) -> bool:
    """Whether the numbers behind hosts between tabs are too high, on some host, to be a node's own."""
    first: dict[str | None, int] = {}
    for head in heads:
        if "tab number" in head.styles and head.local is not None:
            first[head.host] = min(head.local, first.get(head.host, head.local))
    return max(first.values(), default=0) >= MOST_OF_A_NODE


def _columns(source: Source, texts: Sequence[str], heads: Sequence[Head]) -> Columns:
    """Decide which doubtful prefixes the file uses: those that repeat over a good part of its lines."""
    total = len(texts)
    labels = Counter(match[1] for text in texts if (match := _SRUN.match(text)))
    labelled = sum(labels.values())
    traced = any(re.match(r" {0,5}\d{1,6}: (?:Traceback|  File )", text) for text in texts)
    within = [match for text in texts if (match := _SRUN_RANK.match(text))]
    numbers = Counter(match[1] for text in texts if (match := _TEE_NUMBER.match(text)))
    prepended = Counter(int(match[1]) for text in texts if (match := PREPENDED.match(text)))
    hosts = Counter(match[1] for text in texts if (match := _HOST_LABEL.match(text)))
    known = frozenset(
        name
        for name, count in hosts.items()
        if not _NO_HOST.match(name)
        and (name == source.host or (count >= 3 and not name.isdigit() and re.search(r"\d|-", name)))
    )
    # Of a numbered row of hosts, each belongs to it, however little it says.
    shapes = {re.sub(r"\d+", "0", name) for name in known if name != source.host}
    known |= {name for name in hosts if re.sub(r"\d+", "0", name) in shapes}
    if sum(hosts[name] for name in known) * 3 < total:
        known = frozenset(name for name in known if name == source.host)
    told = {name for text in texts if (match := _PDSH.search(text[:2000])) for name in match[1].split(",")}
    known |= told & set(hosts)
    words = sum(bool(RANK_WORD.match(head.message)) for head in heads)
    columned = sum(head.stamp is not None and bool(RANK_WORD.match(head.message)) for head in heads)
    names = Counter(match[1] for head in heads if (match := RANK_NAME.match(head.message)))
    syslog = [
        match[1]
        for text, head in zip(texts, heads, strict=True)
        if head.stamp is not None
        and head.stamp.kind == "iso"
        and (match := _SYSLOG_HOST.match(text, head.stamp.end))
        and level_named(match[1]) is None  # `… INFO train: ` is a logger, not a machine
    ]
    stamped = [
        (text, head.stamp)
        for text, head in zip(texts, heads, strict=True)
        if head.stamp is not None and head.stamp.kind == "syslog" and head.host is None
    ]
    bare = Counter(match[1] for text, stamp in stamped if (match := BARE_HOST.match(text, stamp.end)))
    return Columns(
        tab_ranks=_tabs_count_ranks(heads),
        srun_nodes=sum(int(match[1]) != int(match[2]) for match in within) * 2 > len(within),
        # An enumeration counts each number once; a label repeats.
        srun_labels=labelled * 2 >= total and labelled > 0 and (len(labels) * 3 <= labelled or traced),
        # What counts steps or epochs goes up; writers are counted from 0, and each of them writes on.
        prepended=sum(prepended.values()) * 10 >= total * 9
        and len(prepended) > 1
        and set(prepended) == set(range(len(prepended)))
        and min(prepended.values()) >= 3,
        tee_numbers=sum(numbers.values()) >= 2 and sum(numbers.values()) * 4 >= total,
        rank_column=(columned >= 3 and columned * 5 >= total) or (words >= 5 and words * 2 >= total),
        rank_name=sum(names.values()) >= 3 and sum(names.values()) * 4 >= total,
        syslog_host=len(syslog) * 2 > total and len(set(syslog)) * 4 <= len(syslog) + 4,
        bare_hosts=frozenset(bare if _is_column(bare, len(stamped)) else ()),
        host_labels=known,
        bar_labels=bar_labels(texts),
        places=place_labels(texts, counts_other),
        host_value=host_column(texts[0]) if texts else None,
    )


def _is_column(names: Counter[str], lines: int) -> bool:
    """Whether names stand in nearly all of so many lines, each of them in several."""
    count = names.total()
    return count >= 5 and count * 10 >= lines * 9 and len(names) * 4 <= count + 4


def _writers(heads: Sequence[Head]) -> dict[tuple[str, int], int]:
    """Which rank a host's process is: as Ray Train tells, else by the largest communicator it joined or
    by its own words (`rank 3: saved`), if no other process says the same."""
    told: dict[tuple[str, int], int] = {}
    for head in heads:
        if "world_rank=" in head.message and (match := _RAY_WORKER.search(head.message, 0, 400)):
            told[match[1], int(match[2])] = told["", int(match[2])] = int(match[3])
        elif head.pid is not None and (world_rank := _OWN_WORLD_RANK.match(head.message)):
            told[head.host or "", head.pid] = int(world_rank[1])
    if told:
        return told
    largest: dict[tuple[str, int], tuple[int, int]] = {}
    for head in heads:
        if head.host is None or head.pid is None or "nccl" not in head.styles:
            continue
        match = _COMM.search(head.message, 0, 400)
        if match:
            size = int(match[2])
            key = (head.host, head.pid)
            if size > largest.get(key, (0, 0))[0]:
                largest[key] = (size, int(match[1]))
    world = max((size for size, _ in largest.values()), default=0)
    said: dict[tuple[str, int], set[int]] = defaultdict(set)
    for head in heads:
        if head.pid is not None and head.rank is None and (match := RANK_WORD.match(head.message)):
            said[head.host or "", head.pid].add(int(match[1]))
    claims = Counter(rank for ranks in said.values() for rank in ranks)
    own = {key: min(ranks) for key, ranks in said.items() if len(ranks) == 1 and claims[min(ranks)] == 1}
    return own | {key: rank for key, (size, rank) in largest.items() if size == world}
