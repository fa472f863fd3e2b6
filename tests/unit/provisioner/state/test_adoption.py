"""NodePools and instance types made from nodes."""

from __future__ import annotations

from typing import Any

import pytest

from podium.provisioner.apis.objects import ProvidedNode
from podium.provisioner.cloudprovider.catalogue import generated_catalogue, read_catalogue, size_rank
from podium.provisioner.state.adoption import adopt_nodes
from podium.provisioner.state.reading import read_objects
from tests.unit.provisioner.clusters import instance_type, node

GROUP = "cloud.google.com/gke-nodepool"
TYPE = "node.kubernetes.io/instance-type"
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
GPU = {"key": "gpu", "effect": "NoSchedule"}


def nodes(*documents: dict[str, Any]) -> tuple[ProvidedNode, ...]:
    return read_objects(documents).nodes


def test_each_group_of_nodes_becomes_a_pool_with_what_its_nodes_have_in_common() -> None:
    adoption = adopt_nodes(
        nodes(
            node("a1", taints=[GPU, NOT_READY], **{GROUP: "a", "team": "x", "disk": "1", TYPE: "big"}),
            node("a2", taints=[GPU], **{GROUP: "a", "team": "x", "disk": "2", TYPE: "big"}),
            node("b1", team="y"),
        ),
        generated_catalogue(),
    )
    first, second = adoption.node_pools
    assert (first.metadata.name, second.metadata.name) == ("a", "default")
    assert first.spec.template.metadata.labels == {GROUP: "a", "team": "x"}
    assert [taint.key for taint in first.spec.template.spec.taints] == ["gpu"]
    assert first.spec.template.spec.requirements[0].values == ("big",)
    assert second.spec.template.metadata.labels == {"team": "y"}


def test_instance_types_have_what_pods_can_use_on_the_smallest_node_of_the_type() -> None:
    documents = [node("a", cpu="4", zone="z1", **{TYPE: "big"}), node("b", cpu="3900m", zone="z2", **{TYPE: "big"})]
    (big,) = adopt_nodes(nodes(*documents), generated_catalogue()).catalogue.instance_types
    assert big.name == "big"
    assert big.allocatable["cpu"] == 3900
    assert [offering.zone for offering in big.offerings] == ["z1", "z2"]


def test_a_node_without_a_type_is_named_by_its_size() -> None:
    (only,) = adopt_nodes(nodes(node("a", cpu="4")), generated_catalogue()).catalogue.instance_types
    assert only.name == "4-cores-8-gib"


def test_prices_are_those_of_the_catalogue_and_else_there_is_a_rank() -> None:
    prices = read_catalogue([instance_type("big", 4, "8Gi", price=7.0)])
    spot = {"eks.amazonaws.com/capacityType": "SPOT"}
    instance_types = adopt_nodes(
        nodes(
            node("a", zone="zone-1", **{TYPE: "big"}),
            node("b", zone="elsewhere", **{TYPE: "big"}, **spot),
            node("c", cpu="4", **{TYPE: "small"}),
        ),
        prices,
    ).catalogue.instance_types
    assert [(offering.zone, offering.price) for offering in instance_types[0].offerings] == [
        ("elsewhere", pytest.approx(4.9)),
        ("zone-1", pytest.approx(7.0)),
    ]
    assert instance_types[1].offerings[0].price == pytest.approx(0.025 * 4 + 0.001 * 8 * 2**30 / 1e9)


def test_nodes_are_adopted_as_if_they_had_been_bought() -> None:
    adoption = adopt_nodes(nodes(node("b", **{GROUP: "workers", TYPE: "big"}), node("a")), generated_catalogue())
    assert [(node.name, node.metadata.labels["karpenter.sh/nodepool"]) for node in adoption.nodes] == [
        ("a", "default"),
        ("b", "workers"),
    ]
    for adopted_node, claim in zip(adoption.nodes, adoption.claims, strict=True):
        assert claim.status.provider_id == adopted_node.spec.provider_id != ""
        assert claim.metadata.labels == adopted_node.metadata.labels
        assert adopted_node.metadata.labels["karpenter.sh/initialized"] == "true"


def test_only_prices_of_a_catalogue_are_prices() -> None:
    prices = read_catalogue([instance_type("big", 4, "8Gi", price=7.0)])
    provided_nodes = nodes(node("a", **{TYPE: "big"}), node("b", **{TYPE: "c-4x-amd64-linux"}))
    for catalogue, priced in ((prices, [True, False]), (generated_catalogue(), [False, False])):
        assert [
            instance_type.is_priced()
            for instance_type in adopt_nodes(provided_nodes, catalogue).catalogue.instance_types
        ] == priced


def test_the_smaller_a_type_is_the_earlier_it_comes_and_devices_make_it_larger() -> None:
    sizes = [
        {"cpu": 2_000, "memory": 4 << 30},
        {"cpu": 4_000, "memory": 4 << 30},
        {"cpu": 4_000, "memory": 32 << 30},
        {"cpu": 64_000, "memory": 128 << 30},
        {"cpu": 4_000, "memory": 32 << 30, "nvidia.com/gpu": 1},
        {"cpu": 192_000, "memory": 2048 << 30, "nvidia.com/gpu": 8},
    ]
    ranks = [size_rank(size) for size in sizes]
    assert ranks == sorted(ranks)
    core, gigabytes, gpu = (
        size_rank({"cpu": 1_000}),
        size_rank({"memory": 25 * 10**9}),
        size_rank({"nvidia.com/gpu": 8}),
    )
    assert (gigabytes, gpu) == (pytest.approx(core), pytest.approx(100 * core))
    # None of a device is as good as no device.
    assert size_rank({**sizes[0], "nvidia.com/gpu": 0}) == ranks[0]
