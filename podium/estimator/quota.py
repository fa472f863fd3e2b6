"""The limits that the resource quotas of a namespace set for replicas.

Owns which quotas count a replica and how many replicas fit into their remaining amounts. Never looks at nodes.
As upstream, and unlike Kubernetes, a quota counts a pod if any one of its scopes matches.

Source: karmada pkg/estimator/server/framework/plugins/resourcequota/resourcequota.go, v1.18.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from podium.estimator.amounts import Demand, demands, exact
from podium.estimator.requirements import MAX_INT32, AssumedWorkload, Component, ReplicaRequirements
from podium.objects.errors import FieldError
from podium.objects.meta import LabelSelector, LabelSelectorRequirement, NamespacedObject, ResourceList, Value
from podium.objects.quantity import Quantity
from podium.objects.resource_names import CPU, MEMORY, is_extended_resource
from podium.objects.resource_types import ResourceType
from podium.objects.selectors import compile_selector

_REQUESTS: Final = "requests."
_PRIORITY_CLASS: Final = "PriorityClass"


class ScopedResourceSelectorRequirement(Value, frozen=True):
    """A quota scope, and the values of it that the quota selects."""

    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(Value, frozen=True):
    """The scopes of a quota that have values."""

    match_expressions: tuple[ScopedResourceSelectorRequirement, ...] = ()


class ResourceQuotaSpec(Value, frozen=True):
    """The hard limits of a quota, and the scopes that select its pods."""

    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Value, frozen=True):
    """The enforced limits of a quota, and their present use."""

    hard: ResourceList = {}
    used: ResourceList = {}


class ResourceQuota(NamespacedObject, frozen=True):
    """A limit on the sum of the requests of a namespace's pods."""

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


RESOURCE_QUOTAS: Final = ResourceType("ResourceQuota", "/api/v1/resourcequotas", ResourceQuota)


def replicas_within(
    quotas: Iterable[ResourceQuota],
    requirements: ReplicaRequirements | None,
    assumed_workloads: Sequence[AssumedWorkload] = (),
) -> int:
    """Return how many replicas the quotas allow; MAX_INT32 if none limits them.

    An empty namespace stands for all namespaces.

    Raises:
        FieldError: an amount cannot be read.
    """
    if requirements is None:
        return MAX_INT32
    namespace, needs = requirements.namespace, demands(requirements.resource_request)
    on_the_way = _components_in(namespace, assumed_workloads)
    limit = MAX_INT32
    for quota in quotas:
        # As upstream, an empty namespace is no filter.
        if namespace and quota.metadata.namespace != namespace:
            continue
        selectors = _selectors(quota)
        if selectors and not _counts(selectors, requirements.priority_class_name):
            continue
        limit = min(limit, _sets_within(quota, needs, _count_matching(selectors, on_the_way)))
    return limit


def sets_within(
    quotas: Iterable[ResourceQuota],
    namespace: str,
    components: Sequence[Component | None],
    assumed_workloads: Sequence[AssumedWorkload] = (),
) -> int:
    """Return how many sets the quotas of the namespace allow; MAX_INT32 if none limits them.

    Raises:
        FieldError: an amount cannot be read.
    """
    if not namespace or not components:
        return MAX_INT32
    on_the_way = _components_in(namespace, assumed_workloads)
    limit = MAX_INT32
    for quota in quotas:
        if quota.metadata.namespace == namespace and (members := _count_matching(_selectors(quota), components)):
            demands = [Demand(name, amount) for name, amount in _sum(members).items() if amount > 0]
            limit = min(limit, _sets_within(quota, demands, _count_matching(_selectors(quota), on_the_way)))
    return limit


# ---------------------------------------------------------------- scopes


def _selectors(quota: ResourceQuota) -> list[ScopedResourceSelectorRequirement]:
    requirements = [
        ScopedResourceSelectorRequirement(scope_name=scope, operator="Exists") for scope in quota.spec.scopes
    ]
    selector = quota.spec.scope_selector
    return [*requirements, *selector.match_expressions] if selector is not None else requirements


def _counts(selectors: Iterable[ScopedResourceSelectorRequirement], priority_class: str) -> bool:
    return any(_matches(selector, priority_class) for selector in selectors)


def _matches(selector: ScopedResourceSelectorRequirement, priority_class: str) -> bool:
    """Return whether the scope matches. Only PriorityClass can match, since nothing else is known of a replica."""
    if selector.scope_name != _PRIORITY_CLASS:
        return False
    requirement = LabelSelectorRequirement(key=_PRIORITY_CLASS, operator=selector.operator, values=selector.values)
    try:
        compiled_selector = compile_selector(LabelSelector(match_expressions=(requirement,)))
    except FieldError:
        return False
    return compiled_selector.matches({_PRIORITY_CLASS: priority_class} if priority_class else {})


def _components_in(namespace: str, assumed_workloads: Iterable[AssumedWorkload]) -> list[Component]:
    return [
        component
        for workload in assumed_workloads
        if workload.namespace == namespace
        for component in workload.components
        if component is not None and component.replica_requirements is not None
    ]


def _count_matching(
    selectors: Sequence[ScopedResourceSelectorRequirement], components: Iterable[Component | None]
) -> list[Component | None]:
    """Return the components that a quota with these scopes counts; all of them if it has no scope."""
    if not selectors:
        return list(components)
    return [
        component
        for component in components
        if component is not None
        and component.replica_requirements is not None
        and _counts(selectors, component.replica_requirements.priority_class_name)
    ]


# ---------------------------------------------------------------- amounts


def _sum(components: Iterable[Component | None]) -> dict[str, int]:
    """Return the requests of one complete set of components, for the resources that quotas support."""
    total: dict[str, int] = {}
    for component in components:
        if component is None or component.replica_requirements is None:
            continue
        for name, amount in demands(component.replica_requirements.resource_request):
            if name in (CPU, MEMORY) or is_extended_resource(name):
                total[name] = total.get(name, 0) + amount * component.replicas
    return total


def _sets_within(quota: ResourceQuota, needs: Iterable[Demand], on_the_way: Iterable[Component | None]) -> int:
    """Return how many times the demands fit into the quota's remaining amounts, less the assumed workloads."""
    free = _free(quota)
    for name, amount in _sum(on_the_way).items():
        if name in free:
            free[name] -= amount
            # Over the quota already: nothing fits, whatever else it limits.
            if free[name] < 0:
                return 0
    return min((max(free[name], 0) // amount for name, amount in needs if name in free), default=MAX_INT32)


def _free(quota: ResourceQuota) -> dict[str, int]:
    """Return the remainder for resources with both a limit and a use. `requests.X` takes precedence over `X`."""
    hard, usage = quota.status.hard, quota.status.used
    free: dict[str, int] = {}
    # Sorted so that `requests.cpu` comes after `cpu` and replaces it.
    for name in sorted(hard, key=lambda name: name.startswith(_REQUESTS)):
        plain = name.removeprefix(_REQUESTS)
        if name in usage and (plain in (CPU, MEMORY) or is_extended_resource(plain)):
            remainder = _remaining(hard, usage, name)
            free[plain] = remainder.milli_value if plain == CPU else remainder.value
    return free


def _remaining(hard: Mapping[str, str | int | float], usage: Mapping[str, str | int | float], name: str) -> Quantity:
    amount = exact(usage[name], f"status.used[{name}]")
    return exact(hard[name], f"status.hard[{name}]") + Quantity(-amount.unscaled, amount.exponent, amount.wide)
