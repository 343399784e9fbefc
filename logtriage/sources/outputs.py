"""Where a Slurm job's output lies: `--output` and `--error` with their % filled in, below allowed folders."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from logtriage.sources.accounts import Account
from logtriage.sources.roots import below

MOST_FILES = 10_000  # of one job
_MOST_UNKNOWN = 4  # parts of a name that only a listing tells
_MARK = re.compile(r"%(\d{0,2})([A-Za-z%])")


def outputs(accounts: Sequence[Account], roots: Sequence[str]) -> tuple[list[str], list[str]]:
    """Real paths of the files that a job and its steps wrote, and asked-for folders outside `roots`.

    A user may ask for any file as output: only what lies below a root is ever named.
    """
    found: dict[str, None] = {}
    outside: dict[str, None] = {}
    for pattern in _asked(accounts):
        folder = os.path.dirname(pattern.split("*", 1)[0])  # noqa: PTH120 - a pattern, not a path
        if below(folder, roots) is None:
            outside[folder] = None
            continue
        for path in islice(_existing(pattern), MOST_FILES):
            if (real := below(path, roots)) is not None and Path(real).is_file():
                found[real] = None
    return list(found)[:MOST_FILES], list(outside)


def _existing(pattern: str) -> Iterator[str]:
    if "*" not in pattern:
        return iter([pattern])
    return glob.iglob(pattern) if pattern.count("*") <= _MOST_UNKNOWN else iter(())  # noqa: PTH207


def _asked(accounts: Sequence[Account]) -> Iterator[str]:
    """Absolute names of output files; where only the job itself knew a part of a name, a *."""
    home = next((each.folder for each in accounts if each.folder), "/")  # sacct tells it of no step
    for account in accounts:
        if account.step == "batch":
            continue  # its output is that of the job
        given = dict(_of_command(account.submit_line))
        texts = [account.stdout or given.get("output", ""), account.stderr or given.get("error", "")]
        if not account.step and not texts[0] and not account.submit_line.startswith(("srun", "salloc")):
            texts[0] = "slurm-%A_%a.out" if "_" in account.id else "slurm-%j.out"  # sbatch's own choice
        for text in dict.fromkeys(texts):
            if text and text not in ("none", "all", "/dev/null") and not text.isdecimal():
                yield os.path.normpath(os.path.join(account.folder or home, filled(text, account)))  # noqa: PTH118


_OPTION = re.compile(r"(?:-(?P<short>[oe])|--(?P<long>output|error))(?:=?(?P<value>.*))", re.S)


def _of_command(line: str) -> Iterator[tuple[str, str]]:
    """The options for output in the line that submitted a job or began a step, as far as it shows them.

    sacct joins the words by blanks: a name with a blank is cut short, and then simply not there.
    """
    words = line.split()[1:]
    for at, word in enumerate(words):
        if (found := _OPTION.fullmatch(word)) is None:
            continue
        value = found["value"] or next(iter(words[at + 1 : at + 2]), "")
        kind = {"o": "output", "e": "error"}.get(found["short"], found["long"])
        if value and not value.startswith("-"):
            yield str(kind), value.strip("'\"")


def filled(text: str, account: Account) -> str:
    """A name with its % filled in as sbatch(1), "filename pattern", has it; a backslash turns that off.

    What differs from task to task, or from release to release (%b), becomes a *, other magic is escaped.
    """
    if "\\" in text:
        return glob.escape(text.replace("\\", ""))
    array, _, index = account.id.partition("_")
    # Within a step there is a file for each task or node; the script of a batch job runs once, on the first.
    each = {"t": "*", "n": "*", "N": "*"}
    once = {"t": "0", "n": "0", "N": account.nodes[0].split(".")[0] if account.nodes else "*"}
    known = {
        "%": "%",
        "A": array if index else account.raw_id,
        "a": index or "4294967294",
        "j": account.raw_id,
        "J": f"{account.raw_id}.{account.step}" if account.step else account.raw_id,
        "s": account.step or "*",
        "u": account.user or "*",
        "x": "*" if account.step else account.name,  # of a step sacct tells the name of its program
        **(each if account.step else once),
    }

    def fill(mark: re.Match[str]) -> str:
        value = known.get(mark[2], "*")
        width = min(int(mark[1] or 0), 10)
        return value if value == "*" else glob.escape(value.zfill(width) if value.isdecimal() else value)

    done, at = "", 0
    for mark in _MARK.finditer(text):
        done += glob.escape(text[at : mark.start()]) + fill(mark)
        at = mark.end()
    return done + glob.escape(text[at:])
