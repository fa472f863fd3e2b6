"""What would happen: steps that change a fork of a cluster, and what differs afterwards.

After each step pending pods are placed as the scheduler would place them, preemption carried out, until nothing moves
any more. A pod of a workload that was evicted or preempted comes back as a pending pod, as its controller would create
it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from podium.engine.cluster import stays_on_node
from podium.engine.placement import Placement
from podium.insight.capacity import ZONE_LABEL
from podium.insight.cluster import Cluster
from podium.objects.core import Pod
from podium.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY
from podium.objects.resource_types import NODES, PODS

_ROUNDS_MAX: Final = 20
"""Pods that preempt each other could move for ever."""


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that is elsewhere than before; `before` is "" if it was pending or did not exist."""

    pod: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Pending:
    """A pod without a node, and why. `before` is the node that it was on; "" if it was pending or did not exist."""

    pod: str
    before: str
    why: str


@dataclass(frozen=True, slots=True)
class Preemption:
    """A pod that made room for another one."""

    pod: str
    node: str
    by: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What is requested of a resource, and how much there is. Units: thousandths for cpu."""

    requested: int
    allocatable: int

    @property
    def percent(self) -> float:
        """How much is requested, in percent."""
        return round(100 * self.requested / self.allocatable, 1) if self.allocatable else 0.0


Utilisation = Mapping[str, Mapping[str, Usage]]
"""By zone, "" for all nodes together, and by resource."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How the pods of a workload are spread: by zone, and over how many nodes."""

    zones: Mapping[str, int]
    nodes: int

    def as_dict(self) -> dict[str, Any]:
        """The spread as JSON values."""
        return {"zones": dict(self.zones), "nodes": self.nodes}

    def __str__(self) -> str:
        """In words."""
        zones = ", ".join(f"{zone} {count}" for zone, count in self.zones.items() if zone)
        pods = sum(self.zones.values())
        counted = f"{pods} pod{'s' * (pods != 1)} on {self.nodes} node{'s' * (self.nodes != 1)}"
        return counted + (f" ({zones})" if zones else "")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What differs after the steps.

    Attributes:
        moved: pods that were on a node and are on another one.
        placed: pods that have a node and had none.
        pending: pods that have no node.
        gone: the keys of pods that do not exist any more.
        spread: by workload whose pods changed: before and after.
    """

    moved: Sequence[Move]
    placed: Sequence[Move]
    pending: Sequence[Pending]
    preempted: Sequence[Preemption]
    gone: Sequence[str]
    before: Utilisation
    after: Utilisation
    spread: Mapping[str, tuple[Spread, Spread]]

    def as_dict(self) -> dict[str, Any]:
        """The outcome as JSON values."""
        return {
            "moved": [{"pod": each.pod, "from": each.before, "to": each.after} for each in self.moved],
            "placed": [{"pod": each.pod, "to": each.after} for each in self.placed],
            "pending": [
                {"pod": each.pod, "why": each.why, **({"from": each.before} if each.before else {})}
                for each in self.pending
            ],
            "preempted": [{"pod": each.pod, "from": each.node, "by": each.by} for each in self.preempted],
            "gone": list(self.gone),
            "utilisation": {"before": _as_percent(self.before), "after": _as_percent(self.after)},
            "spread": {
                workload: {"before": before.as_dict(), "after": after.as_dict()}
                for workload, (before, after) in self.spread.items()
            },
        }


@dataclass
class Trial:
    """A private world in which steps are carried out one after the other.

    Attributes:
        world: the cluster as it is after the steps so far.
    """

    world: Cluster
    preempted: list[Preemption] = field(default_factory=list)
    _before: Cluster = field(init=False)
    _why: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Keep the cluster as it was."""
        self._before = self.world
        self.world = self.world.fork()

    def settle(self) -> None:
        """Place the pending pods in queue order until nothing moves any more.

        Raises:
            ScheduleError: an attempt failed.
        """
        for _ in range(_ROUNDS_MAX):
            self._why.clear()
            if not self.note_all(self._place_pending()):
                return

    def evict(self, pods: Iterable[Pod]) -> None:
        """Take the pods off their nodes. Those that have a controller come back as pending pods."""
        for pod in pods:
            self.world.remove("Pod", pod.metadata.name, pod.metadata.namespace)
            if pod.metadata.controller is not None and not stays_on_node(pod):
                self.world.put_pending(pod)

    def note_all(self, placements: Iterable[Placement]) -> bool:
        """Note attempts that have been made, and return whether any of them changed anything."""
        return sum(self._note(each) for each in placements) > 0

    def _place_pending(self) -> Sequence[Placement]:
        """One attempt at each pending pod whose scheduler is known."""
        profiles = self.world.profiles
        pending = [each for each in self.world.pods if not each.node_name]
        for pod in pending:
            if pod.spec.scheduler_name not in profiles:
                self._why[pod.key] = f"no profile is named {pod.spec.scheduler_name!r}"
        known = [each for each in pending if each.spec.scheduler_name in profiles]
        known.sort(key=lambda pod: (-pod.priority, pod.key))
        return self.world.place_all(known)

    def _note(self, placement: Placement) -> bool:
        """Note an attempt, and return whether it changed anything."""
        pod = placement.pod
        if placement.node is not None:
            return True
        self._why[pod.key] = placement.message
        if placement.nominated_node is None:
            return False
        for victim in placement.victims:
            self.preempted.append(Preemption(victim.key, placement.nominated_node, pod.key))
            if victim.metadata.controller is not None:
                self.world.put_pending(victim)
        return bool(placement.victims)

    def outcome(self) -> Outcome:
        """What differs from the cluster as it was."""
        before = {pod.key: pod for pod in self._before.pods}
        after = {pod.key: pod for pod in self.world.pods}
        moved, placed, pending = [], [], []
        for key, pod in after.items():
            was = before[key].node_name if key in before else ""
            if not pod.node_name:
                pending.append(Pending(key, was, self._why.get(key, "")))
            elif was and was != pod.node_name:
                moved.append(Move(key, was, pod.node_name))
            elif not was:
                placed.append(Move(key, "", pod.node_name))
        gone = [key for key in before if key not in after]
        return Outcome(
            moved,
            placed,
            pending,
            tuple(self.preempted),
            gone,
            utilisation(self._before),
            utilisation(self.world),
            _spreads(self._before, self.world),
        )


def utilisation(cluster: Cluster) -> Utilisation:
    """The requests of all pods, by zone and resource, beside what the nodes have."""
    snapshot = cluster.engine.cache.snapshot()
    resources = dict.fromkeys((CPU, MEMORY, EPHEMERAL_STORAGE))
    for node in cluster.nodes:
        resources.update(dict.fromkeys(node.status.allocatable))
    resources.pop("pods", None)
    zones = {row: node.metadata.labels.get(ZONE_LABEL, "") for row, node in enumerate(snapshot.nodes) if node}
    found: dict[str, dict[str, Usage]] = {}
    for zone in ("", *sorted({zone for zone in zones.values() if zone})):
        rows = [row for row, its_zone in zones.items() if zone in ("", its_zone)]
        found[zone] = {
            resource: usage
            for resource in resources
            if (
                usage := Usage(
                    int(snapshot.requested(resource)[rows].sum()), int(snapshot.allocatable(resource)[rows].sum())
                )
            ).allocatable
        }
        found[zone]["pods"] = Usage(int(snapshot.pod_count[rows].sum()), int(snapshot.allowed_pods[rows].sum()))
    return found


def _as_percent(found: Utilisation) -> dict[str, Any]:
    return {
        zone or "all": {
            resource: {"requested": each.requested, "allocatable": each.allocatable, "percent": each.percent}
            for resource, each in usages.items()
        }
        for zone, usages in found.items()
    }


def workload_of(pod: Pod) -> str:
    """`namespace/Kind/name` of the pod's controller; "" if it has none."""
    owner = pod.metadata.controller
    return f"{pod.metadata.namespace}/{owner.kind}/{owner.name}" if owner is not None else ""


def _spreads(before: Cluster, after: Cluster) -> Mapping[str, tuple[Spread, Spread]]:
    """The spread of each workload that has changed."""
    one, other = _spread(before), _spread(after)
    nothing = Spread({}, 0)
    found = {name: (one.get(name, nothing), other.get(name, nothing)) for name in sorted(one.keys() | other.keys())}
    return {name: (was, now) for name, (was, now) in found.items() if was != now}


def _spread(cluster: Cluster) -> Mapping[str, Spread]:
    nodes = cluster.store.objects(NODES)
    on_nodes: dict[str, Counter[str]] = {}
    for pod in cluster.store.objects(PODS).values():
        if (name := workload_of(pod)) and pod.node_name in nodes:
            on_nodes.setdefault(name, Counter())[pod.node_name] += 1
    found = {}
    for name, counts in on_nodes.items():
        zones: Counter[str] = Counter()
        for node, count in counts.items():
            zones[nodes[node].metadata.labels.get(ZONE_LABEL, "")] += count
        found[name] = Spread(dict(sorted(zones.items())), len(counts))
    return found
