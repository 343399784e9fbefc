"""Verdicts and triaged jobs of a fleet, made by hand."""

from __future__ import annotations

from typing import Any

from verdicts import a_body, a_verdict

from logtriage.fleet.jobs import TriagedJob
from logtriage.report.document import Checkpoint, CitedLine, CulpritsOut, Job, Verdict, iso_time, seconds_of
from logtriage.taxonomy import taxonomy

START = seconds_of("2026-03-02T00:00:00.000Z") or 0.0
ECC = "NVRM: Xid (PCI:0000:19:00): 48, pid=4711, name=python, DBE (double bit error)"


def fleet_verdict(
    number: int,
    kind: str = "none.completed",
    hosts: tuple[str, ...] = ("n1", "n2"),
    culprits: tuple[str, ...] = (),
    *,
    text: str = "",
    hours: float = 1.0,
    start_hour: float | None = None,
    ranks: int = 8,
    **body: Any,
) -> Verdict:
    """The verdict on a job that began `start_hour` hours (else `number`) after START and ran for `hours`."""
    began = START + 3_600 * (number if start_hour is None else start_hour)
    evidence = (CitedLine(file="a.log", line=1, text=text),) if text else ()
    failed = not kind.startswith("none.")
    job = Job(
        name=f"job-{number}",
        started=iso_time(began),
        ended=iso_time(began + 3_600 * hours),
        ranks=ranks,
        hosts=hosts,
        outcome="failed" if failed else "completed",
        last_checkpoint=Checkpoint(),
    )
    fields: dict[str, Any] = {
        "failure_type": kind,
        "failure_class": taxonomy()[kind].failure_class,
        "title": f"a title of {kind}",
        "culprits": CulpritsOut(hosts=culprits),
        "evidence": evidence,
        "action": taxonomy()[kind].action,
        "votes": None,
        "chain": (),
    }
    return a_verdict(id=f"v-{number:016x}", verdict=a_body(**(fields | body)), job=job, symptoms=())


def fleet_job(number: int, *args: Any, night: int = 1, name: str = "", **more: Any) -> TriagedJob:
    verdict = fleet_verdict(number, *args, **more)
    return TriagedJob(
        key=f"job-{number}",
        verdict=verdict,
        night=night,
        name=name or f"job-{number}",
        started=seconds_of(verdict.job.started),
        ended=seconds_of(verdict.job.ended),
        nodes=verdict.job.hosts,
    )
