"""`logtriage nightly`: every job that ended since the last run, and one digest of what they died of."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logtriage.apps.console import answer, complain
from logtriage.apps.moments import moment
from logtriage.report.visible import visible

if TYPE_CHECKING:
    from logtriage.fleet.night import Candidates, Finished, Triage
    from logtriage.fleet.store import FleetStore, Night
    from logtriage.fleet.supervision import Limits, Outcome, Task
    from logtriage.settings import Settings

LINE_SECONDS = 60.0  # between two lines of progress where nobody watches
NOT_ALL = 1  # something could not be triaged, a source did not answer, or the post was refused


def nightly(
    root: Annotated[
        str,
        typer.Argument(
            metavar="ROOT",
            help="Folder of jobs, or a pattern such as /logs/{user}/{job_id}/; by default the sources of the "
            "settings.",
        ),
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the site, Markdown, JSON lines and the text for chat here."),
    ] = None,
    since: Annotated[str, typer.Option(metavar="7d|12h|DATE", help="Pass over jobs that ended before.")] = "",
    settled: Annotated[
        float, typer.Option(metavar="MINUTES", min=0, help="A job that wrote within these is still running.")
    ] = 30,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Jobs at once on this machine; by default one a core.")
    ] = None,
    engine: Annotated[
        str,
        typer.Option(metavar="local|ADDRESS", help="Or the scheduler of a Dask cluster: tcp://host:8786."),
    ] = "local",
    job_seconds: Annotated[float, typer.Option(min=0.1, help="Longest time for one job.")] = 1_800,
    job_memory: Annotated[float, typer.Option(metavar="MIB", min=1, help="Most memory for one job.")] = 4_096,
    slack: Annotated[
        str, typer.Option(metavar="CHANNEL", help="Post what it says to Slack as well: C0123456789, #name.")
    ] = "",
    offline: Annotated[bool, typer.Option("--offline", help="Ask no model.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress and no warnings.")] = False,
) -> None:
    """Triage every job that ended since the last run. A digest tells what they died of.

    Without --output the digest goes to standard output as Markdown. Exit status: 0 done, 1 something could
    not be triaged or posted, 3 no job is readable.
    """
    from logtriage.fleet.supervision import Limits
    from logtriage.memory.ledger import LedgerFault
    from logtriage.settings import load_settings

    settings = load_settings()
    post = _poster(settings, slack) if slack else None  # wrong usage is told before hours of work
    oldest = moment(since, "--since") if since else None
    limits = Limits(job_seconds, int(job_memory * (1 << 20)), offline)
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)  # told before hours of work
    try:
        with _triage(engine, workers or os.cpu_count() or 1, limits) as triage:
            done = _night(settings, root, triage, settled * 60, oldest, output, quiet)
    except LedgerFault as fault:
        complain(str(fault))
        raise typer.Exit(1) from None
    if not quiet:
        _tell(done)
    is_told = post is None or post(done)
    if done.broken or done.faults or not is_told:
        raise typer.Exit(NOT_ALL)


def _night(
    settings: Settings,
    root: str,
    triage: Triage,
    settled_seconds: float,
    oldest: float | None,
    output: Path | None,
    quiet: bool,
) -> Finished:
    from logtriage.fleet.night import run_night
    from logtriage.fleet.publication import markdown, publish, without_secrets
    from logtriage.fleet.store import open_store

    place = root if "{" in root or not root else str(Path(root).absolute())
    store = open_store(settings.database_url, settings.data_dir, place or "the configured sources")
    with _alone(settings.data_dir, store), _progress(quiet) as progress:
        night = store.begin(time.time())
        done = run_night(
            store,
            night,
            _candidates(settings, root, night, oldest),
            triage,
            settled_seconds=settled_seconds,
            oldest=oldest,
            data_dir=None if settings.no_history else settings.data_dir,
            progress=progress,
        )
        if output is None:
            answer(markdown(without_secrets(done.digest)))
        else:
            publish(done.digest, output)
        store.end(night, time.time())
    return done


def _candidates(settings: Settings, root: str, night: Night, oldest: float | None) -> Candidates:
    from logtriage.fleet.night import in_folder, in_sources, since_last
    from logtriage.sources.job import JobSource

    if root and "{" not in root:
        return in_folder(Path(root).absolute())
    sources: Sequence[JobSource]
    if root:
        from pydantic import ValidationError

        from logtriage.sources.folders import Folders

        try:
            sources = [Folders(patterns=(root,))]
        except ValidationError as fault:
            raise typer.BadParameter(f"ROOT: {fault.errors()[0]['msg']}") from None
    else:
        from logtriage.sources.lookup import NO_SOURCE, configured_sources

        sources = configured_sources(settings)
        if not sources:
            raise typer.BadParameter(f"no ROOT, and {NO_SOURCE}")
    return in_sources(sources, oldest if oldest is not None else since_last(night))


@contextmanager
def _triage(engine: str, workers: int, limits: Limits) -> Iterator[Triage]:
    """Who does the work."""
    if engine != "local":
        from logtriage.fleet.cluster import ClusterFault, triaged_on

        try:
            with triaged_on(engine, limits) as triage:
                yield triage
        except ClusterFault as fault:
            complain(str(fault))
            raise typer.Exit(1) from None
        return
    from logtriage.fleet.workers import triaged_here

    def here(tasks: Sequence[Task]) -> Iterator[tuple[Task, Outcome]]:
        return triaged_here(tasks, limits, workers)

    yield here


@contextmanager
def _alone(data_dir: Path, store: FleetStore) -> Iterator[None]:
    """Two nights at once over one place would do everything twice."""
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (data_dir / f"nightly-{store.scope[:16]}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            complain(f"a night over {store.place} is under way already")
            raise typer.Exit(1) from None
        yield


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar on a terminal; elsewhere, in the log of a timer, a line now and then."""
    if quiet or sys.stderr is None:
        yield None
        return
    if not sys.stderr.isatty():
        last = time.monotonic()

        def tell(job: str, done: int, total: int) -> None:
            nonlocal last
            if time.monotonic() - last > LINE_SECONDS or done == total:
                last = time.monotonic()
                complain(f"{done} of {total} jobs are triaged")

        yield tell
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True, markup=False), transient=True) as bars:
        task = bars.add_task("", total=None)

        def advance(job: str, done: int, total: int) -> None:
            bars.update(task, description=escape(visible(job, 60)), completed=done, total=total)

        yield advance


def _poster(settings: Settings, channel: str) -> Callable[[Finished], bool]:
    """What posts a digest, where it has news; it answers False, and says why, where Slack did not take it."""
    if not settings.slack_bot_token.get_secret_value():
        lacking = "no slack_bot_token: set LOGTRIAGE_SLACK_BOT_TOKEN (see docs/slack.md)"
        raise typer.BadParameter(f"--slack: {lacking}")
    try:
        from logtriage.apps.slack.post import NotPosted, post
    except ImportError as fault:
        lacking = f"{fault.name} is not installed (pip install 'logtriage[slack]')"
        raise typer.BadParameter(f"--slack: {lacking}") from None
    from logtriage.fleet.chat import chat_message
    from logtriage.fleet.publication import without_secrets

    def posted(done: Finished) -> bool:
        if done.digest.tonight or done.digest.untriaged:
            try:
                post(settings, channel, chat_message(without_secrets(done.digest)))
            except NotPosted as fault:
                complain(f"the digest was not posted to {visible(channel, 80)}: {fault}")
                return False
        return True

    return posted


def _tell(done: Finished) -> None:
    digest = done.digest
    for each in digest.untriaged[:20]:
        complain(f"warning: {each.key}: {each.status}: {each.reason}")
    for note in digest.notes:
        complain(f"warning: {note}")
    complain(
        f"{done.read} jobs were read, {len(digest.tonight)} are in the digest, "
        f"{len(digest.running)} are still running"
    )
