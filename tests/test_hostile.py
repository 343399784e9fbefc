"""Logs are hostile input: what they hold may cost a bounded amount of time and memory, and never a crash."""

from __future__ import annotations

import random
import string

import pytest

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
