"""What the provisioner says of itself: Events, and the ConfigMap."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, cast

import anyio
import pytest

from podium.binder.events.event import Event
from podium.objects.api_errors import Forbidden, NotFound
from podium.provisioner.apis.objects import ClusterObjects
from podium.provisioner.cloudprovider.catalogue import Catalogue
from podium.provisioner.controller import events
from podium.provisioner.controller.metrics import ProvisionerMetrics
from podium.provisioner.controller.status import Status
from podium.provisioner.planners.planner import Planner
from podium.provisioner.state.reading import read_objects
from podium.provisioner.state.settings import Settings
from tests.unit.provisioner.clusters import NOW, catalogue, node, node_pool, pod

pytestmark = pytest.mark.anyio


class Client:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.data: dict[str, str] = {}
        self.is_written = anyio.Event()
        self.refusals = 0

    async def read(self, *_: Any) -> Any:
        if self.refusals:
            self.refusals -= 1
            raise Forbidden("not yours")
        raise NotFound("no such ConfigMap")

    async def create(self, resource: Any, item: Any, manifest: Any) -> Any:
        self.data = dict(manifest["data"])
        self.is_written.set()


def objects() -> ClusterObjects:
    return read_objects([node_pool(), pod("web", cpu="1"), pod("huge", cpu="999")])


async def purchases_and_events(
    types: Catalogue | None, *, in_own_words: bool = False, warnings: tuple[str, ...] = ()
) -> tuple[dict[str, Any], list[Event]]:
    """Return the ConfigMap's purchases, and the Events."""
    client, events = Client(), list[Event]()
    status = Status(
        cast(Any, client),
        "kube-system",
        "podium-provisioner",
        events.append,
        ProvisionerMetrics(),
        is_real=True,
        in_own_words=in_own_words,
    )
    planner = Planner(types, Settings(), in_own_words=in_own_words)
    purchases = planner.plan(objects(), NOW)
    purchases = replace(purchases.with_id("a1b2c3"), warnings=warnings)
    status.record_plan(purchases, purchases.nodes)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(status.run)
        await client.is_written.wait()
        tasks.cancel_scope.cancel()
    return json.loads(client.data["purchases"]), events


async def test_prices_are_those_of_the_catalogue() -> None:
    purchases, _ = await purchases_and_events(catalogue())
    (bought,) = purchases["newNodes"]
    assert purchases["pricePerHour"] == bought["price"] == pytest.approx(0.14)


async def test_the_config_map_has_the_warnings_of_the_plan() -> None:
    purchases, _ = await purchases_and_events(catalogue())
    assert "warnings" not in purchases
    purchases, _ = await purchases_and_events(catalogue(), warnings=("the gang default/train does not start",))
    assert purchases["warnings"] == ["the gang default/train does not start"]


async def test_without_a_catalogue_there_are_none() -> None:
    purchases, _ = await purchases_and_events(None)
    (bought,) = purchases["newNodes"]
    assert (purchases["nodes"], purchases["pricePerHour"], bought["price"]) == (1, None, None)
    (node_plan,) = Planner(None, Settings()).plan(objects(), NOW).nodes
    assert node_plan.text == "c-2x-amd64-linux (test-zone-a, spot) of NodePool pool"
    assert "per hour" not in events.node_planned(node_plan.pods[0], node_plan).note


async def test_events_have_the_words_of_the_rules() -> None:
    for in_own_words, notes in (
        (False, {"Pod should schedule on: node/", "Failed to schedule pod, "}),
        (True, {"The pod will fit on node ", "No node that can be bought helps the pod: "}),
    ):
        _, event_list = await purchases_and_events(catalogue(), in_own_words=in_own_words)
        assert len(event_list) == len(notes)
        assert all(any(event.note.startswith(note) for event in event_list) for note in notes)
    provided_node = read_objects([node("n1")]).nodes[0]
    assert events.removing(provided_node, "Empty").note == "Disrupting Node: Empty"
    assert events.removing(provided_node, "Empty", in_own_words=True).note == "The node is being removed: Empty"
    for reason, own in (("Underutilized", "Pods fit elsewhere"), ("Drifted", "Differs from its NodePool")):
        assert events.removing(provided_node, reason).note == f"Disrupting Node: {reason}"
        assert events.removing(provided_node, reason, in_own_words=True).note == f"The node is being removed: {own}"
        assert (
            events.removal_planned(provided_node, reason, in_own_words=True).note == f"The node would be removed: {own}"
        )


async def test_log_event_and_config_map_name_the_same_plan() -> None:
    for in_own_words in (False, True):
        purchases, event_list = await purchases_and_events(catalogue(), in_own_words=in_own_words)
        assert purchases["plan"] == "a1b2c3"
        assert all(event.note.endswith(" (plan a1b2c3)") for event in event_list)
    long = events.failed_scheduling(read_objects([pod("web")]).pods[0], "no " * 1000, "a1b2c3").note
    assert (len(long.encode()), long[-15:]) == (1024, " (plan a1b2c3)"[-15:].rjust(15, "."))
    provided_node = read_objects([node("n1")]).nodes[0]
    assert events.removing(provided_node, "Empty", "a1b2c3").note == "Disrupting Node: Empty (plan a1b2c3)"


async def test_a_status_that_cannot_be_written_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podium.provisioner.controller.status._AGAIN_S", 0.01)
    client = Client()
    client.refusals = 2
    status = Status(cast(Any, client), "kube-system", "name", lambda _: None, ProvisionerMetrics(), is_real=True)
    status.record_removal(None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(status.run)
        await client.is_written.wait()
        tasks.cancel_scope.cancel()
    assert client.refusals == 0
