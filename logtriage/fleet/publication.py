"""A digest as people and programs read it: Markdown, an HTML site, JSON lines, a text for chat (`chat`).

Log text is hostile: each form escapes every value by itself, after what a terminal or browser would obey was
made visible, and after secrets were replaced.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment
from markupsafe import Markup

from logtriage.fleet.chat import broken, chat, headline
from logtriage.fleet.digest import WINDOW_DAYS, Digest, page_name
from logtriage.fleet.hosts import HostFigures
from logtriage.fleet.incidents import Incident, signature
from logtriage.fleet.jobs import TriagedJob, loss
from logtriage.fleet.reliability import Day
from logtriage.redaction import Redaction
from logtriage.report import html, words
from logtriage.report.document import Timing, iso_time
from logtriage.report.redacted import redacted
from logtriage.report.visible import prose, visible
from logtriage.written import write

MOST_ROWS = 50  # of a table
MOST_JOBS = 200
BAR_HEIGHT = 76  # of the busiest day, in the units of the page's drawing
_BARS = "▁▂▃▄▅▆▇█"
# What could be markup: of underscores those at the edge of a word, of dashes and the like those at the start.
_MARKDOWN = re.compile(r"([\\`*\[\]<>|~@&!]|\b_\b|(?<!\w)_|_(?!\w)|^[-+#=>]|(?<=:)/|(?<=www)\.)")


def publish(digest: Digest, folder: Path) -> None:
    """Write index.html, incidents.html, jobs/*.html, digest.md, jobs.jsonl and chat.txt below a folder.

    Pages of jobs that are there already are written anew only where the verdict is of this night. Raises
    OSError.
    """
    (folder / "jobs").mkdir(parents=True, exist_ok=True)
    shown = without_secrets(digest)
    groups = [shown.tonight, *(each.jobs for each in shown.incidents), *(each.jobs for each in shown.chains)]
    for job in {job.key: job for jobs in groups for job in jobs}.values():
        target = folder / "jobs" / page_name(job)
        if job.night == digest.night or not target.exists():
            verdict = job.verdict if job.night == digest.night else redacted(job.verdict)
            _write(target, html.page(verdict.model_copy(update={"timing": Timing()})))
    _write(folder / "digest.md", markdown(shown))
    _write(folder / "jobs.jsonl", "".join(json_lines(shown)))
    _write(folder / "chat.txt", chat(shown))
    _write(folder / "incidents.html", _filled("incidents.html.j2", shown))
    _write(folder / "index.html", _filled("digest.html.j2", shown))


def without_secrets(digest: Digest) -> Digest:
    """The digest as it may leave the machine: the verdicts of this night, and the titles of incidents.

    Of jobs of earlier nights nothing is shown but their keys, times and places.
    """
    clean = {job.key: replace(job, verdict=redacted(job.verdict)) for job in digest.tonight}

    def cleaned(jobs: Sequence[TriagedJob]) -> tuple[TriagedJob, ...]:
        return tuple(clean.get(job.key, job) for job in jobs)

    def titled(incident: Incident) -> Incident:
        title = Redaction().redact(incident.title)
        return replace(incident, jobs=cleaned(incident.jobs), title=title)

    return replace(
        digest,
        tonight=cleaned(digest.tonight),
        unknowns=cleaned(digest.unknowns),
        incidents=tuple(map(titled, digest.incidents)),
        chains=tuple(replace(each, jobs=cleaned(each.jobs)) for each in digest.chains),
    )


def _write(target: Path, text: str) -> None:
    write(target, text.encode(errors="replace"))


# --- the forms -----------------------------------------------------------------------------------------


def markdown(digest: Digest) -> str:
    """GitHub-flavoured Markdown; every value is text, none of it markup."""
    text = _filled("digest.md.j2", digest)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def json_lines(digest: Digest) -> Iterator[str]:
    """One JSON object a line for each job of the night, triaged or not, in order of the keys."""
    lines = {job.key: _entry(job) for job in digest.tonight}
    for each in digest.untriaged:
        lines[each.key] = {"job": each.key, "status": each.status, "reason": each.reason}
    for key in sorted(lines):
        yield json.dumps(lines[key], ensure_ascii=True) + "\n"


def _entry(job: TriagedJob) -> dict[str, Any]:
    body, lost, told = job.verdict.verdict, loss(job), signature(job.verdict)
    return {
        "job": job.key,
        "status": "triaged",
        "id": job.verdict.id,
        "name": job.name,
        "user": job.user,
        "failure_type": body.failure_type,
        "class": body.failure_class,
        "title": body.title,
        "confidence": body.confidence,
        "outcome": job.verdict.job.outcome,
        "started": iso_time(job.started),
        "ended": iso_time(job.ended),
        "ranks": job.verdict.job.ranks,
        "gpus": job.gpus,
        "nodes": list(job.nodes),
        "culprits": {"ranks": list(body.culprits.ranks), "hosts": list(body.culprits.hosts)},
        "action": body.action,
        "exclude_hosts": list(body.restart.exclude_hosts),
        "lost": lost and {"hours": round(lost.hours, 3), "of": lost.unit, "since": lost.since},
        "incident": {"template": told.template, "hosts": list(told.hosts)},
        "page": f"jobs/{page_name(job)}",
    }


# --- what the templates are filled with ----------------------------------------------------------------


class _Bar(NamedTuple):
    day: Day
    jobs: float
    failed: float


def _filled(template: str, digest: Digest) -> str:
    environment = _markdown_environment() if template.endswith(".md.j2") else _html_environment()
    scale = BAR_HEIGHT / (max((day.jobs for day in digest.trend), default=0) or 1)
    return environment.get_template(template).render(
        digest=digest,
        headline=headline(digest),
        reliable=reliable(digest),
        bars=[_Bar(day, round(scale * day.jobs, 2), round(scale * day.failed, 2)) for day in digest.trend],
        sparkline=Markup(_sparkline([day.failed for day in digest.trend])),
        most=MOST_ROWS,
        most_jobs=MOST_JOBS,
        window=WINDOW_DAYS,
    )


@cache
def _html_environment() -> Environment:
    return _with_filters(html.environment().overlay())


@cache
def _markdown_environment() -> Environment:
    return _with_filters(html.environment().overlay(autoescape=False, finalize=_as_markdown))


def _with_filters(environment: Environment) -> Environment:
    ours: dict[str, Callable[..., Any]] = {
        "alone": _alone,
        "anchor": _anchor,
        "broken": broken,
        "hours": lambda number: f"{number:,.1f}",
        "listed": lambda names: words.listed(names, 6),
        "moment": lambda seconds: words.clock(iso_time(seconds)),
        "page_name": page_name,
        "where": words.where_words,
    }
    environment.filters = {**environment.filters, **ours}
    return environment


def _alone(host: HostFigures) -> str:
    """Its faults in jobs that ran on it alone: `2 of 5 (40 %)`."""
    if (rate := host.single_node_rate) is None:
        return ""
    return f"{host.single_node_faults} of {host.single_node_jobs} ({words.percent(rate)})"


def _as_markdown(value: Any) -> Any:
    """Text with everything escaped that could be markup; numbers and what a macro made stay."""
    return _MARKDOWN.sub(r"\\\1", visible(prose(value), 400)) if type(value) is str else value


def _anchor(incident: Incident) -> str:
    told = incident.signature
    text = "\0".join((told.failure_type, told.template, *told.hosts))
    return "i-" + hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def _sparkline(counts: list[int]) -> str:
    most = max(counts, default=0) or 1
    return "".join(_BARS[round(count / most * (len(_BARS) - 1))] for count in counts)


def reliable(digest: Digest) -> list[str]:
    """The figures of reliability as sentences."""
    known = digest.reliability
    told = [
        f"{known.measured:,} of {words.counted(known.jobs, 'job')} in {WINDOW_DAYS} days have times and a "
        f"size: {known.gpu_hours:,.1f} GPU-hours (ranks where GPUs are unknown), "
        f"{known.node_hours:,.1f} node-hours"
    ]
    between = known.gpu_hours_between_failures
    if between is not None:
        count = words.counted(known.failures, "failure")
        told.append(f"{between:,.1f} GPU-hours between failures of any kind ({count})")
    rate, bounds = known.machine_failures_per_1000_node_days, known.bounds_per_1000_node_days
    if rate is not None and bounds is not None:
        count = words.counted(known.machine_failures, "failure")
        told.append(
            f"{count} by a fault of one machine: {rate:,.2f} in 1,000 node-days "
            f"(95 % between {bounds[0]:,.2f} and {bounds[1]:,.2f})"
        )
    if known.machine_failures and known.node_hours:
        told.append(f"{known.node_hours / known.machine_failures:,.1f} node-hours between faults of machines")
    return told
