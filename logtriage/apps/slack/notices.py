"""The bot's plain answers where there is no verdict: one for each reason, and what can be done about it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from logtriage.answers.reply import what_can_be_asked
from logtriage.redaction import Redaction
from logtriage.report import words
from logtriage.report.document import iso_time
from logtriage.report.slack_blocks import LABEL, Block, Message, button, context, plain
from logtriage.report.visible import visible
from logtriage.sources.job import KnownJob
from logtriage.sources.lookup import Found

PICK, MEANT, LOOK = "logtriage_pick", "logtriage_meant", "logtriage_look"
MOST_OPTIONS = 100
_BLOCK_ID = 255
_BETWEEN = " | "


def job_key(job: KnownJob) -> str:
    """What stands for a job in a button or option, whose values are short."""
    return hashlib.sha256(f"{job.source}\n{job.id}".encode("utf-8", "surrogatepass")).hexdigest()[:24]


def which_job() -> Message:
    return plain(
        "Which job? Name its id, its name, its user, or the path of its logs.", context(what_can_be_asked())
    )


def not_understood() -> Message:
    return plain("I answer questions about the job of this thread, and this is none that I know.",
                 context(what_can_be_asked()))  # fmt: skip


def may_not_ask() -> Message:
    return plain(
        "You may not ask me here. Who may is set in logtriage.toml (slack_ask_users, _groups, _channels)."
    )


def may_not_confirm() -> Message:
    return plain("You may not confirm or correct verdicts (slack_confirm_users, _groups in logtriage.toml).")


def gone(job: str = "") -> Message:
    of = f" of job {visible(job, 100)}" if job else ""
    return plain(f"That verdict{of} is not kept any more. Ask for the job again.")


def unknown_job(asked: str, found: Found) -> Message:
    """No source knows it: why, and what may have been meant."""
    if found.refused:
        text = f"{_sentence(found.refused)} Nothing was read."
    else:
        text = f"I know no job called {visible(asked, 100)}. Nothing was read."
    blocks: list[Block] = []
    near = [name for name in found.near[:5] if name.isprintable()]
    if near:
        text += " Did you mean one of these?"
        names = [button(f"{MEANT}_{number}", name, name) for number, name in enumerate(near)]
        blocks.append({"type": "actions", "elements": names})
    return plain(text, *blocks, *_unasked(found))


def _sentence(text: str) -> str:
    shown = visible(_without_secrets(text), 400).rstrip(".")
    return shown[:1].upper() + shown[1:] + "."


def _without_secrets(text: str) -> str:
    return Redaction().redact(visible(text))  # first what a file name with broken bytes holds


def _unasked(found: Found) -> list[Block]:
    if not found.unasked:
        return []
    return [context("Could not be asked: " + "; ".join(_sentence(each) for each in found.unasked[:4]))]


def again(asked: str, question: str, most: int) -> str:
    """What a pick or a press brings back: the word that names the job, and the question."""
    return f"{asked[:most]}{_BETWEEN}{question}"[:most].rstrip()


def brought_back(told: str) -> tuple[str, str]:
    """(the word that names the job, the question) of what `again` made."""
    asked, _, question = told.partition(_BETWEEN)
    return asked, question or asked


def choice(asked: str, question: str, found: Found, *, is_more: bool) -> Message:
    """Several jobs answer to it: a list to pick from."""
    options = [
        {
            "text": {"type": "plain_text", "text": _option(job), "emoji": False},
            "value": job_key(job),
        }
        for job in found.jobs[:MOST_OPTIONS]
    ]
    select: Block = {
        "type": "static_select",
        "action_id": PICK,
        "placeholder": {"type": "plain_text", "text": "Pick a job", "emoji": False},
        "options": options,
    }
    count = f"{'More than ' if is_more else ''}{len(options)}"
    text = f"{count} jobs answer to {visible(asked, 100)}. Which one?"
    row: Block = {"type": "actions", "block_id": again(asked, question, _BLOCK_ID), "elements": [select]}
    return plain(text, row, *_unasked(found))


def _option(job: KnownJob) -> str:
    when = words.clock(iso_time(job.ended or job.started))[:16]
    facts = [visible(job.id, 40), *([visible(job.name, 40)] if job.name and job.name != job.id else [])]
    facts += [visible(job.state, 12)] if job.state else []
    text = " · ".join([*facts, *([when] if when else [])])
    return text if len(text) <= LABEL else text[: LABEL - 1] + "…"


def still_running(job: KnownJob, asked: str, question: str) -> Message:
    facts = [f"since {words.clock(iso_time(job.started))[:16]} UTC"] if job.started else []
    facts += [f"on {words.listed(job.nodes, 4)}"] if job.nodes else []
    told = f" ({', '.join(facts)})" if facts else ""
    state = f" as {visible(job.state, 30)}" if job.state and job.state.upper() != "RUNNING" else ""
    text = f"Job {named(job)} is still running{state}{told}. It has not ended, so there is no cause to name."
    look = button(LOOK, "Look at its logs so far", f"{job_key(job)} {again(asked, question, 1900)}")
    return plain(text, {"type": "actions", "elements": [look]})


def nothing_readable(job: KnownJob, why: str) -> Message:
    note = f" ({visible(job.note, 200)})" if job.note else ""
    return plain(f"Job {named(job)} is known{note}, but there is nothing of it to read: {_sentence(why)}")


def lost(job: KnownJob, why: str) -> Message:
    return plain(f"The triage of job {named(job)} was lost: {_sentence(why)}")


def reading(job: KnownJob, ahead: int) -> Message:
    """Said where the verdict takes longer than some seconds."""
    if ahead > 0:
        before = f"{words.counted(ahead, 'job')} {'is' if ahead == 1 else 'are'} before it"
        return plain(
            f"Job {named(job)} is waiting for its turn: {before}. This message will become the verdict."
        )
    return plain(f"Reading the logs of job {named(job)}… This message will become the verdict.")


def named(job: KnownJob) -> str:
    same = not job.name or job.name == job.id
    return visible(_without_secrets(job.id if same else f"{job.id} ({job.name})"), 200)


def missed(reasons: Sequence[str]) -> str:
    """Small print of a verdict that stands on less than all."""
    return "Could not be fetched: " + " ".join(_sentence(each) for each in reasons[:3]) if reasons else ""
