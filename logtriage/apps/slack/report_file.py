"""The full report of a verdict, as one HTML file in the thread."""

from __future__ import annotations

import asyncio

from logtriage.apps.slack.speech import Speaker
from logtriage.report.document import Verdict


async def upload_report(speaker: Speaker, verdict: Verdict) -> None:
    """Upload the page of a verdict that was redacted. Raises SlackClientError."""
    from logtriage.report.html import page

    content = await asyncio.to_thread(page, verdict)
    await speaker.client.files_upload_v2(
        filename=f"{verdict.id}.html",
        content=content,
        title=f"Verdict {verdict.id}",
        channel=speaker.place.channel,
        thread_ts=speaker.place.thread or None,
        initial_comment=f"The full report of {verdict.id}: save it and open it in a browser.",
    )
