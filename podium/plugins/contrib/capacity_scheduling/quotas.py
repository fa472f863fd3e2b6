"""The quotas and what their namespaces use, which all profiles share.

Owns which quota counts for a namespace, and the usage by namespace: pods with a node, and pods that are reserved. Never
decides anything.

Source: sigs.k8s.io/scheduler-plugins pkg/capacityscheduling (2026-08).
Differs: pods that were bound before their quota was created count, and an in-place resize is followed. Of several
quotas of a namespace the oldest counts, and after it is deleted the next one, whatever the order of events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from podium.framework import contract as fwk
from podium.objects.core import Pod
from podium.objects.errors import FieldError
from podium.objects.quantity import INT64_MAX
from podium.objects.requests import Requests, exact_amounts
from podium.objects.resource_names import CPU
from podium.objects.resource_types import PODS
from podium.plugins.contrib.calculations import simple_requests
from podium.plugins.contrib.capacity_scheduling.amounts import (
    NO_LIMIT,
    exceeds,
    limits_of,
    minus,
    plus,
    sum_exceeds,
    total,
)
from podium.plugins.contrib.capacity_scheduling.objects import ELASTIC_QUOTAS, ElasticQuota
from podium.plugins.shared.followed import Followed

_NOTHING: Final[Requests] = {}
_MILLI_IN_NANO: Final = 10**6
_ONE_IN_NANO: Final = 10**9


@dataclass(frozen=True, slots=True)
class Quota:
    """A quota with its amounts parsed.

    Attributes:
        problem: which field cannot be used; "" if all can.
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


@dataclass(frozen=True, slots=True)
class QuotaSet:
    """The quotas that count, and how they belong together.

    Attributes:
        quotas: by the name that `owners` has for each.
        owners: the quota of each namespace that has one.
        ancestors: in a tree, the quotas above each quota, the nearest first; absent for others.
        guaranteed: the sum of the `min` of all quotas that are below no other.
        in_total: the namespaces whose usage counts in the sum of all quotas: not those of a quota that cannot be used.
    """

    quotas: Mapping[str, Quota]
    owners: Mapping[str, str]
    ancestors: Mapping[str, tuple[str, ...]]
    guaranteed: Requests
    in_total: frozenset[str]

    @classmethod
    def of(
        cls, quotas: Mapping[str, Quota], owners: Mapping[str, str], ancestors: Mapping[str, tuple[str, ...]]
    ) -> QuotaSet:
        """Return the set of these quotas."""
        roots = (quota.min for name, quota in quotas.items() if name not in ancestors and not quota.problem)
        in_total = frozenset(
            namespace
            for namespace, owner in owners.items()
            if not quotas[(owner, *ancestors.get(owner, ()))[-1]].problem
        )
        return cls(quotas, owners, ancestors, total(roots), in_total)


@dataclass(slots=True, eq=False)
class QuotaState:
    """The quotas and their usage as one attempt sees them; dry runs change a clone.

    Attributes:
        quotas: never changed.
        usage: by the name of the quota, the amounts of those below it included; an entry is replaced, not changed.
        total: the amounts that all quotas together have in use; replaced, not changed.
        is_counted: by uid, whether each pod that a dry run has added or removed counts now.
        request: the amounts of the pod.
        ahead: the amounts of the pod, and of the nominated pods of its own quota that go before it.
        ahead_of_all: the same, and of nominated pods of other quotas that are within their `min`.
    """

    quotas: QuotaSet
    usage: dict[str, Requests]
    total: Requests
    is_counted: dict[str, bool]
    request: Requests
    ahead: Requests
    ahead_of_all: Requests

    def clone(self) -> QuotaState:
        """Return a copy for a dry run."""
        return replace(self, usage=dict(self.usage), is_counted=dict(self.is_counted))

    def owner_of(self, pod: Pod) -> str | None:
        """Return the name of the pod's quota; None if it has none."""
        return self.quotas.owners.get(pod.metadata.namespace)

    def add(self, pod: Pod) -> None:
        """Count a pod that a dry run adds; one that counts already is not counted twice."""
        if self.is_counted.get(pod.uid) is not True:
            self._move(pod, is_added=True)

    def remove(self, pod: Pod) -> None:
        """Stop counting a pod that a dry run removes."""
        if self.is_counted.get(pod.uid) is not False:
            self._move(pod, is_added=False)

    def _move(self, pod: Pod, *, is_added: bool) -> None:
        owner = self.owner_of(pod)
        if owner is None:
            return
        self.is_counted[pod.uid] = is_added
        change = plus if is_added else minus
        for name in self.line_of(owner):
            self.usage[name] = change(self.usage_of(name), amounts_of(pod))
        if pod.metadata.namespace in self.quotas.in_total:
            self.total = change(self.total, amounts_of(pod))

    def line_of(self, owner: str) -> tuple[str, ...]:
        """Return the quota and those above it, the nearest first."""
        return owner, *self.quotas.ancestors.get(owner, ())

    def usage_of(self, owner: str) -> Requests:
        """Return the amounts that count in the quota."""
        return self.usage.get(owner, _NOTHING)

    def exceeds_max(self, owner: str, extra: Requests) -> bool:
        """Return whether the quota, or one above it, would have more in use than its maximum."""
        quotas, usage, ancestors = self.quotas.quotas, self.usage, self.quotas.ancestors
        for name in self.line_of(owner) if ancestors else (owner,):
            if exceeds(extra, usage.get(name, _NOTHING), quotas[name].max, INT64_MAX):
                return True
        return False

    def exceeds_min(self, owner: str, extra: Requests) -> bool:
        """Return whether the quota would have more in use than it is guaranteed."""
        return exceeds(extra, self.usage_of(owner), self.quotas.quotas[owner].min, 0)

    def is_borrowing(self, owner: str) -> bool:
        """Return whether the quota has more in use than it is guaranteed."""
        return exceeds(self.usage_of(owner), _NOTHING, self.quotas.quotas[owner].min, 0)

    def exceeds_total(self, extra: Requests) -> bool:
        """Return whether all quotas together would have more in use than they are guaranteed together."""
        return sum_exceeds(self.total, extra, self.quotas.guaranteed)

    def share_of(self, owner: str, extra: Requests = _NOTHING) -> float:
        """Return how often the quota would use up its guarantee, by the resource of which it would use most."""
        guarantee, usage = self.quotas.quotas[owner].min, plus(self.usage_of(owner), extra)
        shares = (usage[name] / amount for name, amount in guarantee.items() if amount > 0 and name in usage)
        return max(shares, default=0.0)

    def are_siblings(self, first: str, second: str) -> bool:
        """Return whether both quotas are directly below the same one."""
        ancestors = self.quotas.ancestors
        return first != second and first in ancestors and ancestors[first][:1] == ancestors.get(second, ())[:1]


class Quotas:
    """Every quota, and the usage of every namespace. Plugins share it by `handle.shared(Quotas)`."""

    def __init__(self, handle: fwk.Handle) -> None:
        self.objects: fwk.Lister[ElasticQuota] = handle.lister(ELASTIC_QUOTAS)
        self._by_namespace: dict[str, dict[str, ElasticQuota]] = {}
        self._set = QuotaSet.of({}, {}, {})
        self._is_outdated = self._is_read = False
        self._usage: dict[str, Requests] = {}
        self._total: Requests = _NOTHING
        """What the namespaces use together whose quotas can be used."""
        self._amounts: dict[str, tuple[str, Requests]] = {}
        """The namespace and the amounts of each pod that counts, by uid."""
        self._reserved: set[str] = set()
        """The pods that count, but are not bound yet."""
        self._followed_quotas = Followed(self.objects, self._on_quota_change)
        self._followed_pods = Followed(handle.lister(PODS), self._on_pod_change)

    def read(self) -> QuotaSet:
        """Return the quotas that count now."""
        if not self._is_read:
            self._is_read = True
            self._followed_quotas.read()
            self._followed_pods.read()
        if self._is_outdated:
            self._set, self._is_outdated = self._group(), False
            self._total = total(self._usage.get(namespace, _NOTHING) for namespace in self._set.in_total)
        return self._set

    def covering(self, namespace: str) -> ElasticQuota | None:
        """Return the quota that counts for the namespace; None if there is none."""
        return min(self._by_namespace.get(namespace, {}).values(), key=age_of, default=None)

    def oddities(self) -> Iterator[str]:
        """Yield what is suspicious about the quotas, in words."""
        for quota in sorted(self.objects.list(), key=lambda quota: quota.key):
            yield from self.oddities_of(quota)

    def oddities_of(self, quota: ElasticQuota) -> Iterator[str]:
        """Yield what is suspicious about one of the quotas, in words."""
        yield from Quota.of(quota).oddities()
        yield from overflows(quota)
        oldest = min(self.objects.in_namespace(quota.metadata.namespace), key=age_of, default=quota)
        if oldest.key != quota.key:
            yield f"ElasticQuota {quota.key}: does not count beside {oldest.key} of its namespace, which is older"

    def covered_namespaces(self, quota: ElasticQuota) -> Sequence[str]:
        """Return the namespaces that the quota counts for."""
        return (quota.metadata.namespace,)

    def state_for(self, pod: Pod, nominated_pods: Iterator[Pod]) -> QuotaState:
        """Return the state of an attempt at the pod.

        Args:
            nominated_pods: the pods that are nominated to nodes.
        """
        quotas, request = self.read(), amounts_of(pod)
        state = QuotaState(quotas, self._usage_by_quota(), self._total, {}, request, request, request)
        owner = state.owner_of(pod)
        if owner is None:
            return state
        own_amounts, foreign_amounts = [request], []
        for nominated_pod in nominated_pods:
            nominated_owner = state.owner_of(nominated_pod)
            if nominated_pod.uid == pod.uid or nominated_owner is None:
                continue
            if nominated_owner == owner:
                if nominated_pod.priority >= pod.priority:
                    own_amounts.append(amounts_of(nominated_pod))
            elif not state.is_borrowing(nominated_owner):
                foreign_amounts.append(amounts_of(nominated_pod))
        if own_amounts[1:] or foreign_amounts:
            state.ahead, state.ahead_of_all = total(own_amounts), total(own_amounts + foreign_amounts)
        return state

    def _usage_by_quota(self) -> dict[str, Requests]:
        """Return the usage of each quota; here they have the names of their namespaces."""
        return dict(self._usage)

    def reserve(self, pod: Pod) -> None:
        """Count a pod that is about to be bound."""
        self.read()
        uid = pod.uid
        if uid not in self._amounts:
            self._reserved.add(uid)
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
        if namespace in self._set.in_total:
            self._total = plus(self._total, amounts)

    def _stop_counting(self, uid: str) -> None:
        self._reserved.discard(uid)
        if (former := self._amounts.pop(uid, None)) is not None:
            namespace, amounts = former
            self._usage[namespace] = minus(self._usage[namespace], amounts)
            if namespace in self._set.in_total:
                self._total = minus(self._total, amounts)

    def _on_quota_change(self, old: ElasticQuota | None, new: ElasticQuota | None) -> None:
        quota = new or old
        assert quota is not None
        namespace = quota.metadata.namespace
        siblings = self._by_namespace.setdefault(namespace, {})
        if new is None:
            siblings.pop(quota.key, None)
        else:
            siblings[new.key] = new
        self._is_outdated = True

    def _group(self) -> QuotaSet:
        """Return the oldest quota of each namespace, by that namespace."""
        quotas = {
            namespace: Quota.of(min(siblings.values(), key=age_of))
            for namespace, siblings in self._by_namespace.items()
            if siblings
        }
        return QuotaSet.of(quotas, {namespace: namespace for namespace in quotas}, {})


def amounts_of(pod: Pod) -> Requests:
    """Return the amounts of a pod; nothing if they cannot be parsed: such a pod is never placed."""
    try:
        return simple_requests(pod.spec)
    except FieldError:
        return _NOTHING


def overflows(quota: ElasticQuota) -> Iterator[str]:
    """Yield the amounts that are too large, and so count as others, as upstream's do."""
    for part, raw_amounts in (("min", quota.spec.min), ("max", quota.spec.max)):
        try:
            amounts = exact_amounts(raw_amounts or {}, f"spec.{part}")
        except FieldError:
            continue
        for name, amount in amounts.items():
            unit = _MILLI_IN_NANO if name == CPU else _ONE_IN_NANO
            if abs(amount.nano_value) > INT64_MAX * unit:
                yield f"ElasticQuota {quota.key}: spec.{part}[{name}]: is beyond 64 bits, so another amount counts"


def age_of(quota: ElasticQuota) -> tuple[str, str]:
    """Return the key by which the oldest quota of a namespace comes first."""
    return quota.metadata.creation_timestamp or "", quota.key
