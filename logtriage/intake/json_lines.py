"""Records that stand as one JSON object on one line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from logtriage.intake.levels import LETTERS, SYSLOG_LEVELS, level_named
from logtriage.intake.times import Stamp, epoch_seconds, find_time
from logtriage.model import Level
from logtriage.regex import regex

MESSAGES = (
    "message", "msg", "log", "MESSAGE", "text", "textPayload", "event", "body", "short_message", "line",
)  # fmt: skip
_EXCEPTIONS = (
    "exc_info", "exc", "exception", "traceback", "stack_trace", "stacktrace", "stack", "exc_text", "error",
    "err", "full_message", "stack_info", "backtrace",
)  # fmt: skip
_TIMES = (
    "timestamp", "time", "ts", "@timestamp", "asctime", "datetime", "created", "__REALTIME_TIMESTAMP",
    "t", "date", "timeMillis", "timestamp_ms", "time_ms", "eventTime",
)  # fmt: skip
_LEVELS = (
    "level", "levelname", "severity", "lvl", "log_level", "loglevel", "PRIORITY", "log.level", "levelno",
)  # fmt: skip
_RANKS = ("rank", "global_rank", "process_index", "RANK", "Rank", "global_rank_id", "worker_rank", "rank_id")
_LOCALS = ("local_rank", "LOCAL_RANK", "local_process_index")
_HOSTS = (
    "hostname", "host", "node", "_HOSTNAME", "node_name", "nodename", "host_name", "HOSTNAME",
    "host.name", "k8s.node.name", "compute.googleapis.com/resource_name", "instance_name", "instance",
    "pod", "pod_name", "podName", "k8s.pod.name",
)  # fmt: skip
_PIDS = ("pid", "_PID", "process_id")
_NESTED = (
    "record", "jsonPayload", "extra", "labels", "context", "kubernetes", "fields", "data", "attributes",
    "stream", "resource", "host", "log",
)  # fmt: skip
_NAMED = ("host", "node", "pod")  # what can be an object with a name, as in the Elastic Common Schema
_STEPS = frozenset(("step", "global_step", "iteration", "iter"))
_HOSTS_SET = frozenset(_HOSTS)
_EXCEPTIONS_SET = frozenset(_EXCEPTIONS)
_LIMIT = 1_000_000
_UNESCAPED = regex(r"[\r\n]+")


@dataclass(slots=True)
class JsonRecord:
    """What a JSON log record says of itself; `extra` are its remaining plain fields as `key=value`."""

    message: str
    extra: str = ""
    stamp: Stamp | None = None
    level: Level | None = None
    rank: int | None = None
    local: int | None = None
    process: int | None = None  # a field "process": a rank in some loggers, a pid in others
    host: str | None = None
    pid: int | None = None


def read_json(text: str, year: int | None = None, *, with_extra: bool = True) -> JsonRecord | None:
    """The record in a text that is one JSON object; None for any other text, or one without a message.

    What a rank tells of a step in numbers alone is its own message.
    """
    if len(text) > _LIMIT:
        return None
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    if isinstance(fields.get("message"), dict):
        fields = _error_file(fields)
    elif isinstance(fields.get("_source"), dict):  # what a search in Elasticsearch found
        fields = fields["_source"]
    flat = _flattened(fields) if any(isinstance(each, dict) for each in fields.values()) else fields
    used: set[str] = set()
    message = _texts(flat, MESSAGES, used, first_only=True)
    exception = ""
    if not _EXCEPTIONS_SET.isdisjoint(flat):
        exception = _texts(flat, _EXCEPTIONS, used, first_only=False)
    if not message and not exception:
        if _STEPS.isdisjoint(flat) or (rank := _number(flat, _RANKS, used)) is None:
            return None
        return JsonRecord(text, stamp=_time(flat, used, year), rank=rank, host=_host(flat))
    if "Traceback (most recent call last)" in text and "Traceback (most" not in message + exception:
        for key, value in flat.items():
            if isinstance(value, str) and "Traceback (most recent call last)" in value:
                used.add(key)
                exception = value
    parts = [message] if message else []
    parts += [part for part in exception.split("\0") if part and part not in message]
    record = JsonRecord("\n".join(parts))
    record.stamp = _time(flat, used, year)
    record.level = _level(flat, used)
    record.rank = _number(flat, _RANKS, used)
    record.local = _number(flat, _LOCALS, used)
    record.pid = _number(flat, _PIDS, used)
    record.host = _host(flat)
    process = flat.get("process")
    if isinstance(process, int) and not isinstance(process, bool):
        record.process = process
    if with_extra:
        used.update(_HOSTS, _NESTED)
        record.extra = " ".join(
            f"{key}={value}"
            for key, value in flat.items()
            if key not in used and isinstance(value, str | int | float) and len(str(value)[:501]) <= 500
        )
    return record


def _host(flat: dict[str, Any]) -> str | None:
    about = flat.get("involvedObject", flat.get("regarding"))  # of a Kubernetes event
    if isinstance(about, dict) and about.get("kind") == "Node" and isinstance(about.get("name"), str):
        return str(about["name"])
    if _HOSTS_SET.isdisjoint(flat):
        stream = flat.get("logStreamName", flat.get("logStream"))
        told = _OF_STREAM.search(stream) if isinstance(stream, str) else None
        return told[1] if told is not None else None
    return next((flat[k] for k in _HOSTS if isinstance(flat.get(k), str) and flat[k]), None)


# The end of a CloudWatch stream's name: SageMaker's instances of a job, EC2's instances and addresses.
_OF_STREAM = regex(
    r"(?:^|/)(algo-\d{1,5}|i-[0-9a-f]{8,17}|ip-\d{1,3}(?:-\d{1,3}){3}(?:\.[\w.-]{1,80})?)(?:-\d{6,})?$"
)


def _error_file(fields: dict[str, Any]) -> dict[str, Any]:
    """torchelastic's error file, `{"message": {"message": …, "extraInfo": …}}`, fields side by side."""
    inner = fields["message"]
    extra = inner.get("extraInfo")
    flat = {**fields, "message": inner.get("message")}
    if isinstance(extra, dict):
        flat |= {"traceback": extra.get("py_callstack"), "timestamp": extra.get("timestamp")}
    return flat


def _flattened(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with those of known inner objects beside them; an outer name wins."""
    flat = dict(fields)
    for name in _NESTED:
        inner = fields.get(name)
        if isinstance(inner, dict):
            for key, value in inner.items():
                flat.setdefault(key, value)
                if name == "record" and key == "extra" and isinstance(value, dict):
                    for deep_key, deep_value in value.items():
                        flat.setdefault(deep_key, deep_value)
    for holder in (fields, fields.get("kubernetes")):
        inner = holder if isinstance(holder, dict) else {}
        for each in _NAMED:
            if isinstance(named := inner.get(each), dict):
                flat[each] = named.get("name")
    resource = fields.get("resource")  # of Google Cloud's logging: what wrote it
    if isinstance(resource, dict) and isinstance(resource.get("labels"), dict):
        for key, value in resource["labels"].items():
            flat.setdefault(key, value)
        task = flat.get("task_name") if resource.get("type") == "ml_job" else None
        if isinstance(task, str) and task != "service":  # which tells of the job from outside
            flat.setdefault("host", task)
    record = fields.get("record")
    if isinstance(record, dict) and "message" in record:
        flat["message"] = record["message"]  # loguru: "text" holds the formatted line
        flat.pop("text", None)
    return flat


def _texts(flat: dict[str, Any], names: tuple[str, ...], used: set[str], *, first_only: bool) -> str:
    found: list[str] = []
    for name in names:
        value = flat.get(name)
        if isinstance(value, dict):
            value = _of_object(value)
        elif isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            value = "\n".join(value)
        elif isinstance(value, list) and value and all(type(p) is int and 0 <= p < 256 for p in value):
            value = bytes(value).decode("utf-8", "replace")  # how journald exports what is not plain text
        if isinstance(value, str) and value.strip():
            used.add(name)
            found.append(_UNESCAPED.sub("\n", value).strip("\n"))
            if first_only:
                break
    return "\0".join(found)


def _of_object(exception: dict[str, Any]) -> str:
    """An exception that is an object of its own: type, text and traceback as far as they are there."""
    kind, trace = exception.get("type"), exception.get("traceback") or exception.get("stack")
    told = [exception[name] for name in ("value", "message", "msg") if isinstance(exception.get(name), str)]
    named = ": ".join([kind, *told[:1]] if isinstance(kind, str) else told[:1])
    if not isinstance(trace, str):
        return named
    return trace if named in trace else f"{trace}\n{named}"


def _time(flat: dict[str, Any], used: set[str], year: int | None) -> Stamp | None:
    for name in _TIMES:
        value = flat.get(name)
        if isinstance(value, dict):
            value = value.get("timestamp") or value.get("repr")
        if isinstance(value, bool) or value is None:
            continue
        if isinstance(value, str):
            stamp = find_time(value[:100], year=year)
            if stamp is not None:
                used.add(name)
                return stamp
            try:
                value = float(value)
            except ValueError:
                continue
        if isinstance(value, int | float):
            try:
                seconds = epoch_seconds(float(value))
            except OverflowError:
                continue
            if seconds is not None:
                used.add(name)
                return Stamp(seconds, 0, 0, "epoch", True, True, True)
    return None


def _level(flat: dict[str, Any], used: set[str]) -> Level | None:
    for name in _LEVELS:
        value = flat.get(name)
        if isinstance(value, dict):
            value = value.get("name")
        if isinstance(value, str):
            if name == "PRIORITY" and value.isdigit():
                value = int(value[:3])
            else:
                used.add(name)
                level = level_named(value) or LETTERS.get(value)
                if level is not None:
                    return level
        if isinstance(value, int) and not isinstance(value, bool):
            used.add(name)
            if name == "PRIORITY":
                return SYSLOG_LEVELS[value & 7]
            # As Python's logging counts: 10 debug … 50 critical.
            steps = ((50, Level.CRITICAL), (40, Level.ERROR), (30, Level.WARNING), (20, Level.INFO))
            return next((level for least, level in steps if value >= least), Level.DEBUG)
    return None


def _number(flat: dict[str, Any], names: tuple[str, ...], used: set[str]) -> int | None:
    for name in names:
        value = flat.get(name)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 11:
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**10:
            used.add(name)
            return value
    return None
