"""Reports of a machine's state (`nvidia-smi -q`, amd-smi, npu-smi, ibstat, DCGM) as statements of one line.

What such a report says stands on several lines: whose value it is and what is counted in the headings above
it, in the head of its table or in the objects around it. A statement puts this before the value, so that a
rule can tell a count since the driver was loaded from one since the card was made, and names the device:
`GPU 00000000:9B:00.0 > ECC Errors > Volatile > DRAM Uncorrectable: 3`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from logtriage.model import Line, SourceRole
from logtriage.regex import regex

BELOW = " > "  # between a heading and what stands below it
MOST_JSON = 1 << 20  # characters of a JSON report that is parsed
MOST_STATEMENTS = 20_000  # of one file
MOST_AHEAD = 64  # lines between two values of a JSON report
MOST_DEVICES = 4096
DEEPEST = 12  # headings above a value
LONGEST = 2000  # characters of a line that is part of a report
_NAME_WIDTH = 16  # of a value that names whose values stand below it: `GPU: 1`

# Nearly all that a report says: no rule asks for it.
_CALM = frozenset((
    "", "0", "no", "none", "n/a", "not active", "ok", "pass", "passed", "enabled", "disabled", "active",
    "linkup", "healthy", "success", "completed", "[n/a]", "not supported", "[not supported]",
    "0 %", "0 w", "skip", "off",
))  # fmt: skip
# Those that are calm elsewhere and bad of some: what slows a clock is active.
_OF_SLOWDOWN = regex(r"(?i)slowdown|throttl|brake|violation")

Statement = tuple[Line, str]


def is_report(role: SourceRole, lines: Sequence[Line]) -> bool:
    """Whether a file may be such a report: of a machine's state, or a table of its GPUs."""
    first = next((line.text for line in lines if line.text.strip()), "")
    if role is SourceRole.SCHEDULER:
        return first.lstrip()[:1] == "{" or first.startswith("NodeName=")
    if role is SourceRole.KUBERNETES:
        return first.lstrip()[:1] == "{" and any('"conditions"' in line.text for line in lines)
    if role is SourceRole.METRICS:
        return first.count(",") > 1 and _GPU_HEAD.search(first[:LONGEST]) is not None
    return role is SourceRole.HARDWARE


def statements(lines: Sequence[Line]) -> Iterator[Statement]:
    """Each value that is not calm with what it is said of, and the line on which it stands."""
    first = next((line.text.lstrip("\ufeff \t") for line in lines if line.text.strip()), "")
    found = _of_json(lines) if first[:1] in ("{", "[") else _of_text(lines)
    for count, statement in enumerate(found):
        if count >= MOST_STATEMENTS:
            return
        yield statement


def _said(line: Line, path: Sequence[str], key: str, value: str) -> Iterator[Statement]:
    value = value.strip()
    calm = value.lower()
    if calm not in _CALM or (calm == "active" and _OF_SLOWDOWN.search(key)):
        yield line, BELOW.join([*path, f"{key}: {value}"])


# --- text --------------------------------------------------------------------------------------------

_KEYED = regex(r"^(?P<key>[^|]{1,120}?) *:(?: +(?P<value>.*))?$")
_COUNTED = regex(r"^(?P<key>[a-z][\w.-]{2,60}) +(?P<value>\d{1,20})$")
# A port and all that it counts, as `rdma statistic` prints it.
_COUNTERS = regex(r"^(?P<whose>link \S{1,60})(?P<counters>(?: \w{1,60} \d{1,20})*) ?$")
# As `scontrol show node` prints it; a reason goes on to the end of its line.
_NODE = regex(r"^NodeName=\S{1,120}")
_PAIR = regex(r"\b(?P<key>State|Reason)=(?P<value>(?<=State=)\S+|(?<=Reason=).*)")
_BOXED = ("|", "+")


def _of_text(lines: Sequence[Line]) -> Iterator[Statement]:
    outline = _Outline()
    box = _Box()
    rows = _Rows()
    for line, below in pairwise((*lines, None)):
        if line is None or len(line.text) > LONGEST:
            continue
        text = line.text.rstrip()
        bare = text.lstrip()
        if bare.startswith(_BOXED):
            yield from box.take(line, bare)
        elif rows.is_part(text, below):
            rows.take(line, text)
        elif bare:
            box = _Box()
            yield from outline.take(line, text)
    yield from rows.told()


@dataclass(slots=True)
class _Outline:
    """Values below headings that are told by how far they are indented."""

    above: list[tuple[int, str]] = field(default_factory=list)

    def take(self, line: Line, text: str) -> Iterator[Statement]:
        spread = text.expandtabs(8)
        bare = spread.lstrip()
        indent = len(spread) - len(bare)
        while self.above and self.above[-1][0] >= indent:
            self.above.pop()
        if indent == 0 and (told := _COUNTERS.match(bare)) is not None:
            words = told["counters"].split()
            for key, value in zip(words[::2], words[1::2], strict=False):
                yield from _said(line, [told["whose"]], key, value)
            self.above = [(0, told["whose"])]
            return
        if (node := _NODE.match(bare)) is not None:
            self.above = [(0, node[0])]
            bare = bare[node.end() :].lstrip()
        for pair in _PAIR.finditer(bare) if self.above and self.above[0][1].startswith("NodeName=") else ():
            yield from _said(line, [self.above[0][1]], pair["key"], pair["value"])
        found = _KEYED.match(bare) or (_COUNTED.match(bare) if indent else None)
        key, value = (found["key"], (found["value"] or "").strip()) if found else (bare[:80], "")
        if value:
            yield from _said(line, [name for _, name in self.above], key, value)
        if len(self.above) < DEEPEST:
            self.above.append((indent, f"{key} {value}" if 0 < len(value) <= _NAME_WIDTH else key))


_RULE = regex(r"^[|+][-=+| ]*$")
_TITLED_RULE = regex(r"^[|+]-+ {1,4}[A-Z][\w ]{2,30} {1,4}-+\+")
_PCI = regex(r"\b[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\b")
_DEVICE = regex(r"^\d{1,3}\b")
_ARROW = regex(r"^[ >-]*")


@dataclass(slots=True)
class _Box:
    """A table between bars: heads above a double rule, and rows of as many lines for each device."""

    heads: list[list[str]] = field(default_factory=list)
    has_begun: bool = False  # below the double rule
    block: list[tuple[Line, list[str]]] = field(default_factory=list)
    above: list[tuple[int, str]] = field(default_factory=list)  # of a list of names and values
    value: str = ""

    def take(self, line: Line, bare: str) -> Iterator[Statement]:
        if _RULE.match(bare) or _TITLED_RULE.match(bare):
            if "=" in bare and not self.has_begun:
                self.has_begun = True
            yield from self._of_block()
            return
        cells = bare.strip("|").split("|")
        if not self.has_begun:
            self.heads.append(cells)
        elif len(cells) == 2 and (not self.heads or not _is_of_devices(self.heads)):
            yield from self._of_list(line, *cells)
        else:
            if len(self.block) >= max(1, len(self.heads)):
                yield from self._of_block()
            self.block.append((line, cells))

    def _of_block(self) -> Iterator[Statement]:
        rows, self.block = self.block, []
        if not rows or not _DEVICE.match(rows[0][1][0].strip()):
            return
        heads = [head for head in self.heads if len(head) > 2]
        kind = next((words[0] for head in heads if (words := head[0].split())), "")
        number = rows[0][1][0].split()[0]
        bus = next((found[0] for line, _ in rows if (found := _PCI.search(line.text))), "")
        device = " ".join(filter(None, (kind, number, bus)))
        for (line, cells), head in zip(rows, heads, strict=False):
            if len(cells) == len(head):
                for name, cell in zip(head[1:], cells[1:], strict=True):
                    yield from _said(line, [device], " ".join(name.split()), " ".join(cell.split()))

    def _of_list(self, line: Line, left: str, right: str) -> Iterator[Statement]:
        marks = _ARROW.match(left)
        name = left[marks.end() if marks else 0 :].strip()
        if name:
            depth = marks.end() if marks else 0
            while self.above and self.above[-1][0] >= depth:
                self.above.pop()
            if len(self.above) < DEEPEST:
                self.above.append((depth, name))
            self.value = right.strip()
        else:  # a sentence that goes on below
            self.value = f"{self.value} {right.strip()}"[-LONGEST:]
        if self.above:
            *path, key = (each for _, each in self.above)
            yield from _said(line, path, key, self.value)


def _is_of_devices(heads: list[list[str]]) -> bool:
    return any(len(head) > 2 for head in heads)


_GPU_HEAD = regex(r"(?i)\b(?:pci\.|gpu_)?bus_?id\b|\buuid\b|\bindex\b|^gpu,|^device,")
_IDENTITIES = ("index", "gpu", "device", "pci.bus_id", "gpu_bus_id", "bus_id")


@dataclass(slots=True)
class _Rows:
    """Comma-separated rows below a head that names a device: the last row of each device tells its state."""

    head: list[str] = field(default_factory=list)
    last: dict[str, tuple[Line, dict[str, str]]] = field(default_factory=dict)

    def is_part(self, text: str, below: Line | None) -> bool:
        commas = text.count(",")
        if commas < 2:
            return False
        if self.head and commas == len(self.head) - 1:
            return True
        if _GPU_HEAD.search(text) is None or below is None or below.text.count(",") != commas:
            return False
        self.head = [cell.strip().split(" [")[0] for cell in text.split(",")]
        return True

    def take(self, line: Line, text: str) -> None:
        cells = [cell.strip().split(" [")[0] for cell in text.split(",")]
        if cells != self.head:
            row = dict(zip(self.head, cells, strict=False))
            device = " ".join(row[name] for name in _IDENTITIES if row.get(name))
            if device in self.last or len(self.last) < MOST_DEVICES:
                self.last[device] = line, row

    def told(self) -> Iterator[Statement]:
        for device, (line, row) in self.last.items():
            for name, value in row.items():
                if name not in _IDENTITIES:
                    yield from _said(line, [f"GPU {device}".strip()], name, value)


# --- JSON --------------------------------------------------------------------------------------------

_NAMING = (
    "hostname", "host", "node", "category", "name", "test", "gpu_id", "gpu", "entity_group", "entity_id",
    "bdf", "device", "pci_bus_id", "link",
)  # fmt: skip


def _of_json(lines: Sequence[Line]) -> Iterator[Statement]:
    whole = "\n".join(line.text for line in lines).lstrip("\ufeff")
    if len(whole) > MOST_JSON:
        return
    try:
        document = json.loads(whole)
    except (ValueError, RecursionError):
        return
    at = 0
    for path, key, value, shown in _walked(document, ()):
        # Values come in the order of lines; of one written otherwise the last place is good enough.
        ahead = range(at, min(at + MOST_AHEAD, len(lines)))
        at = next((place for place in ahead if shown in lines[place].text), at)
        for _, said in _said(lines[at], path, key, value):
            yield lines[at], said


def _walked(node: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str, str, str]]:
    """Path, key and value of each plain value in the order of the text, and how its text shows it."""
    if len(path) > 2 * DEEPEST:
        return
    if isinstance(node, dict):
        named = [*_object(node), *_condition(node)]
        named += [f"{name} {node[name]}" for name in _NAMING if isinstance(node.get(name), str | int)]
        whose = (*path, *(each[:80] for each in named))
        for key, value in node.items():
            if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
                for each in value[:64]:
                    yield whose, key[:80], _plain(each), json.dumps(each, ensure_ascii=False)[:200]
            elif isinstance(value, dict | list):
                below = whose if isinstance(value, list) else (*whose, key[:80])
                yield from _walked(value, below if key not in ("warnings", "info") else (*whose, key))
            elif key not in _NAMING:
                yield whose, key[:80], _plain(value), json.dumps(value, ensure_ascii=False)[:200]
    elif isinstance(node, list):
        for each in node[:4096]:
            yield from _walked(each, path)


def _object(node: dict[str, Any]) -> list[str]:
    """Kind and name of an object of Kubernetes."""
    about = node.get("metadata")
    if not isinstance(about, dict) or not isinstance(node.get("kind"), str) or not about.get("name"):
        return []
    return [f"{node['kind']} {about['name']}"]


def _condition(node: dict[str, Any]) -> list[str]:
    """A condition, and whether it holds: `GpuUnhealthy True XidError`."""
    told = [node.get(name) for name in ("type", "status", "reason")]
    if "message" not in node or not all(isinstance(each, str) for each in told[:2]):
        return []
    return [" ".join(str(each) for each in told if each)]


def _plain(value: object) -> str:
    return "" if value is None else str(value)[:LONGEST]
