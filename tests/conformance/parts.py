"""What conformance consists of: commands, each of which fails where podium does not do what it should."""

from __future__ import annotations

import hashlib
import re
import shlex
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
DATA: Final = ROOT / "tests/parity/data"


class Part(NamedTuple):
    """One row of the report.

    Attributes:
        claim: what holds if the command succeeds.
        arguments: of Python.
        needs_control_plane: it asks binaries that are built with Go.
    """

    name: str
    claim: str
    arguments: str
    needs_control_plane: bool = False

    @property
    def command(self) -> list[str]:
        """The arguments, one by one."""
        return shlex.split(self.arguments)


_KILLS: Final = " ".join(
    f"tests/e2e/test_{name}.py"
    for name in ("bad_luck", "failover", "leader_election", "relists", "restore", "shutdown")
)

PARTS: Final = (
    Part(
        "recorded",
        "every recorded question is answered alike, by the rules of the minor that was asked",
        "-m pytest -q -n 0 tests/parity --ignore tests/parity/test_cross.py --ignore tests/parity/test_insight.py "
        "--ignore tests/parity/test_fleets.py --ignore tests/parity/test_workloads.py",
    ),
    Part(
        "new-questions",
        "new random questions are answered as kube-scheduler's own code answers them, 1.36 and 1.37",
        "-m tests.parity.cross --seed 2026 --scenarios 200",
        needs_control_plane=True,
    ),
    Part(
        "fixes",
        "proposed fixes and capacities hold when kube-scheduler's code is asked",
        "-m tests.parity.insight --seed 2026 --fixes 100 --capacities 60",
        needs_control_plane=True,
    ),
    Part(
        "fleets",
        "the clusters that take a whole workload are those in which kube-scheduler's code places it",
        "-m tests.parity.fleets --seed 2026 --count 100",
        needs_control_plane=True,
    ),
    Part(
        "simulation",
        "no invariant breaks after any step of random histories with faults and deaths",
        "-m tests.simulation --first 5001 --seeds 10 --steps 500",
    ),
    Part(
        "simulation-devices-gangs",
        "the same with devices and gangs: no device twice, no gang in part",
        "-m tests.simulation --first 5001 --seeds 6 --steps 400 --devices --gangs",
    ),
    Part(
        "kills",
        "killed, cut off or restored at any moment, the daemon binds every pod once, on a real API server",
        f"-m pytest -q -n 0 {_KILLS}",
        needs_control_plane=True,
    ),
    Part(
        "device-kills",
        "no device is given twice while podium and the API server are killed",
        "-m tests.device_kills --pods 200 --kills 6",
        needs_control_plane=True,
    ),
    Part(
        "shard-kills",
        "members of a group of shards are killed, stopped and cut off: each pod is bound once, no two act on a node",
        "-m tests.shard_kills --kills 20",
        needs_control_plane=True,
    ),
    Part("gangs", "the thorough search for gangs finds what brute force finds", "-m tests.gangs --count 200"),
    Part(
        "plans",
        "plans of nodes come true when they are carried out beside the daemon",
        "-m tests.provisioned --plans 40 --consolidations 40",
    ),
    Part("outlook", "pods run when and where their outlook says, or never", "-m tests.outlook --questions 60"),
    Part(
        "upstream-e2e",
        "Kubernetes' own end-to-end specs of scheduling pass",
        "-m tests.upstream_e2e",
        needs_control_plane=True,
    ),
)


class Corpus(NamedTuple):
    """A file of recorded questions and answers.

    Attributes:
        version: the version of what answered, if the name says it.
    """

    name: str
    version: str
    questions: int
    sha256: str


def corpora() -> list[Corpus]:
    """Return the recorded files, with their digests."""
    import gzip

    result = []
    for path in sorted(DATA.glob("*.jsonl.gz")):
        version = re.search(r"-([\d.]+)\.jsonl", path.name)
        with gzip.open(path) as lines:
            questions = sum(1 for _ in lines)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        result.append(Corpus(path.name, version[1] if version else "", questions, digest))
    return result
