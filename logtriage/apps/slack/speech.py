"""Saying things in Slack: a message is posted once and then edited; where that fails there is another way."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientConnectorError
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.async_handler import AsyncRetryHandler
from slack_sdk.http_retry.builtin_async_handlers import (
    AsyncConnectionErrorRetryHandler,
    AsyncRateLimitErrorRetryHandler,
    AsyncServerErrorRetryHandler,
)
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from logtriage.apps.slack.journal import Journal
from logtriage.report.slack_blocks import Message
from logtriage.settings import Settings

RATE_LIMIT_TRIES = 8
_ANSWER = "logtriage_answer"  # metadata that says which delivery a message answers
_log = logging.getLogger("logtriage.slack")

# The message to edit is gone, or is nobody's to edit any more: a new one is posted.
_NOT_EDITABLE = {"message_not_found", "cant_update_message", "edit_window_closed"}
# The bot is not there; the address that came with a command or a button reaches its user all the same.
_NOT_THERE = {"not_in_channel", "channel_not_found", "is_archived", "restricted_action"}
_NO_BLOCKS = {"invalid_blocks", "invalid_blocks_format", "msg_too_long", "msg_blocks_too_long"}


def web_client(settings: Settings) -> AsyncWebClient:
    """The client of the Web API. It waits as long as Slack says, and sends again only what did not arrive."""
    handlers: list[AsyncRetryHandler] = [
        AsyncRateLimitErrorRetryHandler(max_retry_count=RATE_LIMIT_TRIES),
        AsyncServerErrorRetryHandler(max_retry_count=2),
        # Not after a lost connection: the message may have been posted, and would be there twice.
        AsyncConnectionErrorRetryHandler(max_retry_count=3, error_types=[ClientConnectorError]),
    ]
    token = settings.slack_bot_token.get_secret_value()
    if not settings.slack_api_url:
        return AsyncWebClient(token=token, retry_handlers=handlers)
    address = settings.slack_api_url.rstrip("/") + "/"
    return AsyncWebClient(token=token, base_url=address, retry_handlers=handlers)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an answer goes; `reply_url` is used where the bot cannot post."""

    channel: str
    user: str
    thread: str = ""
    reply_url: str = ""


@dataclass(slots=True)
class Speaker:
    """The one message that answers a delivery: posted at first, then edited, also after a restart."""

    client: AsyncWebClient
    journal: Journal
    delivery: str  # its id; empty: nothing is noted
    place: Place
    posted: str = ""  # the message's ts

    async def say(self, message: Message) -> str:
        """Show the message and return its ts; empty where only its reader sees it.

        Raises SlackApiError where Slack refuses it in every way.
        """
        try:
            return await self._said(message)
        except SlackApiError as fault:
            if fault.response.get("error") not in _NO_BLOCKS:
                raise
            _log.error("Slack refuses the blocks of a message: %s", fault.response.get("response_metadata"))
            return await self._said(Message(message.text, ()))

    async def _said(self, message: Message) -> str:
        blocks = list(message.blocks)
        if self.posted:
            try:
                await self.client.chat_update(
                    channel=self.place.channel, ts=self.posted, text=message.text, blocks=blocks
                )
                return self.posted
            except SlackApiError as fault:
                if fault.response.get("error") not in _NOT_EDITABLE:
                    raise
        try:
            told = await self.client.chat_postMessage(
                channel=self.place.channel,
                thread_ts=self.place.thread or None,
                text=message.text,
                blocks=blocks,
                unfurl_links=False,
                unfurl_media=False,
                metadata={"event_type": _ANSWER, "event_payload": {"delivery": self.delivery}},
            )
        except SlackApiError as fault:
            if fault.response.get("error") not in _NOT_THERE or not self.place.reply_url:
                raise
            await AsyncWebhookClient(self.place.reply_url).send(
                text=message.text, blocks=blocks, response_type="ephemeral", replace_original=False
            )
            return ""
        self.posted = str(told["ts"])
        if self.delivery:
            self.journal.note_posted(self.delivery, self.posted)
        return self.posted

    async def recall(self, since: float) -> None:
        """After a restart: find the message that was posted, and not yet noted, when the bot ended.

        `since` (seconds since 1970) is when the delivery came.
        """
        if self.posted:
            return
        window: dict[str, Any] = {"oldest": f"{since - 1:.6f}", "include_all_metadata": True, "limit": 200}
        channel, thread = self.place.channel, self.place.thread
        try:
            if thread:
                told = await self.client.conversations_replies(channel=channel, ts=thread, **window)
            else:
                told = await self.client.conversations_history(channel=channel, **window)
        except SlackApiError as fault:
            _log.info("what was posted before cannot be looked up: %s", fault.response.get("error"))
            return
        for message in told.get("messages") or ():
            payload = (message.get("metadata") or {}).get("event_payload") or {}
            if payload.get("delivery") == self.delivery:
                self.posted = str(message["ts"])

    async def whisper(self, message: Message) -> None:
        """Show the message to its reader alone."""
        try:
            await self.client.chat_postEphemeral(
                channel=self.place.channel,
                user=self.place.user,
                thread_ts=self.place.thread or None,
                text=message.text,
                blocks=list(message.blocks),
            )
        except SlackApiError as fault:
            if not self.place.reply_url:
                raise
            _log.info("no ephemeral message: %s", fault.response.get("error"))
            await AsyncWebhookClient(self.place.reply_url).send(
                text=message.text, response_type="ephemeral", replace_original=False
            )
