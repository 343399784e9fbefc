"""How many tokens a text costs: exactly where the model's vocabulary is on this machine, else a bound."""

from __future__ import annotations

import hashlib
import math
import os
import re
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

PER_MESSAGE = 5  # role and separators of one chat message
# Where tiktoken keeps what it downloaded (tiktoken/load.py); it is only used if it is there already.
_VOCABULARIES = {
    name: f"https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
    for name in ("cl100k_base", "o200k_base")
}
_PARTS = re.compile(r"[A-Za-z]+|\d|[^\x00-\x7f]|\s+|[^\sA-Za-z\d\x80-\U0010ffff]+")


def counter(model: str) -> Callable[[str], int]:
    """The function that counts the tokens of a text for a model."""
    return _exact(model) or upper_bound


def upper_bound(text: str) -> int:
    """At least as many tokens as common vocabularies need for logs and JSON.

    Each digit counts as one (some vocabularies group three), words of up to six letters too, of longer words
    each four letters, of a run of signs two of three. docs/models.md compares it with real vocabularies.
    """
    total = 0
    for part in _PARTS.findall(text):
        first = part[0]
        if not first.isascii():
            total += len(part.encode("utf-8", "replace"))
        elif first.isalpha():
            total += math.ceil(len(part) / 4) if len(part) > 6 else 1
        elif first.isspace():
            total += part.count("\n") + (len(part) > 1)
        elif first.isdigit():
            total += 1
        else:
            total += math.ceil(len(part) * 2 / 3)
    return total


@cache
def _exact(model: str) -> Callable[[str], int] | None:
    try:
        import tiktoken
        from tiktoken.model import encoding_name_for_model

        name = encoding_name_for_model(model)
    except (ImportError, KeyError):
        return None
    address = _VOCABULARIES.get(name)
    folder = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    kept = Path(folder or Path(tempfile.gettempdir()) / "data-gym-cache")
    if address is None or not (kept / hashlib.sha1(address.encode()).hexdigest()).is_file():
        return None
    encoding = tiktoken.get_encoding(name)
    return lambda text: len(encoding.encode_ordinary(text))
