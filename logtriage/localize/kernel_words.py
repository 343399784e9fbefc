"""Whose words a kernel's own line can hold: a kernel's, a driver's and a machine's, but no program's.

What programs call a failed allocation, a refused launch or a bad login means nothing where a kernel says it.
"""

from __future__ import annotations

from pathlib import PurePath

from logtriage.regex import regex
from logtriage.rulebank.rule import Rule

# Rules about what programs print, by their files in the bank.
_OF_PROGRAMS = frozenset((
    "auth", "cuda", "data", "frameworks", "kubernetes", "launchers", "locales", "nccl", "numerics",
    "progress", "python", "pytorch", "ray", "slurm",
))  # fmt: skip
_BY_KERNEL = regex(
    r"(?:(?:<\d{1,3}>)?\[ *\d{1,9}\.\d{4,9}\](?:\[ *[TC]\d+\])? +"
    r"|\[\w{3} \w{3} +\d{1,2} [\d:]{8} \d{4}\] "
    r"|kern +:\w+ *: |[^\n:]{0,40}:\d\d:\d\d\S{0,20} [^\s:]{1,64} kernel: )"
    # What programs wrote into the kernel's log bears their name and number, as crashes of them do.
    r"(?P<program>\S{1,40}\[\d{1,8}\]: )?"
)


def is_of_another(rule: Rule, text: str) -> bool:
    """Whether a kernel wrote a line, and the rule is about what programs say."""
    if PurePath(rule.file).stem not in _OF_PROGRAMS:
        return False
    said = _BY_KERNEL.match(text[:200])
    return said is not None and said["program"] is None
