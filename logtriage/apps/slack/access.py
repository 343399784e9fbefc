"""Who may ask and who may confirm: lists of users, channels and user groups in the settings."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from logtriage.settings import Settings

GROUP_SECONDS = 300.0  # so long the members of a user group are believed

_log = logging.getLogger("logtriage.slack")


@dataclass(frozen=True, slots=True)
class Access:
    """Asked before anything is read or written for somebody."""

    settings: Settings
    client: AsyncWebClient
    _members: dict[str, tuple[float, frozenset[str]]] = field(default_factory=dict)

    async def may_ask(self, user: str, channel: str, *, is_direct: bool = False) -> bool:
        """A list that is empty excludes nobody; a direct conversation is no channel of the list."""
        settings = self.settings
        if settings.slack_ask_channels and not is_direct and channel not in settings.slack_ask_channels:
            return False
        return await self._is_among(user, settings.slack_ask_users, settings.slack_ask_groups)

    async def may_confirm(self, user: str, channel: str, *, is_direct: bool = False) -> bool:
        """Who may confirm may also ask."""
        settings = self.settings
        if not await self.may_ask(user, channel, is_direct=is_direct):
            return False
        return await self._is_among(user, settings.slack_confirm_users, settings.slack_confirm_groups)

    async def _is_among(self, user: str, users: Sequence[str], groups: Sequence[str]) -> bool:
        if not users and not groups:
            return True
        if user in users:
            return True
        for group in groups:
            if user in await self._members_of(group):
                return True
        return False

    async def _members_of(self, group: str) -> frozenset[str]:
        at, members = self._members.get(group, (0.0, frozenset()))
        if time.monotonic() - at < GROUP_SECONDS and at:
            return members
        try:
            told = await self.client.usergroups_users_list(usergroup=group)
        except SlackClientError as fault:
            # Whoever was a member stays one; a group that was never had has no members.
            _log.warning("user group %s cannot be read (scope usergroups:read?): %s", group, fault)
            return members
        members = frozenset(map(str, told.get("users") or ()))
        self._members[group] = (time.monotonic(), members)
        return members
