"""The condition Consolidatable, written where no Karpenter does it, in virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, cast

import anyio
import msgspec
import pytest

from podium.client.informer_set import InformerSet
from podium.client.session import ApiSession
from podium.objects.api_errors import Forbidden
from podium.objects.times import format_time
from podium.provisioner.controller.consolidatable import GRACE_S, ConsolidatableWriter
from podium.provisioner.controller.watched import WATCHED, WatchedCluster
from tests.unit.provisioner.clusters import Document, managed_node, node_claim, node_pool, pod
from tests.virtual_time import START_S, VIRTUAL_TIME, LoopClock

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


class Api:
    """A watch, and what is written: each at which time."""

    def __init__(self, *documents: Document) -> None:
        self.clock = LoopClock()
        self.writes: list[tuple[float, list[Mapping[str, Any]]]] = []
        self.refusals = 0
        self._informers = InformerSet(cast(ApiSession, None), clock=self.clock, random=Random(0))
        self.watched = WatchedCluster(self._informers, self.clock)
        for kind in WATCHED.values():
            self._informers.informer(kind).set_synced()
        self.claim: Document = {}
        for document in documents:
            self.see(document)

    def see(self, document: Document) -> None:
        if document["kind"] == "NodeClaim":
            self.claim = document
        resource = WATCHED[document["kind"]]
        self._informers.informer(resource).put(msgspec.convert(document, resource.type))

    async def patch(self, resource: Any, item: Any, change: Mapping[str, Any], subresource: str = "") -> Any:
        assert subresource == "status"
        self.writes.append((self.clock.monotonic(), change["status"]["conditions"]))
        if self.refusals:
            self.refusals -= 1
            raise Forbidden("no")
        self.see({**self.claim, "status": {**self.claim["status"], **change["status"]}})

    async def run(self, seconds: float) -> None:
        writer = ConsolidatableWriter(cast(Any, self), self.watched, self.clock)
        async with anyio.create_task_group() as group:
            group.start_soon(writer.run)
            await anyio.sleep(seconds)
            group.cancel_scope.cancel()


def cluster(consolidate_after: str = "100s", **status: Any) -> list[Document]:
    claim = node_claim("n1")
    conditions = [
        {"type": kind, "status": "True", "reason": kind, "message": "m", "lastTransitionTime": format_time(START_S)}
        for kind in ("Launched", "Registered", "Initialized")
    ]
    claim["metadata"]["uid"] = "c1"
    claim["status"] |= {"conditions": conditions, "nodeName": "n1", **status}
    pool = node_pool(disruption={"consolidateAfter": consolidate_after})
    return [pool, claim, managed_node("n1")]


async def test_it_is_written_when_it_is_due_and_nobody_has_done_it(anyio_backend: object) -> None:
    api = Api(*cluster(lastPodEventTime=format_time(START_S)))
    await api.run(300.0)
    ((time_s, conditions),) = api.writes
    assert 100.0 + GRACE_S <= time_s <= 100.0 + GRACE_S + 4.0
    assert [condition["type"] for condition in conditions] == [
        "Launched",
        "Registered",
        "Initialized",
        "Consolidatable",
    ]
    assert conditions[0]["message"] == "m"
    assert (conditions[3]["status"], conditions[3]["reason"]) == ("True", "Consolidatable")


async def test_a_karpenter_that_does_it_is_left_alone() -> None:
    api = Api(*cluster("0s", lastPodEventTime=format_time(START_S)))
    condition = {"type": "Consolidatable", "status": "True"}
    api.see(
        {**api.claim, "status": {**api.claim["status"], "conditions": [*api.claim["status"]["conditions"], condition]}}
    )
    await api.run(120.0)
    assert api.writes == []


async def test_a_pod_takes_it_back_and_a_refusal_is_tried_again() -> None:
    api = Api(*cluster("0s"))
    api.refusals = 1
    async with anyio.create_task_group() as group:
        group.start_soon(api.run, 60.0)
    assert len(api.writes) == 2
    api.see({**api.claim, "metadata": {**api.claim["metadata"]}})
    pool = node_pool(disruption={"consolidateAfter": "1h"})
    api.see(pool)
    api.see(pod("web", node="n1"))
    await api.run(60.0)
    assert [condition["type"] for condition in api.writes[-1][1]] == ["Launched", "Registered", "Initialized"]
