"""Who may ask and confirm, what their words change, what a model adds, and the way over HTTP."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import sqlite3
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError

import pytest
from fake_slack import FakeSlack, Posted, fake_slack
from model_jobs import ODD_WORDS, unknown_job
from model_server import Reply, Request, answer, chat, place_of, serving
from slack_bots import Home, a_home, running
from taught_jobs import storage_client, vendor_daemon, written

QUOTE = ODD_WORDS.split("ERROR ")[1].strip()
RATE = "learning_rate 0.0003"
WHO = {"slack_ask_groups": ["SML"], "slack_confirm_users": ["UANN"]}


def voting(request: Request, number: int) -> Reply:
    """A model that takes its time, and sees a corrupt shard where it is shown one."""
    if "Question: what learning rate" in str(request):
        place = place_of(request, RATE)
        return chat(json.dumps({"text": "It was 0.0003.", "citations": [{"place": place, "quote": RATE}]}))
    if QUOTE not in str(request):
        return chat(answer("unknown", []))
    return chat(answer("data.corrupt", [(place_of(request, QUOTE), QUOTE)], [1]), delay=1.0)


@pytest.fixture(scope="module")
def slack() -> Iterator[FakeSlack]:
    with fake_slack() as slack:
        slack.groups["SML"] = ["UANN", "UBOB"]
        yield slack
        assert not slack.refused


@pytest.fixture(scope="module")
def home(slack: FakeSlack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with serving(voting) as model:
        home = a_home(tmp_path_factory.mktemp("bot"), slack, embedding="lexical", slack_triages=1, **WHO)
        home.environment |= {"LOGTRIAGE_LLM_BASE_URL": model.address, "LOGTRIAGE_LLM_MODEL": "scripted"}
        home.environment |= {"LOGTRIAGE_LLM_VOTES": "3"}
        home.add_job(
            "ann",
            "odd",
            "5001",
            unknown_job(home.folder / "odd", more=f"INFO adamw {RATE} token=s3cr3tT0ken99\n"),
        )
        for number, kind in enumerate((storage_client(), vendor_daemon())):
            written(home.folder / "logs" / "ann" / f"{kind.name}-60{number}1".replace(" ", "_"), kind.first)
            written(home.folder / "logs" / "bob" / f"{kind.name}-60{number}2".replace(" ", "_"), kind.second)
        with running(home):
            yield home


def whispered(slack: FakeSlack, user: str) -> list[str]:
    return [each["text"] for each in slack.ephemeral if each["user"] == user]


def settled(slack: FakeSlack, thread: str) -> Posted:
    """The answer, once no model is being asked any more."""
    slack.answer(thread)
    assert slack.until(lambda: "being asked" not in slack.answer(thread).text)
    return slack.answer(thread)


def test_rules_answer_first_and_the_same_message_becomes_the_models(slack: FakeSlack, home: Home) -> None:
    thread = slack.mention("why did 5001 die?")
    assert "data.corrupt" in settled(slack, thread).text
    (message,) = slack.answers(thread)
    shown = [json.dumps(each) for each in message.shown]
    assert "`unknown`" in shown[-2] and "is being asked" in shown[-2]
    assert "by a language model, checked against the logs" in shown[-1]
    slack.write("what do I do?", channel="C1", thread=thread)
    assert "Repair or skip the data" in slack.answer(thread, count=2).text
    # What the verdict does not say, the model may know; an answer is told with its line.
    slack.mention("what learning rate did it use?", thread=thread)
    assert slack.until(lambda: "It was 0.0003." in slack.answer(thread, count=3).text)
    assert RATE in slack.answer(thread, count=3).text and "s3cr3t" not in slack.answer(thread, count=3).text


def test_who_is_not_named_may_not_ask(slack: FakeSlack, home: Home) -> None:
    thread = slack.mention("why did 4812 die?", user="UEVE")
    assert slack.until(lambda: whispered(slack, "UEVE"))
    assert "may not ask" in whispered(slack, "UEVE")[0]
    assert not slack.answers(thread)
    thread = slack.mention("why did 4812 die?", user="UBOB")
    assert "gpu.fell_off_bus" in slack.answer(thread).text
    slack.write("which node?", channel="C1", thread=thread, user="UEVE")
    slack.write("which node?", channel="C1", thread=thread, user="UBOB")
    assert "node-07" in slack.answer(thread, count=2).text
    assert len(slack.answers(thread)) == 2


def test_who_is_not_named_may_not_confirm(slack: FakeSlack, home: Home) -> None:
    verdict = slack.answer(slack.mention("why did 4812 die?"))
    for action in ("logtriage_confirm", "logtriage_wrong"):
        slack.press(verdict, action, user="UBOB")
    assert slack.until(lambda: len(whispered(slack, "UBOB")) == 2)
    assert not slack.views
    assert "4812" not in written_down(home)


def written_down(home: Home) -> str:
    if not (home.data / "ledger.sqlite3").exists():
        return ""
    with sqlite3.connect(home.data / "ledger.sqlite3") as ledger:
        return str(
            ledger.execute("SELECT author, failure_type, mitigation, context FROM diagnoses").fetchall()
        )


def test_a_confirmation_changes_the_next_verdict_of_the_kind(slack: FakeSlack, home: Home) -> None:
    thread = slack.mention("why did 4813 die?")
    first = settled(slack, thread)
    assert "data.corrupt" in first.text and "58 %" in first.text
    slack.press(first, "logtriage_confirm")
    assert "a rule was learned" in slack.answer(thread, count=2).text
    # The same kind in another job, with other names and numbers.
    files = {
        "rank0.log": "step 7\nreader: data/part-911.tok offset 77010: wanted 4096 bytes, got 12. giving up\n"
    }
    home.add_job("bob", "later", "4899", files)
    text = slack.answer(slack.mention("why did 4899 die?")).text
    assert "data.corrupt" in text and "95 %" in text
    slack.mention("did this happen before?", thread=thread)
    assert "4899" in slack.answer(thread, count=3).text or "uann" in slack.answer(thread, count=3).text


def test_a_correction_names_the_next_job_of_its_kind(slack: FakeSlack, home: Home) -> None:
    kind = vendor_daemon()
    thread = slack.mention("why did 6011 die?")
    verdict = settled(slack, thread)
    assert kind.failure_type not in verdict.text
    slack.press(verdict, "logtriage_wrong")
    assert slack.until(lambda: slack.views)
    view = slack.views[-1]
    type_ = {"type": "static_select", "selected_option": {"value": kind.failure_type}}
    place = {"type": "plain_text_input", "value": "nonsense"}
    refused = slack.submit(view, {"type": type_, "other_line": place})
    assert refused["response_action"] == "errors" and "FILE:LINE" in refused["errors"]["other_line"]
    helped = {"type": "plain_text_input", "value": "Swap the transceiver. \ud83d"}  # half of an emoji
    missing = {"type": "plain_text_input", "value": "nowhere.log:3"}
    slack.submit(view, {"type": type_, "other_line": missing})
    assert "Nothing was written down" in slack.answer(thread, count=2).text
    right = {"type": "plain_text_input", "value": kind.place}
    assert not slack.submit(view, {"type": type_, "other_line": right, "helped": helped})
    assert "Corrected" in slack.answer(thread, count=3).text
    assert "uann (Slack UANN)" in written_down(home) and "Swap the transceiver." in written_down(home)
    second = slack.answer(slack.mention("why did 6012 die?"))
    assert kind.failure_type in second.text and kind.evidence in second.text


def test_over_http_only_what_slack_signed_is_heard(slack: FakeSlack, tmp_path: Path) -> None:
    home = a_home(tmp_path, slack, slack_triages=1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ts = slack.ts()
    event = {"type": "app_mention", "user": "UANN", "channel": "C9", "text": "why did 4812 die?", "ts": ts}
    body = json.dumps({"type": "event_callback", "event_id": "Ev1", "team_id": "T1", "event": event})
    with running(home, "--http", str(port)):
        challenge = json.dumps({"type": "url_verification", "challenge": "c-1", "token": "x"})
        assert "c-1" in sent(port, challenge)
        for secret, age in (("guessed", 0), ("signed", 3600)):
            with pytest.raises(HTTPError) as refused:
                sent(port, body, secret, age)
            assert refused.value.code == 401
        with pytest.raises(HTTPError):
            sent(port, "x" * (2 << 20))
        for _ in range(2):
            sent(port, body)
        assert "gpu.fell_off_bus" in slack.answer(ts, "C9").text
        time.sleep(0.5)
    assert len(slack.answers(ts, "C9")) == 1


def sent(port: int, body: str, secret: str = "signed", age: int = 0) -> str:
    """What the bot answers to a request that is signed as Slack signs (version 0, HMAC-SHA256)."""
    moment = str(int(time.time()) - age)
    digest = hmac.new(secret.encode(), f"v0:{moment}:{body}".encode(), hashlib.sha256).hexdigest()
    headers = {"X-Slack-Signature": f"v0={digest}", "X-Slack-Request-Timestamp": moment}
    headers["Content-Type"] = "application/json"
    request = urllib.request.Request(f"http://127.0.0.1:{port}/slack/events", body.encode(), headers)
    with urllib.request.urlopen(request, timeout=20) as response:
        return str(response.read().decode())


def test_what_is_missing_is_told(slack: FakeSlack, tmp_path: Path) -> None:
    home = a_home(tmp_path, slack)
    home.environment["LOGTRIAGE_SLACK_APP_TOKEN"] = ""
    told = home.run("slack")
    assert told.returncode == 2 and "set LOGTRIAGE_SLACK_APP_TOKEN" in told.stderr
