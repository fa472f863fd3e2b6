"""The quotas and what their namespaces use, which all profiles share.

Owns which quota counts for a namespace, and the usage by namespace: pods with a node, and pods that are reserved. Never
decides anything.

Source: sigs.k8s.io/scheduler-plugins pkg/capacityscheduling (2026-08).
Differs: pods that were bound before their quota was created count, and an in-place resize is followed. Of several
quotas of a namespace the oldest counts, and after it is deleted the next one, whatever the order of events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from podium.framework import contract as fwk
from podium.objects.core import Pod
from podium.objects.errors import FieldError
from podium.objects.quantity import INT64_MAX
from podium.objects.requests import Requests
from podium.objects.resource_types import PODS
from podium.plugins.contrib.calculations import simple_requests
from podium.plugins.contrib.capacity_scheduling.amounts import NO_LIMIT, exceeds, limits_of, minus, plus, total
from podium.plugins.contrib.capacity_scheduling.objects import ELASTIC_QUOTAS, ElasticQuota
from podium.plugins.shared.followed import Followed

_NOTHING: Final[Requests] = {}


@dataclass(frozen=True, slots=True)
class Quota:
    """The quota of one namespace, with its amounts parsed.

    Attributes:
        problem: which field cannot be parsed; "" if all can.
    """

    key: str
    min: Requests = field(default_factory=dict)
    max: Requests = field(default_factory=dict)
    problem: str = ""

    @classmethod
    def of(cls, quota: ElasticQuota) -> Quota:
        """Parse a quota."""
        spec = quota.spec
        try:
            return cls(
                quota.key,
                limits_of(spec.min or {}, "spec.min"),
                NO_LIMIT if spec.max is None else limits_of(spec.max, "spec.max"),
            )
        except FieldError as error:
            return cls(quota.key, problem=f"ElasticQuota {quota.key}: {error}")

    def oddities(self) -> Iterator[str]:
        """Yield what is suspicious about the amounts, in words; they apply all the same."""
        if self.problem:
            yield self.problem
        for part, amounts in (("min", self.min), ("max", self.max)):
            for name, amount in amounts.items():
                if amount < 0:
                    yield f"ElasticQuota {self.key}: spec.{part}[{name}]: is negative"
        for name, amount in self.min.items():
            if amount > self.max.get(name, INT64_MAX):
                yield f"ElasticQuota {self.key}: spec.min[{name}]: is above spec.max[{name}]"


@dataclass(slots=True, eq=False)
class QuotaState:
    """The quotas and the usage of their namespaces as one attempt sees them; dry runs change a clone.

    Attributes:
        quotas: by namespace. Never changed.
        usage: by namespace; an entry is replaced, not changed.
        is_counted: by uid, whether each pod that a dry run has added or removed counts now.
        guaranteed: the sum of all `min`.
        request: the amounts of the pod.
        ahead: the amounts of the pod, and of the nominated pods of its own quota that go before it.
        ahead_of_all: the same, and of nominated pods of other quotas that are within their `min`.
    """

    quotas: Mapping[str, Quota]
    usage: dict[str, Requests]
    is_counted: dict[str, bool]
    guaranteed: Requests
    request: Requests
    ahead: Requests
    ahead_of_all: Requests

    def clone(self) -> QuotaState:
        """Return a copy for a dry run."""
        return QuotaState(
            self.quotas,
            dict(self.usage),
            dict(self.is_counted),
            self.guaranteed,
            self.request,
            self.ahead,
            self.ahead_of_all,
        )

    def add(self, pod: Pod) -> None:
        """Count a pod that a dry run adds; one that counts already is not counted twice."""
        if self.is_counted.get(pod.uid) is not True:
            self._move(pod, is_added=True)

    def remove(self, pod: Pod) -> None:
        """Stop counting a pod that a dry run removes."""
        if self.is_counted.get(pod.uid) is not False:
            self._move(pod, is_added=False)

    def _move(self, pod: Pod, *, is_added: bool) -> None:
        namespace = pod.metadata.namespace
        if namespace not in self.quotas:
            return
        self.is_counted[pod.uid] = is_added
        usage = self.usage.get(namespace, _NOTHING)
        self.usage[namespace] = (plus if is_added else minus)(usage, amounts_of(pod))

    def exceeds_max(self, namespace: str, extra: Requests) -> bool:
        """Return whether the namespace would use more than its maximum."""
        return exceeds(extra, self.usage.get(namespace, _NOTHING), self.quotas[namespace].max, INT64_MAX)

    def exceeds_min(self, namespace: str, extra: Requests) -> bool:
        """Return whether the namespace would use more than it is guaranteed."""
        return exceeds(extra, self.usage.get(namespace, _NOTHING), self.quotas[namespace].min, 0)

    def is_borrowing(self, namespace: str) -> bool:
        """Return whether the namespace uses more than it is guaranteed."""
        return exceeds(self.usage.get(namespace, _NOTHING), _NOTHING, self.quotas[namespace].min, 0)

    def exceeds_total(self, extra: Requests) -> bool:
        """Return whether all quotas together would use more than they are guaranteed together."""
        parsed = (namespace for namespace, quota in self.quotas.items() if not quota.problem)
        usage = total(self.usage.get(namespace, _NOTHING) for namespace in parsed)
        return exceeds(plus(usage, extra), _NOTHING, self.guaranteed, 0)


class Quotas:
    """Every quota, and the usage of every namespace. Plugins share it by `handle.shared(Quotas)`."""

    def __init__(self, handle: fwk.Handle) -> None:
        self.objects: fwk.Lister[ElasticQuota] = handle.lister(ELASTIC_QUOTAS)
        self._by_namespace: dict[str, dict[str, ElasticQuota]] = {}
        self._effective: dict[str, Quota] = {}
        self._guaranteed: Requests = _NOTHING
        self._usage: dict[str, Requests] = {}
        self._amounts: dict[str, tuple[str, Requests]] = {}
        """The namespace and the amounts of each pod that counts, by uid."""
        self._reserved: set[str] = set()
        """The pods that count, but are not bound yet."""
        self._followed_quotas = Followed(self.objects, self._on_quota_change)
        self._followed_pods = Followed(handle.lister(PODS), self._on_pod_change)

    def read(self) -> Mapping[str, Quota]:
        """Return the quota of each namespace that has one."""
        self._followed_quotas.read()
        self._followed_pods.read()
        return self._effective

    def state_for(self, pod: Pod, nominated_pods: Iterator[Pod]) -> QuotaState:
        """Return the state of an attempt at the pod.

        Args:
            nominated_pods: the pods that are nominated to nodes.
        """
        quotas, namespace, request = self.read(), pod.metadata.namespace, amounts_of(pod)
        state = QuotaState(quotas, dict(self._usage), {}, self._guaranteed, request, request, request)
        if namespace not in quotas:
            return state
        own_amounts, foreign_amounts = [request], []
        for nominated_pod in nominated_pods:
            owner = nominated_pod.metadata.namespace
            if nominated_pod.uid == pod.uid or owner not in quotas:
                continue
            if owner == namespace:
                if nominated_pod.priority >= pod.priority:
                    own_amounts.append(amounts_of(nominated_pod))
            elif not state.is_borrowing(owner):
                foreign_amounts.append(amounts_of(nominated_pod))
        state.ahead, state.ahead_of_all = total(own_amounts), total(own_amounts + foreign_amounts)
        return state

    def reserve(self, pod: Pod) -> None:
        """Count a pod that is about to be bound."""
        self.read()
        if pod.uid not in self._amounts:
            self._reserved.add(pod.uid)
            self._count(pod)

    def unreserve(self, pod: Pod) -> None:
        """Stop counting a pod that was not bound."""
        if pod.uid in self._reserved:
            self._stop_counting(pod.uid)

    # ------------------------------------------------------------ changes

    def _on_pod_change(self, old: Pod | None, new: Pod | None) -> None:
        if new is None:
            assert old is not None
            self._stop_counting(old.uid)
        elif new.node_name:
            self._reserved.discard(new.uid)
            former = self._amounts.get(new.uid)
            if former is None or (old is not None and old.spec is not new.spec):
                self._stop_counting(new.uid)
                self._count(new)

    def _count(self, pod: Pod) -> None:
        namespace, amounts = pod.metadata.namespace, amounts_of(pod)
        self._amounts[pod.uid] = namespace, amounts
        self._usage[namespace] = plus(self._usage.get(namespace, _NOTHING), amounts)

    def _stop_counting(self, uid: str) -> None:
        self._reserved.discard(uid)
        if (former := self._amounts.pop(uid, None)) is not None:
            namespace, amounts = former
            self._usage[namespace] = minus(self._usage[namespace], amounts)

    def _on_quota_change(self, old: ElasticQuota | None, new: ElasticQuota | None) -> None:
        quota = new or old
        assert quota is not None
        namespace = quota.metadata.namespace
        siblings = self._by_namespace.setdefault(namespace, {})
        if new is None:
            siblings.pop(quota.key, None)
        else:
            siblings[new.key] = new
        # A new mapping, since attempts under way hold the old one.
        effective = dict(self._effective)
        effective.pop(namespace, None)
        if siblings:
            effective[namespace] = Quota.of(min(siblings.values(), key=age_of))
        self._effective = effective
        self._guaranteed = total(parsed.min for parsed in effective.values())


def amounts_of(pod: Pod) -> Requests:
    """Return the amounts of a pod; nothing if they cannot be parsed: such a pod is never placed."""
    try:
        return simple_requests(pod.spec)
    except FieldError:
        return _NOTHING


def age_of(quota: ElasticQuota) -> tuple[str, str]:
    """Return the key by which the oldest quota of a namespace comes first."""
    return quota.metadata.creation_timestamp or "", quota.key
