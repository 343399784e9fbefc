"""Lists of machines that lie beside a job's logs: whose address or worker's number each has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from logtriage.intake.reading import Reading
from logtriage.localize.rosters import is_host
from logtriage.localize.scene import Scene
from logtriage.model import JOB_ROLES
from logtriage.regex import regex

_ADDRESS = regex(r"(?:\d{1,3}\.){3}\d{1,3}$")
_HOST_WORD = regex(r"(?=[\w.-]*[A-Za-z])[\w-][\w.-]{1,100}$")
_WORKER = regex(r"(?i)(?:worker|rank|task|process|proc|trainer)[-_]?(\d{1,6})$")
_RANKS = regex(r"\[?\d{1,6}(?:(?:-|\.\.|,)\d{1,6}){0,63}\]?$")
_NUMBERED = regex(r"(?=.*[A-Za-z]).*\d")
TABLE_LINES = 4_096


def tabled_hosts(scene: Scene, ranks: set[int]) -> dict[int, str]:
    """Hosts of the given ranks as a list of hosts tells, of rows like `worker-3 gpu-12 10.0.0.7`."""
    found: dict[int, str] = {}
    for reading in scene.readings:
        rows: list[list[str]] = []
        for line in reading.lines[:TABLE_LINES]:
            if (row := line.text.split()) and not _is_row(row):
                rows.clear()
                break
            rows += [row] if row else []
        if len(rows) < 2:
            continue
        for row in rows:
            number = next((int(match[1]) for cell in row if (match := _WORKER.match(cell))), None)
            names = [cell for cell in row if not _ADDRESS.match(cell) and not _WORKER.match(cell)]
            if number in ranks and number is not None and names:
                found.setdefault(number, names[0])
    return found


# What each task of `srun --label hostname`, or of `mpirun --tag-output hostname`, printed.
_TASK_ROW = regex(
    r"\s{0,8}(?:(?P<task>\d{1,6})|\[\d{1,6},(?P<tagged>\d{1,6})\](?:<stdout>)?): ?"
    r"(?P<host>(?=[\w.-]*[A-Za-z])(?=[\w.-]*\d)[\w.-]{2,200})$"
)
LEAST_TASKS, LEAST_MACHINES = 4, 2


def hosts_of_tasks(scene: Scene, world: int | None) -> dict[int, str]:
    """Hosts of all ranks, where rows below one another hold but the number of each and a host's name."""
    for reading in scene.readings:
        rows: dict[int, str] = {}
        for line in reading.lines[:TABLE_LINES]:
            row = _TASK_ROW.match(line.text[:240]) if ":" in line.text[:24] else None
            if row is not None and is_host(row["host"]):
                rows.setdefault(int(row["task"] or row["tagged"]), row["host"])
            elif rows and _are_of_all(rows, world):
                return rows
            else:
                rows = {}
        if _are_of_all(rows, world):
            return rows
    return {}


def _are_of_all(rows: Mapping[int, str], world: int | None) -> bool:
    is_whole = len(rows) >= LEAST_TASKS and max(rows) + 1 == len(rows) and world in (None, len(rows))
    return is_whole and len(set(rows.values())) >= LEAST_MACHINES


def _is_row(cells: list[str]) -> bool:
    if not 2 <= len(cells) <= 4 or sum(_ADDRESS.match(cell) is not None for cell in cells) != 1:
        return False
    return all(_ADDRESS.match(cell) or _HOST_WORD.match(cell) for cell in cells)


def tabled_addresses(scene: Scene) -> dict[str, str]:
    """Hosts by their addresses, as a list tells both, of those names alone that the job's own lines say.

    Its rows may say the ranks of each as well, `cn-3  10.0.0.7  16-23`, below the names of the columns.
    """
    found: dict[str, str] = {}
    for reading in scene.readings:
        rows = dict(_addressed(reading))
        if len(rows) > 1 and len(set(rows.values())) == len(rows):
            found |= rows
    if not found:
        return {}
    said = {
        name
        for reading in scene.readings
        if reading.source.role in JOB_ROLES and len(reading.lines) > len(found) + 1
        for line in reading.lines
        for name in found.values()
        if name in line.text[:400]
    }
    return {address: name for address, name in found.items() if name in said}


def _addressed(reading: Reading) -> Iterator[tuple[str, str]]:
    """Address and name of each row of a file that is such a list; nothing where it is none."""
    rows: list[tuple[str, str]] = []
    for at, line in enumerate(reading.lines[:TABLE_LINES]):
        cells = [cell for cell in line.text[:400].replace("|", " ").replace(",", " ").split() if cell]
        addresses = [cell for cell in cells if _ADDRESS.match(cell)]
        rest = [cell for cell in cells if not _ADDRESS.match(cell)]
        names = [cell for cell in rest if _HOST_WORD.match(cell) and _NUMBERED.match(cell)]
        others = [cell for cell in rest if cell not in names and not _RANKS.match(cell)]
        if not cells or (not rows and at == 0 and not addresses):
            continue  # the names of its columns
        if len(addresses) != 1 or len(names) != 1 or others:
            return
        rows.append((addresses[0], names[0]))
    yield from rows
