from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from podium.objects.core import Node, Pod
from podium.objects.objects_with_json import PodWithJson, pod_with_json
from podium.objects.resource_types import (
    CSI_NODES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    RESOURCE_CLAIMS,
    VOLUME_ATTACHMENTS,
)
from podium.objects.storage import CSINode, VolumeAttachment
from podium.objects.unreadable import (
    UnreadableAttachment,
    UnreadableBudget,
    UnreadableClaim,
    UnreadableCSINode,
    UnreadableNode,
    UnreadablePod,
    UnreadableVolumeClaim,
    is_partial,
    kind_of,
    unread_field,
    with_known_devices,
)
from podium.objects.wire import BrokenObject, ObjectDecoder

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def event(item: Any, resource: Any = PODS, keep: Any = None) -> Any:
    line = msgspec.json.encode({"type": "MODIFIED", "object": item})
    return ObjectDecoder(resource, keep).event(line).object


def read_from_list(item: Any, resource: Any = PODS) -> Any:
    page = ObjectDecoder(resource).items(msgspec.json.encode([item]))
    (object_read,) = (*page.items, *page.broken)
    return object_read


def running(spec: Any = None, metadata: Any = None, status: Any = None) -> Any:
    names = {"name": "web", "namespace": "default", "uid": "u1", "resourceVersion": "7"}
    return {"metadata": names | (metadata or {}), "spec": {"nodeName": "n1"} | (spec or {}), "status": status or {}}


HARMFUL: dict[str, Any] = {
    "spec.containers": running({"containers": 5}),
    "spec.containers[0].resources.requests[cpu]": running({"containers": [{"resources": {"requests": {"cpu": [3]}}}]}),
    "spec.initContainers": running({"initContainers": {}}),
    "spec.containers[0].ports[0].hostPort": running({"containers": [{"ports": [{"hostPort": "80"}]}]}),
    "spec.overhead": running({"overhead": 1}),
    "spec.resources": running({"resources": []}),
    "spec.priority": running({"priority": "high"}),
    "spec.volumes": running({"volumes": "data"}),
    f"spec.affinity.podAntiAffinity.{REQUIRED}": running({"affinity": {"podAntiAffinity": {REQUIRED: 5}}}),
    "spec.affinity": running({"affinity": []}),
    "metadata.labels": running(metadata={"labels": ["a"]}),
    "metadata.labels[app]": running(metadata={"labels": {"app": 5}}),
    "status.containerStatuses": running(status={"containerStatuses": 5}),
    "status": running() | {"status": 5},
}


@pytest.mark.parametrize("read", [event, read_from_list])
@pytest.mark.parametrize("field", HARMFUL)
def test_a_running_pod_is_read_as_far_as_it_can_be(field: str, read: Any) -> None:
    pod_read = read(HARMFUL[field])
    assert isinstance(pod_read, UnreadablePod)
    assert (pod_read.key, pod_read.uid, pod_read.node_name) == ("default/web", "u1", "n1")
    assert pod_read.metadata.resource_version == "7"
    error = unread_field(pod_read)
    assert error is not None
    assert error.path == field


@pytest.mark.parametrize(
    "pod",
    [
        running({"tolerations": 5}),
        running({"affinity": {"nodeAffinity": 5, "podAffinity": [], "podAntiAffinity": {}}}),
        running({"containers": [{"image": 5}, {"resources": {"limits": 7}}]}),
        running(metadata={"annotations": {"a": 1}, "ownerReferences": {}}),
        running(status={"conditions": "Ready", "startTime": 5}),
        running(status={"startTime": "soon", "resources": {"limits": []}}),
        running({"resources": {"claims": 5, "limits": {"cpu": []}}, "containers": [{"resources": {"claims": [5]}}]}),
        running({"resourceClaims": {}}, {"resourceVersion": 7}, {"containerStatuses": [{"resources": {"limits": 5}}]}),
    ],
)
def test_a_running_pod_without_what_nobody_depends_on_is_a_pod_like_any_other(pod: Any) -> None:
    item = event(pod)
    assert type(item) is Pod
    assert (item.key, item.node_name) == ("default/web", "n1")


@pytest.mark.parametrize("node_name", [None, "", 5])
def test_a_pod_that_does_not_run_is_not_read_in_part(node_name: Any) -> None:
    assert isinstance(event(running({"nodeName": node_name, "containers": 5})), BrokenObject)


@pytest.mark.parametrize("read", [event, read_from_list])
@pytest.mark.parametrize(
    "metadata",
    [
        {"name": " "},
        {"name": "a b"},
        {"name": 5},
        {"namespace": "A/B"},
        {"uid": ""},
        {"uid": 5},
        {"name": 5, "uid": []},
    ],
)
def test_a_running_pod_with_a_name_that_none_can_have_has_another_and_always_the_same(metadata: Any, read: Any) -> None:
    pod_read, second_reading = read(running(metadata=metadata)), read(running(metadata=metadata))
    assert isinstance(pod_read, UnreadablePod)
    assert pod_read.node_name == "n1"
    assert (pod_read.key, pod_read.uid) == (second_reading.key, second_reading.uid)
    assert pod_read.metadata.name.startswith("unreadable-")
    assert read(running({"nodeName": "n2"}, metadata)).key != pod_read.key


def test_a_hundred_unread_fields_may_hide_one_that_others_depend_on() -> None:
    annotations = {f"k{number}": 5 for number in range(200)}
    assert isinstance(event(running(metadata={"annotations": annotations})), UnreadablePod)


def test_what_is_left_is_not_kept_whole() -> None:
    item = event(running({"containers": 5}), keep=pod_with_json)
    assert isinstance(item, UnreadablePod)
    assert kind_of(item) == kind_of(event(running(), keep=pod_with_json)) == "Pod"
    assert isinstance(event(running({"tolerations": 5}), keep=pod_with_json), PodWithJson)


@pytest.mark.parametrize(
    ("node", "field"),
    [
        ({"spec": {"taints": 5}}, "spec.taints"),
        ({"spec": {"taints": [{"key": "a", "effect": 5}]}}, "spec.taints[0].effect"),
        ({"spec": {"unschedulable": "yes"}}, "spec.unschedulable"),
        ({"status": {"allocatable": {"cpu": [4]}}}, "status.allocatable[cpu]"),
        ({"status": 5}, "status"),
    ],
)
def test_a_node_is_read_as_far_as_it_can_be(node: Any, field: str) -> None:
    item = event({"metadata": {"name": "n1", "uid": "u"}, **node}, NODES)
    assert isinstance(item, UnreadableNode)
    error = unread_field(item)
    assert error is not None
    assert (item.name, error.path) == ("n1", field)


def test_a_node_without_what_no_decision_depends_on_is_a_node_like_any_other() -> None:
    item = event({"metadata": {"name": "n1", "uid": "u"}, "status": {"images": 5, "conditions": {}}}, NODES)
    assert type(item) is Node


@pytest.mark.parametrize(
    ("budget", "is_selector_read"),
    [({"spec": {"selector": 5}}, False), ({"spec": []}, False), ({"status": {"disruptionsAllowed": "one"}}, True)],
)
def test_a_budget_says_whether_it_is_known_for_which_pods_it_is(budget: Any, is_selector_read: bool) -> None:
    metadata = {"name": "b", "namespace": "default", "uid": "u"}
    item = event({"metadata": metadata, **budget}, POD_DISRUPTION_BUDGETS)
    assert isinstance(item, UnreadableBudget)
    assert item.is_selector_read is is_selector_read
    assert is_partial(item)


def test_a_namespace_has_the_labels_that_can_be_read() -> None:
    namespace = event({"metadata": {"name": "a", "uid": "u", "labels": {"team": "x", "size": 5}}}, NAMESPACES)
    assert namespace.metadata.labels == {"team": "x"}


def test_a_csi_node_is_read_as_far_as_it_can_be() -> None:
    drivers = [{"name": "a", "allocatable": {"count": "many"}}, {"name": "b", "allocatable": {"count": 3}}]
    item = event({"metadata": {"name": "n1", "uid": "u"}, "spec": {"drivers": drivers}}, CSI_NODES)
    assert isinstance(item, UnreadableCSINode)
    assert [driver.name for driver in item.spec.drivers] == ["a", "b"]
    annotated = {"name": "n1", "uid": "u", "annotations": 5}
    assert type(event({"metadata": annotated, "spec": {"drivers": []}}, CSI_NODES)) is CSINode


@pytest.mark.parametrize(
    ("fields", "is_volume_read"),
    [
        ({"spec": {"volumeName": "v", "resources": 5}}, True),
        ({"spec": {"volumeName": "v"}, "status": 5}, True),
        ({"spec": {"volumeName": 5}}, False),
        ({"spec": 5}, False),
    ],
)
def test_a_claim_to_storage_says_whether_it_is_known_which_volume_it_has(fields: Any, is_volume_read: bool) -> None:
    item = event({"metadata": {"name": "c", "namespace": "ns", "uid": "u"}, **fields}, PERSISTENT_VOLUME_CLAIMS)
    assert isinstance(item, UnreadableVolumeClaim)
    assert is_partial(item)
    assert item.is_volume_read is is_volume_read
    assert item.spec.volume_name == ("v" if is_volume_read else "")


def test_an_attachment_is_at_its_node_though_it_cannot_be_read_what_is_attached() -> None:
    metadata = {"name": "a", "uid": "u"}
    item = event({"metadata": metadata, "spec": {"nodeName": "n1", "source": 5}}, VOLUME_ATTACHMENTS)
    assert isinstance(item, UnreadableAttachment)
    assert item.spec.node_name == "n1"
    assert unread_field(item) is not None
    assert kind_of(item) == "VolumeAttachment"
    aged = {"metadata": {**metadata, "generation": "x"}, "spec": {"nodeName": "n1"}}
    assert type(event(aged, VOLUME_ATTACHMENTS)) is VolumeAttachment


DEVICE = {"request": "r", "driver": "d", "pool": "p", "device": "g"}


def claim(results: Any = (DEVICE,), **fields: Any) -> Any:
    status = {"allocation": {"devices": {"results": results}}}
    return event(
        {"metadata": {"name": "c", "namespace": "ns", "uid": "u"}, "status": status, **fields}, RESOURCE_CLAIMS
    )


def devices_of(claim_read: Any) -> list[tuple[str, str, str]]:
    return [(result.driver, result.pool, result.device) for result in claim_read.status.allocation.devices.results]


@pytest.mark.parametrize(
    "fields",
    [
        {"spec": 5},
        {"spec": {"devices": {"requests": [{"name": 5}]}}},
        {"metadata": {"name": "c", "namespace": "ns", "uid": "u", "labels": 5}},
    ],
    ids=["spec", "request", "labels"],
)
def test_an_unreadable_claim_keeps_its_devices(fields: Any) -> None:
    claim_read = claim(**fields)
    assert isinstance(claim_read, UnreadableClaim)
    assert is_partial(claim_read)
    assert devices_of(claim_read) == [("d", "p", "g")]
    unread = unread_field(claim_read)
    assert unread is not None
    assert unread.path.split(".")[0] in fields


def test_a_claim_may_hold_any_device_of_a_pool_of_which_the_device_cannot_be_read() -> None:
    assert devices_of(claim([DEVICE, DEVICE | {"device": 5}])) == [("d", "p", "g"), ("d", "p", "")]
    assert devices_of(claim([DEVICE | {"driver": 5}])) == [("", "p", "g")]
    assert devices_of(claim([DEVICE, DEVICE | {"pool": 5}, 5])) == [("d", "p", "g")]
    assert not claim([DEVICE | {"device": 5}]).is_allocation_read
    users = claim([DEVICE], status={"allocation": {"devices": {"results": [DEVICE]}}, "reservedFor": 5})
    assert devices_of(users) == [("d", "p", "g")]
    assert users.is_allocation_read


@pytest.mark.parametrize("status", [5, {"allocation": "x"}, {"allocation": {"devices": []}}])
def test_a_claim_whose_allocation_cannot_be_read_holds_what_it_held_before(status: Any) -> None:
    unreadable, readable = claim(status=status), claim(spec={})
    assert not unreadable.is_allocation_read
    assert devices_of(with_known_devices(unreadable, readable)) == [("d", "p", "g")]
    claim_with_devices = with_known_devices(unreadable, with_known_devices(unreadable, readable))
    assert devices_of(claim_with_devices) == [("d", "p", "g")]
    for former in (None, claim(status={}), replace(readable, metadata=replace(readable.metadata, uid="v"))):
        assert with_known_devices(unreadable, former) is unreadable
    assert with_known_devices(readable, claim([DEVICE | {"device": "h"}])) is readable


def test_of_many_unreadable_devices_those_that_can_be_read_are_held() -> None:
    assert set(devices_of(claim([DEVICE | {"device": 5}] * 101))) == {("d", "p", "")}


def test_of_a_share_of_unknown_size_the_whole_device_counts() -> None:
    [result] = claim([DEVICE | {"shareID": "s", "consumedCapacity": 5}]).status.allocation.devices.results
    assert result.share_id is None


def test_a_claim_without_a_valid_name_is_broken() -> None:
    assert isinstance(claim(metadata={"name": "a b", "namespace": "ns", "uid": "u"}, spec=5), BrokenObject)


def test_of_other_kinds_and_of_objects_without_a_name_nothing_is_left() -> None:
    volume = {"metadata": {"name": "v", "uid": "u"}, "spec": {"capacity": 5}}
    assert isinstance(event(volume, PERSISTENT_VOLUMES), BrokenObject)
    for resource in (NODES, NAMESPACES, POD_DISRUPTION_BUDGETS):
        assert isinstance(read_from_list({"metadata": {"name": 5}, "spec": 5}, resource), BrokenObject)
