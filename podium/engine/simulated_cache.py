"""Where the pods of a group are assumed while the group is tried: a fork of the snapshot, which is dropped afterwards.

Owns what the pods of one group see of each other in it.

Source: kubernetes pkg/scheduler/backend/cache/snapshot.go (AssumePod, ForgetPod), v1.36.2. Upstream looks for affinity
terms of existing pods only on nodes that had pods with such terms when the snapshot was taken. So a pod that has taken
its place since does not keep others of its group away by its anti-affinity, unless its node had such a pod before. Its
other terms do not count in scores either, except for pods with preferred terms: for these upstream looks at all nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from podium.cluster import CacheError, Snapshot
from podium.cluster.pod_groups import PodGroupState
from podium.cluster.pod_usage import readable_pod_usage
from podium.objects.core import Pod


class SimulatedCache:
    """The nodes, and the pods of a group that have taken their places. Implements `podium.engine.placing.AssumedPods`.

    Args:
        snapshot: where the group is tried.
        before: the pods by row, as they were when the snapshot was taken.
        group: the pods of the group.
    """

    def __init__(self, snapshot: Snapshot, before: Sequence[Mapping[str, Pod]], group: PodGroupState) -> None:
        self._snapshot = snapshot.fork()
        self._before = before
        self._assumed: dict[str, tuple[int, Pod]] = {}
        self._prefers = False
        self.group = group.copy()

    def snapshot(self) -> Snapshot:
        """The fork in which the pods take their places."""
        return self._snapshot

    def show_to(self, pod: Pod) -> None:
        """Show the affinity terms of the assumed pods as this one is to see them."""
        prefers = _prefers(pod)
        if prefers is not self._prefers:
            self._prefers = prefers
            for row, each in self._assumed.values():
                if _has_terms(each):
                    self._snapshot.replace_pod(row, self._shown(row, each), readable_pod_usage(each))

    def assume_pod(self, pod: Pod, node_name: str) -> None:
        """Count the pod on the node.

        Raises:
            CacheError: it counts on a node already.
        """
        if pod.uid in self._assumed:
            raise CacheError(f"pod {pod.uid} is in the cache, so can't be assumed")
        row, there = self._snapshot.row_of[node_name], pod.on_node(node_name)
        self._assumed[pod.uid] = row, there
        self._snapshot.add_pod(row, self._shown(row, there), readable_pod_usage(pod))
        self.group.assume(pod, node_name)

    def forget_pod(self, pod: Pod) -> bool:
        """Stop counting the pod; returns whether it was assumed."""
        row, _ = self._assumed.pop(pod.uid, (None, pod))
        if row is None:
            return False
        self._snapshot.remove_pod(row, pod.uid)
        self.group.forget(pod)
        return True

    def is_assumed(self, uid: str) -> bool:
        """Whether the pod is assumed."""
        return uid in self._assumed

    def pod(self, uid: str) -> Pod | None:
        """The pod, if it is assumed."""
        return self._assumed[uid][1] if uid in self._assumed else None

    def _shown(self, row: int, pod: Pod) -> Pod:
        """The pod with those terms that other pods of the group see."""
        affinity = pod.spec.affinity
        if affinity is None or not _has_terms(pod):
            return pod
        before = self._before[row].values()
        scored = self._prefers or any(_has_terms(each) for each in before)
        keeps_away = any(_keeps_away(each) for each in before)
        anti = affinity.pod_anti_affinity
        if anti is not None:
            anti = replace(
                anti, required=anti.required if keeps_away else (), preferred=anti.preferred if scored else ()
            )
        seen = replace(affinity, pod_affinity=affinity.pod_affinity if scored else None, pod_anti_affinity=anti)
        return replace(pod, spec=replace(pod.spec, affinity=seen))


def _has_terms(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    return affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)


def _keeps_away(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    anti = None if affinity is None else affinity.pod_anti_affinity
    return anti is not None and bool(anti.required)


def _prefers(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    both = () if affinity is None else (affinity.pod_affinity, affinity.pod_anti_affinity)
    return any(each is not None and each.preferred for each in both)
