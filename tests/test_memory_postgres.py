"""PostgreSQL as the ledger: a private server of Debian's package, as a user without rights."""

from __future__ import annotations

import json
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from taught_jobs import storage_client, written
from test_memory_durability import check_rules, confirming, held

from logtriage.apps.cli import main
from logtriage.memory.ledger import Diagnosis, LedgerFault, Vote, open_ledger

psycopg = pytest.importorskip("psycopg")

Captured = pytest.CaptureFixture[str]


def _programs() -> Path | None:
    """The folder of initdb and postgres: Debian keeps them out of PATH."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    own = shutil.which("initdb")
    folders += [Path(own).parent] if own else []
    return next((each for each in folders if (each / "initdb").exists() and (each / "pg_ctl").exists()), None)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """`host:port` of a private server on loopback; skipped where there is none to start."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    folder = Path(tempfile.mkdtemp(prefix="logtriage-pg-"))
    user: str | None = None
    if os.geteuid() == 0:  # the server refuses to run as root
        known = {each.pw_name for each in pwd.getpwall()}
        user = "postgres" if "postgres" in known else "nobody"
        shutil.chown(folder, user)
    port = _free_port()
    data = folder / "data"

    def run(*words: str) -> None:
        subprocess.run([programs / words[0], *words[1:]], user=user, cwd=folder, check=True, timeout=60,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip

    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1"
    try:
        run("initdb", "-D", str(data), "-U", "ledger", "-A", "trust", "--no-sync")
        run("pg_ctl", "-D", str(data), "-o", options, "-l", str(folder / "log"), "-w", "start")
        try:
            yield f"127.0.0.1:{port}"
        finally:
            run("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def url(server: str) -> str:
    """A database of its own."""
    name = f"db{uuid4().hex[:12]}"
    with psycopg.connect(f"postgresql://ledger@{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"postgresql+psycopg://ledger@{server}/{name}"


def test_killed_at_any_moment_no_confirmed_diagnosis_is_lost(tmp_path: Path, url: str) -> None:
    moments = random.Random(11)
    told: set[int] = set()
    for round_ in range(3):
        process = confirming(tmp_path, f"p{round_}", 100_000, url)
        assert process.stdout is not None
        told.add(int(process.stdout.readline()))
        time.sleep(moments.uniform(0.05, 0.5))
        process.send_signal(signal.SIGKILL)
        told |= {int(line) for line in process.communicate()[0].splitlines()}
        assert told <= held(tmp_path, url)
        check_rules(tmp_path, url)
    assert len(told) > 5 and not (tmp_path / "ledger.sqlite3").exists()


def test_two_at_once_lose_nothing_and_make_the_tables_once(tmp_path: Path, url: str) -> None:
    processes = [confirming(tmp_path, who, 20, url) for who in ("ann", "ben")]
    told = [{int(line) for line in process.communicate(timeout=120)[0].splitlines()} for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert told[0] | told[1] == held(tmp_path, url) and len(told[0] | told[1]) == 40
    check_rules(tmp_path, url)


REPLACING = """
import sys
from pathlib import Path
from logtriage.memory.ledger import Diagnosis, Vote, now, open_ledger
ledger = open_ledger(sys.argv[1], Path(sys.argv[2]))
for number in range(30):
    ledger.add(Diagnosis(f"v-{number % 3}", "data.corrupt", "unknown", "ann", now(), "t", (), {}))
    ledger.vote([Vote("learned.r", f"v-{number % 3}", number % 2 == 0)])
"""


def test_one_person_in_two_places_at_once_has_one_last_word(tmp_path: Path, url: str) -> None:
    command = [sys.executable, "-c", REPLACING, url, str(tmp_path)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in processes:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    ledger = open_ledger(url, tmp_path)
    assert sorted(each.verdict_id for each in ledger.diagnoses()) == ["v-0", "v-1", "v-2"]
    assert sum(ledger.votes("learned.r")) == 3


def test_the_loop_works_on_it_from_word_to_undo(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("LOGTRIAGE_DATABASE_URL", url)
    kind = storage_client()

    def told(*words: str) -> str:
        capsys.readouterr()
        assert main([*words]) == 0
        return capsys.readouterr().out

    def seen(job: Path) -> dict[str, Any]:
        verdict = json.loads(told("triage", str(job), "--offline", "--quiet", "--json", "-"))
        return {"id": verdict["id"], **verdict["verdict"]}

    first, second = written(tmp_path / "a", kind.first), written(tmp_path / "b", kind.second)
    word = ("--type", kind.failure_type, "--evidence", kind.place, "--author", "ann")
    before = seen(second)
    assert "has a say" in told("correct", seen(first)["id"], *word)
    by_rule = seen(second)
    assert (by_rule["failure_type"], by_rule["decided_by"]) == (kind.failure_type, "rules")
    assert "ann" in told("memory", "list")
    exported = tmp_path / "all.jsonl"
    told("memory", "export", str(exported))
    assert "0 of 1" in told("memory", "import", str(exported))
    assert "learned" in told("rules", "log")
    told("rules", "undo")  # the rule is taken back; what ann said is not, and likeness alone is less sure
    by_memory = seen(second)
    assert (by_memory["failure_type"], by_memory["decided_by"]) == (kind.failure_type, "memory")
    assert by_memory["confidence"] < by_rule["confidence"]
    told("memory", "forget", "1")
    assert seen(second) == before
    monkeypatch.delenv("LOGTRIAGE_DATABASE_URL")
    assert not (tmp_path / "data" / "ledger.sqlite3").exists()
    assert "1 of 1" in told("memory", "import", str(exported))  # into SQLite


@pytest.mark.parametrize("is_server", [True, False], ids=["postgresql", "sqlite"])
def test_whatever_a_log_says_can_be_kept(tmp_path: Path, url: str, is_server: bool) -> None:
    ledger = open_ledger(url if is_server else "", tmp_path)
    odd = "nul \0 half a pair \ud83d and “more”"
    word = Diagnosis("v-1", "data.corrupt", "unknown", odd, "2026-01-01", odd * 50, (), {"a": odd}, odd)
    made = ledger.add(word)
    ledger.vote([Vote("learned.r", "v-1", True)])
    (kept,) = ledger.diagnoses(verdict_id="v-1")
    assert kept.id == made.id and kept.context == {"a": odd}
    assert kept.title.startswith("nul  half a pair ? and “more”") and "\0" not in kept.author


def test_a_server_that_is_gone_is_one_line_without_the_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    gone = f"postgresql+psycopg://ledger:hunter22@127.0.0.1:{_free_port()}/ledger"
    with pytest.raises(LedgerFault) as fault:
        open_ledger(gone, tmp_path)
    assert "hunter22" not in str(fault.value)
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("LOGTRIAGE_DATABASE_URL", gone)
    assert main(["memory", "list"]) == 1
    shown = capsys.readouterr()
    assert shown.out == "" and "Traceback" not in shown.err and "hunter22" not in shown.err
    assert not list((tmp_path / "data").glob("*"))
