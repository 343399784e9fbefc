"""A learned rule leaves alone what its own job wrote while it was well, and holds what its line held."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from taught_jobs import steps, text, written

from logtriage import triage
from logtriage.apps.cli import main
from logtriage.memory.figures import beyond
from logtriage.memory.rule_folder import ACTIVE, learned_rules
from logtriage.memory.tried import try_rule
from logtriage.rulebank.bank import pattern_of

DAY = "2026-03-03"


pytestmark = pytest.mark.usefixtures("data_dir")


def plain(*between: str, count: int = 40) -> list[str]:
    """A calm course without times and levels, with further lines between its steps."""
    return [
        part.format(number)
        for number in range(1, count + 1)
        for part in (f"it {number} l {3 - number / 90:.2f}", *between)
    ]


def taught(folder: Path, lines: list[str], failure_type: str = "data.corrupt") -> Path:
    """A job whose last line is taught as the cause."""
    job = written(folder, {"rank0.log": text(lines)})
    assert main(["triage", str(job), "--offline", "--json", "/dev/null", "--quiet"]) == 0
    verdict = triage(job, offline=True).id
    place = f"rank0.log:{len(lines)}"
    assert main(["correct", verdict, "--type", failure_type, "--evidence", place]) == 0
    return job


def named(folder: Path, lines: list[str]) -> str:
    return triage(written(folder, {"rank0.log": text(lines)}), offline=True).verdict.failure_type


def test_calmer_lines_of_the_same_form_are_no_hit(tmp_path: Path, data_dir: Path) -> None:
    told = "{} 04:05:{:02},000 {} shardlet: verification mismatch count {} in gatherer ring"
    calm = [told.format(DAY, second, "INFO", second + 1) for second in range(40)]
    job = taught(tmp_path / "a", [*steps(DAY, 4, 40), *calm, told.format(DAY, 50, "ERROR", 3)])
    (learned,) = learned_rules(data_dir, [ACTIVE])
    assert [each.line for each in try_rule(learned.rule.id, [str(job)])] == [81]
    assert triage(job, offline=True).verdict.evidence[0].line == 81
    again = told.format(DAY, 51, "ERROR", 812)
    assert named(tmp_path / "b", [*steps(DAY, 4, 40), *calm, again]) == "data.corrupt"
    assert named(tmp_path / "c", [*steps(DAY, 4, 40), *calm]) != "data.corrupt"


@pytest.mark.parametrize(
    ("calm", "failing", "again"),
    [
        ("count 1 of ring", "count 30 of ring", "count 7 of ring"),  # above what was routine
        ("margin 90 on ring", "margin 12 on ring", "margin 4 on ring"),  # below it
        ("on ring {}; keeper says accept", "on ring 4; keeper says reject", "on ring 77; keeper says reject"),
        ("on ring {}, sealed=true", "on ring 4, sealed=false", "on ring 77, sealed=false"),
    ],
)
def test_what_was_routine_in_its_own_job_is_told_apart(
    calm: str, failing: str, again: str, tmp_path: Path, data_dir: Path
) -> None:
    words = "shardlet: seal verification of lattice {}"
    course = plain(words.format(calm))
    job = taught(tmp_path / "a", [*course, words.format(failing)])
    (learned,) = learned_rules(data_dir, [ACTIVE])
    assert [each.line for each in try_rule(learned.rule.id, [str(job)])] == [81]
    assert named(tmp_path / "b", [*course, words.format(again)]) == "data.corrupt"
    assert named(tmp_path / "c", course) == "none.running"


def test_where_no_wording_tells_them_apart_nothing_is_learned(
    tmp_path: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "shardlet: seal audit of lattice ring {}; keeper content"
    taught(tmp_path / "a", [*plain(words), words.format(41)])
    assert "what this job wrote while it was well (rank0.log:2 and" in capsys.readouterr().out
    assert learned_rules(data_dir) == []


def test_all_ranks_that_die_alike_are_no_routine(tmp_path: Path, data_dir: Path) -> None:
    dying = [
        "Traceback (most recent call last):",
        '  File "/opt/x/weave.py", line 33, in weave',
        "    raise LoomJammed(4)",
        "brook.LoomJammed: shuttle 4 of loom 'north' is jammed at pick 1877",
    ]
    taught(tmp_path / "a", [*plain(count=30), *dying * 24], "code.config")
    assert [each.state for each in learned_rules(data_dir)] == [ACTIVE]


@pytest.mark.parametrize(
    ("line", "hits", "misses"),
    [
        (
            "WARN tesserad: lattice keepers 3 of 3 refused to sign tessera",
            ["ERROR tesserad: lattice keepers 8 of 8 refused to sign tessera"],
            [
                "WARN tesserad: lattice keepers 1 of 3 refused to sign tessera",
                "INFO tesserad: lattice keepers 3 of 3 refused to sign tessera",
            ],
        ),
        (
            "ERROR quorumd: write retry 5/5 on lattice extent, giving up",
            ["ERROR quorumd: write retry 3/3 on lattice extent, giving up"],
            ["ERROR quorumd: write retry 1/5 on lattice extent, giving up"],
        ),
        (
            "ERROR quorumd: 1/3 lattice replicas acked extent, dissolving",
            ["CRITICAL quorumd: 2/5 lattice replicas acked extent, dissolving"],
            ["ERROR quorumd: 5/5 lattice replicas acked extent, dissolving"],
        ),
        (
            "ERROR 3 of 3 lattice keepers refused to sign tessera",
            ["ERROR 8 of 8 lattice keepers refused to sign tessera"],
            [
                "ERROR 1 of 3 lattice keepers refused to sign tessera",
                "ERROR 13 of 3 lattice keepers refused to sign tessera",
            ],
        ),
        (
            "ERROR 4 corrupt stripelets of the lattice in ring amber",
            ["ERROR 77 corrupt stripelets of the lattice in ring amber"],
            ["ERROR 0 corrupt stripelets of the lattice in ring amber"],
        ),
        (
            "ERROR latticed: tessera read stopped at 96 of 4096 bytes",
            ["ERROR latticed: tessera read stopped at 7 of 8192 bytes"],
            ["ERROR latticed: tessera read stopped at 4096 of 4096 bytes"],
        ),
        (
            "ERROR quorumd: 0 of 8 lattice keepers answered, dissolving",
            ["ERROR quorumd: 0 of 64 lattice keepers answered, dissolving"],
            ["ERROR quorumd: 8 of 8 lattice keepers answered, dissolving"],
        ),
        (
            "ERROR extentd: lattice pool p3 has 0 extents free, dissolving",
            ["ERROR extentd: lattice pool p9 has 0 extents free, dissolving"],
            ["ERROR extentd: lattice pool p3 has 12 extents free, dissolving"],
        ),
        (
            "ERROR extentd: lattice occupancy 100% in pool p3, dissolving",
            ["ERROR extentd: lattice occupancy 100% in pool p9, dissolving"],
            ["ERROR extentd: lattice occupancy 41% in pool p3, dissolving"],
        ),
        (
            "ERROR tesserad: lattice keeper lease=true relinquished of ring 4",
            ["ERROR tesserad: lattice keeper lease=true relinquished of ring 9"],
            [
                "ERROR tesserad: lattice keeper lease=false relinquished of ring 4",
                "DEBUG tesserad: no 'lattice keeper lease=true relinquished of ring 4' seen",
            ],
        ),
    ],
)
def test_level_ratio_and_state_are_held(
    line: str, hits: list[str], misses: list[str], tmp_path: Path, data_dir: Path
) -> None:
    taught(tmp_path / "a", [*steps(DAY, 4, 30), f"{DAY} 04:05:00,000 {line}"], "storage.object_store")
    (learned,) = learned_rules(data_dir, [ACTIVE])

    def is_hit(words: str) -> bool:
        job = written(tmp_path / "b", {"rank0.log": text(f"{DAY} 04:05:00,000 {words}")})
        return any(try_rule(learned.rule.id, [str(job)]))

    assert all(map(is_hit, [line, *hits]))
    assert not any(map(is_hit, misses))
    for number, each in enumerate(misses):
        lines = [*steps(DAY, 4, 30), f"{DAY} 04:00:31,000 {each}"]
        rules = triage(written(tmp_path / f"c{number}", {"rank0.log": text(lines)}), offline=True).verdict
        assert all(cited.rule != learned.rule.id for cited in rules.evidence)


@pytest.mark.parametrize("failure_type", ["numerics.nan", "scheduler.preempted", "data.corrupt"])
def test_a_hit_that_its_job_survived_is_no_failure(failure_type: str, tmp_path: Path, data_dir: Path) -> None:
    words = "ERROR gradsieve: nan {} in tensor lattice, batch skipped"
    end = f"{DAY} 04:01:00,000 {words.format(7)}"
    job = taught(tmp_path / "a", [*steps(DAY, 4, 30), end], failure_type)
    assert triage(job, offline=True).verdict.failure_type == failure_type
    course = [*steps(DAY, 4, 30), f"{DAY} 04:01:00,000 {words.format(5)}", *steps(DAY, 5, 40, first=31)]
    assert named(tmp_path / "b", course) == "none.running"
    done = f"{DAY} 05:10:00,000 INFO training finished"
    assert named(tmp_path / "c", [*course, done]) == "none.completed"
    soon = [*steps(DAY, 4, 30), end, f"{DAY} 04:01:09,000 INFO training finished"]
    assert named(tmp_path / "d", soon) == "none.completed"


def test_what_its_own_job_outlived_is_a_failure_where_it_is_outlived_again(
    tmp_path: Path, data_dir: Path
) -> None:
    words = "WARNING gradsieve: tensor lattice lost its basin at norm {}"
    course = [*steps(DAY, 4, 30), f"{DAY} 04:00:31,000 {words}", *steps(DAY, 5, 40, first=31)]
    job = written(tmp_path / "a", {"rank0.log": text(course).format(71)})
    assert main(["triage", str(job), "--offline", "--json", "/dev/null", "--quiet"]) == 0
    verdict = triage(job, offline=True).id
    more = ("--type", "numerics.divergence", "--evidence", "rank0.log:31")
    assert main(["correct", verdict, *more]) == 0
    assert named(tmp_path / "b", text(course).format(9).splitlines()) == "numerics.divergence"


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 10**6), min_size=1, max_size=5), st.integers(0, 10**6))
def test_a_bound_lies_between_the_own_count_and_all_others(own: int, others: list[int], count: int) -> None:
    pattern = beyond(own, others)
    if pattern is None:
        assert min(others) <= own <= max(others)
        return
    form = pattern_of(pattern)
    is_beyond = count < min(others) if own < min(others) else count > max(others)
    assert (form.fullmatch(str(count)) is not None) is is_beyond
    assert form.fullmatch(str(own)) is not None
