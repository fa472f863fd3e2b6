"""Storage drivers' labels of the zone mean the zone, and an empty value of a topology's label is no domain."""

from __future__ import annotations

import pytest

from podium.provisioner.apis.labels import CSI_ZONES
from podium.provisioner.state.adoption import adopt_nodes, with_types_of_nodes
from podium.provisioner.state.reading import read_objects
from tests.unit.provisioner.clusters import (
    CAPACITY_TYPE,
    ZONE,
    catalogue,
    instance_type,
    node,
    plan,
    pod,
    requirement,
    spread,
)
from tests.unit.provisioner.scheduling.test_volumes import claim, storage_class, using, volume

TYPE = "node.kubernetes.io/instance-type"


def _zones(answer):
    (bought,) = answer["claims"]
    return next(form["values"] for form in bought["requirements"] if form["key"] == ZONE)


@pytest.mark.parametrize("label", CSI_ZONES)
def test_a_node_is_bought_in_the_zone_that_a_bound_volume_names_by_its_drivers_label(label) -> None:
    answer = plan(using("data"), claim(volume="pv"), volume("pv", requirement(label, "In", "zone-2")))
    assert _zones(answer) == ["zone-2"]


@pytest.mark.parametrize("label", CSI_ZONES)
def test_a_node_is_bought_in_a_zone_that_the_storage_class_allows_by_its_drivers_label(label) -> None:
    zonal = storage_class("zonal", "zone-3")
    zonal["allowedTopologies"][0]["matchLabelExpressions"][0]["key"] = label
    assert _zones(plan(using("data"), claim(storage_class="zonal"), zonal)) == ["zone-3"]


@pytest.mark.parametrize("label", CSI_ZONES)
def test_a_node_that_is_there_is_in_the_zone_that_only_the_driver_labels(label) -> None:
    objects = (using("data"), claim(volume="pv"), volume("pv", requirement(label, "In", "zone-2")))
    answer = plan(*objects, node("n1", **{label: "zone-2"}), node("n2", **{label: "zone-1"}))
    assert answer["existing"] == {"n1": ["default/a"]}


def test_an_empty_label_of_a_driver_does_not_contradict_the_nodes_zone() -> None:
    node_objects = node("n1", zone="zone-1", **{"topology.disk.csi.azure.com/zone": ""})
    assert plan(pod("web", nodeSelector={ZONE: "zone-1"}), node_objects)["existing"] == {"n1": ["default/web"]}


@pytest.mark.parametrize("label", CSI_ZONES)
def test_adopted_nodes_get_company_in_any_zone_of_their_group(label) -> None:
    documents = [node(f"n{zone}", **{label: f"zone-{zone}", TYPE: "big"}) for zone in "11"]
    documents.append(node("n3", zone="zone-3", **{label: "", TYPE: "big"}))
    (pool,) = (adoption := adopt_nodes(read_objects(documents).nodes, catalogue())).node_pools
    (big,) = adoption.catalogue.instance_types
    assert {offering.zone for offering in big.offerings} == {"zone-1", "zone-3"}
    assert label not in pool.spec.template.metadata.labels


def test_instance_types_of_nodes_have_the_nodes_labels_and_size() -> None:
    family, region = "karpenter.k8s.aws/instance-family", "topology.kubernetes.io/region"
    documents = [
        node(f"n{cpu}", cpu=cpu, zone="us-east-1a", team="x", **{TYPE: "m5.xlarge", family: "m5", region: "us-east-1"})
        for cpu in ("3920m", "3900m")
    ]
    nodes = read_objects(documents).nodes
    (alone,) = with_types_of_nodes(nodes, None).instance_types
    assert (alone.allocatable["cpu"], alone.offerings[0].zone) == (3900, "us-east-1a")
    assert alone.requirements.get(family).values == alone.requirements.get("eks.amazonaws.com/instance-family").values
    assert alone.requirements.get(region).values == {"us-east-1"}
    assert "team" not in alone.requirements
    list_of_types = catalogue(instance_type("m5.xlarge", 4, "16Gi", price=2.0), instance_type("other", 4, "16Gi"))
    measured, plain = with_types_of_nodes(nodes, list_of_types).instance_types
    assert (measured.allocatable["cpu"], measured.offerings[0].price) == (3900, 2.0)
    assert plain.allocatable["cpu"] == 3900  # what the catalogue says of it
    assert {offering.capacity_type for offering in measured.offerings} == {"on-demand", "spot"}


# ---------------------------------------------------------------- an empty value is no domain


def test_pods_do_not_spread_to_an_empty_zone() -> None:
    rules = {"topologySpreadConstraints": [spread()]}
    pods = [pod(f"p{index}", labels={"app": "web"}, **rules) for index in range(3)]
    answer = plan(node("nowhere", cpu="9", zone=""), *pods)
    assert answer["existing"] == {}
    assert sorted(_zone_of(bought) for bought in answer["claims"]) == ["zone-1", "zone-2", "zone-3"]


def test_pods_in_an_empty_zone_do_not_count() -> None:
    rules = {"topologySpreadConstraints": [spread("rack")]}
    node_objects = [
        node("empty", cpu="1", rack=""),
        node("one", cpu="9", rack="r1"),
        pod("old", node="empty", labels={"app": "web"}, cpu="500m"),
    ]
    answer = plan(*node_objects, pod("new", labels={"app": "web"}, **rules))
    assert answer["existing"] == {"one": ["default/new"]}


def _zone_of(bought):
    assert any(form["key"] == CAPACITY_TYPE for form in bought["requirements"])
    return next(form["values"][0] for form in bought["requirements"] if form["key"] == ZONE)
