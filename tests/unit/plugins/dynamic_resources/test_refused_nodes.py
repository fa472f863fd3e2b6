"""Which nodes are explained, and for which claims."""

from __future__ import annotations

from typing import Any

from podium.insight import Cluster
from tests.device_manifests import (
    GPU_DRIVER,
    claiming,
    device_class,
    devices,
    exactly,
    held_claim,
    resource_claim,
    resource_slice,
)
from tests.manifests import Json, node, pod

MODEL = f'device.attributes["{GPU_DRIVER}"].model == "h100"'
EIGHT = devices(8, attributes={"model": "a100"})


def asked(*objects: Json, claims: tuple[str, ...] = ("c",), nodes: int = 1, **spec: Any) -> Any:
    there = [*(node(f"n{index + 1}") for index in range(nodes)), device_class("gpu"), *objects]
    asking = pod("p", scheduler="default-scheduler", resourceClaims=claiming(*claims), **spec)
    return Cluster.load(there).why(asking)


def test_a_claim_whose_devices_are_elsewhere() -> None:
    claim = held_claim("c", {"n1": ["gpu-0"]}, ["other"])
    names = [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]
    claim["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": names}]}
    (group,) = asked(claim, nodes=2).devices
    assert (group.examples, group.reasons) == (("n2",), ("claim default/c has its devices elsewhere",))
    assert group.nodes["n2"].details == (f"claim default/c (pod other) has gpu-0 of {GPU_DRIVER}/n1",)


def test_devices_for_an_extended_resource() -> None:
    backed = device_class("big", MODEL, extendedResourceName="example.com/gpu")
    asking = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    container = {"name": "main", "image": "app", "resources": asking}
    found = Cluster.load([node("n1"), backed, resource_slice("s", EIGHT, node="n1")]).why(
        pod("p", scheduler="default-scheduler") | {"spec": {"containers": [container]}}
    )
    (group,) = found.devices
    assert "of class big: 0 of 8 match, class big refuses 8 by" in group.text


def test_nodes_on_which_it_fits_and_other_blockers_are_left_out() -> None:
    found = asked(resource_slice("s", EIGHT, node="n1"), resource_claim("c", exactly()), nodes=2)
    assert found.node == "n1"
    assert [each.examples for each in found.devices] == [("n2",)]
    assert asked(resource_slice("s", EIGHT, node="n1"), claims=()).devices == ()


def test_a_claim_that_is_missing_or_of_an_unknown_class_needs_no_more_words() -> None:
    assert asked(claims=("missing",)).devices == ()
    found = asked(resource_claim("c", exactly("r", "unknown")))
    assert found.devices == ()
    assert [each.text for each in found.groups] == ["request r: device class unknown does not exist"]
