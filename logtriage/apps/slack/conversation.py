"""One question, from its words to its answer: which job, what is asked, the verdict or the reply."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from logtriage.agent.occasion import occasion, unavailable
from logtriage.answers.precedents import precedents_of
from logtriage.answers.questions import Kind, asked
from logtriage.answers.reply import Reply, reply_to, what_can_be_asked
from logtriage.apps.slack import notices
from logtriage.apps.slack.access import Access
from logtriage.apps.slack.incoming import Question
from logtriage.apps.slack.journal import Journal, Topic
from logtriage.apps.slack.report_file import upload_report
from logtriage.apps.slack.speech import Speaker
from logtriage.apps.slack.subject import Subject, subjects
from logtriage.apps.slack.triages import Judged, Lost, Ticket, TooMany, Triages
from logtriage.intake.folder import NothingReadable
from logtriage.memory.verdicts import kept_verdict
from logtriage.report.document import Verdict
from logtriage.report.redacted import redacted
from logtriage.report.slack_blocks import (
    Block,
    Message,
    answer_message,
    cited_block,
    context,
    plain,
    verdict_message,
)
from logtriage.settings import Settings
from logtriage.sources.job import JobSource, KnownJob, SourceFault
from logtriage.sources.lookup import Found, find_jobs

GRACE = 2.5  # seconds to wait for a verdict before it is said that one is coming
MOST_FOUND = 50  # jobs that one word may mean

_STUCK = re.compile(
    r"(?i)\b(?:stuck|hang\w*|hung|slow\w*|stall\w*|so far|anyway|right now|frozen|not moving)\b"
)
_NEWEST = re.compile(r"(?i)\b(?:last|latest|newest|most recent)\s+(?:\w+\s+)?(?:jobs?|runs?|one|training)\b")
_REPORT = re.compile(r"(?i)\b(?:full|whole|html|complete) report\b|^\W*report\W*$")
_HELP = re.compile(r"(?i)^\W*(?:help|what can (?:i|you) \w+.*|usage|hello|hi|hey)?\W*$")


@dataclass(frozen=True, slots=True)
class Office:
    """What questions are answered with."""

    settings: Settings
    journal: Journal
    access: Access
    sources: list[JobSource]
    triages: Triages


def is_for_the_bot(question: Question, journal: Journal) -> bool:
    """Whether to answer at all: among people who talk in a thread, only what is a question about its job."""
    if question.is_named:
        return True
    known = question.thread and journal.topic(question.channel, question.thread)
    return bool(known) and bool(asked(question.text)) and not question.text.lstrip().startswith("@")


async def answer(office: Office, question: Question, speaker: Speaker) -> None:
    """Answer one question; whatever is wrong with it or its job is an answer too."""
    if not await office.access.may_ask(question.user, question.channel, is_direct=question.is_direct):
        if question.is_named:
            await speaker.whisper(notices.may_not_ask())
        return
    topic = _topic(office, question)
    named = _named(question, is_first=topic is None)
    given = next((each.word for each in named if office.journal.gave(each.word)), "")
    if given:
        topic, named = Topic(given, ""), []
    found = await _found(office, named)
    if found is not None and found.jobs:
        await _about_jobs(office, question, found, speaker)
    elif found is not None and (topic is None or found.is_sure or not asked(question.text)):
        await speaker.say(notices.unknown_job(found.word, found.answer))
    elif topic is not None:
        await _follow_up(office, question, topic, speaker)
    else:
        await speaker.say(notices.which_job())


def _named(question: Question, *, is_first: bool) -> list[Subject]:
    """The words that may name the job; in a command of a few words all of them together."""
    if question.word:
        return [Subject(question.word, True)]
    whole = [Subject(question.text, True)] if question.is_command and question.text else []
    return subjects(question.text, is_first=is_first) or whole


def _topic(office: Office, question: Question) -> Topic | None:
    own = office.journal.topic(question.channel, question.thread) if question.thread else None
    if own is None and question.is_direct and not question.is_command:
        return office.journal.topic(question.channel, "")
    return own


@dataclass(frozen=True, slots=True)
class _Lookup:
    """What the sources say of a word of the question."""

    word: str
    is_sure: bool
    answer: Found

    @property
    def jobs(self) -> tuple[KnownJob, ...]:
        return self.answer.jobs


async def _found(office: Office, named: list[Subject]) -> _Lookup | None:
    """The first word that names a job; else what was said of the first word."""
    first: _Lookup | None = None
    for each in named:
        told = await asyncio.to_thread(find_jobs, each.word, office.sources, MOST_FOUND)
        lookup = _Lookup(each.word, each.is_sure, told)
        if told.jobs:
            return lookup
        first = first or lookup
    return first


async def _about_jobs(office: Office, question: Question, found: _Lookup, speaker: Speaker) -> None:
    jobs = found.jobs
    if question.job:
        jobs = tuple(job for job in jobs if notices.job_key(job) == question.job)
        if not jobs:
            await speaker.say(plain("That job is not known any more. Ask for it again."))
            return
    exact = [job for job in jobs if job.id.casefold() == found.word.casefold()]
    if len(exact) == 1 or _NEWEST.search(question.text):
        jobs = tuple(exact[:1]) or jobs[:1]
    if len(jobs) > 1:
        await speaker.say(
            notices.choice(found.word, question.text, found.answer, is_more=len(jobs) >= MOST_FOUND)
        )
        return
    job = jobs[0]
    if job.is_running and not question.is_running_too and not _STUCK.search(question.text):
        await speaker.say(notices.still_running(job, found.word, question.text))
        return
    await _about_job(office, question, job, speaker)


async def _about_job(office: Office, question: Question, job: KnownJob, speaker: Speaker) -> None:
    try:
        ticket = office.triages.of_job(job)
        judged = await _awaited(ticket, job, speaker)
    except TooMany as full:
        await speaker.say(plain(f"{str(full)[0].upper()}{str(full)[1:]}."))
        return
    except (NothingReadable, SourceFault) as fault:
        await speaker.say(notices.nothing_readable(job, str(fault)))
        return
    except Lost as fault:
        await speaker.say(notices.lost(job, str(fault)))
        return
    wants_model = _wants_model(judged.verdict, office.settings)
    note = (
        "A language model is being asked; this message will be edited with its verdict."
        if wants_model
        else ""
    )
    await _show(office, question, job, judged, note, speaker)
    if wants_model:
        with contextlib.suppress(TooMany, NothingReadable, Lost):
            judged = await asyncio.shield(office.triages.with_model(judged).result)
        await _show(office, question, job, judged, "", speaker)


async def _awaited(ticket: Ticket, job: KnownJob, speaker: Speaker) -> Judged:
    """The result; where it takes longer than some seconds, a message first says what is going on."""
    try:
        return await asyncio.wait_for(asyncio.shield(ticket.result), GRACE)
    except TimeoutError:
        if ticket.result.done():  # its own time-out, not ours
            raise
    await speaker.say(notices.reading(job, ticket.ahead))
    return await asyncio.shield(ticket.result)


def _wants_model(verdict: Verdict, settings: Settings) -> bool:
    if settings.llm == "never" or unavailable(settings):
        return False
    body = verdict.verdict
    rivals = [each.confidence for each in body.alternatives]
    return settings.llm == "always" or bool(occasion(body.failure_type, body.confidence, rivals))


async def _show(
    office: Office, question: Question, job: KnownJob, judged: Judged, note: str, speaker: Speaker
) -> None:
    topic = Topic(judged.verdict.id, job.id)
    if question.root or question.is_direct:
        office.journal.remember(question.channel, question.root, topic)
    verdict = await asyncio.to_thread(redacted, judged.verdict)
    small = " ".join(filter(None, (notices.missed(judged.missed), note)))
    head = await _head(office, question, verdict, judged.verdict)
    posted = await speaker.say(verdict_message(verdict, small, head))
    if posted:
        office.journal.remember(question.channel, posted, topic)  # for replies to the message itself


async def _head(office: Office, question: Question, verdict: Verdict, raw: Verdict) -> list[Block]:
    """The reply to what was asked besides the cause, before the verdict."""
    kinds = [kind for kind in asked(question.text) if kind is not Kind.CAUSE]
    if not kinds:
        return []
    reply = await _reply(office, question.text, verdict, raw, kinds)
    return list(_shown(replace(reply, lines=())).blocks) if reply else []


async def _reply(
    office: Office, text: str, verdict: Verdict, raw: Verdict, kinds: Sequence[Kind] = ()
) -> Reply | None:
    """The reply from a redacted verdict; earlier jobs are compared with the verdict as it was."""

    def reply() -> Reply | None:
        return reply_to(text, verdict, lambda: precedents_of(raw, office.settings), kinds)

    return await asyncio.to_thread(reply)


def _shown(reply: Reply) -> Message:
    lines = (cited_block(each.file, each.line, each.text, each.facts) for each in reply.lines)
    return answer_message(reply.text, lines)


async def _follow_up(office: Office, question: Question, topic: Topic, speaker: Speaker) -> None:
    """A question about the job of the thread, answered from the verdict that was given there."""
    try:
        kept = kept_verdict(topic.verdict, office.settings.data_dir)
    except KeyError:
        await speaker.say(notices.gone(topic.job))
        return
    verdict = await asyncio.to_thread(redacted, kept.verdict)
    if _REPORT.search(question.text):
        await upload_report(speaker, verdict)
        return
    if topic.verdict in question.text:
        await speaker.say(verdict_message(verdict))
        return
    if _HELP.match(question.text):
        await speaker.say(plain(what_can_be_asked()))
        return
    reply = await _reply(office, question.text, verdict, kept.verdict)
    if reply is None:
        reply = await _by_model(office, question, kept.paths, speaker)
    if reply is None:
        await speaker.say(notices.not_understood())
        return
    message = _shown(reply)
    await speaker.say(
        Message(
            message.text, (*message.blocks, context(f"job {topic.job or verdict.job.name} · {verdict.id}"))
        )
    )


async def _by_model(
    office: Office, question: Question, paths: tuple[str, ...], speaker: Speaker
) -> Reply | None:
    """What a model says to a question of no known kind, where one is configured and its lines bear it out."""
    settings = office.settings
    if settings.llm == "never" or unavailable(settings) or not question.text:
        return None
    await speaker.say(plain("The verdict does not say that; a language model is being asked…"))
    try:
        return await office.triages.of_question(paths, question.text)
    except (TooMany, NothingReadable, Lost, ImportError):
        return None
