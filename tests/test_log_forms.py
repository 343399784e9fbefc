"""Logs in all their forms give the same kind of answer, and none of its cited lines is invented."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scenes import (
    HARMLESS,
    WATCHDOG,
    bank,
    bank_read_once,
    check_cited,
    clock,
    first,
    job,
    judged,
    steps,
    traceback,
)

from logtriage.intake.folder import NothingReadable
from logtriage.pipeline import triage


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


def test_the_first_exception_of_a_chain_is_the_cause(tmp_path: Path) -> None:
    text = (
        steps(3)
        + traceback("OSError: [Errno 28] No space left on device", "write")
        + "\nDuring handling of the above exception, another exception occurred:\n\n"
        + traceback("RuntimeError: writing the snapshot failed", "save")
    )
    verdict = judged(tmp_path, {"train.log": text})
    assert verdict.verdict.failure_type == "host.disk_full"
    assert first(verdict) == ("train.log", "OSError: [Errno 28] No space left on device")


def test_a_traceback_inside_a_json_record_is_read(tmp_path: Path) -> None:
    records = [
        {
            "ts": f"2026-01-31T08:00:{number:02d}Z",
            "level": "INFO",
            "rank": number % 2,
            "msg": f"step {number} loss 2.0",
        }
        for number in range(1, 30)
    ]
    records.append(
        {
            "ts": "2026-01-31T08:00:31Z",
            "level": "ERROR",
            "rank": 1,
            "msg": "training failed",
            "exc_info": traceback("ModuleNotFoundError: No module named 'flash_attn'").strip(),
        }
    )
    text = "".join(json.dumps(record) + "\n" for record in records)
    verdict = judged(tmp_path, {"events.jsonl": text})
    assert (verdict.verdict.failure_type, verdict.verdict.culprits.ranks) == ("code.import", (1,))
    assert (verdict.verdict.evidence[0].line, verdict.verdict.evidence[0].rank) == (30, 1)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_other_encodings_are_read(tmp_path: Path, encoding: str) -> None:
    text = steps(20) + traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
    verdict = triage(job(tmp_path, {"train.log": text.encode(encoding)}), offline=True)
    assert verdict.verdict.failure_type == "cuda.out_of_memory"
    assert verdict.verdict.evidence[0].line == len(text.splitlines())
    assert verdict.verdict.evidence[0].text.startswith("torch.OutOfMemoryError")


def test_rotated_parts_are_one_log(tmp_path: Path) -> None:
    """An error in an old part that was survived in a newer one did not end the job."""
    old = steps(20) + f"{clock(41)} ERROR OSError: [Errno 5] Input/output error\n" + steps(3, first=21, at=42)
    verdict = judged(
        tmp_path,
        {
            "train.log.2.gz": gzip.compress(old.encode()),
            "train.log.1.gz": gzip.compress(steps(50, first=24, at=60).encode()),
            "train.log": steps(50, first=74, at=200)
            + f"{clock(310)} ERROR "
            + "ValueError: bad learning rate\n",
        },
    )
    assert verdict.verdict.failure_type == "code.value"
    assert first(verdict)[0] == "train.log"
    assert verdict.mining.lines == 24 + 50 + 51


def test_a_compressed_log_is_cited_by_its_plain_lines(tmp_path: Path) -> None:
    text = steps(20) + traceback("IndexError: list index out of range")
    verdict = judged(tmp_path, {"train.log.gz": gzip.compress(text.encode())})
    assert verdict.verdict.failure_type == "code.index"
    assert verdict.verdict.evidence[0].line == len(text.splitlines())


def test_an_archive_is_read_through(tmp_path: Path) -> None:
    texts = {
        "job/rank0.log": steps(20)
        + "RuntimeError: [../gloo/transport/tcp/pair.cc:598] Connection closed by peer [::1]:9\n",
        "job/rank1.log": steps(20) + traceback("ZeroDivisionError: division by zero"),
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in texts.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    verdict = triage(job(tmp_path, {"logs.tar.gz": packed.getvalue()}), offline=True)
    check_cited(verdict, {f"logs.tar.gz/{name}": text.encode() for name, text in texts.items()})
    assert (verdict.verdict.failure_type, verdict.verdict.culprits.ranks) == ("code.zero_division", (1,))
    assert first(verdict) == ("logs.tar.gz/job/rank1.log", "ZeroDivisionError: division by zero")


def test_a_broken_file_is_named_and_the_rest_is_judged(tmp_path: Path) -> None:
    whole = gzip.compress(steps(2_000).encode())
    verdict = triage(
        job(tmp_path, {"a.log": traceback("KeyError: 'x'"), "b.log.gz": whole[: len(whole) // 2]}),
        offline=True,
    )
    assert verdict.verdict.failure_type == "code.key"
    assert [each.file for each in verdict.unreadable] == ["b.log.gz"]


def test_a_folder_with_nothing_to_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(NothingReadable):
        triage(tmp_path, offline=True)


def test_a_file_alone_is_a_job(tmp_path: Path) -> None:
    job(tmp_path, {"train.log": traceback("KeyError: 'x'")})
    assert triage(tmp_path / "train.log", offline=True).verdict.failure_type == "code.key"


def test_the_needle_is_found_in_a_large_log(tmp_path: Path) -> None:
    """A file that is too large to be read closely is searched whole all the same."""
    filler = "".join(
        f"{clock(number / 50)} DEBUG allocator moved block {number * 7919} of pool {number % 13}\n"
        for number in range(60_000)
    )
    needle = f"{clock(600)} ERROR RuntimeError: CUDA error: an illegal memory access was encountered\n"
    text = (
        filler[: len(filler) // 2].rsplit("\n", 1)[0]
        + "\n"
        + needle
        + filler[len(filler) // 2 :].split("\n", 1)[1]
    )
    verdict = judged(tmp_path, {"train.log": text})
    assert verdict.verdict.failure_type == "cuda.illegal_memory_access"
    assert first(verdict)[1] == needle.strip()


def test_the_same_bytes_give_the_same_verdict(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        f"rank{rank}.log": steps(20) + WATCHDOG.format(rank=rank, op="ALLREDUCE") for rank in range(3)
    }
    one = judged(tmp_path / "a" / "job", files)
    two = judged(tmp_path / "b" / "job", dict(reversed(files.items())))
    assert one.id == two.id
    assert one.verdict == two.verdict
    other = judged(tmp_path / "c" / "job", {**files, "rank2.log": steps(21)})
    assert other.id != one.id


def test_templates_of_earlier_runs_are_not_novel(tmp_path: Path) -> None:
    healthy = job(tmp_path / "before", {"train.log": HARMLESS + steps(50)})
    failed = job(
        tmp_path / "now", {"train.log": HARMLESS + steps(50) + "KeyError: 'x'\nodd new words here\n"}
    )
    assert triage(failed, offline=True, history=[healthy]).mining.novel_templates == 2
    assert triage(failed, offline=True).mining.novel_templates is None


# --- laws -------------------------------------------------------------------------------------------


def _examples() -> list[str]:
    lines = [example.line for rule in bank().rules for example in rule.examples]
    return [line for line in lines if "\n" not in line]


PARTS = st.one_of(
    st.deferred(lambda: st.sampled_from(_examples())),
    st.integers(1, 12).map(lambda count: steps(count).rstrip("\n")),
    st.sampled_from(
        [
            "", "\r", "Traceback (most recent call last):", '  File "/app/x.py", line 3, in f', "    f()",
            "During handling of the above exception, another exception occurred:", "KeyError: 'x'",
            "[rank1]: ValueError: bad", "[rank0]: Traceback (most recent call last):", "==========", "[0]:",
            "  rank      : 1 (local_rank: 1)", "  exitcode  : -9 (pid: 7)",
            "Root Cause (first observed failure):",
            '{"msg": "step 1 loss 2", "rank": 1}', '{"msg": "x\\ny", "exc_info": "KeyError: 1"}',
            "\ufffd\ufeff", f"[rank{10**25}]: KeyError: 1", f"  exitcode  : {-10**25} (pid: {10**25})",
            f"  rank      : {10**25} (local_rank: {10**25})", f"step {10**25}/{10**30} loss 2.0",
            "9999-99-99 99:99:99,999 ERROR KeyError: 1", "0000-00-00T00:00:00Z step 3 loss 2.0",
            "9999-12-31T23:59:59Z step 4 loss 2.0", "0001-01-01T00:00:00Z step 5 loss 2.0",
            f'{{"msg": "step 1 loss 2", "rank": {10**25}, "ts": 1e300}}',
            "[99999999999.999999] Kernel panic - not syncing",
            "slurmstepd: error: *** JOB 1 ON a CANCELLED AT 2026-13-45T25:61:61 DUE TO TIME LIMIT ***",
            "srun: error: gpu-3: task 5: Killed", "Exit Code:    137", "\ud800", "٣ step ٤ loss ٥",
            "[  123.456789] NVRM: Xid (PCI:0000:3b:00): 79, pid=7, GPU has fallen off the bus.",
        ]
    ),
    st.text(max_size=30),
)  # fmt: skip
CONTENTS = st.one_of(
    st.lists(PARTS, max_size=25).map(lambda lines: "\n".join(lines).encode("utf-8", "replace")),
    st.lists(PARTS, max_size=25).map(
        lambda lines: "".join(f"{each}\n" for each in lines).encode("utf-8", "replace")
    ),
    st.binary(max_size=200).map(lambda raw: b"log\n" + raw.replace(b"\x00", b"")),
)
NAMES = st.sampled_from(
    [
        "train.log", "rank0.log", "rank1.log", "node-a/rank2.log", "node-b/rank3.log", "node-b/dmesg.log",
        "run_x/attempt_0/0/stderr.log", "run_x/attempt_1/0/stderr.log", "slurm-7.out", "torchrun.log",
    ]
)  # fmt: skip


@given(st.dictionaries(NAMES, CONTENTS, min_size=1, max_size=5))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_cited_line_is_invented_whatever_the_logs_hold(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            verdict = triage(job(Path(folder), files), offline=True)
        except NothingReadable:
            return  # every file is empty or no text
        check_cited(verdict, files)
        assert 0 <= verdict.verdict.confidence <= 1
        assert verdict.verdict.summary
        json.loads(verdict.to_json())
