"""`logtriage memory` and `logtriage similar`: confirmed diagnoses, and which of them a job is like."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logtriage.apps.cli_loop import kept_verdict_of, opened_ledger
from logtriage.apps.console import answer, complain
from logtriage.report.visible import visible

if TYPE_CHECKING:
    from logtriage.memory.incidents import Index
    from logtriage.memory.ledger import Diagnosis
app = typer.Typer(help="Confirmed diagnoses: look at them, share them, forget them.", rich_markup_mode=None)

MOST_FAULTS = 20  # of an import that are named one by one
DiagnosisId = Annotated[int, typer.Argument(metavar="N", help="The number of a diagnosis.")]


@app.command("list")
def list_(
    type_: Annotated[str, typer.Option("--type", metavar="TYPE", help="Only of this failure type.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="Show the N newest.")] = 50,
) -> None:
    """Confirmed diagnoses, newest first. Told are number, when, by whom, type, title."""
    with opened_ledger() as ledger:
        found = ledger.diagnoses(failure_type=type_)
    for each in found[:limit]:
        cells = (f"{each.id:4}", each.at, f"{visible(each.author, 60):12}", f"{each.failure_type:28}")
        answer("  ".join(cells) + f"  {visible(each.title, 200)}\n")
    if not found:
        complain("no diagnosis was confirmed yet" + (f" of type {type_}" if type_ else ""))


@app.command()
def show(number: DiagnosisId) -> None:
    """One diagnosis with its evidence, and what helped."""
    with opened_ledger() as ledger:
        found = [each for each in ledger.diagnoses() if each.id == number]
    if not found:
        raise typer.BadParameter(f"there is no diagnosis {number} (see `logtriage memory list`)")
    _show(found[0])


def _show(each: Diagnosis) -> None:
    instead = "" if each.told == each.failure_type else f" (the verdict said {each.told})"
    facts = {
        "type": each.failure_type + instead,
        "title": each.title,
        "by": f"{each.author}, {each.at}",
        "verdict": each.verdict_id,
        "what helped": each.mitigation or "-",
        "job": str(each.context.get("job", "")),
        "software": ", ".join(each.context.get("frameworks", [])) or "-",
    }
    answer(f"diagnosis {each.id}\n" + "".join(f"  {k + ':':13}{visible(v, 400)}\n" for k, v in facts.items()))
    for cited in each.evidence:
        answer(f"  {visible(cited.file)}:{cited.line}\n    {visible(cited.text, 400)}\n")


@app.command()
def forget(number: DiagnosisId) -> None:
    """Remove a diagnosis. What was learned from it stays; see `logtriage rules retire`."""
    with opened_ledger() as ledger:
        if not ledger.forget(number):
            raise typer.BadParameter(f"there is no diagnosis {number} (see `logtriage memory list`)")
    answer(f"diagnosis {number} is forgotten\n")


@app.command()
def export(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="Where to write it.")] = "-",
) -> None:
    """All diagnoses as JSON lines. They are for `logtriage memory import` elsewhere."""
    from logtriage.memory.exchange import exported

    with opened_ledger() as ledger:
        text = "".join(exported(each) for each in reversed(ledger.diagnoses()))
    if file == "-":
        answer(text)
    else:
        from logtriage.written import write

        write(file, text)


@app.command("import")
def import_(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="What `logtriage memory export` wrote.")],
) -> None:
    """Take over diagnoses from elsewhere. One that is known already is not taken twice.

    What is no diagnosis is named and left out; the exit status is then 1, or 2 where nothing was one.
    Of one whose advice must not be repeated (docs/models.md) the advice is left out.
    """
    from contextlib import nullcontext
    from dataclasses import replace

    from logtriage.agent.dangers import is_dangerous
    from logtriage.memory.exchange import records

    found: list[Diagnosis] = []
    faults: list[str] = []
    advised: list[int] = []
    with nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb") as reading:
        for number, each in records(reading):
            if isinstance(each, str):
                faults.append(f"{file}:{number} is no diagnosis: {visible(each, 200)}")
            else:
                if is_dangerous(each.mitigation):
                    advised.append(number)
                    each = replace(each, mitigation="")
                found.append(each)
    if faults and not found:
        raise typer.BadParameter(faults[0])
    with opened_ledger() as ledger:
        known = {(each.verdict_id, each.author) for each in ledger.diagnoses()}
        new = {(each.verdict_id, each.author): each for each in found}
        new = {key: each for key, each in new.items() if key not in known}
        for each in new.values():
            ledger.add(each)
    answer(f"{len(new)} of {len(found)} diagnoses were new\n")
    if advised:
        complain(f"advice left out, for what it would have done: {len(advised)} (first in line {advised[0]})")
    for fault in faults[:MOST_FAULTS]:
        complain(fault)
    if faults:
        complain(f"records left out: {len(faults)}")
        raise typer.Exit(1)


@app.command()
def reindex() -> None:
    """Make the index of likeness anew. It is made from the ledger and the rules in force."""
    from logtriage.memory import incidents
    from logtriage.memory.proposal import bank_with_learned
    from logtriage.settings import load_settings

    bank = bank_with_learned(load_settings().data_dir)
    with opened_ledger() as ledger:
        texts, _ = incidents.diagnosis_texts(ledger)
    index = _index()
    for collection, entries in (
        (incidents.DIAGNOSES, texts),
        (incidents.RULES, incidents.rule_texts(bank)),
        (incidents.TYPES, incidents.type_texts()),
    ):
        try:
            count = index.bring_in_line(collection, entries, anew=True)
        except incidents.IndexFault as fault:
            complain(str(fault))
            raise typer.Exit(1) from None
        answer(f"{count} {collection} ({index.embedding.name})\n")


def _index() -> Index:
    from logtriage.memory.embedding import EmbeddingFault
    from logtriage.memory.incidents import index_of
    from logtriage.settings import load_settings

    try:
        return index_of(load_settings())
    except EmbeddingFault as fault:
        complain(str(fault))
        raise typer.Exit(1) from None


def similar(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH", help="Logs of a job, or the id of a verdict.")
    ],
    count: Annotated[int, typer.Option(min=1, max=50, help="Show the N nearest.")] = 5,
) -> None:
    """The confirmed diagnoses most like a job, and what helped then."""
    from logtriage.memory.incidents import IndexFault, similar_diagnoses

    lines = _telling(paths)
    with opened_ledger() as ledger:
        if not ledger.diagnoses():
            complain("no diagnosis was confirmed yet (see logtriage confirm and logtriage correct)")
            return
        try:
            found = similar_diagnoses(lines, ledger, _index(), count)
        except IndexFault as fault:
            complain(str(fault))
            raise typer.Exit(1) from None
    if not found:
        complain("no confirmed diagnosis is like this job")
    for likeness, each in found:
        answer(f"{likeness:4.0%}  {each.failure_type}  {visible(each.title, 200)}\n")
        answer(f"      diagnosis {each.id}, by {visible(each.author, 60)}, {each.at}\n")
        if each.mitigation:
            answer(f"      helped: {visible(each.mitigation, 300)}\n")


def _telling(paths: list[str]) -> list[str]:
    """The lines that a job is compared by: those of its verdict, or where it is unsure, faulty ones."""
    from logtriage import pipeline
    from logtriage.memory.incidents import compared_lines
    from logtriage.rulebank.bank import load_bank
    from logtriage.rulebank.matcher import Matcher

    if len(paths) == 1 and paths[0].startswith("v-") and not Path(paths[0]).exists():
        kept = kept_verdict_of(paths[0])
        verdict, paths = kept.verdict, list(kept.paths)
    else:
        verdict = pipeline.triage(paths, offline=True)
    return compared_lines(verdict, paths, Matcher(load_bank()))
