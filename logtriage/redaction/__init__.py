"""What leaves the machine holds no secret. Patterns run in linear time (re2)."""

from logtriage.redaction.placeholders import PLACEHOLDER, Redaction

__all__ = ["PLACEHOLDER", "Redaction"]
