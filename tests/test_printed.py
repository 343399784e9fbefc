"""Records of JSON that are printed over many lines are read as what they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import logtriage
from logtriage.intake.lines import segments
from logtriage.intake.printed import message_of


def entry(worker: str, second: int, message: str, severity: str = "INFO") -> dict[str, object]:
    """As Cloud Logging exports what a worker of a custom job wrote."""
    time = f"2026-03-02T10:{second // 60:02d}:{second % 60:02d}.000000Z"
    return {
        "insertId": f"x{second}",
        "jsonPayload": {"levelname": severity, "message": message},
        "resource": {"labels": {"job_id": "88", "task_name": worker}, "type": "ml_job"},
        "severity": severity,
        "timestamp": time,
    }


def an_export(folder: Path) -> Path:
    entries = [entry("workerpool0-0", at, f"step {at} loss 2.{at:03d}") for at in range(40)]
    trace = 'Traceback (most recent call last):\n  File "t.py", line 9, in <module>\n    run()\n'
    fault = "OSError: [Errno 28] No space left on device: '/tmp/cache/a.bin'"
    entries += [
        entry("workerpool1-2", 41, f"[rank19]: {trace}{fault}", "ERROR"),
        entry(
            "workerpool0-0",
            50,
            "[rank0]: torch.distributed.DistBackendError: NCCL error: ncclRemoteError: "
            "A call failed possibly due to a network error or a remote process exiting prematurely.",
            "ERROR",
        ),
    ]
    folder.mkdir()
    (folder / "export.json").write_text(json.dumps(entries, indent=1))
    return folder


def test_the_writer_stands_behind_its_message(tmp_path: Path) -> None:
    verdict = logtriage.triage(an_export(tmp_path / "job"), offline=True)
    assert verdict.verdict.failure_type == "host.disk_full"
    assert verdict.verdict.culprits.hosts == ("workerpool1-2",)
    assert verdict.verdict.culprits.ranks == (19,)
    (cited, *_) = verdict.verdict.evidence
    raw = (tmp_path / "job" / "export.json").read_text().splitlines()
    assert "No space left" in raw[cited.line - 1]


def test_streams_of_cloudwatch_name_sagemakers_hosts(tmp_path: Path) -> None:
    def event(host: str, at: int, message: str) -> dict[str, object]:
        return {
            "logStreamName": f"sft-7/{host}-1770000000",
            "timestamp": 1770000000000 + at * 1000,
            "message": message,
        }

    events = [event("algo-1", at, f"step {at} loss 2.0") for at in range(30)]
    events.append(
        event("algo-4", 31, "[rank27]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB")
    )
    for name, text in (
        ("printed.json", json.dumps({"events": events}, indent=4)),
        ("lines.jsonl", "\n".join(map(json.dumps, events))),
    ):
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).write_text(text + "\n")
        found = logtriage.triage(folder, offline=True).verdict
        assert (found.failure_type, found.culprits.hosts, found.culprits.ranks) == (
            "cuda.out_of_memory",
            ("algo-4",),
            (27,),
        )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('   "message": "a \\"quoted\\" word",', 'a "quoted" word'),
        ('"textPayload": "one\\ntwo"', "one\ntwo"),
        ('  "message": {', None),
        ('  "messages": "x",', None),
        ('the field "message": "x"', None),
    ],
)
def test_a_line_that_holds_a_message(line: str, said: str | None) -> None:
    assert message_of(line) == said
    assert segments(line) == (said.split("\n") if said else [line])
