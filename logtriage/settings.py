"""What a person or a site configures: `logtriage.toml`, and environment variables that overrule it.

The file is the one that `LOGTRIAGE_CONFIG` names, else `logtriage.toml` in the user's configuration folder
(~/.config/logtriage on Linux). None is looked for in the working directory: that is often a folder of logs
that somebody else wrote, and a setting can say where texts are sent.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError

PREFIX = "LOGTRIAGE_"
MOST_BYTES = 1 << 20  # of logtriage.toml


class SettingsFault(Exception):
    """A setting that cannot be used; the message names it and the place where it was made."""


def _expanded(value: Any) -> Any:
    return _at_home(value) if isinstance(value, str) else value


def _at_home(place: str) -> Path:
    return Path(os.path.expanduser(place))  # noqa: PTH111 - leaves the ~ of a user that is not there


Folder = Annotated[Path, BeforeValidator(_expanded)]


def _split(value: Any) -> Any:
    return [each.strip() for each in value.split(",") if each.strip()] if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_split)]  # in the environment separated by commas


class Settings(BaseModel):
    """Each field is a key of logtriage.toml, and after LOGTRIAGE_, in capitals, an environment variable."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data_dir: Folder = Field(description="verdicts, the ledger, the index and learned rules")
    database_url: str = Field(default="", description="SQLAlchemy URL; empty: SQLite in data_dir")
    chroma_url: str = Field(default="", description="URL of a Chroma server; empty: embedded")
    embedding: str = Field(default="auto", description="auto | lexical | minilm | endpoint")
    embedding_url: str = Field(default="", description="OpenAI-compatible endpoint of embeddings")
    embedding_model: str = Field(default="", description="its name at that endpoint")
    embedding_api_key: SecretStr = Field(default=SecretStr(""), description="where that endpoint wants a key")
    no_history: bool = Field(default=False, description="keep no verdicts")
    promote_after: int = Field(default=2, ge=1, description="agreeing jobs until a rule on trial has a say")

    sources: tuple[dict[str, Any], ...] = Field(default=(), description="[[sources]] tables: docs/sources.md")

    llm: Literal["never", "auto", "always"] = Field(default="auto", description="when a model is asked")
    llm_base_url: str = Field(default="", description="OpenAI-compatible endpoint; empty: OpenAI's own")
    llm_model: str = Field(default="", description="its name at the endpoint; empty: no model is asked")
    llm_api_key: SecretStr = Field(default=SecretStr(""), description="where the endpoint wants a key")
    llm_votes: int = Field(default=5, ge=1, le=25, description="votes asked at most")
    llm_temperature: float = Field(default=0.7, ge=0, le=2, description="of the votes")
    llm_tokens_per_vote: int = Field(default=4000, ge=1500, description="of all its requests, both ways")
    llm_tool_calls: int = Field(default=3, ge=0, le=10, description="of a vote at most, within its tokens")
    llm_seconds: float = Field(default=60, gt=0, description="for all votes together")
    llm_redact_hosts: bool = Field(default=False, description="hide host names and addresses from a model")
    llm_log_agent: bool = Field(default=False, description="votes on what a new kind of job always writes")
    llm_record: str = Field(default="", description="file to which a model's answers are added")
    llm_replay: str = Field(default="", description="file of recorded answers to use instead of a model")

    slack_bot_token: SecretStr = Field(default=SecretStr(""), description="xoxb-…")
    slack_app_token: SecretStr = Field(default=SecretStr(""), description="xapp-…, for Socket Mode")
    slack_signing_secret: SecretStr = Field(default=SecretStr(""), description="for HTTP")
    slack_api_url: str = Field(default="", description="address of the Web API; empty: Slack's own")
    slack_ask_users: Names = Field(default=(), description="ids of users who may ask; none: everybody")
    slack_ask_groups: Names = Field(default=(), description="ids of user groups whose members may ask")
    slack_ask_channels: Names = Field(default=(), description="ids of channels where it answers; empty: all")
    slack_confirm_users: Names = Field(default=(), description="who may confirm; none: all who may ask")
    slack_confirm_groups: Names = Field(default=(), description="user groups whose members may confirm")
    slack_triages: int = Field(default=2, ge=1, le=64, description="jobs that are triaged side by side")
    slack_waiting: int = Field(default=50, ge=1, description="jobs that may wait for their turn")
    slack_seconds: float = Field(default=600, gt=0, description="of reading; the verdict then stands on less")


def load_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """The settings in force. Raises SettingsFault for a file or value that cannot be used."""
    given = os.environ if environment is None else environment
    values, place = _file_values(given)
    for name in Settings.model_fields:
        if text := given.get(PREFIX + name.upper()):
            values[name] = text
    if not values.get("data_dir"):
        values["data_dir"] = _user_folder("user_data_path")
    try:
        return Settings(**values)
    except ValidationError as fault:
        first = fault.errors()[0]
        name = ".".join(map(str, first["loc"]))
        where = PREFIX + name.upper() if given.get(PREFIX + name.upper()) else f"{place}: {name}"
        unknown = first["type"] == "extra_forbidden"
        said = "there is no such setting" if unknown else first["msg"].removeprefix("Value error, ")
        raise SettingsFault(f"{where}: {said}") from None


def settings_file(environment: Mapping[str, str] | None = None) -> Path:
    """The file that is read, whether or not it is there."""
    named = (os.environ if environment is None else environment).get(PREFIX + "CONFIG", "")
    return _at_home(named) if named else _user_folder("user_config_path") / "logtriage.toml"


def _file_values(given: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    named = given.get(PREFIX + "CONFIG", "")
    path = settings_file(given)
    try:
        known = path.stat()
        if not stat.S_ISREG(known.st_mode) or known.st_size > MOST_BYTES:
            raise SettingsFault(f"{path}: is no file of settings")  # a pipe or a device would never end
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if named:
            raise SettingsFault(f"{path}: there is no such file ({PREFIX}CONFIG)") from None
        return {}, str(path)
    except (OSError, UnicodeDecodeError) as fault:
        if not named and isinstance(fault, (PermissionError, NotADirectoryError)):
            # A home that this user may not enter holds none of his, nor does /dev/null, a service's home.
            return {}, str(path)
        raise SettingsFault(f"{path}: cannot be read: {fault}") from None
    import tomllib

    try:
        return tomllib.loads(text), str(path)
    except (ValueError, RecursionError) as fault:  # a number of 5,000 digits is no fault of TOML's grammar
        raise SettingsFault(f"{path}: {fault}") from None


def _user_folder(kind: str) -> Path:
    import platformdirs

    folder: Path = getattr(platformdirs, kind)("logtriage")
    return folder
