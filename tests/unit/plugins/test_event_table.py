"""The plugin x event table: what each plugin registers for, and for each row a change that helps and one that does not.

Source: the registrations of the in-tree plugins of kube-scheduler 1.37.2, and how those of 1.36.2 differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import pytest

from podium.config import ARGS_BY_PLUGIN, NEWEST, RELEASES, Release, args
from podium.framework.contract.cluster_event import ActionType, ClusterEvent, EventRegistration
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.lib.clock import ManualClock
from podium.objects.claims import ResourceClaim
from podium.objects.core import Pod
from podium.objects.devices import DeviceClass
from podium.objects.resource_types import RESOURCE_CLAIMS, EventResource
from podium.plugins import IN_TREE
from podium.queues import HintMap, QueueObserver, build_hint_map
from podium.queues.hints import Hints, Strategy
from tests.builders import ZONE_LABEL, node, pod, pod_group
from tests.device_manifests import resource_claim
from tests.unit.plugins.clusters import RecordingHandle
from tests.unit.plugins.storage import (
    EPHEMERAL,
    attachment,
    capacity,
    claim,
    csi_driver,
    csi_node,
    storage_class,
    user,
    volume,
)

Row = tuple[str, str, str]

TAINT, LABEL, ALLOCATABLE = "UpdateNodeTaint", "UpdateNodeLabel", "UpdateNodeAllocatable"

TABLE: Mapping[str, Mapping[str, str]] = {
    "SchedulingGates": {"TargetPod": "UpdatePodSchedulingGatesEliminated"},
    "NodeUnschedulable": {"Node": f"Add {TAINT}", "TargetPod": "UpdatePodToleration"},
    "NodeName": {"Node": "Add"},
    "TaintToleration": {"Node": f"Add {TAINT}", "TargetPod": "UpdatePodToleration"},
    "NodeAffinity": {"Node": f"Add {LABEL}"},
    "NodePorts": {"AssignedPod": "Delete", "Node": "Add"},
    "NodeResourcesFit": {
        "AssignedPod": "Delete UpdatePodScaleDown",
        "TargetPod": "UpdatePodScaleDown",
        "Node": f"Add {ALLOCATABLE}",
        "resource.k8s.io/DeviceClass": "Add Update",
    },
    "VolumeRestrictions": {"AssignedPod": "Delete", "Node": "Add", "PersistentVolumeClaim": "Add"},
    "NodeVolumeLimits": {
        "storage.k8s.io/CSINode": "Add Update",
        "AssignedPod": "Delete",
        "PersistentVolumeClaim": "Add",
        "storage.k8s.io/VolumeAttachment": "Delete",
    },
    "VolumeBinding": {
        "storage.k8s.io/StorageClass": "Add Update",
        "PersistentVolumeClaim": "Add Update",
        "PersistentVolume": "Add Update",
        "Node": f"Add {LABEL}",
        "storage.k8s.io/CSINode": "Add Update",
        "storage.k8s.io/CSIDriver": "Update",
        "storage.k8s.io/CSIStorageCapacity": "Add Update",
    },
    "VolumeZone": {
        "storage.k8s.io/StorageClass": "Add",
        "Node": f"Add {LABEL}",
        "PersistentVolumeClaim": "Add Update",
        "PersistentVolume": "Add Update",
    },
    "PodTopologySpread": {
        "AssignedPod": "Add Delete UpdatePodLabel",
        "TargetPod": "UpdatePodLabel UpdatePodToleration",
        "Node": f"Add Delete {LABEL} {TAINT}",
    },
    "InterPodAffinity": {
        "AssignedPod": "Add Delete UpdatePodLabel",
        "TargetPod": "UpdatePodLabel",
        "Node": f"Add {LABEL}",
    },
    "DefaultPreemption": {"AssignedPod": "Delete"},
    "DynamicResources": {
        "Node": f"Add {LABEL} {ALLOCATABLE}",
        "TargetPod": "UpdatePodGeneratedResourceClaim",
        "resource.k8s.io/ResourceClaim": "Add Update Delete",
        "resource.k8s.io/DeviceClass": "Add Update",
        "resource.k8s.io/ResourceSlice": "Add Update",
    },
    "NodeDeclaredFeatures": {"Node": "Add UpdateNodeDeclaredFeature", "TargetPod": "Update"},
    "GangScheduling": {"AssignedPod": "Add", "UnscheduledPod": "Add", "scheduling.k8s.io/PodGroup": "Add Update"},
}
_SINGLE_UPDATES = [action for action in ActionType if action in ActionType.UPDATE]


def _label(action: ActionType) -> str:
    return ClusterEvent(EventResource.NODE, action).label.removeprefix("Node")


ACTIONS = {
    _label(action): action for action in (*_SINGLE_UPDATES, ActionType.ADD, ActionType.DELETE, ActionType.UPDATE)
}


def device_claim(name: str = "gpu", **status: Any) -> ResourceClaim:
    return msgspec.convert(resource_claim(name, **status), ResourceClaim)


def device_class(name: str, resource: str | None = None) -> DeviceClass:
    return msgspec.convert({"metadata": {"name": name}, "spec": {"extendedResourceName": resource}}, DeviceClass)


DEVICE_CLAIM = device_claim()


def in_tree_hints(release: Release = NEWEST) -> HintMap:
    plugins: list[Plugin] = []
    for name, kind in IN_TREE.items():
        args_type = ARGS_BY_PLUGIN.get(name)
        handle = RecordingHandle(objects={RESOURCE_CLAIMS: [DEVICE_CLAIM]}, release=release)
        plugins.append(kind(args.RawArgs(None) if args_type is None else args_type(), handle))
    return build_hint_map(plugins, release.events)


HINT_MAP = in_tree_hints()


def _asked(hint_map: HintMap) -> Hints:
    return Hints(dict.fromkeys(("podium", "default-scheduler"), hint_map), ManualClock(), QueueObserver())


HINTS, HINTS_1_36 = _asked(HINT_MAP), _asked(in_tree_hints(RELEASES["1.36"]))


def actions(registration: EventRegistration) -> Iterator[str]:
    """Its single actions; a registration for every kind of update is one for the generic update."""
    actions_left = registration.event.action
    for action in (ActionType.ADD, ActionType.DELETE, ActionType.UPDATE, *_SINGLE_UPDATES):
        if actions_left and action in actions_left:
            actions_left &= ~action
            yield _label(action)


def rows(hint_map: HintMap = HINT_MAP) -> dict[Row, EventRegistration]:
    return {
        (plugin, registration.event.resource.value, action): registration
        for plugin, registrations in hint_map.items()
        for registration in registrations
        for action in actions(registration)
    }


EXPECTED = {
    (plugin, resource, action)
    for plugin, by_resource in TABLE.items()
    for resource, named in by_resource.items()
    for action in named.split()
}


def test_plugins_are_registered_for_what_kube_schedulers_are() -> None:
    assert set(rows()) == EXPECTED
    assert {plugin for plugin, registrations in HINT_MAP.items() if not registrations} == {
        "DefaultBinder",
        "ImageLocality",
        "NodeResourcesBalancedAllocation",
        "PodGroupPodsCount",
        "PrioritySort",
        "TopologyPlacementGenerator",
    }


def test_plugins_of_1_36_are_registered_for_pods_of_any_kind_and_with_new_nodes_for_changed_taints() -> None:
    kinds = {"AssignedPod", "TargetPod", "UnscheduledPod"}
    of_any_pod = {
        (plugin, "Pod" if resource in kinds else resource, action)
        for plugin, resource, action in EXPECTED - {("GangScheduling", "scheduling.k8s.io/PodGroup", "Update")}
    }
    with_taints = {
        (plugin, "Node", TAINT) for plugin, resource, action in EXPECTED if (resource, action) == ("Node", "Add")
    }
    of_deleted_claims = {("DynamicResources", "resource.k8s.io/ResourceClaim", "Delete")}
    assert set(rows(in_tree_hints(RELEASES["1.36"]))) == (of_any_pod | with_taints) - of_deleted_claims


# ---------------------------------------------------------------- one change for each row


class Change(NamedTuple):
    """A change, and whether it is worth another try of a pod that the plugin has rejected."""

    plugin: str
    resource: str
    action: str
    helps: bool
    pod: Pod
    old: Any
    new: Any


def changes(plugin: str, resource: str, action: str, item: Pod, *, helps: Any = None, not_: Any = None) -> list[Change]:
    """One that helps and one that does not, each as (old, new)."""
    changes_made = []
    for verdict, change in ((True, helps), (False, not_)):
        if change is not None:
            changes_made.append(Change(plugin, resource, action, verdict, item, *change))
    return changes_made


def _on_node(**fields: Any) -> Pod:
    return pod("other", **{"node": "n1", **fields})


def _needs(**affinity: Any) -> Pod:
    return pod(affinity=affinity)


WANTS_CLASS = pod(
    spec={"containers": [{"name": "main", "resources": {"requests": {"deviceclass.resource.kubernetes.io/gpu": "1"}}}]}
)
CLAIMING = pod(spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]})
WEB, DB = {"app": "web"}, {"app": "db"}
PLAIN = pod()
MEMBER = pod(group="gang")
MASTERLESS = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
TOLERANT = [{"key": "a", "operator": "Exists"}]
ZONED = node(zone="a")
TERM = {"topologyKey": ZONE_LABEL, "labelSelector": {"matchLabels": WEB}}
NEAR_WEB = _needs(podAffinity={"requiredDuringSchedulingIgnoredDuringExecution": [TERM]})
FAR_FROM_WEB = _needs(podAntiAffinity={"requiredDuringSchedulingIgnoredDuringExecution": [TERM]})
IN_ZONE_A = pod(spec={"nodeSelector": {ZONE_LABEL: "a"}})
SPREADS = pod(
    labels=WEB,
    spec={
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": ZONE_LABEL,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": WEB},
                "nodeTaintsPolicy": "Honor",
            }
        ]
    },
)
MORE_TOLERANT = pod(labels=WEB, tolerations=TOLERANT, spec={"topologySpreadConstraints": []})
DATA_USER, EPHEMERAL_USER = user("data"), user(EPHEMERAL)
DISK_USER = user({"gcePersistentDisk": {"pdName": "d"}})
OTHER_DISK_USER = user({"gcePersistentDisk": {"pdName": "d"}}, name="other").on_node("n1")
CSI_USER = user({"csi": {"driver": "disk.example.com"}})
USES_HOST_USERS = pod(spec={"hostUsers": False, "hostNetwork": True})

CASES = [
    *changes(
        "SchedulingGates",
        "TargetPod",
        "UpdatePodSchedulingGatesEliminated",
        PLAIN,
        helps=(pod(gates=["a"]), PLAIN),
        not_=(pod("other", gates=["a"]), pod("other")),
    ),
    *changes("NodeUnschedulable", "Node", "Add", PLAIN, helps=(None, node()), not_=(None, node(unschedulable=True))),
    *changes(
        "NodeUnschedulable", "Node", TAINT, PLAIN, helps=(node(unschedulable=True), node()), not_=(node(), node())
    ),
    *changes(
        "NodeUnschedulable",
        "TargetPod",
        "UpdatePodToleration",
        PLAIN,
        helps=(PLAIN, pod(tolerations=MASTERLESS)),
        not_=(PLAIN, pod(tolerations=TOLERANT)),
    ),
    *changes(
        "TaintToleration", "Node", "Add", PLAIN, helps=(None, node()), not_=(None, node(taints=["a=b:NoSchedule"]))
    ),
    *changes(
        "TaintToleration",
        "Node",
        TAINT,
        PLAIN,
        helps=(node(taints=["a=b:NoSchedule"]), node()),
        not_=(node(), node(taints=["a=b:PreferNoSchedule"])),
    ),
    *changes(
        "TaintToleration",
        "TargetPod",
        "UpdatePodToleration",
        PLAIN,
        helps=(PLAIN, pod(tolerations=TOLERANT)),
        not_=(pod("other"), pod("other", tolerations=TOLERANT)),
    ),
    *changes("NodeAffinity", "Node", "Add", IN_ZONE_A, helps=(None, ZONED), not_=(None, node(zone="b"))),
    *changes("NodeAffinity", "Node", LABEL, IN_ZONE_A, helps=(node(), ZONED), not_=(ZONED, ZONED)),
    *changes(
        "NodePorts",
        "AssignedPod",
        "Delete",
        pod(host_ports=[80]),
        helps=(_on_node(host_ports=[80]), None),
        not_=(_on_node(host_ports=[81]), None),
    ),
    *changes("NodeResourcesFit", "AssignedPod", "Delete", PLAIN, helps=(_on_node(), None), not_=(pod("other"), None)),
    *changes(
        "NodeResourcesFit",
        "AssignedPod",
        "UpdatePodScaleDown",
        pod(cpu="1"),
        helps=(_on_node(cpu="2"), _on_node(cpu="1")),
        not_=(_on_node(memory="2Gi"), _on_node(memory="1Gi")),
    ),
    *changes(
        "NodeResourcesFit",
        "TargetPod",
        "UpdatePodScaleDown",
        pod(cpu="1"),
        helps=(pod(cpu="2"), pod(cpu="1")),
        not_=(pod("other", cpu="2"), pod("other", cpu="1")),
    ),
    *changes("NodeResourcesFit", "Node", "Add", pod(cpu="2"), helps=(None, node(cpu="2")), not_=(None, node(cpu="1"))),
    *changes(
        "NodeResourcesFit",
        "Node",
        ALLOCATABLE,
        pod(cpu="2"),
        helps=(node(cpu="2"), node(cpu="3")),
        not_=(node(memory="1Gi"), node(memory="2Gi")),
    ),
    *changes(
        "VolumeRestrictions",
        "AssignedPod",
        "Delete",
        DISK_USER,
        helps=(OTHER_DISK_USER, None),
        not_=(user("data", name="other").on_node("n1"), None),
    ),
    *changes(
        "VolumeRestrictions",
        "PersistentVolumeClaim",
        "Add",
        DATA_USER,
        helps=(None, claim()),
        not_=(None, claim(namespace="other")),
    ),
    *changes("NodeVolumeLimits", "storage.k8s.io/CSINode", "Add", DATA_USER, helps=(None, csi_node("n1"))),
    *changes(
        "NodeVolumeLimits",
        "storage.k8s.io/CSINode",
        "Update",
        DATA_USER,
        helps=(csi_node("n1", {"d": 1}), csi_node("n1", {"d": 2})),
        not_=(csi_node("n1", {"d": 2}), csi_node("n1", {"d": 1})),
    ),
    *changes(
        "NodeVolumeLimits",
        "AssignedPod",
        "Delete",
        DATA_USER,
        helps=(user("other", name="other").on_node("n1"), None),
        not_=(_on_node(), None),
    ),
    *changes(
        "NodeVolumeLimits",
        "PersistentVolumeClaim",
        "Add",
        EPHEMERAL_USER,
        helps=(None, claim("web-v0")),
        not_=(None, claim("db-v0")),
    ),
    *changes(
        "NodeVolumeLimits",
        "storage.k8s.io/VolumeAttachment",
        "Delete",
        DATA_USER,
        helps=(attachment("pv", "n1"), None),
    ),
    *changes(
        "NodeVolumeLimits",
        "storage.k8s.io/VolumeAttachment",
        "Delete",
        EPHEMERAL_USER,
        not_=(attachment("pv", "n1"), None),
    ),
    *changes("VolumeBinding", "storage.k8s.io/StorageClass", "Add", DATA_USER, helps=(None, storage_class())),
    *changes(
        "VolumeBinding",
        "storage.k8s.io/StorageClass",
        "Update",
        DATA_USER,
        helps=(storage_class(), storage_class(topologies=[{ZONE_LABEL: ["a"]}])),
        not_=(storage_class(), storage_class()),
    ),
    *changes(
        "VolumeBinding",
        "PersistentVolumeClaim",
        "Add",
        EPHEMERAL_USER,
        helps=(None, claim("web-v0")),
        not_=(None, claim("db-v0")),
    ),
    *changes(
        "VolumeBinding",
        "PersistentVolumeClaim",
        "Update",
        DATA_USER,
        helps=(claim(), claim(volume="pv")),
        not_=(claim("other"), claim("other", volume="pv")),
    ),
    *changes(
        "VolumeBinding",
        "storage.k8s.io/CSINode",
        "Update",
        DATA_USER,
        helps=(csi_node("n1"), csi_node("n1", migrated="kubernetes.io/gce-pd")),
        not_=(csi_node("n1"), csi_node("n1", {"d": 2})),
    ),
    *changes("VolumeBinding", "storage.k8s.io/CSINode", "Add", DATA_USER, helps=(None, csi_node("n1"))),
    *changes(
        "VolumeBinding",
        "storage.k8s.io/CSIDriver",
        "Update",
        CSI_USER,
        helps=(csi_driver(), csi_driver(publishes=False)),
        not_=(csi_driver(publishes=False), csi_driver()),
    ),
    *changes("VolumeBinding", "storage.k8s.io/CSIStorageCapacity", "Add", DATA_USER, helps=(None, capacity())),
    *changes(
        "VolumeBinding",
        "storage.k8s.io/CSIStorageCapacity",
        "Update",
        DATA_USER,
        helps=(capacity(size="1Gi"), capacity(size="2Gi")),
        not_=(capacity(size="2Gi"), capacity(size="1Gi")),
    ),
    *changes(
        "VolumeZone",
        "storage.k8s.io/StorageClass",
        "Add",
        DATA_USER,
        helps=(None, storage_class()),
        not_=(None, storage_class(mode="Immediate")),
    ),
    *changes(
        "VolumeZone",
        "PersistentVolumeClaim",
        "Add",
        DATA_USER,
        helps=(None, claim()),
        not_=(None, claim("other")),
    ),
    *changes(
        "VolumeZone",
        "PersistentVolumeClaim",
        "Update",
        DATA_USER,
        helps=(claim(), claim(volume="pv")),
        not_=(claim("other"), claim("other", volume="pv")),
    ),
    *changes("VolumeZone", "PersistentVolume", "Add", DATA_USER, helps=(None, volume())),
    *changes(
        "VolumeZone",
        "PersistentVolume",
        "Update",
        DATA_USER,
        helps=(volume(labels={ZONE_LABEL: "a"}), volume(labels={ZONE_LABEL: "b"})),
        not_=(volume(), volume(labels=WEB)),
    ),
    *changes(
        "PodTopologySpread",
        "AssignedPod",
        "Add",
        SPREADS,
        helps=(None, _on_node(labels=WEB)),
        not_=(None, _on_node(labels=DB)),
    ),
    *changes(
        "PodTopologySpread",
        "AssignedPod",
        "Delete",
        SPREADS,
        helps=(_on_node(labels=WEB), None),
        not_=(_on_node(labels=WEB, namespace="other"), None),
    ),
    *changes(
        "PodTopologySpread",
        "AssignedPod",
        "UpdatePodLabel",
        SPREADS,
        helps=(_on_node(labels=WEB), _on_node(labels=DB)),
        not_=(_on_node(labels=DB), _on_node(labels={"app": "cache"})),
    ),
    *changes(
        "PodTopologySpread",
        "TargetPod",
        "UpdatePodToleration",
        SPREADS,
        helps=(SPREADS, MORE_TOLERANT),
        not_=(_on_node(labels=WEB), _on_node(labels=WEB, tolerations=TOLERANT)),
    ),
    *changes(
        "PodTopologySpread",
        "TargetPod",
        "UpdatePodLabel",
        SPREADS,
        helps=(SPREADS, pod(labels=DB)),
        not_=(SPREADS, pod(labels={**WEB, "tier": "front"})),
    ),
    *changes("PodTopologySpread", "Node", "Add", SPREADS, helps=(None, ZONED), not_=(None, node())),
    *changes("PodTopologySpread", "Node", "Delete", SPREADS, helps=(ZONED, None), not_=(node(), None)),
    *changes("PodTopologySpread", "Node", LABEL, SPREADS, helps=(ZONED, node(zone="b")), not_=(ZONED, ZONED)),
    *changes(
        "PodTopologySpread",
        "Node",
        TAINT,
        SPREADS,
        helps=(node(zone="a", taints=["a=b:NoSchedule"]), ZONED),
        not_=(node(taints=["a=b:NoSchedule"]), node()),
    ),
    *changes(
        "InterPodAffinity",
        "AssignedPod",
        "Add",
        NEAR_WEB,
        helps=(None, _on_node(labels=WEB)),
        not_=(None, _on_node(labels=DB)),
    ),
    *changes(
        "InterPodAffinity",
        "AssignedPod",
        "Delete",
        FAR_FROM_WEB,
        helps=(_on_node(labels=WEB), None),
        not_=(_on_node(labels=DB), None),
    ),
    *changes(
        "InterPodAffinity",
        "AssignedPod",
        "UpdatePodLabel",
        NEAR_WEB,
        helps=(_on_node(labels=DB), _on_node(labels=WEB)),
        not_=(_on_node(labels=WEB), _on_node(labels=DB)),
    ),
    *changes(
        "InterPodAffinity",
        "TargetPod",
        "UpdatePodLabel",
        NEAR_WEB,
        helps=(NEAR_WEB, pod(labels=DB)),
        not_=(pod("other"), pod("other", labels=DB)),
    ),
    *changes("InterPodAffinity", "Node", "Add", NEAR_WEB, helps=(None, ZONED), not_=(None, node())),
    *changes("InterPodAffinity", "Node", LABEL, NEAR_WEB, helps=(node(), ZONED), not_=(ZONED, node())),
    *changes("DefaultPreemption", "AssignedPod", "Delete", PLAIN, not_=(_on_node(), None)),
    *changes(
        "DynamicResources",
        "TargetPod",
        "UpdatePodGeneratedResourceClaim",
        PLAIN,
        helps=(PLAIN, PLAIN),
        not_=(pod("other"), pod("other")),
    ),
    *changes(
        "DynamicResources",
        "resource.k8s.io/ResourceClaim",
        "Add",
        CLAIMING,
        helps=(None, DEVICE_CLAIM),
        not_=(None, device_claim("other")),
    ),
    *changes(
        "DynamicResources",
        "resource.k8s.io/ResourceClaim",
        "Update",
        CLAIMING,
        helps=(device_claim("other", allocation={}), device_claim("other")),
        not_=(device_claim("other"), device_claim("other", allocation={})),
    ),
    *changes(
        "DynamicResources",
        "resource.k8s.io/ResourceClaim",
        "Delete",
        PLAIN,
        helps=(device_claim("other", allocation={}), None),
        not_=(device_claim("other"), None),
    ),
    *changes(
        "NodeResourcesFit",
        "resource.k8s.io/DeviceClass",
        "Add",
        WANTS_CLASS,
        helps=(None, device_class("gpu")),
        not_=(None, device_class("other", "example.com/other")),
    ),
    *changes(
        "NodeResourcesFit",
        "resource.k8s.io/DeviceClass",
        "Update",
        pod(spec={"containers": [{"name": "main", "resources": {"requests": {"example.com/gpu": "1"}}}]}),
        helps=(device_class("gpu"), device_class("gpu", "example.com/gpu")),
        not_=(device_class("gpu", "example.com/gpu"), device_class("gpu", "example.com/gpu")),
    ),
    *changes(
        "NodeDeclaredFeatures",
        "Node",
        "Add",
        PLAIN,
        helps=(None, node()),
    ),
    *changes(
        "NodeDeclaredFeatures",
        "Node",
        "UpdateNodeDeclaredFeature",
        PLAIN,
        helps=(node(), node(status={"declaredFeatures": ["A"]})),
        not_=(node(), node()),
    ),
    *changes(
        "NodeDeclaredFeatures",
        "TargetPod",
        "Update",
        PLAIN,
        helps=(PLAIN, USES_HOST_USERS),
        not_=(PLAIN, PLAIN),
    ),
    *changes("GangScheduling", "UnscheduledPod", "Add", MEMBER, helps=(None, MEMBER), not_=(None, PLAIN)),
    *changes("GangScheduling", "AssignedPod", "Add", MEMBER, helps=(None, MEMBER), not_=(None, PLAIN)),
    *changes(
        "GangScheduling",
        "scheduling.k8s.io/PodGroup",
        "Update",
        MEMBER,
        helps=(pod_group("gang", min_count=3), pod_group("gang", min_count=2)),
        not_=(pod_group("gang", min_count=2), pod_group("gang", min_count=3)),
    ),
    *changes(
        "GangScheduling",
        "scheduling.k8s.io/PodGroup",
        "Add",
        MEMBER,
        helps=(None, pod_group("gang")),
        not_=(None, pod_group("other")),
    ),
]

ALWAYS = {
    ("NodeVolumeLimits", "storage.k8s.io/CSINode", "Add"),
    ("VolumeBinding", "storage.k8s.io/StorageClass", "Add"),
    ("VolumeBinding", "storage.k8s.io/CSINode", "Add"),
    ("VolumeBinding", "storage.k8s.io/CSIStorageCapacity", "Add"),
    ("VolumeZone", "PersistentVolume", "Add"),
    ("NodeDeclaredFeatures", "Node", "Add"),
}
"""Rows with a hint that no such change leaves cold."""
NEVER = {("DefaultPreemption", "AssignedPod", "Delete")}


def strategy(plugin: str, resource: str, action: str, item: Pod, old: Any, new: Any, hints: Hints = HINTS) -> Strategy:
    """Return the queue's strategy for a pod that only this plugin has rejected."""
    event = ClusterEvent(EventResource(resource), ACTIONS[action])
    info = QueuedPodInfo(item, 0.0, unschedulable_plugins={plugin})
    return hints.strategy(info, hints.interest(event), old, new)


@pytest.mark.parametrize(
    "change", CASES, ids=lambda change: f"{change.plugin}-{change.resource}{change.action}-{change.helps}"
)
def test_a_change_is_worth_a_try_where_it_may_help(change: Change) -> None:
    strategy_expected = Strategy.AFTER_BACKOFF if change.helps else Strategy.SKIP
    plugin, resource, action, _, item, old, new = change
    assert strategy(plugin, resource, action, item, old, new) is strategy_expected


@pytest.mark.parametrize(
    ("old", "new", "of_1_36"),
    [
        (_on_node(labels=WEB), None, Strategy.SKIP),
        (_on_node(labels={**WEB, "tier": "front"}), _on_node(labels=WEB), Strategy.AFTER_BACKOFF),
    ],
)
def test_one_anti_affinity_term_of_several_keeps_pods_apart(old: Pod, new: Pod | None, of_1_36: Strategy) -> None:
    """1.36 asks whether the other pod matched all of them."""
    terms = [TERM, {"topologyKey": ZONE_LABEL, "labelSelector": {"matchLabels": {"tier": "front"}}}]
    item = _needs(podAntiAffinity={"requiredDuringSchedulingIgnoredDuringExecution": terms})
    action = "Delete" if new is None else "UpdatePodLabel"
    of_1_37 = strategy("InterPodAffinity", "AssignedPod", action, item, old, new)
    assert {of_1_36, of_1_37} == {Strategy.SKIP, Strategy.AFTER_BACKOFF}
    assert strategy("InterPodAffinity", "AssignedPod", action, item, old, new, HINTS_1_36) is of_1_36


WITHOUT_HINT = [row for row, registration in rows().items() if registration.hint is None]


@pytest.mark.parametrize("row", WITHOUT_HINT, ids="-".join)
def test_a_change_in_a_row_without_a_hint_always_is(row: Row) -> None:
    assert strategy(*row, PLAIN, object(), object()) is Strategy.AFTER_BACKOFF


def test_every_row_with_a_hint_has_a_change_that_helps_and_one_that_does_not() -> None:
    cases = {(case.plugin, case.resource, case.action, case.helps) for case in CASES}
    with_hint = {row for row, registration in rows().items() if registration.hint is not None}
    cases_expected = {(*row, True) for row in with_hint - NEVER} | {(*row, False) for row in with_hint - ALWAYS}
    assert cases_expected <= cases, cases_expected - cases
