"""One pass of Karpenter's provisioner over a cluster: what it would buy now.

Owns which pods are planned: those that wait, and those of nodes that are leaving.

Source: karpenter pkg/controllers/provisioning/provisioner.go (Schedule), v1.15.0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.objects.core import Pod
from podium.provisioner.apis.objects import ClusterObjects
from podium.provisioner.cloudprovider.catalogue import Catalogue
from podium.provisioner.provisioning.plan import Plan, Unschedulable, existing_json, node_claim_json, plan_of
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.provisioning.solve import Solver
from podium.provisioner.state.evictions import Evictions
from podium.provisioner.state.settings import Settings
from podium.provisioner.state.state_node import leaving
from podium.provisioner.state.validation import fault_of, is_provisionable

NO_POOLS: Final = "no dynamic nodepools found"


def plan_provisioning(
    objects: ClusterObjects, catalogue: Catalogue, settings: Settings, now_s: float
) -> dict[str, Any]:
    """Return the plan of one pass: `ignored`, `skipped`, `existing`, `claims` and `errors`.

    Args:
        now_s: the time, in seconds since the epoch.

    Raises:
        FieldError: an object has a value that has no meaning.
    """
    plan = provision(PlanBasis(objects, catalogue, settings), now_s)
    if plan.solver is None:
        return {"ignored": plan.ignored, **({"errors": plan.reasons} if plan.unschedulable else {})}
    return {
        "ignored": plan.ignored,
        "skipped": dict(plan.skipped),
        "existing": existing_json(plan),
        "claims": [node_claim_json(node) for node in plan.nodes],
        "errors": plan.reasons,
    }


def provision(basis: PlanBasis, now_s: float, limit: TimeLimit = UNLIMITED) -> Plan:
    """Plan all pods that wait, and those of nodes that are leaving.

    Args:
        now_s: the time, in seconds since the epoch.
        limit: when to end with the pods planned by then.

    Raises:
        FieldError: an object has a value that has no meaning.
    """
    waiting, ignored_pods = pending_pods(basis)
    pods = [*waiting, *pods_of_leaving(basis, Evictions(basis.objects.budgets, now_s))]
    # Without NodePools upstream does not try existing nodes either: kube-scheduler has tried them already.
    if not pods or not basis.pools:
        return Plan(unschedulable={pod.key: Unschedulable(pod, NO_POOLS) for pod in pods}, ignored=ignored_pods)
    solver = Solver(basis, nodes=[state for state in basis.nodes if not state.is_leaving], pods=pods)
    plan = plan_of(solver.solve(limit), pods, lower_min_values=basis.settings.lower_min_values)
    return replace(plan, ignored=ignored_pods, solver=solver)


def pods_of_leaving(basis: PlanBasis, evictions: Evictions) -> list[Pod]:
    """Return the pods that are placed elsewhere because their nodes are leaving."""
    return [
        pod
        for state in leaving(basis.nodes)
        for pod in basis.pods_on(state)
        if evictions.is_currently_reschedulable(pod)
    ]


def pending_pods(basis: PlanBasis) -> tuple[list[Pod], dict[str, str]]:
    """Return the waiting pods that are planned for, and by name why others are ignored."""
    planned_pods: list[Pod] = []
    ignored_pods: dict[str, str] = {}
    for pod in basis.objects.pods:
        if is_provisionable(pod):
            fault = fault_of(pod, basis.volumes, basis.catalogue.well_known | basis.well_known)
            if fault is None:
                planned_pods.append(pod)
            else:
                ignored_pods[pod.key] = fault
    return planned_pods, ignored_pods
