"""What progress says where no error is sure: finished, running, slow, silent, or not to be decided."""

from __future__ import annotations

from dataclasses import replace

from logtriage.diagnose.confidence import COMPLETED, DIVERGED, RUNNING, RUNNING_BESIDE_A_HINT, UNDECIDED
from logtriage.diagnose.decision import Decision
from logtriage.diagnose.last_words import last_errors, tells_of_silence, title_of
from logtriage.diagnose.never_left import never_left
from logtriage.localize.asked_stacks import asked_stacks
from logtriage.localize.behind import broke_off_first, stopped_first
from logtriage.localize.candidates import Candidate
from logtriage.localize.cascade import Group
from logtriage.localize.courses import broke_off_alone
from logtriage.localize.divergence import Divergence, diverged
from logtriage.localize.exits import describe
from logtriage.localize.fell_silent import fell_silent
from logtriage.localize.findings import Findings
from logtriage.localize.idle_gpu import left_idle
from logtriage.localize.learning_curves import Ruined, ruined
from logtriage.localize.outcome import Outcome
from logtriage.localize.scene import Scene
from logtriage.localize.slow import Slowness
from logtriage.model import JOB_ROLES, Culprits, Evidence, Line
from logtriage.regex import regex
from logtriage.rulebank.matcher import without_digits
from logtriage.rulebank.rule import Role


def without_error(findings: Findings, root: Group | None) -> Decision | None:
    """Slow, silent, finished or still running: what progress says where no error is sure."""
    outcome, slow = findings.outcome, findings.slowness
    fatal = root is not None and outcome.kind != "completed"
    hints = root.causes if root and fatal and root.failure_type != "unknown" else ()
    if root is None and any(
        each.failure_type == "code.subprocess" and each.role is Role.SYMPTOM and not each.recovered
        for each in findings.candidates
    ):
        return None  # a launcher says that the job failed: whatever the steps look like, it is not well
    if outcome.kind == "hang" and (not hints or _was_seen_standing(root, outcome)):
        if any(not tells_of_silence(line) for line in last_errors(findings)):
            return None  # whoever was silent spoke at last, of something else
        return hang(findings, outcome)
    if slow is not None and (not hints or _is_reaction(root, slow)):
        return slow_job(findings, slow, ())
    if not hints and (curve := ruined(findings.scene)) is not None:
        return _ruined(curve, outcome)
    if not hints and (left := diverged(findings.progress.traces, findings.scene)) is not None:
        return _diverged(left, outcome)
    if outcome.kind == "completed" and (stuck := never_left(findings.scene, outcome)) is not None:
        return stuck
    if outcome.kind == "completed" and outcome.line is not None:
        return Decision(
            "none.completed",
            "The job ended well",
            COMPLETED,
            Culprits(),
            (Evidence(outcome.line, "the program says that it is done"),),
            "rules",
            outcome.why,
            "completed",
        )
    if hints or (outcome.kind == "running" and root is not None and _says_that_it_ended(root)):
        return None
    if outcome.kind == "running" and root is None and _has_stacks(findings.scene):
        return hang(findings, replace(outcome, why="stacks were taken of a job that shows no error"))
    errors = () if outcome.seen is not None else last_errors(findings)  # which who was seen at work outlived
    if outcome.kind == "running" and root is None and (errors or _raised_last(findings)):
        return None  # who wrote them wrote nothing more: that job does not run
    if outcome.kind == "running" and outcome.line is not None:
        sure = root is None
        if outcome.seen is None:
            title, shows = "Nothing failed: the log ends among regular steps", "the last step in the log"
        else:
            title, shows = "Nothing failed: it was at work when somebody looked", outcome.why
        last = last_line(findings.scene) if outcome.seen is not None else None
        return Decision(
            "none.running",
            title,
            RUNNING if sure else RUNNING_BESIDE_A_HINT,
            Culprits(),
            (Evidence(outcome.line, shows), *(Evidence(line, "the last line") for line in (last,) if line)),
            "localisation",
            outcome.why,
            "running",
        )
    return None


def _says_that_it_ended(root: Group) -> bool:
    """Whether a rule knows that it ended, and that nothing says why: a kernel, or a run that was lost."""
    return root.failure_type == "unknown" and any(each.rule is not None for each in root.causes)


def _raised_last(findings: Findings) -> bool:
    """Whether a traceback that tells of others' end, and no step, is the last that a file of steps has."""
    stepped = {trace.file for trace in findings.progress.traces}
    return any(
        each.record is not None
        and bool(each.record.raised)
        and not each.recovered
        and each.line.file in stepped
        and each.record is findings.scene.records[each.line.file][-1]
        for each in findings.candidates
    )


def _was_seen_standing(root: Group | None, outcome: Outcome) -> bool:
    """Whether all that ended the job is a notice that it was cancelled: somebody saw that it stood still."""
    return (
        root is not None
        and (root.failure_type, root.sureness < 2) == ("scheduler.cancelled", True)
        and outcome.seen is not None
    )


def _is_reaction(root: Group | None, slow: Slowness) -> bool:
    """Whether all that ended the job is a notice that it was cancelled: somebody saw that it was slow."""
    return (
        root is not None
        and (root.failure_type, slow.failure_type) == ("scheduler.cancelled", "slow.straggler")
        and root.sureness < 2
    )


# How py-spy heads each thread. Who takes stacks of a job that has no error waits for it in vain.
_STACK = regex(r"^\s*Thread (?:0x)?[0-9a-f]{1,16} \((?:active|idle)[^)\n]{0,20}\)(?:: \"|$)")


def _has_stacks(scene: Scene) -> bool:
    """Whether stacks were taken, and in their own file no step came after them."""
    stepped: dict[str, int] = {}
    for sign in scene.progress:
        file = sign.source.file
        stepped[file] = max(stepped.get(file, 0), sign.line.number)
    return any(
        _STACK.match(line.text[:200]) is not None and line.number > stepped.get(reading.source.file, 0)
        for reading in scene.readings
        for line in reading.lines
    ) or any(line.number > stepped.get(line.file, 0) for line in asked_stacks(scene))


def hang(findings: Findings, outcome: Outcome, symptoms: tuple[Candidate, ...] = ()) -> Decision:
    """A job that stands still: who stopped first, and what shows it; `symptoms` is what ended it at last."""
    of_files, rank_of = findings.topology.rank_of_file, findings.topology.rank
    traces = [
        each
        if each.rank is not None
        else replace(each, rank=of_files.get(each.file, rank_of(each.last.line)))
        for each in findings.progress.traces
    ]
    first = stopped_first(traces)
    evidence = [Evidence(each.last.line, "its peers went on for longer, and then waited") for each in first]
    ranks = outcome.ranks or tuple(sorted(each.rank for each in first if each.rank is not None))
    if outcome.late:
        numbers = {findings.topology.rank(line) for line in outcome.late}
        ranks = tuple(sorted(number for number in numbers if number is not None))
        evidence = [Evidence(line, outcome.why) for line in outcome.late[:3]]
    elif not ranks and not first:
        early = (
            broke_off_first(traces, findings.scene)
            or broke_off_alone(findings.scene, findings.topology, findings.progress.ranks())
            or fell_silent(findings.scene, findings.topology)
        )
        ranks = tuple(early)
        evidence += [Evidence(line, "its peers all wrote more behind this") for line in early.values()][:3]
    if not ranks and (idle := _whose_gpu_is_idle(findings)) is not None:
        ranks = (idle[0],)
        evidence.append(Evidence(idle[1], "its GPU does nothing, while those of all its peers spin"))
    if outcome.line is not None and outcome.line not in [each.line for each in evidence]:
        evidence.append(Evidence(outcome.line, "the last sign of progress"))
    own = _last_after(findings.scene, outcome.line) if outcome.line else None
    if outcome.line is not None and (doing := _before_polls(findings.scene, outcome.line)) is not None:
        evidence.append(
            Evidence(doing, "what it did last, before all that came was one line again and again")
        )
    if own is not None and own not in [each.line for each in evidence]:
        evidence.append(Evidence(own, "the last line of the log that reported steps"))
    if outcome.seen is not None and outcome.seen not in [each.line for each in evidence]:
        evidence.append(Evidence(outcome.seen, outcome.why))
    last = _latest(findings.scene) or last_line(findings.scene)
    if last is not None and last not in [each.line for each in evidence]:
        evidence.append(Evidence(last, "the log goes on without a step"))
    there = findings.topology.hosts_of(ranks) if findings.topology.is_spread else ()
    hosts = tuple(dict.fromkeys(findings.topology.machine(host) or host for host in there))
    return Decision(
        "hang.silent",
        "Progress stopped and no error was written",
        0.7,
        Culprits(ranks, outcome.hosts or hosts),
        tuple(evidence),
        "localisation",
        outcome.why,
        "failed",
        symptoms=symptoms,
        collect_next=(
            "Stacks of all ranks while it hangs: py-spy dump --pid PID for each process.",
            "A collective time-out that is shorter than your patience, so that the watchdog names the "
            "operation.",
        ),
    )


def _whose_gpu_is_idle(findings: Findings) -> tuple[int, Line] | None:
    """The rank whose GPU alone does nothing, of a job that runs on one machine and on all of its GPUs."""
    found, topology = left_idle(findings.scene), findings.topology
    if found is None or topology.is_spread:
        return None
    only_one_speaks = topology.size <= 1 and topology.world_size is None
    if topology.size != found[1] and not only_one_speaks:
        return None
    return found[0], found[2]


def _ruined(curve: Ruined, outcome: Outcome) -> Decision:
    some = ", ".join(curve.names[:3])
    told = f"{some}{' and others' * (len(curve.names) > 3)} turned NaN and stayed so to the end"
    return Decision(
        "numerics.nan",
        told[0].upper() + told[1:],
        DIVERGED,
        Culprits(),
        tuple(Evidence(line, told) for line in dict.fromkeys((curve.first, curve.last))),
        "localisation",
        told,
        "completed" if outcome.kind == "completed" else "failed",
    )


def _diverged(left: Divergence, outcome: Outcome) -> Decision:
    told = f"the loss rose from {left.best:.3g} to {left.last:.3g} and never came back"
    return Decision(
        "numerics.divergence",
        told[0].upper() + told[1:],
        DIVERGED,
        Culprits(),
        tuple(Evidence(line, told) for line in left.lines),
        "localisation",
        told,
        "completed" if outcome.kind == "completed" else "failed",
    )


def slow_job(findings: Findings, slow: Slowness, symptoms: tuple[Candidate, ...]) -> Decision:
    topology = findings.topology
    there = slow.hosts or (topology.hosts_of(slow.ranks) if topology.is_spread else ())
    if not there and slow.ranks and len(topology.hosts) == 1 and not topology.is_spread:
        there = topology.hosts  # of a job on one machine it is that one
    if not there and not topology.host_of_rank:  # nobody says whose each rank is: whose log, then
        there = tuple(host for line in slow.lines if (host := topology.host(line)) is not None)
    hosts = dict.fromkeys(topology.machine(host) or host for host in there)
    return Decision(
        slow.failure_type,
        slow.summary[0].upper() + slow.summary[1:],
        0.75,
        Culprits(ranks=slow.ranks, hosts=tuple(hosts)),
        tuple(Evidence(line, slow.summary) for line in slow.lines),
        "localisation",
        slow.summary,
        "slow",
        symptoms=symptoms,
    )


def undecided(findings: Findings) -> Decision:
    root = findings.cascade.root
    evidence: tuple[Evidence, ...] = ()
    bad = [each for each in findings.exits if each.code not in (0, -15)]
    where = {each.host for each in bad if each.host}
    culprits = Culprits(hosts=tuple(where)) if root is None and len(bad) == len(where) == 1 else Culprits()
    if root is not None:
        evidence = tuple(
            Evidence(each.line, "an error that no rule knows", each.rule.id if each.rule else None)
            for each in sorted(root.causes, key=lambda each: each.time or 0.0)[-3:]
        )
    unknown = [each.line for each in evidence]
    if not evidence:
        ended = [each for each in findings.exits if each.code != 0]
        ended.sort(key=lambda each: not each.claimed_root)
        evidence = tuple(
            Evidence(each.line, f"a process ended with {describe(each.code)}, and no line says why")
            for each in ended[:2]
        )
    if not evidence or root is None:
        told = "an error that no rule knows, and nothing more from who wrote it"
        unknown = [*last_errors(findings)[-2:], *unknown]
        evidence = (*(Evidence(line, told) for line in unknown), *evidence)
    last = last_line(findings.scene)
    if not evidence and last is not None:
        evidence = (Evidence(last, "the last line of the log"),)
    return Decision(
        "unknown",
        title_of(unknown),
        UNDECIDED,
        culprits,
        evidence,
        "rules",
        "no line states a cause that can be trusted",
        "unknown",
        collect_next=(
            "The output of every rank, standard error included.",
            "The kernel log of each node (dmesg -T) and the scheduler's record (sacct -j JOB --format=ALL).",
        ),
    )


# `$ date`, `[me@cn-3 ~]$ nvidia-smi`: from here on it is a person who writes.
_PROMPT = regex(r"^(?:\[?[\w.-]{1,40}@[\w.-]{1,80}[^\]$#]{0,60}\]?)?\$ \S")


def _last_after(scene: Scene, point: Line) -> Line | None:
    """The last line that the log itself holds behind a point, before a person's commands."""
    last: Line | None = None
    for line in scene.lines(point.file):
        if line.number > point.number and _PROMPT.match(line.text[:200]):
            return last
        last = line if line.number > point.number and line.text.strip() else last
    return last


POLLS = 20


def _before_polls(scene: Scene, point: Line) -> Line | None:
    """The last line behind a point before one kind of lines alone fills the rest of its file."""
    behind = [line for line in scene.lines(point.file) if line.number > point.number and line.text.strip()]
    kinds = [without_digits(line.message) for line in behind]
    count = next((n for n, kind in enumerate(reversed(kinds)) if kind != kinds[-1]), 0)
    return behind[-count - 1] if count >= POLLS else None


def of_part(decision: Decision, findings: Findings) -> Decision:
    """Of logs that were not read to their end, which therefore tells nothing of how the job ended."""
    if decision.root is None:
        title = "The part of the logs that was read shows no cause"
        return replace(undecided(findings), title=title, evidence=())
    return replace(decision, title=f"{decision.title} (only part of the logs was read)")


def _latest(scene: Scene) -> Line | None:
    """Of the job's lines with the latest time the first, which tells it: those below it may only share it."""
    dated = [
        line
        for reading in scene.readings
        if reading.source.role in JOB_ROLES
        for line in reading.lines
        if line.time is not None
    ]
    return max(dated, key=lambda line: line.time or 0.0, default=None)


def last_line(scene: Scene) -> Line | None:
    """The last line that was written, by the job itself where it wrote any."""
    last: Line | None = None
    of_job = [reading for reading in scene.readings if reading.lines and reading.source.role in JOB_ROLES]
    for reading in of_job or scene.readings:
        for line in reversed(reading.lines):
            if line.text.strip():
                if last is None or (line.time or 0.0) > (last.time or 0.0):
                    last = line
                break
    return last
