"""`logtriage ask`: a question about a job in plain words."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logtriage.apps.console import answer, answer_with, complain, progress_shown
from logtriage.apps.named_job import paths_of

if TYPE_CHECKING:
    from logtriage.answers.reply import Quoted, Reply
    from logtriage.report.document import Verdict
    from logtriage.settings import Settings

NOT_UNDERSTOOD = 2  # as any wrong usage
HERE = {"embedding": "lexical", "chroma_url": ""}  # settings under which likeness is told without a server


def ask(
    path: Annotated[
        str,
        typer.Argument(metavar="PATH", help="Folder, file, glob, address or id of a job, or of a verdict."),
    ],
    question: Annotated[str, typer.Argument(metavar="QUESTION", help='Such as "which node?"')],
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask no model; nothing leaves this machine.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress and no warnings.")] = False,
) -> None:
    """Answer a question about a job, with the lines that show it.

    Answers come from the verdict; a model, where one is configured, answers what the verdict does not.
    """
    from logtriage.answers.precedents import precedents_of
    from logtriage.answers.questions import Kind
    from logtriage.answers.reply import reply_to
    from logtriage.report.terminal import draw_flowed
    from logtriage.settings import load_settings

    settings = load_settings()
    verdict, paths = _verdict(path, settings, offline, quiet)
    known = settings.model_copy(update=HERE) if offline else settings
    reply = reply_to(question, verdict, lambda: precedents_of(verdict, known))
    if reply is None and not offline:
        reply = _by_model(paths, question, settings)
    if reply is None:
        kinds = "".join(f"  {kind}\n" for kind in Kind)
        complain("this question is of no kind that I know. You can ask:", kinds)
        raise typer.Exit(NOT_UNDERSTOOD)
    if sys.stdout is not None and sys.stdout.isatty():
        answer_with(lambda console: draw_flowed(_told(reply), console))
    else:
        answer(_told(reply))


def _by_model(paths: Sequence[str], question: str, settings: Settings) -> Reply | None:
    from logtriage.agent.occasion import unavailable

    if settings.llm == "never" or unavailable(settings):
        return None
    from logtriage import pipeline
    from logtriage.agent.job_question import ask_about_job

    try:
        reply = ask_about_job(pipeline.desk_for(list(paths), settings=settings), question, settings)
    except ImportError as fault:
        complain(f"warning: no model was asked: {fault.name} is not installed (pip install 'logtriage[llm]')")
        return None
    if reply is None:
        complain("warning: the model gave no answer in time that lines of the logs bear out")
    return reply


def _verdict(path: str, settings: Settings, offline: bool, quiet: bool) -> tuple[Verdict, Sequence[str]]:
    """The verdict, and the paths that it is about."""
    from logtriage import pipeline
    from logtriage.apps.cli_loop import kept_verdict_of
    from logtriage.memory.verdicts import keep

    if path.startswith("v-") and not Path(path).exists():
        kept = kept_verdict_of(path)
        return kept.verdict, kept.paths
    paths = [path] if offline else paths_of([path], settings)
    with progress_shown(quiet) as progress:
        verdict = pipeline.triage(paths, offline=offline, settings=settings, progress=progress)
    if not settings.no_history:
        keep(verdict, paths, settings.data_dir)
    return verdict, paths


def _told(reply: Reply) -> str:
    return reply.text + "\n" + "".join(map(_cited, reply.lines))


def _cited(line: Quoted) -> str:
    from logtriage.report import words

    facts = f"  {line.facts}" if line.facts else ""
    text = f"    {words.shortened(line.text.strip(), 400)[0]}\n" if line.text else ""
    return f"  {words.place(line.file, line.line)}{facts}\n{text}"
