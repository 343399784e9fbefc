"""The expressions that are compiled on first use: all of them are sound, and nothing compiles them early."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys

import pytest

import logtriage
from logtriage.regex import regex


def test_it_answers_as_the_compiled_pattern_does() -> None:
    late, compiled = regex(r"(?i)rank (?P<rank>\d+)"), re.compile(r"(?i)rank (?P<rank>\d+)")
    text = "Rank 3 waits for rank 12"
    assert late.findall(text) == compiled.findall(text) == ["3", "12"]
    assert late.sub("r", text) == compiled.sub("r", text)
    assert late.pattern == compiled.pattern and late.groupindex == compiled.groupindex
    assert (found := late.search(text)) is not None and found["rank"] == "3"
    assert regex(rb"\xff+").match(b"\xff\xff") is not None


def test_a_wrong_pattern_is_told_on_first_use() -> None:
    with pytest.raises(re.error):
        regex(r"(unclosed").search("")


def test_every_pattern_of_the_product_compiles() -> None:
    kind, seen = type(regex("")), 0
    for module in pkgutil.walk_packages(logtriage.__path__, "logtriage."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, kind):
                assert re.compile(value.pattern, value.flags)
                seen += 1
    assert seen > 300


def test_importing_the_triage_compiles_none_of_them() -> None:
    code = (
        "import logtriage.examination, logtriage.pipeline, sys\n"
        "from logtriage.regex import regex\n"
        "kind = type(regex(''))\n"
        "late = [(name, key) for name, module in list(sys.modules.items()) if name.startswith('logtriage.')"
        " for key, value in vars(module).items() if isinstance(value, kind) and 'search' in vars(value)]\n"
        "print(late)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    early = told.stdout.strip()
    assert early.count("(") <= 6, early  # those that others are composed of
