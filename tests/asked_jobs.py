"""Jobs asked about at a scripted server, what a good model answers, and what is said of them offline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from model_jobs import settings, unknown_job
from model_server import Reply, Request, Script, Server, answer, chat, place_of, serving

from logtriage import triage
from logtriage.report.document import Verdict

QUOTE = "header of the record is truncated"


def good(request: Request, number: int) -> Reply:
    return chat(good_answer(request))


def good_answer(request: Request, **more: Any) -> str:
    advice = ["Fetch shard 7 again and compare its checksum."]
    told: dict[str, Any] = {"cause": "Shard 7 is truncated.", "mitigations": advice, **more}
    return answer("data.corrupt", [(place_of(request, QUOTE), QUOTE)], [1], **told)


def asked(folder: Path, script: Script, **more: Any) -> tuple[Verdict, Server]:
    logs = folder / "logs" if (folder / "logs").exists() else unknown_job(folder)
    with serving(script) as server:
        return triage(logs, workers=1, settings=settings(folder, server.address, **more)), server


_OFFLINE: dict[str, dict[str, Any]] = {}


def offline(folder: Path) -> dict[str, Any]:
    """The offline verdict on the job in `folder`; the same logs are triaged once for all tests."""
    key = "\0".join(file.read_text() for file in sorted((folder / "logs").iterdir()))
    if key not in _OFFLINE:
        _OFFLINE[key] = core(triage(folder / "logs", workers=1, offline=True).to_dict()["verdict"])
    return _OFFLINE[key]


def core(body: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in ("votes", "alternatives")}
