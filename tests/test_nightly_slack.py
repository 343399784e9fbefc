"""`logtriage nightly --slack`: the digest as one message, in a real client's words to a Slack on loopback."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_slack import FakeSlack, fake_slack, faults_of
from fleet_jobs import age, small_fleet, write_job
from fleet_verdicts import ECC, fleet_job
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage.apps.cli import main
from logtriage.fleet.chat import chat_message
from logtriage.fleet.digest import Digest, digest
from logtriage.fleet.publication import without_secrets
from logtriage.fleet.store import Night

SECRET = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345"


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    with fake_slack() as slack:
        yield slack
        assert not slack.refused


@pytest.fixture(autouse=True)
def tokens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOGTRIAGE_SLACK_BOT_TOKEN", "xoxb-test")
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(tmp_path / "data"))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def night(root: Path, *options: str) -> int:
    return main(["nightly", str(root), "--offline", "--quiet", "--workers", "1", *options])


def test_the_digest_is_posted_once(slack: FakeSlack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGTRIAGE_SLACK_API_URL", f"{slack.url}/api/")
    root = tmp_path / "logs"
    small_fleet(root)
    slack.limited = [1]  # "ask again in a second"
    assert night(root, "--output", str(tmp_path / "out"), "--slack", "#training") == 0
    (posted,) = slack.messages.values()
    assert posted.channel == "#training" and not posted.thread
    assert posted.text.startswith("*6 jobs failed*\nLost: ")
    assert "uncorrectable memory" in posted.text and "4 jobs on gn09" in posted.text
    assert "10 jobs triaged" in posted.text
    # What a reader sees is what lies on disk; a night without news is not posted.
    assert "4 jobs on gn09" in (tmp_path / "out" / "chat.txt").read_text()
    assert night(root, "--output", str(tmp_path / "out"), "--slack", "#training") == 0
    assert len(slack.messages) == 1


def test_what_slack_does_not_take_is_told_in_one_line_and_lies_on_disk(
    slack: FakeSlack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slack.away = {"C9"}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{probe.getsockname()[1]}/api/"
    for number, (address, said) in enumerate(
        ((f"{slack.url}/api/", "Slack says not_in_channel (invite the bot"), (nobody, "cannot be reached"))
    ):
        monkeypatch.setenv("LOGTRIAGE_SLACK_API_URL", address)
        root, out = tmp_path / f"logs{number}", tmp_path / f"out{number}"
        write_job(root, "job-1", "key")
        age(root)
        assert night(root, "--output", str(out), "--slack", "C9") == 1
        complaint = capsys.readouterr().err
        assert complaint.count("\n") == 1 and "was not posted to C9" in complaint and said in complaint
        assert "code.key" in (out / "digest.md").read_text()
    assert not slack.messages


def test_without_a_token_no_job_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("LOGTRIAGE_SLACK_BOT_TOKEN")
    write_job(tmp_path / "logs", "job-1", "key")
    assert night(tmp_path / "logs", "--slack", "C9") == 2
    assert "LOGTRIAGE_SLACK_BOT_TOKEN" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def a_digest(title: str, host: str, count: int) -> Digest:
    jobs = [
        fleet_job(n, "gpu.nvlink", (host, f"n{n}"), (host,), text=ECC, title=title, night=2)
        for n in range(count)
    ]
    jobs += [
        fleet_job(100 + n, "code.value", text=f"{'abcdefghij'[n]} {title}", title=title, night=2)
        for n in range(10)
    ]
    return digest("/home/annika/logs", Night(2, "here", 1.8e9, None, False), jobs)


@settings(max_examples=15, deadline=None)
@given(st.text(max_size=800), st.text(min_size=1, max_size=300), st.integers(1, 6))
def test_whatever_logs_hold_the_message_keeps_slacks_limits_and_calls_nobody(
    title: str, host: str, count: int
) -> None:
    message = chat_message(without_secrets(a_digest(title, host, count)))
    blocks = list(message.blocks)
    assert not faults_of({"text": message.text, "blocks": blocks})
    assert not {"<!", "<@", "<#", "<http"} & {str(blocks)[at : at + 2] for at in range(len(str(blocks)))}


def test_the_message_is_bounded_and_without_secrets() -> None:
    told = without_secrets(a_digest(f"token={SECRET} <!channel> &&& " * 40, "&<>" * 80, 60))
    message = chat_message(told)
    text = str(message)
    assert "take out" in text
    assert SECRET not in text and "annika" not in text and "<!channel>" not in text
    assert len(text) < 12_000 and "more" in text
    assert not faults_of({"text": message.text, "blocks": list(message.blocks)})
