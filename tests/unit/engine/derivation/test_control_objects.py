import pytest

from podium.engine.derivation.control_objects import (
    CONTROL_RESOURCES,
    ControlObjects,
    count_at,
    empty_list,
    is_control_kind,
    items_at,
    key_of,
    mapping_at,
)
from tests import builders
from tests.manifests import node, pod
from tests.workload_manifests import limit_range, priority_class, workload


def test_objects_are_found_by_kind_and_name():
    objects = ControlObjects([priority_class("urgent", 7), workload("Deployment"), node("n1")])
    assert objects.get("PriorityClass", "urgent") == priority_class("urgent", 7)
    assert objects.get("Deployment", "web", "default") == objects.get("Deployment", "default/web")
    assert objects.get("Deployment", "web", "shop") is None
    assert objects.get("Node", "n1") is None
    assert objects.is_unknown("RuntimeClass")


def test_an_empty_list_says_that_the_cluster_has_none_of_a_kind():
    (resource,) = [
        control_resource for control_resource in CONTROL_RESOURCES if control_resource.kind == "RuntimeClass"
    ]
    objects = ControlObjects([empty_list(resource)])
    assert not objects.is_unknown("RuntimeClass")
    assert not objects.fork().is_unknown("RuntimeClass")
    assert objects.is_unknown("PriorityClass")
    assert not objects.of_kind("RuntimeClass")


def test_a_kind_of_the_same_name_in_another_group_is_ignored():
    volcano = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "train"}}
    assert not is_control_kind(volcano)
    assert ControlObjects([volcano]).is_unknown("Job")
    assert is_control_kind(workload("Job"))


def test_later_objects_replace_earlier_ones_of_their_name():
    objects = ControlObjects([workload("Deployment", replicas=1), workload("Deployment", replicas=2)])
    assert [deployment["spec"]["replicas"] for deployment in objects.of_kind("Deployment").values()] == [2]
    objects.drop("Deployment", "default/web")
    objects.drop("Deployment", "default/web")
    assert objects.is_unknown("Deployment")


def test_a_fork_does_not_change_the_original():
    objects = ControlObjects([workload("Deployment")])
    fork = objects.fork()
    fork.drop("Deployment", "default/web")
    fork.put(workload("Job"))
    assert objects.get("Deployment", "default/web") is not None
    assert objects.is_unknown("Job")


def test_objects_of_a_namespace_come_in_order_of_their_names():
    foreign_range = {**limit_range(), "metadata": {"name": "a", "namespace": "default-2"}}
    first = {**limit_range(), "metadata": {"name": "first"}}
    objects = ControlObjects([limit_range(), foreign_range, first])
    assert objects.in_namespace("LimitRange", "default") == [first, limit_range()]


def test_the_latest_time_is_that_of_any_creation_or_change():
    old = workload("Deployment")
    old["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    changed_pod = pod("web", status={"conditions": [{"type": "Ready", "lastTransitionTime": "2026-03-01T00:00:00Z"}]})
    assert ControlObjects([]).latest_time == ""
    assert ControlObjects([old]).latest_time == "2026-01-01T00:00:00Z"
    assert ControlObjects([old, changed_pod, old]).latest_time == "2026-03-01T00:00:00Z"


def test_restarts_of_sidecars_are_counted_apart_from_those_of_containers():
    sidecar = {"name": "proxy", "restartPolicy": "Always"}
    status = {
        "containerStatuses": [{"name": "main", "restartCount": 2}, {"name": "more", "restartCount": 5}],
        "initContainerStatuses": [{"name": "proxy", "restartCount": 3}, {"name": "setup", "restartCount": 9}],
    }
    objects = ControlObjects([pod("web", status=status, initContainers=[sidecar, {"name": "setup"}])])
    assert objects.restarts_of(builders.pod("web")) == (5, 3)
    assert objects.restarts_of(builders.pod("other")) == (0, 0)


@pytest.mark.parametrize(
    ("manifest", "key"),
    [
        ({"kind": "Job", "metadata": {"name": "a"}}, "default/a"),
        ({"kind": "Job", "metadata": {"name": "a", "namespace": "b"}}, "b/a"),
        ({"kind": "StorageClass", "metadata": {"name": "a", "namespace": "b"}}, "a"),
        ({"kind": "Job", "metadata": {"generateName": "a"}}, ""),
        ({"kind": "Job", "metadata": 5}, ""),
    ],
)
def test_a_key_has_the_namespace_of_namespaced_kinds(manifest, key):
    assert key_of(manifest) == key


def test_malformed_parts_are_taken_as_absent():
    content = {"a": {"b": 5, "c": [1, {"d": 2}], "n": True, "m": -1, "k": 3}}
    assert mapping_at(content, "a", "b", "x") == {}
    assert items_at(content, "a", "c") == [{"d": 2}]
    assert items_at(content, "a", "b") == []
    assert [count_at(content, "a", name, default=7) for name in ("n", "m", "b", "k", "x")] == [7, 7, 5, 3, 7]
