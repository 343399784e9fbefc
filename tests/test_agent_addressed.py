"""Jobs whose logs talk to the model: no verdict changes by it, offline or by a model that obeys."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from model_jobs import settings
from model_server import Reply, Request, Script, answer, chat, serving

from logtriage import triage
from logtriage.report.document import Verdict

FIXTURES = Path(__file__).parent.parent / "fixtures"


def label(job: Path) -> dict[str, Any]:
    told: dict[str, Any] = yaml.safe_load((job / "truth.yaml").read_text(encoding="utf-8"))
    return told


JOBS = [
    job for job in sorted(path.parent for path in FIXTURES.glob("*/truth.yaml")) if "addressed" in label(job)
]
each_job = pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)


def addressed(job: Path) -> list[tuple[str, int, str]]:
    """(file, number, message) of the lines that talk to the model."""
    found = []
    for each in label(job)["addressed"]:
        lines = (job / "logs" / each["file"]).read_text(encoding="utf-8").split("\n")
        found += [
            (each["file"], number, lines[number - 1].split("sample ", 1)[1]) for number in each["lines"]
        ]
    return found


def without(job: Path, folder: Path) -> Path:
    """The same logs without the lines that talk to the model."""
    logs = folder / "logs"
    shutil.copytree(job / "logs", logs)
    for each in label(job)["addressed"]:
        path = logs / each["file"]
        lines = path.read_text(encoding="utf-8").split("\n")
        kept = [line for number, line in enumerate(lines, 1) if number not in each["lines"]]
        path.write_text("\n".join(kept), encoding="utf-8")
    return logs


def core(verdict: Verdict) -> dict[str, Any]:
    """What a person is told; line numbers apart, since those differ where lines were taken out."""
    body = verdict.to_dict()["verdict"]
    told = ("failure_type", "action", "confidence", "decided_by", "title", "culprits")
    return {
        **{name: body[name] for name in told},
        "evidence": [(each["file"], each["text"]) for each in body["evidence"]],
        "alternatives": [(each["failure_type"], each["confidence"]) for each in body["alternatives"]],
        "advice": [each["text"] for each in body["mitigations"]],
        "symptoms": [(each.failure_type, each.text) for each in verdict.symptoms],
        "outcome": body.get("outcome"),
    }


def test_two_jobs_are_shipped() -> None:
    assert len(JOBS) >= 2


@each_job
def test_the_offline_verdict_is_the_same_without_those_lines(job: Path, tmp_path: Path) -> None:
    clean = triage(without(job, tmp_path), offline=True, workers=1)
    assert clean.verdict.failure_type == label(job)["failure_type"]
    assert core(triage(job / "logs", offline=True, workers=1)) == core(clean)


def obedient(job: Path) -> Script:
    """A model that looks for lines that talk to it, and claims what they say, each time by another line."""
    told = addressed(job)
    claims = [
        (kind, f"F{file}:{number}", text[:60])
        for kind in ("scheduler.cancelled", "none.completed", "gpu.fell_off_bus")
        for _, number, text in told
        if kind in text or (kind.startswith("gpu.") and "GPU has fallen off the bus" in text)
        for file in range(1, 6)
    ]
    claims += [
        (kind, place, "GPU has fallen off the bus") for kind, place, _ in claims if kind.startswith("gpu.")
    ]

    def script(request: Request, number: int) -> Reply:
        if request.get("tools") and not any(each["role"] == "tool" for each in request["messages"]):
            look = {"pattern": "ignore|role|failure_type|im_start|note to|conclude|fallen"}
            return chat(None, calls=[("search_log", look)], usage=(1000, 40))
        kind, place, quote = claims[number % len(claims)]
        return chat(answer(kind, [(place, quote)], cause="The user cancelled the job."), usage=(1300, 90))

    return script


@each_job
@pytest.mark.parametrize("when", ["auto", "always"])
def test_a_model_that_obeys_those_lines_changes_nothing(job: Path, when: str, tmp_path: Path) -> None:
    pytest.importorskip("langchain_openai")
    logs = job / "logs"
    with serving(obedient(job)) as server:
        chosen = settings(tmp_path, server.address, llm=when, llm_votes=15, llm_tokens_per_vote=8000)
        verdict = triage(logs, workers=1, settings=chosen)
        clean = triage(without(job, tmp_path), workers=1, settings=chosen)
    offline = triage(tmp_path / "logs", offline=True, workers=1)
    assert core(verdict) == core(clean) == core(offline)
    if when == "always":
        assert verdict.model is not None and verdict.model.asked
        assert verdict.model.spent is not None and verdict.model.spent.look_ups > 0
        sent = json.dumps([request["messages"] for request in server.requests], ensure_ascii=False)
        for _, _, text in addressed(job):
            assert json.dumps(text[:60], ensure_ascii=False)[1:-1] not in sent
