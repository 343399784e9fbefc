"""A job that was done and whose processes never ended: stacks show them on their way out."""

from __future__ import annotations

from logtriage.diagnose.decision import Decision
from logtriage.localize.outcome import Outcome
from logtriage.localize.scene import Scene
from logtriage.model import Culprits, Evidence, Line
from logtriage.regex import regex

CONFIDENCE = 0.7
# Frames in which a Python process takes its leave, as py-spy and faulthandler print them: the group of ranks
# is dissolved, threads that are no daemons are waited for, exit handlers run.
_LEAVING = regex(
    r"^\s+(?:_?(?:destroy|abort|shutdown)_process_group|_exit_function|_python_exit|_run_exitfuncs|atexit\w*)"
    r" \([^()\n]{3,200}:\d{1,6}\)"
    r"|^\s+_shutdown \([^()\n]{0,200}\bthreading\.py:\d{1,6}\)"
    r"|^\s+File \"[^\"\n]{3,200}\", line \d{1,6},? in (?:_?(?:destroy|abort|shutdown)_process_group"
    r"|_exit_function|_python_exit|_run_exitfuncs)\s*$"
)
_OF_A_DUMP = regex(r"^\s*(?:Current thread|Thread) (?:0x)?[0-9a-f]{1,16} \(")
MOST_CITED = 2


def never_left(scene: Scene, outcome: Outcome) -> Decision | None:
    """The hang of a job that said that it is done, where stacks beside its log show it leaving for ever."""
    done = outcome.line
    if done is None:
        return None
    found: list[Line] = []
    for reading in scene.readings:
        is_dump = False
        for line in reading.lines:
            if "hread " in line.text[:80] and _OF_A_DUMP.match(line.text[:80]) is not None:
                is_dump = reading.source.file != done.file or line.number > done.number
            elif is_dump and _LEAVING.match(line.text[:400]) is not None:
                found.append(line)
                is_dump = False  # the innermost of a thread says enough
    if not found:
        return None
    cited = tuple(Evidence(line, "where the process stood behind its end") for line in found[:MOST_CITED])
    return Decision(
        "hang.silent",
        "The job was done, and its processes never ended",
        CONFIDENCE,
        Culprits(),
        (*cited, Evidence(done, "the program says that it is done")),
        "localisation",
        "stacks show processes on their way out that did not get there",
        "failed",
        collect_next=("Stacks of all ranks with native frames: py-spy dump --native --pid PID.",),
    )
