"""The failure types, their classes and actions: the product's own copy of the public taxonomy."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from logtriage.cache import cache_folder, keep, kept


@dataclass(frozen=True, slots=True)
class FailureType:
    id: str
    failure_class: str  # infrastructure | framework | script | operations
    action: str
    means: str


@dataclass(frozen=True, slots=True)
class Taxonomy:
    version: int
    types: dict[str, FailureType]

    def __getitem__(self, failure_type: str) -> FailureType:
        """Raises KeyError that lists the nearest ids, and the file of all, when the id does not exist."""
        try:
            return self.types[failure_type]
        except KeyError:
            import difflib

            said = failure_type.lower()
            parts = {part: name for name in self.types for part in (name, *name.replace("_", ".").split("."))}
            like = [name for name in self.types if len(said) > 2 and said in name]
            like += [parts[part] for part in difflib.get_close_matches(said, parts, n=3)]
            near = list(dict.fromkeys(like))[:3]
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            told = f"failure type {failure_type!r} is not in the taxonomy{hint}"
            raise KeyError(f"{told} (see {shipped('rules') / 'taxonomy.yaml'} for all)") from None

    def __contains__(self, failure_type: object) -> bool:
        return failure_type in self.types


def shipped(folder: str) -> Path:
    """The folder `rules` or `prompts`: inside the installed package, or beside it in a source tree."""
    inside = Path(str(resources.files("logtriage"))) / folder
    return inside if inside.is_dir() else inside.parent.parent / folder


@cache
def taxonomy() -> Taxonomy:
    """The shipped taxonomy, read from what was kept of an earlier reading where its bytes are the same."""
    content = (shipped("rules") / "taxonomy.yaml").read_bytes()
    path = cache_folder() / f"taxonomy-{hashlib.sha256(content).hexdigest()[:12]}.json"
    try:
        return _of(json.loads(kept(path)))
    except (OSError, ValueError, KeyError, TypeError):
        import yaml

        document = yaml.load(content, Loader=yaml_loader())
        keep(path, json.dumps(document).encode())
        return _of(document)


def _of(document: Any) -> Taxonomy:
    return Taxonomy(
        version=document["version"],
        types={
            name: FailureType(name, entry["class"], entry["action"], entry["means"])
            for name, entry in document["types"].items()
        },
    )


def yaml_loader() -> type[Any]:
    """The C loader reads the bank ten times faster; PyYAML builds without it exist."""
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)
