"""Which pod, and which node under it, a line of kubectl's output speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from logtriage.intake.reading import Reading
from logtriage.model import Line, SourceRole
from logtriage.regex import regex

_ASSIGNED = regex(r"Successfully assigned (?:[\w.-]+/)?(?P<pod>[\w.-]+) to (?P<node>[\w.-]+)")
_NAME = regex(r"^Name:\s+(?P<pod>[\w.-]+)\s*$")
_NODE = regex(r"^Node:\s+(?P<node>[\w.-]+?)(?:/[\d.:a-f]+)?\s*$")
_POD = regex(r"\bpod/(?P<pod>[\w.-]+)|^(?P<row>[a-z0-9][\w.-]+)\s+\d+/\d+\s+\w")
_OF_NODE = regex(r"\bnode/(?P<node>[\w.-]+)")
_ROLES = regex(r"^Roles:\s+\S")  # of `kubectl describe node`
_NODE_COLUMN = regex(r"\bNODE(?= |$)")


# `pod/trainer-3 node=gpu-7 phase=Running`
_PLACED = regex(r"\bpod[/=](?P<pod>[\w.-]{2,253})[ ,](?:\w+=\S{1,80} ){0,4}node=(?P<node>[\w.-]{2,253})")


@dataclass(frozen=True, slots=True)
class Pods:
    """Nodes by pod, and of a `kubectl describe` file the pod that it describes.

    What a row of `kubectl get pods -o wide` says of its pod (OOMKilled, Error) is the pod's, not its node's.
    """

    node_of_pod: dict[str, str]
    node_of_row: dict[str, str]
    node_of_file: dict[str, str]
    pod_of_file: dict[str, str]
    files: frozenset[str]

    def pod(self, line: Line) -> str | None:
        """The pod that a line of kubectl's output speaks of."""
        if line.file not in self.files:
            return None
        found = _POD.search(line.text[:2000])
        return (found["pod"] or found["row"]) if found else self.pod_of_file.get(line.file)

    def node(self, line: Line) -> str | None:
        """The node that a line of kubectl's output speaks of itself."""
        if line.file not in self.files:
            return None
        found = _OF_NODE.search(line.text[:2000])
        return found["node"] if found else self.node_of_file.get(line.file)

    def host(self, line: Line) -> str | None:
        """The node of the pod that a line speaks of, or the pod where it is not told; or a node itself."""
        if line.file in self.files and (of_node := _OF_NODE.search(line.text[:2000])) is not None:
            return of_node["node"]
        pod = self.pod(line)
        return self.node_of_pod.get(pod, pod) if pod else None


def gather_pods(readings: Sequence[Reading]) -> Pods:
    nodes: dict[str, str] = {}
    rows: dict[str, str] = {}
    described: dict[str, str] = {}
    nodes_described: dict[str, str] = {}
    for reading in readings:
        if reading.source.role is not SourceRole.WORKER:  # a controller's log
            for line in reading.lines:
                if "node=" in line.text and (found := _PLACED.search(line.text[:2000])):
                    nodes.setdefault(found["pod"], found["node"])
        if reading.source.role is not SourceRole.KUBERNETES:
            continue
        current: str | None = None
        column: int | None = None  # of `kubectl get pods -o wide`: where the name of the node stands
        for line in reading.lines:
            text = line.text[:2000]
            if text.startswith("NAME ") and (head := _NODE_COLUMN.search(text)):
                column = head.start()
            elif column is not None and (row := _POD.match(text)) and row["row"]:
                if cell := text[column:].split():
                    rows.setdefault(row["row"], cell[0])
            elif found := _ASSIGNED.search(text):
                nodes.setdefault(found["pod"], found["node"])
            elif found := _NAME.match(text):
                current = found["pod"]
                described.setdefault(reading.source.file, current)
            elif current is not None and _ROLES.match(text):
                nodes_described.setdefault(reading.source.file, current)
            elif current is not None and (found := _NODE.match(text)):
                nodes.setdefault(current, found["node"])
    files = {each.source.file for each in readings if each.source.role is SourceRole.KUBERNETES}
    return Pods(nodes, rows, nodes_described, described, frozenset(files))
