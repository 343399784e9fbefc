"""`logtriage history`: past verdicts by time, host, type and user, their export, and the hosts in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from logtriage.apps.console import answer, complain
from logtriage.apps.moments import moment
from logtriage.report.visible import visible

if TYPE_CHECKING:
    from logtriage.memory.history import Wanted

_SUFFIXES = (".csv", ".parquet", ".jsonl")


def history(
    what: Annotated[str, typer.Argument(metavar="hosts", help="The hosts in them instead.")] = "",
    since: Annotated[
        str, typer.Option(metavar="WHEN", help="Given at this time or later: 2026-01-31, 7d, 12h.")
    ] = "",
    until: Annotated[str, typer.Option(metavar="WHEN", help="Given before this time.")] = "",
    host: Annotated[str, typer.Option(metavar="NAME", help="Of jobs that ran on this host.")] = "",
    type_: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="Of this failure type, or family (gpu).")
    ] = "",
    user: Annotated[str, typer.Option(metavar="NAME", help="Of this user's jobs.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="Show the first N.")] = 20,
    export: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all of them to FILE.csv, .parquet or .jsonl.")
    ] = None,
) -> None:
    """Past verdicts on this machine, newest first.

    Told are id, when, type, confidence, and where the logs are.

    `history hosts`: the hosts in them, the most suspicious first: jobs, failures, when last seen, types.
    """
    from logtriage.memory.history import Wanted
    from logtriage.settings import load_settings

    if what not in ("", "hosts"):
        raise typer.BadParameter(f"history shows verdicts, or `hosts`; not {what!r}")
    wanted = Wanted(
        moment(since, "--since") if since else None,
        moment(until, "--until") if until else None,
        host,
        type_,
        user,
    )
    data_dir = load_settings().data_dir
    rows = _host_rows(data_dir, wanted) if what else _rows(data_dir, wanted)
    if export is not None:
        _export(list(rows), export)
        return
    shown = list(islice(rows, limit))
    if not shown:
        narrowed = any((since, until, host, type_, user))
        complain("no kept verdict is like that" if narrowed else "no verdict is kept on this machine yet")
    elif what:
        _draw_hosts(shown)
    else:
        for each in shown:
            cells = (visible(each["id"], 60), _minute(each["at"]), f"{visible(each['failure_type'], 60):28}")
            line = "  ".join((*cells, f"{each['confidence']:4.0%}", visible(" ".join(each["paths"]), 200)))
            answer(f"{line}\n")


def _rows(data_dir: Path, wanted: Wanted) -> Iterator[dict[str, Any]]:
    from dataclasses import asdict

    from logtriage.memory.history import glances
    from logtriage.report.document import iso_time

    return ({**asdict(each), "at": iso_time(each.at)} for each in glances(data_dir, wanted))


def _host_rows(data_dir: Path, wanted: Wanted) -> Iterator[dict[str, Any]]:
    from logtriage.fleet.hosts import host_figures, host_key
    from logtriage.memory.history import wanted_verdicts
    from logtriage.report.document import iso_time

    seen: dict[str, float] = {}
    began: dict[str, Counter[str]] = {}
    verdicts = []
    for each, verdict in wanted_verdicts(data_dir, wanted):
        verdicts.append(verdict)
        for key in {host_key(name) for name in (*each.hosts, *each.culprit_hosts)}:
            seen[key] = max(seen.get(key, 0.0), each.at)
        for key in {host_key(name) for name in each.culprit_hosts}:
            began.setdefault(key, Counter())[each.failure_type] += 1
    for figures in host_figures(verdicts, window_days=None):
        key = host_key(figures.host)
        if wanted.host and host_key(wanted.host) != key:
            continue  # another host of a job that ran on the one
        types = began.get(key, Counter())
        yield {
            "host": figures.host,
            "jobs": figures.jobs,
            "failed_jobs": figures.failed_jobs,
            "began_here": types.total(),
            "types": [f"{kind} {count}" for kind, count in types.most_common()],
            "faults": figures.faults,
            "multi_node_faults": figures.multi_node_faults,
            "single_node_jobs": figures.single_node_jobs,
            "single_node_faults": figures.single_node_faults,
            "lost": figures.lost,
            "xids": list(figures.xids),
            "score": figures.score,
            "standing": figures.standing,
            "last_seen": iso_time(seen.get(key)),
        }


def _draw_hosts(rows: Sequence[dict[str, Any]]) -> None:
    width = max(4, *(len(visible(row["host"], 60)) for row in rows))
    answer(f"{'host':{width}}  jobs  failed  began here  score         last seen         types\n")
    for row in rows:
        answer(
            f"{visible(row['host'], 60):{width}}  {row['jobs']:4}  {row['failed_jobs']:6}"
            f"  {row['began_here']:10}  {row['score']:5}  {row['standing']:6}  {_minute(row['last_seen']):16}"
            f"  {visible(', '.join(row['types']), 200)}\n"
        )


def _minute(time: str | None) -> str:
    return (time or "-")[:16].replace("T", " ")


def _export(rows: Sequence[dict[str, Any]], file: Path) -> None:
    """One table, by the ending of the file; JSON lines need no pandas."""
    suffix = file.suffix.lower()
    if suffix not in _SUFFIXES:
        raise typer.BadParameter(f"--export: {file} must end with {', '.join(_SUFFIXES)}")
    from logtriage.written import write

    if suffix == ".jsonl":
        from json import dumps

        write(file, "".join(f"{dumps(row, ensure_ascii=False)}\n" for row in rows))
    else:
        try:
            import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except ImportError:
            raise typer.BadParameter("--export needs pandas: pip install 'logtriage[export]'") from None
        if suffix == ".parquet":
            try:
                write(file, pandas.DataFrame(rows).to_parquet(index=False))
            except ImportError:
                raise typer.BadParameter("--export needs pyarrow: pip install 'logtriage[export]'") from None
        else:
            cells = [{key: _cell(value) for key, value in row.items()} for row in rows]
            write(file, pandas.DataFrame(cells).to_csv(index=False))
    complain(f"{len(rows):,} rows in {file}")


def _cell(value: Any) -> Any:
    """A cell of a CSV: lists as words, and no text that a spreadsheet would take for a formula."""
    if isinstance(value, list | tuple):
        value = " ".join(map(str, value))
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
