"""Jobs as Kubernetes knows them: pods that belong together, their logs, and what the cluster says of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from logtriage.sources.commands import NoAnswer, answer_into, answer_of
from logtriage.sources.job import KnownJob, SourceFault
from logtriage.sources.likeness import fit, order
from logtriage.sources.roots import is_path

# Which job a pod is of, the outermost owner first: a JobSet's pods carry the labels of its Jobs as well, and
# a TrainJob's those of a JobSet of its name.
_JOB_LABELS = (
    "jobset.sigs.k8s.io/jobset-name",
    "training.kubeflow.org/job-name",  # PyTorchJob, MPIJob and the other jobs of Kubeflow's training operator
    "ray.io/originated-from-cr-name",  # RayJob, RayCluster, RayService
    "ray.io/cluster",
    "leaderworkerset.sigs.k8s.io/name",
    "volcano.sh/job-name",
    "batch.kubernetes.io/job-name",
    "job-name",
)
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")  # RFC 1123, as object names are
_NODE_LOST = ("DeletionByTaintManager", "DeletionByPodGC")  # reasons of the condition DisruptionTarget
_MOST_PODS = 5_000
_MOST_BYTES = 1 << 30  # of one container's log
_AT_A_TIME = 8
_MEND = "install it where logtriage runs, with a kubeconfig, or remove the source"


class Kubernetes(BaseModel):
    """The source `kind = "kubernetes"`: the jobs of one namespace, by the kubectl that is installed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["kubernetes"] = "kubernetes"
    name: str = Field(default="kubernetes", pattern=r"^[A-Za-z0-9][\w.-]*$")
    namespace: str = Field(default="default", pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")
    context: str = Field(
        default="", pattern=r"^([^\s\x00-][^\s\x00]*)?$", description="of the kubeconfig; empty: its own"
    )
    user_label: str = Field(default="user", description="label or annotation that holds a job's user")
    seconds: float = Field(default=60, gt=0, le=3600, description="for one answer of kubectl")

    def find(self, asked: str, limit: int) -> list[KnownJob]:
        """Jobs whose name, user, or one of whose pods is `asked`, newest first."""
        if is_path(asked) or not asked:
            return []
        found = [
            job
            for name, pods in self._jobs().items()
            if fit(job := self._job(name, pods), asked) is not None
            or asked in [_text(pod, "metadata", "name") for pod in pods]
        ]
        return sorted(found, key=lambda job: order(job, asked))[:limit]

    def ended(self, since: float) -> Iterator[KnownJob]:
        """Jobs all of whose pods ended, the last at `since` or later."""
        for name, pods in self._jobs().items():
            job = self._job(name, pods)
            if job.ended is not None and job.ended >= since:
                yield job

    def collect(self, job: KnownJob, folder: Path) -> tuple[str, ...]:
        """Logs of all containers of the job, the runs before a restart too, and what the cluster says.

        They lie as a node keeps them, `NAMESPACE_POD_UID/CONTAINER/RESTARTS.log`, so that intake knows
        pod and attempt of each.
        """
        pods = self._jobs().get(job.id, [])
        if not pods:
            raise SourceFault(f"there is no pod of {job.id} in namespace {self.namespace} any more")
        wanted = [run for pod in pods for run in self._runs(pod)]
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            list(pool.map(lambda run: self._fetch(run, folder), wanted))
            list(pool.map(lambda pod: self._describe(pod, folder), pods))
        self._events(job.id, folder)
        (folder / "pods.json").write_text(json.dumps(_without_specs(pods), indent=1), encoding="utf-8")
        return (str(folder),)

    def faults(self) -> list[str]:
        """What keeps it from answering, one line each."""
        try:
            self._kubectl("get", "pods", "--output=name")
        except SourceFault as fault:
            return [str(fault)]
        return []

    # --- kubectl -----------------------------------------------------------------------------------

    def _command(self, *words: str) -> list[str]:
        context = [f"--context={self.context}"] if self.context else []
        return ["kubectl", *context, f"--namespace={self.namespace}", *words]

    def _kubectl(self, *words: str) -> str:
        return answer_of(self._command(*words), self.seconds, mend=_MEND)

    def _jobs(self) -> dict[str, list[dict[str, Any]]]:
        """Pods by the job that they are of, in the order of their start."""
        try:
            listed = json.loads(self._kubectl("get", "pods", "--output=json"))
            pods = [pod for pod in listed["items"] if isinstance(pod, dict)][:_MOST_PODS]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise SourceFault("kubectl gave no list of pods") from None
        jobs: dict[str, list[dict[str, Any]]] = {}
        for pod in sorted(pods, key=lambda pod: _text(pod, "metadata", "creationTimestamp")):
            if _NAME.fullmatch(_text(pod, "metadata", "name")):
                jobs.setdefault(_job_of(pod), []).append(pod)
        return jobs

    def _runs(self, pod: Mapping[str, Any]) -> Iterator[tuple[str, str, int, bool]]:
        """(folder of the pod, pod/container, number of the run, whether it is the one before the last)."""
        name, uid = _text(pod, "metadata", "name"), _text(pod, "metadata", "uid")
        place = f"{self.namespace}_{name}_{re.sub(r'[^0-9a-f-]', '', uid) or '00000000-0000'}"
        for status in _containers(pod):
            container = str(status.get("name", ""))
            if not _NAME.fullmatch(container):
                continue
            restarts = status.get("restartCount")
            number = restarts if isinstance(restarts, int) else 0
            if number > 0:
                yield place, f"{name}/{container}", number - 1, True
            if "waiting" not in (status.get("state") or {}) or not number:
                yield place, f"{name}/{container}", number, False

    def _fetch(self, run: tuple[str, str, int, bool], folder: Path) -> None:
        """Write the log of one run of one container, where it has one."""
        place, of, number, is_previous = run
        pod, _, container = of.partition("/")
        file = folder / place / container / f"{number}.log"
        file.parent.mkdir(parents=True, exist_ok=True)
        which = ("--previous",) if is_previous else ()
        command = self._command(
            "logs", pod, f"--container={container}", *which, f"--limit-bytes={_MOST_BYTES}"
        )
        try:
            answer_into(file, command, self.seconds, mend=_MEND)
        except NoAnswer:  # it never started, or its log is gone with its node: `describe` says so
            file.unlink(missing_ok=True)

    def _describe(self, pod: Mapping[str, Any], folder: Path) -> None:
        name = _text(pod, "metadata", "name")
        try:
            told = self._kubectl("describe", "pod", name)
        except NoAnswer:  # deleted meanwhile
            return
        (folder / f"kubectl-describe-pod-{name}.txt").write_text(_without_secrets(told), encoding="utf-8")

    def _events(self, job: str, folder: Path) -> None:
        """What is said of the job itself; of its pods `describe` tells."""
        try:
            told = self._kubectl("get", "events", f"--field-selector=involvedObject.name={job}")
        except NoAnswer:
            return
        if told.strip():
            (folder / "kubectl-get-events.txt").write_text(told, encoding="utf-8")

    # --- one job -----------------------------------------------------------------------------------

    def _job(self, name: str, pods: Sequence[Mapping[str, Any]]) -> KnownJob:
        phases = [_text(pod, "status", "phase") for pod in pods]
        ends = [state for pod in pods for each in _containers(pod) if (state := _ended(each))]
        moments = [moment for state in ends if (moment := _moment(state.get("finishedAt")))]
        started = [moment for pod in pods if (moment := _moment(_text(pod, "status", "startTime")))]
        codes = [code for state in ends if isinstance(code := state.get("exitCode"), int) and code]
        phase = next((each for each in ("Running", "Failed", "Pending") if each in phases), phases[0])
        is_over = not {"Running", "Pending", "Unknown"} & set(phases)
        gone = [  # a pod that was evicted ends without an end of its containers
            moment
            for pod in pods
            for each in _list(pod, "status", "conditions")
            if (moment := _moment(each.get("lastTransitionTime")))
        ]
        waits = [
            reason
            for pod in pods
            for each in _containers(pod)
            if (reason := ((each.get("state") or {}).get("waiting") or {}).get("reason"))
        ]
        metadata = pods[0].get("metadata") or {}
        labels = {**(metadata.get("annotations") or {}), **(metadata.get("labels") or {})}
        return KnownJob(
            name,
            self.name,
            name=name,
            user=str(labels.get(self.user_label, "")),
            state=phase,
            is_running="Running" in phases,
            started=min(started, default=None),
            ended=max(moments or gone, default=None) if is_over else None,
            exit_code=str(codes[0]) if codes else ("0" if ends else ""),
            nodes=_nodes(pods),
            lost_nodes=_nodes([pod for pod in pods if _lost_its_node(pod)]),
            gpus=sum(map(_gpus, pods)) or None,
            note=f"a container waits ({waits[0]})" if waits else "",
        )


def _job_of(pod: Mapping[str, Any]) -> str:
    metadata = pod.get("metadata") or {}
    labels = metadata.get("labels") or {}
    for label in _JOB_LABELS:
        if name := labels.get(label):
            return str(name)
    owners = _list(pod, "metadata", "ownerReferences")
    return str((owners[0].get("name") if owners else None) or metadata.get("name", ""))


def _text(pod: Mapping[str, Any], part: str, key: str) -> str:
    return str((pod.get(part) or {}).get(key) or "")


def _list(pod: Mapping[str, Any], part: str, key: str) -> list[dict[str, Any]]:
    found = (pod.get(part) or {}).get(key)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _containers(pod: Mapping[str, Any]) -> list[dict[str, Any]]:
    kinds = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    return [status for kind in kinds for status in _list(pod, "status", kind)]


def _nodes(pods: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(node for pod in pods if (node := _text(pod, "spec", "nodeName"))))


def _lost_its_node(pod: Mapping[str, Any]) -> bool:
    """Whether the cluster took the pod away because its node did not answer, or was gone."""
    return _text(pod, "status", "reason") == "NodeLost" or any(
        each.get("type") == "DisruptionTarget" and each.get("reason") in _NODE_LOST
        for each in _list(pod, "status", "conditions")
    )


def _ended(status: Mapping[str, Any]) -> dict[str, Any] | None:
    for kind in ("state", "lastState"):
        ended = (status.get(kind) or {}).get("terminated")
        if isinstance(ended, dict):
            return ended
    return None


def _moment(text: Any) -> float | None:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return None


def _gpus(pod: Mapping[str, Any]) -> int:
    """The GPUs of a pod's containers, of any maker: nvidia.com/gpu, amd.com/gpu…"""
    count = 0
    for container in _list(pod, "spec", "containers"):
        limits = (container.get("resources") or {}).get("limits") or {}
        count += sum(
            int(number) for kind, number in limits.items() if kind.endswith("/gpu") and number.isdecimal()
        )
    return count


_ENVIRONMENT = re.compile(r"^(    Environment:[ ]*\n)((?:      .*\n)+)", re.M)
_VARIABLE = re.compile(
    r"^(      (?!(?:NCCL|CUDA|TORCH|GLOO|UCX|FI|OMP)_|RANK|WORLD_SIZE|LOCAL_RANK|MASTER_)\S+?:).*$", re.M
)


def _without_secrets(told: str) -> str:
    """What `kubectl describe` prints, without the values of variables that say nothing of a failure."""
    return _ENVIRONMENT.sub(lambda found: found[1] + _VARIABLE.sub(r"\1  <not kept>", found[2]), told)


def _without_specs(pods: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the cluster knows of the pods; not how they were made, where secrets may stand in variables."""
    kept = [
        {
            "kind": "Pod",
            "metadata": {
                key: _text(pod, "metadata", key) for key in ("name", "namespace", "uid", "creationTimestamp")
            },
            "spec": {"nodeName": _text(pod, "spec", "nodeName")},
            "status": pod.get("status") or {},
        }
        for pod in pods
    ]
    return {"apiVersion": "v1", "kind": "List", "items": kept}
