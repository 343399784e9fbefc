"""The logs of a small fleet, in the words of real software: some jobs well, some broken, one host bad."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

DAY = datetime(2026, 3, 2, 1, 0, 0)
HOUR_AGO = 3_600.0


def write_job(
    root: Path, name: str, fault: str, hosts: tuple[str, str] = ("gn01", "gn02"), start: int = 0
) -> Path:
    """A job of two ranks on two hosts, begun `start` minutes after a day in March began; it ended long ago.

    Faults: none, key (a KeyError of the program), ecc (the second host's GPU), quiet (ends without a word).
    """
    folder = root / name
    began = DAY + timedelta(minutes=start)
    for rank, host in enumerate(hosts):
        lines = [f"{_at(began, 0)} INFO trainer: world_size=2 rank={rank} hostname={host}"]
        lines += [
            f"{_at(began, step)} INFO trainer: iteration {step}/ 40 | loss: {3 - step / 50:.3f} | lr: 1.0E-04"
            for step in range(1, 21)
        ]
        end = _at(began, 21)
        if fault == "none":
            lines += [f"{end} INFO trainer: iteration 40/ 40 | loss: 2.100 | lr: 1.0E-04"]
            lines += [f"{end} INFO trainer: Training completed successfully. Exiting with code 0"]
        elif fault == "key" and rank == 0:
            lines += [
                f"{end} ERROR trainer: uncaught exception",
                "Traceback (most recent call last):",
                '  File "/opt/train/train.py", line 88, in <module>',
                "    main()",
                '  File "/opt/train/data.py", line 12, in collate',
                "    ids = batch['input_ids']",
                f"KeyError: 'input_ids_{start}'",
            ]
        elif fault == "ecc" and rank == 1:
            lines += ["[rank1]: RuntimeError: CUDA error: uncorrectable ECC error encountered"]
        _write(folder / "logs" / host / f"rank{rank}.log", lines)
        if fault == "ecc":
            kernel = [f"[{_kernel_time(began, 0)}] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15"]
            if rank == 1:
                kernel += [
                    f"[{_kernel_time(began, 20)}] NVRM: Xid (PCI:0000:19:00): 48, pid=4711, name=python, DBE "
                    "(double bit error): An uncorrectable double bit error (DBE) has been detected on GPU in "
                    "the framebuffer at partition 7, subpartition 0."
                ]
            _write(folder / "logs" / host / "dmesg.log", kernel)
    return folder


def small_fleet(root: Path) -> None:
    """Ten jobs: four broken by gn09, two by the same KeyError, one that went silent, three well."""
    for number, start in enumerate((0, 200, 400, 600)):
        write_job(root, f"job-10{number}", "ecc", ("gn01", "gn09"), start)
    for number, start in enumerate((30, 90)):
        write_job(root, f"job-20{number}", "key", ("gn03", "gn04"), start)
    write_job(root, "job-300", "quiet", ("gn05", "gn06"), 50)
    for number, hosts in enumerate((("gn01", "gn02"), ("gn03", "gn05"), ("gn06", "gn07"))):
        write_job(root, f"job-40{number}", "none", hosts, 100 * number)


def age(folder: Path, seconds: float = HOUR_AGO) -> None:
    """Make all files of a folder as old as this."""
    for path in folder.rglob("*"):
        then = path.stat().st_mtime - seconds
        os.utime(path, (then, then))


def _write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    then = path.stat().st_mtime - HOUR_AGO
    os.utime(path, (then, then))


def _at(began: datetime, minutes: int) -> str:
    return (began + timedelta(minutes=minutes)).strftime("%Y-%m-%d %H:%M:%S")


def _kernel_time(began: datetime, minutes: int) -> str:
    return (began + timedelta(minutes=minutes)).strftime("%a %b %e %H:%M:%S %Y")
