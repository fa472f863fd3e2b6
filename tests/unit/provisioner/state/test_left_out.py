"""Nodes that no plan may remove where every node counts as one that may be bought and removed."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from podium.provisioner.state.left_out import left_out
from podium.provisioner.state.reading import read_objects
from tests.unit.provisioner.clusters import Document, node, pod

_MIRROR = {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n"}]}


def worker(name: str, **labels: str) -> Document:
    document = node(name, **labels)
    document["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    return document


def static_pod(name: str, node_name: str) -> Document:
    return pod(f"{name}-{node_name}", node=node_name, metadata=_MIRROR)


def reasons(*documents: Document) -> Mapping[str, str]:
    """Why these nodes are left out, beside two workers that are not."""
    objects = read_objects([worker("w1"), worker("w2"), *documents])
    return left_out(objects.nodes, objects.pods)


@pytest.mark.parametrize(
    ("label", "value"),
    [
        ("node-role.kubernetes.io/control-plane", ""),
        ("node-role.kubernetes.io/master", ""),
        ("node-role.kubernetes.io/etcd", "true"),
        ("kubernetes.io/role", "master"),
        ("eks.amazonaws.com/compute-type", "fargate"),
        ("type", "virtual-kubelet"),
    ],
)
def test_nodes_of_the_control_plane_and_nodes_that_are_no_machines_are_left_out(label: str, value: str) -> None:
    texts = reasons(worker("cp", **{label: value}))
    assert list(texts) == ["cp"]
    assert label in texts["cp"]


def test_a_taint_of_the_control_plane_is_enough() -> None:
    document = worker("cp")
    document["spec"]["taints"] = [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]
    assert reasons(document) == {
        "cp": "It is a node of the control plane (taint node-role.kubernetes.io/control-plane)"
    }


def test_a_static_pod_counts_where_it_runs_nowhere_else() -> None:
    agents = [static_pod("agent", name) for name in ("w1", "w2", "w3")]
    assert reasons(worker("w3"), *agents, static_pod("kube-proxy", "w3")) == {}
    texts = reasons(worker("w3"), *agents, static_pod("registry", "w3"))
    assert texts == {"w3": "Pod default/registry-w3 is a static pod: it runs on this node and nowhere else"}


def test_a_mirror_pod_is_known_by_its_annotation_and_its_tier() -> None:
    annotations = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    etcd = pod("etcd-w3", node="w3", metadata={**annotations, "labels": {"tier": "control-plane"}})
    assert "is a static pod of the control plane" in reasons(worker("w3"), etcd)["w3"]


def test_nodes_that_cannot_be_judged_or_that_somebody_keeps_are_left_out() -> None:
    blind, lost_node, guarded_node = worker("blind"), worker("lost"), worker("guarded")
    blind["status"] |= {"allocatable": {}, "capacity": {}}
    lost_node["status"]["conditions"][0]["status"] = "Unknown"
    guarded_node["metadata"]["annotations"] = {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}
    unsafe = {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}}
    texts = reasons(blind, lost_node, guarded_node, worker("w3"), pod("web", node="w3", metadata=unsafe))
    assert texts == {
        "blind": "It cannot be judged: it reports no capacity",
        "lost": "It cannot be judged: it is not ready",
        "guarded": "Its annotation cluster-autoscaler.kubernetes.io/scale-down-disabled keeps it",
        "w3": "The annotation cluster-autoscaler.kubernetes.io/safe-to-evict of pod default/web keeps it",
    }
