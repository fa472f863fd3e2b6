"""Selects the nodes on which a DaemonSet has a pod.

Source: NodeShouldRunDaemonPod in kubernetes pkg/controller/daemon/daemon_controller.go, v1.36.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from podium.engine.derivation.control_objects import items_at, mapping_at
from podium.engine.derivation.pods import daemon_set_pod
from podium.engine.manifests import Manifest
from podium.objects.affinity import NodeSelector
from podium.objects.core import Node, Toleration
from podium.objects.selectors import NodeMatcher, compile_node_selector
from podium.objects.tolerations import is_tolerated


class DaemonNodes:
    """The nodes that a DaemonSet selects by name, labels and taints."""

    def __init__(self, daemon_set: Manifest) -> None:
        spec = mapping_at(daemon_set_pod(daemon_set, ""), "spec")
        self._name = str(spec.get("nodeName") or "")
        self._labels: Mapping[str, str] = mapping_at(spec, "nodeSelector")
        self._matcher = _required_affinity(spec)
        self._tolerations: Sequence[Toleration] = msgspec.convert(
            items_at(spec, "tolerations"), tuple[Toleration, ...], strict=False
        )

    def for_new_pods(self, nodes: Iterable[Node]) -> list[Node]:
        """Return the nodes on which a new pod should run."""
        return [node for node in nodes if self._matches(node) and self._tolerates(node, ("NoSchedule", "NoExecute"))]

    def for_existing_pods(self, nodes: Iterable[Node]) -> list[Node]:
        """Return the nodes on which an existing pod may stay: a NoSchedule taint does not evict it."""
        return [node for node in nodes if self._matches(node) and self._tolerates(node, ("NoExecute",))]

    def _matches(self, node: Node) -> bool:
        if self._name and self._name != node.name:
            return False
        labels = node.metadata.labels
        if any(labels.get(key) != value for key, value in self._labels.items()):
            return False
        return self._matcher is None or self._matcher.matches(labels, node.name)

    def _tolerates(self, node: Node, effects: tuple[str, ...]) -> bool:
        return all(taint.effect not in effects or is_tolerated(self._tolerations, taint) for taint in node.spec.taints)


def _required_affinity(spec: Mapping[str, object]) -> NodeMatcher | None:
    selector = mapping_at(spec, "affinity", "nodeAffinity").get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if selector is None else compile_node_selector(msgspec.convert(selector, NodeSelector))
