"""How processes ended: what an exit code says, what it does not, and whose it is."""

from __future__ import annotations

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import findings, of_rank, reading, scene

from logtriage.localize.exits import Exit, decode, describe, gather_exits
from logtriage.model import SourceRole

ROOT = """\
======================================================
train.py FAILED
------------------------------------------------------
Failures:
[1]:
  time      : 2026-01-31_08:15:30
  host      : node-b
  rank      : 5 (local_rank: 1)
  exitcode  : -15 (pid: 2002)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 2002
[2]:
  time      : 2026-01-31_08:15:30
  host      : node-b
  rank      : 6 (local_rank: 2)
  exitcode  : 1 (pid: 2003)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-01-31_08:15:29
  host      : node-b
  rank      : 4 (local_rank: 0)
  exitcode  : -9 (pid: 2001)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 2001
======================================================
"""


@pytest.mark.parametrize(
    ("code", "meant"),
    [
        (0, 0),
        (1, 1),
        (2, 2),
        (127, 127),
        (128, 128),
        (129, -signal.SIGHUP),
        (130, -signal.SIGINT),
        (134, -signal.SIGABRT),
        (135, -signal.SIGBUS),
        (136, -signal.SIGFPE),
        (137, -signal.SIGKILL),
        (139, -signal.SIGSEGV),
        (143, -signal.SIGTERM),
        (241, -signal.SIGTERM),
        (245, -signal.SIGSEGV),
        (247, -signal.SIGKILL),
        (250, -signal.SIGABRT),
        (255, 255),  # -1 seen through eight bits: a plain failure, not SIGHUP
        (-9, -9),
        (-11, -11),
        (512, 512),
    ],
)
def test_a_code_is_read_as_what_it_stands_for(code: int, meant: int) -> None:
    assert decode(code) == meant


@given(st.integers(-(2**40), 2**40))
def test_reading_a_code_twice_changes_nothing(code: int) -> None:
    assert decode(decode(code)) == decode(code)
    assert str(decode(code)) in describe(decode(code))


def test_a_signal_is_described_by_its_name() -> None:
    assert describe(-9) == "SIGKILL (exit code -9)"
    assert describe(1) == "exit code 1"
    assert describe(-99) == "exit code -99"


@pytest.mark.parametrize(
    ("code", "failure_type"),
    [
        (-11, "process.native_crash"),
        (-7, "process.native_crash"),
        (-8, "process.native_crash"),
        (-6, "process.native_crash"),
        (-9, "process.killed"),
        (-1, "process.killed"),
        (-2, "scheduler.cancelled"),
        (-15, None),  # the launcher ends the others this way
        (0, None),
        (1, None),
        (2, None),
        (255, None),
    ],
)
def test_a_code_proves_no_more_than_it_does(code: int, failure_type: str | None) -> None:
    (line,) = reading("a.log", "x\n").lines
    assert Exit(line, code).failure_type == failure_type


def by_rank(text: str) -> dict[int, Exit]:
    found = gather_exits(scene(reading("launcher.log", text, SourceRole.LAUNCHER)))
    return {each.rank: each for each in found if each.rank is not None}


def test_each_entry_of_the_launchers_report_is_an_exit() -> None:
    found = by_rank(ROOT)
    assert {rank: (each.code, each.local_rank, each.pid, each.host) for rank, each in found.items()} == {
        5: (-15, 1, 2002, "node-b"),
        6: (1, 2, 2003, "node-b"),
        4: (-9, 0, 2001, "node-b"),
    }
    assert [rank for rank, each in found.items() if each.claimed_root] == [4]
    said = {rank: each.line.text.split(":")[0].strip() for rank, each in found.items()}
    assert said == {5: "traceback", 6: "exitcode", 4: "traceback"}  # the line that names the signal


@pytest.mark.parametrize("prefix", ["1: ", "[rank1]: ", "2026-01-31 08:15:31,100 - ERROR - "])
def test_the_report_is_read_behind_the_prefixes_of_others(prefix: str) -> None:
    found = by_rank("".join(f"{prefix}{line}\n" for line in ROOT.splitlines()))
    assert {rank: each.code for rank, each in found.items()} == {5: -15, 6: 1, 4: -9}


def test_a_report_that_is_cut_off_gives_what_it_has() -> None:
    assert set(by_rank(ROOT[: ROOT.index("  error_file: <N/A>\n  traceback : Signal 9")])) == {4, 5, 6}


def test_a_line_that_names_a_signal_is_that_signal() -> None:
    line = "  traceback : Signal 9 (SIGKILL) received by PID 2001\n"
    (found,) = gather_exits(scene(reading("launcher.log", line, SourceRole.LAUNCHER)))
    assert (found.code, found.pid) == (-9, 2001)


def test_a_single_line_of_the_agent_is_an_exit() -> None:
    line = (
        "E0131 08:15:29.000000 1990 torch/distributed/elastic/multiprocessing/api.py:882] "
        "failed (exitcode: -11) local_rank: 2 (pid: 2003) of binary: /usr/bin/python\n"
    )
    (found,) = gather_exits(scene(reading("launcher.log", line, SourceRole.LAUNCHER)))
    assert (found.code, found.local_rank, found.pid, found.failure_type) == (
        -11,
        2,
        2003,
        "process.native_crash",
    )


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("srun: error: gpu-3: task 5: Killed", -9),
        ("srun: error: gpu-3: task 5: Segmentation fault (core dumped)", -11),
        ("srun: error: gpu-3: task 5: Exited with exit code 1", 1),
        ("srun: error: gpu-3: task 5: Exited with exit code 137", -9),
        ("    Exit Code:    137", -9),
        ("    Exit Code:    139", -11),
    ],
)
def test_other_launchers_tell_exits_too(line: str, code: int) -> None:
    assert code in {each.code for each in gather_exits(scene(reading("job.out", line + "\n")))}


@pytest.mark.parametrize("name", ["[[40718,1],9]", "[prterun-cn-4-8811@1,9]"])
def test_open_mpi_names_the_rank_that_ended_first_above_its_code(name: str) -> None:
    text = (
        f"prterun detected that one or more processes exited\n\n   Process name: {name}\n   Exit code:    3\n"
    )
    (exit_,) = gather_exits(scene(reading("job.out", text)))
    assert (exit_.rank, exit_.code) == (9, 3)


@pytest.mark.parametrize(
    ("last", "code"),
    [
        ("signal 11 (Segmentation fault).", -11),
        ("signal 9 (Killed).", -9),
        ("signal 4 (Illegal instruction: 4).", -4),
    ],
)
def test_who_ended_on_a_signal_stands_above_it_where_the_launcher_breaks_its_line(
    last: str, code: int
) -> None:
    text = f"prterun noticed that process rank 5 with PID 71022 on node cn-7 exited on\n{last}\n"
    (exit_,) = gather_exits(scene(reading("job.out", text)))
    assert (exit_.rank, exit_.host, exit_.pid, exit_.code) == (5, "cn-7", 71022, code)


def test_a_signal_below_other_words_is_nobodys() -> None:
    text = "Common ends are\nsignal 9 (Killed).\n"
    assert {each.rank for each in gather_exits(scene(reading("job.out", text)))} <= {None}


def test_words_about_other_things_are_no_exits() -> None:
    text = "rank 3 has exit code handling\nexitcode  : not yet\n[1]:\n  rank : 4\nlayers[0]: ok\n"
    assert gather_exits(scene(reading("job.out", text))) == []


def test_the_first_that_was_killed_is_a_candidate_and_those_that_were_closed_are_none() -> None:
    found = findings(
        of_rank(4, "step 1 loss 2.0\n", host="node-b"),
        of_rank(5, "step 1 loss 2.0\n", host="node-b"),
        reading("launcher.log", ROOT, SourceRole.LAUNCHER),
    )
    killed = [each for each in found.candidates if each.failure_type == "process.killed"]
    assert [(each.rank, each.host) for each in killed] == [(4, "node-b")]


@given(
    st.lists(
        st.sampled_from([*ROOT.splitlines(), "", "[0]:", "  exitcode  : 99999999999 (pid: x)"]), max_size=30
    )
)
def test_any_shuffled_report_can_be_read(lines: list[str]) -> None:
    found = gather_exits(scene(reading("launcher.log", "\n".join(lines), SourceRole.LAUNCHER)))
    assert len({each.line.number for each in found}) == len(found)
