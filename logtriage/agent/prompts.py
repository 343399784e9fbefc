"""Prompts: one Jinja2 file each, with a header that says its id, version, purpose and variables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from logtriage.taxonomy import shipped, taxonomy


class PromptFault(Exception):
    """A prompt file that cannot be used; the message names it."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt file; `variables` are all that its text may use."""

    id: str
    version: str
    purpose: str
    variables: tuple[str, ...]
    source: str

    def part(self, macro: str, *arguments: str, **variables: object) -> str:
        """One part of the prompt (a macro of the file) with its variables filled in."""
        module: Any = _template(self.source).make_module(variables)
        return str(getattr(module, macro)(*arguments)).strip()


@cache
def load_prompt(name: str) -> Prompt:
    """The prompt `prompts/NAME.j2`. Raises PromptFault where its header lacks something."""
    path = shipped("prompts") / f"{name}.j2"
    try:
        source = path.read_text(encoding="utf-8")
    except OSError as fault:
        raise PromptFault(f"{path}: {fault.strerror}") from None
    head = source.partition("-#}")[0]
    if not head.startswith("{#-"):
        raise PromptFault(f"{path}: does not begin with a header")
    told = {
        key.strip(): value.strip()
        for key, colon, value in (line.partition(":") for line in head[3:].splitlines())
        if colon
    }
    missing = [key for key in ("id", "version", "purpose", "variables") if not told.get(key)]
    if missing:
        raise PromptFault(f"{path}: the header lacks {', '.join(missing)}")
    variables = tuple(each.split("(")[0].strip() for each in _outside_brackets(told["variables"]))
    return Prompt(told["id"], told["version"], told["purpose"], variables, source)


def _outside_brackets(text: str) -> list[str]:
    parts, depth, current = [], 0, ""
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and not depth:
            parts.append(current)
            current = ""
        else:
            current += sign
    return [*parts, current]


@cache
def _template(source: str) -> Any:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    return SandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=False).from_string(source)


def types_in_short() -> str:
    """All failure types, each class prefix once: `gpu: nvlink, firmware; cuda: …`. An id is `gpu.nvlink`."""
    by_prefix: dict[str, list[str]] = {}
    for name in taxonomy().types:
        prefix, _, rest = name.partition(".")
        by_prefix.setdefault(prefix, []).append(rest)
    return "; ".join(
        f"{prefix}.({'|'.join(rest)})" if rest != [""] else prefix for prefix, rest in by_prefix.items()
    )
