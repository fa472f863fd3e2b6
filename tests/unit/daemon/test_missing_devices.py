"""What a running podium says about devices that are missing."""

from __future__ import annotations

from typing import Any

import pytest

from podium.daemon.missing_devices import MissingDevices
from podium.daemon.recorder_pages import RecorderPages
from podium.devices.refusals import NodeRefusal
from podium.engine.cluster import Cluster
from podium.engine.device_refusals import DeviceGroup
from podium.lib.clock import ManualClock
from podium.objects.core import Node, Pod
from podium.objects.resource_types import NODES
from tests.builders import pod as built
from tests.device_manifests import (
    claiming,
    device_class,
    devices,
    exactly,
    held_claim,
    resource_claim,
    resource_slice,
)
from tests.manifests import node, pod
from tests.unit.daemon.recorded_attempts import KnownObjects

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def cluster_with(*objects: Any) -> tuple[Cluster, Pod]:
    slices = [resource_slice(name, devices(2), node=name) for name in ("n1", "n2")]
    asking = pod("p", scheduler="default-scheduler", resourceClaims=claiming("c"))
    cluster = Cluster.load([node("n1"), node("n2"), device_class("gpu"), *slices, *objects, asking])
    return cluster, cluster.pods[-1]


def missing_in(cluster: Cluster) -> MissingDevices:
    return MissingDevices(
        lambda: {"default-scheduler": cluster.framework_for(cluster.pods[-1])},
        KnownObjects[Node](*cluster.store.objects(NODES).values()),
    )


async def test_nodes_are_explained_as_they_are_now() -> None:
    other_claims = [held_claim(f"other-{index}", {"elsewhere": ["gpu-0"]}) for index in range(1500)]
    train_claim = held_claim("train", {"n1": ["gpu-1"]}, ["trainer-0"])
    cluster, asking = cluster_with(resource_claim("c", exactly(count=2)), train_claim, *other_claims)
    first, two = await missing_in(cluster).on_nodes(asking, ["n1", "n2", "gone"])
    assert first.text.endswith("2 of 2 match, 1 taken, 1 free")
    assert first.nodes["n1"].details == ("gpu-1 of gpu.example.com/n1: taken by claim default/train (pod trainer-0)",)
    assert two.text.endswith("all requests can be met now")


async def test_a_profile_without_the_plugin_knows_nothing_of_devices() -> None:
    cluster, asking = cluster_with(resource_claim("c", exactly()))
    missing = MissingDevices(dict, KnownObjects[Node](*cluster.store.objects(NODES).values()))
    assert await missing.on_nodes(asking, ["n1"]) == ()


async def test_only_nodes_that_lacked_devices_are_asked_about() -> None:
    questions: list[list[str]] = []

    async def devices_of(_: Pod, names: Any) -> list[DeviceGroup]:
        questions.append(list(names))
        return [DeviceGroup("none", {name: NodeRefusal(error="none") for name in names})]

    listing: Any = None
    pages = RecorderPages(
        None, listing, KnownObjects(), KnownObjects(), ManualClock(0.0), lambda: None, devices_of=devices_of
    )
    group = {"plugin": "DynamicResources", "examples": ["n1", "n2"]}
    blockers = {"n7": [{"plugin": "DynamicResources"}]}
    why = {"groups": [group, {"plugin": "NodeResourcesFit", "examples": ["n3"]}], "blockers": blockers}
    (device_page,) = await pages._devices(built("p"), why, "n7")
    assert (questions, device_page["examples"]) == ([["n7", "n1", "n2"]], ["n7", "n1", "n2"])
    assert await pages._devices(built("p"), {"groups": [], "blockers": {}}, "") == []
