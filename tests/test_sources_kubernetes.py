"""Jobs of Kubernetes by kubectl's own answers: recorded, and live against the trial's API server."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import kubernetes_trial
import pytest

from logtriage import triage
from logtriage.intake.folder import discover
from logtriage.sources.job import SourceFault
from logtriage.sources.kubernetes import Kubernetes
from logtriage.sources.lookup import find_jobs

SOURCE = Kubernetes(namespace=kubernetes_trial.SPACE)


@pytest.fixture(
    params=[
        "recorded",
        pytest.param(
            "live", marks=pytest.mark.skipif(not shutil.which("kubectl"), reason="needs a real kubectl")
        ),
    ]
)
def kubectl(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    if request.param == "live":
        with kubernetes_trial.api_server(tmp_path) as config:
            monkeypatch.setenv("KUBECONFIG", str(config))
            monkeypatch.setenv("HOME", str(tmp_path))
            yield
        return
    for name, value in kubernetes_trial.stand_in(tmp_path / "tools", os.environ["PATH"]).items():
        monkeypatch.setenv(name, value)
    yield


def test_a_job_and_its_pods(kubectl: None, tmp_path: Path) -> None:
    (job,) = SOURCE.find("llama-ddp", 5)
    assert (job.state, job.is_running, job.user, job.gpus) == ("Failed", False, "mira", 24)
    assert job.nodes == ("gpu-n1", "gpu-n2") and job.exit_code == "1"
    assert job.started and job.ended and job.ended - job.started == 3595  # the sidecar ended last

    place = tmp_path / "logs"
    place.mkdir()
    paths = SOURCE.collect(job, place)
    known = {
        (source.host, source.attempt, Path(source.file).name)
        for source in discover(list(paths)).sources
        if source.file.endswith(".log") and "/pytorch/" in source.file
    }
    # The run before the restart is an attempt of its own.
    assert known == {
        ("llama-ddp-master-0", 0, "0.log"),
        ("llama-ddp-worker-0", 0, "0.log"),
        ("llama-ddp-worker-0", 1, "1.log"),
    }
    texts = "".join(file.read_text() for file in place.rglob("*") if file.is_file())
    assert "PyTorchJobFailed" in texts and "Last State:     Terminated" in texts
    assert "hf_secret" not in texts  # the environment of a container may hold keys

    verdict = triage(list(paths), offline=True)
    assert verdict.verdict.failure_type == "cuda.illegal_memory_access"
    assert verdict.verdict.culprits.ranks == (1,)


@pytest.mark.parametrize("kubectl", ["recorded"], indirect=True)
def test_every_kind_of_owner(kubectl: None) -> None:
    assert [job.id for job in SOURCE.find("sweep", 5)] == ["sweep"]  # a JobSet, not its Job sweep-w-0
    (ray,) = SOURCE.find("tune", 5)
    assert ray.is_running and ray.ended is None
    assert [job.id for job in SOURCE.find("lonely", 5)] == ["lonely"]
    assert [job.id for job in SOURCE.find("noor", 5)] == ["sweep"]  # by user
    assert [job.id for job in SOURCE.find("llama-ddp-worker-0", 5)] == ["llama-ddp"]  # by pod
    assert {job.id for job in SOURCE.ended(0.0)} == {"llama-ddp", "sweep", "lonely"}


@pytest.mark.parametrize("kubectl", ["recorded"], indirect=True)
def test_what_only_the_cluster_knows(kubectl: None, tmp_path: Path) -> None:
    """A container that left no log: `kubectl describe` says why it ended."""
    (job,) = SOURCE.find("lonely", 5)
    assert job.exit_code == "137"
    verdict = triage(list(SOURCE.collect(job, tmp_path)), offline=True)
    assert verdict.verdict.failure_type == "host.out_of_memory"


@pytest.mark.parametrize("kubectl", ["recorded"], indirect=True)
def test_a_pod_that_never_started(kubectl: None, tmp_path: Path) -> None:
    (job,) = SOURCE.find("eval", 5)
    assert job.state == "Pending" and "ImagePullBackOff" in job.note
    place = tmp_path / "logs"
    place.mkdir()
    verdict = triage(list(SOURCE.collect(job, place)), offline=True)
    assert verdict.verdict.failure_type == "scheduler.launch"


@pytest.mark.parametrize(
    "status",
    [
        {"reason": "NodeLost", "phase": "Unknown"},
        {
            "phase": "Failed",
            "conditions": [
                {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"},
                {"type": "Ready", "status": "False", "lastTransitionTime": "2026-05-04T09:00:00Z"},
            ],
        },
    ],
)
def test_a_pod_whose_node_was_lost_names_it(
    status: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods = [
        {
            "metadata": {"name": f"llama-{number}", "labels": {"job-name": "llama"}},
            "spec": {"nodeName": f"gpu-n{number}"},
            "status": status if number == 2 else {"phase": "Failed", "reason": "Evicted"},
        }
        for number in range(4)
    ]
    (tmp_path / "pods").write_text(json.dumps({"items": pods}))
    (tmp_path / "kubectl").write_text(f'#!/bin/sh\ncat "{tmp_path}/pods"\n')
    (tmp_path / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    (job,) = SOURCE.find("llama", 5)
    assert job.lost_nodes == ("gpu-n2",) and len(job.nodes) == 4


def test_a_missing_tool_and_a_closed_cluster_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    monkeypatch.setenv("PATH", str(tools))
    assert "kubectl is not on this machine's PATH" in find_jobs("x", [SOURCE]).unasked[0]
    (tools / "kubectl").write_text(
        '#!/bin/sh\necho "error: You must be logged in (Unauthorized)" >&2\nexit 1\n'
    )
    (tools / "kubectl").chmod(0o755)
    with pytest.raises(SourceFault, match="must be logged in"):
        SOURCE.find("x", 1)
    (tools / "kubectl").write_text("#!/bin/sh\necho '{\"items\": 7}'\n")
    with pytest.raises(SourceFault, match="no list of pods"):
        SOURCE.find("x", 1)
