"""A user's own cases: the jobs on whose verdicts people have had their say, as far as their logs exist."""

from __future__ import annotations

import glob
from dataclasses import dataclass
from pathlib import Path

from logtriage.evaluation.case import Case, LabelledLine
from logtriage.memory.ledger import Diagnosis, Ledger
from logtriage.memory.rule_folder import ACTIVE, learned_rules
from logtriage.memory.verdicts import kept_verdict
from logtriage.taxonomy import taxonomy


@dataclass(frozen=True, slots=True)
class ConfirmedCases:
    """`gone` counts jobs whose logs or kept verdicts are not there any more."""

    cases: tuple[Case, ...]
    gone: int


def confirmed_cases(ledger: Ledger, data_dir: Path) -> ConfirmedCases:
    """One case for each job that was confirmed or corrected; of several words on it the last counts.

    A job is judged without the learned rules that it taught itself, else it would always be right.
    """
    diagnoses = ledger.diagnoses()  # newest first
    paths_of = {each.verdict_id: _paths(each.verdict_id, data_dir) for each in diagnoses}
    learned = learned_rules(data_dir, [ACTIVE])
    cases: dict[tuple[str, ...], Case] = {}
    for diagnosis in diagnoses:
        paths = paths_of[diagnosis.verdict_id]
        if not paths or paths in cases or diagnosis.failure_type not in taxonomy():
            continue
        # The verdict after a lesson has another id: what matters is whose logs taught a rule.
        others = [
            each.file
            for each in learned
            if each.rule.provenance is None or paths_of.get(each.rule.provenance.verdict) != paths
        ]
        cases[paths] = _case(diagnosis, paths, tuple(others))
    return ConfirmedCases(tuple(cases.values()), sum(not paths for paths in paths_of.values()))


def _paths(verdict_id: str, data_dir: Path) -> tuple[str, ...]:
    """Where the logs of a kept verdict are; empty where one of them is gone."""
    try:
        paths = kept_verdict(verdict_id, data_dir).paths
    except KeyError:
        return ()
    there = all("://" in path or Path(path).exists() or glob.glob(path) for path in paths)  # noqa: PTH207
    return paths if there else ()


def _case(diagnosis: Diagnosis, paths: tuple[str, ...], learned: tuple[Path, ...]) -> Case:
    # A person who corrects a verdict says nothing of its culprits, and where no line was named the cited
    # ones are those of the wrong verdict.
    agreed = diagnosis.told == diagnosis.failure_type
    is_named = agreed or not diagnosis.failure_type.startswith(("none.", "unknown", "hang.", "slow."))
    culprits = diagnosis.context.get("culprits", {}) if agreed else {}
    return Case(
        name=diagnosis.verdict_id,
        paths=paths,
        failure_type=diagnosis.failure_type,
        culprit_ranks=tuple(sorted(culprits.get("ranks", ()))),
        culprit_hosts=tuple(culprits.get("hosts", ())),
        evidence=tuple(LabelledLine(each.file, line=each.line) for each in diagnosis.evidence)
        if is_named
        else (),
        learned=learned,
    )
