"""What leaves the machine holds no secret. Patterns run in linear time (re2)."""

from logtriage.redaction.placeholders import Redaction

__all__ = ["Redaction"]
