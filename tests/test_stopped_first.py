"""A job that stands still: who stopped before its peers, and what somebody saw of its logs hours later."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, clock, first, judged, steps


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


UNDATED = "".join(f"Batch: {number}/900 epoch 3 loss 2.1\n" for number in range(300))


@pytest.mark.parametrize(
    "look",
    [
        "$ date +%s\n1769900000\n$ stat -c '%n %y' train.log\ntrain.log 2026-01-31 10:02:11.5000 +0100\n",
        "$ stat -c '%n %y' /out/train.log\n/out/train.log 2026-01-31 10:02:11.500000000 +0000\n"
        " 16:44:10 up 12 days,  3:02,  load average: 8.00, 8.01\n",
        "2026-01-31 22:02:11.500 +0000\n 04:44:10 up 12 days,  3:02,  load average: 8.00, 8.01\n",
        "2026-01-31T16:44:10\nlast change of /out/train.log: 2026-01-31T10:02:11\n",
        "checked 2026-01-31 16:44\ntrain.log was last modified at 2026-01-31 10:02\n",
        "mtime: 2026-01-31 10:02:11\nnow: 2026-01-31 16:44:10\n",
    ],
)
def test_a_log_that_had_not_grown_for_hours_stands_still(tmp_path: Path, look: str) -> None:
    assert judged(tmp_path, {"train.log": UNDATED, "look.txt": look}).verdict.failure_type == "hang.silent"


@pytest.mark.parametrize(
    "look",
    [
        "$ date +%s\n1769850200\n$ stat -c '%n %y' train.log\ntrain.log 2026-01-31 10:02:11.5000 +0100\n",
        "train.log 2026-01-31 10:02:11.500000000 +0000\n 10:03:10 up 12 days,  3:02\n",
        "2026-01-31 10:02:11.500 +0000\n 10:03:10 up 12 days,  3:02,  load average: 8.00, 8.01\n",
        "2026-01-31T10:03:10\nlast change of /out/train.log: 2026-01-31T10:02:11\n",
        "2026-01-31T16:44:10\nlast change of /out/eval.log: 2026-01-31T10:02:11\n",
    ],
)
def test_a_log_that_grew_a_minute_ago_runs(tmp_path: Path, look: str) -> None:
    assert judged(tmp_path, {"train.log": UNDATED, "look.txt": look}).verdict.failure_type == "none.running"


STOOD = "2026-01-31 10:02:11.500 +0000\n 16:44:10 up 12 days,  3:02,  load average: 8.00, 8.01\n"


@pytest.mark.parametrize(("count", "late"), [(4, 2), (7, 5)])
def test_who_stopped_steps_before_all_its_peers_is_the_one_they_wait_for(
    tmp_path: Path, count: int, late: int
) -> None:
    files = {f"rank{rank}.log": steps(50 - 3 * (rank == late)) for rank in range(count)}
    verdict = judged(tmp_path, {**files, "look.txt": STOOD})
    assert (verdict.verdict.failure_type, verdict.verdict.culprits.ranks) == ("hang.silent", (late,))
    assert first(verdict)[0] == f"rank{late}.log"
    assert "step 47 " in first(verdict)[1]


def test_where_all_stop_at_other_steps_nobody_stopped_first(tmp_path: Path) -> None:
    files = {f"rank{rank}.log": steps(50 - rank) for rank in range(4)}
    assert judged(tmp_path, {**files, "look.txt": STOOD}).verdict.culprits.ranks == ()


def saved(rank: int, *, is_done: bool = True) -> str:
    """How every rank writes its shard of a checkpoint."""
    begun = f"{clock(101)} INFO shard {rank}: writing /data/ckpt/50/rank{rank}.bin\n"
    done = f"{clock(109)} INFO shard {rank}: wrote 18 GB\n{clock(109)} INFO shard {rank}: at the barrier\n"
    return begun + done * is_done


@pytest.mark.parametrize("late", [1, 4])
def test_who_broke_off_in_a_save_that_all_peers_wrote_is_the_one_they_wait_for(
    tmp_path: Path, late: int
) -> None:
    files = {f"rank{rank}.log": steps(50) + saved(rank, is_done=rank != late) for rank in range(5)}
    verdict = judged(tmp_path, {**files, "look.txt": STOOD})
    assert (verdict.verdict.failure_type, verdict.verdict.culprits.ranks) == ("hang.silent", (late,))
    assert f"writing /data/ckpt/50/rank{late}" in first(verdict)[1]


@pytest.mark.parametrize("own", ["INFO rank 0 alone uploads the manifest\n", "INFO wrote 18 GB\n" * 3])
def test_who_writes_something_else_behind_the_last_step_did_not_break_off(tmp_path: Path, own: str) -> None:
    files = {f"rank{rank}.log": steps(50) + saved(rank) for rank in range(5)}
    files["rank0.log"] += f"{clock(111)} {own}"
    assert judged(tmp_path, {**files, "look.txt": STOOD}).verdict.culprits.ranks == ()
    files["rank3.log"] = steps(50)  # of peers that do not agree nobody is the odd one
    assert judged(tmp_path, {**files, "look.txt": STOOD}).verdict.culprits.ranks == ()


def test_who_tells_on_and_on_that_it_waits_for_a_save_is_not_who_broke_off(tmp_path: Path) -> None:
    files = {f"rank{rank}.log": steps(50) + saved(rank, is_done=rank != 3) for rank in range(4)}
    files["rank0.log"] += "".join(
        f"{clock(200 + 300 * n)} INFO still waiting for the others: 3 of 4 wrote\n" for n in range(30)
    )
    verdict = judged(tmp_path, files)
    assert (verdict.verdict.failure_type, verdict.verdict.culprits.ranks) == ("hang.silent", (3,))


def test_who_alone_tells_for_long_how_its_machine_does_is_a_peer_like_all_others(tmp_path: Path) -> None:
    files = {f"rank{rank}.log": steps(50) + saved(rank, is_done=rank != 3) for rank in range(4)}
    files["rank0.log"] += "".join(
        f"{clock(200 + 900 * n)} INFO host memory {70 + n} %, 311 threads\n" for n in range(5)
    )
    verdict = judged(tmp_path, files)
    assert (verdict.verdict.failure_type, verdict.verdict.culprits.ranks) == ("hang.silent", (3,))


LISTED = """$ platform ps sft-12   # taken 2026-01-31 {now} UTC
NAME      STATE      WORKERS  RETRIES  SINCE
sft-12    {state}    2/2      0        {since}
"""


@pytest.mark.parametrize(
    ("state", "now", "since", "failure_type"),
    [
        ("RUNNING", "14:00", "2026-01-31 07:58", "hang.silent"),
        ("RUNNING", "08:09", "2026-01-31 07:58", "none.running"),  # a look right away
        ("RUNNING", "14:00", "2026-01-31 13:58", "none.running"),  # another clock
        ("QUEUED", "14:00", "2026-01-31 07:58", "none.running"),
    ],
)
def test_a_job_that_its_platform_lists_as_running_hours_after_its_last_step_stands_still(
    tmp_path: Path, state: str, now: str, since: str, failure_type: str
) -> None:
    files = {f"rank{rank}.log": steps(50, every=8) for rank in range(2)}
    look = LISTED.format(state=state, now=now, since=since)
    assert judged(tmp_path, {**files, "platform_ps.txt": look}).verdict.failure_type == failure_type


LOADED = (
    "(Trainer pid=3)   successfully loaded checkpoint from /models/base [ t 1/1, p 1/1 ] at iteration 0\n"
)


def answered(count: int, *, every: int, told: str = "") -> str:
    asked = f'"GET /healthz HTTP/1.1" 200 OK{told}\n'
    return "".join(
        f"(Server pid=7) [{clock(100 + every * n)[:-4]}] INFO: 10.8.0.2:{4000 + 2 * n} - {asked}"
        for n in range(count)
    )


CAME_UP = f"(Server pid=7) [{clock(80)[:-4]}] INFO: Application startup complete.\n"


@pytest.mark.parametrize(
    ("text", "failure_type"),
    [
        (answered(40, every=60) + "client: stream closed, the job is still running\n", "hang.silent"),
        (answered(40, every=60), "unknown"),  # nobody tells that anything was to come
        (answered(80, every=60), "unknown"),
        (LOADED + answered(80, every=60), "hang.silent"),  # the trainer had loaded what it trains
        (LOADED + answered(7, every=900, told=" [repeated 4x across cluster]"), "hang.silent"),
        (LOADED + answered(40, every=60), "unknown"),
        (answered(40, every=10) + "client: stream closed, the job is still running\n", "unknown"),
        (answered(40, every=60) + "job RUNNING\n" + steps(30, at=2600), "none.running"),
    ],
)
def test_a_running_job_of_which_only_health_checks_are_heard_stands_still(
    tmp_path: Path, text: str, failure_type: str
) -> None:
    assert judged(tmp_path, {"job.log": CAME_UP + text}).verdict.failure_type == failure_type


def spinner(text: str, *clocks: str, done: int = 0) -> str:
    return "".join(
        f"{text if not n else ''}~ Preparing  {done}/7 shards  {at}\n" for n, at in enumerate(clocks)
    )


@pytest.mark.parametrize(
    ("text", "failure_type"),
    [
        (spinner("kim@store's password: ", "0:00:04", "1:10:00", "9:00:00"), "hang.silent"),
        (spinner("Password for 'https://kim@git.lab': ", "0:00:04", "1:10:00", "9:00:00"), "hang.silent"),
        (spinner("kim@store's password: ", "0:00:04", "0:00:30", "0:01:00"), "unknown"),  # not for long
        (spinner("", "0:00:04", "1:10:00", "9:00:00"), "unknown"),  # shards can be large
        (
            spinner("kim@store's password: ", "0:00:04", "1:10:00") + spinner("", "1:20:00", done=3),
            "unknown",
        ),
    ],
)
def test_a_question_below_a_bar_that_nobody_answers(tmp_path: Path, text: str, failure_type: str) -> None:
    begun = f"{clock(0)} INFO copying the shards to /scratch\n"
    assert judged(tmp_path, {"console.txt": begun + text}).verdict.failure_type == failure_type


def joining(rank: int, *, joins: bool, size: int = 4) -> str:
    comm = (
        f"cn-{rank}:6{rank}0:6{rank}9 [0] NCCL INFO ncclCommInitRankConfig comm 0x5{rank}a rank {rank} "
        f"nranks {size} cudaDev 0 nvmlDev 0 busId 1b000 commId 0x77ab - Init "
    )
    linked = f"cn-{rank}:6{rank}0:6{rank}8 [0] NCCL INFO Connected all rings\n"
    return f"{comm}START\n{linked}" + (f"{comm}COMPLETE\n" if joins else "")


LOOKED = (
    "$ ps -o pid,stat,wchan,cmd -C python3\n  PID STAT WCHAN  CMD\n  {pid} Sl   futex_ python3 train.py\n"
)


@pytest.mark.parametrize(
    ("late", "pid", "expected"),
    [
        ({2}, "620", ("hang.silent", (2,))),
        ({1, 2}, "620", ("hang.silent", (1, 2))),
        ({2}, "999", ("unknown", ())),  # nobody saw it alive
        ({0, 1, 2}, "620", ("unknown", ())),  # most had not joined yet
    ],
)
def test_who_never_joined_what_its_peers_joined_and_is_alive(
    tmp_path: Path, late: set[int], pid: str, expected: tuple[str, tuple[int, ...]]
) -> None:
    files = {f"node{rank}.log": joining(rank, joins=rank not in late) for rank in range(4)}
    files["node2.log"] += LOOKED.format(pid=pid)
    body = judged(tmp_path, files).verdict
    assert (body.failure_type, body.culprits.ranks) == expected
