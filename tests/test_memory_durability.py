"""Real processes: killed at any moment, two at once, a broken index, no network, a Chroma server."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest
from taught_jobs import text, written

from logtriage.apps.cli import main
from logtriage.memory.changes import bank_name, finish_changes, locked
from logtriage.memory.ledger import open_ledger
from logtriage.memory.rule_folder import rules_dir

# Confirms without end, and says so only when it is done: a number a line.
CONFIRMING = """
import sys
from pathlib import Path
from logtriage.apps.cli import main
from logtriage.memory.changes import bank_name, locked, make_changes
from logtriage.memory.ledger import Change, Cited, Diagnosis, now, open_ledger
data_dir, who = Path(sys.argv[1]), sys.argv[2]
ledger = open_ledger(sys.argv[4], data_dir)
for number in range(int(sys.argv[3])):
    cited = (Cited("rank0.log", number + 1, "loomd: shuttle jammed"),)
    made = ledger.add(Diagnosis(f"v-{who}-{number}", "data.corrupt", "unknown", who, now(), "t", cited, {}))
    name = f"learned.{who}.r{number % 3}"
    with locked(data_dir):
        old = data_dir / "rules" / "active" / f"{name}.yaml"
        before = (f"active/{name}.yaml", old.read_bytes()) if old.exists() else None
        after = (f"active/{name}.yaml", f"# {who} {number}\\n".encode() * 200)
        make_changes([Change(name, "learned", who, now(), "", bank_name(data_dir), before, after, made.id)],
                     ledger, data_dir)
    print(made.id, flush=True)
"""


def confirming(data_dir: Path, who: str, count: int, url: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CONFIRMING, str(data_dir), who, str(count), url]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def held(data_dir: Path, url: str = "") -> set[int]:
    return {each.id for each in open_ledger(url, data_dir).diagnoses()}


def check_rules(data_dir: Path, url: str = "") -> None:
    """Once what was cut short has been made, each file is as its last change says; there is no other."""
    ledger = open_ledger(url, data_dir)
    with locked(data_dir):
        finish_changes(ledger, data_dir)
    last = {change.rule: change for change in ledger.changes(bank_name(data_dir))}
    for change in last.values():
        assert change.after is not None
        assert (rules_dir(data_dir) / change.after[0]).read_bytes() == change.after[1]
    found = {path.name for path in rules_dir(data_dir).rglob("*.yaml")}
    assert found == {f"{name}.yaml" for name in last}


def test_killed_at_any_moment_no_confirmed_diagnosis_is_lost(tmp_path: Path) -> None:
    moments = random.Random(7)
    told: set[int] = set()
    for round_ in range(4):
        process = confirming(tmp_path, f"p{round_}", 100_000)
        assert process.stdout is not None
        told.add(int(process.stdout.readline()))  # it is at work
        time.sleep(moments.uniform(0.05, 0.5))
        process.send_signal(signal.SIGKILL)
        told |= {int(line) for line in process.communicate()[0].splitlines()}
        assert told <= held(tmp_path)
        check_rules(tmp_path)
    assert len(told) > 8


def test_two_at_once_lose_nothing(tmp_path: Path) -> None:
    processes = [confirming(tmp_path, who, 40) for who in ("ann", "ben")]
    told = [{int(line) for line in process.communicate(timeout=120)[0].splitlines()} for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert [len(each) for each in told] == [40, 40]
    assert told[0] | told[1] == held(tmp_path)
    check_rules(tmp_path)


def test_a_new_ledger_that_another_is_just_writing_is_waited_for(tmp_path: Path) -> None:
    """SQLite refuses at once, without waiting, to turn a database to its write-ahead log in that moment."""
    other = sqlite3.connect(tmp_path / "ledger.sqlite3", isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE elsewhere (number INTEGER)")
    other.execute("BEGIN IMMEDIATE")
    ended = threading.Timer(0.5, other.execute, ["COMMIT"])
    ended.start()
    open_ledger("", tmp_path)
    ended.join()
    other.close()


chroma = pytest.mark.skipif(
    not __import__("importlib.util").util.find_spec("chromadb"), reason="the memory extra is not installed"
)
OFFLINE = """
import socket, sys
def refuse(*arguments, **named):
    raise AssertionError(f"the network was used: {arguments}")
socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
from logtriage.apps.cli import main
sys.exit(main(sys.argv[1:]))
"""


def command(data_dir: Path, *words: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", OFFLINE if "LOGTRIAGE_CHROMA_URL" not in environment else OFFLINE.replace(
            "socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse", ""
        ), *words],
        env={**os.environ, "LOGTRIAGE_DATA_DIR": str(data_dir), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def answered(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, out + err
    return out


LINE = "stormlaunch: member on {} never presented its handshake token within {}s, dissolving gang of {}"


def confirmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A data folder with one confirmed diagnosis, and a job like it."""
    data_dir = tmp_path / "data"
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(data_dir))
    first = written(tmp_path / "first", {"out.log": text("loading", LINE.format("dgx-14", 120, 16), "bye")})
    second = written(tmp_path / "second", {"out.log": text("loading", LINE.format("c7n1", 45, 512), "bye")})
    assert main(["triage", str(first), "--offline", "--json", str(tmp_path / "v.json"), "--quiet"]) == 0
    verdict = json.loads((tmp_path / "v.json").read_text())["id"]
    words = ("--type", "scheduler.launch", "--evidence", "out.log:2", "--mitigation", "Ask for half.")
    assert main(["correct", verdict, *words]) == 0
    return data_dir, second


@chroma
def test_similar_works_without_a_network_by_two_at_once_and_after_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir, job = confirmed(tmp_path, monkeypatch)
    for process in [command(data_dir, "similar", str(job)) for _ in range(2)]:
        answer = answered(process)
        assert "scheduler.launch" in answer and "Ask for half." in answer
    (data_dir / "index" / "chroma.sqlite3").write_bytes(b"no database" * 1000)
    assert "scheduler.launch" in answered(command(data_dir, "similar", str(job)))


@chroma
def test_a_chroma_server_serves_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = Path(sys.executable).with_name("chroma")
    server = subprocess.Popen(
        [program, "run", "--path", tmp_path / "served", "--host", "127.0.0.1", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(f"http://127.0.0.1:{port}/api/v2/heartbeat")
        data_dir, job = confirmed(tmp_path, monkeypatch)
        address = {"LOGTRIAGE_CHROMA_URL": f"http://127.0.0.1:{port}"}
        assert "scheduler.launch" in answered(command(data_dir, "similar", str(job), **address))
        assert not (data_dir / "index").exists()
    finally:
        server.terminate()
        server.wait(timeout=30)
    gone = command(data_dir, "similar", str(job), **address)
    _, err = gone.communicate(timeout=120)
    assert gone.returncode == 1 and f"127.0.0.1:{port}" in err and "Traceback" not in err


def _wait_for(url: str) -> None:
    for _ in range(3000):
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"nothing answers at {url}")


# No file may grow: what a full disk is to whoever writes. Whoever waits for a lock here waits for minutes.
ON_A_FULL_DISK = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
from logtriage.apps.cli import main
from logtriage.memory import database
database.WAIT_SECONDS = 600
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("command", [["memory", "list"], ["rules", "log"]])
def test_a_full_disk_is_told_at_once(tmp_path: Path, command: list[str]) -> None:
    environment = {**os.environ, "LOGTRIAGE_DATA_DIR": str(tmp_path / "data")}
    done = subprocess.run(
        [sys.executable, "-c", ON_A_FULL_DISK, *command],
        env=environment, cwd=tmp_path, capture_output=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1 and b"ledger.sqlite3" in done.stderr
