"""Lines whose like stand in healthy jobs: amounts, states, and what stands beside a message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from taught_jobs import steps, text, written

from logtriage import triage
from logtriage.apps.cli import main
from logtriage.memory.amounts import amounts
from logtriage.memory.rule_folder import ACTIVE, TRIAL, learned_rules
from logtriage.memory.wording import NO_WORDS

DAY = "2026-03-03"


pytestmark = pytest.mark.usefixtures("data_dir")


def job(folder: Path, line: str) -> Path:
    return written(folder, {"rank0.log": text(steps(DAY, 4, 30), line)})


def taught(folder: Path, line: str, failure_type: str) -> None:
    logs = job(folder, line)
    assert main(["triage", str(logs), "--offline", "--json", "/dev/null", "--quiet"]) == 0
    verdict = triage(logs, offline=True).id
    assert main(["correct", verdict, "--type", failure_type, "--evidence", "rank0.log:31"]) == 0


def stamped(words: str) -> str:
    return words if words.startswith(("{", "level=")) else f"{DAY} 04:01:00,000 {words}"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("chillerd: coolant of loop 2 at 71.5 C", ("71.5",)),
        ("pacer: lane 3 behind by 4100 ms", ("4100",)),
        ("flash tier at 98% of capacity", ("98%",)),
        ("battery of rack at 4 percent", ("4",)),
        ("receive margin is -4.2 dB", ("-4.2",)),
        ("peer seen 912 s ago", ("912",)),
        ("waiting 1, starved 77", ("1", "77")),
        ("pool holds 3.1 GiB", ("3.1 GiB",)),
        ("loom: shuttle 3 is in rank 2", ()),
        ("retry 5/5 of lane 3", ()),
        ("pool has 0 extents free", ()),
    ],
)
def test_which_numbers_are_amounts(words: str, found: tuple[str, ...]) -> None:
    assert amounts(words, (), NO_WORDS) == found


@pytest.mark.parametrize("head", ["INFO ", "WARNING ", "", "INFO evictord, evictor asleep: "])
def test_a_calm_line_with_an_amount_is_tried_first(
    head: str, tmp_path: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taught(tmp_path / "a", stamped(head + "chillerd: coolant of loop 2 at 71.5 C"), "gpu.thermal_power")
    assert "only its amount (71.5) tells it from a calm one" in capsys.readouterr().out
    (learned,) = learned_rules(data_dir, [TRIAL])
    healthy = triage(
        job(tmp_path / "b", stamped(head + "chillerd: coolant of loop 2 at 31.0 C")), offline=True
    )
    assert healthy.verdict.failure_type.startswith("none.")
    assert healthy.mining.trial_rules == {learned.rule.id: 1}


@pytest.mark.parametrize("head", ["ERROR chillerd: coolant", "INFO chillerd: failed coolant"])
def test_a_complaint_with_an_amount_has_a_say(head: str, tmp_path: Path, data_dir: Path) -> None:
    taught(tmp_path / "a", stamped(f"{head} of loop 2 at 71.5 C"), "gpu.thermal_power")
    assert len(learned_rules(data_dir, [ACTIVE])) == 1
    again = triage(job(tmp_path / "b", stamped(f"{head} of loop 9 at 88.1 C")), offline=True).verdict
    assert again.failure_type == "gpu.thermal_power" and again.confidence >= 0.9


def record(state: object, mirror: str, *, words: str = "mirror probe by sentinel") -> str:
    said = {"ts": "2026-03-03T04:01:00Z", "lvl": "warn", "msg": words, "env": "prod"}
    name = "usable" if isinstance(state, bool) else "state"
    return json.dumps({**said, name: state, "mirror": mirror})


@pytest.mark.parametrize(
    ("line", "again", "calm"),
    [
        (record("torn", "m7"), record("torn", "m99"), record("whole", "m7")),
        (record(False, "m7"), record(False, "m99"), record(True, "m7")),
        (
            'level=error msg="mirror probe" state="torn" mirror=m7',
            'level=error msg="mirror probe" state="torn" mirror=m8',
            'level=error msg="mirror probe" state="whole" mirror=m7',
        ),
        (
            "ERROR sensord: lid of cage on unit 4 now 'ajar', writer parked",
            "ERROR sensord: lid of cage on unit 9 now 'ajar', writer parked",
            "ERROR sensord: lid of cage on unit 4 now 'shut', writer parked",
        ),
        (
            "ERROR keeperd: seat of node-17 is `vacant` per arbiter",
            "ERROR keeperd: seat of node-4 is `vacant` per arbiter",
            "ERROR keeperd: seat of node-17 is `filled` per arbiter",
        ),
        (
            "WARNING sensord: event chassis-open on unit 4 raised by bmcd",
            "WARNING sensord: event chassis-open on unit 7 raised by bmcd",
            "WARNING sensord: event chassis-shut on unit 4 raised by bmcd",
        ),
    ],
)
def test_another_state_is_another_line(
    line: str, again: str, calm: str, tmp_path: Path, data_dir: Path
) -> None:
    taught(tmp_path / "a", stamped(line), "storage.filesystem")
    (learned,) = learned_rules(data_dir, [ACTIVE])
    verdict = triage(job(tmp_path / "b", stamped(again)), offline=True).verdict
    assert verdict.failure_type == "storage.filesystem" and verdict.confidence >= 0.9
    healthy = triage(job(tmp_path / "c", stamped(calm)), offline=True).verdict
    assert all(each.rule != learned.rule.id for each in healthy.evidence)
    assert healthy.failure_type != "storage.filesystem" or healthy.confidence <= 0.5  # at most alike


def test_what_all_records_of_a_job_say_is_no_state(tmp_path: Path, data_dir: Path) -> None:
    other = record("whole", "m1", words="heartbeat of the warden").replace('"prod"', '"prod", "zone": "west"')
    line = record("torn", "m7").replace('"prod"', '"prod", "shift": "night"')
    before = other.replace('"prod"', '"prod", "shift": "night"')
    logs = written(tmp_path / "a", {"rank0.log": text(steps(DAY, 4, 29), before, line)})
    assert main(["triage", str(logs), "--offline", "--json", "/dev/null", "--quiet"]) == 0
    verdict = triage(logs, offline=True).id
    assert main(["correct", verdict, "--type", "storage.filesystem", "--evidence", "rank0.log:31"]) == 0
    (learned,) = learned_rules(data_dir)
    assert learned.rule.beside == (("state", "torn"),)


def test_advice_of_an_imported_diagnosis_that_would_destroy_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    taught(tmp_path / "a", stamped("ERROR loomd: shuttle 3 is jammed in the reed"), "storage.filesystem")
    exported = tmp_path / "out.jsonl"
    assert main(["memory", "export", str(exported)]) == 0
    told = {**json.loads(exported.read_text()), "mitigation": "Run rm -rf /scratch/* and restart."}
    exported.write_text(json.dumps(told) + "\n")
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(tmp_path / "elsewhere"))
    capsys.readouterr()
    assert main(["memory", "import", str(exported)]) == 0
    assert "advice left out" in capsys.readouterr().err
    assert main(["memory", "export", str(exported)]) == 0
    assert json.loads(exported.read_text())["mitigation"] == ""


def test_a_line_on_trial_is_found_again_and_no_wrong_title_is_kept(
    tmp_path: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a line what an earlier job taught is meant; what the verdict said wrongly is not kept."""
    told = []
    for name, degrees in (("a", "71.5"), ("b", "72.8")):
        logs = job(tmp_path / name, stamped(f"INFO chillerd: coolant of loop 2 at {degrees} C"))
        verdict = triage(logs, offline=True)
        assert verdict.verdict.failure_type.startswith("none.")
        assert main(["triage", str(logs), "--offline", "--json", "/dev/null", "--quiet"]) == 0
        assert main(["correct", verdict.id, "--type", "gpu.thermal_power"]) == 0
        told.append(capsys.readouterr().out)
    assert "rank0.log:31" in told[1] and "no line stands out" not in told[1]
    assert len(learned_rules(data_dir, [ACTIVE])) == 1
    assert main(["correct", verdict.id, "--type", "hang.silent"]) == 0
    assert main(["memory", "list", "--limit", "1"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert "Hang: progress stopped" in last and "Nothing failed" not in last


def test_a_long_title_that_is_cut_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taught(
        tmp_path / "a",
        stamped("ERROR chillerd: loop broke " + "and so did the next one " * 12),
        "code.config",
    )
    capsys.readouterr()
    assert main(["memory", "list"]) == 0
    assert capsys.readouterr().out.rstrip().endswith(" …")
