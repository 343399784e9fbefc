"""Who parted from all others before the end, where no line says who it was: by counts of lines alone."""

from __future__ import annotations

from dataclasses import replace

from logtriage.diagnose.course import onset
from logtriage.diagnose.decision import Decision
from logtriage.intake.lines import LineReader
from logtriage.localize.findings import Findings
from logtriage.localize.odd_writers import OddWriter, odd_writers
from logtriage.mining.kinds import key_of
from logtriage.model import Culprits, Evidence, Line
from logtriage.report.document import iso_time

# Of these somebody is waited for, who need not have said anything.
OF_SOMEBODY = ("hang.", "slow.", "collective.timeout", "collective.remote_error", "unknown")
FARTHER = 2.0  # so many times as far from all others as the next one: else none is the odd one
MOST_CITED = 4


def with_odd_one(findings: Findings, decision: Decision) -> Decision:
    """With the rank or the host that wrote more, or less, than all others since before the failure began."""
    if not decision.failure_type.startswith(OF_SOMEBODY) or decision.culprits != Culprits():
        return decision
    # Behind the last step all wait, and write what waiting makes them write.
    ends = (onset(findings, decision)[1], findings.progress.last_time)
    odd = _odd_one(findings, min((end for end in ends if end is not None), default=None))
    if odd is None:
        return decision
    rank, host = odd.rank, odd.host
    if rank is not None:
        host = findings.topology.machine(findings.topology.host_of_rank.get(rank))
    ranks = () if rank is None else (rank,)
    hosts = () if host is None else (host,)
    who = f"rank {rank}" if rank is not None else host
    how = "more" if odd.is_more else "fewer"
    said = f"since {iso_time(odd.since)} {who} wrote many times {how} lines of one kind than any other"
    line = _line(findings, odd)
    cited = {each.line for each in decision.evidence}
    own = (
        ()
        if line is None or line in cited
        else (Evidence(line, f"{who} alone wrote so many times {how} of these"),)
    )
    return replace(
        decision,
        culprits=Culprits(ranks=ranks, hosts=hosts),
        evidence=(*decision.evidence[: MOST_CITED - 1], *own),
        why="; ".join(filter(None, (decision.why, said))),
    )


def _odd_one(findings: Findings, until: float | None) -> OddWriter | None:
    odd = odd_writers(findings.scene.readings, findings.kinds.of_files, findings.topology, until)
    if not odd:
        return None
    first = odd[0]
    # A rank and its own host are one and the same.
    host_of_rank, machine = findings.topology.host_of_rank, findings.topology.machine
    hosts = {first.host, machine(host_of_rank.get(-1 if first.rank is None else first.rank))} - {None}
    others = [
        each
        for each in odd[1:]
        if (each.host or machine(host_of_rank.get(-1 if each.rank is None else each.rank))) not in hosts
    ]
    return first if all(first.distance >= FARTHER * each.distance for each in others) else None


def _line(findings: Findings, odd: OddWriter) -> Line | None:
    """A line of that kind by that writer: the first one since then that was read, or the first one of all."""
    topology = findings.topology
    found: list[Line] = []
    for reading in findings.scene.readings:
        rank = topology.rank_of_file.get(reading.source.file, reading.source.rank)
        summary = findings.kinds.of_files.get(reading.source.file)
        if rank is None or summary is None or odd.kinds[0] not in summary.keys:
            continue
        if rank != odd.rank and topology.machine(topology.host_of_rank.get(rank)) != odd.host:
            continue
        own = [each for each in reading.lines if each.time is not None and each.time >= odd.since]
        same = next((each for each in own if key_of(each.text) == odd.kinds[0]), None)
        if same is None:
            kind = summary.keys[odd.kinds[0]]
            same = LineReader(reading.source, reading.layout).read(kind.sample, *kind.first)
        found.append(same)
    return min(found, key=lambda line: (line.time or 0.0, line.file)) if found else None
