"""Two digests of one thing that differ: what a rank read is not what was stored, in any words.

A line of one process alone that holds two unequal hexadecimal numbers of a digest's length compares them. It
names the cause where all else only says that this process stopped, or that the others waited for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from logtriage.diagnose.decision import Decision
from logtriage.intake.lines import LineReader
from logtriage.localize.candidates import GENERAL_TYPES
from logtriage.localize.findings import Findings
from logtriage.localize.rarity import START_SHARE
from logtriage.model import Evidence, Line, SourceRole
from logtriage.regex import regex

CONFIDENCE = 0.68
MOST_TIMES = 3  # a rank that compares all day and finds no fault prints more of such lines
_SAYS_LITTLE = (*GENERAL_TYPES, "unknown", "collective.timeout")
# No part of a longer word (an UUID, a path), and no address of memory, where both ends of a range stand.
_DIGEST = regex(
    r"(?<![\w.-])(?:0[xX])?((?:[0-9a-f]{8}|[0-9a-f]{16}|[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})"
    r"|(?:[0-9A-F]{8}|[0-9A-F]{16}|[0-9A-F]{32}))(?![\w-]|\.\w)"
)
_ADDRESS = ("0000", "7f", "ffff")
# Other things that are held against each other by digests.
_NO_DATA = regex(
    r"(?i)checkpoint|ckpt|snapshot|weight|param|grad|optimi[sz]er|state_dict|\bcomm(?:Id|unicator)?\b|commit|\bkey\b"
)


def unequal(text: str) -> bool:
    """Whether a text holds two digests of one length that differ."""
    found = [each[1].lower() for each in _DIGEST.finditer(text[:1000])]
    told = {each for each in found if not (each.startswith(_ADDRESS) or each.isdigit() or each.isalpha())}
    return len(told) == 2 and len({len(each) for each in told}) == 1


def behind_unequal_digests(findings: Findings, decision: Decision) -> Decision:
    """The decision, with the comparison that failed as its cause where the one rank blamed printed one."""
    if decision.failure_type not in _SAYS_LITTLE or len(decision.culprits.ranks) != 1:
        return decision
    rank = decision.culprits.ranks[0]
    told = next(_told(findings, rank, {each.line.file for each in decision.evidence}), None)
    if told is None:
        return decision
    why = f"only rank {rank} says this: two digests that differ"
    others = tuple(each for each in decision.evidence if each.line != told)
    return replace(
        decision,
        failure_type="data.corrupt",
        title=f"What rank {rank} read is not what was stored: two digests differ",
        confidence=CONFIDENCE,
        evidence=(Evidence(told, why), *others)[:4],
        decided_by="localisation",
        why="; ".join(filter(None, (why, decision.why))),
    )


def _told(findings: Findings, rank: int, cited: set[str]) -> Iterator[Line]:
    """The lines of a rank by which it says that digests differ, of kinds that no other file has."""
    of_files, topology = findings.kinds.of_files, findings.topology
    for reading in findings.scene.readings:
        file = reading.source.file
        if file not in of_files or reading.source.role not in (SourceRole.WORKER, SourceRole.MERGED):
            continue
        if file not in cited and all(topology.rank(line) != rank for line in reading.lines[-200:]):
            continue
        reader = LineReader(reading.source, reading.layout)
        for key, count in of_files[file].keys.items():
            if count.count > MOST_TIMES or count.first[0] <= START_SHARE * of_files[file].lines:
                continue
            text = count.sample.decode("utf-8", "replace")
            if not unequal(text) or _NO_DATA.search(text):
                continue
            if key in findings.kinds.of_good_runs or sum(key in each.keys for each in of_files.values()) > 1:
                continue
            line = reader.read(count.sample, *count.first)
            if topology.rank(line) in (None, rank):
                yield line
