"""One machine under several names: what a file is called after, and what its lines or launchers say."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from logtriage.localize.exits import Exit
from logtriage.localize.file_hosts import machine_files
from logtriage.localize.host_tables import tabled_addresses
from logtriage.localize.pods import Pods
from logtriage.localize.processes import OF_NCCL
from logtriage.localize.prompts import whole_names
from logtriage.localize.rosters import HOST_WORD, introductions, is_host
from logtriage.localize.scene import Scene
from logtriage.model import JOB_ROLES, Line, SourceRole
from logtriage.regex import regex
from logtriage.rulebank.matcher import without_digits

NO_HOSTS = {"node", "nodes", "host", "hosts", "machines", "all", "pods", "workers"}


LEAST_OF_ROW = 2  # machines whose files show how those of their row are called


def other_names(scene: Scene, exits: Sequence[Exit], pods: Pods) -> dict[str, str]:
    """Hosts by other names that files give them: dmesg_ml-3.txt of ml-3, node1.log of what its launcher calls
    gpu-a-02, and a kernel log that lies under the address by which the job knows the machine.
    """
    of_files = {source.host for source in scene.sources if source.host} - NO_HOSTS
    prefixed: dict[str, set[str]] = defaultdict(set)  # by file, the hosts that its lines name as their own
    for reading in scene.readings:
        own = reading.source.host
        hosts = {line.host for line in reading.lines if line.host}
        prefixed[reading.source.file] = hosts - {own}
    said: set[str] = set().union(*prefixed.values())
    named: dict[str, str] = {}
    for host in of_files:
        others = (of_files | said) - {host}
        ends = {each for each in others if len(each) > 2 and host.endswith((f"_{each}", f".{each}"))}
        if len(ends) == 1:
            named[host] = ends.pop()
    named |= _behind_one_word(of_files, said)
    reported: dict[str, set[str]] = defaultdict(set)
    for exit_ in exits:
        if exit_.host:
            reported[exit_.line.file].add(exit_.host)
    told_of: dict[str, set[str]] = defaultdict(set)
    for exit_ in exits:  # below `node1| `, its launcher tells how that machine calls itself
        label = exit_.line.host
        if exit_.host and label and exit_.host != label and _NUMBERED_NODE.match(label):
            told_of[label].add(exit_.host)
    for label, host in _introduced_below(scene):
        told_of[label].add(host)
    labels = set(told_of)
    by_machines = {source.host for source in scene.sources if source.role not in JOB_ROLES and source.host}
    by_machines |= set(machine_files(scene, said).values())
    rows = Counter(
        without_digits(source.host)
        for source in scene.sources
        if source.host is not None and prefixed[source.file] & by_machines
    )
    for source in scene.sources:
        if source.host in of_files and source.host is not None and source.role in JOB_ROLES:
            told_of[source.host] |= reported[source.file] - {source.host}
            # llm-3.log of one machine, which has a kernel log, or others of its row have
            is_of_row = rows[without_digits(source.host)] >= LEAST_OF_ROW
            if len(writers := prefixed[source.file]) == 1 and (writers <= by_machines or is_of_row):
                told_of[source.host] |= writers
    for label, host in _labels_of_machines(scene, prefixed, by_machines):
        named.setdefault(label, host)  # `(worker3, …)` in each line of cn-7.log, where cn-7 has a kernel log
    for host, names in told_of.items():
        if host in by_machines and not _NUMBERED_NODE.match(host):
            continue  # its kernel log goes by that name as well
        elsewhere: set[str] = set().union(*(other for each, other in told_of.items() if each != host))
        if names <= by_machines and host not in by_machines:
            elsewhere = set()  # several files of one machine, each called after what wrote it
        if len(names) == 1 and (host not in said or host in labels) and not names & elsewhere:
            named.setdefault(host, next(iter(names)))
    spoken = {
        each
        for reading in scene.readings
        if reading.source.role in JOB_ROLES
        for each in (reading.source.host, *prefixed[reading.source.file])
        if each
    }
    for source in scene.sources:
        if source.role is SourceRole.KERNEL and source.host in spoken:
            for own in prefixed[source.file] - spoken:
                if len(prefixed[source.file]) == 1:
                    named.setdefault(own, str(source.host))
    for name in of_files | said:  # EC2 names a machine after its address
        if (words := _EC2.match(name)) is not None and (
            address := ".".join(words.groups())
        ) in of_files | said:
            named.setdefault(address, name)
    for host, name in (whole_names(scene) | _numbered_machines(scene, of_files, said)).items():
        named.setdefault(host, name)
    in_nccl = _labelled_in_nccl(scene) | _addresses_in_labels(scene)
    in_ray = _addresses_in_ray(scene)
    if len(in_ray.keys() & of_files) >= LEAST_OF_ROW:  # one whose log is missing is named as the others are
        named |= {address: host for host, address in in_ray.items() if address not in of_files}
        in_ray = {}
    for host, name in (_pods_of_files(pods, of_files) | in_ray | in_nccl).items():
        if host not in of_files:
            named.setdefault(host, name)
        elif _ADDRESS.match(name) and name not in of_files:
            named.setdefault(name, host)  # other files know the machine by its name
    for address, name in tabled_addresses(scene).items():
        if name not in named and address not in named.values():
            named.setdefault(address, name)
    return {host: name for host, name in named.items() if name not in named}


def _behind_one_word(of_files: set[str], said: set[str]) -> dict[str, str]:
    """gpu-cn-03.csv of cn-03, where several files of hosts that others name begin with the same word."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for label in of_files - said:
        word, _, host = label.partition("-")
        if word and host in said:
            found[word][label] = host
    return {label: host for of_word in found.values() if len(of_word) > 1 for label, host in of_word.items()}


def _labels_of_machines(
    scene: Scene, prefixed: Mapping[str, set[str]], by_machines: set[str]
) -> list[tuple[str, str]]:
    """What all lines of a machine's one file call it, and no other file's, where its own log has its name."""
    told: dict[str, set[str]] = defaultdict(set)
    for source in scene.sources:
        writers = prefixed[source.file]
        if source.role in JOB_ROLES and source.host in by_machines and len(writers) == 1:
            told[next(iter(writers))].add(str(source.host))
    hosts = Counter(host for names in told.values() for host in names)
    return [
        (label, host)
        for label, names in told.items()
        if len(names) == 1 and label not in by_machines and hosts[host := next(iter(names))] == 1
    ]


# What launchers of TPU pods put before a line, `10.164.0.14 [2] `; and a host that says which node it is.
_COUNTED_LABEL = regex(
    rf"(?<![\w.])({HOST_WORD}) \[(?:(?:worker|task|replica|node|host)[ :=-]?)?(\d{{1,5}})\] "
)
_SAYS_NUMBER = regex(r"\b(?i:node|machine|host)[-_ ]?rank[ =:]{1,2}(\d{1,5})\b")
_NAMED_BY_NUMBER = regex(r"(?i)(?:.*[-_.])?(?:worker|w|node|host|machine|vm|task|tpu)[-_]?(\d{1,5})$")
_LABEL_WIDTH = 200


def _numbered_machines(scene: Scene, of_files: set[str], said: set[str]) -> dict[str, str]:
    """Hosts that files call by their number in the job, by the names that the job's lines have for them.

    `worker2-dmesg.txt` is of 10.164.0.14 where the job's lines begin with `10.164.0.14 [2]`.
    """
    rows = {host: int(found[1]) for host in of_files - said if (found := _NAMED_BY_NUMBER.match(host))}
    if not rows:
        return {}
    numbers: dict[int, set[str]] = defaultdict(set)
    for reading in scene.readings:
        if reading.source.role not in JOB_ROLES:
            continue
        for line in reading.lines:
            text = line.text[:_LABEL_WIDTH]
            counted = _COUNTED_LABEL.search(text) if " [" in text and "] " in text else None
            if counted is not None and is_host(counted[1]):
                numbers[int(counted[2])].add(counted[1])
            elif line.host is not None and "ank" in text and (own := _SAYS_NUMBER.search(text)) is not None:
                numbers[int(own[1])].add(line.host)
    listed = _listed_by_number(scene)
    if listed.keys() >= set(rows.values()):  # else one of both may count from 1
        numbers = numbers or listed
    known = {number: next(iter(hosts)) for number, hosts in numbers.items() if len(hosts) == 1}
    if len(known) < max(2, len(numbers)) or len(set(known.values())) < len(known):
        return {}
    if len(set(rows.values())) < len(rows) or set(known.values()) & set(rows):
        return {}
    return {host: known[number] for host, number in rows.items() if number in known}


# Of a description of a job, in JSON or YAML: the number of a node, and beside it what it is called.
_INDEX = regex(
    r"(?i)^\s*(?:- )?\"?(?:node|machine|host|instance)[-_ ]?(?:index|rank|number)\"?\s*:\s*(\d{1,5}),?\s*$"
)
_ITS_NAME = regex(
    r"(?i)^\s*(?:- )?\"?(?:host(?:[-_ ]?name)?|node(?:[-_ ]?name)?"
    r"|private[-_]?(?:dns[-_]?name|ip(?:[-_]?address)?))"
    rf"\"?\s*:\s*\"?({HOST_WORD})\"?,?\s*$"
)
# `node 2: cn-7`, a row of a list
_NUMBERED_ROW = regex(rf"(?i)^\W{{0,4}}(?:node|machine|host)[ #-]?(\d{{1,5}}) ?(?:=|:|->) ?({HOST_WORD})\s*$")


def _listed_by_number(scene: Scene) -> dict[int, set[str]]:
    """Hosts by their number in the job, where what stands beside its logs lists both."""
    found: dict[int, set[str]] = defaultdict(set)
    for reading in scene.readings:
        if reading.source.role in JOB_ROLES and len(reading.lines) > MOST_LISTED:
            continue
        index = name = None
        for line in reading.lines[:MOST_LISTED]:
            text = line.text[:300]
            if (row := _NUMBERED_ROW.match(text)) is not None:
                found[int(row[1])].add(row[2])
                continue
            if text.lstrip()[:2] == "- " or text.strip(" ,[]") in ("{", "}", "},{"):
                index = name = None
            if (number := _INDEX.match(text)) is not None:
                index = int(number[1])
            elif (called := _ITS_NAME.match(text)) is not None:
                name = called[1]
            if index is not None and name is not None:
                found[index].add(name)
                index = name = None
    return found


MOST_LISTED = 4_096  # lines of a file that may be such a list

# Who gathered the logs counted them so; and TorchX its replicas, `trainer/1`.
_NUMBERED_NODE = regex(r"(?i)(?:node|host|machine)[-_]?\d{1,5}$|[a-z][\w.-]*/\d{1,5}$")


def _introduced_below(scene: Scene) -> Iterator[tuple[str, str]]:
    """Such labels, with the hosts that the lines behind them say that a rank runs on."""
    behind: dict[str, list[Line]] = defaultdict(list)
    for reading in scene.readings:
        if reading.source.role in JOB_ROLES:
            for line in reading.lines:
                if line.host is not None and "ank" in line.message and _NUMBERED_NODE.match(line.host):
                    behind[line.host].append(line)
    for label, lines in behind.items():
        yield from ((label, host) for _, host in introductions(lines) if host != label)


_DRAWN_END = regex(r"-[a-z0-9]{4,5}$")


def _pods_of_files(pods: Pods, of_files: set[str]) -> dict[str, str]:
    """Pods whose logs are called after them without the end that Kubernetes draws: w-0-x7k2p by w-0."""
    return {pod: base for pod in pods.names if (base := _DRAWN_END.sub("", pod)) != pod and base in of_files}


_IN_RAY = regex(
    r"\([^()]{1,100}\bip=(?P<address>[\w.:]{1,60})\) (?:\[[^\[\]]{1,40}\] )?"
    r"(?P<host>[A-Za-z][\w.-]{1,80}):\d{1,9}:\d{1,9} \["
)


def _addresses_in_ray(scene: Scene) -> dict[str, str]:
    """Hosts by the address with which Ray labels all lines of another machine; NCCL only now and then."""
    found: dict[str, set[str]] = defaultdict(set)
    for reading in scene.readings:
        for line in reading.lines:
            if "ip=" in line.text[:160] and (told := _IN_RAY.search(line.text[:300])):
                found[told["host"]].add(told["address"])
    return {host: next(iter(addresses)) for host, addresses in found.items() if len(addresses) == 1}


def _labelled_in_nccl(scene: Scene) -> dict[str, str]:
    """Hosts as NCCL calls them, by the labels that a launcher puts before all lines of theirs."""
    found: dict[str, set[str]] = defaultdict(set)
    for reading in scene.readings:
        for line in reading.lines:
            if line.host is not None and " NCCL " in line.text[:300]:
                told = OF_NCCL.search(line.text[:300])
                if told is not None and told["host"] != line.host:
                    found[told["host"]].add(line.host)
    return {host: next(iter(labels)) for host, labels in found.items() if len(labels) == 1}


_WITH_ADDRESS = regex(r"\((?P<name>[\w.-]{1,80}), rank=\d{1,6}, pid=\d{1,9}, ip=(?P<address>[\w.:]{1,60})\)")


def _addresses_in_labels(scene: Scene) -> dict[str, str]:
    """The names that SkyPilot gives to nodes, by their addresses, which stand behind them."""
    return {
        told["address"]: told["name"]
        for reading in scene.readings
        for line in reading.lines
        if ", ip=" in line.text[:160] and (told := _WITH_ADDRESS.match(line.text[:300])) is not None
    }


_EC2 = regex(r"ip-(\d{1,3})-(\d{1,3})-(\d{1,3})-(\d{1,3})(?:\.[\w.-]{1,200})?$")

_ADDRESS = regex(r"(?:\d{1,3}\.){3}\d{1,3}$")
