"""A scripted OpenAI-compatible server on loopback: a real socket, answers as a test wants them."""

from __future__ import annotations

import json
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

Request = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """One HTTP answer. `cut` closes the connection after so many bytes, `drip` sends a byte at a time."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: int | None = None
    drip: float = 0.0


Script = Callable[[Request, int], Reply]


@dataclass
class Server:
    address: str
    requests: list[Request] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


def chat(
    content: str | None,
    *,
    finish: str = "stop",
    calls: list[tuple[str, dict[str, Any]]] | None = None,
    refusal: str | None = None,
    usage: tuple[int, int] | None = (1200, 90),
    **how: Any,
) -> Reply:
    """A chat completion as OpenAI's API answers it."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if refusal is not None:
        message["refusal"] = refusal
    if calls:
        finish = "tool_calls"
        message["tool_calls"] = [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for number, (name, arguments) in enumerate(calls)
        ]
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_770_000_000,
        "model": "scripted",
        "choices": [{"index": 0, "finish_reason": finish, "message": message, "logprobs": None}],
    }
    if usage is not None:
        sent, received = usage
        body["usage"] = {
            "prompt_tokens": sent,
            "completion_tokens": received,
            "total_tokens": sent + received,
        }
    return Reply(json.dumps(body).encode(), **how)


def answer(
    failure_type: str, citations: list[tuple[str, str]], ranks: list[int] | None = None, **more: Any
) -> str:
    """The JSON of an answer."""
    return json.dumps(
        {
            "failure_type": failure_type,
            "culprit_ranks": ranks or [],
            "culprit_hosts": more.get("hosts", []),
            "citations": [{"place": place, "quote": quote} for place, quote in citations],
            "cause": more.get("cause", ""),
            "mitigations": more.get("mitigations", []),
        }
    )


def fault(status: int, message: str, **how: Any) -> Reply:
    body = json.dumps({"error": {"message": message, "type": "error", "code": how.pop("code", None)}})
    return Reply(body.encode(), status, **how)


def shown(request: Request) -> str:
    """The evidence file of a request."""
    return next(str(each["content"]) for each in request["messages"] if each["role"] == "user")


def place_of(request: Request, words: str) -> str:
    """The place of the shown line that holds these words."""
    for line in shown(request).splitlines():
        if words in line and line.lstrip("0123456789 x").startswith("F"):
            return line.lstrip("0123456789 x").split()[0]
    raise AssertionError(f"no shown line says {words!r}:\n{shown(request)}")


@contextmanager
def serving(script: Script) -> Iterator[Server]:
    """A server whose n-th answer (from 0) to a chat request is `script(request, n)`."""
    lock = threading.Lock()
    stopping = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = json.loads(body)
            with lock:
                number = len(server.requests)
                server.requests.append(request)
                server.headers.append({name.lower(): value for name, value in self.headers.items()})
            reply = script(request, number)
            if stopping.wait(reply.delay):
                self.close_connection = True
                return
            try:
                self._send(reply)
            except OSError:
                self.close_connection = True

        def _send(self, reply: Reply) -> None:
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            sent = reply.body if reply.cut is None else reply.body[: reply.cut]
            if reply.drip:
                for byte in sent:
                    self.wfile.write(bytes([byte]))
                    self.wfile.flush()
                    if stopping.wait(reply.drip):
                        break
            else:
                self.wfile.write(sent)
            if reply.cut is not None or reply.drip:
                self.wfile.flush()
                self.close_connection = True

        def log_message(self, *arguments: Any) -> None:
            pass

    class Listener(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True
        block_on_close = False
        request_queue_size = 64

        def handle_error(self, request: Any, address: Any) -> None:
            pass  # a client that went away early is what some tests are about

    with Listener(("127.0.0.1", 0), Handler) as listener:
        server = Server(f"http://127.0.0.1:{listener.server_address[1]}/v1")
        thread = threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            stopping.set()
            listener.shutdown()
            thread.join(5)


def idle(seconds: float) -> Script:
    """A server that takes its time for nothing."""

    def script(request: Request, number: int) -> Reply:
        time.sleep(0)
        return chat("{}", delay=seconds)

    return script
