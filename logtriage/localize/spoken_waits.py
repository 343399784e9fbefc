"""How long a step waited for its batch, told in whatever language its program speaks.

`attente du lot 2,1 s`, `Warten auf Daten 3.4 s`: a word for waiting, one for what is waited for, and seconds.
The longest other time on the line, if it is longer, is that of the whole step; else the others are its work.
"""

from __future__ import annotations

from logtriage.regex import regex

_WAITING = (
    r"wait\w*|espera\w*|esper[eé]|aguard\w*|attente?|attend\w*|attes[ao]|atten\w*|warte\w*|gewartet|wacht\w*"
    r"|vänta\w*|venter?|czeka\w*|oczekiwani\w*|čekání|bekle\w*|ожидани\w*|ждал\w*|等待\w*|待ち|대기"
)
_INPUT = (
    r"batch\w*|data\w*|dados|datos|donn[ée]es|dati|daten|gegevens|samples?|lotes?|lots?|lott[oi]|stapel|partij"
    r"|dane|danych|veri\w*|батч\w*|пакет\w*|данн\w*|数据|批次|データ|バッチ|데이터|배치"
)
_NUMBER = r"(?P<{0}>\d{{1,5}}(?:[.,]\d{{1,4}})?) ?(?P<{0}_unit>ms|s|мс|с|毫秒|秒|초)(?:ec|ek|eg|ек)?(?!\w)"
_WAITED = regex(
    rf"(?i)(?:(?<!\w)(?:{_WAITING})[ _-]?(?:\w{{1,5}}[ '’]){{0,2}}(?:{_INPUT})"
    rf"|(?:{_INPUT})[ _-]?(?:{_WAITING}))(?!\w)[ :=]{{0,4}}{_NUMBER.format('waited')}"
)
_TIME = regex(rf"(?i)(?<=[ :=(]){_NUMBER.format('took')}(?! ?/)")


def spoken_wait(text: str) -> tuple[float, float] | None:
    """How long a step waited for its input, and how long it took, in seconds; None if it tells only one."""
    text = text[:400]
    if (wait := _WAITED.search(text)) is None:
        return None
    waited = _seconds(wait["waited"], wait["waited_unit"])
    others = [
        _seconds(told["took"], told["took_unit"])
        for told in _TIME.finditer(text)
        if not wait.start() <= told.start() < wait.end()
    ]
    if not others or max(others) <= 0:
        return None
    longest = max(others)
    return waited, longest if longest >= waited else waited + longest


# `(81% input, 19% compute)`, `data 81 % / fwd 12 % / bwd 7 %`: shares of one whole.
_SHARE = regex(
    r"(?<![\w.])(?:(?P<before>\d{1,3}(?:[.,]\d{1,2})?) ?% (?:in |on |for |of )?"
    r"(?P<of>[A-Za-z][A-Za-z_ -]{1,24})"
    r"|(?P<named>[A-Za-z][A-Za-z_-]{1,24})[ :=]{1,3}(?P<behind>\d{1,3}(?:[.,]\d{1,2})?) ?%)"
)
_OF_INPUT = regex(r"(?i)\b(?:input|data|(?:data[ _-]?)?load\w*|fetch\w*|reading|i/?o)\b|data_|_data")
LEAST, MOST = 98.0, 102.0  # per cent, of all together


def told_share(text: str) -> float | None:
    """The share of a step that it waited for its input, where a line tells it beside those of all else."""
    if text.count("%") < 2:
        return None
    shares = [
        (told["of"] or told["named"], float((told["before"] or told["behind"]).replace(",", ".")))
        for told in _SHARE.finditer(text[:400])
    ]
    if len(shares) < 2 or not LEAST <= sum(share for _, share in shares) <= MOST:
        return None
    return sum(share for name, share in shares if _OF_INPUT.search(name)) / 100


def _seconds(number: str, unit: str) -> float:
    return float(number.replace(",", ".")) * (0.001 if unit.lower() in _MILLI else 1.0)


_MILLI = ("ms", "мс", "毫秒")
