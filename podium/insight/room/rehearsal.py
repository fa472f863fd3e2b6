"""Rehearses moves in a private world with controllers and the real scheduler, and says how each step is made to hold.

The replacement of an evicted pod is placed by the scheduler's own decision, which depends on scores, ties and chance.
So a step holds wherever the scheduler puts the replacement; cordons keep it off the nodes where it would do harm:

- The node of an evicted pod stays cordoned until its room is used, so that no pod comes back, whatever its priority,
  and no other pending pod takes the room.
- Nodes whose room later steps need are cordoned for the step if the replacement fits there.
- Room on a cordoned node is given to one pod: first the pod is nominated to the node, then the node is uncordoned. A
  nominated pod's room counts as taken for pods of its priority and below; one with a higher priority that would take it
  all the same shows in the rehearsal, and the moves are rejected.

A ReplicaSet replaces a pod while it still terminates, so a node needs its room beside the pod; a StatefulSet and a Job
replace it afterwards. In both cases the room is there before the eviction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from podium.engine.cluster_objects import cordoned_node
from podium.insight.cluster import Cluster
from podium.insight.room.model import MovablePod, RoomModel
from podium.insight.room.plan import RoomCost, RoomMove, RoomPlan
from podium.insight.room.search import size_of
from podium.insight.trial import Trial
from podium.insight.what_if import workload_of
from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.objects.core import Node, Pod, SchedulingGate
from podium.objects.resource_types import NODES, PODS

_GATE: Final = SchedulingGate(name="podium/awaits-room")


class MoveFailedError(Exception):
    """A step does not hold; the message says why."""


def settled_without(cluster: Cluster, pods: Sequence[Pod], limit: TimeLimit = UNLIMITED) -> Cluster:
    """Return the cluster as it comes to rest while these pods wait.

    Raises:
        TimeIsUpError: the time for the question is over.
    """
    world = cluster.fork()
    for waiting_pod in pods:
        gates = (*waiting_pod.spec.scheduling_gates, _GATE)
        # Without a nomination of its own, which would keep room that the search is to find.
        pod = _with_nomination(waiting_pod, "")
        world.put(PODS, replace(pod, spec=replace(pod.spec, scheduling_gates=gates)))
    trial = Trial(world, limit)
    trial.settle()
    trial.end_terminating()
    return trial.world


@dataclass
class Rehearsal:
    """One rehearsal of moves.

    Args:
        cluster: the cluster at rest, see `settled_without`.
        pods: the pods in question, as they are to be placed.

    Raises:
        MoveFailedError: from `plan`, if a step does not hold.
    """

    cluster: Cluster
    model: RoomModel
    pods: Sequence[Pod]
    limit: TimeLimit = UNLIMITED
    _trial: Trial = field(init=False)
    _cordons: dict[str, Node] = field(default_factory=dict)
    """The nodes that are cordoned now, as they were before."""
    _nodes: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        """Fork the cluster."""
        self._trial = Trial(self.cluster, self.limit)
        self._nodes = self._nodes_of_pods()

    def plan(self, moves: Sequence[tuple[int, int]], rows: Sequence[int]) -> RoomPlan:
        """Carry the moves out, and return them with what makes each hold.

        Args:
            moves: by index of the movable pod, the row that it is meant to go to.
            rows: the rows that the pods in question are meant to get.
        """
        names = self.model.names
        steps = []
        for number, (index, row) in enumerate(moves):
            later_moves = moves[number + 1 :]
            later_rows = {target for _, target in later_moves} | set(rows)
            closed_rows = (self._rows_apart(index, rows) | self._rows_of_other_domains(index, row, later_moves)) - {row}
            steps.append(self._move(self.model.movable[index], row, later_rows, closed_rows))
        uncordons = tuple(self._cordons)
        for pod, row in zip(self.pods, rows, strict=True):
            self._trial.world.put(PODS, _with_nomination(pod, names[row]))
        self._uncordon(uncordons)
        nodes = {
            pod.key: node for pod in self.pods if (node := self._trial.world.store.objects(PODS)[pod.key].node_name)
        }
        if len(nodes) < len(self.pods):
            pod = next(pod for pod in self.pods if pod.key not in nodes)
            why = self._trial.why.get(pod.key, "it is not placed")
            raise MoveFailedError(f"{pod.key} would not get the room: {why}")
        self._demand_changes(nodes, frozenset())
        return RoomPlan(tuple(steps), nodes, uncordons, RoomCost(*size_of(moves, self.model.movable)))

    # ------------------------------------------------------------ one step

    def _rows_apart(self, index: int, rows: Sequence[int]) -> set[int]:
        """Return the rows to which the pod must not go, since anti-affinity keeps it from a pod in question there."""
        return {
            other_row
            for request, row in zip(self.model.requests, rows, strict=True)
            if index in request.apart
            for other_row in self.model.snapshot.order.tolist()
            if not self.model.is_apart(request, row, [(index, other_row)])
        }

    def _rows_of_other_domains(self, index: int, row: int, later_moves: Sequence[tuple[int, int]]) -> set[int]:
        """Return the rows where the pod would count in another domain for the spread of a pod that comes later."""
        spreads = [request.spread for request in self.model.requests]
        spreads += [self.model.spread_of(later_index) for later_index, _ in later_moves]
        return {
            other_row
            for spread in spreads
            if spread is not None and spread.counts_pod(index)
            for other_row in self.model.snapshot.order.tolist()
            if spread.place(other_row) != spread.place(row)
        }

    def _move(self, candidate: MovablePod, row: int, later_rows: set[int], closed_rows: set[int]) -> RoomMove:
        world, names = self._trial.world, self.model.names
        source = names[candidate.row]
        pod = world.store.get(PODS, candidate.pod.key)
        if pod is None or pod.node_name != source:
            raise MoveFailedError(f"{candidate.pod.key} would have left {source} by then")
        if budgets := self._trial.forbidding(pod):
            raise MoveFailedError(f"PodDisruptionBudget {', '.join(budgets)} would forbid to evict {pod.key}")
        reserved_names = {names[later_row] for later_row in later_rows - {row}}
        rows_for = self.model.rows_for(candidate)
        rivals = sorted(names[other_row] for other_row in (later_rows | closed_rows) - {row} if rows_for[other_row])
        held_names = set(self._cordons)
        cordons = self._cordon([source, *rivals])
        self._trial.delete(pod)
        self._trial.settle()
        opens_target = names[row] in held_names and not self._node_of_successor(pod)
        if opens_target:
            self._nominate_successor(pod, names[row])
            self._uncordon([names[row]])
        target = self._node_of_successor(pod)
        if not target:
            why = self._trial.why.get(self._successor(pod), "no node fits")
            raise MoveFailedError(f"the replacement of {pod.key} would be pending: {why}")
        self._demand_changes({pod.key: "", self._successor(pod): target}, reserved_names)
        lifts = tuple(name for name in cordons if name != source)
        if lifts:
            self._uncordon(lifts)
            self._demand_changes({}, reserved_names)
        workload = workload_of(pod).partition("/")[2]
        return RoomMove(pod.key, pod.uid, workload, source, target, cordons, names[row] if opens_target else "", lifts)

    # ------------------------------------------------------------ cordons and nominations

    def _cordon(self, names: Sequence[str]) -> tuple[str, ...]:
        """Cordon the nodes that are not cordoned yet, and return them."""
        nodes = self._trial.world.store.objects(NODES)
        # One that others have cordoned stays so at the end.
        fresh_names = tuple(name for name in dict.fromkeys(names) if not nodes[name].spec.unschedulable)
        for name in fresh_names:
            self._cordons[name] = nodes[name]
            self._trial.world.put(NODES, cordoned_node(nodes[name]))
        if fresh_names:
            self._trial.on_nodes()
        return fresh_names

    def _uncordon(self, names: Sequence[str]) -> None:
        for name in names:
            self._trial.world.put(NODES, self._cordons.pop(name))
        self._trial.on_nodes()
        self._trial.settle()

    def _nominate_successor(self, pod: Pod, node: str) -> None:
        successor = self._trial.world.store.objects(PODS)[self._successor(pod)]
        self._trial.world.put(PODS, _with_nomination(successor, node))

    def _node_of_successor(self, pod: Pod) -> str:
        return self._trial.world.store.objects(PODS)[self._successor(pod)].node_name

    def _successor(self, pod: Pod) -> str:
        for key, predecessor in self._trial.predecessors.items():
            if predecessor == pod.key:
                return key
        raise MoveFailedError(f"nothing would replace {pod.key}: {self._refusal()}")

    def _refusal(self) -> str:
        refusals = self._trial.refusals.values()
        return next((refusal.reason for refusal in refusals), "its controller creates no other pod")

    # ------------------------------------------------------------ what has changed

    def _nodes_of_pods(self) -> Mapping[str, str]:
        return {pod.key: pod.node_name for pod in self._trial.world.pods if pod.node_name}

    def _demand_changes(self, changes: Mapping[str, str], reserved_names: Collection[str]) -> None:
        """Demand that just these pods came to these nodes, or are gone.

        Pods that were pending may have come to any node but those whose room is needed yet.
        """
        nodes = self._nodes_of_pods()
        if self._trial.preempted:
            victim = self._trial.preempted[0]
            raise MoveFailedError(f"{victim.by} would preempt {victim.pod} on {victim.node}")
        for key in sorted(self._nodes.keys() | nodes.keys()):
            if self._nodes.get(key) == nodes.get(key) or key in changes:
                continue
            if key in self._nodes or nodes.get(key) in reserved_names:
                raise MoveFailedError(f"{key} would come to {nodes.get(key, 'no node')} meanwhile")
        self._nodes = nodes


def _with_nomination(pod: Pod, node: str) -> Pod:
    return replace(pod, status=replace(pod.status, nominated_node_name=node))
