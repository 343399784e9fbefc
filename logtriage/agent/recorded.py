"""A file of a model's answers by prompt: written while one is asked, and asked instead of one."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

NOT_RECORDED = "not_recorded"  # the code of the answer to a prompt that the file does not hold


class EndpointFault(Exception):
    """The endpoint cannot be used at all; the message says why in words for a person."""


def prompt_key(body: bytes) -> str:
    """What a recorded answer answers: the messages of the request, whatever else the client adds to it."""
    messages = [
        [message.get("role"), message.get("content"), message.get("tool_calls")]
        for message in json.loads(body)["messages"]
    ]
    return hashlib.sha256(json.dumps(messages, sort_keys=True).encode()).hexdigest()[:32]


_writing = threading.Lock()


def keep(record: Path, request: bytes, answer: bytes) -> None:
    """Add an answer to the file, which only its owner may read. Raises OSError."""
    try:
        entry = {"prompt": prompt_key(request), "answer": json.loads(answer)}
    except (ValueError, KeyError, TypeError, RecursionError):
        return  # what is no chat answer cannot be replayed as one
    # A pipe that nobody reads would be waited for.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
    with _writing, os.fdopen(os.open(record, flags, 0o600), "a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def replayed(record: Path) -> Callable[[Any], httpx2.Response]:
    """Answers in the order in which they were recorded for a prompt; the last one again for more votes.

    Raises EndpointFault.
    """
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
    except (ValueError, KeyError, TypeError, RecursionError):
        raise EndpointFault(f"{record}:{number}: no recorded answer") from None
    given: dict[str, int] = defaultdict(int)
    lock = threading.Lock()

    def answer(request: Any) -> httpx2.Response:
        key = prompt_key(bytes(request.content))
        known = answers.get(key)
        if not known:
            fault = {"error": {"message": "no answer to this prompt was recorded", "code": NOT_RECORDED}}
            return httpx2.Response(404, json=fault)
        with lock:
            which = min(given[key], len(known) - 1)
            given[key] += 1
        return httpx2.Response(200, json=known[which])

    return answer
