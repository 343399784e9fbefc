"""A program that did all it had to do, by its own counts, and took leave; or saved, and its shell went on.

How programs say that they are done is without end. What they share: what they count has come to the number
that they named, what follows is calm, and it tells where the product lies, or what was closed behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from logtriage.localize.left_in_order import WHOLE
from logtriage.localize.progress import Progress
from logtriage.localize.promised import AllDone, all_done
from logtriage.localize.scene import Scene
from logtriage.localize.shells import back_at_the_shell
from logtriage.model import JOB_ROLES, Level, Line, SourceRole
from logtriage.regex import regex

WIDTH = 600
LAST_LINES = 40  # behind the last count: a table of results, a save, what is closed
_LOUD = regex(
    r"^\s*(?:\^C|Traceback \(|Killed\b|Aborted\b|Segmentation fault|[Ee]rror\b|ERROR\b"
    r"|[A-Z]\w{0,60}(?:Error|Exception)\b)"
    r"|(?i:\b(?:fatal|panic|crash\w*|failed|failure|cancel\w*|preempt\w*|interrupt\w*|abort\w*|signal|sigterm"
    r"|unexpected\w*|time[- ]?out|timed out|waiting for|(?:re)?trying|stuck|killed)\b)"
)
# What a process says on its way out, whatever it did before.
_SERVED = (
    r"(?:servers?|exporters?|dashboards?|pools?|workers?|writers?|listeners?|loaders?|clusters?|clients?"
    r"|schedulers?|sessions?|connections?|\w*context|process groups?|event loop)"
)
_LEAVES = regex(
    r"(?i)\bresource_tracker: there appear to be \d|\bshutdown hook called|\bwandb: synced \d"
    r"|\.service: (?:deactivated successfully|succeeded)\."
    r"|\bdestroy_process_group\(\) was not called before program exit"
    r"|\bparent process exited, terminating worker"
    rf"|\b{_SERVED}(?: (?:is|was|were|has|have|been|all|now)){{0,3}}"
    r" (?:stopped|shut ?down|closed|terminated|destroyed|released)\b"
    r"|\b(?:stopped|closed|destroyed|released|shut down|shutting down|closing|stopping)"
    rf"(?: (?:all|the|\w{{1,20}})){{0,2}} {_SERVED}\b"
    r"|\b(?:total|overall|whole|wall)[- ]?(?:clock |run ?|elapsed |wall |execution )?time\b"
    r"|\b(?:elapsed|took|lasted)\b[^\d\n]{0,12}\d|\bshut ?down complete"
    r"|(?:^|[\s:|\]>])(?:good ?-?bye|bye(?: bye)?|good night|gute nacht|auf wiedersehen|tschüss|au revoir"
    r"|adiós|arrivederci|adeus|tot ziens|до свидания|再见|さようなら|exiting|leaving|all done|done|fin"
    r"|finished|fertig)[\s.!]*$"
)
# What was made, and where it lies: told as done, or as a file of a kind that jobs make.
_PRODUCT = regex(
    r"(?i)\b(?:saved|wrote|written|exported|stored|dumped|uploaded|published|committed|saving|writing) "
    r"|\b\d{1,9} \w{3,20} in \d[\d.,:]{0,12} ?(?:s|sec|seconds?|m|min|minutes|h|hours)\b"
    r"|[\w/-]/[^\s'\"]{1,200}\.(?:pth?|ckpt|safetensors|bin|onnx|gguf|h5|hdf5|keras|npz|npy|pkl|pickle|parquet"
    r"|arrow|jsonl?|csv|tsv|model|vocab|faiss|ubj|msgpack|orbax|nemo|engine|zarr|tar|zip)\b"
)
_SAVING = regex(r"(?i)\b(?:saving|writing|exporting|uploading|storing)\b(?! \d+ bytes)")
# Words of failure that deny it, and what git says of a folder of results.
_NOTHING = regex(
    r"(?i)\b(?:0|no) (?:failed|failures?|errors?)\b|\b(?:failed|failures?|errors?)\W{1,3}0\b"
    r"|\bfatal: not a git repository|\bwandb: waiting for w&b process to finish"
)
# A file by its name, which the last words of a program tell it saved.
_SAVED_FILE = regex(
    r"(?i)\b(?:saved?|saving|wrote|writ(?:e|ing|ten)|export(?:ed|ing)|stored?|storing|dump(?:ed|ing))\b[^\n]{0,80}?"
    r"[\w-]\.[a-z][\w]{1,12}\b"
)
LAST_WORDS = 3  # of a program, above those of its shell
# What weights and biases prints when a run that ended by itself is closed, and systemd of such a unit.
_CLOSED = regex(
    r"^\s*wandb: Synced \d|\b(?P<unit>[\w.@-]{1,80}\.service): (?:Deactivated successfully|Succeeded)\."
)


def took_leave(scene: Scene, progress: Progress) -> Line | None:
    """The line by which a job that counted all of all, or saved, took leave; None if one may still work."""
    stepped = {trace.file for trace in progress.traces}
    done: list[Line] = []
    for reading in scene.readings:
        file = reading.source.file
        if reading.source.role not in JOB_ROLES or not reading.lines:
            continue
        end = _end_of(scene, progress, file)
        if end is not None:
            done.append(end)
        elif file in stepped or (reading.source.role is SourceRole.WORKER and reading.lines[LAST_LINES:]):
            return None  # somebody else may not have come so far
    return max(done, key=lambda line: line.time or 0.0, default=None)


def _end_of(scene: Scene, progress: Progress, file: str) -> Line | None:
    lines = scene.lines(file)
    tail = [line for line in lines[-2 * LAST_LINES :] if line.text.strip()][-LAST_LINES:]
    back = back_at_the_shell(lines)
    if not tail or (back is None and _end_told(tail) is None):
        return None
    traces = [trace for trace in progress.traces if trace.file == file]
    last = max((trace.last.line.number for trace in traces), default=0)
    whole = all_done(lines, traces)
    at = max(last, whole.line.number if whole is not None else 0)
    if 0 < at < tail[0].number:
        return None
    behind = [line for line in tail if line.number >= at]
    # Those that failed, in a count of what became of all, were lived with.
    summed = whole.line if whole is not None and whole.is_sum else None
    if any(_is_loud(line) for line in behind if line != summed) or _are_failures(scene, behind):
        return None
    if whole is not None:
        is_end = back is not None or _end_told(behind) is not None
        return whole.line if is_end and not _is_part(scene, whole) else None
    since = [line for line in behind if line.number > last]
    saved = _saved_last(since, back) if back is not None else None
    return saved or (_closed(lines, since) if traces else None)


def _end_told(lines: Sequence[Line]) -> Line | None:
    """The last of these lines that tells of what is made or closed, and not of what is being saved yet."""
    return next(
        (
            line
            for line in reversed(lines)
            if _LEAVES.search(text := line.text[:WIDTH])
            or (_PRODUCT.search(text) and (line != lines[-1] or _SAVING.search(text) is None))
        ),
        None,
    )


def _is_loud(line: Line) -> bool:
    if line.level in (Level.ERROR, Level.CRITICAL):
        return True
    text = line.text[:WIDTH]
    return _LOUD.search(text) is not None and _NOTHING.search(text) is None


def _are_failures(scene: Scene, lines: Sequence[Line]) -> bool:
    places = {(line.file, line.number) for line in lines}
    return any((sign.line.file, sign.line.number) in places for sign in scene.causes)


def _is_part(scene: Scene, done: AllDone) -> bool:
    """Whether the trainer stated a larger number for the whole run than what was counted."""
    return any(
        int(told["total"].replace(",", "")) > done.whole
        for reading in scene.readings
        for line in reading.lines
        if "steps" in line.text and (told := WHOLE.search(line.text[:WIDTH])) is not None
    )


def _saved_last(lines: Sequence[Line], back: Line) -> Line | None:
    """What is saved by the last words of a program above those of its shell."""
    words = [line for line in lines if line.number < back.number and not line.text.startswith("+")]
    return next((line for line in words[-LAST_WORDS:] if _SAVED_FILE.search(line.text[:WIDTH])), None)


def _closed(lines: Sequence[Line], behind: Iterable[Line]) -> Line | None:
    for line in behind:
        if (closed := _CLOSED.search(line.text[:WIDTH])) is None:
            continue
        unit = closed["unit"]
        if unit is None or any("Started " in each.text and unit in each.text for each in lines):
            return line
    return None
