"""What explains what: neither the first error nor the last is the cause as such."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenes import WATCHDOG, bank, behind, clock, findings, judged, of_rank, reading, steps, traceback

from logtriage.diagnose.offline import decide
from logtriage.localize.candidates import Candidate
from logtriage.localize.cascade import SLACK_SECONDS, Cascade, group, may_explain, untangle
from logtriage.model import Line, SourceRole
from logtriage.rulebank.rule import Role, Rule, Strength
from logtriage.taxonomy import taxonomy

LINE = Line("a.log", 1, 0, "text", "text")
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=python, GPU has fallen off the bus."
ILLEGAL = "RuntimeError: CUDA error: an illegal memory access was encountered"
TIMEOUT = (
    "[rank{rank}]:[E131 08:30:01.100000000 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, "
    "Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
)


def a(
    failure_type: str,
    time: float | None = 0.0,
    strength: Strength = Strength.LIKELY,
    *,
    rank: int | None = None,
    role: Role = Role.CAUSE,
    **more: object,
) -> Candidate:
    fields: dict[str, object] = {
        "failure_type": failure_type,
        "role": role,
        "strength": strength,
        "title": failure_type,
        "line": LINE,
        "time": time,
        "rank": rank,
        "host": None,
        "attempt": None,
    }
    return Candidate(**(fields | more))  # type: ignore[arg-type]


def untangled(*candidates: Candidate) -> Cascade:
    return untangle(group(candidates, bank().explains))


def root(*candidates: Candidate) -> str | None:
    found = untangled(*candidates).root
    return None if found is None else found.failure_type


def test_hardware_explains_cuda_and_cuda_explains_the_peers() -> None:
    found = untangled(
        a("collective.timeout", 600.0, rank=0),
        a("cuda.illegal_memory_access", 11.0, rank=3),
        a("gpu.fell_off_bus", 10.0, Strength.DEFINITE),
        a("process.killed", 640.0),
    )
    assert found.root is not None
    assert found.root.failure_type == "gpu.fell_off_bus"
    assert found.rivals == ()
    assert {each.failure_type for each in found.followers} == {
        "collective.timeout",
        "cuda.illegal_memory_access",
        "process.killed",
    }


def test_without_the_hardware_cuda_is_the_root() -> None:
    assert (
        root(a("collective.timeout", 600.0), a("cuda.illegal_memory_access", 11.0))
        == "cuda.illegal_memory_access"
    )


def test_the_time_out_is_the_root_where_nothing_else_is_there() -> None:
    assert root(a("collective.timeout", 600.0), a("collective.remote_error", 601.0)) == "collective.timeout"


def test_a_cause_that_came_much_later_explains_nothing() -> None:
    late = untangled(a("collective.timeout", 0.0), a("code.key", SLACK_SECONDS + 1))
    near = untangled(a("collective.timeout", 0.0), a("code.key", SLACK_SECONDS - 1))
    assert [each.failure_type for each in late.rivals] != []
    assert near.root is not None
    assert (near.root.failure_type, near.rivals) == ("code.key", ())


def test_an_unknown_time_is_no_objection() -> None:
    assert root(a("collective.timeout", None), a("code.key", 5.0)) == "code.key"
    assert root(a("collective.timeout", 5.0), a("code.key", None)) == "code.key"


def test_what_was_survived_is_no_cause() -> None:
    assert (
        root(a("storage.filesystem", 1.0, Strength.DEFINITE, recovered=True), a("code.key", 900.0))
        == "code.key"
    )
    assert root(a("storage.filesystem", 1.0, Strength.DEFINITE, recovered=True)) is None


def test_a_symptom_alone_is_no_cause() -> None:
    assert root(a("process.killed", 1.0, role=Role.SYMPTOM)) is None


def test_a_weak_sign_explains_what_is_mostly_a_consequence_and_nothing_else() -> None:
    hint = a("storage.filesystem", 1.0, Strength.HINT)
    assert root(hint, a("collective.timeout", 600.0)) == "storage.filesystem"
    assert root(hint, a("checkpoint.corrupt", 2.0)) == "checkpoint.corrupt"


def test_a_weak_consequence_explains_no_other_consequence() -> None:
    assert root(a("process.killed", 1.0, Strength.HINT), a("collective.timeout", 2.0)) == "collective.timeout"


def test_a_circle_is_broken_by_the_deepest() -> None:
    circle = {
        "storage.filesystem": frozenset({"collective.timeout"}),
        "collective.timeout": frozenset({"storage.filesystem"}),
    }
    found = untangle(group([a("collective.timeout", 1.0), a("storage.filesystem", 1.0)], circle))
    assert found.root is not None
    assert found.root.failure_type == "storage.filesystem"


def test_the_surer_of_two_unexplained_wins_then_the_deeper_then_the_earlier() -> None:
    assert root(a("code.key", 1.0), a("auth.denied", 9.0, Strength.DEFINITE)) == "auth.denied"
    assert root(a("code.config", 1.0), a("gpu.nvlink", 500.0)) == "gpu.nvlink"
    assert root(a("code.zero_division", 2.0), a("code.name", 1.0)) == "code.name"


def test_a_rule_can_explain_more_than_its_type_does() -> None:
    rule = Rule(
        "x.y",
        "code.zero_division",
        Role.CAUSE,
        Strength.LIKELY,
        "",
        ("keys",),
        "keys",
        explains=("checkpoint.*",),
    )
    cause, effect = a("code.zero_division", 1.0), a("checkpoint.mismatch", 2.0, Strength.DEFINITE)
    assert root(cause, effect) == "checkpoint.mismatch"
    assert root(replace(cause, rule=rule), effect) == "code.zero_division"


TYPES = [name for name in taxonomy().types if not name.startswith(("none.", "unknown"))]
CANDIDATES = st.lists(
    st.builds(
        a,
        st.sampled_from(TYPES),
        st.one_of(st.none(), st.floats(0, 1_000)),
        st.sampled_from(Strength),
        rank=st.one_of(st.none(), st.integers(0, 7)),
        role=st.sampled_from([Role.CAUSE, Role.CAUSE, Role.SYMPTOM]),
        recovered=st.sampled_from([False, False, False, True]),
    ),
    max_size=12,
)


@given(CANDIDATES)
@settings(max_examples=150, deadline=None)
def test_every_group_has_one_place_and_the_order_of_lines_is_no_matter(candidates: list[Candidate]) -> None:
    found = untangled(*candidates)
    causes = [each for each in candidates if each.role is Role.CAUSE and not each.recovered]
    assert (found.root is None) == (not causes)
    placed = [*([found.root] if found.root else []), *found.rivals, *found.followers]
    alive = {each.failure_type for each in candidates if not each.recovered}
    assert sorted(each.failure_type for each in placed) == sorted(alive)
    again = untangled(*reversed(candidates))
    if found.root is not None and again.root is not None:
        same = found.root.failure_type == again.root.failure_type
        assert same or found.root.sureness == again.root.sureness


@given(CANDIDATES)
@settings(max_examples=150, deadline=None)
def test_nothing_that_is_sure_explains_the_root(candidates: list[Candidate]) -> None:
    groups = group(candidates, bank().explains)
    found = untangle(groups)
    if found.root is None or not any(
        not any(may_explain(other, each) for other in groups if other is not each)
        for each in groups
        if each.causes
    ):
        return
    assert not any(may_explain(other, found.root) for other in groups if other.causes)


# --- the same on logs ---------------------------------------------------------------------------------


def test_a_kernel_log_of_one_host_explains_time_outs_on_all() -> None:
    decision = decide(
        findings(
            of_rank(0, steps(5) + TIMEOUT.format(rank=0), host="node-a"),
            of_rank(1, steps(5) + f"{clock(13)} ERROR {ILLEGAL}\n", host="node-b"),
            of_rank(2, steps(5) + TIMEOUT.format(rank=2), host="node-c"),
            reading(
                "dmesg.log", f"2026-01-31T08:00:12,000000+00:00 {XID}\n", SourceRole.KERNEL, host="node-b"
            ),
        )
    )
    assert decision.failure_type == "gpu.fell_off_bus"
    assert decision.culprits.hosts == ("node-b",)
    assert decision.culprits.ranks == (1,)
    assert "79" in decision.evidence[0].line.text
    assert {each.failure_type for each in decision.symptoms} >= {"collective.timeout"}


@pytest.mark.parametrize("skew", [-60, 0, 60])
def test_clocks_that_differ_by_a_minute_turn_nothing_round(skew: int) -> None:
    cause = f"{clock(600 + skew)} ERROR {ILLEGAL}\n"
    decision = decide(
        findings(
            of_rank(0, steps(5) + f"{clock(601)} {TIMEOUT.format(rank=0)}"), of_rank(1, steps(5) + cause)
        )
    )
    assert (decision.failure_type, decision.culprits.ranks) == ("cuda.illegal_memory_access", (1,))


def test_the_last_error_is_a_victim() -> None:
    text = (
        steps(5)
        + f"{clock(20)} [rank3]: KeyError: 'labels'\n"
        + "".join(f"{clock(700 + rank)} {TIMEOUT.format(rank=rank)}" for rank in (0, 1, 2))
    )
    decision = decide(findings(reading("all.log", text)))
    assert (decision.failure_type, decision.culprits.ranks) == ("code.key", (3,))
    assert decision.evidence[0].line.number == 6


def test_a_shard_that_could_not_be_stored_is_the_cause_of_the_checkpoint_that_fails_later() -> None:
    full = f"{clock(20)} ERROR writer: part not stored, again at the end\n" + traceback(
        "OSError: [Errno 28] No space left on device", "_write"
    )
    late = traceback("RuntimeError: checkpoint cannot be completed: 1 of 4 shards is missing")
    found = findings(
        *(
            of_rank(rank, steps(10) + (full if rank == 2 else "") + steps(20, first=11, at=21) + late)
            for rank in range(4)
        )
    )
    decision = decide(found)
    assert (decision.failure_type, decision.culprits.ranks) == ("host.disk_full", (2,))


def test_the_silent_rank_that_alone_dropped_data_left_because_of_that() -> None:
    dropped = f"{clock(20)} WARNING loader: checksum mismatch in /d/p3.bin: expected ab12 got cd34, dropped\n"
    found = findings(
        *(
            of_rank(
                rank,
                steps(10)
                + (dropped if rank == 2 else "")
                + steps(20, first=11, at=21)
                + ("" if rank == 2 else WATCHDOG.format(rank=rank, op="ALLREDUCE")),
            )
            for rank in range(4)
        )
    )
    decision = decide(found)
    assert (decision.failure_type, decision.culprits.ranks) == ("data.corrupt", (2,))
    assert "checksum mismatch" in decision.evidence[0].line.text


def test_an_assertion_before_the_time_outs_of_peers_in_one_merged_output(tmp_path: Path) -> None:
    """The watchdog lines have no time: they are as late as what stands before them."""
    timeout = (
        "{host}: [E ProcessGroupNCCL.cpp:474] [Rank {rank}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=911, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=1800000) ran for 1800111 "
        "milliseconds before timing out.\n"
    )
    text = (
        "".join(f"node-1: {line}\n" for line in steps(40).splitlines())
        + "node-2: Traceback (most recent call last):\n"
        + 'node-2:   File "/app/batches.py", line 9, in pack\n'
        + "node-2:     assert sizes.sum() == total\n"
        + "node-2: AssertionError: rank 11: lengths add up to 4090, not 4096\n"
        + f"node-2: {clock(130)} ERROR launch.py exits with return code = 1\n"
        + timeout.format(host="node-1", rank=0)
        + timeout.format(host="node-3", rank=20)
    )
    body = judged(tmp_path, {"run.log": text}).verdict
    assert body.failure_type == "code.assertion"
    assert (body.culprits.ranks, body.culprits.hosts) == ((11,), ("node-2",))


def test_the_host_whose_launcher_was_told_to_end_first(tmp_path: Path) -> None:
    ended = (
        steps(30)
        + f"W0131 {clock(70)[11:]}.220000 77 torch/distributed/elastic/agent/server/api.py:704] Received 15 "
        "death signal, shutting down workers\n"
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 77 got signal: 15\n"
    )
    lost = (
        steps(30) + f"[rank0]:[E131 {clock(75)[11:]}.000998877 ProcessGroupNCCL.cpp:552] [Rank 0] Collective "
        "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) raised the "
        "following async exception: NCCL error: remote process exited or there was a network error\n"
        f"E0131 {clock(82)[11:]}.000000 40 torch/distributed/elastic/multiprocessing/api.py:869] failed "
        "(exitcode: -6) local_rank: 2 (pid: 42) of binary: /usr/bin/python3\n"
    )
    body = judged(tmp_path, {"node-1.log": lost, "node-2.log": ended}).verdict
    assert body.failure_type == "process.killed"
    assert body.culprits.hosts == ("node-2",)
    assert "death signal" in body.evidence[0].text


def test_what_a_head_introduces_is_cited_with_it(tmp_path: Path) -> None:
    text = steps(3) + (
        "Traceback (most recent call last):\n"
        '  File "/app/train.py", line 9, in <module>\n'
        "    loss = step(batch)\n"
        "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\n"
        "AttributeError: module 'triton.language' has no attribute 'wobble'\n"
    )
    evidence = judged(tmp_path, {"train.log": text}).verdict.evidence
    assert evidence[0].text.endswith("raised:")
    assert "has no attribute 'wobble'" in evidence[1].text


def chained(*links: tuple[str, str]) -> str:
    """A traceback of exceptions that were raised one while another was handled: (functions, error) each."""
    joint = "\nDuring handling of the above exception, another exception occurred:\n\n"
    return joint.join(
        "Traceback (most recent call last):\n"
        + "".join(
            f'  File "/app/load.py", line {number}, in {function}\n    {function}_body()\n'
            for number, function in enumerate(functions.split(), 10)
        )
        + f"{error}\n"
        for functions, error in links
    )


@pytest.mark.parametrize(
    ("links", "failure_type"),
    [
        ([("restore", "KeyError: 'epoch'"), ("main restore", "NameError: name 'paht' is not defined")],
         "code.key"),
        ([("read", "ValueError: 3 columns"), ("main read", "UnboundLocalError: local variable 'row' used "
          "before it is set")], "code.value"),
        # What is wrong deeper than the handler is what the other path ran into.
        ([("cached", "KeyError: 'k'"), ("main cached compute", "NameError: name 'nq' is not defined")],
         "code.name"),
    ],
)  # fmt: skip
def test_a_slip_of_the_handler_is_not_what_it_handled(
    tmp_path: Path, links: list[tuple[str, str]], failure_type: str
) -> None:
    assert judged(tmp_path, {"out.log": steps(3) + chained(*links)}).verdict.failure_type == failure_type


def test_a_task_that_slurm_ended_with_its_step_did_not_go_by_itself(tmp_path: Path) -> None:
    late = "".join(TIMEOUT.format(rank=rank) for rank in (0, 1, 3))
    ends = [
        "srun: error: nd-1: tasks 0-1,3: Aborted (core dumped)\n",
        "slurmstepd: error: *** STEP 77.0 ON nd-1 CANCELLED AT 2026-01-31T08:31:00 ***\n",
        "srun: error: nd-1: task 2: Killed\n",
    ]
    worked = "".join(f"[rank{rank}]: {line}\n" for line in steps(9).splitlines() for rank in range(4))
    after = judged(tmp_path / "after", {"slurm.out": worked + late + "".join(ends)}).verdict
    assert (after.failure_type, after.culprits.ranks) == ("collective.timeout", (2,))
    before = judged(tmp_path / "before", {"slurm.out": worked + ends[2] + late + ends[0] + ends[1]}).verdict
    assert (before.failure_type, before.culprits.ranks) == ("process.killed", (2,))


@pytest.mark.parametrize(
    ("done", "error", "failure_type"),
    [
        (
            30,
            "RuntimeError: NCCL error: unhandled system error, NCCL version 2.10.3",
            "collective.remote_error",
        ),
        (0, "RuntimeError: NCCL error: unhandled system error, NCCL version 2.10.3", "collective.init"),
        (30, "RuntimeError: NCCL Error 2: unhandled system error in ncclCommInitRank", "collective.init"),
    ],
)
def test_a_communicator_that_had_worked_lost_its_peer(
    tmp_path: Path, done: int, error: str, failure_type: str
) -> None:
    verdict = judged(tmp_path, {"out.log": steps(done) + traceback(error)}).verdict
    assert verdict.failure_type == failure_type


def test_the_code_above_an_exception_without_words_is_cited(tmp_path: Path) -> None:
    text = steps(3) + (
        "Traceback (most recent call last):\n"
        '  File "/app/train.py", line 9, in prepare\n'
        "    assert len({each.dtype for each in shards}) == 1\n"
        "AssertionError\n"
    )
    evidence = judged(tmp_path, {"train.log": text}).verdict.evidence
    assert [each.text.strip() for each in evidence[:2]] == [
        "AssertionError",
        "assert len({each.dtype for each in shards}) == 1",
    ]


def test_a_file_that_is_gone_while_a_checkpoint_is_written_is_no_broken_checkpoint(tmp_path: Path) -> None:
    error = (
        "FileNotFoundError: [Errno 2] No such file or directory: "
        "'out/checkpoint-40/model-00002-of-00004.safetensors'"
    )
    written = judged(tmp_path / "w", {"train.log": steps(9) + traceback(error, "save_pretrained")}).verdict
    assert written.failure_type == "code.file_not_found"


@pytest.mark.parametrize("own", [traceback("reader.Halted: 71"), ""])
def test_an_undated_report_of_an_end_killed_nobody_who_raised_an_exception(tmp_path: Path, own: str) -> None:
    died = "A worker died or was killed while executing a task by an unexpected system error. "
    told = f"(raylet, ip=10.7.0.2) {died}Worker IP address: 10.7.0.2 Worker PID: 71\n"
    worker = "(W[rank={}] pid={}, ip=10.7.0.{}) "
    made = "".join(
        behind(worker.format(rank, 70 + rank, 1 + rank), steps(30) + (own if rank == 1 else ""))
        for rank in range(2)
    )
    verdict = judged(tmp_path, {"driver.log": f"{clock(10)} INFO up\n{told}", "workers.log": made}).verdict
    assert verdict.failure_type == ("code.runtime" if own else "process.killed")


CANN_CALL = (
    "[ERROR] 2026-01-31-08:31:40 (PID:7{rank}, Device:{rank}, RankID:{rank}) "
    "ERR00100 PTA call acl api failed."
)
NOTIFY = (
    "EI0002: [PID: 7{rank}] 2026-01-31-08:31:40.100.200 The wait execution of the Notify register times out."
)


def test_a_call_that_failed_gives_way_to_the_code_of_its_reason_below() -> None:
    def told(rank: int, reason: str) -> str:
        return steps(30) + CANN_CALL.format(rank=rank) + "\n" + reason.format(rank=rank)

    waited = [of_rank(rank, told(rank, NOTIFY + " remote rank: [2].\n")) for rank in (0, 1, 3)]
    decision = decide(findings(*waited, of_rank(2, steps(30))))
    assert (decision.failure_type, decision.culprits.ranks) == ("collective.timeout", (2,))
    # Where no code follows, the call itself is all that is told.
    alone = decide(findings(of_rank(0, told(0, "")), of_rank(1, steps(30))))
    assert alone.failure_type == "cuda.launch_failure"


def test_an_exception_without_a_name_on_a_machine_that_lost_no_peer_is_no_wrapper_of_that() -> None:
    lost = [a("collective.remote_error", 5.0, Strength.DEFINITE, rank=rank, host="kx1") for rank in (2, 3)]
    assert root(*lost, a("code.runtime", 0.0, host="kx3")) == "code.runtime"
    assert root(*lost, a("code.runtime", 0.0, host="kx1")) == "collective.remote_error"
