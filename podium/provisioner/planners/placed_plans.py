"""Plans nodes to buy by podium's own rules: podium's plugins place every pod, on nodes that do not exist yet.

Owns the search for such nodes. Decides nothing about a single pod: `podium.engine` places it.

Karpenter simulates the scheduler with rules of its own. They are close to kube-scheduler's, but know no scores, no
profile and no plugin of the user. A plan by them may therefore buy a node that podium then leaves empty, or leave a pod
pending that podium would have placed. This search asks podium itself. Its result is the last *trial*: a fork of the
cluster with the nodes added, in which podium has placed all pods in queue order until nothing changed any more.

1. *Propose.* `Solver` packs the pending pods by Karpenter's rules, and each of its NodeClaims becomes the cheapest node
   that could be launched for it. It packs well and looks at each pod once, where a search that begins with nothing
   would have to run a trial for each node.
2. *Add what is missing.* In a trial, a pod may find no node although one was proposed for it: the scores spread other
   pods over the room that it needs. Each such pod gets the cheapest node on which podium places it. With more nodes the
   next trial may spread the pods otherwise, so this is repeated, for `ROUNDS_MAX` rounds at most.
3. *Drop the needless*, the most expensive first: a node goes if podium, without it, still binds every pod that is bound
   now. After each that goes, the nodes that were needed before are tried again, because the pods have moved.

Preemption counts in step 3 and in the result, but not in step 2: there it would evict pods for which a node can be
bought. Nodes that are leaving take no pods, but they are there while their pods are placed, because spreading still
counts them. Then they are removed, and the pods that have no node yet (`Plan.late`) are tried once more.

Example: node `old` has 4 CPUs free. `big` requests 3 CPUs; `a` and `b`, of higher priority, request 1 each. A node of
type c-2 has 1.9 CPUs for pods, a c-4 has 3.9.

- Karpenter's rules place the largest pod first: `big` and `a` on `old`, `b` on a new c-2. Proposed: c-2.
- podium takes `a` and `b` first, by priority, and places both on `old`. `big` fits neither there nor on the c-2: a c-4
  is added for it.
- In the next trial, the scores lead `b` to the empty c-4, and `big` fits on `old` beside `a`. Nothing needs the c-2 any
  more, so it is dropped. The plan: one c-4 for `b`.

Invariant: podium then does what the plan says, if the nodes come in the order of their names here. Among equally good
nodes podium takes the first in that order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as replace_fields
from itertools import chain, islice
from typing import Final

from msgspec.structs import replace

from podium.engine.cluster import Cluster
from podium.engine.placement import Placement
from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.objects.amounts import amount_texts
from podium.objects.core import Pod
from podium.objects.requests import Requests
from podium.objects.resource_types import NODES, PODS
from podium.objects.tolerations import taint_text
from podium.provisioner.apis.labels import NODE_POOL
from podium.provisioner.apis.objects import ClusterObjects
from podium.provisioner.cloudprovider.instance_type_filter import DaemonGroup
from podium.provisioner.planners.local_storage import LocalStorage
from podium.provisioner.planners.placement_trial import PlacementTrial, place, verdict
from podium.provisioner.provisioning.candidate_nodes import (
    CandidateNode,
    candidate_nodes,
    daemons,
    has_room,
    node_under_way,
)
from podium.provisioner.provisioning.launching import with_candidates
from podium.provisioner.provisioning.plan import NodePlan, Plan, Unschedulable, plan_of
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.provisioning.provisioner import pods_of_leaving
from podium.provisioner.provisioning.reasons import demands_text, in_own_words, unmet_demands
from podium.provisioner.provisioning.relaxation import without_first_alternative
from podium.provisioner.provisioning.solve import Solver
from podium.provisioner.provisioning.templates import Template
from podium.provisioner.scheduling.amounts import less, requests_of, total
from podium.provisioner.scheduling.device_use import DeviceUse
from podium.provisioner.scheduling.pod_requirements import has_meaning, strict_pod_requirements
from podium.provisioner.scheduling.requirements import Requirements
from podium.provisioner.scheduling.taints import DISRUPTED, untolerated_taints
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


def plan_with_podium(basis: PlanBasis, cluster: Cluster, now_s: float, limit: TimeLimit = UNLIMITED) -> Plan:
    """Return the nodes to buy so that podium places as many waiting pods as it can.

    Args:
        cluster: the same objects, and the profiles that place the pods. It is not changed.
        now_s: the time, in seconds since the epoch.
        limit: when to end with the nodes and the placements found by then. The plan is partial then: some pods were not
            looked at, and nodes that can be left out may not be.
    """
    return _Search(basis, cluster, Evictions(basis.objects.budgets, now_s), limit).plan()


def settled_objects(objects: ClusterObjects, cluster: Cluster) -> ClusterObjects:
    """Return the objects once podium has placed the waiting pods that fit, which it does before any node comes or goes.

    Args:
        cluster: as `plan_with_podium` takes it.
    """
    trial = PlacementTrial(cluster.fork())
    trial.settle(_in_queue_order(pod for pod in cluster.pods if not pod.node_name), preempt=True)
    nodes = {placement.pod.key: placement.node for placement in trial.placements}
    pods = (pod for pod in objects.pods if pod.key not in trial.victims)
    return replace_fields(
        objects, pods=tuple(pod.on_node(node) if (node := nodes.get(pod.key)) else pod for pod in pods)
    )


class _Search:
    """One search over a cluster."""

    def __init__(self, basis: PlanBasis, cluster: Cluster, evictions: Evictions, limit: TimeLimit) -> None:
        self._basis = basis
        self._limit = limit
        self._whole_trial: tuple[dict[str, CandidateNode], PlacementTrial] | None = None
        self._world = cluster.fork()
        self._storage = LocalStorage(self._world)
        self._pool_names: dict[str, int] = {}
        pending = [pod for pod in self._world.pods if not pod.node_name]
        moving = pods_of_leaving(basis, evictions)
        for pod in moving:
            if self._world.store.get(PODS, pod.key) is not None:
                self._world.drop(PODS, pod)
        self._leaving = frozenset(self._begin_to_leave())
        for state in basis.nodes:
            if not state.is_leaving:
                self._complete(state)
        # Those that wait already have been tried before the others lose their nodes.
        self._waiting = [*_in_queue_order(pending), *_in_queue_order(map(_unbound, moving))]
        self._known = frozenset(pod.key for pod in (*self._world.pods, *moving))

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
                meta = manifest["metadata"]
                # A Node and a NodeClaim that are not of one machine may have one name.
                if self._world.store.get(PODS, f"{meta['namespace']}/{meta['name']}") is None:
                    self._world.add(manifest)

    def plan(self) -> Plan:
        """Search."""
        candidates = self._drop_needless(self._add_missing(self._propose()))
        self._limit.is_noticed |= self._limit.is_over()
        trial = self._trial(candidates, preempt=True)
        if self._limit.is_noticed and self._whole_trial is not None:
            # One that was carried out to its end says more than one of more nodes that was not.
            candidates, trial = self._whole_trial
        pods: dict[str, list[Pod]] = {}
        unschedulable: dict[str, Unschedulable] = {}
        for placement in trial.placements:
            pod = placement.pod
            if placement.node is not None:
                pods.setdefault(placement.node, []).append(pod)
            else:
                objections = {} if self._limit.is_over() else self._objections(trial, pod, candidates)
                unschedulable[pod.key] = Unschedulable(pod, placement.message, objections)
        waiting = {pod.key: pod for pod in self._waiting}
        for key, pod in waiting.items():
            if key in trial.victims:
                unschedulable[key] = Unschedulable(pod, _preempted_text(trial.victims[key]))
        columns = self._basis.types_filter.columns
        return Plan(
            nodes=tuple(
                NodePlan.of_candidate(name, candidate, tuple(pods.get(name, ())), columns)
                for name, candidate in sorted(candidates.items())
            ),
            existing={name: tuple(pods_there) for name, pods_there in sorted(pods.items()) if name not in candidates},
            unschedulable=unschedulable,
            skipped=self._basis.skipped,
            preempted=tuple(sorted(trial.victims.keys() - waiting.keys())),
            late=trial.late,
            devices=(DeviceUse.in_store(self._world.store), DeviceUse.in_store(trial.world.store)),
            rules="podium",
            warnings=tuple(
                warning
                for name, candidate in sorted(candidates.items())
                for warning in self._storage.warnings(name, candidate.labels(name), pods.get(name, ()))
            ),
        )

    # ------------------------------------------------------------ which nodes

    def _propose(self) -> dict[str, CandidateNode]:
        """Return Karpenter's plan: for each NodeClaim, the node that would be launched."""
        basis = self._basis
        if not basis.templates:
            return {}
        nodes = [node for node in basis.nodes if not node.is_leaving]
        # Karpenter refuses a demand that has no meaning before it plans; podium's plugins say what is wrong with it.
        pods = [pod for pod in self._waiting if has_meaning(pod.spec)]
        results = Solver(basis, nodes=nodes, pods=pods).solve(self._limit)
        plan = plan_of(results, self._waiting, lower_min_values=basis.settings.lower_min_values)
        return {self._name(node.pool): node.node for node in with_candidates(basis, plan.nodes)}

    def _add_missing(self, candidates: dict[str, CandidateNode]) -> dict[str, CandidateNode]:
        """Return these nodes, and more for pods that podium does not place on them."""
        for _ in range(ROUNDS_MAX):
            trial = self._trial(candidates, preempt=False)
            additions: dict[str, CandidateNode] = {}
            for placement in self._limit.take(trial.placements):
                # Another addition of this round may have made room for the pod, so ask again before a node is bought
                # for it.
                if placement.node is None and place(trial.world, placement.pod).node is None:
                    additions |= self._one_more(trial.world, placement.pod, {**candidates, **additions})
            if not additions:
                break
            candidates = {**candidates, **additions}
            if self._limit.is_over():
                break
        return candidates

    def _one_more(self, world: Cluster, pod: Pod, candidates: Mapping[str, CandidateNode]) -> dict[str, CandidateNode]:
        """Add the pod to the world, with the cheapest node that takes it. Return that node; empty if no node does."""
        for template, groups in self._basis.templates:
            name = self._next_name(template.name)
            # A fork for each option: a pod that fits may still be lured to another node by its scores, which only an
            # attempt shows.
            for candidate in self._options(template, groups, pod, candidates):
                what_if = world.fork()
                self._add(what_if, name, candidate)
                if place(what_if, pod).node is not None:
                    self._add(world, name, candidate)
                    place(world, pod)
                    return {self._name(template.name): candidate}
        return {}

    def _drop_needless(self, candidates: dict[str, CandidateNode]) -> dict[str, CandidateNode]:
        """Return those of the nodes that cannot be left out, the most expensive being left out first."""
        trial = self._trial(candidates, preempt=True)
        bound_pods = self._bound_pods(trial)
        # Each trial places all waiting pods anew, so the work is quadratic; beyond the limit a sum of amounts rules out
        # most trials.
        is_large = len(candidates) * len(self._waiting) > PLACEMENTS_MAX
        placements_left = PLACEMENTS_MAX
        untried = deque(sorted(candidates, key=lambda name: (-candidates[name].price, name)))
        needed: list[str] = []
        while untried and not self._limit.is_over():
            name = untried.popleft()
            other_candidates = {
                other_name: candidate for other_name, candidate in candidates.items() if other_name != name
            }
            other_nodes = (
                None if is_large and not trial.others_may_hold(name) else self._trial(other_candidates, preempt=True)
            )
            if other_nodes is None or not self._bound_pods(other_nodes) >= bound_pods:
                needed.append(name)
                continue
            candidates, trial = other_candidates, other_nodes
            placements_left -= len(self._waiting) * len(needed)
            if placements_left >= 0:
                # Fewer nodes may lead the pods elsewhere, so that one which was needed before is not any more.
                untried.extend(needed)
                needed.clear()
        return candidates

    def _bound_pods(self, trial: PlacementTrial) -> frozenset[str]:
        """Return the pods that have a node, but for those of DaemonSets on new nodes."""
        return frozenset(pod.key for pod in trial.world.pods if pod.node_name) & self._known

    # ------------------------------------------------------------ one trial

    def _trial(self, candidates: Mapping[str, CandidateNode], *, preempt: bool) -> PlacementTrial:
        trial = PlacementTrial(self._world.fork(), self._limit)
        for name, candidate in sorted(candidates.items()):
            self._add(trial.world, name, candidate)
        trial.settle(self._waiting, preempt=preempt)
        if self._leaving:
            # They are there, and count, until their pods are placed elsewhere.
            trial.remove(self._leaving)
            trial.settle(trial.pods_left, preempt=preempt)
        if not self._limit.is_noticed:
            self._whole_trial = dict(candidates), trial
        return trial

    def _options(
        self, template: Template, groups: Sequence[DaemonGroup], pod: Pod, candidates: Mapping[str, CandidateNode]
    ) -> list[CandidateNode]:
        """Return the nodes of a NodePool that may suit the pod, the cheapest first; those of another zone or capacity
        type before those that differ in size only.
        """
        is_ours = pod.spec.scheduler_name in self._world.profiles
        if not is_ours or untolerated_taints(template.taints, pod.spec.tolerations):
            return []
        remaining, requests = self._remaining(template.name, candidates), requests_of(pod)
        options = [
            candidate
            for requirements in self._alternatives(template, pod)
            for candidate in candidate_nodes(template, groups, requirements, self._basis.well_known)
            if has_room(candidate, requests) and _within(candidate, remaining)
        ]
        first: dict[tuple[str, str], CandidateNode] = {}
        for candidate in options:
            first.setdefault((candidate.offering.zone, candidate.offering.capacity_type), candidate)
        ahead = list(first.values())
        options_in_order = [*ahead, *(option for option in options if option not in ahead)]
        # Only a few of them are tried, so that few are made in all their variants.
        return list(islice(chain.from_iterable(option.variants() for option in options_in_order), TRIES_MAX))

    def _alternatives(self, template: Template, pod: Pod) -> Iterator[Requirements]:
        """Yield the requirements on a node of the NodePool for the pod, by the alternatives of its node affinity."""
        spec = pod.spec
        while has_meaning(spec):
            requirements = strict_pod_requirements(spec)
            # Where no label in common is left, a node of this NodePool cannot satisfy the alternative, whatever is
            # bought.
            if template.requirements.is_compatible(requirements, self._basis.well_known):
                yield template.requirements.union(requirements)
            less_demanding = without_first_alternative(spec)
            if less_demanding is None:
                return
            spec = less_demanding

    def _objections(self, trial: PlacementTrial, pod: Pod, candidates: Mapping[str, CandidateNode]) -> dict[str, str]:
        """Return by NodePool why a new node does not help the pod."""
        basis = self._basis
        return {
            **{name: in_own_words(reason) for name, reason in basis.skipped.items()},
            **{
                template.name: self._objection(trial, template, groups, pod, candidates)
                for template, groups in basis.templates
            },
        }

    def _objection(
        self,
        trial: PlacementTrial,
        template: Template,
        groups: Sequence[DaemonGroup],
        pod: Pod,
        candidates: Mapping[str, CandidateNode],
    ) -> str:
        untaken = untolerated_taints(template.taints, pod.spec.tolerations)
        if untaken:
            taints = ", ".join(map(taint_text, untaken))
            return f"the pod does not tolerate what its nodes are tainted with: {taints}"
        if pod.spec.scheduler_name not in trial.world.profiles or not has_meaning(pod.spec):
            return trial.last[pod.key].message
        requirements, well_known = strict_pod_requirements(pod.spec), self._basis.well_known
        if next(self._alternatives(template, pod), None) is None:
            return "; ".join(unmet_demands(template.requirements, requirements, well_known))
        # Without the plan's other nodes, so that the limits of the NodePool are no reason yet.
        options = self._options(template, groups, pod, {})
        if not options:
            return self._why_no_options(template, groups, pod, requirements)
        what_if = trial.world.fork()
        name = self._next_name(template.name)
        self._add(what_if, name, options[0])
        placement = place(what_if, pod)
        if placement.node is not None:
            if self._options(template, groups, pod, candidates):
                return "with a new node podium would place the pods differently, so that this one or others stay"
            return _NO_ROOM_IN_LIMITS
        return f"a new node does not help: {verdict(what_if, pod, name) or placement.message}"

    def _why_no_options(
        self, template: Template, groups: Sequence[DaemonGroup], pod: Pod, pod_requirements: Requirements
    ) -> str:
        """Return the reason why the NodePool has no node for the pod though its own requirements allow some."""
        options = [
            candidate
            for requirements in self._alternatives(template, pod)
            for candidate in candidate_nodes(template, groups, requirements, self._basis.well_known)
        ]
        if not options:
            return f"no instance type that can be launched has {demands_text(pod_requirements)}"
        requests = requests_of(pod)
        if not any(has_room(option, requests) for option in options):
            amounts = ", ".join(f"{amount} {name}" for name, amount in amount_texts(requests).items())
            return f"no instance type that can be launched has room for {amounts}"
        return _NO_ROOM_IN_LIMITS

    # ------------------------------------------------------------ names and limits

    def _add(self, world: Cluster, name: str, candidate: CandidateNode) -> None:
        labels = candidate.labels(name)
        # Before the node: a pod that is tried there must find its storage.
        for manifest in self._storage.manifests(name, labels):
            world.add(manifest)
        for manifest in candidate.manifests(name, self._storage.labels(name)):
            world.add(manifest)

    def _name(self, pool: str) -> str:
        name = self._next_name(pool)
        self._pool_names[pool] = self._pool_names.get(pool, 0) + 1
        # A user may have a node of such a name; the plan must not replace it in the fork.
        while self._world.store.get(NODES, self._next_name(pool)) is not None:
            self._pool_names[pool] += 1
        return name

    def _next_name(self, pool: str) -> str:
        return f"{pool}-new-{self._pool_names.get(pool, 0) + 1:04d}"

    def _remaining(self, pool: str, candidates: Mapping[str, CandidateNode]) -> Requests:
        limits = self._basis.limits.get(pool)
        if limits is None:
            return {}
        capacities = [
            node.capacity for node in self._basis.nodes if not node.is_leaving and node.labels.get(NODE_POOL) == pool
        ]
        bought = [_capacity(candidate) for candidate in candidates.values() if candidate.template.name == pool]
        return less(limits, total(*capacities, *bought))


def _in_queue_order(pods: Iterable[Pod]) -> list[Pod]:
    # PrioritySort would go on by the time of queueing, which a dump does not have; the key keeps plans reproducible.
    return sorted(pods, key=lambda pod: (-pod.priority, pod.key))


def _unbound(pod: Pod) -> Pod:
    # Status and node name are left out: a pod that leaves its node is as new for the scheduler.
    return Pod(metadata=pod.metadata, spec=pod.spec)


def _preempted_text(preemption: Placement) -> str:
    return f"preempted by {preemption.pod.key} after it was placed on {preemption.nominated_node}"


def _within(candidate: CandidateNode, remaining: Requests) -> bool:
    capacity = _capacity(candidate)
    return all(capacity.get(name, 0) <= amount for name, amount in remaining.items())


def _capacity(candidate: CandidateNode) -> Requests:
    return {**candidate.instance_type.capacity, NODE_COUNT: 1}
