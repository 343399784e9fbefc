"""Changes of learned rules, which no crash leaves half made and each of which can be taken back.

Every change is written into the ledger first, with the file's bytes before and after, and then made; a change
that was planned and not made (the machine went down) is made when the next one is about to be.
"""

from __future__ import annotations

import fcntl
import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from logtriage.memory.discretion import without_secrets
from logtriage.memory.ledger import Change, Ledger, now
from logtriage.memory.rule_folder import ACTIVE, RETIRED, TRIAL, LearnedRule, rules_dir


def bank_name(data_dir: Path) -> str:
    """Whose rule folder this is: a ledger on a server may hold the changes of several machines."""
    return f"{platform.node()}:{rules_dir(data_dir).resolve()}"


@contextmanager
def locked(data_dir: Path, what: str = "rules") -> Iterator[None]:
    """One process at a time changes the rules (or the index) of this data folder; released when it ends.

    Who holds the rules may ask for the index, never the other way round.
    """
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (data_dir / f"{what}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def image(file: Path, data_dir: Path) -> tuple[str, bytes]:
    """A rule file as a change holds it: its path below the rule folder, and its bytes."""
    return str(file.relative_to(rules_dir(data_dir))), file.read_bytes()


def make_changes(changes: Sequence[Change], ledger: Ledger, data_dir: Path) -> list[Change]:
    """Plan the changes, then make them. The caller holds the lock.

    Raises OSError where a file cannot be written; the change is then made later, before the next one.
    """
    finish_changes(ledger, data_dir)
    planned = ledger.plan(changes)
    for change in planned:
        _make(change, data_dir)
        ledger.mark_applied(change.id)
    return [replace(change, is_applied=True) for change in planned]


def finish_changes(ledger: Ledger, data_dir: Path) -> None:
    """Make what was planned and then cut short. The caller holds the lock."""
    for change in ledger.changes(bank_name(data_dir)):
        if not change.is_applied:
            _make(change, data_dir)
            ledger.mark_applied(change.id)


def undo_last(ledger: Ledger, data_dir: Path, author: str, at: str) -> Change | None:
    """Take back the last change that still stands, byte for byte; None where there is none.

    The caller holds the lock. Raises ValueError where the file has been edited since.
    """
    finish_changes(ledger, data_dir)
    standing = [
        change
        for change in ledger.changes(bank_name(data_dir))
        if not change.is_undone and change.action != "undone"
    ]
    if not standing:
        return None
    last = standing[-1]
    if last.after is not None:
        file = rules_dir(data_dir) / last.after[0]
        if not file.is_file() or file.read_bytes() != last.after[1]:
            raise ValueError(f"{file} was edited after that change; nothing was undone")
    back = replace(
        last, action="undone", author=author, at=at, reason=f"takes back change {last.id} ({last.action})",
        before=last.after, after=last.before, diagnosis=None, is_applied=False, id=0,
    )  # fmt: skip
    (planned,) = ledger.plan([back], undoes=last.id)
    _make(planned, data_dir)
    ledger.mark_applied(planned.id)
    return last


def _make(change: Change, data_dir: Path) -> None:
    """Bring the files into the state after the change; a second time changes nothing."""
    folder = rules_dir(data_dir)
    if change.after is not None:
        target = folder / change.after[0]
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.part")
        with part.open("wb") as file:
            file.write(change.after[1])
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    if change.before is not None and (change.after is None or change.before[0] != change.after[0]):
        (folder / change.before[0]).unlink(missing_ok=True)


def moved(
    learned: LearnedRule, state: str, author: str, reason: str, data_dir: Path, diagnosis: int | None = None
) -> Change:
    """The change that brings a learned rule into another state."""
    before = image(learned.file, data_dir)
    return Change(
        rule=learned.rule.id,
        action={ACTIVE: "promoted", RETIRED: "retired", TRIAL: "put on trial"}[state],
        author=author,
        at=now(),
        reason=without_secrets(reason),
        bank=bank_name(data_dir),
        before=before,
        after=(f"{state}/{learned.file.name}", before[1]),
        diagnosis=diagnosis,
    )
