"""Lines of a talk with a language model: prompts, answers and results of tools that stand in a log.

Jobs that train on chats log their samples, and whoever wrote those may have meant them for the reader of the
log. Such a line tells what somebody said, never what happened, whatever errors it names.
"""

from __future__ import annotations

import unicodedata

from logtriage.regex import regex

# Forms that programs do not use when they tell what they did: the beginnings of published prompt injections
# (OWASP LLM01), roles and results of tools as chat APIs write them, and the keys of a verdict. A lone control
# token is none of them: a tokenizer may miss it. Every quantifier is bounded: a line costs linear time.
_DIALOGUE = regex(
    r"""(?ix)
    \b(?:ignore|disregard|forget)\ (?:all\ |everything\ |any\ |of\ |the\ |these\ |your\ |my\ ){0,4}
        (?:above|previous|prior|preceding|earlier)\b
    | \b(?:note|message|instructions?|attention|memo|hint)\ (?:to|for)\ (?:the\ |any\ |an?\ )?
        (?:ais?|llms?|language\ models?|assistants?)\b
    | ["'](?:failure_type|culprit_ranks|culprit_hosts)\\?["']\ ?:
    | ["']role\\?["']\ ?:\ ?\\?["'](?:system|assistant|developer|tool|function)\\?["']
    | </?(?:tool|function)_(?:response|result)s?> | ["']tool_call_id\\?["']\ ?:
    | <\|(?:im_start|start_header_id)\|>\ ?(?:system|assistant|user|tool)\b
    """
)


# One of these is in whatever the pattern finds; looking for them costs little.
_WORDS = (
    "ignore", "disregard", "forget", "llm", "language model", "assistant", " ai", "failure_type", "culprit_",
    "role", "tool_", "function_", "im_start", "start_header_id",
)  # fmt: skip


def is_dialogue(text: str) -> bool:
    """Whether a line is part of a talk with a model."""
    shown = visible(text)
    lowered = shown.lower()
    return any(word in lowered for word in _WORDS) and _DIALOGUE.search(shown) is not None


def visible(text: str) -> str:
    """The head of a line as a reader sees it: without hidden characters, look-alikes in their plain form."""
    head = text[:4096]
    if head.isascii():
        return head
    return unicodedata.normalize("NFKC", "".join(each for each in head if not _is_hidden(each)))


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) == "Cf"  # zero width, or a turn of the direction
