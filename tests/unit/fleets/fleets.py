"""Fleets for tests: members from manifests."""

from collections.abc import Mapping, Sequence
from typing import Any

from podium.engine.files import LocatedManifest
from podium.fleets.answers import FleetFit
from podium.fleets.loading import LoadedFleet, load_fleet
from podium.fleets.ordering import Order, Prices
from podium.fleets.search import FleetQuestion, ask_all
from podium.fleets.workload import Workload, read_workload
from tests.manifests import Json


def with_location(*manifests: Json) -> list[LocatedManifest]:
    return [LocatedManifest(manifest, "test") for manifest in manifests]


def workload_of(*manifests: Json) -> Workload:
    return read_workload(with_location(*manifests))


def fleet_of(members: Mapping[str, Sequence[Json]]) -> LoadedFleet:
    return load_fleet({name: with_location(*objects) for name, objects in members.items()})


def ask(
    members: Mapping[str, Sequence[Json]] | LoadedFleet,
    *manifests: Json,
    order: str = "emptiest",
    prices: Mapping[str, Any] | None = None,
    clusters_max: int | None = None,
) -> FleetFit:
    fleet = members if isinstance(members, LoadedFleet) else fleet_of(members)
    question = FleetQuestion(workload_of(*manifests), Order(order), Prices(prices), clusters_max)
    return ask_all(question, fleet.members, fleet.without)


def reasons(answer: FleetFit) -> dict[str, str]:
    return {cluster.cluster: cluster.reason for cluster in answer.rejections}
