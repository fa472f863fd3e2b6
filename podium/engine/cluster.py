"""`podium.Cluster`: a cluster that can be queried and changed without an API server.

Owns how pods are placed, and what is asked about them. Never does I/O except reading given files. Plugins get a client
that refuses writes, a clock that stands still and a seeded source of randomness, so that the same question has the same
answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Self, cast

import msgspec

from podium.engine.asked_pods import PodLike, objects_beside, pod_manifest, pod_named
from podium.engine.cluster_objects import ClusterObjects, cordoned_node, unbound
from podium.engine.cluster_state import SEED
from podium.engine.derivation.admission import Admission
from podium.engine.derivation.claims import may_have_claims, with_claims
from podium.engine.derivation.control_objects import mapping_at
from podium.engine.derivation.volumes import controller_writes
from podium.engine.errors import ClusterError, ManifestError
from podium.engine.evaluation import Evaluation
from podium.engine.manifests import Manifest, as_manifest, resource_of
from podium.engine.placement import Placement
from podium.engine.plugin_writes import carry_out, undo, writes_after_failure, writes_before_binding
from podium.framework.contract.pod_groups import SimulatedGroup
from podium.framework.contract.status import ScheduleError, Status, demand_status
from podium.framework.cycle.evaluation import evaluate_all
from podium.framework.cycle.schedule import NO_NODES, Decision, DoesNotFit, Failed, Suggested
from podium.lib.error_text import error_text
from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.objects.core import Pod, PodResourceClaimStatus
from podium.objects.resource_types import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_CLAIMS,
    ResourceType,
)
from podium.queues import in_queue_order

_CLAIMS: Final[Mapping[str, ResourceType[Any]]] = {
    resource.kind: resource for resource in (PERSISTENT_VOLUME_CLAIMS, RESOURCE_CLAIMS)
}
_MIRROR_POD: Final = "kubernetes.io/config.mirror"


class Cluster(ClusterObjects):
    """The objects of one cluster, and the profiles of one configuration.

    Not thread-safe. A method that changes something changes this cluster only, not the one that it was forked from nor
    its own forks.

    Args:
        store: the objects.
        asked: the keys of the pods in question. They do not count on a node, whatever node they name.
        admission: fills in missing fields of manifests that are added or evaluated.

    Raises:
        ManifestError, CacheError: an object has a field that cannot be read, or contradicts another.
        PluginError, ConfigError: a profile cannot be built.
    """

    # ------------------------------------------------------------ questions

    def evaluate(self, pod: PodLike, limit: TimeLimit = UNLIMITED) -> Evaluation:
        """Make one scheduling attempt over all nodes, with every verdict and score. Nothing changes.

        Args:
            limit: when to end without the verdict of preemption.

        Raises:
            ScheduleError: a plugin failed, or there is no node.
            ClusterError: no profile serves the pod, or it cannot be read.
        """
        world, pod = self.asked(pod)
        state = world._state
        # Seeded for each question, so that ties end alike whatever was asked before.
        state.random.seed(SEED)
        cycle = state.engine.cycle(world.framework_for(pod), pod)
        if not len(cycle.snapshot):
            raise ScheduleError(NO_NODES)
        # A question is no attempt: plugins that keep gangs together must not remember that the pod did not fit.
        cycle.state.write(SimulatedGroup(None))
        evaluation = Evaluation(evaluate_all(cycle, limit), cycle.snapshot)
        state.evaluations.add(evaluation)
        return evaluation

    def gates_of(self, pod: Pod) -> tuple[Status, ...]:
        """Return the statuses of PreEnqueue plugins that gate the pod.

        Raises:
            ClusterError: no profile serves the pod, or a plugin failed.
        """
        gates = []
        for plugin in self.framework_for(pod).pre_enqueue:
            try:
                status = demand_status(plugin.pre_enqueue(pod))
            except BaseException as error:
                # Plugins of others may raise anything; a question answers with an error and does not end the process.
                raise ClusterError(f'running PreEnqueue plugin "{plugin.name}": {error_text(error)}') from error
            if status is not None:
                gates.append(status.by(plugin.name))
        return tuple(gates)

    # ------------------------------------------------------------ placing

    def place(self, pod: PodLike) -> Placement:
        """Make one scheduling attempt, as the scheduler would. The pod then counts on its node.

        If no node fits, the answer names the victims of a preemption, and nothing changes.

        Raises:
            ScheduleError: the attempt failed for a reason other than that the pod does not fit.
            ClusterError: no profile serves the pod, it cannot be read, or it counts on a node already.
        """
        typed_pod = self.read_pod(pod)
        self.put_workload_of(pod)
        return self._place(typed_pod, makes_room=True)

    def place_with_its_claims(self, pod: Pod) -> Placement:
        """Place the pod without creating its missing claims. Raises: as `place`."""
        return self._place(pod, makes_room=True, creates_claims=False)

    def place_without_preemption(self, pod: Pod) -> Placement:
        """Place the pod without preemption; no plugin is notified of a failure. Raises: as `place`."""
        return self._place(pod, makes_room=False)

    def _place(self, pod: Pod, *, makes_room: bool, creates_claims: bool = True) -> Placement:
        # A second count of the same pod would take its requests twice.
        if self._state.cache.pod(pod.uid) is not None:
            raise ClusterError(f"Pod {pod.key} counts on a node already")
        pod = self.create_claims(pod) if creates_claims else pod
        state = self._own()
        if gates := self.gates_of(pod):
            return Placement(pod, None, "; ".join(resource.message for resource in gates))
        state.random.seed(SEED)
        cycle = state.engine.cycle(self.framework_for(pod), pod)
        cycle.makes_room = makes_room
        decision: Decision = state.engine.decide(cycle)
        if isinstance(decision, Failed):
            raise ScheduleError(f"{pod.key}: {decision.status.message}")
        if isinstance(decision, DoesNotFit):
            help_ = decision.post_filter
            node_name = help_.nominated_node_name if help_ is not None else ""
            victims = tuple(help_.victims) if help_ is not None and node_name else ()
            writes = writes_after_failure(cycle.framework, cycle.state, pod)
            return Placement(
                pod,
                None,
                decision.error.message,
                node_name or None,
                victims,
                writes,
                cycle.state,
                decision.error.diagnosis,
                loses_nomination=help_ is not None and not node_name,
            )
        assert isinstance(decision, Suggested)
        placed_pod = state.engine.place(cycle, decision.node_name)
        if placed_pod.status is not None:
            return Placement(pod, None, placed_pod.status.message)
        # What PreBind writes, such as the volume of a claim, must exist for the pods that are placed next.
        object_writes = writes_before_binding(cycle.framework, cycle.state, pod, decision.node_name)
        if isinstance(object_writes, str):
            state.engine.take_back(placed_pod)
            return Placement(pod, None, object_writes)
        carry_out(state.store, object_writes)
        binding_writes = list(controller_writes(state.store, object_writes, decision.node_name))
        carry_out(state.store, binding_writes)
        object_writes = [*object_writes, *binding_writes]
        stored_pod = state.store.get(PODS, pod.key)
        state.store.put(PODS, pod.on_node(decision.node_name))
        return Placement(
            pod, decision.node_name, writes=object_writes, state=cycle.state, placed=placed_pod, before=stored_pod
        )

    def undo(self, placement: Placement) -> None:
        """Undo a `place` of this cluster; undo the latest placement first.

        Raises:
            ClusterError: the pod does not count on a node by that placement (any more).
        """
        placed_pod, state = placement.placed, self._state
        framework = None if placed_pod is None else state.frameworks.get(placed_pod.pod.spec.scheduler_name)
        if (
            placed_pod is None
            # After a change of other objects plugins are built anew, and know nothing of this pod's reservation.
            or placed_pod.framework is not framework
            or not state.cache.is_assumed(placed_pod.pod.uid)
        ):
            raise ClusterError(f"Pod {placement.pod.key} was not placed on a node here by that placement")
        if placement.before is None:
            state.store.drop(PODS, placed_pod.pod)
        else:
            state.store.put(PODS, placement.before)
        undo(state.store, placement.writes)
        state.engine.take_back(placed_pod)

    def place_all(self, pods: Iterable[PodLike] | None = None) -> list[Placement]:
        """Place the pods one after the other, as the scheduler would if nothing else happened.

        Each pod gets one attempt, and its usage counts for the pods after it. If no node fits, preemption is carried
        out: its victims are removed at once, and the pod is nominated, but not tried again.

        Args:
            pods: placed in this order; by default all pending pods, in queue order: by the QueueSort plugin, of which
                they entered the queue in order of namespace and name.

        Raises: as `place`.
        """
        if pods is None:
            pods = self.in_queue_order(sorted((pod for pod in self.pods if not pod.node_name), key=_by_name))
        return [self._make_room(self.place(pod)) for pod in pods]

    def in_queue_order(self, pods: Iterable[Pod]) -> list[Pod]:
        """Return the pods as the profiles' QueueSort plugin orders them, if they entered the queue in this order."""
        return in_queue_order(pods, next(iter(self.profiles.values())).queue_sort)

    def drain(self, node: str) -> list[Placement]:
        """Cordon a node and place its pods elsewhere, in queue order as `place_all`.

        Pods of DaemonSets and static pods belong to the node and are left on it. PodDisruptionBudgets are ignored.

        Raises:
            ManifestError: there is no such node.
            ScheduleError, ClusterError: as `place`.
        """
        to_cordon = self._demand(NODES, node)
        leaving = [resource for resource in self._state.cache.pods_on(node) if not stays_on_node(resource)]
        state = self._own()
        # First, lest the scheduler give the pods this node again.
        state.put(NODES, cordoned_node(to_cordon))
        pending = []
        for pod in sorted(leaving, key=_by_name):
            unbound_pod = unbound(pod)
            state.put(PODS, unbound_pod)
            pending.append(unbound_pod)
        return self.place_all(self.in_queue_order(pending))

    # ------------------------------------------------------------ for the command line and other packages

    def nominate(self, placement: Placement) -> Sequence[Pod]:
        """Carry out the plugins' writes and the changed nominations after a failed attempt.

        The victims of its preemption stay, as they do while they are terminating.

        Returns:
            The other pods that have lost their nominations to it, as they were nominated.
        """
        if placement.node is not None:
            return ()
        if placement.writes:
            carry_out(self._own().store, placement.writes)
        state, pod = self._own(), placement.pod
        if placement.nominated_node is None:
            if placement.loses_nomination:
                state.nominator.delete(pod)
            return ()
        if state.store.get(PODS, pod.key) is None:
            state.store.put(PODS, pod)
        # As upstream: a nomination of less priority gives way, as its pod would not find the room it was promised.
        nominees = state.nominator.pods(placement.nominated_node)
        displaced_pods = [nominee for nominee in nominees if nominee.priority < pod.priority]
        for nominee in displaced_pods:
            state.nominator.delete(nominee)
        state.nominator.add(pod, placement.nominated_node)
        return displaced_pods

    def _make_room(self, placement: Placement) -> Placement:
        """Carry out a preemption: nominate the pod, apply the plugins' writes, and remove the victims."""
        self.nominate(placement)
        if placement.nominated_node is not None:
            for victim in placement.victims:
                self.drop(PODS, victim)
        return placement

    # ------------------------------------------------------------ the claims of a pod

    def asked(self, pod: PodLike) -> tuple[Self, Pod]:
        """Return the pod in question, and the cluster in which its claims exist.

        Raises:
            ManifestError: the pod cannot be read, or the API server would refuse it.
        """
        world = self.with_workload_of(pod)
        typed_pod = world.read_pod(pod)
        pod_with_claims, claims = world.claims_of(typed_pod)
        # A question must not leave claims behind.
        world = self.fork() if claims and world is self else world
        world._create_all(claims)
        return world, pod_with_claims

    def with_workload_of(self, pod: PodLike) -> Self:
        """Return this cluster, or a fork of it with the workload in question."""
        if not objects_beside(pod):
            return self
        world = self.fork()
        world.put_workload_of(pod)
        return world

    def put_workload_of(self, pod: PodLike) -> None:
        """Add the workload that is asked about, if it is one: its pods and claims depend on it."""
        if manifests := objects_beside(pod):
            self.admit_by(Admission(self.admission.objects.fork(manifests)))
        for manifest in filter(resource_of, manifests):
            self.put(*self.read(manifest))

    def create_claims(self, pod: Pod) -> Pod:
        """Create the claims that exist because the pod does, and return the pod with their names.

        Raises:
            ManifestError: a claim cannot be read.
        """
        pod_with_claims, claims = self.claims_of(pod)
        self._create_all(claims)
        return pod_with_claims

    def _create_all(self, manifests: Iterable[Manifest]) -> None:
        for manifest in manifests:
            self.create(*self.read(manifest))

    def claims_of(self, pod: Pod) -> tuple[Pod, list[Manifest]]:
        """Return the pod with the names of its claims, and the claims that do not exist yet."""
        if not may_have_claims(pod):
            return pod, []
        store = self._state.store
        manifest, claims = with_claims(
            as_manifest(PODS, pod),
            self.admission.objects,
            lambda kind, key: store.get(_CLAIMS[kind], key) is not None,
        )
        statuses = mapping_at(manifest, "status").get("resourceClaimStatuses", [])
        claim_statuses = msgspec.convert(statuses, tuple[PodResourceClaimStatus, ...])
        if claim_statuses == pod.status.resource_claim_statuses:
            return pod, claims
        status = msgspec.structs.replace(pod.status, resource_claim_statuses=claim_statuses)
        return msgspec.structs.replace(pod, status=status), claims

    def read_pod(self, pod: PodLike) -> Pod:
        """Return the typed pod, with missing fields filled in; for a workload, one of its pods.

        Raises:
            ManifestError: the pod cannot be read.
            ClusterError: the cluster has no pod of that name.
        """
        if isinstance(pod, Pod):
            return pod
        if isinstance(pod, str):
            return pod_named(pod, self._state.store.objects(PODS))
        resource, item = self.read(pod_manifest(pod))
        if resource is not PODS:
            raise ManifestError(f"kind: expected a Pod, got a {resource.kind}")
        return cast(Pod, item)


def _by_name(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name


def stays_on_node(pod: Pod) -> bool:
    """Return whether a drain leaves the pod on its node."""
    owners = pod.metadata.owner_references
    return _MIRROR_POD in pod.metadata.annotations or any(resource.kind == "DaemonSet" for resource in owners)
