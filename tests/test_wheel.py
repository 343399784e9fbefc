"""The wheel is complete: installed elsewhere, it judges a job with the rules that it carries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import logtriage

ROOT = Path(__file__).parent.parent


def run(*command: str | Path, cwd: Path) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    words = [str(part) for part in command]
    ran = subprocess.run(words, cwd=cwd, env=clean, capture_output=True, text=True, check=False, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    run(*pip, "--wheel-dir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`logtriage` in an environment of its own, which borrows the dependencies but not this tree."""
    folder = tmp_path_factory.mktemp("elsewhere")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    (site,) = folder.glob("lib/python*/site-packages")
    run(sys.executable, "-m", "pip", "--python", folder, "install", "--quiet", "--no-deps", wheel, cwd=folder)
    # A folder named in a .pth file comes after the environment's own, and .pth files in it are not followed.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin" / "logtriage"


def test_the_wheel_carries_rules_prompts_and_licence(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("rules", "prompts"):
        shipped = {f"logtriage/{folder}/{path.name}" for path in (ROOT / folder).iterdir() if path.is_file()}
        assert shipped and shipped <= names
    assert "logtriage/report/verdict.html.j2" in names
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    tops = {name.split("/")[0] for name in names}
    assert tops == {"logtriage", f"logtriage-{logtriage.__version__}.dist-info"}


def test_the_installed_program_checks_its_rules(program: Path, tmp_path: Path) -> None:
    assert ": 0 errors" in run(program, "rules", "lint", cwd=tmp_path)


def test_the_installed_program_judges_a_job(program: Path, tmp_path: Path) -> None:
    job = next(path.parent for path in sorted((ROOT / "fixtures").glob("*/truth.yaml")))
    document = json.loads(run(program, "triage", "--offline", "--json", "-", job / "logs", cwd=tmp_path))
    here = logtriage.triage(job / "logs", offline=True)
    assert document["verdict"]["failure_type"] == here.verdict.failure_type
    assert document["id"] == here.id
    run(program, "triage", "--offline", "--html", tmp_path / "report.html", job / "logs", cwd=tmp_path)
    assert here.verdict.failure_type in (tmp_path / "report.html").read_text(encoding="utf-8")
