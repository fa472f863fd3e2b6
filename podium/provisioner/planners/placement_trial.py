"""A trial of podium's own planning rules: a fork of the cluster with candidate nodes, on which podium places pods."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from podium.engine.cluster import Cluster
from podium.engine.placement import Placement
from podium.framework.contract.status import ScheduleError
from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.objects.core import Pod
from podium.objects.requests import whole_amounts
from podium.objects.resource_types import PODS
from podium.provisioner.cloudprovider.instance_types import fits
from podium.provisioner.provisioning.solve import NOT_LOOKED_AT
from podium.provisioner.scheduling.amounts import less, requests_of, total


@dataclass(eq=False)
class PlacementTrial:
    """A fork of the cluster with candidate nodes, on which podium places pods.

    Attributes:
        last: The last attempt at each pod, by its key.
        victims: The attempts that led to a preemption, by the key of each pod that was preempted.
        late: The keys of the pods that had no node before others went.
        limit: when to place no more pods.
    """

    world: Cluster
    limit: TimeLimit = UNLIMITED
    last: dict[str, Placement] = field(default_factory=dict)
    victims: dict[str, Placement] = field(default_factory=dict)
    late: frozenset[str] = frozenset()

    @property
    def placements(self) -> Collection[Placement]:
        """The last attempt at each pod, in the order of the first ones."""
        return self.last.values()

    def settle(self, waiting: Sequence[Pod], *, preempt: bool) -> None:
        """Place the pods in this order, and again those that do not fit, until nothing changes any more."""
        while waiting:
            victims: dict[str, Pod] = {}
            for pod in waiting:
                if self.limit.is_over():
                    self.limit.is_noticed = True
                    self.last.setdefault(pod.key, Placement(pod, None, NOT_LOOKED_AT))
                    continue
                placement = self.last[pod.key] = place(self.world, pod)
                if preempt:
                    # As the daemon does after PostFilter: without the nomination, the next pods would take the room of
                    # the victims.
                    self.world.nominate(placement)
                    victims |= {victim.key: victim for victim in placement.victims}
                    self.victims |= dict.fromkeys((victim.key for victim in placement.victims), placement)
            is_changed = bool(victims) or any(self.last[pod.key].node is not None for pod in waiting)
            # Victims need time to end: meanwhile the scheduler tries the other pods beside them.
            for key, victim in victims.items():
                self.world.drop(PODS, victim)
                self.last.pop(key, None)
            # The scheduler's queue, too, tries a pod again once others were placed or evicted.
            waiting = self.pods_left if is_changed and not self.limit.is_noticed else ()

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

    def others_may_hold(self, name: str) -> bool:
        # A sum is a necessary condition only. It costs no attempt, and rules out most nodes of a large plan.
        """Return True if the other nodes have, in sum, room for the pods that were placed on this one."""
        moving = total(*(requests_of(placement.pod) for placement in self.placements if placement.node == name))
        nodes = (node for node in self.world.nodes if node.name != name)
        allocatable = total(*(whole_amounts(node.status.allocatable, "status.allocatable") for node in nodes))
        staying = (pod for pod in self.world.pods if pod.node_name and pod.node_name != name)
        return fits(moving, less(allocatable, total(*(requests_of(pod) for pod in staying))))


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
