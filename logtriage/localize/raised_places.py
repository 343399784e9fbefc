"""What an exception means where it was raised: while a checkpoint was restored, data read, or ranks met."""

from __future__ import annotations

import re

from logtriage.localize.chains import is_of_meeting
from logtriage.localize.scene import Sign
from logtriage.regex import regex

# Where an exception was raised can say more than its class: a truncated file is a checkpoint when it was
# being restored and data when a dataset read it. (type by rule, frames, type by place)
_RESTORING = regex(
    r"restore|load_checkpoint|load_state|from_pretrained|load_model|resume|checkpoint|ckpt", re.I
)
_READING_DATA = regex(
    r"dataset|dataloader|data_loader|__getitem__|collate|tokeniz|load_data|read_shard", re.I
)
_WRITING = regex(
    r"(?:^| )(?:on_save|save_\w+|_save\w*|save|rotate_checkpoints|_rotate_checkpoints|rmtree|cleanup)$"
)
_BY_PLACE = (
    ("data.corrupt", _RESTORING, "checkpoint.corrupt"),
    ("checkpoint.corrupt", _READING_DATA, "data.corrupt"),
    ("code.file_not_found", _READING_DATA, "data.missing"),
    ("checkpoint.corrupt", _WRITING, "code.file_not_found"),
)


# Files by which processes wait for each other are no data, whoever reads them.
_BETWEEN_PROCESSES = regex(r"(?i)signal_?file|_signal_|\.(?:lock|pid|sock|done|tmp)\b|barrier|sentinel")


def refined(sign: Sign, *, has_begun: bool) -> str:
    """The failure type of a sign: its rule's, or what this means where it was raised."""
    failure_type = str(sign.rule.failure_type)
    if failure_type == "collective.remote_error" and not has_begun and is_of_meeting(sign):
        return "network.rendezvous"
    if sign.raised is None or _BETWEEN_PROCESSES.search(sign.raised.message[-200:]):
        return failure_type
    inner = [f"{frame.path.rsplit('/', 1)[-1]} {frame.function}" for frame in sign.raised.frames]
    for told, frames, meant in _BY_PLACE:
        if failure_type != told or not any(frames.search(each) for each in inner):
            continue
        if frames is _WRITING:
            if sign.raised.type.endswith("FileNotFoundError"):  # of a file that is to be written anew
                return meant
            continue
        other = _READING_DATA if frames is _RESTORING else _RESTORING
        if not any(other.search(each) for each in inner):
            return meant
    return failure_type
