"""`logtriage confirm` and `correct`: what people say of verdicts, and what is learned from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from logtriage.apps.console import answer, complain
from logtriage.report.visible import visible

if TYPE_CHECKING:
    from logtriage.memory.learning import Lesson
    from logtriage.memory.ledger import Ledger
    from logtriage.memory.verdicts import KeptVerdict

TYPES = (
    "What it was, an id of rules/taxonomy.yaml such as data.corrupt; `unknown`: not that, and nobody knows."
)
VerdictId = Annotated[
    str, typer.Argument(metavar="ID", help="The verdict's id, or its beginning (see `logtriage history`).")
]
Author = Annotated[str, typer.Option(metavar="NAME", help="Who says so; by default the login name.")]
Evidence = Annotated[
    str, typer.Option(metavar="FILE:LINE", help="The line that shows the root cause, FILE as in the verdict.")
]
Helped = Annotated[str, typer.Option("--mitigation", metavar="TEXT", help="What helped.")]


def confirm(
    verdict_id: VerdictId, evidence: Evidence = "", mitigation: Helped = "", author: Author = ""
) -> None:
    """Say that a verdict was right. A rule is learned where no rule is sure of it yet."""
    kept = kept_verdict_of(verdict_id)
    if kept.verdict.verdict.failure_type == "unknown":
        raise typer.BadParameter("that verdict names no cause; name it: logtriage correct ID --type TYPE")
    _learn(kept, kept.verdict.verdict.failure_type, evidence, mitigation, author)


def correct(
    verdict_id: VerdictId,
    type_: Annotated[
        str,
        typer.Option("--type", metavar="TYPE", help=TYPES),
    ],
    evidence: Evidence = "",
    mitigation: Helped = "",
    author: Author = "",
) -> None:
    """Say what a job really died of. A rule is learned from the line that shows it."""
    from logtriage.taxonomy import taxonomy

    try:
        taxonomy()[type_]
    except KeyError as unknown:
        raise typer.BadParameter(str(unknown.args[0])) from None
    _learn(kept_verdict_of(verdict_id), type_, evidence, mitigation, author)


def kept_verdict_of(verdict_id: str) -> KeptVerdict:
    from logtriage.memory.verdicts import kept_verdict
    from logtriage.settings import load_settings

    try:
        return kept_verdict(verdict_id, load_settings().data_dir)
    except KeyError as missing:
        raise typer.BadParameter(str(missing.args[0])) from None


@contextmanager
def opened_ledger() -> Iterator[Ledger]:
    """The ledger that is configured; what is wrong with it is one line and exit status 1."""
    from logtriage.memory.ledger import LedgerFault, open_ledger
    from logtriage.settings import load_settings

    settings = load_settings()
    try:
        yield open_ledger(settings.database_url, settings.data_dir)
    except LedgerFault as fault:
        complain(str(fault))
        raise typer.Exit(1) from None


def who(author: str) -> str:
    """The author that was named, or the login name."""
    from getpass import getuser

    if named := " ".join(author.replace("\0", " ").split()):
        return named.encode("utf-8", "replace").decode()  # the shell passes on any bytes
    try:
        return getuser()
    except (OSError, KeyError):  # a user without a name, in many containers
        return "unknown"


def _learn(kept: KeptVerdict, failure_type: str, evidence: str, mitigation: str, author: str) -> None:
    from logtriage.apps.lessons import teach
    from logtriage.memory.evidence import EvidenceFault
    from logtriage.memory.learning import Word
    from logtriage.memory.ledger import LedgerFault
    from logtriage.settings import load_settings

    word = Word(failure_type, who(author), evidence, " ".join(mitigation.split()))
    try:
        lesson = teach(kept, word, load_settings())
    except EvidenceFault as fault:
        raise typer.BadParameter(str(fault)) from None
    except LedgerFault as fault:
        complain(str(fault))
        raise typer.Exit(1) from None
    _tell(lesson)


def _tell(lesson: Lesson) -> None:
    from logtriage.apps.lessons import outcome

    rule = lesson.rule
    said, state = outcome(lesson)
    answer(f"{said}\n")
    if lesson.witness is not None:
        cited = lesson.witness.cited
        moved = lesson.witness.moved_from
        note = f" (line {moved} belongs to its traceback)" if moved is not None else ""
        answer(
            f"  evidence  {visible(cited.file)}:{cited.line}{note}\n            {visible(cited.text, 300)}\n"
        )
    if rule is None:
        answer(f"  no rule   {state}\n")
    else:
        grave = f", in lines at {rule.level.value} or graver" if rule.level else ""
        whole = f", where the ratio is {rule.ratio.value}" if rule.ratio else ""
        answer(f"  rule      {rule.id}\n            {state}\n")
        beside = "".join(f", beside {name} = {value}" for name, value in rule.beside)
        answer(f"            {visible(rule.pattern, 400)}{visible(beside, 200)}{grave}{whole}\n")
    for change in lesson.changes:
        if rule is None or change.rule != rule.id:
            answer(f"  {change.action:9} {change.rule}: {visible(change.reason, 300)}\n")
