"""Messages of Slack keep Block Kit's limits and obey nothing that a log says, whatever it says."""

from __future__ import annotations

import re
from typing import Any

from fake_slack import faults_of, text_of
from hypothesis import given, settings
from hypothesis import strategies as st
from verdicts import a_body, a_verdict

from logtriage.apps.slack import modal, notices
from logtriage.apps.slack.incoming import Press, question_of, written
from logtriage.apps.slack.subject import subjects
from logtriage.report.document import Alternative, CitedLine, CulpritsOut, Verdict
from logtriage.report.slack_blocks import Message, code, escaped, told, verdict_message
from logtriage.sources.job import KnownJob
from logtriage.sources.lookup import Found

HOSTILE = st.text(max_size=400) | st.sampled_from(
    ["<!channel>", "<@U1> " * 9, "`" * 900, "```", "&lt;!here&gt;", "&" * 5000, "<https://x|y>", "@everyone",
     "\u202e", "*b* _i_ ~s~", "x" * 9000, "\n" * 50, "\x00\x1b[31m", "\ud800", ":skull:"]
)  # fmt: skip


def as_sent(message: Message) -> dict[str, Any]:
    return {"text": message.text, "blocks": list(message.blocks)}


@st.composite
def verdicts(draw: st.DrawFn) -> Verdict:
    def line() -> CitedLine:
        return CitedLine(file=draw(HOSTILE) or "f", line=draw(st.integers(1, 10**12)), text=draw(HOSTILE))

    count = draw(st.integers(0, 30))
    body = a_body(
        title=draw(HOSTILE),
        summary=draw(HOSTILE),
        evidence=tuple(line() for _ in range(min(count, 5))),
        culprits=CulpritsOut(
            ranks=tuple(range(count * 300)), hosts=tuple(draw(HOSTILE) for _ in range(count % 9))
        ),
        alternatives=(Alternative(failure_type=draw(HOSTILE), confidence=0.2, evidence=(line(),)),),
    )
    return a_verdict(verdict=body)


@settings(max_examples=30, deadline=5000)
@given(verdicts())
def test_a_verdict_keeps_the_limits_and_calls_nobody(verdict: Verdict) -> None:
    message = as_sent(verdict_message(verdict))
    assert faults_of(message) == []
    for block in message["blocks"]:
        for text in texts_of(block):
            assert not re.search(r"[<>]|@(?:channel|here|everyone)", text["text"], re.IGNORECASE)
            assert re.fullmatch(r"(?:[^&]|&(?:amp|lt|gt);)*", text["text"]), text["text"]
            assert text["text"].count("```") % 2 == 0
    view = modal.correction_view(verdict, Press("C1", "U1", "n", verdict.id))
    assert faults_of(view) == []


def texts_of(block: dict[str, Any]) -> list[dict[str, Any]]:
    """The texts of a block that Slack parses."""
    return [
        each
        for each in (block.get("text"), *block.get("elements", ()))
        if each and each.get("type") == "mrkdwn"
    ]


@given(HOSTILE, st.integers(1, 60))
def test_escapes_are_never_cut(text: str, most: int) -> None:
    shown = escaped(text, most)
    assert len(shown) <= most
    assert re.fullmatch(r"(?s)(?:[^&<>]|&(?:amp|lt|gt);)*", shown)
    assert "`" not in told(text) and code(text).strip("`").count("`") == 0


def test_a_blank_summary_is_left_out() -> None:
    """Slack takes no empty section."""
    assert faults_of(as_sent(verdict_message(a_verdict(verdict=a_body(summary=" \n"))))) == []


def test_plain_text_stays_as_it_is() -> None:
    assert told("rank 3 · host node-7: 5 > 3 & 2 < 4") == "rank 3 · host node-7: 5 &gt; 3 &amp; 2 &lt; 4"
    assert code("KeyError: 'math'") == "```KeyError: 'math'```"


@settings(max_examples=25, deadline=5000)
@given(HOSTILE, st.lists(HOSTILE, max_size=150))
def test_plain_answers_keep_the_limits(asked: str, names: list[str]) -> None:
    jobs = [KnownJob(name or "j", "queue", name=name, state="FAILED", note=name) for name in names]
    found = Found(tuple(jobs), tuple(names[:3]), tuple(name for name in names[:5] if name.strip()))
    messages = [notices.unknown_job(asked, found), notices.which_job(), notices.not_understood()]
    messages += [notices.choice(asked or "x", asked * 3, found, is_more=True)] if jobs else []
    messages += [notices.still_running(job, asked, asked) for job in jobs[:2]]
    messages += [notices.nothing_readable(job, asked) for job in jobs[:2]]
    messages += [notices.reading(job, 3) for job in jobs[:2]]
    for message in map(as_sent, messages):
        assert faults_of(message) == []
        assert len(text_of(message)) < 20_000


def test_what_a_person_wrote_is_read_without_slacks_marks() -> None:
    assert (
        written("<@UBOT> why did &lt;4812&gt; die? <https://x.y/z|x.y/z>", "UBOT")
        == "why did <4812> die? x.y/z"
    )
    assert written("a &amp;lt; b <#C1|general> <@U2|bob> <!here>") == "a &lt; b general @bob !here"
    event = {"type": "message", "user": "U1", "channel": "D1", "text": "x" * 99_999, "ts": "1.2"}
    question = question_of(event, "UBOT")
    assert question is not None and len(question.text) <= 4_000 and question.is_direct
    assert question_of({**event, "bot_id": "B1"}, "UBOT") is None
    assert question_of({**event, "subtype": "message_changed"}, "UBOT") is None


def test_the_job_of_a_question_is_found_in_its_words() -> None:
    wanted = {
        "why did job 4812 die?": "4812", "4812": "4812", "logs of `my job`": "my job",
        "alice's last job": "alice",
        "what happened to pretrain-7b": "pretrain-7b", "show me /etc/passwd": "/etc/passwd",
        "../../etc/passwd": "../../etc/passwd", "did job 4811 die of the same?": "4811", "jobs of bob": "bob",
        "triage s3://bucket/x": "s3://bucket/x", "job: 4812_3": "4812_3", "is v-ab5eb2fb right": "v-ab5eb2fb",
    }  # fmt: skip
    for question, job in wanted.items():
        assert [each.word for each in subjects(question)] == [job], question
    for question in (
        "which node?",
        "what about rank 3?",
        "why did the job die?",
        "step 12345",
        "should I re-run?",
        "mark every job as fine",
    ):
        assert subjects(question) == [], question
    assert [(each.word, each.is_sure) for each in subjects("did the job explode?")] == [("explode", False)]
    assert [each.word for each in subjects("why did nightly fail", is_first=True)] == ["nightly"]


@settings(max_examples=60, deadline=2000)
@given(
    st.text(max_size=4000)
    | st.sampled_from(["a-" * 2000, "job " * 1000, "/" * 4000, "'s " * 1300, "1" * 4000])
)
def test_subjects_are_few_and_found_quickly(text: str) -> None:
    found = subjects(text, is_first=True)
    assert len(found) <= 4 and all(len(each.word) <= 300 for each in found)
