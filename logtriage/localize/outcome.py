"""How the job stood when its logs end: finished, in the middle of steps, or silent for too long."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from logtriage.localize.at_work import at_work, still_there, went_on
from logtriage.localize.bars import frozen_bar, frozen_before_steps, unfinished_bars
from logtriage.localize.dealt import dealt
from logtriage.localize.drawn_clocks import stale_bars
from logtriage.localize.empty_gpus import are_empty
from logtriage.localize.endings import end_of, ended_badly
from logtriage.localize.exits import Exit, describe
from logtriage.localize.frozen import frozen
from logtriage.localize.habits import NO_KINDS, Kinds
from logtriage.localize.half_joined import half_joined
from logtriage.localize.health_checks import only_checked
from logtriage.localize.held_requests import held_requests
from logtriage.localize.last_seen import last_seen
from logtriage.localize.never_began import never_began
from logtriage.localize.one_missing import one_missing
from logtriage.localize.onlookers import standing
from logtriage.localize.orderly_end import orderly_end
from logtriage.localize.progress import Progress, StepPoint, Trace, usual_interval
from logtriage.localize.scene import Scene
from logtriage.localize.unanswered import unanswered
from logtriage.localize.watchers import idle_since_start, standing_by_notes
from logtriage.model import Line, SourceRole
from logtriage.regex import regex

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
    finished = end_of(scene, progress)
    bad = ended_badly(scene, progress, exits, finished)
    if bad is not None:
        return Outcome("unclear", bad.line, why=f"a process ended with {describe(bad.code)}")
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
