"""Jobs that died of what no shipped rule knows: each kind twice, as two sites would have seen it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Kind:
    """One kind of failure: what it is, the job that teaches it, and another job with the same."""

    name: str
    failure_type: str
    first: Mapping[str, str]
    place: str  # FILE:LINE of the evidence in the first job; empty: what the verdict itself shows
    second: Mapping[str, str]
    evidence: str  # a part of the line that shows it in the second job
    ranks: tuple[int, ...] = ()  # culprits in the second job, where they can be known


def written(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def steps(day: str, hour: int, count: int, *, first: int = 1, level: str = "INFO") -> list[str]:
    return [
        f"{day} {hour:02}:{second // 60:02}:{second % 60:02},120 {level} "
        f"step {first + second} | loss {9 - second / 50:.3f}"
        for second in range(count)
    ]


def prefixed(rank: int, lines: list[str]) -> list[str]:
    return [f"[rank{rank}]: {line}" for line in lines]


def text(*lines: str | list[str]) -> str:
    return "".join(f"{line}\n" for part in lines for line in ([part] if isinstance(part, str) else part))


def traceback(file: str, number: int, function: str, source: str, last: str) -> list[str]:
    return [
        "Traceback (most recent call last):",
        f'  File "{file}", line {number}, in <module>',
        "    main()",
        f'  File "{file}", line {number + 40}, in {function}',
        f"    {source}",
        last,
    ]


LOST_PEER = [
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer "
    "[10.0.3.7]:33211"
]


def own_assertion() -> Kind:
    """An assertion of somebody's own framework, in a traceback."""

    def job(rank: int, ranks: int, user: str, stage: int, got: int, want: int, day: str) -> dict[str, str]:
        files = {}
        for each in range(ranks):
            body = steps(day, 3, 20 + stage)
            if each == rank:
                message = (
                    f"AssertionError: pipeline interleave broken: virtual stage {stage} received "
                    f"microbatch {got} but the schedule of /home/{user}/runs/{stage}/plan.json wants {want}"
                )
                body += traceback(
                    f"/home/{user}/brook/engine.py", 211, "forward_stage", "check(plan)", message
                )
            else:
                body += traceback("/opt/brook/comm.py", 77, "recv", "pair.wait()", LOST_PEER[0])
            files[f"rank_{each}.log"] = text(body)
        return files

    return Kind(
        "own assertion",
        "code.assertion",
        job(2, 4, "ada", 3, 17, 18, "2026-02-03"),
        "",
        job(5, 8, "grace", 11, 402, 399, "2026-05-20"),
        "virtual stage 11 received",
        (5,),
    )


def vendor_daemon() -> Kind:
    """A line of a vendor's daemon in the system log of one host, and ranks that only lost a peer."""

    def job(host: str, other: str, port: int, uid: str, day: str, clock: str) -> dict[str, str]:
        syslog = [
            f"{day}T{clock}:0{n}.5{n}0+00:00 {host} fabmond[{2100 + port}]: link poll ok, port {port}"
            for n in range(3)
        ]
        syslog.append(
            f"{day}T{clock}:09.101+00:00 {host} fabmond[{2100 + port}]: SERDES retrain storm on port {port} "
            f"(transceiver {uid}): lane eye closed, quarantining port"
        )
        ranks = {
            f"{name}/rank{n}.log": text(
                [f"{day} {clock}:0{s} INFO step {s + 100} loss 2.{s}" for s in range(4)],
                traceback("/app/train.py", 20 + n, "step", "loss.backward()", LOST_PEER[0]),
            )
            for n, name in enumerate((host, other))
        }
        return {f"{host}/syslog": text(syslog), **ranks}

    return Kind(
        "vendor daemon",
        "network.infiniband",
        job("gpu-a17", "gpu-a18", 3, "MT2231X0441", "2026-01-09", "10:22"),
        "gpu-a17/syslog:4",
        job("hgx-west-04", "hgx-west-11", 8, "SN77-0091", "2026-07-30", "23:58"),
        "SERDES retrain storm on port 8",
    )


def custom_launcher() -> Kind:
    """A launcher of a site's own that gives up; no rank ever wrote a word."""

    def job(node: str, members: int, lease: str, seconds: int, stamp: str) -> dict[str, str]:
        return {
            "stormlaunch.out": text(
                f"{stamp}:01 stormlaunch 4.{members}: placing {members} members for lease {lease}",
                f"{stamp}:02 stormlaunch: waiting for handshake tokens",
                f"{stamp}:59 stormlaunch: member on {node} never presented its handshake token within "
                f"{seconds}s, dissolving gang of {members}",
                f"{stamp}:59 stormlaunch: lease {lease} returned",
            )
        }

    return Kind(
        "custom launcher",
        "scheduler.launch",
        job("dgx-014", 16, "9f31aa20", 120, "2026-03-01 09:14"),
        "stormlaunch.out:3",
        job("h100-rack2-node7.cluster.local", 512, "77c0de19", 45, "2026-11-17 00:02"),
        "dissolving gang of 512",
    )


def storage_client() -> Kind:
    """A storage client that loses its quorum while a checkpoint is written; merged output with prefixes."""

    def job(rank: int, bucket: str, key: str, have: int, need: int, day: str, epoch: int) -> dict[str, str]:
        lines: list[str] = []
        for each in range(4):
            lines += prefixed(each, steps(day, 6, 12, first=epoch * 1000))
        lines += prefixed(
            rank,
            [
                f"{day} 06:00:13,007 ERROR tarnfs.client: PutExtent bucket={bucket} key={key} epoch {epoch}: "
                f"write quorum collapsed ({have}/{need} replicas acked), extent abandoned",
                f"{day} 06:00:13,100 ERROR exiting",
            ],
        )
        return {"job.log": text(lines)}

    return Kind(
        "storage client",
        "storage.object_store",
        job(1, "ckpt-pool", "runs/a1/step_2000/rank1.pt", 1, 3, "2026-04-11", 2),
        "job.log:49",
        job(3, "scratch", "experiments/zeta/900/opt-3.safetensors", 2, 5, "2026-09-01", 17),
        "write quorum collapsed (2/5",
        (3,),
    )


def data_loader() -> Kind:
    """An exception of a data loader of somebody's own; the verdict shows it, a person names the type."""

    def job(rank: int, shard: int, name: str, want: str, got: str, root: str, day: str) -> dict[str, str]:
        body = steps(day, 1, 30) + traceback(
            f"{root}/hopper/reader.py", 90, "next_shard", "self.verify(shard)",
            f"hopper.errors.ShardSealBroken: shard {shard} of corpus '{name}' fails its seal: wants {want}, "
            f"carries {got} ({root}/data/part-{shard:05}.hop)",
        )  # fmt: skip
        others = {f"rank{n}.err": text(steps(day, 1, 30)) for n in range(4) if n != rank}
        return {f"rank{rank}.err": text(body), **others}

    return Kind(
        "data loader",
        "data.corrupt",
        job(0, 17, "webmix-en", "3fa9c0de", "77aa01bc", "/mnt/a", "2026-06-06"),
        "",
        job(3, 4410, "code_v2", "00112233", "deadbeef", "/scratch/b/c", "2026-08-18"),
        "shard 4410 of corpus",
        (3,),
    )


def scheduler_plugin() -> Kind:
    """A plugin of a scheduler that takes the nodes away; JSON lines."""

    def job(reservation: str, user: str, number: int, share: float, clock: int) -> dict[str, str]:
        def entry(second: int, level: str, message: str) -> str:
            stamp = f"2026-10-05T{clock:02}:10:{second:02}.000Z"
            return json.dumps({"ts": stamp, "level": level, "logger": "arbiter", "message": message})

        return {
            "arbiter.jsonl": text(
                entry(1, "info", f"job {number} placed"),
                entry(2, "info", f"job {number} heartbeat"),
                entry(
                    40,
                    "error",
                    f"fair-share arbiter revoked reservation {reservation} of user {user} (share {share}): "
                    f"draining job {number}",
                ),
            ),
            "train.log": text(steps("2026-10-05", clock, 30)),
        }

    return Kind(
        "scheduler plugin",
        "scheduler.preempted",
        job("gold-7", "alice", 55121, 0.31, 4),
        "arbiter.jsonl:3",
        job("batch_night", "j.doe", 9, 1.75, 19),
        "revoked reservation batch_night",
    )


def watchdog() -> Kind:
    """A watchdog of a framework's own, of a type that is mostly a consequence."""

    def job(ranks: int, op: int, minutes: int, host: str, day: str) -> dict[str, str]:
        return {
            f"{host}-{n}.log": text(
                steps(day, 2, 15),
                f"{day} 02:40:00,000 CRITICAL tidepool watchdog on {host}: ring epoch {op + n} made no "
                f"headway for {minutes} min, tearing the ring down",
            )
            for n in range(ranks)
        }

    return Kind(
        "watchdog",
        "collective.timeout",
        job(2, 771, 10, "node3", "2026-01-20"),
        "node3-0.log:16",
        job(4, 12, 35, "c12n04", "2026-12-02"),
        "made no headway for 35 min",
    )


def expired_licence() -> Kind:
    """A licence server of a vendor's compiler; plain lines without times."""

    def job(feature: str, seats: int, server: str, rank: int) -> dict[str, str]:
        return {
            f"stdout.{rank}": text(
                "loading modules",
                f"lmgate: checkout of feature {feature} refused by {server}: all {seats} seats leased, "
                "licence term over",
                "lmgate: leaving",
            ),
            "stdout.0" if rank else "stdout.1": text("loading modules", "waiting for the others"),
        }

    return Kind(
        "licence",
        "auth.denied",
        job("SHMEMX_PRO", 64, "27000@lic01", 1),
        "stdout.1:2",
        job("COLLX_HPC_V3", 8, "1999@licence-b.example.org", 0),
        "feature COLLX_HPC_V3",
    )


def cooling_agent() -> Kind:
    """An agent that writes `key=value` lines, which look like a configuration."""

    def job(host: str, name: str, loop: int) -> dict[str, str]:
        stamp = "ts=2026-05-05T01:0"
        return {
            "agent.log": text(
                [f'{stamp}2:{n:02}Z level=info msg="heartbeat ok" host={host} job={name}' for n in range(9)],
                f'{stamp}3:00Z level=error msg="cooling loop pressure below floor" host={host} job={name} '
                f"loop={loop} kpa={loop * 7}",
                f'{stamp}3:01Z level=info msg="powering down trays" host={host}',
            )
        }

    return Kind(
        "cooling agent",
        "gpu.thermal_power",
        job("rack3-node12", "llm-17", 2),
        "agent.log:10",
        job("cn0441.pod7.example.org", "sft_b", 11),
        "loop=11",
    )


def other_alphabet() -> Kind:
    """A line in a language that has no spaces, beside the steps of a program that writes English."""

    def job(rank: int, ranks: int, host: str, pump: int, percent: int, day: str) -> dict[str, str]:
        told = f"{day} 07:09:00 错误: 机架{pump}号泵停转，节点 {host} 冷却液流量降至{percent}%，训练中止"
        return {
            f"worker{each}.log": text(steps(day, 7, 20), [told] if each == rank else [])
            for each in range(ranks)
        }

    return Kind(
        "other alphabet",
        "gpu.thermal_power",
        job(1, 2, "gpu-b07", 3, 31, "2026-01-02"),
        "worker1.log:21",
        job(6, 8, "a100x-222", 12, 9, "2026-08-30"),
        "冷却液流量降至9%",
    )


def panic() -> Kind:
    """A Rust panic: one line says where, the next one why."""

    def job(rank: int, thread: str, head: int, tail: int, source: str) -> dict[str, str]:
        return {
            f"rank_{rank}.txt": text(
                [f"rank={rank} step={step} loss={4 - step / 30:.2f}" for step in range(25)],
                f"thread '{thread}' panicked at {source}:17:",
                f"stave ring generation skew: producer {head} lapped consumer {tail}",
                "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
            )
        }

    return Kind(
        "panic",
        "data.loader_worker",
        job(0, "io-3", 9912, 9908, "/home/kim/.cargo/stave/src/ring.rs:88"),
        "rank_0.txt:26",
        job(12, "prefetch-11", 77, 3, "/opt/build/x1/stave/src/ring.rs:1024"),
        "producer 77 lapped consumer 3",
    )


def last_words() -> Kind:
    """A calm last line with no level and no word of failure."""

    def job(user: str, name: str, print_: int) -> dict[str, str]:
        return {
            "out.txt": text(
                "starting",
                [f"it {step} l {3 - step / 9:.2f}" for step in range(25)],
                f"tokforge: vocabulary fingerprint of /data/{user}/tok/{name}.spm is {print_:032x}, "
                "checkpoint was trained with another; stopping",
            )
        }

    return Kind(
        "last words",
        "checkpoint.mismatch",
        job("mia", "v3", 0xABCDEF0123),
        "out.txt:27",
        job("k.ito", "llm-x_big", 0x99128),
        "llm-x_big.spm",
    )


ALL: tuple[Callable[[], Kind], ...] = (
    own_assertion,
    vendor_daemon,
    custom_launcher,
    storage_client,
    data_loader,
    scheduler_plugin,
    watchdog,
    expired_licence,
    cooling_agent,
    other_alphabet,
    panic,
    last_words,
)
