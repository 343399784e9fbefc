"""What kind of writer a file comes from: told by its lines first, by its name only where they are silent.

A worker's log may begin with pages of settings or with the output of nvidia-smi, and a console shows
everything. So a kind is only given to a file that is of this kind almost throughout; the rest stays
the output of one rank or of several.
"""

from __future__ import annotations

import re

from logtriage.intake.identity import identify
from logtriage.intake.launcher_roles import LAUNCHER_WORDS, launcher_role
from logtriage.intake.tables import delimited_role, json_role, number_role, settings_role
from logtriage.model import SourceRole
from logtriage.regex import regex

# Lines looked at (first, spread over the middle, last) and how much of each: 5,000 files are sniffed at once.
_FIRST, _MIDDLE, _LAST = 30, 20, 20
_WIDTH = 300


def sniff_role(file: str, sample: bytes) -> SourceRole:
    """The role of a file by a sample of its bytes (plain, from its beginning) and its path alone."""
    return content_role(file, sample) or (SourceRole.WORKER if _of_one_rank(file) else SourceRole.MERGED)


def _of_one_rank(file: str) -> bool:
    known = identify(file)
    return known.rank is not None or known.local_rank is not None


def content_role(file: str, sample: bytes) -> SourceRole | None:
    """The role that the content gives away, or None for the output of a job's processes."""
    role = _role_of_lines(file, sample)
    if role not in (SourceRole.METRICS, SourceRole.ENVIRONMENT):
        return role
    # What a process printed is its output, its settings alone too.
    printed = b"Traceback (most recent call last)" in sample or _is_output(file)
    return None if printed else role


def _is_output(file: str) -> bool:
    name = file.rsplit("/", 1)[-1].lower()
    if name.endswith((".csv", ".tsv", ".json", ".jsonl", ".yaml", ".yml")):
        return False
    return re.search(r"stdout|stderr|\.(?:out|err)(?:\.|$)", name) is not None or _of_one_rank(file)


def _role_of_lines(file: str, sample: bytes) -> SourceRole | None:
    text = sample.decode("utf-8", "replace").lstrip("\ufeff")
    start = text.lstrip()
    if start[:1] in ("{", "["):
        role = json_role(start)
        if role is not None:
            return role
        if start.startswith(("{", '["', "[{")):
            return None  # records of a structured log
    lines = [line[:_WIDTH] for line in text.split("\n") if line and not line.isspace()]
    if not lines:
        return _named_role(file)
    if start.startswith("#!"):
        return SourceRole.ENVIRONMENT
    looked = lines
    if len(lines) > _FIRST + _MIDDLE + _LAST:
        step = (len(lines) - _FIRST - _LAST) // _MIDDLE
        looked = lines[:_FIRST] + lines[_FIRST:-_LAST:step][:_MIDDLE] + lines[-_LAST:]
    ends = looked[:8] + looked[8:][-4:]
    spoken = sum(map(bool, map(_SPEECH.search, ends))) / len(ends)
    if spoken <= 0.6:  # otherwise the ends are enough
        spoken = sum(map(bool, map(_SPEECH.search, looked))) / len(looked)
    quiet = spoken <= 0.1
    role = _host_role(looked, file) or _scheduler_role(looked, spoken) or _fabric_role(looked)
    if role is None and spoken <= 0.3:
        role = _kubernetes_role(looked)
    if role is None and quiet:
        short = len(lines) < 60
        role = (
            (_named_role(file) if short and re.search(r"(?i)prolog|epilog", file) else None)
            or _machine_role(looked)
            or number_role(looked)
            or delimited_role(looked)
            or settings_role(looked, lines, file)
            or (_named_role(file) if short else None)
        )
    if role is None and not quiet:
        role = delimited_role(looked)
    if role is None and any(word in text for word in LAUNCHER_WORDS):
        launcher = launcher_role(lines, file)
        role = launcher if launcher is not None and not _of_one_rank(file) else None
    return role


# What only a running program says: a time or a level at the start, a step, an exception.
_SPEECH = regex(
    r"^\W{0,3}(?:\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|[IWEF]\d{4} \d\d:\d\d|\d\d:\d\d:\d\d"
    r"|\d\d?\.\d\d?\.(?:\d{4})?,? \d\d?:\d\d:\d\d)"
    r"|(?<![=\w])(?:INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL|DEBUG)\b|^\s*Traceback |^\s+File \".*\", line \d"
    r"|^\S*(?:Error|Exception)\b|(?i:\b(?:loss|epoch|iter|iteration|step)\b[ =:\[]*\d)|it/s\b|s/it\b"
    r"|\[rank\d+\]|^(?:time|ts|t|timestamp)=\"?\d{4}-\d\d-\d\d[T ]\d\d:\d\d"
)


def speaking_share(sample: bytes) -> float:
    """The share of the lines of a text that only a running program says."""
    lines = [line[:_WIDTH] for line in sample.decode("utf-8", "replace").split("\n") if line.strip()]
    return sum(map(bool, map(_SPEECH.search, lines))) / max(1, len(lines))


def _share(pattern: re.Pattern[str], lines: list[str]) -> float:
    """The share of lines that begin with the pattern; 0 at once if none of the outermost ones does."""
    if not any(map(pattern.match, lines[:5])) and not any(map(pattern.match, lines[-3:])):
        return 0.0
    return sum(map(bool, map(pattern.match, lines))) / len(lines)


# --- kernel and other logs of a machine ------------------------------------------------------------

_KERNEL_LINE = regex(
    r"^(?:<\d+>)?\[\s*\d{1,9}\.\d{4,6}\](?:\[ ?[TC]\d+\])? \S"  # dmesg
    r"|^\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\] "  # dmesg -T
    r"|^\d+,\d+,\d+,[-c+];"  # /dev/kmsg
    r"|^(?:kern|user|daemon|syslog) *:\w+ *: "  # dmesg -x
    r"|^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{6}[+-]\d\d:\d\d "  # dmesg --time-format iso
    r"|^Panic#\d+ Part\d+|^<\d+>\["  # pstore
)
_SYSLOG_LINE = regex(
    r"^(?:<\d+>)?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)) (?P<host>\S+) (?P<program>[\w./@-]+)"
    r"(?:\[\d+\])?: "
)
_KERNEL_WORD = regex(
    r"NVRM|Xid|nvidia|systemd|audit|veth|docker|IPv6|eth\d|mlx5|perf: |workqueue|oom|Out of memory|segfault"
    r"|EXT4|XFS|nfs|NFS|Lustre|pci|PCI|usb|CPU|Call Trace|memfd|device |EDAC|mce|MCE|ACPI|Linux version"
    r"|kernel"
    r"|Tainted|RIP:|hung_task|blocked for more|soft lockup|cgroup|traps:|process '|scsi|nvme|BTRFS|bond\d"
)
_DAEMONS = {
    "slurmd": SourceRole.SCHEDULER,
    "slurmctld": SourceRole.SCHEDULER,
    "slurmdbd": SourceRole.SCHEDULER,
    "slurmstepd": SourceRole.SCHEDULER,
    "pbs_mom": SourceRole.SCHEDULER,
    "pbs_server": SourceRole.SCHEDULER,
    "kubelet": SourceRole.KUBERNETES,
    "containerd": SourceRole.KUBERNETES,
    "nv-fabricmanager": SourceRole.HARDWARE,
    "nvidia-fabricmanager": SourceRole.HARDWARE,
    "nvidia-persistenced": SourceRole.HARDWARE,
    "nv-hostengine": SourceRole.HARDWARE,
    "dcgm": SourceRole.HARDWARE,
    "systemd": SourceRole.KERNEL,
    "sshd": SourceRole.KERNEL,
    "CRON": SourceRole.KERNEL,
    "dockerd": SourceRole.KERNEL,
}


def _host_role(lines: list[str], file: str) -> SourceRole | None:
    if _share(_KERNEL_LINE, lines) >= 0.5:
        named = re.search(r"(?i)dmesg|kern|kmsg|messages|syslog|pstore", file) is not None
        if named or any(_KERNEL_WORD.search(line) for line in lines):
            return SourceRole.KERNEL
    if _share(_SYSLOG_LINE, lines) < 0.5:
        return None
    logged = [found for line in lines if (found := _SYSLOG_LINE.match(line))]
    programs = [found["program"].rsplit("/", 1)[-1] for found in logged]
    if programs.count("kernel") >= 0.1 * len(logged):
        return SourceRole.KERNEL
    most = max(set(programs), key=lambda program: (programs.count(program), program))
    return _DAEMONS.get(most)


# --- schedulers ------------------------------------------------------------------------------------

_SLURM_RECORD = regex(r"^JobId=\d+ |^NodeName=\S+ |^PartitionName=\S+|^ReservationName=\S+")
_SLURM_TABLE = regex(
    r"^\s*(?:JobID(?:Raw)?|JOBID|PARTITION|NODELIST|USER|Cluster|HOSTNAMES)(?:\s*\||\s{1,})"
    r"(?:.*\b)?(?:JobName|STATE|State|PARTITION|AVAIL|NODES|ST|REASON|ExitCode|Elapsed|Start)\b"
    r"|^\s*Job ID: \d+|^Job Id: \d+|^Job <\d+>|^qstat |^REASON +USER +TIMESTAMP"
)
_SLURM_DAEMON = regex(
    r"^\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?\] "
    r"(?:\[\d+\.\w+\] )?(?:sched[:/]|backfill|_?slurm|error: |debug\d?: |_job|job_|Job|Killing |requeue"
    r"|Requeue|Resending"
    r"|cleanup|launch |update_node|node |Node|agent/|Batch|prolog|epilog|Recovered|task/|Sent "
    r"|Time limit|done with"
    r"|preempted|_sync|validate|Time|Warning|Message|[Ee]pilog|Could not launch)"
)
_CONDOR = regex(r"^\d{3} \(\d+\.\d+\.\d+\) \d")


def _scheduler_role(lines: list[str], spoken: float) -> SourceRole | None:
    if spoken <= 0.3 and any(_SLURM_RECORD.match(line) or _SLURM_TABLE.match(line) for line in lines[:4]):
        return SourceRole.SCHEDULER
    if _share(_SLURM_DAEMON, lines) > 0.5 or _share(_CONDOR, lines) > 0.1:
        return SourceRole.SCHEDULER
    return None


# --- Kubernetes ------------------------------------------------------------------------------------

_KUBE_TABLE = regex(
    r"^(?:NAMESPACE\s+)?(?:LAST SEEN|LASTSEEN)\s+|^(?:NAMESPACE\s+)?NAME\s+(?:READY|STATUS|STATE|PHASE"
    r"|COMPLETIONS)\b"
    r"|^(?:FIRSTSEEN|COUNT)\s+.*\bREASON\b|^TIME\s+(?:NAMESPACE\s+)?TYPE\s+REASON\b"
)
_KUBE_FIELD = regex(
    r"^(?:apiVersion|kind|metadata|status|spec|items|involvedObject): ?\S*$"
    r"|^\s*-? *\"?(?:apiVersion\"?: \S+$|kind\"?: \"?[A-Z][A-Za-z]+\"?,?$|(?:last|first)Timestamp\"?:"
    r"|lastTransitionTime\"?:|containerStatuses\"?:|conditions\"?:|terminationGracePeriodSeconds\"?:)"
)
_KUBE_DESCRIBED = regex(
    r"^(?:Name|Namespace|Node|Roles|Labels|Annotations|Containers|Conditions|Events|Taints):(?:\s|$)"
)
_KUBE_EVENT = regex(
    r"^(?:\S+\s+)?\d+[smhd]\S*\s+(?:\(x\d+ over \S+\)\s+)?(?:Normal|Warning)\s+[A-Z]\w+\s+\S+"
    r"|^\s+(?:Normal|Warning)\s+[A-Z]\w+\s+(?:\d+[smhd]|<unknown>)"
)


def _kubernetes_role(lines: list[str]) -> SourceRole | None:
    if any(_KUBE_TABLE.match(line) for line in lines[:3]) or any("involvedObject" in line for line in lines):
        return SourceRole.KUBERNETES
    fields = {found[0].strip() for line in lines if (found := _KUBE_FIELD.match(line))}
    described = {found[0].strip() for line in lines if (found := _KUBE_DESCRIBED.match(line))}
    if len(fields) > 1 or len(described) > 2:
        return SourceRole.KUBERNETES
    events = sum(_KUBE_EVENT.match(line) is not None for line in lines)
    return SourceRole.KUBERNETES if events and events >= 0.5 * len(lines) else None


# --- the state of a machine ------------------------------------------------------------------------

_STATE_START = regex(
    r"\| NVIDIA-SMI |^=+NVSMI LOG=+|^Unable to determine the device handle|^No devices were found"
    r"|^NVIDIA-SMI has failed|^Failed to initialize NVML|^GPU \d+: .* \(UUID: |^\s+GPU0\t"
    r"|^Filesystem +(?:Type +)?(?:Size|1K-blocks|1M-blocks|Inodes)|^ +total +used +free"
    r"|^[a-z ]+\(blocks, -c\)"
    r"|^CA '\w+'|^Infiniband device '|^hca_id:|^# Port (?:extended )?counters|^\d+: \w+: <[A-Z_,]+>"
    r"|^\S+: flags=\d+<"
    r"|^ *(?:[\da-f]+ \| )?\d\d/\d\d/\d{2,4} \| \d\d:\d\d:\d\d|^ *UID +PID|^ *PID +(?:USER|TTY)|^USER +PID"
    r"|^[●*○×] \S+\.service|^Unit \S+ could not be found|^Module +Size +Used by|^top - \d\d:\d\d|^total \d+$"
    r"|^[-dlrwxsStT]{10}[.+@]? +\d+ \S+|^\S+ on \S+ type \w+ \(|^NAME +(?:MAJ:MIN|FSTYPE)"
    r"|^Architecture: +x86|^Memory Device"
    r"|^[\da-f:.]{7,12} (?:3D|[A-Z])[\w ]+(?:\[\d+\])?: |^Linux \S+ \d+\.\d+|^Successfully ran diagnostic"
    r"|^GPU: \d{1,3}$|^NIC statistics:|^link \S+/\d+(?: |$)|^No Memory errors\.|^Memory controller events:"
    r"|^Errors for \"|^TIME +PID +UID +GID +SIG|^ +PID: \d+ \(|^No coredumps found"
    r"|^\+-+ *(?:ROCm|npu-smi|HL-SMI|TPU)|^=+ ROCm|^\| (?:npu-smi|HL-SMI)|^Health Monitor Report"
    r"|^core file size|^open files "
    r"|^procs -+memory|^\s*inet6? \S+|^Adapter \d|^Device #\d|^smartctl |^timestamp\s+: |^Sensor"
    r"|^nvidia-fabricmanager|^[\w /#.-]+\| +(?:[\d.]+|0x[\da-f]+|na) +\| "
)
# A person's note of what was run: "$ df -h", "root@n1:~# nvidia-smi", "# ipmitool sel elist".
_COMMAND = regex(r"^(?:[\w.-]+@[\w.-]+\S*)?[$#>] ?(?:sudo )?(?P<program>[a-z][\w.-]+)(?: |$)")
_STATE_COMMANDS = frozenset(
    [
        "nvidia-smi",
        "dcgmi",
        "ipmitool",
        "ibstat",
        "ibstatus",
        "ibv_devinfo",
        "perfquery",
        "mlxlink",
        "df",
        "free",
        "ls",
        "lspci",
        "lsmod",
        "lsblk",
        "mount",
        "ps",
        "top",
        "uptime",
        "ulimit",
        "ip",
        "ifconfig",
        "systemctl",
        "aws",
        "gsutil",
        "gcloud",
        "s3cmd",
        "du",
        "stat",
        "cat",
        "rocm-smi",
        "numactl",
        "lscpu",
        "ethtool",
        "hostname",
        "nvsm",
        "fi_info",
        "rdma",
        "dmidecode",
        "smartctl",
        "mdadm",
        "netstat",
        "ss",
        "lsof",
        "who",
        "last",
        "quota",
        "lfs",
        "iostat",
        "vmstat",
        "uname",
        "date",
    ]
)
_BOX = regex(r"^\s*(?:[|+]|=+$|-+$)")
_FABRIC = regex(r"^\[[A-Z][a-z]{2} \d\d \d{4} \d\d:\d\d:\d\d\] \[\w+ *\] \[tid \d+\] ")


def _fabric_role(lines: list[str]) -> SourceRole | None:
    return SourceRole.HARDWARE if _share(_FABRIC, lines) >= 0.3 else None


def _machine_role(lines: list[str]) -> SourceRole | None:
    start = lines[:4]
    if any(found["program"] in _STATE_COMMANDS for line in start[:2] if (found := _COMMAND.match(line))):
        return SourceRole.HARDWARE
    if any(_STATE_START.search(line) for line in start):
        return SourceRole.HARDWARE
    boxes = [line for line in lines if _BOX.match(line)]
    states = sum(_STATE_START.search(line) is not None for line in lines)
    if len(boxes) > 0.6 * len(lines) and any(
        "GPU" in line or "NVIDIA" in line or "Diagnostic" in line for line in boxes
    ):
        return SourceRole.HARDWARE
    return SourceRole.HARDWARE if states > 0.5 * len(lines) else None


# --- names -----------------------------------------------------------------------------------------

_NAMED = (
    (
        regex(r"(?i)(?:^|[-_./])(?:epilog|prolog|sacct|scontrol|squeue|sinfo|seff|jobcomp)(?:[-_.]|$)"),
        SourceRole.SCHEDULER,
    ),
    (regex(r"(?i)(?:^|[-_./])(?:kubectl|k8s|kubernetes)(?:[-_.]|$)"), SourceRole.KUBERNETES),
    (
        regex(r"(?i)(?:^|[-_./])(?:nvidia[-_]smi|dcgmi|dcgm|ibstat|ipmi|ipmitool)(?:[-_.]|$)"),
        SourceRole.HARDWARE,
    ),
    (regex(r"(?i)(?:^|[-_./])(?:dmesg|kern|kmsg)(?:[-_.]|$)"), SourceRole.KERNEL),
    (
        regex(r"(?i)\.(?:py|toml|ini|cfg|sh|sbatch|ipynb|md|rst|html?|cu|cpp|h)$|(?:^|/)LICEN[SC]E"),
        SourceRole.ENVIRONMENT,
    ),
)


def _named_role(file: str) -> SourceRole | None:
    return next((role for pattern, role in _NAMED if pattern.search(file)), None)
