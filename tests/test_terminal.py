from __future__ import annotations

import io
import re
import sys
import threading
import unicodedata

import pytest
from growth import grows_evenly
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from verdicts import OOM, a_body, a_verdict

from logtriage.apps.console import progress_shown
from logtriage.report import words
from logtriage.report.document import (
    Alternative,
    Attempt,
    ChainStep,
    CitedLine,
    CulpritsOut,
    Job,
    Lost,
    Mining,
    Mitigation,
    Restart,
    Symptom,
    UnreadableFile,
    Verdict,
)
from logtriage.report.terminal import draw_flowed, render
from logtriage.report.visible import visible


def screen(verdict: Verdict, width: int = 100, colour: bool = False) -> str:
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=colour, color_system="truecolor" if colour else None
    )
    render(verdict, console)
    return out.getvalue()


def squeezed(verdict: Verdict, width: int = 100) -> str:
    return " ".join(screen(verdict, width).split())


def test_the_screen_says_what_where_why_and_what_to_do() -> None:
    shown = squeezed(a_verdict())
    for expected in (
        "GPU 3 ran out of memory allocating 23.44 GiB",
        "CUDA: out of memory · cuda.out_of_memory · framework · very likely (93 %)",
        "4 of 5 votes",
        "rank 11 · host node-b · GPU 3",
        "Rank 11 could not allocate 23.44 GiB and ended.",
        "node-b/rank11.log:88213",
        "torch.OutOfMemoryError: CUDA out of memory.",
        "15 ranks timed out in ALLREDUCE node-a/rank2.log:551",
        "Change the configuration first",
        "Restart: not yet. The same step needs the same memory.",
        "1. Reduce the micro batch size.",
        "2. Set expandable segments. (from a confirmed earlier case)",
        "16 ranks on 2 hosts",
        "3 h 13 min",
        "last step 12,345",
        "last checkpoint at step 12,000 (345 steps lost)",
        "The rendezvous timed out",
        "Collective: timeout (4 %)",
        "Not read: node-a/core.gz (the gzip stream is cut off)",
        "Left out: the middle of node-a/rank0.log was sampled",
        "the kernel log of node-b",
        "18 files, 1.2 GB, 8,123,456 lines, 412 templates in 12 s",
    ):
        assert expected in shown


def test_a_verdict_with_much_of_everything_stays_on_one_screen() -> None:
    cited = tuple(
        CitedLine(file=f"logs/rank{n}.log", line=n + 1, text=OOM, why="why " * 9) for n in range(40)
    )
    body = a_body(
        summary="Something happened on a node and then more happened. " * 12,
        evidence=cited,
        mitigations=tuple(Mitigation(text="Do this thing and then that thing. " * 5) for _ in range(12)),
        alternatives=tuple(Alternative(failure_type="code.key", confidence=0.1) for _ in range(9)),
        chain=tuple(ChainStep(step=n, failure_type="collective.timeout", text="x" * 300) for n in range(30)),
        collect_next=("a thing to collect next time " * 8,) * 8,
        culprits=CulpritsOut(ranks=tuple(range(0, 4000, 2)), hosts=tuple(f"node-{n}" for n in range(999))),
    )
    attempt = Attempt(
        attempt=1, failure_type="code.key", failure_class="script", title="KeyError", confidence=0.5
    )
    verdict = a_verdict(
        verdict=body,
        attempts=(attempt,) * 50,
        unreadable=(UnreadableFile(file="core.gz", reason="broken"),) * 100,
        mining=Mining(left_out=("a note about what was left out",) * 20),
    )
    lines = screen(verdict).splitlines()
    assert len(lines) <= 44
    assert "… and" in "\n".join(lines)
    assert max(map(cell_len, lines)) <= 100


def test_what_does_not_fit_is_counted() -> None:
    cited = tuple(CitedLine(file="a.log", line=n + 1, text="boom failed") for n in range(40))
    shown = screen(a_verdict(verdict=a_body(evidence=cited)))
    listed = len(re.findall(r"a\.log:\d+", shown))
    assert f"… and {40 - listed} more lines" in shown


@pytest.mark.parametrize("width", [20, 40, 60, 100, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    text = "学习率错误 " * 200 + "failed"
    verdict = a_verdict(
        verdict=a_body(title=text, summary=text, evidence=(CitedLine(file=text, line=1, text=text),))
    )
    assert max(map(cell_len, screen(verdict, width).splitlines())) <= width


HOSTILE = (
    "\x1b[31mred\x1b]8;;http://x\x07 [bold]failed[/bold] [/] :smile: \x9b2J "
    "\u202egnp.exe\u2066 a\rb\x00\u2028"
)


def test_what_was_lost_and_every_attempt_are_told_whole_on_a_narrow_terminal() -> None:
    lost = Lost(iterations=33, seconds=18.0, gpu_hours=0.015, since="start", idle_seconds=0.0)
    tries = tuple(
        Attempt(
            attempt=number,
            failure_type="checkpoint.mismatch",
            failure_class="script",
            confidence=0.9,
            title="The optimizer state of the checkpoint does not fit the optimizer",
            culprits=CulpritsOut(ranks=(3,), hosts=("node-a",)),
        )
        for number in range(2)
    )
    shown = screen(a_verdict(verdict=a_body(lost=lost), attempts=tries), width=80)
    flat = " ".join(shown.split())
    assert "Lost: 33 iterations, 18 s since the start: no checkpoint was seen" in flat
    assert flat.count("does not fit the optimizer · rank 3 · host node-a") == 2


def test_escapes_markup_and_bidi_overrides_in_log_text_are_shown_not_obeyed() -> None:
    cited = CitedLine(file=HOSTILE, line=1, text=HOSTILE, why=HOSTILE, host=HOSTILE)
    step = ChainStep(step=0, failure_type=HOSTILE, text=HOSTILE, file=HOSTILE, line=1, follows_by=HOSTILE)
    verdict = a_verdict(
        id=HOSTILE,
        job=Job(name=HOSTILE, hosts=(HOSTILE,), frameworks=(HOSTILE,)),
        verdict=a_body(
            title=HOSTILE, summary=HOSTILE, evidence=(cited,), culprits=CulpritsOut(hosts=(HOSTILE,)),
            mitigations=(Mitigation(text=HOSTILE),), restart=Restart(advised=True, reason=HOSTILE),
            failure_type=HOSTILE, failure_class=HOSTILE, action=HOSTILE, collect_next=(HOSTILE,),
            alternatives=(Alternative(failure_type=HOSTILE, confidence=0.1, evidence=(cited,)),),
            chain=(step, step),
        ),
        unreadable=(UnreadableFile(file=HOSTILE, reason=HOSTILE),),
        mining=Mining(left_out=(HOSTILE,)),
    )  # fmt: skip
    shown = screen(verdict)
    assert not [c for c in shown if unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp"} and c != "\n"]
    assert "\\x1b[31mred" in shown and "[bold]failed[/bold]" in shown and ":smile:" in shown
    assert "\\u202egnp.exe" in shown
    coloured = screen(verdict, colour=True)
    assert set(re.findall(r"\x1b\[[\d;]*(.)", coloured)) == {"m"}
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == shown


@given(st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=200), st.integers(1, 300))
@settings(max_examples=200)
def test_visible_text_holds_nothing_that_a_terminal_obeys(text: str, most: int) -> None:
    shown = visible(text, most)
    assert not [c for c in shown if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}]
    assert visible(shown, 10_000) == shown


@given(st.text(max_size=300), st.text(max_size=300), st.integers(10, 120))
def test_a_long_line_is_shortened_around_its_telling_words(before: str, after: str, width: int) -> None:
    shown, spans = words.shortened(before + " SIGSEGV " + after, width)
    assert len(shown) <= width
    assert all(0 <= start < end <= len(shown) for start, end in spans)
    if width >= 40:
        assert words.telling_spans(shown)


def test_shortening_keeps_the_start_of_a_line_when_its_telling_words_are_there() -> None:
    shown, _ = words.shortened(OOM + " y" * 500, 96)
    assert shown.startswith("[rank11]: torch.OutOfMemoryError: CUDA out of memory.") and shown.endswith("…")


def test_the_telling_words_are_highlighted() -> None:
    coloured = screen(a_verdict(), colour=True)
    assert re.search(r"\x1b\[1;31m(?:torch\.)?OutOfMemoryError", coloured)


@pytest.mark.parametrize(("start", "unit"), [("", "a."), ("", "Error"), ("Xid", " "), ("", "exit code")])
def test_hostile_lines_cost_no_more_than_their_length(start: str, unit: str) -> None:
    def made(size: int) -> str:
        return start + unit * (size // len(unit))

    assert grows_evenly(made, lambda text: words.shortened(text, 100), 12_500)


def test_no_color_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    render(a_verdict(), Console(file=out, width=100, force_terminal=True))
    colours = [code for codes in re.findall(r"\x1b\[([\d;]*)m", out.getvalue()) for code in codes.split(";")]
    assert not [code for code in colours if code and int(code) >= 30]


@pytest.mark.parametrize(
    ("failure_type", "action", "expected", "absent"),
    [
        ("none.completed", "none", "Nothing to repair.", "Began on"),
        ("unknown", "none", "do not say what to repair", "Nothing to repair"),
        ("gpu.fell_off_bus", "restart_excluding_node", "Take node-b out", "{node}"),
        ("storage.filesystem", "wait_and_restart", "Wait until the shared service has recovered", "{"),
    ],
)
def test_the_advice_fits_the_verdict(failure_type: str, action: str, expected: str, absent: str) -> None:
    quiet = failure_type.startswith("none.")
    culprits = CulpritsOut() if quiet else CulpritsOut(hosts=("node-b",))
    body = a_body(
        failure_type=failure_type, action=action, culprits=culprits, restart=Restart(advised=False), chain=()
    )
    shown = squeezed(a_verdict(verdict=body, symptoms=(), attempts=()))
    assert expected in shown and absent not in shown


def test_a_node_without_a_name_is_that_of_the_rank() -> None:
    body = a_body(
        action="restart_excluding_node", culprits=CulpritsOut(ranks=(2,)), restart=Restart(advised=True)
    )
    assert "Take the node of rank 2 out" in squeezed(a_verdict(verdict=body))


def test_the_general_advice_of_the_taxonomy_is_given_once() -> None:
    general = "Change the configuration first: the same settings would fail again."
    body = a_body(
        restart=Restart(advised=False, reason=general),
        mitigations=(Mitigation(text=general, source="taxonomy"), Mitigation(text="Shard further.")),
    )
    shown = squeezed(a_verdict(verdict=body))
    assert shown.count("hange the configuration") == 1 and "1. Shard further." in shown
    assert "Restart:" not in shown


@pytest.mark.parametrize(
    ("action", "restart", "expected"),
    [
        ("restart", Restart(advised=True, exclude_hosts=("node-b",)), "Restart: yes, without node-b."),
        (
            "restart",
            Restart(advised=False, reason="the cause is not known"),
            "Restart: not yet. The cause is not known.",
        ),
        ("fix_code", Restart(advised=True), "Restart: yes."),
    ],
)
def test_advice_about_the_restart_is_given_where_it_adds_something(
    action: str, restart: Restart, expected: str
) -> None:
    assert expected in squeezed(a_verdict(verdict=a_body(action=action, restart=restart)))
    said_already = Restart(advised=True, exclude_hosts=("node-b",))
    body = a_body(action="restart_excluding_node", restart=said_already)
    shown = squeezed(a_verdict(verdict=body))
    assert "Take node-b out, then restart" in shown and "Restart:" not in shown


def test_a_long_path_gives_way_to_what_the_line_says() -> None:
    line = (
        f"[rank0]: RuntimeError: [{'/build/src/python' * 4}/unbound_buffer.cc:78] Timed out waiting 12000ms"
    )
    shown, _ = words.shortened(line, 90)
    assert shown == "[rank0]: RuntimeError: […/unbound_buffer.cc:78] Timed out waiting 12000ms"


def test_without_a_chain_the_after_effects_are_shown() -> None:
    symptom = Symptom(failure_type="process.killed", text="SIGTERM", file="a.log", line=7, ranks=(0, 1, 2, 5))
    shown = squeezed(a_verdict(verdict=a_body(chain=()), symptoms=(symptom,)))
    assert "Process: killed on ranks 0-2, 5 (4) a.log:7" in shown


def test_a_bare_verdict_is_shown_without_empty_sections() -> None:
    body = a_body(
        evidence=(), mitigations=(), alternatives=(), chain=(), collect_next=(), culprits=CulpritsOut()
    )
    shown = screen(Verdict(id="x", tool=a_verdict().tool, job=Job(name="j", attempts=1), verdict=body))
    for absent in ("Evidence", "What followed", "Attempts", "The job", "Worth knowing", "None"):
        assert absent not in shown
    assert "the logs name no rank or host" in shown
    several = Job(name="j", attempts=1, ranks=4)
    assert "no single rank or host stands out" in screen(
        Verdict(id="x", tool=a_verdict().tool, job=several, verdict=body)
    )


@pytest.mark.parametrize(
    ("confidence", "expected"),
    [(1.0, "100 %"), (0.999, "99 %"), (0.801, "80 %"), (0.001, "1 %"), (0.0, "0 %")],
)
def test_per_cent_never_claims_certainty_that_is_not_there(confidence: float, expected: str) -> None:
    assert words.percent(confidence) == expected


@given(st.lists(st.integers(0, 60)))
def test_ranges_name_exactly_the_ranks(ranks: list[int]) -> None:
    named: set[int] = set()
    for part in filter(None, words.ranges(ranks, most=100).split(", ")):
        first, _, last = part.partition("-")
        named |= set(range(int(first), int(last or first) + 1))
    assert named == set(ranks)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.04, "0.0 s"),
        (42, "42 s"),
        (59.9, "1 min"),
        (200, "3 min 20 s"),
        (18720, "5 h 12 min"),
        (183600, "2 d 3 h"),
    ],
)
def test_durations_read_well(seconds: float, expected: str) -> None:
    assert words.duration(seconds) == expected


def test_a_progress_bar_needs_no_thread_beside_which_no_copies_could_be_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    before = threading.active_count()
    with progress_shown(quiet=False) as progress:
        assert progress is not None
        progress("rank_3.log", 250_000_000, 1_000_000_000)
        assert threading.active_count() == before
        assert "rank_3.log" in screen.getvalue()


def test_the_place_in_the_users_program_is_told_with_the_end_of_its_path() -> None:
    cited = CitedLine(
        file="r.log", line=3, text="KeyError: 'x'", raised_at="/home/mira/llm/sft/data/shards.py:52 in read"
    )
    text = screen(a_verdict(verdict=a_body(evidence=(cited,))))
    assert "Code: …/sft/data/shards.py:52 in read\n" in text


def test_an_answer_flows_within_the_terminal() -> None:
    out = io.StringIO()
    text = "Repair the data first, a restart alone would fail again.\n1. " + "Fetch it again. " * 8 + "\n"
    text += "  a.log:7\n    " + "word " * 40 + "\n    " + "x" * 100 + "\n"
    draw_flowed(text, Console(file=out, width=60))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 60 and lines[1].startswith("1. Fetch") and lines[2].startswith("  ")
    assert "".join(out.getvalue().split()) == "".join(text.split())
