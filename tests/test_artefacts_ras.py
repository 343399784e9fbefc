"""NCCL's own reports (ncclras) and torchelastic's error files: who they name, and when that is no proof."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenes import reading

from logtriage import triage
from logtriage.artefacts.ras import judge_reports, ras_json, ras_reports
from logtriage.report.document import Verdict

HEAD = """NCCL version 2.27.3 compiled with CUDA 12.8
CUDA runtime version 12080, driver version 12080

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          4            1          8        8

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2         4         8         8   RUNNING  {status}

"""


def behind(number: int, usual: int, rank: int = 6) -> str:
    return HEAD.format(status="MISMATCH") + (
        "Warnings\n========\n\n#0-0 (a3f0b828ff1a75) MISMATCH\n"
        "  Communicator ranks have different AllReduce operation counts\n"
        f"  7 ranks have launched up to operation {usual}\n"
        f"  Rank {rank} has launched up to operation {number}"
        " -- GPU 2 managed by process 47 on node 10.0.0.8\n"
    )


MISSING = HEAD.format(status="INCOMPLETE") + (
    "Errors\n======\n\nINCOMPLETE\n  Missing communicator data from 1 job process\n"
    "  Process 47 on node 10.0.0.8 managing GPU 2\n\n"
    "#0-0 (a3f0b828ff1a75) INCOMPLETE\n  Missing communicator data from 1 rank\n  The missing rank: 6\n\n"
    "Warnings\n========\n\nTIMEOUT\n  Encountered 2 communication timeouts while gathering data\n"
)
HEALTHY = HEAD.format(status="OK")


def judged(text: str) -> tuple[list[int | None], bool] | None:
    found = judge_reports(ras_reports(reading("ras.txt", text).lines))
    return None if found is None else ([peer.rank for peer in found.peers], found.is_sure)


def test_a_rank_that_no_longer_answers_is_named_with_its_host_and_gpu(tmp_path: Path) -> None:
    (tmp_path / "ncclras.txt").write_text(MISSING)
    verdict = triage(tmp_path, offline=True)
    body = verdict.verdict
    assert body.failure_type == "collective.timeout"
    assert (body.culprits.ranks, body.culprits.hosts, body.culprits.gpus) == ((6,), ("10.0.0.8",), ("2",))
    assert [line.text.strip() for line in body.evidence] == ["The missing rank: 6"]


def test_a_rank_that_launched_less_is_behind() -> None:
    assert judged(behind(60, 64)) == ([6], True)


def test_a_difference_of_one_is_no_proof_until_it_stands_still() -> None:
    assert judged(behind(63, 64)) == ([6], False)
    assert judged(behind(63, 64) + behind(63, 64)) == ([6], True)
    assert judged(behind(63, 64) + behind(70, 71)) == ([6], False), "the counts move: nothing hangs"


def test_only_who_was_behind_in_every_report_is_named() -> None:
    assert judged(behind(60, 64, rank=1) + behind(60, 64, rank=6)) is None


def test_ranks_listed_below_their_count() -> None:
    text = HEAD.format(status="MISMATCH").replace("     8         8 ", "    32        32 ") + (
        "#0-0 (a3f0b828ff1a75) MISMATCH\n  Communicator ranks have different collective operation counts\n"
        "  30 ranks have launched up to operation 6650\n  2 ranks have launched up to operation 6640\n"
        "  Rank 3 -- GPU 3 managed by process 41 on node n1\n"
        "  Rank 9 -- GPU 1 managed by process 42 on node n2\n"
    )
    assert judged(text) == ([3, 9], True)


@pytest.mark.parametrize("text", [HEALTHY, "", "Job summary\n", HEALTHY + HEALTHY])
def test_a_report_without_a_complaint_names_nobody(text: str) -> None:
    assert judged(text) is None


def test_the_last_report_counts() -> None:
    assert judged(MISSING + behind(60, 64, rank=1)) is None
    assert judged(behind(60, 64, rank=1) + MISSING) == ([6], True)


def report(counts: Mapping[int, int], missing: tuple[int, ...] = ()) -> str:
    def one(rank: int) -> dict[str, object]:
        return {"rank": rank, "host": f"10.0.0.{7 + rank // 4}", "pid": 4700 + rank, "cuda_dev": rank % 4}

    ranks = [
        one(rank) | {"collective_counts": {"AllReduce": count, "Broadcast": 3}}
        for rank, count in counts.items()
    ]
    lost = [one(rank) | {"status": {"unresponsive": True, "considered_dead": False}} for rank in missing]
    communicator = {"hash": "0xae94", "size": len(ranks) + len(lost), "ranks": ranks, "missing_ranks": lost}
    return json.dumps(
        {"nccl_version": "2.29.1", "communicators_count": 1, "communicators": [communicator]}, indent=2
    )


def test_json_tells_the_same(tmp_path: Path) -> None:
    (tmp_path / "ras.json").write_text(report(dict.fromkeys((0, 1, 2, 3, 4, 5, 7), 64), missing=(6,)))
    body = triage(tmp_path, offline=True).verdict
    assert (body.culprits.ranks, body.culprits.hosts) == ((6,), ("10.0.0.8",))
    assert body.evidence and '"communicators' in body.evidence[0].text


def test_json_counts() -> None:
    line = reading("ras.json", "{").lines[0]
    found = judge_reports(
        ras_json(report({rank: 60 if rank == 6 else 64 for rank in range(8)}).encode(), line)
    )
    assert found is not None and [peer.rank for peer in found.peers] == [6] and found.is_sure


def test_a_time_out_in_the_text_gets_its_rank_from_the_report(tmp_path: Path) -> None:
    for rank in range(8):
        text = "".join(f"2026-09-21 14:00:{s:02d} step {s}/1000 loss 2.3\n" for s in range(40))
        if rank not in (3, 6):
            text += (
                f"[rank{rank}]:[E921 14:16:02.1 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught "
                "collective operation timeout: WorkNCCL(SeqNum=64, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, "
                "Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
            )
        (tmp_path / f"rank{rank}.log").write_text(text)
    assert triage(tmp_path, offline=True).verdict.culprits.ranks == (3, 6), "both are silent"
    (tmp_path / "ncclras.txt").write_text(behind(63, 64))
    body = triage(tmp_path, offline=True).verdict
    assert (body.failure_type, body.culprits.ranks) == ("collective.timeout", (6,))


pieces = st.sampled_from([*MISSING.split("\n"), *behind(60, 64).split("\n"), "Rank 9 -- ", "#1-0 (ff)"])


@settings(max_examples=150, deadline=None)
@given(st.lists(pieces | st.text(max_size=20), max_size=60))
def test_no_lines_end_the_reading(lines: list[str]) -> None:
    text = "\n".join(lines)
    judge_reports(ras_reports(reading("ras.txt", text).lines))
    ras_json(text.encode("utf-8", "replace"), reading("x", "{").lines[0])


# --- error files -----------------------------------------------------------------------------------


def error_file(message: str, stack: str, seconds: int) -> str:
    return json.dumps(
        {"message": {"message": message, "extraInfo": {"py_callstack": stack, "timestamp": str(seconds)}}}
    )


def errors(folder: Path, told: Mapping[int, tuple[str, int]]) -> Verdict:
    for rank, (message, seconds) in told.items():
        stack = (
            'Traceback (most recent call last):\n  File "/workspace/train.py", line 77, in main\n'
            f"    loss = step(batch)\n{message}\n"
        )
        place = folder / "run_1x" / "attempt_0" / str(rank) / "error.json"
        place.parent.mkdir(parents=True)
        place.write_text(error_file(message, stack, seconds))
    return triage(folder, offline=True)


def test_error_files_alone_show_where_it_began(tmp_path: Path) -> None:
    lost = "RuntimeError: [../gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.1]:2222"
    verdict = errors(
        tmp_path, {0: (lost, 1_790_000_004), 3: ("IndexError: list index out of range", 1_790_000_000)}
    )
    body = verdict.verdict
    assert (body.failure_type, body.culprits.ranks) == ("code.index", (3,))
    assert body.evidence[0].file == "run_1x/attempt_0/3/error.json"
    assert body.evidence[0].time == "2026-09-21T14:13:20.000Z", "the time is that of the file's own stamp"


def test_of_equal_errors_the_first_by_its_stamp_began(tmp_path: Path) -> None:
    verdict = errors(
        tmp_path,
        {rank: ("ValueError: bad batch", 1_790_000_000 if rank == 2 else 1_790_000_060) for rank in range(6)},
    )
    assert verdict.verdict.culprits.ranks == (2,)
