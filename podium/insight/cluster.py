"""`podium.Cluster`: the engine's cluster, which can also be asked the questions of this package."""

from __future__ import annotations

from collections.abc import Sequence

from podium.engine.cluster import Cluster as EngineCluster
from podium.engine.cluster import PodLike
from podium.engine.replicas import PLACED_MAX
from podium.insight import capacity
from podium.insight.capacity import Capacity, Headroom
from podium.insight.fixes import FIXES_MAX, Fixes, fixes_for
from podium.insight.why import Why, explain


class Cluster(EngineCluster):
    """The objects of one cluster, and the profiles of one configuration.

    Not thread-safe. A method that changes something changes this cluster only, not the one that it was forked from nor
    its own forks.
    """

    def capacity(self, pod: PodLike, most: int = PLACED_MAX) -> Capacity:
        """How many more pods like this one the scheduler would place, and what then stops it. Nothing changes.

        The copies preempt no pods. Pending pods are not placed before them.

        Args:
            most: the maximum number of copies to try one by one, if they affect each other.

        Raises:
            ScheduleError: an attempt failed for a reason other than that the pod does not fit.
            ClusterError: no profile serves the pod, or it cannot be read.
        """
        (found,) = self.capacity_together([pod], most)
        return found

    def capacity_together(self, pods: Sequence[PodLike], most: int = PLACED_MAX) -> Sequence[Capacity]:
        """As `capacity`, for several pods that are placed in turn, one of each, until none fits any more.

        Args:
            most: the maximum number of copies of all pods together.
        """
        asked = [capacity.Asked.of(self.read_pod(each), self.framework_for) for each in pods]
        return capacity.filled(self.engine, asked, most)

    def headroom(self, pod: PodLike, times: int) -> Headroom:
        """How large the pod's requests may be so that it still fits this many times. Nothing changes.

        Raises: as `capacity`.
        """
        asked = capacity.Asked.of(self.read_pod(pod), self.framework_for)
        return capacity.headroom(self.engine, asked, times)

    def fixes(self, pod: PodLike, most: int = FIXES_MAX) -> Fixes:
        """The smallest sets of edits after which the pod fits, the least intrusive first. Nothing changes.

        Args:
            pod: pending; it may be one of the cluster's pods.
            most: how many sets to look for.

        Raises: as `capacity`.
        """
        return fixes_for(self, self.read_pod(pod), most)

    def why(self, pod: PodLike, node: str = "") -> Why:
        """Why the pod is pending, or why it is where it is: every blocker of every node, scores, preemption.

        A pod that is bound is asked about as if it were pending, in the cluster as it is now without it.

        Args:
            node: a node to compare the best one with.

        Raises: as `capacity`.
        """
        return explain(self, self.read_pod(pod), node)
