"""The loop, end to end by command line: one person's word, and the next job of the kind is named."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from taught_jobs import (
    ALL,
    Kind,
    cooling_agent,
    last_words,
    other_alphabet,
    panic,
    storage_client,
    vendor_daemon,
    written,
)

from logtriage import triage
from logtriage.apps.cli import main
from logtriage.memory.rule_folder import ACTIVE, files_in_state, learned_rules
from logtriage.report.document import Verdict
from logtriage.rulebank.bank import load_bank
from logtriage.rulebank.check import lint, prove

FIXTURES = Path(__file__).parent.parent / "fixtures"


pytestmark = pytest.mark.usefixtures("data_dir")


def told(*words: str) -> None:
    assert main([*words]) == 0


def seen(job: Path, tmp_path: Path) -> Verdict:
    """The verdict that the command line gives (and keeps) on a job."""
    target = tmp_path / "verdict.json"
    told("triage", str(job), "--offline", "--json", str(target), "--quiet")
    return Verdict.model_validate(json.loads(target.read_text(encoding="utf-8")))


def taught(kind: Kind, tmp_path: Path, *, named: bool = True) -> Verdict:
    tmp_path.mkdir(exist_ok=True)
    before = seen(written(tmp_path / "first", kind.first), tmp_path)
    if before.verdict.failure_type == kind.failure_type:
        told("confirm", before.id)
    else:
        evidence = ("--evidence", kind.place) if named and kind.place else ()
        told("correct", before.id, "--type", kind.failure_type, *evidence)
    return before


def tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# Nobody points at a line: it is the one that most looks like a failure, or the last words.
UNNAMED = (vendor_daemon, storage_client, cooling_agent, other_alphabet, panic, last_words)


@pytest.mark.parametrize(
    ("make", "named"),
    [(make, True) for make in ALL] + [(make, False) for make in UNNAMED],
    ids=lambda value: value if isinstance(value, bool) else str(value.__name__),
)
def test_the_next_job_of_the_kind_is_named(
    make: Callable[[], Kind], named: bool, tmp_path: Path, data_dir: Path
) -> None:
    kind = make()
    second = written(tmp_path / "second", kind.second)
    before = triage(second, offline=True)
    assert before.verdict.failure_type != kind.failure_type or before.verdict.confidence < 0.9
    version = load_bank(files_in_state(data_dir, ACTIVE)).version

    taught(kind, tmp_path, named=named)
    after = triage(second, offline=True)
    assert after.verdict.failure_type == kind.failure_type
    assert after.verdict.confidence >= 0.9
    assert kind.evidence in after.verdict.evidence[0].text
    if kind.ranks:
        assert after.verdict.culprits.ranks == kind.ranks

    told("rules", "undo")
    told("memory", "forget", "1")
    assert tree(data_dir / "rules") == {}
    assert load_bank(files_in_state(data_dir, ACTIVE)).version == version
    undone = triage(second, offline=True)
    assert undone.id == before.id
    assert undone.verdict == before.verdict


def test_all_that_was_learned_together_holds_the_banks_own_checks(tmp_path: Path, data_dir: Path) -> None:
    healthy = triage(FIXTURES / "completed-scary-words" / "logs", offline=True)
    for number, make in enumerate(ALL[:4]):
        taught(make(), tmp_path / str(number))
    rules = [each.rule for each in learned_rules(data_dir)]
    assert len(rules) == 4
    bank = load_bank(files_in_state(data_dir, ACTIVE))
    assert [each for each in lint(rules) if each.severity == "error"] == []
    # A learned rule may be surer than a general shipped one of another type on its own line, never as sure.
    assert prove(rules, bank) == []
    assert triage(FIXTURES / "completed-scary-words" / "logs", offline=True).verdict == healthy.verdict
    for make in ALL[:4]:
        kind = make()
        verdict = triage(written(tmp_path / kind.name, kind.second), offline=True).verdict
        assert (verdict.failure_type, verdict.confidence >= 0.9) == (kind.failure_type, True)


def test_the_mitigation_that_helped_is_given_to_the_next(tmp_path: Path) -> None:
    kind = ALL[2]()
    before = seen(written(tmp_path / "first", kind.first), tmp_path)
    told(
        "correct", before.id, "--type", kind.failure_type, "--evidence", kind.place,
        "--mitigation", "Ask for a gang of half the size.",
    )  # fmt: skip
    advice = triage(written(tmp_path / "second", kind.second), offline=True).verdict.mitigations
    assert (advice[0].text, advice[0].source) == ("Ask for a gang of half the size.", "memory")


def test_a_rule_is_learned_from_logs_in_an_archive(tmp_path: Path) -> None:
    import shutil

    kind = ALL[3]()
    written(tmp_path / "first", kind.first)
    packed = shutil.make_archive(str(tmp_path / "packed"), "gztar", tmp_path / "first")
    before = seen(Path(packed), tmp_path)
    told("correct", before.id, "--type", kind.failure_type, "--evidence", kind.place)
    after = triage(written(tmp_path / "second", kind.second), offline=True)
    assert after.verdict.failure_type == kind.failure_type
