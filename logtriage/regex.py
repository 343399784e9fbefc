"""Regular expressions that are compiled when they are first asked.

The product's modules hold some 400 of them; compiling all of them took a sixth of the time that a small job
needs, and an ordinary job asks fewer than half.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")
_FACTS = ("pattern", "flags", "groups", "groupindex")


class _Uncompiled:
    """Stands for a pattern; from its first use on it carries the methods of the compiled one."""

    def __init__(self, text: Any, flags: int) -> None:
        self._source = text, flags

    def __getattr__(self, name: str) -> Any:
        # Reached only while the name is no attribute of the instance: once, for all names together.
        if name not in _METHODS and name not in _FACTS:
            raise AttributeError(name)
        compiled = re.compile(*self._source)
        self.__dict__.update({each: getattr(compiled, each) for each in (*_METHODS, *_FACTS)})
        return getattr(compiled, name)


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """A pattern for a module's own use: `re.compile`, but compiled on first use.

    A wrong pattern raises re.error on that first use. What needs a true `re.Pattern` (the functions of the
    module `re`) takes `re.compile`.
    """
    return cast("re.Pattern[AnyStr]", _Uncompiled(text, flags))
