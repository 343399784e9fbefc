"""What a question about a job asks for: told by its words, without a model."""

from __future__ import annotations

import difflib
import re
from enum import StrEnum
from functools import cache

LONGEST_QUESTION = 2_000  # characters that are looked at
MOST_KINDS = 3  # of one question


class Kind(StrEnum):
    """What can be asked; the value is how a person may ask it."""

    CAUSE = "why did it die?"
    PLACE = "which node, which rank?"
    CODE = "which line of the program?"
    LINES = "show me the lines"
    ACTION = "what do I do?"
    RESTART = "should I restart?"
    BEFORE = "did this happen before?"
    CERTAINTY = "how sure are you?"
    ALTERNATIVES = "what else could it be?"
    SUPPOSITION = "was it the network?"
    TIME = "when did it begin?"
    LOSS = "how much was lost?"
    PROGRESS = "how far did it come?"
    FOLLOWED = "what followed?"
    ATTEMPTS = "how often was it restarted?"
    ONE_RANK = "what about rank 3?"
    JOB = "how large was the job?"
    SKIPPED = "what could you not read?"
    COLLECT = "what should I collect next time?"
    DECIDED = "how do you know?"


_THING = (
    r"(?:nodes?|hosts?|machines?|servers?|box|boxes|ranks?|gpus?|workers?|process(?:es)?|devices?|cards?)"
)
_PROGRAM = r"(?:the |my |our |this )?(?:source )?(?:code|program|script|source)"
_DAMAGED = r"(?:broken|corrupt\w*|damaged|bad|truncated|unreadable)"
_OUR = r"(?:i|we|you|one|they|he|she|someone)"

# Lower case, apostrophes gone. A kind is asked where one of its patterns is found.
_PATTERNS: dict[Kind, tuple[str, ...]] = {
    Kind.SKIPPED: (
        r"\bunread\w*|\b(?:not|cannot|couldnt|cant|didnt) (?:you )?(?:be )?read\b|\bskipped\b|\bleft out\b",
        r"\b(?:all|every|which|what) (?:of )?(?:the )?(?:files?|logs)\b"
        rf"(?!.{{0,40}}\b{_DAMAGED}\b)|\bincomplete\b|\beverything\b",
        r"\bwhere\b.{0,15}\b(?:logs?|files?)\b|\bpaths?\b|\bnot (?:be )?read\b",
        r"\bhow many (?:files|logs|lines) (?:did|have|were)\b",
        r"\byou (?:look at|read|see|miss)\b.{0,15}\b(?:logs?|files?|all)\b",
    ),
    Kind.PLACE: (
        rf"\b(?:which|what|whose|on|bad|faulty|broken|guilty|failing|suspect|name the) {_THING}\b",
        rf"\b{_THING} (?:\w+ )?first\b|\bfirst {_THING}\b|\b(?:which|what) (?:one|of them)\b",
        rf"^(?:the |and )*{_THING}$|\bwhere\b(?!.{{0,15}}\b(?:logs?|files?)\b)|\bculprits?\b|\bto blame\b",
        r"\bwho(?:s| is| was| did| caused| broke| started| died| failed| crashed)\b(?! (?:you|sure))",
    ),
    Kind.CODE: (
        rf"\b(?:line|place|part|spot|file|function) (?:of|in) {_PROGRAM}\b",
        rf"\bwhere\b.{{0,25}}\b(?:in|of) {_PROGRAM}\b",
        r"\b(?:which|what) (?:function|module|source file|code)\b|\bsource line\b|\bcode line\b",
    ),
    Kind.LINES: (
        rf"\b(?:which|what) (?:files?|shards?|samples?|records?)\b.{{0,40}}\b{_DAMAGED}\b",
        r"\b(?:show|see|give|paste|quote|cite|print|get|post|read)\b.{0,30}"
        r"\b(?:lines?|evidence|proofs?|logs?|errors?|messages?|tracebacks?|output|snippets?|excerpts?)\b",
        r"\b(?:log )?lines\b|\bwhich line\b|\bevidence\b|\bproofs?\b|\btracebacks?\b|\bstack ?traces?\b",
        r"\bprove\b|\bshow me\b|\b(?:log|relevant) (?:excerpts?|snippets?|parts?|output)\b|\bexcerpts?\b",
        r"\berror (?:messages?|text|lines?)\b",
        r"\bwhat (?:does|do|did) (?:it|the \w+) (?:say|print|log|write)\b",
        r"\b(?:what|which) (?:is|was|are|were) the (?:exact )?(?:errors?|exceptions?|messages?)\b",
    ),
    Kind.BEFORE: (
        r"\b(?:happen\w*|seen?|had|have|saw|hit|occur\w*|fail\w*|died?|crash\w*|this|it|that|same)\b.{0,25}"
        r"\b(?:before|earlier|previously|already|in the past|last (?:time|week|month|night)|recently)\b"
        r"(?! (?:the|it|that|this|rank|step|ending|dying|crashing)\b)",
        r"\b(?:recur\w*|first time|similar|history|other jobs?|how (?:often|common))\b",
        r"\bknown (?:issue|problem|bug)\b|\bprecedents?\b|\bfirst (?:occurrence|one)\b|\bhappen often\b",
        r"\bhow (?:often|many times) (?:did|does|has|have|do)\b.{0,12}\b(?:happen\w*|occur\w*|seen?|had)\b",
        r"\b(?:is|was) (?:this|it|that) (?:a )?(?:new|known|common|usual|regular|frequent)\b|\brepeat\w*\b",
        r"\bever (?:happen\w*|seen?|had)\b|\bsame (?:error|problem|failure|issue|thing)\b",
        r"\banything like (?:this|it)\b",
    ),
    Kind.RESTART: (
        r"\b(?:re ?start|re ?submit|re ?run|re ?queue|re ?launch|retry|resume|reuse)(?:ing|ted)?\b(?! count)",
        r"\b(?:start|try|run|launch|submit|kick|send)\b.{0,12}\b(?:again|off|anew)\b|\bhappen again\b",
        r"\bfail again\b",
        r"\b(?:exclude|drain|cordon|avoid|without) (?:\w+ ){0,2}(?:nodes?|hosts?|machines?)\b",
        r"\bsame nodes?\b",
        r"\bsafe to (?:\w+ )?(?:continue|go on)\b|\bcontinue\b|\bgo on\b",
    ),
    Kind.ACTION: (
        rf"\bwhat (?:should|do|can|shall|must|would|could) {_OUR} (?:\w+ )?(?:do|try|change|fix|check)\b",
        r"\bwhat (?:should|must|can) (?:be )?(?:done|changed|fixed|change|happen)\b",
        r"\bwhats? (?:is )?next\b",
        r"\bhow (?:do|can|should|could) \w+ (?:get|make|keep|bring|stop)\b",
        r"\b(?:fix(?:es|ed|ing)?|mend|solve|solution|remedy|mitigat\w+|repair|work ?around|resolve|cure)\b",
        r"\b(?:next steps?|advice|advise|recommend\w*|suggest\w*|prevent\w*)\b|\bwhat (?:now|next)\b",
        r"\bdo (?:about|against|now|next)\b|\bwhat to do\b",
        r"\bhow (?:do|can|should) \w+ (?:avoid|get past|get around)\b",
    ),
    Kind.CERTAINTY: (
        r"\b(?:sure|certain|confident|confidence|certainty|reliable|probab\w+|trust\w*|really|definite\w*)\b",
        r"\b(?:are|could|might|may) you (?:be )?(?:wrong|right|mistaken)\b|\bhow likely\b",
        r"\b(?:is|could|might|may) (?:that|this|it|the verdict) (?:be )?(?:right|true|wrong|correct)\b",
    ),
    Kind.ALTERNATIVES: (
        r"\bwhat else\b|\b(?:anything|something) else\b|\balternatives?\b|\bruled? out\b",
        r"\b(?:second|next) (?:most likely|best|guess)\b|\brunner ?up\b|\brivals?\b",
        r"\bother (?:possible )?(?:causes?|explanations?|reasons?|options?|possib\w+|candidates?|theor\w+)\b",
        r"\b(?:could|can|might|may) it (?:also |still )?(?:be|have been)\b",
    ),
    Kind.TIME: (
        r"\bwhen\b(?! (?:i|we|you|it is|does it)|.{0,25}\bcheck ?point)|\bwhat time\b|\bwhich time\b",
        r"\bsince when\b|\btime ?stamps?\b",
        r"\bhow long ago\b|\btime of (?:death|the)\b|\bwhat (?:day|date|hour)\b|\bwhen exactly\b",
    ),
    Kind.LOSS: (
        r"\b(?:lost|lose|losing|wast\w+|cost|costs|damage)\b|\b(?:are|is) gone\b|\bgpu ?hours?\b",
        r"\bcheck ?points?\b|\bsaved?\b(?! me)",
        r"\bhow much (?:work|time|progress|compute|training|money)\b",
    ),
    Kind.PROGRESS: (
        r"\b(?:steps?|iterations?|epochs?|how far|progress|run ?time|duration)\b(?! (?:should|next))",
        r"\bhow long\b(?! ago)|\bhow many (?:steps|iterations|hours|minutes)\b",
    ),
    Kind.FOLLOWED: (
        r"\bwhat (?:happened|followed|came|else happened|happened before)\b.{0,20}"
        r"\b(?:after\w*|then|next|before|in order|else)\b|\bfollow(?:s|ed|ing)?\b(?! up)",
        r"\b(?:consequences?|symptoms?|cascade\w*|chain|sequence|timeline|victims?)\b|\bstory\b",
        r"\b(?:side|knock.on) effects?\b",
        r"\b(?:the )?other ranks\b|\b(?:order|course) of events\b|\bafter (?:that|this|it)\b|\bthen what\b",
        r"\bstep by step\b|\baffected\b|\bwhat happened first\b",
    ),
    Kind.ATTEMPTS: (
        r"\battempts?\b",
        r"\bhow (?:often|many times)\b.{0,30}\b(?:start|restart|tr(?:y|ied)|run|ran|relaunch)\w*\b",
        r"\b(?:was|were|did|has|been|get|got) (?:it |they |the job )?(?:been )?restarted\b|\brestarts\b",
        r"\bretries\b|\bhow many (?:tr(?:y|ies)|restarts|starts|runs)\b|\bdid it (?:\w+ )?restart\b",
    ),
    Kind.JOB: (
        r"\bhow (?:many|big|large)\b(?! (?:steps|times|iterations|hours|minutes|restarts|attempts))",
        r"\bworld ?size\b|\bframeworks?\b|\bsoftware\b|\bwhat (?:kind|sort) of job\b|\bwhich (?:job|run)\b",
        r"\bjob size\b",
        r"\bwhat (?:job|run) (?:is|was)\b|\bwhich job\b|\bversions?\b",
        r"\bnumber of (?:nodes|hosts|ranks|gpus)\b",
        r"\b(?:megatron|deep ?speed|lightning|accelerate|fsdp|jax|ray|nemo|hugging ?face)\b",
    ),
    Kind.COLLECT: (
        r"\b(?:collect|gather|next time|more (?:logs|info\w*|data|details)|turn on|enable)\b",
        r"(?<!you )\bfind out\b|\bdig deeper\b",
        r"\bneed (?:more|from me|to know)\b",
        r"\bwhat (?:else )?(?:do|would|would it|will) you (?:else )?need\b|\bdebug(?:ging)?\b",
        r"\binvestigat\w+\b",
        r"\bmissing (?:logs?|info\w*)\b|\b(?:info\w*|logs?|data|what) (?:is|are|was|were) missing\b",
        r"\b(?:logs?|info\w*|data|what) would (?:help|be useful)\b",
    ),
    Kind.DECIDED: (
        r"\bhow (?:do|did|can|would) you (?:know|decide|find|tell|come|conclude|figure|work|arrive|get to)\b",
        r"\b(?:model|llm|ai|votes?)\b",
        r"\bwho (?:says|said|decided)\b|\bdecided\b|\bwhich rules?\b|\bbased on what\b|\bwhat makes you\b",
        r"\bwhy (?:do|did|would) you (?:think|say|believe|claim)\b|\bdecision\b|\bmethod\b",
    ),
    Kind.CAUSE: (
        r"\bwhy\b(?! (?:do|did|are|would) you)|\bcause[sd]?\b|\breasons?\b|\broot\b|\bhow come\b",
        r"\bwhat (?:exactly |actually |really )?"
        r"(?:happened|went|broke|broken|fail\w*|kill\w*|crash\w*|stopped|ended|made)\b"
        r"(?!.{0,12}\b(?:after|then|next|first)\b)",
        r"\bwhat (?:is|was) (?:it$|this|that|wrong|going on|up|broken)\b",
        r"\bwhat (?:is|was) the (?:fault|matter|failure|cause|trouble)\b",
        r"\bwhat (?:took|brought) (?:\w+ ){1,3}down\b|\bwhats (?:up|wrong|going on|the (?:matter|trouble))\b",
        r"\b(?:explain|explanation|summar\w+|verdict|diagnos\w+|triage|problem|issue|tl ?dr|wtf)\b",
        r"\bhow did (?:it|this|that|the job) (?:die|fail|crash|end|go)\b",
        r"\bwhat (?:type|kind) of (?:failure|error|problem)\b",
        r"\b(?:did|has|is|was) (?:it|the job|this|that) (?:\w+ )?"
        r"(?:finish\w*|complet\w+|succe\w+|done|ok|okay|fine|healthy|fail\w*|running|alive|dead|die|died)\b",
        r"\b(?:did|has|is|was) (?:it|the job|this|that) (?:\w+ )?(?:crash\w*|stuck|hung)\b",
    ),
}  # fmt: skip
# What a guess is about, and the failure types (or their beginning, or a class) that it names.
_SUPPOSED: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"\bhost (?:memory|ram)\b|\bram\b|\boom killer\b", ("host.out_of_memory",)),
    (r"\b(?:oom|out of memory|memory)\b", ("cuda.out_of_memory", "host.out_of_memory", "host.shared_memory")),
    (r"\bhardware\b", ("gpu.", "host.node_lost", "network.infiniband")),
    (r"\b(?:infrastructure|cluster|infra)\b", ("infrastructure",)),
    (r"\b(?:gpus?|xid|ecc|nvlink)\b", ("gpu.",)),
    (r"\b(?:cuda|driver)\b", ("cuda.", "gpu.unavailable")),
    (r"\b(?:infiniband|ib|nic|roce|network\w*|link|dns|connection|firewall)\b", ("network.",)),
    (r"\b(?:nccl|gloo|collectives?|all ?reduce|communication)\b", ("collective.",)),
    (r"\bdisks?\b|\bspace\b", ("host.disk_full", "storage.")),
    (r"\b(?:storage|file ?system|nfs|lustre|gpfs|s3|bucket)\b", ("storage.",)),
    (r"\bcheck ?points?\b", ("checkpoint.",)),
    (r"\b(?:data|dataset|shards?|data ?loader|tokenizer)\b", ("data.",)),
    (r"\b(?:nan|nans|inf|diverg\w+|loss spike|numeric\w*)\b", ("numerics.",)),
    (r"\b(?:preempt\w+|evict\w+|spot)\b", ("scheduler.preempted",)),
    (r"\b(?:cancel\w*|scancel|somebody|someone|admin\w*)\b", ("scheduler.cancelled", "process.killed")),
    (r"\b(?:time ?limit|wall ?time)\b", ("scheduler.time_limit",)),
    (r"\b(?:slurm|scheduler|kubernetes|queue)\b", ("scheduler.",)),
    (r"\b(?:hang|hung|stuck|dead ?lock\w*)\b", ("hang.", "collective.timeout", "collective.desync")),
    (r"\b(?:slow|straggl\w+)\b", ("slow.",)),
    (r"\b(?:permissions?|auth\w*|credentials?|token|access)\b", ("auth.", "code.permission")),
    (r"\b(?:config\w*|settings?|arguments?|flags?|hyper ?parameters?)\b", ("code.config", "code.argument")),
    (r"\b(?:segfault|segmentation|sigsegv|native)\b", ("process.native_crash",)),
    (r"\b(?:node|host|machine|server)\b", ("host.node_lost", "gpu.", "host.")),
    (r"\b(?:code|bugs?|script|program|my fault|our fault|user error|python)\b", ("script",)),
)  # fmt: skip
_GUESS = re.compile(
    r"^(?:\W|so|but|and|ok|hm+|then|do you think)*"
    r"(?:(?:is|was|isnt|wasnt|could|can|might|may|couldnt|did|does|are)\b"
    r" (?:it|this|that|there|they|the (?:cause|reason|problem|issue|error|job|\w+ be))\b"
    r"|(?:is|was) (?:our|my)\b|did (?:someone|somebody|the \w+)\b|did we (?:run|hit)\b|(?:its|it is)\b)"
)
_NO_GUESS = re.compile(r"\b(?:before|restart\w*|which|what|finish\w*|complet\w+|there an?|last|all|any)\b")
_RANK = re.compile(r"\brank(?: number| no)?[ #]*(\d{1,7})\b")
_ASIDE = re.compile(r"['’`´]")
_SIGNS = re.compile(r"[^a-z0-9#./:_-]+")


def asked(question: str) -> tuple[Kind, ...]:
    """The kinds of a question, at most three; empty where its words fit none."""
    text = _normal(question)
    found = [kind for kind in _PATTERNS if any(pattern.search(text) for pattern in _compiled()[kind])]
    if supposed(question):
        found = [Kind.SUPPOSITION, *(kind for kind in found if kind in (Kind.CERTAINTY, Kind.RESTART))]
    elif rank_asked(question) is not None and not set(found) - _OF_A_RANK:
        found = [Kind.ONE_RANK]
    if Kind.CAUSE in found and len(found) > 1:
        # `why`, `what was` are in many a question about something else, and go first where both are asked.
        found.remove(Kind.CAUSE)
        if re.search(r"\bwhy\b.{0,60}\b(?:and|,)|\b(?:and|also) why\b|\bwhat happened (?:and|,)", text):
            found.insert(0, Kind.CAUSE)
    return tuple(_without_shadows(found)[:MOST_KINDS])


_OF_A_RANK = {Kind.PLACE, Kind.CAUSE, Kind.JOB, Kind.FOLLOWED}  # asked of one rank, they are about it
# The first makes the second a misunderstanding: `how sure are you` holds `are`, not a guess.
_SHADOWS: tuple[tuple[Kind, Kind], ...] = (
    (Kind.ALTERNATIVES, Kind.PLACE),
    (Kind.COLLECT, Kind.ALTERNATIVES),
    (Kind.COLLECT, Kind.SKIPPED),
    (Kind.SKIPPED, Kind.JOB),
    (Kind.LINES, Kind.PLACE),
    (Kind.CODE, Kind.LINES),
    (Kind.CODE, Kind.PLACE),
    (Kind.CODE, Kind.SKIPPED),
    (Kind.COLLECT, Kind.LINES),
    (Kind.LINES, Kind.DECIDED),
    (Kind.DECIDED, Kind.CERTAINTY),
    (Kind.ATTEMPTS, Kind.RESTART),
    (Kind.ATTEMPTS, Kind.BEFORE),
    (Kind.COLLECT, Kind.ACTION),
    (Kind.TIME, Kind.PLACE),
    (Kind.LOSS, Kind.PROGRESS),
    (Kind.LOSS, Kind.LINES),
    (Kind.FOLLOWED, Kind.PLACE),
    (Kind.FOLLOWED, Kind.BEFORE),
    (Kind.BEFORE, Kind.LINES),
    (Kind.SKIPPED, Kind.LINES),
    (Kind.SKIPPED, Kind.PLACE),
    (Kind.JOB, Kind.PLACE),
)


def _without_shadows(found: list[Kind]) -> list[Kind]:
    hidden = {second for first, second in _SHADOWS if first in found and second in found}
    return [kind for kind in found if kind not in hidden]


def supposed(question: str) -> tuple[str, ...]:
    """The failure types, beginnings of types or classes that a guess names: `network.`; else empty."""
    text = _normal(question)
    if not _GUESS.search(text) or _NO_GUESS.search(text):
        return ()
    return next((types for pattern, types in _SUPPOSED if re.search(pattern, text)), ())


def rank_asked(question: str) -> int | None:
    """The rank that a question names: 3 for `what about rank 3?`."""
    match = _RANK.search(_normal(question))
    return int(match[1]) if match else None


@cache
def _compiled() -> dict[Kind, tuple[re.Pattern[str], ...]]:
    return {kind: tuple(map(re.compile, patterns)) for kind, patterns in _PATTERNS.items()}


def _normal(question: str) -> str:
    """Lower case, without signs, with the typing errors in words that matter mended."""
    text = _ASIDE.sub("", question[:LONGEST_QUESTION].lower())
    words = [word.strip("./:-") for word in _SIGNS.sub(" ", text).split()]
    return " ".join(_mended(word) for word in words[:200] if word)


@cache
def _vocabulary() -> tuple[frozenset[str], tuple[str, ...]]:
    """The words that matter, and the beginnings of such words."""
    patterns = [each for patterns in _PATTERNS.values() for each in patterns]
    patterns += [each for each, _ in _SUPPOSED]
    text = " ".join(patterns)
    told = f"{text.replace(' ?', '')} {text.replace(' ?', ' ')}".replace("?", "").replace(r"\b", " ")
    stems = re.findall(r"([a-z]{4,})\\w", told)
    return frozenset(re.findall(r"[a-z]{4,}", told)) - set(stems) | _PLAIN, tuple(stems)


# Words that look like one that matters, and are none.
_PLAIN = frozenset(
    ("about", "have", "hear", "here", "right", "some", "still", "their", "there", "these", "think", "those")
)


def _mended(word: str) -> str:
    known, stems = _vocabulary()
    if not word.isalpha() or not 4 <= len(word) <= 16 or word in known or word.startswith(stems):
        return word
    swapped = (word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1))
    if (found := next((each for each in swapped if each in known), None)) is not None:
        return found
    return next(iter(difflib.get_close_matches(word, known, 1, 0.8 if len(word) > 4 else 0.86)), word)
