"""Replies to questions about a job, each from its verdict alone and with the lines that show it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from logtriage.answers.precedents import Precedents
from logtriage.answers.questions import Kind, asked, rank_asked, supposed
from logtriage.report import words
from logtriage.report.document import CitedLine, Symptom, Verdict, seconds_of
from logtriage.report.visible import prose, visible
from logtriage.taxonomy import taxonomy

MOST_LINES = 3  # cited by one reply
MOST_SHOWN = 8  # where the lines are what was asked for
MOST_STEPS = 5


@dataclass(frozen=True, slots=True)
class Quoted:
    """A line of the job's logs as it stands there; without `text` the verdict holds its place alone."""

    file: str
    line: int | None
    text: str
    facts: str = ""  # rank, host, time; or what the line means


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer in plain words (paragraphs), and the lines that it stands on."""

    text: str
    lines: tuple[Quoted, ...] = ()


def reply_to(
    question: str, verdict: Verdict, precedents: Callable[[], Precedents], kinds: Sequence[Kind] = ()
) -> Reply | None:
    """The reply to a question about the job of a verdict; None where the question is of no known kind.

    `precedents` is called only where the question is about earlier jobs. `kinds` are those that are answered,
    by default those that the question asks.
    """
    told: list[Reply] = []
    for kind in kinds or asked(question):
        if kind is Kind.BEFORE:
            told.append(_before(verdict, precedents()))
        elif kind is Kind.SUPPOSITION:
            told.append(_supposition(verdict, supposed(question)))
        elif kind is Kind.ONE_RANK:
            told.append(_one_rank(verdict, rank_asked(question)))
        else:
            told.append(_REPLIES[kind](verdict))
    if not told:
        return None
    lines = {(line.file, line.line): line for reply in reversed(told) for line in reversed(reply.lines)}
    return Reply("\n".join(reply.text for reply in told), tuple(reversed(lines.values()))[:MOST_SHOWN])


def what_can_be_asked() -> str:
    """One sentence for somebody whose question was not understood."""
    return "You can ask: " + " · ".join(Kind)


def quoted(cited: CitedLine, verdict: Verdict) -> Quoted:
    return Quoted(cited.file, cited.line, cited.text, words.origin(cited, verdict.job))


def evidence(verdict: Verdict, most: int = MOST_LINES) -> tuple[Quoted, ...]:
    return tuple(quoted(each, verdict) for each in verdict.verdict.evidence[:most])


def _title(verdict: Verdict) -> str:
    body = verdict.verdict
    title = prose(body.title).rstrip(".") or words.type_name(body.failure_type)
    return words.sentence(title)


def _is_well(verdict: Verdict) -> bool:
    return verdict.verdict.failure_type.startswith("none.")


def _cause(verdict: Verdict) -> Reply:
    body = verdict.verdict
    name = words.type_name(body.failure_type)
    sure = f"{words.confidence_words(body.confidence)}, {words.percent(body.confidence)}"
    return Reply(f"{name} ({sure}). {prose(body.summary) or _title(verdict)}", evidence(verdict))


def _place(verdict: Verdict) -> Reply:
    if _is_well(verdict):
        return Reply(f"Nobody is to blame: {_title(verdict)}.", evidence(verdict, 1))
    culprits = verdict.verdict.culprits
    where = words.places(culprits.ranks, culprits.hosts, culprits.gpus)
    shown = [
        each
        for each in verdict.verdict.evidence
        if each.rank in culprits.ranks or each.host in culprits.hosts
    ]
    lines = tuple(quoted(each, verdict) for each in shown[:2]) or evidence(verdict, 2)
    if not where:
        return Reply("No single rank or host stands out in the logs: all are alike, or none is named.", lines)
    missing = "" if culprits.hosts else " The logs do not name its host."
    return Reply(f"It began at {where}: {_title(verdict)}.{missing}", lines)


def _code(verdict: Verdict) -> Reply:
    where = words.code_words(verdict.verdict)
    if not where:
        return Reply("The lines that show it name no place in the program.", evidence(verdict, 2))
    return Reply(f"It was raised at {where}: {_title(verdict)}.", evidence(verdict, 1))


def _lines(verdict: Verdict) -> Reply:
    lines = evidence(verdict, MOST_SHOWN)
    return Reply(f"{_title(verdict)}:" if lines else "The verdict cites no line.", lines)


def _action(verdict: Verdict) -> Reply:
    body = verdict.verdict
    steps = [prose(each.text) for each in words.mitigations(body)[:MOST_STEPS]]
    numbered = "".join(f"\n{number}. {step}" for number, step in enumerate(steps, 1))
    return Reply(words.action_words(body) + numbered, evidence(verdict, 1))


def _restart(verdict: Verdict) -> Reply:
    body, restart = verdict.verdict, verdict.verdict.restart
    if _is_well(verdict):
        return Reply(f"There is nothing to restart: {_title(verdict)}.", evidence(verdict, 1))
    answer = "Yes, a restart is advised" if restart.advised else "Not yet"
    if restart.exclude_hosts:
        answer += f", {'but ' if restart.advised else ''}without {words.listed(restart.exclude_hosts)}"
    reason = prose(restart.reason).rstrip(".")
    because = f": {reason}." if reason else f". {words.action_words(body)}"
    return Reply(answer + because, evidence(verdict, 1))


def _certainty(verdict: Verdict) -> Reply:
    body = verdict.verdict
    text = f"{words.confidence_words(body.confidence).capitalize()} ({words.percent(body.confidence)})"
    text += f", decided {words.decided_by(body)}."
    if body.alternatives:
        text += f" It could also be {_others(verdict)}."
    return Reply(text, evidence(verdict, 1))


def _others(verdict: Verdict) -> str:
    told = [
        f"{words.type_name(each.failure_type)} ({words.percent(each.confidence)})"
        for each in verdict.verdict.alternatives[:3]
    ]
    return ", or ".join(told)


def _alternatives(verdict: Verdict) -> Reply:
    others = verdict.verdict.alternatives
    if not others:
        return Reply("Nothing else in the logs explains the end of the job.", evidence(verdict, 1))
    lines = [quoted(each, verdict) for other in others[:3] for each in other.evidence[:1]]
    return Reply(f"It could also be {_others(verdict)}.", tuple(lines) or evidence(verdict, 1))


def _supposition(verdict: Verdict, types: Sequence[str]) -> Reply:
    body = verdict.verdict
    name = words.type_name(body.failure_type)
    if _is_well(verdict):
        return Reply(f"No: {_title(verdict)}.", evidence(verdict, 1))
    if _is_of(body.failure_type, types):
        if body.failure_type == "unknown":
            return Reply("The evidence does not decide.", evidence(verdict, 1))
        return Reply(f"Yes: {name}. {_title(verdict)}.", evidence(verdict, 2))
    for other in body.alternatives:
        if _is_of(other.failure_type, types):
            lines = tuple(quoted(each, verdict) for each in other.evidence[:2])
            guess = f"{words.type_name(other.failure_type)} ({words.percent(other.confidence)})"
            return Reply(
                f"Possibly, but less likely: {guess}. More likely is: {name}.", lines or evidence(verdict, 1)
            )
    seen = [each for each in verdict.symptoms if _is_of(each.failure_type, types)]
    if seen:
        lines = tuple(_symptom(each) for each in seen[:2])
        return Reply(f"It was seen, but only as what followed from: {name}. {_title(verdict)}.", lines)
    if body.failure_type == "unknown":
        return Reply(
            "The logs do not show it, and they do not show another cause either.", evidence(verdict, 1)
        )
    return Reply(
        f"No, the logs do not point there. They show: {name}. {_title(verdict)}.", evidence(verdict, 2)
    )


def _is_of(failure_type: str, types: Sequence[str]) -> bool:
    of_class = failure_type in taxonomy() and taxonomy()[failure_type].failure_class in types
    is_guess = failure_type.startswith(("none.", "unknown"))
    return any(failure_type.startswith(each) for each in types) or (of_class and not is_guess)


def _time(verdict: Verdict) -> Reply:
    job, lead = verdict.job, next((each for each in verdict.verdict.evidence if each.time), None)
    told, zone = [], words.zone(job)
    if job.started:
        told.append(f"The logs begin at {words.clock(job.started)}{zone}")
    if lead is not None and not _is_well(verdict):
        told.append(f"the first sign is of {words.clock(lead.time, beside=job.started)}{zone}")
    if job.ended:
        told.append(
            f"{'they' if told else 'The logs'} end at {words.clock(job.ended, beside=job.started)}{zone}"
        )
    if not told:
        return Reply("The logs tell no times.", evidence(verdict, 1))
    return Reply(", ".join(told) + ".", (quoted(lead, verdict),) if lead else evidence(verdict, 1))


def _loss(verdict: Verdict) -> Reply:
    if _is_well(verdict):
        facts = words.job_facts(verdict.job)[-2:]
        return Reply(f"Nothing was lost: {_title(verdict)} ({'; '.join(facts)}).", evidence(verdict, 1))
    job = verdict.job
    saved, ended = job.last_checkpoint, seconds_of(job.ended)
    started = seconds_of(job.started)
    since = seconds_of(saved.time) if saved is not None else started
    spent = ended - since if ended is not None and since is not None and ended > since else None
    told = []
    if saved is None:
        told.append("The logs mention no checkpoint, so all work of this run may be lost")
        told += [f"the last step is {job.last_step:,}"] if job.last_step is not None else []
    else:
        at = f" of step {saved.step:,}" if saved.step is not None else ""
        at += f" ({words.clock(saved.time)}{words.zone(job)})" if saved.time else ""
        told.append(
            f"The last checkpoint in the logs is the one{at}" if at else "The logs mention a checkpoint"
        )
        if job.last_step is not None and saved.step is not None:
            told.append(f"{words.counted(max(0, job.last_step - saved.step), 'step')} came after it")
    if spent is not None and spent >= 1:
        told.append(f"{words.duration(spent)} of the run")
        if spent * job.ranks >= 3600 and job.ranks > 1:
            told.append(f"{spent * job.ranks / 3600:,.1f} hours of ranks ({job.ranks:,} ranks)")
    place = (Quoted(saved.file, saved.line, ""),) if saved is not None and saved.file else ()
    return Reply("; ".join(told) + ".", (*place, *evidence(verdict, 1)))


def _progress(verdict: Verdict) -> Reply:
    facts = words.job_facts(verdict.job)[-3:]
    if verdict.job.last_step is None:
        facts.append("no step is told in the logs")
    return Reply(_sentence(facts), evidence(verdict, 1))


def _job(verdict: Verdict) -> Reply:
    job = verdict.job
    hosts = [f"hosts: {words.listed(job.hosts)}"] if job.hosts else []
    return Reply(
        _sentence([f"job {visible(job.name, 120)}", *words.job_facts(job), *hosts]), evidence(verdict, 1)
    )


def _sentence(facts: Sequence[str]) -> str:
    text = "; ".join(facts) + "."
    return text[0].upper() + text[1:]


def _followed(verdict: Verdict) -> Reply:
    body = verdict.verdict
    steps = [prose(each.text) or words.type_name(each.failure_type) for each in body.chain[: MOST_STEPS + 1]]
    lines = [
        Quoted(each.file, each.line, "", prose(each.text))
        for each in body.chain[1 : MOST_LINES + 1]
        if each.file
    ]
    if len(steps) < 2:
        steps = [_title(verdict)]
        for each in verdict.symptoms[:MOST_STEPS]:
            where = words.places(each.ranks, each.hosts)
            steps.append(words.type_name(each.failure_type) + (f" on {where}" if where else ""))
        lines = [_symptom(each) for each in verdict.symptoms[:MOST_LINES]]
    if len(steps) < 2:
        return Reply("The logs show nothing that followed from it.", evidence(verdict, 1))
    numbered = "".join(f"\n{number}. {step}" for number, step in enumerate(steps, 1))
    return Reply("In this order:" + numbered, (*evidence(verdict, 1), *lines))


def _symptom(symptom: Symptom) -> Quoted:
    return Quoted(symptom.file, symptom.line, "", prose(symptom.text))


def _attempts(verdict: Verdict) -> Reply:
    told = verdict.attempts
    if len(told) < 2:
        return Reply("The logs show one attempt and no restart.", evidence(verdict, 1))
    rows = [
        f"\n{each.attempt}: {prose(each.title) or words.type_name(each.failure_type)}" for each in told[-6:]
    ]
    lines = [quoted(each.evidence[0], verdict) for each in told[-MOST_LINES:] if each.evidence]
    return Reply(
        f"{len(told)} attempts are in the logs:" + "".join(rows), tuple(lines) or evidence(verdict, 1)
    )


def _one_rank(verdict: Verdict, rank: int | None) -> Reply:
    if rank is None or (verdict.job.ranks and rank >= verdict.job.ranks):
        return Reply(
            f"The logs show {words.counted(verdict.job.ranks, 'rank')}, and no rank {rank} among them.", ()
        )
    body = verdict.verdict
    own = [quoted(each, verdict) for each in body.evidence if each.rank == rank]
    own += [
        Quoted(each.file, each.line, "", prose(each.text))
        for each in verdict.timeline
        if each.rank == rank and each.file
    ]
    if rank in body.culprits.ranks:
        return Reply(
            f"Rank {rank} is where it began: {_title(verdict)}.", tuple(own[:2]) or evidence(verdict, 2)
        )
    suffered = [each for each in verdict.symptoms if rank in each.ranks]
    if suffered:
        names = dict.fromkeys(words.type_name(each.failure_type) for each in suffered[:3])
        own += [_symptom(each) for each in suffered[:2]]
        return Reply(f"Rank {rank} shows only what followed: {', '.join(names)}.", tuple(own[:MOST_LINES]))
    if own:
        return Reply(f"This is what the verdict cites of rank {rank}:", tuple(own[:MOST_LINES]))
    return Reply(f"The verdict cites nothing of rank {rank}: {_title(verdict)}.", evidence(verdict, 1))


def _skipped(verdict: Verdict) -> Reply:
    mining = verdict.mining
    told = f"I read {words.mined_words(verdict)}, at {words.listed(verdict.job.paths, 4)}."
    for each in verdict.unreadable[:4]:
        told += f" Not read: {visible(each.file, 120)} ({prose(each.reason)})."
    for note in mining.left_out[:4]:
        told += f" Left out: {prose(note)}."
    if not verdict.unreadable and not mining.left_out:
        told += " Nothing was left out."
    return Reply(told, evidence(verdict, 1))


def _collect(verdict: Verdict) -> Reply:
    wanted = [prose(each).rstrip(".") for each in verdict.verdict.collect_next[:MOST_STEPS]]
    if not wanted:
        return Reply("Nothing more is needed for this verdict.", evidence(verdict, 1))
    return Reply("Next time, collect: " + "; ".join(wanted) + ".", evidence(verdict, 1))


def _decided(verdict: Verdict) -> Reply:
    body = verdict.verdict
    text = f"It was decided {words.decided_by(body)}."
    rules = dict.fromkeys(each.rule for each in body.evidence if each.rule)
    text += f" Rules that speak for it: {', '.join(visible(each, 120) for each in rules)}." if rules else ""
    if told := words.model_words(verdict):
        text += f" {told.rstrip('.')}."
    return Reply(text, evidence(verdict, 2))


def _before(verdict: Verdict, known: Precedents) -> Reply:
    told = []
    if known.verdicts:
        latest = known.verdicts[0]
        count = len(known.verdicts)
        times = f"{'at least ' if known.is_bounded else ''}{words.counted(count, 'time')}"
        told.append(
            f"Yes, the same was seen {times} before, last in {visible(latest.job, 80)} ({latest.when} UTC)."
        )
        if known.same_hosts:
            told.append(f"The same host was involved then: {words.listed(known.same_hosts, 4)}.")
    for likeness, each in known.diagnoses[:2]:
        helped = f"; what helped: {prose(each.mitigation).rstrip('.')}" if each.mitigation else ""
        like = "the same line" if likeness >= 1 else f"{likeness:.0%} alike"
        told.append(
            f"{visible(each.author, 60)} called {each.verdict_id} ({like}) {each.failure_type} "
            f"on {each.at[:10]}{helped}."
        )
    if not told:
        told.append(
            "No earlier job that was triaged here failed like this, and no confirmed diagnosis is like it."
        )
    lines = [
        Quoted(each.file, each.line, each.text, "earlier")
        for _, one in known.diagnoses[:1]
        for each in one.evidence[:1]
    ]
    return Reply(" ".join(told), (*evidence(verdict, 1), *lines))


_REPLIES: dict[Kind, Callable[[Verdict], Reply]] = {
    Kind.CAUSE: _cause,
    Kind.PLACE: _place,
    Kind.CODE: _code,
    Kind.LINES: _lines,
    Kind.ACTION: _action,
    Kind.RESTART: _restart,
    Kind.CERTAINTY: _certainty,
    Kind.ALTERNATIVES: _alternatives,
    Kind.TIME: _time,
    Kind.LOSS: _loss,
    Kind.PROGRESS: _progress,
    Kind.FOLLOWED: _followed,
    Kind.ATTEMPTS: _attempts,
    Kind.JOB: _job,
    Kind.SKIPPED: _skipped,
    Kind.COLLECT: _collect,
    Kind.DECIDED: _decided,
}
