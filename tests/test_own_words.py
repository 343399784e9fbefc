"""What one rank alone says in words that no rule knows, where it names the cause."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import clock, first, judged, steps, traceback

from logtriage.diagnose.own_words import unequal

DIGESTS = "INFO feed: 77 came as 0x9f31ab22cd4e11ff, was put down as 0x11aa33bb44cc55dd"


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (DIGESTS, "data.corrupt"),
        ("WARN halver: tower 3 tops out at inf, nll NaN", "numerics.nan"),
        ("INFO feed: 77 came as 0x9f31ab22cd4e11ff, was put down as 0x9f31ab22cd4e11ff", "code.runtime"),
        ("INFO feed: moved to 0x7f31ab22cd4e, from 0x7f11aa33bb44", "code.runtime"),
        ("INFO halver: 0 nans so far", "code.runtime"),
        ("INFO vault: weights came as 9f31ab22cd4e11ff, not 11aa33bb44cc55dd", "code.runtime"),
        ("INFO feed: /data/part-7.tok holds 81920 tokens where 98304 were listed, passed by", "data.corrupt"),
        ("INFO feed: s3://lake/a/7.tok: expected 98,304 records but 81,920 came", "data.corrupt"),
        ("INFO feed: /data/part-7.tok holds 81920 tokens, as listed, read in 312 ms", "code.runtime"),
        ("INFO vault: /out/ckpt-7.pt has 81920 bytes instead of 98304", "code.runtime"),
    ],
)
def test_what_it_said_before_an_exception_of_a_class_that_nobody_knows(
    tmp_path: Path, said: str, kind: str
) -> None:
    files = {
        f"rank{rank}.log": steps(40)
        + (f"{clock(81)} {said}\n{traceback('feed.NotTaken: 77')}" if rank == 2 else "")
        for rank in range(4)
    }
    verdict = judged(tmp_path, files)
    assert (verdict.verdict.failure_type, verdict.verdict.culprits.ranks) == (kind, (2,))
    if kind != "code.runtime":
        assert first(verdict) == ("rank2.log", f"{clock(81)} {said}")


def test_what_other_ranks_say_as_well_tells_no_cause(tmp_path: Path) -> None:
    files = {
        f"rank{rank}.log": steps(40)
        + f"{clock(81)} {DIGESTS}\n"
        + (traceback("feed.NotTaken: 77") if rank == 2 else "")
        for rank in range(4)
    }
    assert judged(tmp_path, files).verdict.failure_type == "code.runtime"


HEX = st.text("0123456789abcdef", min_size=16, max_size=16)


@given(HEX, HEX)
def test_the_same_digest_twice_is_never_unequal(one: str, other: str) -> None:
    assert not unequal(f"wrote {one}, read {one}")
    assert unequal(f"wrote {one}, read {other}") == unequal(f"wrote {other}, read {one}")


def test_parts_of_an_uuid_are_no_digests() -> None:
    one, other = "9f31ab22-cd4e-11ff-8a3b-0123456789ab", "11aa33bb-44cc-55dd-8a3b-0123456789ab"
    assert not unequal(f"GPU-{one} beside GPU-{other}")


def test_one_ranks_own_nan_is_blamed_where_the_tracebacks_of_all_hosts_name_no_rank(tmp_path: Path) -> None:
    files = {}
    for at, host in enumerate(("gq-n1", "gq-n2", "gq-n3")):
        lines = [
            f"2026-04-03 08:{epoch:02d}:00 INFO: rank {4 * at + rank} epoch {epoch} loss 0.{90 - epoch}"
            for epoch in range(20)
            for rank in range(4)
        ]
        if host == "gq-n2":
            lines.append("2026-04-03 08:20:01 WARNING: rank 6 epoch 20 loss=nan grad_norm=nan (118)")
        lines += [
            "2026-04-03 08:20:03 INFO: reduced loss nan",
            "Traceback (most recent call last):",
            '  File "/opt/gq/train.py", line 90, in step',
            '    raise FloatingPointError("the loss of all ranks is nan")',
            "FloatingPointError: the loss of all ranks is nan",
        ]
        files[f"{host}.log"] = "\n".join(lines) + "\n"
    body = judged(tmp_path, files).verdict
    assert body.failure_type == "numerics.nan"
    assert (body.culprits.ranks, body.culprits.hosts) == ((6,), ("gq-n2",))


def test_a_name_at_the_beginning_of_the_summary_stays_as_it_is(tmp_path: Path) -> None:
    verdict = judged(tmp_path, {"train.log": steps(40) + traceback("orbit.NoLeader: ring 19")})
    assert verdict.verdict.summary.startswith("orbit.NoLeader: ring 19.")


def test_where_in_the_users_program_an_exception_was_raised(tmp_path: Path) -> None:
    """The innermost frame of his own code, of the exception that began it; where it has none, of the next."""
    inner = (
        "Traceback (most recent call last):\n"
        '  File "/usr/lib/python3.11/json/decoder.py", line 355, in raw_decode\n'
        "    raise JSONDecodeError()\n"
        "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        '  File "/app/train.py", line 12, in main\n'
        "    feed()\n"
        '  File "/app/feed/shards.py", line 40, in feed\n'
        "    raise FeedBroken(path)\n"
        "feed.FeedBroken: part 7\n"
    )
    (cited, *_) = judged(tmp_path / "a", {"train.log": steps(40) + inner}).verdict.evidence
    assert cited.raised_at == "/app/feed/shards.py:40 in feed"
    (plain, *_) = judged(
        tmp_path / "b", {"train.log": steps(40) + traceback("orbit.NoLeader: ring 19")}
    ).verdict.evidence
    assert plain.raised_at is not None and plain.raised_at.startswith("/app/train.py:")
