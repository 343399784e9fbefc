"""What a job did as ever after a line: whose writer went on with its usual lines was not ended by it."""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict
from collections.abc import Collection

from logtriage.intake.reading import Reading
from logtriage.intake.records import records
from logtriage.model import Level, Line
from logtriage.rulebank.matcher import without_digits

FORM_WIDTH = 48  # of a message that tells its form
TIMES = 4  # so often a calm line of a form with a number in it came before: it is usual
WENT_ON = 8  # so many usual lines after a line …
WENT_ON_SECONDS = 3.0  # … for so long, where times tell: its writer went on
_CALM = (None, Level.DEBUG, Level.INFO)


class UsualLines:
    """The usual lines of a file, by writer, as they were before the line that ended it."""

    def __init__(self, reading: Reading, end: int | None = None) -> None:
        """`end`: the number of the line by which the job died, where it is in this file."""
        alone = [each.lines[0] for each in records(reading.lines) if each.kind == "line"]
        calm = [line for line in alone if line.level in _CALM and any(map(str.isdigit, line.message[:400]))]
        forms = Counter(_form(line) for line in calm if end is None or line.number < end)
        self._own: dict[int | None, list[Line]] = defaultdict(list)
        for line in calm:
            if forms[_form(line)] >= TIMES:
                self._own[line.rank].append(line)

    def went_on(self, line: Line, alike: Collection[int] = ()) -> bool:
        """Whether the writer of a line went on as ever; lines by the numbers in `alike` tell nothing."""
        own = self._own.get(line.rank, [])
        first = bisect.bisect_right(own, line.number, key=lambda each: each.number)
        later = [each for each in own[first:] if each.number not in alike]
        if len(later) < WENT_ON:
            return False
        ended = later[-1].time
        return ended is None or line.time is None or ended - line.time >= WENT_ON_SECONDS


def _form(line: Line) -> str:
    return without_digits(line.message[:FORM_WIDTH])
