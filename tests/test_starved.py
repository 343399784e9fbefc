"""Steps that wait for their input: told in any language, since some time only, or judged by a profiler."""

from __future__ import annotations

import pytest
from scenes import clock, of_rank, reading, steps
from scenes import findings as found_in

from logtriage.localize.durations import timings
from logtriage.localize.spoken_waits import spoken_wait, told_share


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("étape 40  attente du lot 2,40 s  calcul 0,60 s  étape entière 3,00 s", (2.4, 3.0)),
        ("Schritt 9 Warten auf Daten 900 ms, Rechnen 300 ms", (0.9, 1.2)),
        ("шаг 7 ожидание данных: 1,5 s, счёт: 0,5 s", (1.5, 2.0)),
        ("步 7 等待数据 1.5 s 计算 0.5 s", (1.5, 2.0)),
        ("第 7 步 等待数据 1500 毫秒 计算 0.5 秒", (1.5, 2.0)),
        ("шаг 7 ожидание батча 1,5 с, вычисление 0,5 с", (1.5, 2.0)),
        ("étape 40  attente des autres 2,40 s  calcul 0,60 s", None),
        ("attente du lot 2,40 s", None),
        ("batch 40 data 12 s/it", None),
    ],
)
def test_waiting_for_a_batch_is_told_in_many_languages(text: str, told: tuple[float, float] | None) -> None:
    assert spoken_wait(text) == (None if told is None else pytest.approx(told))


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("step 40 loss 2.1 (81% input, 19% compute)", 0.81),
        ("it 40: data_load 62.5 % fwd 20.0 % bwd 17.5 %", 0.625),
        ("step 40 gpu 19% compute, 81% idle", 0.0),
        ("step 40 done 40% of data, 12% loss", None),
        ("40% input", None),
    ],
)
def test_shares_of_one_whole_tell_what_was_waited_for_input(text: str, share: float | None) -> None:
    assert told_share(text) == (None if share is None else pytest.approx(share))


def test_a_job_of_which_each_step_is_mostly_input_is_starved() -> None:
    text = "".join(
        f"{clock(9.0 * at)} INFO step {at} loss 2.0 (77% input, 23% compute)\n" for at in range(30)
    )
    slow = found_in(of_rank(0, text)).slowness
    assert slow is not None and slow.failure_type == "slow.data"


def slowness_of(waits: list[float], *, whole: float = 0.4) -> str | None:
    text = "".join(
        f"{clock(9.0 * at)} INFO step {at} loss 2.0 data_time: {wait:.3f} s step_time: {wait + whole:.3f} s\n"
        for at, wait in enumerate(waits, 1)
    )
    slow = found_in(of_rank(0, text)).slowness
    return None if slow is None else slow.failure_type


def test_steps_that_since_some_time_all_wait_for_data_are_starved() -> None:
    assert slowness_of([0.01] * 40 + [4.0] * 15) == "slow.data"
    # few of them, and short steps of which the wait is most
    assert slowness_of([0.01] * 40 + [4.0] * 5) is None
    assert slowness_of([0.01] * 40 + [0.15] * 15) is None


def test_a_profiler_judges_what_a_step_waits_for() -> None:
    judged = (
        "Your program is {} input-bound because {}% of the total step time sampled is waiting for input.\n"
    )
    for words, percent, kind in (
        ("MODERATELY", "44.1", "slow.data"),
        ("HIGHLY", "20.4", None),
        ("NOT", "only 0.2", None),
    ):
        page = reading("overview.txt", judged.format(words, percent))
        slow = found_in(of_rank(0, steps(9)), page).slowness
        assert (None if slow is None else slow.failure_type) == kind


def test_small_times_are_told_by_their_power_of_ten() -> None:
    assert timings("iter_time=1.413e-04, forward_time=0.221, train_time=2.860")["iter_time"] == 1.413e-4
