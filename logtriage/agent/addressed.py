"""Lines of a log that talk to whoever reads it: they are no evidence, and a model is not shown them."""

from __future__ import annotations

import re

LEFT_OUT = "[left out: this line talks to its reader]"

# Wordings of published prompt injections (OWASP LLM01) and the control tokens of common chat templates.
# Every quantifier is bounded, so that a line costs linear time.
_ADDRESSED = re.compile(
    r"""(?ix)
    \b(?:ignore|disregard|forget|override|bypass)\b.{0,40}
        \b(?:above|previous|prior|preceding|earlier|instructions?|prompts?|rules?|evidence|everything)\b
    | \b(?:new|real|actual|updated|following|these|your)\ (?:instructions?|orders)\b
    | \byou\ (?:are|must|should|will|can)\ (?:now\ |be\ |always\ |not\ |only\ )?
        (?:an?\ |the\ )?(?:\w{1,16}\ )?
        (?:assistant|ai|model|llm|agent|answer|reply|respond|conclude|classify|vote|triage)\b
    | \b(?:answer|reply|respond|conclude|report|output)\ (?:only\ |exactly\ |always\ )?(?:with|that|as)\b
        .{0,60}\b(?:cause|culprit|verdict|type|json|user|failure)\b
    | \b(?:note|message|instructions?|attention|memo|hint)\ (?:to|for)\ (?:the\ )?(?:\w{1,12}\ )?
        (?:ai|assistants?|models?|llms?|agents?|triage|reader|analy[sz]er)\b
    | \b(?:dear|hey|hello|hi)\ (?:ai|assistant|model|llm|agent|gpt|claude)\b
    | \bas\ an\ (?:ai|llm|assistant)\b
    | \b(?:failure_type|culprit_ranks|culprit_hosts|citations)\b
    | \b(?:true|real|root|actual|only)\ ?cause\b.{0,30}\b(?:the\ user|user\ error|cancell?ed\ by|none)\b
    | \bthe\ cause\ is\ the\ user\b
    | <\|?/?(?:im_start|im_end|system|assistant|endoftext|eot_id|start_header_id)\|?>
    | \[/?INST\] | <</?SYS>> | \#\#\#\ ?(?:instruction|system|response)
    | \b(?:system|developer)\ ?(?:prompt|message)\b
    """
)


def is_addressed(text: str) -> bool:
    """Whether a line speaks to its reader instead of telling what a program did."""
    return _ADDRESSED.search(text[:4096]) is not None
