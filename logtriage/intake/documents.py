"""What lies beside logs and tells of failures that did not happen here: documentation, programs, data, notes.

Who points at the folder of a project means the logs in it. A page on troubleshooting quotes what may go
wrong, a data set holds what others wrote of theirs, and a person's notes tell of other days as well.
"""

from __future__ import annotations

import json

from logtriage.intake.roles import speaking_share
from logtriage.regex import regex

MOST_SPEECH = 0.35  # of a page's lines, that stand in logs: more, and somebody pasted one
MOST_RECORDS = 20
LEAST_RECORDS = 3

_PAGE = regex(
    r"(?i)\.(?:md|mdx|markdown|rst|adoc|tex)$"
    r"|(?:^|/)(?:readme|changelog|changes|news|contributing|troubleshooting|runbook|howto|how-to|faq|install(?:ation)?"
    r"|licen[cs]e|authors)(?:\.txt)?$"
)
_PROGRAM = regex(
    r"(?i)\.(?:py|pyi|pyx|sh|bash|zsh|sbatch|slurm|pbs|lsf|c|cc|cpp|cxx|cu|cuh|h|hpp|rs|go|java|js|ts|css|r|jl|lua|pl"
    r"|ya?ml|toml|cfg|ini|conf|j2|jinja2?|tmpl|patch|diff|lock|sql|proto|mk|cmake|dockerfile)$"
    r"|(?:^|/)(?:makefile|dockerfile[\w.-]*)$"
)
_NOTE = regex(
    r"(?i)(?:^|[/_. -])(?:notes?|todos?|memos?|remarks?|ideas|thoughts|diary|scratch(?:pad)?)"
    r"(?:[_. -][\w.-]{0,40})?$"
)
# Keys of what models are trained on and judged by; a log's record says when, how bad, or how far.
_OF_DATA = frozenset({
    "text", "prompt", "response", "messages", "conversations", "conversation", "dialogue", "instruction",
    "output", "question", "answer", "answers", "query", "passage", "document", "chosen", "rejected",
    "solution", "completion", "problem", "tokens", "input_ids", "labels", "summary", "caption",
    "captions", "image", "images", "audio", "title", "context", "sentence", "source", "target",
    "translation", "input", "content",
})  # fmt: skip
_OF_LOG = regex(
    r"(?i)^@?(?:t|ts|time\w*|date\w*|.*(?:_|[a-z])at|timestamp\w*|level\w*|lvl|severity\w*|logger|step|global_step"
    r"|iter(?:ation)?|epoch|loss|rank|local_rank|host\w*|pid|stream|msg|message|log|event|exc_info|exception|error)$"
)


def is_document(file: str, head: bytes) -> bool:
    """Whether a text, of which `head` are the first bytes, is none of a job's logs if there are any."""
    if _PROGRAM.search(file):
        return True
    if _PAGE.search(file):
        return speaking_share(head) <= MOST_SPEECH
    return head[:1] == b"{" and _is_data(head)


def is_note(file: str) -> bool:
    """Whether somebody's notes are in a file, by its name."""
    return _NOTE.search(file) is not None


def _is_data(head: bytes) -> bool:
    records = []
    for line in head.split(b"\n")[: MOST_RECORDS + 1][:-1]:
        try:
            record = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            return False
        if isinstance(record, dict):
            records.append(record)
        elif record is not None:
            return False
    return len(records) >= LEAST_RECORDS and all(
        _OF_DATA & {key.lower() for key in record} and not any(map(_OF_LOG.match, record))
        for record in records
    )
