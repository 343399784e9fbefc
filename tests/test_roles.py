"""What kind of writer a file comes from, told by its lines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage.intake.roles import sniff_role
from logtriage.model import SourceRole

LOG = b"2025-01-01 10:00:00 step 1 loss 2.5\n2025-01-01 10:00:01 step 2 loss 2.4\n"
KERNEL = b"[  12.000001] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n"
BOX = b"| NVIDIA-SMI 550.54   Driver Version: 550.54   CUDA Version: 12.4 |\n+--+--+\n| GPU | 0 |\n+--+--+\n"
ARGUMENTS = b"-------- arguments --------\n" + b"".join(
    b"  hidden_%d ........... %d\n" % (n, n) for n in range(70)
)


@pytest.mark.parametrize(
    ("file", "text", "role"),
    [
        ("rank3.log", LOG, SourceRole.WORKER),
        ("train.log", LOG, SourceRole.MERGED),
        ("anything", KERNEL * 3, SourceRole.KERNEL),
        ("console.log", LOG * 20 + KERNEL, SourceRole.MERGED),
        (
            "s",
            b"Jan 10 10:00:00 n1 kernel: [1.000000] mlx5_core 0000:1a:00.0: Port: 1 Link DOWN\n",
            SourceRole.KERNEL,
        ),
        ("a.log", b'time="2025-01-01T10:00:00Z" msg="task a.1 assigned" node=n1\n' * 5, SourceRole.MERGED),
        ("a.txt", b"JobId=12 JobName=train\n   JobState=TIMEOUT Reason=TimeLimit\n", SourceRole.SCHEDULER),
        (
            "a.txt",
            b"JobID    JobName  State ExitCode\n------- ------ ----- ----\n12 train TIMEOUT 0:0\n",
            SourceRole.SCHEDULER,
        ),
        (
            "a.log",
            b"[2025-01-01T00:00:00.1] error: Nodes n1 not responding, setting DOWN\n",
            SourceRole.SCHEDULER,
        ),
        (
            "a.txt",
            b"LAST SEEN  TYPE     REASON   OBJECT  MESSAGE\n9m  Warning  Evicted  pod/w-1  low\n",
            SourceRole.KUBERNETES,
        ),
        ("a", b"apiVersion: v1\nkind: Pod\nmetadata:\n  name: w-1\n", SourceRole.KUBERNETES),
        ("a", b'{"apiVersion": "v1", "kind": "Event", "message": "OOMKilled"}', SourceRole.KUBERNETES),
        ("a.txt", BOX, SourceRole.HARDWARE),
        (
            "a.txt",
            b"Filesystem  Size  Used Avail Use% Mounted on\ntmpfs 1M 1M 0 100% /dev/shm\n",
            SourceRole.HARDWARE,
        ),
        ("train.log", BOX + LOG * 20, SourceRole.MERGED),
        (
            "poll",
            b"timestamp, index, power.draw [W]\n" + b"2025/01/01 10:00:00.5, 0, 300.1 W\n" * 9,
            SourceRole.METRICS,
        ),
        ("spur.txt", b"01.02.2026 10:00:07 Schritt 3 Verlust 2,5\n" * 9, SourceRole.MERGED),
        ("m.csv", b"step,loss,lr\n1,2.5,1e-4\n2,2.4,1e-4\n3,nan,1e-4\n", SourceRole.METRICS),
        ("pip.txt", b"torch==2.4.0\nnumpy==1.26.4\napex @ file:///tmp/apex\n", SourceRole.ENVIRONMENT),
        ("e.txt", b"HOME=/root\nNCCL_DEBUG=INFO\nMASTER_PORT=29500\n", SourceRole.ENVIRONMENT),
        ("s.txt", b"net.core.somaxconn = 4096\nvm.swappiness = 10\n", SourceRole.ENVIRONMENT),
        ("args.txt", ARGUMENTS, SourceRole.ENVIRONMENT),
        ("args.log", ARGUMENTS + LOG * 20, SourceRole.MERGED),
        ("args.log", ARGUMENTS + b"RuntimeError: CUDA error: an illegal memory access\n", SourceRole.MERGED),
        ("args.log", ARGUMENTS, SourceRole.MERGED),
        ("rank0.txt", ARGUMENTS, SourceRole.WORKER),
        ("stdout", b"1,2.5,0.1\n2,2.4,0.1\n3,2.3,0.1\n", SourceRole.MERGED),
        ("memory_rank0.csv", b"step,mib\n1,2500\n2,2600\n3,2700\n", SourceRole.METRICS),
        (
            "config.json",
            b'{\n  "hidden_size": 4096,\n  "layers": [1, 2],\n  "type": "llama"\n}\n',
            SourceRole.ENVIRONMENT,
        ),
        ("error.json", b'{"message": {"message": "RuntimeError: boom", "extraInfo": {}}}', SourceRole.MERGED),
        (
            "x.jsonl",
            b'{"level": "INFO", "message": "step 1"}\n{"level": "ERROR", "message": "x"}\n',
            SourceRole.MERGED,
        ),
        ("x.txt", b"[2025-01-01 10:00:00,000] something ended\n", SourceRole.MERGED),
        ("x.txt", b"{'loss': 2.5, 'epoch': 0.1}\n{'loss': 2.4, 'epoch': 0.2}\n", SourceRole.MERGED),
        ("run.sh", b"#!/bin/bash\nexport A=1\ntorchrun train.py\n", SourceRole.ENVIRONMENT),
        (
            "agent.log",
            b"W0101 10:00:00.1 90 torch/distributed/run.py:793] Setting OMP_NUM_THREADS environment\n"
            b"E0101 10:00:09.1 90 torch/distributed/elastic/multiprocessing/api.py:869] failed "
            b"(exitcode: -9) local_rank: 2 (pid: 7) of binary: /usr/bin/python\n",
            SourceRole.LAUNCHER,
        ),
        (
            "rank0.log",
            b"[W socket.cpp:464] [c10d] The server socket cannot be initialized\n",
            SourceRole.WORKER,
        ),
        ("empty.log", b"", SourceRole.MERGED),
    ],
)
def test_role_is_told_by_the_lines(file: str, text: bytes, role: SourceRole) -> None:
    assert sniff_role(file, text) is role


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300), st.sampled_from(["x.log", "rank0.log", "x.json", "x.yaml"]))
def test_every_text_has_a_role(text: str, file: str) -> None:
    assert sniff_role(file, text.encode("utf-8", "replace")) in SourceRole
