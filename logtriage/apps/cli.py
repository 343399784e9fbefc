"""The command line `logtriage`: it parses, calls one function and prints.

Nothing but typer is imported up here, so that help appears at once; each command imports what it calls.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from logtriage.apps import cli_eval, cli_loop, cli_mcp, cli_memory, cli_model, cli_rules
from logtriage.apps.cli_ask import ask
from logtriage.apps.cli_doctor import doctor
from logtriage.apps.cli_history import history
from logtriage.apps.cli_metrics import metrics
from logtriage.apps.cli_nightly import nightly
from logtriage.apps.cli_slack import slack
from logtriage.apps.console import answer, answer_with, complain, progress_shown, stopped_early
from logtriage.apps.named_job import paths_of

if TYPE_CHECKING:
    from rich.console import Console

    from logtriage.mining.catalogue import TemplateRow
    from logtriage.report.document import Verdict

WRONG_USAGE, NOTHING_READABLE, HUNG_UP, INTERRUPTED = 2, 3, 129, 130
MOST_FAULTS = 20
MOST_TEMPLATES = 50
# click's UsageError; whether it is click's own or typer's copy depends on the version of typer.
USAGE_FAULT: Any = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="logtriage",
    help="Why did this training job die, where did it begin, and what do I do now?",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH", help="Folder, file, glob, '-' for standard input, or an address such as s3://…"
    ),
]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes that read the logs.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress and no warnings.")]


def triage(
    paths: Paths,
    json: Annotated[
        str | None,
        typer.Option(metavar="FILE|-", help="Write the verdict as JSON; the screen then stays empty."),
    ] = None,
    html: Annotated[str | None, typer.Option(metavar="FILE|-", help="Write the report as one page.")] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask no model; nothing leaves this machine.")
    ] = False,
    history: Annotated[
        list[str] | None, typer.Option(metavar="DIR", help="Logs of an earlier run of this job; repeatable.")
    ] = None,
    workers: Workers = None,
    quiet: Quiet = False,
    rules: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", exists=True, dir_okay=False, help="A further rule file; repeatable."),
    ] = None,
    no_history: Annotated[
        bool, typer.Option("--no-history", help="Do not keep the verdict for `confirm` and `history`.")
    ] = False,
    llm: cli_model.Llm = None,
    votes: cli_model.VotesAsked = None,
    time_budget: cli_model.TimeBudget = None,
    show_prompt: cli_model.ShowPrompt = False,
) -> None:
    """Why the job died, where it began, what to do.

    Where sources of jobs are configured, PATH may be the id of a job (not with --offline). Of several runs
    in one folder the last one is judged, the others are named. Ctrl-C ends the reading: the verdict then
    stands on what was read so far, and says so.
    """
    if not all(paths):
        raise typer.BadParameter("an empty PATH; name the folder of the logs")
    if json == "-" and html == "-":
        raise typer.BadParameter("--json and --html cannot both go to standard output")
    for option, target in (("--json", json), ("--html", html)):
        # Told before the logs are read, which can take minutes.
        if target and target != "-" and not Path(target).absolute().parent.is_dir():
            raise typer.BadParameter(f"{option}: there is no folder {Path(target).parent}")
    for run in history or ():
        if "://" not in run and not Path(run).exists():
            raise typer.BadParameter(f"--history: {run} does not exist")

    from logtriage import pipeline

    settings = cli_model.model_settings(llm, votes, time_budget)
    paths = paths if offline else paths_of(paths, settings)
    if show_prompt:
        cli_model.show_prompt(paths, settings, history=history or (), workers=workers, rules=rules or ())
        return
    with progress_shown(quiet) as progress, stopped_early() as enough:
        verdict = pipeline.triage(
            paths,
            offline=offline,
            history=history or (),
            workers=workers,
            rules=rules or (),
            progress=progress,
            enough=enough,
            settings=settings,
        )
    if not quiet:
        cli_model.tell_of_model(verdict)
    kept = not (no_history or settings.no_history) and _keep(verdict, paths, settings.data_dir, quiet)
    _publish(verdict, json, html, quiet, kept)


def _keep(verdict: Verdict, paths: Sequence[str], data_dir: Path, quiet: bool) -> bool:
    """Before the verdict is shown, so that the id on the screen can be confirmed."""
    from logtriage.memory.verdicts import keep

    kept = keep(verdict, paths, data_dir)
    if not kept and not quiet:
        complain(f"warning: the verdict could not be kept in {data_dir}")
    return kept


def _publish(verdict: Verdict, json: str | None, html: str | None, quiet: bool, kept: bool) -> None:
    if json:
        _write(json, verdict.to_json())
    if html:
        from logtriage.report.html import page

        _write(html, page(verdict))
    if not json and not html:
        from logtriage.report import terminal

        answer_with(lambda console: terminal.render(verdict, console, kept=kept))
    elif not quiet and verdict.unreadable:
        first = verdict.unreadable[0]
        more = f" and {len(verdict.unreadable) - 1} more" if len(verdict.unreadable) > 1 else ""
        complain(f"warning: not read: {first.file} ({first.reason}){more}")


def _write(target: str, text: str) -> None:
    """To a file, or to standard output for `-`; UTF-8 in any locale."""
    if target == "-":
        _speak_utf8("strict")
        answer(text)
    else:
        from logtriage.written import write

        write(target, text)


def templates(
    paths: Paths,
    json: Annotated[bool, typer.Option("--json", help="A JSON list on standard output.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Show the N most frequent.")] = None,
    workers: Workers = None,
) -> None:
    """The kinds of lines in the logs, with places."""
    from logtriage import pipeline

    rows = sorted(pipeline.templates(paths, workers=workers), key=lambda row: (-row.count, row.template))
    if json:
        from json import dumps

        _speak_utf8("replace")
        answer(dumps([_template_entry(row) for row in rows[:limit]], ensure_ascii=False, indent=2) + "\n")
    else:
        answer_with(lambda console: _draw_templates(rows, limit or MOST_TEMPLATES, console))


def _template_entry(row: TemplateRow) -> dict[str, Any]:
    from logtriage.report.document import iso_time

    first, last = (
        {"file": at.file, "line": at.line, "time": iso_time(at.time)} for at in (row.first, row.last)
    )
    return {
        "count": row.count,
        "template": row.template,
        "first": first,
        "last": last,
        "ranks": list(row.ranks),
        "hosts": list(row.hosts),
        "files": row.files,
    }


def _draw_templates(rows: Sequence[TemplateRow], limit: int, console: Console) -> None:
    from rich.text import Text

    from logtriage.report import words
    from logtriage.report.document import iso_time
    from logtriage.report.visible import visible

    width = max((len(f"{row.count:,}") for row in rows[:limit]), default=1)
    for row in rows[:limit]:
        ends = []
        for at in (row.first, row.last):
            when = words.clock(iso_time(at.time))
            ends.append(words.place(at.file, at.line) + (f" ({when})" if when else ""))
        where = words.places(row.ranks, row.hosts)
        facts = (ends[0] if row.count == 1 else f"{ends[0]} to {ends[1]}") + (f" · {where}" if where else "")
        head = Text(f"{row.count:>{width},}  ").append(visible(row.template, 1000), style="bold")
        console.print(head, soft_wrap=True)
        console.print(Text(" " * (width + 2) + facts, style="dim"), soft_wrap=True)
    if len(rows) > limit:
        more = words.counted(len(rows) - limit, "more template")
        console.print(Text(f"… and {more} (--limit)", style="dim"))


def schema(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="Where to write it.")] = "-",
) -> None:
    """The JSON Schema of the verdict document."""
    from logtriage.report.schema import schema_text

    _write(file, schema_text())


def version() -> None:
    """Versions of program, rule bank, taxonomy."""
    from logtriage import __version__
    from logtriage.rulebank.bank import load_bank
    from logtriage.taxonomy import taxonomy

    answer(f"logtriage {__version__} (rules {load_bank().version}, taxonomy {taxonomy().version})\n")


def _version_asked(is_asked: bool) -> None:
    if is_asked:
        version()
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version_asked, is_eager=True, help="As the command `version`."),
    ] = False,
) -> None:
    """Why did this training job die, where did it begin, and what do I do now?"""


# In the order in which help lists them, which is that of a person's acquaintance with the program.
for command in (
    *(triage, ask, templates, history, cli_loop.confirm, cli_loop.correct, cli_memory.similar),
    *(nightly, slack, cli_mcp.mcp, doctor, metrics, schema, version),
):
    app.command()(command)
app.command("eval")(cli_eval.evaluate)
app.add_typer(cli_rules.app, name="rules")
app.add_typer(cli_memory.app, name="memory")


class _Terminated(BaseException):
    """A signal came that ends programs: what was begun is undone on the way out, as for Ctrl-C."""

    def __init__(self, number: int) -> None:
        self.status = 128 + number


def _terminate(number: int, frame: object) -> None:
    raise _Terminated(number)


def _obey_signals() -> None:
    """End in order when told to, or when the terminal was closed; not where `nohup` says otherwise."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # no SIGHUP on Windows
        if number is not None and (name == "SIGTERM" or signal.getsignal(number) is not signal.SIG_IGN):
            signal.signal(number, _terminate)


def _status_of(fault: BaseException | None) -> int | None:
    """The exit status if a signal ended the command: what its handler raised, or what came of that.

    Where it is raised while a class is made, Python 3.11 raises a RuntimeError in its place.
    """
    while fault is not None:
        if isinstance(fault, _Terminated):
            return fault.status
        if isinstance(fault, (KeyboardInterrupt, typer.Abort)):
            return INTERRUPTED
        fault = fault.__cause__ or fault.__context__
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; every error is one line on standard error."""
    # Modules and rules make some 200,000 objects that live to the end: looking through them again and
    # again for garbage took a tenth of a small triage.
    gc.set_threshold(200_000, 20, 50)
    atexit.register(gc.freeze)  # at the end Python would look through all of them once more
    # Looking for plugins of pydantic reads the metadata of every installed package.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # Threads for matrices, which are started with numpy, would take the cores from those that read.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _speak_utf8(None)
    if not (sys.argv[1:] if arguments is None else arguments):
        app(args=["--help"], prog_name="logtriage", standalone_mode=False)
        return WRONG_USAGE
    if threading.current_thread() is threading.main_thread():
        _obey_signals()
    messages: list[str] = []
    try:
        status = app(
            args=None if arguments is None else list(arguments), prog_name="logtriage", standalone_mode=False
        )
    except BaseException as fault:
        ended = _status_of(fault)
        if ended is not None:
            status = ended
        elif os.environ.get("LOGTRIAGE_DEBUG") or not isinstance(fault, Exception):
            raise
        else:
            status, messages = _explained(fault)
    if isinstance(status, int) and status >= HUNG_UP:  # typer makes a status of Ctrl-C itself
        messages = ["interrupted" if status == INTERRUPTED else "terminated"]
    with contextlib.suppress(OSError):  # whoever would read them has closed the terminal
        for message in messages:
            complain(message)
    return status if isinstance(status, int) else 0


def _speak_utf8(errors: str | None) -> None:
    """Standard output in UTF-8; with None in the locale's own encoding, which then never fails."""
    if hasattr(sys.stdout, "reconfigure"):
        if errors is None:
            sys.stdout.reconfigure(errors="backslashreplace")
        else:
            sys.stdout.reconfigure(encoding="utf-8", errors=errors)


def _explained(fault: Exception) -> tuple[int, list[str]]:
    """The exit status for an error, and what to say of it."""
    if isinstance(fault, USAGE_FAULT):
        command = fault.ctx.command_path if fault.ctx else "logtriage"
        said = fault.format_message().replace(": Value error, ", ": ")  # pydantic's word, in front of ours
        return WRONG_USAGE, [said if "(see " in said else f"{said} (see {command} --help)"]
    from logtriage.intake.folder import NothingReadable
    from logtriage.rulebank.bank import BankFault
    from logtriage.settings import SettingsFault

    if isinstance(fault, SettingsFault):
        return WRONG_USAGE, [str(fault)]
    if isinstance(fault, NothingReadable):
        return NOTHING_READABLE, [str(fault)]
    if isinstance(fault, BankFault):
        more = len(fault.faults) - MOST_FAULTS
        said = [str(each) for each in fault.faults[:MOST_FAULTS]]
        return WRONG_USAGE, said + ([f"and {more} more faults in the rules"] if more > 0 else [])
    if isinstance(fault, OSError) and fault.strerror:
        return 1, [f"{fault.filename}: {fault.strerror}" if fault.filename else fault.strerror]
    return 1, [f"internal error: {type(fault).__name__}: {fault} (LOGTRIAGE_DEBUG=1 shows where)"]


def run() -> NoReturn:
    """The program: as `main`, and then it ends at once.

    Taking apart what a triage leaves in memory, object by object, would take a tenth of a second more.
    """
    status = main()
    atexit._run_exitfuncs()  # temporary files go
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or its reader is gone
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    run()
