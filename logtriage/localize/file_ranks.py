"""The global ranks of files whose names tell none or a local one: by their lines, or by their launcher."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from logtriage.intake.reading import Reading
from logtriage.localize.exits import Exit
from logtriage.localize.processes import OF_COMMUNICATOR
from logtriage.localize.rosters import COUNTED_PROCESS
from logtriage.localize.scene import Scene
from logtriage.model import JOB_ROLES, Source
from logtriage.regex import regex
from logtriage.rulebank.rule import Mark


def ranks_of_files(scene: Scene, exits: Sequence[Exit]) -> dict[str, int]:
    """Rank by file, where one process wrote it; what its own lines say counts most."""
    told = _numbered(scene) | _of_one_machine(scene) | _counted(scene) | _alone(scene) | _keyed(scene)
    return told | _communicating(scene) | _reported(scene.sources, exits) | _said(scene)


_NUMBER = regex(r"(?<!\d)\d{1,5}(?!\d)")
_LABEL = regex(
    r"(?i)(?<![A-Za-z])(?:trainer|worker|proc|process|replica|member|learner|participant|peer|task)"
    r"(?:[-_ =:#]{1,2}|\[)(\d{1,5})(?=[\])}>,:;| ]|$)"
)
LABEL_WIDTH = 140  # characters of a line in which its writer's label may stand
LABELLED_SHARE = 0.2  # of a file's lines are so


def _numbered(scene: Scene) -> dict[str, int]:
    """Files whose numbers are those of their writers: `log_5.err` beside seven whose lines say so.

    Most of them say it, in the words of a library (`[Rank 3]`) or by a label of their own (`[Trainer-3]`),
    and none says otherwise; what the others do not say follows.
    """
    families: dict[str, dict[str, int]] = defaultdict(dict)
    owns: dict[str, set[int]] = {}
    for reading in scene.readings:
        source = reading.source
        stem = source.file.rpartition(".")[0] or source.file
        numbers = [*_NUMBER.finditer(stem.rpartition("/")[2])]
        if source.role not in JOB_ROLES or len(numbers) != 1:
            continue
        if source.rank is not None or source.local_rank is not None or source.host is not None:
            continue
        families[_NUMBER.sub("#", stem)][source.file] = int(numbers[0][0])
        named = {line.rank for line in reading.lines if line.rank is not None}
        owns[source.file] = named or _labelled(reading)
    found: dict[str, int] = {}
    for files in families.values():
        telling = {file for file in files if owns[file]}
        said = {files[file] for file in telling}
        numbers_told = set(files.values())
        agree = all(owns[file] == {files[file]} for file in telling)
        if agree and len(said) > 1 and 2 * len(said) > len(numbers_told) == max(numbers_told) + 1:
            found |= files
    return found


def _labelled(reading: Reading) -> set[int]:
    """The numbers of the labels that a file's lines begin with, where enough of them have one."""
    named = [
        {int(number) for number in _LABEL.findall(line.text[:LABEL_WIDTH])} for line in reading.lines[:240]
    ]
    often = sum(map(bool, named)) >= max(1.0, LABELLED_SHARE * len(named))
    return set[int]().union(*named) if often else set()


def _counted(scene: Scene) -> dict[str, int]:
    """Ranks of files that nothing else tells, in each of which one process says which of how many it is."""
    told: dict[str, tuple[int, int]] = {}
    for reading in scene.readings:
        source = reading.source
        if source.role not in JOB_ROLES or source.rank is not None or source.local_rank is not None:
            continue
        lines = [line for line in reading.lines if "rocess" in line.text[:400]]
        said = [found for line in lines if (found := COUNTED_PROCESS.search(line.text[:400])) is not None]
        if len(own := {(int(found["rank"]), int(found["size"])) for found in said}) == 1:
            told[source.file] = own.pop()
    ranks, sizes = {rank for rank, _ in told.values()}, {size for _, size in told.values()}
    if len(ranks) < len(told) or len(sizes) != 1 or len(told) < 2 or max(ranks) >= max(sizes):
        return {}
    return {file: rank for file, (rank, _) in told.items()}


_WORLD = regex(r"(?i)\b(?:rank_size|world[_ ]?size|nranks|num_processes)\b\W{1,4}(\d{1,6})\b")
WORLD_LINES = 40  # at the head of a file


def _of_one_machine(scene: Scene) -> dict[str, int]:
    """Files of the devices 0 to n - 1 of one machine, each of which says that n processes are all."""
    files: dict[str, int] = {}
    worlds: set[int] = set()
    for reading in scene.readings:
        source = reading.source
        if source.local_rank is None or source.role not in JOB_ROLES:
            continue
        heads = (line.text[:400] for line in reading.lines[:WORLD_LINES])
        said = {int(world[1]) for head in heads if (world := _WORLD.search(head)) is not None}
        if source.host is not None or source.rank is not None or len(said) != 1:
            return {}
        files[source.file] = source.local_rank
        worlds |= said
    return files if worlds == {len(files)} and sorted(files.values()) == list(range(len(files))) else {}


def _communicating(scene: Scene) -> dict[str, int]:
    """Ranks of files that are not named after one: the one that NCCL tells in each, of the largest group.

    Of a large file that all ranks of a machine fill, one alone may have joined where it was read.
    """
    told: dict[str, set[tuple[int, int]]] = {}
    for reading in scene.readings:
        source = reading.source
        if source.role not in JOB_ROLES or source.rank is not None or _is_of_several(reading):
            continue
        told[source.file] = {
            (int(found[2]), int(found[1]))
            for line in reading.lines
            if " nranks " in line.text and (found := OF_COMMUNICATOR.search(line.text[:1000])) is not None
        }
    world = max((size for each in told.values() for size, _ in each), default=0)
    ranks = {file: [rank for size, rank in each if size == world] for file, each in told.items()}
    alone = {file: own[0] for file, own in ranks.items() if len(own) == 1}
    return alone if len(set(alone.values())) == len(alone) > 1 else {}


def _is_of_several(reading: Reading) -> bool:
    """Whether NCCL speaks for several processes of a file, or its lines for several ranks."""
    processes = {line.pid for line in reading.lines if line.pid is not None and " NCCL " in line.text[:200]}
    if len(processes) > 1:
        return True
    named = Counter(line.rank for line in reading.lines if line.rank is not None)
    return sum(times >= KEYED for times in named.values()) > 1


_KEY = regex(r"(?:^|[ ,|;(\[{])\"?(?:global_)?rank\"?[ =:]{1,2}(\d{1,6})(?=$|[ ,|;)\]}]|: )", re.IGNORECASE)
KEYED = 10  # so many lines of a file …
KEYED_SHARE = 0.3  # … and this share of them name the same rank, and no line another


def _keyed(scene: Scene) -> dict[str, int]:
    """Ranks of files that nothing else tells, where each file's lines name one rank, its own."""
    found: dict[str, int] = {}
    for reading in scene.readings:
        source = reading.source
        if source.role not in JOB_ROLES or source.rank is not None or source.local_rank is not None:
            continue
        # A library's heads (`[rank3]:`) tell the rank of some lines: those of another one, of a gathered log.
        headed = {line.rank for line in reading.lines if line.rank is not None}
        texts = [line.text[:1000] for line in reading.lines if "rank" in line.text or "RANK" in line.text]
        named = [int(rank) for text in texts for rank in _KEY.findall(text)]
        often = len(named) >= max(KEYED, KEYED_SHARE * len(reading.lines))
        if often and len(own := headed | set(named)) == 1:
            found[source.file] = own.pop()
    return found if len(set(found.values())) == len(found) > 1 else {}


LEAST_STEPS = 4


def _alone(scene: Scene) -> dict[str, int]:
    """Whose the only log is, if each of its steps names one rank that is not the first.

    The first rank often reports for all of them; another one writes its own file.
    """
    files = [reading.source for reading in scene.readings if reading.source.role in JOB_ROLES]
    if len(files) != 1 or files[0].rank is not None or files[0].local_rank is not None:
        return {}
    steps = {sign.line.number: sign.line for sign in scene.marked(Mark.STEP)}
    if len(steps) < LEAST_STEPS or any(line.rank is not None for line in scene.lines(files[0].file)):
        return {}
    named = [_KEY.findall(line.text[:1000]) for line in steps.values()]
    own = {int(each[0]) if len(each) == 1 else 0 for each in named}
    return {files[0].file: own.pop()} if len(own) == 1 and 0 not in own else {}


_OWN_RANK = regex(r"\[[Rr]ank[ _:=-]?(\d{1,6})\]")


def _said(scene: Scene) -> dict[str, int]:
    """Ranks that the lines of files in a launcher's folders say, where the name tells a local one alone."""
    found: dict[str, int] = {}
    for reading in scene.readings:
        if reading.source.local_rank is None or reading.source.host is not None:
            continue
        heads = [line.text[:120] for line in reading.lines]
        heads = [head for head in heads if "ProcessGroup" not in head]  # such a group counts its own members
        said = [own[1] for head in heads if (own := _OWN_RANK.search(head)) is not None]
        if len(said) >= 3 and len(set(said)) == 1:
            found[reading.source.file] = int(said[0])
    return found


def _reported(sources: Sequence[Source], exits: Sequence[Exit]) -> dict[str, int]:
    """Global ranks of files that only show a local rank, by what that node's launcher reported.

    torchrun's log folders are named by local rank; its failure report gives `rank : 2 (local_rank: 0)`
    and the host, so a whole node's offset follows from one entry.
    """
    host_of_file = {source.file: source.host for source in sources}
    shifts: dict[str, Counter[int]] = defaultdict(Counter)
    for exit_ in exits:
        if exit_.rank is None or exit_.local_rank is None:
            continue
        for node in {exit_.host, host_of_file.get(exit_.line.file), _folder(exit_.line.file)} - {None, ""}:
            shifts[str(node)][exit_.rank - exit_.local_rank] += 1
    found: dict[str, int] = {}
    for source in sources:
        if source.local_rank is None:
            # A number below the first rank of its node can only be a local one.
            number = source.rank
            node = next(
                (each for each in (source.host, _folder(source.file)) if each and each in shifts), None
            )
            if node is not None and number is not None:
                first = shifts[node].most_common(1)[0][0]
                found |= {source.file: first + number} if number < first else {}
            continue
        for node in (source.host, _folder(source.file)):
            if node and node in shifts:
                found[source.file] = source.local_rank + shifts[node].most_common(1)[0][0]
                break
        else:
            if source.rank is not None:
                found[source.file] = source.rank
    return found


def _folder(file: str) -> str:
    return file.split("/", 1)[0] if "/" in file else ""
