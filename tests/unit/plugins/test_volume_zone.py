from __future__ import annotations

from typing import Any

import pytest

from podium.cluster.matching.volume_zones import Zones, zones_of
from podium.framework.contract.cluster_event import ActionType, ClusterEvent, QueueingHint
from podium.framework.contract.status import SKIP, unresolvable
from podium.objects.resource_types import EventResource
from podium.plugins.volume_zone import VolumeZone
from tests.builders import node, pod
from tests.unit.plugins.clusters import RecordingHandle
from tests.unit.plugins.storage import EPHEMERAL, VolumePluginBench, claim, storage_class, user, volume

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
REASON = ("node(s) had no available volume zone",)


def rejecting_nodes(volume_labels: dict[str, str], **nodes: dict[str, str]) -> set[str]:
    """The nodes, by their labels, that a pod with such a volume cannot go to."""
    items = [node(name, labels=labels) for name, labels in nodes.items()]
    cluster = VolumePluginBench("VolumeZone", *items, claim(volume="pv"), volume(labels=volume_labels))
    reasons_by_node = cluster.filter(user("data"))
    assert set(reasons_by_node.values()) <= {REASON}
    return set(reasons_by_node)


def test_nodes_must_be_in_one_of_the_volumes_zones() -> None:
    nodes: dict[str, Any] = {"a": {ZONE: "a"}, "b": {ZONE: "b"}, "c": {ZONE: "c"}}
    assert rejecting_nodes({ZONE: "a"}, **nodes) == {"b", "c"}
    assert rejecting_nodes({ZONE: "a__ b"}, **nodes) == {"c"}


def test_nodes_without_any_such_label_will_do() -> None:
    assert rejecting_nodes({ZONE: "a"}, bare={}, other={"disk": "ssd"}, region={REGION: "a"}) == {"region"}


def test_every_label_of_the_volume_counts() -> None:
    fits, astray = {ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "s"}
    assert rejecting_nodes({ZONE: "a", REGION: "r"}, fits=fits, astray=astray) == {"astray"}


def test_a_label_of_old_times_is_met_by_todays() -> None:
    assert rejecting_nodes({BETA_ZONE: "a"}, today={ZONE: "a"}, old={BETA_ZONE: "a"}, astray={ZONE: "b"}) == {"astray"}
    assert rejecting_nodes({BETA_REGION: "r"}, today={REGION: "r"}, astray={REGION: "s"}) == {"astray"}
    # The label itself goes first.
    assert rejecting_nodes({BETA_ZONE: "a"}, both={ZONE: "a", BETA_ZONE: "b"}) == {"both"}
    # Not the other way round.
    assert rejecting_nodes({ZONE: "a"}, old={BETA_ZONE: "a"}) == {"old"}


def test_a_label_that_names_an_empty_zone_is_left_out() -> None:
    assert zones_of(volume(labels={ZONE: "a__", BETA_ZONE: "", REGION: "r"})) == (Zones(REGION, frozenset({"r"})),)


def test_pods_without_labelled_volumes_skip() -> None:
    cluster = VolumePluginBench("VolumeZone", claim(volume="pv"), volume(labels={"disk": "ssd"}))
    assert cluster.pre_filter(pod()) == SKIP
    assert cluster.pre_filter(user("data")) == SKIP
    assert cluster.pre_filter(user(EPHEMERAL)) == SKIP


@pytest.mark.parametrize(
    ("items", "name", "reason"),
    [
        ([], "", "PersistentVolumeClaim had no name"),
        ([], "data", 'persistentvolumeclaim "data" not found'),
        ([claim(volume="pv")], "data", 'persistentvolume "pv" not found'),
        (
            [claim(storage_class=None)],
            "data",
            "PersistentVolumeClaim had no pv name and storageClass name",
        ),
        ([claim()], "data", 'storageclass.storage.k8s.io "slow" not found'),
        ([claim(), storage_class(mode=None)], "data", 'VolumeBindingMode not set for StorageClass "slow"'),
        ([claim(), storage_class(mode="Immediate")], "data", "PersistentVolume had no name"),
    ],
)
def test_a_claim_that_cannot_be_followed_rejects_the_pod(items: list[Any], name: str, reason: str) -> None:
    assert VolumePluginBench("VolumeZone", *items).pre_filter(user(name)) == unresolvable(reason)


def test_a_claim_that_waits_for_its_pod_is_passed_over() -> None:
    assert VolumePluginBench("VolumeZone", claim(), storage_class()).pre_filter(user("data")) == SKIP


def test_the_class_in_the_annotation_of_old_times_goes_first() -> None:
    old = claim(storage_class="other", annotations={"volume.beta.kubernetes.io/storage-class": "slow"})
    assert VolumePluginBench("VolumeZone", old, storage_class()).pre_filter(user("data")) == SKIP


PLUGIN = VolumeZone(None, RecordingHandle())


def hint(helps: bool) -> QueueingHint:
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP


@pytest.mark.parametrize(("mode", "helps"), [("WaitForFirstConsumer", True), ("Immediate", False), (None, False)])
def test_a_new_class_helps_where_it_waits_for_consumers(mode: str | None, helps: bool) -> None:
    assert PLUGIN.after_class_added(user("data"), None, storage_class(mode=mode)) is hint(helps)


@pytest.mark.parametrize(("name", "helps"), [("data", True), ("logs", False)])
def test_a_claim_helps_pods_that_name_it(name: str, helps: bool) -> None:
    assert PLUGIN.after_claim_change(user("data"), None, claim(name)) is hint(helps)
    assert PLUGIN.after_claim_change(user("data"), claim(name), claim(name, volume="pv")) is hint(helps)


def test_a_volume_helps_where_it_is_new_or_asks_for_other_labels() -> None:
    old, new = volume(labels={ZONE: "a", "disk": "ssd"}), volume(labels={ZONE: "a"})
    assert PLUGIN.after_volume_change(user("data"), None, new) is QueueingHint.QUEUE
    assert PLUGIN.after_volume_change(user("data"), old, new) is QueueingHint.SKIP
    assert PLUGIN.after_volume_change(user("data"), old, volume(labels={ZONE: "b"})) is QueueingHint.QUEUE


def test_it_waits_for_classes_nodes_claims_and_volumes() -> None:
    assert [registration.event for registration in PLUGIN.events_to_register()] == [
        ClusterEvent(EventResource.STORAGE_CLASS, ActionType.ADD),
        ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
        ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD | ActionType.UPDATE),
        ClusterEvent(EventResource.PERSISTENT_VOLUME, ActionType.ADD | ActionType.UPDATE),
    ]
