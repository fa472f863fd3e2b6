"""Templates: what the NodeClaims of each NodePool look like, in the order in which NodePools are tried.

Owns which NodePools can be bought from, and why one is skipped.

Source: karpenter pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go and
pkg/controllers/provisioning/provisioner.go, v1.15.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from podium.objects.core import Taint
from podium.provisioner.apis.dialects import NODE_LABELS
from podium.provisioner.apis.labels import NODE_CLASS, NODE_POOL, SIMULATED
from podium.provisioner.apis.objects import NodeClassReference, NodePool
from podium.provisioner.cloudprovider.instance_type_filter import InstanceTypeFilter, Options
from podium.provisioner.cloudprovider.instance_types import InstanceType
from podium.provisioner.provisioning.reasons import Reason
from podium.provisioner.provisioning.topology import pool_requirements
from podium.provisioner.scheduling.requirements import Requirement, Requirements

_NONE_LEFT: Final = "NodePool requirements filtered out all compatible available instance types"
_NONE_SUITS: Final = "nothing can be bought from it"
_TOO_ALIKE: Final = "the instance types that it allows have fewer different values than its minValues demand"


@dataclass(frozen=True, eq=False)
class Template:
    """The start of a NodePool's NodeClaims.

    Attributes:
        instance_types: Those that meet the NodePool's requirements.
        mask: The same as bits.
    """

    pool: NodePool
    requirements: Requirements
    instance_types: tuple[InstanceType, ...]
    mask: int

    @property
    def name(self) -> str:
        """The NodePool's name."""
        return self.pool.metadata.name

    @property
    def taints(self) -> tuple[Taint, ...]:
        """The taints that the nodes keep."""
        return self.pool.spec.template.spec.taints


def usable_pools(
    node_pools: Iterable[NodePool], node_class: tuple[str, str] | None = NODE_CLASS
) -> tuple[NodePool, ...]:
    """Return the NodePools that nodes can be bought from: by weight, the heaviest first, then by name, the last first.

    Args:
        node_class: group and kind of the provider's node class; None for any provider's.
    """
    usable = (pool for pool in node_pools if unusable_reason(pool, node_class) is None)
    # Both descending: upstream sorts by weight and name, and reverses the whole.
    return tuple(sorted(usable, key=lambda pool: (pool.spec.weight or 0, pool.metadata.name), reverse=True))


def template_of(
    pool: NodePool,
    types_filter: InstanceTypeFilter,
    *,
    lower_min_values: bool,
) -> Template | str:
    """Return the NodePool's template, or the reason why the NodePool is skipped."""
    requirements, columns = _template_requirements(pool), types_filter.columns
    all_groups = [types_filter.everything]
    options = types_filter.filter_types(
        columns.all, all_groups, requirements, {}, pod_requests={}, lower_min_values=lower_min_values
    )
    if isinstance(options, Options):
        return Template(pool, requirements, columns.types_in(options.mask), options.mask)
    # Asked again with lower minimums only to know which of two reasons to tell.
    lowered_options = types_filter.filter_types(
        columns.all, all_groups, requirements, {}, pod_requests={}, lower_min_values=True
    )
    if isinstance(lowered_options, Options) and lowered_options.lowered_min_values:
        return Reason(f"{_NONE_LEFT} due to minValues incompatibility", _TOO_ALIKE)
    return Reason(_NONE_LEFT, _NONE_SUITS)


def _template_requirements(pool: NodePool) -> Requirements:
    node_class = pool.spec.template.spec.node_class_ref
    labels = {
        NODE_POOL: pool.metadata.name,
        f"{node_class.group}/{node_class.kind.lower()}": node_class.name,
        # A node has these labels once it has joined; pods may select them, so the simulation must not refuse such pods.
        **dict.fromkeys(SIMULATED, "true"),
        **NODE_LABELS.get(node_class.group, {}),
    }
    return pool_requirements(pool).union(Requirement.of(key, "In", (value,)) for key, value in labels.items())


def is_of_provider(reference: NodeClassReference, node_class: tuple[str, str] | None) -> bool:
    """Return True if the NodePool or the NodeClaim with this node class is the provider's.

    Args:
        node_class: group and kind of the provider's node class; None for any provider's.
    """
    return node_class is None or (reference.group, reference.kind) == node_class


def unusable_reason(pool: NodePool, node_class: tuple[str, str] | None = NODE_CLASS) -> str | None:
    """Return the reason why nothing can be bought from the NodePool, whatever the pods, or None if it can."""
    reference = pool.spec.template.spec.node_class_ref
    states = {condition.type: condition.status for condition in pool.status.conditions}
    # An absent condition counts as Unknown: a NodePool whose controller has not looked at it yet is not bought from.
    if states.get("Ready") != "True" or not {"ValidationSucceeded", "NodeClassReady"} <= states.keys():
        return "NodePool is not ready"
    if not is_of_provider(reference, node_class):
        return f"NodePool is of another provider, {reference.group}/{reference.kind}"
    if pool.spec.replicas is not None:
        return "NodePool has a fixed number of replicas"
    return None if pool.metadata.deletion_timestamp is None else "NodePool is being deleted"
