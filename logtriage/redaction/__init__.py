"""What leaves the machine holds no secret. Patterns run in linear time (re2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logtriage.redaction.placeholders import PLACEHOLDER, Redaction

__all__ = ["PLACEHOLDER", "Redaction"]


def __getattr__(name: str) -> Any:
    # An offline triage asks `values` about letters and hides nothing: it loads no table of secrets.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from logtriage.redaction import placeholders

    return getattr(placeholders, name)
