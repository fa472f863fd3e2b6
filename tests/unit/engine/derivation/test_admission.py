import pytest

from podium.engine.derivation.admission import Admission
from podium.objects.resource_types import NAMESPACES, NODES, PODS, SERVICES

LIMITED = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
FULL = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}


def _spec(spec, *objects):
    return Admission(objects).admit({"spec": spec}, PODS)["spec"]


def _priority_class(name, value, **fields):
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **fields,
    }


def test_what_has_a_limit_but_no_request_requests_its_limit():
    spec = {"containers": [{"resources": LIMITED}], "initContainers": [{"resources": LIMITED}], "resources": LIMITED}
    admitted = _spec(spec)
    assert admitted["containers"][0]["resources"] == FULL
    assert admitted["initContainers"][0]["resources"] == FULL
    assert admitted["resources"] == {**FULL, "requests": {"cpu": "1", "memory": str(2**30)}}


def test_ports_of_a_pod_on_the_hosts_network_are_host_ports():
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8081}]
    taken = [{"hostPort": 80, "containerPort": 80}, {"hostPort": 8081, "containerPort": 81}]
    assert _spec({"hostNetwork": True, "containers": [{"ports": ports}]})["containers"][0]["ports"] == taken
    assert _spec({"containers": [{"ports": ports}]})["containers"][0]["ports"] == ports


@pytest.mark.parametrize("resource", [PODS, NODES, NAMESPACES])
@pytest.mark.parametrize("field", ["metadata", "spec", "status"])
def test_what_is_malformed_is_left_for_the_decoder(resource, field):
    assert Admission([]).admit({field: 5}, resource) == {field: 5}


def test_priority_comes_from_the_class_that_the_pod_names():
    urgent = _priority_class("urgent", 7, preemptionPolicy="Never")
    admitted = _spec({"priorityClassName": "urgent"}, urgent)
    assert (admitted["priority"], admitted["preemptionPolicy"]) == (7, "Never")
    assert _spec({"priorityClassName": "system-node-critical"})["priority"] == 2_000_001_000


def test_priority_comes_from_the_default_class_where_the_pod_names_none():
    assert _spec({}, _priority_class("usual", 3, globalDefault=True))["priority"] == 3
    assert "priority" not in _spec({}, _priority_class("other", 3))


def test_what_is_set_already_stays():
    assert _spec({"priority": 1, "priorityClassName": "system-node-critical"})["priority"] == 1


def test_node_without_allocatable_can_give_its_capacity():
    admission = Admission([])
    node = {"status": {"capacity": {"cpu": "4"}}}
    assert admission.admit(node, NODES)["status"]["allocatable"] == {"cpu": "4"}
    node = {"status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}}
    assert admission.admit(node, NODES)["status"]["allocatable"] == {"cpu": "3"}


def test_namespace_carries_its_name_as_a_label():
    admitted = Admission([]).admit({"metadata": {"name": "shop", "labels": {"a": "b"}}}, NAMESPACES)
    assert admitted["metadata"]["labels"] == {"a": "b", "kubernetes.io/metadata.name": "shop"}


def test_other_kinds_pass_as_they_are():
    service = {"spec": {"selector": {"a": None}}}
    assert Admission([]).admit(service, SERVICES) is service


def test_malformed_parts_are_left_to_those_who_read_them():
    broken = {"containers": [3, {"resources": [], "ports": [4]}], "hostNetwork": True, "priorityClassName": 5}
    assert _spec(broken)["containers"] == [3, {"resources": {}, "ports": [4]}]
    assert _spec("x") == "x"
