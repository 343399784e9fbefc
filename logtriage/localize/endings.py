"""By which line a job is done, if one tells so, and which process ended badly in spite of it.

The program or its scheduler says it, or all that was to be done is.
"""

from __future__ import annotations

from collections.abc import Sequence

from logtriage.localize.bars import drawn_anew
from logtriage.localize.epochs import after_last_epoch, is_earlier_epoch
from logtriage.localize.exits import Exit
from logtriage.localize.left_in_order import left_in_order
from logtriage.localize.own_codes import left_by_itself
from logtriage.localize.progress import Progress
from logtriage.localize.reports_on_top import is_reported_on_top
from logtriage.localize.scene import Scene, Sign
from logtriage.localize.took_leave import took_leave
from logtriage.model import Level, Line, SourceRole
from logtriage.regex import regex
from logtriage.rulebank.matcher import without_digits


def end_of(scene: Scene, progress: Progress) -> Line | None:
    """The line by which the job is done: it says so, or all that was to be done is."""
    said = next(iter(endings(scene, progress)), None)
    done = said or _at_its_goal(scene, progress) or after_last_epoch(scene, progress) or _all_pods_done(scene)
    return done or left_in_order(scene, progress) or took_leave(scene, progress)


# A row of `kubectl get pods`, with or without the column of namespaces.
_POD_ROW = regex(
    r"^(?:[a-z0-9][\w-]{0,62}\s+)?(?P<pod>[a-z0-9][\w.-]{1,252})\s+\d{1,3}/\d{1,3}"
    r"\s+(?P<status>[A-Z][\w:/]{2,40})\s+(?P<restarts>\d{1,5})"
)


def _all_pods_done(scene: Scene) -> Line | None:
    """The last row of a list of pods that all ended with status 0 at once; of a pod the last row counts."""
    rows: dict[str, tuple[bool, Line]] = {}
    for reading in scene.readings:
        if reading.source.role is SourceRole.KUBERNETES:
            for line in reading.lines:
                if (row := _POD_ROW.match(line.text[:600])) is not None:
                    well = row["status"] in ("Completed", "Succeeded") and int(row["restarts"]) == 0
                    rows[row["pod"]] = (well, line)
    done = [line for well, line in rows.values() if well]
    return done[-1] if done and len(done) == len(rows) else None


def endings(scene: Scene, progress: Progress) -> list[Line]:
    """Where the program, or the scheduler, says that the job is done, and no further step came; latest first.

    Where no step was ever reported, `done` right below an error only says that the program left.
    """
    of_pieces = _ends_of_pieces(progress)
    said = [
        sign for sign in reversed(progress.completed) if (sign.line.file, sign.line.number) not in of_pieces
    ]
    said = [
        sign
        for sign in said
        if is_reported_on_top(sign.line, scene)
        or (progress.new_steps_after(sign.line) < 2 and not drawn_anew(scene, sign.line))
    ]
    return [
        sign.line
        for sign in said
        if progress.traces
        or sign.source.role is SourceRole.SCHEDULER
        or (says_status_zero(sign.line) and not _raised_above(scene, sign.line))
        or not (_failed_above(scene, sign.line) or _raised_above(scene, sign.line))
    ]


PIECES, APART = 4, 600.0  # files of processes, and seconds between their ends: ranks of one job end together


def _ends_of_pieces(progress: Progress) -> frozenset[tuple[str, int]]:
    """Where processes that were dealt pieces of work say, one after the other, that they are done.

    Who dealt them out, and tells of the steps, goes on in a file of its own.
    """
    stepped = {trace.file for trace in progress.traces}
    kinds: dict[str, dict[str, Sign]] = {}
    for sign in progress.completed if stepped else ():
        if sign.line.file not in stepped and sign.source.role is not SourceRole.SCHEDULER:
            form = f"{without_digits(sign.line.file)} {without_digits(sign.line.message)[:12]}"
            kinds.setdefault(form, {})[sign.line.file] = sign
    found: set[tuple[str, int]] = set()
    for of_files in kinds.values():
        times = [sign.line.time for sign in of_files.values() if sign.line.time is not None]
        if len(times) >= PIECES and max(times) - min(times) > APART:
            found |= {(sign.line.file, sign.line.number) for sign in of_files.values()}
    return frozenset(found)


_STATUS_ZERO = regex(
    r"(?i:\b(?:exit(?:ed)?|return(?:ed)?|ended|completed)\b[^\n]{0,12}\b(?:code|status)\b[^\n]{0,24}[ :=]0\b)"
    r"|\bTrial status: \d+ TERMINATED\s*$"  # every trial of a sweep came to its end
    r"|^Job 'raysubmit_\w+' succeeded\s*$"  # the entry point's status was 0
)


def says_status_zero(line: Line) -> bool:
    """Whether a line reports the status 0 of the program as a whole."""
    return _STATUS_ZERO.search(line.text[:1000]) is not None


BEHIND_RAISED = 3  # lines


def _raised_above(scene: Scene, done: Line) -> bool:
    """Whether a traceback ends right above: the status below it is that of what its output was piped to."""
    return any(
        0 < done.number - each.at.number <= BEHIND_RAISED
        for record in scene.records.get(done.file, ())
        for each in record.raised[-1:]
    )


LINES_ABOVE = 10


def _failed_above(scene: Scene, done: Line) -> bool:
    return any(
        line.level in (Level.ERROR, Level.CRITICAL) and 0 < done.number - line.number <= LINES_ABOVE
        for line in scene.lines(done.file)
    )


BEYOND_GOAL = 2  # steps: counted from 1, with one more at the end


def _at_its_goal(scene: Scene, progress: Progress) -> Line | None:
    """The last step, where all who report steps have come to the one total that all know."""
    goals = {trace.goal for trace in progress.traces}
    if len(goals) != 1 or None in goals or "%|" in progress.traces[0].last.line.text:
        return None  # a bar that is full can be one epoch or a download
    if any(is_earlier_epoch(trace.last, scene) for trace in progress.traces):
        return None
    # Far beyond it, one counts something else than the other, such as updates and the steps within one.
    at_end = all(0 <= trace.last.step + 1 - (trace.goal or 0) <= BEYOND_GOAL for trace in progress.traces)
    return progress.traces[0].last.line if at_end else None


def ended_badly(
    scene: Scene, progress: Progress, exits: Sequence[Exit], done: Line | None
) -> Exit | None:
    """An exit with a code after the last step (or of unknown time) of a job that ended with `done`."""
    last = progress.last_time
    past = earlier_containers(scene) if done is not None else frozenset()
    for each in exits:
        if (each.line.file, each.line.number) in past:
            continue
        if done is not None and steps_between(progress, each.line, done) >= STEPS_SINCE:
            continue  # a restart brought it to its end
        if _STARTED_AGAIN.search(each.line.text[:1000]) and _steps_below(progress, each.line):
            continue  # who saw it end says that he starts it again, and did
        if done is not None and each.line.number < done.number and says_status_zero(done):
            continue  # the parent of all says, after that, that it went well
        after = done is not None and each.line.file == done.file and each.line.number > done.number
        if after and each.code in (-9, -15):
            continue  # what the end of a finished program takes down with it
        if after and done is not None and left_by_itself(scene, done, each.line, each.code):
            continue  # whose parent takes the code that it chose for a failure
        if each.code != 0 and (last is None or each.line.time is None or each.line.time >= last - 1.0):
            return each
    return None


_STARTED_AGAIN = regex(
    r"(?i)\b(?:re-?start(?:ing|ed)?|start(?:ing|ed)? (?:it |over )?again|re-?launch(?:ing|ed)?"
    r"|respawn(?:ing|ed)?|re-?queue(?:ing|d)?|requeuing|will be (?:restarted|retried|relaunched))\b"
)


def _steps_below(progress: Progress, line: Line) -> bool:
    return any(
        point.line.number > line.number
        for trace in progress.traces
        if trace.file == line.file
        for point in trace.points
    )


STEPS_SINCE = 20


def taken_up(progress: Progress, earlier: Line, later: Line, least: int = 1) -> bool:
    """Whether between two lines of one file a run resumed from a checkpoint and made `least` steps."""
    return earlier.file == later.file and any(
        sign.line.file == earlier.file
        and earlier.number < sign.line.number < later.number
        and steps_between(progress, sign.line, later) >= least
        for sign in progress.resumed
    )


def steps_between(progress: Progress, earlier: Line, later: Line) -> int:
    """How many steps stand between two lines of one file; 0 where they are of two."""
    return sum(
        point.line.file == earlier.file == later.file and earlier.number < point.line.number < later.number
        for trace in progress.traces
        for point in trace.points
    )


_STATE = regex(r"^\s*(?:(?P<last>Last )?State:|(?P<other>[A-Z][\w ]{2,30}:\s*$|Ready:))")


def earlier_containers(scene: Scene) -> frozenset[tuple[str, int]]:
    """File and number of the lines by which kubectl tells of a container before the present one."""
    found = set()
    for reading in scene.readings:
        if reading.source.role is not SourceRole.KUBERNETES:
            continue
        inside = False
        for line in reading.lines:
            if (state := _STATE.match(line.text[:200])) is not None:
                inside = state["last"] is not None
            elif inside:
                found.add((line.file, line.number))
    return frozenset(found)
