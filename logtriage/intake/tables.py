"""Files that are no log: tables of numbers, lists of settings, JSON documents.

Each function looks at lines (blank ones left out) and says what they are almost throughout, or None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from logtriage.model import SourceRole
from logtriage.regex import regex

# --- numbers ---------------------------------------------------------------------------------------

_POLLED = regex(r"^# ?(?:gpu|Idx|Entity|GPU|Date)\b|^#Entity|^# (?:HELP|TYPE) \w+|^Linux .* \(\d+ CPU\)$")
_NUMBER = regex(
    r"^[-+\[(]?(?:\d[\d.,:/eE+-]*|nan|inf|N/A|-|\d{4}-\d\d-\d\dT[\d:.,+-]*)"
    r"(?:Z|%|[KMGTP]?i?B?|ms|s|W|C|MHz)?[\])]?$",
    re.IGNORECASE,
)
_UNIT = regex(r"^(?:%|[KMGT]?i?B(?:/s)?|W|C|[KMG]?Hz|[mun]?s|degC|pct)$")
_SAMPLE_LINE = regex(r"^[A-Za-z_:][\w:]*(?:\{[^}]*\})? [-+]?(?:\d[\d.eE+-]*|NaN|Inf)(?: \d+)?$")


def number_role(lines: list[str]) -> SourceRole | None:
    """Output of a polling tool, Prometheus samples, or a table that is mostly numbers."""
    body = lines[1:]
    if any(_POLLED.match(line) for line in lines[:3]):
        return SourceRole.METRICS
    if body and sum(_SAMPLE_LINE.match(line) is not None for line in lines) > 0.6 * len(lines):
        return SourceRole.METRICS
    if len(body) > 3:
        tables = sum(_is_row(line) for line in body)
        if tables >= 0.8 * len(body):
            return SourceRole.METRICS
    return None


def delimited_role(lines: list[str]) -> SourceRole | None:
    """Rows of a CSV or TSV file, nearly all of their cells numbers or times."""
    if len(lines) < 3:
        return None
    for mark in (",", "\t", ";"):
        if not any(line.count(mark) == lines[1].count(mark) > 0 for line in lines[2:4]):
            continue
        columns = [line.count(mark) for line in lines]
        usual = max(set(columns), key=lambda count: (columns.count(count), count))
        alike = sum(count == usual for count in columns)
        if usual >= 1 and alike >= 0.7 * len(lines) and _numeric_share(lines, mark, usual) > 0.6:
            return SourceRole.METRICS
    return None


def _numeric_share(lines: list[str], mark: str, usual: int) -> float:
    cells = [cell.strip() for line in lines[1:] if line.count(mark) == usual for cell in line.split(mark)]
    return sum(_is_number(cell) for cell in cells) / max(1, len(cells))


def _is_number(cell: str) -> bool:
    words = cell.split()
    if not words or len(words) > 2 or not _NUMBER.match(words[0]):
        return False
    return len(words) == 1 or _UNIT.match(words[1]) is not None or _NUMBER.match(words[1]) is not None


def _is_row(line: str) -> bool:
    words = line.split()
    return len(words) > 2 and sum(_NUMBER.match(word) is not None for word in words) >= 0.6 * len(words)


# --- settings --------------------------------------------------------------------------------------

# The first four hold values that may well be named after errors (NCCL_ABORT_ON_ERROR=1); of the others no
# line may speak of trouble.
_SETTING = (
    regex(r"^[A-Za-z0-9][\w.\[\],-]* ?==? ?[\w.+!-]+$|^[\w.-]+ @ \S+|^-e \S+|^# Editable"),  # pip freeze
    regex(r"^(?:export |declare -x |set )?[A-Za-z_%][\w%()]*=.*"),  # environment
    regex(r"^[a-z]\w*(?:[./][\w*-]+)+ = .*"),  # sysctl
    regex(r"^\s*[\w./-]+ \.{3,} .*|^-+ (?:end of )?arguments -+$"),  # Megatron, DeepSpeed
    regex(r"^[\w.-]+ {2,}v?\d[\w.+!-]*(?: {2,}\S+)*$|^#|^-+ +-+$|^Package +"),  # pip and conda list
    regex(r"^\s*(?:- )?[\w./<>-]+:(?: .*)?$|^\s*- \S.*|^\s*#"),  # YAML
    regex(r"^\[[\w.\" -]+\]$|^[\w.-]+ ?= ?.*|^[#;]"),  # INI, TOML
    regex(r"^\s*(?:import|from|def|class|return|if|for|with|elif|else|try|except|raise|#)\b|^\s*\w+ = "),
)
_COLLECTED = regex(
    r"^Collecting environment information|^PyTorch version: |^DeepSpeed C\+\+/CUDA extension|^JIT compiled"
)
_RAISED = regex(r"^\s*(?:[\w.]*(?:Error|Exception)(?::|$)|Traceback \()")
_TROUBLE = regex(
    r"(?i)\b\w*(?:error|exception|traceback|fatal|killed|aborted|failed|failure|denied|refused|segmentation)\b"
)


def settings_role(lines: list[str], whole: list[str], file: str) -> SourceRole | None:
    """Packages, variables, kernel parameters, arguments, YAML, INI or a program's text.

    `lines` is a choice of `whole`. A file in which something is raised is none.
    """
    if len(lines) < 2 or any(map(_RAISED.match, whole)):
        return None
    if _COLLECTED.match(lines[0]):
        return SourceRole.ENVIRONMENT
    if re.search(r"(?i)\.(?:ya?ml|toml|ini|cfg|conf|env|py|sh|sbatch|slurm|md|ipynb)$", file):
        trouble = sum(_TROUBLE.search(line) is not None for line in lines)
        return SourceRole.ENVIRONMENT if trouble <= 0.1 * len(lines) else None
    # A file named as a log may hold nothing but the settings that a job printed before it died.
    kinds = _SETTING[:3] if re.search(r"(?i)\.log(?:\.|$)", file) else _SETTING
    return SourceRole.ENVIRONMENT if _all_settings(lines, kinds) else None


def _all_settings(lines: list[str], kinds: Sequence[re.Pattern[str]]) -> bool:
    for at, pattern in enumerate(kinds):
        others = [line for line in lines if not pattern.match(line)]
        if len(others) <= 0.15 * len(lines) and len(lines) > (1 if at < 4 else 4):
            return not any(map(_TROUBLE.search, others if at < 4 else lines))
    return False


# --- JSON ------------------------------------------------------------------------------------------

# Values are strings or objects: the vocabulary of a tokenizer has such keys with numbers.
_SPOKEN_KEY = regex(
    r'"(?:message|msg|log|text|exception|exc_info|traceback|py_callstack|stack_?trace|severity|level(?:name)?'
    r'|event|error|textPayload)"\s*:\s*["{]|"resultType"\s*:\s*"streams"'  # or Loki's answer
)


_STEP_KEY = regex(r'"(?:(?:global_?|train_?)?step|iter(?:ation)?|it)"\s*:\s*\d')
_OF_TRAINING = regex(
    r'"(?:(?:global_|world_)?rank|(?:step|iter|batch|data|comm|compute|forward|fwd|fwd_bwd)_(?:time|wait|s|ms|sec))"\s*:\s*\d'
)


# Reports of DCGM's diagnostics, amd-smi and rocm-smi, and of a network adapter's counters.
_STATE_KEY = regex(
    r'"(?:DCGM (?:GPU )?Diagnostic|test_categories|total_uncorrectable_count|TOTAL_UNCORRECTABLE_COUNT)"\s*:'
    r'|"ifname"\s*:[^}]{0,400}"(?:out_of_sequence|local_ack_timeout_err)"\s*:'
)

_SLURM_KEY = regex(r'"job_id"\s*:[\s\S]{0,20000}?"state"\s*:\s*\{\s*"current"\s*:')  # sacct --json


def json_role(text: str) -> SourceRole | None:
    """The role of a JSON document or of JSON records; None if they are a log."""
    first = text.split("\n", 1)[0].strip()
    if re.search(r'"apiVersion"\s*:', text[:4000]) and re.search(r'"kind"\s*:', text):
        return SourceRole.KUBERNETES
    if re.search(r'"job_state"\s*:', text):
        return SourceRole.SCHEDULER
    if _SLURM_KEY.search(text):
        return SourceRole.SCHEDULER
    if _STATE_KEY.search(text[:8000]):
        return SourceRole.HARDWARE
    if '"log_history"' in text or '"traceEvents"' in text[:4000]:
        return SourceRole.METRICS
    records = 0
    numbers = 0
    for line in text.split("\n")[:20]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            records += 1
            values = list(record.values())
            numbers += bool(values) and 2 * sum(isinstance(one, int | float) for one in values) > len(values)
    spoken = _SPOKEN_KEY.search(text) is not None
    if records > 1:
        of_steps = _STEP_KEY.search(text) and _OF_TRAINING.search(text)  # by the job, without a word
        is_log = spoken or of_steps or numbers < 0.8 * records or _says_more(text)
        return None if is_log else SourceRole.METRICS
    if spoken:
        return None
    if records == 1 or re.fullmatch(r'[\[{]|\{\s*"[^"]*"\s*:.*|\[\s*(?:[\d"{\[].*)?', first):
        return SourceRole.ENVIRONMENT if _is_document(text, records) else None
    return None


def _says_more(text: str) -> bool:
    """Whether other lines stand among the records: what a program printed beside its metrics.

    The last line may be cut off by the sample's end.
    """
    lines = text.split("\n")[:-1]
    return sum(bool(line.strip()) and line.lstrip()[0] not in '{}[]"' for line in lines) > 1 or any(
        _TRACED.match(line) for line in lines
    )


# Also behind a rank's label, which begins like a list.
_TRACED = regex(r"(?:\[[\w-]{1,20}\]: ?)?Traceback \(most recent call last\)")


def _is_document(text: str, records: int) -> bool:
    if records == 1:
        return text.count("\n") < 3
    lines = [line.strip() for line in text.split("\n")[:60] if line.strip()]
    form = re.compile(r'^(?:"(?:[^"\\]|\\.)*"\s*[:,]?.*|[\]\[{},:]+|-?[\d.eE+-]+,?|(?:true|false|null),?)$')
    return sum(form.match(line) is not None for line in lines) >= 0.9 * len(lines) or (
        len(lines) == 1 and text.startswith(('{"', "[{", '["', "[["))
    )
