"""One pass of Karpenter's provisioner over a cluster: what it would buy now.

Owns which pods are planned: those that wait, and those of nodes that are leaving.

Source: karpenter pkg/controllers/provisioning/provisioner.go (Schedule), v1.15.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.objects.core import Pod
from podium.provisioner.apis.objects import ClusterObjects
from podium.provisioner.cloudprovider.catalogue import Catalogue
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.provisioning.plans import Outcome, existing_as_told, outcome_of, purchase_as_told
from podium.provisioner.provisioning.solve import Results, Solver
from podium.provisioner.state.evictions import Evictions
from podium.provisioner.state.settings import Settings
from podium.provisioner.state.state_node import leaving
from podium.provisioner.state.validation import fault_of, is_provisionable

NO_POOLS: Final = "no dynamic nodepools found"


@dataclass(frozen=True, eq=False)
class ProvisioningPass:
    """One pass over a cluster.

    Attributes:
        pods: The pods that were planned.
        ignored: By name, why other waiting pods are ignored.
        solver: What planned them; None if there were no pods, or no NodePool to buy from.
        results: The solver's.
        outcome: What follows from the results.
    """

    pods: Sequence[Pod]
    ignored: Mapping[str, str]
    solver: Solver | None = None
    results: Results | None = None
    outcome: Outcome | None = None


def plan_provisioning(objects: ClusterObjects, catalogue: Catalogue, settings: Settings, now: float) -> dict[str, Any]:
    """The plan of one pass: `ignored`, `skipped`, `existing`, `claims` and `errors`.

    Args:
        now: the time, in seconds since the epoch.

    Raises:
        FieldError: an object has a value that has no meaning.
    """
    basis = PlanBasis(objects, catalogue, settings)
    found = provision(basis, now)
    if found.results is None or found.outcome is None:
        left = {"errors": {each.key: NO_POOLS for each in found.pods}} if found.pods else {}
        return {"ignored": found.ignored, **left}
    return {
        "ignored": found.ignored,
        "skipped": dict(found.results.skipped),
        "existing": existing_as_told(found.outcome),
        "claims": [purchase_as_told(each) for each in found.outcome.purchases],
        "errors": dict(found.outcome.errors),
    }


def provision(basis: PlanBasis, now: float, limit: TimeLimit = UNLIMITED) -> ProvisioningPass:
    """Plan all pods that wait, and those of nodes that are leaving.

    Args:
        now: the time, in seconds since the epoch.
        limit: when to end with the pods planned by then.

    Raises:
        FieldError: an object has a value that has no meaning.
    """
    waiting, ignored = pending_pods(basis)
    pods = [*waiting, *pods_of_leaving(basis, Evictions(basis.objects.budgets, now))]
    if not pods or not basis.pools:
        return ProvisioningPass(pods, ignored)
    solver = Solver(basis, nodes=[each for each in basis.nodes if not each.is_leaving], pods=pods)
    results = solver.solve(limit)
    outcome = outcome_of(results, pods, lower_min_values=basis.settings.lower_min_values)
    return ProvisioningPass(pods, ignored, solver, results, outcome)


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
