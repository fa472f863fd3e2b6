"""NetworkOverhead: keeps a pod near, by network costs, to the running pods that its workload depends on.

Runs at: PreFilter, Filter, Score.
Verdict: PreFilter: Error if a pod that counts is on a node that is gone; with `whenMissing: Reject` it is
UnschedulableAndUnresolvable if the AppGroup or the NetworkTopology is missing. Filter: Unschedulable where more
dependencies are violated than satisfied.
Requeue: any event.
Cost: one step for each region and zone, times the regions, zones and limits of the pods that count.
Source: sigs.k8s.io/scheduler-plugins pkg/networkaware/networkoverhead (for Kubernetes 1.35).
Differs: upstream panics without the AppGroup or the NetworkTopology; here a pod without AppGroup may go anywhere, and
without NetworkTopology no cost is known. See also `app_groups`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.framework import contract as fwk
from podium.objects.core import Pod
from podium.objects.topology_labels import REGION, ZONE
from podium.plugins.contrib.app_groups import (
    APP_GROUPS,
    NETWORK_TOPOLOGIES,
    AppGroup,
    Dependency,
    NetworkTopology,
    first_of,
    group_of,
    pods_by_app_group,
    workload_of,
)
from podium.plugins.contrib.calculations import reverse_min_max
from podium.plugins.contrib.plugin_args import PluginArgs, first_sentences
from podium.plugins.shared.unchanged_state import UnchangedState

_COST_MAX: Final = 100
_SAME_ZONE: Final = 1
_COST_SUM_MAX: Final = 1 << 62
"""Costs add up to no more, so that absurd ones do not wrap around and make the farthest node the nearest."""
_NO_STATE: Final = "not eligible due to failed to read from cycleState"

_Place = tuple[str, str]
"""Region and zone."""


class NetworkOverheadArgs(PluginArgs, frozen=True, kw_only=True):
    """The plugin's args; names and defaults are upstream's.

    Attributes:
        namespaces: where AppGroups and the NetworkTopology are looked for, in this order.
        weights_name: the name of the set of costs.
        when_missing: podium's own: whether pods of a group are rejected while the group or the costs are missing.
    """

    namespaces: tuple[str, ...] = ()
    weights_name: str = "UserDefined"
    network_topology_name: str = "nt-default"
    when_missing: Literal["Pass", "Reject"] = "Pass"


@dataclass(frozen=True, slots=True, eq=False)
class _Network:
    """The numbers of satisfied and violated dependencies, and the costs, by row; None if all nodes are equal."""

    snapshot: Snapshot
    numbers: tuple[IntArray, IntArray, IntArray] | None

    def text(self, row: int) -> str:
        """Return why the row's node is rejected."""
        assert self.numbers is not None
        satisfied, violated, _ = self.numbers
        return (
            f"Node {self.snapshot.name(row)} does not meet several network requirements from Workload dependencies: "
            f"Satisfied: {satisfied[row]} Violated: {violated[row]}"
        )


class NetworkOverhead(
    fwk.PreFilterPlugin, fwk.TableFilterPlugin, fwk.FilterPlugin, fwk.TableScorePlugin, fwk.ScorePlugin
):
    """Rejects nodes that are too far from too many dependencies, and prefers those near to all."""

    Args = NetworkOverheadArgs
    args: NetworkOverheadArgs

    def __init__(self, args: NetworkOverheadArgs, handle: fwk.Handle) -> None:
        super().__init__(args, handle)
        self._namespaces = args.namespaces or ("default",)
        self._groups = handle.lister(APP_GROUPS)
        self._topologies = handle.lister(NETWORK_TOPOLOGIES)
        self._pods = handle.shared(pods_by_app_group)

    def pre_filter(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[fwk.PreFilterResult | None, fwk.Status | None]:
        """Count the dependencies of the pod for each node."""
        state.write(_Network(snapshot, None))
        name = group_of(pod)
        if not name:
            return None, None
        group, topology = self._objects(name)
        if self.args.when_missing == "Reject" and (group is None or topology is None):
            missing = f"AppGroup {name}" if group is None else f"NetworkTopology {self.args.network_topology_name}"
            return None, fwk.unresolvable(f"{missing} not found in the namespaces {', '.join(self._namespaces)}")
        dependencies = () if group is None else group.dependencies_of(workload_of(pod))
        placed_pods = [member for member in self._pods.of(name) if member.node_name]
        if not dependencies or not placed_pods:
            return None, None
        try:
            demands = _demands(dependencies, placed_pods, snapshot)
        except fwk.PluginError as error:
            return None, fwk.error_status(error)
        state.write(_Network(snapshot, self._numbers(demands, topology or NetworkTopology(), snapshot)))
        return None, None

    def pre_filter_extensions(self) -> fwk.PreFilterExtensions:
        """Return extensions that change nothing."""
        return UnchangedState()

    def filter_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Return the row after the rejected one, as its verdict: each rejection has its own text."""
        numbers = _network(state).numbers
        if numbers is None:
            return None
        satisfied, violated, _ = numbers
        return np.where(violated[rows] > satisfied[rows], rows + 1, 0).astype(np.int64)

    def explain(self, state: fwk.CycleState, pod: Pod, verdict: int) -> fwk.Status:
        """Return Unschedulable with the numbers of the node."""
        return fwk.unschedulable(_network(state).text(verdict - 1))

    def filter(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Return Unschedulable if more dependencies are violated than satisfied."""
        network = _network(state)
        if network.numbers is None:
            return None
        satisfied, violated, _ = network.numbers
        return fwk.unschedulable(network.text(node.row)) if violated[node.row] > satisfied[node.row] else None

    def score_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Score with the cost, which normalisation turns around."""
        numbers = _network(state).numbers
        return np.zeros(len(rows), np.int64) if numbers is None else numbers[2].take(rows)

    def score(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> int:
        """Score as `score_rows`, for one node."""
        numbers = _network(state).numbers
        return 0 if numbers is None else int(numbers[2][node.row])

    def normalize_scores(self, state: fwk.CycleState, pod: Pod, scores: IntArray) -> IntArray:
        """Scale to 0..MAX_NODE_SCORE, the lowest cost best. If all costs are 0, all nodes get 0."""
        return reverse_min_max(scores)

    def rejection_details(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> Mapping[str, int]:
        """Return which dependencies cost too much from the rejected nodes, and from how many of them."""
        group, topology = self._objects(group_of(pod))
        counts: Counter[str] = Counter()
        if group is None:
            return counts
        dependencies = group.dependencies_of(workload_of(pod))
        pods = [member for member in self._pods.of(group_of(pod)) if member.node_name in snapshot.row_of]
        for node in map(snapshot.node, rows.tolist()):
            place = _place_of(node)
            costs = self._costs_from(place, topology or NetworkTopology())
            texts = set()
            for member, dependency in itertools.product(pods, dependencies):
                pod_place = _place_of(snapshot.node(snapshot.row_of[member.node_name]))
                is_concerned = dependency.workload.selector == workload_of(member) and member.node_name != node.name
                _, is_violated, cost = _outcome(place, pod_place, dependency.max_network_cost, costs)
                if is_concerned and is_violated:
                    where = " ".join(filter(None, pod_place)) or "a node without region and zone"
                    limit = dependency.max_network_cost
                    texts.add(f"{dependency.workload.selector} in {where} costs {cost}, at most {limit}")
            counts.update(texts)
        return counts

    def notes(self) -> Sequence[str]:
        """Return that no costs are known, if so, or which are negative."""
        if (topology := self._objects("")[1]) is not None:
            return first_sentences(topology.oddities())
        name, namespaces = self.args.network_topology_name, ", ".join(self._namespaces)
        return (f"the NetworkTopology {name} is missing in the namespaces {namespaces}, so no costs are known",)

    def _objects(self, group_name: str) -> tuple[AppGroup | None, NetworkTopology | None]:
        """Return the AppGroup of that name and the NetworkTopology, as far as they exist."""
        return (
            first_of(self._groups, self._namespaces, group_name),
            first_of(self._topologies, self._namespaces, self.args.network_topology_name),
        )

    def _numbers(
        self, demands: Counter[tuple[str, str, str, int]], topology: NetworkTopology, snapshot: Snapshot
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Return satisfied, violated and cost by row, for pods that depend on pods as in `demands`."""
        elsewhere: Counter[tuple[str, str, int]] = Counter()
        for (_, region, zone, limit), count in demands.items():
            elsewhere[region, zone, limit] += count
        regions, zones = (snapshot.label_column(key) for key in (REGION, ZONE))
        rows = snapshot.order
        value_ids = regions.ids[rows].astype(np.int64) * len(zones.values) + zones.ids[rows]
        places, positions = np.unique(value_ids, return_inverse=True)
        by_place = np.zeros((3, len(places)), np.int64)
        for index, place_id in enumerate(places.tolist()):
            region_id, zone_id = divmod(place_id, len(zones.values))
            place = (regions.values[region_id] or "", zones.values[zone_id] or "")
            costs = self._costs_from(place, topology)
            sums = [0, 0, 0]
            for (region, zone, limit), count in elsewhere.items():
                outcome = _outcome(place, (region, zone), limit, costs)
                sums = [part + number * count for part, number in zip(sums, outcome, strict=True)]
            by_place[:, index] = np.array(sums, object).clip(-_COST_SUM_MAX, _COST_SUM_MAX)
        numbers = np.zeros((3, len(snapshot.nodes)), np.int64)
        numbers[:, rows] = by_place[:, positions]
        for (name, region, zone, _), count in demands.items():
            # On the pod's own node the dependency is satisfied and costs nothing, even where no zone is known.
            elsewhere_numbers = np.array(_outcome((region, zone), (region, zone), 0, {}), np.int64)
            numbers[:, snapshot.row_of[name]] += (np.array((1, 0, 0), np.int64) - elsewhere_numbers) * count
        return numbers[0], numbers[1], numbers[2]

    def _costs_from(self, place: _Place, topology: NetworkTopology) -> Mapping[_Place, int]:
        """Return the cost by origin and destination. A zone overrides a region of the same name."""
        costs: dict[_Place, int] = {}
        for weights in topology.spec.weights:
            if weights.name == self.args.weights_name:
                for key, origin in zip((REGION, ZONE), place, strict=True):
                    if origin:
                        items = weights.costs_from(key, origin)
                        costs.update(((origin, item.destination), item.network_cost) for item in items)
        return costs


def _network(state: fwk.CycleState) -> _Network:
    network = state.find(_Network)
    if network is None:
        raise fwk.PluginError(_NO_STATE)
    return network


def _place_of(node: NodeInfo) -> _Place:
    return node.labels.get(REGION, ""), node.labels.get(ZONE, "")


def _demands(
    dependencies: Collection[Dependency], placed_pods: Collection[Pod], snapshot: Snapshot
) -> Counter[tuple[str, str, str, int]]:
    """Return how often each node, with its region and zone, has a pod that is depended on, by the limit of the cost.

    Raises:
        PluginError: such a pod's node is not in the snapshot.
    """
    demands: Counter[tuple[str, str, str, int]] = Counter()
    for pod in placed_pods:
        limits = [item.max_network_cost for item in dependencies if item.workload.selector == workload_of(pod)]
        if not limits:
            continue
        row = snapshot.row_of.get(pod.node_name)
        if row is None:
            text = f'nodeinfo not found for node name "{pod.node_name}"'
            raise fwk.PluginError(f"pod hostname not found: {text}")
        region, zone = _place_of(snapshot.node(row))
        for limit in limits:
            demands[pod.node_name, region, zone, limit] += 1
    return demands


def _outcome(place: _Place, pod_place: _Place, limit: int, costs: Mapping[_Place, int]) -> tuple[int, int, int]:
    """Return whether a pod on another node satisfies or violates the limit, as numbers, and its cost."""
    if pod_place == ("", ""):
        return 0, 1, _COST_MAX
    if place == pod_place:
        return 1, 0, _SAME_ZONE
    level = 1 if place[0] == pod_place[0] else 0
    cost = costs.get((place[level], pod_place[level]))
    if cost is None:
        return 0, 0, _COST_MAX
    return (1, 0, cost) if cost <= limit else (0, 1, cost)
