"""A fork of the snapshot in which the pods of a group are assumed while the group is tried.

Owns which affinity terms the pods of one group see of each other in it.

Source: kubernetes pkg/scheduler/backend/cache/snapshot.go (AssumePod, ForgetPod), v1.36.2 and v1.37.2. The former looks
for affinity terms of existing pods only on nodes that had pods with such terms when the snapshot was taken. So a pod
that has taken its place since does not keep others of its group away by its anti-affinity, unless its node had such a
pod before. Its other terms do not count in scores either, except for pods with preferred terms: for these upstream
looks at all nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from podium.cluster import CacheError, Snapshot
from podium.cluster.fork_point import ForkPoint
from podium.cluster.pod_groups import PodGroupState
from podium.cluster.pod_usage import readable_pod_usage
from podium.objects.core import Pod


class SimulatedCache:
    """The nodes, and the pods of a group that have taken their places. Implements `podium.engine.placing.AssumedPods`.

    Args:
        snapshot: the nodes on which the group is tried.
        pods_before: the pods by row, as they were when the snapshot was taken, if the pods of the group see affinity
            terms of each other only as described above; None if they see all of them.
        group: the pods of the group.
    """

    def __init__(
        self, snapshot: Snapshot, pods_before: Sequence[Mapping[str, Pod]] | None, group: PodGroupState
    ) -> None:
        self._snapshot = fork_with_point(snapshot)
        self._pods_before = pods_before
        self._assumed: dict[str, tuple[int, Pod]] = {}
        self._prefers = False
        self.group = group.copy()

    def snapshot(self) -> Snapshot:
        """Return the fork in which the pods take their places."""
        return self._snapshot

    def show_to(self, pod: Pod) -> None:
        """Set the affinity terms of the assumed pods to those that this pod sees."""
        if self._pods_before is None:
            return
        prefers = _prefers(pod)
        if prefers is not self._prefers:
            self._prefers = prefers
            for row, member in self._assumed.values():
                if _has_terms(member):
                    self._snapshot.replace_pod(row, self._visible_pod(row, member), readable_pod_usage(member))

    def assume_pod(self, pod: Pod, node_name: str) -> None:
        """Count the pod on the node.

        Raises:
            CacheError: it counts on a node already.
        """
        if pod.uid in self._assumed:
            raise CacheError(f"pod {pod.uid} is in the cache, so can't be assumed")
        row, bound_pod = self._snapshot.row_of[node_name], pod.on_node(node_name)
        self._assumed[pod.uid] = row, bound_pod
        self._snapshot.add_pod(row, self._visible_pod(row, bound_pod), readable_pod_usage(pod))
        self.group.assume(bound_pod)

    def forget_pod(self, pod: Pod) -> bool:
        """Stop counting the pod, and return whether it was assumed."""
        row, _ = self._assumed.pop(pod.uid, (None, pod))
        if row is None:
            return False
        self._snapshot.remove_pod(row, pod.uid)
        self.group.forget(pod)
        return True

    def is_assumed(self, uid: str) -> bool:
        """Return whether the pod is assumed."""
        return uid in self._assumed

    def pod(self, uid: str) -> Pod | None:
        """Return the pod, if it is assumed."""
        return self._assumed[uid][1] if uid in self._assumed else None

    def _visible_pod(self, row: int, pod: Pod) -> Pod:
        """Return the pod with only those affinity terms that other pods of the group see."""
        affinity = pod.spec.affinity
        if self._pods_before is None or affinity is None or not _has_terms(pod):
            return pod
        pods = self._pods_before[row].values()
        is_scored = self._prefers or any(_has_terms(existing) for existing in pods)
        keeps_away = any(_keeps_away(existing) for existing in pods)
        anti = affinity.pod_anti_affinity
        if anti is not None:
            anti = replace(
                anti, required=anti.required if keeps_away else (), preferred=anti.preferred if is_scored else ()
            )
        visible = replace(affinity, pod_affinity=affinity.pod_affinity if is_scored else None, pod_anti_affinity=anti)
        return replace(pod, spec=replace(pod.spec, affinity=visible))


def fork_with_point(snapshot: Snapshot) -> Snapshot:
    """Return a fork that knows its fork point, unless the snapshot is a fork itself.

    Only for a fork that is used by the thread of its original: attempts in both share their cached answers.
    """
    fork = snapshot.fork()
    if not snapshot.is_fork:
        fork.fork_point = ForkPoint(snapshot, snapshot.node_changes.end, snapshot.usage_changes.end)
    return fork


def _has_terms(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    return affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)


def _keeps_away(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    anti = None if affinity is None else affinity.pod_anti_affinity
    return anti is not None and bool(anti.required)


def _prefers(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    affinities = () if affinity is None else (affinity.pod_affinity, affinity.pod_anti_affinity)
    return any(terms is not None and terms.preferred for terms in affinities)
