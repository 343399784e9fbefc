from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from verdicts import a_body, a_verdict

import logtriage
from logtriage.apps.cli import main
from logtriage.intake.folder import NothingReadable
from logtriage.report.document import read_verdict
from logtriage.rulebank.bank import BankFault
from logtriage.rulebank.rule import Fault

RULE = """\
- id: acme.widget
  failure_type: code.value
  role: cause
  title: "Widget {size} broke"
  keywords: ["widget broke"]
  pattern: 'widget broke at (?P<size>\\d+)'
  mitigation: ["Mend the widget."]
  examples:
    - line: "widget broke at 7"
      captures: {size: "7"}
  counterexamples: ["widget broke even"]
"""


@dataclass(frozen=True)
class At:
    file: str
    line: int
    time: float | None = None


@dataclass(frozen=True)
class Row:
    template: str
    count: int
    first: At
    last: At
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    files: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Tried:
    file: str
    line: int
    text: str
    captures: tuple[tuple[str, str], ...]


class Pipeline(types.ModuleType):
    """Stands for the real one: it notes what it is asked and answers with what the test wants."""

    def __init__(self) -> None:
        super().__init__("logtriage.pipeline")
        self.asked: list[dict[str, Any]] = []
        self.outcome: Callable[[], Any] = a_verdict

    def triage(self, paths: Sequence[str], **options: Any) -> Any:
        self.asked.append({"paths": list(paths), **options})
        return self.outcome()

    def templates(self, paths: Sequence[str], **options: Any) -> Any:
        self.asked.append({"paths": list(paths), **options})
        return self.outcome()

    def try_rule(self, rule: str, paths: Sequence[str]) -> Iterator[Any]:
        self.asked.append({"rule": rule, "paths": list(paths)})
        yield from self.outcome()


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    fake = Pipeline()
    monkeypatch.setitem(sys.modules, "logtriage.pipeline", fake)
    monkeypatch.setattr(logtriage, "pipeline", fake, raising=False)
    monkeypatch.setattr("logtriage.memory.tried.try_rule", fake.try_rule)
    monkeypatch.delenv("LOGTRIAGE_DEBUG", raising=False)
    return fake


def raising(fault: BaseException) -> Callable[[], Any]:
    def outcome() -> Any:
        raise fault

    return outcome


Captured = pytest.CaptureFixture[str]


def test_a_verdict_is_printed_for_people(pipeline: Pipeline, capsys: Captured) -> None:
    assert main(["triage", "logs"]) == 0
    out, err = capsys.readouterr()
    assert "GPU 3 ran out of memory" in out and "What to do now" in out and "\x1b" not in out
    assert err == ""


def test_json_on_standard_output_is_json_alone(pipeline: Pipeline, capsys: Captured) -> None:
    assert main(["triage", "logs", "--json", "-"]) == 0
    assert read_verdict(json.loads(capsys.readouterr().out)) == a_verdict()


def test_files_get_the_answer_and_standard_output_nothing(
    pipeline: Pipeline, capsys: Captured, tmp_path: Path
) -> None:
    document, page = tmp_path / "v.json", tmp_path / "v.html"
    assert main(["triage", "logs", "--json", str(document), "--html", str(page)]) == 0
    assert document.read_text(encoding="utf-8") == a_verdict().to_json()
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    out, err = capsys.readouterr()
    assert out == "" and "not read: node-a/core.gz" in err and err.count("\n") == 1


def test_quiet_leaves_out_the_warnings(pipeline: Pipeline, capsys: Captured) -> None:
    assert main(["triage", "logs", "--json", "-", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_the_options_reach_the_pipeline(pipeline: Pipeline, tmp_path: Path) -> None:
    rules = tmp_path / "own.yaml"
    rules.write_text(RULE)
    arguments = ["triage", "a", "s3://bucket/b", "-", "--offline", "--workers", "3", "--rules", str(rules)]
    assert main([*arguments, "--history", str(tmp_path), "--history", "s3://old/run"]) == 0
    asked = pipeline.asked[0]
    assert (
        asked["paths"] == ["a", "s3://bucket/b", "-"] and asked["offline"] is True and asked["workers"] == 3
    )
    assert list(asked["rules"]) == [rules] and list(asked["history"]) == [str(tmp_path), "s3://old/run"]
    assert asked["progress"] is None  # no bar where standard error is no terminal


@pytest.mark.parametrize(
    ("fault", "status", "said"),
    [
        (NothingReadable("no log at ./x"), 3, "no log at ./x"),
        (BankFault([Fault("own.yaml", 7, "a.b", "bad")] * 1), 2, "own.yaml:7: rule a.b: bad"),
        (ValueError("odd\n\x1b[31mtext"), 1, "ValueError: odd [31mtext"),
        (FileNotFoundError(2, "No such file or directory", "gone"), 1, "gone: No such file or directory"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 1, "MemoryError"),
    ],
)
def test_every_error_is_one_line_and_a_status(
    pipeline: Pipeline, capsys: Captured, fault: BaseException, status: int, said: str
) -> None:
    pipeline.outcome = raising(fault)
    assert main(["triage", "logs"]) == status
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("logtriage: ") and err.count("\n") == 1
    assert said in err.replace("\\x1b", "") and "\x1b" not in err


def test_debugging_shows_where_an_error_came_from(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGTRIAGE_DEBUG", "1")
    pipeline.outcome = raising(ValueError("odd"))
    with pytest.raises(ValueError, match="odd"):
        main(["triage", "logs"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["triage"], "PATH"),
        (["triage", "x", "--workers", "0"], "--workers"),
        (["triage", "x", "--nonsense"], "--nonsense"),
        (["triage", "x", "--json", "-", "--html", "-"], "both"),
        (["triage", "x", "--json", "/no/such/folder/v.json"], "/no/such/folder"),
        (["triage", "x", "--history", "/no/such/run"], "/no/such/run"),
        (["triage", "x", "--rules", "/no/such.yaml"], "/no/such.yaml"),
        (["nonsense"], "nonsense"),
        (["rules"], "rules --help"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(
    pipeline: Pipeline, capsys: Captured, arguments: list[str], said: str
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and said in err and err.count("\n") == 1
    assert pipeline.asked == []


def test_a_file_that_cannot_be_written_is_status_1(
    pipeline: Pipeline, capsys: Captured, tmp_path: Path
) -> None:
    assert main(["triage", "x", "--json", str(tmp_path)]) == 1
    assert str(tmp_path) in capsys.readouterr().err


def test_templates_are_listed_most_frequent_first(pipeline: Pipeline, capsys: Captured) -> None:
    rare = Row("boom <*> [bold]\x1b[31m", 1, At("b.log", 9), At("b.log", 9), (3,), ("node-a",))
    often = Row("step <*> done", 1234, At("a.log", 1, 1769847302.1), At("b.log", 88), (0, 1, 2))
    often = replace(often, files={"a.log": 1233, "b.log": 1})
    pipeline.outcome = lambda: [rare, often]
    assert main(["templates", "logs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split(maxsplit=1) == ["1,234", "step <*> done"]
    assert "a.log:1 (2026-01-31 08:15:02) to b.log:88 · ranks 0-2" in lines[1]
    assert "boom <*> [bold]\\x1b[31m" in lines[2] and "b.log:9 · rank 3 · host node-a" in lines[3]
    assert main(["templates", "logs", "--json", "--limit", "1"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            "count": 1234,
            "template": "step <*> done",
            "first": {"file": "a.log", "line": 1, "time": "2026-01-31T08:15:02.100Z"},
            "last": {"file": "b.log", "line": 88, "time": None},
            "ranks": [0, 1, 2],
            "hosts": [],
            "files": {"a.log": 1233, "b.log": 1},
        }
    ]
    pipeline.outcome = lambda: [replace(rare, template=f"t{n}") for n in range(60)]
    assert main(["templates", "logs"]) == 0
    assert "… and 10 more templates" in capsys.readouterr().out


SHIPPED = """\
- id: shipped.thing
  failure_type: code.key
  role: cause
  title: "Thing lost"
  keywords: ["thing lost"]
  pattern: 'thing lost'
  mitigation: ["Find the thing."]
  examples: ["thing lost"]
"""


@pytest.fixture
def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shipped bank of one rule."""
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "shipped.yaml").write_text(SHIPPED)
    monkeypatch.setattr("logtriage.rulebank.bank.shipped", lambda name: folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def own_rules(tmp_path: Path, bank: Path) -> Path:
    file = tmp_path / "own.yaml"
    file.write_text(RULE)
    return file


def test_rules_are_listed_and_shown(capsys: Captured, own_rules: Path) -> None:
    assert main(["rules", "list", "--rules", str(own_rules)]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert any(line.split()[:4] == ["acme.widget", "cause", "likely", "code.value"] for line in listed)
    assert main(["rules", "list", "--type", "code", "--rules", str(own_rules)]) == 0
    chosen = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in chosen] == ["shipped.thing", "acme.widget"]
    assert main(["rules", "list", "--type", "code.key", "--rules", str(own_rules)]) == 0
    assert capsys.readouterr().out.split()[0] == "shipped.thing"
    assert main(["rules", "show", "acme.widget", "--rules", str(own_rules)]) == 0
    shown = capsys.readouterr().out
    assert "own.yaml:1" in shown and "widget broke at 7" in shown and "widget broke even" in shown
    assert main(["rules", "show", "acme.widgit", "--rules", str(own_rules)]) == 2
    assert "did you mean acme.widget" in capsys.readouterr().err


def test_without_a_file_the_whole_bank_is_checked(capsys: Captured, bank: Path) -> None:
    for command in ("lint", "test"):
        assert main(["rules", command]) == 0
        assert capsys.readouterr().out == "1 rule: 0 errors, 0 warnings\n"
    (bank / "broken.yaml").write_text("- id: [")
    assert main(["rules", "lint"]) == 1
    assert "broken.yaml:2: not YAML" in capsys.readouterr().out
    assert main(["version"]) == 2
    assert "broken.yaml:2: not YAML" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["lint", "test"])
def test_sound_rules_pass(capsys: Captured, own_rules: Path, command: str) -> None:
    assert main(["rules", command, str(own_rules)]) == 0
    assert capsys.readouterr().out == "1 rule: 0 errors, 0 warnings\n"


@pytest.mark.parametrize(
    ("command", "found", "put", "said"),
    [
        ("lint", "{size}", "{colour}", "names {colour}"),
        ("test", "widget broke even", "widget broke at 99", "matches its counterexample"),
        ("test", '"7"', '"8"', "captures size="),
        ("lint", "role: cause", "role: culprit", "role is 'culprit'"),
        ("test", "(?P<size>", "(?P<size>(?=x)", "no linear-time expression"),
    ],
)
def test_faulty_rules_are_named_with_file_and_line(
    capsys: Captured, own_rules: Path, command: str, found: str, put: str, said: str
) -> None:
    own_rules.write_text(RULE.replace(found, put))
    assert main(["rules", command, str(own_rules)]) == 1
    out = capsys.readouterr().out
    assert "own.yaml:1: rule acme.widget: " in out and said in out and "1 error, " in out


def test_a_rule_is_tried_on_logs(pipeline: Pipeline, capsys: Captured) -> None:
    pipeline.outcome = lambda: [Tried("a.log", 7, "widget broke at 7\x1b[0m", (("size", "7"),))] * 3
    assert main(["rules", "try", "acme.widget", "logs", "--limit", "2"]) == 0
    out, err = capsys.readouterr()
    assert out == "a.log:7: widget broke at 7\\x1b[0m\n    size=7\n" * 2 and "--limit" in err
    assert pipeline.asked == [{"rule": "acme.widget", "paths": ["logs"]}]
    pipeline.outcome = raising(KeyError("no rule 'x' in the bank"))
    assert main(["rules", "try", "x", "logs"]) == 2
    assert "logtriage: no rule 'x' in the bank" in capsys.readouterr().err.replace("Invalid value: ", "")
    pipeline.outcome = list
    assert main(["rules", "try", "acme.widget", "logs"]) == 0
    assert "no line matches" in capsys.readouterr().err


def test_schema_and_version(capsys: Captured, tmp_path: Path, bank: Path) -> None:
    assert main(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert "verdict" in schema["properties"]
    assert main(["schema", str(tmp_path / "s.json")]) == 0
    assert json.loads((tmp_path / "s.json").read_text()) == schema
    assert main(["version"]) == 0
    assert logtriage.__version__ in capsys.readouterr().out


def run(*arguments: str, code: str = "", **options: Any) -> subprocess.CompletedProcess[bytes]:
    program = code or "import sys; from logtriage.apps.cli import main; sys.exit(main(sys.argv[1:]))"
    environment = {**os.environ, **options.pop("env", {})}
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        env=environment,
        timeout=120,
        **options,
    )


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from logtriage.apps.cli import main; main(['--help']);"
        "heavy = {'pydantic', 'rich', 'jinja2', 'yaml', 're2', 'numpy', 'drain3', 'logtriage.pipeline'};"
        "sys.exit(','.join(heavy & set(sys.modules)) or 0)"
    )
    done = run(code=code)
    assert done.returncode == 0, done.stderr
    assert b"triage" in done.stdout


def test_without_a_command_help_is_shown_and_the_usage_is_wrong(capsys: Captured) -> None:
    assert main([]) == 2
    assert "Usage: logtriage" in capsys.readouterr().out


def test_a_reader_that_goes_away_is_no_fault() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    program = "import sys; from logtriage.apps.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "schema"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, timeout=120)
    assert done.returncode == 0 and done.stderr == b""
    os.close(writing)


def test_the_json_is_utf_8_and_the_report_survives_in_a_plain_locale() -> None:
    code = (
        "import sys, types; sys.path.insert(0, sys.argv[1]); from verdicts import a_body, a_verdict\n"
        "fake = types.ModuleType('logtriage.pipeline')\n"
        "fake.triage = lambda paths, **options: a_verdict(verdict=a_body(title='Gr\\xf6\\xdfe \\u5b66'))\n"
        "import logtriage; sys.modules['logtriage.pipeline'] = logtriage.pipeline = fake\n"
        "from logtriage.apps.cli import main; sys.exit(main(['triage', 'x', *sys.argv[2:]]))"
    )
    plain = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    here = str(Path(__file__).parent)
    done = run(here, "--json", "-", code=code, env=plain)
    assert json.loads(done.stdout.decode("utf-8"))["verdict"]["title"] == "Größe 学"
    done = run(here, code=code, env=plain)
    assert done.returncode == 0 and b"Gr\\xf6\\xdfe" in done.stdout


def test_a_title_with_markup_stays_text(pipeline: Pipeline, capsys: Captured) -> None:
    pipeline.outcome = lambda: a_verdict(verdict=a_body(title="[bold]x[/bold] \x1b]0;owned\x07"))
    assert main(["triage", "logs"]) == 0
    assert "[bold]x[/bold] \\x1b]0;owned\\x07" in capsys.readouterr().out


def test_a_real_log_gets_a_verdict_that_cites_it(tmp_path: Path, capsys: Captured) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    log = [f"2026-01-31 08:15:{second:02d} INFO step {second}/900 loss 2.1" for second in range(20)]
    log += ["Traceback (most recent call last):", '  File "train.py", line 12, in <module>', "KeyError: 'lr'"]
    (logs / "train.log").write_text("\n".join(log) + "\n")
    assert main(["triage", str(logs), "--offline", "--json", "-"]) == 0
    verdict = read_verdict(json.loads(capsys.readouterr().out))
    assert verdict.verdict.failure_type == "code.key"
    assert (verdict.verdict.evidence[0].file, verdict.verdict.evidence[0].line) == ("train.log", 23)
    assert main(["triage", str(logs), "--offline"]) == 0
    assert "train.log:23" in capsys.readouterr().out
    assert main(["templates", str(logs), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["count"] == 20
    assert main(["triage", str(tmp_path / "nothing")]) == 3
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "nothing" in err


@pytest.mark.parametrize("group", [[], ["rules"], ["memory"]])
def test_help_says_of_each_command_in_a_whole_sentence_what_it_does(
    group: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*group, "--help"]) == 0
    commands = capsys.readouterr().out.partition("Commands:\n")[2]
    assert commands
    assert "..." not in commands
    if not group:
        assert commands.split()[0] == "triage"


def test_a_question_of_no_known_kind_is_answered_with_those_that_can_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "a.log").write_text("ValueError: no\n")
    assert main(["ask", str(tmp_path / "a.log"), "what colour is the sky?", "--offline"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "\n  which node, which rank?\n" in said.err and said.err.count("logtriage:") == 1


def test_a_setting_that_there_is_not_is_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "site.toml").write_text('dta_dir = "x"\n')
    monkeypatch.setenv("LOGTRIAGE_CONFIG", str(tmp_path / "site.toml"))
    assert main(["history"]) == 2
    assert "site.toml: dta_dir: there is no such setting" in capsys.readouterr().err


def test_the_version_is_also_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    said = capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == said


def test_a_word_that_is_no_choice_is_named_without_the_librarys_own_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["triage", "x.log", "--llm", "sometimes"]) == 2
    said = capsys.readouterr().err
    assert "'sometimes' is not one of 'never', 'auto', 'always'" in said and "Value error" not in said
