"""A fleet's logs for the nightly batch: many small jobs with mixed faults, healthy ones, and three bad hosts.

    python benchmarks/fleet_corpus.py --generator make_corpus.py --out FOLDER --jobs 500

`--generator` is a program that writes the logs of one job with one fault below OUT/logs and its label to
OUT/truth.yaml; its `--vocabulary` takes a JSON file whose key `hosts` holds the patterns of host names.
FOLDER/root holds a folder a job, and nothing else; FOLDER/truth.json what each job is, and the bad hosts.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BAD_HOSTS = ("gpu-013", "gpu-037", "gpu-052")
MACHINE_FAULTS = ("gpu_ecc", "gpu_bus", "nvlink", "ib_flap", "node_lost")
OTHER_FAULTS = (
    "cuda_oom",
    "host_oom",
    "python_exception_one_rank",
    "nan",
    "data_corrupt",
    "ckpt_corrupt",
    "disk_full",
    "desync",
    "nccl_hang_one_rank",
    "preempted",
    "time_limit",
)
FRAMEWORKS = ("megatron", "nemo", "deepspeed", "torchtitan", "hf")
HEALTHY, MACHINE, ON_BAD_HOST = 0.15, 0.25, 0.7  # shares; the last one of the machine faults
AGE_SECONDS = 7_200  # of every file: the jobs ended a while ago


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--generator", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--size", default="150KB")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    (asked.out / "root").mkdir(parents=True, exist_ok=True)
    vocabulary = json.loads((asked.generator.parent / "corpus_vocabulary.json").read_text())
    vocabulary["hosts"] = ["gpu-%03d"]
    (asked.out / "vocabulary.json").write_text(json.dumps(vocabulary))
    plans = [_plan(random.Random(f"{asked.seed}/{number}"), number) for number in range(asked.jobs)]
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda plan: _make(plan, asked.generator, asked.out, asked.size), plans))
    (asked.out / "truth.json").write_text(json.dumps({"bad_hosts": BAD_HOSTS, "jobs": made}, indent=1))
    (asked.out / "vocabulary.json").unlink()


def _plan(chance: random.Random, number: int) -> dict[str, str]:
    """What one job is to be; seeds that are multiples of five all fall into one month of the generator."""
    drawn = chance.random()
    bad = ""
    if drawn < HEALTHY:
        fault = "healthy"
    elif drawn < HEALTHY + MACHINE:
        fault = chance.choice(MACHINE_FAULTS)
        bad = chance.choice(BAD_HOSTS) if chance.random() < ON_BAD_HOST else ""
    else:
        fault = chance.choice(OTHER_FAULTS)
    return {
        "seed": str(5 * (number + 1)),
        "fault": fault,
        "bad": bad,
        "framework": chance.choice(FRAMEWORKS),
        "nodes": str(chance.choice((2, 3, 4))),
    }


def _make(plan: dict[str, str], generator: Path, out: Path, size: str) -> dict[str, str]:
    name = f"job-{int(plan['seed']):06d}"
    made, target = out / f"making-{name}", out / "root" / name
    command = [sys.executable, str(generator), "--out", str(made), "--size", size, "--jobs", "1"]
    command += ["--step", "30", "--vocabulary", str(out / "vocabulary.json")]
    command += ["--ranks", str(2 * int(plan["nodes"]))]
    command += [part for key in ("seed", "fault", "framework", "nodes") for part in (f"--{key}", plan[key])]
    if target.exists():
        shutil.rmtree(target)
    subprocess.run(command, check=True, capture_output=True)
    truth = (made / "truth.yaml").read_text()
    culprit = re.search(r'culprit_hosts: \["(gpu-\d+)"', truth)
    kind = re.search(r"failure_type: (\S+)", truth)
    host = culprit[1] if culprit else ""
    if host and plan["bad"]:
        _swap(made / "logs", host.encode(), plan["bad"].encode())
        host = plan["bad"]
    shutil.move(made / "logs", target)
    shutil.rmtree(made)
    then = time.time() - AGE_SECONDS
    for path in target.rglob("*"):
        os.utime(path, (then, then))
    return {"job": name, "failure_type": kind[1] if kind else "", "host": host, "fault": plan["fault"]}


def _swap(folder: Path, one: bytes, other: bytes) -> None:
    """Give each of two hosts the other's name, in the files and in their names."""
    if one == other:
        return
    renamed = []
    for path in sorted(folder.rglob("*"), reverse=True):  # what lies in a folder before the folder
        if path.is_file():
            path.write_bytes(_swapped(path.read_bytes(), one, other))
        name = os.fsdecode(_swapped(os.fsencode(path.name), one, other))
        if name != path.name:
            renamed.append(path.rename(path.with_name(f"{name}.swapped")))
    for path in renamed:
        path.rename(path.with_name(path.name.removesuffix(".swapped")))


def _swapped(text: bytes, one: bytes, other: bytes) -> bytes:
    return text.replace(one, b"\0").replace(other, one).replace(b"\0", other)


if __name__ == "__main__":
    main()
