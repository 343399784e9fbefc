"""The JSON Schema of the verdict document, made from its models: `python -m logtriage.report.schema`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from logtriage.report.document import SCHEMA, Verdict

FILE = Path("docs/verdict.schema.json")


def schema_text() -> str:
    """JSON Schema (draft 2020-12) of the document that `--json` writes: every key of it is there."""
    schema = Verdict.model_json_schema(by_alias=True, mode="serialization")
    named = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA}
    return json.dumps(named | schema, indent=2, ensure_ascii=False) + "\n"


def write_schema(path: Path) -> None:
    """Write the schema to `path`. Raises OSError."""
    path.write_text(schema_text(), encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    write_schema(Path(arguments[0]) if arguments else FILE)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
