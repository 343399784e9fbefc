"""No test reads or writes what the person who runs it has configured or kept."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest

_HOME = tempfile.mkdtemp(prefix="logtriage-tests-")
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
for _name in [name for name in os.environ if name.startswith("LOGTRIAGE_")]:
    del os.environ[_name]
# Set here and not in a fixture, so that it holds for modules that triage while they are imported, and is
# inherited by every process that a test starts.
os.environ["LOGTRIAGE_DATA_DIR"] = f"{_HOME}/data"
os.environ["XDG_CONFIG_HOME"] = f"{_HOME}/config"


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a test alone keeps what it confirms and learns."""
    folder = tmp_path / "data"
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(folder))
    return folder
