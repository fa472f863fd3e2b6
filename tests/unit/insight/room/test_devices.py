"""Moves that free claimed devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from podium.insight.room.plan import Verdict
from tests.device_manifests import device_class, devices, exactly, held_claim, resource_claim, resource_slice
from tests.manifests import Json, node, pod
from tests.unit.insight.room.test_make_room import room_for, running, steps_of, waiting
from tests.workload_manifests import SCHEDULER, claims_from, device_claim_template, ready

CLUSTER = [device_class(), *(device_claim_template(f"gpu-{count}", exactly(count=count)) for count in (1, 2, 3))]


def gpu_node(name: str, count: int, cpu: str = "8") -> list[Json]:
    return [node(name, cpu), resource_slice(f"{name}-gpus", devices(count), node=name)]


def holder(name: str, node_name: str, device_numbers: Sequence[int], **fields: Any) -> list[Json]:
    """A pod of a ReplicaSet with its own claim, which has these devices of its node."""
    template = f"gpu-{len(device_numbers)}"
    item = running(name, "1", node_name, resourceClaims=claims_from(template), **fields)
    claim = held_claim(f"{name}-claim", {node_name: [f"gpu-{number}" for number in device_numbers]}, [name])
    claim["spec"]["devices"]["requests"] = [exactly(count=len(device_numbers))]
    reference = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-{name}", "controller": True}
    claim["metadata"]["ownerReferences"] = [reference]
    item["metadata"]["uid"] = f"uid-{name}"
    item["status"]["resourceClaimStatuses"] = [{"name": template, "resourceClaimName": f"{name}-claim"}]
    return [item, claim]


def asking(count: int) -> Json:
    return waiting("1", resourceClaims=claims_from(f"gpu-{count}"))


def test_a_pod_moves_with_its_claim_so_that_its_devices_are_free() -> None:
    objects = [*CLUSTER, *gpu_node("n1", 3), *gpu_node("n2", 1), *holder("web-1", "n1", [0])]
    answer = room_for(*objects, asking(3))
    assert steps_of(answer) == [("web-1", "n1", "n2")]
    assert answer.plan is not None
    assert answer.plan.nodes == {"default/big": "n1"}
    assert answer.is_proven


def test_pods_move_in_a_chain_where_each_needs_the_devices_of_the_next() -> None:
    objects = [*CLUSTER, *gpu_node("n1", 3), *gpu_node("n2", 2), *gpu_node("n3", 1)]
    objects += [*holder("web-1", "n1", [0, 1]), *holder("api-1", "n2", [0])]
    answer = room_for(*objects, asking(3))
    assert steps_of(answer) == [("api-1", "n2", "n3"), ("web-1", "n1", "n2")]
    assert answer.is_proven


def test_no_move_helps_where_devices_are_needed_that_no_other_node_has() -> None:
    objects = [*CLUSTER, *gpu_node("n1", 3), node("n2", "8"), *holder("web-1", "n1", [0])]
    answer = room_for(*objects, asking(3))
    assert answer.verdict is Verdict.IMPOSSIBLE
    assert answer.is_proven


def test_selectors_tell_devices_apart() -> None:
    model = 'device.attributes["gpu.example.com"].?model.orValue("") == "a"'
    kinds = [*devices(1, "a", attributes={"model": "a"}), *devices(1, "b", attributes={"model": "b"})]
    objects = [
        *CLUSTER,
        device_claim_template("model-a", exactly("gpu", "gpu", model)),
        node("n1", "8"),
        resource_slice("n1-gpus", kinds, node="n1"),
        *gpu_node("n2", 1),
        *holder("web-1", "n1", [0]),
    ]
    holding_claim = next(item for item in objects if item["kind"] == "ResourceClaim")
    holding_claim["status"]["allocation"]["devices"]["results"][0]["device"] = "a-0"
    answer = room_for(*objects, waiting("1", resourceClaims=claims_from("model-a")))
    assert steps_of(answer) == [("web-1", "n1", "n2")]


def test_a_claim_that_outlives_its_pod_keeps_its_devices() -> None:
    item = running("web-1", "1", "n1", resourceClaims=[{"name": "gpu", "resourceClaimName": "shared"}])
    item["metadata"]["uid"] = "uid-web-1"
    common_claim = held_claim("shared", {"n1": ["gpu-0"]}, ["web-1"])
    answer = room_for(*CLUSTER, *gpu_node("n1", 3), *gpu_node("n2", 1), item, common_claim, asking(3))
    assert answer.plan is None


def test_a_request_for_all_devices_is_no_number_and_nothing_is_proven_about_it() -> None:
    every_device = device_claim_template("gpu-all", exactly(allocationMode="All"))
    objects = [*CLUSTER, every_device, *gpu_node("n1", 3), *gpu_node("n2", 1), *holder("web-1", "n1", [0])]
    objects += [resource_claim("unused", exactly()), *holder("api-1", "n2", [0])]
    answer = room_for(*objects, waiting("1", resourceClaims=claims_from("gpu-all")))
    assert answer.plan is None
    assert not answer.is_proven


@pytest.mark.parametrize(
    "request_of",
    [
        {"name": "gpu", "firstAvailable": [{"name": "one", "deviceClassName": "gpu", "count": 2}]},
        exactly(count=2, capacity={"requests": {}}),
    ],
    ids=["first available", "capacity"],
)
def test_other_requests_are_judged_by_the_devices_that_are_free_now(request_of: Json) -> None:
    template = device_claim_template("gpu-odd", request_of)
    odd = waiting("1", resourceClaims=claims_from("gpu-odd"))
    objects = [
        *CLUSTER,
        template,
        node("n3", "8"),
        *gpu_node("n1", 2),
        *gpu_node("n2", 2),
        *holder("web-1", "n1", [0, 1]),
    ]
    # Devices are free on n2 only, where another pod has all the cores.
    answer = room_for(*objects, running("api-1", "8", "n2"), odd)
    assert steps_of(answer) == [("api-1", "n2", "n3")]
    # Those of n1 would be free if web-1 moved; nothing is proven about it.
    answer = room_for(*objects, pod("bare", "8", node="n2", scheduler=SCHEDULER, status=ready()), odd)
    assert (answer.plan, answer.is_proven) == (None, False)
