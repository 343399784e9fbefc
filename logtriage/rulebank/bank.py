"""Loading the bank: the shipped rules and any extra files, with file and line of every fault."""

from __future__ import annotations

import difflib
import functools
import hashlib
import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import re2

from logtriage.model import Level, SourceRole
from logtriage.rulebank.kept_rules import keep_rules, kept_rules
from logtriage.rulebank.rule import Example, Fault, Mark, Mitigation, Provenance, Ratio, Role, Rule, Strength
from logtriage.taxonomy import shipped, taxonomy, yaml_loader

NOT_RULES = {"taxonomy.yaml", "explains.yaml"}
LONGEST_FILE = 2 << 20  # bytes of a rule file; all shipped ones together have half of it
FIELDS = {
    "id", "failure_type", "role", "strength", "title", "keywords", "pattern", "where", "explains",
    "mitigation", "references", "examples", "counterexamples", "marks", "voids", "framework", "provenance",
    "level", "ratio", "outlived", "beside",
}  # fmt: skip


_Choice = TypeVar("_Choice", Role, Strength, Mark, SourceRole, Level, Ratio)


class BankFault(Exception):
    """The bank cannot be loaded; `faults` says where and why."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        more = f" (and {len(faults) - 1} more faults)" if len(faults) > 1 else ""
        super().__init__(f"{faults[0]}{more}")


@dataclass(frozen=True, slots=True)
class Bank:
    """All rules in force; `version` changes whenever a byte of a rule file changes."""

    rules: tuple[Rule, ...]
    explains: dict[str, frozenset[str]]  # failure type -> types that may follow from it
    version: str
    faults: tuple[Fault, ...] = ()  # of rules in extra files, which were left out
    further: int = 0  # how many of the rules, the last ones, are not the product's own


def rule_options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 512 << 20
    return options


def read_rule_file(path: Path) -> tuple[Rule, ...]:
    """The rules of one file.

    Raises BankFault with every fault of the file, not only the first.
    """
    rules, faults = _parsed_file(path, _bytes_of(path))
    if faults:
        raise BankFault(faults)
    return rules


def rule_files() -> list[Path]:
    """The files of the shipped bank that hold rules."""
    return [path for path in sorted(shipped("rules").glob("*.yaml")) if path.name not in NOT_RULES]


def load_bank(extra: Sequence[Path] = ()) -> Bank:
    """The shipped bank and the rules of the extra files, in a stable order.

    A broken rule of an extra file is left out and named in `faults`, so that one slip in somebody's own
    rules does not cost him the verdict. Raises BankFault for a fault in the shipped bank.
    """
    shipped_bank = _shipped_bank()
    if not extra:
        return shipped_bank
    rules = {rule.id: rule for rule in shipped_bank.rules}
    faults: list[Fault] = []
    digest = hashlib.sha256(shipped_bank.version.encode())
    for path in map(Path, extra):
        try:
            content = _bytes_of(path)
            digest.update(path.name.encode() + b"\0" + content + b"\0")
        except BankFault as fault:
            faults += fault.faults
            continue
        faults += _added(rules, path, content)
    further = len(rules) - len(shipped_bank.rules)
    return Bank(tuple(rules.values()), shipped_bank.explains, digest.hexdigest()[:12], tuple(faults), further)


def _shipped_bank() -> Bank:
    """The bank that comes with the product.

    What was parsed and checked once is kept under the user's cache folder (as JSON, keyed by the
    files' bytes), since YAML takes longer to read than most jobs' logs.
    """
    folder = shipped("rules")
    contents = [(path, _bytes_of(path)) for path in sorted(folder.glob("*.yaml"))]
    digest = hashlib.sha256()
    for maker in ("bank.py", "kept_rules.py"):  # of other code than this, what is kept is not read
        digest.update(Path(__file__).with_name(maker).read_bytes())
    for path, content in contents:
        digest.update(path.name.encode() + b"\0" + content + b"\0")
    version = digest.hexdigest()[:12]
    if (known := kept_rules(version)) is not None:
        return Bank(*known, version)
    faults: list[Fault] = []
    rules: dict[str, Rule] = {}
    for path, content in contents:
        if path.name in NOT_RULES:
            continue
        faults += _added(rules, path, content)
    explains, graph_faults = _graph(folder / "explains.yaml")
    faults += graph_faults
    if faults:
        raise BankFault(faults)
    bank = Bank(tuple(rules.values()), explains, version)
    keep_rules(version, bank.rules, explains)
    return bank


def _added(rules: dict[str, Rule], path: Path, content: bytes) -> list[Fault]:
    """Take over the sound rules of a file whose ids are still free; the faults of the others."""
    try:
        found, faults = _parsed_file(path, content)
    except BankFault as fault:
        return list(fault.faults)
    return faults + [
        Fault(rule.file, rule.line, rule.id, f"id is taken by {first.file}:{first.line}")
        for rule in found
        if (first := rules.setdefault(rule.id, rule)) is not rule
    ]


def _bytes_of(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise BankFault([Fault(str(path), 0, "", "is no file but a device; it was not opened")])
        if path.is_file() and path.stat().st_size > LONGEST_FILE:
            raise BankFault([Fault(str(path), 0, "", f"is larger than {LONGEST_FILE >> 20} MiB")])
        return path.read_bytes()
    except OSError as error:
        raise BankFault([Fault(str(path), 0, "", f"cannot be read: {error.strerror}")]) from None


def _parsed_file(path: Path, content: bytes) -> tuple[tuple[Rule, ...], list[Fault]]:
    """The sound rules of a file and the faults of the others; raises BankFault for a file that is no list."""
    import yaml

    name = path.name
    try:
        # Read once: the nodes know their lines, and the document is built of them.
        loader = yaml_loader()(content)
        root = loader.get_single_node()
        document = loader.construct_document(root) if root is not None else None
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "not a YAML file"
        raise BankFault([Fault(name, mark.line + 1 if mark else 1, "", f"not YAML: {problem}")]) from None
    except ValueError as error:  # a day that no month has, a number of 5,000 digits
        raise BankFault([Fault(name, 1, "", f"a value cannot be read (quote it): {error}")]) from None
    if document is None:
        return (), []
    if not isinstance(document, list) or not isinstance(root, yaml.SequenceNode):
        raise BankFault([Fault(name, 1, "", "a rule file is a list of rules (see docs/rules.md)")])
    rules: list[Rule] = []
    faults: list[Fault] = []
    for node, entry in zip(root.value, document, strict=True):
        line = node.start_mark.line + 1
        try:
            rules.append(_rule(entry, name, line))
        except ValueError as error:
            who = entry["id"] if isinstance(entry, dict) and isinstance(entry.get("id"), str) else ""
            faults.append(Fault(name, line, who, str(error)))
    return tuple(rules), faults


def _rule(entry: Any, file: str, line: int) -> Rule:
    if not isinstance(entry, dict):
        raise ValueError("a rule is a mapping")
    if unknown := set(entry) - FIELDS:
        raise ValueError(f"unknown field {', '.join(sorted(map(_short, unknown)))}")
    for name in ("id", "role", "title", "keywords", "pattern"):
        if not entry.get(name):
            raise ValueError(f"field {name!r} is missing")
    for name in ("id", "title", "pattern"):
        if isinstance(entry[name], list | dict):
            raise ValueError(f"{name}: {_short(entry[name])} is not a text")
    if not all(_texts(entry, "keywords")):
        raise ValueError("a keyword is empty")
    role = _one_of(Role, entry["role"], "role")
    failure_type = entry.get("failure_type")
    if failure_type is not None and not isinstance(failure_type, str):
        raise ValueError(f"failure_type: {_short(failure_type)} is not a text")
    if failure_type is not None and failure_type not in taxonomy():
        near = difflib.get_close_matches(str(failure_type), taxonomy().types, n=2)
        raise ValueError(
            f"failure_type {_short(failure_type)} is not in the taxonomy"
            + (f"; did you mean {' or '.join(near)}?" if near else "")
        )
    if role in (Role.CAUSE, Role.SYMPTOM) and failure_type is None:
        raise ValueError(f"a {role} rule needs a failure_type")
    pattern = str(entry["pattern"])
    ratio = _one_of(Ratio, entry["ratio"], "ratio") if entry.get("ratio") else None
    try:
        compiled = re2.compile(pattern, rule_options())
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        raise ValueError(f"pattern is no linear-time expression: {reason}") from None
    if ratio and not {"part", "whole"} <= set(compiled.groupindex):
        raise ValueError("a ratio needs the groups part and whole in the pattern")
    return Rule(
        id=str(entry["id"]),
        failure_type=failure_type,
        role=role,
        strength=_one_of(Strength, entry.get("strength", "likely"), "strength"),
        title=str(entry["title"]),
        keywords=_texts(entry, "keywords"),
        pattern=pattern,
        where=tuple(_one_of(SourceRole, name, "where") for name in _texts(entry, "where")),
        explains=_texts(entry, "explains"),
        mitigation=tuple(_mitigation(item) for item in _items(entry, "mitigation")),
        references=_texts(entry, "references"),
        examples=tuple(_example(item) for item in _items(entry, "examples")),
        counterexamples=_texts(entry, "counterexamples"),
        marks=_one_of(Mark, entry["marks"], "marks") if entry.get("marks") else None,
        voids=_voids(entry.get("voids", False)),
        framework=entry.get("framework"),
        provenance=_provenance(entry.get("provenance")),
        file=file,
        line=line,
        level=_one_of(Level, entry["level"], "level") if entry.get("level") else None,
        ratio=ratio,
        outlived=entry.get("outlived") is True,
        beside=_beside(entry.get("beside")),
    )


def _provenance(value: Any) -> Provenance | None:
    if value is None:
        return None
    names = [field.name for field in fields(Provenance)]
    if not isinstance(value, dict) or set(value) != set(names):
        raise ValueError(f"provenance is a mapping of {', '.join(names)}")
    return Provenance(**{name: str(value[name]) for name in names})


def _beside(value: Any) -> tuple[tuple[str, str], ...]:
    if value is None:
        return ()
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in (*value, *value.values())):
        raise ValueError("beside is a mapping of names of fields to words (a boolean as 'true' or 'false')")
    return tuple(value.items())


def _short(value: Any) -> str:
    """A value as a fault quotes it; a list may hold itself many times over, so it is never spelled out."""
    text = reprlib.repr(value)
    return text if len(text) <= 60 else text[:60] + "…"


def _voids(value: Any) -> str:
    if value in (False, None, ""):
        return ""
    if value is True or value == "line":
        return "line"
    if value == "phrase":
        return "phrase"
    raise ValueError(f"voids is {_short(value)}, but must be true, line or phrase")


def _one_of(kind: type[_Choice], value: Any, name: str) -> _Choice:
    try:
        return kind(value)
    except ValueError:
        allowed = ", ".join(member.value for member in kind)
        raise ValueError(f"{name} is {_short(value)}, but must be one of {allowed}") from None


def _items(entry: dict[str, Any], name: str) -> list[Any]:
    value = entry.get(name)
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _texts(entry: dict[str, Any], name: str) -> tuple[str, ...]:
    items = _items(entry, name)
    if bad := [item for item in items if not isinstance(item, str)]:
        raise ValueError(f"{name}: {_short(bad[0])} is not a text (quote it)")
    return tuple(items)


def _mitigation(item: Any) -> Mitigation:
    if isinstance(item, str):
        return Mitigation(item)
    if isinstance(item, dict) and isinstance(item.get("text"), str) and set(item) <= {"text", "when"}:
        return Mitigation(item["text"], item.get("when"))
    raise ValueError(f"mitigation: {_short(item)} is neither a text nor {{text, when}}")


def _example(item: Any) -> Example:
    if isinstance(item, str):
        return Example(item)
    if isinstance(item, dict) and isinstance(item.get("line"), str) and set(item) <= {"line", "captures"}:
        captures = item.get("captures") or {}
        if isinstance(captures, dict) and all(
            isinstance(part, str) for pair in captures.items() for part in pair
        ):
            return Example(item["line"], tuple(sorted(captures.items())))
    raise ValueError(f"example {_short(item)} is neither a text nor {{line, captures}} with quoted captures")


def _graph(path: Path) -> tuple[dict[str, frozenset[str]], list[Fault]]:
    """`explains.yaml` with its wildcards spread out over the taxonomy."""
    if not path.exists():
        return {}, []
    import yaml

    faults: list[Fault] = []
    known = taxonomy().types
    edges: dict[str, set[str]] = {}

    def spread(name: str) -> Iterator[str]:
        family = name[:-1] if name.endswith(".*") else None
        found = [each for each in known if each == name or (family and each.startswith(family))]
        if not found:
            faults.append(Fault(path.name, 1, "", f"{name!r} names no failure type"))
        yield from found

    try:
        document = yaml.load(_bytes_of(path), Loader=yaml_loader()) or {}
    except (yaml.YAMLError, RecursionError):
        return {}, [Fault(path.name, 1, "", "not YAML")]
    if not isinstance(document, dict) or not all(isinstance(effects, list) for effects in document.values()):
        return {}, [Fault(path.name, 1, "", "the graph is a mapping of a type to the list of its effects")]
    for cause, effects in document.items():
        for each in spread(str(cause)):
            edges.setdefault(each, set()).update(
                effect for name in effects for effect in spread(str(name)) if effect != each
            )
    return {cause: frozenset(effects) for cause, effects in edges.items()}, faults


@functools.cache
def pattern_of(rule_pattern: str) -> Any:
    """The compiled pattern of a rule (google-re2)."""
    return re2.compile(rule_pattern, rule_options())
