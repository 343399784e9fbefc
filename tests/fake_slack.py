"""A Slack on loopback: the Web API and Socket Mode as slack-bolt speaks to them, with Block Kit's limits.

Messages that break a limit are refused as Slack refuses them, and noted in `refused`.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

BOT_USER, BOT_ID, TEAM = "UBOT", "BBOT", "T1"


@dataclass
class Posted:
    """A message of the bot; `shown` holds every text that it ever showed, the latest last."""

    channel: str
    ts: str
    thread: str
    shown: list[dict[str, Any]]
    at: float

    @property
    def text(self) -> str:
        """All that a reader sees of it now."""
        return text_of(self.shown[-1])

    @property
    def blocks(self) -> list[dict[str, Any]]:
        return list(self.shown[-1].get("blocks") or ())

    def element(self, action: str) -> tuple[dict[str, Any], str]:
        """A button or select by its action id, and the id of its block."""
        for block in self.blocks:
            for each in block.get("elements", ()):
                if each.get("action_id") == action:
                    return each, str(block.get("block_id", ""))
        raise AssertionError(f"no {action} in {json.dumps(self.blocks)[:2000]}")


def text_of(message: dict[str, Any]) -> str:
    if not message.get("blocks"):
        return str(message.get("text", ""))
    texts: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("text"), str):
                texts.append(value["text"])
            for each in value.values():
                walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)

    walk(message["blocks"])
    return "\n".join(texts)


def faults_of(message: dict[str, Any]) -> list[str]:
    """What Slack would refuse in a message or modal (docs.slack.dev/reference/block-kit)."""
    found: list[str] = []
    blocks = message.get("blocks") or []
    is_modal = message.get("type") == "modal"
    most = 100 if is_modal else 50
    if len(blocks) > most:
        found.append(f"{len(blocks)} blocks")
    if len(str(message.get("text") or "")) > 40_000:
        found.append("text")
    ids = [each["block_id"] for each in blocks if "block_id" in each]
    if len(set(ids)) < len(ids) or any(len(each) > 255 for each in ids):
        found.append("block ids")
    if is_modal:
        found += [name for name in ("title", "submit", "close") if len(message[name]["text"]) > 24]
        found += ["private_metadata"] if len(message.get("private_metadata", "")) > 3000 else []
    actions: list[str] = []
    for block in blocks:
        kind = block["type"]
        if kind == "section":
            found += _text(block["text"], 3000, kind)
        elif kind == "header":
            found += _text(block["text"], 150, kind)
        elif kind == "context":
            elements = block["elements"]
            found += ["context"] if not 1 <= len(elements) <= 10 else []
            for each in elements:
                found += _text(each, 3000, kind)
        elif kind == "actions":
            found += ["actions"] if not 1 <= len(block["elements"]) <= 25 else []
            for each in block["elements"]:
                actions.append(each["action_id"])
                found += _element(each)
        elif kind == "input":
            found += _text(block["label"], 2000, kind) + _element(block["element"])
        else:
            found.append(f"block {kind}")
    if len(set(actions)) < len(actions):
        found.append("action ids")
    return found


def _text(text: dict[str, Any], most: int, what: str) -> list[str]:
    size = len(text["text"])
    fault = [f"{what}: {size} characters"] if not 1 <= size <= most else []
    if text["type"] == "mrkdwn" and not text.get("verbatim"):
        fault.append(f"{what}: Slack would make links and mentions of its own")
    return fault


def _element(each: dict[str, Any]) -> list[str]:
    found = [] if len(each["action_id"]) <= 255 else ["action_id"]
    if each["type"] == "button":
        found += _text(each["text"], 75, "button")
        found += [] if len(each.get("value", "")) <= 2000 else ["button value"]
    elif each["type"] == "static_select":
        groups = each.get("option_groups") or [{"options": each["options"]}]
        found += ["groups"] if len(groups) > 100 else []
        for group in groups:
            found += ["options"] if not 1 <= len(group["options"]) <= 100 else []
            found += _text(group["label"], 75, "group") if "label" in group else []
            for option in group["options"]:
                found += _text(option["text"], 75, "option")
                found += [] if len(option["value"]) <= 75 else ["option value"]
    return found


@dataclass
class FakeSlack:
    """What a test says to the bot, and what the bot said. Methods may be called from the test's thread."""

    messages: dict[str, Posted] = field(default_factory=dict)
    ephemeral: list[dict[str, Any]] = field(default_factory=list)
    views: list[dict[str, Any]] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    replies: list[dict[str, Any]] = field(default_factory=list)  # to response_url
    acks: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)
    away: set[str] = field(default_factory=set)  # channels where the bot is no member
    limited: list[int] = field(default_factory=list)  # Retry-After of the next posts, one each
    failing: int = 0  # so many of the next posts end with 503
    connections: int = 0
    url: str = ""
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _sockets: set[web.WebSocketResponse] = field(default_factory=set)
    _uploads: dict[str, bytes] = field(default_factory=dict)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    # --- what a test does ---

    def ts(self) -> str:
        return f"{1_770_000_000 + next(self._numbers)}.{next(self._numbers):06d}"

    def mention(self, text: str, *, user: str = "UANN", channel: str = "C1", thread: str = "") -> str:
        """Write `@bot text` in a channel; both events that Slack makes of it are sent. Returns its ts."""
        ts = self.ts()
        told = {"user": user, "channel": channel, "text": f"<@{BOT_USER}> {text}", "ts": ts}
        told |= {"thread_ts": thread} if thread else {}
        self.event({**told, "type": "app_mention"})
        self.event({**told, "type": "message", "channel_type": "channel"})
        return ts

    def write(
        self, text: str, *, user: str = "UANN", channel: str = "D1", thread: str = "", **more: Any
    ) -> str:
        """Write in a direct conversation, or without a mention in a thread of a channel."""
        ts = self.ts()
        kind = "im" if channel.startswith("D") else "channel"
        told = {
            "type": "message",
            "channel_type": kind,
            "user": user,
            "channel": channel,
            "text": text,
            "ts": ts,
        }
        told |= {"thread_ts": thread} if thread else {}
        self.event({**told, **more})
        return ts

    def event(self, event: dict[str, Any], *, number: str = "") -> str:
        number = number or f"Ev{next(self._numbers)}"
        payload = {"type": "event_callback", "event_id": number, "team_id": TEAM, "event": event}
        return self.deliver("events_api", {**payload, "event_time": int(time.time())})

    def command(self, text: str, *, user: str = "UANN", channel: str = "C1") -> None:
        told = {"command": "/triage", "text": text, "user_id": user, "channel_id": channel, "team_id": TEAM}
        told |= {"trigger_id": f"trig{next(self._numbers)}", "response_url": f"{self.url}/reply"}
        self.deliver("slash_commands", told)

    def press(
        self, message: Posted, action: str, *, user: str = "UANN", times: int = 1, option: int = 0
    ) -> None:
        """Press a button, or pick an option; `times` delivers the same press again."""
        element, block = message.element(action)
        told = {"type": element["type"], "action_id": action, "block_id": block or "b1"}
        if element["type"] == "static_select":
            told["selected_option"] = element["options"][option]
        else:
            told["value"] = element["value"]
        shown = {"ts": message.ts, "text": message.shown[-1].get("text", "")}
        shown |= {"thread_ts": message.thread} if message.thread else {}
        body = {
            "type": "block_actions", "trigger_id": f"trig{next(self._numbers)}", "team": {"id": TEAM},
            "user": {"id": user, "username": user.lower(), "team_id": TEAM},
            "channel": {"id": message.channel}, "message": shown, "actions": [told],
            "container": {"type": "message", "message_ts": message.ts, "channel_id": message.channel},
            "response_url": f"{self.url}/reply",
        }  # fmt: skip
        for _ in range(times):
            self.deliver("interactive", body)

    def submit(self, view: dict[str, Any], values: dict[str, Any], *, user: str = "UANN") -> dict[str, Any]:
        """Send a modal with its fields filled in; returns what the bot answered."""
        state = {block: {block: value} for block, value in values.items()}
        sent = {**view, "id": f"V{next(self._numbers)}", "state": {"values": state}}
        body = {"type": "view_submission", "trigger_id": f"trig{next(self._numbers)}", "team": {"id": TEAM},
                "user": {"id": user, "username": user.lower(), "team_id": TEAM}, "view": sent}  # fmt: skip
        return dict(self.acks[self.deliver("interactive", body)].get("payload") or {})

    def deliver(self, kind: str, payload: dict[str, Any], seconds: float = 300) -> str:
        """Send an envelope, again when no acknowledgement comes, as Slack does. Returns its id."""
        envelope = f"env{next(self._numbers)}"
        told = {"envelope_id": envelope, "type": kind, "payload": payload, "accepts_response_payload": True}
        until = time.monotonic() + seconds
        attempt = 0
        while time.monotonic() < until:
            retry = {"retry_attempt": attempt, "retry_reason": "timeout"} if attempt else {}
            self._send({**told, **retry})
            if self.until(lambda: envelope in self.acks, 3):
                return envelope
            attempt += 1
        raise AssertionError(f"{kind} was not acknowledged")

    def drop_connections(self) -> None:
        """Close every websocket without a word."""

        async def close() -> None:
            for socket in list(self._sockets):
                await socket.close(code=1006)

        asyncio.run_coroutine_threadsafe(close(), self._loop).result(10)

    def say_goodbye(self) -> None:
        """Ask the bot to connect anew, as Slack does every few hours."""
        self._send({"type": "disconnect", "reason": "refresh_requested", "debug_info": {}})

    def until(self, holds: Callable[[], Any], seconds: float = 300) -> bool:
        with self._changed:
            return bool(self._changed.wait_for(holds, seconds))

    def answers(self, thread: str, channel: str = "C1") -> list[Posted]:
        return [each for each in self.messages.values() if each.thread == thread and each.channel == channel]

    def answer(self, thread: str, channel: str = "C1", *, count: int = 1, seconds: float = 600) -> Posted:
        """The latest of `count` answers in a thread, once it shows more than that one is coming."""

        def is_there() -> bool:
            told = self.answers(thread, channel)
            return len(told) >= count and "will become the verdict" not in told[count - 1].text

        assert self.until(is_there, seconds), (
            f"no answer {count} in {thread}: {self.answers(thread, channel)}"
        )
        return self.answers(thread, channel)[count - 1]

    def _send(self, message: dict[str, Any]) -> None:
        async def send() -> None:
            for _ in range(200):
                for socket in list(self._sockets):
                    if not socket.closed:
                        await socket.send_str(json.dumps(message))
                        return
                await asyncio.sleep(0.1)
            raise AssertionError("no bot is connected")

        done: Future[None] = asyncio.run_coroutine_threadsafe(send(), self._loop)
        done.result(30)

    # --- what the bot sees ---

    async def _api(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        if request.content_type == "application/json":
            told = await request.json()
        else:
            told = {**request.query, **dict(await request.post())}
        with self._changed:
            self.calls.append(method)
            if method.startswith("chat.") and self.limited:
                after = self.limited.pop(0)
                return web.json_response(
                    {"ok": False, "error": "ratelimited"}, status=429, headers={"Retry-After": str(after)}
                )
            if method.startswith("chat.") and self.failing:
                self.failing -= 1
                return web.json_response({"ok": False, "error": "service_unavailable"}, status=503)
            answer = self._answered(method, told)
            self._changed.notify_all()
        return web.json_response(answer)

    def _answered(self, method: str, told: dict[str, Any]) -> dict[str, Any]:
        if method == "auth.test":
            return {"ok": True, "user_id": BOT_USER, "user": "logtriage", "bot_id": BOT_ID, "team_id": TEAM}
        if method == "apps.connections.open":
            return {"ok": True, "url": self.url.replace("http", "ws") + "/socket"}
        if method in ("chat.postMessage", "chat.update", "chat.postEphemeral", "views.open"):
            faults = faults_of(told if method != "views.open" else told["view"])
            if faults:
                self.refused += faults
                return {"ok": False, "error": "invalid_blocks", "response_metadata": {"messages": faults}}
        if told.get("channel") in self.away:
            return {"ok": False, "error": "not_in_channel"}
        if method == "chat.postMessage":
            ts = self.ts()
            thread = str(told.get("thread_ts") or "")
            self.messages[ts] = Posted(told["channel"], ts, thread, [told], time.monotonic())
            return {"ok": True, "ts": ts, "channel": told["channel"]}
        if method == "chat.update":
            if told["ts"] not in self.messages:
                return {"ok": False, "error": "message_not_found"}
            self.messages[told["ts"]].shown.append(told)
            return {"ok": True, "ts": told["ts"], "channel": told["channel"]}
        if method == "chat.postEphemeral":
            self.ephemeral.append(told)
            return {"ok": True, "message_ts": self.ts()}
        if method in ("conversations.replies", "conversations.history"):
            found = [
                {"ts": each.ts, "metadata": each.shown[0].get("metadata")}
                for each in self.messages.values()
                if each.channel == told["channel"] and each.thread == str(told.get("ts") or "")
            ]
            return {"ok": True, "messages": found}
        if method == "views.open":
            self.views.append(told["view"])
            return {"ok": True, "view": told["view"]}
        if method == "usergroups.users.list":
            return {"ok": True, "users": self.groups.get(str(told.get("usergroup")), [])}
        if method == "files.getUploadURLExternal":
            number = f"F{next(self._numbers)}"
            return {"ok": True, "file_id": number, "upload_url": f"{self.url}/upload/{number}"}
        if method == "files.completeUploadExternal":
            files = told["files"] if isinstance(told["files"], list) else json.loads(told["files"])
            for each in files:
                self.files.append({**told, **each, "content": self._uploads[each["id"]]})
            return {"ok": True, "files": files}
        return {"ok": False, "error": "unknown_method"}

    async def _upload(self, request: web.Request) -> web.Response:
        self._uploads[request.match_info["file"]] = await request.read()
        return web.Response(text="OK")

    async def _reply(self, request: web.Request) -> web.Response:
        with self._changed:
            self.replies.append(await request.json())
            self._changed.notify_all()
        return web.Response(text="ok")

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str(json.dumps({"type": "hello", "num_connections": 1, "connection_info": {}}))
        self._sockets.add(socket)
        with self._changed:
            self.connections += 1
            self._changed.notify_all()
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    told = json.loads(message.data)
                    with self._changed:
                        self.acks[told["envelope_id"]] = told
                        self._changed.notify_all()
        finally:
            self._sockets.discard(socket)
        return socket

    async def _start(self) -> web.AppRunner:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/api/{method}", self._api)
        app.router.add_post("/upload/{file}", self._upload)
        app.router.add_post("/reply", self._reply)
        app.router.add_get("/socket", self._socket)
        runner = web.AppRunner(app, shutdown_timeout=0.5)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner


@contextmanager
def fake_slack() -> Iterator[FakeSlack]:
    slack = FakeSlack()
    loop = slack._loop
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    runner = asyncio.run_coroutine_threadsafe(slack._start(), loop).result(10)
    try:
        yield slack
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
