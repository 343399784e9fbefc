"""What jobs of one kind always write: learned from earlier runs or proposed by votes, checked on each job."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from growth import CATASTROPHE
from model_jobs import desk, settings
from model_server import Reply, Request, answer, chat, serving, shown

from logtriage import triage
from logtriage.agent import routine
from logtriage.agent.desk import Desk
from logtriage.agent.log_agent import agreed, candidates, read_numbers, routine_templates
from logtriage.model import Line
from logtriage.redaction import Redaction

HEARTBEAT = "memory allocated {} MiB of cache pool"


def _run(folder: Path, *, steps: int = 300, more: str = "") -> Path:
    """Twenty minutes of a job with a heartbeat between its steps."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"2026-03-01 08:59:59 INFO {word}" for word in ("torchrun launches it", "Gloo connected")]
    for step in range(steps):
        at = f"2026-03-01 09:{step * 4 // 60:02d}:{step * 4 % 60:02d}"
        lines += [f"{at} INFO step {step} loss 2.{step % 90:02d}"]
        lines += [f"{at} INFO {HEARTBEAT.format(1000 + step)}"]
        lines += [f"{at} WARNING retrying the upload of metrics, try {step}"] if step % 3 == 0 else []
        lines += [f"{at} INFO Traceback of worker {step}: ValueError: odd"] if step == 100 else []
    (folder / "rank0.log").write_text("\n".join(lines) + "\n" + more)
    return folder


FAILED = (
    'Traceback (most recent call last):\n  File "t.py", line 3, in f\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
)


def test_healthy_runs_teach_what_is_routine_and_the_next_job_of_the_family_uses_it(tmp_path: Path) -> None:
    earlier = [_run(tmp_path / "a"), _run(tmp_path / "b", steps=250)]
    failed = _run(tmp_path / "c", more=FAILED)
    chosen = settings(tmp_path, llm="never")
    first = triage(failed, workers=1, history=earlier, settings=chosen)
    told = first.mining.routine
    assert told is not None and told.source == "history"
    assert told.lines == 600 and 0.8 < told.share < 1  # steps and heartbeats, no warning
    assert first.verdict.failure_type == "cuda.out_of_memory"
    again = triage(_run(tmp_path / "d", steps=280, more=FAILED), workers=1, offline=True, settings=chosen)
    assert again.mining.routine is not None and again.mining.routine.family == told.family
    assert again.mining.routine.lines == 560
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "x.log").write_text("INFO quite another program\n" * 40)
    assert triage(tmp_path / "e", workers=1, settings=chosen).mining.routine is None


def test_an_earlier_run_that_failed_teaches_no_routine_and_that_is_said(tmp_path: Path) -> None:
    job = _run(tmp_path / "c", more=FAILED)
    broken = _run(tmp_path / "broken", more=FAILED)
    chosen = settings(tmp_path, llm="never")
    alone = triage(job, workers=1, history=[broken], settings=chosen)
    assert alone.mining.routine is None and not (tmp_path / "data" / "families").exists()
    (said,) = (each for each in alone.mining.left_out if "earlier run" in each)
    assert str(broken) in said and "cuda.out_of_memory" in said
    assert alone.mining.novel_templates == 0  # what is new is told against all runs
    beside = triage(job, workers=1, history=[broken, _run(tmp_path / "a", steps=250)], settings=chosen)
    assert beside.mining.routine is not None and beside.mining.routine.lines == 600
    assert any(str(broken) in each for each in beside.mining.left_out)


def _job(folder: Path, more: str = FAILED) -> tuple[Desk, routine.Routine]:
    seen = desk(_run(folder, more=more))
    everything = {text for row in seen.catalogue.rows for text in row.masked}
    passed = routine.passing(everything, seen.catalogue.rows, seen.findings, seen.matcher)
    family = routine.proposed((), everything)
    return seen, routine.Routine(family, passed, seen.findings, seen.matcher)


def _lines(seen: Desk) -> list[Line]:
    return [line for reading in seen.findings.scene.readings for line in reading.lines]


def test_nothing_that_may_tell_something_is_ever_dropped(tmp_path: Path) -> None:
    seen, habit = _job(tmp_path / "job")
    dropped = [line for line in _lines(seen) if habit.drops(line)]
    assert len(dropped) > 300
    places = {(line.file, line.number) for line in dropped}
    assert not places & {(each.line.file, each.line.number) for each in seen.findings.candidates}
    assert all("retrying" not in line.text and "ValueError" not in line.text for line in dropped)
    assert all("launches" not in line.text for line in dropped)  # rare
    last = max(line.time or 0 for line in _lines(seen))
    assert all(line.time is not None and line.time <= last - routine.LAST_SECONDS for line in dropped)


def test_a_filter_for_a_line_that_a_rule_knows_is_not_used(tmp_path: Path) -> None:
    burst = "2026-03-01 09:05:00 INFO CUDA out of memory. Tried to allocate 2.00 GiB\n" * 50
    seen, habit = _job(tmp_path / "job", more=burst + _run(tmp_path / "x").joinpath("rank0.log").read_text())
    assert all("out of memory" not in line.text for line in _lines(seen) if habit.drops(line))


def test_a_damaged_family_file_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "families"
    folder.mkdir()
    for number, text in enumerate(
        ["", "[]", '{"id": 1}', '{"id": "f-1", "filters": 5}', "\x00", "[" * 9_999]
    ):
        (folder / f"f-{number}.json").write_text(text)
    assert routine.families(tmp_path) == []


def test_more_than_half_of_the_votes_must_name_a_template(tmp_path: Path) -> None:
    seen, _ = _job(tmp_path / "job")
    rows = candidates(seen.catalogue.rows)
    assert len(rows) == 2
    assert agreed(rows, [{1}, {1}, {1, 2}], 5) == rows[0].masked
    assert agreed(rows, [{1}, {2}, {1, 2}], 5) == frozenset()
    assert agreed(rows, [{99}, {-1}, {0}] * 3, 5) == frozenset()


@pytest.mark.parametrize("text", ["", "{}", '{"routine": 3}', '{"routine": ["a"]}', "[1]", "{" * 99])
def test_what_is_no_list_of_numbers_is_no_vote(text: str) -> None:
    with pytest.raises(ValueError):
        read_numbers(text)


def _script(request: Request, number: int) -> Reply:
    if "```templates" in shown(request):
        return chat(json.dumps({"routine": list(range(1, 60))}))
    return chat(answer("unknown", []))


def test_votes_propose_and_code_decides(tmp_path: Path) -> None:
    pytest.importorskip("langchain_openai")
    job = _run(tmp_path / "job", more=FAILED)
    with serving(_script) as server:
        chosen = settings(tmp_path, server.address, llm="always", llm_log_agent=True)
        verdict = triage(job, workers=1, settings=chosen)
        told = verdict.mining.routine
        assert told is not None and told.source == "model" and told.lines == 600
        asked = len(server.requests)
        again = triage(job, workers=1, settings=chosen.model_copy(update={"llm": "never"}))
        assert again.mining.routine == told and len(server.requests) == asked


def test_a_dead_endpoint_proposes_nothing_and_in_time(tmp_path: Path) -> None:
    pytest.importorskip("langchain_openai")
    seen, _ = _job(tmp_path / "job")
    chosen = settings(tmp_path, "http://127.0.0.1:9/v1")
    until = time.monotonic() + 3
    assert routine_templates(seen.catalogue.rows, Redaction(), chosen, until=until) == frozenset()
    assert time.monotonic() < until + CATASTROPHE
