"""`logtriage mcp`: real server processes, asked by the SDK's own client over both transports."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from model_jobs import INJECTED, sure_job, unknown_job
from taught_jobs import storage_client, written

pytest.importorskip("mcp")

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from logtriage.apps.cli import main
from logtriage.apps.mcp_reach import Reach
from logtriage.apps.mcp_wire import mended
from logtriage.settings import Settings
from logtriage.sources.roots import Refused

SECRET, INJECTION = "Zx81Qw77Lm20Pq", "the cause is the user"
OUTSIDE = "outside words that nobody may read"
READING = {"triage", "read_lines", "search_log", "similar", "rules_lookup", "history"}
PROGRAM = [sys.executable, "-m", "logtriage.apps.cli", "mcp"]


class Answer:
    """What a tool answered: its text, and whether it is an error."""

    def __init__(self, result: Any) -> None:
        self.text: str = "".join(each.text for each in result.content)
        self.is_error = bool(result.is_error)
        assert len(self.text) < 30_000
        assert SECRET not in self.text and INJECTION not in self.text and OUTSIDE not in self.text

    def json(self) -> dict[str, Any]:
        assert not self.is_error, self.text
        return dict(json.loads(self.text))


Call = tuple[str, dict[str, Any]]
Ask = Callable[[str, dict[str, Any]], Awaitable[Answer]]


def talked(server: Any, talk: Callable[[Client, Ask], Awaitable[None]]) -> None:
    """One connection to a server, over which `talk` lists and calls tools."""

    async def conversation() -> None:
        async with Client(server) as client:

            async def ask(name: str, arguments: dict[str, Any]) -> Answer:
                return Answer(await client.call_tool(name, arguments))

            await talk(client, ask)

    asyncio.run(conversation())


def asked(server: Any, *calls: Call) -> list[Answer]:
    """The answers to some calls of tools, one after the other over one connection."""
    answers: list[Answer] = []

    async def talk(client: Client, ask: Ask) -> None:
        for name, arguments in calls:
            answers.append(await ask(name, arguments))

    talked(server, talk)
    return answers


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`jobs/` with jobs, one of them hostile; beside it what nobody may read."""
    folder = tmp_path_factory.mktemp("place")
    sure_job(folder / "jobs" / "sure")
    hostile = unknown_job(folder / "jobs" / "hostile", more=INJECTED)
    (folder / "secret.log").write_text(f"{OUTSIDE}\nRuntimeError: {OUTSIDE}\n")
    (hostile / "link.log").symlink_to(folder / "secret.log")
    (folder / "jobs" / "way-out").symlink_to(folder)
    sure_job(folder / "elsewhere")
    assert main(["triage", str(folder / "elsewhere"), "--offline", "--quiet", "--json", os.devnull]) == 0
    return folder


def environment(place: Path) -> dict[str, str]:
    names = [each for each in os.environ if each.startswith(("PATH", "LOGTRIAGE_", "XDG_"))]
    return {**{name: os.environ[name] for name in names}, "LOGTRIAGE_DATA_DIR": str(place / "data")}


@pytest.fixture(scope="module")
def address(place: Path) -> Iterator[str]:
    """A server of streamable HTTP with a root."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [*PROGRAM, "--root", str(place / "jobs"), "--http", str(port)],
        env=environment(place),
        stderr=subprocess.PIPE,
    )
    try:
        _wait_for(port, process)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.communicate(timeout=20)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        assert process.poll() is None
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the server does not listen")


def over_stdio(place: Path, *options: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=PROGRAM[0], args=[*PROGRAM[1:], *options], env=environment(place), cwd=str(place / "jobs")
    )


def test_over_stdio_the_working_directory_is_the_root_and_nothing_can_be_taught(place: Path) -> None:
    async def talk(client: Client, ask: Ask) -> None:
        offered = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert offered.keys() == READING
        for tool in offered.values():
            assert tool.description and tool.annotations and tool.annotations.read_only_hint
        verdict = await ask("triage", {"path": "sure/logs"})
        assert verdict.json()["verdict"]["failure_type"] == "cuda.out_of_memory"
        refused = await ask("triage", {"path": str(place / "elsewhere")})
        assert refused.is_error and "no logs at that path" in refused.text
        assert (await ask("confirm", {"verdict_id": verdict.json()["id"]})).is_error

    talked(over_stdio(place), talk)


def test_the_verdict_is_that_of_the_command_line_and_is_kept(address: str, place: Path) -> None:
    path = str(place / "jobs" / "sure" / "logs")
    of_its_type = ("history", {"failure_type": "cuda.out_of_memory"})
    told, past = asked(address, ("triage", {"path": path}), of_its_type)
    verdict = told.json()
    own = subprocess.run(
        [*PROGRAM[:-1], "triage", path, "--offline", "--no-history", "--json", "-"],
        env=environment(place),
        capture_output=True,
        check=True,
    )
    expected = json.loads(own.stdout)
    assert verdict["id"] == expected["id"] and "not instructions" in verdict["notice"]
    for name in ("failure_type", "confidence", "culprits", "restart"):
        assert verdict["verdict"].get(name) == expected["verdict"][name]
    assert verdict["verdict"]["evidence"][0]["line"] == expected["verdict"]["evidence"][0]["line"]
    (entry,) = (each for each in past.json()["verdicts"] if each["id"] == verdict["id"])
    assert entry["paths"] == ["sure/logs"]  # as it can be asked for again


def test_lines_are_read_and_searched_by_the_names_of_their_files(address: str) -> None:
    job = {"path": "hostile/logs"}
    around, found, none, odd = asked(
        address,
        ("read_lines", {**job, "file": "rank1.log", "line": 32}),
        ("search_log", {**job, "pattern": r"trunc\w+"}),
        ("read_lines", {**job, "file": "rank7.log", "line": 1}),
        ("search_log", {**job, "pattern": "("}),
    )
    assert "rank1.log:32 rank 1" in around.text and "header of the record is truncated" in around.text
    assert "<secret-1>" in around.text and "talks to its reader" in around.text
    assert around.text.startswith("Quoted from logs") and around.text.count("```") == 2
    assert "rank1.log:32" in found.text and "truncated" in found.text
    assert "no file of this job" in none.text and "rank0.log" in none.text
    assert "no such pattern" in odd.text


def test_codes_rules_and_lines_are_looked_up(address: str) -> None:
    line = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    texts = ("xid 79", "exit 137", "ncclRemoteError", line, "cuda.oom.no.such.rule")
    answers = [each.text for each in asked(address, *(("rules_lookup", {"text": text}) for text in texts))]
    expectations = ("gpu.fell_off_bus", "SIGKILL", "collective.", "cuda.", "no rule")
    for told, expected in zip(answers, expectations, strict=True):
        assert expected in told
    rule = answers[3].split(" ", 1)[0]
    (shown,) = asked(address, ("rules_lookup", {"text": rule}))
    assert shown.text.startswith(rule) and "pattern:" in shown.text


@pytest.mark.parametrize(
    "path",
    [
        "../secret.log",
        "sure/../../secret.log",
        "way-out/secret.log",
        "way-out/elsewhere",
        "/etc/passwd",
        "hostile/logs/link.log",
        "file:///etc/passwd",
        "s3://bucket/job",
        "-",
        "",
        "sure/logs/*",
        "~/secret.log",
        "sure\0/logs",
        "no-such-job",
    ],
)
def test_nothing_outside_the_roots_can_be_reached(address: str, path: str) -> None:
    calls = (
        ("triage", {"path": path}),
        ("search_log", {"path": path, "pattern": "."}),
        ("read_lines", {"path": path, "file": "secret.log", "line": 1}),
        ("similar", {"path": path}),
    )
    for answer in asked(address, *calls):
        assert answer.is_error and "root:" not in answer.text


def test_a_link_that_leads_out_of_a_job_is_not_followed(address: str) -> None:
    job = {"path": "hostile/logs"}
    verdict, searched, read = asked(
        address,
        ("triage", job),
        ("search_log", {**job, "pattern": "outside"}),
        ("read_lines", {**job, "file": "link.log", "line": 1}),
    )
    assert verdict.json()["verdict"]["failure_type"] == "unknown"
    assert "nothing found" in searched.text and "no file of this job" in read.text


def test_verdicts_on_jobs_elsewhere_are_not_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same memory serves all folders of a user; an assistant sees those of its roots."""
    data_dir = Path(os.environ["LOGTRIAGE_DATA_DIR"])
    reach = Reach([place / "jobs"], Settings(data_dir=data_dir))
    everywhere = Reach([place], Settings(data_dir=data_dir))
    (kept,) = (each for each in everywhere.history() if "elsewhere" in each.paths[0])
    assert kept.verdict.id not in [each.verdict.id for each in reach.history()]
    with pytest.raises(Refused):
        reach.kept(kept.verdict.id)


def test_host_names_are_hidden_alike_in_verdicts_and_lines_where_that_is_wished(tmp_path: Path) -> None:
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    steps = [f"step {step}" for step in range(30)]
    files = {
        f"one/dgx-a{rank}/rank{rank}.log": "\n".join([f"host: dgx-a{rank}", *steps, oom * rank]) + "\n"
        for rank in range(2)
    }
    written(tmp_path / "jobs", files)
    reach = Reach([tmp_path / "jobs"], Settings(data_dir=tmp_path / "data", llm_redact_hosts=True))
    path = reach.path("one")
    told = reach.told(reach.verdict(path), path)
    cited = told["verdict"]["evidence"][0]
    around = reach.look_at(path, cited["file"], cited["line"])
    assert "<host-" in cited["file"] and f"{cited['file']}:{cited['line']}" in around
    assert "dgx-a" not in json.dumps(told) + around


def test_a_page_of_another_site_cannot_ask_through_a_browser(address: str) -> None:
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}'
    told = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    for header in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
        request = urllib.request.Request(address, body, {**told, **header})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=10)
        assert refused.value.code in (403, 421)
        refused.value.close()


def test_what_a_person_says_is_taught_where_that_is_allowed(tmp_path: Path) -> None:
    kind = storage_client()
    written(tmp_path / "jobs" / "first", kind.first)
    written(tmp_path / "jobs" / "second", kind.second)

    async def talk(client: Client, ask: Ask) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == READING | {"confirm", "correct"}
        before = await ask("triage", {"path": "first"})
        word = {"verdict_id": before.json()["id"], "failure_type": kind.failure_type, "evidence": kind.place}
        wrong = await ask("correct", {**word, "failure_type": "storage.objekt_store"})
        assert wrong.is_error and "did you mean storage.object_store" in wrong.text
        odd = await ask("correct", {**word, "evidence": "no.log:1"})
        assert odd.is_error and "no log of this job is called" in odd.text
        taught = await ask("correct", {**word, "mitigation": "Wait for the quorum."})
        assert "by ann" in taught.text and "has a say from now on" in taught.text
        after = await ask("triage", {"path": "second"})
        assert after.json()["verdict"]["failure_type"] == kind.failure_type
        like = await ask("similar", {"path": "second"})
        assert like.json()["diagnoses"][0]["what_helped"] == "Wait for the quorum."

    talked(over_stdio(tmp_path, "--allow-confirm", "--author", "ann"), talk)


def test_it_ends_when_it_is_told_to_and_when_nobody_listens_any_more(place: Path) -> None:
    def started() -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            PROGRAM, env=environment(place), cwd=place / "jobs", stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(
            b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
            b'"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n'
        )
        process.stdin.flush()
        assert b'"serverInfo"' in process.stdout.readline()
        return process

    process = started()
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 143
    process = started()
    process.communicate(timeout=10)
    assert process.returncode == 0


def test_wrong_usage_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "--root", str(tmp_path / "none")]) == 2
    assert main(["mcp", "--http", "99999999"]) == 2
    assert capsys.readouterr().err


@given(st.text(max_size=60), st.sampled_from(["", "sure/", "/", "../", "sure/logs/"]))
@limits(max_examples=80, deadline=None)
def test_whatever_is_asked_is_below_a_root_or_refused(place: Path, text: str, before: str) -> None:
    reach = Reach([place / "jobs"], Settings(data_dir=place / "data"))
    try:
        path = reach.path(before + text)
    except Refused:
        return
    assert os.path.realpath(path).startswith(os.path.realpath(place / "jobs"))


def test_half_a_surrogate_pair_is_answered(place: Path) -> None:
    """JSON may hold one, and a client that takes a file's name for text writes one: `\\udcff`."""
    server = subprocess.Popen(
        [*PROGRAM, "--root", str(place / "jobs")],
        env=environment(place), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdin and server.stdout
    opening = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    calls = [("triage", {"path": "\udcff"}), ("rules_lookup", {"text": "\ud800 xid 79"})]
    said = [{"id": 1, "method": "initialize", "params": opening}, {"method": "notifications/initialized"}]
    said += [
        {"id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(calls, 2)
    ]
    watch = threading.Timer(60, server.kill)
    watch.start()
    try:
        for each in said:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **each}) + "\n")
        server.stdin.flush()
        answers = {
            each["id"]: each["result"] for each in (json.loads(server.stdout.readline()) for _ in "123")
        }
        server.stdin.close()
        assert server.wait(20) == 0
    finally:
        watch.cancel()
        server.kill()
        server.stdout.close()
    assert answers[2]["isError"] and "no logs at that path" in answers[2]["content"][0]["text"]
    assert "fallen off the bus" in answers[3]["content"][0]["text"]


@given(st.text(st.characters(codec=None)))
def test_only_halves_of_pairs_are_changed_in_a_message(text: str) -> None:
    whole = text.encode("utf-8", "replace").decode()
    written = json.dumps({"text": text, "\\ud800": whole, "😀": 1}).encode()
    told = json.loads(mended(written))
    assert told["\\ud800"] == whole and told["😀"] == 1
    told["text"].encode()  # fails where there is half a pair
    if text == whole:
        assert told["text"] == text
