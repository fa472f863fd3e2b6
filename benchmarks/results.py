"""What the measurements have left in files, one for each kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from benchmarks.burst import Burst
from benchmarks.estimates import Estimates
from benchmarks.in_process import Rate
from benchmarks.measure import Run
from benchmarks.million import ClusterCost
from benchmarks.provisioning import Planned
from benchmarks.shards import DividedBurst
from benchmarks.start_up import StartUp
from benchmarks.storm import Phase
from benchmarks.subsystems import Cost

DIRECTORY: Final = Path(__file__).parent / "results"


class Results(Struct, kw_only=True):
    """Where, and by which command."""

    machine: dict[str, Any]
    command: str


class ApiServerResults(Results, kw_only=True):
    """`api-server.json`, `gangs.json` and `peer.json`."""

    runs: list[Run]


class Rates(Results, kw_only=True):
    """`in-process.json`, `policies.json` and `growth.json`."""

    rates: list[Rate]


class Starts(Results, kw_only=True):
    """`start-up.json`."""

    starts: list[StartUp]


class Storms(Results, kw_only=True):
    """`storm.json`."""

    phases: list[Phase]


class Bursts(Results, kw_only=True):
    """`burst.json`."""

    bursts: list[Burst]


class ClusterCosts(Results, kw_only=True):
    """`million.json`."""

    costs: list[ClusterCost]


class DividedBursts(Results, kw_only=True):
    """`shards.json`."""

    bursts: list[DividedBurst]


class SubsystemCosts(Results, kw_only=True):
    """`subsystems.json`."""

    costs: list[Cost]


class EstimatorResults(Results, kw_only=True):
    """`estimator.json`."""

    estimates: list[Estimates]


class ProvisioningResults(Results, kw_only=True):
    """`provisioning.json`."""

    plans: list[Planned]


class ResultsError(Exception):
    """There is nothing, or nothing of use, in the files."""


ResultsT = TypeVar("ResultsT", bound=Results)


def read(path: Path, kind: type[ResultsT]) -> ResultsT | None:
    """None where nothing was measured. Raises: ResultsError."""
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except msgspec.DecodeError as error:
        raise ResultsError(f"{path.name} is not what is measured now, measure again: {error}") from error


def write(path: Path, content: dict[str, Any]) -> None:
    """Makes the directory, too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")
