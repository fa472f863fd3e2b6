"""Nodes on which a gang could ever run together, whatever other pods leave.

The members are placed one after the other in the cluster without the pods that can leave, as the scheduler does. Where
that fails, another choice of nodes may succeed, unless the members are alike and do not look at each other: then every
choice places as many. Otherwise all choices are tried, up to a limit beyond which nothing is proven.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from podium.cluster.affinity_terms import pod_terms
from podium.engine.cluster import Cluster
from podium.engine.gangs import Gang, restrict, try_gang
from podium.insight.node_edits import HOSTNAME
from podium.insight.possible_nodes import possible_nodes
from podium.objects.core import Pod

_ATTEMPTS_MAX: Final = 300


class _LimitReachedError(Exception):
    """There are too many choices to try them all."""


def possible_gang_nodes(cluster: Cluster, emptied: Cluster, gang: Gang) -> Sequence[str]:
    """Return names of nodes that the gang may have together; empty if it never has enough of them.

    Args:
        emptied: a fork of the cluster without the pods that can leave.

    Raises:
        ScheduleError: a plugin failed.
    """
    world = emptied.fork()
    for member in gang.waiting_members:
        # Plugins count the members that exist.
        world.put_pending(member)
    trial = try_gang(world, gang)
    shortage = gang.min_count - len(gang.placed_members)
    if len(trial.nodes) >= shortage:
        return list(dict.fromkeys(trial.nodes.values()))
    if _are_interchangeable(gang.waiting_members):
        return ()
    choices = {pod.key: possible_nodes(cluster, emptied, restrict(pod, trial.selector)) for pod in gang.waiting_members}
    names = list(dict.fromkeys(name for nodes in choices.values() for name in nodes))
    if sum(bool(nodes) for nodes in choices.values()) < shortage:
        return ()
    try:
        return _Choices(choices).nodes(world, gang.waiting_members, shortage) or ()
    except _LimitReachedError:
        return names


def _are_interchangeable(pods: Sequence[Pod]) -> bool:
    """Return whether the pods are alike, and none looks at where the others are."""
    if len({msgspec.msgpack.encode((pod.spec, pod.metadata.labels)) for pod in pods}) > 1:
        return False
    terms = pod_terms(pods[0])
    return not (terms.required_affinity or terms.required_anti_affinity or pods[0].spec.topology_spread_constraints)


class _Choices:
    """The nodes to try for each pod, by its key."""

    def __init__(self, choices: dict[str, Sequence[str]]) -> None:
        self._choices = choices
        self._attempts_left = _ATTEMPTS_MAX

    def nodes(self, world: Cluster, pods: Sequence[Pod], shortage: int) -> Sequence[str] | None:
        """Return the nodes of as many of the pods as are short; None if no choice has so many.

        Raises:
            _LimitReachedError: there are too many choices.
        """
        if shortage <= 0:
            return []
        if len(pods) < shortage:
            return None
        pod, other_pods = pods[0], pods[1:]
        for name in self._choices[pod.key]:
            if not self._attempts_left:
                raise _LimitReachedError
            self._attempts_left -= 1
            next_world = world.fork()
            if next_world.place_without_preemption(restrict(pod, {HOSTNAME: name})).node is None:
                continue
            if (names := self.nodes(next_world, other_pods, shortage - 1)) is not None:
                return list(dict.fromkeys([name, *names]))
        return self.nodes(world, other_pods, shortage)
