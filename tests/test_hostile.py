"""Logs are hostile input: what they hold may cost a bounded amount of time and memory, and never a crash."""

from __future__ import annotations

import io
import random
import string
import tarfile
import time
from pathlib import Path

import pytest

from logtriage.intake.folder import discover
from logtriage.mining import templates
from logtriage.mining.templates import OTHER, TemplateMiner


def _unlike_lines(number: int) -> list[str]:
    chosen = random.Random(5)
    return [
        " ".join("".join(chosen.choices(string.ascii_lowercase, k=8)) for _ in "ab") for _ in range(number)
    ]


def test_lines_without_any_likeness_are_counted_but_not_compared_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(templates, "MOST_COMPARED", 1_000_000)
    miner = TemplateMiner()
    for line in _unlike_lines(3000):
        miner.add(line)
    found = miner.templates()
    assert sum(template.count for template in found.values()) == 3000
    assert found[OTHER].count > 1000 and len(found) < 2000


def _tar(path: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


@pytest.mark.parametrize("unit", ["a1", "a-", "node-"])
def test_a_member_with_an_endless_name_is_named_in_short_and_not_studied(tmp_path: Path, unit: str) -> None:
    _tar(tmp_path / "logs.tar", {unit * 40_000 + ".log": b"x\n", "good.log": b"ValueError: x\n"})
    began = time.process_time()
    inventory = discover(tmp_path)
    assert time.process_time() - began < 2
    assert [source.file for source in inventory.sources] == ["logs.tar/good.log"]
    (lost,) = inventory.unreadable
    assert "name is too long" in lost.reason and len(lost.file) < 300
