"""What to do now: restart or not, which host to leave out, and the mitigations that fit the stack."""

from __future__ import annotations

from logtriage.diagnose.decision import Decision
from logtriage.localize.findings import Findings
from logtriage.report.document import Mitigation, Restart
from logtriage.rulebank.rule import Mark
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
        for each in rule.mitigation:
            if each.when is None or each.when.lower() in seen:
                found.setdefault(
                    each.text,
                    Mitigation(
                        text=each.text, source="memory" if rule.provenance else "rule", reference=reference
                    ),
                )
    action = taxonomy()[decision.failure_type].action
    if decision.failure_type != "unknown":
        found.setdefault(_GENERAL[action], Mitigation(text=_GENERAL[action], source="taxonomy"))
    return tuple(found.values())
