"""Both loops, a scheduler, lost answers and killed processes, in virtual time from one seed."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import anyio
import pytest

from podium.objects.api_errors import Forbidden, OutcomeUnknown
from podium.objects.requests import whole_amounts
from tests.unit.provisioner.clusters import Document, pod
from tests.unit.provisioner.controller.bench import Bench, World, on_demand_pool
from tests.virtual_time import VIRTUAL_TIME

pytestmark = pytest.mark.anyio

POD_MILLI = 1000
QUIET_S = 200.0


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


class Load:
    """Pods that come and go, and a scheduler that places them wherever there is room."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._count = 0

    def come(self, bench: Bench, count: int) -> None:
        for _ in range(count):
            bench.put(pod(f"web-{self._count}", cpu=f"{POD_MILLI}m", memory="10Mi"))
            self._count += 1

    def go(self, bench: Bench, random: Random) -> None:
        for document in self._of("Pod"):
            if random.random() < 0.5:
                bench.drop(document)

    def schedule(self, bench: Bench) -> None:
        """Place every pod that fits somewhere; those of nodes that went wait again."""
        nodes = {node["metadata"]["name"]: node for node in self._of("Node")}
        pod_counts = Counter(pod["spec"]["nodeName"] for pod in self._of("Pod"))
        for document in self._of("Pod"):
            if document["spec"]["nodeName"] in nodes:
                continue
            name = next((name for name, node in nodes.items() if pod_counts[name] < room(node)), "")
            pod_counts[name] += 1
            if name or document["spec"]["nodeName"]:
                bench.drop(document)
                fresh = pod(document["metadata"]["name"], cpu=f"{POD_MILLI}m", memory="10Mi", node=name)
                bench.put(fresh)

    def waiting(self) -> list[str]:
        nodes = {node["metadata"]["name"] for node in self._of("Node")}
        return [pod["metadata"]["name"] for pod in self._of("Pod") if pod["spec"]["nodeName"] not in nodes]

    def room_left(self) -> dict[str, int]:
        """By node, how many more pods it would take."""
        pod_counts = Counter(pod["spec"]["nodeName"] for pod in self._of("Pod"))
        return {name: room(node) - pod_counts[name] for node in self._of("Node") for name in [node["metadata"]["name"]]}

    def _of(self, kind: str) -> list[Document]:
        return [document for (document_kind, _), document in self._world.documents.items() if document_kind == kind]


def room(node: Document) -> int:
    return whole_amounts(node["status"]["allocatable"], "allocatable")["cpu"] // POD_MILLI


def disturb(world: World, random: Random) -> None:
    """One of the things that go wrong."""
    world.lag_s = random.choice([0.0, 0.5, 3.0, 8.0])
    errors: Any = random.choice([[], [OutcomeUnknown("lost")], [Forbidden("no"), OutcomeUnknown("lost")]])
    (world.loses if random.random() < 0.5 else world.refusals).extend(errors)


@pytest.mark.parametrize("seed", range(8))
async def test_every_pod_gets_a_node_nothing_is_bought_twice_and_nothing_stays_empty(
    anyio_backend: object, seed: int
) -> None:
    random, world = Random(seed), World()
    load = Load(world)
    for process in range(4):
        bench = Bench(world)
        if not process:
            bench.put(on_demand_pool())
        is_last = process == 3
        async with bench.running(disrupts=True):
            for _ in range(random.randint(2, 6)):
                disturb(world, random)
                if random.random() < 0.6:
                    load.come(bench, random.randint(1, 12))
                else:
                    load.go(bench, random)
                for _ in range(random.randint(1, 40)):
                    await anyio.sleep(0.5)
                    load.schedule(bench)
            if is_last:
                world.loses.clear()
                world.refusals.clear()
                for _ in range(round(QUIET_S)):
                    await anyio.sleep(1.0)
                    load.schedule(bench)
    assert load.waiting() == []
    assert max(Counter(world.creations).values(), default=1) == 1
    free_places = load.room_left()
    # Consolidated: no node is empty, and two nodes that have room could not be one.
    assert all(count < 3 for count in free_places.values())
