"""Lines cut short, and ends of logs alone: such verdicts are less certain."""

from __future__ import annotations

import pytest
from scenes import clock, findings, of_rank, reading, steps

from logtriage.diagnose.offline import PART_CONFIDENCE, decide
from logtriage.model import SourceRole
from logtriage.rulebank.bank import load_bank
from logtriage.rulebank.matcher import Matcher

STEP = "2026-03-01 {time} INFO [Rank 0] iteration {step}/9000 | lr 1.2e-05 | loss scale 1.0 | used tokens 813"
LIMIT = "slurmstepd: error: *** JOB 6120 ON cn7 CANCELLED AT 2026-03-01T08:10:00 DUE TO TIME LIMIT ***\n"


def _steps(tail: str) -> str:
    return "".join(STEP.format(time=clock(10.0 * at), step=1000 + at)[:96] + tail + "\n" for at in range(40))


@pytest.mark.parametrize(
    ("tail", "is_sure"), [("", True), ("...", False), ("\N{HORIZONTAL ELLIPSIS}", False)]
)
def test_what_stood_behind_the_cuts_may_be_the_cause(tail: str, is_sure: bool) -> None:
    decision = decide(findings(reading("slurm-6120.out", _steps(tail) + LIMIT)))
    assert decision.failure_type == "scheduler.time_limit"
    assert (decision.confidence > PART_CONFIDENCE) is is_sure


def test_lines_of_one_length_that_end_differently_were_cut() -> None:
    rest = [" grad norm: 1.02 |", " number of nan iterations: 0 |"]
    shown = [(STEP + rest[at % 7 == 0]).format(time=clock(9.0 * at), step=1000 + at) for at in range(40)]
    for texts, is_sure in ((shown, True), ([text[:118] for text in shown], False)):
        log = "".join(text + "\n" for text in texts)
        decision = decide(findings(reading("slurm-6120.out", log + LIMIT)))
        assert decision.failure_type == "scheduler.time_limit"
        assert (decision.confidence > PART_CONFIDENCE) is is_sure


LOST_PEER = (
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Read error [10.9.0.3]:5117:"
    " Connection reset by peer\n"
)
FRAMES = '  File "/opt/lib/torch/_tensor.py", line 623, in backward\n    torch.autograd.backward(\n'


@pytest.mark.parametrize(
    ("heading", "is_sure"), [("Traceback (most recent call last):\n", True), ("", False)]
)
def test_what_stood_above_the_first_line_may_be_the_cause(heading: str, is_sure: bool) -> None:
    ranks = [
        f"[rank{rank}]: {line}\n" for rank in range(2) for line in (heading + FRAMES + LOST_PEER).splitlines()
    ]
    ended = ENDS.replace("-{signal}", "1")
    decision = decide(findings(reading("run.log", "".join(ranks) + ended)))
    assert decision.failure_type == "collective.remote_error"
    assert (decision.confidence > PART_CONFIDENCE) is is_sure


def test_an_error_that_is_read_stays_sure() -> None:
    raised = (
        "Traceback (most recent call last):\n"
        '  File "pack.py", line 12, in pack\n    row = rows[name]\n'
        "KeyError: 'weights'\n"
    )
    decision = decide(findings(reading("train.log", _steps("...") + raised)))
    assert decision.failure_type == "code.key" and decision.confidence > PART_CONFIDENCE


def test_a_few_lines_that_end_with_dots_are_no_cuts() -> None:
    text = "".join(
        f"2026-03-01 {clock(at)} INFO [Rank 0] loading shard {at:03d} of the corpus...\n" for at in range(9)
    )
    decision = decide(findings(reading("slurm-6120.out", text + _steps("") + LIMIT)))
    assert decision.failure_type == "scheduler.time_limit" and decision.confidence > PART_CONFIDENCE


ENDS = (
    "W0301 09:01:06.500000 70 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 80"
    " closing signal SIGTERM\n"
    "E0301 09:01:06.500000 70 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode:"
    " -{signal}) local_rank: 1 (pid: 81) of binary: /usr/bin/python3\n"
)


@pytest.mark.parametrize(("signal", "is_sure"), [(6, False), (11, True)])
def test_of_an_abort_whose_words_are_gone_the_reason_is_not_known(signal: int, is_sure: bool) -> None:
    """Who aborts says why; of a segmentation fault the program itself knows nothing."""
    decision = decide(findings(reading("end.log", ENDS.format(signal=signal), role=SourceRole.MERGED)))
    assert decision.failure_type == "process.native_crash"
    assert (decision.confidence > PART_CONFIDENCE) is is_sure


def test_a_watchdogs_abort_of_a_rank_that_is_not_named_is_no_crash() -> None:
    said = "[E ProcessGroupNCCL.cpp:455] Some NCCL operations have failed or timed out. Due to the"
    said += " asynchronous nature of CUDA kernels, subsequent GPU oper...\n"
    decision = decide(findings(of_rank(0, steps(9)), reading("end.log", said + ENDS.format(signal=6))))
    assert decision.failure_type != "process.native_crash" or decision.confidence < PART_CONFIDENCE


@pytest.mark.parametrize("width", [121, 137, 160, 190])
def test_a_watchdog_is_heard_though_its_line_is_cut(width: int) -> None:
    line = (
        "[rank5]:[E301 09:31:02.114 ProcessGroupNCCL.cpp:632] [Rank 5] Watchdog caught collective operation"
        " timeout: WorkNCCL(SeqNum=778, OpType=BROADCAST, NumelIn=64, NumelOut=64, Timeout(ms)=600000) ran"
        " for 600021 milliseconds before timing out."
    )
    matcher = Matcher(load_bank())
    if width < line.index("BROADCAST") + 9:
        width = line.index("BROADCAST") + 9
    (hit,) = (
        hit
        for hit in matcher.match(line[:width], SourceRole.MERGED)
        if hit.rule.failure_type == "collective.timeout"
    )
    title = hit.rule.entitled(dict(hit.captures))
    assert title.startswith("Rank 5 waited in vain in BROADCAST number 778 until the")
    assert title.endswith("limit") and " ms " not in title.replace("600000 ms", "")
