"""A queue of pods, placed one after the other, as the daemon would place them with nothing else going on.

Each pod gets one attempt, and what it takes counts for those behind it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from podium.framework.cycle_state import CycleState
from podium.framework.runtime import Framework
from podium.framework.schedule import Decision, DoesNotFit, Failed, Suggested, schedule
from podium.framework.search import Rotation
from podium.framework.status import ScheduleError
from podium.objects.core import Pod
from podium.whatif.cluster import StillCluster


def place_in_turn(cluster: StillCluster, pods: Iterable[Pod]) -> list[dict[str, Any]]:
    """Where each pod goes, in the order given; without `node` where it went nowhere, or was not let into the queue.

    Raises:
        ScheduleError: an attempt failed for another reason than that the pod does not fit.
        WhatIfError: no profile serves a pod.
    """
    rotation = Rotation()
    placements: list[dict[str, Any]] = []
    for pod in pods:
        node_name = _attempt(cluster, pod, rotation)
        placements.append({"pod": pod.key, "node": node_name} if node_name is not None else {"pod": pod.key})
    return placements


def _attempt(cluster: StillCluster, pod: Pod, rotation: Rotation) -> str | None:
    if cluster.gates_of(pod):
        return None
    framework, state = cluster.framework_for(pod), CycleState()
    decision: Decision = schedule(
        framework,
        state,
        pod,
        cluster.cache.snapshot(),
        cluster.nominated,
        rotation,
        cluster.percentage_of_nodes_to_score,
    )
    if isinstance(decision, Suggested):
        return decision.node_name if _take(cluster, framework, state, pod, decision.node_name) else None
    if isinstance(decision, Failed):
        raise ScheduleError(f"{pod.key}: {decision.status.message}")
    _make_room(cluster, pod, decision)
    return None


def _take(cluster: StillCluster, framework: Framework, state: CycleState, pod: Pod, node_name: str) -> bool:
    """Assume and reserve, and undo both where a plugin turns the pod down. A pod that has to wait is let through."""
    cluster.cache.assume_pod(pod, node_name)
    cluster.nominated.delete(pod)
    status = framework.run_reserve(state, pod, node_name)
    if status is None:
        status = framework.run_permit(state, pod, node_name).status
    if status is not None:
        framework.run_unreserve(state, pod, node_name)
        cluster.cache.forget_pod(pod)
    return status is None


def _make_room(cluster: StillCluster, pod: Pod, decision: DoesNotFit) -> None:
    """Nominate the pod to where preemption would make room for it, and let its victims go."""
    result = decision.post_filter
    if result is None or not result.nominated_node_name:
        return
    cluster.nominated.add(pod, result.nominated_node_name)
    for victim in result.victims:
        cluster.cache.remove_pod(victim)
        cluster.world.drop_pod(victim)
