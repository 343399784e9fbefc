"""Jobs as Slurm knows them: `sacct` for what it accounted for, `scontrol` for what it still remembers."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr

from logtriage.sources.accounts import (
    FIELDS,
    SEPARATOR,
    Account,
    accounts_of_sacct,
    accounts_of_scontrol,
)
from logtriage.sources.commands import NoAnswer, answer_of
from logtriage.sources.job import KnownJob, SourceFault
from logtriage.sources.likeness import fit, order
from logtriage.sources.outputs import outputs
from logtriage.sources.roots import is_path

_JOB_ID = re.compile(r"\d{1,12}(?:[_+]\d{1,9})?")
_WORD = re.compile(r"[\w.@-]{1,128}", re.ASCII)  # of a name or user that may stand in a command
_MEND = "run logtriage where Slurm's client tools are, or remove the source"
_DAYS_KNOWN = 7  # whose names a misspelt question may mean
_LONGEST_BACK = 20 * 365 * 86_400  # seconds; Slurm refuses a start before 1970
_KEPT = (  # for the text that a triage reads
    *("JobID", "JobName", "User", "Partition", "NNodes", "NodeList", "State", "ExitCode", "DerivedExitCode"),
    *("Elapsed", "Timelimit", "Submit", "Start", "End", "ReqMem", "MaxRSS", "AllocTRES", "Reason"),
)


def _zone(name: str) -> str:
    try:
        ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        raise ValueError(f"there is no time zone {name!r}") from None
    return name


def _root(path: str) -> str:
    path = os.path.expanduser(path)  # noqa: PTH111
    if not path.startswith("/") or not path.strip("/"):
        raise ValueError("a root is an absolute path of a folder below /")
    return path


class Slurm(BaseModel):
    """The source `kind = "slurm"`. Times are read as seconds; the text for a triage has local ones."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["slurm"] = "slurm"
    name: str = Field(default="slurm", pattern=r"^[A-Za-z0-9][\w.-]*$")
    roots: tuple[Annotated[str, AfterValidator(_root)], ...] = Field(
        min_length=1, description="folders below which a job's output may be read, whatever it asked for"
    )
    cluster: str = Field(default="", pattern=r"^[\w.-]*$", description="where several share one database")
    zone: Annotated[str, AfterValidator(_zone)] = Field(default="", description="of the cluster's clocks")
    days: int = Field(default=30, ge=1, le=3650, description="how far back names and users are looked up")
    seconds: float = Field(default=20, gt=0, le=600, description="for one answer of a tool")
    _fields: tuple[str, ...] = PrivateAttr(default=())

    def find(self, asked: str, limit: int) -> list[KnownJob]:
        """Jobs by id (of an array or heterogeneous job all parts), name or user, newest first."""
        if is_path(asked):
            return []
        try:
            accounts = self._accounted(asked)
        except NoAnswer as fault:
            if not _is_unaccounted(fault):
                raise
            accounts = self._remembered(asked)
        groups = [(self._facts(group), group) for group in _by_job(accounts)]
        found = [each for each in groups if fit(each[0], asked) is not None]
        found.sort(key=lambda each: order(each[0], asked))
        return [self._with_outputs(job, [*group, *self._told_now(job)]) for job, group in found[:limit]]

    def known(self) -> list[KnownJob]:
        """The jobs of the last days by their names, without steps and files."""
        options = ("--allusers", "--allocations", f"--starttime=now-{min(self.days, _DAYS_KNOWN)}days")
        return [self._facts(group) for group in _by_job(self._sacct(*options))]

    def ended(self, since: float) -> Iterator[KnownJob]:
        """Jobs that ended at `since` or later, each as its last run ended."""
        back = min(max(0, int(time.time() - since)) + 1, _LONGEST_BACK)
        for group in _by_job(self._sacct("--allusers", f"--starttime=now-{back}seconds")):
            job = self._facts(group)
            if job.ended is not None and job.ended >= since:
                yield self._with_outputs(job, group)

    def collect(self, job: KnownJob, folder: Path) -> tuple[str, ...]:
        """Its output files, and as text what Slurm says of it now."""
        if not _JOB_ID.fullmatch(job.id):
            raise SourceFault(f"{job.id} is no id of one Slurm job")
        kept: list[str] = []
        accounts: list[Account] = []
        with suppress(NoAnswer):
            accounts = self._sacct(f"--jobs={job.id}")
            kept.append(self._sacct_text(job.id, accounts, folder))
        remembered = self._show(job.id)
        accounts += [each for each in remembered if not accounts or each.stdout]
        if remembered:
            place = folder / f"scontrol-show-job-{job.id}.txt"
            place.write_text(self._scontrol("show", "job", job.id, plain=True), encoding="utf-8")
            kept.append(str(place))
        paths, outside = outputs([each for each in accounts if each.id == job.id], self.roots)
        if not paths and not kept:
            raise SourceFault(_no_output(outside) or f"Slurm knows no job {job.id} any more")
        return (*paths, *kept)

    def faults(self) -> list[str]:
        """What keeps it from answering, one line each."""
        said = [f"{root}: no such folder" for root in self.roots if not Path(root).is_dir()]
        for ask in (lambda: self._sacct("--starttime=now-1seconds"), lambda: self._scontrol("ping")):
            try:
                ask()
            except SourceFault as fault:
                if not _is_unaccounted(fault):
                    said.append(str(fault))
        return said

    # --- the tools ---------------------------------------------------------------------------------

    def _accounted(self, asked: str) -> list[Account]:
        if _JOB_ID.fullmatch(asked):
            return self._sacct(f"--jobs={asked}")
        if not _WORD.fullmatch(asked):
            return []
        back = f"--starttime=now-{self.days}days"
        named = self._sacct("--allusers", back, f"--name={asked}")
        try:
            return [*named, *self._sacct(back, f"--user={asked}")]
        except NoAnswer as fault:
            if "invalid user" in str(fault).lower():
                return named
            raise

    def _remembered(self, asked: str) -> list[Account]:
        """Without accounting only what slurmctld still holds (MinJobAge: five minutes, mostly)."""
        if _JOB_ID.fullmatch(asked):
            return self._show(asked)
        return accounts_of_scontrol(self._scontrol("show", "job"))

    def _show(self, job_id: str) -> list[Account]:
        try:
            return accounts_of_scontrol(self._scontrol("show", "job", job_id))
        except NoAnswer:  # it has forgotten the job
            return []

    def _sacct(self, *options: str) -> list[Account]:
        if not self._fields:
            told = set(self._run("sacct", ("--helpformat",)).split())
            self._fields = tuple(field for field in FIELDS if field in told)
        form = (
            "--parsable2",
            "--duplicates",
            f"--delimiter={SEPARATOR}",
            f"--format={','.join(self._fields)}",
        )
        return accounts_of_sacct(self._run("sacct", (*form, *self._of_cluster(), *options)))

    def _sacct_text(self, job_id: str, accounts: Sequence[Account], folder: Path) -> str:
        options = ("--parsable2", "--duplicates", f"--format={','.join(_KEPT)}", f"--jobs={job_id}")
        place = folder / "sacct.txt"
        text = self._run("sacct", (*options, *self._of_cluster()), plain=True)
        if own := [each for each in accounts if each.id == job_id and not each.step]:
            run = _run(own)
            # In scontrol's words: among sacct's columns a node's name is not known for what it is.
            text += "".join(
                f"JobId={run.id} JobState={run.state} FailedNode={each}\n" for each in run.lost_nodes
            )
        place.write_text(text, encoding="utf-8")
        return str(place)

    def _scontrol(self, *words: str, plain: bool = False) -> str:
        return self._run("scontrol", (*self._of_cluster(), *words), plain=plain)

    def _of_cluster(self) -> tuple[str, ...]:
        return (f"--clusters={self.cluster}",) if self.cluster else ()

    def _run(self, tool: str, options: Sequence[str], *, plain: bool = False) -> str:
        """`plain`: times for people, in the cluster's zone, instead of seconds since 1970."""
        environment = {"SLURM_TIME_FORMAT": "standard" if plain else "%s"}
        if self.zone:
            environment["TZ"] = self.zone
        return answer_of([tool, *options], self.seconds, environment, _MEND)

    # --- one job -----------------------------------------------------------------------------------

    def _facts(self, accounts: Sequence[Account]) -> KnownJob:
        """All that the accounts tell, without a look at files."""
        run = _run(accounts)
        note = ""
        if run.is_waiting:
            note = "waits in the queue" + (f" ({run.reason})" if run.reason else "")
        return KnownJob(
            run.id,
            self.name,
            name=run.name,
            user=run.user,
            state=run.state,
            is_running=run.is_running,
            started=run.started,
            ended=None if run.is_running or run.is_waiting else run.ended,
            exit_code=_exit_code(run, accounts),
            nodes=run.nodes,
            lost_nodes=tuple(dict.fromkeys(node for each in accounts for node in each.lost_nodes)),
            gpus=run.gpus,
            note=note,
        )

    def _with_outputs(self, job: KnownJob, accounts: Sequence[Account]) -> KnownJob:
        paths, outside = outputs(accounts, self.roots)
        return replace(job, paths=tuple(paths), note=job.note or ("" if paths else _no_output(outside)))

    def _told_now(self, job: KnownJob) -> list[Account]:
        """What slurmctld says of a job whose output files sacct does not tell (before 24.05)."""
        if "StdOut" in self._fields or job.note:
            return []
        return [each for each in self._show(job.id) if each.id == job.id and each.stdout]


def _is_unaccounted(fault: SourceFault) -> bool:
    """A cluster that keeps no accounts: what slurmctld remembers is all there is."""
    return "accounting storage is disabled" in str(fault).lower()


def _no_output(outside: Sequence[str]) -> str:
    if not outside:
        return ""
    return f"its output lies in {outside[0]}, which is below no root of this source"


def _by_job(accounts: Sequence[Account]) -> list[list[Account]]:
    groups: dict[str, list[Account]] = {}
    for account in accounts:
        groups.setdefault(account.id, []).append(account)
    return [group for group in groups.values() if any(not each.step for each in group)]


def _exit_code(run: Account, accounts: Sequence[Account]) -> str:
    """That of the job, or of a step of it that failed in a script that ended well.

    DerivedExitCode would be the worst of the steps, but is 0:0 where the last one ended with the job.
    """
    steps = (each.exit_code for each in accounts if each.step not in ("", "batch", "extern"))
    failed = next((code for code in steps if code not in ("", "0:0")), run.exit_code)
    return failed if run.exit_code == "0:0" else run.exit_code


def _run(accounts: Sequence[Account]) -> Account:
    """The last run of a job that was requeued; steps of `sacct` show the user of none."""
    runs = [each for each in accounts if not each.step]
    last = max(runs, key=lambda each: each.submitted or 0.0)
    return last if last.nodes or len(runs) == 1 else replace(last, nodes=runs[0].nodes)
