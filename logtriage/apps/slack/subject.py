"""Which job a question is about: the words of it that can be a job's id, name, user or path."""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST = 4  # words that are looked up for one question
LONGEST = 300  # characters of one
LONGEST_TEXT = 2_000  # characters of a question that are looked at


@dataclass(frozen=True, slots=True)
class Subject:
    """A word that may name a job; `is_sure` where nothing else can be meant by it."""

    word: str
    is_sure: bool


_WORD = r"[\w][\w.@:+~-]*"
_QUOTED = re.compile(r"[`\"“”]([^`\"“”]{1,300})[`\"“”]")
_PATH = re.compile(
    r"(?:(?<=\s)|^)((?:[a-z][a-z0-9+.-]{1,12}://|~|\.{0,2}/|[\w.-]{1,80}/)[^\s`\"“”<>|]{1,1000})"
)
_AFTER = re.compile(
    r"(?i)\b(?:jobs?|runs?|job[ _-]?id|training|experiment)\b[\s:#=]*"
    rf"(?:(?:id|number|no|named|called|by|of|from)\b[\s:#=.]*)?({_WORD})"
)
_OWNER = re.compile(
    rf"(?i)\b({_WORD}?)['’]s\s+(?:\w+\s+){{0,2}}(?:job|run|training)|\b(?:user|owner)\s+@?({_WORD})"
)
_BY = re.compile(rf"(?i)\b(?:last|latest|newest|recent)\s+(?:job|run)\s+(?:of|by|from)\s+@?({_WORD})")
_VERDICT = re.compile(r"\bv-[0-9a-f]{4,32}\b")
# A number after these counts something else than jobs.
_COUNTED = re.compile(
    r"(?i)\b(?:ranks?|gpus?|nodes?|hosts?|steps?|lines?|epochs?|iterations?|xids?|attempts?|workers?|last|top"
    r"|port|exit(?: code)?|signal|version|first|next|other)[ #]*(\d[\w.]*)"
)
_NUMBERED = re.compile(r"(?<![\w./-])#?([\w.+-]*\d[\w.+:-]*)(?![\w%])")
_PLAIN = re.compile(r"[A-Za-z]\w{2,60}")
_NAMED = re.compile(r"(?<![\w./-])([A-Za-z][\w]*(?:[-_.][\w]+)+)")
_NO_NAME = re.compile(
    r"(?i)re-?(?:run|start|submit|queue|try)\w*|follow-?up|e\.g|i\.e|\w+n't|out-of-\w+|step-by-step|log-lines?|so-far"
    r"|\d+(?:st|nd|rd|th)?[.:]?|\d+(?:\.\d+)?%?|\d+(?:h|hours?|m|min|s|d|days?)"
)
# After `job` or `run`, these say something of it and do not name it.
_NO_JOB = re.compile(
    r"(?i)(?:is|was|did|does|do|has|had|have|die|died|dead|fail\w*|crash\w*|end\w*|stop\w*|hang\w*|hung|stuck|slow|"
    r"as|if|but|than|because|also|too|only|really|during|without|in|on|at|the|that|this|it|a|an|and|or|to|for|with|before|again|now|still|so|be|been|not|out|over|off|"
    r"running|finish\w*|restart\w*|called|named|id|number|by|of|from|logs?|last|yesterday|today|tonight|please|"
    r"go|went|get|got|i|we|you|there|here|when|why|what|which|where|how|my|our|your|die|kill\w*|break|broke|"
    r"start\w*|begin|began|exit\w*|time\w*|all|any|size|large|big|like|same|yet|though|then|after|until|while|"
    r"jobs?|runs?|training|experiment|who|can|could|should|would|will|tell|me|us|show|see|look|give|find|check|"
    r"about|happen\w*|went|wrong|cause\w*|reason|error\w*|problem|issue|hey|hi|hello|please|thanks?|thank|ok|okay|"
    r"yes|no|just|know|think|say|lines?|nodes?|hosts?|ranks?|gpus?|much|many|long|far|lost|sure|else|were|are|am|"
    r"abort\w*|oom\w*|deadlock\w*|fr[eo]+z\w*|quit\w*|disappear\w*|vanish\w*|wait\w*|lose|lost|throw|threw|rais\w*|"
    r"his|her|their|its|from|into|ignore|above|anything|something|everything|nothing|help|do|triage|explain|"
    r"sum\w*|slack|bot|lunch|prod\w*|cluster|machine\w*|server\w*|output|message|traceback|evidence|proof|action)"
)


def subjects(text: str, *, is_first: bool = False) -> list[Subject]:
    """The words of a question that may name its job, the surest first; at most four.

    In the first question of a conversation (`is_first`) any word that says nothing else may be a name.
    """
    text = text[:LONGEST_TEXT]
    found: dict[str, bool] = {}

    def add(word: str | None, is_sure: bool) -> None:
        named = (word or "").strip().strip("?!,;").rstrip(".:").removeprefix("#")
        if named and len(named) <= LONGEST and len(named) > (0 if is_sure else 1):
            found.setdefault(named, is_sure)

    for match in _VERDICT.finditer(text):
        add(match[0], True)
    for match in _PATH.finditer(text):
        add(match[1], True)
    for match in _QUOTED.finditer(text):
        add(match[1], True)
    rest = _COUNTED.sub(" ", _PATH.sub(" ", text))
    for pattern in (_AFTER, _OWNER, _BY):
        for match in pattern.finditer(rest):
            word = next((each for each in match.groups() if each), "")
            if not _NO_JOB.fullmatch(word.rstrip(".:")):
                # A plain word after `job` may be a verb that is not in the list.
                add(word, pattern is not _AFTER or not word.isalpha())
    for match in _NUMBERED.finditer(rest):
        number = match[1].rstrip(".:")
        if not _NO_NAME.fullmatch(number) or (number.isdigit() and len(number) > 2):
            add(number, False)
    for match in _NAMED.finditer(rest):
        if not _NO_NAME.fullmatch(match[1]):
            add(match[1], False)
    for match in _PLAIN.finditer(rest) if is_first and not found else ():
        if not _NO_JOB.fullmatch(match[0]):
            add(match[0], False)
    return [Subject(word, is_sure) for word, is_sure in found.items()][:MOST]
