"""`logtriage metrics`: the program's own figures for Prometheus.

node_exporter's textfile collector takes them; the format is Prometheus' text exposition format 0.0.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from logtriage.apps.console import answer

if TYPE_CHECKING:
    from logtriage.settings import Settings

Labels = tuple[tuple[str, str], ...]
Series = Mapping[Labels, float]  # values by their labels


def metrics(
    output: Annotated[
        str, typer.Option(metavar="FILE|-", help="Write them here, whole or not at all: name it *.prom.")
    ] = "-",
) -> None:
    """The program's own figures for Prometheus. Triages by type, their cost, what people said of them.

    Of kept verdicts (the newest 2,000 of a year), so each is a gauge: pruning makes them smaller.
    """
    from logtriage.settings import load_settings

    text = "".join(_written(*family) for family in _families(load_settings()))
    if output == "-":
        answer(text)
    else:
        from logtriage.written import write

        write(output, text, 0o644)  # the collector is another user, and reads whenever it likes


def _families(settings: Settings) -> Iterator[tuple[str, str, Series]]:
    """(name, what it is, values) of every figure."""
    from logtriage import __version__
    from logtriage.memory.history import glances

    found = list(glances(settings.data_dir))
    kinds: Series = Counter((("type", each.failure_type), ("class", each.failure_class)) for each in found)
    deciders: Series = Counter((("by", each.decided_by),) for each in found)
    yield "logtriage_build_info", "The version that wrote this.", {(("version", __version__),): 1}
    yield "logtriage_verdicts", "Kept verdicts by failure type.", kinds
    yield "logtriage_verdicts_decided", "Kept verdicts by what decided them.", deciders
    for name, what, value in (
        ("triage_seconds", "Seconds that the kept verdicts took.", sum(each.seconds for each in found)),
        ("triage_bytes", "Bytes of logs that they are on.", sum(each.bytes for each in found)),
        (
            "model_tokens",
            "Tokens that models were asked and answered for them.",
            sum(e.tokens for e in found),
        ),
        (
            "last_verdict_timestamp_seconds",
            "When the newest was given.",
            max((e.at for e in found), default=0),
        ),
    ):
        yield f"logtriage_{name}", what, {(): value}
    said = _said(settings)
    agreed: Series = Counter((("type", kind),) for kind, told in said if kind == told)
    other: Series = Counter((("type", kind), ("told", told)) for kind, told in said if kind != told)
    yield "logtriage_confirmations", "Verdicts that people called right, by type.", agreed
    yield "logtriage_corrections", "Verdicts that people called wrong, by what it was.", other


def _said(settings: Settings) -> list[tuple[str, str]]:
    """(what it was, what the verdict had told) of each diagnosis; the last word on a verdict counts."""
    from logtriage.memory.rule_folder import has_memory

    if not has_memory(settings):
        return []
    from logtriage.apps.cli_loop import opened_ledger

    with opened_ledger() as ledger:
        last = {each.verdict_id: each for each in reversed(ledger.diagnoses())}
    return [(each.failure_type, each.told) for each in last.values()]


def _written(name: str, what: str, series: Series) -> str:
    lines = [f"# HELP {name} {what}", f"# TYPE {name} gauge"]
    for labels, value in sorted(series.items()):
        told = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
        lines.append(f"{name}{f'{{{told}}}' if told else ''} {value:.17g}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
