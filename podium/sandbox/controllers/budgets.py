"""The status of PodDisruptionBudgets: how many pods may be evicted now.

Source: kubernetes pkg/controller/disruption (v1.36).
Differs: a ready pod is healthy, whatever its containers did before. Custom resources with a scale are not looked up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from podium.sandbox.controllers.ownership import controller_of
from podium.sandbox.controllers.pods import FINISHED, is_active, is_ready, phase_of
from podium.sandbox.controllers.rollout import share
from podium.sandbox.journal import Record
from podium.sandbox.pods import with_condition
from podium.sandbox.resources import BY_KIND, resource_named
from podium.sandbox.selectors import match_label_selector
from podium.sandbox.store import Store, timestamp

Json = dict[str, Any]

BUDGETS = resource_named("poddisruptionbudgets")
_PODS = resource_named("pods")


def reconcile(store: Store, record: Record) -> None:
    """Update the status of a budget from its pods."""
    budget, spec = record.obj, record.obj.get("spec") or {}
    selector, namespace = spec.get("selector"), record.key[0]
    pods = [
        pod.obj
        for key, pod in store.collection(_PODS).records.items()
        if key[0] == namespace
        # A nil selector selects nothing, an empty one everything (policy/v1).
        and selector is not None
        and phase_of(pod.obj) not in FINISHED
        and match_label_selector(selector, pod.obj["metadata"].get("labels") or {})
    ]
    expected_count, desired_count = _expected_and_desired(store, spec, pods)
    healthy = sum(is_active(pod) and is_ready(pod) for pod in pods)
    # Unknown expectations allow nothing, as upstream fails closed.
    disruptions_allowed = max(0, healthy - desired_count) if expected_count else 0
    condition = {
        "type": "DisruptionAllowed",
        "status": str(disruptions_allowed > 0),
        "reason": "SufficientPods" if disruptions_allowed else "InsufficientPods",
        "lastTransitionTime": timestamp(store.now()),
        "observedGeneration": budget["metadata"].get("generation", 1),
    }
    status = {
        "currentHealthy": healthy,
        "desiredHealthy": desired_count,
        "disruptionsAllowed": disruptions_allowed,
        "expectedPods": expected_count,
        "observedGeneration": budget["metadata"].get("generation", 1),
        "conditions": with_condition((budget.get("status") or {}).get("conditions") or [], condition),
    }
    store.replace_record(BUDGETS, record, budget | {"metadata": dict(budget["metadata"]), "status": status})


def _expected_and_desired(store: Store, spec: Json, pods: list[Json]) -> tuple[int, int]:
    at_least, at_most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if at_most is not None:
        expected_count = _scale(store, pods)
        return expected_count, max(0, expected_count - share(at_most, expected_count, up=True))
    if isinstance(at_least, str):
        expected_count = _scale(store, pods)
        return expected_count, share(at_least, expected_count, up=True)
    # An absolute minAvailable needs no workload: it counts the pods themselves.
    return (0, 0) if at_least is None else (len(pods), at_least)


def _scale(store: Store, pods: Iterable[Json]) -> int:
    """Return the sum of the pods' workloads' replicas, or 0, which allows no disruption, if a pod has none."""
    replicas: dict[str, int] = {}
    for pod in pods:
        owner = _workload_of(store, pod)
        if owner is None:
            return 0
        replicas[owner["metadata"]["uid"]] = (owner.get("spec") or {}).get("replicas", 1)
    return sum(replicas.values())


def _workload_of(store: Store, obj: Json) -> Json | None:
    """Return the topmost existing controller of an object."""
    reference = controller_of(obj)
    resource = BY_KIND.get((reference.get("apiVersion", ""), reference.get("kind", ""))) if reference else None
    if reference is None or resource is None:
        return None
    owner = store.collection(resource).records.get((obj["metadata"].get("namespace", ""), reference.get("name", "")))
    if owner is None or owner.obj["metadata"]["uid"] != reference.get("uid"):
        return None
    return _workload_of(store, owner.obj) or owner.obj
