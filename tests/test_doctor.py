"""`logtriage doctor` and `metrics`: what is said of an installation, right and broken."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from logtriage.apps.cli import main
from logtriage.settings import load_settings

Examined = Callable[..., tuple[int, dict[str, dict[str, str]]]]


@pytest.fixture
def examined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Examined:
    """The exit status of the doctor under these settings, and his findings by name."""

    def run(toml: str = "", *options: str) -> tuple[int, dict[str, dict[str, str]]]:
        file = tmp_path / "site.toml"
        file.write_text(toml)
        monkeypatch.setenv("LOGTRIAGE_CONFIG", str(file))
        monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(tmp_path / "data"))
        status = main(["doctor", "--json", *options])
        return status, {each["name"]: each for each in json.loads(capsys.readouterr().out)}

    return run


@pytest.fixture
def endpoint() -> Iterator[str]:
    """A server with one model, m1, for whoever has the key."""

    class Models(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_known = self.headers.get("Authorization") == "Bearer right"
            body = b'{"object": "list", "data": [{"id": "m1"}]}'
            self.send_response(200 if is_known and self.path == "/v1/models" else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Models)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def test_nothing_configured_is_no_fault(examined: Examined, tmp_path: Path) -> None:
    status, found = examined()
    assert status == 0 and not [each for each in found.values() if each["state"] == "broken"]
    assert found["model"]["state"] == found["slack"]["state"] == found["sources"]["state"] == "off"
    assert found["data folder"]["state"] == "ok" and str(tmp_path / "data") in found["data folder"]["says"]
    assert not (tmp_path / "data").exists()  # looking makes nothing


def test_a_model_is_asked_for_its_list(examined: Examined, endpoint: str) -> None:
    settings = f'llm_base_url = "{endpoint}"\nllm_model = "m1"\nllm_api_key = "right"\n'
    status, found = examined(settings)
    assert (status, found["model"]["state"]) == (0, "ok")
    status, found = examined(settings.replace("m1", "m2"))
    assert (status, found["model"]["state"]) == (1, "broken") and "has no model 'm2', but m1" in found[
        "model"
    ]["says"]
    status, found = examined(settings.replace("right", "wrong-key"))
    assert status == 1 and "key is refused" in found["model"]["says"] and found["model"]["mend"]
    assert "wrong-key" not in json.dumps(found)
    status, found = examined('llm_base_url = "http://127.0.0.1:9/v1"\nllm_model = "m1"\n')
    assert status == 1 and "refused" in found["model"]["says"]
    status, found = examined('llm_base_url = "http://127.0.0.1:9/v1"\nllm_model = "m1"\n', "--offline")
    assert status == 0 and "not asked" in found["model"]["says"]


def test_sources_and_their_tools(examined: Examined, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "logs").mkdir()
    good = f'[[sources]]\nkind = "folders"\npatterns = ["{tmp_path}/logs/{{job_id}}*"]\n'
    assert examined(good)[1]["source folders"]["state"] == "ok"
    status, found = examined(good.replace("/logs/", "/gone/"))
    assert status == 1 and "gone: no such folder" in found["source folders"]["says"]
    status, found = examined('[[sources]]\nkind = "folders"\n')
    assert status == 1 and "patterns: Field required" in found["sources"]["says"]
    monkeypatch.setenv("PATH", str(tmp_path))
    status, found = examined(f'[[sources]]\nkind = "slurm"\nroots = ["{tmp_path}/logs"]\n')
    assert status == 1 and "sacct is not on this machine's PATH" in found["source slurm"]["says"]


@pytest.mark.parametrize(
    ("settings", "name", "said"),
    [
        ("llm_votes = 99", "settings", "llm_votes"),
        ('database_url = "sqlite:////no/such/folder/x.db"', "database", "unable to open"),
        ('chroma_url = "http://127.0.0.1:9"', "index", "refused"),
        ('embedding = "endpoint"', "embedding", "needs embedding_url"),
        ('slack_bot_token = "xoxb-1"', "slack", "neither slack_app_token"),
        ('slack_app_token = "xoxb-1"', "slack", "does not begin with xapp-"),
    ],
)
def test_what_is_configured_and_does_not_work(
    examined: Examined, settings: str, name: str, said: str
) -> None:
    status, found = examined(settings)
    assert (
        status == 1
        and found[name]["state"] == "broken"
        and said in found[name]["says"]
        and found[name]["mend"]
    )


def test_a_broken_learned_rule_is_named(examined: Examined, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "rules" / "active"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text("- id: [\n")
    status, found = examined()
    assert status == 1 and "mine.yaml" in found["learned rules"]["says"]


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_closed_data_folder(examined: Examined, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o500)
    assert examined()[1]["data folder"]["state"] == "broken"


def test_a_file_where_the_data_folder_should_be(examined: Examined, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    status, found = examined()
    assert status == 1 and "is no folder" in found["data folder"]["says"]


def test_the_text_for_people(examined: Examined, capsys: pytest.CaptureFixture[str]) -> None:
    examined()
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ok      program") and any("→ docs/slack.md" in line for line in lines)


# --- metrics ---------------------------------------------------------------------------------------


def figures(text: str) -> dict[str, float]:
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if not line.startswith("#")
    }


def test_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(tmp_path / "data"))
    target = tmp_path / "logtriage.prom"
    assert main(["metrics"]) == 0  # before anything was triaged
    assert figures(capsys.readouterr().out)["logtriage_triage_bytes"] == 0

    ids = []
    for name, line in (("a", "RuntimeError: CUDA error: unspecified launch failure"), ("b", "KeyError: 'x'")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rank0.log").write_text(line + "\n")
        assert main(["triage", str(tmp_path / name), "--offline", "--json", "-"]) == 0
        ids.append(json.loads(capsys.readouterr().out)["id"])
    assert main(["confirm", ids[0]]) == 0
    assert main(["correct", ids[1], "--type", "code.config"]) == 0
    capsys.readouterr()
    assert main(["metrics", "--output", str(target)]) == 0
    found = figures(target.read_text())
    assert found['logtriage_verdicts{type="cuda.launch_failure",class="framework"}'] == 1
    assert found['logtriage_confirmations{type="cuda.launch_failure"}'] == 1
    assert found['logtriage_corrections{type="code.config",told="code.key"}'] == 1
    assert found["logtriage_triage_bytes"] == sum((tmp_path / n / "rank0.log").stat().st_size for n in "ab")
    assert found["logtriage_triage_seconds"] > 0
    assert target.stat().st_mode & 0o777 == 0o644
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []  # no part is left
    capsys.readouterr()
    assert main(["metrics", "--output", str(tmp_path / "nowhere" / "x.prom")]) == 1
    assert capsys.readouterr().err == f"logtriage: {tmp_path}/nowhere/x.prom: No such file or directory\n"


def test_metrics_are_read_by_the_clients_own_parser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "rank0.log").write_text("KeyError: 'x'\n")
    assert main(["triage", str(tmp_path / "rank0.log"), "--offline", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["metrics"]) == 0
    families = {each.name: each for each in parser.text_string_to_metric_families(capsys.readouterr().out)}
    (sample,) = families["logtriage_verdicts"].samples
    assert sample.labels["type"] == "code.key" and sample.value == 1


def test_a_settings_file_that_is_not_there_is_said_to_be_no_need(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("LOGTRIAGE_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("LOGTRIAGE_DATA_DIR", str(tmp_path / "data"))
    from logtriage.apps.checks import checks

    found = {each.name: each for each in checks(offline=True)}
    assert found["settings"].state == "off"
    assert found["settings"].mend.startswith("none is needed")


def test_a_home_that_is_no_folder_holds_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOGTRIAGE_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/dev/null/.config")  # as accounts of services have it
    assert load_settings().llm_model == ""


def test_a_model_at_what_is_no_address_is_named_so_and_stops_no_triage(
    examined: Examined, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _, found = examined('llm_model = "m"\nllm_base_url = "http://[::1"\n')
    assert found["model"]["state"] == "broken" and "llm_base_url" in found["model"]["mend"]
    (tmp_path / "rank0.log").write_text("all is odd here\n")
    monkeypatch.setenv("LOGTRIAGE_LLM_MODEL", "m")
    for url in ("http://[::1", "http://host:99999/v1", "http://", "http://a b/v1", "http://a\x1b/v1"):
        monkeypatch.setenv("LOGTRIAGE_LLM_BASE_URL", url)
        assert main(["triage", "--llm", "always", "--no-history", str(tmp_path / "rank0.log")]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "No model was asked: the endpoint is no http(s) address" in said, url
