"""NodeDeclaredFeatures: the node must declare the kubelet features that the pod's spec needs.

Runs at: PreFilter (Skip for pods that need nothing special), Filter.
Verdict: UnschedulableAndUnresolvable.
Requeue: a node is added or declares other features than before; the pod itself needs other features than before.
Cost: once per pod spec; then a walk over the nodes for the few pods that need a feature.
Source: kubernetes v1.36.2, pkg/scheduler/framework/plugins/nodedeclaredfeatures and component-helpers
nodedeclaredfeatures; KEP-5328.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.framework import contract as fwk
from podium.objects.core import Node, Pod, PodSpec, once_per_spec
from podium.plugins.shared.hints import is_about, queue_if

_REJECTED: Final = fwk.unresolvable("node(s) didn't match Pod's required features")


def _restarts_all_containers(spec: PodSpec) -> bool:
    containers = (*spec.containers, *spec.init_containers)
    return any(
        rule.action == "RestartAllContainers" for container in containers for rule in container.restart_policy_rules
    )


def _has_own_users_on_host_network(spec: PodSpec) -> bool:
    return spec.host_network and spec.host_users is False


def _sets_bind_mount_options(spec: PodSpec) -> bool:
    containers = (*spec.containers, *spec.init_containers, *spec.ephemeral_containers)
    return any(mount.bind_mount_options for container in containers for mount in container.volume_mounts)


_BIND_MOUNT_OPTIONS: Final = "VolumeBindMountOptions"
_NEEDS: Final[dict[str, Callable[[PodSpec], bool]]] = {
    "RestartAllContainersOnContainerExits": _restarts_all_containers,
    "UserNamespacesHostNetworkSupport": _has_own_users_on_host_network,
    _BIND_MOUNT_OPTIONS: _sets_bind_mount_options,
}
"""The features that a spec can need, with the test for each."""


@once_per_spec
def _needed_features(spec: PodSpec) -> frozenset[str]:
    return frozenset(feature for feature, is_needed in _NEEDS.items() if is_needed(spec))


class NodeDeclaredFeatures(fwk.PreFilterPlugin, fwk.TableFilterPlugin, fwk.FilterPlugin):
    """Rejects nodes that do not declare every feature the pod needs."""

    def __init__(self, args: object, handle: fwk.Handle) -> None:
        super().__init__(args, handle)
        self._knows_bind_mount_options = handle.release.needs_bind_mount_options

    def _needs_of(self, spec: PodSpec) -> frozenset[str]:
        features = _needed_features(spec)
        return features if self._knows_bind_mount_options else features - {_BIND_MOUNT_OPTIONS}

    def pre_filter(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[fwk.PreFilterResult | None, fwk.Status | None]:
        """Return Skip if the pod needs no feature."""
        return None, None if self._needs_of(pod.spec) else fwk.SKIP

    def filter_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Return verdict 1 for nodes that lack a feature."""
        features = self._needs_of(pod.spec)
        if not features:
            return None
        lacks_feature = [
            not features.issubset(snapshot.node(row).node.status.declared_features) for row in rows.tolist()
        ]
        return np.array(lacks_feature, np.int64)

    def explain(self, state: fwk.CycleState, pod: Pod, verdict: int) -> fwk.Status:
        """Return the status of the only verdict."""
        return _REJECTED

    def filter(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Return success or UnschedulableAndUnresolvable."""
        return None if self._needs_of(pod.spec).issubset(node.node.status.declared_features) else _REJECTED

    def filter_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return NODE: the answer depends on the node's declared features."""
        return fwk.Scope.NODE

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register nodes that are added or declare other features; any update of the pod itself."""
        declared = fwk.ActionType.UPDATE_NODE_DECLARED_FEATURE
        return (
            fwk.on(
                fwk.EventResource.NODE,
                fwk.ActionType.ADD,
                declared,
                hint=self.after_node_change,
                scope=fwk.HintScope.SPEC,
            ),
            fwk.on(
                self.handle.release.events.own_pod,
                fwk.ActionType.UPDATE,
                hint=self.after_pod_update,
                scope=fwk.HintScope.SPEC,
            ),
        )

    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> fwk.QueueingHint:
        """Queue if the node is new or its declared features have changed, whatever the pod needs."""
        return queue_if(old is None or old.status.declared_features != new.status.declared_features)

    def after_pod_update(self, pod: Pod, old: Pod | None, new: Pod | None) -> fwk.QueueingHint:
        """Queue if the pod itself needs other features than before."""
        if old is None or new is None:
            return fwk.QueueingHint.QUEUE
        return queue_if(is_about(pod, new) and self._needs_of(old.spec) != self._needs_of(new.spec))
