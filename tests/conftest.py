"""No test reads or writes what the person who runs it has configured or kept."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

_HOME = tempfile.mkdtemp(prefix="logtriage-tests-")
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
for _name in [name for name in os.environ if name.startswith("LOGTRIAGE_")]:
    del os.environ[_name]
# Set here and not in a fixture, so that it holds for modules that triage while they are imported, and is
# inherited by every process that a test starts.
os.environ["LOGTRIAGE_DATA_DIR"] = f"{_HOME}/data"
os.environ["XDG_CONFIG_HOME"] = f"{_HOME}/config"
