"""A job by its id on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from logtriage.apps.cli import main


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, message in (("ann/train-4812", "no such key"), ("ann/train-4813", "x"), ("bob/eval-77", "y")):
        (tmp_path / "logs" / name).mkdir(parents=True)
        (tmp_path / "logs" / name / "rank0.log").write_text(f"KeyError: '{message}'\n")
    pattern = tmp_path / "logs" / "{user}" / "{name}-{job_id}"
    (tmp_path / "site.toml").write_text(f'[[sources]]\nkind = "folders"\npatterns = ["{pattern}/"]\n')
    monkeypatch.setenv("LOGTRIAGE_CONFIG", str(tmp_path / "site.toml"))
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "logs"


def test_a_job_is_triaged_and_asked_about_by_its_id(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["triage", "4812"]) == 0
    assert "code.key" in capsys.readouterr().out
    assert main(["ask", "4812", "show me the lines"]) == 0
    assert "rank0.log:1" in capsys.readouterr().out
    assert main(["history"]) == 0
    assert str(logs / "ann" / "train-4812") in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("ann", "ann is not one job: 481"),
        ("4811", "no such file or folder, and no job of a configured source"),
        ("a" * 300, "no such file or folder, and no job of a configured source"),
        ("481/2", "no such file or folder; check the path"),
    ],
)
def test_what_is_not_one_job_is_read_nowhere(
    logs: Path, capsys: pytest.CaptureFixture[str], asked: str, said: str
) -> None:
    assert main(["triage", asked]) == 3
    assert said in capsys.readouterr().err


def test_a_path_is_a_path_and_offline_asks_no_source(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["triage", "4812", "--offline"]) == 3
    (logs.parent / "4812").write_text("ImportError: no module\n")
    capsys.readouterr()
    assert main(["triage", "4812"]) == 0
    assert "code.import" in capsys.readouterr().out
