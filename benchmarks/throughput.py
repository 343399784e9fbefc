"""How fast a job's logs are read, as ratios to other tools on the same files in the same run.

usage: throughput.py GENERATOR OUT.md [--size 200MB ...] [--ranks 16] [--only NAME ...] [--folder DIR]

GENERATOR is a program that makes the logs of one job: GENERATOR --size S --ranks N --nodes N --seed N
--out DIR [--compress gz|zst]. Besides its corpora this makes three of its own: lines that are all different,
one line of a gigabyte, and a storm of one complaint. Each is read by `logtriage triage --offline --json` with
one and two workers, by plain Drain3 with and without masks (on a sample, whose rate is taken for the whole),
by ripgrep with the bank's patterns (on a sample too), and by `wc -l`. Times are those of whole processes:
wall, and CPU of all processes together; memory is the proportional set size of all of them together, sampled
ten times a second. The speed of the pass is what the verdict says of it; of compressed corpora it is also
given as a share of the speed at which one core decompresses the same files and does nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from drain3 import TemplateMiner
from drain3.masking import MaskingInstruction
from drain3.template_miner_config import TemplateMinerConfig

from logtriage.intake.compression import CHUNK, decompressed
from logtriage.rulebank.bank import load_bank
from logtriage.rulebank.database import is_loud

SAMPLE_BYTES = 3_000_000
DRAIN_SECONDS = 20.0
RIPGREP_BYTES = 1_000_000  # so many patterns make it slow
RIPGREP = ["rg", "-j1", "-c", "-a", "--regex-size-limit", "2G", "--dfa-size-limit", "2G"]
# What people mask as a rule: addresses, paths, hexadecimal numbers, numbers.
ORDINARY_MASKS = (
    (r"((?<=[^A-Za-z0-9])|^)(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})((?=[^A-Za-z0-9])|$)", "IP"),
    (r"(/[\w.\-]+)+", "PATH"),
    (r"0x[0-9a-fA-F]+", "HEX"),
    (r"((?<=[^A-Za-z0-9])|^)([0-9a-f]{6,})((?=[^A-Za-z0-9])|$)", "ID"),
    (r"((?<=[^A-Za-z0-9])|^)([\-\+]?\d+)((?=[^A-Za-z0-9])|$)", "NUM"),
)


@dataclass(frozen=True)
class Run:
    """One command: seconds on the clock, CPU seconds, and the most memory in MB of all its processes."""

    wall: float
    cpu: float
    memory: float
    output: bytes


def run(command: list[str]) -> Run:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    most = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        os.set_blocking(process.stdout.fileno(), False)  # type: ignore[union-attr]
        output = b""
        while process.poll() is None:
            output += process.stdout.read() or b""  # type: ignore[union-attr]
            most = max(most, sum(map(_shared_out, _tree(process.pid))))
            time.sleep(0.1)
        output += process.stdout.read() or b""  # type: ignore[union-attr]
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(wall, cpu, most / 1e6, output)


def _tree(process: int) -> Iterator[int]:
    yield process
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{process}/task/{process}/children").read_text().split():
            yield from _tree(int(child))


def _shared_out(process: int) -> int:
    """The proportional set size in bytes: pages that several processes share count once in all."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
        return 1024 * int(next(line.split()[1] for line in text.splitlines() if line.startswith("Pss:")))
    return 0


# --- corpora -----------------------------------------------------------------------------------------


def all_different(folder: Path, size: int) -> None:
    """Words that no two lines share, so that nothing can be counted together."""
    chance = random.Random(7)
    words = 6
    with (folder / "rank_0.log").open("wb") as file:
        while file.tell() < size:
            letters = chance.randbytes(10_000 * words * _WORD).translate(_LETTERS)
            said = [letters[at : at + _WORD] for at in range(0, len(letters), _WORD)]
            for at in range(0, len(said), words):
                file.write(b"2026-01-02 03:04:05 " + b" ".join(said[at : at + words]) + b"\n")


_WORD = 17  # letters, none of which a hexadecimal number has
_LETTERS = b"ghijklmnopqrstuv" * 16


def one_line(folder: Path, size: int) -> None:
    with (folder / "rank_0.log").open("wb") as file:
        file.write(b"step 1 loss 2.0\n")
        for _ in range(size >> 20):
            file.write(b"tensor([0.1, 0.2, " * (1024 * 1024 // 18))
        file.write(b"\nRuntimeError: CUDA error: an illegal memory access was encountered\n")


def storm(folder: Path, size: int) -> None:
    codes = (13, 31, 43, 45, 63, 79, 94)
    with (folder / "dmesg.log").open("w") as file:
        number = 0
        while file.tell() < size:
            for at in range(2_000):
                time = f"{number + at:6d}.{at:06d}"
                file.write(
                    f"[{time}] NVRM: Xid (PCI:0000:{at % 8:02x}:00): {codes[at * at % 7]}, pid=77, x\n"
                )
            number += 2_000


OWN: dict[str, Callable[[Path, int], None]] = {
    "all-different": all_different,
    "one-line": one_line,
    "storm": storm,
}


def bytes_of(size: str) -> int:
    units = {"MB": 10**6, "GB": 10**9}
    return int(float(size[:-2]) * units[size[-2:]])


# --- measuring ---------------------------------------------------------------------------------------


def drain_rate(sample: bytes, masked: bool) -> float:
    config = TemplateMinerConfig()
    if masked:
        config.masking_instructions = [MaskingInstruction(*each) for each in ORDINARY_MASKS]
    miner = TemplateMiner(config=config)
    read = 0
    started = time.process_time()
    for line in sample.decode("utf-8", "replace").splitlines(keepends=True):
        miner.add_log_message(line.rstrip("\n"))
        read += len(line)
        if time.process_time() > started + DRAIN_SECONDS:  # of lines that are all different it reads 20 KB/s
            break
    return read / 1e6 / (time.process_time() - started)


def ripgrep_patterns() -> list[str]:
    """The bank's causes and symptoms as ripgrep takes them: a group's name once, and fewer escapes."""
    found = []
    for rule in load_bank().rules:
        pattern = re.sub(r"\(\?P<\w+>", "(?:", rule.pattern)
        pattern = re.sub(r"\\([\"'/@%&=:;,!~<>` ])", r"\1", pattern)
        tried = ["rg", "-e", pattern, "/dev/null"]
        if is_loud(rule) and subprocess.run(tried, stderr=subprocess.DEVNULL, check=False).returncode < 2:
            found.append(pattern)
    return found


def sample_of(folder: Path) -> bytes:
    largest = max(
        (path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size
    )
    with largest.open("rb") as file:
        return file.read(SAMPLE_BYTES)


def decompressing_rate(files: Sequence[Path]) -> float:
    """MB/s of plain bytes that one core gets out of files with the product's own decompressors."""
    size = 0
    started = time.process_time()
    for path in files:
        with path.open("rb") as file:
            for plain in decompressed(iter(lambda: file.read(CHUNK), b"")):
                size += len(plain)
    return size / 1e6 / (time.process_time() - started)


def measured(name: str, folder: Path, patterns: Path) -> dict[str, object]:
    logs = str(folder)
    row: dict[str, object] = {"corpus": name}
    for workers in (1, 2):
        found = run(["logtriage", "triage", "--offline", "--quiet", "--no-history", "--json", "-",
                     "--workers", str(workers), logs])  # fmt: skip
        verdict = json.loads(found.output)
        size = verdict["mining"]["bytes"] / 1e6
        row |= {
            "MB": round(size),
            f"verdict {workers}": verdict["verdict"]["failure_type"],
            f"wall {workers}": found.wall,
            f"cpu {workers}": found.cpu,
            f"memory {workers}": found.memory,
            f"pass {workers}": size / verdict["timing"]["stages"]["pass"],
            "left out": "; ".join(verdict["mining"]["left_out"]),
        }
    packed = [path for path in folder.rglob("*") if path.suffix in (".gz", ".zst")]
    if packed:
        row["decompressor"] = decompressing_rate(packed)
    else:
        row["wc"] = run(["sh", "-c", 'find "$0" -type f -exec cat {} + | wc -l', logs]).cpu
        if name != "one-line":
            row["drain masked"] = size / drain_rate(sample_of(folder), True)
            row["drain"] = size / drain_rate(sample_of(folder), False)
        if shutil.which("rg"):
            sample = folder.parent / "sample.log"
            sample.write_bytes(sample_of(folder)[:RIPGREP_BYTES])
            found = run([*RIPGREP, "-f", str(patterns), str(sample)])
            row["rg"] = found.cpu * size * 1e6 / max(1, sample.stat().st_size)
    return row


def table(rows: list[dict[str, object]]) -> str:
    head = [
        "corpus",
        "MB",
        "MB/s of CPU",
        "x Drain3 masked",
        "x Drain3",
        "x rg",
        "x wc -l",
        "pass MB/s (1, 2)",
        "of decompressing (1, 2)",
        "2 workers x 1",
        "peak MB (1, 2)",
        "verdict",
    ]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for row in rows:
        cpu = float(row["cpu 1"])  # type: ignore[arg-type]

        def times(name: str, row: dict[str, object] = row, cpu: float = cpu) -> str:
            return f"{float(row[name]) / cpu:.2f}" if name in row else "–"  # type: ignore[arg-type]

        cells = [
            row["corpus"], f"{row['MB']:,}", f"{float(row['MB']) / cpu:.0f}",  # type: ignore[arg-type]
            times("drain masked"), times("drain"), times("rg"), times("wc"),
            f"{row['pass 1']:,.0f}, {row['pass 2']:,.0f}",
            ", ".join(share(row, each) for each in ("pass 1", "pass 2")),
            f"{float(row['wall 1']) / float(row['wall 2']):.2f}",  # type: ignore[arg-type]
            f"{row['memory 1']:.0f}, {row['memory 2']:.0f}", row["verdict 1"],
        ]  # fmt: skip
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def share(row: dict[str, object], of_pass: str) -> str:
    if "decompressor" not in row:
        return "–"
    return f"{float(row[of_pass]) / float(row['decompressor']):.0%}"  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("generator", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", nargs="+", default=["200MB", "2GB", "8GB"])
    parser.add_argument("--own-size", default="1GB")
    parser.add_argument("--ranks", nargs="+", default=["1", "16", "128"])
    parser.add_argument("--only", nargs="+", help="some of the corpora by name")
    parser.add_argument("--folder", type=Path, help="where corpora are made (default: a temporary folder)")
    given = parser.parse_args()
    plans: list[tuple[str, list[str] | Callable[[Path, int], None]]] = []
    for size in given.size:
        for ranks in given.ranks:
            for packing in ("plain", "gz", "zst"):
                nodes = str(max(1, int(ranks) // 8))
                make = [sys.executable, str(given.generator), "--size", size, "--ranks", ranks]
                make += ["--nodes", nodes, "--framework", "megatron", "--fault", "gpu_ecc", "--seed", "7"]
                make += [] if packing == "plain" else ["--compress", packing]
                plans.append((f"{size} {ranks} ranks {packing}", make))
    plans += list(OWN.items())
    rows = []
    patterns = "\n".join(ripgrep_patterns()) if shutil.which("rg") else ""
    for name, make in plans:
        if given.only and name not in given.only:
            continue
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            listed = Path(folder) / "patterns.txt"
            listed.write_text(patterns)
            logs = Path(folder) / "job"
            if isinstance(make, list):
                subprocess.run([*make, "--out", str(logs)], check=True, stdout=subprocess.DEVNULL)
                logs = logs / "logs"
            else:
                logs.mkdir()
                make(logs, bytes_of(given.own_size))
            if not rows:  # the databases of patterns are compiled once, and kept
                run(["logtriage", "triage", "--offline", "--no-history", "--json", "-", str(logs)])
            rows.append(measured(name, logs, listed))
            given.out.write_text(table(rows))
            print(table(rows[-1:]).splitlines()[-1], rows[-1]["left out"], flush=True)


if __name__ == "__main__":
    main()
