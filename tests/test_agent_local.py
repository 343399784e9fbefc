"""A real model behind a real server: protocol, schema, a cut answer, the time budget; not its wisdom."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from growth import CATASTROPHE
from local_model import parameters
from model_jobs import settings, unknown_job

from logtriage import triage

pytest.importorskip("langchain_openai")
xllamacpp = pytest.importorskip("xllamacpp")

TEXT = "F1:7 rank 0 | torch.OutOfMemoryError: CUDA out of memory.\nWhy did it end?"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    wanted = parameters()
    wanted.n_ctx = 4096
    wanted.n_batch = wanted.n_ubatch = 32  # so that it stops soon when nobody waits any more
    server = xllamacpp.Server(wanted)
    yield f"{server.listening_address}/v1"
    del server


def _cast(folder: Path, address: str, limit: int) -> str:
    """`answer`, or why there is none, of one vote with a short prompt and so many tokens in all."""
    from logtriage.agent import ballot, endpoint
    from logtriage.agent.tokens import upper_bound

    chosen = settings(folder, address, llm_temperature=0.0)
    spent = ballot.Spent(limit)

    async def vote() -> str:
        async with endpoint.client(chosen, 60) as http:
            model = endpoint.chat_model(chosen, http, temperature=True)
            paper = ballot.Paper(
                "Triage.", TEXT, (), 0, upper_bound, 0, True, spent, ballot.Dialect(), ballot.FORMS[0]
            )
            try:
                answer = await ballot.cast(model, paper, lambda fault: "Again.")
            except Exception as fault:
                return ballot.reason(fault)
            assert isinstance(answer.failure_type, str) and isinstance(answer.culprit_ranks, list)
            return "answer"

    told = asyncio.run(vote())
    assert spent.requests >= 1 and 0 < spent.sent + spent.received <= limit
    return told


def test_the_schema_is_obeyed_or_the_answer_is_cut_and_both_are_survived(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from logtriage.agent import ballot

    monkeypatch.setattr(ballot, "ANSWER_TOKENS", 140)
    monkeypatch.setattr(ballot, "LEAST_ANSWER", 1)
    assert _cast(tmp_path, address, 900) in ("answer", "the answer was cut at its limit")


def test_an_answer_that_is_cut_at_its_limit_is_no_vote(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from logtriage.agent import ballot

    monkeypatch.setattr(ballot, "ANSWER_TOKENS", 6)
    monkeypatch.setattr(ballot, "LEAST_ANSWER", 1)
    assert _cast(tmp_path, address, 900) == "the answer was cut at its limit"


def test_the_verdict_comes_in_time_and_is_no_worse(tmp_path: Path, address: str) -> None:
    logs = unknown_job(tmp_path)
    before = triage(logs, workers=1, offline=True).verdict
    chosen = settings(tmp_path, address, llm_seconds=4, llm_votes=1)
    after = triage(logs, workers=1, settings=chosen)
    assert after.timing.stages["model"] < CATASTROPHE
    assert after.model is not None and after.model.asked
    assert after.verdict.failure_type in (before.failure_type, "data.corrupt")
    if after.verdict.failure_type == before.failure_type:
        assert after.verdict.evidence == before.evidence
