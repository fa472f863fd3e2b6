"""Quotas that cover several namespaces and lie in trees: podium's own addition, only with `quotaTrees`.

A quota with `spec.namespaceSelector` covers the namespaces whose labels match, another one its own namespace. What is
used in a quota also counts in its `spec.parent` and above. The guarantees of quotas below another one divide its own.

Owns which quota covers a namespace, and which are above it. Never decides anything.

Source: none; it is podium's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from podium.framework import contract as fwk
from podium.objects.errors import FieldError
from podium.objects.requests import Requests
from podium.objects.resource_types import NAMESPACES
from podium.objects.selectors import NOTHING, Selector, compile_selector
from podium.objects.workloads import Namespace
from podium.plugins.contrib.capacity_scheduling.amounts import plus
from podium.plugins.contrib.capacity_scheduling.objects import ElasticQuota
from podium.plugins.contrib.capacity_scheduling.quotas import Quota, Quotas, QuotaSet, age_of, overflows
from podium.plugins.shared.followed import Followed

_NO_LABELS: Final[Mapping[str, str]] = {}


class TreeQuotas(Quotas):
    """Every quota by its key, and the usage of every namespace. Plugins share it by `handle.shared(TreeQuotas)`."""

    def __init__(self, handle: fwk.Handle) -> None:
        super().__init__(handle)
        self._namespaces: fwk.Lister[Namespace] = handle.lister(NAMESPACES)
        self._followed_namespaces = Followed(self._namespaces, self._on_namespace_change)
        self._names: frozenset[str] = frozenset()

    def read(self) -> QuotaSet:
        """Return the quotas that count now."""
        self._followed_namespaces.read()
        self._followed_pods.read()
        # A namespace may have pods and no object, as in files.
        if self._names != self._usage.keys():
            self._names, self._is_outdated = frozenset(self._usage), True
        return super().read()

    def covering(self, namespace: str) -> ElasticQuota | None:
        """Return the quota that covers the namespace; None if there is none."""
        owner = self.read().owners.get(namespace)
        return None if owner is None else self.objects.get(owner)

    def oddities_of(self, quota: ElasticQuota) -> Iterator[str]:
        """Yield what is suspicious about one of the quotas, its selector, its parent and what it covers included."""
        quotas = self.read()
        yield from Quota.of(quota).oddities()
        yield from overflows(quota)
        entry = quotas.quotas.get(quota.key)
        if entry is not None and entry.problem and not Quota.of(quota).problem:
            yield entry.problem
        try:
            selector = _selector_of(quota)
        except FieldError as error:
            yield f"ElasticQuota {quota.key}: spec.namespaceSelector: {error}; it selects nothing"
            return
        if selector is None:
            # Quotas that only group others may lie in one namespace.
            return
        for namespace, owner in quotas.owners.items():
            is_in_line = quota.key in (owner, *quotas.ancestors.get(owner, ()))
            if not is_in_line and selector.matches(self._labels_of(namespace)):
                yield f"ElasticQuota {quota.key}: does not count in {namespace} beside {owner}, which is older"

    def _labels_of(self, namespace: str) -> Mapping[str, str]:
        item = self._namespaces.get(namespace)
        return _NO_LABELS if item is None else item.metadata.labels

    def covered_namespaces(self, quota: ElasticQuota) -> Sequence[str]:
        """Return the namespaces that the quota covers."""
        return [namespace for namespace, owner in self.read().owners.items() if owner == quota.key]

    def _on_namespace_change(self, old: Namespace | None, new: Namespace | None) -> None:
        if old is None or new is None or old.metadata.labels != new.metadata.labels:
            self._is_outdated = True

    def _usage_by_quota(self) -> dict[str, Requests]:
        """Return the usage of each quota, with that of the quotas below it."""
        usage: dict[str, Requests] = {}
        for namespace, amounts in self._usage.items():
            owner = self._set.owners.get(namespace)
            if owner is not None:
                for name in (owner, *self._set.ancestors.get(owner, ())):
                    usage[name] = plus(usage.get(name, {}), amounts)
        return usage

    def _group(self) -> QuotaSet:
        """Return the quotas by key, each namespace with the one that covers it, the oldest first."""
        objects = {quota.key: quota for siblings in self._by_namespace.values() for quota in siblings.values()}
        by_age = sorted(objects.values(), key=age_of)
        quotas = {quota.key: Quota.of(quota) for quota in by_age}
        ancestors: dict[str, tuple[str, ...]] = {}
        for key in quotas:
            line, problem = _line_above(key, objects)
            if problem:
                quotas[key] = Quota(key, problem=f"ElasticQuota {key}: spec.parent: {problem}")
            elif line:
                ancestors[key] = line
        return QuotaSet.of(quotas, self._owners(by_age), ancestors)

    def _owners(self, by_age: list[ElasticQuota]) -> dict[str, str]:
        selectors = [(quota, _valid_selector_of(quota)) for quota in by_age]
        names = {namespace.metadata.name for namespace in self._namespaces.list()} | self._usage.keys()
        owners: dict[str, str] = {}
        for name in (*sorted(names), *(quota.metadata.namespace for quota in by_age)):
            if name not in owners:
                labels = self._labels_of(name)
                covering = (quota.key for quota, selector in selectors if _covers(quota, selector, name, labels))
                if (key := next(covering, None)) is not None:
                    owners[name] = key
        return owners


def _selector_of(quota: ElasticQuota) -> Selector | None:
    """Return the quota's selector of namespaces; None without one. Raises: FieldError if it is invalid."""
    selector = quota.spec.namespace_selector
    return None if selector is None else compile_selector(selector)


def _valid_selector_of(quota: ElasticQuota) -> Selector | None:
    """Return the quota's selector of namespaces; None without one. An invalid one selects nothing."""
    try:
        return _selector_of(quota)
    except FieldError:
        return NOTHING


def _covers(quota: ElasticQuota, selector: Selector | None, name: str, labels: Mapping[str, str]) -> bool:
    return quota.metadata.namespace == name if selector is None else selector.matches(labels)


def _line_above(key: str, objects: Mapping[str, ElasticQuota]) -> tuple[tuple[str, ...], str]:
    """Return the quotas above one, the nearest first, or what is wrong with them."""
    line: list[str] = []
    quota = objects[key]
    while quota.spec.parent:
        parent = quota.spec.parent if "/" in quota.spec.parent else f"{quota.metadata.namespace}/{quota.spec.parent}"
        if parent not in objects:
            return (), f"there is no quota {parent}"
        if parent == key or parent in line:
            return (), f"{parent} is below itself"
        line.append(parent)
        quota = objects[parent]
    return tuple(line), ""
