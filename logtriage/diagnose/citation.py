"""A cited line as the document shows it: on the job's axis of time, with the rank and host that wrote it."""

from __future__ import annotations

from logtriage.localize.findings import Findings
from logtriage.model import Evidence
from logtriage.report.document import CitedLine, iso_time


def cite(evidence: Evidence, findings: Findings) -> CitedLine:
    line = evidence.line
    return CitedLine(
        file=line.file,
        line=line.number,
        offset=line.offset,
        text=line.text,
        time=iso_time(findings.time(line)),
        rank=findings.topology.rank(line),
        host=findings.topology.host(line),
        attempt=line.attempt,
        rule=evidence.rule,
        why=evidence.why,
    )
