"""What becomes of a learned rule: on trial, in force, retired, taken back; and what people do to its file."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from taught_jobs import steps, text, written

from logtriage import triage
from logtriage.apps.cli import main
from logtriage.memory.rule_folder import ACTIVE, RETIRED, TRIAL, learned_rules
from logtriage.report.document import Verdict

DAY = "2026-03-03"


pytestmark = pytest.mark.usefixtures("data_dir")


def done(*words: str) -> None:
    assert main([*words]) == 0


def kept(job: Path) -> Verdict:
    target = job.parent / f"{job.name}.json"
    done("triage", str(job), "--offline", "--json", str(target), "--quiet")
    return Verdict.model_validate(json.loads(target.read_text(encoding="utf-8")))


def states(data_dir: Path) -> list[str]:
    return [each.state for each in learned_rules(data_dir)]


def doubtful_job(folder: Path, spindle: int, magazine: int) -> Path:
    """Two lines could be meant, so that a rule is not believed at once."""
    lines = (
        f"{DAY} 04:01:00,000 ERROR loomd: warp beam tension lost on spindle {spindle}",
        f"{DAY} 04:01:01,000 ERROR weaverd: pattern card unreadable in magazine {magazine}",
    )
    return written(folder, {"rank0.log": text(steps(DAY, 4, 5), *lines)})


def jammed_job(folder: Path, shuttle: int) -> Path:
    line = f"{DAY} 04:01:00,000 ERROR loomd: shuttle {shuttle} jammed inside the reed"
    return written(folder, {"rank0.log": text(steps(DAY, 4, 5), line)})


def tree(folder: Path) -> dict[str, str]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_rule_on_trial_counts_and_has_no_say_until_other_jobs_agree(tmp_path: Path, data_dir: Path) -> None:
    first = kept(doubtful_job(tmp_path / "first", 4, 9))
    done("correct", first.id, "--type", "storage.filesystem")
    assert states(data_dir) == [TRIAL]
    (rule,) = [each.rule for each in learned_rules(data_dir)]

    second = kept(doubtful_job(tmp_path / "second", 7, 1))
    assert all(each.rule != rule.id for each in second.verdict.evidence)
    assert second.verdict.decided_by == "memory" and second.verdict.confidence <= 0.5
    assert second.mining.trial_rules == {rule.id: 1}
    done("correct", second.id, "--type", "storage.filesystem", "--evidence", "rank0.log:6")
    assert states(data_dir) == [ACTIVE]
    third = triage(doubtful_job(tmp_path / "third", 30, 2), offline=True)
    assert third.verdict.failure_type == "storage.filesystem"
    assert third.mining.trial_rules == {}


def test_saying_it_twice_of_one_job_is_one_job(tmp_path: Path, data_dir: Path) -> None:
    first = kept(doubtful_job(tmp_path / "first", 4, 9))
    for author in ("ann", "ben"):
        done("correct", first.id, "--type", "storage.filesystem", "--author", author)
    assert states(data_dir) == [TRIAL]
    done("correct", first.id, "--type", "storage.filesystem", "--evidence", "rank0.log:6")
    assert states(data_dir) == [ACTIVE]  # now the line was named


def test_a_rule_that_is_contradicted_is_retired(tmp_path: Path, data_dir: Path) -> None:
    first = kept(jammed_job(tmp_path / "first", 3))
    done("correct", first.id, "--type", "storage.filesystem", "--evidence", "rank0.log:6")
    second = kept(jammed_job(tmp_path / "second", 8))
    assert second.verdict.failure_type == "storage.filesystem"
    done("correct", second.id, "--type", "host.node_lost", "--evidence", "rank0.log:6")
    by_type = {each.rule.failure_type: each.state for each in learned_rules(data_dir)}
    assert by_type["storage.filesystem"] == RETIRED
    third = triage(jammed_job(tmp_path / "third", 9), offline=True)
    assert third.verdict.failure_type != "storage.filesystem"


def test_a_rule_that_names_a_healthy_job_is_retired(tmp_path: Path, data_dir: Path) -> None:
    first = kept(jammed_job(tmp_path / "first", 3))
    done("correct", first.id, "--type", "storage.filesystem", "--evidence", "rank0.log:6")
    second = kept(jammed_job(tmp_path / "second", 8))
    done("correct", second.id, "--type", "none.running")
    assert states(data_dir) == [RETIRED]


def test_promote_retire_undo_and_log(
    tmp_path: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = kept(doubtful_job(tmp_path / "first", 4, 9))
    done("correct", before.id, "--type", "storage.filesystem", "--author", "Ada L.")
    (rule,) = [each.rule for each in learned_rules(data_dir)]
    trees = [tree(data_dir / "rules")]
    for command in ("promote", "retire", "promote"):
        done("rules", command, rule.id, "--reason", "tried it", "--author", "Ben")
        trees.append(tree(data_dir / "rules"))
    assert states(data_dir) == [ACTIVE]
    assert triage(tmp_path / "first", offline=True).verdict.failure_type == "storage.filesystem"
    for expected in (trees[2], trees[1], trees[0], {}):
        done("rules", "undo", "--author", "Cy")
        assert tree(data_dir / "rules") == expected
    assert main(["rules", "undo"]) == 1
    assert triage(tmp_path / "first", offline=True).id == before.id
    capsys.readouterr()
    done("rules", "log")
    log = capsys.readouterr().out.splitlines()
    assert len(log) == 8
    assert "Cy  undone" in log[0] and "Ada L.  learned" in log[-1] and "tried it" in log[-2]


def test_what_a_person_edited_is_not_undone(tmp_path: Path, data_dir: Path) -> None:
    first = kept(jammed_job(tmp_path / "first", 3))
    done("correct", first.id, "--type", "storage.filesystem", "--evidence", "rank0.log:6")
    (learned,) = learned_rules(data_dir)
    edited = learned.file.read_text(encoding="utf-8") + "\n# mended by hand\n"
    learned.file.write_text(edited, encoding="utf-8")
    assert main(["rules", "undo"]) == 2
    assert learned.file.read_text(encoding="utf-8") == edited


def test_a_broken_learned_rule_is_named_and_the_others_stay_in_force(tmp_path: Path, data_dir: Path) -> None:
    first = kept(jammed_job(tmp_path / "first", 3))
    done("correct", first.id, "--type", "storage.filesystem", "--evidence", "rank0.log:6")
    (data_dir / "rules" / ACTIVE / "broken.yaml").write_text("- id: learned.x\n  pattern: '('\n")
    second = triage(jammed_job(tmp_path / "second", 8), offline=True)
    assert second.verdict.failure_type == "storage.filesystem"
    assert [each.file for each in second.unreadable] == ["broken.yaml"]


def test_the_same_failure_in_other_words_widens_the_rule(tmp_path: Path, data_dir: Path) -> None:
    line = "loomd: shuttle {} is jammed inside the reed of the {} harness"
    for name, number, colour in (("first", 3, "amber"), ("second", 8, "violet")):
        job = written(tmp_path / name, {"rank0.log": text(steps(DAY, 4, 5), line.format(number, colour))})
        done("correct", kept(job).id, "--type", "storage.filesystem", "--evidence", "rank0.log:6")
    (learned,) = learned_rules(data_dir)
    assert len(learned.rule.examples) == 2
    third = written(tmp_path / "third", {"rank0.log": text(steps(DAY, 4, 5), line.format(77, "ochre"))})
    assert triage(third, offline=True).verdict.failure_type == "storage.filesystem"


def test_no_secret_of_the_log_reaches_a_rule_or_the_ledger(
    tmp_path: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "tarnfs: mount of volume v{} refused for ada.l@example.org, token=hf_{}"
    secret = "AbCdEfGhIjKlMnOpQrStUvWxYz0123"
    first = written(tmp_path / "first", {"rank0.log": text(steps(DAY, 4, 5), line.format(3, secret))})
    done("correct", kept(first).id, "--type", "storage.filesystem", "--evidence", "rank0.log:6")
    (learned,) = learned_rules(data_dir)
    assert learned.state == ACTIVE
    done("memory", "export", str(tmp_path / "out.jsonl"))
    for shared in (learned.file, tmp_path / "out.jsonl"):
        content = shared.read_text(encoding="utf-8")
        assert secret not in content and "ada.l@example.org" not in content
    other = line.format(9, "ZyXwVuTsRqPoNmLkJiHgFeDcBa9876").replace("ada.l@", "grace@")
    second = written(tmp_path / "second", {"rank0.log": text(steps(DAY, 4, 5), other)})
    assert triage(second, offline=True).verdict.failure_type == "storage.filesystem"
