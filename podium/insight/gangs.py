"""The story of a gang: whether all its members get a node, one after the other, and what the others lack."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from podium.engine.cluster import Cluster
from podium.engine.device_refusals import DEVICES, device_refusals
from podium.engine.errors import ClusterError
from podium.engine.gang_story import COSCHEDULING, GangStory
from podium.engine.gangs import Gang, GangTrial, try_gang
from podium.framework.contract.status import ScheduleError
from podium.insight.blockers import blockers_of
from podium.insight.details import amounts, kind_of_blocker

_MISSING_MAX: Final = 5


def story_of(cluster: Cluster, gang: Gang) -> GangStory:
    """Return which members have a node, which would get one, and what the others lack.

    Raises:
        ScheduleError: a plugin failed.
    """
    nodes_now = {pod.key: pod.node_name for pod in gang.placed_members}
    trial = try_gang(cluster, gang)
    missing: Iterable[tuple[int, str]] = ()
    preemption = ""
    if trial.failed_pods and len(nodes_now) + len(trial.nodes) < gang.min_count:
        missing, preemption = _missing(trial), _preemption(trial)
    return GangStory(
        gang.key,
        gang.api,
        gang.min_count,
        nodes_now,
        trial.nodes,
        trial.failures,
        tuple(missing)[:_MISSING_MAX],
        preemption,
        gang.wait_s,
        holds_nodes=gang.api == COSCHEDULING,
        domain=", ".join(f"{key}={value}" for key, value in trial.selector.items()),
        problem=gang.problem,
        note=gang.note,
    )


def _preemption(trial: GangTrial) -> str:
    """Return how preemption would make room for the first member without a node; "" if it would not."""
    pod = trial.failed_pods[0]
    try:
        answer = trial.world.evaluate(pod).as_dict()
    except (ScheduleError, ClusterError):
        return ""
    if "nominated" not in answer:
        return ""
    victims = ", ".join(answer["victims"])
    return f"preemption would make room for {pod.key} on {answer['nominated']} by evicting {victims}"


def _missing(trial: GangTrial) -> Sequence[tuple[int, str]]:
    """Return what keeps the first member without a node off the nodes, once the others are placed."""
    pod = trial.failed_pods[0]
    try:
        framework = trial.world.framework_for(pod)
        blockers = blockers_of(trial.world.engine, framework, pod)
    except (ScheduleError, ClusterError):
        return ()
    snapshot, counts = blockers.snapshot, dict[str, int]()
    details: dict[str, str] = {}
    by_row = blockers.by_row()
    refusals = device_refusals(
        framework, pod, snapshot, ((row, status) for row, all_ in by_row.items() for status in all_)
    )
    for row, statuses in by_row.items():
        for status in statuses:
            text = kind_of_blocker(pod, snapshot, row, status)
            if status.plugin == DEVICES and (refusal := refusals.get(snapshot.name(row))) is not None:
                text = f"{text} ({refusal.text})"
            counts[text] = counts.get(text, 0) + 1
            if text not in details and (detail := amounts(framework, pod, snapshot, row, status)):
                details[text] = f"{detail} on {snapshot.name(row)}"
    ranking = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(count, f"{text} ({details[text]})" if text in details else text) for text, count in ranking]
