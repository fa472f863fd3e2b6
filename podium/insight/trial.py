"""A private world in which the steps of a what-if question are carried out, with controllers and a scheduler.

After each step controllers create and delete pods, and pending pods are placed, until nothing changes any more. A pod
that could not be placed is tried again only after something has changed that may help it, as in a scheduling queue, so
that its message is that of its last attempt.

A pod on a node that is deleted terminates first, which takes longer than anything else: it counts on its node until the
rest has ended. Some controllers replace it at once, so that its replacement is placed beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec.structs import replace

from podium.engine.cluster import stays_on_node
from podium.engine.cluster_objects import cordoned_node
from podium.engine.derivation.admission import (
    Admission,
    RefusedError,
    demand_allowed,
    with_node_lost_tolerations,
)
from podium.engine.derivation.budgets import Budgets
from podium.engine.derivation.control_objects import items_at, namespace_of
from podium.engine.derivation.limit_ranges import claim_refusals
from podium.engine.derivation.manager import ControllerManager
from podium.engine.derivation.pods import generated_name
from podium.engine.derivation.quotas import Quotas
from podium.engine.derivation.revisions import refused_workloads
from podium.engine.manifests import Manifest
from podium.engine.placement import Placement
from podium.framework.contract.cluster_event import ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE
from podium.insight.cluster import Cluster
from podium.insight.failed_pods import FailedPods
from podium.insight.nominations import Nominations
from podium.insight.waiting_pods import age_of
from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.objects.core import Node, Pod, PodCondition
from podium.objects.resource_types import NODES, PERSISTENT_VOLUME_CLAIMS, PODS, RESOURCE_CLAIMS, ResourceType

_PREEMPTION_ROUNDS_MAX: Final = 20
"""Pods that preempt each other could move for ever."""
_ROUNDS_MAX: Final = 100_000
_GATED: Final = "Scheduling is blocked due to non-empty scheduling gates"
"""The message of the condition that the API server gives a gated pod."""
_PREEMPTED: Final = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
_LONG_AGO: Final = "1970-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Preemption:
    """A pod that made room for another one."""

    pod: str
    node: str
    by: str


@dataclass(frozen=True, slots=True)
class Blocked:
    """A pod that could not be evicted, and the budgets that did not allow it."""

    pod: str
    budgets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """A workload whose pods the API server refuses, and the reason."""

    kind: str
    key: str
    reason: str

    @property
    def workload(self) -> str:
        """The workload as NAMESPACE/KIND/NAME."""
        namespace, _, name = self.key.partition("/")
        return f"{namespace}/{self.kind}/{name}"


@dataclass
class Trial:
    """A private world in which steps are carried out one after the other.

    Attributes:
        original: the cluster before the steps.
        world: the cluster as it is after the steps so far.
        limit: how long the steps may take.
        is_partial: whether the time limit ended the steps early.
        predecessors: the key of the deleted pod, by the key of the pod that was created in its place.
    """

    original: Cluster
    limit: TimeLimit = UNLIMITED
    world: Cluster = field(init=False)
    controllers: ControllerManager = field(init=False)
    _quotas: Quotas = field(init=False)
    _budgets: Budgets = field(init=False)
    preempted: list[Preemption] = field(default_factory=list)
    blocks: list[Blocked] = field(default_factory=list)
    refusals: dict[str, Refused] = field(default_factory=dict)
    predecessors: dict[str, str] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    is_partial: bool = False
    _order: dict[str, int] = field(default_factory=dict)
    _refused_before: list[tuple[str, str]] = field(init=False)
    _failed: FailedPods = field(init=False)
    _ended_of_jobs: list[Pod] = field(default_factory=list)
    _lack_claims: set[str] = field(default_factory=set)
    """The keys of pods of which a claim was refused."""
    _deleted: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    _terminating: dict[str, bool] = field(default_factory=dict)
    """The keys of the pods that were deleted and still count on their nodes; whether each is replaced at its end."""
    _nominations: Nominations = field(init=False)

    def __post_init__(self) -> None:
        """Fork the cluster and the objects of its controllers."""
        self.world = self.original.fork()
        self.world.admit_by(Admission(self.world.admission.objects.fork()))
        self.controllers = ControllerManager(
            self.world.admission.objects,
            self.world.pods,
            lambda: self.world.nodes,
            lambda key: self.world.store.get(PERSISTENT_VOLUME_CLAIMS, key),
        )
        self._refused_before = refused_workloads(self.world.admission.objects)
        self._failed = FailedPods(lambda: self.world.profiles)
        self._nominations = Nominations(lambda: self.world)
        self._budgets = Budgets(self.world.admission.objects)
        self._quotas = Quotas(
            self.world.admission.objects,
            lambda namespace: [pod for pod in self.world.pods if pod.metadata.namespace == namespace],
            lambda namespace: [
                claim
                for claim in self.world.store.objects(PERSISTENT_VOLUME_CLAIMS).values()
                if claim.metadata.namespace == namespace
            ],
        )

    # ------------------------------------------------------------ pods

    def create(self, pod: Manifest) -> None:
        """Create a pod with its claims.

        Raises:
            RefusedError: the API server refuses it.
            ManifestError: it cannot be read.
        """
        admission = self.world.admission
        admission.demand_admission(pod)
        typed_pod = self.world.read_pod(with_node_lost_tolerations(pod))
        demand_allowed(pod, self._quotas.refusal(typed_pod, admission.admit(pod, PODS)))
        time = admission.objects.latest_time or None
        metadata = replace(typed_pod.metadata, creation_timestamp=time)
        typed_pod = self._with_claims(replace(typed_pod, metadata=metadata), is_new=True)
        self.world.put(PODS, typed_pod)
        self._order[typed_pod.key] = len(self._order)
        self._failed.discard(typed_pod.key)
        if keys := self._deleted.get(_owner(typed_pod)):
            self.predecessors[typed_pod.key] = keys.pop(0)
        self.controllers.on_pod(typed_pod)

    def _with_claims(self, pod: Pod, *, is_new: bool = False) -> Pod:
        """Create the pod's claims that the API server does not refuse, and return the pod with their names.

        A claim that is refused keeps a new pod of a StatefulSet from being created; other pods wait for it.
        """
        pod_with_claims, claims = self.world.claims_of(pod)
        reasons = [self._claim_refusal(claim) for claim in claims]
        for claim, reason in zip(claims, reasons, strict=True):
            # The StatefulSet controller creates claims before its pod and stops at the first refusal; an owned claim
            # comes after the pod.
            if is_new and reason and not items_at(claim, "metadata", "ownerReferences"):
                raise RefusedError(f'persistentvolumeclaims "{claim["metadata"]["name"]}" is forbidden: {reason}')
        for claim, reason in zip(claims, reasons, strict=True):
            if not reason:
                self.world.create(*self.world.read(claim))
        (self._lack_claims.add if any(reasons) else self._lack_claims.discard)(pod.key)
        return pod_with_claims

    def _claim_refusal(self, claim: Manifest) -> str:
        """Return why the API server refuses the claim; "" if it does not."""
        if claim["kind"] != PERSISTENT_VOLUME_CLAIMS.kind:
            return ""
        admission = self.world.admission
        admitted_claim = admission.admit(claim, PERSISTENT_VOLUME_CLAIMS)
        limits = admission.objects.in_namespace("LimitRange", namespace_of(claim))
        return claim_refusals(admitted_claim, limits) or self._quotas.claim_refusal(admitted_claim)

    def delete(self, pod: Pod, *, is_replaced: bool = True, is_graceful: bool = True) -> None:
        """Delete a pod, and what it owns once it has ended.

        Args:
            is_replaced: whether a pod whose controller is not known comes back.
            is_graceful: whether a pod on a node terminates first.
        """
        pod = self.world.store.get(PODS, pod.key) or pod
        if pod.is_terminating and is_graceful:
            self._terminating.setdefault(pod.key, False)
            return
        owner = pod.metadata.controller
        if owner is not None and not pod.is_terminating:
            self._deleted.setdefault(_owner(pod), []).append(pod.key)
        is_replaced = is_replaced and owner is not None and self.controllers.is_replaced_alike(pod)
        is_replaced = is_replaced and not stays_on_node(pod)
        if not is_graceful or not pod.node_name:
            self._end(pod, is_replaced=is_replaced)
            return
        # The Job controller replaces a pod only once it has ended (podReplacementPolicy), others do at once.
        is_replaced_late = owner is not None and owner.kind == "Job"
        self._terminating[pod.key] = is_replaced and is_replaced_late
        time = self.world.admission.objects.latest_time or _LONG_AGO
        pod = replace(pod, metadata=replace(pod.metadata, deletion_timestamp=time))
        self.world.put(PODS, pod)
        self.controllers.on_pod(pod)
        if is_replaced and not is_replaced_late:
            self._create_alike(pod, len(self._order))

    def end_terminating(self) -> bool:
        """End the pods that were deleted, and return whether any pod was terminating."""
        terminating, self._terminating = self._terminating, {}
        for key, is_replaced in terminating.items():
            if (pod := self.world.store.get(PODS, key)) is not None:
                self._end(pod, is_replaced=is_replaced)
        return bool(terminating)

    def _end(self, pod: Pod, *, is_replaced: bool) -> None:
        """Remove a pod and what it owns."""
        self.world.drop(PODS, pod)
        self._terminating.pop(pod.key, None)
        self._release_claims(pod)
        self._quotas.on_pod_gone(pod)
        self._try_refused_again()
        self.controllers.on_pod_gone(pod)
        if pod.node_name:
            self._failed.on_event(ASSIGNED_POD_DELETE, pod, None)
            if pod.metadata.controller is not None and pod.metadata.controller.kind == "Job":
                self._ended_of_jobs.append(pod)
        else:
            # It may have been nominated.
            self._failed.clear()
        # Quota may have been freed, so claims that were refused may be created now.
        for key in self._lack_claims:
            self._failed.discard(key)
        if is_replaced:
            self._create_alike(pod, len(self._order))

    def _try_refused_again(self) -> None:
        for kind, key in (*self._refused_before, *((refusal.kind, refusal.key) for refusal in self.refusals.values())):
            self.controllers.touch(kind, key)
        self._refused_before.clear()
        self.refusals.clear()

    def _create_alike(self, pod: Pod, number: int) -> None:
        """Create another pod of a workload whose controller is not known."""
        name = pod.metadata.name
        prefix = name.rpartition("-")[0] or name
        fresh = generated_name(f"{prefix}-", pod.metadata.namespace, name, number)
        uid = f"Pod/{pod.metadata.namespace}/{fresh}"
        metadata = replace(pod.metadata, name=fresh, uid=uid, deletion_timestamp=None)
        alike = self.world.create_claims(Pod(metadata=metadata, spec=pod.spec))
        self.world.put(PODS, alike)
        self._order[alike.key] = len(self._order)
        self._failed.discard(alike.key)
        if keys := self._deleted.get(_owner(pod)):
            self.predecessors[alike.key] = keys.pop(0)
        self.controllers.on_pod(alike)

    def _release_claims(self, pod: Pod) -> None:
        """Delete the claims that the pod owns, and give back the devices of claims that nothing else uses."""
        namespace, store = pod.metadata.namespace, self.world.store
        for volume in pod.spec.volumes:
            if volume.ephemeral is not None:
                volume_claim = store.get(PERSISTENT_VOLUME_CLAIMS, f"{namespace}/{pod.metadata.name}-{volume.name}")
                if volume_claim is not None:
                    self.world.drop(PERSISTENT_VOLUME_CLAIMS, volume_claim)
                    self._quotas.on_claim_gone(volume_claim)
        derived_names = {status.resource_claim_name for status in pod.status.resource_claim_statuses}
        named_claims = {use.resource_claim_name for use in pod.spec.resource_claims}
        for name in filter(None, derived_names | named_claims):
            claim = store.get(RESOURCE_CLAIMS, f"{namespace}/{name}")
            if claim is None:
                continue
            released_claim = None if name in derived_names else claim.released_by(pod.uid)
            if released_claim is None:
                self.world.drop(RESOURCE_CLAIMS, claim)
            else:
                self.world.put(RESOURCE_CLAIMS, released_claim)
            # Devices are free, or the claim may be allocated anew.
            self._failed.on_object(RESOURCE_CLAIMS, claim, released_claim)

    # ------------------------------------------------------------ what happens by itself

    def settle(self) -> None:
        """Let controllers act and place pending pods until nothing moves any more.

        Raises:
            ScheduleError: an attempt failed.
            TimeIsUpError: the time for the question is over.
        """
        preemption_rounds = 0
        for _ in range(_ROUNDS_MAX):
            self.limit.check()
            preemptions = len(self.preempted)
            self.reconcile()
            if not self._place_pending():
                # In this order: only if nothing else moves does time pass for what takes longest.
                if self._end_nominations() or self.end_terminating():
                    continue
                if self.controllers.end_backoffs() or self._note_ends_of_jobs():
                    continue
                return
            preemption_rounds += len(self.preempted) > preemptions
            if preemption_rounds > _PREEMPTION_ROUNDS_MAX:
                return

    def _note_ends_of_jobs(self) -> bool:
        """Note that the deleted pods of Jobs are gone, and return whether there are any.

        A Job keeps a finalizer on each pod until it has counted it.
        """
        pods, self._ended_of_jobs = self._ended_of_jobs, []
        for pod in pods:
            self._failed.on_event(ASSIGNED_POD_DELETE, pod, None)
        return bool(pods)

    def reconcile(self) -> None:
        """Let controllers act until none has anything left to do. No pod is placed."""
        while self._sync():
            self.limit.check()

    def _sync(self) -> bool:
        """Sync each controller that has work to do, and return whether anything changed."""
        has_changed = False
        workloads = self.controllers.sync()
        while self.controllers.new_replica_sets:
            self.world.put(*self.world.read(self.controllers.new_replica_sets.pop()))
        for workload in workloads:
            for pod in workload.sync.delete:
                self.delete(pod, is_replaced=False)
                has_changed = True
            for pod in workload.sync.adopt:
                self.world.put(PODS, pod)
                self.controllers.on_pod(pod)
                has_changed = True
            for manifest in workload.sync.create:
                try:
                    self.create(manifest)
                except RefusedError as error:
                    self.refusals[workload.key] = Refused(workload.kind, workload.key, str(error))
                else:
                    has_changed = True
        return has_changed or self.controllers.has_work

    def _place_pending(self) -> bool:
        """Make an attempt at each pending pod that may fit, and return whether anything changed."""
        profiles = self.world.profiles
        pending = [pod for pod in self.world.pods if not pod.node_name and pod.key not in self._failed]
        for pod in pending:
            if pod.spec.scheduler_name not in profiles:
                self.why[pod.key] = f"no profile is named {pod.spec.scheduler_name!r}"
        candidates = [pod for pod in pending if pod.spec.scheduler_name in profiles]
        # In the order of creation; pods of the dump enter the queue before new ones.
        candidates.sort(key=lambda pod: (self._order.get(pod.key, -1), age_of(pod)))
        return (
            sum(
                self._note(self.world.place_with_its_claims(self._with_claims(pod)))
                for pod in self.limit.take(self.world.in_queue_order(candidates))
            )
            > 0
        )

    def _note(self, placement: Placement) -> bool:
        """Carry out what follows an attempt, and return whether it changed anything."""
        pod = placement.pod
        self._nominations.change(placement)
        if placement.node is not None:
            self.why.pop(pod.key, None)
            if pod.spec.volumes:
                self._failed.on_volumes_taken()
            stored_pod = self.world.store.get(PODS, pod.key)
            assert stored_pod is not None
            self._failed.on_event(ASSIGNED_POD_ADD, None, stored_pod)
            self.controllers.on_pod(stored_pod)
            return True
        self.why[pod.key] = _GATED if pod.spec.scheduling_gates else placement.message
        self._failed.add(pod, placement)
        # Of a victim that terminates already only the end is waited for.
        victims = [victim for victim in placement.victims if not victim.is_terminating]
        for victim in victims if placement.nominated_node is not None else ():
            self.preempted.append(Preemption(victim.key, placement.nominated_node or "", pod.key))
            conditions = (*victim.status.conditions, _PREEMPTED)
            self.world.put(PODS, replace(victim, status=replace(victim.status, conditions=conditions)))
            self.delete(victim)
        return placement.nominated_node is not None and bool(victims)

    def _end_nominations(self) -> bool:
        """Let pods be tried again that ended nominations may help, and return whether any has ended.

        A scheduler hears of what it has written after it has tried the pods that were ready.
        """
        former_nominees = self._nominations.take_ended()
        for pod in former_nominees:
            self._failed.on_nomination_end(pod)
        return bool(former_nominees)

    def scale_unknown(self, pods: Sequence[Pod], count: int) -> None:
        """Change the number of pods of a workload whose controller is not known."""
        active = [pod for pod in pods if not pod.is_terminating]
        for number in range(len(active), count):
            self._create_alike(pods[0], number)
        for pod in sorted(active, key=_keeping_order)[count:]:
            self.delete(pod, is_replaced=False)

    # ------------------------------------------------------------ nodes

    def on_objects(self, resource: ResourceType[Any] | None, old: Any, new: Any) -> None:
        """Note that an object other than a pod was created, changed or deleted.

        Args:
            resource: None if no plugin reads objects of its kind.
        """
        self._failed.on_object(resource, old, new)
        self._try_refused_again()
        if resource is NODES:
            self.controllers.on_nodes()

    def on_nodes(self) -> None:
        """Note that nodes were added, changed or removed."""
        self._failed.clear()
        self.controllers.on_nodes()

    def drain(self, node: Node) -> None:
        """Cordon a node and evict its pods, as far as budgets allow it. Pods of DaemonSets and static pods stay."""
        self.world.put(NODES, cordoned_node(node))
        self.on_nodes()
        # The cordon first, and what follows from it: kubectl drain evicts only afterwards.
        self.settle()
        # Only these: a pod that tolerates a cordon may come back.
        leaving = [pod for pod in self.world.pods if pod.node_name == node.name and not stays_on_node(pod)]
        while leaving:
            remaining = self.evict(leaving)
            self.settle()
            if len(remaining) == len(leaving):
                break
            leaving = remaining
        self.blocks += [Blocked(pod.key, self.forbidding(pod)) for pod in leaving]

    def evict(self, pods: Sequence[Pod]) -> list[Pod]:
        """Evict those of the pods that budgets allow now, and return the others."""
        remaining = []
        for pod in pods:
            if self.world.store.get(PODS, pod.key) is not pod:
                continue  # preempted meanwhile
            if self.forbidding(pod):
                remaining.append(pod)
            else:
                self.delete(pod)
        return remaining

    def forbidding(self, pod: Pod) -> tuple[str, ...]:
        """Return the budgets that forbid to evict the pod now. A pod of several budgets is never evicted."""
        # The eviction API lets a pod go that does not run yet, whatever its budgets.
        if pod.status.phase == "Pending":
            return ()
        self._budgets.refresh(pod.metadata.namespace)
        budgets = self._budgets.covering(pod)
        if len(budgets) > 1:
            return tuple(budget.key for budget in budgets)
        return tuple(
            budget.key
            for budget in budgets
            if not budget.allows(pod, filter(budget.covers, self.world.pods), self.controllers.expected_pods)
        )

    def remove_node(self, node: Node) -> None:
        """Delete a node and its pods, as the garbage collector of pods does."""
        pods = [pod for pod in self.world.pods if pod.node_name == node.name]
        self.world.remove("Node", node.name)
        # Without grace: the pods' kubelet is gone, and the pod garbage collector deletes them at once.
        for pod in pods:
            self.delete(pod, is_graceful=False)
        self.on_nodes()


def _keeping_order(pod: Pod) -> tuple[bool, str, str]:
    """Return the sort key of pods to keep: pods on nodes come before pending ones, older before younger ones."""
    return not pod.node_name, pod.metadata.creation_timestamp or "", pod.key


def _owner(pod: Pod) -> tuple[str, str, str]:
    """Return the namespace, kind and name of the pod's controller."""
    owner = pod.metadata.controller
    return (pod.metadata.namespace, owner.kind, owner.name) if owner is not None else (pod.metadata.namespace, "", "")
