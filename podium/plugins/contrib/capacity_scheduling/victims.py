"""The victims of CapacityScheduling on one node: pods that hold what their quota has only borrowed.

Owns which pods must leave the node. Never chooses among nodes.

Source: sigs.k8s.io/scheduler-plugins pkg/capacityscheduling/capacity_scheduling.go (SelectVictimsOnNode), 2026-08.
Differs: pods that the handle protects are never victims.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from podium.framework import contract as fwk
from podium.framework.contract.dry_runs import NodeDryRun
from podium.framework.preemption.candidates import Budgets, Candidate, Importance
from podium.objects.core import Pod
from podium.plugins.contrib.capacity_scheduling.quotas import QuotaState, amounts_of

_MAX_EXCEEDED: Final = fwk.unschedulable("global quota max exceeded")


def potential_victims(
    state: QuotaState,
    pod: Pod,
    pods: Iterable[Pod],
    remove: Callable[[Pod], None],
    *,
    may_be_victim: Callable[[Pod], bool],
) -> list[Pod]:
    """Remove and return the pods that the pod may preempt on a node.

    A pod whose quota would exceed its `min` preempts pods of lower priority in its namespace. One within its `min`
    takes back what other quotas have borrowed, whatever the priority, until they borrow no more. A pod without a quota
    preempts pods of lower priority without one.

    Args:
        pods: the least important one first.
        remove: takes a pod off the node, and out of the usage in `state`.
    """
    owner = state.owner_of(pod)
    is_above_min = owner is not None and state.exceeds_min(owner, state.ahead)
    victims = []
    for candidate in pods:
        candidate_owner = state.owner_of(candidate)
        if (candidate_owner is None) is not (owner is None) or not may_be_victim(candidate):
            continue
        if owner is None or candidate_owner is None or candidate_owner == owner:
            is_victim = candidate.priority < pod.priority and (owner is None or is_above_min)
        elif is_above_min:
            is_victim = _holds_more_than_its_share(state, owner, candidate_owner, candidate)
        else:
            is_victim = state.is_borrowing(candidate_owner)
        if is_victim:
            remove(candidate)
            victims.append(candidate)
    return victims


def _holds_more_than_its_share(state: QuotaState, owner: str, sibling: str, candidate: Pod) -> bool:
    if not (state.are_siblings(owner, sibling) and state.is_borrowing(sibling)):
        return False
    freed_amounts = {name: -amount for name, amount in amounts_of(candidate).items()}
    return state.share_of(sibling, freed_amounts) >= state.share_of(owner, state.ahead)


def select_victims(
    dry_run: NodeDryRun,
    pod: Pod,
    budgets: Budgets,
    importance: Importance,
    may_be_victim: Callable[[Pod], bool],
) -> Candidate | fwk.Status:
    """Return the victims on one node, or why the pod does not fit even without them."""
    # Removing and adding pods changes it.
    state = dry_run.state.read(QuotaState)
    node, owner = dry_run.node, state.owner_of(pod)
    least_important_first = importance.order(node.pods)[::-1]
    try:
        candidates = potential_victims(state, pod, least_important_first, dry_run.remove, may_be_victim=may_be_victim)
        if not candidates:
            return fwk.unresolvable(f"No victims found on node {node.name} for preemptor pod {pod.metadata.name}")
        if (status := dry_run.status()) is not None:
            return status
        if owner is not None and (state.exceeds_max(owner, state.request) or state.exceeds_total(state.request)):
            return _MAX_EXCEEDED
        violating, harmless = budgets.split(importance.order(candidates))
        victims: list[Pod] = []
        violations = 0
        for position, victim in enumerate((*violating, *harmless)):
            dry_run.add(victim)
            fits = dry_run.status() is None
            if not fits:
                dry_run.remove(victim)
            exceeds = owner is not None and (
                state.exceeds_max(owner, state.ahead) or state.exceeds_total(state.ahead_of_all)
            )
            if exceeds and not fits:
                # Without the pod, too, because of nominated pods: upstream removes it twice, which fails.
                name = victim.metadata.name
                return fwk.error_status(f"no corresponding pod {name} in pods of node {node.name}")
            if exceeds:
                dry_run.remove(victim)
            if exceeds or not fits:
                victims.append(victim)
                # As upstream: a victim because of the quotas alone does not count as a violation.
                violations += not fits and position < len(violating)
    except fwk.PluginError as error:
        return fwk.error_status(error)
    if not victims:
        return fwk.error_status(f'expected at least one victim pod on node "{node.name}"')
    if violating and harmless:
        victims = importance.order(victims)
    return Candidate(node.name, tuple(victims), violations)
