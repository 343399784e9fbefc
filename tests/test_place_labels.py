"""Output of several machines that was gathered in one file, each line with a label of its machine or pod."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from scenes import judged

from logtriage.intake.labels import counts_other
from logtriage.intake.place_labels import place_labels

LABELS: dict[str, Callable[[str], str]] = {
    "docker compose": lambda host: f"{host:<9} | ",
    "brackets": lambda host: f"[{host}] ",
    "stern": lambda host: f"{host} pytorch ",
}
FAILED = [
    "[rank{rank}]: Traceback (most recent call last):",
    '[rank{rank}]:   File "/opt/run/main.py", line 12, in <module>',
    "[rank{rank}]:     value = table[key]",
    "[rank{rank}]: KeyError: 'shard-9'",
]


def gathered(hosts: list[str], label: Callable[[str], str]) -> str:
    """Steps of each host's first rank in turns, then the exception of the last rank of the last host."""
    lines = []
    for step in range(30):
        for at, host in enumerate(hosts):
            lines.append(
                f"{label(host)}[rank{4 * at}]: 2026-04-02 10:{step:02d}:0{at} step {step * 10} loss 2.{step}"
            )
    time = "2026-04-02 10:30:00 ERROR stopped"
    rank = 4 * len(hosts) - 1
    lines.append(f"{label(hosts[-1])}[rank{rank}]: {time}")
    lines += [label(hosts[-1]) + line.format(rank=rank) for line in FAILED]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("form", LABELS)
@pytest.mark.parametrize("hosts", [["hx-a07", "hx-a11", "hx-b02"], ["trainer-0", "trainer-1"]])
def test_the_host_of_the_first_error_is_that_of_its_label(
    tmp_path: Path, form: str, hosts: list[str]
) -> None:
    body = judged(tmp_path, {"all.log": gathered(hosts, LABELS[form])}).verdict
    assert body.failure_type == "code.key"
    assert (body.culprits.ranks, body.culprits.hosts) == ((4 * len(hosts) - 1,), (hosts[-1],))
    assert body.evidence[0].time is not None


def test_hosts_behind_bars_may_be_told_by_a_letter_and_follow_each_other(tmp_path: Path) -> None:
    bar = LABELS["docker compose"]
    parts = {
        host: [line for line in gathered(["ml-a", "ml-b"], bar).splitlines() if host in line]
        for host in ("ml-a", "ml-b")
    }
    body = judged(tmp_path, {"all.log": "\n".join([*parts["ml-a"], *parts["ml-b"]]) + "\n"}).verdict
    assert (body.failure_type, body.culprits.hosts) == ("code.key", ("ml-b",))


@pytest.mark.parametrize(
    "labels",
    [
        [f"[epoch-{at // 20}] " for at in range(80)],  # phases
        [f"[rank-{at % 4}] " for at in range(80)],  # writers that are no machines
        [f"[{word}] " for word in ("data-loader", "main-loop")] * 40,  # loggers
        ["[cn-7] "] * 80,  # who is alone needs no label
        [f"[run-{at}] " for at in range(80)],
        [f"cn-{at % 4} | rank {at % 8} | " for at in range(80)],  # read by their own row
    ],
)
def test_other_words_in_front_are_no_machines(labels: list[str]) -> None:
    texts = [f"{label}step {at} loss 2.1" for at, label in enumerate(labels)]
    assert place_labels(texts, counts_other) is None
