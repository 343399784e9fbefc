"""What `logtriage doctor` looks at: each function is one thing that can be configured, missing or broken."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from logtriage.settings import Settings, SettingsFault, load_settings, settings_file

if TYPE_CHECKING:
    from pydantic import SecretStr

SECONDS = 5.0  # for an answer of a server
_LEAST_FREE = 512 << 20  # bytes that a data folder should have left
# The packages of each extra by the names that they are imported under.
EXTRAS = {
    "remote": ("fsspec", "s3fs"),
    "memory": ("chromadb",),
    "postgresql": ("psycopg",),
    "export": ("pandas", "pyarrow"),
    "llm": ("httpx2", "langchain", "langchain_openai", "openai", "tiktoken"),
    "slack": ("aiohttp", "slack_bolt"),
    "mcp": ("mcp",),
    "fleet": ("distributed",),
}


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `off` is not configured, and needs no mend; `broken` is configured and does not work."""

    name: str
    state: Literal["ok", "off", "broken"]
    says: str
    mend: str = ""


@runtime_checkable
class _Examined(Protocol):
    """A source that can say what keeps it from answering."""

    def faults(self) -> list[str]: ...


def checks(*, offline: bool) -> Iterator[Check]:
    """Everything in turn; with `offline` no server is asked. Raises nothing."""
    yield _python()
    try:
        settings = load_settings()
    except SettingsFault as fault:
        yield Check("settings", "broken", str(fault), "correct what it names, then run this again")
        return
    file = settings_file()
    is_there = file.is_file()
    if is_there:
        yield Check("settings", "ok", str(file))
    else:
        mend = "none is needed; docs/memory.md and docs/sources.md say what it may hold"
        yield Check("settings", "off", f"{file}: no such file", mend)
    for examine in (_extras, _data_folder, _cache, _database, _learned_rules, _slack):
        yield from _guarded(examine, settings)
    for ask in (_index, _model, _sources):
        yield from _guarded(partial(ask, offline=offline), settings)


def _guarded(examine: Callable[[Settings], Iterator[Check]], settings: Settings) -> Iterator[Check]:
    try:
        yield from examine(settings)
    except Exception as fault:  # one thing that breaks in a new way must not hide the others
        examined = examine.func if isinstance(examine, partial) else examine
        name = getattr(examined, "__name__", "check").strip("_").replace("_", " ")
        yield Check(name, "broken", f"{type(fault).__name__}: {fault}", "LOGTRIAGE_DEBUG=1 shows where")


def _python() -> Check:
    from logtriage import __version__

    version = ".".join(map(str, sys.version_info[:3]))
    return Check("program", "ok", f"logtriage {__version__}, Python {version} at {sys.executable}")


def _extras(settings: Settings) -> Iterator[Check]:
    kinds = {str(table.get("kind")) for table in settings.sources}
    needed = {
        "remote": "store" in kinds,
        "postgresql": settings.database_url.startswith("postgresql"),
        "memory": bool(settings.chroma_url),
        "llm": bool(settings.llm_model) and settings.llm != "never",
        "slack": _is_set(settings.slack_bot_token),
    }
    for extra, packages in EXTRAS.items():
        missing = [name for name in packages if find_spec(name) is None]
        mend = f"pip install 'logtriage[{extra}]'"
        if not missing:
            yield Check(f"extra {extra}", "ok", "installed")
        elif needed.get(extra):
            yield Check(f"extra {extra}", "broken", f"needed, and without {', '.join(missing)}", mend)
        else:
            yield Check(f"extra {extra}", "off", f"without {', '.join(missing)}", mend)


def _data_folder(settings: Settings) -> Iterator[Check]:
    from logtriage.memory.privacy import open_to_others

    folder = settings.data_dir
    place = next(each for each in (folder, *folder.parents) if each.exists())
    if fault := _unwritable(place):
        yield Check(
            "data folder", "broken", f"{folder}: {fault}", "set data_dir to a folder that you may write"
        )
        return
    free = shutil.disk_usage(place).free
    kept = sum(1 for _ in (folder / "verdicts").glob("*.json"))
    said = f"{folder}: {kept:,} verdicts kept, {free / 2**30:,.1f} GiB free"
    if free < _LEAST_FREE:
        yield Check("data folder", "broken", said, "make room, or set data_dir to another disk")
    elif seen := open_to_others(folder):
        told = f"{said}; others can read what was said of jobs ({seen})"
        yield Check("data folder", "broken", told, f"chmod 700 {folder}")
    else:
        yield Check("data folder", "ok", said + ("" if folder.exists() else " (made when first needed)"))


def _cache(settings: Settings) -> Iterator[Check]:
    from logtriage.cache import cache_folder

    folder = cache_folder()
    place = next(each for each in (folder, *folder.parents) if each.exists())
    if fault := _unwritable(place):
        yield Check("cache", "off", f"{folder}: {fault}; each triage takes longer", "set XDG_CACHE_HOME")
    else:
        yield Check("cache", "ok", str(folder))


def _unwritable(folder: Path) -> str:
    if not folder.is_dir():
        return "is no folder"
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as fault:
        return f"cannot be written: {fault.strerror}"


def _database(settings: Settings) -> Iterator[Check]:
    from logtriage.memory.rule_folder import has_memory

    if not has_memory(settings):
        yield Check("database", "off", "nothing was confirmed yet; SQLite is made in the data folder then")
        return
    from logtriage.memory.ledger import LedgerFault, open_ledger

    try:
        ledger = open_ledger(settings.database_url, settings.data_dir)
        count = len(ledger.diagnoses())
    except LedgerFault as fault:
        yield Check("database", "broken", str(fault), "correct database_url, or start its server")
        return
    where = "database_url" if settings.database_url else str(settings.data_dir / "ledger.sqlite3")
    told = f"{count:,} confirmed diagnos{'is' if count == 1 else 'es'}"
    yield Check("database", "ok", f"{where}: {told}")


def _learned_rules(settings: Settings) -> Iterator[Check]:
    from logtriage.memory.rule_folder import STATES, files_in_state, unreadable_rules
    from logtriage.rulebank.bank import load_bank

    bank = load_bank()
    yield Check("rules", "ok", f"{len(bank.rules):,} shipped, version {bank.version}")
    counts = [f"{len(files_in_state(settings.data_dir, state))} {state}" for state in STATES]
    faults = [f"{file}: {fault}" for file, fault in unreadable_rules(settings.data_dir)]
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        mend = "correct the file or take it away; triages go on without it"
        yield Check("learned rules", "broken", f"{faults[0]}{more}", mend)
    else:
        yield Check("learned rules", "ok", ", ".join(counts))


def _index(settings: Settings, offline: bool) -> Iterator[Check]:
    from logtriage.memory.embedding import EmbeddingFault, chosen_embedding

    key = settings.embedding_api_key.get_secret_value()
    try:
        chosen = chosen_embedding(
            settings.embedding, url=settings.embedding_url, model=settings.embedding_model, key=key
        )
    except EmbeddingFault as fault:
        yield Check("embedding", "broken", str(fault), 'install what it names, or set embedding = "auto"')
    else:
        is_asked = settings.embedding == "endpoint" and not offline
        why = _no_answer(f"{settings.embedding_url.rstrip('/')}/models", key) if is_asked else ""
        mend = "correct embedding_url or embedding_api_key"
        yield Check("embedding", "broken" if why else "ok", why or chosen.name, mend if why else "")
    if find_spec("chromadb") is None:
        yield Check("index", "off", "no Chroma: likeness is not told", "pip install 'logtriage[memory]'")
    elif not settings.chroma_url:
        yield Check("index", "ok", f"Chroma in {settings.data_dir / 'index'}")
    elif offline:
        yield Check("index", "ok", f"Chroma at {settings.chroma_url} (not asked: --offline)")
    else:
        why = _no_answer(f"{settings.chroma_url.rstrip('/')}/api/v2/heartbeat")
        mend = "start the server, or correct chroma_url"
        said = why or f"Chroma at {settings.chroma_url} answers"
        yield Check("index", "broken" if why else "ok", said, mend if why else "")


def _slack(settings: Settings) -> Iterator[Check]:
    forms = {
        "slack_bot_token": (settings.slack_bot_token, "xoxb-"),
        "slack_app_token": (settings.slack_app_token, "xapp-"),
    }
    given = [name for name, (value, _) in forms.items() if _is_set(value)]
    if not given and not _is_set(settings.slack_signing_secret):
        yield Check("slack", "off", "no tokens", "docs/slack.md")
        return
    odd = [
        f"{name} does not begin with {form}"
        for name, (value, form) in forms.items()
        if name in given and not value.get_secret_value().startswith(form)
    ]
    if "slack_bot_token" not in given:
        odd.append("slack_bot_token is not set")
    elif "slack_app_token" not in given and not _is_set(settings.slack_signing_secret):
        odd.append("neither slack_app_token (Socket Mode) nor slack_signing_secret (HTTP) is set")
    if odd:
        yield Check("slack", "broken", "; ".join(odd), "docs/slack.md says where the tokens come from")
    else:
        yield Check("slack", "ok", "tokens are set (not tried)")


def _is_set(secret: SecretStr) -> bool:
    return bool(secret.get_secret_value())


def _model(settings: Settings, offline: bool) -> Iterator[Check]:
    if not settings.llm_model or settings.llm == "never":
        why = "llm = never" if settings.llm_model else "no llm_model"
        yield Check("model", "off", f"{why}: verdicts stand on rules alone", "docs/models.md")
        return
    if settings.llm_replay:
        is_there = Path(settings.llm_replay).expanduser().is_file()
        said = f"recorded answers in {settings.llm_replay}" + ("" if is_there else ": no such file")
        yield Check("model", "ok" if is_there else "broken", said, "" if is_there else "correct llm_replay")
        return
    base = settings.llm_base_url.rstrip("/") or "https://api.openai.com/v1"
    if offline:
        yield Check("model", "ok", f"{settings.llm_model} at {base} (not asked: --offline)")
        return
    fault = _no_answer(f"{base}/models", settings.llm_api_key.get_secret_value(), wanted=settings.llm_model)
    if fault:
        yield Check("model", "broken", fault, "correct llm_base_url, llm_model or llm_api_key")
    else:
        yield Check("model", "ok", f"{settings.llm_model} at {base} answers")


def _no_answer(url: str, key: str = "", wanted: str = "") -> str:
    """Why a server is of no use, or an empty text; `wanted` is a model that its list should name.

    Redirections are not followed: a key goes where it was configured to go.
    """
    import http.client
    import json
    from urllib.parse import urlsplit

    kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
    try:
        parts = urlsplit(url)
        connection = kinds[parts.scheme](parts.hostname or "", parts.port, timeout=SECONDS)
        try:
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            connection.request("GET", parts.path or "/", headers=headers)
            answer = connection.getresponse()
            body = answer.read(1 << 20)
        finally:
            connection.close()
    except KeyError:
        return f"{url}: not an http or https address"
    except (OSError, http.client.HTTPException, ValueError) as fault:
        return f"{url}: {getattr(fault, 'strerror', None) or fault or type(fault).__name__}"
    if answer.status in (401, 403):
        return f"{url}: the key is refused ({answer.status})"
    if answer.status != 200:
        return f"{url}: answers {answer.status} {answer.reason}"
    try:
        listed = [str(each["id"]) for each in json.loads(body)["data"]] if wanted else []
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""  # not every server lists its models
    if wanted and listed and wanted not in listed:
        return f"{url}: it has no model {wanted!r}, but {', '.join(listed[:5])}"
    return ""


def _sources(settings: Settings, offline: bool) -> Iterator[Check]:
    from logtriage.sources.lookup import configured_sources

    if not settings.sources:
        yield Check("sources", "off", "none configured: jobs are found by path alone", "docs/sources.md")
        return
    try:
        sources = configured_sources(settings)
    except SettingsFault as fault:
        yield Check("sources", "broken", str(fault), "docs/sources.md")
        return
    for table, source in zip(settings.sources, sources, strict=True):
        name, kind = f"source {source.name}", str(table.get("kind"))
        if not isinstance(source, _Examined) or (offline and kind != "folders"):
            yield Check(name, "ok", f"{kind} (not asked)")
        elif faults := source.faults():
            yield Check(name, "broken", "; ".join(faults), "docs/sources.md")
        else:
            yield Check(name, "ok", f"{kind} answers")
