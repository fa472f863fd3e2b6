"""TopologicalSort: pods of one AppGroup in the order of its topology, other pods by priority and time.

Runs at: QueueSort.
Verdict: none.
Requeue: none.
Cost: one look-up of the group, and one step for each of its pods, when a pod enters the queue.
Source: sigs.k8s.io/scheduler-plugins pkg/networkaware/topologicalsort (for Kubernetes 1.35).
Differs: a strict order, also among pods of several groups: priority counts within a group too, and the pods of a group
stay together, at the place of the one of them that has waited longest without a node. Upstream puts two pods of one
workload before each other, orders pods of other groups between those of one, and panics without the AppGroup; here such
pods are ordered by time. See also `app_groups`.
"""

from __future__ import annotations

from podium.framework import contract as fwk
from podium.objects.core import Pod
from podium.objects.times import time_or_none
from podium.plugins.contrib.app_groups import APP_GROUPS, first_of, group_of, pods_by_app_group, workload_of
from podium.plugins.contrib.plugin_args import PluginArgs


class TopologicalSortArgs(PluginArgs, frozen=True, kw_only=True):
    """The plugin's args: the namespaces where AppGroups are looked for, in this order; `default` unless given."""

    namespaces: tuple[str, ...] = ()


class TopologicalSort(fwk.QueueSortPlugin):
    """Orders the active queue by priority, and within a group by its topology."""

    Args = TopologicalSortArgs

    def __init__(self, args: TopologicalSortArgs, handle: fwk.Handle) -> None:
        super().__init__(args, handle)
        self._namespaces = args.namespaces or ("default",)
        self._groups = handle.lister(APP_GROUPS)
        self._pods = handle.shared(pods_by_app_group)

    def sort_key(self, info: fwk.QueuedPodInfo) -> tuple[int, float, str, int, float]:
        """Return the key of the order: `a` goes before `b` exactly if its key is lower."""
        pod, name = info.pod, group_of(info.pod)
        if not name:
            return -pod.priority, info.timestamp_s, "", 0, info.timestamp_s
        group = first_of(self._groups, self._namespaces, name)
        order = -1 if group is None else group.order_of(workload_of(pod))
        waiting_pods = (member for member in self._pods.of(name) if not member.node_name)
        since_s = min((_created_s(member, info.timestamp_s) for member in waiting_pods), default=info.timestamp_s)
        return -pod.priority, since_s, name, order, info.timestamp_s

    def less(self, a: fwk.QueuedPodInfo, b: fwk.QueuedPodInfo) -> bool:
        """Return whether `a` goes before `b`."""
        return self.sort_key(a) < self.sort_key(b)

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register no event: the plugin rejects no node."""
        return ()


def _created_s(pod: Pod, otherwise_s: float) -> float:
    created_s = time_or_none(pod.metadata.creation_timestamp)
    return otherwise_s if created_s is None else created_s
