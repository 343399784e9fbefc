"""Likeness: the confirmed diagnoses, the rules and the failure types in Chroma, nearest first.

Nothing here is a fact of its own. Every look-up first brings the collection into line with its source (the
ledger, the bank, the taxonomy): what is missing is added, what is gone is removed, and an index that cannot
be opened is made anew. Vectors are always our own, since Chroma's default would download a model.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from logtriage.memory.changes import locked
from logtriage.memory.embedding import Embedding, EmbeddingFault, chosen_embedding
from logtriage.memory.evidence import closely_read, telling_lines
from logtriage.memory.ledger import Diagnosis, Ledger
from logtriage.mining.masks import mask
from logtriage.report.document import Verdict
from logtriage.rulebank.bank import Bank
from logtriage.rulebank.matcher import Matcher
from logtriage.settings import Settings
from logtriage.taxonomy import taxonomy

FOLDER = "index"
DIAGNOSES, RULES, TYPES = "diagnoses", "rules", "types"
LONGEST_LINE = 400  # characters of a line that count for likeness
MOST_LINES = 6
LEAST_LIKE = 0.005


class IndexFault(Exception):
    """The index cannot be had; the message says why and what would help."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """One entry of a collection; `likeness` is the cosine, 1 for the same text."""

    id: str
    likeness: float
    text: str


@dataclass(frozen=True, slots=True)
class Index:
    """Where the index lives, and what makes its vectors."""

    data_dir: Path
    chroma_url: str
    embedding: Embedding

    def nearest(
        self, collection: str, texts: Mapping[str, str], asked: Sequence[str], count: int = 5
    ) -> list[Nearest]:
        """The entries of `texts` (by id) that are nearest to any of `asked`, the nearest first.

        Raises IndexFault.
        """
        asked = [each for each in asked if each.strip()]
        if not texts or not asked:
            return []
        with self._held():
            found = self._in_line(collection, texts)
            answer = found.query(
                query_embeddings=self._vectors(asked),
                n_results=min(count, len(texts)),
                include=["distances"],
            )
        best: dict[str, float] = {}
        for ids, distances in zip(answer["ids"], answer["distances"] or [], strict=True):
            for each, distance in zip(ids, distances, strict=True):
                best[each] = max(best.get(each, -1.0), round(1 - float(distance), 4))
        order = sorted((each for each in best if each in texts), key=lambda each: (-best[each], each))
        return [Nearest(each, best[each], texts[each]) for each in order[:count]]

    def bring_in_line(self, collection: str, texts: Mapping[str, str], *, anew: bool = False) -> int:
        """Index exactly `texts`, from nothing when `anew`; returns how many entries there are then."""
        with self._held():
            if anew:
                with suppress(Exception):  # there may be none, or none that can be opened
                    self._client().delete_collection(self._name(collection))
            return int(self._in_line(collection, texts).count())

    def _held(self) -> AbstractContextManager[None]:
        """An embedded index has one user at a time: Chroma's files are not made for two processes."""
        return nullcontext() if self.chroma_url else locked(self.data_dir, "index")

    def _vectors(self, texts: Sequence[str]) -> Any:
        # Told apart from what a broken index raises: an endpoint that is down costs no index.
        try:
            return self.embedding.embed(texts)
        except EmbeddingFault as fault:
            raise IndexFault(str(fault)) from None

    def _name(self, collection: str) -> str:
        # Vectors of another embedding must not be compared: they have collections of their own.
        return f"logtriage-{collection}-{self.embedding.name}"

    def _in_line(self, collection: str, texts: Mapping[str, str]) -> Any:
        try:
            return self._filled(collection, texts)
        except IndexFault:
            raise
        except Exception as fault:  # whatever a broken index raises: it can be made anew
            if self.chroma_url:
                raise IndexFault(f"{self.chroma_url}: {_short(fault)}") from None
            _forget_clients()
            shutil.rmtree(self.data_dir / FOLDER, ignore_errors=True)
            try:
                return self._filled(collection, texts)
            except Exception as again:
                raise IndexFault(f"{self.data_dir / FOLDER}: {_short(again)}") from None

    def _filled(self, collection: str, texts: Mapping[str, str]) -> Any:
        found = self._client().get_or_create_collection(
            self._name(collection), configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )
        kept = found.get(include=["documents"])
        there = dict(zip(kept["ids"], kept["documents"] or [], strict=False))
        gone = [each for each in there if each not in texts]
        new = [each for each, text in texts.items() if there.get(each) != text]
        for part in _parts(gone):
            found.delete(ids=part)
        for part in _parts(new):
            found.upsert(
                ids=part,
                documents=[texts[each] for each in part],
                embeddings=self._vectors([texts[each] for each in part]),
            )
        return found

    def _client(self) -> Any:
        if find_spec("chromadb") is None:
            raise IndexFault("chromadb is not installed (pip install 'logtriage[memory]')")
        os.environ["ANONYMIZED_TELEMETRY"] = "False"
        import chromadb
        from chromadb.config import Settings as ChromaSettings

        logging.getLogger("chromadb").setLevel(logging.CRITICAL)
        quiet = ChromaSettings(anonymized_telemetry=False)
        if not self.chroma_url:
            return chromadb.PersistentClient(str(self.data_dir / FOLDER), settings=quiet)
        address = urlsplit(self.chroma_url if "://" in self.chroma_url else f"http://{self.chroma_url}")
        try:
            return chromadb.HttpClient(
                host=address.hostname or "localhost",
                port=address.port or (443 if address.scheme == "https" else 8000),
                ssl=address.scheme == "https",
                settings=quiet,
            )
        except Exception as fault:  # a refused connection comes as ValueError
            raise IndexFault(f"{self.chroma_url}: {_short(fault)}") from None


def _forget_clients() -> None:
    with suppress(Exception):
        from chromadb.api.shared_system_client import SharedSystemClient

        SharedSystemClient.clear_system_cache()


def _parts(ids: Sequence[str], size: int = 500) -> Iterable[list[str]]:
    for start in range(0, len(ids), size):
        yield list(ids[start : start + size])


def _short(fault: Exception) -> str:
    return " ".join(str(fault).split())[:300] or type(fault).__name__


def verdict_lines(verdict: Verdict) -> list[str]:
    """What a job looks like: the kinds of its telling lines, without its numbers, paths and hosts."""
    lines = [each.text for each in verdict.verdict.evidence]
    return _kinds(lines + [each.text for other in verdict.verdict.alternatives for each in other.evidence])


# Verdicts whose lines accuse nobody: a last step, a last word, a silence.
_WITHOUT_ACCUSED = ("none.", "unknown", "hang.", "slow.")


def accuses(verdict: Verdict) -> bool:
    return not verdict.verdict.failure_type.startswith(_WITHOUT_ACCUSED)


def compared_lines(verdict: Verdict, paths: Sequence[str], matcher: Matcher) -> list[str]:
    """The lines that a job is compared by: those of its verdict, or where it accuses nobody, faulty ones.

    Raises NothingReadable where the logs are gone and the verdict accuses nobody.
    """
    if accuses(verdict):
        return verdict_lines(verdict)
    return [line.message for line in telling_lines(closely_read(paths), matcher)]


def similar_diagnoses(
    lines: Sequence[str], ledger: Ledger, index: Index, count: int = 5
) -> list[tuple[float, Diagnosis]]:
    """(likeness, diagnosis) of the confirmed diagnoses whose evidence is most like any of `lines`.

    The nearest of few may have nothing in common with them: what is like by less than 0.5 % is left out.
    Raises IndexFault.
    """
    texts, diagnoses = diagnosis_texts(ledger)
    found: dict[int, tuple[float, Diagnosis]] = {}
    for near in index.nearest(DIAGNOSES, texts, _kinds(lines), count * 4):
        diagnosis = diagnoses[near.id]
        if near.likeness >= LEAST_LIKE:
            found.setdefault(diagnosis.id, (near.likeness, diagnosis))
    return list(found.values())[:count]


def _kinds(lines: Iterable[str]) -> list[str]:
    kinds = dict.fromkeys(mask(line[:LONGEST_LINE]) for line in lines if line.strip())
    return list(kinds)[:MOST_LINES]


def diagnosis_texts(ledger: Ledger) -> tuple[dict[str, str], dict[str, Diagnosis]]:
    """The kinds of the cited lines of every confirmed diagnosis, and itself, by the same keys."""
    texts: dict[str, str] = {}
    found: dict[str, Diagnosis] = {}
    for each in ledger.diagnoses():
        for number, kind in enumerate(_kinds(cited.text for cited in each.evidence)):
            texts[f"{each.id}.{number}"] = kind
            found[f"{each.id}.{number}"] = each
    return texts, found


def rule_texts(bank: Bank) -> dict[str, str]:
    return {
        rule.id: "\n".join(
            [rule.title, *(each.text for each in rule.mitigation), *(each.line for each in rule.examples[:2])]
        )
        for rule in bank.rules
        if rule.failure_type is not None
    }


def type_texts() -> dict[str, str]:
    """The taxonomy as snippets: what each failure type means and what is to be done."""
    return {
        kind.id: json.dumps([kind.id, kind.means, kind.action], ensure_ascii=False)
        for kind in taxonomy().types.values()
    }


def index_of(settings: Settings) -> Index:
    """The index that is configured. Raises EmbeddingFault where its embedding cannot be had."""
    embedding = chosen_embedding(
        settings.embedding,
        url=settings.embedding_url,
        model=settings.embedding_model,
        key=settings.embedding_api_key.get_secret_value(),
    )
    return Index(settings.data_dir, settings.chroma_url, embedding)
