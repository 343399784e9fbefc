"""`logtriage eval`: how good verdicts are on jobs whose cause is known."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from logtriage.apps.cli_loop import opened_ledger
from logtriage.apps.console import answer, complain
from logtriage.report.visible import visible

if TYPE_CHECKING:
    from logtriage.evaluation.case import Case
    from logtriage.evaluation.figures import Reliability
    from logtriage.evaluation.score import Score

SCHEMA = "logtriage.evaluation/1"


def evaluate(
    cases: Annotated[
        Path | None,
        typer.Argument(metavar="CASES", help="A folder of cases: NAME/logs and NAME/truth.yaml."),
    ] = None,
    confirmed: Annotated[
        bool, typer.Option("--confirmed", help="Instead: the jobs on which people had their say here.")
    ] = False,
    only: Annotated[str, typer.Option(metavar="GLOB", help="Cases whose name matches.")] = "*",
    json: Annotated[
        str | None, typer.Option(metavar="FILE|-", help="All scores and figures as JSON.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Jobs that are judged at the same time; one a core.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Score verdicts against labelled jobs. Or against what people said of their own. No model is asked."""
    if (cases is None) != confirmed:
        raise typer.BadParameter("name a folder of CASES, or say --confirmed")
    chosen = _confirmed(only) if cases is None else _labelled(cases, only)
    from logtriage.evaluation.trial import scores

    with _counted(quiet) as progress:
        found = scores(chosen, workers=workers, progress=progress)
    if json:
        from json import dumps

        text = dumps(_document(found), ensure_ascii=True, indent=2) + "\n"
        if json == "-":
            answer(text)
        else:
            from logtriage.written import write

            write(json, text)
    else:
        answer(_told(found))


def _labelled(folder: Path, only: str) -> Sequence[Case]:
    from logtriage.evaluation.case import LabelFault, labelled_cases

    try:
        return labelled_cases(folder, only)
    except LabelFault as fault:
        raise typer.BadParameter(str(fault)) from None


def _confirmed(only: str) -> Sequence[Case]:
    from fnmatch import fnmatchcase

    from logtriage.evaluation.confirmed import confirmed_cases
    from logtriage.settings import load_settings

    with opened_ledger() as ledger:
        found = confirmed_cases(ledger, load_settings().data_dir)
    if found.gone:
        complain(f"{found.gone} confirmed verdicts are left out: their logs are not there any more")
    chosen = [each for each in found.cases if fnmatchcase(each.name, only)]
    if not chosen:
        complain("no confirmed job can be judged again (see logtriage confirm and logtriage correct)")
        raise typer.Exit(2)
    return chosen


@contextmanager
def _counted(quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("", total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def _told(scores: Sequence[Score]) -> str:
    from logtriage.evaluation.figures import by_type, confusion, figures, reliability

    errors = sum(bool(each.error) for each in scores)
    pace = sum(each.seconds for each in scores) / len(scores)
    lines = [f"{len(scores)} cases, {errors} without a verdict, {pace:.2f} s a case"]
    for figure in figures(scores):
        lines.append(f"  {figure.name:10}{figure.value:6.3f}  of {figure.cases:4}  {figure.means}")
    missed = [each for each in scores if not each.is_right]
    lines += ["", f"Not right in all ({len(missed)})"]
    for each in missed:
        lines.append(f"  {visible(each.case, 80)}: {each.truth}, confidence {each.confidence:.2f}")
        lines += [f"      {visible(miss, 400)}" for miss in each.misses]
    lines += ["", "By type                        cases  right  named  of these right  confidence"]
    for kind in by_type(scores):
        lines.append(
            f"  {kind.failure_type:28} {kind.cases:5}  {kind.right:5}  {kind.named:5}  "
            f"{kind.named_rightly:14}  {kind.confidence:10.2f}"
        )
    if pairs := confusion(scores):
        lines += ["", "Taken for another"]
        lines += [f"  {count:3}  {truth} → {got}" for truth, got, count in pairs]
    lines += ["", *_reliability(reliability(_told_confidences(scores)))]
    return "\n".join(lines) + "\n"


def _told_confidences(scores: Sequence[Score]) -> list[tuple[float, bool]]:
    return [(each.confidence, each.type) for each in scores if not each.error]


def _reliability(found: Reliability) -> list[str]:
    lines = ["Confidence       verdicts  mean  of them right"]
    for each in found.bins:
        span = f"{each.low:.1f} to {each.high:.1f}"
        lines.append(f"  {span:13} {each.count:9}  {each.confidence:4.2f}  {each.right:13.2f}")
    return [*lines, f"  expected calibration error {found.ece:.3f}, Brier score {found.brier:.3f}"]


def _document(scores: Sequence[Score]) -> dict[str, Any]:
    from dataclasses import asdict

    from logtriage.evaluation.figures import by_type, confusion, figures, reliability

    return {
        "schema": SCHEMA,
        "figures": {each.name: {"value": each.value, "cases": each.cases} for each in figures(scores)},
        "types": [asdict(each) for each in by_type(scores)],
        "confusion": [
            {"truth": truth, "got": got, "cases": count} for truth, got, count in confusion(scores)
        ],
        "reliability": asdict(reliability(_told_confidences(scores))),
        "cases": [_entry(each) for each in scores],
    }


def _entry(score: Score) -> dict[str, Any]:
    from dataclasses import asdict

    entry = asdict(score)
    entry["class"] = entry.pop("class_")
    return entry | {"right": score.is_right, "overclaim": score.overclaim}
