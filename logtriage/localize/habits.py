"""Kinds of complaints that the job lived with: again and again, long before its end, or in earlier runs.

L4 (FSE'25) takes what good runs also wrote for harmless, whatever it says. Without such runs, the part of
this one that went on for long serves: the close reading skips most of it, but the pass kept of each file the
first line of each kind.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from logtriage.intake.lines import LineReader
from logtriage.localize.candidates import Candidate
from logtriage.localize.cascade import CONSEQUENCES
from logtriage.localize.scene import Scene
from logtriage.localize.topology import Topology
from logtriage.mining.kinds import key_of
from logtriage.mining.summary import Key, Summary
from logtriage.model import Level, Line, SourceRole
from logtriage.regex import regex
from logtriage.rulebank.rule import Role, Strength

HABIT = 3  # so many like exceptions that were survived make one more of them likely to be so …
WRITTEN_ON = 3  # … if its writer wrote so many lines after it that complain of nothing
TWICE = 2  # so many times as many hints of a rule were survived as were not: it hints at nothing
SEARCHED_LINES = 400
OF_RANKS = (SourceRole.WORKER, SourceRole.MERGED)
_LOUD = (Level.WARNING, Level.ERROR, Level.CRITICAL)
UNDONE = regex(
    r"(?i)\b(?:error|fail(?:ed|ure)?|fatal|giving up|gave up|abort\w*|traceback|retr(?:y|ying|ies))\b"
)


@dataclass(frozen=True, slots=True)
class Kinds:
    """The kinds of lines of each file, and those of earlier good runs (none where there are none)."""

    of_files: Mapping[str, Summary] = field(default_factory=dict)
    of_good_runs: Collection[Key] = frozenset()


NO_KINDS = Kinds()


def with_habits(
    candidates: Sequence[Candidate],
    scene: Scene,
    topology: Topology,
    kinds: Kinds,
    went_on: Callable[[float], bool],
) -> list[Candidate]:
    """With one more exception of a kind that was survived again and again marked as survived as well.

    `went_on` tells of a time whether the job went on for long after it.

    Near the end of a log no steps tell that its writer lived, but that it wrote on as ever: the line that
    followed the others follows this one too, or its rank wrote several that complain of nothing.
    """
    lines = {reading.source.file: reading.lines for reading in scene.readings}
    lived = _lived_with(candidates, scene, topology, lines, kinds, went_on)
    # What a traceback tells the same of is the same; of what a rule alone knows, many writers make a habit.
    survived = [(kind, each) for each in candidates if each.recovered and (kind := _kind(each)) is not None]
    writers = {(kind, each.line.file, each.rank) for kind, each in survived if each.record is None}
    times = Counter(kind for kind, each in survived if each.record is not None)
    times = times + Counter(kind for kind, _, _ in writers) | lived
    usual = {kind for kind, count in times.items() if count >= HABIT}
    candidates = _without_usual_hints(candidates, times)
    candidates = [
        replace(each, recovered=True) if _is_noise(each) and lived[_kind(each) or ""] >= HABIT else each
        for each in candidates
    ]
    if not any(not each.recovered and _kind(each) in usual for each in candidates):
        return list(candidates)
    if any(_ends_a_job(each) and _kind(each) not in usual for each in candidates):
        # What was survived so often is not what ended the job, where something else may have.
        return [replace(each, recovered=True) if _kind(each) in usual else each for each in candidates]
    after = {
        id(each): _after(each, lines[each.line.file], topology) for each in candidates if _kind(each) in usual
    }
    followed = Counter(
        (_kind(each), key_of(after[id(each)][0].text))
        for each in candidates
        if each.recovered and after.get(id(each))
    )
    return [
        replace(each, recovered=True)
        if not each.recovered
        and (said := after.get(id(each)))
        and (
            followed[_kind(each), key_of(said[0].text)] >= HABIT
            or _goes_with(each.line, said[0], kinds)
            or (each.rank is not None and sum(map(_is_calm, said)) >= WRITTEN_ON)
        )
        else each
        for each in candidates
    ]


def _is_noise(candidate: Candidate) -> bool:
    """Whether a candidate is but a warning: what several files had long before the end ends nothing later."""
    is_alone = candidate.record is None or not candidate.record.raised
    return is_alone and candidate.strength is not Strength.DEFINITE and candidate.line.level is Level.WARNING


def _ends_a_job(candidate: Candidate) -> bool:
    """Whether a candidate can be the one: a cause that a rank states and did not survive."""
    is_cause = candidate.role is Role.CAUSE and candidate.strength is not Strength.HINT
    is_own = is_cause and candidate.failure_type not in CONSEQUENCES
    return is_own and not candidate.recovered and candidate.source_role in OF_RANKS


def _without_usual_hints(candidates: Sequence[Candidate], survived: Counter[str]) -> list[Candidate]:
    """With the last few hints of a rule marked as survived where so many others of it were: it is usual."""
    left = Counter(_hint(each) for each in candidates if not each.recovered)
    usual = {rule for rule, times in survived.items() if times >= TWICE * max(1, left[rule])}
    return [replace(each, recovered=True) if _hint(each) in usual else each for each in candidates]


def _hint(candidate: Candidate) -> str | None:
    of_job = candidate.source_role in OF_RANKS and candidate.record is None
    weak = candidate.role is Role.CAUSE and candidate.strength is Strength.HINT
    return candidate.rule.id if of_job and weak and candidate.rule is not None else None


def _kind(candidate: Candidate) -> str | None:
    """What was raised, and where: file and function of the innermost frames; without a traceback its rule."""
    record = candidate.record
    if candidate.source_role not in OF_RANKS:
        return None
    if record is None or not record.raised:
        return candidate.rule.id if candidate.rule is not None and candidate.role is Role.CAUSE else None
    raised = record.raised[-1]
    frames = [f"{frame.path}:{frame.function}" for frame in raised.frames[-2:]]
    return " ".join((candidate.failure_type, raised.type, *frames))


def _after(candidate: Candidate, lines: Sequence[Line], topology: Topology) -> list[Line]:
    """The next lines of its writer, as far as the lines tell whose they are."""
    last = candidate.record.lines[-1] if candidate.record is not None else candidate.line
    begin = bisect.bisect_right(lines, last.number, key=lambda line: line.number)
    later = lines[begin : begin + SEARCHED_LINES]
    own = [each for each in later if topology.rank(each) == candidate.rank and each.text.strip()]
    return own if candidate.rank is not None and own else [each for each in later if each.text.strip()]


def _goes_with(complaint: Line, follower: Line, kinds: Kinds) -> bool:
    """Whether the line behind a complaint comes with it wherever it came before, as what is said of it then.

    It stands in as many lines as the complaint in each of HABIT other files, or as good runs have both.
    """
    key, next_key = key_of(complaint.text), key_of(follower.text)
    if {key, next_key} <= set(kinds.of_good_runs):
        return True
    counts = [
        (each.keys[key].count, each.keys[next_key].count if next_key in each.keys else 0)
        for file, each in kinds.of_files.items()
        if file != complaint.file and key in each.keys
    ]
    return len(counts) >= HABIT and all(one == other for one, other in counts)


def _is_calm(line: Line) -> bool:
    return line.level not in _LOUD and UNDONE.search(line.message[:400]) is None


def _lived_with(
    candidates: Sequence[Candidate],
    scene: Scene,
    topology: Topology,
    lines: Mapping[str, Sequence[Line]],
    kinds: Kinds,
    went_on: Callable[[float], bool],
) -> Counter[str]:
    """Of each kind of which some were not seen to be survived: in how many files one was, HABIT at most.

    HABIT as well where good runs wrote such lines.
    """
    still_open = [each for each in candidates if not each.recovered]
    by_kind = {kind: each for each in still_open if (kind := _kind(each)) is not None}
    counts: Counter[str] = Counter()
    for kind, each in by_kind.items():
        said = _after(each, lines[each.line.file], topology) if each.record is not None else []
        counts[kind] = _files(each, said[0] if said else None, scene, kinds, went_on)
    return counts


def _files(
    candidate: Candidate,
    follower: Line | None,
    scene: Scene,
    kinds: Kinds,
    went_on: Callable[[float], bool],
) -> int:
    """In how many files such a line stands after which the job went on.

    The last line of a traceback bears no time: there it is that of the line that always follows it.
    """
    key = key_of(candidate.line.text)
    if key in kinds.of_good_runs:
        return HABIT
    next_key = key_of(follower.text) if follower is not None else None
    count = 0
    for reading in scene.readings:
        summary = kinds.of_files.get(reading.source.file)
        seen = summary.keys.get(key) if summary is not None else None
        if summary is None or seen is None or count >= HABIT:
            continue
        if reading.source.role is candidate.source_role:
            reader = LineReader(reading.source, reading.layout)
            time = reader.read(seen.sample, *seen.first).time
            if time is None and next_key is not None and (said := summary.keys.get(next_key)) is not None:
                time = reader.read(said.sample, *said.first).time if said.count == seen.count else None
            count += time is not None and went_on(time)
    return count
