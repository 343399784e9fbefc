"""Programs whose words no rule knows: their steps, what they survived, who is slow, by form and course."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import clock, findings, of_rank, reading, traceback

from logtriage.diagnose.offline import decide
from logtriage.localize.counters import step_counters
from logtriage.model import SourceRole

PASS = "{at} engine[{rank}] p={number} xent=2.3 busy {busy:.2f} idle {idle:.2f}\n"
CHATTER = (
    "{at} arena[{rank}] {noise} chunks\n",
    "{at} pack {noise} ok\n",
    "{at} pull[{rank}] item {noise} of bin-{noise}\n",
)
LOST = traceback(
    "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='blob', port=443): Read timed out."
)


def passes(
    rank: int, count: int, *, first: int = 4000, every: float = 6.0, slow_from: int = 1 << 30, at: float = 0.0
) -> str:
    """What a rank writes of so many steps, each with lines of other kinds and random numbers between."""
    dice = random.Random(rank)
    lines = []
    for number in range(count):
        begin = at + every * number
        lines += [
            text.format(at=clock(begin + place), rank=rank, noise=dice.randrange(10**6))
            for place, text in enumerate(CHATTER)
        ]
        busy = 1000 * every * (0.9 if number >= slow_from else 0.6) * dice.uniform(0.99, 1.01)
        lines.append(
            PASS.format(
                at=clock(begin + 5), rank=rank, number=first + number, busy=busy, idle=950 * every - busy
            )
        )
    return "".join(lines)


def test_what_rises_evenly_on_all_ranks_counts_the_steps() -> None:
    found = findings(*(of_rank(rank, passes(rank, 30)) for rank in range(8)))
    last = found.progress.last_step
    assert last is not None and last.step == 4029
    assert len(found.progress.traces) == 8
    assert decide(found).failure_type == "none.running"


def test_silence_after_such_steps_is_a_hang() -> None:
    watched = "".join(f"{clock(180 + 60 * number)} watch cn-3 fine {number % 7}\n" for number in range(30))
    found = findings(
        *(of_rank(rank, passes(rank, 30)) for rank in range(8)),
        reading("watch.log", watched, SourceRole.LAUNCHER),
    )
    assert decide(found).failure_type == "hang.silent"


@pytest.mark.parametrize(
    "line",
    [
        "{at} beat {seconds} ok\n",  # a clock
        "{at} table row {row} is 1.5\n",  # an enumeration, again and again
        "{at} sample {noise} taken\n",
    ],
)
def test_what_does_not_rise_by_steps_counts_none(line: str) -> None:
    dice = random.Random(3)
    text = "".join(
        line.format(at=clock(6.0 * number), seconds=6 * number, row=number % 8, noise=dice.randrange(10**6))
        for number in range(80)
    )
    assert not step_counters(findings(of_rank(0, text)).scene)


@given(st.text(max_size=200), st.integers(0, 1 << 70))
def test_no_text_breaks_the_search_for_counters(text: str, number: int) -> None:
    lines = "".join(f"{clock(at)} {text} {number + at}\n" for at in range(12))
    step_counters(findings(of_rank(0, lines)).scene)


def caught(rank: int, at: float) -> str:
    return f"{clock(at)} pull[{rank}] no luck, again soon\n{LOST}"


def test_who_writes_on_as_ever_survived_what_no_word_says_was_caught() -> None:
    ranks = [
        passes(rank, 15) + caught(rank, 90.0) + passes(rank, 15, first=4015, at=91.0) for rank in range(4)
    ]
    ranks[2] += traceback("KeyError: 'tag'")
    decision = decide(findings(*(of_rank(rank, text) for rank, text in enumerate(ranks))))
    assert (decision.failure_type, decision.culprits.ranks) == ("code.key", (2,))


def test_a_pulse_alone_is_no_life() -> None:
    pulse = "".join(f"{clock(91 + number)} pulse[1] {number} fds\n" for number in range(60))
    found = findings(
        of_rank(0, passes(0, 15)),
        of_rank(1, passes(1, 15) + caught(1, 90.0) + pulse),
        of_rank(2, passes(2, 15)),
    )
    (lost,) = (each for each in found.candidates if each.record is not None)
    assert not lost.recovered


def test_parts_of_a_step_show_the_slow_rank_whatever_they_are_called() -> None:
    found = findings(
        *(of_rank(rank, passes(rank, 40, slow_from=20 if rank == 5 else 1 << 30)) for rank in range(8))
    )
    slow = found.slowness
    assert slow is not None
    assert (slow.failure_type, slow.ranks) == ("slow.straggler", (5,))
    assert slow.since is not None and " p=4020 " in slow.since.text


def test_a_table_of_members_shows_the_slow_rank_as_well() -> None:
    rows = []
    for number in range(12):
        rows.append(f"{clock(6.0 * number)} tick {700 + number} done\n")
        rows += [
            f"  member {rank}: kern={5000.0 if rank == 3 else 3000.0 + rank:.2f} "
            f"gap={500.0 if rank == 3 else 2500.0 - rank:.2f}\n"
            for rank in range(8)
        ]
    others = (of_rank(rank, passes(rank, 12)) for rank in range(1, 8))
    slow = findings(of_rank(0, "".join(rows)), *others).slowness
    assert slow is not None and slow.ranks == (3,)


def test_steps_that_were_long_for_all_hide_no_slow_rank() -> None:
    """Of some ranks more lines of these steps were read than of others."""
    dice = random.Random(3)
    files = []
    for rank in range(24):
        text, at = "", 0.0
        for number in range(80):
            long = 7.0 if number >= 64 else 0.0
            busy = 5.4 if rank == 5 and number >= 30 else 3.6 + 0.01 * rank
            lasts = (5.7 if number >= 30 else 4.0) + long
            at += lasts
            if dice.random() < (0.6 if number < 64 else (rank % 3) / 2):
                text += f"{clock(at)} lap {number} toil {1e3 * busy:.2f} rest {1e3 * (lasts - busy):.2f}\n"
        files.append(of_rank(rank, text))
    slow = findings(*files).slowness
    assert slow is not None and slow.ranks == (5,)


def test_ranks_alike_in_such_parts_are_no_stragglers() -> None:
    assert findings(*(of_rank(rank, passes(rank, 40)) for rank in range(8))).slowness is None


def test_ray_processes_have_the_ranks_that_nccl_tells() -> None:
    texts = []
    for node in range(2):
        lines = []
        for rank in range(node * 4, node * 4 + 4):
            label = f"(RayTrainWorker pid={500 + rank}, ip=10.0.0.{node + 1}) "
            lines.append(
                f"{label}cn-{node}:{500 + rank}:{900 + rank} [{rank % 4}] NCCL INFO ncclCommInitRankConfig "
                f"comm 0x55aa rank {rank} nranks 8 cudaDev {rank % 4} busId 1000 commId 0x12 - Init DONE\n"
            )
            if rank == 6:
                lines += [label + line + "\n" for line in traceback("KeyError: 'tag'").splitlines()]
        texts.append("".join(lines))
    found = findings(*(reading(f"out-{number}.txt", text) for number, text in enumerate(texts)))
    decision = decide(found)
    assert (decision.failure_type, decision.culprits.ranks) == ("code.key", (6,))


def test_a_full_disk_that_was_outlived_is_why_all_ranks_failed_alike_later() -> None:
    full = traceback("OSError: [Errno 28] No space left on device", "_write", "/app/spool.py")
    end = traceback("RuntimeError: seal refused: 1 of 4 slices absent", "seal", "/app/spool.py")
    ranks = []
    for rank in range(4):
        early = f"{clock(90)} spool[{rank}] slice is not on disk\n{full}" if rank == 1 else ""
        ranks.append(passes(rank, 15) + early + passes(rank, 15, first=4015, at=91.0) + end)
    found = findings(*(of_rank(rank, text, host=f"cn-{rank}") for rank, text in enumerate(ranks)))
    decision = decide(found)
    assert decision.failure_type == "host.disk_full"
    assert decision.culprits.hosts == ("cn-1",)


def test_a_watcher_that_dates_its_words_shows_a_hang_as_well() -> None:
    watched = "".join(
        f"watch 2026-01-31T{8 + number // 60:02d}:{number % 60:02d}:00 cn-{number % 3} ok {number % 7}\n"
        for number in range(40)
    )
    found = findings(
        *(of_rank(rank, passes(rank, 30)) for rank in range(4)),
        reading("job.out", watched, SourceRole.MERGED),
    )
    assert decide(found).failure_type == "hang.silent"


def test_a_file_whose_name_tells_no_rank_has_the_one_that_nccl_tells_in_it() -> None:
    def of(rank: int) -> str:
        joined = (
            f"cn-1:{50 + rank}:{90 + rank} [{rank}] NCCL INFO comm 0x55aa rank {rank} nranks 4 busId 1000\n"
        )
        return joined + passes(rank, 15) + (traceback("KeyError: 'tag'") if rank == 2 else "")

    found = findings(*(reading(f"out/x.{'abcd'[rank]}.err", of(rank)) for rank in range(4)))
    decision = decide(found)
    assert (decision.failure_type, decision.culprits.ranks) == ("code.key", (2,))


def test_what_a_bar_counts_gives_way_to_what_the_lines_beside_it_count() -> None:
    beside = []
    for number in range(24):
        beside += [
            f"{number * 4:3d}%|###       | {number + 1}/24 [{number:02d}:00<01:00,  6.00s/it]\n",
            f"{clock(6.0 * number)} score upd={90_000 + number} nll=2.3\n",
        ]
    found = findings(of_rank(0, "".join(beside)), of_rank(1, traceback("KeyError: 'tag'")))
    last = found.progress.with_one_count().last_step
    assert last is not None and last.step == 90_023


def test_a_step_that_another_writer_put_behind_a_bar_is_not_counted_as_the_bar_counts() -> None:
    drawn = []
    for number in range(1, 24):
        drawn.append(f"{number * 4:3d}%|###       | {number}/24 [{number:02d}:00<01:00,  6.00s/it]")
        drawn.append("" if number == 22 else "\n")
        drawn.append(f"{clock(6.0 * number)} INFO lr step {90_000 + number} group 1 lr=3.1e-05\n")
    found = findings(of_rank(0, "".join(drawn)), of_rank(1, traceback("KeyError: 'tag'")))
    steps = {point.step for trace in found.progress.with_one_count().traces for point in trace.points}
    assert max(steps) == 90_023


def test_a_number_that_each_file_has_for_some_ranks_alone_is_the_rank_of_its_lines() -> None:
    texts = dict.fromkeys(range(2), "")
    for number in range(40):
        for rank in range(8):
            busy = 5400.0 if rank == 6 and number >= 20 else 3600.0 + rank
            texts[rank // 4] += (
                f"{clock(6.0 * number)} loop rk={rank} upd={500 + number} a={busy:.2f} b={5700 - busy:.2f}\n"
            )
    slow = findings(*(reading(f"cn-{node}.txt", text) for node, text in texts.items())).slowness
    assert slow is not None and slow.ranks == (6,)


def test_ranks_that_write_into_one_file_say_each_step_at_their_own_moment() -> None:
    dice = random.Random(5)
    told = [
        (6.0 * number + 5.5 * dice.random(), f"loop got to round {70_000 + number} (lag {dice.random():.3f})")
        for number in range(60)
        for _ in range(8)
    ]
    text = "".join(f"{clock(at)} {words}\n" for at, words in sorted(told))
    last = findings(reading("all.log", text)).progress.last_step
    assert last is not None and last.step == 70_059


def test_a_loop_over_a_few_things_counts_no_steps() -> None:
    loading = "".join(f"{clock(6.0 * number)} taking in part {number}/12 of 40\n" for number in range(1, 13))
    assert not step_counters(findings(of_rank(0, loading)).scene)
