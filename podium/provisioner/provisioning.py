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
from podium.provisioner.plans import plan_of
from podium.provisioner.reservations import RESERVATION_ID
from podium.provisioner.solve import Settings, Solver
from podium.provisioner.state import leaving, state_nodes
from podium.provisioner.templates import usable_pools
from podium.provisioner.validation import fault_of, is_provisionable
from podium.provisioner.volumes import Volumes

_NO_POOLS: Final = "no dynamic nodepools found"


def plan_provisioning(objects: ClusterObjects, catalogue: Catalogue, settings: Settings, now: float) -> dict[str, Any]:
    """The plan of one pass: `ignored`, `skipped`, `existing`, `claims` and `errors`.

    Args:
        now: the time, in seconds since the epoch.

    Raises:
        FieldError: an object has a value that has no meaning.
    """
    well_known = catalogue.well_known | {RESERVATION_ID}
    nodes = state_nodes(objects)
    waiting, ignored = pending_pods(objects, well_known)
    evictions = Evictions(objects.budgets, now)
    moving = [
        pod
        for state in leaving(nodes)
        for pod in objects.pods
        if state.node is not None and pod.node_name == state.node.metadata.name
        if evictions.is_currently_reschedulable(pod)
    ]
    pods = [*waiting, *moving]
    if not pods:
        return {"ignored": ignored}
    if not usable_pools(objects.node_pools):
        return {"ignored": ignored, "errors": {each.key: _NO_POOLS for each in pods}}
    active = [each for each in nodes if not each.is_leaving]
    solver = Solver(objects, catalogue, settings, nodes=active, all_nodes=nodes, pods=pods)
    plan = plan_of(solver.solve(), pods, well_known, lower_min_values=settings.lower_min_values)
    return {"ignored": ignored, **plan}


def pending_pods(objects: ClusterObjects, well_known: frozenset[str]) -> tuple[list[Pod], dict[str, str]]:
    """The waiting pods that are planned for, and by name why others are ignored."""
    volumes = Volumes(objects)
    planned: list[Pod] = []
    ignored: dict[str, str] = {}
    for pod in objects.pods:
        if is_provisionable(pod):
            fault = fault_of(pod, volumes, well_known)
            if fault is None:
                planned.append(pod)
            else:
                ignored[pod.key] = fault
    return planned, ignored
