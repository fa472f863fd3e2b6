"""Clusters from files, completed."""

from __future__ import annotations

from typing import Any

import pytest

from podium.engine.files import LocatedManifest
from podium.objects.errors import FieldError
from podium.provisioner.state.manifests import pods_of_workloads, read_cluster
from tests.gang_manifests import COSCHEDULING, UPSTREAM, group

CONTAINER = {"name": "c", "resources": {"limits": {"cpu": "1"}}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [CONTAINER]}}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [CONTAINER]}}


def documents(*manifests: dict[str, Any]) -> list[LocatedManifest]:
    return [
        LocatedManifest(manifest, f"c.yaml: document {number}") for number, manifest in enumerate(manifests, start=1)
    ]


def workload(kind: str, **spec: Any) -> dict[str, Any]:
    version = "batch/v1" if "Job" in kind else "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "web", "namespace": "shop"}, "spec": spec}


def test_a_pod_gets_what_an_api_server_would_add() -> None:
    (pod,) = read_cluster(documents(POD)).pods
    assert (pod.key, bool(pod.uid)) == ("default/web", True)
    assert pod.spec.containers[0].resources.requests == {"cpu": "1"}


def test_objects_of_other_groups_are_left_out() -> None:
    foreign_pool = {"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "NodePool", "metadata": {"name": "p"}}
    assert read_cluster(documents(foreign_pool)).node_pools == ()


def test_pod_groups_of_both_kinds_are_read_and_one_that_is_broken_keeps_no_other_object() -> None:
    broken_group = {**group(UPSTREAM, 2, "broken"), "spec": {"schedulingPolicy": {"gang": {"minCount": "two"}}}}
    objects = read_cluster(documents(group(UPSTREAM, 2), broken_group, group(COSCHEDULING, 3), POD))
    groups = [(resource.group, item.key) for resource, item in objects.others]
    assert groups == [(UPSTREAM, "default/train"), (COSCHEDULING, "default/train")]
    assert len(objects.pods) == 1


def test_a_pool_without_a_state_counts_as_ready() -> None:
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p"}}
    (read,) = read_cluster(documents({**pool, "spec": {"template": {"spec": {}}}})).node_pools
    assert {condition.type for condition in read.status.conditions} == {
        "Ready",
        "ValidationSucceeded",
        "NodeClassReady",
    }
    assert read.spec.template.spec.node_class_ref.kind == "KWOKNodeClass"


@pytest.mark.parametrize(
    ("change", "is_assumed"),
    [({}, True), ({"nodeName": "n"}, False), ({"schedulingGates": [{"name": "wait"}]}, False)],
)
def test_pods_that_nobody_has_tried_can_be_assumed_unschedulable(change: dict[str, Any], is_assumed: bool) -> None:
    waiting = {**POD, "spec": {**POD["spec"], **change}}
    (pod,) = read_cluster(documents(waiting), assume_unschedulable=True).pods
    assert any(condition.reason == "Unschedulable" for condition in pod.status.conditions) == is_assumed


@pytest.mark.parametrize(
    ("manifest", "names"),
    [
        (workload("Deployment", replicas=2, template=TEMPLATE), ["web-0", "web-1"]),
        (workload("StatefulSet", template=TEMPLATE), ["web-0"]),
        (workload("Job", parallelism=2, template=TEMPLATE), ["web-0", "web-1"]),
        (workload("CronJob", jobTemplate={"spec": {"parallelism": 1, "template": TEMPLATE}}), ["web-0"]),
        (workload("Deployment", replicas=0, template=TEMPLATE), []),
        ({**POD, "spec": {**POD["spec"], "nodeName": "n"}}, ["web"]),
    ],
)
def test_workloads_become_waiting_pods(manifest: dict[str, Any], names: list[str]) -> None:
    pods = read_cluster(list(pods_of_workloads(documents(manifest), "w.yaml"))).pods
    assert [pod.metadata.name for pod in pods] == names
    assert all(pod.status.conditions[0].reason == "Unschedulable" and not pod.node_name for pod in pods)


def test_daemon_sets_stay_what_they_are() -> None:
    objects = read_cluster(list(pods_of_workloads(documents(workload("DaemonSet", template=TEMPLATE)), "w.yaml")))
    assert (len(objects.daemon_sets), len(objects.pods)) == (1, 0)


@pytest.mark.parametrize(
    ("manifest", "error"),
    [
        (POD | {"spec": {"nodeSelecter": {}}}, "Pod default/web: spec.nodeSelecter: unknown field"),
        (
            {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p"}, "spec": {"limit": {}}},
            "NodePool p: spec.limit: unknown field; did you mean limits",
        ),
    ],
)
def test_a_misspelt_field_is_refused(manifest: dict[str, Any], error: str) -> None:
    with pytest.raises(FieldError, match=f"c.yaml: document 1: {error}"):
        read_cluster(documents(manifest))
    old_object = manifest | {"metadata": manifest["metadata"] | {"uid": "u1"}}
    assert read_cluster(documents(old_object)).warnings == ()


def test_an_object_without_a_name_is_refused() -> None:
    with pytest.raises(FieldError, match=r"c.yaml: document 1: Pod: metadata.name: is missing"):
        read_cluster(documents({"apiVersion": "v1", "kind": "Pod"}))


def test_a_file_without_workloads_is_refused() -> None:
    lease = {"apiVersion": "v1", "kind": "Lease", "metadata": {"name": "x"}}
    with pytest.raises(FieldError, match=r"w.yaml: expected pods or workloads, found Lease"):
        list(pods_of_workloads(documents(lease), "w.yaml"))
