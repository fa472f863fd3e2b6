"""Finds an order and batches in which nodes are drained, so that no pod is moved twice and no budget blocks.

All nodes are cordoned first, so that no replacement lands on one that is drained, too. Then large batches are looked
for: a node joins a batch if all pods of the batch can be evicted at once, as PodDisruptionBudgets allow, and each gets
another node. A node whose own pods no budget lets go at once is a batch of its own, and drained in rounds. What is
left when no node can be drained any more blocks, and the answer says what would help.

Cost: a rehearsal for each node and batch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from podium.engine.cluster import stays_on_node
from podium.engine.cluster_objects import cordoned_node
from podium.engine.derivation.budgets import Budget
from podium.insight.cluster import Cluster
from podium.insight.fixes import fixes_for
from podium.insight.loading import node_named
from podium.insight.trial import Trial
from podium.lib.time_limit import UNLIMITED, TimeIsUpError, TimeLimit
from podium.objects.core import Pod
from podium.objects.resource_types import NODES, PODS


@dataclass(frozen=True, slots=True)
class DrainMove:
    """A pod of a drained node, and the node of its replacement; "" if nothing replaces it."""

    pod: str
    source: str
    target: str

    def as_dict(self) -> dict[str, str]:
        """Return the move as JSON values."""
        return {"pod": self.pod, "from": self.source, "to": self.target}


@dataclass(frozen=True, slots=True)
class DrainBatch:
    """Nodes that are drained at once.

    Attributes:
        rounds: in how many rounds their pods are evicted, each after the replacements of the last one run.
    """

    nodes: tuple[str, ...]
    moves: tuple[DrainMove, ...]
    rounds: int = 1

    def as_dict(self) -> dict[str, Any]:
        """Return the batch as JSON values."""
        return {"nodes": list(self.nodes), "rounds": self.rounds, "moves": [move.as_dict() for move in self.moves]}


@dataclass(frozen=True, slots=True)
class DrainBlocker:
    """What keeps a node from being drained.

    Attributes:
        fix: what would help.
    """

    node: str
    pod: str
    reason: str
    fix: str

    def as_dict(self) -> dict[str, str]:
        """Return the blocker as JSON values."""
        return {"node": self.node, "pod": self.pod, "why": self.reason, "fix": self.fix}


@dataclass(frozen=True, slots=True)
class DrainOrder:
    """The answer: batches in their order, and what keeps the other nodes from being drained."""

    batches: tuple[DrainBatch, ...]
    blockers: tuple[DrainBlocker, ...] = ()
    is_partial: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        values: dict[str, Any] = {"partial": True} if self.is_partial else {}
        values["batches"] = [batch.as_dict() for batch in self.batches]
        return values | ({"blockers": [blocker.as_dict() for blocker in self.blockers]} if self.blockers else {})


def drain_order(cluster: Cluster, names: Sequence[str], limit: TimeLimit = UNLIMITED) -> DrainOrder:
    """Return an order in which the nodes can be drained. The cluster is not changed.

    Args:
        limit: when to end with the batches found by then.

    Raises:
        ClusterError: there is no such node.
        ScheduleError: an attempt failed.
    """
    nodes = [node_named(cluster, name) for name in dict.fromkeys(names)]
    world = cluster.fork()
    for node in nodes:
        world.put(NODES, cordoned_node(node))
    remaining_names = [node.name for node in nodes]
    batches: list[DrainBatch] = []
    blockers: list[DrainBlocker] = []
    try:
        trial = Trial(world, limit)
        trial.settle()
        world = trial.world
        while remaining_names:
            batch, blockers = _next_batch(world, remaining_names, names, limit)
            if batch is None:
                break
            batches.append(batch.batch)
            world = batch.world
            remaining_names = [name for name in remaining_names if name not in batch.batch.nodes]
    except TimeIsUpError:
        limit.is_noticed = True
        return DrainOrder(tuple(batches), is_partial=True)
    return DrainOrder(tuple(batches), tuple(blockers))


@dataclass(frozen=True, slots=True)
class _Rehearsal:
    """A batch that was rehearsed, and the cluster after it."""

    batch: DrainBatch
    world: Cluster


def _next_batch(
    world: Cluster, names: Sequence[str], all_names: Collection[str], limit: TimeLimit
) -> tuple[_Rehearsal | None, list[DrainBlocker]]:
    """Return the largest batch that is found among these nodes; None with the blockers if none can be drained."""
    blockers: list[DrainBlocker] = []
    best: _Rehearsal | None = None
    in_rounds: _Rehearsal | None = None
    for name in names:
        nodes = (*(best.batch.nodes if best is not None else ()), name)
        outcome = _drain(world, nodes, all_names, limit)
        if isinstance(outcome, list):
            # With others it may be too much at once, and is tried again alone in the next batch.
            blockers += outcome if best is None else []
        elif outcome.batch.rounds == 1:
            best = outcome
        elif len(nodes) == 1 and in_rounds is None:
            in_rounds = outcome
    return best or in_rounds, blockers


def _drain(
    world: Cluster, names: Sequence[str], all_names: Collection[str], limit: TimeLimit
) -> _Rehearsal | list[DrainBlocker]:
    """Drain the nodes at once; return what blocks instead, if a pod stays, gets no node, or one that is drained."""
    trial = Trial(world, limit)
    pods = [pod for pod in world.pods if pod.node_name in names and not stays_on_node(pod)]
    leaving, rounds = list(pods), 0
    while leaving:
        remaining_pods = trial.evict(leaving)
        if len(remaining_pods) == len(leaving):
            return [_budget_blocker(trial, pod) for pod in leaving]
        rounds += 1
        trial.settle()
        if blockers := _blockers_of(trial, pods, all_names):
            return blockers
        leaving = remaining_pods
    successors = {predecessor: key for key, predecessor in trial.predecessors.items()}
    stored_pods = trial.world.store.objects(PODS)
    moves = tuple(
        DrainMove(
            pod.key,
            pod.node_name,
            stored_pods[successors[pod.key]].node_name if successors.get(pod.key) in stored_pods else "",
        )
        for pod in pods
    )
    return _Rehearsal(DrainBatch(tuple(names), moves, max(rounds, 1)), trial.world)


def _blockers_of(trial: Trial, pods: Iterable[Pod], all_names: Collection[str]) -> list[DrainBlocker]:
    """Return the replacements that get no node, or would have to move again, and pods that would be preempted."""
    nodes = {pod.key: pod.node_name for pod in pods}
    blockers = []
    for key, predecessor in trial.predecessors.items():
        replacement = trial.world.store.get(PODS, key)
        if replacement is None or predecessor not in nodes:
            continue
        if replacement.node_name in all_names:
            reason = f"its replacement tolerates the cordon of {replacement.node_name}, and would come to it"
            fix = "take the toleration of node.kubernetes.io/unschedulable from it"
            blockers.append(DrainBlocker(nodes[predecessor], predecessor, reason, fix))
        if not replacement.node_name:
            reason = f"its replacement would be pending: {trial.why.get(key, 'no node fits')}"
            fix = _fix_of(trial, replacement, nodes[predecessor], all_names)
            blockers.append(DrainBlocker(nodes[predecessor], predecessor, reason, fix))
    for victim in trial.preempted:
        reason = f"{victim.by} would preempt it"
        blockers.append(DrainBlocker(victim.node, victim.pod, reason, "add a node, or drain fewer nodes"))
    return blockers


def _fix_of(trial: Trial, pod: Pod, source: str, all_names: Collection[str]) -> str:
    """Return the least intrusive edit after which the pending replacement fits on a node that is not drained."""
    world = trial.world.fork()
    # Without the drained nodes, since the smallest edit would be to give up their cordon.
    for name in all_names:
        world.remove("Node", name)
    fixes = fixes_for(world, pod, limit=trial.limit).fixes if world.nodes else ()
    return "; ".join(edit.text for edit in fixes[0].edits) if fixes else f"add a node like {source}"


def _budget_blocker(trial: Trial, pod: Pod) -> DrainBlocker:
    keys = trial.forbidding(pod)
    if len(keys) > 1:
        reason = f"the eviction API refuses pods of several PodDisruptionBudgets: {', '.join(keys)}"
        return DrainBlocker(pod.node_name, pod.key, reason, "let one budget select the pod")
    manifests = trial.world.admission.objects.in_namespace("PodDisruptionBudget", pod.metadata.namespace)
    budgets = [budget for budget in map(Budget.of, manifests) if budget is not None and budget.key in keys]
    fix = budgets[0].advice() if budgets else "change the budget"
    return DrainBlocker(pod.node_name, pod.key, f"PodDisruptionBudget {', '.join(keys)} never lets it go", fix)
