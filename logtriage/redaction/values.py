"""What a value looks like: a secret, a word of a sentence, a setting; and letters that look like others."""

from __future__ import annotations

import base64
import re
import string
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

from logtriage.regex import regex

# `tokens: 4096`, `token=None`, `secret: False`, `token "</s>"` hold no secret.
_HARMLESS = regex(
    r"(?i)(?:[\d.,_e+-]+[kmgb]?|none|null|nil|true|false|yes|no|default|required|unknown|missing|"
    r"invalid|expired|bearer|basic|token|negotiate|[*x.]+|(?:</?\|?\w+\|?>)+|[<\[]\|?\w+\|?[>\]]|<\w+|"
    r"\$\{?\w+\}?|[\s=:,()\[\]{}]+|localhost|(?-i:\w+(?:Error|Exception|Warning)|Secret(?:Str|Bytes)?)|"
    r"sha-?\d{1,3}|md5|krb5|ed25519|oauth2|x509|ntlmv2|pkcs\d{1,2}|(?:aes|rsa)-?\d{3,4}|[rhep]s(?:256|384|512))"
)
# What stands where a secret could, in sentences about secrets.
_GOING_ON = """
    a about accepted access account again agent all already also am an and any are argument as at auth
    authentication authorization available bad base based be because been before being but by call can cannot
    change changed changes check checked client code command config configuration configured connection
    contains correctly could created cuda current data decrypted default deleted denied detected did
    different disabled disk do does during each either email empty enabled encoded encrypted entered entry env
    environment error every exceeded exception exists expected expiration expired expires expiry failed
    failure field file files for forbidden format found free from function generated get given got had has
    hash hashes have header helper hidden id if ignored in incorrect input instead into invalid is it its key
    keys killed known length line loaded loader lock login lost malformed managed manager masked may memory
    method mismatch missing mount mounted must my name nccl needed needs neither never new no node none nor
    not null object of off ok on only optional or out own parameter password path peer per permission
    permissions plain policy prompt protected protection provided provider python rank read redacted refresh
    refreshed refused rejected removed request requested required requires reset resource resources retry
    returned revoked rotated same secret sent server service set should size some source still stored
    string strong supported than that the their them then there they this time timeout to token tokens
    too torch type unable undefined under unexpected unknown unset until updated use used user username using
    valid validation value values variable was weak were when which while will with without wrong you
    your"""
_WORDS = frozenset(_GOING_ON.split())
_DATED = regex(
    r"0x[0-9a-fA-F]+$|\d{4}-\d\d-\d\d|\d{8}T\d{4}|\d{1,2}:\d\d(?::\d\d)?$|\d+(?:\.\d+){1,3}$|v\d+(?:\.\d+)+"
)
_NAMED = regex(
    r"(?i)[/.~\\]|[a-z]+://|.*(?:/.*){2}|[\w./-]+\.(?:py|json|ya?ml|toml|txt|pem|crt|cert|key|log|cfg|ini|conf|env|sh|so|"
    r"pt|bin|safetensors|tar|gz|zip|html?|md)(?::\d+)?$|\w+\(.*|\w+=[^=\s].*|"
    r"[\d.]+(?:st|nd|rd|th|bit|[kmgt]i?b|[mun]?s|m|h|d)$"
)
_COUNTED = regex(r"(?i)[a-z_]+[_-]?\d{1,3}")  # rank12, layer_3, step-100
_OF_VOCABULARY = ("\u0120", "\u2581")  # how tokenizers write a blank before a word
_ENDS = ".,:;!?)]}>\"'`"


def is_harmless(value: str) -> bool:
    """Whether a value is a number, a constant or a placeholder, wherever it stands."""
    return _HARMLESS.fullmatch(value) is not None


def is_word(value: str) -> bool:
    """Whether a value is one of the words with which sentences about secrets go on."""
    return value.strip(_ENDS).lower() in _WORDS


def is_name(value: str) -> bool:
    """Whether a value is a path, a file, an address, a call, a date or a version."""
    return _NAMED.match(value) is not None or _DATED.match(value) is not None


def is_odd(value: str, least: int = 6, *, is_password: bool = False) -> bool:
    """Whether a value looks like a secret by itself: letters with digits or signs, and nothing well known.

    `hunter2` looks like `rank12`: only where a password is told of (`is_password`) it is taken for one.
    """
    if is_harmless(value) or is_word(value) or is_name(value) or value.startswith(_OF_VOCABULARY):
        return False
    value = value.strip(_ENDS)
    if len(value) < least or is_harmless(value):
        return False
    if not is_password and _COUNTED.fullmatch(value):
        return False
    letters = any(each.isalpha() for each in value)
    return letters and any(each.isdigit() or each in "!@#$%^&*+~?" for each in value)


# Cyrillic and Greek letters that look like Latin ones (Unicode's confusables), which NFKC leaves as they are.
_ALIKE = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0455\u0501\u04bb\u051d\u0410\u0412\u0415\u041a\u041c"
    "\u041d\u041e\u0420\u0421\u0422\u0425\u03bf\u03b1\u03c1\u039a\u0391\u039f\u03a1\u03a4",
    "aeopcyxisdhwABEKMHOPCTXoapKAOPT",
)


def in_latin_letters(text: str) -> str:
    """The text with letters of other alphabets that look like Latin ones in these."""
    return text.translate(_ALIKE)


def in_plain_letters(text: str) -> tuple[str, Sequence[int]]:
    """The lines of a text that look plainer than they are, in plain letters, and where each letter came from.

    Full-width and other compatibility forms, letters of other alphabets that look like Latin ones, and
    without what is not seen. The second item gives for each letter, and the end, its place in the text.
    """
    letters: list[str] = []
    places: list[int] = []
    start = 0
    for line in text.splitlines(keepends=True) if not text.isascii() else ():
        if not line.isascii():
            own = [(plain, place) for place, each in enumerate(line, start) for plain in _plain(each)]
            shown = "".join(plain for plain, _ in own)
            if shown != line:
                letters.append(shown if shown.endswith("\n") else f"{shown}\n")
                places += [place for _, place in own]
                places += [] if shown.endswith("\n") else [start + len(line)]
        start += len(line)
    return "".join(letters), [*places, start]


def _plain(character: str) -> str:
    if character.isascii():
        return character
    category = unicodedata.category(character)
    if category in ("Cf", "Mn"):
        return ""
    if category == "Cs":
        return "?"
    return unicodedata.normalize("NFKC", character).translate(_ALIKE)


# `llama-3-8b`, `global-step-0001`, `cuda:0`: words and numbers put together.
_PART = regex(r"[A-Za-z]+|\d+|[a-z]{1,6}\d{1,6}[a-z]{0,3}|\d{1,5}[a-zA-Z]{1,3}")
_JOINT = re.compile(r"[-_.:/@+]")


def is_composed(value: str) -> bool:
    """Whether a value is a name made of words and numbers with signs between them."""
    parts = [each for each in _JOINT.split(value) if each]
    return len(parts) > 1 and all(_PART.fullmatch(each) for each in parts)


# Longest first. What is left of a word without one may lack an `e`, a `y` or a doubled letter.
_ENDINGS_WORDS = """
    ments ities ation ations ness ment able ings ions ally ing ion ity ies ers est ied ly ed er es al or
    s d"""
_ENDINGS = tuple(_ENDINGS_WORDS.split())


@cache
def _ordinary() -> frozenset[str]:
    text = Path(__file__).with_name("ordinary.txt").read_text(encoding="ascii")
    words = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return frozenset(word for line in words for word in line) | _WORDS


def is_ordinary(value: str) -> bool:
    """Whether a value is a word of English or of training logs, or such words with signs between them."""
    parts = [each for each in re.split(r"[^A-Za-z]+", _CAMEL.sub(r"\1 \2", value.strip(_ENDS))) if each]
    return (
        bool(parts)
        and all(len(part) < 5 or _is_known(part.lower()) for part in parts)
        and not (any(each.isdigit() for each in value))
    )


_CAMEL = regex(r"([a-z])([A-Z])")


def _is_known(word: str) -> bool:
    words = _ordinary()
    if word in words:
        return True
    for ending in _ENDINGS:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= 3:
            if stem in words or f"{stem}e" in words or f"{stem}y" in words:
                return True
            if stem[-1:] == stem[-2:-1] and stem[:-1] in words:
                return True
    return False


LEAST_RANDOM = 20  # characters
_LONGEST_LOWER = regex(r"[a-z]{7}")
_HEX = regex(r"(?:[0-9a-f]+|[0-9A-F]+)")
_KINDS = str.maketrans(
    dict.fromkeys(string.ascii_lowercase, "a")
    | dict.fromkeys(string.ascii_uppercase, "A")
    | dict.fromkeys(string.digits, "0")
)


_RUN = regex(r"(?<![A-Za-z0-9+/])[A-Za-z0-9]{20,200}(?![A-Za-z0-9])")  # of nothing but letters and digits


def random_runs(line: str) -> list[str]:
    """The runs of letters and digits in a line that nobody would write: keys of no known form."""
    return [
        run[0]
        for run in _RUN.finditer(line)
        if is_random(run[0])
        and not line.endswith("SHA256:", 0, run.start())  # a fingerprint, which is public
        and not (run[0].startswith("Z") and line.endswith("_", 0, run.start()))  # a mangled name
        and not _is_structure(run[0])
    ]


def _is_structure(value: str) -> bool:
    """Whether a run is base64 of JSON, as launchers hand their lists of hosts and ranks on."""
    try:
        return value.startswith("eyJ") and base64.b64decode(value[: len(value) // 4 * 4]).isascii()
    except ValueError:
        return False


def is_random(value: str, least: int = LEAST_RANDOM) -> bool:
    """Whether a run of letters and digits is no name, number or hash, but what a generator made.

    Of random letters and digits five of eight neighbours differ in kind (small, capital, digit; 0.62, with a
    deviation of 0.1 at 20 characters); of names in camel case and mangled symbols fewer than a third.
    """
    if len(value) < least or _HEX.fullmatch(value) or _LONGEST_LOWER.search(value):
        return False
    kinds = value.translate(_KINDS)
    if kinds.count("0") < 2 or kinds.count("a") < 3 or kinds.count("A") < 3:
        return False
    changes = sum(one != other for one, other in pairwise(kinds))
    return changes >= 0.42 * (len(kinds) - 1)
