"""Jobs whose logs lie in an object store, or any other file system that fsspec knows: `s3://bucket/{job_id}/`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from logtriage.intake.places import NothingReadable, driver_of, fetch
from logtriage.model import Unreadable
from logtriage.sources.grouping import jobs_below, roots_of
from logtriage.sources.job import KnownJob, SourceFault
from logtriage.sources.likeness import fit, order
from logtriage.sources.patterns import Entry, read_pattern

_LOCAL = ("file", "local")


def _checked(text: str) -> str:
    if "://" not in text:
        raise ValueError("the pattern must be an address, such as s3://bucket/{job_id}/")
    if text.split("://", 1)[0].split("::")[0] in _LOCAL:
        raise ValueError(
            'folders of this machine are of kind = "folders"'
        )  # which keeps to them, links and all
    read_pattern(text)
    return text


class Store(BaseModel):
    """The source `kind = "store"`. Credentials are those that the store's own driver finds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["store"] = "store"
    name: str = Field(default="store", pattern=r"^[A-Za-z0-9][\w.-]*$")
    patterns: tuple[Annotated[str, AfterValidator(_checked)], ...] = Field(
        min_length=1, description="addresses of a job's logs, with {job_id}, {name}, {user} and *"
    )

    def find(self, asked: str, limit: int) -> list[KnownJob]:
        """Jobs whose id, name, user or address is `asked`, best and newest first."""
        jobs = self.known()
        if "/" in asked:
            return [job for job in jobs if any(_lies_in(asked, path) for path in job.paths)][:limit]
        found = [job for job in jobs if fit(job, asked) is not None]
        return sorted(found, key=lambda job: order(job, asked))[:limit]

    def ended(self, since: float) -> Iterator[KnownJob]:
        """Jobs whose objects last changed at `since` or later; those whose store tells no times, always."""
        for job in self.known():
            newest = self._newest(job)
            if newest is None or newest >= since:
                yield job

    def collect(self, job: KnownJob, folder: Path) -> tuple[str, ...]:
        """The folder with copies of its objects."""
        missed: list[Unreadable] = []
        roots = tuple(f"{root}/" for root in self.roots)
        try:
            for number, path in enumerate(path for path in job.paths if path.startswith(roots)):
                fetch(path, folder / str(number) if number else folder, missed)
        except NothingReadable as fault:
            raise SourceFault(str(fault)) from None
        return (str(folder),)

    @property
    def roots(self) -> tuple[str, ...]:
        return roots_of(self.patterns)

    def faults(self) -> list[str]:
        """What keeps it from answering, one line each."""
        said = []
        for root in self.roots:
            try:
                list(self._listed(root))
            except SourceFault as fault:
                said.append(str(fault))
        return said

    def known(self) -> list[KnownJob]:
        """All jobs by their names, without a look at their objects."""
        return jobs_below(self.patterns, self.name, self._listed)

    def _listed(self, folder: str) -> Iterable[Entry]:
        """The entries of a folder of the store, each with its whole address."""
        system, path = _opened(folder)
        try:
            system.invalidate_cache()
            entries = system.ls(path, detail=True)
        except FileNotFoundError:
            if folder in self.roots:
                raise SourceFault(f"{folder} is empty or not there") from None
            return
        except Exception as fault:
            raise SourceFault(f"{folder} cannot be listed: {' '.join(str(fault).split())[:300]}") from None
        for entry in entries:
            place = str(entry["name"]).rstrip("/")
            name = place.rpartition("/")[2]
            if name and not name.startswith(".") and place != path.rstrip("/"):
                yield Entry(
                    name, f"{folder.rstrip('/')}/{name}", entry.get("type") == "directory", _changed(entry)
                )

    def _newest(self, job: KnownJob) -> float | None:
        """When the newest object of a job was written: a store's folders have no times."""
        moments = [job.ended] if job.ended else []
        for path in job.paths:
            try:
                system, place = _opened(path)
                entries = system.find(place, detail=True).values()
            except Exception:  # gone meanwhile
                continue
            moments += [moment for entry in entries if (moment := _changed(entry)) is not None]
        return max(moments, default=None)


def _lies_in(asked: str, path: str) -> bool:
    return asked.rstrip("/") == path or asked.startswith(f"{path}/")


def _opened(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it. Raises SourceFault."""
    try:
        import fsspec  # type: ignore[import-not-found,import-untyped,unused-ignore]

        system, path = fsspec.core.url_to_fs(address)
        return system, str(path)
    except ImportError:
        raise SourceFault(f"{address} needs a driver that is not installed: {driver_of(address)}") from None
    except Exception as fault:  # every driver has its own
        raise SourceFault(f"{address}: {fault}") from None


def _changed(entry: dict[str, Any]) -> float | None:
    """Seconds since 1970; each driver has its own word for it."""
    for key in ("LastModified", "mtime", "updated", "last_modified", "created"):
        value = entry.get(key)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, int | float):
            return float(value)
        if isinstance(value, str):
            try:
                return datetime.fromisoformat(value).timestamp()
            except ValueError:
                continue
    return None
