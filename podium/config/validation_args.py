"""Validates the args of the in-tree plugins: one function per Args type, and one table.

Each function receives the path of the args, the args, the feature gates and the error list. None modifies anything.

Source: apis/config/validation/validation_pluginargs.go (kube-scheduler 1.36.2)
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from podium.config import args as a
from podium.config.duration import format_duration
from podium.config.feature_gates import ConfigGates
from podium.config.field_errors import ErrorList
from podium.config.names import label_key_errors
from podium.config.node_affinity import validate_node_affinity

_SCORING_STRATEGIES: Final = (a.LEAST_ALLOCATED, a.MOST_ALLOCATED, a.REQUESTED_TO_CAPACITY_RATIO)
_DEFAULTING_TYPES: Final = (a.SYSTEM_DEFAULTING, a.LIST_DEFAULTING)
_WHEN_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_GATE_OFF_SHAPE: Final = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"


def _label_name(path: str, name: str, errors: ErrorList) -> None:
    for detail in label_key_errors(name):
        errors.invalid(path, name, detail)


def default_preemption(path: str, args: a.DefaultPreemptionArgs, _: ConfigGates, errors: ErrorList) -> None:
    """Check a percentage and a count, of which at least one must be positive."""
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    percentage_path, absolute_path = f"{path}.minCandidateNodesPercentage", f"{path}.minCandidateNodesAbsolute"
    if not 0 <= percentage <= 100:
        errors.invalid(percentage_path, percentage, "not in valid range [0, 100]")
    if absolute < 0:
        errors.invalid(absolute_path, absolute, "not in valid range [0, inf)")
    # Both errors, as upstream: either field may be the one to correct.
    if percentage == 0 and absolute == 0:
        detail = "cannot be zero at the same time as"
        errors.invalid(percentage_path, percentage, f"{detail} minCandidateNodesAbsolute")
        errors.invalid(absolute_path, absolute, f"{detail} minCandidateNodesPercentage")


def dynamic_resources(path: str, args: a.DynamicResourcesArgs, gates: ConfigGates, errors: ErrorList) -> None:
    """Check two timeouts, each behind its feature gates."""
    timeout_s = args.filter_timeout_s
    if timeout_s is not None and not gates.has("DRASchedulerFilterTimeout"):
        # Upstream's text misspells the gate.
        detail = "DRASchedulingFilterTimeout feature gate is disabled"
        errors.forbidden(f"{path}.filterTimeout", detail)
    elif timeout_s is not None and timeout_s < 0:
        errors.invalid(f"{path}.filterTimeout", format_duration(timeout_s), "must be zero or positive")
    timeout_s = args.binding_timeout_s
    if timeout_s is not None and not gates.dra_binding_timeout:
        detail = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
        errors.forbidden(f"{path}.bindingTimeout", detail)
    elif timeout_s is not None and timeout_s < 1:
        errors.invalid(f"{path}.bindingTimeout", format_duration(timeout_s), "must be at least 1 second")


def inter_pod_affinity(path: str, args: a.InterPodAffinityArgs, _: ConfigGates, errors: ErrorList) -> None:
    """Check that the weight is in range."""
    if not 0 <= args.hard_pod_affinity_weight <= 100:
        weight_path = f"{path}.hardPodAffinityWeight"
        errors.invalid(weight_path, args.hard_pod_affinity_weight, "not in valid range [0, 100]")


def node_affinity(path: str, args: a.NodeAffinityArgs, _: ConfigGates, errors: ErrorList) -> None:
    """Check that the selectors parse."""
    if args.added_affinity is not None:
        validate_node_affinity(f"{path}.addedAffinity", args.added_affinity, errors)


def balanced_allocation(
    path: str, args: a.NodeResourcesBalancedAllocationArgs, _: ConfigGates, errors: ErrorList
) -> None:
    """Check that each resource occurs once, with weight 1."""
    names: set[str] = set()
    for i, resource in enumerate(args.resources):
        if resource.name in names:
            errors.duplicate(f"{path}.resources[{i}].name", resource.name)
        names.add(resource.name)
        if resource.weight != 1:
            # Weights make no difference to a balance of fractions.
            errors.invalid(f"{path}.resources[{i}].weight", resource.weight, "must be 1")


def node_resources_fit(path: str, args: a.NodeResourcesFitArgs, _: ConfigGates, errors: ErrorList) -> None:
    """Check resource names, resource group names and the scoring strategy."""
    for i, name in enumerate(args.ignored_resources):
        _label_name(f"{path}.ignoredResources[{i}]", name, errors)
    for i, group in enumerate(args.ignored_resource_groups):
        if "/" in group:
            group_path = f"{path}.ignoredResourceGroups[{i}]"
            errors.invalid(group_path, group, "resource group name can't contain '/'")
        _label_name(f"{path}.ignoredResourceGroups[{i}]", group, errors)
    _scoring_strategy(f"{path}.scoringStrategy", args.scoring_strategy, errors)


def _scoring_strategy(path: str, strategy: a.ScoringStrategy, errors: ErrorList) -> None:
    if strategy.type not in _SCORING_STRATEGIES:
        errors.not_supported(f"{path}.type", strategy.type, _SCORING_STRATEGIES)
    for i, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= 100:
            detail = f"resource weight of {resource.name} not in valid range (0, 100]"
            errors.invalid(f"{path}.resources[{i}].weight", resource.weight, detail)
    ratio_path, ratio = f"{path}.requestedToCapacityRatio", strategy.requested_to_capacity_ratio
    if strategy.type != a.REQUESTED_TO_CAPACITY_RATIO:
        if ratio is not None:
            errors.forbidden(ratio_path, "must be nil when type is not RequestedToCapacityRatio")
    elif ratio is None:
        errors.required(ratio_path, "must be specified when type is RequestedToCapacityRatio")
    else:
        _function_shape(f"{ratio_path}.shape", ratio.shape, errors)


def _function_shape(path: str, shape: Sequence[a.UtilizationShapePoint], errors: ErrorList) -> None:
    if not shape:
        errors.required(path, "at least one point must be specified")
    for i in range(1, len(shape)):
        if shape[i - 1].utilization >= shape[i].utilization:
            detail = "values must be sorted in increasing order"
            errors.invalid(f"{path}[{i}].utilization", shape[i].utilization, detail)
            # One error, because every later point would be out of order as well.
            break
    for i, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            errors.invalid(f"{path}[{i}].utilization", point.utilization, "not in valid range [0, 100]")
        if not 0 <= point.score <= 10:
            errors.invalid(f"{path}[{i}].score", point.score, "not in valid range [0, 10]")


def pod_topology_spread(path: str, args: a.PodTopologySpreadArgs, _: ConfigGates, errors: ErrorList) -> None:
    """Check the default constraints, which must be empty if the system's own are used."""
    if args.defaulting_type not in _DEFAULTING_TYPES:
        errors.not_supported(f"{path}.defaultingType", args.defaulting_type, _DEFAULTING_TYPES)
    elif args.defaulting_type == a.SYSTEM_DEFAULTING and args.default_constraints:
        detail = "when .defaultConstraints are not empty"
        errors.invalid(f"{path}.defaultingType", args.defaulting_type, detail)
    identities: set[tuple[str, str]] = set()
    for i, constraint in enumerate(args.default_constraints):
        constraint_path = f"{path}.defaultConstraints[{i}]"
        _spread_constraint(constraint_path, constraint, errors)
        identity = (constraint.topology_key, constraint.when_unsatisfiable)
        if identity in identities:
            errors.duplicate(constraint_path, f"{{{', '.join(identity)}}}")
        identities.add(identity)


def _spread_constraint(path: str, constraint: a.TopologySpreadConstraint, errors: ErrorList) -> None:
    if constraint.max_skew <= 0:
        errors.invalid(f"{path}.maxSkew", constraint.max_skew, "not in valid range (0, inf)")
    if constraint.topology_key:
        _label_name(f"{path}.topologyKey", constraint.topology_key, errors)
    else:
        errors.required(f"{path}.topologyKey", "can not be empty")
    action_path, action = f"{path}.whenUnsatisfiable", constraint.when_unsatisfiable
    if not action:
        errors.required(action_path, "can not be empty")
    elif action not in _WHEN_UNSATISFIABLE:
        errors.not_supported(action_path, action, _WHEN_UNSATISFIABLE)
    # Default constraints get the selector of the pod's own workload.
    if constraint.label_selector is not None:
        detail = "constraint must not define a selector, as they deduced for each pod"
        errors.forbidden(f"{path}.labelSelector", detail)


def volume_binding(path: str, args: a.VolumeBindingArgs, gates: ConfigGates, errors: ErrorList) -> None:
    """Check the timeout, and that a shape is set only if its feature gate is on."""
    if args.bind_timeout_s < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        errors.invalid(f"{path}.bindTimeoutSeconds", args.bind_timeout_s, detail)
    if gates.has("StorageCapacityScoring"):
        _function_shape(f"{path}.shape", args.shape or (), errors)
    elif args.shape is not None:
        points = [{"utilization": point.utilization, "score": point.score} for point in args.shape]
        errors.invalid(f"{path}.shape", points, _GATE_OFF_SHAPE)


ArgsValidator = Callable[[str, Any, ConfigGates, ErrorList], None]

ARGS_VALIDATORS: Final[Mapping[type, ArgsValidator]] = {
    a.DefaultPreemptionArgs: default_preemption,
    a.DynamicResourcesArgs: dynamic_resources,
    a.InterPodAffinityArgs: inter_pod_affinity,
    a.NodeAffinityArgs: node_affinity,
    a.NodeResourcesBalancedAllocationArgs: balanced_allocation,
    a.NodeResourcesFitArgs: node_resources_fit,
    a.PodTopologySpreadArgs: pod_topology_spread,
    a.VolumeBindingArgs: volume_binding,
}
