"""`logtriage history`: past verdicts by time, host, type and user, their export, and the hosts in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from logtriage.apps.console import answer, complain
from logtriage.apps.moments import moment
from logtriage.report.visible import visible

if TYPE_CHECKING:
    from logtriage.memory.history import Glance, Wanted

app = typer.Typer(rich_markup_mode=None)
_SUFFIXES = (".csv", ".parquet", ".jsonl")

Since = Annotated[
    str,
    typer.Option(metavar="WHEN", help="Given at this time or later: 2026-05-04, 2026-05-04T12:00, 7d, 12h."),
]
Until = Annotated[str, typer.Option(metavar="WHEN", help="Given before this time.")]
Host = Annotated[str, typer.Option(metavar="NAME", help="Of jobs that ran on this host.")]
Type = Annotated[str, typer.Option("--type", metavar="TYPE", help="Of this failure type, or family (gpu).")]
User = Annotated[str, typer.Option(metavar="NAME", help="Of this user's jobs.")]
Export = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write all of them to FILE.csv, .parquet or .jsonl.")
]


@app.callback(invoke_without_command=True)
def history(
    context: typer.Context,
    since: Since = "",
    until: Until = "",
    host: Host = "",
    type_: Type = "",
    user: User = "",
    limit: Annotated[int, typer.Option(min=1, help="Show the N newest.")] = 20,
    export: Export = None,
) -> None:
    """Past verdicts on this machine, newest first: id, when, type, confidence, where the logs are."""
    from itertools import islice

    from logtriage.memory.history import glances
    from logtriage.report.document import iso_time
    from logtriage.settings import load_settings

    wanted = _wanted(since, until, host, type_, user)
    context.obj = wanted, export
    if context.invoked_subcommand is not None:
        return
    found = glances(load_settings().data_dir, wanted)
    if export is not None:
        _export([_row(each) for each in found], export)
        return
    shown = list(islice(found, limit))
    for each in shown:
        moment = (iso_time(each.at) or "")[:16].replace("T", " ")
        cells = (each.id, moment, f"{visible(each.failure_type, 60):28}", f"{each.confidence:4.0%}")
        answer("  ".join(cells) + "  " + visible(" ".join(each.paths), 200) + "\n")
    if not shown:
        complain(
            "no verdict is kept on this machine yet" if not any((since, until, host, type_, user)) else NONE
        )


NONE = "no kept verdict is like that"


@app.command()
def hosts(
    context: typer.Context,
    since: Since = "",
    until: Until = "",
    host: Host = "",
    type_: Type = "",
    user: User = "",
    limit: Annotated[int, typer.Option(min=1, help="Show the first N.")] = 50,
    export: Export = None,
) -> None:
    """The hosts in past verdicts: jobs, failures by type, when last seen; the most suspicious first."""
    from logtriage.fleet.hosts import host_figures, host_key
    from logtriage.memory.history import glances
    from logtriage.memory.verdicts import kept_verdicts
    from logtriage.report.document import iso_time
    from logtriage.settings import load_settings

    data_dir = load_settings().data_dir
    own = _wanted(since, until, host, type_, user)
    outer, outer_export = (
        context.obj
    )  # `history --since 7d hosts` means the same as `history hosts --since 7d`
    wanted = type(own)(*(_field(own, outer, name) for name in own.__slots__))
    found = list(glances(data_dir, wanted))
    seen: dict[str, float] = {}
    failures: dict[str, Counter[str]] = {}
    for each in found:
        for key in {host_key(name) for name in (*each.hosts, *each.culprit_hosts)}:
            seen[key] = max(seen.get(key, 0.0), each.at)
        for key in {host_key(name) for name in each.culprit_hosts}:
            failures.setdefault(key, Counter())[each.failure_type] += 1
    ids = {each.id for each in found}
    verdicts = (kept.verdict for kept in kept_verdicts(data_dir) if kept.verdict.id in ids)
    figures = [
        each
        for each in host_figures(verdicts, window_days=None)
        if not wanted.host or host_key(wanted.host) == host_key(each.host)
    ]
    rows: list[dict[str, Any]] = [
        {
            "host": each.host,
            "jobs": each.jobs,
            "failed_jobs": each.failed_jobs,
            "began_here": sum(failures.get(host_key(each.host), Counter()).values()),
            "types": [
                f"{kind} {n}" for kind, n in failures.get(host_key(each.host), Counter()).most_common()
            ],
            "score": each.score,
            "standing": each.standing,
            "last_seen": iso_time(seen.get(host_key(each.host))),
        }
        for each in figures
    ]
    if target := export or outer_export:
        _export(rows, target)
        return
    if not rows:
        complain("no kept verdict names a host")
        return
    width = max(len(visible(str(row["host"]), 60)) for row in rows[:limit])
    answer(f"{'host':{width}}  jobs  failed  began here  score         last seen         types\n")
    for row in rows[:limit]:
        moment = str(row["last_seen"] or "-")[:16].replace("T", " ")
        answer(
            f"{visible(str(row['host']), 60):{width}}  {row['jobs']:4}  {row['failed_jobs']:6}"
            f"  {row['began_here']:10}  {row['score']:5}  {row['standing']:6}  {moment:16}"
            f"  {visible(', '.join(row['types']), 200)}\n"
        )


def _field(own: Wanted, outer: Wanted, name: str) -> Any:
    return getattr(own, name) or getattr(outer, name)


def _wanted(since: str, until: str, host: str, failure_type: str, user: str) -> Wanted:
    from logtriage.memory.history import Wanted

    first = moment(since, "--since") if since else None
    last = moment(until, "--until") if until else None
    return Wanted(first, last, host, failure_type, user)


def _row(each: Glance) -> dict[str, Any]:
    from dataclasses import asdict

    from logtriage.report.document import iso_time

    return {**asdict(each), "at": iso_time(each.at)}


def _export(rows: Sequence[dict[str, Any]], file: Path) -> None:
    """One table, by the ending of the file; JSON lines need no pandas."""
    suffix = file.suffix.lower()
    if suffix not in _SUFFIXES:
        raise typer.BadParameter(f"--export: {file} must end with {', '.join(_SUFFIXES)}")
    if suffix == ".jsonl":
        from json import dumps

        file.write_text("".join(f"{dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")
    else:
        try:
            import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except ImportError:
            raise typer.BadParameter("--export needs pandas: pip install 'logtriage[export]'") from None
        if suffix == ".parquet":
            try:
                pandas.DataFrame(rows).to_parquet(file, index=False)
            except ImportError:
                raise typer.BadParameter("--export needs pyarrow: pip install 'logtriage[export]'") from None
        else:
            pandas.DataFrame([{key: _cell(value) for key, value in row.items()} for row in rows]).to_csv(
                file, index=False
            )
    complain(f"{len(rows):,} rows in {file}")


def _cell(value: Any) -> Any:
    """A cell of a CSV: lists as words, and no text that a spreadsheet would take for a formula."""
    if isinstance(value, list | tuple):
        value = " ".join(map(str, value))
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
