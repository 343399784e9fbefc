"""What Slurm keeps of its jobs, read from what sacct and scontrol print (releases 20 to 25)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from logtriage.sources.hostlist import node_names

SEPARATOR = "\x1f"  # sacct's own | may be in a job's name
# StdOut and StdErr came with 24.05, SubmitLine with 21.08, FailedNode with 23.02; what a release lacks is not
# asked for.
FIELDS = (
    *("JobID", "JobIDRaw", "JobName", "User", "State", "ExitCode", "DerivedExitCode", "Submit", "Start"),
    *("End", "NodeList", "AllocTRES", "Reason", "WorkDir", "SubmitLine", "FailedNode", "StdOut", "StdErr"),
)
RUNNING = frozenset(
    ("RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STAGE_OUT", "SIGNALING", "STOPPED", "RESIZING")
)
NODE_LOST = frozenset(("NODE_FAIL", "BOOT_FAIL"))
WAITING = frozenset(("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT"))


@dataclass(frozen=True, slots=True)
class Account:
    """A job, or a step of it (`step` is then batch, 0, 1…); times in seconds since 1970.

    `id` is the one that people use (4812, 4812_7, 4812+1), `raw_id` the one that %j stands for. `stdout` and
    `stderr` are as they were asked for, with their %.
    """

    id: str
    raw_id: str
    step: str
    name: str
    user: str
    state: str
    exit_code: str
    reason: str
    submitted: float | None
    started: float | None
    ended: float | None
    nodes: tuple[str, ...]
    failed_nodes: tuple[str, ...]
    gpus: int | None
    folder: str
    submit_line: str
    stdout: str
    stderr: str

    @property
    def is_running(self) -> bool:
        return self.state in RUNNING

    @property
    def is_waiting(self) -> bool:
        return self.state in WAITING

    @property
    def lost_nodes(self) -> tuple[str, ...]:
        """The nodes whose loss ended this run: those that Slurm names, else the only one."""
        if self.state not in NODE_LOST or self.step:
            return ()
        return self.failed_nodes or (self.nodes if len(self.nodes) == 1 else ())


def accounts_of_sacct(text: str) -> list[Account]:
    """The rows of `sacct --parsable2 --delimiter=SEPARATOR` with a head, times by `%s`."""
    lines = text.splitlines()
    if not lines:
        return []
    head = lines[0].split(SEPARATOR)
    if "JobID" not in head:
        return []
    rows = (line.split(SEPARATOR) for line in lines[1:])
    return [_account(dict(zip(head, row, strict=False))) for row in rows if len(row) == len(head)]


def _account(row: Mapping[str, str]) -> Account:
    job_id, _, step = row["JobID"].partition(".")
    exit_code = row.get("ExitCode", "")
    if exit_code == "0:0" and row.get("DerivedExitCode"):
        exit_code = row["DerivedExitCode"]  # the worst of the steps, where the script itself ended well
    return Account(
        id=job_id,
        raw_id=row.get("JobIDRaw", "").partition(".")[0] or job_id,
        step=step,
        name=row.get("JobName", ""),
        user=row.get("User", ""),
        state=row.get("State", ""),
        exit_code=exit_code,
        reason=_known(row.get("Reason", "")),
        submitted=_time(row.get("Submit", "")),
        started=_time(row.get("Start", "")),
        ended=_time(row.get("End", "")),
        nodes=node_names(row.get("NodeList", "")),
        failed_nodes=node_names(row.get("FailedNode", "")),
        gpus=gpu_count(row.get("AllocTRES", "")),
        folder=row.get("WorkDir", ""),
        submit_line=row.get("SubmitLine", ""),
        stdout=_known(row.get("StdOut", "")),
        stderr=_known(row.get("StdErr", "")),
    )


_LINE_FIELD = {
    name: re.compile(rf"^\s+{name}=(.*)$", re.M) for name in ("WorkDir", "StdOut", "StdErr", "NodeList")
}
_WORD_FIELD = {
    name: re.compile(rf"(?:^|\s){name}=(\S*)", re.M)
    for name in (
        *("JobId", "ArrayJobId", "ArrayTaskId", "HetJobId", "HetJobOffset", "UserId", "JobState", "Reason"),
        *("ExitCode", "FailedNode", "SubmitTime", "StartTime", "EndTime", "TRES", "AllocTRES"),
    )
}
_NAME = re.compile(r"^JobId=.*?\bJobName=(.*)$", re.M)


def accounts_of_scontrol(text: str) -> list[Account]:
    """The jobs of `scontrol show job`, times by `%s`."""
    return [_remembered(part) for part in re.split(r"\n\s*\n", text) if part.lstrip().startswith("JobId=")]


def _remembered(text: str) -> Account:
    words = {name: found[1] for name, field in _WORD_FIELD.items() if (found := field.search(text))}
    lines = {name: found[1] for name, field in _LINE_FIELD.items() if (found := field.search(text))}
    job_id = raw_id = words["JobId"]
    if "ArrayJobId" in words:
        job_id = f"{words['ArrayJobId']}_{words.get('ArrayTaskId', '')}"
    elif "HetJobId" in words:
        job_id = f"{words['HetJobId']}+{words.get('HetJobOffset', '0')}"
    state = words.get("JobState", "")
    named = _NAME.search(text)
    begun = (
        state not in WAITING
    )  # scontrol foretells the start of a job that waits, and the end of one that runs
    return Account(
        id=job_id,
        raw_id=raw_id,
        step="",
        name=named[1] if named else "",
        user=words.get("UserId", "").partition("(")[0],
        state=state,
        exit_code=words.get("ExitCode", ""),
        reason=_known(words.get("Reason", "")),
        submitted=_time(words.get("SubmitTime", "")),
        started=_time(words.get("StartTime", "")) if begun else None,
        ended=_time(words.get("EndTime", "")) if begun and state not in RUNNING else None,
        nodes=node_names(lines.get("NodeList", "")),
        failed_nodes=node_names(words.get("FailedNode", "")),
        gpus=gpu_count(words.get("AllocTRES") or words.get("TRES", "")),
        folder=lines.get("WorkDir", ""),
        submit_line="",
        stdout=_known(lines.get("StdOut", "")),
        stderr=_known(lines.get("StdErr", "")),
    )


def _known(text: str) -> str:
    return "" if text in ("(null)", "None", "N/A") else text


def _time(text: str) -> float | None:
    return float(text) if text.isdecimal() and len(text) < 12 and int(text) > 0 else None


def gpu_count(tres: str) -> int | None:
    """GPUs of `billing=8,gres/gpu=8,gres/gpu:a100=8`: the total, or else the sum of the kinds."""
    counts = dict(re.findall(r"(?:^|,)gres/(gpu(?::[^=,]*)?)=(\d{1,9})", tres))
    if "gpu" in counts:
        return int(counts["gpu"])
    return sum(map(int, counts.values())) if counts else None
