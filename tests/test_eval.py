"""`logtriage eval`: verdicts against labels, why one was missed, and a user's own confirmed jobs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from taught_jobs import storage_client, written

from logtriage import pipeline
from logtriage.apps.cli import main
from logtriage.evaluation.case import LabelFault, labelled_cases
from logtriage.evaluation.figures import reliability
from logtriage.evaluation.trial import scores

Captured = pytest.CaptureFixture[str]

STEPS = "".join(f"2026-03-01 09:00:{second:02d} INFO step {second} loss 2.31\n" for second in range(1, 31))
OOM = "2026-03-01 09:00:40 ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
DONE = "2026-03-01 09:00:41 INFO Training completed. step 30 of 30\n"


def case(folder: Path, name: str, files: dict[str, str], **label: Any) -> Path:
    """A labelled case as a person would write it down."""
    logs = folder / name / "logs"
    logs.mkdir(parents=True)
    for file, text in files.items():
        (logs / file).write_text(text)
    (folder / name / "truth.yaml").write_text(yaml.safe_dump({"id": name, "why": "seen", **label}))
    return folder


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """One that is right, one whose label is another, one healthy."""
    folder = tmp_path / "cases"
    shown = [{"file": "logs/rank1.log", "contains": "CUDA out of  memory"}]
    logs = {"rank0.log": STEPS, "rank1.log": STEPS + OOM}
    case(folder, "a-right", logs, failure_type="cuda.out_of_memory", culprit_ranks=[1], evidence=shown)
    elsewhere = [{"file": "rank0.log", "contains": "step 30 loss"}]
    wrong = {"failure_type": "host.disk_full", "culprit_ranks": [0], "evidence": elsewhere}
    case(folder, "b-wrong", logs, **wrong)
    case(folder, "c-healthy", {"rank0.log": STEPS + DONE}, failure_type="none.completed")
    return folder


def test_scores_say_what_was_right_and_why_the_rest_was_missed(
    cases: Path, tmp_path: Path, capsys: Captured
) -> None:
    assert main(["eval", str(cases), "--json", str(tmp_path / "out.json"), "--workers", "2"]) == 0
    assert capsys.readouterr().out == ""
    told = json.loads((tmp_path / "out.json").read_text())
    figures = {name: (round(each["value"], 3), each["cases"]) for name, each in told["figures"].items()}
    assert figures.pop("brier")[1] == 3
    assert figures == {
        "type": (0.667, 3),
        "class": (0.667, 3),
        "evidence": (0.5, 2),
        "rank": (0.5, 2),
        "sound": (1.0, 3),
        "alarm": (0.0, 1),
        "overclaim": (0.333, 3),
    }
    assert [each["right"] for each in told["cases"]] == [True, False, True]
    assert told["confusion"] == [{"truth": "host.disk_full", "got": "cuda.out_of_memory", "cases": 1}]
    assert main(["eval", str(cases), "--workers", "1"]) == 0
    shown = capsys.readouterr().out
    assert "Not right in all (1)" in shown and "host.disk_full → cuda.out_of_memory" in shown
    assert "no rule knows the label's line rank0.log:30" in shown
    assert "ranks [1] instead of [0]" in shown and "Brier" in shown


def test_the_order_and_the_number_of_processes_change_nothing(cases: Path) -> None:
    chosen = labelled_cases(cases)
    alone, beside = (scores(each, workers=count) for each, count in ((chosen, 1), (chosen[::-1], 2)))
    told = [(each.case, each.got, each.confidence, each.misses) for each in alone]
    assert told == [(each.case, each.got, each.confidence, each.misses) for each in beside[::-1]]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_case_without_a_verdict_is_wrong_and_stops_no_other(
    cases: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    case(cases, "d-empty", {}, failure_type="code.type")
    (cases / "d-empty" / "logs").rmdir()
    real = pipeline.triage

    def judged(paths: list[str], **how: Any) -> Any:
        if "b-wrong" in paths[0]:
            os._exit(9)  # as the OOM killer would
        return real(paths, **how)

    monkeypatch.setattr(pipeline, "triage", judged)
    found = {each.case: each for each in scores(labelled_cases(cases), workers=workers)}
    assert found["a-right"].is_right and found["c-healthy"].is_right
    assert "was ended" in found["b-wrong"].error and not found["b-wrong"].type
    assert "NothingReadable" in found["d-empty"].error and found["d-empty"].evidence is False


def test_cases_are_chosen_by_name(cases: Path, capsys: Captured) -> None:
    assert main(["eval", str(cases / "a-right"), "--json", "-"]) == 0
    assert [each["case"] for each in json.loads(capsys.readouterr().out)["cases"]] == ["a-right"]
    assert main(["eval", str(cases), "--only", "c-*", "--json", "-"]) == 0
    assert [each["case"] for each in json.loads(capsys.readouterr().out)["cases"]] == ["c-healthy"]


def test_a_closed_standard_error_takes_no_figures_away(
    cases: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["eval", str(cases), "--only", "c-*"]) == 0
    assert "1 cases" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("failure_type: cuda.out_of_memori", "did you mean cuda.out_of_memory"),
        ("failure_type: [", "no YAML"),
        ("why: nobody knows", "failure_type: Field required"),
        ("failure_type: code.type\nevidence: [{file: a}]", "evidence.0.contains"),
    ],
)
def test_a_label_that_cannot_be_used_is_named(cases: Path, capsys: Captured, text: str, said: str) -> None:
    (cases / "b-wrong" / "truth.yaml").write_text(text)
    assert main(["eval", str(cases)]) == 2
    told = capsys.readouterr().err
    assert "b-wrong" in told and said in told


def test_wrong_usage_is_told(tmp_path: Path, capsys: Captured) -> None:
    for arguments in ([], [str(tmp_path)], [str(tmp_path), "--confirmed"]):
        assert main(["eval", *arguments]) == 2
        assert capsys.readouterr().err
    with pytest.raises(LabelFault):
        labelled_cases(tmp_path)


def test_what_people_said_is_judged_without_what_it_taught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(tmp_path / "data"))
    kind = storage_client()
    first = written(tmp_path / "first", kind.first)
    second = written(tmp_path / "second", kind.second)

    def triaged(job: Path) -> str:
        capsys.readouterr()
        assert main(["triage", str(job), "--offline", "--quiet", "--json", "-"]) == 0
        return str(json.loads(capsys.readouterr().out)["id"])

    taught = triaged(first)
    assert main(["correct", taught, "--type", kind.failure_type, "--evidence", kind.place]) == 0
    agreed = triaged(second)
    assert main(["confirm", agreed]) == 0
    capsys.readouterr()
    assert main(["eval", "--confirmed", "--json", "-"]) == 0
    told = {each["case"]: each for each in json.loads(capsys.readouterr().out)["cases"]}
    assert told.keys() == {taught, agreed}
    # The second job is named by the rule that the first one taught; the first has nobody to learn from.
    assert told[agreed]["right"] and told[agreed]["got"] == kind.failure_type
    assert not told[taught]["type"]
    for file in first.rglob("*.*"):
        file.unlink()
    first.rmdir()
    assert main(["eval", "--confirmed"]) == 0
    shown = capsys.readouterr()
    assert "1 confirmed verdicts are left out" in shown.err and "1 cases" in shown.out


def test_nothing_confirmed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(tmp_path))
    assert main(["eval", "--confirmed"]) == 2
    assert "no confirmed job" in capsys.readouterr().err


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=60))
def test_every_verdict_is_in_one_bin_and_certainty_that_is_right_has_no_error(
    told: list[tuple[float, bool]],
) -> None:
    found = reliability(told)
    assert sum(each.count for each in found.bins) == len(told)
    assert 0 <= found.ece <= 1 and 0 <= found.brier <= 1
    sure = reliability([(float(right), right) for _, right in told])
    assert sure.ece == sure.brier == 0
