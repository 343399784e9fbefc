"""Which hosts a fleet should take out: those that break more than chance explains, and no others."""

from __future__ import annotations

import random

import pytest
from fleet_verdicts import ECC, fleet_verdict
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage.fleet.hosts import host_figures, machine_fault_hosts
from logtriage.fleet.reliability import poisson_bounds
from logtriage.report.document import Verdict


def a_fleet(faulty: dict[str, int], jobs: int = 200, seed: int = 1) -> list[Verdict]:
    """Jobs of four of forty hosts each; on each host in `faulty` so many jobs die of its GPU."""
    chance = random.Random(seed)
    names = [f"n{number:02d}" for number in range(40)]
    verdicts = [fleet_verdict(number, hosts=tuple(chance.sample(names, 4))) for number in range(jobs)]
    number = jobs
    for host, count in faulty.items():
        for _ in range(count):
            others = [name for name in chance.sample(names, 4) if name != host][:3]
            hosts = (host, *others)
            verdicts.append(fleet_verdict(number, "gpu.ecc_uncorrectable", hosts, (host,), text=ECC))
            number += 1
    return verdicts


def test_bad_hosts_are_named_and_no_others() -> None:
    fleet = a_fleet({"n07": 9, "n21": 8, "n33": 8, "n02": 1, "n03": 1, "n05": 1, "n11": 1})
    lemons = {each.host for each in host_figures(fleet) if each.standing == "lemon"}
    assert lemons == {"n07", "n21", "n33"}


def test_a_host_that_merely_ran_in_most_jobs_is_no_lemon() -> None:
    """A login-like host takes part in everything, and so in most faults as well: by its hours, as it must."""
    verdicts = [fleet_verdict(number, hosts=("busy", f"n{number % 30}")) for number in range(300)]
    for number in range(300, 312):
        culprit = "busy" if number % 2 else f"n{number % 30}"
        hosts = ("busy", f"n{number % 30}")
        verdicts.append(fleet_verdict(number, "gpu.fell_off_bus", hosts, (culprit,), text=ECC))
    figures = {each.host: each for each in host_figures(verdicts)}
    assert figures["busy"].faults == 6
    assert figures["busy"].standing == ""
    assert figures["busy"].expected == pytest.approx(6, abs=1)


def test_one_fault_makes_no_lemon_however_little_a_host_ran() -> None:
    fleet = [*a_fleet({}), fleet_verdict(999, "gpu.nvlink", ("new1", "new2"), ("new1",), hours=0.01)]
    assert all(not each.standing for each in host_figures(fleet))


def test_faults_of_programs_count_against_no_host() -> None:
    verdicts = [fleet_verdict(n, "code.key", ("a", "b"), ("a",), text="KeyError: 'x'") for n in range(20)]
    assert [each.faults for each in host_figures(verdicts)] == [0, 0]


def test_many_culprits_at_once_are_no_one_machine() -> None:
    hosts = tuple(f"n{number}" for number in range(8))
    assert machine_fault_hosts(fleet_verdict(1, "network.infiniband", hosts, hosts)) == ()
    assert machine_fault_hosts(fleet_verdict(1, "network.infiniband", hosts, hosts[:1])) == ("n0",)


def test_signals_of_the_paper_are_counted() -> None:
    verdicts = [
        fleet_verdict(1, "gpu.ecc_uncorrectable", ("a",), ("a",), text=ECC),
        fleet_verdict(2, "host.node_lost", ("A.cluster.example", "b"), ("A.cluster.example",)),
        fleet_verdict(3, hosts=("a",)),
        fleet_verdict(4, hosts=("b", "c")),
    ]
    figures = host_figures(verdicts)[0]
    assert (figures.host, figures.faults, figures.lost, figures.xids) == ("a", 2, 1, (48,))
    assert (figures.multi_node_faults, figures.single_node_faults, figures.single_node_jobs) == (1, 1, 2)
    assert figures.single_node_rate == 0.5
    assert figures.hours == 3


def test_a_node_that_the_scheduler_declared_lost_counts_whatever_the_logs_say() -> None:
    """Slurm's NODE_FAIL: the logs of the others say that a collective timed out, or a later run ends well."""
    hosts = [f"n{number}" for number in range(30)]
    verdicts = [
        fleet_verdict(number, hosts=(hosts[number % 30], hosts[-number % 30])) for number in range(200)
    ]
    hung = [
        fleet_verdict(200 + number, "collective.timeout", ("n7", f"n{number}")) for number in (1, 2, 3, 4)
    ]
    again = fleet_verdict(300, hosts=("n11", "n12"))  # requeued elsewhere after its first run lost n7
    own = fleet_verdict(301, "gpu.fell_off_bus", ("n7", "n3"), ("n7",))
    lost = {each.id: ("N7.cluster.example",) for each in (*hung, again, own)}
    first = host_figures([*verdicts, *hung, again, own], lost=lost)[0]
    assert (first.host, first.standing, first.faults, first.lost) == ("n7", "lemon", 6, 6)
    assert first.kinds == (("host.node_lost", 5), ("gpu.fell_off_bus", 1))
    assert host_figures([*verdicts, *hung, again])[0].faults == 0


def test_what_lies_before_the_window_is_forgotten() -> None:
    old = [fleet_verdict(n, "gpu.nvlink", ("a", "b"), ("a",)) for n in range(5)]
    new = [fleet_verdict(n, hosts=("a", "b"), start_hour=24 * 40 + n) for n in range(5, 10)]
    assert {each.host: each.faults for each in host_figures([*old, *new])} == {"a": 0, "b": 0}
    assert {each.host: each.faults for each in host_figures([*old, *new], None)} == {"a": 5, "b": 0}


@settings(max_examples=30, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(0, 12))
def test_the_order_of_verdicts_means_nothing(chance: random.Random, faults: int) -> None:
    fleet = a_fleet({"n01": faults, "n02": 2}, jobs=20)
    shuffled = fleet[:]
    chance.shuffle(shuffled)
    figures = host_figures(fleet)
    assert host_figures(shuffled) == figures
    assert all(each.score >= 0 for each in figures)
    # The same verdict twice, as when a folder is copied, counts once.
    assert host_figures([*fleet, *fleet]) == figures


def test_bounds_of_a_poisson_count_are_the_published_ones() -> None:
    """Garwood's table for 95 %."""
    for count, low, high in ((0, 0.0, 3.689), (1, 0.0253, 5.572), (5, 1.623, 11.668), (20, 12.217, 30.888)):
        assert poisson_bounds(count) == pytest.approx((low, high), abs=0.001)
