"""Nouns of secrets: what a name like `ansible_become_pass`, `SLURM_JWT` or `clientSecret` promises."""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache

from logtriage.regex import regex


class Noun(IntEnum):
    """How surely a noun is followed by a secret, and of what look."""

    NONE = 0
    AMBIGUOUS = 1  # tokens of a text, passes over data: only a value that looks random is one
    KEY = 2  # what a machine made: letters with digits
    PASSWORD = 3  # what a person made: a word perhaps


_PASSWORDS_WORDS = """
    password passwords passwd passwds pwd pwds pw psw passphrase passphrases passcode passcodes passwort
    kennwort passkey psk otp totp masterauth"""
_PASSWORDS = frozenset(_PASSWORDS_WORDS.split())
_KEYS_WORDS = """
    secret secrets credential credentials cred creds jwt jwts bearer apikey apikeys authtoken accesskey
    secretkey privatekey sessionkey sessionid authkey cookie cookies pat"""
_KEYS = frozenset(_KEYS_WORDS.split())
_AMBIGUOUS_WORDS = """
    token tokens auth authorization pass sas pin signature sig key keys"""
_AMBIGUOUS = frozenset(_AMBIGUOUS_WORDS.split())
# `api_key`, `session key`; of `token` these make a machine's.
_OWNER_WORDS = """
    api access secret private session encryption encrypt signing sign master license account storage auth
    deploy client shared subscription functions admin root service svc app bearer refresh hub hf huggingface
    github gitlab gh ci user id registry npm pypi slack bot wandb mlflow openai anthropic aws azure gcp
    google minio r2 s3 ngc nvidia nim jwt ssh ssl tls gpg aes fernet vault consul nomad docker quay kaggle
    comet neptune clearml swanlab datadog dd sentry webhook slurm ray kube kubernetes k8s cluster join
    bootstrap csrf xsrf personal oauth sso saml otp crypt cipher enc unlock require munge become bind proxy db
    database sudo login smtp imap mail redis mysql pg postgres mongo rabbit amqp ldap basic"""
OWNERS = frozenset(_OWNER_WORDS.split())
# What stands behind the noun and still means the secret.
_TAILS_WORDS = """
    value val string str raw b64 base64 base plain text data new old current prod dev test env"""
_TAILS = frozenset(_TAILS_WORDS.split())
# What stands before `token`, `pass`, `key` and makes it a thing of models and tables.
_ORDINARY_HEADS_WORDS = """
    forward backward first second last single two multi one fast slow num by warmup compiler optimizer pad
    eos bos unk  sep cls mask image video audio max min total special new begin end start stop prefix suffix
    sort cache query value  state model primary foreign per max lr next prev current input output text data
    label row column dict json yaml  config metric monitor sample group index partition partial extra
    unexpected missing"""
_ORDINARY_HEADS = frozenset(_ORDINARY_HEADS_WORDS.split())
_PARTS = regex(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
LONGEST_NAME = 100  # characters
_VERSION = regex(r"v?\d+")
# In every line that holds a noun, whatever else it holds.
STEMS = (
    r"pass|pwd|psk|pw|psw|kennwort|secret|token|jwt|sas\b|sas[_=]|cred|auth|key|bearer|cookie|otp|pat\b|code\b|"
    r"sig|community|\bpin\b"
)


# `sshpass`, `requirepass`, `hftoken`: an owner and its noun in one.
_IN_ONE = regex(r"(\w{2,12}?)(pass|passwd|pwd|pw|token|secret|auth|key)")


def _parted(part: str) -> list[str]:
    match = _IN_ONE.fullmatch(part)
    is_owned = match is not None and match[1] in OWNERS and part not in _PASSWORDS | _KEYS
    return [match[1], match[2]] if match and is_owned else [part]


def noun_of(name: str) -> Noun:
    """What the name of a setting, or a word, promises: its last part counts, before `_2` or `_value`."""
    return _noun_of(name) if len(name) <= LONGEST_NAME else Noun.NONE


@lru_cache(maxsize=16_384)
def _noun_of(name: str) -> Noun:
    parts = [each.lower() for each in _PARTS.findall(name)]
    while len(parts) > 1 and (parts[-1] in _TAILS or _VERSION.fullmatch(parts[-1])):
        parts.pop()
    if not parts:
        return Noun.NONE
    parts[-1:] = _parted(parts[-1])
    last, heads = parts[-1], parts[:-1]
    if last in _PASSWORDS:
        return Noun.PASSWORD
    if last in _KEYS and heads[-1:] != ["pull"]:  # `imagePullSecrets` are names
        return Noun.KEY
    if last not in _AMBIGUOUS or (heads and heads[-1] in _ORDINARY_HEADS):
        return Noun.NONE
    owned = any(each in OWNERS for each in heads)
    if last in ("key", "keys"):
        return Noun.KEY if owned and heads[-1] in OWNERS else Noun.NONE
    if last == "pass" and owned:
        return Noun.PASSWORD
    if last in ("tokens", "pin", "signature", "sig"):
        return Noun.KEY if owned else Noun.NONE
    is_variable = name.isupper() and len(parts) > 1  # `SLURM_TOKEN`
    return Noun.KEY if owned or is_variable else Noun.AMBIGUOUS
