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


def why_refused(*objects: Json, claims: tuple[str, ...] = ("c",), nodes: int = 1, **spec: Any) -> Any:
    cluster_objects = [*(node(f"n{index + 1}") for index in range(nodes)), device_class("gpu"), *objects]
    asking = pod("p", scheduler="default-scheduler", resourceClaims=claiming(*claims), **spec)
    return Cluster.load(cluster_objects).why(asking)


def test_a_claim_whose_devices_are_elsewhere() -> None:
    claim = held_claim("c", {"n1": ["gpu-0"]}, ["other"])
    names = [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]
    claim["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": names}]}
    (group,) = why_refused(claim, nodes=2).devices
    assert (group.examples, group.reasons) == (("n2",), ("claim default/c has its devices elsewhere",))
    assert group.nodes["n2"].details == (f"claim default/c (pod other) has gpu-0 of {GPU_DRIVER}/n1",)


def test_devices_for_an_extended_resource() -> None:
    backed = device_class("big", MODEL, extendedResourceName="example.com/gpu")
    asking = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    container = {"name": "main", "image": "app", "resources": asking}
    explanation = Cluster.load([node("n1"), backed, resource_slice("s", EIGHT, node="n1")]).why(
        pod("p", scheduler="default-scheduler") | {"spec": {"containers": [container]}}
    )
    (group,) = explanation.devices
    assert "of class big: 0 of 8 match, class big refuses 8 by" in group.text


def test_nodes_on_which_it_fits_and_other_blockers_are_left_out() -> None:
    explanation = why_refused(resource_slice("s", EIGHT, node="n1"), resource_claim("c", exactly()), nodes=2)
    assert explanation.node == "n1"
    assert [entry.examples for entry in explanation.devices] == [("n2",)]
    assert why_refused(resource_slice("s", EIGHT, node="n1"), claims=()).devices == ()


def test_a_claim_that_is_missing_or_of_an_unknown_class_needs_no_more_words() -> None:
    assert why_refused(claims=("missing",)).devices == ()
    explanation = why_refused(resource_claim("c", exactly("r", "unknown")))
    assert explanation.devices == ()
    assert [group.text for group in explanation.groups] == ["request r: device class unknown does not exist"]
