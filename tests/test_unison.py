"""Where all ranks did alike nobody is odd, and the verdict says so; where ranks lack it is less sure."""

from __future__ import annotations

from scenes import clock, findings, of_rank, reading, steps

from logtriage.diagnose.offline import decide
from logtriage.intake.reading import Reading
from logtriage.model import SourceRole

MONITOR = reading(
    "monitor.log",
    "".join(f"{clock(60.0 * beat)} watch: nodes are up\n" for beat in range(60)),
    SourceRole.MERGED,
)


def hang(*texts: str) -> tuple[str, str]:
    decision = decide(findings(*(of_rank(rank, text) for rank, text in enumerate(texts)), MONITOR))
    return decision.failure_type, decision.why


def test_a_hang_in_which_all_ranks_stopped_together_has_no_odd_one() -> None:
    kind, why = hang(*[steps(40)] * 4)
    assert kind == "hang.silent"
    assert "no rank of the 4 that tell stands out: all came to step 40" in why


def test_ranks_that_tell_of_few_of_their_steps_are_not_behind() -> None:
    rarely = f"{clock(4.0)} INFO step 3 of 99\n{clock(78.5)} INFO queue is calm\n"
    kind, why = hang(*[steps(40)] * 3, rarely)
    assert kind == "hang.silent" and "all came to step 40" in why


def test_where_one_rank_stopped_before_the_others_nothing_is_said_of_all() -> None:
    for odd in (steps(30), steps(30) + f"{clock(78.5)} INFO queue is calm\n"):
        kind, why = hang(*[steps(40)] * 3, odd)
        assert kind == "hang.silent" and "stands out" not in why


def timed(rank: int, work: float, wait: float) -> Reading:
    told = "".join(
        f"{clock(2.0 * step)} INFO step {step}/40 loss 2.1 compute {work + step % 3:.1f} comm {wait:.1f}\n"
        for step in range(1, 41)
    )
    return of_rank(rank, told + f"{clock(81)} INFO training finished after 40 steps\n")


def test_an_end_that_ranks_waited_for_one_that_is_not_seen_is_less_certain() -> None:
    peers = [timed(rank, 50.0, 900.0) for rank in (0, 1, 3)]
    whole = decide(findings(*(timed(rank, 900.0, 50.0) for rank in range(4))))
    part = decide(findings(*peers))
    assert whole.failure_type == part.failure_type == "none.completed"
    assert part.confidence < 0.8 < whole.confidence
    assert decide(findings(*(timed(rank, 900.0, 50.0) for rank in (0, 1, 3)))).confidence > 0.8
