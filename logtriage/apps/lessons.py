"""What a person says of a verdict, taken to the ledger and the learned rules: for every way of saying it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from logtriage.report.visible import visible

if TYPE_CHECKING:
    from logtriage.memory.learning import Lesson, Word
    from logtriage.memory.verdicts import KeptVerdict
    from logtriage.report.document import Verdict
    from logtriage.settings import Settings


def teach(kept: KeptVerdict, word: Word, settings: Settings) -> Lesson:
    """Write the word down, then learn what the guards let through.

    Raises LedgerFault, and EvidenceFault where the named line cannot be had.
    """
    from logtriage.memory.learning import learn
    from logtriage.memory.ledger import open_ledger

    ledger = open_ledger(settings.database_url, settings.data_dir)
    return learn(kept, word, ledger, settings.data_dir, _judged, promote_after=settings.promote_after)


def _judged(paths: Sequence[str], learned: Sequence[Path]) -> Verdict:
    from logtriage import pipeline

    return pipeline.triage(list(paths), offline=True, learned=learned)


def outcome(lesson: Lesson) -> tuple[str, str]:
    """What was said, in one line, and what became of the rule that could follow from it."""
    diagnosis, rule = lesson.diagnosis, lesson.rule
    agreed = (
        "confirmed as" if diagnosis.told == diagnosis.failure_type else f"corrected from {diagnosis.told} to"
    )
    said = (
        f"{diagnosis.verdict_id} {agreed} {diagnosis.failure_type} by {visible(diagnosis.author, 200)} "
        f"(diagnosis {diagnosis.id})"
    )
    if lesson.changed_since:
        files = ", ".join(map(visible, lesson.changed_since[:3]))
        more = f" and {len(lesson.changed_since) - 3} more" if len(lesson.changed_since) > 3 else ""
        said += f"; the folder changed since that verdict: {files}{more}"
    if rule is None:
        return said, visible(lesson.why, 400)
    on_trial = f"on trial: {visible(lesson.why, 400)}"
    return said, "has a say from now on" if lesson.state == "active" else on_trial
