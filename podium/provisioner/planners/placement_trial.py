"""A trial of podium's own planning rules: a fork of the cluster with candidate nodes, on which podium places pods."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from podium.engine.cluster import Cluster
from podium.engine.gangs import Gang
from podium.engine.placement import Placement
from podium.framework.contract.status import ScheduleError
from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.objects.core import Pod
from podium.objects.requests import Requests, whole_amounts
from podium.objects.resource_types import PODS
from podium.provisioner.cloudprovider.instance_types import fits
from podium.provisioner.planners.gang_placement import place_gang, place_without_preemption
from podium.provisioner.provisioning.solve import NOT_LOOKED_AT
from podium.provisioner.scheduling.amounts import less, requests_of, total


@dataclass(eq=False)
class PlacementTrial:
    """A fork of the cluster with candidate nodes, on which podium places pods.

    Attributes:
        gangs: The gangs of pods that wait, by the key of each such pod.
        last: The last attempt at each pod, by its key.
        victims: The attempts that led to a preemption, by the key of each pod that was preempted.
        late: The keys of the pods that had no node before others went.
        limit: when to place no more pods.
    """

    world: Cluster
    limit: TimeLimit = UNLIMITED
    gangs: Mapping[str, Gang] = field(default_factory=dict)
    last: dict[str, Placement] = field(default_factory=dict)
    victims: dict[str, Placement] = field(default_factory=dict)
    late: frozenset[str] = frozenset()

    @property
    def placements(self) -> Collection[Placement]:
        """The last attempt at each pod, in the order of the first ones."""
        return self.last.values()

    def settle(self, waiting: Sequence[Pod], *, preempt: bool) -> None:
        """Place the pods in this order, and again those that do not fit, until nothing changes any more.

        The members of a gang are placed together, when it is the turn of the first of them.
        """
        while waiting:
            victims: dict[str, Pod] = {}
            for gang, pods in together(waiting, self.gangs):
                if self.limit.is_over():
                    self.limit.is_noticed = True
                    for pod in pods:
                        self.last.setdefault(pod.key, Placement(pod, None, NOT_LOOKED_AT))
                elif gang is not None:
                    self.last |= {placement.pod.key: placement for placement in place_gang(self.world, gang, pods)}
                else:
                    victims |= self._settle_pod(pods[0], preempt=preempt)
            is_changed = bool(victims) or any(self.last[pod.key].node is not None for pod in waiting)
            # Victims need time to end: meanwhile the scheduler tries the other pods beside them.
            for key, victim in victims.items():
                self.world.drop(PODS, victim)
                self.last.pop(key, None)
            # The scheduler's queue, too, tries a pod again once others were placed or evicted.
            waiting = self.pods_left if is_changed and not self.limit.is_noticed else ()

    def _settle_pod(self, pod: Pod, *, preempt: bool) -> dict[str, Pod]:
        """Place a pod that is in no gang. Returns: the pods that are preempted for it, by key."""
        placement = self.last[pod.key] = place(self.world, pod)
        if not preempt:
            return {}
        # As the daemon does after PostFilter: without the nomination, the next pods would take the room of the victims.
        self.world.nominate(placement)
        self.victims |= dict.fromkeys((victim.key for victim in placement.victims), placement)
        return {victim.key: victim for victim in placement.victims}

    @property
    def pods_left(self) -> Sequence[Pod]:
        """The pods that have no node."""
        return [placement.pod for placement in self.placements if placement.node is None]

    def remove(self, nodes: Collection[str]) -> None:
        """Let these nodes go, with the pods that are on them; those that were placed there wait again."""
        for pod in self.world.pods:
            if pod.node_name in nodes:
                self.world.drop(PODS, pod)
                if pod.key in self.last:
                    self.last[pod.key] = Placement(self.last[pod.key].pod, None)
        self.late = frozenset(pod.key for pod in self.pods_left)
        for name in nodes:
            self.world.remove("Node", name)

    def may_do_without(self, name: str) -> bool:
        """Return True if the pods that were placed on the node find room on the others as these are now."""
        world = self.world.fork()
        pods = [placement.pod for placement in self.placements if placement.node == name]
        for pod in pods:
            world.put_pending(pod)
        for pod in world.pods:
            if pod.node_name == name:
                world.drop(PODS, pod)
        world.remove("Node", name)
        # The first that finds none settles it, so that a node that is needed costs few attempts.
        return all(place_without_preemption(world, pod).node is not None for pod in pods)

    def rooms(self) -> NodeRooms:
        """Return the amounts by which a node may be left out."""
        allocatable = {
            node.name: whole_amounts(node.status.allocatable, "status.allocatable") for node in self.world.nodes
        }
        requests: dict[str, list[Requests]] = {name: [] for name in allocatable}
        for pod in self.world.pods:
            if pod.node_name in requests:
                requests[pod.node_name].append(requests_of(pod))
        planned_keys = {key for key, placement in self.last.items() if placement.node is not None}
        planned_requests: dict[str, list[Requests]] = {name: [] for name in allocatable}
        for key in planned_keys:
            placement = self.last[key]
            if placement.node in planned_requests:
                planned_requests[placement.node].append(requests_of(placement.pod))
        used_amounts = {name: total(*amounts) for name, amounts in requests.items()}
        free = {name: less(amounts, used_amounts[name]) for name, amounts in allocatable.items()}
        return NodeRooms(
            total(*free.values()), free, {name: total(*amounts) for name, amounts in planned_requests.items()}
        )


@dataclass(frozen=True, slots=True)
class NodeRooms:
    """The free amounts of the nodes of a trial.

    Attributes:
        free: Of all nodes together.
        free_by_node: Of each node.
        planned_requests: By node, the requests of the pods that were placed there.
    """

    free: Requests
    free_by_node: Mapping[str, Requests]
    planned_requests: Mapping[str, Requests]

    def others_may_hold(self, name: str) -> bool:
        """Return True if the other nodes have, in sum, room for the pods that were placed on this one."""
        # A sum is a necessary condition only. It costs no attempt, and rules out most nodes of a large plan.
        return fits(self.planned_requests[name], less(self.free, self.free_by_node[name]))


def together(pods: Iterable[Pod], gangs: Mapping[str, Gang]) -> Iterable[tuple[Gang | None, list[Pod]]]:
    """Return the pods with the members of each gang together, in the order of the first of each."""
    units: dict[object, tuple[Gang | None, list[Pod]]] = {}
    for pod in pods:
        gang = gangs.get(pod.key)
        identity: object = pod.key if gang is None else (gang.api, gang.key)
        units.setdefault(identity, (gang, []))[1].append(pod)
    return units.values()


def place(world: Cluster, pod: Pod) -> Placement:
    """Place the pod; what fails its attempt is why it stays."""
    if pod.spec.scheduler_name not in world.profiles:
        return Placement(pod, None, f"no profile is named {pod.spec.scheduler_name!r}")
    try:
        return world.place(pod)
    except ScheduleError as error:
        return Placement(pod, None, str(error).removeprefix(f"{pod.key}: "))


def verdict(world: Cluster, pod: Pod, name: str) -> str:
    """Return the reason why the node refuses the pod; empty if the attempt fails altogether."""
    try:
        evaluation = world.evaluate(pod)
    except ScheduleError:
        return ""
    statuses = evaluation.found.diagnosis.statuses()
    reasons = (status.all_reasons for row, status in statuses.items() if evaluation.snapshot.name(row) == name)
    return ", ".join(next(reasons, ()))
