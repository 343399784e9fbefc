"""A verdict as one page that stands alone: no script, nothing loaded from elsewhere, light, dark, printable.

Log text is hostile. Jinja2 escapes every value; before that, each text that goes onto the page passes
:func:`logtriage.report.visible.visible`, so that escapes and bidi overrides are shown and not obeyed. The
page's own policy allows one style sheet, by its hash, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from logtriage.regex import regex
from logtriage.report import words
from logtriage.report.document import CulpritsOut, Symptom, Verdict
from logtriage.report.visible import prose, visible

MOST_ROWS = 200
_WEB_ADDRESS = regex(r"https?://[^\s\"'<>\\]{1,2000}")


def page(verdict: Verdict) -> str:
    """The whole HTML document."""
    body = verdict.verdict
    quiet = body.failure_type == "unknown" or body.failure_type.startswith("slow.")
    return (
        environment()
        .get_template("verdict.html.j2")
        .render(
            body=body,
            headline=prose(body.title) or words.type_name(body.failure_type),
            mood="good" if body.failure_type.startswith("none.") else "warn" if quiet else "bad",
            where=words.where_words(verdict),
            code=words.code_words(body),
            when=words.stage_words(body),
            facts=words.job_facts(verdict.job),
            lost=words.lost_words(body),
            mitigations=words.mitigations(body),
            mined=words.mined_words(verdict),
            model=words.model_words(verdict),
            job=verdict.job,
            symptoms=verdict.symptoms,
            timeline=verdict.timeline,
            attempts=verdict.attempts,
            unreadable=verdict.unreadable,
            left_out=verdict.mining.left_out,
            indications=verdict.indications,
            indications_total=max(verdict.indications_total, len(verdict.indications)),
            tool=verdict.tool,
            id=verdict.id,
            most_rows=MOST_ROWS,
        )
    )


@cache
def environment() -> Environment:
    """What fills the templates beside this file: every value is escaped; `css` is the style of all pages."""
    made = Environment(
        loader=PackageLoader("logtriage", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
    )
    css = resources.files("logtriage.report").joinpath("page.css").read_text(encoding="utf-8")
    made.globals["css"] = Markup(css)
    made.filters |= {
        "action_words": words.action_words,
        "affected": _affected,
        "clock": words.clock,
        "confidence_words": words.confidence_words,
        "counted": words.counted,
        "csp_hash": _csp_hash,
        "decided_by": words.decided_by,
        "is_web_address": _is_web_address,
        "listed": lambda names: words.listed(names, 64),
        "marked": _marked,
        "origin": words.origin,
        "percent": words.percent,
        "place": words.place,
        "prose": prose,
        "reason": words.reason,
        "restart_words": words.restart_words,
        "type_name": words.type_name,
    }
    return made


def _harmless(value: Any) -> Any:
    return visible(value) if type(value) is str else value


def _marked(text: str) -> Markup:
    """A cited line with its telling words marked."""
    shown = visible(text)
    pieces, done = [], 0
    for start, end in words.telling_spans(shown):
        pieces += [escape(shown[done:start]), Markup("<mark>{}</mark>").format(shown[start:end])]
        done = end
    return Markup("").join([*pieces, escape(shown[done:])])


def _affected(part: Symptom | CulpritsOut) -> str:
    return words.places(part.ranks, part.hosts, part.gpus if isinstance(part, CulpritsOut) else ())


def _is_web_address(text: str | None) -> bool:
    return text is not None and _WEB_ADDRESS.fullmatch(text) is not None


def _csp_hash(style: str) -> str:
    digest = hashlib.sha256(style.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()
