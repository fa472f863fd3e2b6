"""Which pods are expected on which node, because room is being made for them there.

Source: kubernetes pkg/scheduler/backend/queue/nominator.go, v1.36.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from podium.kube.objects import Pod

PodLookup: TypeAlias = Callable[[str], Pod | None]
"""A pod as the API server last had it, by `<namespace>/<name>`."""


class Nominator:
    """Nominated pods by node, in the order in which they were nominated.

    Implements `podium.framework.promises.NominatedPods`.

    Invariant: a pod is nominated to at most one node.
    """

    def __init__(self, lookup: PodLookup) -> None:
        self._lookup = lookup
        self._nodes: dict[str, dict[str, Pod]] = {}
        self._node_of: dict[str, str] = {}

    def add(self, pod: Pod, override: str | None = None) -> None:
        """Nominate the pod, in place of an earlier nomination; not one that has been deleted or bound meanwhile.

        Args:
            override: The node; None takes the one in the pod's status, if there is one. Upstream's quirk is kept:
                an override of "" nominates to the node "", which does no harm.
        """
        if self._node_of:
            self.delete(pod)
        node_name = pod.status.nominated_node_name if override is None else override
        if override is None and not node_name:
            return
        current = self._lookup(pod.key)
        if current is None or current.node_name:
            return
        self._node_of[pod.uid] = node_name
        self._nodes.setdefault(node_name, {})[pod.uid] = pod

    def update(self, old: Pod, new: Pod) -> None:
        """The pod has changed. A nomination that only we know of survives; otherwise its status decides."""
        known_to_us = None
        if not old.status.nominated_node_name and not new.status.nominated_node_name:
            known_to_us = self._node_of.get(old.uid)
        self.delete(old)
        self.add(new, known_to_us)

    def delete(self, pod: Pod) -> None:
        """Take the pod's nomination back, if it has one."""
        node_name = self._node_of.pop(pod.uid, None)
        if node_name is None:
            return
        pods = self._nodes[node_name]
        del pods[pod.uid]
        if not pods:
            del self._nodes[node_name]

    def node_names(self) -> tuple[str, ...]:
        """The nodes that pods are nominated to."""
        return tuple(self._nodes)

    def node_of(self, uid: str) -> str | None:
        """The node that the pod is nominated to."""
        return self._node_of.get(uid)

    def pods(self, node_name: str) -> tuple[Pod, ...]:
        """The pods nominated to the node, as they were when they were nominated."""
        found = self._nodes.get(node_name)
        return tuple(found.values()) if found else ()

    def ahead_of(self, pod: Pod) -> Mapping[str, Sequence[Pod]]:
        """By node name, the other nominated pods of at least this pod's priority."""
        ahead: dict[str, Sequence[Pod]] = {}
        for name in self._nodes:
            pods = self.ahead_on(pod, name)
            if pods:
                ahead[name] = pods
        return ahead

    def ahead_on(self, pod: Pod, node_name: str) -> Sequence[Pod]:
        """Those of one node."""
        nominated = self._nodes.get(node_name)
        if not nominated:
            return ()
        uid, priority = pod.uid, pod.priority
        return [each for each in nominated.values() if each.uid != uid and each.priority >= priority]
