"""By podium's own rules, new nodes have the labels and the storage that nodes like them get."""

import pytest

from podium.engine.cluster import Cluster
from podium.provisioner.planners.placed_plans import plan_with_podium
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.state.reading import read_objects
from podium.provisioner.state.settings import Settings
from tests.unit.provisioner.clusters import (
    HOSTNAME,
    NOW,
    TYPES,
    ZONE,
    catalogue,
    managed_node,
    node,
    node_claim,
    node_pool,
    pod,
    requirement,
    spread,
)

SPREAD = "capacity-spread"
LOCAL = "topology.topolvm.io/node"
GIB = 2**30


def _plan(*objects):
    objects = (*objects, *([] if any(item["kind"] == "NodePool" for item in objects) else [node_pool()]))
    basis = PlanBasis(read_objects(objects), catalogue(*TYPES), Settings())
    return plan_with_podium(basis, Cluster.load([{"apiVersion": "v1", **item} for item in objects]), NOW)


def _label_values(plan, key):
    return sorted(node_plan.node.labels(node_plan.name)[key] for node_plan in plan.nodes)


# ---------------------------------------------------------------- labels that a NodePool leaves open


@pytest.mark.parametrize("values", [("1", "2", "3"), ("", "1", "2")])
def test_a_pod_gets_a_node_with_any_value_that_the_pool_leaves_open(values) -> None:
    """Two spreads lead Karpenter to different values, so that it proposes no node. The first by name suits neither."""
    counts = {"1": {"app": "web"}, "2": {"kind": "db"}}
    running = [
        item
        for value, labels in counts.items()
        for item in (
            node(f"n{value}", cpu="200m", **{SPREAD: value}),
            *(pod(f"old-{value}-{index}", node=f"n{value}", cpu="100m", labels=labels) for index in range(2)),
        )
    ][:-1]
    spreads = [spread(SPREAD, skew=2), {**spread(SPREAD, skew=2), "labelSelector": {"matchLabels": {"kind": "db"}}}]
    pool = node_pool(requirements=[requirement(SPREAD, "In", *values)])
    new = pod("new", labels={"app": "web", "kind": "db"}, topologySpreadConstraints=spreads)
    plan = _plan(pool, *running, new)
    assert plan.unschedulable == {}
    assert _label_values(plan, SPREAD) == ["2"]


@pytest.mark.parametrize("count", [3, 5])
def test_pods_that_spread_by_such_a_label_get_a_node_for_each_value(count) -> None:
    """The ratio of on-demand to spot nodes is chosen by one and four values, as in public blueprints."""
    capacity = "karpenter.sh/capacity-type"
    pools = [
        node_pool("od", requirements=[requirement(SPREAD, "In", "1"), requirement(capacity, "In", "on-demand")]),
        node_pool(
            "spot", requirements=[requirement(SPREAD, "In", "2", "3", "4", "5"), requirement(capacity, "In", "spot")]
        ),
    ]
    rules = {"topologySpreadConstraints": [spread(SPREAD, minDomains=5)]}
    pods = [pod(f"p{index}", labels={"app": "web"}, **rules) for index in range(count)]
    plan = _plan(*pools, *pods)
    assert plan.unschedulable == {}
    assert len(set(_label_values(plan, SPREAD))) == count


def test_an_empty_value_is_the_last_that_a_node_gets() -> None:
    plan = _plan(node_pool(requirements=[requirement("rack", "In", "", "r1")]), pod("web"))
    assert _label_values(plan, "rack") == ["r1"]


# ---------------------------------------------------------------- zones of storage drivers


@pytest.mark.parametrize("label", ["topology.ebs.csi.aws.com/zone", "topology.gke.io/zone"])
def test_a_new_node_has_its_drivers_label_of_the_zone(label) -> None:
    volume = {
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {
            "claimRef": {"namespace": "default", "name": "data"},
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "nodeAffinity": {
                "required": {"nodeSelectorTerms": [{"matchExpressions": [requirement(label, "In", "zone-2")]}]}
            },
        },
    }
    plan = _plan(volume, _claim(volume_name="pv"), pod("web", volumes=[_volume()]))
    assert plan.unschedulable == {}
    assert _label_values(plan, ZONE) == ["zone-2"]


# ---------------------------------------------------------------- storage of single nodes


def _claim(size="1Gi", volume_name=""):
    bind = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}} if volume_name else {}
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default", **bind},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "" if volume_name else "local",
            "volumeName": volume_name,
            "resources": {"requests": {"storage": size}},
        },
        "status": {"phase": "Bound" if volume_name else "Pending"},
    }


def _volume():
    return {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}


def _driver(*capacities):
    """A driver of storage on single nodes, and the capacity that it publishes, by node."""
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": "topolvm.io",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    driver = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": "topolvm.io"},
        "spec": {"storageCapacity": True},
    }
    capacities_of_driver = [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIStorageCapacity",
            "metadata": {"name": f"c-{index}", "namespace": "kube-system"},
            "storageClassName": "local",
            "nodeTopology": {"matchLabels": {label: value}},
            "capacity": capacity,
        }
        for index, (label, value, capacity) in enumerate(capacities)
    ]
    return storage_class, driver, *capacities_of_driver


def _full_node():
    return managed_node(cpu="1", **{LOCAL: "node-1"}), node_claim(cpu="1")


def test_a_new_node_has_the_storage_of_its_like() -> None:
    other_objects = (*_full_node(), *_driver((LOCAL, "node-1", "10Gi")))
    needs = {"nodeSelector": {"node.kubernetes.io/instance-type": "default"}, "volumes": [_volume()]}
    plan = _plan(*other_objects, _claim("5Gi"), pod("web", cpu="3", **needs))
    assert (plan.unschedulable, plan.warnings, len(plan.nodes)) == ({}, (), 1)
    plan = _plan(*other_objects, _claim("50Gi"), pod("web", cpu="3", **needs))
    assert list(plan.unschedulable) == ["default/web"]


def test_a_node_of_the_same_pool_is_its_like_if_none_has_its_type() -> None:
    other_objects = (*_full_node(), *_driver((HOSTNAME, "node-1", "10Gi")))
    needs = {"nodeSelector": {"node.kubernetes.io/instance-type": "small"}, "volumes": [_volume()]}
    plan = _plan(*other_objects, _claim("5Gi"), pod("web", **needs))
    assert (plan.unschedulable, plan.warnings) == ({}, ())


@pytest.mark.parametrize("capacities", [(), ((LOCAL, "stranger", "10Gi"),)])
def test_without_any_like_its_storage_is_taken_as_enough_with_a_warning(capacities) -> None:
    stranger = node("stranger", cpu="1", **{LOCAL: "stranger"})
    plan = _plan(stranger, *_driver(*capacities), _claim("50Gi"), pod("web", volumes=[_volume()], cpu="2"))
    assert plan.unschedulable == {}
    (warning,) = plan.warnings
    assert "is taken to have enough storage of class local for default/web" in warning


def test_storage_that_many_nodes_reach_is_only_what_is_published() -> None:
    zonal_driver = _driver((ZONE, "zone-1", "10Gi"))
    plan = _plan(
        node("full", cpu="1", zone="zone-1"), *zonal_driver, _claim("5Gi"), pod("web", volumes=[_volume()], cpu="2")
    )
    assert plan.unschedulable == {}
    assert _label_values(plan, ZONE) == ["zone-1"]
    plan = _plan(
        node("full", cpu="1", zone="zone-1"), *zonal_driver, _claim("50Gi"), pod("web", volumes=[_volume()], cpu="2")
    )
    assert list(plan.unschedulable) == ["default/web"]
