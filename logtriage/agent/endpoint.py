"""The way to a model: an OpenAI-compatible endpoint, a file of recorded answers, or what would be sent."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2

from logtriage.agent.bodies import CheckedBody
from logtriage.agent.recorded import keep, replayed
from logtriage.settings import Settings

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

RETRIES = 2  # of the client, for 429, 5xx and lost connections; it obeys Retry-After
_OPENAI = "https://api.openai.com/v1"


def client(
    settings: Settings,
    seconds: float,
    on_request: Callable[[bytes], None] | None = None,
    on_unkept: Callable[[str], None] | None = None,
) -> httpx2.AsyncClient:
    """The HTTP client of all votes. `on_request` sees each body before it is sent and may raise;
    `on_unkept` is told why an answer could not be added to the record file.

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
        response.stream = CheckedBody(response.stream, response.status_code)
        if record is not None and response.status_code == 200:
            await response.aread()
            try:
                keep(record, bytes(response.request.content), bytes(response.content))
            except OSError as fault:
                if on_unkept is not None:
                    on_unkept(f"{record} cannot be written ({fault.strerror or fault})")

    hooks: dict[str, list[Callable[..., Any]]] = {"request": [sending], "response": [received]}
    replay = Path(settings.llm_replay).expanduser() if settings.llm_replay else None
    transport = httpx2.MockTransport(replayed(replay)) if replay else None
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
