"""One message to a channel, from a program that is no bot: the digest of a night."""

from __future__ import annotations

import asyncio

from aiohttp import ClientError
from slack_sdk.errors import SlackApiError

from logtriage.apps.slack.speech import web_client
from logtriage.report.slack_blocks import Message
from logtriage.report.visible import visible
from logtriage.settings import Settings

SECONDS = 300  # for all tries together; what Slack says to wait is waited within them


class NotPosted(Exception):
    """Slack did not take the message; the text says why, and the mend where there is one."""


_MENDS = {
    "channel_not_found": "no such channel, or a private one where the bot is no member",
    "not_in_channel": "invite the bot there, or give it chat:write.public",
    "is_archived": "the channel is archived",
    "invalid_auth": "slack_bot_token is no token that Slack knows",
    "not_authed": "slack_bot_token is no token that Slack knows",
    "missing_scope": "the app lacks the scope chat:write",
}


def post(settings: Settings, channel: str, message: Message) -> None:
    """Post it with the bot's token, once: it is tried again only where it cannot have arrived.

    Raises NotPosted.
    """
    try:
        asyncio.run(asyncio.wait_for(_post(settings, channel, message), SECONDS))
    except SlackApiError as fault:
        error = str(fault.response.get("error") or f"status {fault.response.status_code}")
        raise NotPosted(
            f"Slack says {visible(error, 200)} ({_MENDS.get(error, 'see docs/slack.md')})"
        ) from None
    except (ClientError, TimeoutError, OSError) as fault:
        raise NotPosted(f"Slack cannot be reached: {visible(str(fault) or 'no answer', 200)}") from None


async def _post(settings: Settings, channel: str, message: Message) -> None:
    await web_client(settings).chat_postMessage(
        channel=channel,
        text=message.text,
        blocks=list(message.blocks),
        unfurl_links=False,
        unfurl_media=False,
    )
