"""Labels in front of each line: `[w-3]`, `[3/8]`, `trainer/3` number the writers, others name hosts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise

from logtriage.localize.rosters import HOST_WORD, is_host
from logtriage.model import Line
from logtriage.regex import regex

_WORDS = regex(r"\[(?:w|worker|proc|process|task|rank|node|host)[-_ ]?:?(\d{1,5})\]")
# Behind the label of a pod and its container, or a time, where that is no name of one process.
_WORDS_BEHIND = regex(
    r"(?:[\[(<]?[\w./:,-]{1,80}[\])>]? ){1,3}[\[(](?:[A-Za-z]\w{0,30} )?(?:pid=\d{1,8},? ?)?"
    r"(?:global[_ ]?)?[Rr]ank[-_ =]?:?(\d{1,6})[\])]"
)
# A number here may count anything; only what alternates between 0 and n - 1 counts writers.
_NUMBERED = (
    regex(r"\[(?:[A-Za-z]{1,3}|gpu|GPU|cuda|npu|NPU|xpu|device|core|actor|replica)[-_: ]?(\d{1,5})\]"),
    regex(r"\[(\d{1,5})/\d{1,5}\] "),
    regex(r"[A-Za-z][\w.-]{0,40}?[-_/](\d{1,5})(?: {1,8}\| | [a-z][a-z-]{0,30} |(?<=/\d) |(?<=/\d\d) )"),
    regex(r"[a-z]{1,8}(\d{1,5})> "),
    regex(r"[A-Za-z][\w.-]{0,60} rank[-_ ]?(\d{1,5}): "),
)
_MACHINES = regex(r"(?i)\[?(?:node|host|machine|server|rack)")
SAMPLE = 2_000  # lines
LABEL_WIDTH = 160


def writer_label(lines: Sequence[Line]) -> re.Pattern[str] | None:
    """The pattern of a file's labels, whose group is the writer's number; None where it has none.

    A label repeats and alternates; an enumeration counts each number once, an epoch goes up.
    """
    texts = [line.text[:LABEL_WIDTH] for line in lines[:SAMPLE]]
    for form in (_WORDS, _WORDS_BEHIND):
        found = [label[1] for text in texts if (label := form.match(text)) is not None]
        if len(set(found)) > 1 and len(found) * 3 >= len(texts):
            return form
    if _keys_writers(lines[:SAMPLE]):
        return _KEYED_NUMBER
    if any(line.rank is not None for line in lines[:SAMPLE]):
        return None  # the lines name their ranks themselves
    for pattern in _NUMBERED:
        numbers = [
            int(label[1])
            for text in texts
            if (label := pattern.match(text)) is not None and not _MACHINES.match(text)
        ]
        if len(numbers) * 3 >= len(texts) * 2 and _alternates(numbers):
            return None if any(_says_otherwise(text, pattern) for text in texts) else pattern
    return None


# `pod-3 main peer=17 …`: a key and a number, behind a word or two.
_KEYED_NUMBER = regex(r"(?:[\w./-]{1,80} ){0,2}[A-Za-z]\w{1,15}[=#](\d{1,6}) ")


def _keys_writers(lines: Sequence[Line]) -> bool:
    """Whether nearly all lines begin with a key whose numbers are those of one node's ranks, in turns."""
    found = [_KEYED_NUMBER.match(line.text[:LABEL_WIDTH]) for line in lines]
    numbers = [int(label[1]) for label in found if label is not None]
    if len(numbers) * 10 < len(lines) * 9 or len(labels := Counter(numbers)) < 2:
        return False
    first, size = min(labels), len(labels)
    is_block = max(labels) - first + 1 == size and first % size == 0 and min(labels.values()) >= 3
    known = [(line.rank, label) for line, label in zip(lines, found, strict=True) if line.rank is not None]
    agree = all(label is None or rank == int(label[1]) for rank, label in known)
    return is_block and agree and sum(one != other for one, other in pairwise(numbers)) >= 2 * size


_OWN_RANK = regex(r"[^\[\]]{0,40}\[[Rr]ank[ _:=-]?(\d{1,6})\]")


def _says_otherwise(text: str, label: re.Pattern[str]) -> bool:
    """Whether a rank stands behind a label that has another number: several ranks have that label."""
    if "ank" not in text or (found := label.match(text)) is None:
        return False
    said = _OWN_RANK.match(text, found.end())
    return said is not None and int(said[1]) != int(found[1])


_SAID = regex(
    r"(?:^|[\s-])\[[Rr]ank[ _:=-]?(\d{1,6})\](?!:)"
    r"|\b[Rr]ank[ =:]{1,2}(\d{1,6}),? (?:(?:of|/|world(?:[ _]size)?)[ =:]{1,2}\d|(?:load|sav|writ|read)ing\b)"
)


def said_ranks(lines: Sequence[Line]) -> dict[tuple[str | None, int], int]:
    """Rank by host and process, where a process says in its lines which rank it is, and only ever one.

    Ray labels lines by process; frameworks put `[Rank 5]` into the message behind the label.
    """
    told: dict[tuple[str | None, int], set[int]] = {}
    for line in lines:
        if line.pid is not None and "ank" in line.message and (said := _SAID.search(line.message[:300])):
            told.setdefault((line.host, line.pid), set()).add(int(said[1] or said[2]))
    ranks = {process: next(iter(which)) for process, which in told.items() if len(which) == 1}
    # Of a lone process that says 0, each group of actors has one.
    return ranks if len(set(ranks.values())) == len(ranks) and set(ranks.values()) - {0} else {}


def _alternates(numbers: Sequence[int]) -> bool:
    counts = Counter(numbers)
    if len(counts) < 2 or set(counts) != set(range(len(counts))) or min(counts.values()) < 3:
        return False
    return sum(one != other for one, other in pairwise(numbers)) >= 2 * len(counts)


# Behind a pod's name, kail, kubetail and stern print that of its container; kail its namespace before it.
_HOST_LABEL = regex(
    rf"[\[(<]?(?:[a-z][\w-]{{0,62}}/)?(?P<host>{HOST_WORD})(?:[:/](?P<number>\d{{1,5}})(?:/\d{{1,6}}(?=\]))?)?"
    r"(?:\[[a-z][\w.-]{0,62}\]| (?:› )?[a-z][\w-]{0,62}(?=\]))?"
    r"(?:[\])>]:?(?=\S)|[\])>]:?(?= )|:(?= )| {0,20}\|(?= )| ›(?= )|(?= ))"
)
_CONTAINER = regex(r" (?:› )?([a-z][\w-]{0,62}) ")
# Labels that say both: `cn-3 | rank 9 |`, `(cn-3, rank 9)`, and `rank9@cn-3:`, `[R9|cn-3]`.
_NUMBER = r"[Rr](?:ank)?[ _=:-]?(?P<rank>\d{1,6})"
_PAIRED = (
    regex(rf"[\[(<]?(?P<host>{HOST_WORD})(?: ?[|,/@] ?| ){_NUMBER}(?: ?[\])>|:]){{1,2}}(?=\s|$)"),
    regex(rf"[\[(<]?{_NUMBER} ?[|,/@] ?(?P<host>{HOST_WORD})(?: ?[\])>|:]){{1,2}}(?=\s|$)"),
)


# `[node=cn-3]`, `[pod w-0-3]`, where a label says itself that it names a machine; others may stand before it.
_KEYED = regex(
    r"(?:(?:\[[^\[\]]{1,60}\]|[\w.:-]{1,40}) ){0,3}"
    r"[\[{(](?:agent|host(?:name)?|node(?:name)?|instance|machine|pod(?:_?name)?|replica|vm)"
    r"(?:[=:] ?\"?|[ /](?=[\w.-]{0,60}[-.]\w))"
    r"(?P<host>[A-Za-z0-9][\w.-]{0,100})\"?(?: [\w.-]{1,60}|, ?[\w=\".-]{1,60}){0,3}[\])}](?=[ :])"
)


@dataclass(frozen=True, slots=True)
class HostLabels:
    """Hosts by the words with which a file's lines begin; `[cn-3:17]:` may number the ranks of all hosts."""

    hosts: Mapping[str, str] = field(default_factory=dict)
    counts_ranks: bool = False
    form: re.Pattern[str] = _HOST_LABEL
    ranks_behind: bool = False  # `cn-3: [17] `, where the host was read off already

    @property
    def tells_ranks(self) -> bool:
        """Whether the label that names a host names a rank as well."""
        return "rank" in self.form.groupindex

    def host(self, line: Line) -> str | None:
        """The host that a line's own label names."""
        found = self._label(line)
        return self.hosts.get(found["host"]) if found else None

    def rank(self, line: Line) -> int | None:
        """The rank in the label that names a line's host, or in brackets behind it."""
        if self.ranks_behind and line.host is not None:
            return int(behind[1]) if (behind := _BRACKETED.match(line.message[:12])) else None
        found = self._label(line)
        if found is None or found["host"] not in self.hosts:
            return None
        if self.tells_ranks:
            return int(found["rank"])
        if self.form is _HOST_LABEL and found["number"]:
            return int(found["number"]) if self.counts_ranks else None
        behind = _RANK_BEHIND.match(line.message[:240], found.end())
        return int(behind[1]) if behind else None

    def _label(self, line: Line) -> re.Match[str] | None:
        return self.form.match(line.message[:200]) if self.hosts and line.host is None else None


_WORKER_BEHIND = regex(r" \[(?:(?:worker|task|replica|node|host)[ :=-]?)?(\d{1,5})\]")


def _are_numbered(labels: Sequence[re.Match[str]]) -> bool:
    """Whether each label stands beside a worker's number of its own: `10.0.0.4 [worker:1] …`."""
    behind = [(label[1], _WORKER_BEHIND.match(label.string, label.end())) for label in labels]
    if any(number is None for _, number in behind):
        return False
    pairs = {(word, number[1]) for word, number in behind if number is not None}
    return len(pairs) == len({word for word, _ in pairs}) == len({number for _, number in pairs}) > 1


def constant_label(lines: Sequence[Line]) -> str | None:
    """The one host whose label (in brackets, or with a colon or bar) stands before most lines of a file."""
    texts = [text for line in lines[:SAMPLE] if line.host is None and (text := line.message[:120]).strip()]
    labels = [found for text in texts if (found := _HOST_LABEL.match(text)) and found[0][-1] in ":|])>"]
    hosts = {label["host"] for label in labels}
    if len(labels) * 2 <= len(texts) or len(hosts) != 1:
        return None
    return host if is_host(host := hosts.pop()) else None


def _are_of_pods(labels: Sequence[re.Match[str]]) -> bool:
    """Whether all labels stand in brackets, or before the same container's name."""
    behind = {found[1] if (found := _CONTAINER.match(each.string, each.end())) else None for each in labels}
    return all(each[0][0] in "[(<" for each in labels) or (len(behind) == 1 and None not in behind)


_RANK_BEHIND = regex(r"(?: \[[a-z]{3,10}\]| (?:› )?[a-z][a-z-]{0,40})? \[[Rr]ank[ =:-]?(\d{1,6})\]")


_BRACKETED = regex(r"\[(\d{1,6})\] ")


def _ranks_behind(lines: Sequence[Line], world: int | None) -> bool:
    """Whether numbers in brackets behind the labels of hosts are ranks of the job: too large for those of a
    node's own processes, and each host has them of one block.
    """
    hosts = {line.host for line in lines if line.host is not None}
    if world is None or len(hosts) < 2 or world % len(hosts):
        return False
    size = world // len(hosts)
    told = {
        (line.host, int(behind[1]))
        for line in lines
        if line.host is not None
        and line.message[:1] == "["
        and (behind := _BRACKETED.match(line.message[:12]))
    }
    numbers = {number for _, number in told}
    blocks = {(host, number // size) for host, number in told}
    return (
        bool(told)
        and size <= max(numbers) < world
        and len(blocks) == len({host for host, _ in blocks}) == len({block for _, block in blocks})
    )


def _is_later_block(numbers: Set[int]) -> bool:
    """Whether numbers are those of the ranks of one node, and not of the first: its own would begin at 0."""
    first, size = min(numbers, default=0), len(numbers)
    return size > 1 and first > 0 and first % size == 0 and max(numbers) == first + size - 1


def host_labels(lines: Sequence[Line], world: int | None = None) -> HostLabels:
    """The labels of a file most of whose lines begin with words of one row: `10.0.0.3 [1] …`, `| cn-07 …`.

    Of a word with dots the part that differs is the host: `bench.c3.nolog` and `bench.c4.nolog`. Hosts
    need not take turns where a rank stands behind them, nor where a colon or bar sets one off in every line.
    `world` is the number of the job's ranks, as far as it is told.
    """
    if _ranks_behind(lines[:SAMPLE], world):
        return HostLabels(ranks_behind=True)
    messages = [line.message[:200] for line in lines[:SAMPLE] if line.host is None]
    for form in (_KEYED, *_PAIRED):
        named = [found["host"] for text in messages if (found := form.match(text)) is not None]
        if len(named) * 2 > len(messages) and all(map(is_host, set(named))):
            return HostLabels({host: host for host in named}, form=form)
    messages = [text[:120] for text in messages]
    labels = [found for text in messages if (found := _HOST_LABEL.match(text)) and is_host(found["host"])]
    rows = Counter(re.sub(r"\d+", "#", label[1]) for label in labels)
    if not rows or len(labels) * 2 < len(messages):
        return HostLabels()
    row, _ = rows.most_common(1)[0]
    labels = [label for label in labels if re.sub(r"\d+", "#", label[1]) == row]
    words = [label[1] for label in labels]
    counts = Counter(words)
    switches = sum(one != other for one, other in pairwise(words))
    in_turn = min(counts.values()) >= 3 and len(counts) <= switches // 2
    in_turn = in_turn or any(_RANK_BEHIND.match(label.string, label.end()) for label in labels)
    in_turn = in_turn or _are_numbered(labels)
    numbered = {(label[1], int(label[2])) for label in labels if label[2]}
    numbers = {number for _, number in numbered}
    counts_ranks = len(numbers) == len(numbered) > 0 and max(numbers) < 4 * len(numbers)
    in_turn = in_turn or (counts_ranks and len(numbers) > len(counts))
    set_off = sum(label[0].endswith((":", "|")) for label in labels)
    spoken = sum(bool(text.strip()) for text in messages)
    in_turn = in_turn or set_off == spoken or (len(labels) == spoken and _are_of_pods(labels))
    if (
        len(counts) == 1
        and sum(label[2] is not None for label in labels) * 2 > spoken
        and _is_later_block(numbers)
        and min(Counter(label[2] for label in labels if label[2]).values()) > 1  # a client's ports come once
    ):
        return HostLabels({word: word for word in counts}, counts_ranks=True)
    if len(words) * 2 < len(messages) or len(counts) < 2 or not in_turn:
        return HostLabels()
    if row == "#.#.#.#":
        return HostLabels({word: word for word in counts}, counts_ranks)
    parts = list(zip(*(word.split(".") for word in counts), strict=True))
    differing = [at for at, part in enumerate(parts) if len(set(part)) > 1]
    if len(differing) != 1:
        return HostLabels()
    return HostLabels({word: word.split(".")[differing[0]] for word in counts}, counts_ranks)
