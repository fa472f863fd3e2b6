"""Decides whether PodDisruptionBudgets allow an eviction.

Source: kubernetes pkg/controller/disruption/disruption.go, pkg/registry/core/pod/rest/eviction.go, v1.36.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

from podium.engine.derivation.control_objects import ControlObjects, key_of, mapping_at, namespace_of
from podium.engine.derivation.scale_down import is_ready
from podium.engine.manifests import Manifest
from podium.objects.core import Pod
from podium.objects.errors import FieldError
from podium.objects.meta import LabelSelector
from podium.objects.selectors import Selector, compile_selector

ExpectedPods: TypeAlias = Callable[[Sequence[Pod]], int | None]
"""Returns the total replicas of these pods' controllers; None if one of them cannot be scaled."""


@dataclass(frozen=True)
class Budget:
    """A PodDisruptionBudget with its selector compiled."""

    manifest: Manifest
    selector: Selector
    namespace: str = field(init=False)

    def __post_init__(self) -> None:
        """Read the namespace once: many pods are compared with it."""
        object.__setattr__(self, "namespace", namespace_of(self.manifest))

    @classmethod
    def of(cls, manifest: Manifest) -> Budget | None:
        """Read the budget; return None if its selector cannot be read."""
        content = mapping_at(manifest, "spec").get("selector")
        try:
            return cls(manifest, compile_selector(None if content is None else msgspec.convert(content, LabelSelector)))
        except (msgspec.ValidationError, FieldError):
            return None

    @property
    def key(self) -> str:
        """The namespace and name of the budget."""
        return key_of(self.manifest)

    def covers(self, pod: Pod) -> bool:
        """Return whether the budget selects the pod."""
        return pod.metadata.namespace == self.namespace and self.selector.matches(pod.metadata.labels)

    def advice(self) -> str:
        """Say which change would let the budget allow one disruption more."""
        spec = mapping_at(self.manifest, "spec")
        name = self.key.partition("/")[2]
        if (unavailable_max := spec.get("maxUnavailable")) is not None:
            larger_max = unavailable_max + 1 if isinstance(unavailable_max, int) else "a larger share"
            return f"raise maxUnavailable of {name} from {unavailable_max} to {larger_max}"
        least = spec.get("minAvailable", 1)
        smaller_least = least - 1 if isinstance(least, int) else "a smaller share"
        return f"lower minAvailable of {name} from {least} to {smaller_least}, or give its workload another replica"

    def allows(self, pod: Pod, covered_pods: Iterable[Pod], expected_pods: ExpectedPods) -> bool:
        """Return whether the pod may be evicted now.

        Args:
            covered_pods: all pods that the budget covers.
        """
        covered = [neighbour for neighbour in covered_pods if not neighbour.is_terminating]
        healthy = sum(map(is_ready, covered))
        least = self._least_healthy(covered, expected_pods)
        if not is_ready(pod):
            if mapping_at(self.manifest, "spec").get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
                return True
            return least is not None and healthy >= least > 0
        return least is not None and healthy > least

    def _least_healthy(self, covered: Sequence[Pod], expected_pods: ExpectedPods) -> int | None:
        """Return how many pods must stay healthy; None if that is unknown, so that no healthy pod may be evicted."""
        spec = mapping_at(self.manifest, "spec")
        least, unavailable_max = spec.get("minAvailable"), spec.get("maxUnavailable")
        if unavailable_max is None and not isinstance(least, str):
            return 1 if least is None else _share(least, 0)
        total = expected_pods(covered)
        if not total:
            return None
        return _share(least, total) if unavailable_max is None else max(total - _share(unavailable_max, total), 0)


class Budgets:
    """The budgets of a cluster, and which of them cover pods with the same labels. Budgets may change between calls.

    Cost: of the first pod with its labels, a match with each budget of its namespace; of each other one, a look-up.
    """

    def __init__(self, objects: ControlObjects) -> None:
        self._objects = objects
        self._manifests: dict[str, list[Manifest]] = {}
        self._budgets: dict[str, list[Budget]] = {}
        self._covering: dict[str, dict[frozenset[tuple[str, str]], tuple[Budget, ...]]] = {}

    def covering(self, pod: Pod) -> tuple[Budget, ...]:
        """Return the budgets that select the pod. After a change of budgets call `refresh` before."""
        namespace, labels = pod.metadata.namespace, frozenset(pod.metadata.labels.items())
        if namespace not in self._budgets:
            self.refresh(namespace)
        known_budgets = self._covering[namespace]
        if labels not in known_budgets:
            known_budgets[labels] = tuple(budget for budget in self._budgets[namespace] if budget.covers(pod))
        return known_budgets[labels]

    def refresh(self, namespace: str) -> None:
        """Read the budgets of the namespace anew if they have changed."""
        manifests, former = self._objects.in_namespace("PodDisruptionBudget", namespace), self._manifests.get(namespace)
        # The same objects: whatever changes a manifest, puts another one in its place.
        if former is not None and list(map(id, former)) == list(map(id, manifests)):
            return
        self._manifests[namespace] = manifests
        self._budgets[namespace] = [budget for budget in map(Budget.of, manifests) if budget is not None]
        self._covering[namespace] = {}


def _share(amount: Any, total: int) -> int:
    """Return a number, or a percentage of the total, rounded up."""
    if isinstance(amount, str) and amount.endswith("%") and amount[:-1].isdecimal():
        return math.ceil(int(amount[:-1]) * total / 100)
    return amount if isinstance(amount, int) and not isinstance(amount, bool) else 0
