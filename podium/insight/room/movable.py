"""Decides which pods may be moved, and says why the others stay.

A pod is moved by the eviction API, and its controller creates another one in its place. So whatever has no controller,
comes back to its node, or is kept by a budget stays.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from podium.engine.cluster import stays_on_node
from podium.engine.derivation.budgets import Budgets
from podium.engine.derivation.control_objects import ControlObjects
from podium.engine.derivation.scale_down import is_ready
from podium.objects.core import Pod
from podium.objects.coscheduling import gang_of as coscheduling_gang_of
from podium.objects.pod_groups import group_of

SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"

ExpectedPods = Callable[[Sequence[Pod]], int | None]


class Movability:
    """The rules by which pods stay where they are, for one state of a cluster.

    Args:
        scheduler_names: the profiles; nothing is known of where another scheduler would place a replacement.
        expected_pods: as `Budget.allows` takes it.
    """

    def __init__(
        self,
        pods: Iterable[Pod],
        objects: ControlObjects,
        scheduler_names: Collection[str],
        expected_pods: ExpectedPods,
    ) -> None:
        self._scheduler_names = scheduler_names
        self._expected_pods = expected_pods
        self._budgets = Budgets(objects)
        self._covered_pods: dict[str, list[Pod]] = defaultdict(list)
        for pod in pods:
            for budget in self._budgets.covering(pod):
                self._covered_pods[budget.key].append(pod)
        self._verdicts: dict[tuple[str, bool], bool] = {}

    def obstacle(self, pod: Pod) -> str:
        """Return why the pod is not moved; "" if it may be."""
        if stays_on_node(pod):
            return "it belongs to its node, as a static pod or a pod of a DaemonSet"
        if pod.metadata.controller is None:
            return "nothing would create it again: it has no controller"
        if pod.is_terminating:
            return "it is being deleted already"
        if group_of(pod) is not None or coscheduling_gang_of(pod) is not None:
            return "it is a pod of a gang, which runs as a whole"
        if pod.spec.scheduler_name not in self._scheduler_names:
            return f"the scheduler {pod.spec.scheduler_name} would place its replacement, and nothing is known of it"
        annotations = pod.metadata.annotations
        if annotations.get(SAFE_TO_EVICT) == "false":
            return f"its annotation {SAFE_TO_EVICT} says false"
        if annotations.get(DO_NOT_DISRUPT, "false") != "false":
            return f"its annotation {DO_NOT_DISRUPT} keeps it"
        return self._budget_obstacle(pod)

    def _budget_obstacle(self, pod: Pod) -> str:
        # The eviction API lets a pod go that does not run yet, whatever its budgets.
        if pod.status.phase == "Pending":
            return ""
        budgets = self._budgets.covering(pod)
        if len(budgets) > 1:
            names = " and ".join(budget.key for budget in budgets)
            return f"the eviction API refuses pods of several PodDisruptionBudgets, and {names} select it"
        for budget in budgets:
            # All ready pods of a budget have one answer, and so have those that are not ready.
            key = budget.key, is_ready(pod)
            if key not in self._verdicts:
                self._verdicts[key] = budget.allows(pod, self._covered_pods[budget.key], self._expected_pods)
            if not self._verdicts[key]:
                return f"PodDisruptionBudget {budget.key} allows no disruption now"
        return ""
