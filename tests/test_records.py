"""Tracebacks and native stacks come out whole, in causal order, and apart from each other."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage.intake.layout import learn_layout
from logtriage.intake.lines import LineReader
from logtriage.intake.records import records
from logtriage.model import Record, Source, SourceRole

LIBRARY = "/opt/conda/lib/python3.11/site-packages/torch"


def group(text: str) -> list[Record]:
    data = text.encode("utf-8", "surrogateescape")
    source = Source("job.log", len(data), SourceRole.MERGED)
    lines = LineReader(source, learn_layout(source, [data], year=2026)).read_block(data, 1, 0)
    found = list(records(lines))
    assert sorted(line.number for record in found for line in record.lines) == [line.number for line in lines]
    firsts = [record.lines[0].number for record in found]
    assert firsts == sorted(firsts)
    return found


def only(text: str, kind: str = "traceback") -> Record:
    (record,) = [record for record in group(text) if record.kind != "line"]
    assert record.kind == kind
    return record


def types(record: Record) -> list[str]:
    return [raised.type for raised in record.raised]


def trace(name: str, path: str = "/work/train.py", message: str = "bad") -> list[str]:
    return [
        "Traceback (most recent call last):",
        f'  File "{path}", line 12, in main',
        "    step(batch)",
        "         ^^^^^",
        f'  File "{LIBRARY}/nn/module.py", line 99, in step',
        "    return forward(x)",
        f"{name}: {message}",
    ]


def test_a_traceback_names_its_exception_and_the_users_frame() -> None:
    record = only("\n".join(["step 1", *trace("ValueError"), "step 2"]))
    (raised,) = record.raised
    assert (raised.type, raised.message, raised.at.number) == ("ValueError", "bad", 8)
    assert [frame.is_user_code for frame in raised.frames] == [True, False]
    assert raised.user_frame is not None and raised.user_frame.line == 12
    assert len(record.lines) == 7


@pytest.mark.parametrize(
    "joint",
    [
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:",
    ],
)
@pytest.mark.parametrize("prefix", ["", "[rank3]: ", "2026-11-29T16:00:00.000000000Z stderr F "])
def test_a_chain_is_one_record_first_cause_first(joint: str, prefix: str) -> None:
    chain = [*trace("KeyError", message="'lr'"), "", joint, "", *trace("RuntimeError")]
    record = only("\n".join(prefix + line for line in chain))
    assert types(record) == ["KeyError", "RuntimeError"]
    assert record.raised[0].at.number == 7 and len(record.lines) == 17


def test_the_inner_traceback_of_a_loader_worker_came_first() -> None:
    inner = trace("OSError", message="[Errno 5] Input/output error")
    inner[0] = "Original " + inner[0]
    record = only(
        "\n".join([*trace("OSError", message="Caught OSError in DataLoader worker process 0."), *inner])
    )
    assert [raised.message[:8] for raised in record.raised] == ["[Errno 5", "Caught O"]


def test_the_inner_traceback_of_a_spawned_process_came_first() -> None:
    outer = trace("torch.multiprocessing.spawn.ProcessRaisedException", message="")
    record = only(
        "\n".join([*outer, "", "-- Process 1 terminated with the following error:", *trace("NameError")])
    )
    assert types(record) == ["NameError", "torch.multiprocessing.spawn.ProcessRaisedException"]


def test_the_inner_frames_of_a_ray_task_came_first() -> None:
    outer = trace("ray.exceptions.RayTaskError(ValueError)", message="ray::f() (pid=1, ip=10.0.0.1)")
    record = only("\n".join([*outer, '  File "/work/task.py", line 3, in f', "    g()", "ValueError: bad"]))
    assert types(record) == ["ValueError", "ray.exceptions.RayTaskError(ValueError)"]


def test_a_pools_remote_traceback_is_the_cause_of_the_local_one() -> None:
    remote = ["multiprocessing.pool.RemoteTraceback: ", '"""', *trace("ZeroDivisionError"), '"""', ""]
    joint = ["The above exception was the direct cause of the following exception:", ""]
    record = only("\n".join([*remote, *joint, *trace("ZeroDivisionError", message="again")]))
    assert [raised.message for raised in record.raised] == ["bad", "again"]


def test_an_exception_group_comes_after_its_members() -> None:
    text = """\
  + Exception Group Traceback (most recent call last):
  |   File "/work/a.py", line 9, in <module>
  |     raise ExceptionGroup("many", errors)
  | ExceptionGroup: many (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/work/a.py", line 3, in f
    |     g()
    | ValueError: one
    +---------------- 2 ----------------
    | TypeError: two
    +------------------------------------
after
"""
    assert types(only(text)) == ["ValueError", "TypeError", "ExceptionGroup"]


def test_boxes_and_annotated_frames_are_read() -> None:
    boxed = only(
        "╭──── Traceback (most recent call last) ────╮\n"
        "│ /work/train.py:98 in main                 │\n"
        "│ ❱  98 │   y = x / 0                       │\n"
        "╰───────────────────────────────────────────╯\n"
        "ZeroDivisionError: division by zero\n"
    )
    assert boxed.raised[0].frames[0].line == 98 and len(boxed.lines) == 5
    annotated = only(
        'Traceback (most recent call last):\n\n> File "/work/train.py", line 7, in <module>\n    main()\n'
        "    └ <function main at 0x7f>\n"
        "\nZeroDivisionError: division by zero\n16:00:00.1 | INFO | a:b:1 - next\n"
    )
    assert annotated.raised[0].frames[0].line == 7 and len(annotated.lines) == 7


def test_a_syntax_error_keeps_its_caret() -> None:
    record = only(
        '  File "/work/a.py", line 3\n    def f(:\n          ^\nSyntaxError: invalid syntax\nnext\n'
    )
    assert types(record) == ["SyntaxError"] and len(record.lines) == 4


def test_a_message_of_several_lines_is_joined_and_bounded() -> None:
    more = [f"[rank1]: \tsize mismatch for layer.{index}" for index in range(150)]
    lines = ["[rank1]: " + line for line in trace("RuntimeError", message="Error(s) in loading state_dict:")]
    (raised,) = only("\n".join([*lines, *more, "step 3"])).raised
    assert raised.message.startswith("Error(s) in loading state_dict:\n\tsize mismatch for layer.0\n")
    assert len(raised.message) <= 2000


def test_a_message_ends_where_other_words_begin() -> None:
    after = ["2026-11-29 16:00:01 INFO step 2", "Epoch 3: loss 1.0", "srun: error: node: task 0: Exited"]
    for line in after:
        assert only("\n".join([*trace("RuntimeError"), line])).raised[0].message == "bad"

    prefixed = ["[rank1]: " + line for line in [*trace("RuntimeError"), "Epoch 3: loss 1.0"]]
    assert only("\n".join(prefixed)).raised[0].message == "bad"


def test_a_logged_traceback_belongs_to_its_writer_without_prefixes() -> None:
    text = "\n".join(
        ["[2026-11-29 16:00:00,1 E 27 27] failed: Traceback (most recent call last):", *trace("KeyError")[1:]]
    )
    record = only(text)
    assert types(record) == ["KeyError"] and len(record.lines) == 7


def test_a_traceback_inside_one_json_line_is_read() -> None:
    whole = "\n".join(trace("KeyError", message="'a'"))
    for key in ("exc_info", "whatever"):
        record = only(json.dumps({"level": "ERROR", "rank": 1, "msg": "crash", key: whole}))
        assert types(record) == ["KeyError"] and record.raised[0].at.rank == 1
    escaped = only("message: " + json.dumps(whole))
    assert types(escaped) == ["KeyError"]


def test_a_foreign_line_between_frames_stays_alone() -> None:
    lines = trace("ValueError")
    lines.insert(3, "2026-11-29 16:00:00,1 WARNING TimeoutError: tried again")
    found = group("\n".join(lines))
    assert [record.kind for record in found] == ["traceback", "line"]
    assert types(found[0]) == ["ValueError"] and len(found[0].lines) == 7


@pytest.mark.parametrize(
    ("text", "kind", "size"),
    [
        (
            "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error\n"
            "Exception raised from f at ../a.cpp:3 (most recent call first):\n"
            "frame #0: f + 0x9 (0x7f in /l.so)\n",
            "native_stack",
            4,
        ),
        (
            "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f (most recent call first):\n"
            '  File "/work/a.py", line 3 in f\n',
            "native_stack",
            4,
        ),
        ("*** Aborted at 1700000000 (unix time) ***\nPC: @ 0x0 f\n    @ 0x7f g\n", "native_stack", 3),
        ('!!!!!!! Segfault encountered !!!!!!!\n  File "<unknown>", line 0, in f\n', "native_stack", 2),
        (
            "panic: index out of range\n\ngoroutine 1 [running]:\nmain.main()\n\t/work/a.go:8 +0x1d\n",
            "native_stack",
            5,
        ),
        (
            "java.lang.RuntimeException: x\n\tat com.a.B.c(B.java:1)\nCaused by: java.io.IOException: y\n"
            "\tat com.a.B.d(B.java:2)\n",
            "native_stack",
            4,
        ),
        (
            "n1:1:2 [0] net.cc:9 NCCL WARN connection closed\nn1:1:2 [0] NCCL INFO net.cc:90 -> 6\n"
            "n1:1:2 [0] NCCL INFO proxy.cc:12 -> 6\n",
            "native_stack",
            3,
        ),
        (
            "[ 10.000001] python invoked oom-killer: gfp_mask=0xcc0\n[ 10.000002] Mem-Info:\n"
            "[ 10.000003] Memory cgroup out of memory: Killed process 7 (python)\n",
            "kernel_dump",
            3,
        ),
    ],
)
def test_native_blocks_are_kept_together(text: str, kind: str, size: int) -> None:
    record = only(f"step 1\n{text}Epoch 9\n", kind)
    assert len(record.lines) == size


def test_a_kernel_dump_ends_with_the_killed_process() -> None:
    dump = "[ 10.000001] python invoked oom-killer: gfp_mask=0xcc0\n[ 10.000002] Killed process 7 (python)\n"
    assert len(only(dump + "[ 11.000001] usb 1-1: new device\n", "kernel_dump").lines) == 2


def test_a_kernel_dump_without_an_end_does_not_swallow_the_programs_words() -> None:
    dump = "[ 10.000001] python invoked oom-killer: gfp_mask=0xcc0\n[ 10.000002] Mem-Info:\n"
    kinds = [record.kind for record in group("\n".join([dump.strip(), *trace("ValueError"), "step 3"]))]
    assert kinds == ["kernel_dump", "traceback", "line"]


def test_an_exception_named_alone_is_a_line() -> None:
    assert [record.kind for record in group("ValueError: bad\nstep 1\nRuntimeError: bad\n")] == ["line"] * 3


_NAMES = st.sampled_from(["ValueError", "KeyError", "torch.OutOfMemoryError", "RuntimeError"])


@given(
    st.lists(st.tuples(_NAMES, st.integers(0, 2)), min_size=1, max_size=5), st.randoms(use_true_random=False)
)
@settings(max_examples=60, deadline=None)
def test_interleaved_ranks_come_apart_as_if_alone(ranks: list[tuple[str, int]], random: object) -> None:
    alone: list[Sequence[str]] = []
    for rank, (name, links) in enumerate(ranks):
        body = trace(name)
        for _ in range(links):
            body += [
                "",
                "During handling of the above exception, another exception occurred:",
                "",
                *trace("OSError"),
            ]
        alone.append([f"[rank{rank}]: {line}" for line in body])
    queues = [list(lines) for lines in alone]
    mixed: list[str] = []
    while any(queues):
        queue = random.choice([queue for queue in queues if queue])  # type: ignore[attr-defined]
        mixed.append(queue.pop(0))
    together = {
        record.lines[0].rank: record for record in group("\n".join(mixed)) if record.kind == "traceback"
    }
    for rank, lines in enumerate(alone):
        single = only("\n".join(lines))
        assert [line.text for line in together[rank].lines] == [line.text for line in single.lines]
        assert [(each.type, each.message, each.frames) for each in together[rank].raised] == [
            (each.type, each.message, each.frames) for each in single.raised
        ]


_PIECES = st.sampled_from(
    [
        *trace("ValueError"),
        "",
        "Original Traceback (most recent call last):",
        '"""',
        "KeyError",
        "terminate called after",
        "During handling of the above exception, another exception occurred:",
        "frame #0: f",
        "╭── Traceback (most ──╮",
        "╰──╯",
        "│ /a.py:3 in f │",
        "goroutine 1 [running]:",
        "x invoked oom-killer: y",
        "Killed process 3",
        "step 5",
        "ray::f() (pid=1)",
        "  + Exception Group Traceback (most recent call last):",
        "  +-+------- 1 -------",
        "    | ValueError: 3",
        "-- Process 1 terminated with the following error:",
        "n1:1:2 [0] a.cc:1 NCCL WARN x",
        "2026-11-29 16:00:00 ERROR x",
        "multiprocessing.pool.RemoteTraceback: ",
        "\tat a.b(C.java:1)",
        "E: \\n",
    ]
)


@given(
    st.lists(st.tuples(st.sampled_from(["", "[rank0]: ", "[rank1]: ", "(W pid=3) "]), _PIECES), max_size=40)
)
@settings(max_examples=300, deadline=None)
def test_every_line_is_in_exactly_one_record(pieces: list[tuple[str, str]]) -> None:
    for record in group("\n".join(prefix + piece for prefix, piece in pieces)):
        assert record.lines
        for raised in record.raised:
            assert raised.type and raised.at in record.lines


def test_a_record_that_never_ends_does_not_hold_the_file() -> None:
    data = "[rank0]: Traceback (most recent call last):\n" + "[rank1]: step 1\n" * 60_000
    source = Source("job.log", len(data), SourceRole.MERGED)
    reader = LineReader(source, learn_layout(source, [data[:60_000].encode()]))
    drawn = 0

    def lines() -> object:
        nonlocal drawn
        for number, line in enumerate(data.encode().splitlines(), start=1):
            drawn += 1
            yield reader.read(line, number, 0)

    next(iter(records(lines())))  # type: ignore[arg-type]
    assert drawn < 30_000


def test_a_message_that_announces_more_goes_on_behind_a_blank_line() -> None:
    lines = [
        *trace("booster.RoundFault", message="[09:14:02] ring.cc:51:"),
        "",
        "- ring is broken at 2",
        "- bye",
    ]
    (raised,) = only("\n".join(lines)).raised
    assert raised.message.splitlines() == ["[09:14:02] ring.cc:51:", "- ring is broken at 2", "- bye"]
    lines[-3:] = ["", "", "- ring is broken at 2"]
    assert "ring is" not in group("\n".join(lines))[0].raised[0].message
