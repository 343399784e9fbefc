"""`logtriage slack`: the bot."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated

import typer

from logtriage.apps.console import complain

if TYPE_CHECKING:
    from logtriage.settings import Settings


def slack(
    http: Annotated[
        int | None,
        typer.Option(
            "--http",
            metavar="PORT",
            min=1,
            max=65535,
            help="Listen here for Slack's requests (else Socket Mode).",
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Say more on standard error.")] = False,
) -> None:
    """Answer questions about jobs in Slack, until it is ended."""
    from logtriage.settings import load_settings

    settings = load_settings()
    _check(settings, http)
    try:
        from logtriage.apps.slack import bot
    except ImportError as fault:
        raise typer.BadParameter(f"{fault.name} is not installed (pip install 'logtriage[slack]')") from None
    import asyncio

    from slack_sdk.errors import SlackApiError

    from logtriage.apps.slack.journal import JournalFault, open_journal

    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(name)s %(levelname)s %(message)s",
    )
    try:
        asyncio.run(bot.run(settings, open_journal(settings.data_dir), http, complain))
    except JournalFault as fault:
        complain(str(fault))
        raise typer.Exit(1) from None
    except SlackApiError as fault:
        complain(f"Slack refuses the bot: {fault.response.get('error')} (docs/slack.md)")
        raise typer.Exit(1) from None


def _check(settings: Settings, http: int | None) -> None:
    wanted = {"slack_bot_token": settings.slack_bot_token}
    wanted |= {"slack_signing_secret": settings.slack_signing_secret} if http else {}
    wanted |= {} if http else {"slack_app_token": settings.slack_app_token}
    missing = [name for name, value in wanted.items() if not value.get_secret_value()]
    if missing:
        variables = " and ".join(f"LOGTRIAGE_{name.upper()}" for name in missing)
        raise typer.BadParameter(f"no {' and '.join(missing)}: set {variables} (see docs/slack.md)")
    if not settings.sources:
        raise typer.BadParameter("no [[sources]] are configured: the bot could find no job (docs/sources.md)")
