"""Whether a model is asked about an offline verdict, and the verdict after it.

What asking needs is imported only when it is done: a sure verdict costs nothing.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from logtriage.agent.occasion import not_asked, occasion, unavailable
from logtriage.diagnose.decision import Decision
from logtriage.intake.folder import Inventory
from logtriage.localize.findings import Findings
from logtriage.mining.catalogue import Catalogue
from logtriage.report.document import ModelUse, Verdict
from logtriage.rulebank.bank import Bank
from logtriage.rulebank.matcher import Matcher
from logtriage.settings import Settings

if TYPE_CHECKING:
    from logtriage.agent.counsel import Counsel
    from logtriage.agent.desk import Desk, Precedent
    from logtriage.agent.routine import Routine


class Consultation:
    """One job before a model: `decision` is the offline one until the votes say more."""

    def __init__(
        self,
        findings: Findings,
        decision: Decision,
        catalogue: Catalogue,
        inventory: Inventory,
        bank: Bank,
        matcher: Matcher,
        settings: Settings,
        precedents: Sequence[Precedent] = (),
        routine: Routine | None = None,
        enough: threading.Event | None = None,
    ) -> None:
        """`precedents` are confirmed diagnoses of similar jobs, the nearest first; `routine` what its kind
        of job always writes. Once `enough` is set, nobody is asked any more and the offline decision stands.
        """
        self.decision = decision
        self._job = (findings, decision, catalogue, inventory, bank, matcher)
        self._settings = settings
        self._precedents = precedents
        self.routine = routine
        self._enough = enough
        self._counsel: Counsel | None = None
        self._use = self._ask()

    def _ask(self) -> ModelUse:
        began = time.monotonic()
        settings = self._settings
        if settings.llm == "never":
            return not_asked("it was told never to ask", wanted=False)
        told = self.decision
        why = occasion(told.failure_type, told.confidence, (value for _, value, _ in told.alternatives))
        if not why and settings.llm == "auto":
            return not_asked("the verdict is sure", wanted=False)
        if missing := unavailable(settings):
            return not_asked(missing, wanted=True)
        if self._enough is not None and self._enough.is_set():
            return not_asked("it was stopped before", wanted=True)
        try:
            from logtriage.agent.ask import ask
            from logtriage.agent.counsel import weigh

            desk = self.desk()
            asked = ask(desk, settings, until=began + settings.llm_seconds, enough=self._enough)
            self._counsel = weigh(desk, asked, settings, why or "it was told always to ask")
            if settings.llm_log_agent and self.routine is None and not asked.fault:
                self._propose(desk, began + settings.llm_seconds)
        except ImportError as fault:
            lacking = f"{fault.name or 'a package'} is not installed (pip install 'logtriage[llm]')"
            return not_asked(lacking, wanted=True)
        self.decision = self._counsel.decision
        return self._counsel.use

    def desk(self) -> Desk:
        """The job as a model sees it."""
        from logtriage.agent.desk import Desk, hidden_hosts
        from logtriage.redaction import Redaction

        findings, _, _, inventory, _, _ = self._job
        hide = self._settings.llm_redact_hosts
        hosts = hidden_hosts(findings, inventory) if hide else ()
        return Desk(*self._job, Redaction(hosts=hosts, addresses=hide), self._precedents, self.routine)

    def _propose(self, desk: Desk, until: float) -> None:
        """Let the model's votes say what is routine in this kind of job, for the next one of its family."""
        from logtriage.agent import routine
        from logtriage.agent.log_agent import routine_templates

        findings, _, catalogue, _, _, matcher = self._job
        named = routine_templates(catalogue.rows, desk.redaction, self._settings, until=until)
        filters = routine.passing(named, catalogue.rows, findings, matcher)
        if filters:
            family = routine.proposed(routine.frameworks_of(findings), filters)
            with contextlib.suppress(OSError):
                routine.keep(family, self._settings.data_dir)
            self.routine = routine.Routine(family, filters, findings, matcher)

    def told_in(self, verdict: Verdict) -> Verdict:
        """The composed document with the votes, the model's advice, and what asking it cost."""
        if self._counsel is None:
            return verdict.model_copy(update={"model": self._use})
        from logtriage.agent.counsel import applied

        return applied(verdict, self._counsel)
