"""The pods of the Kubernetes trial, behind an API server of a few lines that the real kubectl can talk to.

    python tests/kubernetes_trial.py record    asks them with the kubectl on PATH and writes what it prints to
                                               tests/recorded/kubectl.json

The pods and events are made up in the form of the API; every text that a test reads is kubectl's own.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

HERE = Path(__file__).parent
ANSWERS = HERE / "recorded" / "kubectl.json"
SPACE = "train"


def _pod(
    name: str,
    labels: dict[str, str],
    node: str,
    states: list[tuple[str, dict[str, Any]]],
    *,
    phase: str,
    gpus: int = 8,
) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": SPACE,
            "uid": f"{abs(hash_of(name)):08x}-0000-4000-8000-000000000000",
            "creationTimestamp": "2026-05-04T08:00:00Z",
            "labels": {"user": "mira", **labels},
        },
        "spec": {
            "nodeName": node,
            "restartPolicy": "OnFailure",
            "containers": [
                {
                    "name": container,
                    "image": "registry/train:1",
                    "env": [{"name": "HF_TOKEN", "value": "hf_secretsecretsecret"}],
                    "resources": {"limits": {"nvidia.com/gpu": str(gpus), "memory": "64Gi"}},
                }
                for container, _ in states
            ],
        },
        "status": {
            "phase": phase,
            "startTime": "2026-05-04T08:00:05Z",
            "podIP": "10.0.0.7",
            "containerStatuses": [
                {"name": container, "image": "registry/train:1", **state} for container, state in states
            ],
        },
    }


def hash_of(name: str) -> int:
    return sum(ord(letter) * 31**place for place, letter in enumerate(name)) % 2**32


def _end(code: int, reason: str, at: str) -> dict[str, Any]:
    return {
        "terminated": {
            "exitCode": code,
            "reason": reason,
            "startedAt": "2026-05-04T08:00:10Z",
            "finishedAt": f"2026-05-04T{at}Z",
            "containerID": "containerd://1",
        }
    }


FAILED = {"restartCount": 0, "ready": False, "state": _end(1, "Error", "08:31:00")}
KILLED = {
    "restartCount": 1,
    "ready": False,
    "state": _end(1, "Error", "08:30:59"),
    "lastState": _end(1, "Error", "08:20:00"),
}
OUT_OF_MEMORY = {"restartCount": 0, "ready": False, "state": _end(137, "OOMKilled", "08:31:00")}
WELL = {"restartCount": 0, "ready": False, "state": _end(0, "Completed", "09:00:00")}
RUNS = {"restartCount": 0, "ready": True, "state": {"running": {"startedAt": "2026-05-04T08:00:10Z"}}}
WAITS = {
    "restartCount": 0,
    "ready": False,
    "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off"}},
}

KUBEFLOW = "training.kubeflow.org/job-name"
PODS = [
    _pod("llama-ddp-master-0", {KUBEFLOW: "llama-ddp"}, "gpu-n1", [("pytorch", FAILED)], phase="Failed"),
    _pod(
        "llama-ddp-worker-0",
        {KUBEFLOW: "llama-ddp"},
        "gpu-n2",
        [("pytorch", KILLED), ("sidecar", WELL)],
        phase="Failed",
    ),
    _pod(
        "sweep-w-0-0-x7k2p",
        {"jobset.sigs.k8s.io/jobset-name": "sweep", "job-name": "sweep-w-0", "user": "noor"},
        "gpu-n3",
        [("main", WELL)],
        phase="Succeeded",
    ),
    _pod(
        "ray-head-abcde",
        {"ray.io/cluster": "tune-x1", "ray.io/originated-from-cr-name": "tune"},
        "gpu-n4",
        [("ray", RUNS)],
        phase="Running",
    ),
    _pod("eval-4v2xz", {"job-name": "eval"}, "", [("main", WAITS)], phase="Pending"),
    _pod("lonely", {}, "gpu-n5", [("main", OUT_OF_MEMORY)], phase="Failed"),
]
LOST = "[rank0]: torch.distributed.DistBackendError: NCCL error: remote process exited\n"
LOGS = {
    ("llama-ddp-master-0", "pytorch", False): f"step 120 loss 2.1\n{LOST}",
    ("llama-ddp-worker-0", "pytorch", True): "step 118 loss 2.1\n",
    (
        "llama-ddp-worker-0",
        "pytorch",
        False,
    ): "[rank1]: RuntimeError: CUDA error: an illegal memory access was encountered\n",
    ("llama-ddp-worker-0", "sidecar", False): "metrics sent\n",
    ("sweep-w-0-0-x7k2p", "main", False): "done\n",
    ("ray-head-abcde", "ray", False): "started\n",
}
EVENTS = [
    (
        "Pod",
        "llama-ddp-worker-0",
        "Normal",
        "Scheduled",
        f"Successfully assigned {SPACE}/llama-ddp-worker-0 to gpu-n2",
    ),
    ("Pod", "llama-ddp-worker-0", "Warning", "BackOff", "Back-off restarting failed container pytorch"),
    (
        "PyTorchJob",
        "llama-ddp",
        "Warning",
        "PyTorchJobFailed",
        "PyTorchJob llama-ddp is failed because 1 Worker replica(s) failed.",
    ),
]


class _Api(BaseHTTPRequestHandler):
    """What `kubectl get`, `describe` and `logs` ask of an API server, and nothing else."""

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        if found := re.fullmatch(rf"/api/v1/namespaces/{SPACE}/pods/([\w.-]+)/log", url.path):
            text = LOGS.get((found[1], query["container"], query.get("previous") == "true"))
            if text is None:
                self._say(
                    400,
                    _status(
                        400,
                        f'container "{query["container"]}" in pod "{found[1]}" is waiting to start',
                    ),
                )
            else:
                self._say(200, text)
            return
        self._say(*self._document(url.path, query))

    def _document(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        of_space = f"/api/v1/namespaces/{SPACE}/"
        if path == "/api":
            return 200, {"kind": "APIVersions", "versions": ["v1"]}
        if path == "/apis":
            return 200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": []}
        if path == "/api/v1":
            verbs = {"namespaced": True, "verbs": ["get", "list"]}
            resources = [
                {"name": "pods", "kind": "Pod", **verbs},
                {"name": "events", "kind": "Event", **verbs},
            ]
            return 200, {"kind": "APIResourceList", "groupVersion": "v1", "resources": resources}
        if path == of_space + "pods":
            return 200, {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": PODS}
        if path == of_space + "events":
            return 200, _events(query.get("fieldSelector", ""), "as=Table" in self.headers.get("Accept", ""))
        named = {f"{of_space}pods/{pod['metadata']['name']}": pod for pod in PODS}
        return (200, named[path]) if path in named else (404, _status(404, f"{path} not found"))

    def _say(self, status: int, body: Any) -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


def _status(code: int, message: str) -> dict[str, Any]:
    reason = {400: "BadRequest", 404: "NotFound"}[code]
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "code": code,
        "message": message,
    }


def _events(selector: str, as_table: bool) -> dict[str, Any]:
    wanted = dict(part.split("=", 1) for part in selector.split(",") if "=" in part)
    name = wanted.get("involvedObject.name")
    kept = [each for each in EVENTS if name in (None, each[1])]
    if as_table:
        heads = ("Last Seen", "Type", "Reason", "Object", "Message")
        columns = [
            {"name": head, "type": "string", "format": "", "description": "", "priority": 0} for head in heads
        ]
        rows = [
            {"cells": ["12m", kind, reason, f"{of.lower()}/{on}", said]}
            for of, on, kind, reason, said in kept
        ]
        return {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": {},
            "columnDefinitions": columns,
            "rows": rows,
        }
    items = [
        {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": f"{on}.{place}", "namespace": SPACE},
            "involvedObject": {"kind": of, "name": on, "namespace": SPACE},
            "type": kind,
            "reason": reason,
            "message": said,
            "source": {"component": "kubelet"},
            "firstTimestamp": "2026-05-04T08:20:01Z",
            "lastTimestamp": "2026-05-04T08:20:01Z",
            "count": 1,
        }
        for place, (of, on, kind, reason, said) in enumerate(kept)
    ]
    return {"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": items}


@contextmanager
def api_server(folder: Path) -> Iterator[Path]:
    """The server on loopback, and the kubeconfig that names it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = {
        "kind": "Config",
        "apiVersion": "v1",
        "current-context": "trial",
        "clusters": [{"name": "trial", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "contexts": [{"name": "trial", "context": {"cluster": "trial", "user": "trial"}}],
        "users": [{"name": "trial", "user": {}}],
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(config))
    try:
        yield file
    finally:
        server.shutdown()
        server.server_close()


def stand_in(tools: Path, path: str) -> dict[str, str]:
    """The environment in which kubectl is the recorded one; `tools` becomes first on PATH."""
    tools.mkdir(exist_ok=True)
    (tools / "kubectl").symlink_to(HERE / "recorded_tool.py")
    return {"PATH": f"{tools}{os.pathsep}{path}", "RECORDED_TOOLS": str(ANSWERS)}


def record() -> None:
    import shutil

    import logtriage.sources.kubernetes as kubernetes

    real = shutil.which("kubectl")
    assert real is not None
    kubernetes._AT_A_TIME = 1  # one writer of the file
    ANSWERS.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder, api_server(Path(folder)) as config:
        os.environ |= stand_in(Path(folder) / "tools", os.environ["PATH"])
        os.environ |= {"KUBECONFIG": str(config), "RECORD_FROM": str(Path(real).parent), "HOME": folder}
        source = kubernetes.Kubernetes(namespace=SPACE)
        for name in ("llama-ddp", "sweep", "eval", "lonely"):
            place = Path(folder) / f"collected-{name}"
            place.mkdir()
            try:
                source.collect(source.find(name, 1)[0], place)
            except kubernetes.SourceFault as fault:
                print(f"{name}: {fault}")
        print(source.faults())


if __name__ == "__main__":
    if sys.argv[1:] == ["record"]:
        record()
    else:
        print(__doc__)
