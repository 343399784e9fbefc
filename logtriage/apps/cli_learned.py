"""`logtriage rules learned|promote|retire|undo|log`: the rules that confirmed diagnoses have taught."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from logtriage.apps.cli_loop import Author, opened_ledger, who
from logtriage.apps.console import answer, complain
from logtriage.report.visible import visible

if TYPE_CHECKING:
    from logtriage.memory.ledger import Change

RuleId = Annotated[str, typer.Argument(metavar="RULE", help="The id of a learned rule, or its ending.")]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why, for the log.")]


def learned() -> None:
    """Learned rules. Told are state, jobs that agree and contradict, lines seen on trial, id, type, title."""
    from logtriage.memory.rule_folder import learned_rules, unreadable_rules
    from logtriage.memory.verdicts import kept_verdicts
    from logtriage.settings import load_settings

    data_dir = load_settings().data_dir
    found, broken = learned_rules(data_dir), unreadable_rules(data_dir)
    for file, fault in broken:
        complain(f"not used: {visible(str(file))}: {visible(fault, 300)}")
    if not found:
        if not broken:
            complain("no rule was learned on this machine yet (logtriage correct ID --type TYPE teaches one)")
        return
    seen: dict[str, int] = {}
    for kept in kept_verdicts(data_dir):
        for rule, count in kept.verdict.mining.trial_rules.items():
            seen[rule] = seen.get(rule, 0) + count
    with opened_ledger() as ledger:
        for each in found:
            agreeing, against = ledger.votes(each.rule.id)
            lines = f"  {seen.get(each.rule.id, 0)} lines" if each.state == "trial" else ""
            answer(
                f"{each.state:7}  +{agreeing} -{against}{lines}  {each.rule.id}  {each.rule.failure_type}\n"
            )
            answer(f"         {visible(each.rule.title, 300)}\n")


def promote(rule_id: RuleId, reason: Reason = "", author: Author = "") -> None:
    """Give a learned rule a say."""
    _move(rule_id, "active", reason or "by hand", author)


def retire(rule_id: RuleId, reason: Reason = "", author: Author = "") -> None:
    """Take a learned rule out of force; its file stays in `retired/`."""
    _move(rule_id, "retired", reason or "by hand", author)


def _move(rule_id: str, state: str, reason: str, author: str) -> None:
    from logtriage.memory.changes import finish_changes, locked, make_changes, moved
    from logtriage.memory.rule_folder import learned_rules
    from logtriage.settings import load_settings

    data_dir = load_settings().data_dir
    with opened_ledger() as ledger, locked(data_dir):
        finish_changes(ledger, data_dir)
        found = [each for each in learned_rules(data_dir) if each.rule.id.endswith(rule_id)]
        if len(found) != 1:
            ids = ", ".join(each.rule.id for each in found[:3])
            raise typer.BadParameter(
                f"{len(found)} learned rules end in {rule_id!r}: {ids}"
                if found
                else f"there is no learned rule {rule_id!r} (see `logtriage rules learned`)"
            )
        if found[0].state == state:
            complain(f"{found[0].rule.id} is {state} already")
            return
        (change,) = make_changes([moved(found[0], state, who(author), reason, data_dir)], ledger, data_dir)
    answer(_told(change))


def undo(author: Author = "") -> None:
    """Take back the last change of the learned rules. It is the last that still stands, byte for byte."""
    from logtriage.memory.changes import locked, undo_last
    from logtriage.memory.ledger import now
    from logtriage.settings import load_settings

    data_dir = load_settings().data_dir
    with opened_ledger() as ledger, locked(data_dir):
        try:
            change = undo_last(ledger, data_dir, who(author), now())
        except ValueError as edited:
            raise typer.BadParameter(str(edited)) from None
    if change is None:
        complain("there is nothing to undo")
        raise typer.Exit(1)
    answer(f"undone: {_told(change)}")


def log(limit: Annotated[int, typer.Option(min=1, help="Show the N newest.")] = 50) -> None:
    """What was done to the learned rules, newest first. Told are when, by whom, what, why."""
    from logtriage.memory.changes import bank_name
    from logtriage.settings import load_settings

    with opened_ledger() as ledger:
        changes = ledger.changes(bank_name(load_settings().data_dir))
    for change in changes[::-1][:limit]:
        answer(_told(change))
    if not changes:
        complain("no learned rule was changed yet")


def _told(change: Change) -> str:
    undone = ", undone since" if change.is_undone else ""
    return (
        f"{change.id}  {change.at}  {visible(change.author, 200)}  {change.action}  {change.rule}"
        f"  ({visible(change.reason, 300)}{undone})\n"
    )
