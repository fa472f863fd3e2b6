"""Decides whether PodDisruptionBudgets allow an eviction.

Source: kubernetes pkg/controller/disruption/disruption.go, pkg/registry/core/pod/rest/eviction.go, v1.36.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from podium.engine.derivation.control_objects import key_of, mapping_at, namespace_of
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
        return pod.metadata.namespace == namespace_of(self.manifest) and self.selector.matches(pod.metadata.labels)

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

    def allows(self, pod: Pod, pods: Iterable[Pod], expected_pods: ExpectedPods) -> bool:
        """Return whether the pod may be evicted now.

        Args:
            pods: all pods of the cluster.
        """
        covered = [neighbour for neighbour in pods if self.covers(neighbour) and not neighbour.is_terminating]
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


def _share(amount: Any, total: int) -> int:
    """Return a number, or a percentage of the total, rounded up."""
    if isinstance(amount, str) and amount.endswith("%") and amount[:-1].isdecimal():
        return math.ceil(int(amount[:-1]) * total / 100)
    return amount if isinstance(amount, int) and not isinstance(amount, bool) else 0
