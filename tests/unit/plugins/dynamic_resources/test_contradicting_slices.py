"""Slices that contradict each other keep nobody from devices that others offer."""

from __future__ import annotations

from typing import Any

import pytest

from podium.engine.cluster import Cluster
from podium.framework.contract.status import ScheduleError
from tests.device_manifests import (
    GPU_DRIVER,
    NIC_DRIVER,
    claiming,
    device,
    device_class,
    devices,
    exactly,
    resource_claim,
    resource_slice,
)
from tests.manifests import Json, node, pod

ALL = {"allocationMode": "All"}
GOOD = resource_slice("good", devices(2), node="n2")
COUNTERS = [{"name": "set", "counters": {"memory": {"value": "8Gi"}}}]
CONSUMES = [{"counterSet": "set", "counters": {"memory": {"value": "8Gi"}}}]


def node_of_pod(*objects: Any, **request: Any) -> str | None:
    claim = resource_claim("c", exactly(**request))
    asking = pod("p", scheduler="default-scheduler", resourceClaims=claiming("c"))
    cluster = Cluster.load([node("n1"), node("n2"), device_class("gpu"), claim, *objects])
    return cluster.place(asking).node


def twice(driver: str = GPU_DRIVER, node: str | None = "n1", pool: str = "bad") -> list[Any]:
    return [
        resource_slice(f"{name}-{driver}", devices(1), node=node, pool=pool, driver=driver, slices=2) for name in "ab"
    ]


def admitted_slice(resource_slice: Json) -> Json:
    """The slice as one that an API server has let in: of a new one podium refuses what API servers do today."""
    return {**resource_slice, "metadata": {**resource_slice["metadata"], "uid": "admitted"}}


CONTRADICTIONS = {
    "a device twice": twice(),
    "a device twice in a slice": [admitted_slice(resource_slice("a", [*devices(1), *devices(1)], node="n1"))],
    "more slices than announced": [
        resource_slice("a", devices(1), node="n1", pool="bad"),
        resource_slice("b", devices(1, "other"), node="n1", pool="bad"),
    ],
    "two counts": [
        resource_slice("a", devices(1), node="n1", pool="bad", slices=3),
        resource_slice("b", devices(1, "other"), node="n1", pool="bad", slices=4),
    ],
    "no such counter": [resource_slice("a", [device("gpu-0", consumesCounters=CONSUMES)], node="n1")],
}


@pytest.mark.parametrize("slices", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
@pytest.mark.parametrize("request_", [{}, ALL], ids=["one", "all"])
def test_a_claim_gets_the_devices_of_another_node(slices: list[Any], request_: dict[str, Any]) -> None:
    assert node_of_pod(*slices, GOOD, **request_) == "n2"


@pytest.mark.parametrize("slices", [twice(NIC_DRIVER, None), twice(NIC_DRIVER, "n2", "n2")], ids=["of all", "of one"])
def test_a_claim_for_all_devices_does_not_need_the_pools_of_a_driver_that_its_class_excludes(slices: list[Any]) -> None:
    assert node_of_pod(*slices, GOOD, **ALL) == "n2"


def test_nor_if_that_driver_publishes_half_of_a_pool() -> None:
    half = resource_slice("half", devices(1), pool="half", driver=NIC_DRIVER, slices=2)
    assert node_of_pod(half, GOOD, **ALL) == "n2"


def test_a_claim_that_no_node_can_satisfy_fails_as_upstream_says() -> None:
    problem = "asks for all devices, but resource pool gpu.example.com/bad is currently invalid"
    with pytest.raises(ScheduleError, match=problem):
        node_of_pod(*twice(), **ALL)


def test_a_driver_that_is_about_to_publish_more_is_waited_for() -> None:
    half = resource_slice("half", devices(1), node="n1", pool="half", slices=2)
    with pytest.raises(ScheduleError, match=r"resource pool gpu\.example\.com/half is currently being updated"):
        node_of_pod(half, GOOD, **ALL)


def test_a_pool_of_another_driver_with_the_same_name_takes_no_counters() -> None:
    part = device("gpu-0", consumesCounters=CONSUMES)
    slices = [
        resource_slice(f"{driver}-{kind}", slice_devices, node="n1", driver=driver, slices=2, **fields)
        for driver in (GPU_DRIVER, NIC_DRIVER)
        for kind, slice_devices, fields in (("sets", [], {"sharedCounters": COUNTERS}), ("parts", [part], {}))
    ]
    double_claim = resource_claim("both", exactly("gpu"), exactly("nic", "nic"))
    asking = pod("p", scheduler="default-scheduler", resourceClaims=claiming("both"))
    cluster = Cluster.load([node("n1"), device_class("gpu"), device_class("nic"), double_claim, *slices])
    assert cluster.place(asking).node == "n1"
