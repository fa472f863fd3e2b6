"""Why a pod's claims get no devices: by request, with counts, selectors and holders."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.devices import AllocatedDevices, Inventory
from podium.devices.shortages import HURRIED, Shortages
from podium.insight import Cluster
from podium.objects.claims import ResourceClaim
from podium.objects.devices import DeviceClass, ResourceSlice
from tests.device_manifests import (
    GPU_DRIVER,
    NIC_DRIVER,
    claiming,
    device,
    device_class,
    devices,
    exactly,
    held_claim,
    resource_claim,
    resource_slice,
)
from tests.manifests import Json, node, pod

MODEL = f'device.attributes["{GPU_DRIVER}"].model == "h100"'
NUMA = f"{GPU_DRIVER}/numa"
EIGHT = devices(8, attributes={"model": "a100"}, capacity={"memory": "40Gi"})
SETS = {"sharedCounters": [{"name": "set", "counters": {"memory": {"value": "8Gi"}}}]}
TAINT = {"key": "broken", "effect": "NoSchedule"}


def part(name: str, amount: str) -> Json:
    return device(name, consumesCounters=[{"counterSet": "set", "counters": {"memory": {"value": amount}}}])


def explain(*objects: Json, claims: tuple[str, ...] = ("c",), nodes: int = 1, **spec: Any) -> Any:
    cluster_objects = [*(node(f"n{index + 1}") for index in range(nodes)), device_class("gpu"), *objects]
    asking = pod("p", scheduler="default-scheduler", resourceClaims=claiming(*claims), **spec)
    return Cluster.load(cluster_objects).why(asking)


def reasons(*objects: Json, **options: Any) -> list[str]:
    """The reasons of the only group of nodes, without what all of them begin with."""
    (group,) = explain(*objects, **options).devices
    return [reason_text.partition(" asks for ")[2] or reason_text for reason_text in group.reasons]


CASES: dict[str, tuple[list[Json], Json, str]] = {
    "wrong model": (
        EIGHT,
        exactly("r", "gpu", MODEL),
        f"1 device of class gpu: 0 of 8 match, the request refuses 8 by {MODEL} (model: a100 on 8)",
    ),
    "nine of eight": (EIGHT, exactly(count=9), "9 devices of class gpu: 8 of 8 match, 8 free"),
    "no attribute": (
        devices(2),
        exactly("r", "gpu", f'device.attributes["{GPU_DRIVER}"].?model.orValue("") == "h100"'),
        (
            "1 device of class gpu: 0 of 2 match, the request refuses 2 by "
            f'device.attributes["{GPU_DRIVER}"].?model.orValue("") == "h100" (model: none on 2)'
        ),
    ),
    "too little memory": (
        EIGHT,
        exactly(capacity={"requests": {"memory": "80Gi"}}),
        "1 device of class gpu: 8 of 8 match, 8 short of memory (asks for 80Gi, has 40Gi), 0 free",
    ),
    "no such capacity": (
        EIGHT,
        exactly(capacity={"requests": {"cores": "1"}}),
        "1 device of class gpu: 8 of 8 match, 8 without capacity cores, 0 free",
    ),
    "a taint": (
        [*devices(1, taints=[TAINT]), device("good")],
        exactly(count=2),
        "2 devices of class gpu: 2 of 2 match, 1 tainted broken:NoSchedule, 1 free",
    ),
    "all, one tainted": (
        [*devices(1, taints=[TAINT]), device("good")],
        exactly(allocationMode="All"),
        "all devices of class gpu: 2 of 2 match, 1 tainted broken:NoSchedule, 1 free",
    ),
    "no devices": ([], exactly(), "1 device of class gpu: the node has no devices"),
}


@pytest.mark.parametrize(("device_list", "request_", "reason"), CASES.values(), ids=CASES)
def test_a_request_says_what_it_lacks(device_list: list[Json], request_: Json, reason: str) -> None:
    assert reasons(resource_slice("s", device_list, node="n1"), resource_claim("c", request_)) == [reason]


def test_devices_of_other_drivers_are_refused_by_the_class() -> None:
    (reason,) = reasons(resource_slice("s", devices(2), node="n1", driver=NIC_DRIVER), resource_claim("c", exactly()))
    mismatch = f'class gpu refuses 2 by device.driver == "{GPU_DRIVER}" (driver: {NIC_DRIVER} on 2)'
    assert reason == f"1 device of class gpu: 0 of 2 match, {mismatch}"


def test_holders_are_named_with_their_pods() -> None:
    slices = [resource_slice(name, EIGHT, node=name) for name in ("n1", "n2")]
    claims_in_use = [
        held_claim("train", {"n1": [f"gpu-{index}" for index in range(7)]}, ["trainer-0"]),
        held_claim("serve", {"n2": [f"gpu-{index}" for index in range(6)]}, ["web-0", "web-1"]),
        held_claim("idle", {"n2": ["gpu-7"]}),
    ]
    refusal = explain(*slices, *claims_in_use, resource_claim("c", exactly(count=2)), nodes=2)
    (group,) = refusal.devices
    text = "request gpu of claim default/c asks for 2 devices of class gpu: 8 of 8 match, 7 taken, 1 free"
    assert (group.text, group.count, group.examples) == (text, 2, ("n1", "n2"))
    assert group.nodes["n2"].details == (
        (
            f"gpu-0, gpu-1, gpu-2, gpu-3, gpu-4, gpu-5 of {GPU_DRIVER}/n2: "
            "taken by claim default/serve (pods web-0, web-1)"
        ),
        f"gpu-7 of {GPU_DRIVER}/n2: taken by claim default/idle (no pod uses it)",
    )
    (unmet,) = group.as_dict()["nodes"]["n1"]["requests"]
    assert (unmet["count"], unmet["matching"], unmet["taken"], unmet["free"]) == (2, 8, 7, 1)
    assert unmet["taken_by"][0]["claim"] == "default/train"
    assert unmet["taken_by"][0]["pods"] == ["trainer-0"]


def test_upstreams_text_stays_as_it_is() -> None:
    refusal = explain(resource_slice("s", EIGHT, node="n1"), resource_claim("c", exactly(count=9)))
    assert refusal.message.startswith("0/1 nodes are available: 1 cannot allocate all claims.")
    assert [reason_text.text for reason_text in refusal.groups] == ["cannot allocate all claims"]
    assert refusal.as_dict()["devices"][0]["examples"] == ["n1"]


def test_the_constraint_that_refuses_is_named_with_the_values_that_there_are() -> None:
    device_list = [device(f"gpu-{index}", attributes={"numa": index // 2, "model": "a100"}) for index in range(4)]
    constraints = [{"matchAttribute": f"{GPU_DRIVER}/model"}, {"matchAttribute": NUMA}]
    claim = resource_claim("c", exactly(count=3), constraints=constraints)
    _, reason = reasons(resource_slice("s", device_list, node="n1"), claim)[0].split("; ")
    assert reason == f"constraint matchAttribute {NUMA} refuses them (of the free ones: 0 on 2, 1 on 2)"


def test_a_constraint_on_values_that_have_to_differ() -> None:
    device_list = devices(4, attributes={"numa": 0})
    two = [exactly("a"), exactly("b")]
    claim = resource_claim("c", *two, constraints=[{"distinctAttribute": NUMA}])
    _, reason = reasons(resource_slice("s", device_list, node="n1"), claim)[0].split("; ")
    assert reason == f"constraint distinctAttribute {NUMA} refuses them (of the free ones: 0 on 4)"


def test_requests_that_are_too_much_only_together() -> None:
    claim = resource_claim("c", exactly("a", count=5), exactly("b", count=4))
    (group,) = explain(resource_slice("s", EIGHT, node="n1"), claim).devices
    assert group.text == (
        "request b of claim default/c asks for 4 devices of class gpu: 8 of 8 match, 8 free; "
        "too few of them are left beside the requests before it"
    )


def test_claims_that_are_too_much_only_together() -> None:
    claims = resource_claim("c", exactly(count=5)), resource_claim("d", exactly(count=4))
    (group,) = explain(resource_slice("s", EIGHT, node="n1"), *claims, claims=("c", "d")).devices
    assert group.text.startswith("request gpu of claim default/d asks for 4 devices of class gpu: ")


def test_counters_that_are_used_up() -> None:
    device_list = [part("half", "4Gi"), part("whole", "8Gi")]
    slices = [
        resource_slice("sets", [], node="n1", slices=2, **SETS),
        resource_slice("parts", device_list, node="n1", slices=2),
    ]
    claims_in_use = held_claim("train", {"n1": ["half"]}, ["trainer-0"])
    (group,) = explain(*slices, claims_in_use, resource_claim("c", exactly())).devices
    assert "1 taken, 1 in need of 8Gi of counter set/memory, 4Gi left, 0 free" in group.text
    assert group.nodes["n1"].details == (f"half of {GPU_DRIVER}/n1: taken by claim default/train (pod trainer-0)",)
    (alone,) = explain(*slices, resource_claim("c", exactly(count=2))).devices
    assert alone.text.endswith("each is free by itself, but not so many at once: they share counters")


def test_a_share_that_is_too_large_names_those_who_have_the_others() -> None:
    shared_device = device("gpu-0", capacity={"memory": "40Gi"}, allowMultipleAllocations=True)
    results = [{"request": "r", "driver": GPU_DRIVER, "pool": "n1", "device": "gpu-0"}]
    results[0] |= {"shareID": "a", "consumedCapacity": {"memory": "30Gi"}}  # type: ignore[dict-item]
    claims_in_use = resource_claim("train", exactly(), allocation={"devices": {"results": results}})
    claim = resource_claim("c", exactly(capacity={"requests": {"memory": "20Gi"}}))
    (group,) = explain(resource_slice("s", [shared_device], node="n1"), claims_in_use, claim).devices
    assert "1 short of memory (asks for 20Gi, 10Gi left), 0 free" in group.text
    assert group.nodes["n1"].details == (f"gpu-0 of {GPU_DRIVER}/n1: taken by claim default/train (no pod uses it)",)


def test_every_alternative_says_what_it_lacks() -> None:
    subrequest = {"name": "many", "deviceClassName": "gpu", "count": 9}
    big = {"name": "big", "deviceClassName": "gpu", "selectors": [{"cel": {"expression": MODEL}}]}
    claim = resource_claim("c", {"name": "r", "firstAvailable": [big, subrequest]})
    (group,) = explain(resource_slice("s", EIGHT, node="n1"), claim).devices
    assert [text.partition(" of claim")[0] for text in group.reasons] == ["request r/big", "request r/many"]


def test_a_pool_that_offers_nothing_says_what_is_wrong_with_its_slices() -> None:
    twice = [resource_slice(name, devices(1), node="n1", slices=2) for name in "ab"]
    (group,) = explain(*twice, resource_claim("c", exactly())).devices
    assert group.reasons[1] == "1 pool offers nothing, as slices are missing or wrong"
    assert group.nodes["n1"].details == (f"pool {GPU_DRIVER}/n1: device gpu-0 is in slice a and in b",)
    (group,) = explain(twice[0], resource_claim("c", exactly())).devices
    assert group.nodes["n1"].details == (f"pool {GPU_DRIVER}/n1: 1 of 2 slices of generation 1",)


def test_what_a_failing_selector_says_is_no_reason_to_fail_as_well() -> None:
    device_list = [*devices(1, attributes={"model": "h100"}), device("other")]
    claims_in_use = held_claim("train", {"n1": ["other"]})
    claim = resource_claim("c", exactly("r", "gpu", MODEL, count=2))
    (group,) = explain(resource_slice("s", device_list, node="n1"), claims_in_use, claim).devices
    assert "1 of 2 match, the request refuses 1 by" in group.text
    assert "fails: " in group.text


def explain_in_few_steps(*device_list: Json, expression: str = "true", **fields: Any) -> str:
    inventory = Inventory([msgspec.convert(resource_slice("s", device_list, node="n1"), ResourceSlice)])
    claim = msgspec.convert(resource_claim("c", exactly("r", "gpu", expression, **fields)), ResourceClaim)
    classes = {"gpu": msgspec.convert(device_class("gpu"), DeviceClass)}
    shortages = Shortages(inventory, classes.get, AllocatedDevices(), lambda _: (), HURRIED)
    return shortages.on_node("n1", {}, [claim]).text


def test_in_a_hurry_what_takes_long_is_not_found_out() -> None:
    counts = "2 devices of class gpu: 1 of 1 match, 1 free"
    assert explain_in_few_steps(device("gpu-0"), count=2).endswith(counts)
    long = "lists.range(1000).all(x, lists.range(100).all(y, x + y >= 0))"
    assert explain_in_few_steps(device("gpu-0"), expression=long) == "finding out why takes too long"
    assert (
        explain_in_few_steps(device("gpu-0"), expression=long, allocationMode="All") == "finding out why takes too long"
    )
    assert explain_in_few_steps(*devices(1001), count=32, expression="false") == "finding out why takes too long"


def test_claims_that_can_be_allocated_by_now_are_reported() -> None:
    assert explain_in_few_steps(device("gpu-0")).endswith("1 of 1 match, 1 free; all requests can be met now")
