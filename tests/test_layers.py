"""The order of imports of docs/architecture.md, and what a short command must not load."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "logtriage"

# From the ground up. Rooms of one row stand side by side and do not import each other.
ROWS = (
    ("written",),
    ("model", "cache", "regex", "forks", "timing"),
    ("taxonomy", "redaction", "settings"),
    ("intake", "rulebank", "report"),
    ("artefacts",),
    ("mining",),
    ("localize", "memory"),
    ("diagnose", "answers"),
    ("agent",),
    ("examination",),
    ("pipeline", "sources"),
    ("fleet", "evaluation"),
    ("apps",),
)
FLOOR = {room: floor for floor, row in enumerate(ROWS) for room in row}


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of the package with its dotted name; a package has the name of its folder."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


MODULES = dict(modules())


def imported(name: str, path: Path) -> Iterator[tuple[int, str]]:
    """(line, module) of every import of the package's own modules, inside functions as well."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}:{node.lineno}: imports are written in full"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [each if each in MODULES else str(node.module) for each in inner]
        else:
            continue
        yield from ((node.lineno, each) for each in names if each.split(".")[0] == "logtriage")


def room(module: str) -> str | None:
    """The room of a module; None for the front door, `logtriage` itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else None


def test_every_room_has_a_place_in_the_order() -> None:
    assert {room(name) for name in MODULES} - {None, "__main__"} <= FLOOR.keys()


@pytest.mark.parametrize("name", [name for name in MODULES if room(name) in FLOOR])
def test_imports_go_down(name: str) -> None:
    here = room(name)
    assert here is not None
    for line, target in imported(name, MODULES[name]):
        there = room(target)
        # The front door stands on no floor: what is taken from it is the version.
        if there is not None and there != here:
            assert FLOOR[there] < FLOOR[here], f"{name}:{line} imports {target}, which is not below it"


def test_no_circle() -> None:
    """No module reaches itself over imports at the top of modules."""
    tops = {
        name: {target for line, target in imported(name, path) if line in _top_lines(path)} - {name}
        for name, path in MODULES.items()
    }
    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, "a circle: " + " -> ".join((*way[way.index(name) :], name))
        if name not in done:
            for target in sorted(tops.get(name, ())):
                visit(target, (*way, name))
            done.add(name)

    for name in tops:
        visit(name, ())


def _top_lines(path: Path) -> set[int]:
    return {node.lineno for node in ast.parse(path.read_bytes()).body}


def loaded(program: str) -> set[str]:
    """The top-level packages that a fresh interpreter holds after `program`."""
    ending = "\nimport json, sys\nprint(json.dumps(sorted({each.split('.')[0] for each in sys.modules})))"
    ran = subprocess.run(
        [sys.executable, "-c", program + ending], capture_output=True, text=True, check=True, timeout=120
    )
    return set(json.loads(ran.stdout.splitlines()[-1]))


def test_help_loads_nothing_heavy() -> None:
    here = loaded("import logtriage.apps.cli")
    assert "typer" in here
    assert not here & {"numpy", "pydantic", "drain3", "re2", "ahocorasick_rs", "yaml", "jinja2"}


def test_what_lies_behind_the_first_look_is_not_loaded_before_it() -> None:
    here = loaded("import logtriage.pipeline")
    assert not here & {"drain3", "ahocorasick_rs", "numpy", "jinja2"}


def test_an_offline_triage_loads_no_model_and_no_data_frame(tmp_path: Path) -> None:
    (tmp_path / "rank0.log").write_text("RuntimeError: CUDA error: unspecified launch failure\n")
    here = loaded(f"from logtriage import triage\ntriage({str(tmp_path)!r}, offline=True).to_json()")
    assert "pydantic" in here
    models = {"openai", "langchain", "langchain_core", "langchain_openai", "chromadb", "onnxruntime"}
    assert not here & (models | {"pandas", "polars", "sqlalchemy", "slack_bolt", "httpx", "requests"})
