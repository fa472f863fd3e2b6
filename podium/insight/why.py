"""Why a pod is pending, or why it is where it is: every blocker of every node, the scores, the preemption verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podium.cluster import Snapshot
from podium.engine.cluster import Cluster
from podium.engine.device_refusals import DeviceGroup, device_errors, device_refusals, grouped_by_devices
from podium.engine.evaluation import Evaluation
from podium.engine.explanation import Blocker, Explanation, Group, NodeScore, grouped
from podium.engine.gang_story import GangStory
from podium.framework.contract.status import ScheduleError, Status
from podium.insight.details import amounts, kind_of_blocker
from podium.insight.gangs import gang_of, story_of
from podium.insight.search import FixSearch, as_pending
from podium.objects.core import Pod
from podium.objects.resource_types import NODES

Why = Explanation
"""The answer about one pod."""

__all__ = ["Blocker", "Group", "NodeScore", "Why", "explain"]


def explain(cluster: Cluster, pod: Pod, asked: str = "") -> Why:
    """Evaluate the pod, as if it were pending, on every node. The cluster is not changed.

    Args:
        asked: a node to compare with.

    Raises:
        ScheduleError: a plugin failed, or there is no node.
        ClusterError: no profile serves the pod.
    """
    bound_to = pod.node_name
    gang = gang_of(cluster, pod)
    story = None if gang is None else story_of(cluster, gang)
    cluster, pod = as_pending(cluster, pod)
    bound_to = "" if pod.node_name else bound_to
    try:
        evaluation = cluster.evaluate(pod)
    except ScheduleError as error:
        if (failed := _failed(cluster, pod, bound_to, story, str(error))) is None:
            raise
        return failed
    gates = cluster.gates_of(pod)
    search = FixSearch(cluster, pod)
    blockers = search.blockers()
    snapshot = blockers.snapshot
    statuses = blockers.by_row()
    found = {}
    for name, row in sorted(snapshot.row_of.items()):
        if row in statuses:
            found[name] = tuple(
                Blocker(
                    each.plugin,
                    kind_of_blocker(pod, snapshot, row, each),
                    amounts(pod, snapshot, row, each),
                )
                for each in statuses[row]
            )
    near: tuple[str, ...] = ()
    if evaluation.node is None:
        near = tuple(sorted(snapshot.name(row) for row in search.rows_one_edit_away()))
    answer = evaluation.as_dict()
    return Why(
        pod=pod.key,
        bound_to=bound_to,
        node=evaluation.node,
        node_count=len(cluster.store.objects(NODES)),
        gates=gates,
        blockers=found,
        groups=grouped(found),
        one_edit_away=near,
        scores=scores_of(evaluation),
        message="" if evaluation.node is not None else str(answer["message"]),
        preemption=_preemption(answer) if evaluation.node is None else "",
        nominated=answer.get("nominated", ""),
        victims=tuple(answer.get("victims", ())),
        asked=asked,
        devices=_devices(cluster, pod, snapshot, statuses),
        gang=story,
    )


def _failed(cluster: Cluster, pod: Pod, bound_to: str, story: GangStory | None, error: str) -> Why | None:
    """The answer about a pod whose attempt fails because of devices; None if it fails for another reason."""
    framework, snapshot = cluster.framework_for(pod), cluster.engine_to_ask.cache.snapshot()
    devices = grouped_by_devices(device_errors(framework, pod, snapshot))
    if not devices:
        return None
    return Why(
        pod=pod.key,
        bound_to=bound_to,
        node=None,
        node_count=len(snapshot),
        gates=cluster.gates_of(pod),
        blockers={},
        groups=(),
        one_edit_away=None,
        scores=(),
        message=error,
        devices=devices,
        gang=story,
        error=error,
    )


def _devices(
    cluster: Cluster, pod: Pod, snapshot: Snapshot, statuses: Mapping[int, Sequence[Status]]
) -> tuple[DeviceGroup, ...]:
    """What the pod's claims lack on the nodes that have no devices for them."""
    rejections = ((row, status) for row, known in statuses.items() for status in known)
    return grouped_by_devices(device_refusals(cluster.framework_for(pod), pod, snapshot, rejections))


def _preemption(answer: dict[str, Any]) -> str:
    """The verdict of preemption in one sentence."""
    if "nominated" in answer:
        return f"Preemption would make room on {answer['nominated']} by evicting {', '.join(answer['victims'])}"
    reasons = ", ".join(answer.get("postfilter", {}).get("reasons", ()))
    return f"Preemption does not help: {reasons}" if reasons else "Preemption does not help"


def scores_of(evaluation: Evaluation) -> tuple[NodeScore, ...]:
    """The scores of the nodes, the winner first."""
    scores, snapshot = evaluation.found.scores, evaluation.snapshot
    if scores is None:
        return ()
    rows, totals = evaluation.found.filtered.rows.tolist(), scores.total.tolist()
    parts = {name: values.tolist() for name, values in scores.plugins.items()}
    found = [
        NodeScore(snapshot.name(row), totals[at], {name: values[at] for name, values in parts.items()})
        for at, row in enumerate(rows)
    ]
    return tuple(sorted(found, key=lambda each: (each.node != evaluation.node, -each.total, each.node)))
