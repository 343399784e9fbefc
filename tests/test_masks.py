"""Masks: what varies in a log line gets a name, and what tells kinds of lines apart stays."""

from __future__ import annotations

import pytest
from growth import grows_evenly
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage.mining.masks import mask


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ("2026-01-31 08:13:02,100 INFO loaded", "<TIME> INFO loaded"),
        ("2026-01-31T08:13:02.100Z loaded", "<TIME> loaded"),
        ("2026-01-31T08:13:02+01:00 loaded", "<TIME> loaded"),
        ("E0131 08:13:02.100000 agent failed", "<TIME> agent failed"),
        ("Jan  5 10:11:12 kernel: link down", "<TIME> kernel: link down"),
        ("Thu Jan 15 10:11:12 2026 driver loaded", "<TIME> driver loaded"),
        ("at 12:34:56.789 it stopped", "at <TIME> it stopped"),
        ("got 503 from https://hub.example/api?x=1 again", "got <NUM> from <URL> again"),
        ("reading s3://bucket/shard-01.tar, retrying", "reading <URL>, retrying"),
        ("run 123e4567-e89b-12d3-a456-426614174000 ended", "run <UUID> ended"),
        ("10.0.0.1:29500 refused", "<IP> refused"),
        ("Bootstrap : Using eth0:10.30.0.61<0>", "Bootstrap : Using eth<NUM>:<IP>"),
        ("[::1]:29500 refused", "<IP> refused"),
        ("[2001:db8::17]:29500 refused", "<IP> refused"),
        ("cannot open /mnt/data/part 3", "cannot open <PATH> <NUM>"),
        ("cannot open '/mnt/data/a.bin'", "cannot open '<PATH>'"),
        ("saved ~/out/model.pt", "saved <PATH>"),
        ("saved ./out/model.pt", "saved <PATH>"),
        ("fault at 0x7ffe12ab", "fault at <HEX>"),
        ("at commit deadbeef12 now", "at commit <HEX> now"),
        ("node-12.cluster.local:29500 is down", "<HOST> is down"),
        ("gpu-node-12.cluster.local is down", "<HOST> is down"),
        ("NVRM: Xid (PCI:0000:3b:00): 79, GPU lost", "NVRM: Xid (PCI:<PCI>): <NUM>, GPU lost"),
        ("Tried to allocate 23.44 GiB.", "Tried to allocate <SIZE>."),
        ("read 12 bytes at 3.5 GB/s", "read <SIZE> at <SIZE>"),
        ("step 120/5000 loss=2.3451 lr 1.0e-04", "step <NUM>/<NUM> loss=<NUM> lr <NUM>"),
        ("seen 1,234,567 tokens, 99% of them", "seen <NUM> tokens, <NUM> of them"),
        ("exitcode: -9, exitcode=-11", "exitcode: <NUM>, exitcode=<NUM>"),
        ("[rank3]: on cuda:0", "[rank<NUM>]: on cuda:<NUM>"),
        (
            "WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1024)",
            "WorkNCCL(SeqNum=<NUM>, OpType=ALLREDUCE, NumelIn=<NUM>)",
        ),
    ],
)
def test_a_value_becomes_its_kind(line: str, masked: str) -> None:
    assert mask(line) == masked


@pytest.mark.parametrize(
    "line",
    [
        "the fabric manager is not added to the facade",
        "loss nan",
        "OpType ALLREDUCE against BROADCAST",
        "Segmentation fault (core dumped)",
        "dead beef decade",
    ],
)
def test_words_stay_words(line: str) -> None:
    assert mask(line) == line


def test_lines_that_differ_in_values_alone_become_one() -> None:
    first = "[rank7]: 2026-01-31 08:13:02 10.0.0.7:1234 wrote /a/b-1.pt of 3.1 GB in 20 s, id 0xff01"
    second = "[rank12]: 2027-11-02 23:59:59 10.9.8.7:99 wrote /c/d-77.pt of 12 GB in 4 s, id 0xab"
    assert mask(first) == mask(second)


def test_lines_that_differ_in_words_stay_apart() -> None:
    assert mask("Timeout in ALLREDUCE after 30 s") != mask("Timeout in BROADCAST after 30 s")


def test_the_width_of_padding_is_no_difference() -> None:
    assert mask("step     7  loss  2.5 ") == mask("step 19450 loss 2.5")


def test_a_mac_address_is_one_value() -> None:
    assert mask("port 00:1a:2b:3c:4d:5e is down") == "port <MAC> is down"


def test_a_source_place_is_no_host() -> None:
    assert "<HOST>" not in mask("[rank0] ProcessGroupNCCL.cpp:607 watchdog caught an exception")


def test_the_clock_of_a_progress_bar_is_no_pci_address() -> None:
    assert "<PCI>" not in mask("12/100 [00:01<00:20, 3.2it/s]")


FRAGMENTS = (
    "2026-01-31 08:13:02", "00:20", "3b:00.0", "0000:3b:00", "0x1f", "deadbeef1", "10.0.0.1", "10.0.0.1:80",
    "<0>", "/a/b", "~/c", "./", "https://x.y/z", "[::1]", "node-1.b.c", "node-1.b.c:80", "23.4 GiB", "1,234",
    "-9", "1e-5", "7%", "rank", "loss", "=", ":", " ", ", ", "(", ")", "[", "]", "<", ">", "-", "_", ".", "/",
    "|", "nan", "é", "Xid",
)  # fmt: skip
LINES = st.one_of(st.text(max_size=80), st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join))


@given(LINES)
@settings(max_examples=400, deadline=None)
def test_any_text_is_masked_without_line_ends_or_double_spaces(text: str) -> None:
    masked = mask(text)
    assert "\n" not in masked
    assert "  " not in masked
    assert masked == masked.strip()


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12))
@settings(max_examples=300, deadline=None)
def test_masking_what_is_masked_changes_nothing(fragments: list[str]) -> None:
    once = mask(" ".join(fragments))
    assert mask(once) == once


HOSTILE = (
    "a-", "1.", "/", "0x", ":", "ab:", "1,", "1-", "a.", "::", "[:", "-", "0", "f", "a/", "./", "~/", "Jan ",
    "2026-", "http://", "1a-", "a-1.", "12:34:", "e+", "0.0", "\t", "\x00", "é", "<", "999.", "aa:bb:", "1e", "h://",
)  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_hostile_line_takes_no_time(unit: str) -> None:
    assert grows_evenly(lambda size: unit * (size // len(unit)), mask, 12_500)


@pytest.mark.parametrize("unit", ["a-", "1."])
def test_the_cost_of_a_shorter_hostile_line_is_that_of_its_length(unit: str) -> None:
    def made(size: int) -> list[str]:
        return [f"{number} " + unit * size for number in range(4)]

    assert grows_evenly(made, lambda lines: [mask(line) for line in lines], 125)
