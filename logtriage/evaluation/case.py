"""A job whose root cause is known: a folder with `logs/` and `truth.yaml`."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from logtriage.taxonomy import taxonomy, yaml_loader

LABEL = "truth.yaml"


class LabelFault(Exception):
    """Labels that cannot be used; the message names the files and what is wrong."""


@dataclass(frozen=True, slots=True)
class LabelledLine:
    """A line that shows the root cause: by words that it contains, or by its number."""

    file: str
    contains: str = ""
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """Where the logs are and what a careful person says of them. Empty: the label does not say.

    `learned` are the files of learned rules to judge with; None: all that have a say.
    """

    name: str
    paths: tuple[str, ...]
    failure_type: str
    also_acceptable: tuple[str, ...] = ()
    culprit_ranks: tuple[int, ...] = ()
    culprit_hosts: tuple[str, ...] = ()
    evidence: tuple[LabelledLine, ...] = ()
    learned: tuple[Path, ...] | None = None

    @property
    def accepted(self) -> frozenset[str]:
        """The types that count as right."""
        return frozenset((self.failure_type, *self.also_acceptable))

    @property
    def is_healthy(self) -> bool:
        return self.failure_type.startswith("none.")


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore")

    file: str
    contains: str = Field(min_length=1)


class _Label(BaseModel):
    """`truth.yaml`; what is written there for people alone (why, software, origin) is not looked at."""

    model_config = ConfigDict(extra="ignore")

    failure_type: str
    also_acceptable: list[str] = []
    culprit_ranks: list[int] = []
    culprit_hosts: list[str] = []
    evidence: list[_Line] = []


def labelled_cases(folder: Path, only: str = "*") -> list[Case]:
    """The cases in a folder whose names match `only` (a glob), by name; a folder that is one itself is that.

    Raises LabelFault that names every label that cannot be used, or that there is none.
    """
    alone = folder / LABEL
    files = [alone] if alone.is_file() else sorted(folder.glob(f"*/{LABEL}"))
    cases: list[Case] = []
    faults: list[str] = []
    for file in files:
        if fnmatchcase(file.parent.resolve().name, only):
            try:
                cases.append(_case(file))
            except (OSError, ValueError, KeyError) as fault:
                faults.append(f"{file}: {_words(fault)}")
    if faults:
        raise LabelFault("; ".join(faults[:10]))
    if not cases:
        raise LabelFault(f"no case in {folder}: no folder matching {only!r} holds a {LABEL}")
    return cases


def _case(file: Path) -> Case:
    import yaml

    try:
        told: Any = yaml.load(file.read_bytes(), Loader=yaml_loader())
    except (yaml.YAMLError, RecursionError) as fault:
        raise ValueError(f"no YAML: {fault}") from None
    label = _Label.model_validate(told)
    for name in (label.failure_type, *label.also_acceptable):
        taxonomy()[name]
    return Case(
        name=file.parent.resolve().name,
        paths=(str(file.parent / "logs"),),
        failure_type=label.failure_type,
        also_acceptable=tuple(label.also_acceptable),
        culprit_ranks=tuple(sorted(set(label.culprit_ranks))),
        culprit_hosts=tuple(label.culprit_hosts),
        evidence=tuple(LabelledLine(each.file, each.contains) for each in label.evidence),
    )


def _words(fault: Exception) -> str:
    if isinstance(fault, ValidationError):
        first = fault.errors()[0]
        return f"{'.'.join(map(str, first['loc'])) or 'the label'}: {first['msg']}"
    return " ".join(str(fault.args[0] if isinstance(fault, KeyError) else fault).split())
