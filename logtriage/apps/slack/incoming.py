"""What Slack delivers, as plain records: questions, presses of buttons, modals that were sent."""

from __future__ import annotations

import html
import re
from dataclasses import asdict, dataclass
from typing import Any

LONGEST = 4_000  # characters of a question

# Subtypes of messages that people write; all others tell of edits, joins and bots.
_WRITTEN = (None, "file_share", "thread_broadcast", "me_message")
_TOKEN = re.compile(r"<([^<>|\n]{0,3000})(?:\|([^<>\n]{0,3000}))?>")


@dataclass(frozen=True, slots=True)
class Question:
    """A question as somebody wrote it. `thread` is its thread's first message.

    `is_named`: it goes to the bot beyond doubt (mention, direct message, command). `job` is the key of a
    job that was picked from a choice. `reply_url` answers a command where the bot is no member.
    """

    channel: str
    user: str
    text: str
    ts: str = ""
    thread: str = ""
    is_direct: bool = False
    is_named: bool = True
    is_command: bool = False
    word: str = ""  # by which the job is found, where it was picked or pressed
    job: str = ""
    is_running_too: bool = False  # look at the logs though the job has not ended
    reply_url: str = ""

    def payload(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def root(self) -> str:
        """The thread that the answer goes to; empty: none, in a direct conversation or after a command."""
        return self.thread or ("" if self.is_direct else self.ts)


@dataclass(frozen=True, slots=True)
class Press:
    """A button of a verdict that somebody pressed, or a correction that was sent."""

    channel: str
    user: str
    name: str
    verdict: str
    thread: str = ""
    is_direct: bool = False
    failure_type: str = ""  # empty: as the verdict says
    evidence: str = ""  # FILE:LINE
    mitigation: str = ""
    reply_url: str = ""  # answers where the bot is no member

    def payload(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def root(self) -> str:
        """The thread that the answer goes to."""
        return self.thread

    @property
    def author(self) -> str:
        """Who says so, for the ledger: the name may change, the id does not."""
        return f"{self.name} (Slack {self.user})" if self.name else f"Slack {self.user}"


def question_of(event: dict[str, Any], bot_user: str) -> Question | None:
    """The question of a message or mention; None for what no person wrote, or an empty one."""
    user, channel = str(event.get("user") or ""), str(event.get("channel") or "")
    if not user or not channel or event.get("bot_id") or event.get("subtype") not in _WRITTEN:
        return None
    raw = str(event.get("text") or "")[: 2 * LONGEST]
    is_direct = event.get("channel_type") == "im" or channel.startswith("D")
    is_named = is_direct or event.get("type") == "app_mention" or f"<@{bot_user}" in raw
    text = written(raw, bot_user)
    thread = str(event.get("thread_ts") or "")
    ts = str(event.get("ts") or "")
    return Question(channel, user, text, ts, thread, is_direct, is_named)


def written(text: str, bot_user: str = "") -> str:
    """The text as its author wrote it: Slack's marks for mentions and links undone."""

    def meant(match: re.Match[str]) -> str:
        target, label = match[1], match[2]
        if target.startswith("@"):
            return " " if target[1:] == bot_user else f"@{label or target[1:]}"
        if target.startswith(("#", "!")):
            return label or target
        return label or target.removeprefix("mailto:")

    return one_line(html.unescape(_TOKEN.sub(meant, text)))[:LONGEST]


def one_line(text: str) -> str:
    """What a person wrote in one line; halves of surrogate pairs, which no database takes, become `?`."""
    return " ".join(text.encode("utf-8", "replace").decode().split())


def message_id(event: dict[str, Any]) -> str:
    """The same for a mention, the message that holds it, and every retry of both."""
    return f"{event.get('channel')}:{event.get('ts')}"


def press_of(body: dict[str, Any], verdict: str) -> Press:
    """The press of a button, from the body of a block action."""
    user = body.get("user") or {}
    container, message = body.get("container") or {}, body.get("message") or {}
    channel = str((body.get("channel") or {}).get("id") or container.get("channel_id") or "")
    is_direct = channel.startswith("D")
    own = "" if is_direct else message.get("ts")
    thread = str(message.get("thread_ts") or container.get("thread_ts") or own or "")
    return Press(
        channel=channel,
        user=str(user.get("id") or ""),
        name=str(user.get("username") or user.get("name") or "")[:80],
        verdict=verdict,
        thread=thread,
        is_direct=is_direct,
        reply_url=str(body.get("response_url") or ""),
    )
