"""What a machine's own log complains of while the job goes on: late servers, programs beside the ranks."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import WATCHDOG, clock, findings, job, judged, of_rank, reading, steps

from logtriage.model import SourceRole
from logtriage.pipeline import triage


def kernel(*events: tuple[float, str], host: str = "m1") -> tuple[str, str]:
    lines = [f"{clock(at)[:10]}T{clock(at)[11:19]}+00:00 {host} kernel: {text}\n" for at, text in events]
    return f"{host}/kern.log", "".join(lines)


LATE = "nfs: server 10.2.0.7 not responding, timed out"
CRASHED = "exporter[{pid}]: segfault at 10 ip 00007f00aa sp 00007ffd01 error 4 in libstdc++.so.6[7f00+2000]"


def of_machine(*events: tuple[float, str], ranks: int = 2, last: str = "") -> list[bool]:
    """Whether each of the machine's complaints beside ranks with 100 steps in 200 s was survived."""
    file, text = kernel(*events)
    logs = [of_rank(rank, steps(100) + last.format(rank=rank), host="m1") for rank in range(ranks)]
    found = findings(*logs, reading(file, text, SourceRole.KERNEL, host="m1"))
    return [each.recovered for each in found.candidates if each.source_role is SourceRole.KERNEL]


def test_a_late_server_after_which_the_job_made_many_steps_ended_nothing() -> None:
    assert of_machine((20, LATE)) == [True]


def test_a_late_server_at_the_very_end_still_counts() -> None:
    assert of_machine((190, LATE)) == [False]


def test_what_came_as_often_while_the_job_went_on_is_usual_at_its_end() -> None:
    before = [(at, LATE) for at in (5, 25, 45, 65)]
    assert of_machine(*before, (190, LATE)) == [True] * 5


def test_a_burst_at_the_end_is_no_habit() -> None:
    before = [(at, LATE) for at in (5, 25, 45)]
    burst = [(180 + at, LATE) for at in range(15)]
    assert of_machine(*before, *burst) == [True] * 3 + [False] * 15


def test_a_program_beside_the_ranks_that_crashed_is_none_of_them() -> None:
    wrote = f"{clock(230)} INFO rank {{rank}} goes on\n"
    assert of_machine((190, CRASHED.format(pid=71)), last=wrote) == [True]
    assert of_machine((190, CRASHED.format(pid=71))) == [False]


def test_a_crash_that_a_rank_names_is_its_own() -> None:
    named = f"{clock(230)} ERROR RuntimeError: DataLoader worker (pid 71) is killed by signal: 11\n"
    assert of_machine((190, CRASHED.format(pid=71)), last=named) == [False]


def test_ranks_that_waited_in_vain_had_not_crashed() -> None:
    undated = WATCHDOG.replace("[E131 08:30:0{rank}.100000000 ", "[E ").replace("{op}", "ALLREDUCE")
    assert of_machine((195, CRASHED.format(pid=71)), last=undated) == [True]


@pytest.mark.parametrize(("state", "kind"), [("OPEN", "none.running"), ("CONNECTING", "storage.filesystem")])
def test_ceph_closes_connections_that_it_does_not_need(tmp_path: Path, state: str, kind: str) -> None:
    events = [
        (190 + at, f"libceph: osd4 (1)10.8.0.4:6801 socket closed (con state {state})") for at in range(2)
    ]
    early = (9.0, "libceph: osd9 (1)10.8.0.9:6801 socket closed (con state OPEN)")
    files = {f"rank{rank}.log": steps(100) for rank in range(2)}
    verdict = judged(tmp_path, files | dict([kernel(early, *events)])).verdict
    assert verdict.failure_type == kind


def test_what_a_good_run_s_machines_said_as_well_is_no_cause(tmp_path: Path) -> None:
    now = {f"rank{rank}.log": steps(100) for rank in range(2)} | dict([kernel((190, LATE))])
    ended = f"{clock(201)} INFO training finished\n"
    good = {f"rank{rank}.log": steps(100) + ended for rank in range(2)} | dict([kernel((150, LATE))])
    here, before = job(tmp_path / "now", now), job(tmp_path / "before", good)
    assert triage(here, offline=True).verdict.failure_type == "storage.filesystem"
    assert triage(here, offline=True, history=[before]).verdict.failure_type == "none.running"


def test_a_crash_that_nobody_of_the_job_noticed_is_not_why_it_stands_still(tmp_path: Path) -> None:
    watched = "".join(f"[watch] {clock(at)[:19]} m1 up\n" for at in range(0, 3000, 60))
    files = {f"rank{rank}.log": steps(100) for rank in range(2)} | {"slurm-5.out": watched}
    late = [(at, CRASHED.format(pid=70 + at)) for at in (195, 900)]
    assert judged(tmp_path, files | dict([kernel(*late)])).verdict.failure_type == "hang.silent"


ABORTED = (
    "[{at}] torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: {code}) local_rank: 0"
)


@pytest.mark.parametrize(("code", "strength"), [("-6", "hint"), ("-11", "definite")])
def test_a_crash_of_which_no_launcher_knows_is_doubted(code: str, strength: str) -> None:
    file, text = kernel((190, CRASHED.format(pid=71)), host="m2")
    ended = ABORTED.format(at=clock(230), code=code) + " (pid: 9) of binary: python\n"
    found = findings(
        of_rank(0, steps(100), host="m1"),
        reading(file, text, SourceRole.KERNEL, host="m2"),
        reading("launch.log", ended, host="m1"),
    )
    (crash,) = (each for each in found.candidates if each.source_role is SourceRole.KERNEL)
    assert (crash.recovered, crash.strength.value) == (False, strength)


def of_machines(*events: tuple[float, str, str], said: str = "") -> list[bool]:
    """The same of complaints (seconds, machine, text) of machines with two ranks each."""
    logs = [of_rank(rank, steps(100) + said, host=f"m{rank // 2}") for rank in range(4)]
    kernels = [
        kernel(*((at, text) for at, name, text in events if name == host), host=host) for host in HOSTS
    ]
    machines = [
        reading(file, text, SourceRole.KERNEL, host=host)
        for host, (file, text) in zip(HOSTS, kernels, strict=True)
    ]
    found = findings(*logs, *machines)
    return [each.recovered for each in found.candidates if each.source_role is SourceRole.KERNEL]


HOSTS = ("m0", "m1")


def test_what_several_machines_had_before_and_no_rank_felt_is_no_cause() -> None:
    assert of_machines((20, "m0", LATE), (190, "m1", LATE)) == [True, True]


def test_what_came_for_the_first_time_at_the_end_or_all_at_once_still_counts() -> None:
    assert of_machines((180, "m0", LATE), (190, "m1", LATE)) == [False, False]
    burst = [(180 + at, "m1", LATE) for at in range(6)]
    assert of_machines((20, "m0", LATE), *burst) == [True] + [False] * 6


def test_a_server_s_silence_that_a_rank_felt_counts() -> None:
    felt = f"{clock(199)} ERROR OSError: [Errno 5] Input/output error: '/data/part-3.bin'\n"
    assert of_machines((20, "m0", LATE), (190, "m1", LATE), said=felt) == [True, False]


def test_a_program_that_crashes_again_elsewhere_is_none_of_the_job() -> None:
    crash = CRASHED.format
    assert of_machines((190, "m0", crash(pid=71)), (600, "m1", crash(pid=83))) == [True, True]
    assert of_machines((190, "m0", crash(pid=71)), (195, "m1", crash(pid=83))) == [False, False]


KILLED = "Memory cgroup out of memory: Killed process {pid} ({name}) total-vm:9kB, anon-rss:9kB, file-rss:9kB"
FAULT = "NVRM: Xid (PCI:0000:3b:00): 31, pid={pid}, name={name}, Ch 00000008, intr 0. MMU Fault: ENGINE"


@pytest.mark.parametrize("told", [KILLED, FAULT])
def test_a_program_without_which_the_job_went_on_is_none_of_its_ranks_later(told: str) -> None:
    early, late = told.format(pid=71, name="shipper"), told.format(pid=83, name="shipper")
    assert of_machines((20, "m0", early), (195, "m1", late)) == [True, True]


@pytest.mark.parametrize("told", [KILLED, FAULT])
def test_what_befell_a_rank_or_a_program_for_the_first_time_at_the_end_counts(told: str) -> None:
    early, late = told.format(pid=71, name="python3"), told.format(pid=83, name="python3")
    assert of_machines((20, "m0", early), (195, "m1", late)) == [True, False]
    assert of_machines((195, "m1", told.format(pid=83, name="shipper"))) == [False]


def test_whom_the_kernel_killed_long_after_the_last_dated_line_may_be_the_one_that_the_job_misses(
    tmp_path: Path,
) -> None:
    killed = "Out of memory: Killed process 4471 ({name}) total-vm:98kB, anon-rss:90kB, file-rss:0kB"
    for name, culprit in (("ray::Rollout", "host.out_of_memory"), ("telegraf", "unknown")):
        driver = steps(100) + (
            "Traceback (most recent call last):\n"
            '  File "/srv/rl/loop.py", line 88, in one_round\n'
            "    batch = ray.get(pending)\n"
            "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
        )
        file, text = kernel((3000, killed.format(name=name)))
        verdict = judged(tmp_path / name[:3], {"driver.log": driver, file: text}).verdict
        assert verdict.failure_type == culprit, name


STALLED = "rcu: INFO: rcu_sched self-detected stall on CPU"


def test_a_machine_that_stalled_and_went_on_was_not_lost() -> None:
    assert of_machine((60, STALLED)) == [True]  # no step is made without it
    assert of_machine((196, STALLED)) == [False]


def test_what_several_machines_had_without_harm_is_not_what_one_was_lost_by(tmp_path: Path) -> None:
    files = {
        f"rank{rank}.log": f"{clock(0)} INFO host m{rank}, rank {rank}\n{steps(100)}" for rank in range(4)
    }
    files |= dict(kernel((60.0 + 45 * host, STALLED), host=f"m{host}") for host in range(4))
    assert judged(tmp_path, files).verdict.failure_type == "none.running"


def test_whose_channels_the_driver_cleaned_up_beside_the_ranks_is_no_rank() -> None:
    xid = "NVRM: Xid (PCI:0000:3a:00): 45, pid=71, name={name}, Ch 00000001"
    assert of_machine((20, xid.format(name="fan-control"))) == [True]
    assert of_machine((196, xid.format(name="python3"))) == [False]
