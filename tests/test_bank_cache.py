"""The cache of the rule bank only saves time: it never decides what the rules are."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import fields
from pathlib import Path

import pytest
from growth import grows_evenly
from scenes import copied_bank

from logtriage.rulebank.bank import load_bank
from logtriage.rulebank.matcher import Matcher
from logtriage.rulebank.rule import Rule


def test_a_cached_bank_is_the_same_bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied_bank(tmp_path, monkeypatch)
    fresh = load_bank()
    assert list((tmp_path / "cache").rglob("bank-*.json"))
    again = load_bank()
    assert again == fresh
    line = fresh.rules[0].examples[0].line
    assert Matcher(again).match(line) == Matcher(fresh).match(line)


def test_any_changed_byte_is_a_new_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = copied_bank(tmp_path, monkeypatch)
    versions = {load_bank().version}
    for name in ("numerics.yaml", "explains.yaml", "taxonomy.yaml"):
        with (rules / name).open("a") as file:
            file.write("# another byte\n")
        versions.add(load_bank().version)
    assert len(versions) == 4
    (rules / "numerics.yaml").write_text("[]\n")
    assert load_bank().rules == ()


def write_checked(kept: Path, document: object) -> None:
    """Write a cache as its owner could, with the checksum that belongs to it."""
    content = json.dumps(document).encode()
    kept.write_bytes(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"17",
        b"\xff\xfe\x00",
        b'{"rules": []}',
        b'{"rules": [{}], "explains": {}}',
        b'{"rules": [17], "explains": {}}',
        b'{"rules": {"a": 1}, "explains": {}}',
        b'{"rules": [], "explains": []}',
    ],
)
def test_a_corrupt_cache_only_costs_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    copied_bank(tmp_path, monkeypatch)
    fresh = load_bank()
    (kept,) = (tmp_path / "cache").rglob("bank-*.json")
    kept.write_bytes(content)
    assert load_bank() == fresh


def test_a_deeply_nested_cache_only_costs_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied_bank(tmp_path, monkeypatch)
    fresh = load_bank()
    (kept,) = (tmp_path / "cache").rglob("bank-*.json")
    kept.write_bytes(b"[" * 200_000)
    assert load_bank() == fresh


def test_a_cut_off_cache_only_costs_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied_bank(tmp_path, monkeypatch)
    fresh = load_bank()
    (kept,) = (tmp_path / "cache").rglob("bank-*.json")
    kept.write_bytes(kept.read_bytes()[:-100])
    assert load_bank() == fresh


def test_a_cache_folder_that_is_a_file_only_costs_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied_bank(tmp_path, monkeypatch)
    (tmp_path / "cache").write_text("in the way")
    assert load_bank() == load_bank()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_cache_folder_that_cannot_be_written_only_costs_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied_bank(tmp_path, monkeypatch)
    (tmp_path / "cache").mkdir(mode=0o500)
    assert load_bank() == load_bank()


def test_a_cache_is_data_that_only_its_owner_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever can write another's cache could decide his verdicts."""
    copied_bank(tmp_path, monkeypatch)
    old = os.umask(0)
    try:
        load_bank()
    finally:
        os.umask(old)
    (kept,) = (tmp_path / "cache").rglob("bank-*.json")
    json.loads(kept.read_bytes().split(b"\n", 1)[1])
    assert kept.stat().st_mode & 0o022 == 0


def test_a_cache_of_other_bytes_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = copied_bank(tmp_path, monkeypatch)
    load_bank()
    (kept,) = (tmp_path / "cache").rglob("bank-*.json")
    poisoned = json.loads(kept.read_bytes().split(b"\n", 1)[1])
    poisoned["rules"] = []
    write_checked(kept, poisoned)
    with (rules / "numerics.yaml").open("a") as file:
        file.write("# another byte\n")
    assert load_bank().rules


def poison(row: list[object], pattern: str) -> None:
    """Another pattern for a kept rule, whose fields stand in their order."""
    names = [field.name for field in fields(Rule)]
    row[names.index("keywords")], row[names.index("pattern")] = ["aaaa"], pattern


def test_a_cache_cannot_name_patterns_that_take_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a cache holds is matched with the same linear-time engine as the files' rules."""
    copied_bank(tmp_path, monkeypatch)
    load_bank()
    (kept,) = (tmp_path / "cache").rglob("bank-*.json")
    poisoned = json.loads(kept.read_bytes().split(b"\n", 1)[1])
    poison(poisoned["rules"][0], "(a+)+b")
    write_checked(kept, poisoned)
    matcher = Matcher(load_bank())
    assert grows_evenly(lambda size: "a" * size, matcher.match, 4)  # one that tries all ways: 2 ** 28 more
    matcher.match("a" * 60_000)


def test_a_cache_with_a_broken_pattern_only_costs_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied_bank(tmp_path, monkeypatch)
    load_bank()
    (kept,) = (tmp_path / "cache").rglob("bank-*.json")
    poisoned = json.loads(kept.read_bytes().split(b"\n", 1)[1])
    poison(poisoned["rules"][0], "(?<=a)b")
    kept.write_bytes(kept.read_bytes().split(b"\n", 1)[0] + b"\n" + json.dumps(poisoned).encode())
    Matcher(load_bank()).match("aaaab")
