"""A batch system's report of a job's end counts as its end, also where it stands above the output."""

from __future__ import annotations

from scenes import findings, reading

from logtriage.diagnose.offline import decide


def report(reason: str, day: int = 3) -> str:
    return (
        "Sender: LSF System <lsfadmin@p9n14>\n"
        f"Subject: Job 88{day}: <tune> in cluster <summer> Exited\n\n"
        f"Started at Tue Jun  {day} 10:00:04 2025\nTerminated at Tue Jun  {day} 22:00:31 2025\n\n"
        f"# LSBATCH: User input\nsh tune.sh\n\n{reason}\n\n"
        "    Max Memory :                                 511870 MB\n\n"
        "The output (if any) follows:\n\n"
    )


def output(first: int = 1) -> str:
    return "".join(f"iter {first + at} | loss 3.{at:02d} | lr 2e-5\n" for at in range(40))


LIMIT = "TERM_RUNLIMIT: job killed after reaching LSF run time limit.\nExited with exit code 140."
MEMORY = "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.\nExited by signal 9."


def test_what_a_report_above_the_output_tells_is_how_the_job_ended() -> None:
    for reason, failure_type in ((LIMIT, "scheduler.time_limit"), (MEMORY, "host.out_of_memory")):
        assert decide(findings(reading("tune.out", report(reason) + output()))).failure_type == failure_type


def test_a_report_above_the_output_tells_that_all_went_well() -> None:
    text = report("Successfully completed.") + output()
    assert decide(findings(reading("tune.out", text))).failure_type == "none.completed"


def test_a_report_above_the_output_of_an_earlier_run_is_past() -> None:
    text = report(MEMORY) + output() + report(LIMIT, 5) + output(20)
    assert decide(findings(reading("tune.out", text))).failure_type == "scheduler.time_limit"
