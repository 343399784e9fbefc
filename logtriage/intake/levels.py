"""How grave a record is, by the words, letters and numbers that loggers use for it."""

from __future__ import annotations

from logtriage.model import Level

LEVELS = {
    "trace": Level.DEBUG, "debug": Level.DEBUG, "verbose": Level.DEBUG, "fine": Level.DEBUG,
    "info": Level.INFO, "notice": Level.INFO, "success": Level.INFO, "default": Level.INFO,
    "informational": Level.INFO, "warn": Level.WARNING, "warning": Level.WARNING,
    "error": Level.ERROR, "err": Level.ERROR, "severe": Level.ERROR, "exception": Level.ERROR,
    "critical": Level.CRITICAL, "crit": Level.CRITICAL, "fatal": Level.CRITICAL,
    "alert": Level.CRITICAL, "emerg": Level.CRITICAL, "emergency": Level.CRITICAL, "panic": Level.CRITICAL,
}  # fmt: skip
LETTERS = {
    "D": Level.DEBUG, "V": Level.DEBUG, "I": Level.INFO, "W": Level.WARNING, "E": Level.ERROR,
    "F": Level.CRITICAL, "C": Level.CRITICAL,
}  # fmt: skip
SYSLOG_LEVELS = (
    Level.CRITICAL, Level.CRITICAL, Level.CRITICAL, Level.ERROR,
    Level.WARNING, Level.INFO, Level.INFO, Level.DEBUG,
)  # fmt: skip


def level_named(name: str) -> Level | None:
    """The level that a word means, in any case."""
    return LEVELS.get(name.strip().lower())
