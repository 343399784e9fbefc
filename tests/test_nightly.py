"""`logtriage nightly` as a timer runs it: real jobs, real processes, real deaths."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from fleet_jobs import age, small_fleet, write_job

from logtriage.apps.cli import main
from logtriage.fleet.supervision import POISONED, TRIAGED, Limits, Task
from logtriage.fleet.workers import triaged_here

DATE = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\dZ")  # when the night began: all that may differ


@dataclass(frozen=True)
class Ran:
    returncode: int
    stdout: str
    stderr: str


def night(root: Path, data: Path, *options: object) -> Ran:
    """The command as the program runs it; its workers are processes, as ever."""
    out, err = io.StringIO(), io.StringIO()
    before = os.environ.get("LOGTRIAGE_DATA_DIR", "")
    os.environ["LOGTRIAGE_DATA_DIR"] = str(data)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            status = main(_arguments(root, *options))
    finally:
        os.environ["LOGTRIAGE_DATA_DIR"] = before
    return Ran(status, out.getvalue(), err.getvalue())


def _arguments(root: Path, *options: object) -> list[str]:
    named = [] if root == Path() else [str(root)]
    return ["nightly", *named, "--offline", *map(str, options)]


def site(folder: Path) -> dict[str, bytes]:
    """All files of a digest, without the date that it states."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): DATE.sub(b"", path.read_bytes()) for path in files}


class Night:
    """One fleet, and the first night over it."""

    def __init__(self, folder: Path) -> None:
        self.root, self.data, self.out = folder / "logs", folder / "data", folder / "out"
        small_fleet(self.root)
        self.ran = night(self.root, self.data, "--output", self.out)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Night:
    return Night(tmp_path_factory.mktemp("fleet"))


def test_a_night_tells_what_died_of_what(first: Night) -> None:
    assert first.ran.returncode == 0, first.ran.stderr
    assert first.ran.stdout == ""
    lines = [json.loads(line) for line in (first.out / "jobs.jsonl").read_text().splitlines()]
    kinds = {each["job"]: each["failure_type"] for each in lines}
    assert kinds == {
        **{f"job-10{number}": "gpu.ecc_uncorrectable" for number in range(4)},
        **{f"job-20{number}": "code.key" for number in range(2)},
        **{f"job-40{number}": "none.completed" for number in range(3)},
        "job-300": kinds["job-300"],
    }
    text = (first.out / "digest.md").read_text()
    assert "6 jobs failed" in text
    assert re.search(r"\| gn09 \| (watch|lemon) \|.*gpu.ecc_uncorrectable 4, Xid 48", text)
    assert re.search(r"\| code\.key \| 2 \| 2 \| gn03 \|", text)
    for each in lines:
        assert "<title>" in (first.out / each["page"]).read_text()


def test_the_second_night_reads_no_job_again(first: Night) -> None:
    out = first.data / "second"
    again = night(first.root, first.data, "--output", out)
    assert again.returncode == 0
    assert "0 jobs were read, 0 are in the digest" in again.stderr
    assert (out / "jobs.jsonl").read_text() == ""
    assert "# No job ended since the last night" in (out / "digest.md").read_text()


def test_a_night_killed_half_way_gives_the_same_digest(first: Night, tmp_path: Path) -> None:
    arguments = _arguments(first.root, "--output", tmp_path / "out", "--workers", 1)
    process = subprocess.Popen(
        [sys.executable, "-m", "logtriage.apps.cli", *arguments],
        env={**os.environ, "LOGTRIAGE_DATA_DIR": str(tmp_path / "data")},
        stderr=subprocess.DEVNULL,
    )
    while triaged_jobs(tmp_path / "data") < 3:
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    done = triaged_jobs(tmp_path / "data")
    assert 3 <= done < 10
    assert not (tmp_path / "out" / "digest.md").exists()
    again = night(first.root, tmp_path / "data", "--output", tmp_path / "out")
    assert f"{10 - done} jobs were read, 10 are in the digest" in again.stderr
    assert site(tmp_path / "out") == site(first.out)


def triaged_jobs(data: Path) -> int:
    """How many jobs a night has done so far."""
    try:
        with sqlite3.connect(f"file:{data / 'ledger.sqlite3'}?mode=ro", uri=True) as store:
            return int(store.execute("select count(*) from nightly_jobs").fetchone()[0])
    except sqlite3.Error:  # not made yet
        return 0


def test_jobs_that_grow_run_or_come_again(tmp_path: Path) -> None:
    root, data = tmp_path / "logs", tmp_path / "data"
    grown = write_job(root, "job-1", "quiet")
    write_job(root, "job-2", "key")
    running = write_job(root, "job-3", "none")
    os.utime(running / "logs" / "gn01" / "rank0.log")  # written just now
    first = night(root, data)
    assert first.returncode == 0, first.stderr
    assert "2 jobs were read, 2 are in the digest, 1 are still running" in first.stderr
    assert "1 jobs failed" not in first.stdout and "1 job failed" in first.stdout
    with (grown / "logs" / "gn01" / "rank0.log").open("a") as log:
        log.write('Traceback (most recent call last):\n  File "t.py", line 1, in <module>\n')
        log.write("KeyError: 'input_ids_7'\n")
    age(grown)
    age(running)
    second = night(root, data)
    assert "2 jobs were read, 2 are in the digest, 0 are still running" in second.stderr
    assert re.search(r"\| job-1 \| code\.key \|", second.stdout)
    assert re.search(r"## Again\n\n.*\n.*\n\| A key is missing: .* \| code\.key \| 1 \| 2 \|", second.stdout)


def test_jobs_that_pass_a_limit_are_told_and_stop_nothing(tmp_path: Path) -> None:
    root, data = tmp_path / "logs", tmp_path / "data"
    write_job(root, "job-1", "key")
    (root / "job-2").mkdir()
    (root / "job-2" / "rank0.log").write_bytes(os.urandom(5_000))  # nothing that could be read
    age(root)
    slow = night(root, data, "--job-seconds", 0.1)
    assert slow.returncode == 1
    assert "job-1: poisoned: it took longer than 0.1 s" in slow.stdout
    known = night(root, data)
    assert known.returncode == 0 and "0 jobs were read" in known.stderr  # until its logs change
    large = night(root, tmp_path / "other", "--job-memory", 8)
    assert large.returncode == 1
    assert "job-1: poisoned: it needed more than 8 MiB of memory" in large.stdout


def test_the_exit_status_says_what_a_timer_must_know(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert night(tmp_path / "empty", tmp_path / "data").returncode == 3
    assert night(tmp_path / "nowhere", tmp_path / "data").returncode == 3
    assert night(tmp_path, tmp_path / "data", "--since", "soon").returncode == 2
    write_job(tmp_path / "logs", "job-1", "key")
    long_ago = night(tmp_path / "logs", tmp_path / "data", "--since", "2020-01-01", "--quiet")
    assert (long_ago.returncode, long_ago.stderr) == (0, "")
    pattern = night(Path(f"{tmp_path}/logs/{{name}}-{{job_id}}/"), tmp_path / "pattern", "--since", "7d")
    assert pattern.returncode == 0 and "1 jobs were read" in pattern.stderr


# --- workers -------------------------------------------------------------------------------------------


def workers_of(parent: int) -> Iterator[int]:
    """The processes that a process has started to triage jobs."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if int(stat.rsplit(")", 1)[1].split()[1]) == parent and b"logtriage.fleet.worker" in command:
                yield int(entry.name)


def killing(times: int) -> threading.Thread:
    """A thread that kills the first so many workers of this process as soon as they are seen."""

    def kill() -> None:
        dead: set[int] = set()
        deadline = time.monotonic() + 600
        while len(dead) < times and time.monotonic() < deadline:
            for worker in workers_of(os.getpid()):
                if worker not in dead:
                    os.kill(worker, signal.SIGKILL)
                    dead.add(worker)
                    break
            time.sleep(0.01)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def test_a_worker_that_died_is_replaced_and_a_job_that_kills_two_is_poisoned_alone(tmp_path: Path) -> None:
    tasks = []
    for name in ("job-1", "job-2"):
        write_job(tmp_path, name, "key")
        tasks.append(Task(name, (str(tmp_path / name),)))
    killer = killing(3)  # two at the first job, one at the second
    done = triaged_here(tasks, Limits(offline=True), 1)
    told = {task.key: (outcome.status, outcome.reason) for task, outcome in done}
    killer.join()
    assert told == {
        "job-1": (POISONED, "its process died twice, the last time by SIGKILL"),
        "job-2": (TRIAGED, ""),
    }


def test_no_worker_outlives_a_night_that_is_broken_off(tmp_path: Path) -> None:
    write_job(tmp_path, "job", "key")
    outcomes = triaged_here([Task(str(number), (str(tmp_path / "job"),)) for number in range(6)], Limits(), 2)
    next(outcomes)
    assert list(workers_of(os.getpid()))
    outcomes.close()  # type: ignore[attr-defined]
    assert not list(workers_of(os.getpid()))


# --- where jobs are known ------------------------------------------------------------------------------


def test_configured_sources_are_asked_and_one_that_fails_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user in ("ann", "bo"):  # jobs of one name, of two people
        write_job(tmp_path / "logs" / user, "llama-4812", "key")
    (tmp_path / "logtriage.toml").write_text(
        f'[[sources]]\nkind = "folders"\npatterns = ["{tmp_path}/logs/{{user}}/{{name}}-{{job_id}}/"]\n'
        f'[[sources]]\nkind = "folders"\nname = "gone"\npatterns = ["{tmp_path}/nowhere/{{job_id}}"]\n'
    )
    monkeypatch.setenv("LOGTRIAGE_CONFIG", str(tmp_path / "logtriage.toml"))
    first = night(Path(), tmp_path / "data", "--output", tmp_path / "out")
    assert first.returncode == 1, first.stderr
    assert "gone" in (tmp_path / "out" / "digest.md").read_text()
    lines = [json.loads(line) for line in (tmp_path / "out" / "jobs.jsonl").read_text().splitlines()]
    assert sorted((each["user"], each["failure_type"]) for each in lines) == [
        ("ann", "code.key"),
        ("bo", "code.key"),
    ]
    assert "0 jobs were read" in night(Path(), tmp_path / "data").stderr
