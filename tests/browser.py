"""Chromium, where it is installed: what it makes of a page, and what it complains of."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def opened(page: Path, profile: Path) -> subprocess.CompletedProcess[str]:
    """Its document on standard output, its complaints on standard error; skips where there is no browser."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no browser is installed")
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom")
    return subprocess.run(
        [browser, *options, f"--user-data-dir={profile}", page.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
