"""Which machine was lost, where who tells of it names it in a sentence of its own."""

from __future__ import annotations

from pathlib import Path

from scenes import clock, judged, steps


def test_who_tells_of_a_lost_machine_names_the_one_machine_in_its_sentence(tmp_path: Path) -> None:
    wrote = "{host}:81{rank}:90{rank} [0] NCCL INFO Bootstrap : Using eth0:10.4.0.{rank}<0>\n"
    logs = {
        f"{host}/rank_{rank}.log": wrote.format(host=host, rank=rank) + steps(100)
        for rank, host in enumerate(("alpha07", "alpha08", "alpha09", "alpha10"))
    }
    told = f"{clock(1)} starter queue open\n{clock(500)} starter alpha09: NodeStatusUnknown for 300 s\n"
    verdict = judged(tmp_path, logs | {"starter.log": told}).verdict
    assert (verdict.failure_type, verdict.culprits.hosts) == ("host.node_lost", ("alpha09",))
