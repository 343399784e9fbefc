"""What people say of verdicts: by button or modal into the ledger first, then an answer in the thread."""

from __future__ import annotations

from logtriage.apps.lessons import outcome, teach
from logtriage.apps.slack import notices
from logtriage.apps.slack.conversation import Office
from logtriage.apps.slack.incoming import Press
from logtriage.apps.slack.speech import Speaker
from logtriage.apps.slack.triages import Lost
from logtriage.memory.evidence import EvidenceFault
from logtriage.memory.learning import Word
from logtriage.memory.ledger import LedgerFault
from logtriage.memory.verdicts import kept_verdict
from logtriage.redaction import Redaction
from logtriage.report import words
from logtriage.report.slack_blocks import Message, context, plain
from logtriage.report.visible import visible
from logtriage.settings import Settings


async def take(office: Office, press: Press, speaker: Speaker) -> None:
    """Take a confirmation or correction; who may not make one is told so."""
    if not await office.access.may_confirm(press.user, press.channel, is_direct=press.is_direct):
        await speaker.whisper(notices.may_not_confirm())
        return
    try:
        said, learned = await office.triages.lesson(taught, press, office.settings)
    except KeyError:
        await speaker.say(notices.gone())
        return
    except EvidenceFault as fault:
        shown = visible(Redaction().redact(str(fault)), 500)
        await speaker.say(
            plain(f"Nothing was written down: {shown}. Press Wrong… again and name another line.")
        )
        return
    except (LedgerFault, OSError, Lost) as fault:
        await speaker.say(
            plain(f"It could not be written down: {visible(str(fault), 300)}. Press the button again.")
        )
        return
    await speaker.say(_thanks(press, said, learned))


def _thanks(press: Press, said: str, learned: str) -> Message:
    return plain(
        said, context(learned, f"by {press.author}; `logtriage rules undo` takes a learned rule back")
    )


def taught(press: Press, settings: Settings) -> tuple[str, str]:
    """What was said and what became of it, in words; runs in a process of its own.

    Raises KeyError where the verdict is gone, EvidenceFault, LedgerFault.
    """
    kept = kept_verdict(press.verdict, settings.data_dir)
    failure_type = press.failure_type or kept.verdict.verdict.failure_type
    word = Word(failure_type, press.author, press.evidence, press.mitigation)
    lesson = teach(kept, word, settings)
    _, state = outcome(lesson)
    told = lesson.diagnosis.told
    name = words.type_name(failure_type)
    said = (
        f"Confirmed: {name}."
        if told == failure_type
        else f"Corrected: {name} instead of {words.type_name(told)}."
    )
    if lesson.rule is None:
        return (
            f"{said} It is written down (diagnosis {lesson.diagnosis.id}).",
            f"No rule was learned: {state}",
        )
    return (
        f"{said} It is written down (diagnosis {lesson.diagnosis.id}), and a rule was learned.",
        f"The rule {lesson.rule.id} {state}",
    )
