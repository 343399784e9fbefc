"""Lines of a talk with a language model: prompts, answers and results of tools that stand in a log.

Jobs that train on chats log their samples, and whoever wrote those may have meant them for the reader of the
log. Such a line tells what somebody said, never what happened, whatever errors it names.
"""

from __future__ import annotations

import unicodedata

from ahocorasick_rs import AhoCorasick

from logtriage.redaction.values import in_latin_letters
from logtriage.regex import regex

# Forms that programs do not use when they tell what they did: the beginnings of published prompt injections
# (OWASP LLM01), judgements on the failure itself (headings of launchers have no `is`), roles and results of
# tools as chat APIs write them, and the keys of a verdict. A lone control token is none of them: a tokenizer
# may miss it. Every quantifier is bounded: a line costs linear time.
_DIALOGUE = regex(
    r"""(?ix)
    \b(?:ignore|disregard|forget)\ (?:all\ |everything\ |any\ |of\ |the\ |these\ |your\ |my\ ){0,4}
        (?:above|previous|prior|preceding|earlier)\b
    | \b(?:notes?|message|instructions?|attention|memo|hint)\ (?:to|for)
        \ (?:the\ |any\ |an?\ |whoever\ |our\ )?
        (?:\w{1,12}\ )?(?:ais?|llms?|language\ models?|assistants?|bots?|readers?|analy[sz]ers?|analysts?
        |triag\w{1,4}|graders?|judges?|reviewers?|on-?call)\b
    | \b(?:correct|true|right|final|real|actual|proper|expected|official)\ (?:root\ )?
        (?:diagnosis|verdict|failure\ type|(?:root\ )?cause)\b
        \ ?(?:\(|:|=|-|is\b|was\b|should\b|must\b|here\b|of\b)
    | \b(?:correct|right|final)\ (?:answer|label|classification|conclusion)\b
        \ ?(?:[:=-]|is\b|was\b|should\b|must\b)
    | \b(?:causes?|reason|explanation|culprit|verdict|diagnosis)
        \ (?:of|for|behind|why|in|here|on|this|that|the)\b[^:]{0,50}
        \b(?:failures?|crash|death|job|incident|outage|abort|run|died|failed|crashed|ended|stopped)\b
        [^:]{0,24}\b(?:is|was|must\ be|should\ be)\b
    | \b(?:verdict|diagnosis)\ (?:of|for|on)\ (?:this|the)\b
    | \b(?:attention|dear|hey|hello)\ (?:the\ )?(?:\w{1,12}\ )?
        (?:ais?|llms?|assistants?|bots?|agents?|readers?)\b
    | \bi\ (?:hereby\ )?(?:confirm|conclude|certify|declare)\ that\b
    | \broot[ ]cause\b.{0,16}\b(?:is|was|must\ be|should\ be)\b
    | \b(?:diagnose|classify|label|conclude|triage|treat|count)\ (?:this|the|it|that)\ 
        (?:(?:failure|crash|job|log|run|error|incident)\ (?:as|is|was)
        |(?:as|is|was)\ (?:an?\ )?(?:cuda|gpu|failure))\b
    | \byou\ (?:must|should|have\ to|need\ to|are\ to)\ (?:only\ |always\ )?
        (?:answer|conclude|classify|diagnose|respond|reply)\b
    | \bplease\ (?:conclude|classify|diagnose)\b
    | \b(?:whoever|anyone|anybody|if\ you|those\ who)\ (?:are\ |is\ |who\ |will\ )?
        (?:read|analy[sz]|triag|diagnos)\w{0,4}\ (?:this|these|the|it)\b
    | ["'](?:failure_type|culprit_ranks|culprit_hosts)\\?["']\ ?:
    | ["']role\\?["']\ ?:\ ?\\?["'](?:system|assistant|developer|tool|function)\\?["']
    | </?(?:tool|function)_(?:response|result)s?> | ["']tool_call_id\\?["']\ ?:
    | <\|(?:im_start|start_header_id)\|>\ ?(?:system|assistant|user|tool)\b
    """
)


# One of these is in whatever the pattern finds; looking for them costs little.
_WORDS = AhoCorasick([
    "ignore", "disregard", "forget", "failure_type", "culprit", "role", "tool_", "function_", "im_start",
    "start_header_id", "note", "message", "instruction", "attention", "memo", "hint", "diagnos", "verdict",
    "dear", "hey", "hello", "confirm", "certify", "declare",
    "failure type", "cause", "answer", "label", "classif", "conclu", "reason", "explanation", "triage",
    "treat", "count", "you ", "please", "whoever", "any", "those",
])  # fmt: skip


def is_dialogue(text: str) -> bool:
    """Whether a line is part of a talk with a model."""
    shown = visible(text)
    if _is_dialogue(shown):
        return True
    # Letters of another alphabet that look like Latin ones are read as these, wherever a word has both.
    return not shown.isascii() and (plain := in_latin_letters(shown)) != shown and _is_dialogue(plain)


def _is_dialogue(shown: str) -> bool:
    return bool(_WORDS.find_matches_as_indexes(shown.lower())) and _DIALOGUE.search(shown) is not None


def visible(text: str) -> str:
    """The head of a line as a reader sees it: without hidden characters, look-alikes in their plain form."""
    head = text[:4096]
    if head.isascii():
        return head
    return unicodedata.normalize("NFKC", "".join(each for each in head if not _is_hidden(each)))


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) == "Cf"  # zero width, or a turn of the direction
