"""Secrets of many kinds, made here in the forms that their issuers publish; none of them opens anything."""

from __future__ import annotations

import random
import string

_LETTERS = string.ascii_letters + string.digits
_BASE64 = _LETTERS + "+/"


def _of(rng: random.Random, length: int, letters: str = _LETTERS) -> str:
    """Random signs with a digit, a small and a capital letter where the alphabet has them."""
    head = "".join(each for each in "7qF" if each in letters)
    return head + "".join(rng.choices(letters, k=length - len(head)))


# Known by their own form, wherever they stand.
def keys(rng: random.Random) -> dict[str, str]:
    upper = string.ascii_uppercase + string.digits
    hexadecimal = "0123456789abcdef"
    return {
        "aws access key": "AKIA" + _of(rng, 16, upper),
        "aws temporary key": "ASIA" + _of(rng, 16, upper),
        "aws session token": "IQoJb3JpZ2lu" + _of(rng, 200, _BASE64),
        "gcp api key": "AIza" + _of(rng, 35),
        "gcp access token": "ya29." + _of(rng, 60),
        "gcp client secret": "GOCSPX-" + _of(rng, 28),
        "azure storage key": _of(rng, 86, _BASE64) + "==",
        "azure client secret": _of(rng, 3) + "8Q~" + _of(rng, 34),
        "github": "ghp_" + _of(rng, 36),
        "github fine": "github_pat_" + _of(rng, 22) + "_" + _of(rng, 59),
        "gitlab": "glpat-" + _of(rng, 20),
        "gitlab routable": "glpat-" + _of(rng, 27) + ".01." + _of(rng, 9).lower(),
        "hugging face": "hf_" + _of(rng, 34),
        "wandb": "wandb_v1_" + _of(rng, 40),
        "openai": "sk-proj-" + _of(rng, 60),
        "anthropic": "sk-ant-api03-" + _of(rng, 80),
        "slack bot": f"xoxb-{_of(rng, 12, string.digits)}-{_of(rng, 24)}",
        "slack app": f"xapp-1-A{_of(rng, 10, upper)}-{_of(rng, 40)}",
        "stripe": "sk_live_" + _of(rng, 24),
        "nvidia": "nvapi-" + _of(rng, 60),
        "groq": "gsk_" + _of(rng, 52),
        "npm": "npm_" + _of(rng, 36),
        "databricks": "dapi" + "".join(rng.choices(hexadecimal, k=32)),
        "vault": "hvs." + _of(rng, 90),
        "telegram": f"{rng.randrange(10**9, 10**10)}:AA{_of(rng, 33)}",
        "jwt": f"eyJ{_of(rng, 20)}.eyJ{_of(rng, 60)}.{_of(rng, 43)}",
        "e-mail": f"{_of(rng, 9).lower()}.{_of(rng, 5).lower()}@mail.example.org",
    }


# How keys stand in logs.
AROUND = {
    "alone": "{}",
    "prose": "could not use {} for the upload, giving up",
    "json": '{{"level": "error", "auth": {{"id": 4, "value": "{}"}}}}',
    "json in json": '{{"msg": "request was {{\\"value\\": \\"{}\\"}}"}}',
    "yaml": "  - value: {}",
    "environment": "export SOME_VALUE={}",
    "repr": "environ({{'SOME_VALUE': '{}', 'LANG': 'C'}})",
    "traceback": "    client = Client('{}', retries=3)",
    "exception": "hub.errors.HTTPError: 401 for url: https://hub.example.org/v1?x={}",
    "arguments": "['train.py', '--value', '{}', '--lr', '1e-4']",
    "prefix": "[rank0]:[ERROR] 12:00:01 value={};",
    "coloured": "\x1b[31merror\x1b[0m: \x1b[1m{}\x1b[0m was refused",
}

# Where nothing but the place tells what it is.
PLACES = {
    "environment": "DB_PASSWORD={}",
    "pgpassword": "PGPASSWORD={} psql -h db1 -c 'select 1'",
    "wandb": "WANDB_API_KEY={}",
    "aws": "AWS_SECRET_ACCESS_KEY={}",
    "azure": "AZURE_CLIENT_SECRET='{}'",
    "subscription": "Ocp-Apim-Subscription-Key: {}",
    "some key": "MINIO_ROOT_KEY={}",
    "assignment": "password = {}",
    "yaml": "    password: {}",
    "yaml quoted": "    secret: '{}'",
    "json": '{{"user": "x", "password": "{}", "port": 5}}',
    "json tight": '{{"user":"x","api_key":"{}","port":5}}',
    "json in json": '{{"msg": "{{\\"password\\": \\"{}\\"}}"}}',
    "repr": "Namespace(lr=0.1, api_key='{}', hub_token=None)",
    "bytes": "login(password=b'{}')",
    "flag": "python train.py --hub-token {} --lr 1e-4",
    "flag with =": "train --db-password={} --steps 10",
    "arguments": "['train.py', '--password', '{}', '--lr', '1e-4']",
    "curl": "+ curl -sS -u trainer:{} https://hub.example.org/v1",
    "sshpass": "sshpass -p {} rsync a b",
    "docker": "docker login registry.example.org -u trainer -p {}",
    "wandb login": "wandb login --relogin {}",
    "header": "Authorization: Bearer {}",
    "short header": "'authorization': 'Basic {}'",
    "cookie": "Cookie: a=b; session={}; c=d",
    "url": "postgresql://trainer:{}@db1.example.org:5432/runs",
    "url without user": "redis://:{}@cache1:6379/0",
    "git": "fatal: could not read https://oauth2:{}@git.example.org/a/b.git",
    "signed": "GET /b/k?X-Amz-Signature={}&X-Amz-Expires=60",
    "sas": "https://a.blob.core.windows.net/c/b?sv=2024&sig={}&se=2026",
    "webhook": "POST https://hooks.slack.com/services/{}",
    "connection": "Server=tcp:db1,1433;User ID=sa;Password={};Encrypt=yes;",
    "storage": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};EndpointSuffix=x",
    "service bus": "Endpoint=sb://a/;SharedAccessKeyName=root;SharedAccessKey={}",
    "libpq": "host=db1 user=trainer password='{}' dbname=runs",
    "jdbc": "jdbc:postgresql://db1/runs?user=trainer&password={}",
    "oracle": "jdbc:oracle:thin:trainer/{}@db1:1521:runs",
    "netrc": "machine api.wandb.ai login user password {}",
    "sql": "ALTER USER trainer IDENTIFIED BY '{}'",
    "container": '{{"name": "DB_PASSWORD", "value": "{}"}}',
    "traceback": "    conn = connect(host, password='{}')",
}


def password(rng: random.Random, *, is_plain: bool) -> str:
    """Sixteen to forty signs; `is_plain` leaves out those that addresses and shells do not hold."""
    signs = "" if is_plain else ",;()[]{}&!$%*+~^|?#=:.@-_"
    return _of(rng, rng.randrange(16, 40), _LETTERS + signs)


def key_block(rng: random.Random, kind: str = "RSA ") -> list[str]:
    """The lines of a private key: a head, lines of 64 signs, a shorter one, a foot."""
    body = [_of(rng, 64, _BASE64) for _ in range(12)]
    return [
        f"-----BEGIN {kind}PRIVATE KEY-----",
        *body,
        _of(rng, rng.randrange(8, 60), _BASE64) + "==",
        f"-----END {kind}PRIVATE KEY-----",
    ]


def pieces(secret: str, length: int = 10) -> set[str]:
    """What must not be seen of a secret: any of its parts of this length behind what all of its kind have."""
    secret = secret.removesuffix("@mail.example.org")
    head = 14 if len(secret) > 24 else 4
    return {secret[at : at + length] for at in range(head, max(head + 1, len(secret) - length + 1))}
