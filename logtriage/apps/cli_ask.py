"""`logtriage ask`: a question about a job in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logtriage.apps.console import answer, progress_shown

if TYPE_CHECKING:
    from logtriage.answers.reply import Quoted, Reply
    from logtriage.report.document import Verdict
    from logtriage.settings import Settings


def ask(
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="Folder, file, glob or address of a job, or a verdict's id.")
    ],
    question: Annotated[str, typer.Argument(metavar="QUESTION", help='Such as "which node?"')],
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask no model; nothing leaves this machine.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress and no warnings.")] = False,
) -> None:
    """A question about a job in plain words, answered with the lines that show it.

    Answers come from the verdict; a model, where one is configured, answers what the verdict does not.
    """
    from logtriage.answers.precedents import precedents_of
    from logtriage.answers.reply import reply_to, what_can_be_asked
    from logtriage.settings import load_settings

    settings = load_settings()
    if offline:
        settings = settings.model_copy(update={"llm": "never"})
    verdict = _verdict(path, settings, quiet)
    reply = reply_to(question, verdict, lambda: precedents_of(verdict, settings))
    if reply is None:
        raise typer.BadParameter(f"this question is of no kind that I know. {what_can_be_asked()}")
    answer(_told(reply))


def _verdict(path: str, settings: Settings, quiet: bool) -> Verdict:
    from logtriage import pipeline
    from logtriage.apps.cli_loop import kept_verdict_of
    from logtriage.memory.verdicts import keep

    if path.startswith("v-") and not Path(path).exists():
        return kept_verdict_of(path).verdict
    with progress_shown(quiet) as progress:
        verdict = pipeline.triage(path, settings=settings, progress=progress)
    if not settings.no_history:
        keep(verdict, [path], settings.data_dir)
    return verdict


def _told(reply: Reply) -> str:
    return reply.text + "\n" + "".join(map(_cited, reply.lines))


def _cited(line: Quoted) -> str:
    from logtriage.report import words

    facts = f"  {line.facts}" if line.facts else ""
    text = f"    {words.shortened(line.text.strip(), 400)[0]}\n" if line.text else ""
    return f"  {words.place(line.file, line.line)}{facts}\n{text}"
