from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.config import RELEASES
from podium.framework.contract.cluster_event import QueueingHint
from podium.framework.contract.status import SKIP, unresolvable
from podium.objects.core import Node
from podium.plugins.node_declared_features import NodeDeclaredFeatures
from tests.builders import node, pod, snapshot_of
from tests.unit.plugins.clusters import STATE, RecordingHandle, filter_nodes, filtered_one_by_one

PLUGIN = NodeDeclaredFeatures(None, RecordingHandle())
RESTART, USERS = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"
QUEUE, HINT_SKIP = QueueingHint.QUEUE, QueueingHint.SKIP
HOST_USERS: dict[str, Any] = {"hostNetwork": True, "hostUsers": False}


def declaring(name: str, *features: str) -> Node:
    plain = node(name)
    return msgspec.structs.replace(plain, status=msgspec.structs.replace(plain.status, declared_features=features))


def restarting(kind: str, action: str = "RestartAllContainers") -> dict[str, Any]:
    plain = {"name": "c", "image": "app"}
    return {"containers": [plain]} | {kind: [{**plain, "restartPolicyRules": [{"action": action}]}]}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"hostNetwork": True},
        {"hostUsers": False},
        {"hostNetwork": True, "hostUsers": True},
        restarting("containers", "Restart"),
    ],
)
def test_a_pod_that_needs_nothing_is_skipped(spec: dict[str, Any]) -> None:
    assert PLUGIN.pre_filter(STATE, pod(spec=spec), snapshot_of()) == (None, SKIP)
    assert filter_nodes(PLUGIN, pod(spec=spec), snapshot_of(node("n1"))) == {}


@pytest.mark.parametrize(
    ("spec", "feature"),
    [(HOST_USERS, USERS), (restarting("containers"), RESTART), (restarting("initContainers"), RESTART)],
)
def test_nodes_that_do_not_declare_what_the_pod_needs_are_rejected(spec: dict[str, Any], feature: str) -> None:
    needy = pod(spec=spec)
    snapshot = snapshot_of(node("n1"), declaring("n2", "Other", feature), declaring("n3", "Other"))
    assert PLUGIN.pre_filter(STATE, needy, snapshot) == (None, None)
    rejection = unresolvable("node(s) didn't match Pod's required features")
    assert filter_nodes(PLUGIN, needy, snapshot) == {"n1": rejection, "n3": rejection}
    assert filtered_one_by_one(PLUGIN, needy, snapshot) == {"n1": rejection, "n3": rejection}


@pytest.mark.parametrize("kind", ["containers", "initContainers", "ephemeralContainers"])
def test_mounts_with_options_need_a_feature_since_1_37(kind: str) -> None:
    plain = {"name": "c", "image": "app"}
    mounting = {**plain, "volumeMounts": [{"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}]}
    needy = pod(spec={"containers": [plain]} | {kind: [mounting]})
    snapshot = snapshot_of(node("n1"), declaring("n2", "VolumeBindMountOptions"))
    assert set(filter_nodes(PLUGIN, needy, snapshot)) == {"n1"}
    former = NodeDeclaredFeatures(None, RecordingHandle(release=RELEASES["1.36"]))
    assert former.pre_filter(STATE, needy, snapshot) == (None, SKIP)
    assert filter_nodes(former, needy, snapshot) == {}


def test_all_needed_features_must_be_declared() -> None:
    needy = pod(spec=HOST_USERS | restarting("containers"))
    snapshot = snapshot_of(declaring("n1", USERS), declaring("n2", USERS, RESTART))
    assert set(filter_nodes(PLUGIN, needy, snapshot)) == {"n1"}


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (None, node("n1"), QUEUE),
        (node("n1"), declaring("n1", USERS), QUEUE),
        (declaring("n1", USERS), node("n1"), QUEUE),
        (declaring("n1", USERS), declaring("n1", USERS), HINT_SKIP),
    ],
)
def test_a_node_helps_when_it_is_new_or_declares_something_else(
    old: Node | None, new: Node, hint: QueueingHint
) -> None:
    assert PLUGIN.after_node_change(pod(), old, new) is hint


def test_an_update_helps_the_pod_that_comes_to_need_something_else() -> None:
    old, new = pod("mine", spec=HOST_USERS), pod("mine")
    assert PLUGIN.after_pod_update(old, old, new) is QUEUE
    assert PLUGIN.after_pod_update(old, old, old) is HINT_SKIP
    assert PLUGIN.after_pod_update(pod("other"), old, new) is HINT_SKIP


def test_it_registers_for_features_of_nodes_and_any_update_of_pods() -> None:
    registered = {
        registration.event.resource.value: int(registration.event.action)
        for registration in PLUGIN.events_to_register()
    }
    assert registered == {"Node": 1 | 128, "TargetPod": 32764}
