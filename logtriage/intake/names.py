"""Which rank, host, attempt and stream one path tells by itself.

A number in a name is a rank only if a word says so. What the path does not say stays None: a wrong rank
is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from logtriage.regex import regex


@dataclass(frozen=True, slots=True)
class Identity:
    """What the path of a log tells; unknown is None.

    `family` is the path without rotation and compression; `part` orders the parts of a family, oldest
    first.
    """

    rank: int | None = None
    local_rank: int | None = None
    node_rank: int | None = None
    host: str | None = None
    attempt: int | None = None
    stream: str | None = None
    family: str = ""
    part: int = 0


# --- rotation --------------------------------------------------------------------------------------

PACKED = regex(r"(?i)\.(gz|zst|zstd|xz|bz2)$")
_DATE = r"(?:19|20)\d\d-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])"
_TIME = r"(?:[-_T.]?\d{2}(?:[-:]?\d{2}){0,2}(?:[._]\d{3,9})?)?"
# x.log.2 (x.log.1 is newer, x.log newest), but log.17 and workerlog.3 are ranks
_NUMBERED = regex(r"^(?P<base>.*[^/]\.[A-Za-z]\w*|[^/]*?(?:log|syslog|messages|dmesg))\.(?P<number>\d{1,5})$")
_DATED_END = regex(rf"^(?P<base>.*?\w)[-.](?P<date>{_DATE}{_TIME})$")
_DATED_STEM = regex(rf"^(?P<base>.*?\w)[-.](?P<date>{_DATE}{_TIME})(?P<suffix>\.[A-Za-z]\w*)$")
_OLD_END = regex(r"^(?P<base>.*\w)[._-](?:old|prev|previous|bak)$")
_OLD_STEM = regex(r"^(?P<base>.*\w)[._-](?:old|prev|previous)(?P<suffix>\.[A-Za-z]\w*)$")
# a bare word of a stream: its number is a rank unless the file without number lies beside it
_BARE = regex(r"(?i)^(?:log|out|err|stdout|stderr|output|workerlog|rank)$")


def _unrotated(name: str) -> tuple[str, int]:
    """A file name without rotation and compression, and its place in the order (the newest is 0)."""
    name = PACKED.sub("", name)
    if (found := _NUMBERED.match(name)) and not _BARE.match(found["base"]):
        return found["base"], -int(found["number"])
    if re.match(r"(?i)(?:slurm|job|jobid)[-.]", name):
        return name, 0  # the number of a job may look like a date
    if found := _DATED_END.match(name):
        return found["base"], _moment(found["date"])
    if found := _DATED_STEM.match(name):
        return found["base"] + found["suffix"], _moment(found["date"])
    if found := _OLD_END.match(name):
        return found["base"], -1
    if found := _OLD_STEM.match(name):
        return found["base"] + found["suffix"], -1
    return name, 0


def _moment(date: str) -> int:
    """A negative number that grows with the date: a file without date is newer than all."""
    digits = re.sub(r"\D", "", date)[:20].ljust(20, "0")
    return int(digits) - 10**20


# --- one path --------------------------------------------------------------------------------------

_RANK = regex(
    r"(?i)(?<![a-z])(?:(?:global|g|world|log|logs|train|trainer|stdout|stderr|output)[-_.]?)?"
    r"(?:rank|process|proc|task|workerlog|driver_log)"
    r"[-_.:=\[]?(?:id[-_.]?)?(?P<number>\d{1,6})(?![0-9a-z])"
)
_LOCAL = regex(r"(?i)(?<![a-z])(?:local[-_.]?rank|local[-_.]?process|lrank)[-_.:]?(?P<number>\d{1,4})(?!\d)")
NODE_RANK = regex(
    r"(?i)(?<![a-z])(?:node|machine|group|host)[-_.]?(?:rank|index|idx|id)[-_.:]?(?P<number>\d{1,5})(?!\d)"
)
_BARE_WORKER = regex(r"(?i)^(?:worker[-_.]?|w)(?P<number>\d{1,6})$")
BARE_NUMBER = regex(r"(?i)^(?:log|out|err|stdout|stderr|output|workerlog|rank)\.(?P<number>\d{1,6})$")
_ATTEMPT = regex(r"(?i)(?<![a-z])(?:attempt|restart|retry)[-_.]?(?P<number>\d{1,4})(?!\d)")
_STREAM = regex(r"(?i)(?<![a-z])(?P<stream>stdout|stderr)(?![a-z])")

_SUBMITIT = regex(r"^\d+(?:_\d+)?_(?P<task>\d{1,5})_log\.(?P<end>out|err)$")
_RAY_WORKER = regex(r"^worker-[0-9a-f]{20,}-[0-9a-f]{6,}-\d+\.(?P<end>out|err)$")
SLURM_TASK = regex(r"^(?:.*-)?\d{3,}-(?P<node>\d{1,4})-(?P<task>\d{1,5})\.(?:out|err|log|txt)$")
_SLURM_HOST = regex(
    r"^(?:.*[-_])?\d{3,}[-_.](?P<host>[A-Za-z][\w-]*?\d+)(?:[-_.](?P<task>\d{1,5}))?\.(?:out|err|log|txt)$"
)
_POD_FOLDER = regex(r"^[a-z0-9-]+_(?P<pod>[a-z0-9.-]+)_[0-9a-f]{8}-?[0-9a-f-]{3,}$")

# Words that name what was logged or by what: what is left of the name is the machine.
_MACHINE_LOG = (
    r"dmesg|kern(?:\.log)?|kernel|kmsg|console|sol|serial|journal|journalctl|syslog|messages|var_log_messages"
    r"|(?:(?:nvidia|nv|rocm|amd|npu|hl|xpu)[-_]?|gpu[-_])?smi|dmon|pmon|nvlink"
    r"|nvidia[-_]bug[-_]report|bmc|sel|sdr|redfish|sensors|thermal|clocks|power|throttle|(?:node[-_]?)?health(?:[-_]?check)?|nhc"
    r"|dcgmi|dcgm|ibstat|ibstatus|ibdev2netdev|iblinkinfo|ibdiagnet|perfquery|mlxlink|ipmi(?:tool)?|lspci|lscpu|nvsm|fabricmanager"
    r"|slurmd|kubelet|raylet|describe[-_.]node|ip[-_]?(?:addr|link|route)|ip[-_]a|ifconfig|top|htop|vmstat|iostat|mpstat"
    r"|free[-_]watch|free|df|ps|lsmod|uptime|last[-_]reboot|last|mce|mcelog|edac|ethtool|meminfo|dmidecode|ulimit|rdma|ibv_devinfo"
    r"|epilog|prolog|vmcore[-_]dmesg|coredump(?:ctl)?|lspci|smartctl"
)
# What the tool was asked for: `journalctl -k`, `lspci -vvv`, `ipmitool sel elist`, `ethtool -S eth0`.
_ASKED = (
    r"[a-z]|v{2,3}|kernel|dmon|pmon|topo|nvlink|query|info|diag|stats?|show|list|elist|sel|sdr|sensors?|link|addr|log|full|all"
    r"|tail|report|watch|errors?|ecc|xid|(?:eth|ens|eno|bond|mlx5_)\d\w*"
)
_MACHINE_FIRST = regex(
    rf"(?i)^(?:{_MACHINE_LOG})(?:[-_.](?:{_ASKED}))*[-_.]"
    r"(?P<host>(?=.*[a-z]|(?:\d{1,3}\.){3}\d)[a-z0-9].*)$"
)
_MACHINE_LAST = regex(rf"(?i)[-_.](?:{_MACHINE_LOG})(?:[-_][a-z]+)*$")
_MACHINE_FILE = regex(rf"(?i)^(?:{_MACHINE_LOG})(?:[-_.][a-z0-9]+)*$")
LOG_WORD = regex(
    r"(?i)^(?:(?:logs?|stdout|stderr|out|err|train|trainer|output|console)[-_.])?(?P<host>.+?)"
    r"(?:[-_.](?:logs?|stdout|stderr|out|err|train|trainer|output|console))?$"
)
_HOST_WORD = (
    r"(?:compute|gpu|cpu|worker|login)?[-_]?(?:node|host|machine|server|instance|vm|hgx|dgx|nid|algo)"
    r"[-_]?(?:\d{1,6}|[a-z]|[a-z]{0,3}\d{1,4})"
)
_HOST_NAME = regex(rf"(?i)^(?:{_HOST_WORD}|ip-\d+-\d+-\d+-\d+|\d{{1,3}}(?:\.\d{{1,3}}){{3}})$")
_HOST_PART = regex(
    rf"(?i)(?<![a-z0-9])(?P<host>(?:[a-z][a-z0-9]*-)*{_HOST_WORD}|ip-\d+-\d+-\d+-\d+|\d{{1,3}}(?:\.\d{{1,3}}){{3}})"
    r"(?=-\d{9,}(?!\d)|(?![a-z0-9-]))"  # behind it may stand the second at which it started
)
# What kubectl said of a pod: the file is named after the pod, behind or before these words.
OF_KUBECTL = regex(
    r"(?i)^(?:kubectl[-_.])?(?:describe|get|events?)[-_.](?:(?:pods?|po)[-_.])?(?P<first>.+)$"
    r"|^(?:pods?[-_.])?(?P<last>.+)[-_.](?:describe|describe[-_]pod|manifest|events?)$"
)
# What kubectl said of a pod (or its manifest) is named after the pod, behind or before such words.
OF_KUBECTL = regex(
    r"(?i)^(?:(?:kubectl[-_.])?describe[-_.](?:(?:pods?|po)[-_.]|nodes?[-_.](?=[a-z]))?|kubectl[-_.]get[-_.](?:pods?[-_.])?|get[-_.]pods?[-_.])"
    r"(?P<first>.+)$|^(?P<last>.+)[-_.](?:describe|description|manifest)$"
)
_MANIFEST = regex(r"(?i)^pods?[-_](?P<pod>.+)\.(?:ya?ml|json)$")
POD = regex(
    r"^(?P<base>[a-z0-9][a-z0-9.-]*-(?P<role>worker|launcher|master|chief|head|ps|driver|executor|w|replica|node|trainer))"
    r"(?:-(?P<number>\d{1,5}))?(?P<hash>-[bcdfghjklmnpqrstvwxz2456789]{5})?$"
)
# name-template hash-random end, of a Deployment; Kubernetes draws random ends from letters without vowels
_REPLICA_POD = regex(
    r"^[a-z0-9][a-z0-9.-]*-[bcdf0-9]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5}$"
    r"|^[a-z0-9][a-z0-9.-]*-(?:worker|head)(?:-?group)?-[a-z-]*[bcdfghjklmnpqrstvwxz2456789]{5}$"
)
INDEXED_POD = regex(r"^(?P<base>[a-z0-9][a-z0-9.-]*?)-(?P<number>\d{1,5})-[bcdfghjklmnpqrstvwxz2456789]{5}$")
_FQDN = regex(r"(?i)^[a-z][a-z0-9-]*\d[a-z0-9-]*(?:\.[a-z0-9-]+){2,}$")
_FOLDER_WORD = regex(
    r"(?i)^(?:logs?|var|kern(?:el)?|dmesg|syslog|system|hosts?|nodes?|ranks?|workers?|out(?:put)?s?|results?|runs?"
    r"|tmp|data|home|root|opt|std(?:out|err)|ray|slurm|hardware|metrics|artifacts?)$"
)
# What a number behind these words counts is no rank and no machine.
OTHER_WORD = regex(
    r"(?i)(?:^|[-_.])(?:run|job|fold|v|ver|version|exp|experiment|seed|trial|epoch|step|iter|ckpt|checkpoint|part|stage"
    r"|phase|pp|tp|dp|cp|ep|sp|test|model|slurm|attempt|restart|retry|try|take|session|shard|split|chunk|batch|cfg|config"
    r"|rank|process|proc|task|scontrol-show-job|jobcomp|jobid|train|eval|val|sweep|array|id|pid|log|logs|day|week|gen|round|layer|file)$"
)


def identify(file: str) -> Identity:
    """What the path of one log tells by itself.

    A torchrun tree gives the local rank; it is the global one too unless the path names a machine.
    """
    folders = file.split("/")
    name = folders.pop()
    base, part = _unrotated(name)
    facts = _Facts()
    _from_folders(folders, base, facts)
    _from_name(base, facts, folders)
    return Identity(
        rank=facts.rank,
        local_rank=facts.local_rank,
        node_rank=facts.node_rank,
        host=facts.host,
        attempt=facts.attempt,
        stream=facts.stream,
        family="/".join([*folders, base]),
        part=part,
    )


_BEFORE_ADDRESS = regex(r"(?i)^(?:node|host|machine|worker|server)[-_](\d{1,3}(?:\.\d{1,3}){3})$")


@dataclass(slots=True)
class _Facts:
    rank: int | None = None
    local_rank: int | None = None
    node_rank: int | None = None
    host: str | None = None
    attempt: int | None = None
    stream: str | None = None

    def on_host(self, host: str) -> None:
        self.host = host = _BEFORE_ADDRESS.sub(r"\1", host)
        if self.node_rank is None:
            self.node_rank = host_number(host)


def host_number(host: str) -> int | None:
    """The place of a machine in its job as far as its name counts from 0, or None."""
    found = re.search(r"(?i)(?:^|[-_])(node|host|machine|worker|algo|w)[-_]?(0|[1-9]\d{0,4})$", host)
    if found:
        # SageMaker counts its hosts from 1
        return int(found[2]) - (found[1].lower() == "algo")
    indexed = INDEXED_POD.match(host)
    return int(indexed["number"]) if indexed else None


def _from_folders(folders: Sequence[str], base: str, facts: _Facts) -> None:
    for depth, folder in enumerate(folders):
        after_attempt = depth > 0 and re.fullmatch(r"attempt_\d{1,4}", folders[depth - 1]) is not None
        if after_attempt and re.fullmatch(r"\d{1,5}", folder):
            facts.local_rank = int(folder)
            facts.rank = None if facts.host else facts.local_rank
            continue
        if found := _ATTEMPT.search(folder):
            facts.attempt = int(found["number"])
        if pod := _POD_FOLDER.match(folder):
            facts.on_host(pod["pod"])
            if re.fullmatch(r"\d{1,4}\.log", base):  # <container>/<restart count>.log
                facts.attempt = int(base[:-4])
            continue
        _from_numbers(folder, facts)
        if facts.rank is None and facts.host is None and not _FOLDER_WORD.match(folder):
            holds_kernel_log = depth == len(folders) - 1 and _MACHINE_FILE.match(base.rsplit(".", 1)[0])
            if (
                _HOST_NAME.match(folder)
                or _FQDN.match(folder)
                or POD.match(folder)
                or (holds_kernel_log and re.search(r"\d|^[a-z]+-[a-z]$", folder))
            ):
                facts.on_host(folder)
            elif found := _HOST_PART.search(folder):
                facts.on_host(found["host"])


_RANKS_FOLDER = regex(r"(?i)^(?:(?:all|log|logs|by|per)[-_])?(?:ranks?|procs?|processes|tasks)$")


def _from_numbers(text: str, facts: _Facts) -> None:
    """The ranks that words in a name or folder state."""
    if not re.search(r"\d", text):
        return
    if found := _LOCAL.search(text):
        facts.local_rank = int(found["number"])
        text = text.replace(found[0], " ")
    if found := NODE_RANK.search(text):
        facts.node_rank = int(found["number"])
        text = text.replace(found[0], " ")
    if found := _RANK.search(text):
        facts.rank = int(found["number"])


def _from_name(base: str, facts: _Facts, folders: Sequence[str]) -> None:
    stem, _, suffix = base.rpartition(".") if "." in base else (base, "", "")
    while re.fullmatch(r"(?i)log|out|err|txt|stdout|stderr", stem.rpartition(".")[2]) and "." in stem:
        suffix, stem = stem.rpartition(".")[2] + "." + suffix, stem.rpartition(".")[0]
    ray = _RAY_WORKER.match(base)
    submitit = _SUBMITIT.match(base)
    if found := _STREAM.search(base):
        facts.stream = found["stream"].lower()
    elif re.search(r"(?i)(?:^|\.)err(?:\.|$)", suffix):
        facts.stream = "stderr"
    elif (found := submitit or ray) and found["end"] == "out":
        facts.stream = "stdout"  # these two always write both files
    if ray:
        return
    if submitit:
        facts.rank = int(submitit["task"])
        return
    if found := BARE_NUMBER.match(base) or _BARE_WORKER.match(stem):
        facts.rank = int(found["number"])
        return
    if folders and re.fullmatch(r"\d{1,5}", stem) and _RANKS_FOLDER.match(folders[-1]):
        facts.rank = int(stem)  # ranks/6.err
        return
    if found := _ATTEMPT.search(stem):
        facts.attempt = int(found["number"])
    if (found := SLURM_TASK.match(base)) and not re.search(_DATE, base):
        facts.node_rank = int(found["node"])
        facts.rank = int(found["task"])
        return
    _from_numbers(base if _RANK.fullmatch(suffix.rpartition(".")[2]) else stem, facts)  # `log.txt.rank3`
    if facts.host is None and (host := _host_of(stem, suffix, base)):
        facts.on_host(host)
        if (found := _SLURM_HOST.match(base)) and found["host"] == host and found["task"]:
            facts.rank = int(found["task"])


_MANY = regex(r"(?i)^(?:nodes|hosts|machines|servers)$")  # all_nodes.log is of no one machine


_ADDRESS = regex(r"(?<![A-Za-z0-9.])(?:\d{1,3}\.){3}\d{1,3}(?!\.?\d)")


_CALLED_NODE = regex(
    r"(?i)^(?:node|host|machine)[_=](?P<host>[a-z][a-z0-9]*(?:-[a-z0-9]+)+|[a-z]+\d+)$"
)  # node_cn-b.log


# node2_cn-b07.log: the machine's number in the job, and its name.
_NUMBERED_AND_NAMED = regex(
    r"(?i)^(?:node|host|machine)[-_]?\d{1,5}[_.](?P<host>[a-z][a-z0-9]*(?:-[a-z0-9]+)*-[a-z]{0,8}\d{1,6})$"
)


def _host_of(stem: str, suffix: str, base: str) -> str | None:
    if (address := _ADDRESS.search(base)) is not None:
        return address[0]
    if (found := _MACHINE_FIRST.match(stem)) and _looks_like_host(found["host"]):
        return found["host"]
    if (found := _MACHINE_LAST.search(stem)) and _looks_like_host(stem[: found.start()]):
        return stem[: found.start()]
    if (described := OF_KUBECTL.match(stem)) is not None:
        stem = described["first"] or described["last"]
    elif (manifest := _MANIFEST.match(base)) is not None:
        stem = manifest["pod"]
    if (found := _MACHINE_FIRST.match(base)) and _HOST_NAME.match(found["host"]):
        return found["host"]  # syslog.10.1.2.3: the last number is no ending
    if re.fullmatch(rf"(?i)(?:{_MACHINE_LOG})", suffix) and _looks_like_host(stem):
        return stem
    ending = re.sub(r"(?i)^log\.", "", suffix)
    if re.fullmatch(rf"(?i)(?:{_MACHINE_LOG})", stem) and _looks_like_host(ending):
        return ending  # messages.g1102: what looks like an ending is the machine
    found = LOG_WORD.match(stem)
    inner = found["host"] if found else stem
    if (labelled := _CALLED_NODE.match(inner)) is not None:
        return labelled["host"]
    if (both := _NUMBERED_AND_NAMED.match(inner)) is not None and _looks_like_host(both["host"]):
        return both["host"]
    if (_HOST_NAME.match(inner) and not _MANY.match(inner)) or _FQDN.match(inner):
        return inner
    pod_name = re.sub(r"^(?:logs?|stdout|stderr)[-_.]|[-_.](?:logs?|stdout|stderr)$", "", stem)
    pod = POD.match(pod_name)
    indexed = INDEXED_POD.match(pod_name)
    if (
        (pod and (pod["number"] or pod["hash"]))
        or _REPLICA_POD.match(pod_name)
        or (indexed and not OTHER_WORD.search(indexed["base"]))
    ):
        return pod_name
    if (found := _SLURM_HOST.match(base)) and (base.startswith("slurm") or _HOST_NAME.match(found["host"])):
        return found["host"]
    found = _HOST_PART.search(stem)
    return found["host"] if found and not _MANY.match(found["host"]) else None


_NO_HOST = regex(rf"{OTHER_WORD.pattern}|(?:^|[-_.])(?:{_MACHINE_LOG})$")


def _looks_like_host(text: str) -> bool:
    if _HOST_NAME.match(text):
        return True
    bare = re.sub(r"[-_.]?\d+$", "", text)
    return re.search(r"[A-Za-z]", text) is not None and bare != text and not _NO_HOST.search(bare)
