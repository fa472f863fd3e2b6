"""The typed ``args`` of the in-tree plugins that take args, with upstream's defaults.

Owns the values only. A plugin receives its Args object complete and validated, so it need not check it again.

Source: staging kube-scheduler/config/v1/types_pluginargs.go, apis/config/v1/defaults.go (kube-scheduler 1.36.2)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"
SYSTEM_DEFAULTING: Final = "System"
LIST_DEFAULTING: Final = "List"


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """A resource and its weight in a score."""

    name: str
    weight: int = 1


DEFAULT_RESOURCES: Final = (ResourceSpec("cpu"), ResourceSpec("memory"))


@dataclass(frozen=True, slots=True)
class UtilizationShapePoint:
    """One point of a scoring function: utilization in percent (0-100) → score (0-10)."""

    utilization: int
    score: int


@dataclass(frozen=True, slots=True)
class RequestedToCapacityRatio:
    """The parameters of the scoring strategy with that name."""

    shape: tuple[UtilizationShapePoint, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    """NodeResourcesFit's rule for scoring a node."""

    type: str
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


@dataclass(frozen=True, slots=True)
class TopologySpreadConstraint:
    """A default constraint of PodTopologySpread; fields as in the core/v1 type of that name."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    label_selector: Mapping[str, Any] | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DefaultPreemptionArgs:
    """The minimum number of candidate nodes of a preemption dry run: a percentage and a count."""

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


@dataclass(frozen=True, slots=True)
class DynamicResourcesArgs:
    """Time limits in seconds; a filter timeout of 0 means no limit. None if the feature gate is off.

    `has_taint_rules`: DeviceTaintRules taint devices, too.
    `has_fractional_ranges`: the amounts of a capacity that can be requested may be fractions.
    """

    filter_timeout_s: float | None = 10.0
    binding_timeout_s: float | None = 600.0
    has_taint_rules: bool = field(default=True, metadata={"set_by": "DRADeviceTaintRules"})
    has_fractional_ranges: bool = field(default=False, metadata={"set_by": "DRAFractionalCapacityRange"})


@dataclass(frozen=True, slots=True)
class InterPodAffinityArgs:
    """The weight of the implicit preferred term behind each required one, 0-100."""

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


@dataclass(frozen=True, slots=True)
class NodeAffinityArgs:
    """Affinity that is added to that of every pod of the profile, in core/v1 ``NodeAffinity`` JSON shape."""

    added_affinity: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class NodeResourcesBalancedAllocationArgs:
    """The resources whose utilization should be similar on a node."""

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES


@dataclass(frozen=True, slots=True)
class NodeResourcesFitArgs:
    """Extended resources (or whole groups of them) that Filter ignores, and the scoring strategy."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(LEAST_ALLOCATED)


@dataclass(frozen=True, slots=True)
class PodTopologySpreadArgs:
    """Constraints for pods that define none; ``System`` means upstream's two built-in ones."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = SYSTEM_DEFAULTING


@dataclass(frozen=True, slots=True)
class VolumeBindingArgs:
    """Seconds that PreBind waits for volumes; the shape is refused if StorageCapacityScoring is off."""

    bind_timeout_s: int = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None


@dataclass(frozen=True, slots=True)
class RawArgs:
    """Args of a plugin that is not in-tree (or takes none): the decoded JSON value, not to be modified."""

    value: Any


InTreeArgs = (
    DefaultPreemptionArgs
    | DynamicResourcesArgs
    | InterPodAffinityArgs
    | NodeAffinityArgs
    | NodeResourcesBalancedAllocationArgs
    | NodeResourcesFitArgs
    | PodTopologySpreadArgs
    | VolumeBindingArgs
)

ARGS_BY_PLUGIN: Final[Mapping[str, type[InTreeArgs]]] = {
    "DefaultPreemption": DefaultPreemptionArgs,
    "DynamicResources": DynamicResourcesArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "NodeResourcesFit": NodeResourcesFitArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "VolumeBinding": VolumeBindingArgs,
}
