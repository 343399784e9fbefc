"""The way to a model: an OpenAI-compatible endpoint, a file of recorded answers, or what would be sent."""

from __future__ import annotations

import hashlib
import json
import ssl
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2

from logtriage.settings import Settings

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

MOST_BYTES = 2 << 20  # of one answer; a vote has some hundred tokens
RETRIES = 2  # of the client, for 429, 5xx and lost connections; it obeys Retry-After
_OPENAI = "https://api.openai.com/v1"


class EndpointFault(Exception):
    """The endpoint cannot be used at all; the message says why in words for a person."""


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends with an error when it goes on for ever."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MOST_BYTES:
                raise httpx2.ReadError(f"the answer is longer than {MOST_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


def client(
    settings: Settings, seconds: float, on_request: Callable[[bytes], None] | None = None
) -> httpx2.AsyncClient:
    """The HTTP client of all votes. `on_request` sees each body before it is sent and may raise.

    Redirections are not followed: what was configured is where texts are sent.
    """
    record = Path(settings.llm_record).expanduser() if settings.llm_record else None

    async def sending(request: Any) -> None:
        if on_request is not None:
            on_request(bytes(request.content))

    async def received(response: Any) -> None:
        # A few bytes can be packed gigabytes.
        if response.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
            raise httpx2.ReadError("the answer is compressed, which was not asked for")
        response.stream = _Bounded(response.stream)
        if record is not None and response.status_code == 200:
            await response.aread()
            _keep(record, bytes(response.request.content), bytes(response.content))

    hooks: dict[str, list[Callable[..., Any]]] = {"request": [sending], "response": [received]}
    replay = Path(settings.llm_replay).expanduser() if settings.llm_replay else None
    transport = httpx2.MockTransport(_replayed(replay)) if replay else None
    return httpx2.AsyncClient(
        transport=transport,
        timeout=seconds,
        follow_redirects=False,
        event_hooks=hooks,
        headers={"Accept-Encoding": "identity"},
        verify=_trusted(),
    )


@cache
def _trusted() -> ssl.SSLContext:
    """Reading the certificates takes a tenth of a second: once for all jobs of a process."""
    return httpx2.create_ssl_context()


def chat_model(settings: Settings, http: httpx2.AsyncClient, *, temperature: bool) -> ChatOpenAI:
    """The chat model of LangChain at the configured endpoint, whatever OPENAI_* variables say."""
    from langchain_openai import ChatOpenAI

    key = settings.llm_api_key.get_secret_value() or "none"
    return ChatOpenAI(
        model=settings.llm_model or "none",
        base_url=address(settings),
        api_key=lambda: key,
        openai_proxy="",
        temperature=settings.llm_temperature if temperature else None,
        max_retries=RETRIES,
        http_async_client=http,
        http_client=httpx2.Client(transport=httpx2.MockTransport(_never)),
        use_responses_api=False,
        cache=False,
    )


def _never(request: httpx2.Request) -> httpx2.Response:
    raise httpx2.ConnectError("votes are asked asynchronously")


def address(settings: Settings) -> str:
    return settings.llm_base_url.rstrip("/") or _OPENAI


def host(settings: Settings) -> str:
    """Whom the texts are sent to, for the verdict: no path, no credentials."""
    if settings.llm_replay:
        return "recorded answers"
    return urlsplit(address(settings)).hostname or ""


def is_openai(settings: Settings) -> bool:
    """OpenAI and Azure know `max_completion_tokens` alone, other servers mostly the older `max_tokens`."""
    name = (urlsplit(address(settings)).hostname or "").lower()
    return name.endswith((".openai.com", ".azure.com"))


def prompt_key(body: bytes) -> str:
    """What a recorded answer answers: the messages of the request, whatever else the client adds to it."""
    messages = [
        [message.get("role"), message.get("content"), message.get("tool_calls")]
        for message in json.loads(body)["messages"]
    ]
    return hashlib.sha256(json.dumps(messages, sort_keys=True).encode()).hexdigest()[:32]


_writing = threading.Lock()


def _keep(record: Path, request: bytes, answer: bytes) -> None:
    try:
        entry = {"prompt": prompt_key(request), "answer": json.loads(answer)}
    except (ValueError, KeyError, TypeError):
        return  # what is no chat answer cannot be replayed as one
    with _writing, record.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry, ensure_ascii=False) + "\n")


def _replayed(record: Path) -> Callable[[Any], httpx2.Response]:
    """Answers in the order in which they were recorded for a prompt; the last one again for more votes."""
    answers: dict[str, list[Any]] = defaultdict(list)
    number = 0
    try:
        for line in record.read_text(encoding="utf-8").splitlines():
            number += 1
            if line.strip():
                entry = json.loads(line)
                answers[entry["prompt"]].append(entry["answer"])
    except OSError as fault:
        raise EndpointFault(f"{record}: {fault.strerror or fault}") from None
    except (ValueError, KeyError, TypeError):
        raise EndpointFault(f"{record}:{number}: no recorded answer") from None
    given: dict[str, int] = defaultdict(int)
    lock = threading.Lock()

    def answer(request: Any) -> httpx2.Response:
        key = prompt_key(bytes(request.content))
        known = answers.get(key)
        if not known:
            fault = {"error": {"message": "no answer to this prompt was recorded", "code": "not_recorded"}}
            return httpx2.Response(404, json=fault)
        with lock:
            which = min(given[key], len(known) - 1)
            given[key] += 1
        return httpx2.Response(200, json=known[which])

    return answer
