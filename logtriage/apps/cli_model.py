"""The options of `logtriage triage` that concern a language model."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from logtriage.apps.console import answer, complain

if TYPE_CHECKING:
    from pathlib import Path

    from logtriage.report.document import Verdict
    from logtriage.settings import Settings


class When(StrEnum):
    NEVER = "never"
    AUTO = "auto"
    ALWAYS = "always"


Llm = Annotated[
    When | None,
    typer.Option("--llm", help="Ask the configured model: never, about unsure verdicts, or always."),
]
VotesAsked = Annotated[int | None, typer.Option("--votes", min=1, max=25, help="Votes of the model at most.")]
TimeBudget = Annotated[
    float | None,
    typer.Option("--time-budget", min=0.1, metavar="SECONDS", help="For all votes together (60)."),
]
ShowPrompt = Annotated[
    bool, typer.Option("--show-prompt", help="Print what a model would be sent, and send nothing.")
]


def model_settings(llm: When | None, votes: int | None, seconds: float | None) -> Settings:
    """The settings in force, with what the command line says of the model."""
    from logtriage.settings import load_settings

    told = {"llm": llm.value if llm else None, "llm_votes": votes, "llm_seconds": seconds}
    given = {name: value for name, value in told.items() if value is not None}
    return load_settings().model_copy(update=given)


def show_prompt(
    paths: Sequence[str],
    settings: Settings,
    *,
    history: Sequence[str],
    workers: int | None,
    rules: Sequence[Path],
) -> None:
    from logtriage import pipeline

    try:
        shown = pipeline.prompt_for(
            list(paths), settings=settings, history=history, workers=workers, rules=rules
        )
    except ImportError as fault:
        raise typer.BadParameter(
            f"--show-prompt: {fault.name} is not installed (pip install 'logtriage[llm]')"
        ) from None
    answer(shown)


def tell_of_model(verdict: Verdict) -> None:
    """On standard error where the answer itself does not say it: what kept a model from being asked,
    or its answers from being recorded."""
    from logtriage.report.document import UNRECORDED

    use = verdict.model
    if use is not None and not use.asked and "installed" in use.why:
        complain(f"warning: no model was asked: {use.why}")
    if use is not None and (unkept := use.result.partition(UNRECORDED)[2]):
        complain(f"warning: the model's answers were not recorded: {unkept}")
