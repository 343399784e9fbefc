"""A verdict made by hand, for tests of what shows it."""

from __future__ import annotations

from typing import Any

from logtriage.report.document import (
    Alternative,
    Attempt,
    ChainStep,
    Checkpoint,
    CitedLine,
    CulpritsOut,
    Indication,
    Job,
    Mining,
    Mitigation,
    Restart,
    Symptom,
    TimelineEntry,
    Timing,
    Tool,
    UnreadableFile,
    Verdict,
    VerdictBody,
    Votes,
)

OOM = (
    "[rank11]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 23.44 GiB. GPU 3 has a total "
    "capacity of 79.15 GiB of which 1.20 GiB is free."
)


def a_body(**changes: Any) -> VerdictBody:
    fields: dict[str, Any] = {
        "failure_type": "cuda.out_of_memory",
        "failure_class": "framework",
        "title": "GPU 3 ran out of memory allocating 23.44 GiB",
        "confidence": 0.93,
        "summary": "Rank 11 could not allocate 23.44 GiB and ended. The others waited and timed out.",
        "culprits": CulpritsOut(ranks=(11,), hosts=("node-b",), gpus=("3",)),
        "evidence": (
            CitedLine(
                file="node-b/rank11.log", line=88213, offset=9_000_000, text=OOM, rank=11, host="node-b",
                time="2026-01-31T08:13:02.100Z", rule="cuda.oom.torch", why="the first failure of the job",
            ),
        ),
        "action": "fix_config",
        "restart": Restart(advised=False, exclude_hosts=(), reason="The same step needs the same memory."),
        "mitigations": (
            Mitigation(text="Reduce the micro batch size.", reference="https://pytorch.org/docs/stable/"),
            Mitigation(text="Set expandable segments.", source="memory"),
        ),
        "alternatives": (Alternative(failure_type="collective.timeout", confidence=0.04),),
        "votes": Votes(asked=5, valid=5, votes_for={"cuda.out_of_memory": 4, "unknown": 1}),
        "chain": (
            ChainStep(step=0, failure_type="cuda.out_of_memory", text="rank 11 ran out of memory"),
            ChainStep(step=1, failure_type="collective.timeout", text="15 ranks timed out in ALLREDUCE",
                      file="node-a/rank2.log", line=551, follows_by="their peer had ended"),
        ),
        "collect_next": ("the kernel log of node-b",),
    }  # fmt: skip
    return VerdictBody(**(fields | changes))


def a_verdict(**changes: Any) -> Verdict:
    fields: dict[str, Any] = {
        "id": "lt-5f2c8a91",
        "tool": Tool(version="0.1.0", rules="abc123", taxonomy="1"),
        "job": Job(
            name="pretrain", paths=("logs",), started="2026-01-31T05:02:11.000Z",
            ended="2026-01-31T08:15:30.250Z", ranks=16, hosts=("node-a", "node-b"), attempts=2,
            frameworks=("torchrun", "DeepSpeed"), outcome="failed", last_step=12345,
            last_checkpoint=Checkpoint(step=12000),
        ),
        "verdict": a_body(),
        "symptoms": (
            Symptom(failure_type="collective.timeout", text="Watchdog caught collective operation timeout",
                    file="node-a/rank2.log", line=551, ranks=tuple(range(11)),
                    follows_from="cuda.out_of_memory"),
        ),
        "indications": (Indication(file="node-b/rank11.log", line=88213, role="cause"),),
        "indications_total": 1,
        "timeline": (
            TimelineEntry(time="2026-01-31T08:13:02.100Z", kind="first_sign", text=OOM,
                          file="node-b/rank11.log", line=88213, rank=11, host="node-b"),
        ),
        "attempts": (
            Attempt(attempt=0, failure_type="network.rendezvous", failure_class="infrastructure",
                    title="The rendezvous timed out", confidence=0.8, outcome="failed"),
            Attempt(attempt=1, failure_type="cuda.out_of_memory", failure_class="framework",
                    title="GPU 3 ran out of memory", confidence=0.93, outcome="failed", last_step=12345),
        ),
        "mining": Mining(files=18, bytes=1_234_567_890, lines=8_123_456, templates=412, compression=19717.1,
                         left_out=("the middle of node-a/rank0.log was sampled",)),
        "unreadable": (UnreadableFile(file="node-a/core.gz", reason="the gzip stream is cut off"),),
        "timing": Timing(seconds=12.3, megabytes_per_second=100.4),
    }  # fmt: skip
    return Verdict(**(fields | changes))
