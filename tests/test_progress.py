"""How far each rank came, and whether an error was survived."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from scenes import clock, findings, of_rank, reading, scene, steps

from logtriage.localize.progress import by_rank, gather, median
from logtriage.model import Line

WARNING = f"{clock(20)} ERROR dataset shard could not be read, OSError: [Errno 5] Input/output error\n"


def line_with(lines: tuple[Line, ...], word: str) -> Line:
    return next(line for line in lines if word in line.text)


def test_the_steps_of_each_rank_are_a_trace() -> None:
    progress = gather(scene(of_rank(0, steps(5)), of_rank(1, steps(3))))
    assert {
        rank: (trace.last.step, len(trace.points)) for rank, trace in by_rank(progress.traces).items()
    } == {
        0: (5, 5),
        1: (3, 3),
    }
    assert progress.ranks() == {0, 1}


def test_prefixes_tell_the_ranks_of_a_shared_file_apart() -> None:
    text = "".join(f"[rank{rank}]: step {step} loss 2.0\n" for step in range(1, 5) for rank in (0, 1, 2))
    text += "[rank2]: step 5 loss 2.0\n"
    progress = gather(scene(reading("all.log", text)))
    assert {rank: trace.last.step for rank, trace in by_rank(progress.traces).items()} == {0: 4, 1: 4, 2: 5}


def test_a_progress_bar_gives_its_last_state_with_the_total() -> None:
    bar = "\r".join(
        f" {number}%|█         | {number}/100 [00:0{number}<01:00,  1.2it/s]" for number in range(1, 8)
    )
    progress = gather(scene(reading("all.log", bar + "\n")))
    assert progress.last_step is not None
    assert (progress.last_step.step, progress.last_step.total) == (7, 100)


def test_a_job_without_steps_has_no_last_step() -> None:
    progress = gather(scene(reading("all.log", "hello\n")))
    assert (progress.last_step, progress.last_time, progress.traces) == (None, None, ())


def test_a_checkpoint_and_a_resume_are_seen() -> None:
    text = (
        "  successfully saved checkpoint from iteration     500 to /ckpt\n"
        "  successfully loaded checkpoint from /ckpt at iteration 500\n"
    )
    progress = gather(scene(reading("all.log", text)))
    assert progress.checkpoints[0].hit.capture("step") == "500"
    assert [sign.hit.capture("step") for sign in progress.resumed] == ["500"]


def test_the_last_checkpoint_knows_its_step() -> None:
    text = "  successfully saved checkpoint from iteration     500 to /ckpt\n"
    assert gather(scene(reading("all.log", text))).checkpoints[-1].hit.capture("step") == "500"


def test_steps_of_the_same_rank_after_an_error_are_counted() -> None:
    one = of_rank(0, steps(10) + WARNING + steps(4, first=11, at=30))
    progress = gather(scene(one))
    assert progress.steps_after(line_with(one.lines, "Errno 5")) == 4


def test_steps_of_other_ranks_do_not_show_that_a_rank_recovered() -> None:
    text = "".join(f"[rank{rank}]: step {step} loss 2.0\n" for step in range(1, 4) for rank in (0, 1))
    text += "[rank1]: OSError: [Errno 5] Input/output error\n"
    text += "".join(f"[rank0]: step {step} loss 2.0\n" for step in range(4, 9))
    merged = reading("all.log", text)
    progress = gather(scene(merged))
    assert progress.steps_after(line_with(merged.lines, "Errno 5")) == 0


def test_an_unnamed_line_recovered_only_if_every_rank_went_on() -> None:
    def after(ranks: tuple[int, ...]) -> int:
        text = "".join(f"[rank{rank}]: step 1 loss 2.0\n" for rank in (0, 1))
        text += "OSError: [Errno 5] Input/output error\n"
        text += "".join(f"[rank{rank}]: step {step} loss 2.0\n" for step in range(2, 6) for rank in ranks)
        merged = reading("all.log", text)
        return gather(scene(merged)).steps_after(line_with(merged.lines, "Errno 5"))

    assert after((0, 1)) == 4
    assert after((0,)) == 0


def test_an_error_that_was_survived_is_no_cause_and_one_at_the_end_is() -> None:
    survived = findings(of_rank(0, steps(10) + WARNING + steps(20, first=11, at=30)))
    last = findings(of_rank(0, steps(10) + WARNING))
    assert {each.recovered for each in survived.candidates} == {True}
    assert survived.cascade.root is None
    assert last.cascade.root is not None
    assert last.cascade.root.failure_type == "storage.filesystem"


def test_a_loss_that_is_nan_is_not_survived_by_going_on() -> None:
    text = steps(5) + f"{clock(20)} WARNING loss is NaN, stopping soon\n" + steps(10, first=6, at=30)
    found = [each for each in findings(of_rank(0, text)).candidates if each.failure_type == "numerics.nan"]
    assert found
    assert not any(each.recovered for each in found)


@given(st.lists(st.sampled_from(["step {} loss 2.0", "noise", "[rank1]: step {} loss 2.0"]), max_size=30))
@settings(max_examples=50, deadline=None)
def test_steps_after_never_grows_towards_the_end(kinds: list[str]) -> None:
    one = reading("all.log", "".join(kind.format(number) + "\n" for number, kind in enumerate(kinds)))
    progress = gather(scene(one))
    unnamed = [progress.steps_after(line) for line in one.lines if line.rank is None]
    assert unnamed == sorted(unnamed, reverse=True)
    assert all(0 <= each <= len(kinds) for each in unnamed)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1))
def test_half_of_the_values_lie_on_each_side_of_the_median(values: list[float]) -> None:
    middle = median(values)
    assert sum(value <= middle for value in values) * 2 >= len(values)
    assert sum(value >= middle for value in values) * 2 >= len(values)
