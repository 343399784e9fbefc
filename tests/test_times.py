"""Times of all the clocks that logs are stamped with."""

from __future__ import annotations

import calendar
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage.intake.times import find_time

NOON = calendar.timegm((2026, 11, 29, 12, 5, 9))


@pytest.mark.parametrize(
    ("text", "second", "kind"),
    [
        ("2026-11-29 12:05:09,250 INFO ready", 0.25, "iso"),
        ("[2026-11-29 12:05:09.250][INFO] ready", 0.25, "iso"),
        ("2026-11-29T12:05:09.250000000Z stdout F ready", 0.25, "iso"),
        ("2026-11-29T20:05:09+08:00 ready", 0.0, "iso"),
        ("2026-11-29T04:05:09-0800 ready", 0.0, "iso"),
        ("2026/11/29 12:05:09.250, 0, 98 %", 0.25, "iso"),
        ("  time      : 2026-11-29_12:05:09", 0.0, "iso"),
        ("2026-11-29,12:05:09 | INFO | ready", 0.0, "iso"),
        ("2026-Nov-29 12:05:09.2500 881:912 INFO ready", 0.25, "iso"),
        ("(Worker pid=8) 2026-Nov-29 12:05:09.2500 881:912 INFO ready", 0.25, "iso"),
        ("I1129 12:05:09.250000 123 server.cc:1] ready", 0.25, "glog"),
        ("[W1129 12:05:09.250000000 socket.cpp:207] ready", 0.25, "glog"),
        ("I20261129 12:05:09.250000 123 server.cc:1] ready", 0.25, "glog"),
        (f"I0000 00:00:{NOON}.250000    77 executor.cc:1015] ready", 0.25, "glog"),
        ("Nov 29 12:05:09 gpu-a kernel: [9617.69] ready", 0.0, "syslog"),
        ("[Sun Nov 29 12:05:09 2026] ready", 0.0, "ctime"),
        ("Sun Nov 29 12:05:09 UTC 2026", 0.0, "ctime"),
        ("[Nov 29 2026 12:05:09] [INFO] ready", 0.0, "syslog"),
        ("11/29/2026 12:05:09 - INFO - ready", 0.0, "us"),
        ("11/29/2026 12:05:09 PM ready", 0.0, "us"),
        ("[11/29/26 12:05:09] INFO ready", 0.0, "us"),
        ("26/11/29 12:05:09 INFO storage.Block: ready", 0.0, "log4j"),
        ("29/Nov/2026:12:05:09 +0000", 0.0, "clf"),
        ("Sun, 29 Nov 2026 12:05:09 GMT", 0.0, "clf"),
        ("29.11.2026 12:05:09 bereit", 0.0, "day-month"),
        ("[29.11.26 12:05:09,250] bereit", 0.25, "day-month"),
        ("29.11. 12:05:09 bereit", 0.0, "day-month"),
        ("INFO: 29.11.2026 12:05:09 готово", 0.0, "day-month"),
        ("11/29 12:05:09 - engine - INFO - ready", 0.0, "month-day"),
        ("20261129-12:05:09:250|ready", 0.25, "compact"),
        (f"{NOON}.250 ready", 0.25, "epoch"),
        ("error: *** STEP 7.0 CANCELLED AT 2026-11-29T12:05:09 DUE TO TIME LIMIT ***", 0.0, "iso"),
        (" 10%|#  | 3/9 [00:13<00:12,  1.2it/s]2026-11-29 12:05:09,250 | INFO | ready", 0.25, "iso"),
    ],
)
def test_a_stamp_is_read_to_the_moment_it_means(text: str, second: float, kind: str) -> None:
    stamp = find_time(text, year=2026)
    assert stamp is not None
    assert stamp.seconds == pytest.approx(NOON + second, abs=1e-3)
    assert (stamp.kind, stamp.has_date) == (kind, True)
    assert text[stamp.start : stamp.end].strip()


def test_a_month_without_padding_is_told_from_the_day() -> None:
    stamp = find_time("[E227 09:32:48.472861351 ProcessGroupNCCL.cpp:632] caught", year=2024)
    assert stamp is not None and not stamp.has_year
    assert datetime.fromtimestamp(stamp.seconds, UTC).strftime("%Y-%m-%d %H:%M:%S") == "2024-02-27 09:32:48"


def test_seconds_since_boot_are_no_date() -> None:
    for text in ("[12345.678901] usb 1-1", "[    5.678901] usb", "6,40,5678901,-;usb 1-1"):
        stamp = find_time(text)
        assert stamp is not None and stamp.kind == "monotonic" and not stamp.has_date
    assert find_time("6,40,5678901,-;usb") == find_time("6,40,5678901,-;usb", year=2026)


def test_a_time_of_day_stands_at_the_start_only() -> None:
    stamp = find_time("16:32:55.942 | INFO | ready")
    assert stamp is not None and not stamp.has_date and stamp.seconds == pytest.approx(59575.942)
    assert find_time("the epoch took 12:00:01 in all") is None


@pytest.mark.parametrize(
    "text",
    [
        " 20%|##  | 18000/80000 [3:00:00<10:20:00,  0.62s/it]",
        "[02:45:00<24:45:00]",
        "99/99/9999 99:99:99",
        "2025-02-30 10:00:00 no such day",
        "2025-13-01 25:61:00",
        "[1, 2, 3] 4.5.6 7:8:9",
        "shape torch.Size([4096, 11008]) 0x7f5c5d2c 10.0.0.1:29500",
        "I9999 99:99:99.000000 1 x.cc:1] x",
        "",
        " ",
        "[",
    ],
)
def test_numbers_that_are_no_time_are_none(text: str) -> None:
    assert find_time(text, year=2026) is None


def test_the_leap_day_and_the_leap_second_are_times() -> None:
    leap_day = find_time("I0229 00:00:00.000000 1 x.cc:1] x")
    assert leap_day is not None  # also where the year is not known
    assert find_time("Feb 29 12:00:00 host x: y", year=2023) is None
    leap_second = find_time("2016-12-31T23:59:60Z")
    assert leap_second is not None and leap_second.seconds == calendar.timegm((2017, 1, 1, 0, 0, 0))


@given(
    st.datetimes(datetime(2001, 1, 1), datetime(2098, 12, 31)),
    st.integers(-14 * 4, 14 * 4),
    st.sampled_from("T "),
)
@settings(deadline=None)
def test_any_moment_in_any_zone_is_found_again(moment: datetime, quarters: int, joint: str) -> None:
    zoned = moment.replace(tzinfo=timezone(timedelta(minutes=15 * quarters)))
    stamp = find_time(f"[{zoned.isoformat(joint, 'microseconds')}] ready")
    assert stamp is not None and stamp.has_zone
    assert stamp.seconds == pytest.approx(zoned.timestamp(), abs=1e-5)


@given(st.text(alphabet="0123456789:-/.,TZIWE[]()<> JanFebSun+", max_size=80))
@settings(max_examples=400, deadline=None)
def test_no_text_is_too_strange(text: str) -> None:
    stamp = find_time(text, year=2026)
    assert stamp is None or 0 <= stamp.start < stamp.end <= len(text)
