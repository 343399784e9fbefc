"""When a model is asked: a sure verdict needs none."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from logtriage.report.document import ModelUse
from logtriage.settings import Settings

UNSURE = 0.6  # confidence below which an offline verdict is unsure
CONTESTED = 0.2  # confidence of an alternative from which a verdict is contested


def occasion(failure_type: str, confidence: float, rivals: Iterable[float]) -> str:
    """Why a model should be asked about a verdict; empty where it is sure.

    `rivals` are the confidences of its alternatives.
    """
    if failure_type == "unknown":
        return "the cause is unknown"
    if any(value >= CONTESTED for value in rivals):
        return "the verdict is contested"
    if confidence < UNSURE:
        return "the verdict is unsure"
    return ""


def unavailable(settings: Settings) -> str:
    """Why no model can be asked; empty where one can."""
    if settings.llm_replay:
        return ""
    if not settings.llm_model:
        return "no model is configured (LOGTRIAGE_LLM_MODEL)"
    if not settings.llm_base_url and not settings.llm_api_key.get_secret_value():
        return "no endpoint and no key are configured (LOGTRIAGE_LLM_BASE_URL, LOGTRIAGE_LLM_API_KEY)"
    if settings.llm_base_url and not is_address(settings.llm_base_url):
        return "the endpoint is no http(s) address (LOGTRIAGE_LLM_BASE_URL)"
    return ""


def is_address(url: str) -> bool:
    """Whether a server can be asked there, as far as the form of the address tells."""
    try:
        parts = urlsplit(url)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0  # raises ValueError where it is no port at all
            and url.isprintable()
            and " " not in url
        )
    except ValueError:
        return False


def not_asked(why: str, *, wanted: bool) -> ModelUse:
    """What the document says where no model was asked; `wanted`: it would have been, had it been there."""
    return ModelUse(asked=False, wanted=wanted, why=why, result="the offline verdict stands")
