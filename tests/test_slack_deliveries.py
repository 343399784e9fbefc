"""Nothing is lost and nothing is done twice: retries, reconnects, rate limits, restarts, many at once."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fake_slack import FakeSlack, fake_slack
from slack_bots import Home, a_home, killed, running, started


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    with fake_slack() as slack:
        yield slack
        assert not slack.refused


@pytest.fixture
def home(slack: FakeSlack, tmp_path: Path) -> Home:
    return a_home(tmp_path, slack, embedding="lexical", slack_triages=1, slack_waiting=1)


def diagnoses(home: Home) -> list[tuple[str, str]]:
    """(author, failure type) of all that was written down."""
    with sqlite3.connect(home.data / "ledger.sqlite3") as ledger:
        return ledger.execute("SELECT author, failure_type FROM diagnoses").fetchall()


def test_retries_reconnects_and_rate_limits(slack: FakeSlack, home: Home) -> None:
    with running(home):
        second = home.run("slack")
        assert second.returncode == 1 and "another bot" in second.stderr
        # The same event again and again, before and after it was answered.
        ts = slack.ts()
        event = {
            "type": "app_mention",
            "user": "UANN",
            "channel": "C1",
            "text": "why did 4812 die?",
            "ts": ts,
        }
        for _ in range(3):
            slack.event(event, number="Ev-same")
        verdict = slack.answer(ts)
        slack.event(event, number="Ev-same")
        # A button that is delivered three times is one word.
        slack.press(verdict, "logtriage_confirm", times=3)
        slack.answer(ts, count=2)
        # Connections that are lost, and that Slack asks to make anew.
        slack.say_goodbye()
        assert slack.until(lambda: slack.connections >= 2)
        slack.mention("which node?", thread=ts)
        slack.answer(ts, count=3)
        slack.drop_connections()
        third = slack.mention("why did 4813 die?")
        assert "data.corrupt" in slack.answer(third).text
        # Slack asks to wait; nothing is lost and nothing is said twice.
        slack.limited += [1, 1]
        fourth = slack.mention("why did 4821 die?")
        assert "code.assertion" in slack.answer(fourth).text
        # Slack cannot take it for a while.
        slack.failing = 4
        fifth = slack.mention("what about 4999?")
        assert "I know no job" in slack.answer(fifth).text
        time.sleep(0.5)
    assert len(slack.answers(ts)) == 3
    assert [len(slack.answers(each)) for each in (third, fourth, fifth)] == [1, 1, 1]
    assert diagnoses(home) == [("uann (Slack UANN)", "gpu.fell_off_bus")]


def test_a_restart_loses_nothing_and_says_nothing_twice(slack: FakeSlack, home: Home) -> None:
    bot = started(home)
    try:
        thread = slack.mention("why did 4813 die?")
        verdict = slack.answer(thread)
        waiting = slack.mention("why did 7004 die?")
        behind = slack.mention("why did 4820 die?")
        refused = slack.mention("why did 4830 die?")  # no more than one may wait
        assert "ask again" in slack.answer(refused).text
        assert slack.until(lambda: slack.answers(waiting) and slack.answers(behind))
        assert "will become the verdict" in slack.answers(waiting)[0].text
        assert "1 job is before it" in slack.answers(behind)[0].text
        # A follow-up needs no turn.
        slack.mention("which rank?", thread=thread)
        assert "rank 2" in slack.answer(thread, count=2).text
        # Pressed, acknowledged, and the machine goes down.
        slack.press(verdict, "logtriage_confirm")
    finally:
        killed(bot)
    with running(home):
        assert slack.until(lambda: any("Confirmed" in each.text for each in slack.answers(thread)))
        assert "data.corrupt" in slack.answer(waiting).text
        assert "process.native_crash" in slack.answer(behind).text
        slack.write("should I restart?", channel="C1", thread=thread)
        assert "Not yet" in slack.answer(thread, count=4).text
    assert len(slack.answers(thread)) == 4
    assert len(slack.answers(waiting)) == len(slack.answers(behind)) == 1
    assert len(diagnoses(home)) == 1


def test_a_hundred_questions_ten_at_a_time(slack: FakeSlack, tmp_path: Path) -> None:
    """None is lost, none is answered twice; a job whose triage ends its process harms no other."""
    home = a_home(tmp_path, slack, embedding="lexical", slack_triages=2)
    types = {
        "4812": ("gpu.fell_off_bus", "rank 2"),
        "4813": ("data.corrupt", "rank 2"),
        "4821": ("code.", "rank 3"),
    }

    def ten(person: int) -> None:
        """Two jobs, with follow-ups, and two that are not known."""
        channel, user = f"C{person % 4}", f"U{person}"
        for job in random.Random(person).sample(sorted(types), 2):
            failure_type, rank = types[job]
            thread = slack.mention(f"why did job {job} die?", channel=channel, user=user)
            assert failure_type in slack.answer(thread, channel).text
            for count, question in enumerate(("which rank?", "should I restart?", "show me the lines"), 2):
                slack.write(question, channel=channel, user=user, thread=thread)
                told = slack.answer(thread, channel, count=count).text
                assert rank in told if count == 2 else told
            lost = slack.mention(f"why did job {job}99999 die?", channel=channel, user=user)
            assert "I know no job" in slack.answer(lost, channel).text

    with running(home):
        deadly = slack.mention("why did 7005 die?", channel="C9")
        with ThreadPoolExecutor(10) as people:
            list(people.map(ten, range(10)))
        assert "was lost" in slack.answer(deadly, "C9").text
        time.sleep(0.5)
    assert len(slack.messages) == 101
