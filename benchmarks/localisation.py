"""How often the root cause and its place are found in generated jobs with one known fault each.

usage: localisation.py --generator make_corpus.py --out FOLDER [--frameworks a,b] [--faults x,y] [--seeds 1,2]
           [--ranks 64] [--nodes 8] [--size 10MB] [--history N] [--vocabulary FILE] [--work FOLDER] [-v]

The generator makes each corpus (`--framework F --fault X --seed S --ranks R --nodes N --size B --out DIR`)
and its `truth.yaml`. FOLDER gets `localisation.md` and `localisation.json`. Corpora lie in a temporary
folder, or stay in `--work` and are used again from there. `--history N` lets the generator make N earlier
healthy runs and gives them to the triage.

Figures, each the share of the corpora that it applies to:
  type        the failure type is the label's or one that it also accepts
  host        the first host blamed is the culprit (where the truth names one)
  ranks       the ranks blamed are exactly the culprits (where the truth names some)
  evidence    one of the first three cited lines is one that the truth names
  indicated   one of those lines is among the indications
  stage       the stage is the one in which the fault strikes
  iteration   the iteration is that of the fault, or its neighbour: it lies in that one or the next
  nobody      no host is blamed (where the truth names neither rank nor host)
  f1          of `indications` against all lines that the fault wrote, which the message texts of the
              generator's vocabulary tell; texts that it also writes in healthy runs count on neither side
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import re2
import yaml

from logtriage.pipeline import triage
from logtriage.report.document import Verdict

JUDGED = ("type", "host", "ranks", "evidence", "indicated", "nobody", "stage", "iteration")
FIGURES = (*JUDGED, "precision", "recall", "f1")
# Faults that strike elsewhere than among the iterations.
STAGES = {"ckpt_corrupt": "loading", "disk_full": "saving", "mixed": "saving"}
_HARMLESS = ("common_", "pool", "specials", "dmesg_", "ctl_", "events_", "init", "job_head")
PLACE = re.compile(r"\$\{(\w+)(?::[^}]*)?\}")


def texts(lines: Iterable[str], *macros: dict[str, list[str]]) -> Iterator[str]:
    """The message texts of vocabulary lines, with `@name` replaced by what the first of `macros` says."""
    for line in lines:
        if line.startswith("@"):
            known = next((each[line[1:]] for each in macros if line[1:] in each), [])
            yield from texts(known, *macros)
        else:
            yield from re.sub(r"^\*\d+ ", "", line).split("\n")


def pattern(text: str, constants: dict[str, str]) -> str:
    """A message text as a pattern for the line it makes, whatever stands in its places."""
    parts: list[str] = []
    last, text = 0, text.strip()
    for found in PLACE.finditer(text):
        parts.append(re.escape(text[last : found.start()]))
        if found[1] in constants:
            inner = PLACE.sub(lambda _: "\0", constants[found[1]])
            parts.append(re.escape(inner).replace("\0", ".*?"))
        else:
            parts.append(r"[ \d:TZ,._/+A-Za-z-]+?" if found[1] == "ts" else r"\S*? *")
        last = found.end()
    return "".join((*parts, re.escape(text[last:])))


class Wording:
    """Which lines of a corpus its fault wrote, by the texts of the vocabulary."""

    def __init__(self, vocabulary: dict[str, Any], framework: str, fault: str) -> None:
        frame = vocabulary["frameworks"][framework]
        chosen = vocabulary["faults"][fault]
        macros = frame.get("macros", {}), vocabulary["macros"]
        constants = {
            **vocabulary.get("words", {}), **frame.get("words", {}), "script": frame["script"],
            **chosen.get("vars", {}),
        }  # fmt: skip
        told = [text for event in chosen.get("events", ()) for text in texts(event["lines"], *macros)]
        harmless = [
            text
            for source in (vocabulary, frame)
            for key, items in source.items()
            if key.startswith(
                ("common_", "pool", "specials", "dmesg_", "ctl_", "events_", "init", "job_head")
            )
            for item in (items if isinstance(items, list) else ())
            for text in texts(_lines(item), *macros)
        ]
        prefix = pattern(frame.get("prefix", ""), constants)
        self.fault = _whole_lines(told, prefix, constants)
        self.harmless = _whole_lines(harmless, prefix, constants)
        self.is_empty = not any(text.strip() for text in told)

    def indicates(self, line: str) -> bool | None:
        """Whether the fault wrote the line; None where it is not to be told."""
        if not self.fault.Match(line):
            return False
        return None if self.harmless.Match(line) else True


def _whole_lines(told: Iterable[str], prefix: str, constants: dict[str, str]) -> Any:
    kinds = {pattern(text, constants) for text in told if PLACE.sub("", text).strip()} or {"a^"}
    found = re2.Set.FullMatchSet()
    for each in sorted(kinds):
        found.Add(rf"(?:{prefix})?\s*{each}\s*")
    found.Compile()
    return found


def _lines(item: Any) -> list[str]:
    """The lines of a vocabulary's item: a text, or a list that holds texts among weights and places."""
    if isinstance(item, str):
        return [item]
    if not isinstance(item, list):
        return []
    nested = [text for each in item if isinstance(each, list) for text in _lines(each)]
    return nested or [each for each in item if isinstance(each, str)]


def read_lines(path: Path) -> list[str]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [line.decode("utf-8", "replace").split("\r")[-1] for line in data.split(b"\n")]


def short(host: str) -> str:
    return host.split(".")[0].lower()


def score(verdict: Verdict, truth: dict[str, Any], logs: Path, wording: Wording) -> dict[str, Any]:
    """The figures of one corpus; those that do not apply are absent."""
    body = verdict.verdict
    row: dict[str, Any] = {
        "truth": truth["failure_type"],
        "got": body.failure_type,
        "confidence": body.confidence,
        "got_ranks": list(body.culprits.ranks),
        "got_hosts": list(body.culprits.hosts),
        "type": body.failure_type in (truth["failure_type"], *truth.get("also_acceptable", ())),
    }
    hosts, ranks = truth.get("culprit_hosts"), truth.get("culprit_ranks")
    if hosts:
        row["host"] = bool(body.culprits.hosts) and short(body.culprits.hosts[0]) in map(short, hosts)
    if ranks:
        row["ranks"] = sorted(body.culprits.ranks) == sorted(ranks)
    if not hosts and not ranks:
        row["nobody"] = not body.culprits.hosts
    wanted = {(each["file"], each["line"]) for each in truth.get("evidence", ())}
    indicated = {(each.file, each.line) for each in verdict.indications}
    if wanted and not truth["failure_type"].startswith("none."):
        row["evidence"] = any((each.file, each.line) in wanted for each in body.evidence[:3]) or (
            # any timing of a culprit is as good as the ones that the truth cites
            truth["failure_type"] == "slow.straggler"
            and any(_speaks_of(each, ranks or ()) for each in body.evidence[:3])
        )
        if not wording.is_empty:
            row["indicated"] = bool(wanted & indicated)
    if not wording.is_empty and not truth["failure_type"].startswith("none."):
        told: set[tuple[str, int]] = set()
        unclear: set[tuple[str, int]] = set()
        for path in sorted(logs.rglob("*")):
            if not path.is_file():
                continue
            name = path.relative_to(logs).as_posix()
            seen: dict[str, bool | None] = {}
            for number, line in enumerate(read_lines(path), 1):
                if line not in seen:
                    seen[line] = wording.indicates(line) if line.strip() else None
                if seen[line]:
                    told.add((name, number))
                elif seen[line] is None:
                    unclear.add((name, number))
        right = len(told & indicated)
        row["precision"] = right / max(1, len(indicated - unclear))
        row["recall"] = right / max(1, len(told))
        row["f1"] = 2 * right / max(1, len(told) + len(indicated - unclear))
        row["missed"] = _samples(told - indicated, logs)
        row["invented"] = _samples(indicated - unclear - told, logs)
    return row


def in_time(verdict: Verdict, truth: dict[str, Any], stage: str, iteration: int) -> dict[str, Any]:
    """Stage and iteration; of a job that went well there are none."""
    at = verdict.verdict.stage
    if truth["failure_type"].startswith("none."):
        return {"stage": at is None}
    return {
        "stage": at is not None and at.name == stage,
        "iteration": at is not None and at.iteration is not None and abs(at.iteration - iteration) <= 1,
        "got_stage": at.name if at else None,
        "off_by": at.iteration - iteration if at and at.iteration is not None else None,
    }


def _speaks_of(cited: Any, ranks: Iterable[int]) -> bool:
    named = re.findall(r"(?i)(?:\b[a-z]{1,7}[_ =:#\"]{0,4}|^\W{0,8})(\d{1,5})\b(?!\.)", cited.text)
    return bool({cited.rank, *map(int, named)} & set(ranks)) and re.search(r"\d\.\d", cited.text) is not None


def _samples(places: set[tuple[str, int]], logs: Path) -> list[str]:
    chosen = sorted(places)[:: max(1, len(places) // 6)][:6]
    return [f"{file}:{line} {read_lines(logs / file)[line - 1][:150]}" for file, line in chosen]


def corpus(options: argparse.Namespace, folder: Path, framework: str, fault: str, seed: int) -> None:
    """Make a corpus unless it is there already."""
    if (folder / "truth.yaml").is_file():
        return
    command = [
        sys.executable, str(options.generator), "--framework", framework, "--fault", fault,
        "--seed", str(seed), "--ranks", str(options.ranks), "--nodes", str(options.nodes),
        "--size", options.size, "--jobs", "1", "--out", str(folder),
    ]  # fmt: skip
    if options.vocabulary:
        command += ["--vocabulary", str(options.vocabulary)]
    if options.history:
        command += ["--history", str(options.history)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def table(rows: list[dict[str, Any]], by: str) -> list[str]:
    """A Markdown table of means by one column."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row[by]].append(row)
    lines = [f"| {by} | {' | '.join(FIGURES)} |", f"| --- |{' --- |' * len(FIGURES)}"]
    for name, members in [*sorted(groups.items()), ("**all**", rows)]:
        lines.append(f"| {name} | {' | '.join(_mean(members, figure) for figure in FIGURES)} |")
    return lines


def _mean(rows: list[dict[str, Any]], figure: str) -> str:
    values = [float(row[figure]) for row in rows if figure in row]
    return f"{sum(values) / len(values):.3f}" if values else ""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--generator", type=Path, required=True)
    parser.add_argument("--vocabulary", type=Path)
    parser.add_argument("--frameworks")
    parser.add_argument("--faults")
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--size", default="10MB")
    parser.add_argument("--history", type=int, default=0)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("-v", "--verbose", action="store_true", help="show each corpus")
    options = parser.parse_args()
    words = options.vocabulary or options.generator.parent / "corpus_vocabulary.json"
    vocabulary = json.loads(words.read_text(encoding="utf-8"))
    frameworks = options.frameworks.split(",") if options.frameworks else list(vocabulary["frameworks"])
    faults = options.faults.split(",") if options.faults else list(vocabulary["faults"])
    rows = []
    for seed in map(int, options.seeds.split(",")):
        for framework in frameworks:
            for fault in faults:
                row = one(options, vocabulary, framework, fault, seed)
                rows.append(row)
                wrong = [name for name in JUDGED if row.get(name) is False]
                if options.verbose or wrong or row.get("f1", 1.0) < 0.9:
                    told = " ".join(f"{name}=NO" for name in wrong)
                    print(
                        f"{seed} {framework:11}{fault:26}{row['got']:26}{row['confidence']:<5} "
                        f"f1 {row.get('f1', float('nan')):.2f} {told} {row['got_ranks'][:9]} "
                        f"{row['got_hosts'][:3]} {row.get('got_stage')} {row.get('off_by')} "
                        f"{row['seconds']}s",
                        flush=True,
                    )
    shown = [*table(rows, "fault"), "", *table(rows, "framework")]
    print("\n".join(shown))
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        head = (
            f"# Localisation on generated jobs\n{len(rows)} jobs of {options.ranks} ranks on {options.nodes} "
            f"nodes, {options.size} each, seeds {options.seeds}, {options.history or 'no'} earlier runs "
            "given. `benchmarks/localisation.py` says what the figures mean.\n"
        )
        (options.out / "localisation.md").write_text("\n".join((head, *shown, "")), encoding="utf-8")
        kept = [{k: v for k, v in row.items() if k not in ("missed", "invented")} for row in rows]
        (options.out / "localisation.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def one(
    options: argparse.Namespace, vocabulary: dict[str, Any], framework: str, fault: str, seed: int
) -> dict[str, Any]:
    """Make, triage and score one corpus."""
    with tempfile.TemporaryDirectory() as scratch:
        name = f"{framework}-{fault}-{seed}-{options.ranks}-{options.size}"
        folder = (options.work or Path(scratch)) / name
        corpus(options, folder, framework, fault, seed)
        earlier = sorted(folder.parent.glob(f"{name}-history-*"))[: options.history]
        started = time.perf_counter()
        verdict = triage(
            folder / "logs", offline=True, workers=1, history=[each / "logs" for each in earlier]
        )
        seconds = time.perf_counter() - started
        truth = yaml.safe_load((folder / "truth.yaml").read_text(encoding="utf-8"))
        row = score(verdict, truth, folder / "logs", Wording(vocabulary, framework, fault))
        told = json.loads((folder / "generator.json").read_text(encoding="utf-8"))
        row |= in_time(verdict, truth, STAGES.get(fault, "iterating"), told["fault_iteration"])
        if not options.work:
            shutil.rmtree(folder)
    return {"fault": fault, "framework": framework, "seed": seed, "seconds": round(seconds, 2)} | row


if __name__ == "__main__":
    main()
