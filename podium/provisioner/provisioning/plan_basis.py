"""The parts that all plans over one cluster share: templates, the pods of DaemonSets, volumes, and instance types.

Owns what does not depend on which pods are planned, or on which nodes. It is made once, however many plans are made
from it, and only remembers what was asked before.

Source: karpenter pkg/controllers/provisioning/provisioner.go (NewScheduler), v1.15.0.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from podium.engine.gangs import Gang, gangs_of
from podium.engine.store import ObjectStore
from podium.objects.core import Pod
from podium.objects.requests import Requests, whole_amounts
from podium.provisioner.apis.objects import ClusterObjects
from podium.provisioner.cloudprovider.catalogue import Catalogue
from podium.provisioner.cloudprovider.instance_type_filter import DaemonGroup, InstanceTypeFilter
from podium.provisioner.cloudprovider.overlays import with_overlays
from podium.provisioner.provisioning.daemons import Daemons
from podium.provisioner.provisioning.default_spreads import DefaultSpreads
from podium.provisioner.provisioning.existing_nodes import NodeRoom
from podium.provisioner.provisioning.relaxation import PREFER_NO_SCHEDULE
from podium.provisioner.provisioning.templates import Template, template_of, usable_pools
from podium.provisioner.provisioning.topology import TopologyBasis, domains_of
from podium.provisioner.provisioning.unknown_labels import LabelKnowledge
from podium.provisioner.scheduling.requirements import Requirements
from podium.provisioner.scheduling.volumes import VolumeError, Volumes
from podium.provisioner.state.settings import Settings
from podium.provisioner.state.state_node import StateNode, state_nodes


@dataclass(frozen=True, slots=True, eq=False)
class PreparedPod:
    """A pod with the cluster's default constraints.

    Attributes:
        volume_alternatives: What its volumes require of a node: any one of these; empty if they require nothing.
        has_volumes: Whether its volumes were found. A pod without gets no constraints, and until it is first refused
            its rules about other pods do not count.
    """

    pod: Pod
    volume_alternatives: tuple[Requirements, ...] = ()
    has_volumes: bool = True


class PlanBasis:
    """The start of all plans over these objects.

    Args:
        objects: the cluster.

    Attributes:
        nodes: All nodes, in order of name.
        topology: The nodes and the pods on them, as topologies count them.
        well_known: The labels that a NodeClaim need not define.
        pools: The NodePools that nodes can be bought from, in the order in which they are tried.
        labels: The labels that the catalogue can answer for.
        skipped: By NodePool, why it is not bought from.
        templates: The others' templates, in their order, each with its groups of instance types.
        limits: By NodePool, how much it may have in all.

    Raises:
        FieldError: an object has a value that has no meaning.
    """

    def __init__(self, objects: ClusterObjects, catalogue: Catalogue, settings: Settings) -> None:
        self.catalogue = catalogue
        self.settings = settings
        pools = usable_pools(objects.node_pools, settings.node_class)
        self._overlay_faults: tuple[str, ...] = tuple(
            f"NodeOverlay {overlay.metadata.name} is not counted, since the feature gate NodeOverlay is off"
            for overlay in objects.overlays
            if not settings.uses_overlays
        )
        if objects.overlays and settings.uses_overlays:
            catalogue, self._overlay_faults = with_overlays(catalogue, objects.overlays, pools, catalogue.well_known)
            self.catalogue = catalogue
        self.labels = LabelKnowledge.of(objects, pools, catalogue, settings)
        self.well_known = self.labels.well_known
        self.pools = tuple(map(self.labels.usable_form, pools))
        self.types_filter = InstanceTypeFilter(catalogue.instance_types, self.well_known)
        self.volumes = Volumes(objects)
        self._domains = domains_of(self.pools, catalogue.instance_types)
        self.limits: Mapping[str, Requests] = {
            pool.metadata.name: whole_amounts(pool.spec.limits, "spec.limits")
            for pool in self.pools
            if pool.spec.limits
        }
        # Pods tolerate PreferNoSchedule as a last resort only where some NodePool has such a taint; otherwise it would
        # be a step in vain.
        self.tolerates_preferences = any(
            taint.effect == PREFER_NO_SCHEDULE for pool in self.pools for taint in pool.spec.template.spec.taints
        )
        self.skipped: dict[str, str] = {}
        self.templates: list[tuple[Template, tuple[DaemonGroup, ...]]] = []
        self._daemons = Daemons(objects, self.well_known)
        self._spreads = DefaultSpreads(objects, settings.default_constraints)
        self._csi_nodes = {csi_node.metadata.name: csi_node for csi_node in objects.csi_nodes}
        self._take(objects)
        self._read_templates()

    @property
    def warnings(self) -> tuple[str, ...]:
        """The sentences that name what does not count in plans, though it was given."""
        return (*self.objects.warnings, *self._overlay_faults, *self.labels.warnings())

    @cached_property
    def has_unavailable(self) -> bool:
        """Return True if the catalogue has offerings that are not available now."""
        types = self.catalogue.instance_types
        return any(not offering.is_available for instance_type in types for offering in instance_type.offerings)

    def with_nodes_of(self, objects: ClusterObjects) -> PlanBasis:
        """Return the basis of the same cluster with other nodes, NodeClaims and pods; it shares everything else."""
        basis = copy.copy(self)
        basis._take(objects)
        return basis

    def without_limits(self) -> PlanBasis:
        """Return the basis as it were if no NodePool had limits; it shares everything else."""
        basis = copy.copy(self)
        basis.limits = {}
        return basis

    def _take(self, objects: ClusterObjects) -> None:
        self.objects = objects
        self.nodes = state_nodes(objects)
        self.topology = TopologyBasis(objects, self.nodes, self._domains)
        self._pods: dict[str, list[Pod]] = defaultdict(list)
        for pod in objects.pods:
            if pod.node_name:
                self._pods[pod.node_name].append(pod)
        self._prepared: dict[str, PreparedPod] = {}
        self._rooms: dict[StateNode, NodeRoom] = {}
        self._gangs: Sequence[Gang] | None = None

    @property
    def gangs(self) -> Sequence[Gang]:
        """The gangs of the cluster, without pods that have ended."""
        if self._gangs is None:
            pods = (pod for pod in self.objects.pods if not pod.has_ended)
            self._gangs = gangs_of(ObjectStore(self.objects.others), pods)
        return self._gangs

    def prepare(self, pod: Pod) -> PreparedPod:
        """Return the pod as it is planned."""
        prepared_pod = self._prepared.get(pod.key)
        if prepared_pod is None:
            prepared_pod = self._prepared[pod.key] = self._prepare(pod)
        return prepared_pod

    def pods_on(self, state: StateNode) -> Sequence[Pod]:
        """Return all pods on the node, those that have ended too, in order of namespace and name."""
        return self._pods.get(state.node.metadata.name, ()) if state.node is not None else ()

    def room(self, state: StateNode) -> NodeRoom:
        """Return the resources that the node has left before anything is planned."""
        room = self._rooms.get(state)
        if room is None:
            csi_node = self._csi_nodes.get(state.node.metadata.name) if state.node is not None else None
            room = NodeRoom.of(state, self._daemons.on_node(state), self.volumes, csi_node)
            self._rooms[state] = room
        return room

    def _prepare(self, pod: Pod) -> PreparedPod:
        # Pods of leaving nodes are not validated; one whose volume is gone is planned all the same, as upstream.
        try:
            alternatives = self.volumes.alternatives(pod)
        except VolumeError:
            return PreparedPod(pod, has_volumes=False)
        return PreparedPod(self._spreads.with_defaults(pod), alternatives)

    def _read_templates(self) -> None:
        for pool in self.pools:
            template = self.labels.refusal_of(pool) or template_of(
                pool,
                self.types_filter,
                lower_min_values=self.settings.lower_min_values,
            )
            if isinstance(template, str):
                self.skipped[pool.metadata.name] = template
            else:
                self.templates.append((template, self._daemons.groups_of(template)))
