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

Example: `old` has 4 CPUs free; `big` requests 3, `a` and `b`, of higher priority, 1. A c-2 has 1.9, a c-4 3.9 CPUs.

- Karpenter's rules place the largest pod first: `big` and `a` on `old`, `b` on a new c-2. Proposed: c-2.
- podium takes `a` and `b` first, by priority, and places both on `old`. `big` fits neither there nor on the c-2: a c-4
  is added for it.
- In the next trial, the scores lead `b` to the empty c-4, and `big` fits on `old` beside `a`. Nothing needs the c-2 any
  more, so it is dropped. The plan: one c-4 for `b`.

Invariant: podium then does what the plan says, if the nodes come in the order of their names here. Among equally good
nodes podium takes the first in that order.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as replace_fields
from itertools import accumulate, chain
from typing import Final, Literal, TypeAlias

from msgspec.structs import replace

from podium.engine.cluster import Cluster
from podium.engine.gangs import Gang
from podium.engine.placement import Placement
from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.objects.core import Pod
from podium.objects.requests import Requests, whole_amounts
from podium.objects.resource_types import NODES, PERSISTENT_VOLUMES, PODS
from podium.provisioner.apis.objects import ClusterObjects
from podium.provisioner.planners.exhaustive import NODES_MAX, Counts, Room, Tries, kinds_of, mixture_of, whole_nodes
from podium.provisioner.planners.gang_placement import gangs_of_waiting, place_gang, tied_text
from podium.provisioner.planners.gang_purchases import GangBuyer
from podium.provisioner.planners.new_nodes import NewNodes
from podium.provisioner.planners.node_options import NodeOptions
from podium.provisioner.planners.objections import Objections
from podium.provisioner.planners.placement_trial import PlacementTrial, place, together
from podium.provisioner.planners.planned_devices import PlannedDevices
from podium.provisioner.provisioning.candidate_nodes import CandidateNode, daemons, node_under_way
from podium.provisioner.provisioning.launching import with_candidates
from podium.provisioner.provisioning.plan import NodePlan, Plan, PlannedGang, Proof, Unschedulable, plan_of
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.provisioning.provisioner import pods_of_leaving
from podium.provisioner.provisioning.solve import NOT_LOOKED_AT, Solver
from podium.provisioner.scheduling.amounts import less, total
from podium.provisioner.scheduling.device_use import DeviceUse
from podium.provisioner.scheduling.pod_requirements import has_meaning
from podium.provisioner.scheduling.taints import DISRUPTED
from podium.provisioner.state.costs import sum_in_order
from podium.provisioner.state.evictions import Evictions
from podium.provisioner.state.state_node import StateNode, leaving

PurchaseSearch: TypeAlias = Literal["greedy", "exhaustive"]
"""How nodes to buy are looked for."""

ROUNDS_MAX: Final = 10
"""How often more nodes are bought because the pods were placed differently on those of the round before."""

PLACEMENTS_MAX: Final = 50_000
"""How many pods are placed again to leave nodes out.

Of a larger plan only such nodes are tried whose pods find room on the others as these are.
"""

LARGE_TRIALS_MAX: Final = 2
"""How often all pods of such a larger plan are placed again."""

REPLICAS_MIN: Final = 1000
"""From how many pods on it pays to copy the cluster for a trial instead of forking it."""


def plan_with_podium(
    basis: PlanBasis,
    cluster: Cluster,
    now_s: float,
    limit: TimeLimit = UNLIMITED,
    search: PurchaseSearch = "greedy",
) -> Plan:
    """Return the nodes to buy so that podium places as many waiting pods as it can.

    Args:
        cluster: the same objects, and the profiles that place the pods. It is not changed.
        now_s: the time, in seconds since the epoch.
        limit: when to end with the nodes and the placements found by then. The plan is partial then: some pods were not
            looked at, and nodes that can be left out may not be.
        search: `exhaustive` looks for a cheaper purchase as well, and says what it has proven.
    """
    return _Search(basis, cluster, Evictions(basis.objects.budgets, now_s), limit).plan(search)


def settled_objects(objects: ClusterObjects, cluster: Cluster) -> ClusterObjects:
    """Return the objects once podium has placed the waiting pods that fit, which it does before any node comes or goes.

    Args:
        cluster: as `plan_with_podium` takes it.
    """
    waiting = _in_queue_order(pod for pod in cluster.pods if not pod.node_name)
    trial = PlacementTrial(cluster.fork(), gangs=gangs_of_waiting(cluster, waiting))
    trial.settle(waiting, preempt=True)
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
        self._complete_trial: tuple[dict[str, CandidateNode], PlacementTrial] | None = None
        self._world = cluster.fork()
        self._new_nodes = NewNodes(self._world)
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
        self._gangs = gangs_of_waiting(self._world, self._waiting)
        self._options = NodeOptions(basis, self._world.profiles, PlannedDevices(self._world))
        self._buyer = GangBuyer(self._options, self._new_nodes)

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

    def plan(self, search: PurchaseSearch) -> Plan:
        """Search."""
        proof: Proof | None = None
        candidates = self._drop_needless(self._candidates())
        if search == "exhaustive" and not self._limit.is_over():
            candidates, proof = self._proven(candidates)
        # Tries for gangs leave numbers out. Other names would need another trial, which a large plan can do without.
        if self._gangs and len(self._waiting) < REPLICAS_MIN:
            candidates = self._new_nodes.renumber(candidates)
        self._limit.is_noticed |= self._limit.is_over()
        trial = self._trial(candidates, preempt=True)
        if self._limit.is_noticed and self._whole_trial is not None:
            # One that was carried out to its end says more than one of more nodes that was not.
            candidates, trial = self._whole_trial
        pods: dict[str, list[Pod]] = {}
        for placement in trial.placements:
            if placement.node is not None:
                pods.setdefault(placement.node, []).append(placement.pod)
        gangs = self._planned_gangs(trial, candidates)
        columns = self._basis.types_filter.columns
        return Plan(
            nodes=tuple(
                NodePlan.of_candidate(name, candidate, tuple(pods.get(name, ())), columns)
                for name, candidate in sorted(candidates.items())
            ),
            existing={name: tuple(pods_there) for name, pods_there in sorted(pods.items()) if name not in candidates},
            unschedulable=self._staying_pods(trial, candidates, gangs),
            skipped=self._basis.skipped,
            preempted=tuple(sorted(trial.victims.keys() - {pod.key for pod in self._waiting})),
            late=trial.late,
            devices=(DeviceUse.in_store(self._world.store), DeviceUse.in_store(trial.world.store)),
            rules="podium",
            warnings=tuple(self._new_nodes.warnings(candidates, pods)),
            gangs=gangs,
            proof=proof,
        )

    def _staying_pods(
        self, trial: PlacementTrial, candidates: Mapping[str, CandidateNode], gangs: Iterable[PlannedGang]
    ) -> dict[str, Unschedulable]:
        """Return the pods that stay, with their reasons; members of gangs stay for the reason of their gang."""
        objections = Objections(self._basis, self._options, self._new_nodes, trial, candidates)
        gang_texts = {(gang.api, gang.key): gang.text for gang in gangs if not gang.starts}
        staying: dict[str, Unschedulable] = {}
        for placement in trial.placements:
            pod = placement.pod
            if placement.node is not None:
                continue
            gang = self._gangs.get(pod.key)
            # Where members are tied to a domain, a node elsewhere would help the pod and is no answer.
            text = "" if gang is None else gang_texts.get((gang.api, gang.key)) or tied_text(gang, placement)
            by_pool = {} if text or self._limit.is_over() else objections.by_pool(pod)
            staying[pod.key] = Unschedulable(pod, text or placement.message, by_pool)
        for pod in self._waiting:
            if pod.key in trial.victims:
                staying[pod.key] = Unschedulable(pod, _preempted_text(trial.victims[pod.key]))
        return staying

    def _planned_gangs(self, trial: PlacementTrial, candidates: Mapping[str, CandidateNode]) -> tuple[PlannedGang, ...]:
        """Return the gangs with members that wait, and for each that does not start, what it lacks."""
        gangs: list[PlannedGang] = []
        for gang, pods in together(self._waiting, self._gangs):
            if gang is None:
                continue
            staying = [pod for pod in pods if pod.key not in trial.last or trial.last[pod.key].node is None]
            count = len(gang.members) - len(staying)
            problem = gang.problem
            if count < gang.min_count and not problem:
                is_over = self._limit.is_over()
                problem = NOT_LOOKED_AT if is_over else self._buyer.lack(trial.world, gang, staying, candidates)
            gangs.append(PlannedGang(gang.key, gang.api, gang.min_count, len(gang.members), count, problem))
        return tuple(gangs)

    # ------------------------------------------------------------ which nodes

    def _candidates(self) -> dict[str, CandidateNode]:
        """Return nodes with which most pods are placed."""
        candidates = self._add_missing(self._propose())
        if not self._gangs or not self._basis.limits or self._limit.is_over():
            return candidates
        if not self._trial(candidates, preempt=True).pods_left:
            return candidates
        # What is bought in the order of the queue goes to the gangs of high priority first.
        in_order = self._add_missing({})
        return max((candidates, in_order), key=self._value)

    def _value(self, candidates: Mapping[str, CandidateNode]) -> tuple[float, ...]:
        """Return the key by which purchases compare: the pods placed, those of high priority first, then the price."""
        trial = self._trial(candidates, preempt=True)
        price = sum_in_order(candidate.price for candidate in candidates.values())
        return (*self._counts(trial), -price, -len(candidates))

    def _propose(self) -> dict[str, CandidateNode]:
        """Return Karpenter's plan: for each NodeClaim, the node that would be launched."""
        basis = self._basis
        if not basis.templates:
            return {}
        nodes = [node for node in basis.nodes if not node.is_leaving]
        # Karpenter refuses a demand that has no meaning before it plans; podium's plugins say what is wrong with it.
        pods = [pod for pod in self._waiting if has_meaning(pod.spec) and self._is_proposed_for(pod)]
        results = Solver(basis, nodes=nodes, pods=pods).solve(self._limit)
        plan = plan_of(results, self._waiting, lower_min_values=basis.settings.lower_min_values)
        proposed_nodes = (node.node for node in with_candidates(basis, plan.nodes))
        # Karpenter's solver knows no limit of nodes: it counts them only when it creates them.
        nodes_within_limits = self._options.within_limits(proposed_nodes)
        return {self._new_nodes.name(node.template.name): node for node in nodes_within_limits}

    def _is_proposed_for(self, pod: Pod) -> bool:
        # Karpenter knows no group: it would spread one that must lie in a single domain.
        gang = self._gangs.get(pod.key)
        return gang is None or (not gang.problem and gang.topology_key is None)

    def _add_missing(self, candidates: dict[str, CandidateNode]) -> dict[str, CandidateNode]:
        """Return these nodes, and more for pods that podium does not place on them."""
        for _ in range(ROUNDS_MAX):
            trial = self._trial(candidates, preempt=False)
            if any(pod.key in self._gangs for pod in trial.pods_left):
                # Nodes that were proposed for a gang that does not start must not use up the limits.
                in_use = {placement.node for placement in trial.placements}
                if not in_use.issuperset(candidates):
                    candidates = {name: node for name, node in candidates.items() if name in in_use}
                    trial = self._trial(candidates, preempt=False)
            additions: dict[str, CandidateNode] = {}
            for gang, pods in self._limit.take(together(trial.pods_left, self._gangs)):
                bought = {**candidates, **additions}
                if gang is not None:
                    additions |= self._more_for_gang(trial.world, gang, pods, bought)
                # Another addition of this round may have made room for the pod, so ask again before a node is bought
                # for it.
                elif place(trial.world, pods[0]).node is None:
                    additions |= self._one_more(trial.world, pods[0], bought)
            if not additions:
                break
            candidates = {**candidates, **additions}
            if self._limit.is_over():
                break
        return candidates

    def _more_for_gang(
        self, world: Cluster, gang: Gang, pods: Sequence[Pod], candidates: Mapping[str, CandidateNode]
    ) -> Mapping[str, CandidateNode]:
        """Add the members to the world, with the nodes that are bought for them. Return these; empty if none help."""
        if gang.problem:
            return {}
        pods = [placement.pod for placement in place_gang(world, gang, pods) if placement.node is None]
        if not pods:
            return {}
        purchase = self._buyer.purchase_for(world, gang, pods, candidates)
        if not purchase.is_enough:
            return {}
        # In the world of this trial, so that the units after it find the nodes, and their rest.
        for name, candidate in purchase.nodes.items():
            self._new_nodes.add(world, name, candidate)
        place_gang(world, gang, pods)
        return purchase.nodes

    def _one_more(self, world: Cluster, pod: Pod, candidates: Mapping[str, CandidateNode]) -> dict[str, CandidateNode]:
        """Add the pod to the world, with the cheapest node that takes it. Return that node; empty if no node does."""
        for template, groups in self._basis.templates:
            name = self._new_nodes.next_name(template.name)
            # A fork for each option: a pod that fits may still be lured to another node by its scores, which only an
            # attempt shows.
            for candidate in self._options.of_pool(template, groups, pod, candidates):
                what_if = world.fork()
                self._new_nodes.add(what_if, name, candidate)
                if place(what_if, pod).node is not None:
                    self._new_nodes.add(world, name, candidate)
                    place(world, pod)
                    return {self._new_nodes.name(template.name): candidate}
        return {}

    def _drop_needless(self, candidates: dict[str, CandidateNode]) -> dict[str, CandidateNode]:
        """Return those of the nodes that cannot be left out, the most expensive being left out first."""
        trial = self._trial(candidates, preempt=True)
        bound_pods = self._bound_pods(trial)
        # Each trial places all waiting pods anew, so the work is quadratic; beyond the limit most trials are ruled out.
        rooms = trial.rooms() if len(candidates) * len(self._waiting) > PLACEMENTS_MAX else None
        placements_left, large_trials_left = PLACEMENTS_MAX, LARGE_TRIALS_MAX
        untried = deque(sorted(candidates, key=lambda name: (-candidates[name].price, name)))
        needed_nodes: list[str] = []
        while untried and not self._limit.is_over():
            name = untried.popleft()
            if rooms is not None and not (
                large_trials_left and rooms.others_may_hold(name) and trial.may_do_without(name)
            ):
                needed_nodes.append(name)
                continue
            large_trials_left -= rooms is not None
            other_candidates = {
                other_name: candidate for other_name, candidate in candidates.items() if other_name != name
            }
            other_trial = self._trial(other_candidates, preempt=True)
            if not self._bound_pods(other_trial) >= bound_pods:
                needed_nodes.append(name)
                continue
            candidates, trial = other_candidates, other_trial
            rooms = None if rooms is None else trial.rooms()
            placements_left -= len(self._waiting) * len(needed_nodes)
            if placements_left >= 0:
                # Fewer nodes may lead the pods elsewhere, so that one which was needed before is not any more.
                untried.extend(needed_nodes)
                needed_nodes.clear()
        return candidates

    def _bound_pods(self, trial: PlacementTrial) -> frozenset[str]:
        """Return the pods that have a node, but for those of DaemonSets on new nodes."""
        return frozenset(pod.key for pod in trial.world.pods if pod.node_name) & self._known

    # ------------------------------------------------------------ one trial

    def _trial(self, candidates: Mapping[str, CandidateNode], *, preempt: bool) -> PlacementTrial:
        # Where every pod has a node, nothing is preempted, and nothing more is tried in it.
        if self._complete_trial is not None and self._complete_trial[0] == candidates:
            return self._complete_trial[1]
        # Replicas are placed several times as fast in a cluster that is no fork, which costs more to make.
        is_large = len(self._waiting) >= REPLICAS_MIN
        world = self._world.copy_whole() if is_large else self._world.fork()
        trial = PlacementTrial(world, self._limit, self._gangs)
        for name, candidate in sorted(candidates.items()):
            self._new_nodes.add(trial.world, name, candidate)
        trial.settle(self._waiting, preempt=preempt)
        if self._leaving:
            # They are there, and count, until their pods are placed elsewhere.
            trial.remove(self._leaving)
            trial.settle(trial.pods_left, preempt=preempt)
        if not self._limit.is_noticed:
            self._whole_trial = dict(candidates), trial
            if not trial.pods_left and not trial.victims:
                self._complete_trial = dict(candidates), trial
        return trial

    # ------------------------------------------------------------ the cheapest

    def _proven(self, candidates: dict[str, CandidateNode]) -> tuple[dict[str, CandidateNode], Proof]:
        """Return the best purchase, with its proof. The answer is whole also if the time is up before the search."""
        trial, limit = self._trial(candidates, preempt=True), self._limit
        kinds = kinds_of(self._options.all_for(self._waiting), self._named_labels())
        if len(candidates) > NODES_MAX and not limit.is_over():
            mixture = mixture_of(kinds, self._demand(trial))
            candidates, trial = self._mix(candidates, trial, whole_nodes(kinds, mixture))
        counts, nodes = self._counts(trial), [node for _, node in sorted(candidates.items())]
        tries = Tries(
            kinds,
            Room.of((*self._world.pods, *self._waiting), self._amounts_there(), self._options.plain_requests),
            self._options.are_within_limits,
            lambda nodes: self._counts(self._trial(self._with_names(nodes), preempt=True)),
            self._counts(trial, also=filter(self._may_be_placed, trial.pods_left)),
            mixture_of(kinds, self._demand(trial)).price,
            limit.apart(),
        )
        # What a try does not finish in time is no fault of the plan.
        self._limit = tries.limit
        best, proof = tries.best(nodes, counts)
        self._limit = limit
        proof = replace_fields(proof, is_priced=all(kind.offering.is_priced for kind in kinds))
        return (candidates if best is nodes else self._with_names(best)), proof

    def _mix(
        self, candidates: dict[str, CandidateNode], trial: PlacementTrial, nodes: Iterable[CandidateNode]
    ) -> tuple[dict[str, CandidateNode], PlacementTrial]:
        """Return these nodes with what else is needed, or the candidates if those are the better purchase."""
        limit, self._limit = self._limit, self._limit.apart()
        other_candidates = self._add_missing(self._with_names(self._options.within_limits(nodes)))
        other_candidates = self._drop_needless(other_candidates)
        if not self._limit.is_over() and self._value(other_candidates) > self._value(candidates):
            candidates, trial = other_candidates, self._trial(other_candidates, preempt=True)
        self._limit, self._whole_trial = limit, (dict(candidates), trial)
        return candidates, trial

    def _with_names(self, nodes: Iterable[CandidateNode]) -> dict[str, CandidateNode]:
        return self._new_nodes.renumber({f"{index:04d}": node for index, node in enumerate(nodes)})

    def _counts(self, trial: PlacementTrial, also: Iterable[Pod] = ()) -> Counts:
        """Return how many pods of each priority or a higher one have a node, or are among `also`."""
        placed_pods = (pod for pod in trial.world.pods if pod.node_name and pod.key in self._known)
        counts = Counter(pod.priority for pod in chain(placed_pods, also))
        priorities = sorted({pod.priority for pod in (*self._world.pods, *self._waiting)}, reverse=True)
        return tuple(accumulate(counts[priority] for priority in priorities))

    def _may_be_placed(self, pod: Pod) -> bool:
        """Return False if the pod has no node whatever is bought."""
        gang = self._gangs.get(pod.key)
        if gang is not None and gang.problem:
            return False
        if self._options.of_all_pools(pod, {}) or (pod.spec.affinity and pod.spec.affinity.pod_affinity):
            return True
        placement = place(self._world.fork(), pod)
        return placement.node is not None or placement.nominated_node is not None

    def _named_labels(self) -> str:
        """Return a text with all labels of nodes that pods, groups and volumes name."""
        specs = {repr(pod.spec) for pod in (*self._world.pods, *self._waiting)}
        volumes = map(repr, self._world.store.objects(PERSISTENT_VOLUMES).values())
        return " ".join((*specs, *volumes, *(gang.topology_key or "" for gang in self._gangs.values())))

    def _amounts_there(self) -> Requests:
        nodes = (node for node in self._world.nodes if node.name not in self._leaving)
        return total(*(whole_amounts(node.status.allocatable, "status.allocatable") for node in nodes))

    def _demand(self, trial: PlacementTrial) -> Requests:
        """Return what the pods that have a node in the trial request beyond what is free on nodes that are there."""
        placed_pods = [placement.pod for placement in trial.placements if placement.node is not None]
        staying = [
            pod
            for pod in self._world.pods
            if pod.node_name and pod.node_name not in self._leaving and pod.key not in trial.victims
        ]
        requests = total(*map(self._options.plain_requests, (*placed_pods, *staying)))
        return less(requests, self._amounts_there())


def _in_queue_order(pods: Iterable[Pod]) -> list[Pod]:
    # PrioritySort would go on by the time of queueing, which a dump does not have; the key keeps plans reproducible.
    return sorted(pods, key=lambda pod: (-pod.priority, pod.key))


def _unbound(pod: Pod) -> Pod:
    # Status and node name are left out: a pod that leaves its node is as new for the scheduler.
    return Pod(metadata=pod.metadata, spec=pod.spec)


def _preempted_text(preemption: Placement) -> str:
    return f"preempted by {preemption.pod.key} after it was placed on {preemption.nominated_node}"
