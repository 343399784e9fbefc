"""Ends that a starter announces in words of its own, and what is no such announcement."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from scenes import clock, findings, judged, reading

from logtriage.localize.announced import last_written

RANKS, HOSTS, STEPS = 8, 4, 60
LAST = 2.0 * STEPS


def job(
    words: str, *, lost: int | None = None, starter: str = "butler.log", heard: str = ""
) -> dict[str, str]:
    """Eight ranks on four machines that stop at once, and a starter that says something of it."""
    files = {}
    for rank in range(RANKS):
        host = f"kx{rank * HOSTS // RANKS:02d}"
        ends = "" if lost == rank * HOSTS // RANKS else f"{clock(LAST + 290)} INFO draining on {host}\n"
        body = "".join(
            f"{clock(2.0 * step)} INFO host {host} rank {rank} step {step} loss 2.{step % 10}1\n"
            for step in range(STEPS)
        )
        files[f"{host}/rank_{rank}.log"] = body + ends
    beats = "".join(f"{clock(10.0 * at)} butler: kx0{at % HOSTS} is fine\n" for at in range(12))
    files[starter] = f"{clock(0)} butler: starting 8 workers\n{beats}{heard}{words}"
    return files


@pytest.mark.parametrize(
    "words",
    [
        f"{clock(LAST + 300)} butler: kx02 gives no sign of life, its workers are given up\n",
        f"{clock(LAST + 300)} butler: machine kx02 went offline\n",
        f"{clock(LAST + 300)} butler: kx02 no longer answers\n",
        f"{clock(LAST + 300)} kx01 says that kx02 has vanished\n",
    ],
)
def test_a_machine_that_a_starter_calls_lost_and_that_fell_silent(tmp_path: Path, words: str) -> None:
    body = judged(tmp_path, job(words, lost=2)).verdict
    assert (body.failure_type, body.culprits.hosts) == ("host.node_lost", ("kx02",))
    assert body.evidence[0].file == "butler.log"
    assert body.stage is not None and body.stage.iteration == STEPS - 1


def test_a_machine_wrote_what_its_ranks_wrote_where_no_file_is_known_to_be_its_own() -> None:
    text = "".join(f"[rank{at % 4}] {clock(at)} INFO step {at} loss 2.1\n" for at in range(40))
    found = findings(reading("all.out", text))
    places = {0: "kx00", 1: "kx00", 2: "kx01", 3: "kx01"}
    topology = replace(found.topology, host_of_rank=places, host_of_file={}, rank_of_file={})
    first, second = (last_written(host, found.scene, topology) for host in ("kx00", "kx01"))
    assert first is not None and second == first + 2.0
    assert last_written("kx02", found.scene, topology) is None


def test_a_machine_that_wrote_on_is_not_lost(tmp_path: Path) -> None:
    words = f"{clock(LAST + 280)} butler: kx02 no longer answers\n"
    assert judged(tmp_path, job(words)).verdict.failure_type != "host.node_lost"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("butler: workers stopped, the pool was reclaimed for the night shift", "scheduler.preempted"),
        ("butler: displaced by run 71, stopping", "scheduler.preempted"),
        ("butler: duration of 2 h is used up, stopping", "scheduler.time_limit"),
        ("butler: the reservation has expired", "scheduler.time_limit"),
    ],
)
def test_why_a_starter_stops_a_job(tmp_path: Path, words: str, expected: str) -> None:
    told = f"{clock(LAST + 1)} {words}\n{clock(LAST + 2)} butler: SIGTERM to 8 workers\n"
    verdict = judged(tmp_path, job(told))
    assert verdict.verdict.failure_type == expected
    assert verdict.verdict.culprits.hosts == ()
    starter = [each for each in verdict.indications if each.file == "butler.log"]
    assert len(starter) == 2  # both of what it never said before


@pytest.mark.parametrize(
    "words",
    [
        "butler: was not displaced by anybody",
        "butler: memory limit of the queue is used up",
        "butler: may be preempted by others",
    ],
)
def test_what_announces_no_end(tmp_path: Path, words: str) -> None:
    body = judged(tmp_path, job(f"{clock(LAST + 1)} {words}\n")).verdict
    assert not body.failure_type.startswith("scheduler.")


def test_what_was_said_while_the_job_was_well_announces_nothing(tmp_path: Path) -> None:
    words = "butler: duration of 2 h is used up by run 6"
    heard = f"{clock(30)} {words}\n"
    body = judged(tmp_path, job(f"{clock(LAST + 1)} {words}\n", heard=heard)).verdict
    assert not body.failure_type.startswith("scheduler.")
