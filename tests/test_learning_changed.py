"""A word on a verdict whose logs have changed since, or that leads to no cause; records with a mark."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest
from taught_jobs import steps, text, written

from logtriage import triage
from logtriage.apps.cli import main
from logtriage.memory.rule_folder import ACTIVE, RETIRED, learned_rules

DAY = "2026-03-03"
ERROR = f"{DAY} 04:00:20,000 ERROR tesserad: lattice keeper of ring 4 gave tessera back unsigned"


pytestmark = pytest.mark.usefixtures("data_dir")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return written(tmp_path / "job", {"rank0.log": text(steps(DAY, 4, 15), ERROR)}) / "rank0.log"


def judged(log: Path) -> str:
    assert main(["triage", str(log.parent), "--offline", "--json", "/dev/null", "--quiet"]) == 0
    return triage(log.parent, offline=True).id


def test_logs_that_were_written_to_since(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verdict = judged(log)
    with log.open("a") as file:
        file.write(f"{DAY} 04:00:21,000 INFO leaving\n")
    assert main(["correct", verdict, "--type", "auth.denied", "--evidence", "rank0.log:16"]) == 0
    assert "the folder changed since that verdict: rank0.log" in capsys.readouterr().out


def test_nothing_is_said_of_logs_that_did_not_change(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["correct", judged(log), "--type", "auth.denied", "--evidence", "rank0.log:16"]) == 0
    assert "changed" not in capsys.readouterr().out


@pytest.mark.parametrize("place", [(), ("--evidence", "rank0.log:16")])
def test_a_line_that_is_not_there_any_more(
    place: tuple[str, ...], log: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = judged(log)
    log.write_text(log.read_text().replace("ring 4", "ring 9"))
    assert main(["correct", verdict, "--type", "auth.denied", *place]) == 2
    assert "rank0.log:16 is not the line any more" in capsys.readouterr().err
    assert learned_rules(data_dir) == []
    capsys.readouterr()
    assert main(["memory", "list"]) == 0
    assert "auth.denied" not in capsys.readouterr().out


def test_a_cause_that_nobody_knows_counts_against_the_rule_that_named_one(
    log: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["correct", judged(log), "--type", "auth.denied", "--evidence", "rank0.log:16"]) == 0
    assert [each.state for each in learned_rules(data_dir)] == [ACTIVE]
    assert main(["correct", judged(log), "--type", "unknown"]) == 0
    assert "nobody knows the cause" in capsys.readouterr().out
    assert [each.state for each in learned_rules(data_dir)] == [RETIRED]


def test_records_with_a_byte_order_mark(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["correct", judged(log), "--type", "auth.denied", "--evidence", "rank0.log:16"]) == 0
    capsys.readouterr()
    assert main(["memory", "export"]) == 0
    file = tmp_path / "records.jsonl"
    file.write_bytes(codecs.BOM_UTF8 + capsys.readouterr().out.encode())
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(tmp_path / "other"))
    assert main(["memory", "import", str(file)]) == 0
    assert "1 of 1 diagnoses were new" in capsys.readouterr().out
