"""A cited line as the document shows it: on the job's axis of time, with the rank and host that wrote it."""

from __future__ import annotations

from logtriage.localize.findings import Findings
from logtriage.model import Evidence, Line
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
        raised_at=_raised_at(line, findings),
    )


def _raised_at(line: Line, findings: Findings) -> str | None:
    """Where in the user's program the exception that a line names was raised.

    Of one that no frame of his leads to, where the next was that it brought about.
    """
    for record in findings.scene.records.get(line.file, ()):
        numbers = [each.at.number for each in record.raised]
        if line.number in numbers:
            frames = (each.user_frame for each in record.raised[numbers.index(line.number) :])
            frame = next((each for each in frames if each is not None), None)
            return f"{frame.path}:{frame.line} in {frame.function}" if frame is not None else None
    return None
