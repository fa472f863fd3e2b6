"""`podium.Cluster`: a cluster that can be queried and changed without an API server.

Owns the objects, the pods that count on nodes, and the profiles that decide. A change of one cluster never affects
another. Never does I/O except reading given files. Plugins get a client that refuses writes, a clock that stands still
and a seeded source of randomness, so that the same question has the same answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Self, cast
from weakref import ref

import msgspec

from podium.cluster import CacheError
from podium.config import KubeSchedulerConfiguration
from podium.engine.asked_pods import PodLike, objects_beside, pod_manifest, pod_named
from podium.engine.cluster_state import SEED, ClusterState
from podium.engine.configurations import Config, read_config
from podium.engine.derivation.admission import Admission
from podium.engine.derivation.claims import may_have_claims, with_claims
from podium.engine.derivation.control_objects import mapping_at
from podium.engine.derivation.volumes import bound_at_once, controller_writes
from podium.engine.errors import ClusterError, ManifestError
from podium.engine.evaluation import Evaluation
from podium.engine.files import Found
from podium.engine.generated_names import with_free_name
from podium.engine.manifests import Manifest, as_manifest, is_namespaced, read_manifest, resource_of
from podium.engine.object_files import Objects, objects_given
from podium.engine.placement import Placement
from podium.engine.placing import Engine
from podium.engine.plugin_writes import carry_out, undo, writes_after_failure, writes_before_binding
from podium.engine.store import ObjectStore
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.pod_groups import SimulatedGroup
from podium.framework.contract.status import ScheduleError, Status, demand_status
from podium.framework.cycle.evaluation import evaluate_all
from podium.framework.cycle.schedule import NO_NODES, Decision, DoesNotFit, Failed, Suggested
from podium.framework.profile.runtime import Framework
from podium.lib.error_text import error_text
from podium.lib.garbage_collection import collection_disabled
from podium.lib.nearest import nearest
from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.objects.core import Node, Pod, PodResourceClaimStatus, PodStatus
from podium.objects.resource_types import (
    ALL,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_CLAIMS,
    ResourceType,
)
from podium.plugins import IN_TREE

_NO_CLASSES: Final = Admission(())
_CLAIMS: Final[Mapping[str, ResourceType[Any]]] = {
    each.kind: each for each in (PERSISTENT_VOLUME_CLAIMS, RESOURCE_CLAIMS)
}
_MIRROR_POD: Final = "kubernetes.io/config.mirror"
_KINDS: Final[Mapping[str, ResourceType[Any]]] = {each.kind: each for each in ALL}


class Cluster:
    """The objects of one cluster, and the profiles of one configuration.

    Not thread-safe. A method that changes something changes this cluster only, not the one that it was forked from nor
    its own forks.

    Args:
        store: the objects.
        asked: the keys of pods that the question is about. They do not count on a node, whatever node they name.
        admission: fills in missing fields of manifests that are added or asked about.

    Raises:
        ManifestError, CacheError: an object has a field that cannot be read, or contradicts another.
        PluginError, ConfigError: a profile cannot be built.
    """

    def __init__(
        self,
        config: KubeSchedulerConfiguration,
        store: ObjectStore,
        classes: Mapping[str, type[Plugin]] = IN_TREE,
        asked: Collection[str] = (),
        admission: Admission = _NO_CLASSES,
    ) -> None:
        self._state = ClusterState(config, classes, store, admission)
        self._origin: ref[Cluster] | None = None
        self._forked: ClusterState | None = None
        self._state.fill(asked)
        # Built now, so that the caller gets the errors of the configuration at once.
        self._state.frameworks  # noqa: B018

    @classmethod
    def load(cls, objects: Objects, config: Config | None = None, plugins: Sequence[type[Plugin]] = ()) -> Self:
        """Load a cluster from manifests. Missing fields are filled in as an API server does.

        Args:
            objects: files and directories of what `kubectl get -o yaml` or `-o json` prints, or manifests as parsed
                from it. Kinds that a scheduler does not read are ignored, as are pods that have ended.
            config: kube-scheduler's defaults unless given.
            plugins: your own plugins; without `config` they run in addition to the default plugins, with weight 1.

        Raises:
            ManifestError: an object cannot be read. The message names the object and the field.
            ConfigError, PluginError: the configuration cannot be read, or a profile cannot be built.
            OSError: a file cannot be read.
        """
        classes = {**IN_TREE, **{each.name: each for each in plugins}}
        configuration = read_config(config, classes, plugins)
        with collection_disabled():
            found = objects_given(objects)
            admission = Admission(each.manifest for each in found)
            try:
                cluster = cls(configuration, ObjectStore(read_all(found, admission)), classes, admission=admission)
            except CacheError as error:
                raise ManifestError(str(error)) from error
        cluster._keep(found)
        return cluster

    def _keep(self, found: Sequence[Found]) -> None:
        """For subclasses that answer questions about more than a scheduler reads: the objects as they were loaded."""

    # ------------------------------------------------------------ forks and changes

    def fork(self) -> Self:
        """A copy of this cluster that can be changed independently.

        Cost: 2 us and 100 bytes. The first change of either copies what both share: 4 to 7 ms and 5 MB at 5,000 nodes
        and 50,000 pods.
        """
        twin = object.__new__(type(self))
        twin._state = self._state
        twin._origin, twin._forked = ref(self), self._state
        self._state.is_shared = True
        return twin

    def commit(self) -> None:
        """Let the cluster that this one was forked from be as this one is.

        Raises:
            ClusterError: this is no fork, or the other cluster has changed since, or is gone.
        """
        origin = self._origin() if self._origin is not None else None
        if self._forked is None or origin is None:
            raise ClusterError("there is no cluster to commit to: this one was not forked from any that still exists")
        if origin._state is not self._forked:
            raise ClusterError("the cluster has changed since this one was forked from it: fork it again")
        self._state.is_shared = True
        origin._state = self._forked = self._state

    def discard(self) -> None:
        """Forget every change since this cluster was forked, or since its last `commit`.

        Raises:
            ClusterError: this is no fork.
        """
        if self._forked is None:
            raise ClusterError("there is nothing to go back to: this cluster is not a fork")
        self._state = self._forked

    def add(self, manifest: Manifest) -> None:
        """Add an object. A pod that names a node counts there, any other pod is pending.

        Raises:
            ManifestError: the object cannot be read, a scheduler does not read its kind, or its name is taken.
        """
        resource, item = self.read(manifest)
        if self._state.store.get(resource, item.key) is not None:
            raise ManifestError(f"{resource.kind} {item.key} already exists")
        self.put(resource, item)

    def replace(self, manifest: Manifest) -> None:
        """Replace the object of the same name.

        Raises:
            ManifestError: the object cannot be read, or no object has its name.
        """
        resource, item = self.read(manifest)
        self._demand(resource, item.key)
        self.put(resource, item)

    def manifest_of(self, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
        """An object as a manifest with the fields that a scheduler reads.

        Args and Raises: as `remove`.
        """
        return as_manifest(*self._named(kind, name, namespace))

    def remove(self, kind: str, name: str, namespace: str = "") -> None:
        """Remove an object.

        Args:
            kind: as manifests write it, such as `Pod`.
            namespace: `default` unless given, for kinds that have one.

        Raises:
            ManifestError: a scheduler does not read the kind, or there is no such object.
        """
        resource, found = self._named(kind, name, namespace)
        self._own().drop(resource, found)

    def _named(self, kind: str, name: str, namespace: str) -> tuple[ResourceType[Any], Any]:
        resource = _KINDS.get(kind)
        if resource is None:
            raise ManifestError(f"kind: no scheduler reads objects of kind {kind!r}; known are {', '.join(_KINDS)}")
        if namespace and not is_namespaced(resource):
            raise ManifestError(f"namespace: objects of kind {kind} have none")
        key = f"{namespace or 'default'}/{name}" if is_namespaced(resource) else name
        return resource, self._demand(resource, key)

    # ------------------------------------------------------------ questions

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes, by name."""
        return tuple(self._state.store.objects(NODES).values())

    @property
    def pods(self) -> Sequence[Pod]:
        """The pods on nodes and the pending pods, by namespace and name."""
        return tuple(self._state.store.objects(PODS).values())

    def evaluate(self, pod: PodLike, limit: TimeLimit = UNLIMITED) -> Evaluation:
        """One scheduling attempt over all nodes, with every verdict and score. Nothing changes.

        Args:
            limit: when to end without the verdict of preemption.

        Raises:
            ScheduleError: a plugin failed, or there is no node.
            ClusterError: no profile serves the pod, or it cannot be read.
        """
        world, pod = self.asked(pod)
        state = world._state
        state.random.seed(SEED)
        cycle = state.engine.cycle(world.framework_for(pod), pod)
        if not len(cycle.snapshot):
            raise ScheduleError(NO_NODES)
        # A question is no attempt: plugins that keep gangs together must not remember that the pod did not fit.
        cycle.state.write(SimulatedGroup(None))
        found = Evaluation(evaluate_all(cycle, limit), cycle.snapshot)
        state.evaluations.add(found)
        return found

    def gates_of(self, pod: Pod) -> tuple[Status, ...]:
        """The statuses of PreEnqueue plugins that gate the pod.

        Raises:
            ClusterError: no profile serves the pod, or a plugin failed.
        """
        gates = []
        for plugin in self.framework_for(pod).pre_enqueue:
            try:
                status = demand_status(plugin.pre_enqueue(pod))
            except BaseException as error:
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
        return self._place(self.read_pod(pod), makes_room=True)

    def place_without_preemption(self, pod: Pod) -> Placement:
        """As `place`, but if no node fits, nothing is done to make room, and no plugin learns that the pod failed.

        Raises: as `place`.
        """
        return self._place(pod, makes_room=False)

    def _place(self, pod: Pod, *, makes_room: bool) -> Placement:
        if self._state.cache.pod(pod.uid) is not None:
            raise ClusterError(f"Pod {pod.key} counts on a node already")
        pod = self.create_claims(pod)
        state = self._own()
        if gates := self.gates_of(pod):
            return Placement(pod, None, "; ".join(each.message for each in gates))
        state.random.seed(SEED)
        cycle = state.engine.cycle(self.framework_for(pod), pod)
        cycle.makes_room = makes_room
        decision: Decision = state.engine.decide(cycle)
        if isinstance(decision, Failed):
            raise ScheduleError(f"{pod.key}: {decision.status.message}")
        if isinstance(decision, DoesNotFit):
            help_ = decision.post_filter
            nominated = help_.nominated_node_name if help_ is not None else ""
            victims = tuple(help_.victims) if help_ is not None and nominated else ()
            writes = writes_after_failure(cycle.framework, cycle.state, pod)
            loses = help_ is not None and not nominated
            return Placement(pod, None, decision.error.message, nominated or None, victims, writes, cycle.state, loses)
        assert isinstance(decision, Suggested)
        placed = state.engine.place(cycle, decision.node_name)
        if placed.status is not None:
            return Placement(pod, None, placed.status.message)
        written = writes_before_binding(cycle.framework, cycle.state, pod, decision.node_name)
        if isinstance(written, str):
            state.engine.take_back(placed)
            return Placement(pod, None, written)
        carry_out(state.store, written)
        bound = list(controller_writes(state.store, written, decision.node_name))
        carry_out(state.store, bound)
        written = [*written, *bound]
        before = state.store.get(PODS, pod.key)
        state.store.put(PODS, pod.on_node(decision.node_name))
        return Placement(pod, decision.node_name, writes=written, state=cycle.state, placed=placed, before=before)

    def undo(self, placement: Placement) -> None:
        """Undo a `place` of this cluster; undo the latest placement first.

        Raises:
            ClusterError: the pod does not count on a node by that placement (any more).
        """
        placed, state = placement.placed, self._state
        framework = None if placed is None else state.frameworks.get(placed.pod.spec.scheduler_name)
        if placed is None or placed.framework is not framework or not state.cache.is_assumed(placed.pod.uid):
            raise ClusterError(f"Pod {placement.pod.key} was not placed on a node here by that placement")
        if placement.before is None:
            state.store.drop(PODS, placed.pod)
        else:
            state.store.put(PODS, placement.before)
        undo(state.store, placement.writes)
        state.engine.take_back(placed)

    def place_all(self, pods: Iterable[PodLike] | None = None) -> list[Placement]:
        """Place the pods one after the other, as the scheduler would if nothing else happened.

        Each pod gets one attempt, and its usage counts for the pods after it. If no node fits, preemption is carried
        out:
        its victims are removed at once, and the pod is nominated, but not tried again.

        Args:
            pods: placed in this order; by default all pending pods, in queue order: by priority, then by name.

        Raises: as `place`.
        """
        waiting = sorted((each for each in self.pods if not each.node_name), key=_before_others)
        return [self._make_room(self.place(pod)) for pod in (waiting if pods is None else pods)]

    def drain(self, node: str) -> list[Placement]:
        """Cordon a node and place its pods elsewhere, by priority, then by name.

        Pods of DaemonSets and static pods belong to the node and are left on it. PodDisruptionBudgets are ignored.

        Raises:
            ManifestError: there is no such node.
            ScheduleError, ClusterError: as `place`.
        """
        known = self._demand(NODES, node)
        leaving = [each for each in self._state.cache.pods_on(node) if not stays_on_node(each)]
        state = self._own()
        state.put(NODES, msgspec.structs.replace(known, spec=msgspec.structs.replace(known.spec, unschedulable=True)))
        pending = []
        for pod in sorted(leaving, key=_before_others):
            evicted = unbound(pod)
            state.put(PODS, evicted)
            pending.append(evicted)
        return self.place_all(pending)

    # ------------------------------------------------------------ for the command line and other packages

    @property
    def engine(self) -> Engine:
        """The engine that makes this cluster's decisions. Do not keep it beyond the next change."""
        return self._own().engine

    @property
    def engine_to_ask(self) -> Engine:
        """As `engine`, but only for attempts that place nothing. Cost: none, where `engine` copies what is shared."""
        return self._state.engine

    @property
    def profiles(self) -> Collection[str]:
        """The scheduler names that the profiles serve."""
        return self._state.frameworks.keys()

    def put_pending(self, pod: Pod) -> None:
        """Add a pod without a node, or replace the one of its name. Of its status it keeps only its claims."""
        self.put(PODS, unbound(pod))

    def put(self, resource: ResourceType[Any], item: Any) -> None:
        """Add a typed object, or replace the one of its name.

        Raises:
            ManifestError: the object cannot be added.
        """
        try:
            self._own().put(resource, item)
        except CacheError as error:
            raise ManifestError(str(error)) from error

    def nominate(self, placement: Placement) -> None:
        """Carry out what follows a failed attempt at once: what plugins want to be written, and changed nominations.

        The victims of its preemption stay, as they do while they are terminating.
        """
        if placement.node is not None:
            return
        if placement.writes:
            carry_out(self._own().store, placement.writes)
        state, pod = self._own(), placement.pod
        if placement.nominated_node is not None:
            if state.store.get(PODS, pod.key) is None:
                state.store.put(PODS, pod)
            for other in state.nominator.pods(placement.nominated_node):
                if other.priority < pod.priority:
                    state.nominator.delete(other)
            state.nominator.add(pod, placement.nominated_node)
        elif placement.loses_nomination:
            state.nominator.delete(pod)

    def drop(self, resource: ResourceType[Any], item: Any) -> None:
        """Remove a typed object, which must be there."""
        self._own().drop(resource, item)

    @property
    def store(self) -> ObjectStore:
        """The objects. Do not change them."""
        return self._state.store

    @property
    def admission(self) -> Admission:
        """What the API server does to objects on their creation."""
        return self._state.admission

    def create(self, resource: ResourceType[Any], item: Any) -> None:
        """As `put`, for an object that did not exist: a claim that does not wait is bound if a volume suits it."""
        self.put(resource, item)
        if resource is PERSISTENT_VOLUME_CLAIMS:
            carry_out(self._own().store, bound_at_once(self._state.store, item))

    def admit_by(self, admission: Admission) -> None:
        """Let objects be created with this admission from now on."""
        self._own().admission = admission

    def asked(self, pod: PodLike) -> tuple[Self, Pod]:
        """The pod that a question is about, and the cluster to ask, in which the claims exist that the pod would have.

        Raises:
            ManifestError: the pod cannot be read, or the API server would refuse it.
        """
        world = self.with_workload_of(pod)
        typed = world.read_pod(pod)
        claimed, claims = world.claims_of(typed)
        world = self.fork() if claims and world is self else world
        world._create_all(claims)
        return world, claimed

    def with_workload_of(self, pod: PodLike) -> Self:
        """This cluster, or a fork of it with the workload that is asked about: its pods and claims depend on it."""
        manifests = objects_beside(pod)
        if not manifests:
            return self
        world = self.fork()
        world.admit_by(Admission(self.admission.objects.fork(manifests)))
        for manifest in filter(resource_of, manifests):
            world.put(*world.read(manifest))
        return world

    def create_claims(self, pod: Pod) -> Pod:
        """Create the claims that exist because the pod does, and return the pod with their names.

        Raises:
            ManifestError: a claim cannot be read.
        """
        claimed, claims = self.claims_of(pod)
        self._create_all(claims)
        return claimed

    def _create_all(self, manifests: Iterable[Manifest]) -> None:
        for manifest in manifests:
            self.create(*self.read(manifest))

    def claims_of(self, pod: Pod) -> tuple[Pod, list[Manifest]]:
        """The pod with the names of its claims, and those of them that do not exist yet."""
        if not may_have_claims(pod):
            return pod, []
        store = self._state.store
        manifest, claims = with_claims(
            as_manifest(PODS, pod),
            self.admission.objects,
            lambda kind, key: store.get(_CLAIMS[kind], key) is not None,
        )
        statuses = mapping_at(manifest, "status").get("resourceClaimStatuses", [])
        claimed = msgspec.convert(statuses, tuple[PodResourceClaimStatus, ...])
        if claimed == pod.status.resource_claim_statuses:
            return pod, claims
        status = msgspec.structs.replace(pod.status, resource_claim_statuses=claimed)
        return msgspec.structs.replace(pod, status=status), claims

    def framework_for(self, pod: Pod) -> Framework:
        """The profile that the pod asks for.

        Raises:
            ClusterError: there is no such profile.
            ManifestError: the pod's requests cannot be parsed.
        """
        return self._state.framework_for(pod)

    def read_pod(self, pod: PodLike) -> Pod:
        """The typed pod, with missing fields filled in; of a workload one of its pods.

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

    def _own(self) -> ClusterState:
        """The state, copied first if another cluster or an evaluation still reads it."""
        if self._state.is_shared or self._state.evaluations:
            self._state = self._state.fork()
        return self._state

    def read(self, manifest: object) -> tuple[ResourceType[Any], Any]:
        """The typed object, with missing fields filled in, and its resource type.

        Raises:
            ManifestError: it cannot be read, or a scheduler does not read its kind.
        """
        resource = resource_of(manifest) if isinstance(manifest, Mapping) else None
        if resource is None:
            raise ManifestError("expected an object of a kind that schedulers read, with apiVersion and kind")
        named = with_free_name(cast(Manifest, manifest), resource, self._state.store)
        return resource, read_manifest(self._state.admission.admit(named, resource), resource)

    def _demand(self, resource: ResourceType[Any], key: str) -> Any:
        found = self._state.store.get(resource, key)
        if found is None:
            raise ManifestError(f"there is no {resource.kind} {key}{nearest(key, self._state.store.objects(resource))}")
        return found

    def _make_room(self, placement: Placement) -> Placement:
        """Carry a preemption out: nominate the pod and remove its victims. Do what plugins want to be written."""
        self.nominate(placement)
        if placement.nominated_node is not None:
            for victim in placement.victims:
                self.drop(PODS, victim)
        return placement


def read_all(found: Iterable[Found], admission: Admission) -> Iterable[tuple[ResourceType[Any], Any]]:
    """The typed objects of the kinds that schedulers read, with missing fields filled in.

    Raises:
        ManifestError: an object cannot be read. The message says where it is.
    """
    for each in found:
        resource = resource_of(each.manifest)
        if resource is not None:
            yield resource, read_object(each, resource, admission)


def read_object(found: Found, resource: ResourceType[Any], admission: Admission) -> Any:
    """As `read_all`, for one object."""
    try:
        return read_manifest(admission.admit(found.manifest, resource), resource)
    except ManifestError as error:
        raise ManifestError(f"{found.where}: {error}") from None


def _before_others(pod: Pod) -> tuple[int, str, str]:
    return -pod.priority, pod.metadata.namespace, pod.metadata.name


def unbound(pod: Pod) -> Pod:
    """The pod without a node, and of its status only the claims that were made for it."""
    status = PodStatus(resource_claim_statuses=pod.status.resource_claim_statuses)
    return Pod(metadata=pod.metadata, spec=pod.spec, status=status)


def stays_on_node(pod: Pod) -> bool:
    """Whether a drain leaves the pod on its node."""
    owners = pod.metadata.owner_references
    return _MIRROR_POD in pod.metadata.annotations or any(each.kind == "DaemonSet" for each in owners)
