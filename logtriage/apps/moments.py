"""Times as people give them to a command: `7d` ago, or a date."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

import typer

_AGO = re.compile(r"(\d{1,5})([mhdw])")
_UNITS = {"m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}


def moment(text: str, option: str) -> float:
    """Seconds since 1970 of `7d`, `12h`, or a date or time in ISO 8601 (UTC where it names no zone).

    Raises BadParameter that names the option.
    """
    if found := _AGO.fullmatch(text.strip()):
        return time.time() - int(found[1]) * _UNITS[found[2]]
    try:
        given = datetime.fromisoformat(text.strip())
        return (given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{option}: {text!r} is no time; write 7d, 12h or 2026-01-31") from None
