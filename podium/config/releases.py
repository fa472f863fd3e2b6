"""What differs between the minors of Kubernetes that podium decides as: one value for each, on this one page.

A `Release` is chosen once, when a configuration is completed, and travels with it: plugins find it on their handle,
queue, cache and engine are given it (or the one part that concerns them) when they are made. No other module compares
versions; where behaviour differs, it asks the switch that is named after the difference. A new minor is one more value
here, made from the one before it by `replace`, a file of facts, and the recorded answers of its own code.

Source: pkg/features/kube_features.go, pkg/scheduler (kube-scheduler 1.36.2 and 1.37.2)
"""

from __future__ import annotations

import enum
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from podium.cel import SelectorRules
from podium.config.extension_points import DEFAULT_PLUGINS, ExtensionPoint, InTreePlugin
from podium.config.release_rules import DeviceRules, EventRules, PreemptionRules, QueueRules
from podium.objects.resource_types import DEVICE_TAINT_RULES, POD_GROUPS, EventResource, ObjectT, ResourceType


class Stage(enum.Enum):
    """The maturity of a feature."""

    ALPHA = "alpha"
    BETA = "beta"
    GA = "GA"
    PRE_ALPHA = "PreAlpha"
    """The feature does not exist yet in an emulated version."""


@dataclass(frozen=True, slots=True)
class Gate:
    """One feature gate of a release. podium implements both values of a gate that `is_switchable`.

    Attributes:
        on_with: the minimum compatibility version from which on it is on by default; "" for no such version.
        emulated: of a gate that is not there in an emulated version: that version, as messages name it.
    """

    stage: Stage
    default: bool
    is_locked: bool = False
    is_switchable: bool = False
    on_with: str = ""
    emulated: str = ""


@dataclass(frozen=True, slots=True)
class Release:
    """The rules of one minor.

    Attributes:
        minor: as in `v1.37`, without the `v`.
        gates: the feature gates that exist, by name.
        gate_needs: gate → the gates that must be on for it.
        plugins: the default `multiPoint` list, in order, with the extension points, weight and gate of each plugin.
        absent_points: the extension points that a profile cannot have.
        events: for the queue, the handlers of changes, and plugins that register for events.
        queue: for the queue.
        devices: for the search for devices, and the plugin DynamicResources.
        paths: by the path of a resource, the one of the older version in which its API servers serve it.
        preemption: for PostFilter plugins, and those who evict victims.
        counts_image_volumes: for ImageLocality, an image volume raises the size at which a node gets the full score.
        needs_bind_mount_options: for NodeDeclaredFeatures, a mount with `bindMountOptions` needs a node's feature.
        lists_namespaces: for InterPodAffinity, a term selects namespaces with matching labels; before, also all others,
            if a namespace without labels would match.
        scores_balance_gain: NodeResourcesBalancedAllocation scores by how much the pod improves the balance of a node;
            before, by the balance with the pod.
        sums_resized_pods: a pod that is resized in place counts with the highest of its totals; before, with the total
            of the highest amounts of each container.
        hidden_metrics: those that podium counts and this minor does not have.
        deprecated_metrics: those that this minor shows with `--show-hidden-metrics-for-version` only.
        needs_installed_drivers: a volume needs a node with its CSI driver, if the CSIDriver says so; the default of the
            gate VolumeLimitScaling, and in a completed configuration its value.
    """

    minor: str
    gates: Mapping[str, Gate]
    gate_needs: Mapping[str, tuple[str, ...]]
    plugins: Mapping[str, InTreePlugin]
    absent_points: frozenset[ExtensionPoint]
    events: EventRules
    queue: QueueRules
    devices: DeviceRules
    paths: Mapping[str, str]
    preemption: PreemptionRules
    counts_image_volumes: bool
    needs_bind_mount_options: bool
    lists_namespaces: bool
    scores_balance_gain: bool
    sums_resized_pods: bool
    hidden_metrics: frozenset[str]
    deprecated_metrics: frozenset[str]
    needs_installed_drivers: bool
    default_gates: frozenset[str] = field(init=False)
    """The gates that are on by default."""

    def __post_init__(self) -> None:
        """Derive the gates that are on by default."""
        object.__setattr__(self, "default_gates", frozenset(name for name, gate in self.gates.items() if gate.default))

    def under(self, on_gates: Container[str]) -> Release:
        """Return the rules with those gates on."""
        return replace(self, needs_installed_drivers="VolumeLimitScaling" in on_gates)

    @property
    def minor_before(self) -> str:
        """The minor before this one, which `--show-hidden-metrics-for-version` takes."""
        major, minor = _number(self)
        return f"{major}.{minor - 1}"

    # The mappings cannot be hashed, and a minor has one release.
    def __hash__(self) -> int:
        return hash(self.minor)

    def served(self, resource: ResourceType[ObjectT]) -> ResourceType[ObjectT]:
        """Return the resource at the path at which the release's API servers serve it."""
        return replace(resource, path=self.paths.get(resource.path, resource.path))


_LOCKED: Final = Gate(Stage.GA, default=True, is_locked=True)
_GA_ON: Final = Gate(Stage.GA, default=True)
_BETA_ON: Final = Gate(Stage.BETA, default=True)
_BETA_OFF: Final = Gate(Stage.BETA, default=False)
_ALPHA: Final = Gate(Stage.ALPHA, default=False)


def _switchable(gate: Gate) -> Gate:
    return replace(gate, is_switchable=True)


_PLUGIN_GATES: Final = {row.gate: _switchable(_ALPHA) for row in DEFAULT_PLUGINS.values() if row.gate}
"""A gate that does no more than add plugins to the default set is alpha unless a release says otherwise."""

_GATES_1_36: Final[Mapping[str, Gate]] = {
    **_PLUGIN_GATES,
    "AllAlpha": _ALPHA,
    "AllBeta": _BETA_OFF,
    "ClearingNominatedNodeNameAfterBinding": _BETA_ON,
    "ComponentFlagz": _BETA_ON,
    "ComponentStatusz": _BETA_ON,
    "CoordinatedLeaderElection": _BETA_OFF,
    "DRAAdminAccess": _LOCKED,
    "DRAConsumableCapacity": _BETA_ON,
    "DRADeviceBindingConditions": _switchable(_BETA_ON),
    "DRADeviceTaintRules": _switchable(_BETA_OFF),
    "DRADeviceTaints": _BETA_ON,
    "DRAExtendedResource": _BETA_ON,
    "DRAListTypeAttributes": _ALPHA,
    "DRANodeAllocatableResources": _ALPHA,
    "DRAPartitionableDevices": _BETA_ON,
    "DRAPrioritizedList": _GA_ON,
    "DRAResourceClaimDeviceStatus": _switchable(_BETA_ON),
    "DRASchedulerFilterTimeout": _switchable(_BETA_ON),
    "DRAWorkloadResourceClaims": _ALPHA,
    "DynamicResourceAllocation": _LOCKED,
    "GangScheduling": _switchable(_ALPHA),
    "GenericWorkload": _switchable(_ALPHA),
    "InPlacePodLevelResourcesVerticalScaling": _BETA_ON,
    "InPlacePodVerticalScaling": _LOCKED,
    "MatchLabelKeysInPodAffinity": _LOCKED,
    "MatchLabelKeysInPodTopologySpread": _BETA_ON,
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": _BETA_ON,
    "NativeHistograms": _ALPHA,
    "NodeDeclaredFeatures": _switchable(_BETA_ON),
    "NodeInclusionPolicyInPodTopologySpread": _LOCKED,
    "NominatedNodeNameForExpectation": _BETA_ON,
    "OpportunisticBatching": _BETA_ON,
    "PodLevelResources": _BETA_ON,
    "PodObservedGenerationTracking": _LOCKED,
    "PodSchedulingReadiness": _LOCKED,
    "SchedulerAsyncAPICalls": _BETA_OFF,
    "SchedulerAsyncPreemption": _BETA_ON,
    "SchedulerPopFromBackoffQ": _BETA_ON,
    "SchedulerQueueingHints": _LOCKED,
    "SidecarContainers": _LOCKED,
    "StorageCapacityScoring": _switchable(_ALPHA),
    "TaintTolerationComparisonOperators": _ALPHA,
    "TopologyAwareWorkloadScheduling": _switchable(_ALPHA),
    "VolumeAttributesClass": _LOCKED,
    "VolumeLimitScaling": _switchable(_ALPHA),
    "WorkloadAwarePreemption": _switchable(_ALPHA),
}
# Upstream checks needs only of gates that are on; which gates exist is checked before.
_NEEDS_1_36: Final = {
    "DRADeviceBindingConditions": ("DRAResourceClaimDeviceStatus",),
    "DRADeviceTaintRules": ("DRADeviceTaints",),
    "DRAWorkloadResourceClaims": ("GenericWorkload",),
    "GangScheduling": ("GenericWorkload",),
    "TopologyAwareWorkloadScheduling": ("GenericWorkload",),
    "WorkloadAwarePreemption": ("GangScheduling",),
}

# Gates that are locked for some releases are removed; setting them is an error from then on.
_REMOVED_IN_1_37: Final = {"GangScheduling", "SchedulerQueueingHints", "SidecarContainers", "WorkloadAwarePreemption"}
_GATES_1_37: Final[Mapping[str, Gate]] = {
    **{name: gate for name, gate in _GATES_1_36.items() if name not in _REMOVED_IN_1_37},
    "CompositePodGroup": _ALPHA,
    "DRADerivedAttributes": _ALPHA,
    "DRADeviceCompatibilityGroups": _ALPHA,
    "DRADeviceTaintRules": _switchable(_GA_ON),
    "DRADeviceTaints": _GA_ON,
    "DRAExtendedResource": _LOCKED,
    "DRAFractionalCapacityRange": replace(_switchable(_BETA_OFF), on_with="1.37"),
    "DRAOptionalNodeOperations": _ALPHA,
    "DRAPrioritizedList": _LOCKED,
    "DRAResourceClaimDeviceStatus": _LOCKED,
    "DRAWorkloadResourceClaims": _BETA_OFF,
    "GenericWorkload": _switchable(_BETA_OFF),
    "InPlacePodVerticalScalingSchedulerPreemption": _ALPHA,
    "InterPodAffinityHostnameFastPath": _ALPHA,
    "NativeHistograms": _BETA_ON,
    "NodeDeclaredFeatures": _LOCKED,
    "PodGroupPreemptionPolicy": _ALPHA,
    "SchedulerPreQueueingHints": _ALPHA,
    "StorageCapacityScoring": _switchable(_BETA_ON),
    "VolumeLimitScaling": _switchable(_BETA_ON),
}
_NEEDS_1_37: Final = {
    **{name: needs for name, needs in _NEEDS_1_36.items() if name not in _REMOVED_IN_1_37},
    "CompositePodGroup": ("GenericWorkload", "TopologyAwareWorkloadScheduling"),
    "DRADeviceCompatibilityGroups": ("DRAPartitionableDevices",),
    "DRAFractionalCapacityRange": ("DRAConsumableCapacity",),
    "DRAOptionalNodeOperations": ("NodeDeclaredFeatures",),
    "InPlacePodVerticalScalingSchedulerPreemption": ("InPlacePodVerticalScaling",),
    "PodGroupPreemptionPolicy": ("GenericWorkload",),
}

_DEVICES_1_36: Final = DeviceRules(
    selectors=SelectorRules(),
    name_failing_device=False,
    shorten_config=False,
    compare_all_distinct=False,
    undo_all=False,
    place_counters=False,
    list_full_devices=False,
    check_amounts=False,
    round_to_thousandths=False,
    limit_each_request=False,
    refuse_alpha_fields=False,
    need_rule_selector=False,
    wake_on_deletion=False,
    fly_until_bound=False,
)
_DEVICES_1_37: Final = DeviceRules(
    selectors=SelectorRules(
        has_list_attributes=True,
        has_quoted_fields=True,
        resolves_leading_dots=True,
        keeps_optionals=True,
        checks_arguments=True,
        charges_arguments=True,
    ),
    name_failing_device=True,
    shorten_config=True,
    compare_all_distinct=True,
    undo_all=True,
    place_counters=True,
    list_full_devices=True,
    check_amounts=True,
    round_to_thousandths=False,
    limit_each_request=True,
    refuse_alpha_fields=True,
    need_rule_selector=True,
    wake_on_deletion=True,
    fly_until_bound=True,
)
_PRE_FILTERS_OF_1_37: Final = {"NodeUnschedulable", "NodeName", "TaintToleration"}
_NEW_POINTS_1_37: Final = frozenset({ExtensionPoint.POD_GROUP_POST_FILTER})
_PLUGINS_1_36: Final = {
    name: replace(
        DEFAULT_PLUGINS[name],
        points=DEFAULT_PLUGINS[name].points
        - _NEW_POINTS_1_37
        - ({ExtensionPoint.PRE_FILTER} if name in _PRE_FILTERS_OF_1_37 else set()),
        gate="GangScheduling" if name == "GangScheduling" else DEFAULT_PLUGINS[name].gate,
    )
    # NodeUnschedulable is before NodeName.
    for name in dict.fromkeys(("SchedulingGates", "PrioritySort", "NodeUnschedulable", *DEFAULT_PLUGINS))
}

_V1_36: Final = Release(
    minor="1.36",
    gates=MappingProxyType(dict(sorted(_GATES_1_36.items()))),
    gate_needs=MappingProxyType(_NEEDS_1_36),
    plugins=MappingProxyType(_PLUGINS_1_36),
    absent_points=_NEW_POINTS_1_37,
    events=EventRules(
        target_pod=EventResource.UNSCHEDULABLE_POD,
        unscheduled_pod=EventResource.UNSCHEDULABLE_POD,
        own_pod=EventResource.POD,
        assigned_pods=EventResource.POD,
        have_scale_up=False,
        widen_node_add=True,
        match_any_anti_affinity=False,
    ),
    queue=QueueRules(nominate_on_add=False, flush_gated=False, renew_strangers=False, has_group_entries=False),
    devices=_DEVICES_1_36,
    paths=MappingProxyType(
        {
            DEVICE_TAINT_RULES.path: "/apis/resource.k8s.io/v1beta2/devicetaintrules",
            POD_GROUPS.path: "/apis/scheduling.k8s.io/v1alpha2/podgroups",
        }
    ),
    preemption=PreemptionRules(
        tell_node=False,
        stop_at_exhausted_budget=False,
        tell_no_deallocation=True,
        wake_after_last_in_memory=False,
        count_terminating=False,
        count_groups_apart=False,
    ),
    counts_image_volumes=False,
    needs_bind_mount_options=False,
    lists_namespaces=False,
    scores_balance_gain=True,
    sums_resized_pods=False,
    hidden_metrics=frozenset(
        {
            "dynamic_resource_allocation_resourceclaim_creates_total",
            "informer_processing_latency_seconds",
            "informer_queued_items",
            "informer_store_resource_version",
            "scheduler_generated_placements_total",
            "scheduler_placement_evaluation_duration_seconds",
            "scheduler_placement_evaluations_total",
            "scheduler_preemption_evaluation_duration_seconds",
            "scheduler_preemption_execution_duration_seconds",
            "scheduler_preemption_pdb_violations_total",
            "scheduler_preemption_workload_disruptions",
            "scheduler_queue_incoming_entities_total",
            "scheduler_queued_entities",
            "scheduler_workload_preemption_attempts_total",
            "scheduler_workload_preemption_victims",
        }
    ),
    deprecated_metrics=frozenset(),
    needs_installed_drivers=False,
)
_V1_37: Final = replace(
    _V1_36,
    minor="1.37",
    gates=MappingProxyType(dict(sorted(_GATES_1_37.items()))),
    gate_needs=MappingProxyType(_NEEDS_1_37),
    plugins=DEFAULT_PLUGINS,
    absent_points=frozenset(),
    events=EventRules(
        target_pod=EventResource.TARGET_POD,
        unscheduled_pod=EventResource.UNSCHEDULED_POD,
        own_pod=EventResource.TARGET_POD,
        assigned_pods=EventResource.ASSIGNED_POD,
        have_scale_up=True,
        widen_node_add=False,
        match_any_anti_affinity=True,
    ),
    queue=QueueRules(nominate_on_add=True, flush_gated=True, renew_strangers=True, has_group_entries=True),
    devices=_DEVICES_1_37,
    paths=MappingProxyType({}),
    preemption=PreemptionRules(
        tell_node=True,
        stop_at_exhausted_budget=True,
        tell_no_deallocation=False,
        wake_after_last_in_memory=True,
        count_terminating=True,
        count_groups_apart=True,
    ),
    counts_image_volumes=True,
    needs_bind_mount_options=True,
    lists_namespaces=True,
    sums_resized_pods=True,
    hidden_metrics=frozenset({"scheduler_resourceclaim_creates_total"}),
    deprecated_metrics=frozenset({"scheduler_preemption_goroutines_duration_seconds"}),
    needs_installed_drivers=True,
)

RELEASES: Final[Mapping[str, Release]] = {release.minor: release for release in (_V1_36, _V1_37)}
"""By minor, oldest first."""
EVALUATED: Final[Mapping[str, Release]] = {
    "1.35": replace(_V1_36, minor="1.35", scores_balance_gain=False),
    **RELEASES,
}
"""The releases that questions about placements can be decided as: also the one that scheduler-plugins is built on.

Of 1.35 only what attempts and queues of pods come out differently for: gates, hints and devices are those of 1.36.
"""
NEWEST: Final = _V1_37
FIRST: Final = _V1_36
"""The release of whatever names none: podium knew no other when it was made."""
OLDEST_SERVER: Final = "1.34"
"""The oldest minor of API servers that podium is tested with: by the rules of the oldest release."""


def release_of_server(major: str, minor: str) -> Release:
    """Return the release to decide as for an API server of that version: the nearest that podium has.

    Source: the fields of `/version`; managed clusters write minors such as `37+`.
    """
    # Providers add letters to the minor, as in `1.36+`.
    digits = "".join(character for character in minor if character.isdigit())
    server = (int(major), int(digits))
    older = [release for release in RELEASES.values() if _number(release) <= server]
    # Older than all: the oldest is nearer to it than the newest.
    return older[-1] if older else next(iter(RELEASES.values()))


def _number(release: Release) -> tuple[int, int]:
    major, _, minor = release.minor.partition(".")
    return int(major), int(minor)
