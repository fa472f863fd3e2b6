"""Which nodes to buy, judged by podium: each pod is placed by podium's own plugins, on nodes that are not there yet.

Owns the search for such nodes. It begins with Karpenter's plan, buys more where podium places a pod elsewhere or
nowhere, and drops every node that can be left out. What is told is the last trial, so it is what podium then does if
the nodes come in the order of their names here: where nodes are equally good, podium goes by their order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from typing import Final

from msgspec.structs import replace

from podium.engine.cluster import Cluster
from podium.engine.placement import Placement
from podium.framework.contract.status import ScheduleError
from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.objects.amounts import amount_texts
from podium.objects.core import Pod
from podium.objects.requests import Requests, whole_amounts
from podium.objects.resource_types import NODES, PODS
from podium.objects.tolerations import taint_text
from podium.provisioner.apis.labels import NODE_POOL
from podium.provisioner.apis.objects import ClusterObjects
from podium.provisioner.cloudprovider.instance_type_filter import DaemonGroup
from podium.provisioner.cloudprovider.instance_types import fits
from podium.provisioner.provisioning.launches import Launch, daemons, has_room, launches, node_under_way
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.provisioning.planned_nodes import launched
from podium.provisioner.provisioning.plans import outcome_of
from podium.provisioner.provisioning.provisioner import pods_of_leaving
from podium.provisioner.provisioning.reasons import demands_text, in_own_words, unmet_demands
from podium.provisioner.provisioning.relaxation import without_first_alternative
from podium.provisioner.provisioning.solve import NOT_LOOKED_AT, Solver
from podium.provisioner.provisioning.templates import Template
from podium.provisioner.scheduling.amounts import less, requests_of, total
from podium.provisioner.scheduling.device_use import NO_DEVICES, DeviceUse
from podium.provisioner.scheduling.pod_requirements import strict_pod_requirements
from podium.provisioner.scheduling.requirements import Requirements
from podium.provisioner.scheduling.taints import DISRUPTED, untolerated
from podium.provisioner.state.evictions import Evictions
from podium.provisioner.state.state_node import NODES as NODE_COUNT
from podium.provisioner.state.state_node import StateNode, leaving

ROUNDS_MAX: Final = 10
"""How often more nodes are bought because the pods were placed differently on those of the round before."""

TRIES_MAX: Final = 64
"""How many kinds of nodes are tried for one pod."""

PLACEMENTS_MAX: Final = 50_000
"""How many pods are placed again to leave nodes out.

Of a larger plan only such nodes are tried whose pods' requests have room on the others. That misses a node if the
profile does not heed requests.
"""

_NO_ROOM_IN_LIMITS: Final = "its limits leave no room for another node"


@dataclass(frozen=True, eq=False)
class PlacedPlan:
    """Nodes to buy, and where podium then places the pods.

    Attributes:
        launches: By name of the node.
        pods: By node, the pods that wait now and go there.
        errors: By pod that waits now, why it stays pending, or is evicted again.
        objections: By pod that stays, why no node of a NodePool helps.
        preempted: The pods on nodes that podium then evicts.
        late: By key, the pods that are placed only once the nodes that are leaving are gone.
        devices: Those for resource claims, before the plan and after it.
        is_partial: the time was up: some pods were not looked at, and nodes that can be left out may not be.
    """

    launches: Mapping[str, Launch]
    pods: Mapping[str, tuple[Pod, ...]]
    errors: Mapping[str, str]
    objections: Mapping[str, Mapping[str, str]]
    preempted: tuple[str, ...] = ()
    late: frozenset[str] = frozenset()
    devices: tuple[DeviceUse, DeviceUse] = (NO_DEVICES, NO_DEVICES)
    is_partial: bool = False


def plan_with_podium(basis: PlanBasis, cluster: Cluster, now: float, limit: TimeLimit = UNLIMITED) -> PlacedPlan:
    """The nodes to buy so that podium places as many waiting pods as it can.

    Args:
        cluster: the same objects, and the profiles that place the pods. It is not changed.
        now: the time, in seconds since the epoch.
        limit: when to end with the nodes and the placements found by then; the plan is partial then.
    """
    return _Search(basis, cluster, Evictions(basis.objects.budgets, now), limit).plan()


def settled(objects: ClusterObjects, cluster: Cluster) -> ClusterObjects:
    """The objects once podium has placed the waiting pods that fit, which it does before any node comes or goes.

    Args:
        cluster: as `plan_with_podium` takes it.
    """
    trial = _Trial(cluster.fork())
    trial.settle(_in_queue_order(each for each in cluster.pods if not each.node_name), preempt=True)
    nodes = {each.pod.key: each.node for each in trial.placements}
    there = (each for each in objects.pods if each.key not in trial.victims)
    return replace_fields(
        objects, pods=tuple(each.on_node(node) if (node := nodes.get(each.key)) else each for each in there)
    )


@dataclass(eq=False)
class _Trial:
    """What podium does with some nodes more.

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
                placement = self.last[pod.key] = _placed(self.world, pod)
                if preempt:
                    self.world.nominate(placement)
                    victims |= {each.key: each for each in placement.victims}
                    self.victims |= dict.fromkeys((each.key for each in placement.victims), placement)
            is_changed = bool(victims) or any(self.last[each.key].node is not None for each in waiting)
            # Victims need time to end: meanwhile the scheduler tries the other pods beside them.
            for key, victim in victims.items():
                self.world.drop(PODS, victim)
                self.last.pop(key, None)
            # The scheduler's queue, too, tries a pod again once others were placed or evicted.
            waiting = self.left if is_changed and not self.limit.is_noticed else ()

    @property
    def left(self) -> Sequence[Pod]:
        """The pods that have no node."""
        return [each.pod for each in self.placements if each.node is None]

    def remove(self, nodes: Collection[str]) -> None:
        """Let these nodes go, with the pods that are on them; those that were placed there wait again."""
        for pod in self.world.pods:
            if pod.node_name in nodes:
                self.world.drop(PODS, pod)
                if pod.key in self.last:
                    self.last[pod.key] = Placement(self.last[pod.key].pod, None)
        self.late = frozenset(each.key for each in self.left)
        for name in nodes:
            self.world.remove("Node", name)


class _Search:
    """One search over a cluster."""

    def __init__(self, basis: PlanBasis, cluster: Cluster, evictions: Evictions, limit: TimeLimit) -> None:
        self._basis = basis
        self._limit = limit
        self._whole_trial: tuple[dict[str, Launch], _Trial] | None = None
        self._world = cluster.fork()
        self._pool_names: dict[str, int] = {}
        pending = [each for each in self._world.pods if not each.node_name]
        moved = pods_of_leaving(basis, evictions)
        for pod in moved:
            if self._world.store.get(PODS, pod.key) is not None:
                self._world.drop(PODS, pod)
        self._leaving = frozenset(self._begin_to_leave())
        for state in basis.nodes:
            if not state.is_leaving:
                self._complete(state)
        # Those that wait already have been tried before the others lose their nodes.
        self._waiting = [*_in_queue_order(pending), *_in_queue_order(map(_unbound, moved))]
        self._known = frozenset(each.key for each in (*self._world.pods, *moved))

    def _begin_to_leave(self) -> Iterator[str]:
        """Taint the nodes that are leaving, so that they take no pods. Returns: their names."""
        for state in leaving(self._basis.nodes):
            node = None if state.node is None else self._world.store.get(NODES, state.node.metadata.name)
            if node is not None:
                spec = replace(node.spec, taints=(*node.spec.taints, DISRUPTED))
                self._world.put(NODES, replace(node, spec=spec))
                yield node.name

    def _complete(self, state: StateNode) -> None:
        """Let the node be as it will be once it has joined, and all its DaemonSets' pods run there."""
        if state.claim is not None and not state.is_initialized:
            manifest = node_under_way(state)
            is_there = self._world.store.get(NODES, manifest["metadata"]["name"]) is not None
            (self._world.replace if is_there else self._world.add)(manifest)
        name = state.name if state.node is None else state.node.metadata.name
        if self._world.store.get(NODES, name) is not None:
            for manifest in daemons(name, self._basis.room(state).coming):
                self._world.add(manifest)

    def plan(self) -> PlacedPlan:
        """Search."""
        chosen = self._needed(self._completed(self._proposed()))
        self._limit.is_noticed |= self._limit.is_over()
        trial = self._trial(chosen, preempt=True)
        if self._limit.is_noticed and self._whole_trial is not None:
            # One that was carried out to its end says more than one of more nodes that was not.
            chosen, trial = self._whole_trial
        pods: dict[str, list[Pod]] = {}
        errors: dict[str, str] = {}
        objections: dict[str, dict[str, str]] = {}
        for placement in trial.placements:
            if placement.node is not None:
                pods.setdefault(placement.node, []).append(placement.pod)
            else:
                errors[placement.pod.key] = placement.message
                is_explained = not self._limit.is_over()
                objections[placement.pod.key] = self._objections(trial, placement.pod, chosen) if is_explained else {}
        preempted = trial.victims.keys() - {each.key for each in self._waiting}
        for key in trial.victims.keys() - preempted:
            errors[key], objections[key] = _preempted_text(trial.victims[key]), {}
        placed = {name: tuple(found) for name, found in sorted(pods.items())}
        devices = DeviceUse.in_store(self._world.store), DeviceUse.in_store(trial.world.store)
        return PlacedPlan(
            dict(sorted(chosen.items())),
            placed,
            errors,
            objections,
            tuple(sorted(preempted)),
            trial.late,
            devices,
            self._limit.is_noticed,
        )

    # ------------------------------------------------------------ which nodes

    def _proposed(self) -> dict[str, Launch]:
        """Karpenter's plan: of each NodeClaim the node that would be launched."""
        basis = self._basis
        if not basis.templates:
            return {}
        nodes = [each for each in basis.nodes if not each.is_leaving]
        results = Solver(basis, nodes=nodes, pods=self._waiting).solve(self._limit)
        outcome = outcome_of(results, self._waiting, lower_min_values=basis.settings.lower_min_values)
        return {self._name(launch.template.name): launch for _, launch in launched(basis, outcome.purchases)}

    def _completed(self, chosen: dict[str, Launch]) -> dict[str, Launch]:
        """These nodes, and more for pods that podium does not place on them."""
        for _ in range(ROUNDS_MAX):
            trial = self._trial(chosen, preempt=False)
            more: dict[str, Launch] = {}
            for placement in self._limit.take(trial.placements):
                if placement.node is None and _placed(trial.world, placement.pod).node is None:
                    more |= self._one_more(trial.world, placement.pod, {**chosen, **more})
            if not more:
                break
            chosen = {**chosen, **more}
            if self._limit.is_over():
                break
        return chosen

    def _one_more(self, world: Cluster, pod: Pod, chosen: Mapping[str, Launch]) -> dict[str, Launch]:
        """The cheapest node that the pod would be placed on; the world has both then. Nothing if there is none."""
        for template, groups in self._basis.templates:
            name = self._next_name(template.name)
            for launch in self._options(template, groups, pod, chosen):
                tried = world.fork()
                _add(tried, name, launch)
                if _placed(tried, pod).node is not None:
                    _add(world, name, launch)
                    _placed(world, pod)
                    return {self._name(template.name): launch}
        return {}

    def _needed(self, chosen: dict[str, Launch]) -> dict[str, Launch]:
        """Those of the nodes that cannot be left out, the most expensive being left out first."""
        trial = self._trial(chosen, preempt=True)
        bound = self._bound(trial)
        is_large = len(chosen) * len(self._waiting) > PLACEMENTS_MAX
        placements_left = PLACEMENTS_MAX
        untried = deque(sorted(chosen, key=lambda each: (-chosen[each].price, each)))
        kept: list[str] = []
        while untried and not self._limit.is_over():
            name = untried.popleft()
            others = {other: launch for other, launch in chosen.items() if other != name}
            without = None if is_large and not _others_may_hold(trial, name) else self._trial(others, preempt=True)
            if without is None or not self._bound(without) >= bound:
                kept.append(name)
                continue
            chosen, trial = others, without
            placements_left -= len(self._waiting) * len(kept)
            if placements_left >= 0:
                # Fewer nodes may lead the pods elsewhere, so that one which was needed before is not any more.
                untried.extend(kept)
                kept.clear()
        return chosen

    def _bound(self, trial: _Trial) -> frozenset[str]:
        """The pods that have a node, but for those of DaemonSets on new nodes."""
        return frozenset(each.key for each in trial.world.pods if each.node_name) & self._known

    # ------------------------------------------------------------ one trial

    def _trial(self, chosen: Mapping[str, Launch], *, preempt: bool) -> _Trial:
        trial = _Trial(self._world.fork(), self._limit)
        for name, launch in sorted(chosen.items()):
            _add(trial.world, name, launch)
        trial.settle(self._waiting, preempt=preempt)
        if self._leaving:
            # They are there, and count, until their pods are placed elsewhere.
            trial.remove(self._leaving)
            trial.settle(trial.left, preempt=preempt)
        if not self._limit.is_noticed:
            self._whole_trial = dict(chosen), trial
        return trial

    def _options(
        self, template: Template, groups: Sequence[DaemonGroup], pod: Pod, chosen: Mapping[str, Launch]
    ) -> list[Launch]:
        """The nodes of a NodePool that may suit the pod, the cheapest first; those of another zone or capacity type
        before those that differ in size only.
        """
        is_ours = pod.spec.scheduler_name in self._world.profiles
        if not is_ours or untolerated(template.taints, pod.spec.tolerations):
            return []
        remaining, requests = self._remaining(template.name, chosen), requests_of(pod)
        found = [
            launch
            for requirements in self._alternatives(template, pod)
            for launch in launches(template, groups, requirements, self._basis.well_known)
            if has_room(launch, requests) and _within(launch, remaining)
        ]
        first: dict[tuple[str, str], Launch] = {}
        for launch in found:
            first.setdefault((launch.offering.zone, launch.offering.capacity_type), launch)
        ahead = list(first.values())
        return [*ahead, *(each for each in found if each not in ahead)][:TRIES_MAX]

    def _alternatives(self, template: Template, pod: Pod) -> Iterator[Requirements]:
        """What a node of the NodePool must be like for the pod, by the alternatives of its node affinity."""
        spec = pod.spec
        while True:
            required = strict_pod_requirements(spec)
            if template.requirements.is_compatible(required, self._basis.well_known):
                yield template.requirements.union(required)
            less_demanding = without_first_alternative(spec)
            if less_demanding is None:
                return
            spec = less_demanding

    def _objections(self, trial: _Trial, pod: Pod, chosen: Mapping[str, Launch]) -> dict[str, str]:
        """By NodePool, why a new node does not help the pod."""
        basis = self._basis
        return {
            **{name: in_own_words(why) for name, why in basis.skipped.items()},
            **{each.name: self._objection(trial, each, groups, pod, chosen) for each, groups in basis.templates},
        }

    def _objection(
        self,
        trial: _Trial,
        template: Template,
        groups: Sequence[DaemonGroup],
        pod: Pod,
        chosen: Mapping[str, Launch],
    ) -> str:
        untaken = untolerated(template.taints, pod.spec.tolerations)
        if untaken:
            taints = ", ".join(map(taint_text, untaken))
            return f"the pod does not tolerate what its nodes are tainted with: {taints}"
        required, well_known = strict_pod_requirements(pod.spec), self._basis.well_known
        if pod.spec.scheduler_name not in trial.world.profiles:
            return trial.last[pod.key].message
        if next(self._alternatives(template, pod), None) is None:
            return "; ".join(unmet_demands(template.requirements, required, well_known))
        options = self._options(template, groups, pod, {})
        if not options:
            return self._why_no_options(template, groups, pod, required)
        tried = trial.world.fork()
        name = self._next_name(template.name)
        _add(tried, name, options[0])
        placement = _placed(tried, pod)
        if placement.node is not None:
            if self._options(template, groups, pod, chosen):
                return "with a new node podium would place the pods differently, so that this one or others stay"
            return _NO_ROOM_IN_LIMITS
        return f"a new node does not help: {_verdict(tried, pod, name) or placement.message}"

    def _why_no_options(
        self, template: Template, groups: Sequence[DaemonGroup], pod: Pod, required: Requirements
    ) -> str:
        """Why the NodePool has no node for the pod though its own requirements allow some."""
        offered = [
            launch
            for requirements in self._alternatives(template, pod)
            for launch in launches(template, groups, requirements, self._basis.well_known)
        ]
        if not offered:
            return f"no instance type that can be launched has {demands_text(required)}"
        requests = requests_of(pod)
        if not any(has_room(each, requests) for each in offered):
            amounts = ", ".join(f"{amount} {name}" for name, amount in amount_texts(requests).items())
            return f"no instance type that can be launched has room for {amounts}"
        return _NO_ROOM_IN_LIMITS

    # ------------------------------------------------------------ names and limits

    def _name(self, pool: str) -> str:
        name = self._next_name(pool)
        self._pool_names[pool] = self._pool_names.get(pool, 0) + 1
        while self._world.store.get(NODES, self._next_name(pool)) is not None:
            self._pool_names[pool] += 1
        return name

    def _next_name(self, pool: str) -> str:
        return f"{pool}-new-{self._pool_names.get(pool, 0) + 1:04d}"

    def _remaining(self, pool: str, chosen: Mapping[str, Launch]) -> Requests:
        limits = self._basis.limits.get(pool)
        if limits is None:
            return {}
        there = [
            each.capacity for each in self._basis.nodes if not each.is_leaving and each.labels.get(NODE_POOL) == pool
        ]
        bought = [_capacity(each) for each in chosen.values() if each.template.name == pool]
        return less(limits, total(*there, *bought))


def _in_queue_order(pods: Iterable[Pod]) -> list[Pod]:
    return sorted(pods, key=lambda each: (-each.priority, each.key))


def _unbound(pod: Pod) -> Pod:
    return Pod(metadata=pod.metadata, spec=pod.spec)


def _add(world: Cluster, name: str, launch: Launch) -> None:
    for manifest in launch.manifests(name):
        world.add(manifest)


def _placed(world: Cluster, pod: Pod) -> Placement:
    """Place the pod; what fails its attempt is why it stays."""
    if pod.spec.scheduler_name not in world.profiles:
        return Placement(pod, None, f"no profile is named {pod.spec.scheduler_name!r}")
    try:
        return world.place(pod)
    except ScheduleError as error:
        return Placement(pod, None, str(error).removeprefix(f"{pod.key}: "))


def _preempted_text(preemption: Placement) -> str:
    return f"preempted by {preemption.pod.key} after it was placed on {preemption.nominated_node}"


def _others_may_hold(trial: _Trial, name: str) -> bool:
    """Whether the other nodes have, in sum, room for the pods that were placed on this one."""
    moving = total(*(requests_of(each.pod) for each in trial.placements if each.node == name))
    nodes = (each for each in trial.world.nodes if each.name != name)
    allocatable = total(*(whole_amounts(each.status.allocatable, "status.allocatable") for each in nodes))
    staying = (each for each in trial.world.pods if each.node_name and each.node_name != name)
    return fits(moving, less(allocatable, total(*(requests_of(each) for each in staying))))


def _verdict(world: Cluster, pod: Pod, name: str) -> str:
    """Why the node refuses the pod; empty if the attempt fails altogether."""
    try:
        found = world.evaluate(pod)
    except ScheduleError:
        return ""
    statuses = found.found.diagnosis.statuses()
    reasons = (status.all_reasons for row, status in statuses.items() if found.snapshot.name(row) == name)
    return ", ".join(next(reasons, ()))


def _within(launch: Launch, remaining: Requests) -> bool:
    capacity = _capacity(launch)
    return all(capacity.get(name, 0) <= amount for name, amount in remaining.items())


def _capacity(launch: Launch) -> Requests:
    return {**launch.instance_type.capacity, NODE_COUNT: 1}
