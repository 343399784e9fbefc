"""Commands, options and settings that README and docs name are there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from logtriage.apps.cli import app
from logtriage.settings import Settings

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
COMMAND = re.compile(r"(?:^|`)logtriage ((?:[a-z|]+ ?)+)([^`\n#]*)", re.MULTILINE)
# Read beside the settings proper.
OTHERS = {"CONFIG", "DEBUG"}


def commands() -> dict[tuple[str, ...], set[str]]:
    """The options of every command."""
    found: dict[tuple[str, ...], set[str]] = {}

    def add(command: Any, names: tuple[str, ...]) -> None:
        found[names] = {text for option in command.params for text in (*option.opts, *option.secondary_opts)}
        for name, inner in getattr(command, "commands", {}).items():
            add(inner, (*names, name))

    add(typer.main.get_command(app), ())
    return found


KNOWN = commands()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_option_that_a_page_names_is_there(page: Path) -> None:
    for match in COMMAND.finditer(page.read_text(encoding="utf-8")):
        words = match[1].split()
        at: tuple[str, ...] = ()
        for word in words:
            each = [(*at, one) for one in word.split("|")]
            if not set(each) <= KNOWN.keys():
                break
            at = each[0]
        assert at, f"{page.name}: there is no command `logtriage {match[1]}{match[2]}`"
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", match[2]):
            assert option in KNOWN[at], f"{page.name}: `logtriage {' '.join(at)}` has no option {option}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_setting_that_a_page_names_is_there(page: Path) -> None:
    known = {name.upper() for name in Settings.model_fields} | OTHERS
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"\bLOGTRIAGE_([A-Z][A-Z_]+[A-Z])\b", text):
        assert name in known, f"{page.name}: there is no setting LOGTRIAGE_{name}"
