"""Explains why a pod is pending, or on its node: every blocker of every node, the scores, the preemption verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from podium.cluster import Snapshot
from podium.engine.cluster import Cluster
from podium.engine.device_refusals import DeviceGroup, device_errors, device_refusals, group_by_devices
from podium.engine.evaluation import Evaluation
from podium.engine.explanation import Blocker, Explanation, Group, NodeScore, group_blockers
from podium.engine.gang_story import GangStory
from podium.engine.gangs import gang_of
from podium.framework.contract.status import ScheduleError, Status
from podium.framework.profile.runtime import Framework
from podium.insight.absent_claims import AbsentClaim, absent_claims
from podium.insight.asked_pod import as_pending
from podium.insight.details import amounts, kind_of_blocker
from podium.insight.gangs import story_of
from podium.insight.group_details import with_details
from podium.insight.notes import notes_about, terminating_text, victims_awaited
from podium.insight.search import FixSearch
from podium.lib.time_limit import UNLIMITED, TimeIsUpError, TimeLimit
from podium.objects.core import Pod
from podium.objects.resource_types import NODES

Why = Explanation
"""The answer about one pod."""

__all__ = ["Blocker", "Group", "NodeScore", "Why", "explain"]


def explain(cluster: Cluster, pod: Pod, node: str = "", limit: TimeLimit = UNLIMITED) -> Why:
    """Evaluate the pod, as if it were pending, on every node. The cluster is not changed.

    Args:
        node: a node to compare with.
        limit: when to end with what was found by then.

    Raises:
        ScheduleError: a plugin failed, or there is no node.
        ClusterError: no profile serves the pod.
    """
    bound_to, original = pod.node_name, pod
    gang = gang_of(cluster, pod)
    story = None if gang is None else story_of(cluster, gang)
    world, pod = as_pending(cluster, pod)
    # Evaluated without its node, as if it were pending; where it runs is still part of the answer.
    bound_to = "" if pod.node_name else bound_to
    try:
        evaluation = world.evaluate(pod, limit)
    except ScheduleError as error:
        if (failure := _device_failure(world, pod, bound_to, story, str(error))) is None:
            raise
        return failure
    limit.note(partial(evaluation.verdict_on, pod))
    answer = evaluation.as_dict()
    # First what the attempt says, so that an answer that runs out of time has a complete base.
    base = _without_blockers(world, pod, bound_to, evaluation, answer, story, node)
    try:
        return _with_all_blockers(base, world, original, pod, evaluation, answer, limit)
    except (TimeIsUpError, ScheduleError):
        # A plugin that is interrupted fails.
        if not limit.is_over():
            raise
    limit.is_noticed = True
    return _with_first_blockers(base, world, pod, evaluation)


def _without_blockers(
    world: Cluster,
    pod: Pod,
    bound_to: str,
    evaluation: Evaluation,
    answer: dict[str, Any],
    story: GangStory | None,
    node: str,
) -> Why:
    """Return what the attempt says about the cluster as a whole."""
    is_lost = evaluation.node is None
    message = "" if not is_lost else str(answer["message"])
    return Why(
        pod=pod.key,
        bound_to=bound_to,
        node=evaluation.node,
        node_count=len(world.store.objects(NODES)),
        gates=world.gates_of(pod),
        blockers={},
        groups=(),
        one_edit_away=None,
        scores=scores_of(evaluation),
        message=message,
        preemption=_preemption(answer, "", evaluation.victims, covers_claims=False) if is_lost else "",
        nominated=answer.get("nominated", ""),
        victims=tuple(answer.get("victims", ())),
        asked=node,
        gang=story,
        summary=str(answer.get("fit_error", message)),
    )


def _with_first_blockers(base: Why, world: Cluster, pod: Pod, evaluation: Evaluation) -> Why:
    """Return the answer with the blocker at which the attempt left each node."""
    statuses = {row: (status,) for row, status in evaluation.found.diagnosis.statuses().items()}
    blockers_by_node = _by_node(world.framework_for(pod), pod, evaluation.snapshot, statuses)
    return replace(base, blockers=blockers_by_node, groups=group_blockers(blockers_by_node), is_partial=True)


def _with_all_blockers(
    base: Why,
    world: Cluster,
    original: Pod,
    pod: Pod,
    evaluation: Evaluation,
    answer: dict[str, Any],
    limit: TimeLimit,
) -> Why:
    """Return the answer with every blocker of each node, and what is one edit away. Raises: `TimeIsUpError`."""
    search = FixSearch(world, pod, limit)
    blockers = search.blockers()
    snapshot, statuses = blockers.snapshot, blockers.by_row()
    framework = world.framework_for(pod)
    blockers_by_node = _by_node(framework, pod, snapshot, statuses)
    is_lost = evaluation.node is None
    absent = absent_claims(world.store, pod) if is_lost else ()
    summarized = _reasons_for(absent, blockers_by_node)
    awaited = victims_awaited(world, pod) if is_lost else ""
    return replace(
        base,
        blockers=blockers_by_node,
        groups=with_details(group_blockers(blockers_by_node), pod, framework, world.store, snapshot, search.evictions),
        # Dry runs of one edit each, which only a pod without a node needs.
        one_edit_away=tuple(sorted(snapshot.name(row) for row in search.rows_one_edit_away())) if is_lost else (),
        preemption=_preemption(answer, awaited, evaluation.victims, covers_claims=bool(summarized)) if is_lost else "",
        devices=_devices(world, pod, snapshot, statuses),
        summary="; ".join(claim.text for claim in absent) if summarized else base.summary,
        summarized=summarized,
        notes=notes_about(world, original, pod, blockers, may_wait=is_lost and not awaited),
        is_partial=limit.is_noticed,
    )


def _device_failure(cluster: Cluster, pod: Pod, bound_to: str, story: GangStory | None, error: str) -> Why | None:
    """Return the answer about a pod whose attempt fails because of devices; None if it fails for another reason."""
    framework, snapshot = cluster.framework_for(pod), cluster.engine_to_ask.cache.snapshot()
    devices = group_by_devices(device_errors(framework, pod, snapshot))
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
    """Return why nodes have no devices for the pod's claims."""
    rejections = ((row, status) for row, of_row in statuses.items() for status in of_row)
    return group_by_devices(device_refusals(cluster.framework_for(pod), pod, snapshot, rejections))


def _by_node(
    framework: Framework, pod: Pod, snapshot: Snapshot, statuses: Mapping[int, Sequence[Status]]
) -> dict[str, tuple[Blocker, ...]]:
    """Return the blockers of each node, by its name."""
    return {
        name: tuple(
            Blocker(
                status.plugin,
                kind_of_blocker(pod, snapshot, row, status),
                amounts(framework, pod, snapshot, row, status),
            )
            for status in statuses[row]
        )
        for name, row in sorted(snapshot.row_of.items())
        if row in statuses
    }


def _reasons_for(absent: Sequence[AbsentClaim], blockers: Mapping[str, Sequence[Blocker]]) -> frozenset[str]:
    """Return the reasons by which filters reject the pod for claims that do not exist."""
    texts = {blocker.text for of_node in blockers.values() for blocker in of_node} if absent else set()
    return frozenset(text for text in texts if any(claim.explains(text) for claim in absent))


def _preemption(answer: dict[str, Any], awaited: str, victims: Sequence[Pod], *, covers_claims: bool) -> str:
    """Return the verdict of preemption in one sentence.

    Args:
        awaited: a sentence if the pod waits for the victims of an earlier preemption; otherwise "".
        victims: those of a preemption now.
    """
    if awaited:
        return awaited
    if "nominated" in answer:
        if all(victim.is_terminating for victim in victims):
            names = terminating_text(victims)
            return f"The victims of its preemption on {answer['nominated']} are ending already: {names}"
        return f"Preemption would make room on {answer['nominated']} by evicting {', '.join(answer['victims'])}"
    reasons = ", ".join(answer.get("postfilter", {}).get("reasons", ()))
    if covers_claims or not reasons:
        return "Preemption does not help"
    # kube-scheduler's text, which names its subject to stand behind the filters' verdict.
    return f"Preemption does not help: {reasons.removeprefix('preemption: ')}"


def scores_of(evaluation: Evaluation) -> tuple[NodeScore, ...]:
    """Return the scores of the nodes, the winner first."""
    scores, snapshot = evaluation.found.scores, evaluation.snapshot
    if scores is None:
        return ()
    rows, totals = evaluation.found.filter_result.rows.tolist(), scores.total.tolist()
    parts = {name: values.tolist() for name, values in scores.plugins.items()}
    node_scores = [
        NodeScore(snapshot.name(row), totals[index], {name: values[index] for name, values in parts.items()})
        for index, row in enumerate(rows)
    ]
    return tuple(sorted(node_scores, key=lambda score: (score.node != evaluation.node, -score.total, score.node)))
