"""What a machine complains of and what joins nothing of how the job ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import WATCHDOG, clock, findings, job, judged, of_rank, reading, steps, traceback

from logtriage.model import SourceRole
from logtriage.pipeline import triage


def kernel(host: str, *events: tuple[float, str]) -> str:
    return "".join(
        f"{clock(at)[:10]}T{clock(at)[11:19]}+00:00 {host} kernel: {text}\n" for at, text in events
    )


def left(*events: tuple[float, str], said: str = "", count: int = 100, host: str = "m2") -> list[str]:
    """The types of a machine's complaints that are not held to be without harm; ranks stop at 200 s."""
    logs = [of_rank(0, steps(count), host="m1"), of_rank(1, steps(count) + said, host="m1")]
    logs += [of_rank(rank, steps(count), host="m2") for rank in (2, 3)]
    found = findings(*logs, reading(f"{host}/kern.log", kernel(host, *events), SourceRole.KERNEL, host=host))
    return [
        each.failure_type
        for each in found.candidates
        if each.source_role is SourceRole.KERNEL and not each.recovered
    ]


LOCKED = "watchdog: BUG: soft lockup - CPU#3 stuck for 26s! [migration/3:24]"
CORRECTED = "NVRM: Xid (PCI:0000:17:00): 92, pid=811, name=nvidia-smi, High single-bit ECC error rate"
DRAIN = (
    "NVRM: Xid (PCI:0000:17:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)"
)


@pytest.mark.parametrize("text", [LOCKED, CORRECTED, DRAIN])
def test_a_machine_without_which_nobody_steps_was_well_while_all_stepped(text: str) -> None:
    assert left((170, text)) == []
    assert left((197, text)) != []


def test_who_stood_before_a_cpu_stalled_was_not_stopped_by_it() -> None:
    waited = WATCHDOG.format(rank=1, op="ALLREDUCE")
    assert left((420, LOCKED), (500, LOCKED), said=waited) == []
    assert left((205, LOCKED), (420, LOCKED), said=waited) != []


def test_a_task_beside_the_ranks_that_waits_while_all_step_is_missed_by_nobody() -> None:
    assert left((196, "INFO: task mandb:4411 blocked for more than 120 seconds.")) == []
    assert left((196, "INFO: task python3:4411 blocked for more than 120 seconds.")) == ["storage.filesystem"]
    assert left((322, "INFO: task mandb:4411 blocked for more than 120 seconds.")) == ["storage.filesystem"]


def test_a_stall_elsewhere_is_not_why_a_rank_raised_an_error_of_its_own() -> None:
    raised = f"{clock(199)} ERROR rank 1 stops\n{traceback(chr(39).join(('KeyError: ', 'speaker_9', '')))}"
    assert left((196, LOCKED), said=raised) == []
    assert left((196, LOCKED)) == ["host.node_lost"]


def test_a_program_that_crashed_elsewhere_after_a_rank_had_raised_an_error_is_no_rank() -> None:
    crash = "lightdm[5150]: segfault at 8 ip 00007f22c1 sp 00007ffd77 error 4 in libc.so.6[7f22+1b0000]"
    raised = f"{clock(199)} ERROR rank 1 stops\n{traceback(chr(39).join(('KeyError: ', 'speaker_9', '')))}"
    assert left((203, crash), said=raised) == []
    assert left((203, crash), said=raised, host="m1") == ["process.native_crash"]


def test_an_interface_that_no_rank_uses_is_not_why_the_job_ended() -> None:
    stuck = "NETDEV WATCHDOG: enp3s0f1 (igb): transmit queue 2 timed out"
    uses = f"{clock(1)} INFO m1:77:91 [1] NCCL INFO Bootstrap : Using {{nic}}:10.4.0.7<0>\n"
    assert left((199, stuck), said=uses.format(nic="bond1")) == []
    assert left((199, stuck), said=uses.format(nic="enp3s0f1")) == ["network.infiniband"]
    assert left((199, stuck)) == ["network.infiniband"]


def test_a_server_that_the_machine_has_again_was_not_lost() -> None:
    lost = "nfs: server filer7.lab not responding, still trying"
    assert left((196, lost)) == ["storage.filesystem"]
    assert left((196, lost), (199, "nfs: server filer7.lab OK")) == []
    assert left((196, lost), (199, "nfs: server filer8.lab OK")) == ["storage.filesystem"]


def test_a_job_that_runs_to_the_end_of_its_logs_was_only_warned_by_a_machine(tmp_path: Path) -> None:
    logs = {f"rank{rank}.log": steps(100) for rank in range(4)}
    verdict = judged(tmp_path / "warned", {**logs, "m1/kern.log": kernel("m1", (195, LOCKED))})
    assert (verdict.verdict.failure_type, verdict.verdict.culprits.hosts) == ("none.running", ())
    killed = "Kernel panic - not syncing: Fatal exception in interrupt"
    verdict = judged(tmp_path / "dead", {**logs, "m1/kern.log": kernel("m1", (195, killed))})
    assert verdict.verdict.failure_type != "none.running"


def test_a_kernel_does_not_speak_a_program_s_words(tmp_path: Path) -> None:
    said = "Job allocation failure: Requested node configuration is not available"
    boot = "".join(f"[ {at}.000000] usb 1-{at}: new high-speed USB device\n" for at in range(10, 30))
    by_kernel = job(tmp_path / "kernel", {"run.log": steps(100), "dmesg.txt": f"{boot}[ 31.500000] {said}\n"})
    assert triage(by_kernel, offline=True).verdict.failure_type == "none.running"
    by_program = job(tmp_path / "program", {"dmesg.txt": boot, "run.log": f"salloc: error: {said}\n"})
    assert triage(by_program, offline=True).verdict.failure_type == "scheduler.launch"


FAULTED = "amdgpu 0000:85:00.0: amdgpu: [gfxhub0] no-retry page fault (src_id:0 ring:24 vmid:8 pasid:32771)"
RETRAINED = (
    "NVRM: Xid (PCI:0000:{gpu}:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 07 (0x00000004 0x0 0x0 0x0 0x0 0x0)"
)


def test_a_gpu_that_faulted_for_another_program_while_all_stepped_is_none_of_the_ranks() -> None:
    assert left((170, FAULTED)) == []
    assert left((199, FAULTED)) == ["cuda.illegal_memory_access"]


def left_of_three(*events: tuple[float, int]) -> int:
    """How many complaints of a GPU's links are left, at times on three machines, of a job on four."""
    logs = [of_rank(rank, steps(100), host=f"m{rank}") for rank in range(4)]
    texts = {
        host: kernel(
            f"m{host}", *((at, RETRAINED.format(gpu=f"2{host}")) for at, where in events if where == host)
        )
        for host in range(3)
    }
    texts = {host: text or kernel(f"m{host}", (0, "usb 1-1: new device")) for host, text in texts.items()}
    machines = [
        reading(f"m{host}/kern.log", text, SourceRole.KERNEL, host=f"m{host}") for host, text in texts.items()
    ]
    found = findings(*logs, *machines)
    return sum(not each.recovered for each in found.candidates if each.source_role is SourceRole.KERNEL)


def test_what_most_machines_complained_of_while_all_stepped_is_usual_at_the_end_too() -> None:
    assert left_of_three((20, 0), (70, 1), (120, 2), (199, 1)) == 0
    assert left_of_three((20, 1), (70, 1), (120, 1), (199, 1)) == 1
    assert left_of_three((20, 0), (21, 1), (22, 2), (199, 1)) == 1


KILLED = "Memory cgroup out of memory: Killed process 733 ({name}) total-vm:90kB, anon-rss:80kB, file-rss:0kB"


def test_whom_the_kernel_killed_beside_the_ranks_is_missed_by_none() -> None:
    assert left((176, KILLED.format(name="promtail"))) == []
    assert left((195, KILLED.format(name="promtail"))) == ["host.out_of_memory"]
    assert left((195, KILLED.format(name="python3"))) == ["host.out_of_memory"]


@pytest.mark.parametrize(("unit", "kind"), [("beats", []), ("slurmstepd", ["host.resource_limit"])])
def test_the_limit_of_a_service_beside_the_job_is_not_the_job_s(unit: str, kind: list[str]) -> None:
    assert left((170, f"cgroup: fork rejected by pids controller in /system.slice/{unit}.service")) == kind


def test_a_file_system_s_error_that_another_program_met_is_not_why_the_job_ended() -> None:
    met = "EXT4-fs error (device loop4): ext4_lookup:1851: inode #411: comm {name}: iget: checksum invalid"
    assert left((170, met.format(name="snapd"))) == []
    assert left((170, met.format(name="python3"))) == ["storage.filesystem"]


def test_a_job_that_steps_to_the_end_of_its_logs_was_only_hinted_at_by_a_machine(tmp_path: Path) -> None:
    late = kernel("m1", (196, "nfs: server 10.0.0.9 not responding, still trying"))
    logs = {f"rank{rank}.log": steps(100) for rank in range(2)} | {"m1/kern.log": late}
    assert judged(tmp_path, logs).verdict.failure_type == "none.running"


def test_what_befell_a_daemon_that_has_nothing_to_do_with_jobs_befell_no_rank() -> None:
    heads = [f"{clock(at)[:10]}T{clock(at)[11:19]}+00:00 m2 kernel: usb 1-1: new device\n" for at in range(9)]
    said = f"{clock(170)[:10]}T{clock(170)[11:19]}+00:00 m2 {{name}}[811]: open /srv/x: Stale file handle\n"

    def kept(name: str) -> bool:
        logs = [of_rank(rank, steps(100), host=f"m{rank + 1}") for rank in range(2)]
        journal = "".join(heads) + said.format(name=name)
        found = findings(*logs, reading("m2/journal", journal, SourceRole.KERNEL, host="m2"))
        return any(each.source_role is SourceRole.KERNEL and not each.recovered for each in found.candidates)

    assert not kept("rpc.mountd")
    assert kept("slurmstepd")


def test_a_gpu_s_fault_befalls_no_rank_of_another_machine() -> None:
    raised = f"{clock(199)} ERROR rank 1 stops\n{traceback(chr(39).join(('KeyError: ', 'speaker_9', '')))}"
    assert left((194, DRAIN), said=raised) == []
    assert left((194, DRAIN), said=raised, host="m1") == ["gpu.firmware"]


def test_whoever_was_killed_elsewhere_is_not_why_a_rank_raised_an_error_that_no_lost_peer_brings_about() -> (
    None
):
    raised = f"{clock(199)} ERROR rank 1 stops\n{traceback(chr(39).join(('KeyError: ', 'speaker_9', '')))}"
    ended = f"{clock(201)} ERROR failed (exitcode: -9) local_rank: 0 (pid: 733) of binary: /usr/bin/python3\n"
    other, same = KILLED.format(name="promtail"), KILLED.format(name="python3")
    assert left((196, other), said=raised) == []
    assert left((190, same), said=raised) == []
    assert left((190, same), said=raised + ended) == ["host.out_of_memory"]
    assert left((190, same), said=raised, host="m1") == ["host.out_of_memory"]


def test_an_optical_drive_holds_no_data_set() -> None:
    broken = "Buffer I/O error on dev {name}, logical block 0, async page read"
    assert left((170, broken.format(name="sr1"))) == []
    assert left((170, broken.format(name="nvme1n1"))) == ["storage.filesystem"]


def test_a_driver_is_no_daemon() -> None:
    other = "NVRM: Xid (PCI:0000:3b:00): 69, pid=88{at}, name=viewer, Graphics Exception: Program Header 3"
    gone = "NVRM: Xid (PCI:0000:17:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    heads = [(at, other.format(at=at)) for at in range(9)]
    lines = "".join(f"[Sat Jan 31 {clock(at)[11:19]} 2026] {text}\n" for at, text in (*heads, (199, gone)))
    logs = [of_rank(rank, steps(100), host=f"m{rank + 1}") for rank in range(2)]
    found = findings(*logs, reading("m2/dmesg", lines, SourceRole.KERNEL, host="m2"))
    kept = [each.failure_type for each in found.candidates if not each.recovered]
    assert "gpu.fell_off_bus" in kept


def test_a_program_that_the_driver_names_and_whose_number_no_rank_has_is_none_of_them() -> None:
    said = "NVRM: Xid (PCI:0000:3b:00): 69, pid={pid}, name={name}, Graphics Exception: Program Header 3"
    uses = "m2:7{rank}:91 [{rank}] NCCL INFO Bootstrap : Using eth0:10.4.0.7<0>\n"
    logs = [of_rank(rank, uses.format(rank=rank) + steps(100), host="m2") for rank in range(2)]

    def kept(**of: object) -> bool:
        kern = kernel("m2", (199, said.format(**of)))
        found = findings(*logs, reading("m2/kern.log", kern, SourceRole.KERNEL, host="m2"))
        return any(each.source_role is SourceRole.KERNEL and not each.recovered for each in found.candidates)

    assert not kept(pid=512, name="viewer")
    assert kept(pid=71, name="viewer")
    assert kept(pid=512, name="python3")


def journal(host: str, *said: tuple[float, str]) -> str:
    return "".join(f"Jan 31 {clock(at)[11:19]} {host} reclaim-watch[88]: {text}\n" for at, text in said)


def test_a_notice_that_the_machine_is_reclaimed_outlasts_the_steps_of_its_last_minute() -> None:
    calm = "GET http://169.254.169.254/latest/meta-data/spot/instance-action 404"
    taken = "the spot instance will be reclaimed in 120 s"
    raised = f"{clock(204)} ERROR rank 1 stops\n{traceback('TimeoutError: no answer of m2')}"
    logs = [of_rank(0, steps(100), host="m1"), of_rank(1, steps(100) + raised, host="m1")]
    lines = journal("m2", (20, calm), (90, calm), (150, taken))
    found = findings(*logs, reading("m2/journal.txt", lines, SourceRole.KERNEL, host="m2"))
    kept = [each.failure_type for each in found.candidates if not each.recovered]
    assert "scheduler.preempted" in kept


def test_what_the_ranks_met_as_well_joins_what_their_machines_say() -> None:
    """One host's port fails while all ranks complain of the same network."""
    down = "mlx5_core 0000:5e:00.0 ibs3: Link down"
    met = (
        "{host}:9:1 [0] transport/net_ib.cc:2244 NCCL WARN NET/IB: Got completion from peer 10.9.0.1<4420> "
        "with status=12 opcode=0 len=0 vendor err 129"
    )
    logs = [
        of_rank(rank, steps(100) + f"{clock(201)} {met.format(host=host)}\n", host=host)
        for rank, host in enumerate(("m1", "m2", "m3"))
    ]
    kern = reading("m2/kern.log", kernel("m2", (203, down)), SourceRole.KERNEL, host="m2")
    kept = [
        each.host
        for each in findings(*logs, kern).candidates
        if not each.recovered and each.source_role is SourceRole.KERNEL
    ]
    assert kept == ["m2"]
