"""What `date` prints where the locale is none of English: the clock of whoever looked."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from logtriage.regex import regex

# `Fr 15. Nov 07:58:40 CET 2026`, `ven. 15 nov. 2026 07:58:40 CET`, `vie 15 nov 2026 07:58:40 CET`.
_NAMED = regex(
    r"^\W{0,4}(?:[^\W\d_]{2,12}\.?,? )?(?P<day>\d{1,2})\.? (?:de )?(?P<month>[^\W\d_]{3,9})\.?,? (?:de )?"
    r"(?:(?P<year>\d{4}),? )?(?P<clock>\d\d:\d\d:\d\d),?(?: \S{1,6})?(?: (?P<behind>\d{4}))?\W{0,4}$"
)
# `2026年 01月 31日 星期六 13:42:27 CST`, `2026. 01. 31. (토) 13:42:27 KST`.
_NUMBERED = regex(
    r"^\W{0,4}(?P<year>\d{4})(?:年|\.) {0,2}(?P<month>\d{1,2})(?:月|\.) {0,2}(?P<day>\d{1,2})(?:日|\.)"
    r" ?\S{0,8}? (?P<clock>\d\d:\d\d:\d\d)(?: \S{1,6})?\W{0,4}$"
)
_MONTHS = {
    "jan": 1, "gen": 1, "ene": 1, "янв": 1, "sty": 1, "feb": 2, "fév": 2, "fev": 2, "фев": 2, "lut": 2,
    "mar": 3, "mär": 3, "mrz": 3, "mrt": 3, "apr": 4, "avr": 4, "abr": 4, "апр": 4, "kwi": 4,
    "may": 5, "mai": 5, "mag": 5, "mei": 5, "maj": 5, "мая": 5, "jun": 6, "juin": 6, "giu": 6, "июн": 6,
    "jul": 7, "juil": 7, "lug": 7, "июл": 7, "lip": 7, "aug": 8, "aoû": 8, "ago": 8, "авг": 8, "sie": 8,
    "sep": 9, "set": 9, "сен": 9, "wrz": 9, "oct": 10, "okt": 10, "ott": 10, "out": 10, "окт": 10, "paź": 10,
    "nov": 11, "ноя": 11, "lis": 11, "dec": 12, "dez": 12, "déc": 12, "dic": 12, "дек": 12, "gru": 12,
}  # fmt: skip


def local_dates(text: str) -> Iterator[datetime]:
    """The time that a whole line is, as `date` prints it in many languages."""
    if text.count(":") != 2 or len(text) > 80:
        return
    told = _NUMBERED.match(text) or _NAMED.match(text)
    if told is None:
        return
    fields = told.groupdict()
    word, year = fields["month"].lower(), fields["year"] or fields.get("behind")
    month = int(word) if word.isdecimal() else _MONTHS.get(word[:4]) or _MONTHS.get(word[:3])
    if month is None or year is None:
        return
    hour, minute, second = map(int, fields["clock"].split(":"))
    try:
        yield datetime(int(year), month, int(fields["day"]), hour, minute, second)
    except ValueError:
        return
