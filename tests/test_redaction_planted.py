"""Secrets planted in logs: none of them leaves the machine, in whatever place it stands."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from asked_jobs import QUOTE, asked
from hypothesis import given, settings
from hypothesis import strategies as st
from model_jobs import desk, unknown_job
from model_server import Reply, Request, answer, chat, place_of, shown
from secrets_planted import AROUND, PLACES, key_block, keys, password, pieces

from logtriage.agent.desk import normal
from logtriage.redaction import Redaction

_SEEDS = st.integers(0, 2**32)
# In an address or a header a password has no signs that would end it there.
_PLAIN_PLACES = (
    "url", "url without user", "git", "oracle", "webhook", "signed", "sas", "jdbc", "some key",
    "short header", "header", "cookie", "wandb login",
)  # fmt: skip


def _hides(line: str, secret: str, *, is_alone: bool = True) -> None:
    """`is_alone`: once known it is hidden wherever else it stands, not only where its place tells it."""
    redaction = Redaction()
    sent = redaction.redact(normal(line))
    assert not any(piece in sent for piece in pieces(secret)), sent
    assert redaction.restore(sent) == normal(line)
    again = redaction.redact(f"again {secret} was refused")
    assert not is_alone or not any(piece in again for piece in pieces(secret))


@pytest.mark.parametrize("around", AROUND)
@given(_SEEDS)
@settings(max_examples=8, deadline=None)
def test_a_key_is_known_wherever_it_stands(around: str, seed: int) -> None:
    for secret in keys(random.Random(seed)).values():
        _hides(AROUND[around].format(secret), secret)


@pytest.mark.parametrize("place", PLACES)
@given(_SEEDS)
@settings(max_examples=15, deadline=None)
def test_a_password_is_known_by_its_place(place: str, seed: int) -> None:
    rng = random.Random(seed)
    is_plain = place in _PLAIN_PLACES or rng.random() < 0.5
    secret = password(rng, is_plain=is_plain)
    _hides(PLACES[place].format(secret), secret, is_alone=is_plain and place not in ("cookie", "webhook"))


_LAYOUTS = {
    "lines": "\n",
    "windows": "\r\n",
    "behind a logger": "\n2026-03-01 09:00:31 INFO [rank1] ",
    "json": "\\n",
    "json in json": "\\\\n",
}


@pytest.mark.parametrize("layout", _LAYOUTS)
@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
@given(_SEEDS)
@settings(max_examples=5, deadline=None)
def test_no_line_of_a_key_block_is_sent(layout: str, kind: str, seed: int) -> None:
    block = key_block(random.Random(seed), kind)
    text = '{"private_key": "' + _LAYOUTS[layout].join(block) + '"}'
    redaction = Redaction()
    redaction.learn(text)
    sent = "\n".join(redaction.redact(normal(line)) for line in text.splitlines())
    assert not any(piece in sent for line in block[1:-1] for piece in pieces(line, 8))
    # A line of it alone, as a search in a file shows it whose other lines were not read.
    assert not any(piece in Redaction().redact(f"F2:7 | {block[3]}") for piece in pieces(block[3], 8))


def test_a_key_block_without_an_end_hides_no_more_than_a_block_may_have() -> None:
    redaction = Redaction()
    words = "".join(f"step {number} loss 2.3{number}\n" for number in range(3000))
    last = "RuntimeError: CUDA error: unspecified launch failure"
    redaction.learn(f"-----BEGIN PRIVATE KEY-----\n{words}{last}\n")
    assert redaction.redact(last) == last


@pytest.mark.parametrize(
    "line",
    [
        "PWD=/workspace/run OLDPWD=/workspace",
        "ERROR loading credentials: Permission denied",
        "eos_token='<|endoftext|>' pad_token=\"<unk>\"",
        "forward_pass: finished, bypass: enabled",
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 of shard 7",
        "c10d::ProcessGroupNCCL::WorkNCCL at::native 12:00:01",
        "collective sk-learn glove-6b-300d global-step-00001000-of-00005000",
        '  File "/opt/venv/lib/python3.11/site-packages/torch/nn/module.py", line 1518, in _call_impl',
    ],
)
def test_what_only_looks_like_a_secret_is_sent(line: str) -> None:
    assert Redaction().redact(line) == line


def test_addresses_and_hosts_are_hidden_in_all_their_forms() -> None:
    line = "2001:db8::1:2, ::1, ip-10-0-3-7, https://login3.cluster.example:8443/x, store-a.corp.internal"
    redaction = Redaction(addresses=True)
    sent = redaction.redact(line)
    assert not any(word in sent for word in ("2001", "ip-10", "login3", "store-a", "internal"))
    assert redaction.restore(sent) == line
    calm = "at c10d::Backend 18:05:39 in torch.distributed.run, model.layers.0.mlp"
    assert Redaction(addresses=True).redact(calm) == calm


def test_no_line_gives_a_part_of_a_secret_away_however_it_is_cut(tmp_path: Path) -> None:
    rng = random.Random(7)
    planted = [(secret, AROUND["repr"].format(secret)) for secret in keys(rng).values()]
    for words in PLACES.values():
        secret = password(rng, is_plain=True)
        planted.append((secret, words.format(secret)))
    seen = desk(unknown_job(tmp_path, more="".join(f"{line}\n" for _, line in planted)))
    lines = {line.text: line for line in seen.findings.scene.readings[1].lines}
    for secret, words in planted:
        for width in (20, 40, 60, 90, 400):
            told = seen.cited(lines[words], width)
            assert not any(piece in told for piece in pieces(secret)), (words, told)


def test_what_a_server_gets_holds_no_secret_and_the_answer_has_all_of_them(tmp_path: Path) -> None:
    pytest.importorskip("langchain_openai")
    rng = random.Random(11)
    secrets = keys(rng)
    own = [AROUND["json"].format(secrets["github"]), AROUND["traceback"].format(secrets["slack bot"])]
    own += [f"2026-03-01 09:00:34 ERROR {PLACES['flag'].format(secrets['hugging face'])}"]
    block = key_block(rng)
    url = f"DATABASE_URL=postgresql://trainer:{'Zk7' * 30}@db1/runs"
    logs = unknown_job(tmp_path, more="\n".join([url, *block, *own, ""]))
    looks = [
        ("search_log", {"pattern": "."}),
        ("job_configuration", {"name": "url"}),
        ("read_lines", {"place": "F1:40"}),
        ("search_log", {"pattern": "BEGIN|[A-Za-z0-9+/]{64}"}),
    ]

    def script(request: Request, number: int) -> Reply:
        looked = sum(each["role"] == "tool" for each in request["messages"])
        if request.get("tools") and looked < len(looks):
            return chat(None, calls=[looks[looked]], usage=(300, 20))
        hub = (place_of(request, "--hub-token <secret-"), "python train.py --hub-token")
        return chat(answer("data.corrupt", [(place_of(request, QUOTE), QUOTE), hub]), usage=(300, 60))

    verdict, server = asked(tmp_path, script, llm_tool_calls=8, llm_tokens_per_vote=40_000)
    sent = "\n".join(str(each.get("content")) for request in server.requests for each in request["messages"])
    assert "DATABASE_URL=postgresql" in sent and "<secret-" in shown(server.requests[0])
    hidden = [secrets["github"], secrets["slack bot"], secrets["hugging face"], "Zk7" * 30, *block[1:-1]]
    assert [secret for secret in hidden if any(piece in sent for piece in pieces(secret))] == []
    assert not any(piece in json.dumps(server.requests) for secret in hidden for piece in pieces(secret, 12))
    assert verdict.verdict.failure_type == "data.corrupt"
    assert any(secrets["hugging face"] in each.text for each in verdict.verdict.evidence)
    assert (logs / "rank1.log").read_text().count("Zk7") == 30  # the logs themselves stay as they are
