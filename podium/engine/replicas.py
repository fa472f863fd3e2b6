"""Counts the copies of a pod that would be bound, in a dry run of the scheduler that leaves the cluster unchanged.

If copies do not affect each other, they are counted from the columns. If they do (affinity, spreading, host ports,
volumes, devices), they are placed one by one, as the scheduler would place them. Used by the estimator's accurate mode
and by `podium capacity`.

Cost: one pass over the nodes for copies that do not affect each other, otherwise one scheduling attempt per copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

import msgspec
import numpy as np

from podium.cluster import IntArray, Snapshot
from podium.engine.placing import Engine, PlacedPod
from podium.framework.contract.status import Code, ScheduleError, Status
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.schedule import Failed, Suggested
from podium.framework.cycle.search import Rotation, filter_all
from podium.framework.profile.runtime import Framework
from podium.objects.affinity import Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from podium.objects.core import Pod, PodSpec, once_per_spec
from podium.objects.meta import OwnerReference
from podium.objects.requests import filter_requests
from podium.objects.selectors import NODE_NAME_FIELD
from podium.plugins import IN_TREE
from podium.plugins.node_resources_fit import NodeResourcesFit
from podium.plugins.pod_topology_spread.plugin import PodTopologySpread

PLACED_MAX: Final = 10_000
"""The maximum number of copies that are placed one by one, and so the largest answer in that case."""


ClaimCreator: TypeAlias = Callable[[Pod], Pod]
"""Creates the claims that belong to one pod, and returns the pod with their names."""


def no_claims(pod: Pod) -> Pod:
    """Return the pod unchanged. Implements `ClaimCreator` where no copy has claims of its own."""
    return pod


class Replicas:
    """The pods placed during one dry run. `undo` removes them from the cluster, but not the claims created for them.

    Args:
        makes_room: whether PostFilter plugins say how to make room for a pod that does not fit.
    """

    def __init__(
        self,
        engine: Engine,
        framework: Framework,
        create_claims: ClaimCreator = no_claims,
        *,
        makes_room: bool = True,
    ) -> None:
        self._create_claims = create_claims
        self._makes_room = makes_room
        # Each run starts its node searches at the first node, so that equal runs give equal results.
        self._engine = replace(engine, rotation=Rotation())
        self._framework = framework
        self._placed: list[PlacedPod] = []
        self._infeasible_keys: set[tuple[str, int, tuple[tuple[str, str], ...]]] = set()
        self._daemon_nodes: dict[tuple[str, OwnerReference], Iterator[str]] = {}

    def has_no_nodes(self) -> bool:
        """Return whether the cluster has no nodes."""
        return not len(self._engine.cache.snapshot())

    def gate_of(self, pod: Pod, framework: Framework | None = None) -> Status | None:
        """Return the status of the first PreEnqueue plugin that gates the pod; None if none does."""
        pod = self._create_claims(pod)
        for plugin in (framework or self._framework).pre_enqueue:
            status = plugin.pre_enqueue(pod)
            if status is not None and status.code is not Code.SUCCESS:
                return status.by(plugin.name)
        return None

    def count(self, pod: Pod) -> Mapping[str, int] | None:
        """Return how many copies fit on each feasible node; None if they have to be placed one by one."""
        is_alone = pod.spec.scheduling_group is None
        if not (is_alone and _competes_only_for_resources(pod.spec) and self._can_use_columns()):
            return None
        if is_daemon(pod):
            return dict.fromkeys(self._nodes_without_daemon(self._engine.cycle(self._framework, pod)), 1)
        cycle = self._engine.cycle(self._framework, pod)
        snapshot, rows = cycle.snapshot, filter_all(cycle).rows
        # Each copy uses up only its own requests, so dividing the free capacity gives the count of placing one by one.
        counts = snapshot.allowed_pods.take(rows) - snapshot.pod_count.take(rows)
        for fit_counts in fits_by_resource(snapshot, pod.spec).values():
            np.minimum(counts, fit_counts.take(rows), out=counts)
        if len(counts) and counts.min() < 1:
            return None  # the filters passed this node although the columns have no room: only placing can tell
        return {snapshot.name(row): count for row, count in zip(rows.tolist(), counts.tolist(), strict=True)}

    def _nodes_without_daemon(self, cycle: Cycle) -> list[str]:
        """Return the nodes that pass the filters and have no pod of the same DaemonSet."""
        owner, namespace = cycle.pod.metadata.controller, cycle.pod.metadata.namespace
        return [
            cycle.snapshot.name(row)
            for row in filter_all(cycle).rows.tolist()
            if not any(
                existing.metadata.namespace == namespace and existing.metadata.controller == owner
                for existing in cycle.snapshot.node(row).pods
            )
        ]

    def _can_use_columns(self) -> bool:
        """Return whether the columns give the same verdicts as the profile.

        They do if it has only in-tree plugins, NodeResourcesFit among them with no resource ignored, no Permit plugin
        and no default spread constraint that rejects, and if no pod is nominated.
        """
        framework = self._framework
        fit, spread = (framework.plugins.get(plugin.name) for plugin in (NodeResourcesFit, PodTopologySpread))
        return (
            framework.plugins.keys() <= IN_TREE.keys()
            and not framework.permit
            and not self._engine.nominator.node_names()
            and isinstance(fit, NodeResourcesFit)
            and fit.ignores_nothing
            and any(entry.plugin is fit for entry in framework.filters)
            and not (isinstance(spread, PodTopologySpread) and spread.may_reject_by_default)
        )

    def place_if_feasible(self, pod: Pod, framework: Framework | None = None) -> None:
        """Attempt to place a pod, unless an identical pod did not fit and nothing has been placed since."""
        # Copies share one spec object, so its id stands for the spec in the key.
        copy_key = (pod.metadata.namespace, id(pod.spec), tuple(sorted(pod.metadata.labels.items())))
        if copy_key in self._infeasible_keys:
            return
        if self.place(pod, framework) is None and not pod.status.nominated_node_name:
            self._infeasible_keys.add(copy_key)

    def place(self, pod: Pod, framework: Framework | None = None) -> str | None:
        """Attempt to place a pod, and return its node; None if the pod is gated or does not fit.

        Args and Raises: as `attempt`.
        """
        outcome = self.attempt(pod, framework)
        return outcome.node_name if isinstance(outcome, PlacedPod) else None

    def attempt(self, pod: Pod, framework: Framework | None = None) -> PlacedPod | str:
        """Attempt to place a pod; return the reason instead if it is gated or does not fit.

        A DaemonSet's pod is placed on the next node that takes one, and each node is tried once.

        Args:
            framework: the pod's profile, if it differs from the one given to the constructor.

        Raises:
            ScheduleError: the attempt failed with an error, not because the pod does not fit.
        """
        gate = self.gate_of(pod, framework)
        if gate is not None:
            return gate.message
        pod, framework = self._create_claims(pod), framework or self._framework
        owner = pod.metadata.controller
        if owner is None or owner.kind != "DaemonSet":
            return self._attempt(pod, framework)
        key = pod.metadata.namespace, owner
        if (nodes := self._daemon_nodes.get(key)) is None:
            nodes = iter(self._nodes_without_daemon(self._engine.cycle(framework, pod)))
            self._daemon_nodes[key] = nodes
        outcome: PlacedPod | str = "each node has a pod of the DaemonSet, or takes none"
        for node in nodes:
            outcome = self._attempt(Pod(metadata=pod.metadata, spec=pinned_spec(pod.spec, node)), framework)
            if isinstance(outcome, PlacedPod):
                break
        return outcome

    def _attempt(self, pod: Pod, framework: Framework) -> PlacedPod | str:
        cycle = self._engine.cycle(framework, pod)
        cycle.makes_room = self._makes_room
        decision = self._engine.decide(cycle)
        if isinstance(decision, Failed):
            raise ScheduleError(decision.status.message)
        if not isinstance(decision, Suggested):
            return decision.error.message
        placed_pod = self._engine.place(cycle, decision.node_name)
        if placed_pod.status is not None:
            self._engine.take_back(placed_pod)
            return placed_pod.status.message
        self._placed.append(placed_pod)
        # The placed pod may satisfy the affinity of a pod that did not fit before.
        self._infeasible_keys.clear()
        return placed_pod

    def take_back_last(self) -> bool:
        """Remove the pod that was placed last, and return whether there was one."""
        if not self._placed:
            return False
        self._engine.take_back(self._placed.pop())
        self._engine.cache.snapshot()
        return True

    def undo(self) -> None:
        """Remove all placed pods from the cluster."""
        while self._placed:
            self._engine.take_back(self._placed.pop())
        self._engine.cache.snapshot()


def is_daemon(pod: Pod) -> bool:
    """Return whether the pod belongs to a DaemonSet, which has one pod on each node."""
    return pod.metadata.controller is not None and pod.metadata.controller.kind == "DaemonSet"


def pinned_spec(spec: PodSpec, node_name: str) -> PodSpec:
    """Return the spec as the DaemonSet controller pins it to a node: by its required node affinity."""
    field = NodeSelectorRequirement(key=NODE_NAME_FIELD, operator="In", values=(node_name,))
    selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(field,)),))
    affinity = spec.affinity or Affinity()
    node_affinity = msgspec.structs.replace(affinity.node_affinity or NodeAffinity(), required=selector)
    return msgspec.structs.replace(spec, affinity=msgspec.structs.replace(affinity, node_affinity=node_affinity))


def fits_by_resource(snapshot: Snapshot, spec: PodSpec) -> Mapping[str, IntArray]:
    """Return, by resource, how many times the request fits into each node's free capacity. Shape: one entry per row."""
    return {
        resource: (snapshot.allocatable(resource) - snapshot.requested(resource)) // amount
        for resource, amount in filter_requests(spec).items()
        if amount > 0
    }


def make_copy(pod: Pod, number: int) -> Pod:
    """Make a copy of the pod with its own name; for a StatefulSet's pod, the pod of a later ordinal with its claims."""
    owner, name = pod.metadata.controller, pod.metadata.name
    prefix, _, ordinal = name.rpartition("-")
    if owner is None or owner.kind != "StatefulSet" or not ordinal.isdecimal():
        metadata = msgspec.structs.replace(pod.metadata, name=f"{name}-{number}", uid=f"{pod.uid}-{number}")
        return Pod(metadata=metadata, spec=pod.spec)
    copy_name = f"{prefix}-{int(ordinal) + number}"
    metadata = msgspec.structs.replace(pod.metadata, name=copy_name, uid=f"{pod.uid}-{number}")
    volumes = tuple(
        msgspec.structs.replace(
            volume, persistent_volume_claim=msgspec.structs.replace(source, claim_name=f"{volume.name}-{copy_name}")
        )
        if (source := volume.persistent_volume_claim) is not None and source.claim_name == f"{volume.name}-{name}"
        else volume
        for volume in pod.spec.volumes
    )
    return Pod(
        metadata=metadata,
        spec=pod.spec if volumes == pod.spec.volumes else msgspec.structs.replace(pod.spec, volumes=volumes),
    )


@once_per_spec
def _competes_only_for_resources(spec: PodSpec) -> bool:
    """Return whether copies affect each other only through the resources that they request."""
    affinity = spec.affinity
    pod_affinities = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ()
    containers = (*spec.containers, *spec.init_containers)
    return not (
        any(pod_affinity is not None and pod_affinity.required for pod_affinity in pod_affinities)
        or any(constraint.when_unsatisfiable != "ScheduleAnyway" for constraint in spec.topology_spread_constraints)
        or any(port.host_port for container in containers for port in container.ports)
        or spec.volumes
        or spec.resource_claims
    )
