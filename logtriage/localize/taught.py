"""What a learned rule's line did to the job that taught it: what ended that one ends no job that goes on."""

from __future__ import annotations

from logtriage.localize.candidates import Candidate
from logtriage.model import Line

DONE_SECONDS = 120.0  # a rank that says so long after another's end that it is done was not stopped by it


def is_taught_as_the_end(candidate: Candidate) -> bool:
    """Whether its rule was learned from a job that did not go on after the line."""
    rule = candidate.rule
    return rule is not None and rule.provenance is not None and not rule.outlived


def was_finished(candidate: Candidate, done: Line | None) -> bool:
    """Whether the job said well after such a line that it is done."""
    if done is None or not is_taught_as_the_end(candidate):
        return False
    if done.file == candidate.line.file:
        return done.number > candidate.line.number
    if done.time is None or candidate.time is None:
        return False
    return done.time > candidate.time + DONE_SECONDS
