"""Lines of a log that talk to whoever reads it: they are no evidence, and a model is not shown them."""

from __future__ import annotations

import re
from functools import cache

from logtriage.localize.dialogue import is_dialogue, visible
from logtriage.redaction.values import in_latin_letters
from logtriage.taxonomy import taxonomy

LEFT_OUT = "[left out: this line talks to its reader]"

# Wordings of published prompt injections (OWASP LLM01) that a program's own message may have too: rules may
# see something in such a line, but it is not shown. Every quantifier is bounded: a line costs linear time.
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
    | \b(?:root[ _-]?cause|cause\ of\ (?:the\ )?(?:failure|death))\b.{0,16}\ (?:is|was|must\ be)\b
    | \b(?:correct|true|right|expected|final|only)\ (?:label|answer|verdict|diagnosis|classification)\b
    | \b(?:verdict|diagnosis|classification)\ (?:override|is|must|should)\b
    | \b(?:who|what)ever\ (?:reads|analy[sz]es|triages|diagnoses)\b | \btriage[ _-]?bot\b
    | \bi\ (?:have\ |will\ |must\ |now\ ){1,2}(?:conclude|answer|output|respond|report|classify)
    | \b(?:to|for)\ (?:the\ |any\ |a\ )?(?:large\ )?(?:language\ )?
        (?:models?|llms?|ais?|assistants?|agents?)\b.{0,12}\b(?:reading|reads?|analy[sz]\w*|looking|processing|parsing)\b
    | \bend\ of\ (?:the\ )?(?:evidence|prompt|context|instructions?|untrusted|user\ input)\b
    | \bnow\ (?:say|answer|reply|respond|output|conclude|classify)\b
    | (?:^|\ )(?:assistant|system|human|user):\ (?:i|you|the|please|ok|sure)\b
    | \b(?:ignorier|vergiss|missacht|ignorez|oubliez|ignora|ignore[ms]|olvida|desconsidere|игнориру|забудь)
        \w*\ .{0,40}\b(?:alle|obige|bisher|vorher|anweisung|tout|préc|instruc|anterior|todo|tudo|istruz|
        предыд|выше|инструкц|вс[её])
    | (?:忽略|无视|忘记|忘掉).{0,12}(?:以上|上述|之前|前面|所有|指令|内容)
    | (?:以上|上記|これまで|前).{0,12}(?:無視|忘れ)
    | <\|?/?(?:im_start|im_end|system|assistant|endoftext|eot_id|start_header_id)\|?>
    | \[/?INST\] | <</?SYS>> | \#\#\#\ ?(?:instruction|system|response)
    | \b(?:system|developer)\ ?(?:prompt|message)\b
    """
)


def is_addressed(text: str, *, may_name_types: bool = False) -> bool:
    """Whether a line speaks to its reader, or belongs to such a talk, instead of telling what a program did.

    So does one that names a failure type by its id: programs do not know them, but our own texts may.
    """
    shown = visible(text)
    if is_dialogue(shown) or _ADDRESSED.search(shown) is not None:
        return True
    if not shown.isascii() and _ADDRESSED.search(in_latin_letters(shown)) is not None:
        return True
    return not may_name_types and _type_ids().search(shown) is not None


@cache
def _type_ids() -> re.Pattern[str]:
    ids = sorted(re.escape(name) for name in taxonomy().types if "." in name)
    return re.compile(rf"(?i)(?<![\w./-])(?:{'|'.join(ids)})(?![\w/(-]|\.\w)")
