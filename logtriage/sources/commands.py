"""The tools of schedulers, run as they should be: no shell, a time-out, and a plain word when they fail."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from logtriage.sources.job import SourceFault

MOST_BYTES = 256 << 20  # of an answer that is held in memory


class NoAnswer(SourceFault):
    """The tool ran and said no; the message begins with its name and holds what it said."""


def answer_of(
    command: Sequence[str], seconds: float, environment: Mapping[str, str] | None = None, mend: str = ""
) -> str:
    """What a command prints on standard output. `environment` is added to that of this process.

    Raises SourceFault where the tool is missing (then with `mend`) or slow, NoAnswer where it fails.
    """
    with tempfile.TemporaryFile() as said:
        _run(said, command, seconds, environment, mend)
        if said.seek(0, os.SEEK_END) > MOST_BYTES:
            raise SourceFault(f"{command[0]} answered more than {MOST_BYTES >> 20} MiB: ask about less")
        said.seek(0)
        return said.read().decode("utf-8", "replace")


def answer_into(file: Path, command: Sequence[str], seconds: float, mend: str = "") -> None:
    """Write what a command prints on standard output to a file. Raises as `answer_of` does."""
    with file.open("wb") as said:
        _run(said, command, seconds, None, mend)


def _run(
    said: IO[bytes],
    command: Sequence[str],
    seconds: float,
    environment: Mapping[str, str] | None,
    mend: str,
) -> None:
    tool = command[0]
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C.UTF-8", **(environment or {})},
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError:
        raise SourceFault(f"{tool} is not on this machine's PATH{mend and ': '}{mend}") from None
    except PermissionError:
        raise SourceFault(f"{tool} may not be run by this user") from None
    except subprocess.TimeoutExpired:
        raise SourceFault(f"{tool} did not answer within {seconds:g} s") from None
    except (OSError, ValueError) as fault:
        raise SourceFault(f"{tool} cannot be run: {fault}") from None
    if ended.returncode:
        raise NoAnswer(f"{tool}: {_first_word(ended.stderr) or f'exit status {ended.returncode}'}")


def _first_word(said: bytes) -> str:
    """The first line of standard error, at most 300 characters."""
    lines = [" ".join(line.split()) for line in said[:8192].decode("utf-8", "replace").splitlines()]
    return next((line[:300] for line in lines if line), "")
