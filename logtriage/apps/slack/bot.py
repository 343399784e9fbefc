"""The bot: slack-bolt's listeners take deliveries on, and each is worked on until it is answered.

What a listener takes on is in the journal before Slack is told that it arrived (`process_before_response`).
The work goes on beside it: no listener waits for a triage.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from aiohttp import ClientError
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncAck, AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from logtriage.apps.slack import modal, notices
from logtriage.apps.slack.access import Access
from logtriage.apps.slack.conversation import Office, answer, is_for_the_bot
from logtriage.apps.slack.incoming import Press, Question, message_id, press_of, question_of, written
from logtriage.apps.slack.journal import Delivery, Journal
from logtriage.apps.slack.report_file import upload_report
from logtriage.apps.slack.speech import Place, Speaker, web_client
from logtriage.apps.slack.triages import Triages
from logtriage.apps.slack.words_of_people import take
from logtriage.memory.verdicts import kept_verdict
from logtriage.report.redacted import redacted
from logtriage.report.slack_blocks import CONFIRM, REPORT, WRONG, plain
from logtriage.settings import Settings
from logtriage.sources.lookup import configured_sources

OLD_QUESTION = 3600.0  # seconds after which an unanswered question is not answered any more
PING_SECONDS = 5  # a connection that was lost without a word is made anew about so much later
RETRY_SECONDS = (5, 20, 60, 180, 600)
_PATH = "/slack/events"

_log = logging.getLogger("logtriage.slack")


class Bot:
    """One running bot: what it has taken on, and the tasks that work on it."""

    def __init__(self, settings: Settings, journal: Journal, client: AsyncWebClient, user: str) -> None:
        self.settings, self.journal, self.client, self.user = settings, journal, client, user
        self.triages = Triages(settings)
        access = Access(settings, client)
        self.office = Office(settings, journal, access, configured_sources(settings), self.triages)
        self._tasks: set[asyncio.Task[None]] = set()

    def take_on(self, kind: str, delivery_id: str, work: Question | Press) -> None:
        """Write a delivery down and begin with it; one that was taken on before is left alone.

        Raises sqlite3.Error where it cannot be written down: Slack then delivers it again.
        """
        delivery = Delivery(delivery_id, kind, work.payload())
        if self.journal.accept(delivery):
            self._begin(delivery)

    def resume(self) -> None:
        """Go on with what was taken on before the last end. Words of people never grow old."""
        for delivery in self.journal.unfinished():
            if delivery.kind == "word" or time.time() - delivery.at < OLD_QUESTION:
                self._begin(delivery, is_resumed=True)
            else:
                self.journal.finish(delivery.id)

    def _begin(self, delivery: Delivery, *, is_resumed: bool = False) -> None:
        self.beside(self._work(delivery, is_resumed))

    async def _work(self, delivery: Delivery, is_resumed: bool) -> None:
        """Work on a delivery until it is answered; while Slack cannot be reached, try again and again."""
        for delay in (*RETRY_SECONDS, None):
            speaker = self._speaker(delivery)
            try:
                if is_resumed:
                    await speaker.recall(delivery.at)
                await self._answer(delivery, speaker)
            except Exception as fault:
                if delay is not None and _is_passing(fault):
                    _log.warning("Slack cannot be reached (%s); trying again in %d s", fault, delay)
                    delivery = replace(delivery, posted=speaker.posted)
                    await asyncio.sleep(delay)
                    continue
                _log.exception("delivery %s (%s) failed", delivery.id, delivery.kind)
                if _is_passing(fault):
                    return  # it stays in the journal for the next start
                await _excused(speaker, fault)
            break
        self.journal.finish(delivery.id)

    def _speaker(self, delivery: Delivery) -> Speaker:
        said = Question(**delivery.payload) if delivery.kind == "question" else Press(**delivery.payload)
        place = Place(said.channel, said.user, said.root, said.reply_url)
        return Speaker(self.client, self.journal, delivery.id, place, delivery.posted)

    async def _answer(self, delivery: Delivery, speaker: Speaker) -> None:
        if delivery.kind == "question":
            await answer(self.office, Question(**delivery.payload), speaker)
        elif delivery.kind == "word":
            await take(self.office, Press(**delivery.payload), speaker)
        else:
            await self._report(Press(**delivery.payload), speaker)

    async def _report(self, press: Press, speaker: Speaker) -> None:
        if not await self.office.access.may_ask(press.user, press.channel, is_direct=press.is_direct):
            await speaker.whisper(notices.may_not_ask())
            return
        try:
            kept = kept_verdict(press.verdict, self.settings.data_dir)
        except KeyError:
            await speaker.say(notices.gone())
            return
        await upload_report(speaker, await asyncio.to_thread(redacted, kept.verdict))

    async def open_modal(self, press: Press, trigger: str) -> None:
        """Open the modal for a correction; Slack allows it for three seconds after the press."""
        place = Place(press.channel, press.user, press.root, press.reply_url)
        speaker = Speaker(self.client, self.journal, "", place)
        try:
            if not await self.office.access.may_confirm(press.user, press.channel, is_direct=press.is_direct):
                await speaker.whisper(notices.may_not_confirm())
                return
            kept = kept_verdict(press.verdict, self.settings.data_dir)
            view = modal.correction_view(await asyncio.to_thread(redacted, kept.verdict), press)
            await self.client.views_open(trigger_id=trigger, view=view)
        except KeyError:
            await speaker.say(notices.gone())
        except SlackApiError:
            _log.exception("the modal could not be opened")
            await speaker.whisper(plain("The form could not be opened in time. Press the button again."))

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Do what nobody must wait for; what is to be done after a restart too is in the journal before."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End all work; what is not done stays in the journal."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.triages.close()
        self.journal.close()


def _is_passing(fault: Exception) -> bool:
    """Whether it is Slack, or the way to it, that fails for the moment."""
    if isinstance(fault, SlackApiError):
        return getattr(fault.response, "status_code", 200) in (429, 500, 502, 503, 504)
    return isinstance(fault, ClientError | TimeoutError)


async def _excused(speaker: Speaker, fault: Exception) -> None:
    if isinstance(fault, SlackApiError):
        return  # Slack does not take what is said there
    try:
        await speaker.say(plain(f"That failed inside of me ({type(fault).__name__}); my log says more."))
    except Exception:
        _log.exception("nor could that be said")


def listening(bot: Bot) -> AsyncApp:
    """The Bolt app with all listeners."""
    settings = bot.settings
    app = AsyncApp(
        client=bot.client,
        signing_secret=settings.slack_signing_secret.get_secret_value(),
        process_before_response=True,
        logger=_log,
    )
    _listen_to_messages(app, bot)
    _listen_to_buttons(app, bot)
    return app


def _listen_to_messages(app: AsyncApp, bot: Bot) -> None:
    async def said(event: dict[str, Any]) -> None:
        question = question_of(event, bot.user)
        if question is not None and is_for_the_bot(question, bot.journal):
            bot.take_on("question", message_id(event), question)

    app.event("app_mention")(said)
    app.event("message")(said)

    @app.command("/triage")
    async def commanded(ack: AsyncAck, command: dict[str, Any]) -> None:
        channel = str(command.get("channel_id") or "")
        question = Question(
            channel=channel,
            user=str(command.get("user_id") or ""),
            text=written(str(command.get("text") or "")),
            is_direct=channel.startswith("D"),
            is_command=True,
            reply_url=str(command.get("response_url") or ""),
        )
        bot.take_on("question", f"command:{command.get('trigger_id')}", question)
        await ack()


def _listen_to_buttons(app: AsyncApp, bot: Bot) -> None:
    def pressed(kind: str) -> Callable[..., Any]:
        async def taken(ack: AsyncAck, body: dict[str, Any], action: dict[str, Any]) -> None:
            bot.take_on(kind, _action_id(body), press_of(body, str(action.get("value") or "")))
            await ack()

        return taken

    app.action(CONFIRM)(pressed("word"))
    app.action(REPORT)(pressed("report"))

    @app.action(WRONG)
    async def wrong(ack: AsyncAck, body: dict[str, Any], action: dict[str, Any]) -> None:
        bot.beside(
            bot.open_modal(press_of(body, str(action.get("value") or "")), str(body.get("trigger_id")))
        )
        await ack()

    @app.view(modal.CALLBACK)
    async def corrected(ack: AsyncAck, body: dict[str, Any]) -> None:
        try:
            verdict = kept_verdict(modal.verdict_id(body), bot.settings.data_dir).verdict
        except KeyError:
            verdict = None  # which is said in the thread, where there is room for it
        press = modal.correction(body, verdict)
        if isinstance(press, Press):
            bot.take_on("word", f"view:{(body.get('view') or {}).get('id')}", press)
            await ack()
        else:
            await ack(response_action="errors", errors=press)

    async def picked(ack: AsyncAck, body: dict[str, Any], action: dict[str, Any]) -> None:
        press = press_of(body, "")
        value = str((action.get("selected_option") or {}).get("value") or action.get("value") or "")
        name = str(action.get("action_id") or "")
        told, job = (str(action.get("block_id") or ""), value) if name == notices.PICK else (value, "")
        if name == notices.LOOK:
            job, _, told = value.partition(" ")
        word, text = notices.brought_back(told)
        question = Question(
            channel=press.channel,
            user=press.user,
            text=text,
            thread=press.thread,
            is_direct=press.is_direct,
            word=word,
            job=job,
            is_running_too=name == notices.LOOK,
            reply_url=press.reply_url,
        )
        bot.take_on("question", _action_id(body), question)
        await ack()

    app.action(notices.PICK)(picked)
    app.action(notices.LOOK)(picked)
    for number in range(5):
        app.action(f"{notices.MEANT}_{number}")(picked)


def _action_id(body: dict[str, Any]) -> str:
    """The same for every retry of one press."""
    return f"action:{body.get('trigger_id')}"


async def run(settings: Settings, journal: Journal, port: int | None, tell: Callable[[str], None]) -> None:
    """Run until a signal ends it. Without a port by Socket Mode. Raises SlackApiError for refused tokens."""
    client = web_client(settings)
    told = await client.auth_test()
    bot = Bot(settings, journal, client, str(told["user_id"]))
    app = listening(bot)
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    bot.resume()
    bot.beside(bot.triages.warm())
    try:
        if port is None:
            await _by_socket(app, settings, ended, lambda: tell(f"{told['user']} is listening (Socket Mode)"))
        else:
            await _by_http(
                app, port, ended, lambda: tell(f"{told['user']} is listening on port {port} {_PATH}")
            )
    finally:
        await bot.close()


async def _by_socket(
    app: AsyncApp, settings: Settings, ended: asyncio.Event, ready: Callable[[], None]
) -> None:
    token = settings.slack_app_token.get_secret_value()
    handler = AsyncSocketModeHandler(app, token, ping_interval=PING_SECONDS)
    await handler.connect_async()  # type: ignore[no-untyped-call]
    ready()
    try:
        await ended.wait()
    finally:
        await handler.close_async()  # type: ignore[no-untyped-call]


async def _by_http(app: AsyncApp, port: int, ended: asyncio.Event, ready: Callable[[], None]) -> None:
    """HTTP with the check of Slack's signature, which Bolt makes; TLS is for a proxy in front."""
    from aiohttp import web

    runner = web.AppRunner(app.web_app(path=_PATH))
    await runner.setup()
    await web.TCPSite(runner, port=port).start()
    ready()
    try:
        await ended.wait()
    finally:
        await runner.cleanup()
