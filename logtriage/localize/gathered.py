"""Files that are called after one task and hold what all say: srun's, into which daemons and tools write."""

from __future__ import annotations

from collections.abc import Sequence

from logtriage.localize.exits import Exit
from logtriage.localize.scene import Scene, Sign
from logtriage.localize.topology import Topology

# Of these a tool or a daemon of any machine can speak.
_OF_A_MACHINE = ("gpu.", "host.")


def gathering_files(scene: Scene, exits: Sequence[Exit]) -> frozenset[str]:
    """The files in which srun tells of tasks: there the machines' daemons write, too."""
    spoken_of = [each.line for each in exits] + [each.line for each in (*scene.causes, *scene.symptoms)]
    return frozenset(line.file for line in spoken_of if "srun: error:" in line.text[:200])


def files_beside(scene: Scene, gathering: frozenset[str], topology: Topology) -> frozenset[str]:
    """Those whose rank has a log of its own beside it."""
    ranks = {each.file: topology.rank_of_file.get(each.file, each.rank) for each in scene.sources}
    own = {rank for file, rank in ranks.items() if rank is not None and file not in gathering}
    return frozenset(file for file in gathering if ranks.get(file) in own)


def is_of_no_rank(sign: Sign, beside: frozenset[str]) -> bool:
    """Whether a line on a machine's fault stands in such a file, where its rank does not write."""
    of_machine = str(sign.rule.failure_type).startswith(_OF_A_MACHINE)
    return sign.line.file in beside and sign.raised is None and of_machine
