#!/usr/bin/env -S python3 -ES
"""Stands on PATH for sacct, scontrol or kubectl, and says again what the real one said when it was recorded.

    RECORDED_TOOLS=FILE.json sacct --jobs=2        answers as recorded, or fails as the tool does
    RECORDED_TOOLS=FILE.json RECORD_FROM=/usr/bin  runs the real tool and adds its answer to the file

In the file the folder of the trial, RECORDED_FOLDER, is written @FOLDER@. Numbers behind `now-` are left
out of the comparison. Each call is noted in RECORDED_CALLS, where that is set.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

FILE = Path(os.environ["RECORDED_TOOLS"])
FOLDER = os.environ.get("RECORDED_FOLDER", "@FOLDER@")


def main() -> int:
    tool = Path(sys.argv[0]).name
    arguments = [re.sub(r"now-\d+", "now-N", each).replace(FOLDER, "@FOLDER@") for each in sys.argv[1:]]
    key = json.dumps([tool, os.environ.get("SLURM_TIME_FORMAT", ""), *arguments])
    if calls := os.environ.get("RECORDED_CALLS"):
        with Path(calls).open("a") as noted:
            noted.write(key + "\n")
    answers = json.loads(FILE.read_text()) if FILE.exists() else {}
    if real := os.environ.get("RECORD_FROM"):
        said = subprocess.run([f"{real}/{tool}", *sys.argv[1:]], capture_output=True, text=True, check=False)
        streams = [text.replace(FOLDER, "@FOLDER@") for text in (said.stdout, said.stderr)]
        answers[key] = [said.returncode, *streams]
        FILE.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")
    if key not in answers:
        print(f"{tool}: error: nothing was recorded for {key}", file=sys.stderr)
        return 1
    status, out, err = answers[key]
    sys.stdout.write(out.replace("@FOLDER@", FOLDER))
    sys.stderr.write(err.replace("@FOLDER@", FOLDER))
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
