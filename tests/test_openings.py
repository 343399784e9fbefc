"""Several runs that wrote one file, one behind the other, are told apart; parts of one run are not."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from test_earlier_runs import KEY, MORNING, OOM, a_run, verdict

FULL = "OSError: [Errno 28] No space left on device"
TYPES = {OOM: "cuda.out_of_memory", KEY: "code.key", FULL: "host.disk_full"}


def appended(folder: Path, *runs: tuple[str | None, int], hours: float = 1.0, between: str = "") -> None:
    """A file that runs were appended to: of each the error and the number of its steps."""
    texts = []
    for number, (error, steps) in enumerate(runs):
        a_run(folder / "one", MORNING + timedelta(hours=hours * number), error, steps)
        texts.append((folder / "one").read_text())
    (folder / "one").unlink()
    (folder / "train.log").write_text(between.join(texts))


@pytest.mark.parametrize("steps", [(40, 40), (40, 2), (2, 40), (2, 2)])
@pytest.mark.parametrize(("first", "second"), [(OOM, KEY), (KEY, OOM), (FULL, KEY), (FULL, OOM), (OOM, FULL)])
def test_the_last_of_the_runs_in_a_file_counts(
    tmp_path: Path, first: str, second: str, steps: tuple[int, int]
) -> None:
    appended(tmp_path, (first, steps[0]), (second, steps[1]))
    found = verdict(tmp_path)
    assert found.verdict.failure_type == TYPES[second]
    assert all(each.line > steps[0] + 6 for each in found.verdict.evidence)
    assert any(f"{steps[0] + 6} lines of an earlier run" in note for note in found.mining.left_out)


def test_of_many_runs_the_last_counts_and_its_lines_keep_their_numbers(tmp_path: Path) -> None:
    appended(tmp_path, (OOM, 9), (FULL, 4), (OOM, 7), (KEY, 5))
    found = verdict(tmp_path).verdict
    lines = (tmp_path / "train.log").read_text().splitlines()
    assert found.failure_type == "code.key"
    assert KEY in lines[found.evidence[0].line - 1]


def test_a_run_that_goes_well_behind_one_that_failed_has_not_failed(tmp_path: Path) -> None:
    appended(tmp_path, (FULL, 30), (None, 30))
    assert verdict(tmp_path).verdict.failure_type == "none.running"


def test_files_of_one_run_that_were_put_together_are_one_run(tmp_path: Path) -> None:
    appended(tmp_path, (OOM, 40), (None, 38), hours=0.0)
    assert not any("earlier run" in note for note in verdict(tmp_path).mining.left_out)


def test_a_start_that_follows_no_end_begins_no_run(tmp_path: Path) -> None:
    appended(tmp_path, (None, 20), (None, 20), (KEY, 20))
    assert not any("earlier run" in note for note in verdict(tmp_path).mining.left_out)


def test_a_restart_of_which_the_log_tells_is_an_attempt(tmp_path: Path) -> None:
    told = (
        "[2026-03-04 09:59:00,000] torch.distributed.elastic.agent.server.api: [INFO] [default] "
        "Worker group FAILED. 3/3 attempts left; will restart worker group\n"
    )
    appended(tmp_path, (OOM, 20), (KEY, 20), between=told)
    found = verdict(tmp_path)
    assert not any("earlier run" in note for note in found.mining.left_out)
    assert found.verdict.failure_type == "code.key"


def test_blank_lines_above_and_below_begin_no_run(tmp_path: Path) -> None:
    appended(tmp_path, (KEY, 20))
    text = (tmp_path / "train.log").read_text()
    (tmp_path / "train.log").write_text(f"\n{text}\nThat was all.\n")
    assert verdict(tmp_path).verdict.failure_type == "code.key"


def test_a_complaint_that_the_file_begins_with_begins_no_run(tmp_path: Path) -> None:
    lines = [f"2026-01-31 08:00:0{n} WARNING the clock of the fan controller is off" for n in (1, 2, 3, 9)]
    lines[3:3] = [
        "Traceback (most recent call last):",
        '  File "/app/a.py", line 3, in main',
        "KeyError: 'x'",
    ]
    (tmp_path / "train.err").write_text("\n".join(lines) + "\nbye\n")
    assert not any("earlier run" in note for note in verdict(tmp_path).mining.left_out)


def test_a_ruler_below_a_box_begins_no_run(tmp_path: Path) -> None:
    (tmp_path / "job.o771").write_text(
        f"Batch job began at {MORNING:%a %b %d %H:%M:%S} UTC {MORNING:%Y}\n"
        f"{'-' * 60}\nmpirun was unable to launch the specified application as it could not access\n"
        f"or execute an executable: /opt/env/bin/python\n{'-' * 60}\n2 total processes failed to start\n"
    )
    found = verdict(tmp_path)
    assert found.verdict.failure_type == "scheduler.launch" and not any(
        "earlier" in x for x in found.mining.left_out
    )
