"""Jobs that stand still: an engine that holds requests, a first bar, stacks that were asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import clock, judged, steps


def reports(first: float, count: int, *, rate: float, running: int) -> str:
    """What an engine says each minute."""
    return "".join(
        f"{clock(first + 60 * n)} INFO [loggers.py:100] Engine 001: Avg prompt throughput: {rate / 2:.1f} "
        f"tokens/s, Avg generation throughput: {rate:.1f} tokens/s, Running: {running} reqs, "
        f"Waiting: 0 reqs, GPU KV cache usage: 12.5%, Prefix cache hit rate: 31.0%\n"
        for n in range(count)
    )


def kind(folder: Path, **files: str) -> str:
    named = {f"{name}.log": text for name, text in files.items()}
    return judged(folder, named).verdict.failure_type


def test_an_engine_that_runs_requests_and_writes_nothing_holds_the_job_up(tmp_path: Path) -> None:
    trainer = steps(3, every=900)
    busy = reports(0, 35, rate=850.0, running=12)
    held = busy + reports(2100, 40, rate=0.0, running=7)
    verdict = judged(tmp_path / "held", {"trainer.log": trainer, "engine.log": held})
    assert verdict.verdict.failure_type == "hang.silent"
    assert "held 7 requests" in verdict.model_dump_json()
    idle = busy + reports(2100, 40, rate=0.0, running=0)
    assert kind(tmp_path / "idle", trainer=trainer, engine=idle) == "none.running"
    short = busy + reports(2100, 8, rate=0.0, running=7)
    assert kind(tmp_path / "short", trainer=trainer, engine=short) == "none.running"
    # another engine serves: the trainer goes on
    assert kind(tmp_path / "other", trainer=steps(6, every=900), engine=held) == "none.running"


BAR = "Epoch 0:   0%|          | 0/512 [00:00<?, ?it/s]\n"


@pytest.mark.parametrize(("minutes", "failure_type"), [(90, "hang.silent"), (30, "none.running")])
def test_a_first_bar_that_nothing_follows_but_polls_stands(
    tmp_path: Path, minutes: int, failure_type: str
) -> None:
    polls = "".join(f"{clock(60 * n)} INFO api - GET /runs/7 200 running\n" for n in range(1, minutes))
    text = f"{clock(0)} INFO loaded 512 batches\n{clock(2)} INFO fit - {BAR}{polls}"
    assert kind(tmp_path, train=text) == failure_type


DUMP = (
    "Fatal Python error: Aborted\n\nThread 0x00007f10aa (most recent call first):\n"
    '  File "/usr/lib/python3.11/threading.py", line 324 in wait\n\n'
    "Current thread 0x00007f10bb (most recent call first):\n"
    '  File "/app/score.py", line 41 in parse\n  File "/app/train.py", line 7 in main\n'
)


@pytest.mark.parametrize("command", ["$ kill -ABRT 4711", "[me@cn-3 run]$ sudo kill -6 4711"])
def test_stacks_that_a_person_asked_for_are_no_crash(tmp_path: Path, command: str) -> None:
    look = f"$ date\nSat Jan 31 08:20:00 UTC 2026\n{command}\n{DUMP}"
    assert kind(tmp_path / "asked", train=steps(40), look=look) == "hang.silent"
    assert kind(tmp_path / "crash", train=steps(40) + DUMP) == "process.native_crash"


def test_ports_of_clients_are_no_ranks(tmp_path: Path) -> None:
    polls = "".join(
        f'{clock(200 + 60 * n)} INFO: 10.0.4.2:{41010 + n} - "GET /metrics HTTP/1.1" 200 OK\n'
        for n in range(30)
    )
    assert judged(tmp_path, {"serve.log": polls}).job.ranks == 0
