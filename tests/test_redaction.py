"""What leaves the machine: no secret of the logs, and the answer has all of them back."""

from __future__ import annotations

import random
import string

import pytest
from growth import grows_evenly
from hypothesis import given, settings
from hypothesis import strategies as st

from logtriage.redaction import Redaction
from logtriage.redaction.placeholders import _compiled


def _key(length: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "".join(random.Random(length).choices(letters, k=length))


# Made here, in the published form of each issuer; nothing below opens anything.
SECRETS = {
    "aws key": "AKIA" + _key(16, string.ascii_uppercase),
    "github": "ghp_" + _key(36),
    "gitlab": "glpat-" + _key(20),
    "slack": "xoxb-" + _key(24),
    "hugging face": "hf_" + _key(34),
    "openai": "sk-" + _key(48),
    "google": "AIza" + _key(35),
    "jwt": f"eyJ{_key(20)}.eyJ{_key(30)}.{_key(22)}",
}


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize("around", ["{}", "using {} for the hub", 'got {{"key": "{}"}}', "[rank0]: x={};"])
def test_keys_are_known_by_their_form(secret: str, around: str) -> None:
    line = around.format(secret)
    redaction = Redaction()
    sent = redaction.redact(line)
    assert secret not in sent and secret[4:12] not in sent
    assert redaction.restore(sent) == line and redaction.counts["secret"] == 1


@pytest.mark.parametrize(
    ("line", "hidden"),
    [
        ("WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567", "0123456789abcdef"),
        ("AWS_SECRET_ACCESS_KEY: 'wJalrXUtnFEMIxK7MDENGxbPxRfi'", "wJalrXUtnFEMI"),
        ("--hub-token abcDEF123456 --lr 1e-4", "abcDEF123456"),
        ("Authorization: Bearer abcdef0123456789abcdef", "abcdef0123456789abcdef"),
        ("postgresql://trainer:pw1@db.internal:5432/runs", "pw1"),
        ("git clone https://x-access-token:abc%2Fdef@git.example/r", "abc%2Fdef"),
        ("GET /b/k?X-Amz-Signature=aa11bb22cc33&X-Amz-Expires=60", "aa11bb22cc33"),
        ("password = correct-horse", "correct-horse"),
        ("mail sent to jane.doe+x@example.org", "jane.doe+x@example.org"),
        ('File "/home/jane/run/train.py", line 3', "jane"),
        ("-----BEGIN PRIVATE KEY-----\nMIIEvQ\nABC\n-----END PRIVATE KEY-----", "MIIEvQ"),
    ],
)
def test_secrets_are_known_by_what_stands_around_them(line: str, hidden: str) -> None:
    redaction = Redaction()
    sent = redaction.redact(line)
    assert hidden not in sent
    assert redaction.restore(sent) == line


@pytest.mark.parametrize(
    "line",
    [
        "step 40 tokens: 4096 max_tokens=2048 token=None",
        "pad_token='[PAD]' bos_token=<s> tokenizer: AutoTokenizer",
        "KeyError: 'secret_key'",
        "ncclCommInitRank comm 0x55d0c0ffee00 rank 3 nranks 8 commId 0x8a3f",
        "rank 3 of node-b lost its connection to 10.31.0.11",
        "num_tokens=8192 tokens_per_second=123456.7",
        "loaded model-00001-of-00008.safetensors at /data/ckpt",
    ],
)
def test_ordinary_lines_are_sent_as_they_are(line: str) -> None:
    assert Redaction().redact(line) == line


def test_a_value_once_known_is_hidden_everywhere_and_alike() -> None:
    redaction = Redaction()
    redaction.redact("login with password=tr0ub4dor ok")
    assert redaction.redact("retry as tr0ub4dor, tr0ub4dor") == "retry as <secret-1>, <secret-1>"


def test_the_lines_of_a_key_block_are_hidden_one_by_one() -> None:
    block = ["-----BEGIN RSA PRIVATE KEY-----", _key(64), _key(60), "-----END RSA PRIVATE KEY-----"]
    redaction = Redaction()
    redaction.learn("\n".join(["start", *block, "stop"]))
    assert redaction.counts == {}  # nothing was hidden yet
    for line in block[1:3]:
        assert redaction.redact(f"key: {line}").startswith("key: <secret-")
    assert redaction.counts == {"secret": 2}


def test_a_user_who_is_called_like_a_program_hides_no_program() -> None:
    sent = Redaction().redact('File "/home/train/run/train.py", line 3: train step of /mnt/home/train failed')
    assert sent == 'File "<user-1>/run/train.py", line 3: train step of /mnt<user-1> failed'


def test_hosts_and_addresses_are_hidden_when_asked_for() -> None:
    line = "node-b (10.31.0.11) lost node-bb, fe80::1:2"
    redaction = Redaction(hosts=["node-b"], addresses=True)
    sent = redaction.redact(line)
    assert "10.31" not in sent and "node-b " not in sent and "node-bb" in sent and "fe80" not in sent
    assert redaction.restore(sent) == line
    assert redaction.counts == {"host": 1, "ip": 2}


_PIECES = st.sampled_from(
    [
        "<secret-1>", "<email-2>", "<text-1>", "<secret-", "1>", "token=", "abcdef123", "password: ",
        "a@b.de", "/home/", "joe", " ", "\n", "://u:", "@h/", *SECRETS.values(),
    ]
)  # fmt: skip


@given(st.lists(st.lists(st.one_of(_PIECES, st.text(max_size=6)), max_size=12).map("".join), max_size=4))
@settings(deadline=None)  # the first text waits for the table of forms
def test_the_answer_gets_back_exactly_what_was_hidden(texts: list[str]) -> None:
    redaction = Redaction(addresses=True)
    for text in texts:
        assert redaction.restore(redaction.redact(text)) == text


@pytest.mark.parametrize(
    "unit", ["password=", "a@", "://x:", "eyJaaaaaaaa.", "-----BEGIN PRIVATE KEY-----", "/home/a"]
)
def test_hostile_texts_take_linear_time(unit: str) -> None:
    assert grows_evenly(lambda size: unit * size, lambda text: Redaction(addresses=True).redact(text), 800)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("connect(password='pa ss w0rd!x', retries=3)", "pa ss w0rd!x"),
        ('{"password": "my secret phrase", "user": "x"}', "my secret phrase"),
        ("the passphrase is swordfish99 for now", "swordfish99"),
        ("secret key: KEYKEYKEY1", "KEYKEYKEY1"),
        (
            "INFO a: -----BEGIN PRIVATE KEY-----\nINFO a: MIIEowIBAAKCAQEAx7Zk2\n"
            "INFO a: -----END PRIVATE KEY-----",
            "MIIEowIBAAKCAQEAx7Zk2",
        ),
    ],
)
def test_secrets_with_blanks_in_words_and_behind_a_logger_are_hidden(text: str, secret: str) -> None:
    redaction = Redaction()
    redaction.learn(text)
    for line in text.split("\n"):
        assert secret not in redaction.redact(line)
    assert redaction.restore(redaction.redact(text)) == text


@pytest.mark.parametrize(
    "line",
    [
        "connect pass=Tr0ub4dor",
        "pw=Tr0ub4dor host=db1",
        '{"cmd": "password\\u003dTr0ub4dor"}',
        "POST /login?x=1&PASSWORD%3DTr0ub4dor",
        "Passwort: Tr0ub4dor",
        "contraseña=Tr0ub4dor",
        "密码：Tr0ub4dor",
        "train.py --wandb_key=Tr0ub4dor0123",
    ],
)
def test_passwords_by_other_names_and_ways_of_writing(line: str) -> None:
    redaction = Redaction()
    sent = redaction.redact(line)
    assert "Tr0ub4dor" not in sent
    assert redaction.restore(sent) == line


def test_a_long_text_without_secrets_is_asked_about_few_forms() -> None:
    """A large job has hundreds of files: most forms are asked by their words alone."""
    line = "2026-03-01 09:00:01 INFO step 17 loss 2.31 grad norm 1.20 tokens per second 41200\n"
    forms, may_match = _compiled(False)
    assert len(may_match.Match(line * 100, potential=True)) < len(forms) / 3


def test_every_form_is_asked_where_its_words_stand_among_others() -> None:
    secrets = {
        "AKIAIOSFODNN7EXAMPLE": "using AKIAIOSFODNN7EXAMPLE",
        "Vq7Lm20Pq1": "PASSWORT: Vq7Lm20Pq1",
        "hunter42x": "mysql -u svc -phunter42x train",
        "Ab9Kd83nWq": "sudo login contraseña=Ab9Kd83nWq",
        "someone@example.org": "mail to someone@example.org",
    }
    calm = "2026-03-01 09:00:01 INFO step 17 loss 2.31\n" * 500
    for secret, told in secrets.items():
        assert secret not in Redaction().redact(f"{calm}{told}\n{calm}")
