"""Labels of any form, whose ranks their own lines tell; and where files of many ranks were written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from scenes import WATCHDOG, bank_read_once, clock, judged, reading, traceback

from logtriage.localize.jobs import other_jobs
from logtriage.localize.spoken_labels import with_spoken_ranks
from logtriage.rulebank.rule import Role

KEY = traceback("KeyError: 'source'", "mix", "/app/mixer.py")
XID = "[Sat Jan 31 07:00:01 2026] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.14\n"


def joined(rank: int, size: int = 16) -> str:
    prefix = f"cn-{rank // 8}:{90 + rank}:{190 + rank} [{rank % 8}] NCCL INFO"
    return f"{prefix} comm 0x55f{rank} rank {rank} nranks {size} - Init COMPLETE"


def node(number: int, label: Callable[[int], str], *, says: bool = True, faulty: int = 13) -> str:
    """What one file gathers of eight ranks, one of which fails while it stores nothing more."""
    ranks = range(8 * number, 8 * number + 8)
    lines = [f"{label(rank)}{joined(rank)}" for rank in ranks if says and rank != faulty]
    told = written(number, label, lambda rank, at: f"INFO sample {at} of {rank % 3} seen", faulty)
    return "".join(f"{line}\n" for line in lines) + told


def written(
    number: int, label: Callable[[int], str], words: Callable[[int, int], str], faulty: int = 13
) -> str:
    """What eight ranks of a node write of 30 samples, and one of them of its end."""
    ranks = range(8 * number, 8 * number + 8)
    lines = [f"{label(rank)}{clock(6 * at)} {words(rank, at)}" for at in range(30) for rank in ranks]
    if faulty in ranks:
        lines += [f"{label(faulty)}{line}" for line in KEY.splitlines()]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "label",
    [
        lambda rank: f"[trainer-0-{rank // 8}/gpu-image-{rank % 8}] ",
        lambda rank: f"(Actor pid={4000 + rank}, rank={rank}) ",
        lambda rank: f"pod-{rank // 8}/c{rank % 8} | ",
        lambda rank: f"loop@{rank}[{4000 + rank}]: ",
        lambda rank: f"<{rank}> ",
        lambda rank: f"cn-{rank // 8}/{rank % 8} ",
    ],
)
def test_whose_a_line_is_follows_from_what_its_label_told_before(
    tmp_path: Path, label: Callable[[int], str]
) -> None:
    with bank_read_once():
        body = judged(tmp_path, {f"out.{number}.log": node(number, label) for number in range(2)}).verdict
    assert (body.failure_type, body.culprits.ranks) == ("code.key", (13,))


@pytest.mark.parametrize(
    "label",
    [
        lambda rank: f"[trainer-0-{rank // 8}/gpu-image-{rank % 8}] ",  # nobody says which rank it is
        lambda rank: f"(worker{rank}, rank={rank}, pid={4000 + rank}) ",  # SkyPilot counts nodes
    ],
)
def test_labels_that_tell_no_rank_are_left_alone(label: Callable[[int], str]) -> None:
    told = reading("out.log", node(1, label, says=False))
    assert with_spoken_ranks(told) is told


def test_a_rank_in_brackets_behind_a_pod_and_its_container(tmp_path: Path) -> None:
    text = node(1, lambda rank: f"llm-worker-1 trainer [rank{rank}] ")
    first = node(0, lambda rank: f"llm-worker-0 trainer [rank{rank}] ")
    body = judged(tmp_path, {"llm-worker-0.log": first, "llm-worker-1.log": text}).verdict
    assert body.culprits.ranks == (13,)


def test_a_file_of_one_machine_that_has_a_kernel_log_is_of_that_machine(tmp_path: Path) -> None:
    files = {f"llm_{number}.out": node(number, lambda rank: f"[rank{rank}]:") for number in range(2)}
    kernels = {f"sys/cn-{number}.dmesg.log": XID for number in range(2)}
    culprits = judged(tmp_path, files | kernels).verdict.culprits
    assert (culprits.ranks, culprits.hosts) == ((13,), ("cn-1",))


def test_a_label_with_nothing_behind_it_indicates_nothing(tmp_path: Path) -> None:
    label = "llm-worker-0 trainer [rank{}] ".format
    steps = "".join(
        f"{label(rank)}{clock(2 * at)} INFO step {at} loss 2.1\n" for at in range(20) for rank in range(4)
    )
    frames = (
        "frame #0: c10d::watch() + 0x98 (0x7f01 in libtorch_cuda.so)\n\nframe #1: clone + 0x44 (0x7f02)\n"
    )
    died = "".join(
        f"{label(rank)}{line}\n"
        for rank in range(3)
        for line in (WATCHDOG.format(rank=rank, op="ALLREDUCE") + frames).splitlines()
    )
    verdict = judged(tmp_path, {"out.log": steps + died})
    text = (steps + died).splitlines()
    told = [text[each.line - 1] for each in verdict.indications]
    assert any("frame #1" in each for each in told)
    assert not [each for each in told if each.rstrip().endswith("]")]


def test_of_a_namespace_without_a_word_on_the_jobs_pods_no_other_pod_counts() -> None:
    events = "".join(
        f"2026-01-31T08:00:{number}Z  Warning  BackOff  pod/log-shipper-{number:05d}  Back-off restarting\n"
        for number in range(20, 30)
    )
    record = "".join(f"pod/llm-worker-{number} node=cn-{number} phase=Running\n" for number in range(2))
    log = node(0, lambda rank: f"[rank{rank}]:")
    told = [reading("events.txt", events), reading("job.log", record), reading("slice-0-0.log", log)]
    assert all(other_jobs(told).concern(line, Role.CAUSE) for line in told[0].lines)
    assert not any(other_jobs(told).concern(line, Role.CAUSE) for line in (*told[1].lines, *told[2].lines))


def told_by_each(number: int, label: Callable[[int], str]) -> str:
    """As `node`, of ranks that name themselves in the lines of their own program alone."""
    return written(number, label, lambda rank, at: f"<rank {rank}> loop: update {at} took {rank % 3}")


@pytest.mark.parametrize(
    "label",
    [
        lambda rank: f"{rank}| ",
        lambda rank: f"cn-{rank // 8} {rank}: ",
        lambda rank: f"[{rank % 8}] ",  # those of a node's own processes
        lambda rank: f"({rank % 8}) ",
        lambda rank: f"{rank % 8}>",
    ],
)
def test_a_number_before_each_line_is_what_the_words_behind_it_say(
    tmp_path: Path, label: Callable[[int], str]
) -> None:
    files = {f"out.{number}.log": told_by_each(number, label) for number in range(2)}
    body = judged(tmp_path, files).verdict
    assert (body.failure_type, body.culprits.ranks) == ("code.key", (13,))


def test_windows_of_a_file_are_labelled_as_its_first_reading_told() -> None:
    whole = with_spoken_ranks(reading("out.log", told_by_each(1, lambda rank: f"{rank % 8}> ")))
    window = reading("out.log", "2> saved\n3> saved\n")
    assert [line.rank for line in with_spoken_ranks(window, whole.labelled).lines] == [10, 11]


def test_a_list_of_events_tells_of_other_jobs_than_that_whose_pods_left_logs() -> None:
    events = "".join(
        f"2026-01-31T08:00:{number}Z  Warning  FailedScheduling  pod/report-{number}  0/8 nodes available\n"
        for number in range(20, 30)
    )
    record = "".join(f"llm-set-0-{number} placed on cn-{number}\n" for number in range(2))
    logs = [reading(f"llm-set-0-{number}.log", told_by_each(number, "{}| ".format)) for number in range(2)]
    told = [reading("events.txt", events), reading("set.txt", record), *logs]
    assert all(other_jobs(told).concern(line, Role.CAUSE) for line in told[0].lines)
    assert not other_jobs([told[0], *logs]).pods


def test_a_machines_own_log_may_be_called_as_only_the_jobs_lines_know_it(tmp_path: Path) -> None:
    """Names of which no part looks like a machine's; the files of the job are called after replicas."""
    names = ["q40r7s0k1u0", "q41r7s0k1u0"]
    files = {
        f"crew-{number}.txt": node(number, lambda rank: f"<{rank}> ").replace(f"cn-{number}:", f"{name}:")
        for number, name in enumerate(names)
    }
    files |= {f"console/{name}": XID for name in names}
    body = judged(tmp_path, files).verdict
    assert (body.culprits.ranks, body.culprits.hosts) == ((13,), (names[1],))
