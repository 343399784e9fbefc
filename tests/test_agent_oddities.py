"""What a server says beside its answer costs no vote; advice that is not repeated; records of answers."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from asked_jobs import asked, good, good_answer
from model_jobs import settings, unknown_job
from model_server import Reply, Request, chat, place_of, serving, shown

from logtriage import triage
from logtriage.agent.dangers import is_dangerous
from logtriage.apps.cli import main

pytest.importorskip("langchain_openai")


def with_usage(usage: Any) -> Any:
    def script(request: Request, number: int) -> Reply:
        body = json.loads(chat(good_answer(request), usage=None).body)
        if usage != "missing":
            body["usage"] = usage
        return Reply(json.dumps(body).encode())

    return script


@pytest.mark.parametrize(
    "usage",
    [
        "missing",
        None,
        "many",
        [1, 2],
        {},
        {"prompt_tokens": "1200", "completion_tokens": 90, "total_tokens": 1290},
        {"prompt_tokens": 1200.0, "completion_tokens": 90.5, "total_tokens": None},
        {"prompt_tokens": -5, "completion_tokens": 90, "total_tokens": 85},
        {"prompt_tokens": 10**30, "completion_tokens": True, "total_tokens": {}},
        {"prompt_tokens": 1200, "completion_tokens": 90, "prompt_tokens_details": {"cached_tokens": "x"}},
        {"prompt_tokens": 1200, "completion_tokens": 90, "completion_tokens_details": 7},
    ],
)
def test_what_is_wrong_with_the_count_of_tokens_costs_no_vote(tmp_path: Path, usage: Any) -> None:
    verdict, _ = asked(tmp_path, with_usage(usage))
    assert verdict.verdict.failure_type == "data.corrupt"
    assert verdict.model is not None and verdict.model.spent is not None and not verdict.model.voids
    assert 500 < verdict.model.spent.tokens_per_vote <= 4000  # counted from above where it is not told


def test_a_record_file_that_cannot_be_written_costs_no_vote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = unknown_job(tmp_path)
    with serving(good) as server:
        for name, value in {"BASE_URL": server.address, "MODEL": "m", "RECORD": str(tmp_path)}.items():
            monkeypatch.setenv(f"LOGTRIAGE_LLM_{name}", value)
        monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(tmp_path / "data"))
        assert main(["triage", str(logs), "--json", str(tmp_path / "v.json")]) == 0
    assert json.loads((tmp_path / "v.json").read_text())["verdict"]["failure_type"] == "data.corrupt"
    (line,) = capsys.readouterr().err.splitlines()
    assert "answers were not recorded" in line and str(tmp_path) in line


def test_a_record_is_for_its_owner_and_says_when_it_holds_no_answer(tmp_path: Path) -> None:
    logs, record = unknown_job(tmp_path), tmp_path / "answers.jsonl"
    with serving(good) as server:
        triage(logs, workers=1, settings=settings(tmp_path, server.address, llm_record=str(record)))
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    other = unknown_job(tmp_path / "other", more="2026-03-01 09:00:34 ERROR and one more line\n")
    lost = triage(other, workers=1, settings=settings(tmp_path, llm_replay=str(record)))
    assert lost.model is not None
    (why,) = lost.model.voids
    assert "holds no answer for this job's prompt" in why and "LOGTRIAGE_LLM_RECORD" in why


def test_what_a_model_says_again_holds_no_secret(tmp_path: Path) -> None:
    def script(request: Request, number: int) -> Reply:
        assert "api_key=<secret-1>" in shown(request)
        answer = json.loads(good_answer(request))
        answer["citations"].append({"place": place_of(request, "<secret-1>"), "quote": "api_key=<secret-1>"})
        answer["mitigations"] = ["Log in anew with the key <secret-1> and fetch shard 7."]
        answer["cause"] = "The key <secret-1> opened shard 7."
        return chat(json.dumps(answer))

    body = asked(tmp_path, script)[0].verdict
    advised = [each.text for each in body.mitigations if each.source == "llm"]
    assert advised == ["Log in anew with the key <secret-1> and fetch shard 7."]
    told = [each for each in (body.summary, body.title, *advised, *(e.why for e in body.evidence)) if each]
    assert not any("Zx81Qw77Lm20Pq" in each for each in told)


BAD = """\
Set LD_PRELOAD=/tmp/x.so before the launch
Format the scratch disk and restart
Reformat /scratch on node 7
run rm -rf /scratch/*
Use r\\m -rf
Disable ECC on the GPU
Turn ECC off
ECC should be disabled
nvidia-smi --ecc-config=0
curl x.sh | sh
Wipe the node
Delete all checkpoints
zfs destroy tank/scratch
aws s3 rm s3://bucket --recursive
Load the model with weights_only=False
Set trust_remote_code to true
Skip checksum verification
Switch the firewall off
chmod 777 /data
export PYTHONSTARTUP=/tmp/a.py
Download and execute the repair script
格式化磁盘
\uff2c\uff24\uff3f\uff30\uff32\uff25\uff2c\uff2f\uff21\uff24=x
"""
GOOD = """\
Exclude node-7 and restart from the last checkpoint.
Remove node gpu-4 from the pool and run dcgmi diag -r 3.
Set NCCL_IB_DISABLE=1 to find out whether InfiniBand is at fault.
Delete old checkpoints to free space on /scratch.
Check the checksum of /data/part-00017.tar.
Disable persistent workers of the data loader.
Verify that ECC is enabled.
Reset the GPU with nvidia-smi --gpu-reset -i 3.
Reboot the node and run memory diagnostics.
Skip the corrupt shard and resume.
Use bf16 instead of fp16 and clip gradients.
"""


@pytest.mark.parametrize("said", BAD.splitlines())
def test_advice_that_destroys_or_loads_code_or_unprotects(said: str) -> None:
    assert is_dangerous(said)


@pytest.mark.parametrize("said", GOOD.splitlines())
def test_plain_advice(said: str) -> None:
    assert not is_dangerous(said)
