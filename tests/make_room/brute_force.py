"""The fewest moves by trying all of them, written against the rules.

A move takes a pod from its node to another one that has room for it at that time. A pod moves once at most, and not
if its budget allows no disruption. The pod in question fits once a node has room for it, in a zone without a pod of
those from which it is to be kept apart. A node has room for a pod if it has as many devices, too. A spread constraint
lets a pod go to a domain if the pods there, with it and without the one whose place it takes, are at most maxSkew more
than in the smallest domain of all nodes with the label. Shares no code with the search.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tests.make_room.clusters import FullCluster, amount_of, devices_of, key_of
from tests.manifests import ZONE, Json

Amounts = tuple[int, int, int, int]
"""Pods, cpu, memory and devices."""
State = tuple[tuple[int, int, int], ...]
"""The moves so far, sorted: the group of the pod, its node, and where it went."""


class TooManyStatesError(Exception):
    """There are too many states to try all of them."""


def fewest_moves(cluster: FullCluster, states_max: int, moves_max: int = 99) -> int | None:
    """Return the fewest moves; None if no moves, or none of up to so many, make room.

    Raises:
        TooManyStatesError.
    """
    nodes = [item for item in cluster.objects if item["kind"] == "Node"]
    pods = [item for item in cluster.objects if item["kind"] == "Pod"]
    blocked_groups = _blocked_groups(cluster.objects)
    names = [item["metadata"]["name"] for item in nodes]
    zones = [item["metadata"].get("labels", {}).get(ZONE, "") for item in nodes]
    free = [_allocatable(item, cluster.objects) for item in nodes]
    keeping: dict[str, int] = {}
    groups: dict[tuple[str, int], int] = {}
    amounts: dict[str, Amounts] = {}
    for pod in pods:
        group, name = pod["metadata"]["labels"]["app"], pod["spec"].get("nodeName")
        amounts[group] = 1, amount_of(pod, "cpu"), amount_of(pod, "memory"), devices_of(pod)
        if name is not None:
            at = names.index(name)
            keeping[zones[at]] = keeping.get(zones[at], 0) + (group in cluster.apart)
            free[at] = _minus(free[at], amounts[group])
            # Replicas on one node are alike, so that it does not matter which of them moves.
            if group not in blocked_groups:
                groups[group, at] = groups.get((group, at), 0) + 1
    subject = next(pod for pod in pods if key_of(pod) == cluster.pod)
    need = amounts[subject["metadata"]["labels"]["app"]]
    skew = _Skew.of(nodes, pods)
    states: dict[State, list[Amounts]] = {(): free}
    kinds = list(groups)
    for count in range(moves_max + 1):
        for state, rooms in states.items():
            closed_zones = _closed_zones(state, kinds, zones, keeping, cluster.apart)
            moves = [(*kinds[number], target) for number, _, target in state]
            if any(
                _fits(need, room) and zone not in closed_zones and skew.allows(subject, target, moves)
                for target, (room, zone) in enumerate(zip(rooms, zones, strict=True))
            ):
                return count
        states = _next_states(states, kinds, groups, amounts, skew, states_max)
        if not states:
            return None
    return None


@dataclass
class _Skew:
    """The pods by domain, for topology spread.

    Attributes:
        samples: a pod of each ReplicaSet.
        places: the ReplicaSet and the node of each pod that has one.
    """

    labels: list[dict[str, str]]
    samples: dict[str, Json]
    places: list[tuple[str, int]]

    @classmethod
    def of(cls, nodes: list[Json], pods: list[Json]) -> _Skew:
        names = [item["metadata"]["name"] for item in nodes]
        places = [
            (pod["metadata"]["labels"]["app"], names.index(pod["spec"]["nodeName"]))
            for pod in pods
            if pod["spec"].get("nodeName")
        ]
        samples = {pod["metadata"]["labels"]["app"]: pod for pod in pods}
        return cls([item["metadata"].get("labels", {}) for item in nodes], samples, places)

    def allows(
        self, pod: Json, target: int, moves: list[tuple[str, int, int]], leaving: tuple[str, int] | None = None
    ) -> bool:
        """Return whether the constraints of a pod let it go there after these moves, and after one has left."""
        for rule in pod["spec"].get("topologySpreadConstraints", ()):
            key, (expression,) = rule["topologyKey"], rule["labelSelector"]["matchExpressions"]
            counts = Counter({labels[key]: 0 for labels in self.labels if key in labels})
            if key not in self.labels[target]:
                return False
            arrivals = [(group, goal) for group, _, goal in moves]
            departures = [(group, at) for group, at, _ in moves] + ([leaving] if leaving else [])
            for places, step in ((self.places + arrivals, 1), (departures, -1)):
                for group, at in places:
                    if group in expression["values"] and key in self.labels[at]:
                        counts[self.labels[at][key]] += step
            smallest = 0 if len(counts) < rule.get("minDomains", 1) else min(counts.values())
            itself = pod["metadata"]["labels"]["app"] in expression["values"]
            if counts[self.labels[target][key]] + itself - smallest > rule["maxSkew"]:
                return False
        return True


def _closed_zones(
    state: State, kinds: list[tuple[str, int]], zones: list[str], keeping: dict[str, int], apart: frozenset[str]
) -> set[str]:
    """Return the zones with pods, after these moves, from which the pod in question is kept apart."""
    counts = dict(keeping)
    for number, at, target in state:
        if kinds[number][0] in apart:
            counts[zones[at]] -= 1
            counts[zones[target]] = counts.get(zones[target], 0) + 1
    return {zone for zone, count in counts.items() if count}


def _next_states(
    states: dict[State, list[Amounts]],
    kinds: list[tuple[str, int]],
    groups: dict[tuple[str, int], int],
    amounts: dict[str, Amounts],
    skew: _Skew,
    states_max: int,
) -> dict[State, list[Amounts]]:
    result: dict[State, list[Amounts]] = {}
    for state, free in states.items():
        moves = [(*kinds[number], target) for number, _, target in state]
        for number, (group, at) in enumerate(kinds):
            if sum(kind == number for kind, _, _ in state) == groups[group, at]:
                continue
            for target, room in enumerate(free):
                if target == at or not _fits(amounts[group], room):
                    continue
                if not skew.allows(skew.samples[group], target, moves, leaving=(group, at)):
                    continue
                successor = tuple(sorted((*state, (number, at, target))))
                if successor not in result:
                    rooms = list(free)
                    rooms[target] = _minus(rooms[target], amounts[group])
                    rooms[at] = _plus(rooms[at], amounts[group])
                    result[successor] = rooms
                    if len(result) > states_max:
                        raise TooManyStatesError
    return result


def _blocked_groups(objects: list[Json]) -> set[str]:
    """Return the ReplicaSets of which a budget allows no pod to go: too many are pending, or none may be."""
    replicas = {item["metadata"]["name"]: item["spec"]["replicas"] for item in objects if item["kind"] == "ReplicaSet"}
    bound_pods = [item for item in objects if item["kind"] == "Pod" and item["spec"].get("nodeName")]
    groups = [pod["metadata"]["labels"]["app"] for pod in bound_pods]
    limits = {
        item["metadata"]["name"]: item["spec"]["maxUnavailable"]
        for item in objects
        if item["kind"] == "PodDisruptionBudget"
    }
    return {name for name, limit in limits.items() if groups.count(name) <= replicas[name] - limit}


def _allocatable(node: Json, objects: list[Json]) -> Amounts:
    amounts = node["status"]["allocatable"]
    slices = [item for item in objects if item["kind"] == "ResourceSlice"]
    name = node["metadata"]["name"]
    count = sum(len(item["spec"]["devices"]) for item in slices if item["spec"]["nodeName"] == name)
    return int(amounts["pods"]), int(amounts["cpu"][:-1]), int(amounts["memory"][:-1]), count


def _minus(first: Amounts, second: Amounts) -> Amounts:
    return first[0] - second[0], first[1] - second[1], first[2] - second[2], first[3] - second[3]


def _plus(first: Amounts, second: Amounts) -> Amounts:
    return first[0] + second[0], first[1] + second[1], first[2] + second[2], first[3] + second[3]


def _fits(need: Amounts, room: Amounts) -> bool:
    return all(amount <= free for amount, free in zip(need, room, strict=True))
