"""Whose job a controller's or a node daemon's line is about, where the job's own files say its number."""

from __future__ import annotations

from pathlib import Path

from scenes import clock, judged, steps

from logtriage.report.document import Verdict


def stamp(at: float) -> str:
    return f"{clock(at)[:10]}T{clock(at)[11:19]}.000"


def of_three(folder: Path, records: dict[str, str], own: str = "slurm-415027.out") -> Verdict:
    """The verdict on a job on three machines that ran well to the end of its logs, beside some records."""
    wrote = "{host}:81{rank}:90{rank} [0] NCCL INFO Bootstrap : Using eth0:10.4.0.{rank}<0>\n"
    logs = {
        f"cn0{rank}/rank_{rank}.log": wrote.format(host=f"cn0{rank}", rank=rank) + steps(100)
        for rank in range(3)
    }
    return judged(folder, logs | {own: f"{clock(0)} starting on 3 machines\n"} | records)


STARTED = "[{at}] sched: Allocate JobId={job} NodeList=viz{job} #CPUs=8 Partition=viz\n"
ALLOCATED = "".join(STARTED.format(at=stamp(at), job=7000 + 91 * at) for at in range(9))


def test_what_befell_a_job_of_another_number_is_nothing_to_this_one(tmp_path: Path) -> None:
    gone = "[{at}] preempted JobId={job} has been requeued to reclaim resources for JobId=9131\n"
    killed = "[{at}] [{job}.batch] error: Detected 1 oom_kill event in StepId={job}.batch. Some of the\n"
    for number, (record, told) in enumerate((("slurmctld.log", gone), ("slurmd.cn01.log", killed))):
        other = {record: ALLOCATED + told.format(at=stamp(196), job=8816)}
        assert of_three(tmp_path / f"other{number}", other).verdict.failure_type == "none.running"
        same = {record: ALLOCATED + told.format(at=stamp(196), job=415027)}
        assert of_three(tmp_path / f"same{number}", same).verdict.failure_type != "none.running"


def test_a_machine_on_which_no_rank_ran_is_not_lost_to_the_job(tmp_path: Path) -> None:
    down = "[{at}] error: Nodes {host} not responding, setting DOWN\n"
    other = {"slurmctld.log": ALLOCATED + down.format(at=stamp(196), host="viz07")}
    assert of_three(tmp_path / "other", other).verdict.failure_type == "none.running"
    own = {"slurmctld.log": ALLOCATED + down.format(at=stamp(196), host="cn02")}
    verdict = of_three(tmp_path / "own", own).verdict
    assert (verdict.failure_type, verdict.culprits.hosts) == ("host.node_lost", ("cn02",))


PLACED = "{at}Z  Normal   Scheduled            pod/{pod}      Successfully assigned ml/{pod} to {node}\n"


def test_events_of_other_objects_machines_and_programs_are_nothing_to_the_job(tmp_path: Path) -> None:
    at = stamp(0)[:19]
    head = "".join(PLACED.format(at=at, pod=f"demo-worker-{rank}", node=f"cn0{rank}") for rank in range(3))
    told = {
        "late": "Warning  DeadlineExceeded     job/{job}      Job was active longer than specified deadline",
        "boot": "Warning  Rebooted             node/{node}      Node {node} has been rebooted, boot id: 5c1e",
        "kill": "Warning  SystemOOM            node/cn01      System OOM, victim process: {name}, pid: 8",
    }
    for kind, text in told.items():
        for is_own, at in ((False, 170), (True, 196)):
            said = text.format(
                job="demo" if is_own else "nightly-4",
                node="cn01" if is_own else "store5",
                name="python3" if is_own else "promtail",
            )
            events = f"{head}{stamp(at)[:19]}Z  {said}\n"
            logs = {f"demo-worker-{rank}.log": steps(100) for rank in range(3)}
            wrote = "cn0{rank}:81{rank}:90{rank} [0] NCCL INFO Bootstrap : Using eth0:10.4.0.{rank}<0>\n"
            logs = {
                name: wrote.format(rank=rank) + f"{clock(0)} INFO rank {rank} of 3\n" + text
                for rank, (name, text) in enumerate(logs.items())
            }
            verdict = judged(tmp_path / f"{kind}{is_own}", logs | {"events.txt": events}).verdict
            if kind != "boot" or not is_own:  # who stepped on behind it was not lost by it
                assert (verdict.failure_type == "none.running") is not is_own, (kind, is_own)


def test_of_a_node_it_is_not_known_that_no_pod_ran_there(tmp_path: Path) -> None:
    lost = "4m   Warning   NodeNotReady   node/metal-c07   Node metal-c07 status is now: NodeNotReady\n"
    logs = {f"demo-worker-{rank}.log": f"RANK={rank} WORLD_SIZE=3\n{steps(40)}" for rank in range(3)}
    found = judged(tmp_path, logs | {"events.txt": "LAST SEEN   TYPE   REASON   OBJECT   MESSAGE\n" + lost})
    assert found.verdict.failure_type == "host.node_lost"
