"""The verdict document, schema `logtriage.verdict/1`: what scripts, dashboards and people rely on.

Every model is frozen and refuses unknown keys. Times are ISO 8601 in UTC with milliseconds, or null; a clock
that names no zone is written as if it were UTC (`job.zone` tells). :func:`iso_time` makes one from the
seconds since 1970 that the rest of the product counts in. Lists keep the order that they are given in:
most telling first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from logtriage.regex import regex

SCHEMA = "logtriage.verdict/1"
MOST_INDICATIONS = 10_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SURROGATE = regex("[\ud800-\udfff]")


def iso_time(seconds: float | None) -> str | None:
    """`2026-01-31T08:15:30.250Z` for seconds since 1970 in UTC; None for None and outside the calendar."""
    if seconds is None:
        return None
    try:
        moment = _EPOCH + timedelta(milliseconds=round(seconds * 1000))
    except (OverflowError, ValueError):
        return None
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def seconds_of(time: str | None) -> float | None:
    """The inverse of :func:`iso_time`, to the millisecond. Raises ValueError for what is no ISO 8601 time."""
    return None if time is None else (datetime.fromisoformat(time) - _EPOCH) / timedelta(seconds=1)


def _without_surrogates(value: Any) -> Any:
    # File names with broken bytes and JSON escapes such as "\ud83d" bring lone surrogates, which no
    # UTF-8 file can hold.
    return _SURROGATE.sub("\ufffd", value) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_without_surrogates)]
Time = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")]
LineNumber = Annotated[int, Field(ge=1, description="counts from 1 over \\n in the decompressed file")]
Count = Annotated[int, Field(ge=0)]
Confidence = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
FailureClass = Annotated[
    Text,
    Field(
        validation_alias=AliasChoices("class", "failure_class"),
        serialization_alias="class",
        description="infrastructure | framework | script | operations",
    ),
]


class Part(BaseModel):
    """What all parts of the document have in common: frozen, and no key that the contract lacks."""

    # Parts that a verdict does not have are never built.
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)


class Tool(Part):
    name: Text = "logtriage"
    version: Text
    rules: Text = Field(description="version of the rule bank")
    taxonomy: Text = Field(description="version of the taxonomy of failure types")


class ClockOffsetOut(Part):
    file: Text
    seconds: float = Field(description="added to the file's own clock to reach the job's axis")
    reason: Text = ""


class Checkpoint(Part):
    step: int | None = None
    time: Time | None = None
    file: Text | None = Field(default=None, description="the log that mentions it")
    line: LineNumber | None = None


class Job(Part):
    name: Text
    paths: tuple[Text, ...] = ()
    started: Time | None = None
    ended: Time | None = None
    zone: Literal["UTC"] | None = Field(
        default=None, description="null where some times name no zone: these are as written, whatever Z says"
    )
    ranks: Count = Field(default=0, description="how many ranks were seen")
    hosts: tuple[Text, ...] = ()
    attempts: Count = 1
    frameworks: tuple[Text, ...] = ()
    outcome: Literal["failed", "completed", "running", "slow", "unknown"] = "unknown"
    clock_offsets: tuple[ClockOffsetOut, ...] = ()
    last_step: int | None = None
    last_checkpoint: Checkpoint | None = None


class CitedLine(Part):
    """A line that is really there, and why it is cited."""

    file: Text = Field(description="relative to PATH")
    line: LineNumber
    offset: Count = Field(default=0, description="in bytes of the decompressed file")
    text: Text = Field(description="as it stands in the file")
    time: Time | None = None
    rank: int | None = None
    host: Text | None = None
    attempt: int | None = None
    rule: Text | None = None
    why: Text = ""
    raised_at: Text | None = Field(
        default=None, description="of an exception: FILE:LINE in FUNCTION, innermost in the user's own code"
    )


class CulpritsOut(Part):
    """Where it began; empty where the logs do not decide or all are alike."""

    ranks: tuple[int, ...] = Field(default=(), description="global ranks")
    hosts: tuple[Text, ...] = Field(default=(), description="as the logs name them")
    gpus: tuple[Text, ...] = ()


class Restart(Part):
    advised: bool
    exclude_hosts: tuple[Text, ...] = ()
    reason: Text = ""


class Mitigation(Part):
    text: Text
    source: Literal["rule", "memory", "llm", "taxonomy"] = "rule"
    reference: Text | None = None


class Alternative(Part):
    failure_type: Text
    confidence: Confidence
    evidence: tuple[CitedLine, ...] = ()


class Votes(Part):
    asked: Count
    valid: Count
    votes_for: dict[Text, Count] = Field(
        default_factory=dict,
        validation_alias=AliasChoices("for", "votes_for"),
        serialization_alias="for",
        description="votes for each failure type",
    )


class ChainStep(Part):
    """One step from the root cause to the end of the job."""

    step: Count
    failure_type: Text
    text: Text
    file: Text | None = None
    line: LineNumber | None = None
    follows_by: Text | None = Field(default=None, description="how it follows from the step before")


class Collect(Part):
    """A thing that the folder lacks and that would make the verdict surer."""

    text: Text
    command: Text | None = Field(default=None, description="to run now")
    setting: Text | None = Field(default=None, description="for the next run")
    hosts: tuple[Text, ...] = Field(default=(), description="whose; empty: each node's, or the job's")
    ranks: tuple[int, ...] = ()
    tells_apart: tuple[Text, ...] = Field(default=(), description="types that it would show or rule out")
    weight: Confidence = Field(description="how much confidence it could add")


class StageOut(Part):
    """In which stage of its course the job was when the failure began."""

    name: Literal["start-up", "loading", "compiling", "iterating", "evaluating", "saving"]
    iteration: int | None = Field(
        default=None, description="the last one reported before it began: it lies in this one or the next"
    )
    why: Text = ""
    file: Text | None = Field(default=None, description="the log that shows the stage")
    line: LineNumber | None = None


class Lost(Part):
    """What the failure cost: the work since the last checkpoint, and the time in which no step was made."""

    since: Literal["checkpoint", "start"] = Field(description="what the work is counted from")
    since_time: Time | None = None
    last_good_iteration: int | None = None
    iterations: Count | None = Field(default=None, description="to be done again")
    seconds: float = Field(default=0.0, description="from `since` to the end of the logs")
    gpu_hours: float | None = Field(default=None, description="`seconds` on all ranks; null if uncounted")
    idle_seconds: float | None = Field(
        default=None, description="from the last reported step to the end of the logs"
    )
    idle_gpu_hours: float | None = None


class VerdictBody(Part):
    failure_type: Text = Field(description="id of the taxonomy")
    failure_class: FailureClass
    title: Text = Field(description="one line")
    confidence: Confidence = Field(description="calibrated: of verdicts given 0.8, 80 % are right")
    summary: Text
    culprits: CulpritsOut = CulpritsOut()
    evidence: tuple[CitedLine, ...] = Field(default=(), description="most telling first")
    action: Text = Field(description="an action of the taxonomy")
    restart: Restart
    mitigations: tuple[Mitigation, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    decided_by: Literal["rules", "localisation", "memory", "llm"] = "rules"
    votes: Votes | None = None
    chain: tuple[ChainStep, ...] = ()
    collect_next: tuple[Text, ...] = Field(default=(), description="what to collect next time")
    collect: tuple[Collect, ...] = Field(
        default=(), description="the same with command, setting and weight, most helpful first"
    )
    stage: StageOut | None = Field(default=None, description="null of a job that went well")
    lost: Lost | None = Field(default=None, description="null where no step was reported or nothing failed")


class Symptom(Part):
    """What followed from the root cause and must not be taken for it."""

    failure_type: Text
    text: Text
    file: Text
    line: LineNumber
    time: Time | None = None
    ranks: tuple[int, ...] = ()
    hosts: tuple[Text, ...] = ()
    follows_from: Text | None = None


class Indication(Part):
    """A line that points at a failure."""

    file: Text
    line: LineNumber
    role: Literal["cause", "symptom", "context"]
    failure_type: Text | None = None


class TimelineEntry(Part):
    time: Time | None = None
    kind: Text
    text: Text
    file: Text | None = None
    line: LineNumber | None = None
    rank: int | None = None
    host: Text | None = None


class Attempt(Part):
    """A verdict-like summary of one start of the job."""

    attempt: int
    started: Time | None = None
    ended: Time | None = None
    outcome: Literal["failed", "completed", "running", "slow", "unknown"] = "unknown"
    failure_type: Text
    failure_class: FailureClass
    title: Text
    confidence: Confidence
    culprits: CulpritsOut = CulpritsOut()
    evidence: tuple[CitedLine, ...] = ()
    last_step: int | None = None


class RoutineLines(Part):
    """Lines that healthy jobs of this family write again and again, as far as they may be passed over."""

    family: Text
    source: Literal["history", "model"] = Field(description="who proposed the filters; code checked them")
    filters: Count
    lines: Count
    share: Confidence = Field(description="of all lines")


class Mining(Part):
    files: Count = 0
    bytes: Count = 0
    lines: Count = 0
    templates: Count = 0
    novel_templates: Count | None = Field(default=None, description="null without earlier runs")
    compression: float = Field(default=1.0, description="lines for each template")
    compared_with: Text | None = Field(
        default=None, description="what lines of kinds never seen before were told by; null if by nothing"
    )
    left_out: tuple[Text, ...] = Field(default=(), description="what was sampled or bounded, in words")
    trial_rules: dict[Text, Count] = Field(
        default_factory=dict, description="learned rules on trial, without a say, and the lines they match"
    )
    routine: RoutineLines | None = Field(default=None, description="null where the job's family is unknown")


class UnreadableFile(Part):
    file: Text
    reason: Text


class Timing(Part):
    seconds: float = 0.0
    megabytes_per_second: float = 0.0
    stages: dict[Text, float] = Field(default_factory=dict, description="seconds")


class Spending(Part):
    """What asking a model may cost (the budget), or did cost."""

    votes: Count = 0
    tokens_per_vote: Count = Field(default=0, description="both ways; spent: of the dearest vote")
    tokens: Count = Field(default=0, description="of all votes together")
    seconds: float = 0.0
    requests: Count | None = None
    look_ups: Count | None = Field(default=None, description="tool calls")


UNRECORDED = "; not recorded: "  # in what came of asking a model: behind it, why its answers were not kept


class ModelUse(Part):
    """Whether a language model was asked, why, what came of it, and what it cost."""

    asked: bool
    wanted: bool = Field(default=False, description="the verdict is unsure, or a model is always to be asked")
    why: Text = Field(default="", description="why it was asked, or why not")
    result: Text = Field(default="", description="what its votes changed")
    model: Text | None = None
    endpoint: Text | None = Field(default=None, description="the host that the evidence was sent to")
    prompt: Text | None = Field(default=None, description="id/version of the prompt")
    voids: dict[Text, Count] = Field(default_factory=dict, description="votes that did not count, by reason")
    budget: Spending | None = None
    spent: Spending | None = None
    redacted: dict[Text, Count] = Field(default_factory=dict, description="values hidden from it, by kind")


class Verdict(Part):
    """Why a job died, where it began and what to do now: the whole answer."""

    schema_id: Literal["logtriage.verdict/1"] = Field(
        default="logtriage.verdict/1",
        validation_alias=AliasChoices("schema", "schema_id"),
        serialization_alias="schema",
    )
    id: Text = Field(description="the same bytes and the same version give the same id")
    tool: Tool
    job: Job
    verdict: VerdictBody
    symptoms: tuple[Symptom, ...] = ()
    indications: tuple[Indication, ...] = Field(default=(), max_length=MOST_INDICATIONS)
    indications_total: Count = 0
    timeline: tuple[TimelineEntry, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    mining: Mining = Mining()
    unreadable: tuple[UnreadableFile, ...] = ()
    timing: Timing = Timing()
    model: ModelUse | None = None

    def to_dict(self) -> dict[str, Any]:
        """The document as plain lists and dicts with the contract's names, in the contract's order."""
        return self.model_dump(mode="json", by_alias=True)

    def to_json(self) -> str:
        """Indented JSON text with a last line end; it can be written as UTF-8 whatever the logs held."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def read_verdict(document: Mapping[str, Any]) -> Verdict:
    """A verdict from its parsed JSON. Raises pydantic.ValidationError where it breaks the contract."""
    return Verdict.model_validate(dict(document))
