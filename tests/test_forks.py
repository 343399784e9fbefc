"""Work shared out to copies of the process, in a process that has no other threads."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

ALONE = Path(__file__).with_name("forked_alone.py")


def test_in_a_process_of_its_own() -> None:
    command = [sys.executable, "-m", "pytest", "-n0", "-q", "-p", "no:cacheprovider", str(ALONE)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert " skipped" not in run.stdout


_WITHOUT_THREADS = """
import sys, threading
def none(thread):
    raise RuntimeError("can't start new thread")
threading.Thread.start = none
from logtriage.apps.cli import main
from logtriage.mining import survey
survey.PARALLEL_BYTES = 1
sys.exit(main(["triage", "--no-history", "--workers", "2", sys.argv[1]]))
"""


def test_where_no_thread_can_be_started_a_triage_does_without(tmp_path: Path) -> None:
    (tmp_path / "rank0.log").write_text("KeyError: 'x'\n")
    step = b"".join(b"step %d digest %d\n" % (number, number**9) for number in range(60_000))
    (tmp_path / "rank1.log.gz").write_bytes(gzip.compress(step, 1))
    command = [sys.executable, "-c", _WITHOUT_THREADS, str(tmp_path)]
    asked = {"LOGTRIAGE_LLM": "always", "LOGTRIAGE_LLM_MODEL": "m", "LOGTRIAGE_LLM_BASE_URL": "http://h/v1"}
    found = subprocess.run(
        command, env={**os.environ, **asked}, capture_output=True, text=True, check=False, timeout=100
    )
    assert found.returncode == 0 and "code.key" in found.stdout, found.stderr
    assert "Traceback" not in found.stderr and "internal error" not in found.stderr
