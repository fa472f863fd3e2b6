from __future__ import annotations

import pytest

from podium.framework.contract import cluster_event
from podium.framework.contract.cluster_event import ALL_EVENTS, ActionType, ClusterEvent, on
from podium.objects.resource_types import EventResource

A, R = ActionType, EventResource
NODE_BITS = (4, 8, 16, 32, 64, 128, 256)
POD_BITS = (512, 1024, 2048, 4096, 8192, 16384)


def event(resource: EventResource, *actions: ActionType) -> ClusterEvent:
    return on(resource, *actions).event


@pytest.mark.parametrize(
    ("registered", "incoming", "matches"),
    [
        (event(R.NODE, A.ADD), event(R.NODE, A.ADD), True),
        (event(R.NODE, A.ADD, A.DELETE), event(R.NODE, A.DELETE), True),
        (event(R.NODE, A.ADD), event(R.NODE, A.DELETE), False),
        (event(R.NODE, A.ADD), event(R.CSI_NODE, A.ADD), False),
        # Pod stands for all kinds of pods, but no kind for another one, or for Pod.
        (event(R.POD, A.ADD), event(R.ASSIGNED_POD, A.ADD), True),
        (event(R.POD, A.ADD), event(R.UNSCHEDULED_POD, A.ADD), True),
        (event(R.POD, A.UPDATE), event(R.TARGET_POD, A.UPDATE), True),
        (event(R.POD, A.ADD), event(R.UNSCHEDULABLE_POD, A.ADD), True),
        (event(R.TARGET_POD, A.UPDATE), event(R.UNSCHEDULED_POD, A.UPDATE), False),
        (event(R.TARGET_POD, A.UPDATE), event(R.ASSIGNED_POD, A.UPDATE), False),
        # 1.36 has one name for both kinds of waiting pods: a plugin for either release hears of them in both.
        (event(R.UNSCHEDULABLE_POD, A.UPDATE), event(R.TARGET_POD, A.UPDATE), True),
        (event(R.UNSCHEDULABLE_POD, A.ADD), event(R.UNSCHEDULED_POD, A.ADD), True),
        (event(R.TARGET_POD, A.UPDATE), event(R.UNSCHEDULABLE_POD, A.UPDATE), True),
        (event(R.UNSCHEDULED_POD, A.ADD), event(R.UNSCHEDULABLE_POD, A.ADD), True),
        (event(R.UNSCHEDULABLE_POD, A.UPDATE), event(R.ASSIGNED_POD, A.UPDATE), False),
        (event(R.ASSIGNED_POD, A.ADD), event(R.UNSCHEDULABLE_POD, A.ADD), False),
        (event(R.ASSIGNED_POD, A.ADD), event(R.POD, A.ADD), False),
        # A generic update is only for those who registered every kind of update.
        (event(R.ASSIGNED_POD, A.UPDATE_POD_LABEL), event(R.ASSIGNED_POD, A.UPDATE), False),
        (event(R.ASSIGNED_POD, A.UPDATE), event(R.ASSIGNED_POD, A.UPDATE), True),
        (event(R.ASSIGNED_POD, A.ALL), event(R.ASSIGNED_POD, A.UPDATE), True),
        (event(R.ASSIGNED_POD, A.UPDATE), event(R.ASSIGNED_POD, A.UPDATE_POD_LABEL), True),
        # Upstream compares the actions as numbers too: a higher bit never matches a lower registration.
        (event(R.NODE, A.ADD, A.UPDATE_NODE_LABEL), event(R.NODE, A.UPDATE_NODE_LABEL), True),
        (event(R.NODE, A.ADD), event(R.NODE, A.ALL), False),
        # The wildcard registers for everything; half a wildcard for its actions on everything.
        (event(R.WILDCARD, A.ALL), event(R.NODE, A.ADD), True),
        (event(R.WILDCARD, A.ALL), cluster_event.UNSCHEDULABLE_TIMEOUT, True),
        (event(R.WILDCARD, A.ADD), event(R.STORAGE_CLASS, A.ADD), True),
        (event(R.WILDCARD, A.ADD), event(R.STORAGE_CLASS, A.DELETE), False),
        (event(R.NODE, A.ALL), cluster_event.UNSCHEDULABLE_TIMEOUT, False),
    ],
)
def test_registration_covers_event(registered, incoming, matches):
    assert registered.matches(incoming) is matches


def test_action_bits_are_upstreams():
    assert A.ADD == 1
    assert A.DELETE == 2
    assert [int(action) for action in A if "NODE" in action.name] == list(NODE_BITS)
    assert [int(action) for action in A if "POD" in action.name] == list(POD_BITS)
    assert sum(NODE_BITS + POD_BITS) == A.UPDATE == 32764
    assert A.UPDATE | A.ADD | A.DELETE == A.ALL == 32767


@pytest.mark.parametrize(
    ("item", "label"),
    [
        (cluster_event.NODE_ADD, "NodeAdd"),
        (event(R.NODE, A.UPDATE_NODE_TAINT), "NodeUpdateNodeTaint"),
        (cluster_event.ASSIGNED_POD_DELETE, "AssignedPodDelete"),
        (event(R.ASSIGNED_POD, A.UPDATE_POD_LABEL), "AssignedPodUpdatePodLabel"),
        (event(R.TARGET_POD, A.UPDATE_POD_SCALE_UP), "TargetPodUpdatePodScaleUp"),
        (event(R.UNSCHEDULED_POD, A.ADD), "UnscheduledPodAdd"),
        (event(R.PERSISTENT_VOLUME_CLAIM, A.ADD), "PersistentVolumeClaimAdd"),
        (event(R.CSI_NODE, A.UPDATE), "storage.k8s.io/CSINodeUpdate"),
        (event(R.NODE, A.ALL), "NodeAll"),
        (cluster_event.UNSCHEDULABLE_TIMEOUT, "UnschedulableTimeout"),
        (cluster_event.FORCE_ACTIVATE, "ForceActivate"),
    ],
)
def test_label_is_resource_and_action(item, label):
    assert item.label == label


@pytest.mark.parametrize("action", ActionType)
def test_every_single_action_has_a_label(action):
    words = "".join(word.capitalize() for word in action.name.split("_"))
    assert event(R.NODE, action).label == f"Node{words}"


def test_plugin_that_names_no_events_registers_for_all_kinds_of_objects():
    assert all(registration.event.action == A.ALL for registration in ALL_EVENTS)
    for resource in (
        R.ASSIGNED_POD,
        R.UNSCHEDULED_POD,
        R.TARGET_POD,
        R.UNSCHEDULABLE_POD,
        R.NODE,
        R.STORAGE_CLASS,
        R.RESOURCE_CLAIM,
    ):
        assert any(registration.event.matches(event(resource, A.ADD)) for registration in ALL_EVENTS)
