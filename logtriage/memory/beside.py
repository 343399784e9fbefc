"""What a JSON record says of states beside its message: `"state": "torn"`, `"usable": false`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import islice

from logtriage.intake.lines import plain
from logtriage.memory.words import IDENTITIES

MOST_FIELDS = 6
MOST_RECORDS = 400  # others that are looked at for what all of a job's records say
LONGEST = 16_384  # characters of a record
_SHORT_WORD = re.compile(r"[A-Za-z]{2,16}(?:[-_][A-Za-z]{2,16}){0,2}")
# Who writes, from where and how gravely: no state of what is written about.
_OF_WRITER = re.compile(
    r"(?i)(?:lvl|level|levelname|severity|priority|log|logger|source|stream|service|component|module|program|app"
    r"|env|environment|caller|func|function|thread\w*|msg|message|text|body|time\w*|ts|type|kind|version|language)"
)


def states_beside(record: str, message: str, others: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The fields of a JSON line that hold a boolean or one short word: (name, value), in their order.

    Left out are names, what is said of the writer, and what `others`, lines of the same job with another
    message, say in the same words: that is said of the job.
    """
    found = _fields(record)
    if not found:
        return ()
    told = {
        (name, value)
        for other in islice(others, MOST_RECORDS)
        if (fields := _fields(other)) and message not in fields.values()
        for name, value in fields.items()
    }
    kept = [(name, value) for name, value in found.items() if _is_state(name, value) and value != message]
    return tuple(each for each in kept if each not in told)[:MOST_FIELDS]


def _is_state(name: str, value: str) -> bool:
    own = re.split(r"[._-]", name.lower())
    is_name = own[-1] in IDENTITIES or name.lower() in IDENTITIES or _OF_WRITER.fullmatch(name) is not None
    return not is_name and _SHORT_WORD.fullmatch(value) is not None and bool(re.fullmatch(r"[\w.-]+", name))


def _fields(text: str) -> dict[str, str]:
    text = plain(text.encode("utf-8", "surrogatepass"))
    begins = text.find("{")
    if not 0 <= begins < 200 or len(text) > LONGEST or not text.rstrip().endswith("}"):
        return {}
    try:
        record = json.loads(text[begins:])
    except (ValueError, RecursionError):
        return {}
    plainly = {True: "true", False: "false"}
    if not isinstance(record, dict):
        return {}
    return {
        name: plainly[value] if isinstance(value, bool) else value
        for name, value in record.items()
        if isinstance(value, bool | str)
    }
