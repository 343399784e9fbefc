"""What to do now: restart or not, which host to leave out, and the mitigations that fit the stack."""

from __future__ import annotations

import re
from typing import Literal

from logtriage.diagnose.decision import Decision
from logtriage.localize.findings import Findings
from logtriage.regex import regex
from logtriage.report.document import Mitigation, Restart
from logtriage.rulebank.rule import Mark, Rule
from logtriage.taxonomy import taxonomy

_GENERAL = {
    "restart": "Restart from the last checkpoint; the same nodes may be used again.",
    "restart_excluding_node": "Take the culprit node out, then restart from the last checkpoint.",
    "fix_code": "Repair the program first: a restart would fail again at the same place.",
    "fix_config": "Change the configuration first: a restart with the same settings would fail again.",
    "fix_data": "Repair or replace the data first: a restart would meet it again.",
    "fix_environment": "Repair the environment first: a restart in the same one would fail again.",
    "wait_and_restart": "Wait until the shared service answers again, then restart from the last checkpoint.",
    "none": "Nothing needs repair.",
}

# Of types that ranks and times show where no line, and so no rule, says a word.
_BY_TYPE = {
    "slow.data": (
        "Give the loader more workers and prefetching, or stage the data on local disks; `iostat -x 5` and "
        "`nfsiostat 5` on a node tell whether the storage is what limits.",
        "Look at what the loader does for each sample (decompression, tokenising, augmentation): do it once "
        "beforehand where it can be.",
    ),
    "slow.straggler": (
        "Compare the slow ranks' host with another: `nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE`, "
        "`dcgmi diag -r 2`, `top`, and the link rates of its network cards.",
        "Where the host is slow with another job as well, take it out; where not, compare the ranks' shares "
        "of work (uneven batches, expert load, logging or evaluation on one rank).",
    ),
    "hang.silent": (
        "Before anything is ended, take stacks on every node: `py-spy dump --native --pid PID`; the process "
        "that stands elsewhere than all others holds them up.",
        "Restart with a collective time-out, so that the next stall ends by itself and names the operation.",
    ),
    "numerics.divergence": (
        "Resume from a checkpoint some hundred steps before the rise and skip the batches in between; lower "
        "the learning rate or tighten gradient clipping if it comes back.",
    ),
}


def restart(decision: Decision, findings: Findings) -> Restart:
    """Whether to restart as it is, and which hosts to leave out."""
    action = taxonomy()[decision.failure_type].action
    if decision.failure_type == "unknown":
        return Restart(advised=False, reason="the cause is not known; a restart may fail again")
    advised = action in ("restart", "restart_excluding_node", "wait_and_restart")
    excluded = decision.culprits.hosts if action == "restart_excluding_node" else ()
    return Restart(advised=advised, exclude_hosts=excluded, reason=_GENERAL[action])


def mitigations(decision: Decision, findings: Findings) -> tuple[Mitigation, ...]:
    """The rule's own mitigations that fit the software seen, then the general advice of the type's action."""
    seen = {
        (sign.rule.framework or sign.hit.capture("framework") or "").lower()
        for sign in findings.scene.marked(Mark.FRAMEWORK)
    }
    rules = [decision.root.rule] if decision.root is not None and decision.root.rule is not None else []
    found: dict[str, Mitigation] = {}
    for rule in rules:
        if rule.failure_type != decision.failure_type:
            continue
        reference = rule.references[0] if rule.references else None
        source: Literal["memory", "rule"] = "memory" if rule.provenance else "rule"
        for each in rule.mitigation:
            if each.when is None or each.when.lower() in seen:
                text = _filled(each.text, rule, decision)
                found.setdefault(text, Mitigation(text=text, source=source, reference=reference))
    if not found:
        for text in _BY_TYPE.get(decision.failure_type, ()):
            found[text] = Mitigation(text=text, source="taxonomy")
    action = taxonomy()[decision.failure_type].action
    if decision.failure_type != "unknown":
        found.setdefault(_GENERAL[action], Mitigation(text=_GENERAL[action], source="taxonomy"))
    return tuple(found.values())


# What may stand in a command that somebody copies: a log can hold anything.
_PLAIN_WORD = regex(r"[\w.,/@:+\[\]-]{1,200}")


def _filled(text: str, rule: Rule, decision: Decision) -> str:
    """The advice with `{name}` filled from what the rule captured; where that is no plain word, NAME."""
    captured = dict(decision.root.captures) if decision.root is not None else {}
    for name in re.findall(r"\(\?P<(\w+)>", rule.pattern):
        value = captured.get(name, "")
        text = text.replace("{" + name + "}", value if _PLAIN_WORD.fullmatch(value) else name.upper())
    return text
