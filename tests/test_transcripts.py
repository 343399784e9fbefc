"""Of a terminal that was copied whole, the job's own lines count, and what machines were asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from logtriage.pipeline import triage
from logtriage.report.document import Verdict

JOB = """2026-05-06 14:00:00 INFO starting
2026-05-06 14:00:10 INFO step 1/900 loss 2.5
2026-05-06 14:00:20 INFO step 2/900 loss 2.4
Traceback (most recent call last):
  File "/home/lea/run.py", line 12, in <module>
    main()
ZeroDivisionError: division by zero
"""
PROMPTS = ["$ ", "(env) lea@cn-7:~/work$ ", "[lea@cn-7 work]$ ", "bash-5.1$ ", "PS C:\\work> "]
ASIDE = {
    "git pull": "fatal: unable to access 'https://git.example/t.git/': Could not resolve host: git.example\n",
    "pip install -r requirements.txt": (
        "ERROR: Could not find a version that satisfies the requirement flash-attn==9.9\n"
        "ERROR: No matching distribution found for flash-attn==9.9\n"
    ),
    'python -c "import apex"': (
        'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n'
        "ModuleNotFoundError: No module named 'apex'\n"
    ),
    "wget https://example.org/weights.bin": "wget: unable to resolve host address 'example.org'\n",
    "cd /scratch/none": "-bash: cd: /scratch/none: No such file or directory\n",
}


def verdict(folder: Path, text: str) -> Verdict:
    (folder / "console.txt").write_text(text)
    return triage(folder, offline=True, workers=1)


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("command", ASIDE)
def test_what_other_commands_complain_of_is_not_what_the_job_died_of(
    tmp_path: Path, command: str, prompt: str
) -> None:
    aside = f"{prompt}{command}\n{ASIDE[command]}"
    for number, text in enumerate(
        (
            f"{aside}{prompt}python run.py\n{JOB}",
            f"{JOB}{aside}",
            aside + aside + f"{prompt}python run.py\n{JOB}{aside}",
        )
    ):
        (tmp_path / str(number)).mkdir()
        found = verdict(tmp_path / str(number), text).verdict
        assert found.failure_type == "code.zero_division"
        assert text.splitlines()[found.evidence[0].line - 1].startswith("ZeroDivisionError")


def test_a_command_alone_is_what_was_run(tmp_path: Path) -> None:
    told = verdict(tmp_path, "$ " + "\n".join(next(item for item in ASIDE.items() if "apex" in item[0])))
    assert told.verdict.failure_type == "code.import"


def test_what_a_machine_was_asked_stays(tmp_path: Path) -> None:
    hung = "".join(f"2026-05-06 14:{at:02d}:10 INFO step {at}/900 loss 2.5\n" for at in range(20))
    xid = (
        "[ 9120.100000] NVRM: Xid (PCI:0000:3b:00): 79, pid=4411, name=python, GPU has fallen off the bus.\n"
    )
    text = f"$ python run.py\n{hung}$ git status\nfatal: not a git repository\n$ dmesg | tail -1\n{xid}"
    assert verdict(tmp_path, text).verdict.failure_type == "gpu.fell_off_bus"


def test_a_job_that_goes_on_printing_beside_a_command_is_heard(tmp_path: Path) -> None:
    head, tail = JOB.split("2026-05-06 14:00:20")
    text = f"$ python run.py &\n{head}$ cd results\n2026-05-06 14:00:20{tail}"
    assert verdict(tmp_path, text).verdict.failure_type == "code.zero_division"
