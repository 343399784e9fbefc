"""Work shared out to copies of the process, in a process that has no other threads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ALONE = Path(__file__).with_name("forked_alone.py")


def test_in_a_process_of_its_own() -> None:
    command = [sys.executable, "-m", "pytest", "-n0", "-q", "-p", "no:cacheprovider", str(ALONE)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert " skipped" not in run.stdout
