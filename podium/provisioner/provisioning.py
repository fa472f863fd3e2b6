"""One pass of Karpenter's provisioner over a cluster: what it would buy now.

Owns which pods are planned: those that wait, and those of nodes that are leaving.

Source: karpenter pkg/controllers/provisioning/provisioner.go (Schedule), v1.15.0.
"""

from __future__ import annotations

from typing import Any, Final

from podium.objects.core import Pod
from podium.provisioner.catalogue import Catalogue
from podium.provisioner.evictions import Evictions
from podium.provisioner.objects import ClusterObjects
from podium.provisioner.plan_basis import PlanBasis
from podium.provisioner.plans import existing_as_told, outcome_of, purchase_as_told
from podium.provisioner.settings import Settings
from podium.provisioner.solve import Solver
from podium.provisioner.state import leaving
from podium.provisioner.validation import fault_of, is_provisionable

NO_POOLS: Final = "no dynamic nodepools found"


def plan_provisioning(objects: ClusterObjects, catalogue: Catalogue, settings: Settings, now: float) -> dict[str, Any]:
    """The plan of one pass: `ignored`, `skipped`, `existing`, `claims` and `errors`.

    Args:
        now: the time, in seconds since the epoch.

    Raises:
        FieldError: an object has a value that has no meaning.
    """
    basis = PlanBasis(objects, catalogue, settings)
    waiting, ignored = pending_pods(basis)
    evictions = Evictions(objects.budgets, now)
    pods = [*waiting, *pods_of_leaving(basis, evictions)]
    if not pods:
        return {"ignored": ignored}
    if not basis.pools:
        return {"ignored": ignored, "errors": {each.key: NO_POOLS for each in pods}}
    results = Solver(basis, nodes=[each for each in basis.nodes if not each.is_leaving], pods=pods).solve()
    outcome = outcome_of(results, pods, basis.well_known, lower_min_values=settings.lower_min_values)
    return {
        "ignored": ignored,
        "skipped": dict(results.skipped),
        "existing": existing_as_told(outcome),
        "claims": [purchase_as_told(each, basis.well_known) for each in outcome.purchases],
        "errors": dict(outcome.errors),
    }


def pods_of_leaving(basis: PlanBasis, evictions: Evictions) -> list[Pod]:
    """The pods that are placed elsewhere because their nodes are leaving."""
    return [
        pod
        for state in leaving(basis.nodes)
        for pod in basis.pods_on(state)
        if evictions.is_currently_reschedulable(pod)
    ]


def pending_pods(basis: PlanBasis) -> tuple[list[Pod], dict[str, str]]:
    """The waiting pods that are planned for, and by name why others are ignored."""
    planned: list[Pod] = []
    ignored: dict[str, str] = {}
    for pod in basis.objects.pods:
        if is_provisionable(pod):
            fault = fault_of(pod, basis.volumes, basis.well_known)
            if fault is None:
                planned.append(pod)
            else:
                ignored[pod.key] = fault
    return planned, ignored
