"""`logtriage history`: which past verdicts are shown, what is exported, and the hosts in them."""

from __future__ import annotations

import csv
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from logtriage import triage
from logtriage.apps.cli import main
from logtriage.memory import history
from logtriage.memory.verdicts import FOLDER, keep

DAY = 86_400.0


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Keeps a verdict as a triage does, and then says when it was, on which host, of which type and user."""
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "rank0.log").write_text("RuntimeError: CUDA error: unspecified launch failure\n")
    verdict = triage(tmp_path / "job", offline=True)
    keep(verdict, [tmp_path / "job"], tmp_path / "data")
    folder = tmp_path / "data" / FOLDER
    first = folder / f"{verdict.id}.json"
    entry = json.loads(first.read_text())
    first.unlink()

    def add(
        name: str, kind: str = "code.key", *, host: str = "gpu-1", user: str = "mira", age: float = 0.0
    ) -> None:
        entry["verdict"]["id"] = f"v-{name}"
        entry["at"] = time.time() - age
        entry["user"] = user
        entry["verdict"]["job"]["hosts"] = [host]
        entry["verdict"]["verdict"]["failure_type"] = kind
        entry["verdict"]["verdict"]["culprits"]["hosts"] = [host]
        file = folder / f"v-{name}.json"
        file.write_text(json.dumps(entry))
        os.utime(file, (entry["at"], entry["at"]))

    return add


def shown(capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    assert main(["history", *options]) == 0
    return [line.split()[0].removeprefix("v-") for line in capsys.readouterr().out.splitlines()]


def test_filters(kept: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    kept("new", "gpu.nvlink", host="gpu-7.example.org")
    kept("week", "gpu.firmware", age=6 * DAY, user="noor")
    kept("old", age=40 * DAY)
    assert shown(capsys) == ["new", "week", "old"]
    assert shown(capsys, "--since", "7d") == ["new", "week"]
    assert shown(capsys, "--until", "3d", "--since", "10d") == ["week"]
    assert shown(capsys, "--until", time.strftime("%Y-%m-%d", time.localtime(time.time() - 20 * DAY))) == [
        "old"
    ]
    assert shown(capsys, "--type", "gpu") == ["new", "week"]
    assert shown(capsys, "--type", "gpu.nvlink") == ["new"]
    assert shown(capsys, "--host", "GPU-7") == ["new"]
    assert shown(capsys, "--user", "noor") == ["week"]
    assert shown(capsys, "--limit", "1") == ["new"]
    assert shown(capsys, "--user", "nobody") == []
    assert main(["history", "--since", "yesterday-ish"]) == 2


def test_the_owner_of_the_logs_is_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "rank0.log").write_text("ValueError: x\n")
    assert main(["triage", str(tmp_path / "rank0.log"), "--offline", "--quiet"]) == 0
    (file,) = (tmp_path / "data" / FOLDER).glob("*.json")
    assert json.loads(file.read_text())["user"] == (tmp_path / "rank0.log").owner()


def test_exports(kept: Callable[..., None], tmp_path: Path) -> None:
    kept("a")
    kept("b", host="=HYPERLINK(1)", age=DAY)
    for ending in ("csv", "jsonl", "parquet"):
        assert main(["history", "--export", str(tmp_path / f"out.{ending}")]) == 0
    rows = list(csv.DictReader((tmp_path / "out.csv").open()))
    assert [row["id"] for row in rows] == ["v-a", "v-b"]
    assert rows[0]["failure_type"] == "code.key" and rows[0]["hosts"] == "gpu-1"
    assert rows[1]["hosts"] == "'=HYPERLINK(1)"  # no formula for whoever opens it
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == ["v-a", "v-b"] and lines[0]["hosts"] == ["gpu-1"]
    pandas = pytest.importorskip("pandas")
    table = pandas.read_parquet(tmp_path / "out.parquet")
    assert list(table["id"]) == ["v-a", "v-b"] and list(table["hosts"][0]) == ["gpu-1"]
    assert main(["history", "--export", str(tmp_path / "out.xlsx")]) == 2


def test_hosts(kept: Callable[..., None], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for count in range(6):
        kept(f"bad{count}", "gpu.fell_off_bus", host="gpu-9", age=count * DAY)
    for count in range(40):
        kept(f"fine{count}", "code.key", host=f"gpu-{count % 8}", age=5 * DAY)
    assert main(["history", "hosts"]) == 0
    head, first, *rest = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["host", "jobs"]
    assert first.split()[:3] == ["gpu-9", "6", "6"] and "gpu.fell_off_bus 6" in first and "lemon" in first
    assert len(rest) == 8
    assert main(["history", "hosts", "--type", "gpu"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert main(["history", "--since", "3d", "hosts", "--export", str(tmp_path / "hosts.jsonl")]) == 0
    (row,) = map(json.loads, (tmp_path / "hosts.jsonl").read_text().splitlines())
    assert (row["host"], row["jobs"]) == ("gpu-9", 3)
    assert main(["history", "nodes"]) == 2


def test_of_many_only_those_that_are_wanted_are_checked_against_the_schema(
    kept: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What makes listing thousands quick: each is read once, and none is checked but what is handed out."""
    for number in range(200):
        kept(str(number), user="noor" if number == 7 else "mira")
    read: list[Path] = []
    checked: list[object] = []
    entry_of, verdict_of = history.kept_entry, history.read_verdict
    monkeypatch.setattr(history, "kept_entry", lambda path: read.append(path) or entry_of(path))
    monkeypatch.setattr(history, "read_verdict", lambda told: checked.append(told) or verdict_of(told))
    data = tmp_path / "data"
    assert sum(1 for _ in history.glances(data, history.Wanted(user="noor"))) == 1
    assert len(read) == len(set(read)) == 200 and checked == []
    assert [one.id for one, _ in history.wanted_verdicts(data, history.Wanted(user="noor"))] == ["v-7"]
    assert len(read) == 400 and len(checked) == 1


def test_a_broken_file_hides_no_other(
    kept: Callable[..., None], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    kept("good")
    for name, text in {"a": "{", "b": "[]", "c": '{"verdict": {"job": 1}, "at": 0}', "d": "[" * 5000}.items():
        (tmp_path / "data" / FOLDER / f"v-{name}.json").write_text(text)
    assert shown(capsys) == ["good"]
