"""Likeness by the embeddings of an OpenAI-compatible server: a scripted one, and a real small model."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from local_model import parameters
from model_server import Reply, Request, fault, serving
from taught_jobs import text, written

from logtriage import triage
from logtriage.apps.cli import main
from logtriage.memory.embedding import BATCH, EmbeddingFault, chosen_embedding
from logtriage.memory.incidents import DIAGNOSES, Index

pytest.importorskip("openai")
pytest.importorskip("chromadb")

Captured = pytest.CaptureFixture[str]
LEXICAL = chosen_embedding("lexical")
LINE = "loomd: shuttle {} lost its thread, warp sensor blind, harness {} parked, reed left open"
SECRET = "Zx81Qw77Lm20Pq"


def embedded(request: Request, size: int = 256) -> Reply:
    """What an embeddings endpoint answers; in another order than asked, as servers may."""
    whole = LEXICAL.embed(request["input"])
    vectors = [[sum(each[at::size]) for at in range(size)] for each in whole]
    data = [{"object": "embedding", "index": at, "embedding": each} for at, each in enumerate(vectors)]
    body = {"object": "list", "model": request["model"], "data": data[::-1]}
    return Reply(json.dumps({**body, "usage": {"prompt_tokens": 1, "total_tokens": 1}}).encode())


def good(request: Request, number: int) -> Reply:
    return embedded(request)


def indexed(requests: list[Request]) -> int:
    """How often the line of the confirmed diagnosis was embedded; a question holds other words."""
    return sum("shuttle <NUM> lost its thread" in each for request in requests for each in request["input"])


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> Path:
    """A memory with one confirmed diagnosis and no rule; returns a job with reworded words of the same."""
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(tmp_path / "data"))
    first = written(tmp_path / "first", {"out.log": text("weaving", LINE.format(4, 2), "bye")})
    assert main(["triage", str(first), "--offline", "--quiet", "--json", "-"]) == 0
    verdict = json.loads(capsys.readouterr().out)["id"]
    words = ("--type", "storage.filesystem", "--evidence", "out.log:2", "--mitigation", "Rethread it.")
    assert main(["correct", verdict, *words]) == 0
    assert main(["rules", "undo"]) == 0
    capsys.readouterr()
    reworded = LINE.replace("loomd: shuttle {} lost its thread", "loomd: lost the thread of shuttle {}")
    lines = text("weaving", reworded.format(9, 1) + f" password={SECRET}", "bye")
    return written(tmp_path / "second", {"out.log": lines})


def configure(monkeypatch: pytest.MonkeyPatch, address: str, model: str = "embed-a") -> None:
    values = {"EMBEDDING": "endpoint", "EMBEDDING_URL": address, "EMBEDDING_MODEL": model}
    for name, value in {**values, "EMBEDDING_API_KEY": "k-123"}.items():
        monkeypatch.setenv(f"LOGTRIAGE_{name}", value)


def test_a_job_is_compared_by_the_vectors_of_the_endpoint(
    memory: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    with serving(good) as server:
        configure(monkeypatch, server.address)
        assert main(["similar", str(memory)]) == 0
        assert "Rethread it." in capsys.readouterr().out
        assert SECRET not in json.dumps(server.requests)
        assert {each["authorization"] for each in server.headers} == {"Bearer k-123"}
        before = len(server.requests)
        assert main(["similar", str(memory)]) == 0
        assert indexed(server.requests[:before]) == 1 and indexed(server.requests[before:]) == 0
        verdict = triage(memory, offline=True)  # a server on this machine is no other machine
        assert (verdict.verdict.failure_type, verdict.verdict.decided_by) == ("storage.filesystem", "memory")


def test_another_model_makes_the_index_anew(
    memory: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    sizes = {"embed-a": 256, "embed-b": 256}

    with serving(lambda request, number: embedded(request, sizes[request["model"]])) as server:
        for model, size in (("embed-a", 256), ("embed-b", 256), ("embed-b", 128)):  # at last behind one name
            sizes[model] = size
            configure(monkeypatch, server.address, model)
            before = len(server.requests)
            assert main(["similar", str(memory)]) == 0
            assert "Rethread it." in capsys.readouterr().out
            assert indexed(server.requests[before:]) == 1
        assert main(["memory", "reindex"]) == 0
        assert "1 diagnoses (endpoint-" in capsys.readouterr().out
        assert max(len(each["input"]) for each in server.requests) == BATCH


def test_an_endpoint_that_is_down_costs_neither_verdict_nor_index(
    memory: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    is_down = False

    def script(request: Request, number: int) -> Reply:
        return fault(503, "out of service", headers={"Retry-After": "0"}) if is_down else embedded(request)

    with serving(script) as server:
        configure(monkeypatch, server.address)
        assert main(["similar", str(memory)]) == 0
        is_down = True
        assert main(["similar", str(memory)]) == 1
        shown = capsys.readouterr().err
        assert shown.count("\n") == 1 and server.address in shown
        assert triage(memory, offline=True).verdict.failure_type == "unknown"
        is_down = False
        before = len(server.requests)
        assert main(["similar", str(memory)]) == 0
        assert indexed(server.requests[before:]) == 0, "the index is still there"


ODD: dict[str, Reply] = {
    "no JSON": Reply(b"<html>", headers={"Content-Type": "text/html"}),
    "another JSON": Reply(b'{"choices": []}'),
    "too few": Reply(b'{"object": "list", "data": []}'),
    "no numbers": Reply(b'{"object": "list", "data": [{"index": 0, "embedding": ["a", "b"]}]}'),
    "empty": Reply(b'{"object": "list", "data": [{"index": 0, "embedding": []}]}'),
    "elsewhere": Reply(b"", status=307, headers={"Location": "http://127.0.0.1:9/v1/embeddings"}),
    "no such model": fault(404, "no such model"),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_answers_are_one_fault(name: str) -> None:
    with serving(lambda request, number: ODD[name]) as server:
        with pytest.raises(EmbeddingFault) as said:
            chosen_embedding("endpoint", url=server.address, model="m")
        assert server.address in str(said.value) and len(str(said.value)) < 400


def test_offline_asks_no_server_on_another_machine(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[Any] = []

    def refuse(host: Any, *rest: Any, **more: Any) -> Any:
        looked_up.append(host)
        raise OSError("no network")

    configure(monkeypatch, "http://embeddings.invalid/v1")
    monkeypatch.setenv("LOGTRIAGE_LLM", "never")
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert triage(memory, offline=True).verdict.failure_type == "unknown"
    assert main(["ask", str(memory), "have we seen this before?", "--offline"]) == 0
    assert looked_up == []
    triage(memory)
    assert "embeddings.invalid" in looked_up


@pytest.fixture(scope="module")
def real_address() -> Iterator[str]:
    """A llama.cpp server that embeds with a real small model."""
    wanted = parameters()
    import xllamacpp

    wanted.embedding = True
    wanted.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    wanted.n_ctx = 2048
    wanted.n_batch = wanted.n_ubatch = 256
    server = xllamacpp.Server(wanted)
    yield f"{server.listening_address}/v1"
    del server


def test_a_real_model_embeds_and_is_indexed(
    memory: Path, real_address: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    embedding = chosen_embedding("endpoint", url=real_address, model="smollm2")
    same, again, other = embedding.embed(["disk is full", "disk is full", "NCCL timeout on rank 3"])
    assert len(same) == embedding.size > 100
    assert sum(value * value for value in same) == pytest.approx(1, abs=1e-6)
    assert sum(a * b for a, b in zip(same, again, strict=True)) > 0.99
    assert sum(a * b for a, b in zip(same, other, strict=True)) < 0.99
    configure(monkeypatch, real_address, "smollm2")
    assert main(["similar", str(memory)]) == 0
    assert "Rethread it." in capsys.readouterr().out
    index = Index(Path(os.environ["LOGTRIAGE_DATA_DIR"]), "", embedding)
    (found,) = index.nearest(DIAGNOSES, {"1": "disk is full"}, ["disk is full"], 1)
    assert found.likeness > 0.99


@pytest.mark.parametrize("url", ["http://[::1", "http://\x1b[2J"])
def test_what_is_no_address_is_named_so(url: str) -> None:
    with pytest.raises(EmbeddingFault, match="no address of a server"):
        chosen_embedding("endpoint", url=url, model="m")
