"""Kept verdicts, settings and database addresses that make no sense: passed over or named, never a crash."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from logtriage.apps.cli import main
from logtriage.memory.database import LedgerFault
from logtriage.memory.ledger import open_ledger
from logtriage.memory.verdicts import MOST_BYTES, kept_verdicts
from logtriage.settings import SettingsFault, load_settings


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where verdicts are kept, with one good one in it."""
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "a.log").write_text("ValueError: x\n")
    assert main(["triage", "--offline", "--quiet", "--json", "/dev/null", str(tmp_path / "job")]) == 0
    return tmp_path / "data" / "verdicts"


_HUGE = "9" * 4000
_TAMPERED = {
    "endless time": ('"at": ', '"at": 1e400, "was": '),
    "huge time": ('"at": ', f'"at": {_HUGE}, "was": '),
    "endless size": ('"bytes": ', '"bytes": 1e400, "was": '),
    "huge size": ('"bytes": ', f'"bytes": {_HUGE}, "was": '),
    "endless confidence": ('"confidence": ', '"confidence": 1e400, "was": '),
    "escapes for an id": ('"id": "v-', '"id": "v-\\u001b[2J'),
    "paths that are none": ('"paths": [', '"paths": ["\\ud800", '),
}


@pytest.mark.parametrize("change", _TAMPERED.values(), ids=_TAMPERED)
def test_a_tampered_verdict_is_passed_over(
    folder: Path, change: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    (good,) = folder.glob("*.json")
    text = good.read_text()
    assert change[0] in text
    (folder / "v-0bad.json").write_text(text.replace(*change, 1))
    table = folder.parent / "all.csv"
    capsys.readouterr()
    for words in (["history"], ["history", "hosts"], ["metrics"], ["history", "--export", str(table)]):
        assert main(words) == 0
    told = capsys.readouterr()
    assert good.stem in told.out and "\x1b" not in told.out and "internal error" not in told.err
    assert len(table.read_text().splitlines()) == 2
    assert main(["ask", good.stem, "did this happen before?"]) == 0
    assert "internal error" not in capsys.readouterr().err


def test_pipes_devices_and_huge_files_among_the_verdicts_are_not_read(folder: Path) -> None:
    (good,) = folder.glob("*.json")
    os.mkfifo(folder / "v-pipe.json")
    (folder / "v-zero.json").symlink_to("/dev/zero")
    with (folder / "v-huge.json").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    assert [kept.verdict.id for kept in kept_verdicts(folder.parent)] == [good.stem]
    assert main(["history"]) == 0
    assert main(["ask", "v-pipe", "why?"]) == 2


def test_a_job_in_a_folder_whose_name_is_no_text_is_exported(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (good,) = folder.glob("*.json")
    entry = json.loads(good.read_text())
    entry["paths"] = ["/logs/\udcff"]
    good.write_text(json.dumps(entry))
    for suffix in ("jsonl", "csv"):
        table = tmp_path / f"all.{suffix}"
        assert main(["history", "--export", str(table)]) == 0
        assert "udcff" in table.read_text(encoding="utf-8")


def test_an_author_whose_name_is_no_text_can_confirm(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (good,) = folder.glob("*.json")
    assert main(["correct", good.stem, "--type", "data.corrupt", "--author", "ann\udcff"]) == 0
    assert "by ann?" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 100_000, "llm_votes = " + "9" * 5000], ids=["deep nest", "endless number"]
)
def test_settings_that_no_parser_takes_are_named_with_their_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(SettingsFault, match=r"mine\.toml: "):
        load_settings({"LOGTRIAGE_CONFIG": str(tmp_path / "mine.toml")})


def test_settings_of_a_user_that_is_not_there_are_missing() -> None:
    with pytest.raises(SettingsFault, match="there is no such file"):
        load_settings({"LOGTRIAGE_CONFIG": "~nobody-of-this-name/mine.toml"})


def test_settings_are_not_read_from_what_never_ends(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (str(tmp_path / "pipe"), "/dev/zero"):
        with pytest.raises(SettingsFault, match="no file of settings"):
            load_settings({"LOGTRIAGE_CONFIG": place})


@pytest.mark.parametrize("url", ["postgresql://h:port/x", "sqlite:///x?timeout=soon"])
def test_a_database_address_that_makes_no_sense_is_named(tmp_path: Path, url: str) -> None:
    with pytest.raises(LedgerFault, match="database_url cannot be used"):
        open_ledger(url, tmp_path)
