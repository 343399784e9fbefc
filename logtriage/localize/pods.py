"""Which pod, and which node under it, a line of kubectl's output speaks of."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from logtriage.intake.reading import Reading
from logtriage.localize.event_objects import EventObjects, event_objects
from logtriage.localize.rosters import HOST_WORD, is_host
from logtriage.model import JOB_ROLES, Line, SourceRole
from logtriage.regex import regex

ASSIGNED = regex(r"Successfully assigned (?:[\w.-]+/)?(?P<pod>[\w.-]+) to (?P<node>[\w.-]+)")
_NAME = regex(r"^Name:\s+(?P<pod>[\w.-]+)\s*$")
_NODE = regex(r"^Node:\s+(?P<node>[\w.-]+?)(?:/[\d.:a-f]+)?\s*$")
_POD = regex(r"\bpod/(?P<pod>[\w.-]+)|^(?P<row>[a-z0-9][\w.-]+)\s+\d+/\d+\s+\w")
_OF_NODE = regex(r"\bnode/(?P<node>[\w.-]+)")
# Of `kubectl describe job`, or of another object that makes pods and is none.
_CONTROLLER = regex(r"^(?:Parallelism|Completions|Pods Statuses|Replicas|Kind):\s+(?!Pod\s*$)\S")
_ROLES = regex(r"^Roles:\s+\S")  # of `kubectl describe node`
_ADDRESS = regex(r"^\d{1,3}(?:\.\d{1,3}){3}$")
_NODE_COLUMN = regex(r"\bNODE(?= |$)")


# `pod/trainer-3 node=gpu-7 phase=Running`
_PLACED = regex(r"\bpod[/=](?P<pod>[\w.-]{2,253})[ ,](?:\w+=\S{1,80} ){0,4}node=(?P<node>[\w.-]{2,253})")
# `Pod trainer-3 (node: gpu-7) failed`, `pod trainer-3 on node gpu-7 was evicted`
_IN_WORDS = regex(
    r"\b[Pp]od[ /]\"?(?:[\w-]{1,63}/)?(?P<pod>[a-z0-9][\w.-]{1,253})\"?,? "
    r"(?:\((?:on )?node[:= ] ?|(?:is |was |running |scheduled )?on node )\"?(?P<node>[a-z0-9][\w.-]{0,252}\w)"
)

# `pod trainer-3 on gpu-7`, among the first lines of what the pod wrote
_SAYS_NODE = regex(
    rf"\b[Pp]od \"?(?P<pod>[a-z0-9][\w.-]{{1,253}})\"? (?:(?:is|was|running|started) ){{0,2}}"
    rf"on (?P<node>{HOST_WORD})(?![\w.-])"
)
HEAD_LINES = 8


# Of a file: numbers of lines, going up, and the name that holds from there on.
Sections = list[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Pods:
    """Nodes by pod, and of a `kubectl describe` file the pods that it describes, one below the other.

    What a row of `kubectl get pods -o wide` says of its pod (OOMKilled, Error) is the pod's, not its node's.
    """

    node_of_pod: dict[str, str]
    node_of_row: dict[str, str]
    nodes_described: dict[str, Sections]
    pods_described: dict[str, Sections]
    makers_described: dict[str, Sections]  # of pods: jobs, sets
    files: frozenset[str]
    events_of_file: Mapping[str, EventObjects] = field(default_factory=dict)
    overcome: frozenset[tuple[str, int]] = frozenset()  # file and number of events that ended nothing

    def pod(self, line: Line) -> str | None:
        """The pod that a line of kubectl's output speaks of."""
        if line.file not in self.files:
            return None
        found = _POD.search(line.text[:2000])
        if found is not None:
            return found["pod"] or found["row"]
        return self._of_event(line, "Pod") or _section(self.pods_described, line) or None

    @property
    def names(self) -> set[str]:
        """The pods that are named as such."""
        described = (name for sections in self.pods_described.values() for _, name in sections)
        return {*self.node_of_pod, *self.node_of_row, *filter(None, described)}

    def node(self, line: Line) -> str | None:
        """The node that a line of kubectl's output speaks of itself."""
        if line.file not in self.files:
            return None
        found = _OF_NODE.search(line.text[:2000])
        if found is not None:
            return found["node"]
        return self._of_event(line, "Node") or _section(self.nodes_described, line)

    def host(self, line: Line) -> str | None:
        """The node of the pod that a line speaks of, or the pod where it is not told; or a node itself."""
        if line.file in self.files and (of_node := _OF_NODE.search(line.text[:2000])) is not None:
            return of_node["node"]
        if (node := self._of_event(line, "Node")) is not None:
            return node
        pod = self.pod(line)
        return self.node_of_pod.get(pod, pod) if pod else None

    def maker(self, line: Line) -> str | None:
        """The job, or other maker of pods, in whose description a line stands."""
        is_below = line.file in self.makers_described and not _section(self.pods_described, line)
        return _section(self.makers_described, line) if is_below else None

    def _of_event(self, line: Line, kind: str) -> str | None:
        events = self.events_of_file.get(line.file)
        return events.named(line, kind) if events is not None else None


def _section(described: Mapping[str, Sections], line: Line) -> str | None:
    """The name of the description that a line stands in, or of the first one."""
    if not (sections := described.get(line.file)):
        return None
    return sections[max(0, bisect_right(sections, line.number, key=lambda each: each[0]) - 1)][1]


# `kubectl get pods -o yaml` or `json`: the name of a pod stands among its metadata, and has no other indent.
_METADATA = regex(r"^(?P<indent>\s*)(?:- )?\"?metadata\"?: ?\{?\s*$")
_META_NAME = regex(r"^(?P<indent>\s+)\"?name\"?: \"?(?P<pod>[a-z0-9][\w.-]{1,253})\"?,?\s*$")
_NODE_NAME = regex(r"^\s+\"?nodeName\"?: \"?(?P<node>[\w.-]{2,253})\"?,?\s*$")


def gather_pods(readings: Sequence[Reading]) -> Pods:
    nodes: dict[str, str] = {}
    rows: dict[str, str] = {}
    described: dict[str, Sections] = defaultdict(list)
    nodes_described: dict[str, Sections] = defaultdict(list)
    makers: dict[str, Sections] = defaultdict(list)
    for reading in readings:
        if reading.source.role is not SourceRole.WORKER:  # a controller's log
            for line in reading.lines:
                text = line.text[:2000]
                if ("node=" in text and (found := _PLACED.search(text))) or (
                    "node" in text and "od" in text and (found := _IN_WORDS.search(text))
                ):
                    nodes.setdefault(found["pod"], found["node"])
        for line in reading.lines[:HEAD_LINES] if reading.source.role in JOB_ROLES else ():
            if (own := _SAYS_NODE.search(line.text[:300])) is not None and is_host(own["node"]):
                nodes.setdefault(own["pod"], own["node"])
        if reading.source.role is not SourceRole.KUBERNETES:
            continue
        current: str | None = None
        meta = -1  # the indent of `metadata:`, as long as its name is looked for
        place, width = 0, 0
        column: int | None = None  # of `kubectl get pods -o wide`: where the name of the node stands
        beside: int | None = None  # which cell is the pod's address
        for line in reading.lines:
            text = line.text[:2000]
            if text.startswith("NAME ") and (head := _NODE_COLUMN.search(text)):
                column, names = head.start(), text.split()
                place, width = names.index("NODE"), len(names)
                beside = names.index("IP") if "IP" in names else None
            elif column is not None and (row := _POD.match(text)) and row["row"]:
                cells = text.split()
                # Where no cell is empty they are counted: a table that was pasted may be out of its columns.
                if cell := cells[place : place + 1] if len(cells) == width else text[column:].split():
                    rows.setdefault(row["row"], cell[0])
                    if beside is not None and len(cells) == width and _ADDRESS.match(cells[beside]):
                        rows.setdefault(cells[beside], cell[0])
            elif found := ASSIGNED.search(text):
                nodes.setdefault(found["pod"], found["node"])
            elif found := _NAME.match(text):
                current = found["pod"]
                described[reading.source.file].append((line.number, current))
            elif current is not None and _CONTROLLER.match(text):
                at, _ = described[reading.source.file][-1]
                described[reading.source.file][-1] = (at, "")
                makers[reading.source.file].append((at, current))
            elif current is not None and _ROLES.match(text):
                nodes_described[reading.source.file].append((line.number, current))
            elif current is not None and ((found := _NODE.match(text)) or (found := _NODE_NAME.match(text))):
                nodes.setdefault(current, found["node"])
            elif found := _METADATA.match(text):
                meta = len(found["indent"])
            elif meta >= 0 and (found := _META_NAME.match(text)) and len(found["indent"]) <= meta + 4:
                current, meta = found["pod"], -1
                described[reading.source.file].append((line.number, current))
    files = {each.source.file for each in readings if each.source.role is SourceRole.KUBERNETES}
    events = {
        each.source.file: objects
        for each in readings
        if each.source.file in files and (objects := event_objects(each.lines)).numbers
    }
    pods = Pods(nodes, rows, dict(nodes_described), dict(described), dict(makers), frozenset(files), events)
    return replace(pods, overcome=_overcome(readings, pods))


_EVENT = regex(r"\b(?:Normal|Warning)\s+(?P<reason>[A-Z]\w{2,60})\s")
_AGE = regex(r"(?:^|\s)(?=\d)(?:(\d{1,5})d)?(?:(\d{1,5})h)?(?:(\d{1,5})m)?(?:(\d{1,6})s)?(?=\s)")
_IMAGE = regex(r"[Ii]mage \"(?P<image>[^\"\s]{1,500})\"")
_RESTARTING = "Back-off restarting failed container"  # what starts it again does not mend it
_RAN = frozenset(("Pulled", "Created", "Started"))
# By what the kubelet or the scheduler tells that it failed at, what tells that it got there after all.
_SETTLED_BY = {
    "FailedScheduling": _RAN | {"Scheduled"},
    "FailedMount": _RAN | {"SuccessfulMountVolume"},
    "FailedAttachVolume": _RAN | {"SuccessfulAttachVolume"},
    "FailedCreatePodSandBox": _RAN,
}
_OF_CONTAINERS = ("Failed", "BackOff", "InspectFailed")  # of an image, or of the start itself
_JOB_DONE = regex(
    r"\b(?:Completed|AllJobsCompleted|\w*JobSucceeded)\s+\w{2,20}/(?P<job>[a-z0-9][\w.-]{0,250})\s+\S.*"
    r"(?i:completed|succe)"
)
# `Restarting jobset/llm restarting jobset, attempt 1`, `PyTorchJobRestarting pytorchjob/llm …`.
_JOB_RESTARTED = regex(
    r"\b(?:\w{0,20}Restarting|Restarted)\s+\w*(?i:job|jobset)/(?P<job>[a-z0-9][\w.-]{0,250})\s"
)


@dataclass(frozen=True, slots=True)
class _Event:
    reason: str
    pod: str | None
    maker: str | None  # whose description it stands in
    line: Line
    age: int | None  # seconds before the list was made

    def is_before(self, other: _Event) -> bool:
        """By age, which is coarse: events of one age count as told in their usual order.

        Lists of two files were made at two times, and the later of two is the end of a job.
        """
        if self.line.file != other.line.file:
            return True
        if self.age is not None and other.age is not None:
            return self.age >= other.age
        return self.line.number < other.line.number


def _overcome(readings: Sequence[Reading], pods: Pods) -> frozenset[tuple[str, int]]:
    """Events of failures after which the same pod got there, or its job ended well, by file and number.

    What nodes tell was of an attempt that is over, if a job was started anew after it and ended well.
    """
    told = [
        event
        for reading in readings
        if reading.source.role is SourceRole.KUBERNETES
        for line in reading.lines
        if (event := _event(line, pods)) is not None
    ]
    of_pod: dict[tuple[str, str | None], list[_Event]] = defaultdict(list)
    for event in told:
        of_pod[event.line.file, event.pod].append(event)
    ends = [(job, event) for event in told if (job := _done(event)) is not None]
    anew = [
        event
        for event in told
        if (found := _JOB_RESTARTED.search(event.line.text[:1000])) is not None
        and any(found["job"] == job and event.is_before(end) for job, end in ends)
    ]
    return frozenset(
        (event.line.file, event.line.number)
        for event in told
        if (event.pod is None and any(_is_earlier(event, restart) for restart in anew))
        or (
            event.pod is not None
            and (
                any(_settles(later, event) for later in of_pod[event.line.file, event.pod])
                or _is_lone_probe(event, of_pod[event.line.file, event.pod])
                or any(event.pod.startswith(f"{job}-") and event.is_before(end) for job, end in ends)
            )
        )
    )


def _is_earlier(event: _Event, restart: _Event) -> bool:
    return event.line.file == restart.line.file and event is not restart and event.is_before(restart)


def _done(event: _Event) -> str | None:
    """The job that an event says has ended well; in a job's own description it stands above."""
    if (found := _JOB_DONE.search(event.line.text[:1000])) is not None:
        return found["job"]
    is_done = event.reason == "Completed" and "Job completed" in event.line.text
    return event.maker or event.pod if is_done else None


def _event(line: Line, pods: Pods) -> _Event | None:
    text = line.text[:2000]
    if (found := _EVENT.search(text)) is None:
        return None
    # Before the reason in a list of events, behind it in the description of a pod.
    told = next((age for age in _AGE.finditer(text[: found.end() + 40]) if age.lastindex), None)
    parts = [int(part or 0) for part in told.groups()] if told else None
    age = parts[0] * 86400 + parts[1] * 3600 + parts[2] * 60 + parts[3] if parts else None
    return _Event(found["reason"], pods.pod(line), pods.maker(line), line, age)


def _is_lone_probe(event: _Event, of_pod: Sequence[_Event]) -> bool:
    """Whether a probe failed and the kubelet did not stop the container for it."""
    return event.reason == "Unhealthy" and not any(each.reason == "Killing" for each in of_pod)


def _settles(later: _Event, failed: _Event) -> bool:
    if not failed.is_before(later):
        return False
    if failed.reason not in _OF_CONTAINERS:
        return later.reason in _SETTLED_BY.get(failed.reason, ())
    if (image := _IMAGE.search(failed.line.text[:2000])) is not None:
        return later.reason == "Pulled" and image["image"] in later.line.text  # a pod has several images
    # Each try begins with `Pulled` and `Created`, and tries of one age are many.
    coarse = failed.age is not None and later.age == failed.age
    return later.reason == "Started" and not coarse and _RESTARTING not in failed.line.text
