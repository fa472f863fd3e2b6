"""Decides which pods of a node that goes are placed elsewhere now.

Owns the rules by which pods and PodDisruptionBudgets hold a pod in its place. Reads no clock.

Source: karpenter pkg/utils/pdb/pdb.go and pkg/utils/pod/scheduling.go, v1.15.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from podium.config.duration import parse_duration
from podium.objects.core import Pod
from podium.objects.selectors import Selector, compile_selector
from podium.objects.times import time_or_none
from podium.objects.unreadable import unread_field
from podium.provisioner.apis.objects import Budget
from podium.provisioner.scheduling.taints import DISRUPTED, untolerated_taints
from podium.provisioner.state.validation import is_mirror, is_owned_by, is_owned_by_daemon_set

DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"


class Evictions:
    """The PodDisruptionBudgets of a cluster at a time.

    Args:
        now_s: the time, in seconds since the epoch.
    """

    def __init__(self, budgets: Iterable[Budget], now_s: float) -> None:
        self._budgets: list[tuple[Budget, Selector]] = [
            (budget, compile_selector(budget.spec.selector)) for budget in budgets
        ]
        self._budgets_by_labels: dict[tuple[str, frozenset[tuple[str, str]]], Sequence[Budget]] = {}
        self._now = now_s

    def is_currently_reschedulable(self, pod: Pod) -> bool:
        """Return True if the pod is placed elsewhere when its node goes, and nothing holds it now."""
        return (
            is_reschedulable(pod)
            # Where it may go cannot be said of a pod that cannot be read.
            and unread_field(pod) is None
            and (not is_active(pod) or not self.is_protected(pod))
            and not self._is_fully_blocked(pod)
        )

    def is_protected(self, pod: Pod) -> bool:
        """Return True if the pod's annotation forbids to disrupt it, for good or for a time after its start."""
        text = pod.metadata.annotations.get(DO_NOT_DISRUPT)
        if text is None:
            return False
        if text == "true":
            return True
        try:
            duration = parse_duration(text)
        except ValueError:
            # Not protected, as upstream: a text that cannot be read must not keep a node for ever.
            return False
        if duration <= 0:
            return False
        # A pod that has not started is protected: its time has not begun to run.
        if pod.status.start_time is None:
            return True
        start_s = time_or_none(pod.status.start_time)
        # If it is not known when the pod started, neither is that its time is over.
        return start_s is None or self._now - start_s < duration

    def is_evictable(self, pod: Pod) -> bool:
        """Return True if the pod is evicted when its node goes."""
        return (
            is_active(pod)
            # What tolerates the taint of a leaving node stays there until the machine is gone; nothing has to evict it.
            and bool(untolerated_taints([DISRUPTED], pod.spec.tolerations))
            and not is_mirror(pod)
            and not self.is_protected(pod)
        )

    def budgets_of(self, pod: Pod) -> Sequence[Budget]:
        """Return the budgets that select the pod. Cost: a look-up, but for the first pod with its labels."""
        meta = pod.metadata
        key = meta.namespace, frozenset(meta.labels.items())
        if key not in self._budgets_by_labels:
            self._budgets_by_labels[key] = [
                budget
                for budget, selector in self._budgets
                if budget.metadata.namespace == meta.namespace and selector.matches(meta.labels)
            ]
        return self._budgets_by_labels[key]

    def _is_fully_blocked(self, pod: Pod) -> bool:
        if not self.is_evictable(pod):
            return False
        # See `CandidateFinder`: the API refuses to evict a pod of several budgets.
        budgets = self.budgets_of(pod)
        if len(budgets) > 1:
            return True
        return any(_allows_none(budget) and not lets_unready_go(budget, pod) for budget in budgets)


def is_active(pod: Pod) -> bool:
    """Return True if the pod has neither ended nor is being deleted."""
    return not pod.has_ended and not pod.is_terminating


def is_reschedulable(pod: Pod) -> bool:
    """Return True if the pod would be placed elsewhere when its node goes."""
    # A StatefulSet creates the pod of the same name only after the old one is gone, so its place is needed already.
    stays = is_active(pod) or (pod.is_terminating and is_owned_by(pod, "apps/v1", "StatefulSet"))
    return stays and not is_owned_by_daemon_set(pod) and not is_mirror(pod)


def lets_unready_go(budget: Budget, pod: Pod) -> bool:
    """Return True if the budget does not hold this pod because it is not ready."""
    return budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow" and any(
        condition.type == "Ready" and condition.status == "False" for condition in pod.status.conditions
    )


def _allows_none(budget: Budget) -> bool:
    spec = budget.spec
    # By the spec, whatever `disruptionsAllowed` says now: such a budget will never let a pod go.
    return spec.max_unavailable in (0, "0%") or spec.min_available == "100%"
