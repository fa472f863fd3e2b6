"""Enforces ResourceQuotas on pods and claims to storage.

Source: kubernetes pkg/quota/v1/evaluator/core/pods.go, apiserver pkg/admission/plugin/resourcequota, v1.36.2.
Differs: only pods and claims to storage are counted, not other objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from podium.engine.derivation.control_objects import ControlObjects, items_at, key_of, mapping_at, namespace_of
from podium.engine.manifests import Manifest, as_manifest
from podium.objects.core import Pod
from podium.objects.errors import FieldError
from podium.objects.quantity import QuantityError, canonical_text, parse
from podium.objects.requests import exact_limits, exact_requests
from podium.objects.resource_names import is_hugepages
from podium.objects.resource_types import PERSISTENT_VOLUME_CLAIMS
from podium.objects.storage import PersistentVolumeClaim

_NANO: Final = 10**9
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_REQUIRED: Final = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")

Usage = dict[str, int]
"""Amounts in billionths, by the names under which quotas limit them."""


class Quotas:
    """The ResourceQuotas of a cluster, and their usage by pods and claims to storage.

    Args:
        objects: holds the quotas, which are looked up at each creation.
        pods: returns the pods of a namespace, for quotas without a status.
        claims: returns the claims to storage of a namespace, likewise.
    """

    def __init__(
        self,
        objects: ControlObjects,
        pods: Callable[[str], Iterable[Pod]],
        claims: Callable[[str], Iterable[PersistentVolumeClaim]],
    ) -> None:
        self._objects = objects
        self._pods = pods
        self._claims = claims
        self._used: dict[str, Usage] = {}

    def refusal(self, pod: Pod, manifest: Manifest) -> str:
        """Return why a quota refuses the pod; if none does, count the pod and return "".

        Args:
            manifest: the pod after admission.
        """
        quotas = self._matching(manifest, pod.metadata.namespace)
        for quota in quotas:
            if missing := _missing(_hard(quota), mapping_at(manifest, "spec")):
                return f"failed quota: {_name(quota)}: must specify {missing}"
        return self._excess(quotas, _usage_of(pod))

    def claim_refusal(self, claim: Manifest) -> str:
        """Return why a quota refuses the claim to storage; if none does, count the claim and return "".

        Args:
            claim: the claim after admission.
        """
        return self._excess(self._without_scopes(namespace_of(claim)), _usage_of_claim(claim))

    def _excess(self, quotas: Sequence[Manifest], usage: Usage) -> str:
        """Return which quota the usage exceeds; if it exceeds none, count it and return ""."""
        for quota in quotas:
            hard, usage_now = _hard(quota), self._used_of(quota)
            exceeded_names = sorted(
                name for name, limit in hard.items() if name in usage and usage_now.get(name, 0) + usage[name] > limit
            )
            if exceeded_names:
                return (
                    f"exceeded quota: {_name(quota)}, requested: {_amounts(exceeded_names, usage)}, "
                    f"used: {_amounts(exceeded_names, usage_now)}, limited: {_amounts(exceeded_names, hard)}"
                )
        # Only now, as a pod that one quota refuses must leave no usage in the others.
        for quota in quotas:
            self._add(quota, usage, 1)
        return ""

    def on_pod_gone(self, pod: Pod) -> None:
        """Stop counting a deleted pod, in the quotas without scopes."""
        self._give_back(pod.metadata.namespace, _usage_of(pod))

    def on_claim_gone(self, claim: PersistentVolumeClaim) -> None:
        """Stop counting a deleted claim to storage."""
        self._give_back(claim.metadata.namespace, _usage_of_claim(as_manifest(PERSISTENT_VOLUME_CLAIMS, claim)))

    def _give_back(self, namespace: str, usage: Usage) -> None:
        # Whether a pod was in a quota's scope follows from its manifest, which is gone by now.
        for quota in self._without_scopes(namespace):
            # Usage that is not counted yet will be counted without the deleted object.
            if key_of(quota) in self._used or _status(quota):
                self._add(quota, usage, -1)

    def _add(self, quota: Manifest, usage: Usage, sign: int) -> None:
        usage_now = self._used_of(quota)
        for name, amount in usage.items():
            usage_now[name] = usage_now.get(name, 0) + sign * amount

    def _used_of(self, quota: Manifest) -> Usage:
        key = key_of(quota)
        if key not in self._used:
            # In a dump the status is the better source: it also counts objects that the files lack.
            status = _status(quota)
            self._used[key] = _parse(status) if status else self._count(namespace_of(quota))
        return self._used[key]

    def _count(self, namespace: str) -> Usage:
        total: Usage = {}
        claims = (as_manifest(PERSISTENT_VOLUME_CLAIMS, claim) for claim in self._claims(namespace))
        for usage in (*map(_usage_of, self._pods(namespace)), *map(_usage_of_claim, claims)):
            for name, amount in usage.items():
                total[name] = total.get(name, 0) + amount
        return total

    def _matching(self, pod: Manifest, namespace: str) -> list[Manifest]:
        return [
            quota
            for quota in self._objects.in_namespace("ResourceQuota", namespace)
            if all(_is_in_scope(pod, *scope) for scope in _scopes(quota))
        ]

    def _without_scopes(self, namespace: str) -> list[Manifest]:
        return [quota for quota in self._objects.in_namespace("ResourceQuota", namespace) if not _scopes(quota)]


def _status(quota: Manifest) -> Mapping[str, Any]:
    return mapping_at(quota, "status", "used")


def _scopes(quota: Manifest) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return the name, operator and values of each scope."""
    names = mapping_at(quota, "spec").get("scopes")
    scopes = [(str(name), "Exists", ()) for name in names] if isinstance(names, list) else []
    return [
        *scopes,
        *(
            (str(scope.get("scopeName")), str(scope.get("operator")), tuple(scope.get("values") or ()))
            for scope in items_at(quota, "spec", "scopeSelector", "matchExpressions")
        ),
    ]


def _is_in_scope(pod: Manifest, name: str, operator: str, values: tuple[str, ...]) -> bool:
    spec = mapping_at(pod, "spec")
    containers = (*items_at(spec, "containers"), *items_at(spec, "initContainers"))
    resources = [mapping_at(container, "resources") for container in containers] + [mapping_at(spec, "resources")]
    is_best_effort = not any(amounts.get("requests") or amounts.get("limits") for amounts in resources)
    if name == "PriorityClass":
        class_name = str(spec.get("priorityClassName") or "")
        is_listed = class_name in values
        return {"In": is_listed, "NotIn": not is_listed, "DoesNotExist": not class_name}.get(operator, bool(class_name))
    is_in: Mapping[str, bool] = {
        "Terminating": spec.get("activeDeadlineSeconds") is not None,
        "NotTerminating": spec.get("activeDeadlineSeconds") is None,
        "BestEffort": is_best_effort,
        "NotBestEffort": not is_best_effort,
    }
    return is_in.get(name, False)


def _missing(hard: Usage, spec: Mapping[str, Any]) -> str:
    """Return the limited resources that every container must state, each with the containers that do not."""
    # Requests at the level of the pod satisfy the quota for all containers.
    if mapping_at(spec, "resources"):
        return ""
    names: dict[str, set[str]] = {}
    for container in (*items_at(spec, "containers"), *items_at(spec, "initContainers")):
        for name in hard.keys() & set(_REQUIRED):
            kind, _, resource = name.rpartition(".")
            if resource not in mapping_at(container, "resources", kind or "requests"):
                names.setdefault(name, set()).add(str(container.get("name") or ""))
    return "; ".join(f"{name} for: {','.join(sorted(containers))}" for name, containers in sorted(names.items()))


def _usage_of(pod: Pod) -> Usage:
    """Return the usage of the pod; a pod that has ended only counts as an object."""
    usage = {"count/pods": _NANO}
    if pod.has_ended:
        return usage
    usage["pods"] = _NANO
    try:
        requests, limits = exact_requests(pod.spec), exact_limits(pod.spec)
    except FieldError:
        # The decoder or the scheduler will report the field, which a quota need not do, too.
        return usage
    for name, amount in requests.items():
        usage[f"requests.{name}"] = amount.nano_value
        # Extended resources are limited by `requests.` alone, as they cannot be overcommitted.
        if name in _COMPUTE or is_hugepages(name):
            usage[name] = amount.nano_value
    return usage | {f"limits.{name}": amount.nano_value for name, amount in limits.items() if name in _COMPUTE}


def _usage_of_claim(claim: Manifest) -> Usage:
    spec = mapping_at(claim, "spec")
    storage = _parse(mapping_at(spec, "resources", "requests")).get("storage", 0)
    usage = {"persistentvolumeclaims": _NANO, "count/persistentvolumeclaims": _NANO, "requests.storage": storage}
    if storage_class := spec.get("storageClassName"):
        prefix = f"{storage_class}.storageclass.storage.k8s.io"
        usage |= {f"{prefix}/persistentvolumeclaims": _NANO, f"{prefix}/requests.storage": storage}
    return usage


def _hard(quota: Manifest) -> Usage:
    return _parse(mapping_at(quota, "spec", "hard"))


def _parse(amounts: Mapping[str, Any]) -> Usage:
    parsed = {}
    for name, amount in amounts.items():
        try:
            parsed[name] = parse(amount).nano_value
        except QuantityError:
            continue
    return parsed


def _amounts(names: Iterable[str], amounts: Usage) -> str:
    return ",".join(f"{name}={written_amount(name, amounts.get(name, 0))}" for name in names)


def written_amount(name: str, nanos: int) -> str:
    """Return the amount as people write it; memory and storage are in powers of 1024."""
    units = nanos // _NANO
    if nanos % _NANO == 0:
        is_binary = units and units % 1024 == 0 and any(part in name for part in ("memory", "storage", "hugepages-"))
        return canonical_text(f"{units // 1024}Ki") if is_binary else str(units)
    return f"{nanos // 10**6}m" if nanos % 10**6 == 0 else f"{nanos}n"


def _name(quota: Manifest) -> str:
    return str(mapping_at(quota, "metadata").get("name") or "")
