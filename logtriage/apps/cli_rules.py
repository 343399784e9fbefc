"""`logtriage rules`: look at the rule bank, check it, and try a rule on logs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from logtriage.apps import cli_learned
from logtriage.apps.console import answer, complain
from logtriage.report.visible import prose, visible

if TYPE_CHECKING:
    from logtriage.rulebank.bank import Bank
    from logtriage.rulebank.rule import Fault, Rule

app = typer.Typer(help="Look at and check the rule bank, and at what was learned.", rich_markup_mode=None)
for command in (
    cli_learned.learned,
    cli_learned.promote,
    cli_learned.retire,
    cli_learned.undo,
    cli_learned.log,
):
    app.command()(command)

RuleFiles = Annotated[
    list[Path] | None,
    typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="Only these; default: the bank."),
]
Extra = Annotated[
    list[Path] | None,
    typer.Option(
        "--rules", metavar="FILE", exists=True, dir_okay=False, help="A further rule file; repeatable."
    ),
]


@app.command("list")
def list_(
    type_: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="Only rules of this type or group of types.")
    ] = "",
    rules: Extra = None,
) -> None:
    """All rules, one a line: id, role, strength, failure type, title."""
    chosen = [rule for rule in _bank(rules).rules if _is_of_type(rule, type_)]
    if type_ and not chosen:
        raise typer.BadParameter(f"no rule has the failure type {type_!r}")
    rows = [(rule.id, rule.role, rule.strength, rule.failure_type or "-", rule.title) for rule in chosen]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    for row in rows:
        cells = [visible(cell).ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)]
        answer("  ".join(cells).rstrip() + "\n")


def _bank(rules: Sequence[Path] | None) -> Bank:
    """The rules in force: shipped ones, learned ones that have a say, and those of further files."""
    from logtriage.memory.rule_folder import ACTIVE, files_in_state
    from logtriage.rulebank.bank import load_bank
    from logtriage.settings import load_settings

    return load_bank([*files_in_state(load_settings().data_dir, ACTIVE), *(rules or ())])


def _is_of_type(rule: Rule, wanted: str) -> bool:
    return not wanted or f"{rule.failure_type}.".startswith(wanted.rstrip(".") + ".")


@app.command()
def show(
    rule_id: Annotated[str, typer.Argument(metavar="RULE", help="The id of a rule.")], rules: Extra = None
) -> None:
    """One rule with all that it says and the lines that prove it."""
    rule = _named(rule_id, _bank(rules))
    facts: list[tuple[str, str]] = [
        ("title", rule.title),
        ("stands in", f"{rule.file}:{rule.line}"),
        ("failure type", rule.failure_type or "-"),
        ("role", f"{rule.role}, {rule.strength}" + (", voids other rules" if rule.voids else "")),
        ("keywords", ", ".join(rule.keywords)),
        ("pattern", rule.pattern),
    ]
    optional = {
        "marks": rule.marks or "",
        "framework": rule.framework or "",
        "only in": ", ".join(rule.where),
        "explains": ", ".join(rule.explains),
        "learned": f"{rule.provenance.evidence} of {rule.provenance.verdict}, by {rule.provenance.by}, "
        f"{rule.provenance.at}"
        if rule.provenance
        else "",
    }
    facts += [(name, value) for name, value in optional.items() if value]
    answer(f"{rule.id}\n" + "".join(f"  {name + ':':14}{visible(value)}\n" for name, value in facts))
    lists = {
        "what to do": [f"{each.text}" + (f" ({each.when})" if each.when else "") for each in rule.mitigation],
        "references": rule.references,
        "matches": [example.line for example in rule.examples],
        "does not match": rule.counterexamples,
    }
    for name, entries in lists.items():
        if entries:
            answer(f"  {name}:\n" + "".join(f"    {visible(entry)}\n" for entry in entries))


def _named(rule_id: str, bank: Bank) -> Rule:
    from difflib import get_close_matches

    ids = {rule.id: rule for rule in bank.rules}
    if rule_id not in ids:
        near = get_close_matches(rule_id, ids, n=3)
        raise typer.BadParameter(
            f"there is no rule {rule_id!r}" + (f"; did you mean {' or '.join(near)}?" if near else "")
        )
    return ids[rule_id]


@app.command()
def lint(files: RuleFiles = None) -> None:
    """Check the form of the rules. Exit status 1 where an error was found."""
    from logtriage.rulebank.check import lint as faults_of_form

    _report(files, lambda rules, bank: faults_of_form(rules))


@app.command()
def test(files: RuleFiles = None) -> None:
    """Prove each rule on its own examples and on those of all others. Exit status 1 where one fails."""
    from logtriage.rulebank.check import prove

    _report(files, prove)


def _report(files: Sequence[Path] | None, check: Callable[[Sequence[Rule], Bank], list[Fault]]) -> None:
    """Print the faults that `check` finds in the named files, or in the whole bank, and a count."""
    from logtriage.report.words import counted
    from logtriage.rulebank.bank import BankFault, load_bank, read_rule_file, rule_files

    try:
        shipped = {path.resolve() for path in rule_files()}
        bank = load_bank([path for path in files or () if path.resolve() not in shipped])
        rules = [rule for path in files for rule in read_rule_file(path)] if files else bank.rules
        faults: Sequence[Fault] = [*bank.faults, *check(rules, bank)]
        checked = counted(len(rules), "rule")
    except BankFault as fault:
        faults, checked = fault.faults, "rules that cannot be loaded"
    for each in dict.fromkeys(faults):
        mild = "warning: " if each.severity == "warning" else ""
        answer(f"{mild}{prose(str(each))}\n")
    errors = sum(each.severity == "error" for each in set(faults))
    warnings = len(set(faults)) - errors
    answer(f"{checked}: {counted(errors, 'error')}, {counted(warnings, 'warning')}\n")
    if errors:
        raise typer.Exit(1)


@app.command("try")
def try_(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="A rule file, or the id of a rule.")],
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Logs to run it on.")],
    limit: Annotated[int, typer.Option(min=1, help="Stop after N lines.")] = 200,
) -> None:
    """The log lines that a rule matches, with what it captures."""
    from itertools import islice

    from logtriage.memory.tried import try_rule

    try:
        found = list(islice(try_rule(rule, paths), limit + 1))
    except KeyError as unknown:
        raise typer.BadParameter(str(unknown.args[0])) from None
    for each in found[:limit]:
        answer(f"{visible(each.file)}:{each.line}: {visible(each.text, 500)}\n")
        if each.captures:
            captured = ", ".join(f"{name}={visible(value, 200)}" for name, value in each.captures)
            answer(f"    {captured}\n")
    if not found:
        complain(f"no line matches {rule}")
    elif len(found) > limit:
        complain(f"stopped after {limit} lines (--limit)")
