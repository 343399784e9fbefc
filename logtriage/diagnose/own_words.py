"""What one rank alone says, where all else tells only that it stopped or that the others waited for it.

A line of one process alone that holds two unequal hexadecimal numbers of a digest's length compares what was
read with what was stored, as does one that counts a file twice and comes to two sizes; and one that holds NaN
as a value tells of a number that was lost, whatever words stand around them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from logtriage.diagnose.decision import Decision
from logtriage.intake.lines import LineReader
from logtriage.localize.findings import Findings
from logtriage.localize.rarity import START_SHARE
from logtriage.model import Evidence, Line, SourceRole
from logtriage.regex import regex

CONFIDENCE = 0.68
MOST_TIMES = 3  # a rank that compares all day and finds no fault prints more of such lines
NEAR_SECONDS = 60.0  # before an exception, within which a NaN has to do with it
_RAISED = ("code.runtime", "code.value", "code.assertion", "code.os_error", "unknown")
_SAYS_LITTLE = (*_RAISED, "collective.timeout")
# No part of a longer word (an UUID, a path), and no address of memory.
_DIGEST = regex(
    r"(?<![\w.-])(?:0[xX])?((?:[0-9a-f]{8}|[0-9a-f]{16}|[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})"
    r"|(?:[0-9A-F]{8}|[0-9A-F]{16}|[0-9A-F]{32}))(?![\w-]|\.\w)"
)
_ADDRESS = ("0000", "7f", "ffff")
# Other things that are held against each other by digests.
_NO_DATA = regex(
    r"(?i)checkpoint|ckpt|snapshot|weight|param|grad|optimi[sz]er|state_dict|\bcomm(?:Id|unicator)?\b|commit|\bkey\b"
)
_NAN = regex(r"(?:[=: ,(]|^)-?(?:nan|NaN|NAN)(?=[\s,;:.)\]}]|$)")
_NO_NAN = regex(r"(?i)\b(?:0|no|without|not|skip\w*|ignor\w*|filled|dropped) nans?\b|nans?\W{1,3}0\b")


def unequal(text: str) -> bool:
    """Whether a text holds two digests of one length that differ."""
    found = [each[1].lower() for each in _DIGEST.finditer(text[:1000])]
    told = {each for each in found if not (each.startswith(_ADDRESS) or each.isdigit() or each.isalpha())}
    return len(told) == 2 and len({len(each) for each in told}) == 1


# A file with its folder or scheme; how much is in it, twice, and a word that sets one against
# the other.
_FILE = regex(r"(?:\w{2,8}:/)?/[\w./=@-]{2,200}\w|\b[\w-]{2,100}(?:/[\w.=-]{1,100}){1,8}\.\w{1,10}\b")
_AMOUNT = regex(r"(?<![\w./:,-])(\d{1,3}(?:,\d{3})+|\d{3,15})(?![\w./:-]*\d)(?! ?(?:[mun]?s|sec\w*|%)(?!\w))")
_SETS_AGAINST = regex(
    r"(?i)\b(?:bytes?|rows?|records?|samples?|tokens?|documents?|docs?|entries|items|lines|pages|sequences|length"
    r"|size|count)\b[^\n]{0,80}?\b(?:says?|said|expects?|expected|instead|but|where|while|whereas|should|against|vs"
    r"|versus|promises?|promised|lists?|listed|claims?|claimed|states?|stated|wants?|wanted|not)\b"
    r"|\b(?:says?|said|expects?|expected|should|promises?|promised|lists?|listed|claims?|claimed|states?|stated"
    r"|wants?|wanted)\b[^\n]{0,80}?\b(?:bytes?|rows?|records?|samples?|tokens?|documents?|docs?|entries|items"
    r"|lines|pages|sequences)\b"
)


def _may_count(text: str) -> bool:
    return _FILE.search(text[:1000]) is not None and _SETS_AGAINST.search(text[:1000]) is not None


def counted_twice(message: str) -> bool:
    """Whether a message says of a file that as much is in it, and that another amount should be."""
    told = message[:1000]
    if (file := _FILE.search(told)) is None or not _may_count(told):
        return False
    amounts = {each[1] for each in _AMOUNT.finditer(told[: file.start()] + " " + told[file.end() :])}
    return len(amounts) == 2


def behind_own_words(findings: Findings, decision: Decision) -> Decision:
    """The decision, with what the one rank blamed said alone as its cause, where that is one."""
    if decision.failure_type not in _SAYS_LITTLE or len(decision.culprits.ranks) != 1:
        return decision
    rank = decision.culprits.ranks[0]
    raised = decision.failure_type in _RAISED
    times = [each.line.time for each in decision.evidence if each.line.time is not None]
    for line in _said_alone(findings, rank, {each.line.file for each in decision.evidence}):
        if unequal(line.text) and not _NO_DATA.search(line.text):
            title = f"What rank {rank} read is not what was stored: two digests differ"
            return _caused(decision, "data.corrupt", title, line, f"only rank {rank} says so")
        if counted_twice(line.message) and not _NO_DATA.search(line.text):
            title = f"A file that rank {rank} read holds another amount than it should"
            return _caused(decision, "data.corrupt", title, line, f"only rank {rank} says so")
        near = line.time is not None and bool(times) and abs(min(times) - line.time) <= NEAR_SECONDS
        if raised and near and _NAN.search(line.text[:1000]) and not _NO_NAN.search(line.text[:1000]):
            title = f"A value became NaN on rank {rank}"
            return _caused(decision, "numerics.nan", title, line, f"only rank {rank} says so")
    return decision


def _caused(decision: Decision, failure_type: str, title: str, told: Line, why: str) -> Decision:
    others = tuple(each for each in decision.evidence if each.line != told)
    return replace(
        decision,
        failure_type=failure_type,
        title=title,
        confidence=CONFIDENCE,
        evidence=(Evidence(told, why), *others)[:4],
        decided_by="localisation",
        why="; ".join(filter(None, (why, decision.why))),
    )


def _said_alone(findings: Findings, rank: int, cited: set[str]) -> Iterator[Line]:
    """The first lines of the rare kinds of a rank that may tell of a cause, and that no other file has."""
    of_files, topology = findings.kinds.of_files, findings.topology
    for reading in findings.scene.readings:
        file = reading.source.file
        if file not in of_files or reading.source.role not in (SourceRole.WORKER, SourceRole.MERGED):
            continue
        if file not in cited and all(topology.rank(line) != rank for line in reading.lines):
            continue
        reader = LineReader(reading.source, reading.layout)
        for key, count in of_files[file].keys.items():
            if count.count > MOST_TIMES or count.first[0] <= START_SHARE * of_files[file].lines:
                continue
            text = count.sample.decode("utf-8", "replace")
            if not (unequal(text) or _may_count(text) or _NAN.search(text[:1000])):
                continue
            if key in findings.kinds.of_good_runs or sum(key in each.keys for each in of_files.values()) > 1:
                continue
            line = reader.read(count.sample, *count.first)
            if topology.rank(line) in (None, rank):
                yield line
