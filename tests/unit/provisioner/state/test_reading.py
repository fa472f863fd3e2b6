"""Reading the objects of a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from podium.objects.errors import FieldError
from podium.provisioner.state.reading import read_named_objects, read_objects, time_of
from tests.unit.provisioner.clusters import (
    ZONE,
    daemon_set,
    node,
    node_affinity,
    node_claim,
    node_pool,
    pod,
    pod_affinity,
    requirement,
)


def test_objects_are_put_in_order_and_other_kinds_are_left_out() -> None:
    cluster_objects = read_objects([pod("b"), {"kind": "Lease"}, node(), pod("a")])
    assert [pod.metadata.name for pod in cluster_objects.pods] == ["a", "b"]
    assert [node.metadata.name for node in cluster_objects.nodes] == ["node-1"]


def affinity_between_namespaces() -> dict[str, Any]:
    affinity = pod_affinity("web")
    terms = affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    terms[0]["namespaceSelector"] = {"matchLabels": {"a b": "c"}}
    return affinity


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution[0]"
EXPRESSION = f"nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].operator"
BUDGET = {
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"selector": {"matchExpressions": [requirement("app", "Like", "web")]}},
}
VOLUME = {
    "kind": "PersistentVolume",
    "metadata": {"name": "disk"},
    "spec": {
        "nodeAffinity": {
            "required": {"nodeSelectorTerms": [{"matchExpressions": [requirement(ZONE, "Near", "zone-1")]}]}
        }
    },
}


def with_status(document: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {**document, "status": {**document["status"], **status}}


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (3, "objects[0]"),
        (pod("a", cpu="lots"), "objects[0].spec.containers[0].resources.requests[cpu]"),
        (pod("a", metadata={"creationTimestamp": "noon"}), "objects[0].metadata.creationTimestamp"),
        (pod("a", node="n", status={"startTime": "noon"}), "objects[0].status.startTime"),
        (
            pod("a", node="n", affinity=node_affinity(requirement(ZONE, "Near"))),
            f"objects[0].spec.affinity.{EXPRESSION}",
        ),
        (
            pod("a", affinity=node_affinity(preferences=[(1, requirement(ZONE, "Gt", "b"))])),
            f"objects[0].spec.affinity.nodeAffinity.{PREFERRED}.preference.matchExpressions[0].values[0]",
        ),
        (
            pod("a", affinity=affinity_between_namespaces()),
            f"objects[0].spec.affinity.podAffinity.{REQUIRED}[0].namespaceSelector.matchLabels[a b]",
        ),
        (
            daemon_set(affinity=node_affinity(requirement(ZONE, "Near"))),
            f"objects[0].spec.template.spec.affinity.{EXPRESSION}",
        ),
        (node(cpu="four"), "objects[0].status.capacity[cpu]"),
        (node_claim(cpu="four"), "objects[0].status.capacity[cpu]"),
        (node_pool(limits={"cpu": "many"}), "objects[0].spec.limits[cpu]"),
        (node_pool(requirements=[requirement(ZONE, "Near")]), "objects[0].spec.template.spec.requirements[0].operator"),
        (node_pool(requirements=[requirement("", "Exists")]), "objects[0].spec.template.spec.requirements[0].key"),
        (node_pool(disruption={"consolidateAfter": "soon"}), "objects[0].spec.disruption.consolidateAfter"),
        (with_status(node_claim(), lastPodEventTime="noon"), "objects[0].status.lastPodEventTime"),
        (
            with_status(node_claim(), conditions=[{"type": "Drifted", "lastTransitionTime": "noon"}]),
            "objects[0].status.conditions[0].lastTransitionTime",
        ),
        (BUDGET, "objects[0].spec.selector.matchExpressions[0].operator"),
        (VOLUME, "objects[0].spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].operator"),
        ({**node(), "spec": []}, "objects[0].spec"),
        ({**node(), "\ud800": 1}, "objects[0]"),
    ],
)
def test_the_error_has_the_path_of_a_value_without_meaning(document: Any, path: str) -> None:
    with pytest.raises(FieldError) as caught:
        read_objects([document])
    assert caught.value.path == path


def test_the_faults_of_what_a_waiting_pod_requires_are_left_for_the_plan() -> None:
    (waiting_pod,) = read_objects([pod("a", affinity=node_affinity(requirement(ZONE, "Near")))]).pods
    assert waiting_pod.metadata.name == "a"


def test_errors_name_the_place_of_an_object_in_its_file() -> None:
    with pytest.raises(FieldError, match=r"^c\.yaml: document 2: spec: expected object, got str$"):
        read_named_objects([({**node(), "spec": "?"}, "c.yaml: document 2", ": ")])


def test_what_is_no_list_has_no_objects() -> None:
    with pytest.raises(FieldError, match="objects: is not a list"):
        read_objects("objects")


def test_a_time_that_is_none_is_refused() -> None:
    assert time_of("1970-01-01T00:01:00Z", "now") == 60
    with pytest.raises(FieldError, match=r"^now: "):
        time_of(None, "now")
