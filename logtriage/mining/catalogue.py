"""All templates of a job: Drain3 over the distinct lines of all files, in one canonical order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from logtriage.intake.lines import plain
from logtriage.mining.summary import Summary
from logtriage.mining.templates import TemplateMiner
from logtriage.model import Source, SourceRole


@dataclass(frozen=True, slots=True)
class TemplatePlace:
    file: str
    line: int
    offset: int
    time: float | None = None


@dataclass(slots=True)
class TemplateRow:
    """One template with where it stands; counts by file give those by rank and host."""

    template: str
    count: int
    first: TemplatePlace
    last: TemplatePlace
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    files: dict[str, int] = field(default_factory=dict)
    masked: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Rows, most frequent first; `masked` are all masked texts, for comparison with other runs."""

    rows: list[TemplateRow]
    masked: frozenset[str]


def catalogue(sources: Sequence[Source], summaries: Sequence[Summary]) -> Catalogue:
    """Mine the templates of a job. Configuration and number tables are no log lines and stay out."""
    miner = TemplateMiner()
    rows: dict[int, TemplateRow] = {}
    ranks: dict[int, set[int]] = {}
    hosts: dict[int, set[str]] = {}
    masked: dict[int, set[str]] = {}
    placed: dict[bytes, tuple[int, str]] = {}
    for source, summary in zip(sources, summaries, strict=True):
        if source.role in (SourceRole.ENVIRONMENT, SourceRole.METRICS):
            continue
        for key, count in summary.keys.items():
            known = placed.get(key)  # the same line of another file: masked once
            if known is None:
                text = plain(count.sample).strip()
                known = placed[key] = miner.place(text, 0) if text else (0, "")
            template, masked_text = known
            if not template:
                continue
            miner.count(template, count.count)
            first = TemplatePlace(source.file, *count.first)
            last = TemplatePlace(source.file, *count.last)
            row = rows.get(template)
            if row is None:
                row = rows[template] = TemplateRow("", 0, first, last)
            row.count += count.count
            row.files[source.file] = row.files.get(source.file, 0) + count.count
            row.last = last if row.last.file != source.file or last.line > row.last.line else row.last
            masked.setdefault(template, set()).add(masked_text)
            if source.rank is not None:
                ranks.setdefault(template, set()).add(source.rank)
            if source.host is not None:
                hosts.setdefault(template, set()).add(source.host)
    found = miner.templates()
    for template, row in rows.items():
        row.template = found[template].text
        row.ranks = tuple(sorted(ranks.get(template, ())))
        row.hosts = tuple(sorted(hosts.get(template, ())))
        row.masked = frozenset(masked[template])
    ordered = sorted(rows.values(), key=lambda row: (-row.count, row.first.file, row.first.line))
    return Catalogue(ordered, frozenset(text for texts in masked.values() for text in texts))
