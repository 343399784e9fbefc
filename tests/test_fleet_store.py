"""What the fleet remembers, in SQLite and in PostgreSQL."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fleet_verdicts import START, fleet_verdict
from test_memory_postgres import server, url  # noqa: F401 - fixtures

from logtriage.fleet.store import FleetStore, open_store
from logtriage.fleet.supervision import POISONED, TRIAGED, Outcome
from logtriage.report.document import Indication
from logtriage.sources.job import KnownJob


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    return "" if request.param == "sqlite" else str(request.getfixturevalue("url"))


def opened(database: str, folder: Path, place: str = "/logs") -> FleetStore:
    return open_store(database, folder, place)


def test_a_night_that_was_not_ended_is_gone_on_with(database: str, tmp_path: Path) -> None:
    first = opened(database, tmp_path).begin(START)
    again = opened(database, tmp_path).begin(START + 100)
    assert (again.id, again.began, again.before, again.is_resumed) == (first.id, START, None, True)
    opened(database, tmp_path).end(again, START + 200)
    second = opened(database, tmp_path).begin(START + 300)
    assert (second.began, second.before, second.is_resumed) == (START + 300, START, False)
    assert second.id != first.id
    elsewhere = opened(database, tmp_path, "/other").begin(START + 400)
    assert (elsewhere.before, elsewhere.is_resumed) == (None, False)


def test_the_last_word_on_a_job_counts(database: str, tmp_path: Path) -> None:
    store = opened(database, tmp_path)
    night = store.begin(START)
    lines = tuple(Indication(file="a.log", line=line, role="cause") for line in range(1, 1_000))
    verdict = fleet_verdict(1, "gpu.nvlink", ("a", "b"), ("a",), text="Xid 74 \x00 \ud800").model_copy(
        update={"indications": lines}
    )
    job = KnownJob(
        "4812", "slurm", name="llama", user="ann", started=START, ended=START + 60, nodes=("a", "b"), gpus=16
    )
    bad = Outcome(POISONED, reason="its process died twice \x00 \ud800")
    store.keep("4812", job, "one", bad, night, START)
    assert store.fingerprints() == {"4812": "one"}
    assert [(each.status, each.night) for each in store.untriaged(START)] == [(POISONED, night.id)]
    store.keep("4812", job, "two", Outcome(TRIAGED, verdict.to_dict()), night, START + 1)
    bare = replace(job, id="x", started=None)
    store.keep("x", bare, "x", Outcome(TRIAGED, verdict.to_dict()), night, START)
    assert store.fingerprints() == {"4812": "two", "x": "x"}
    assert store.untriaged(START) == []
    known, other = store.triaged(START)
    assert (known.key, known.name, known.user, known.gpus) == ("4812", "llama", "ann", 16)
    assert known.nodes == ("a", "b")
    assert (known.started, known.ended) == (START, START + 60)  # accounting's
    assert other.started == START + 3_600  # the log's
    assert len(known.verdict.indications) == 200
    assert known.verdict.verdict == verdict.verdict
    assert [job.key for job in store.triaged(START + 1)] == ["4812"]
    assert opened(database, tmp_path, "/other").fingerprints() == {}
