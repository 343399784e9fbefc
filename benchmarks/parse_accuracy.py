"""Template accuracy on Loghub-2k: writes our predictions for the scorer that measures Drain3 too.

usage: parse_accuracy.py LOGHUB_2K_DIR OUT_DIR

LOGHUB_2K_DIR holds NAME/NAME_2k.log_structured.csv for 16 systems (github.com/logpai/loghub). Each
OUT_DIR/NAME.csv has the columns LineId, EventTemplate, EventId.
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

from logtriage.mining.templates import TemplateMiner


def main(data: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for structured in sorted(data.glob("*/*_2k.log_structured.csv")):
        with structured.open(encoding="utf-8", errors="replace", newline="") as file:
            rows = list(csv.DictReader(file))
        miner = TemplateMiner()
        ids = [miner.add(row["Content"]) for row in rows]
        found = miner.templates()
        with (out / f"{structured.parent.name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["LineId", "EventTemplate", "EventId"])
            for row, each in zip(rows, ids, strict=True):
                writer.writerow([row["LineId"], re.sub(r"<[A-Z]+>", "<*>", found[each].text), each])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
