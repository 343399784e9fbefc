"""The bodies of an endpoint's answers: bounded, JSON, and without what the client would stumble over."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2

MOST_BYTES = 2 << 20  # of one answer; a vote has some hundred tokens
MOST_TOKENS = 1 << 31  # that a server may say an answer took


class NoJson(httpx2.ReadError):
    """The server answered with something else than JSON; the message says with what."""


class CheckedBody(httpx2.AsyncByteStream):
    """A body that ends with an error where it goes on for ever or is no JSON, and tells tokens in numbers."""

    def __init__(self, inner: Any, status: int) -> None:
        self._inner = inner
        self._status = status

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = b""
        async for chunk in self._inner:
            body += chunk
            if len(body) > MOST_BYTES:
                raise httpx2.ReadError(f"the answer is longer than {MOST_BYTES} bytes")
        if self._status == 200:
            body = mended(body)
        yield body

    async def aclose(self) -> None:
        await self._inner.aclose()


def no_json(status: int, body: bytes) -> str:
    """In words what a server answered that is no JSON; empty where it is."""
    start = body[:4096].lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml", b"<head", b"<body")) or b"<html" in start[:1024]:
        return f"the server answered {status} with a web page, not JSON"
    if start[:1] not in (b"{", b"["):
        return f"the server answered {status} with {'text' if start else 'nothing'}, not JSON"
    return ""


def mended(body: bytes) -> bytes:
    """The body of an answer whose `usage` is whole numbers, or not there: it is no reason to lose a vote.

    Raises NoJson.
    """
    if told := no_json(200, body):
        raise NoJson(told)
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return body
    if not isinstance(found, dict) or "usage" not in found:
        return body
    usage = found.pop("usage")
    sent, received = (_count(usage, name) for name in ("prompt_tokens", "completion_tokens"))
    if sent is not None and received is not None:
        found["usage"] = {
            "prompt_tokens": sent,
            "completion_tokens": received,
            "total_tokens": sent + received,
        }
    return json.dumps(found).encode()


def _count(usage: Any, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TOKENS:
        return None
    return int(value)
