"""Why did this training job die, where did it begin, and what do I do now?

The product is :func:`logtriage.triage`; everything else on the command line is a thin skin over it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["__version__", "triage"]

if TYPE_CHECKING:
    from logtriage.pipeline import triage


def __getattr__(name: str) -> Any:
    # Imported on first use so that `logtriage --help` stays below 0.3 s.
    if name == "triage":
        from logtriage.pipeline import triage

        return triage
    raise AttributeError(f"module 'logtriage' has no attribute {name!r}")
