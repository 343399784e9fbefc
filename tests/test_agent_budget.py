"""What a vote may cost: tokens and time, whatever the model asks for and the server does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from asked_jobs import QUOTE, asked, core, good, good_answer, offline
from growth import CATASTROPHE
from model_jobs import settings, unknown_job
from model_server import Reply, Request, Script, answer, chat, fault, serving, shown

from logtriage import triage
from logtriage.agent.tokens import upper_bound

pytest.importorskip("langchain_openai")


def test_many_look_ups_at_once_leave_room_for_the_answer(tmp_path: Path) -> None:
    unknown_job(tmp_path)
    noise = "".join(
        f"2026-03-01 09:00:{n:02d} INFO error budget {n * 7919 % 99991} of pool {n}: {'x7Qz ' * 24}\n"
        for n in range(31)
    )
    worker = tmp_path / "logs" / "rank0.log"
    worker.write_text(noise + worker.read_text())

    def script(request: Request, number: int) -> Reply:
        if request.get("tools") and not any(each["role"] == "tool" for each in request["messages"]):
            look = ("search_log", {"pattern": "error budget"})
            return chat(None, calls=[look] * 8, usage=_counted(request))
        return chat(good_answer(request), usage=_counted(request))

    limit = next((each for each in range(3000, 5001, 250) if _offers_a_look(tmp_path, each)), 5000)
    verdict, _ = asked(tmp_path, script, llm_votes=1, llm_tokens_per_vote=limit, llm_tool_calls=8)
    assert verdict.model is not None and verdict.model.voids == {}
    assert verdict.model.spent is not None and verdict.model.spent.look_ups >= 1
    assert verdict.model.spent.tokens_per_vote <= limit


def test_a_look_up_that_was_offered_is_answered_and_the_answer_to_it_is_not_cut(tmp_path: Path) -> None:
    """What the first request of a vote costs with the tools is lost where the look-up is then refused."""
    unknown_job(tmp_path)
    limit = next(each for each in range(2600, 5000, 20) if _offers_a_look(tmp_path, each))
    rooms: list[int] = []

    def script(request: Request, number: int) -> Reply:
        told = [str(each.get("content") or "") for each in request["messages"]]
        told += [json.dumps(request.get(name) or "") for name in ("tools", "response_format")]
        usage = (round(0.69 * sum(map(upper_bound, told))), 40)
        if request.get("tools"):
            return chat(None, calls=[("search_log", {"pattern": "truncated"})], usage=usage)
        rooms.append(request["max_tokens"])
        (found,) = (str(each["content"]) for each in request["messages"] if each["role"] == "tool")
        return chat(answer("data.corrupt", [(found.split()[0], QUOTE)]), usage=usage)

    verdict, _ = asked(tmp_path, script, llm_votes=1, llm_tokens_per_vote=limit)
    use = verdict.model
    assert use is not None and use.spent is not None and use.voids == {}
    assert use.spent.look_ups == 1 and use.spent.tokens_per_vote <= limit
    assert min(rooms) >= 300  # three quotes, a sentence and two pieces of advice


def _counted(request: Request) -> tuple[int, int]:
    """What an endpoint counts that has a quarter fewer tokens than our bound."""
    told = (str(each.get("content") or "") for each in request["messages"])
    return round(0.75 * sum(map(upper_bound, told))) + (200 if request.get("tools") else 0), 60


def _offers_a_look(folder: Path, limit: int) -> bool:
    from logtriage.pipeline import prompt_for

    chosen = settings(folder, "http://127.0.0.1:9/v1", llm_tokens_per_vote=limit)
    return '"search_log"' in prompt_for(folder / "logs", settings=chosen, workers=1)


def test_a_look_up_is_answered_from_the_logs_and_bounded(tmp_path: Path) -> None:
    def script(request: Request, number: int) -> Reply:
        results = [each["content"] for each in request["messages"] if each["role"] == "tool"]
        if not results:
            return chat(None, calls=[("search_log", {"pattern": "trunc(ated)?"})], usage=(1000, 40))
        assert QUOTE in results[0] and len(results[0]) <= 1100
        return chat(good_answer(request), usage=(1300, 90))

    verdict, _ = asked(tmp_path, script)
    assert verdict.verdict.failure_type == "data.corrupt"
    use = verdict.model
    assert use is not None and use.spent is not None
    assert use.spent.look_ups == 3 and use.spent.tokens_per_vote == 2430


def test_a_context_that_is_too_short_gets_a_shorter_evidence_file(tmp_path: Path) -> None:
    sizes: list[int] = []

    def script(request: Request, number: int) -> Reply:
        sizes.append(len(shown(request)))
        if len(sizes) <= 3:
            return fault(400, "This model's maximum context length is 800 tokens.", code="too_long")
        return chat(good_answer(request) if QUOTE in shown(request) else answer("unknown", []))

    verdict, _ = asked(tmp_path, script, llm_tokens_per_vote=2600)
    assert min(sizes) < max(sizes)
    assert verdict.model is not None and verdict.model.asked


@pytest.mark.parametrize("name", ["dead", "slow", "dripping", "waits for ever"])
def test_the_time_budget_is_kept_whatever_the_server_does(tmp_path: Path, name: str) -> None:
    unknown_job(tmp_path)
    scripts: dict[str, Script] = {
        "slow": lambda r, n: chat("{}", delay=600),
        "dripping": lambda r, n: Reply(good(r, n).body, drip=2),
        "waits for ever": lambda r, n: fault(429, "later", headers={"Retry-After": "600"}),
        "dead": good,
    }
    with serving(scripts[name]) as server:
        address = "http://127.0.0.1:9/v1" if name == "dead" else server.address
        chosen = settings(tmp_path, address, llm_seconds=3)
        verdict = triage(tmp_path / "logs", workers=1, settings=chosen)
    assert verdict.timing.stages["model"] < CATASTROPHE  # whoever waits for the server takes minutes
    assert core(verdict.to_dict()["verdict"]) == offline(tmp_path)
    assert verdict.model is not None and "the offline verdict stands" in verdict.model.result


def test_where_the_time_went_before_anybody_was_asked(tmp_path: Path) -> None:
    """A process that has not loaded the client yet: that takes longer than a tenth of a second."""
    logs = unknown_job(tmp_path)
    with serving(good) as server:
        told = {
            "LOGTRIAGE_DATA_DIR": str(tmp_path / "data"),
            "LOGTRIAGE_LLM_MODEL": "scripted",
            "LOGTRIAGE_LLM_SECONDS": "0.1",
            "LOGTRIAGE_LLM_BASE_URL": server.address,
        }
        command = [sys.executable, "-m", "logtriage.apps.cli", "triage", str(logs), "--json", "-"]
        done = subprocess.run(command, env={**os.environ, **told}, capture_output=True, check=True)
    model = json.loads(done.stdout)["model"]
    assert "before the model's client was loaded, so nobody was asked" in model["result"]
    assert model["spent"]["requests"] == 0


def test_ctrl_c_while_a_model_is_asked_gives_the_offline_verdict_at_once(tmp_path: Path) -> None:
    logs = unknown_job(tmp_path)
    came = threading.Event()

    def script(request: Request, number: int) -> Reply:
        if number >= 2:  # two votes are in, the third one is not
            came.set()
            return chat(good_answer(request), delay=600)
        return chat(good_answer(request))

    with serving(script) as server:
        told = {
            "LOGTRIAGE_DATA_DIR": str(tmp_path / "data"),
            "LOGTRIAGE_LLM_MODEL": "scripted",
            "LOGTRIAGE_LLM_SECONDS": "600",
            "LOGTRIAGE_LLM_BASE_URL": server.address,
        }
        command = [sys.executable, "-m", "logtriage.apps.cli", "triage", str(logs), "--json", "-"]
        process = subprocess.Popen(
            command, env={**os.environ, **told}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert came.wait(CATASTROPHE)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=CATASTROPHE)  # the server would take six times as long
    assert process.returncode == 0 and b"stopping" in err
    verdict = json.loads(out)
    assert core(verdict["verdict"]) == offline(tmp_path)
    assert verdict["model"]["result"] == "the offline verdict stands: asking was stopped"


def test_nobody_is_asked_once_somebody_had_enough(tmp_path: Path) -> None:
    logs = unknown_job(tmp_path)
    enough = threading.Event()

    def stopped(file: str, done: int, total: int) -> None:
        if done:  # while the logs are read
            enough.set()

    with serving(good) as server:
        chosen = settings(tmp_path, server.address)
        verdict = triage(logs, workers=1, progress=stopped, enough=enough, settings=chosen)
    assert server.requests == [] and verdict.model is not None
    assert not verdict.model.asked and "stopped" in verdict.model.why


def test_one_slow_vote_does_not_cost_the_others(tmp_path: Path) -> None:
    def script(request: Request, number: int) -> Reply:
        return chat(good_answer(request), delay=600 if number == 0 else 0)

    verdict, _ = asked(tmp_path, script, llm_seconds=600)
    assert verdict.verdict.failure_type == "data.corrupt"
    assert verdict.model is not None and verdict.model.spent is not None
    assert verdict.model.spent.seconds < CATASTROPHE


@pytest.mark.parametrize("is_told", [False, True], ids=["usage untold", "usage told"])
def test_a_vote_that_looked_something_up_is_shortened_and_counts(tmp_path: Path, is_told: bool) -> None:
    """What an endpoint does not count is counted from above; the rest of the vote has to do with less."""
    logs = unknown_job(tmp_path)
    names = ("brook", "cedar", "delta", "ember", "flint", "grove", "heath", "islet", "joist", "knoll")
    calm = "".join(f"2026-03-01 09:00:30 INFO {name} queue holds {'wood ' * 24}\n" for name in names)
    worker = logs / "rank0.log"
    worker.write_text(worker.read_text() + calm)
    limit = next((each for each in range(5000, 2600, -50) if not _offers_a_look(tmp_path, each)), 2600) + 50
    shortest: list[int] = []

    def script(request: Request, number: int) -> Reply:
        usage = (sum(upper_bound(str(each.get("content"))) for each in request["messages"]), 60)
        if request.get("tools"):
            look = ("search_log", {"pattern": "queue holds"})
            return chat(None, calls=[look], usage=usage if is_told else None)
        shortest.append(len(shown(request)))
        return chat(good_answer(request), usage=usage if is_told else None)

    verdict, server = asked(tmp_path, script, llm_tokens_per_vote=limit)
    use = verdict.model
    assert use is not None and use.voids == {} and verdict.verdict.failure_type == "data.corrupt"
    assert use.spent is not None and use.spent.requests > use.spent.votes  # some looked something up
    assert use.spent.tokens_per_vote <= limit
    assert is_told or min(shortest) < max(len(shown(request)) for request in server.requests)
