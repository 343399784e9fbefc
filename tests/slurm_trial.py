"""The jobs of the Slurm trial: run on a real cluster of one node (real_slurm.sh) and recorded from there.

python tests/slurm_trial.py record    runs them, and writes what sacct and scontrol say of them, and the
                                      output that they left, to tests/recorded/slurm*.json; about two minutes
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = Path("/tmp/slurm-trial")
ANSWERS = HERE / "recorded" / "slurm.json"
FILES = HERE / "recorded" / "slurm-files.json"
RECORDED_AT = HERE / "recorded" / "slurm-time.txt"

SCRIPTS = {
    "fail.sh": 'echo "step 10 loss 2.31"\n'
    'echo "RuntimeError: CUDA error: unspecified launch failure" >&2\nexit 7\n',
    "steps.sh": "#SBATCH --output=%x.%j/batch.out\nsrun -n2 -o '%x.%j/task-%t.log' --error=%x.%j/task-%t.err "
    "bash -c 'echo rank $SLURM_PROCID; echo oops >&2; exit $((SLURM_PROCID * 3))'\nexit 0\n",
    "sleep.sh": "sleep 300\n",
    "odd.sh": "exit $((SLURM_ARRAY_TASK_ID % 2))\n",
}
# Ids are given in this order from 1 on; the heterogeneous job takes two, the array four.
JOBS = (
    "sbatch -J llama-sft --gres=gpu:2 -o {runs}/%x-%j.out -e {runs}/%x-%j.err fail.sh",  # 1
    "sbatch -J two-steps -n2 --gres=gpu:4 steps.sh",  # 2
    "sbatch -H -J hetero -n1 : -n1 --gres=gpu:1 fail.sh",  # 3
    "sbatch -J stopped sleep.sh",  # 5
    "sbatch -J again --requeue sleep.sh",  # 6
    "sbatch -J later --begin=now+2hours sleep.sh",  # 7
    "su -s /bin/bash nobody -c 'sbatch -J llama-sft fail.sh'",  # 8
    "sbatch -J 'a b|c' fail.sh",  # 9
    "sbatch -J elsewhere -o {folder}/elsewhere/%j.out fail.sh",  # 10
    "sbatch -J timed -t 1 sleep.sh",  # 11
    "sbatch -J sweep --array=0-3 -o arrays/%A/%a-%04j.out odd.sh",  # 12
)


def lay(folder: Path) -> Path:
    """The folder of the runs, with the scripts in it."""
    runs = folder / "runs"
    for each in (runs, runs / "two-steps.2", runs / "arrays" / "12", folder / "elsewhere"):
        each.mkdir(parents=True, exist_ok=True)
        each.chmod(0o777)
    for name, text in SCRIPTS.items():
        (runs / name).write_text(f"#!/bin/bash\n{text}")
    return runs


def run_jobs(folder: Path) -> Path:
    """Run the jobs on the cluster that is started in `folder`; what is left waiting is 3, 6 and 7."""
    runs = lay(folder)
    environment = {**os.environ, "SLURM_CONF": f"{folder}/slurm.conf"}

    def shell(command: str) -> str:
        ran = subprocess.run(
            command,
            shell=True,
            cwd=runs,
            env=environment,
            text=True,
            check=True,
            capture_output=True,
            timeout=60,
        )
        return ran.stdout

    for job in JOBS:
        shell(job.format(runs=runs, folder=folder))
    deadline = time.time() + 60
    while "RUNNING" not in shell("squeue -h -j 6 -o %T") and time.time() < deadline:
        time.sleep(0.5)
    time.sleep(2)
    shell("scancel 5")
    shell("scontrol requeue 6")
    deadline = time.time() + 240
    while time.time() < deadline and shell("squeue -h -o '%i %T'").count("\n") > 4:
        time.sleep(1)
    time.sleep(3)  # until slurmdbd was told
    return runs


def stand_in(folder: Path, tools: Path, environment: dict[str, str]) -> dict[str, str]:
    """The environment in which sacct and scontrol are the recorded ones; `tools` becomes first on PATH."""
    tools.mkdir(exist_ok=True)
    for name in ("sacct", "scontrol"):
        (tools / name).symlink_to(HERE / "recorded_tool.py")
    path = f"{tools}{os.pathsep}{environment['PATH']}"
    return {"PATH": path, "RECORDED_TOOLS": str(ANSWERS), "RECORDED_FOLDER": str(folder)}


def record() -> None:
    from logtriage.sources.slurm import Slurm

    ANSWERS.parent.mkdir(exist_ok=True)
    ANSWERS.unlink(missing_ok=True)
    subprocess.run([HERE / "real_slurm.sh", "start", FOLDER], check=True)
    try:
        runs = run_jobs(FOLDER)
        os.environ |= stand_in(FOLDER, FOLDER / "tools", dict(os.environ))
        os.environ |= {"RECORD_FROM": "/usr/bin", "SLURM_CONF": f"{FOLDER}/slurm.conf"}
        source = Slurm(roots=(str(runs),))
        for asked in ("1", "2", "3", "3+1", "5", "6", "7", "9", "10", "11", "12", "12_3", "99", "llama-sft"):
            source.find(asked, 10)
        for asked in ("nobody", "root", "nosuch"):
            source.find(asked, 50)
        list(source.ended(time.time() - 3600))
        source.known()
        place = FOLDER / "collected"
        place.mkdir()
        for job in ("1", "2", "10", "11", "12_3"):
            source.collect(source.find(job, 1)[0], place)
        source.faults()
        left = {
            str(path.relative_to(FOLDER)): path.read_text()
            for path in sorted([*runs.rglob("*"), *(FOLDER / "elsewhere").iterdir()])
            if path.is_file() and path.suffix != ".sh"
        }
        FILES.write_text(json.dumps(left, indent=1) + "\n")
        RECORDED_AT.write_text(f"{time.time():.0f}\n")
    finally:
        os.environ.pop("RECORDED_TOOLS", None)
        subprocess.run([HERE / "real_slurm.sh", "stop", FOLDER], check=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["record"]:
        record()
    else:
        print(__doc__)
