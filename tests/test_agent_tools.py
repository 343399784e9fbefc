"""What a model may look up, the prompt that is shown, recorded answers, and the command line."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from growth import CATASTROPHE
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from model_jobs import INJECTED, desk, settings, sure_job, unknown_job
from model_server import Reply, Request, answer, chat, place_of, serving
from test_layers import loaded

from logtriage import triage
from logtriage.agent.desk import Precedent
from logtriage.agent.evidence_file import evidence_file
from logtriage.agent.prompts import PromptFault, load_prompt, types_in_short
from logtriage.agent.tokens import upper_bound
from logtriage.agent.tools import ANSWER, toolbox
from logtriage.apps.cli import main
from logtriage.taxonomy import shipped, taxonomy

QUOTE = "header of the record is truncated"


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    logs = unknown_job(tmp_path_factory.mktemp("job"), more=INJECTED)
    (logs / "rank0.log").open("a").write("2026-03-01 09:00:31 INFO args: micro_batch_size=4 lr: 0.003\n")
    before = Precedent("data.corrupt", "A shard was cut short", 0.91, "Fetch it again", "v-1")
    seen = desk(logs, (before,))
    evidence_file(seen, 1800, upper_bound)
    found = {tool.__name__: tool for tool in toolbox(seen)}
    return {**found, "place": seen.place("rank1.log", 32)}


def call(tools: dict[str, object], name: str, *arguments: str) -> str:
    tool = tools[name]
    assert callable(tool)
    told = tool(*arguments)
    assert isinstance(told, str) and len(told) <= ANSWER + 100
    assert "the cause is the user" not in told and "Zx81Qw77Lm20Pq" not in told
    return told


def test_lines_around_a_place(tools: dict[str, object]) -> None:
    told = call(tools, "read_lines", str(tools["place"]))
    assert QUOTE in told and "step 29" in told and "<secret-1>" in told
    assert "this line talks to its reader" in told
    assert call(tools, "read_lines", "F1:4711") == "there is no such line"
    assert call(tools, "read_lines", "../../etc/passwd:1") == "there is no such line"


def test_search_finds_lines_with_their_places(tools: dict[str, object]) -> None:
    told = call(tools, "search_log", r"trunc\w+")
    assert told.startswith(str(tools["place"])) and QUOTE in told
    assert call(tools, "search_log", "no such words") == "nothing found"
    assert "no such pattern" in call(tools, "search_log", "(")
    assert "longer than" in call(tools, "search_log", "a" * 500)


def test_ranks_are_compared_by_how_often_they_wrote_something(tools: dict[str, object]) -> None:
    told = call(tools, "compare_ranks", "garbage")
    assert "rank 0: 0" in told and "rank 1: 1" in told


def test_what_happened_between_two_times(tools: dict[str, object]) -> None:
    told = call(tools, "timeline", "09:00:10", "09:00:20")
    assert "rank 0: steps 10 to 20" in told
    assert call(tools, "timeline", "soon", "later") == "times look like 18:05:39"


def test_codes_are_explained_from_the_rule_bank(tools: dict[str, object]) -> None:
    assert "gpu.fell_off_bus" in call(tools, "look_up", "xid 79")
    assert "SIGKILL" in call(tools, "look_up", "exit code 137")
    assert "SIGSEGV" in call(tools, "look_up", "signal 11")
    assert "collective." in call(tools, "look_up", "ncclRemoteError")


def test_settings_and_earlier_incidents(tools: dict[str, object]) -> None:
    assert "micro_batch_size=4" in call(tools, "job_configuration", "batch")
    assert "api_key" not in call(tools, "job_configuration", "nothing such")
    assert "A shard was cut short" in call(tools, "similar_incidents")


_NAMES = ["read_lines", "search_log", "compare_ranks", "look_up", "job_configuration"]


@given(st.sampled_from(_NAMES), st.text())
@limits(max_examples=60, deadline=None)
def test_whatever_a_model_asks_the_answer_is_short(tools: dict[str, object], name: str, text: str) -> None:
    call(tools, name, text)


def test_a_hostile_pattern_costs_linear_time(tools: dict[str, object]) -> None:
    began = time.process_time()
    call(tools, "search_log", "(a|a?)+" * 20 + "b")
    assert time.process_time() - began < CATASTROPHE


def test_the_evidence_file_keeps_to_its_budget_and_says_the_best_first(tmp_path: Path) -> None:
    told = (f"ERROR odd thing {chr(97 + n % 26) * 7} {n}\n" for n in range(400))
    lines = [f"2026-03-01 09:00:59 {each}" for each in told]
    logs = unknown_job(tmp_path, more="".join(lines))
    seen = desk(logs)
    for budget in (300, 800, 1800):
        made = evidence_file(seen, budget, upper_bound)
        assert made.tokens <= budget and made.text.startswith("JOB\n")
    assert evidence_file(seen, 300, upper_bound).left_out > 0


def test_every_prompt_has_a_header_and_uses_the_variables_that_it_names() -> None:
    files = sorted(shipped("prompts").glob("*.j2"))
    assert files
    for file in files:
        prompt = load_prompt(file.stem)
        assert prompt.id == file.stem.replace("_", "-") and int(prompt.version) >= 1
        for variable in prompt.variables:
            assert variable in prompt.source.partition("-#}")[2]
    with pytest.raises(PromptFault):
        load_prompt("no_such_prompt")


def test_all_failure_types_are_in_the_short_list() -> None:
    short = types_in_short()
    for name in taxonomy().types:
        assert all(part in short for part in name.split("."))


def _script(request: Request, number: int) -> Reply:
    cited = [(place_of(request, QUOTE), QUOTE)]
    return chat(answer("data.corrupt", cited, [1], cause="Shard 7 is truncated."))


def _main(monkeypatch: pytest.MonkeyPatch, folder: Path, *arguments: str, **environment: str) -> int:
    for name in ("BASE_URL", "MODEL", "API_KEY", "RECORD", "REPLAY"):
        monkeypatch.delenv(f"LOGTRIAGE_LLM_{name}", raising=False)
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(folder / "data"))
    monkeypatch.setenv("LOGTRIAGE_CONFIG", str(folder / "logtriage.toml"))
    (folder / "logtriage.toml").write_text('llm_model = "scripted"\n')
    for name, value in environment.items():
        monkeypatch.setenv(f"LOGTRIAGE_LLM_{name}", value)
    return main(["triage", *arguments])


def test_show_prompt_is_what_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("langchain_openai")
    logs = unknown_job(tmp_path)
    with serving(_script) as server:
        assert _main(monkeypatch, tmp_path, str(logs), "--show-prompt", BASE_URL=server.address) == 0
        shown = json.loads(capsys.readouterr().out)
        assert server.requests == []
        options = ("--json", "-", "--votes", "1")
        assert _main(monkeypatch, tmp_path, str(logs), *options, BASE_URL=server.address) == 0
    verdict = json.loads(capsys.readouterr().out)
    assert server.requests == [shown]
    assert verdict["verdict"]["votes"] == {"asked": 1, "valid": 1, "for": {"data.corrupt": 1}}
    assert verdict["model"]["budget"]["votes"] == 1


def test_show_prompt_knows_what_was_confirmed_and_what_is_routine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("langchain_openai")
    pytest.importorskip("chromadb")
    taught, logs = unknown_job(tmp_path / "before"), unknown_job(tmp_path / "now")
    worker = logs / "rank1.log"
    worker.write_text(worker.read_text().replace("is truncated, decode gave", "was cut, decoding gave"))
    assert _main(monkeypatch, tmp_path, str(taught), "--offline", "--json", "-") == 0
    told = json.loads(capsys.readouterr().out)["id"]
    assert main(["correct", told, "--type", "data.corrupt"]) == 0
    learned = next((tmp_path / "data" / "rules").rglob("*.yaml"))
    assert main(["rules", "retire", learned.stem]) == 0
    good = tmp_path / "good"
    good.mkdir()
    (good / "rank0.log").write_text((logs / "rank0.log").read_text() + "training completed\n")
    capsys.readouterr()
    with serving(lambda request, number: chat(answer("unknown", []))) as server:
        options = (str(logs), "--history", str(good))
        assert _main(monkeypatch, tmp_path, *options, "--show-prompt", BASE_URL=server.address) == 0
        shown = json.loads(capsys.readouterr().out)
        assert _main(monkeypatch, tmp_path, *options, "--votes", "1", BASE_URL=server.address) == 0
    assert server.requests == [shown]
    assert "data.corrupt, likeness" in shown["messages"][1]["content"]


def test_a_model_is_not_asked_offline_or_when_never(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = unknown_job(tmp_path)
    with serving(_script) as server:
        for option in (["--offline"], ["--llm", "never"]):
            assert _main(monkeypatch, tmp_path, str(logs), *option, BASE_URL=server.address) == 0
            assert "unknown" in capsys.readouterr().out
    assert server.requests == []
    assert _main(monkeypatch, tmp_path, str(logs), "--llm", "sometimes") == 2


def test_a_recorded_model_answers_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("langchain_openai")
    logs = unknown_job(tmp_path)
    record = tmp_path / "answers.jsonl"
    with serving(_script) as server:
        first = triage(logs, workers=1, settings=settings(tmp_path, server.address, llm_record=str(record)))
    assert len(record.read_text().splitlines()) == 3 and "Zx81Qw77Lm20Pq" not in record.read_text()
    assert _main(monkeypatch, tmp_path, str(logs), REPLAY=str(record)) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert QUOTE in shown and "3 of 3 votes" in shown
    again = triage(logs, workers=1, settings=settings(tmp_path, llm_replay=str(record)))
    assert again.verdict == first.verdict
    assert again.model is not None and again.model.endpoint == "recorded answers"
    other = unknown_job(tmp_path / "other", more="2026-03-01 09:00:34 ERROR and one more line\n")
    lost = triage(other, workers=1, settings=settings(tmp_path, llm_replay=str(record)))
    assert lost.verdict.failure_type == "unknown"


def test_the_terminal_says_what_was_asked_and_what_it_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("langchain_openai")
    logs = unknown_job(tmp_path)
    with serving(_script) as server:
        assert _main(monkeypatch, tmp_path, str(logs), BASE_URL=server.address) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "scripted was asked (the cause is unknown): the votes decide" in shown
    assert "3,870 of 20,000 tokens" in shown and "hidden from it: 1 secret" in shown


def test_a_sure_verdict_loads_nothing_that_asking_needs(tmp_path: Path) -> None:
    logs = sure_job(tmp_path)
    (tmp_path / "logtriage.toml").write_text('llm_model = "m"\nllm_base_url = "http://127.0.0.1:9/v1"\n')
    configured = f"import os; os.environ['LOGTRIAGE_CONFIG'] = {str(tmp_path / 'logtriage.toml')!r}\n"
    program = f"from logtriage import triage\nprint(triage({str(logs)!r}, workers=1).model.why)"
    heavy = {"langchain", "langchain_openai", "openai", "httpx2", "tiktoken"}
    assert not loaded(configured + program) & heavy
