"""How the job stood when its logs end: finished, in the middle of steps, or silent for too long."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from logtriage.localize.at_work import at_work, still_there, went_on
from logtriage.localize.bars import drawn_anew, frozen_bar, frozen_before_steps, unfinished_bars
from logtriage.localize.dealt import dealt
from logtriage.localize.drawn_clocks import stale_bars
from logtriage.localize.empty_gpus import are_empty
from logtriage.localize.epochs import after_last_epoch, is_earlier_epoch
from logtriage.localize.exits import Exit, describe
from logtriage.localize.frozen import frozen
from logtriage.localize.habits import NO_KINDS, Kinds
from logtriage.localize.half_joined import half_joined
from logtriage.localize.health_checks import only_checked
from logtriage.localize.held_requests import held_requests
from logtriage.localize.last_seen import last_seen
from logtriage.localize.left_in_order import left_in_order
from logtriage.localize.never_began import never_began
from logtriage.localize.one_missing import one_missing
from logtriage.localize.onlookers import standing
from logtriage.localize.orderly_end import orderly_end
from logtriage.localize.own_codes import left_by_itself
from logtriage.localize.progress import Progress, StepPoint, Trace, usual_interval
from logtriage.localize.reports_on_top import is_reported_on_top
from logtriage.localize.scene import Scene, Sign
from logtriage.localize.took_leave import took_leave
from logtriage.localize.unanswered import unanswered
from logtriage.localize.watchers import idle_since_start, standing_by_notes
from logtriage.model import Level, Line, SourceRole
from logtriage.regex import regex
from logtriage.rulebank.matcher import without_digits

# A pause is a hang when it is far longer than the job's usual time between steps and than a save or an
# evaluation takes. Unicron (OSDI'24 poster) calls 3 average iterations a hang; logs print every n-th only.
HANG_SECONDS = 45.0
HANG_INTERVALS = 12.0
BUSY_HANG_SECONDS = 10.0
BUSY_HANG_INTERVALS = 100.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """`kind`: completed | running | hang | unclear. `line` shows it; `silence` is in seconds."""

    kind: str
    line: Line | None
    silence: float = 0.0
    why: str = ""
    seen: Line | None = None  # what shows it beside the job's own lines
    late: tuple[Line, ...] = ()  # of those who stand still where others went on …
    hosts: tuple[str, ...] = ()  # … and their machines, where lines tell these alone
    ranks: tuple[int, ...] = ()  # of those who never said what all others did


def judge(scene: Scene, progress: Progress, exits: Sequence[Exit] = (), kinds: Kinds = NO_KINDS) -> Outcome:
    """The outcome by progress and exits.

    A process that ended badly after the last step leaves no healthy outcome, whatever the steps say.
    """
    bad = _ended_badly(scene, progress, exits)
    if bad is not None:
        return Outcome("unclear", bad.line, why=f"a process ended with {describe(bad.code)}")
    finished = _end(scene, progress)
    if finished is not None:
        if (seen := went_on(scene, finished)) is not None:
            return Outcome("running", seen.line, why=seen.why, seen=seen.line)
        if (seen := still_there(scene, finished)) is not None:
            return Outcome("hang", finished, why=seen.why, seen=seen.line)
        return Outcome("completed", finished, why="the program says that it is done")
    last = progress.last_step
    held = held_requests(scene)
    if held is not None and not _is_later(last, held.since):
        why = f"an engine held {held.requests} requests for {held.seconds:.0f} s and generated nothing"
        return Outcome("hang", last.line if last is not None else held.since, held.seconds, why, held.last)
    if last is None:
        if (seen := only_checked(scene)) is not None:
            return Outcome("hang", None, why=seen.why, seen=seen.line)
        if (still := never_began(scene) or idle_since_start(scene)) is not None:
            return Outcome("hang", still.last, why=still.why, seen=still.seen)
        if (half := half_joined(scene)) is not None:
            told = "it never joined the communicator that its peers joined, and was seen alive"
            return Outcome("hang", half.last, why=told, seen=half.seen, late=half.begun)
        if (gone := one_missing(scene)) is not None:
            who, where = gone.ranks, gone.hosts
            return Outcome("hang", gone.last, why=gone.why, seen=gone.seen, hosts=where, ranks=who)
        if (asked := unanswered(scene)) is not None:
            told = f"it asked a question, and for {asked.seconds:.0f} s nobody answered"
            return Outcome("hang", asked.last, asked.seconds, told, asked.asked)
        if (bar := frozen_before_steps(scene)) is not None:
            told = f"before any step, a bar was drawn for {bar[1]:.0f} s and did not move"
            return Outcome("hang", bar[0], bar[1], told)
        if (seen := at_work(scene)) is not None:
            return Outcome("running", seen.line, why=seen.why, seen=seen.line)
        for drawn in unfinished_bars(scene):
            if (seen := standing(scene, drawn)) is not None:
                return Outcome("hang", drawn, why=seen.why, seen=seen.line)
        return Outcome("unclear", None, why="no step was ever reported")
    pieces = dealt(scene, last.line)
    newest = last.line if pieces is None else pieces.ended
    if (silence := _watched_silence(scene, newest)) is not None:
        return Outcome("hang", newest, silence, f"no step while a watcher looked on for {silence:.0f} s")
    if (silence := frozen_bar(scene, newest)) is not None:
        return Outcome("hang", newest, silence, f"the bar was drawn for {silence:.0f} s and did not move")
    seen_last = last_seen(scene, newest)
    if newest.time is not None and seen_last is not None:
        silence = seen_last - newest.time
        usual = usual_interval(progress.traces) if pieces is None else pieces.usual
        still_talking = _lines_after(scene, newest) >= 3
        patience = max(HANG_SECONDS, HANG_INTERVALS * usual)
        if still_talking:  # heartbeats and monitors go on without a step: shorter silence is enough
            patience = min(patience, max(BUSY_HANG_SECONDS, BUSY_HANG_INTERVALS * usual))
        if _beats_alone(scene, newest, progress.traces, silence):
            patience = 0.0
        if usual == 0 and silence > FIRST_STEP_SECONDS and _stands_at_its_first_bar(scene, newest):
            told = f"the bar was drawn at 0, and nothing but polls came for {silence:.0f} s"
            return Outcome("hang", newest, silence, told)
        if usual > 0 and silence > patience:
            told = f"no step for {silence:.0f} s where one took about {usual:.1f} s"
            held_up = pieces.open if pieces is not None else {}
            late, hosts = tuple(held_up.values()), tuple(held_up)
            return Outcome("hang", newest, silence, told, late=late, hosts=hosts)
    seen = standing(scene, newest) or frozen(scene, newest, progress.traces)
    seen = seen or standing_by_notes(scene, newest, progress.traces)
    if seen is None and (stale := stale_bars(scene, progress.traces)) is not None:
        newest, seen = stale
    if seen is not None and are_empty(scene, seen.line.file):
        return Outcome("unclear", newest, why="nothing was on its GPUs any more when somebody looked")
    if seen is not None:
        return Outcome("hang", newest, why=seen.why, seen=seen.line)
    if (noted := orderly_end(scene, kinds, [trace.last.line for trace in progress.traces])) is not None:
        return Outcome("completed", noted, why="who reported the steps took leave, and its starter notes a 0")
    return Outcome("running", newest, why="the log ends among regular steps")


def _is_later(step: StepPoint | None, line: Line) -> bool:
    """Whether a step was made after a line, as far as times tell."""
    if step is None or step.line.time is None or line.time is None:
        return step is not None
    return step.line.time > line.time


def _end(scene: Scene, progress: Progress) -> Line | None:
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


def _ended_badly(scene: Scene, progress: Progress, exits: Sequence[Exit]) -> Exit | None:
    """An exit with a code after the last step (or of unknown time)."""
    last = progress.last_time
    done = _end(scene, progress)
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


def _lines_after(scene: Scene, last: Line) -> int:
    """Dated lines of the job's own output that came later than its last step."""
    return sum(
        line.time is not None and last.time is not None and line.time > last.time
        for reading in scene.readings
        if reading.source.role in (SourceRole.WORKER, SourceRole.MERGED)
        for line in reading.lines
    )


_SECONDS_A_STEP = regex(r"[ ,](?P<value>\d{1,4}(?:\.\d+)?)s/it\b")
WATCHED_LINES = 4


def _watched_silence(scene: Scene, last: Line) -> float | None:
    """For how long a file whose steps are bars without times goes on with dated lines of one shape alone."""
    if last.time is not None or (told := _SECONDS_A_STEP.search(last.text[:400])) is None:
        return None
    since = [line for line in scene.lines(last.file) if line.number > last.number and line.text.strip()]
    if len(since) < WATCHED_LINES or any(line.time is None for line in since):
        return None
    if len(set(map(_shape, since))) != 1:
        return None
    silence = (since[-1].time or 0.0) - (since[0].time or 0.0)
    intervals = HANG_INTERVALS if len(since) >= BEATS else BUSY_HANG_INTERVALS
    return silence if silence > max(ALONE_SECONDS, intervals * float(told["value"])) else None


def _shape(line: Line) -> str:
    """The first words of a message, without its numbers."""
    return re.sub(r"[\W\d]+", " ", line.message)[:60]


_BAR_AT_ZERO = regex(r"(?<!\d)0/\d{1,9} \[0?0:00<\?")
FIRST_STEP_SECONDS = 3600.0  # for which a compilation may hold the first step up
OTHERS = 10  # of so many lines one may be of another kind


def _stands_at_its_first_bar(scene: Scene, last: Line) -> bool:
    """Whether a bar that was drawn before the first step is followed by lines of one kind, and no second."""
    if _BAR_AT_ZERO.search(last.text[:600]) is None:
        return False
    since = [line for line in scene.lines(last.file) if line.number > last.number and line.text.strip()]
    kinds = Counter(map(_shape, since))
    return len(since) >= BEATS and kinds.most_common(1)[0][1] * OTHERS >= len(since) * (OTHERS - 1)


BEATS = 20
LONGEST_PAUSES = 3.0  # Unicron's factor, taken of the longest interval instead of the average
FEW_STEPS, LONGEST_OF_FEW = 6, 6.0  # of so few steps, the next one may well take longer than any
ALONE_SECONDS = 1800.0  # a save or an evaluation can take so long beside polls


def _beats_alone(scene: Scene, last: Line, traces: Sequence[Trace], silence: float) -> bool:
    """Whether all that the file of the last step writes since is one line again and again (polls, metrics),
    for far longer than any step took.
    """
    trace = next((each for each in traces if each.last.line == last), None)
    if trace is None:
        return False
    pauses = LONGEST_PAUSES if len(trace.points) >= FEW_STEPS else LONGEST_OF_FEW
    times = [point.line.time for point in trace.points if point.line.time is not None]
    longest = max((later - earlier for earlier, later in pairwise(times)), default=0.0)
    if longest <= 0 or silence < max(ALONE_SECONDS, pauses * longest):
        return False
    since = [
        line
        for line in scene.lines(last.file)
        if line.time is not None and last.time is not None and line.time > last.time + silence / 4
    ]
    return len(since) >= BEATS and len(set(map(_shape, since))) == 1
