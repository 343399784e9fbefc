"""What the README shows is what happens: its report, its two commands, its Python, its rule."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from logtriage.rulebank.bank import load_bank, read_rule_file
from logtriage.rulebank.check import lint, prove

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def blocks(language: str) -> list[str]:
    return [text for name, text in BLOCKS if name == language]


def shown(report: str) -> list[str]:
    """The lines of a report without the last one, which holds the id and the time it took."""
    return [line.rstrip() for line in report.strip().splitlines()][:-1]


def test_the_first_screen_is_the_programs_own_output() -> None:
    command, _, report = blocks("")[0].partition("\n")
    words = command.removeprefix("$ ").split()
    assert words[:2] == ["logtriage", "triage"]
    ran = subprocess.run(
        [sys.executable, "-m", "logtriage.apps.cli", *words[1:]],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert shown(report) == shown(ran.stdout), f"put into README.md what `COLUMNS=100 {command[2:]}` prints"


def test_there_are_two_commands_of_one_line() -> None:
    commands = blocks("sh")
    assert len(commands) == 2
    assert all(command.count("\n") == 1 for command in commands)
    judged = re.search(r"logtriage triage (\S+)$", commands[0].strip())
    assert judged and (ROOT / judged[1]).is_dir()


def test_the_python_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for program in blocks("python"):
        exec(compile(program, "README.md", "exec"), {})
    assert re.search(r"^\S+:\d+ ", capsys.readouterr().out, re.MULTILINE), "no evidence was printed"


def test_the_rule_passes_its_checks(tmp_path: Path) -> None:
    (text,) = blocks("yaml")
    file = tmp_path / "mine.yaml"
    file.write_text(text, encoding="utf-8")
    rules = read_rule_file(file)
    assert rules
    assert not [*lint(rules), *prove(rules, load_bank([file]))]
