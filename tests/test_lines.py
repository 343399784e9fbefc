"""What a line says of its writer, its time and its level."""

from __future__ import annotations

import json

import pytest
from growth import grows_evenly
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage.intake.layout import completed, learn_layout
from logtriage.intake.lines import LineReader, plain, segments
from logtriage.model import Level, Line, Source, SourceRole


def read(text: str | bytes, *, year: int | None = 2026, **facts: object) -> list[Line]:
    data = text.encode() if isinstance(text, str) else text
    source = Source("job.log", len(data), SourceRole.MERGED, **facts)  # type: ignore[arg-type]
    return LineReader(source, learn_layout(source, [data, data], year=year)).read_block(data, 1, 0)


@pytest.mark.parametrize(
    ("text", "rank", "message"),
    [
        ("[rank3]: ValueError: bad", 3, "ValueError: bad"),
        ("[rank3]:     loss.backward()", 3, "    loss.backward()"),
        ("[Rank 3] started", 3, "started"),
        ("[default5]:hello", 5, "hello"),
        ("[default1]:[rank9]: ValueError: bad", 9, "ValueError: bad"),
        ("[1,3]<stdout>:hello", 3, "hello"),
        ("[1,3]<stderr>:hello", 3, "hello"),
        ("[1,mpirank:6,algo-2]<stdout>:hello", 6, "hello"),
        ("(Worker pid=41, ip=10.0.0.3) [rank0]: hello", 0, "hello"),
        ("2026-11-29 16:00:00,1 INFO [rank-2] loop (run.py:7) - ready", 2, "loop (run.py:7) - ready"),
        ("2026-11-29 16:00:00,1 | INFO    | rank 1 | ready", 1, "ready"),
        ("2026-11-29 16:00:00 [INFO] (rank 4) ready", 4, "ready"),
        ("2026-11-29 16:00:00,1: rank2[77][MainThread]: INFO: loop: ready", 2, "loop: ready"),
        ("[2026-11-29 16:00:00,1] [INFO] [log.py:9:dist] [Rank 6] ready", 6, "[log.py:9:dist] ready"),
        ("[E ProcessGroupNCCL.cpp:475] [Rank 7] Watchdog", 7, "ProcessGroupNCCL.cpp:475] [Rank 7] Watchdog"),
        ("[E ProcessGroupNCCL.cpp:9] [PG ID 0 PG GUID 0(default_pg) Rank 7] x", 7, None),
        ("[rank9]:[E114 15:00:25.103358676 ProcessGroupNCCL.cpp:9] [PG ID 2 PG GUID 3 Rank 1] x", 9, None),
        ("[prterun-n1-7@1,3]<stdout>: hello", 3, "hello"),
        ("Thu Mar  5 08:11:09 2026[1,3]<stderr>:hello", 3, "hello"),
        ("Thu Mar  5 08:11:09 2026[3]<stdout>:[2026-03-05 08:11:09] INFO hello", 3, "hello"),
        ("[1,3][n1:77]<stderr>: hello", 3, "hello"),
        ("2026-11-29 16:00:00,1 - Rank 3 - ready", 3, "ready"),
        ("2026-11-29 16:00:00,1 [rank5] INFO ready", 5, "ready"),
        ("2026-11-29 16:00:00 | rank 5 | INFO | ready", 5, "ready"),
        ("[Agent] 2026-11-29 16:00:00,1 [INFO] [rank3-restart1] ready", 3, "[Agent] ready"),
        ("[Rank 3/8] [2026-11-29 16:00:00] [INFO]: ready", 3, "ready"),
        ("[process=2][thread=Main] hello", 2, "[thread=Main] hello"),
        ('{"ts": 1795968369.1, "rank": 4, "msg": "ready"}', 4, "ready"),
    ],
)
def test_a_prefix_names_the_writer(text: str, rank: int, message: str | None) -> None:
    (line,) = read(text)
    assert line.rank == rank
    assert message is None or line.message == message
    assert line.text == text


@pytest.mark.parametrize(
    "text",
    [
        "Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=1)",
        "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running",
        "Duplicate GPU detected : rank 3 and rank 0 both on CUDA device f000",
        "2026-11-29 16:00:00,1 INFO lost connection, last message came from rank 3",
        "ERROR:launcher:Rank 0 crashed with exit code 1.",
        "3: not a label, only a list",
        "[E ProcessGroupNCCL.cpp:9] [PG ID 2 PG GUID 3 Rank 1] a place in a group is no global rank",
        "[0]:",
        "[batch=2028/50000]:",
    ],
)
def test_another_rank_in_a_sentence_is_not_the_writer(text: str) -> None:
    assert read(text)[0].rank is None


def test_srun_labels_are_learned_from_their_repetition() -> None:
    labelled = "".join(f"{index % 2}: step {index}\n" for index in range(20))
    assert {line.rank for line in read(labelled + "slurmstepd: error: x\n")} == {0, 1, None}
    assert read(labelled)[0].message == "step 0"
    listing = "1: lo: up\n    inet 127.0.0.1\n2: eth0: up\n    inet 10.0.0.2\n"
    assert {line.rank for line in read(listing)} == {None}


def test_bare_tee_numbers_and_a_rank_column_are_learned() -> None:
    assert [line.rank for line in read("[0]:a\n[1]:b\n[1]:c\n")] == [0, 1, 1]
    column = "".join(f"[16:00:{index:02}] rank {index % 4} step {index}\n" for index in range(12))
    assert {line.rank for line in read(column)} == {0, 1, 2, 3}


def test_a_launchers_host_labels_give_the_host() -> None:
    lines = read("".join(f"gpu-{index % 2}: step {index}\n" for index in range(12)))
    assert {line.host for line in lines} == {"gpu-0", "gpu-1"}
    assert lines[0].message == "step 0"
    few = "gpu-0: a\ngpu-0: b\ngpu-0: c\ngpu-11: d\n"
    assert [line.host for line in read(few)] == ["gpu-0", "gpu-0", "gpu-0", "gpu-11"]
    assert {line.host for line in read("ValueError: a\nwarning: b\n" * 6)} == {None}


def test_a_level_before_a_loggers_name_is_no_host() -> None:
    lines = read("".join(f"2026-11-29 16:00:0{second},1 INFO train: step {second}\n" for second in range(9)))
    assert {(line.host, line.level) for line in lines} == {(None, Level.INFO)}


def test_cluster_tools_prefixes_give_host_and_pid() -> None:
    (line,) = read("(worker1, rank=1, pid=77, ip=10.0.0.3) ready")
    assert (line.rank, line.pid, line.host, line.message) == (None, 77, "worker1", "ready")
    (line,) = read("[pod/job-worker-0/pytorch] 2026-11-29T16:00:00Z ready")
    assert (line.host, line.message) == ("job-worker-0", "ready")
    (line,) = read("2026-11-29T16:00:00.000000+00:00 n1 kernel: [  100.000000] NVRM: Xid")
    assert (line.host, line.message) == ("n1", "NVRM: Xid")
    (line,) = read("[n1:77] *** Process received signal ***")
    assert (line.host, line.pid) == ("n1", 77)


def test_nccl_lines_tell_host_and_pid_and_by_their_communicator_the_rank() -> None:
    lines = read(
        "n1:70:71 [1] NCCL INFO comm 0x55 rank 9 nranks 16 cudaDev 1 busId 1b000 - Init COMPLETE\n"
        "n1:70:72 [1] NCCL WARN Call to ibv_modify_qp failed\n"
    )
    assert [(line.host, line.pid, line.rank) for line in lines] == [("n1", 70, 9)] * 2
    assert lines[1].level is Level.WARNING and lines[1].message.startswith("NCCL WARN")
    (line,) = read("[2026-11-29 16:00:00] n1:70:72 [3] plugin/net.cc:3 NCCL WARN no plugin")
    assert (line.host, line.pid, line.level, line.time) == ("n1", 70, Level.WARNING, 1795968000.0)


def test_a_local_rank_becomes_global_where_the_node_is_known() -> None:
    text = "".join(f"[default{local}]:hello\n" for local in range(4))
    assert [line.rank for line in read(text, node_rank=2)] == [8, 9, 10, 11]
    assert [line.rank for line in read(text)] == [0, 1, 2, 3]
    nested = "[default1]:[rank5]: x\n[default0]:y\n"
    assert [line.rank for line in read(nested)] == [5, 4]


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("2026-11-29 16:00:00,1 ERROR bad", Level.ERROR),
        ("2026-11-29 16:00:00,1 - mod - WARNING - odd", Level.WARNING),
        ("[2026-11-29 16:00:00] torch.run: [WARNING] odd", Level.WARNING),
        ("E1129 16:00:00.1 12 x.cc:1] bad", Level.ERROR),
        ("WARNING:mod.sub:odd", Level.WARNING),
        ("2026-11-29 16:00:00.1 | CRITICAL | m:f:1 - bad", Level.CRITICAL),
        ("[2026-11-29 16:00:00,1 E 27 27] (raylet) x.cc:1: bad", Level.ERROR),
        ("2026-11-29 16:00:00.1: W tensorflow/x.cc:12] odd", Level.WARNING),
        ("kern  :err   : 2026-11-29T16:00:00,1+00:00 NVRM: Xid", Level.ERROR),
        ("<3>[ 12.345678] NVRM: Xid", Level.ERROR),
        ('time="2026-11-29T16:00:00Z" level=error msg="bad"', Level.ERROR),
        ('{"time": "2026-11-29T16:00:00Z", "severity": "ERROR", "message": "bad"}', Level.ERROR),
        ("[NeMo W 2026-11-29 16:00:00 manager:2] odd", Level.WARNING),
        ("[2026-11-29T16:00:00.100] error: Nodes n1 not responding", Level.ERROR),
        ("[ERROR] HCCL(77,python):2026-11-29-16:00:00.100.200 [link.cc:7] bad", Level.ERROR),
        ("[11/29/26 16:00:00] WARNING  odd                 a.py:1", Level.WARNING),
        ("                    ERROR    bad                 a.py:2", Level.ERROR),
        ("the ERROR rate is 0.3", None),
    ],
)
def test_the_level_is_read_where_the_logger_puts_it(text: str, level: Level | None) -> None:
    assert read(text)[0].level is level


def test_a_line_without_a_time_takes_the_one_before_of_its_own_rank() -> None:
    lines = read(
        "[rank0]: 2026-11-29 16:00:00 INFO a\n[rank1]: 2026-11-29 16:00:05 INFO b\n"
        "[rank0]:   more of a\nplain\n"
    )
    assert lines[2].time == lines[0].time
    assert lines[3].time == lines[1].time


def test_rank_goes_on_inside_a_traceback_only() -> None:
    lines = read(
        "2026-11-29 16:00:00 ERROR [rank-2] crashed\nTraceback (most recent call last):\n"
        '  File "a.py", line 1, in f\nValueError: x\n2026-11-29 16:00:01 INFO saved\nother words\n'
    )
    assert [line.rank for line in lines] == [2, 2, 2, 2, None, None]
    assert [line.rank for line in read("a\nb\n", rank=5)] == [5, 5]


def test_times_of_day_pass_midnight_and_take_the_day_of_other_files() -> None:
    clock = b"23:59:58.0 | INFO | a\n00:00:02.0 | INFO | b\n"
    source = Source("clock.log", len(clock), SourceRole.WORKER)
    dated = learn_layout(source, [b"2026-11-29 16:00:00 INFO x\n"])
    _, layout = completed([dated, learn_layout(source, [clock])])
    first, second = LineReader(source, layout).read_block(clock, 1, 0)
    assert first.time is not None and second.time is not None and dated.day is not None
    assert second.time - first.time == 4
    assert first.time - dated.day == 86_398


def test_the_year_turns_between_two_lines() -> None:
    old, new = read("I1231 23:59:59.0 1 x.cc:1] a\nI0101 00:00:01.0 1 x.cc:1] b\n", year=2025)
    assert old.time is not None and new.time is not None and new.time - old.time == 2


def test_kernel_lines_get_a_date_from_the_line_that_shows_both_clocks() -> None:
    lines = read("[  100.000000] a\n[  160.500000] audit: audit(1700000060.500:7): b\n")
    assert [line.time for line in lines] == [pytest.approx(1_700_000_000.0), pytest.approx(1_700_000_060.5)]
    assert read("[  100.000000] a\n")[0].time is None


def test_escapes_and_nuls_leave_the_message_but_not_the_text() -> None:
    raw = b"\x1b[36m(Worker pid=4)\x1b[0m \x1b[31mbad\x1b[0m\x00\r\n"
    (line,) = read(raw)
    assert line.message == "bad" and line.pid == 4
    assert line.text == raw.decode().rstrip("\r\n")
    assert plain(raw) == "(Worker pid=4) bad"


def test_a_progress_bar_shares_its_line_with_a_record() -> None:
    bar = " 10%|#  | 3/9 [00:13<00:12,  1.2it/s]"
    for joint in ("\r", ""):
        (line,) = read(f"{bar}{joint}2026-11-29 16:00:00,5 | ERROR | rank 1 | lost")
        assert (line.rank, line.level) == (1, Level.ERROR)
        assert line.message.split("\n") == [bar, "lost"]
        assert line.time == pytest.approx(1795968000.5)


def test_json_inside_a_containers_line_is_opened() -> None:
    inner = json.dumps(
        {"level": "ERROR", "hostname": "gpu-a", "rank": 2, "msg": "bad", "exc": "Traceback\nX: y"}
    )
    (line,) = read(f"2026-11-29T16:00:00.000000000Z stderr F {inner}")
    assert (line.rank, line.host, line.level) == (2, "gpu-a", Level.ERROR)
    assert line.time == 1795968000.0
    assert segments(f"2026-11-29T16:00:00Z stderr F {inner}")[0] == "bad"


def test_rules_see_the_lines_of_a_json_record_and_its_other_fields() -> None:
    text = json.dumps({"msg": "worker died", "exc_info": "Traceback\nKeyError: 'a'", "exitcode": -9})
    assert segments(text) == ["worker died", "Traceback", "KeyError: 'a'", "exitcode=-9"]
    assert segments("a\rb\r") == ["a", "b"]
    assert segments('{"loss": 1.0}') == ['{"loss": 1.0}']


def test_an_exception_that_is_a_json_object_reads_like_python_prints_it() -> None:
    record = {
        "level": {"name": "ERROR"},
        "message": "oops",
        "exception": {"type": "ValueError", "value": "bad"},
    }
    (line,) = read(json.dumps({"text": "formatted", "record": record | {"extra": {"rank": 2}}}))
    assert (line.rank, line.level, line.message) == (2, Level.ERROR, "oops\nValueError: bad")


def test_process_is_a_rank_only_where_it_counts_from_zero() -> None:
    ranks = "".join(json.dumps({"process": index, "message": "x"}) + "\n" for index in (0, 1))
    assert [line.rank for line in read(ranks)] == [0, 1]
    pids = "".join(json.dumps({"process": index, "message": "x"}) + "\n" for index in (4011, 4012))
    assert [(line.rank, line.pid) for line in read(pids)] == [(None, 4011), (None, 4012)]


@given(st.lists(st.binary(max_size=200).map(lambda raw: raw.replace(b"\n", b"")), max_size=8))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_lines_whose_text_stands_there(pieces: list[bytes]) -> None:
    data = b"".join(piece + b"\n" for piece in pieces)
    source = Source("any", len(data), SourceRole.MERGED)
    lines = LineReader(source, learn_layout(source, [data])).read_block(data, 1, 0)
    assert [line.number for line in lines] == list(range(1, len(pieces) + 1))
    for line, piece in zip(lines, pieces, strict=True):
        assert line.text == piece.rstrip(b"\r\n").decode("utf-8", "replace")
        assert data[line.offset : line.offset + len(piece)] == piece


_SCRAPS = st.sampled_from(
    [
        "[rank1]:",
        "[default2]:",
        "(W pid=3) ",
        "3: ",
        "2026-11-29 16:00:00,1 ",
        "I1129 16:00:00.1 7 x.cc:1] ",
        "INFO ",
        "[INFO]",
        "| rank 1 |",
        '{"msg": "',
        '"}',
        "\\n",
        "\r",
        "\x1b[1m",
        "[[[",
        "((((",
        "NCCL WARN ",
        "n1:1:2 [0] ",
        "{",
        "Traceback (most recent call last):",
        "level=error ",
        "99:99:99",
        "<9>",
        "[ 1.0000]",
        "\udcff",
    ]
)


@given(st.lists(st.lists(_SCRAPS, max_size=8).map("".join), max_size=6))
@settings(max_examples=300, deadline=None)
def test_prefixes_in_any_order_are_survived(texts: list[str]) -> None:
    data = "\n".join(texts).encode("utf-8", "surrogateescape")
    for line in read(data):
        segments(plain(line.text.encode()))


@pytest.mark.parametrize(
    "unit",
    [
        "[",
        "(",
        "a.",
        "1:",
        "2026-11-29 ",
        "\x1b]",
        '{"',
        "rank ",
        "[a] ",
        "x/s] ",
        " ",
        'File "',
        "12:34:56 ",
        "::",
        "a-",
        "\r",
        "it/s ",
        "INFO ",
    ],
)
@pytest.mark.parametrize("before", ["", "2026-11-29 16:00:00 ", "[rank0]:"])
def test_a_long_hostile_line_costs_no_more_than_its_length(unit: str, before: str) -> None:
    def made(size: int) -> bytes:
        return (before + (unit * size)[:size]).encode()

    assert grows_evenly(made, lambda data: (read(data), segments(plain(data))), 8_000)
    (line,) = read(made(400_000))[:1]
    assert len(line.text) <= 65_536 and len(line.message) <= 70_000


@pytest.mark.parametrize(
    ("hosts", "ranks"), [(("cn-1", "cn-1"), (0, 3)), (("cn-1", "cn-2"), (None, None))], ids=["one", "two"]
)
def test_a_local_rank_beside_its_host_is_a_rank_on_a_lone_host(
    hosts: tuple[str, str], ranks: tuple[int | None, int | None]
) -> None:
    text = "".join(
        f"2026-01-31 08:00:0{at},000\t{host}:{local}\ttrain.loop:46\tINFO\t[step={at}] loss=2.5\n"
        for at in range(4)
        for host, local in zip(hosts, (0, 3), strict=True)
    )
    lines = read(text)
    assert [(line.host, line.rank, line.level) for line in lines[:2]] == [
        (host, rank, Level.INFO) for host, rank in zip(hosts, ranks, strict=True)
    ]


@pytest.mark.parametrize(
    ("text", "host", "level", "message"),
    [
        ("2026-01-31 08:00:00      10.0.0.7 [1] step 3 loss 2.5", "10.0.0.7", None, "step 3 loss 2.5"),
        ("2026-01-31 08:00:00,123 10.0.0.9 [] Exception: gone", "10.0.0.9", None, "Exception: gone"),
        ("<error>   [2026-01-31 08:00:00] 0a1b2c3d || gone", None, Level.ERROR, "gone"),
        ("<>        [2026-01-31 08:00:00] 0a1b2c3d || gone", None, None, "gone"),
    ],
    ids=["xla_dist", "xla_dist of no ordinal", "determined", "determined, plain"],
)
def test_launchers_put_the_machine_or_the_level_ahead(
    text: str, host: str | None, level: Level | None, message: str
) -> None:
    line = read(text + "\n")[0]
    assert (line.host, line.level, line.message.strip()) == (host, level, message)
    assert line.time is not None


def test_what_has_no_label_among_labelled_lines_of_actors_is_the_drivers() -> None:
    first = "(Trainer pid=41) [rank3]:[E131 08:30:02.100000000 ProcessGroupNCCL.cpp:616] [Rank 3] timed out\n"
    lines = read(f"{first}ray.exceptions.ActorDiedError: The actor died.\n\tclass_name: Trainer\n")
    assert [line.rank for line in lines] == [3, None, None]
    plain_lines = read(first.removeprefix("(Trainer pid=41) ") + "Exception raised from check at c.cpp:9\n")
    assert [line.rank for line in plain_lines] == [3, 3]
