"""What differs between the minors of Kubernetes that podium decides as: one value for each, on this one page.

A `Release` is chosen once, when a configuration is completed, and travels with it: plugins find it on their handle,
queue, cache and engine are given it (or the one part that concerns them) when they are made. No other module compares
versions; where behaviour differs, it asks the switch that is named after the difference. A new minor is one more value
here, made from the one before it by `replace`, a file of facts, and the recorded answers of its own code.

Source: pkg/features/kube_features.go, pkg/scheduler (kube-scheduler 1.36.2 and 1.37.2)
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from podium.config.extension_points import DEFAULT_PLUGINS, InTreePlugin


class Stage(enum.Enum):
    """The maturity of a feature."""

    ALPHA = "alpha"
    BETA = "beta"
    GA = "GA"


@dataclass(frozen=True, slots=True)
class Gate:
    """One feature gate of a release. podium implements both values of a gate that `is_switchable`."""

    stage: Stage
    default: bool
    is_locked: bool = False
    is_switchable: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """The rules of one minor.

    Attributes:
        minor: as in `v1.37`, without the `v`.
        gates: the feature gates that exist, by name.
        gate_needs: gate → the gates that must be on for it.
        plugins: the default `multiPoint` list, in order, with the extension points, weight and gate of each plugin.
    """

    minor: str
    gates: Mapping[str, Gate]
    gate_needs: Mapping[str, tuple[str, ...]]
    plugins: Mapping[str, InTreePlugin]
    default_gates: frozenset[str] = field(init=False)
    """The gates that are on by default."""

    def __post_init__(self) -> None:
        """Derive the gates that are on by default."""
        object.__setattr__(self, "default_gates", frozenset(name for name, gate in self.gates.items() if gate.default))

    def __hash__(self) -> int:
        return hash(self.minor)


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
    "StorageCapacityScoring": _ALPHA,
    "TaintTolerationComparisonOperators": _ALPHA,
    "TopologyAwareWorkloadScheduling": _switchable(_ALPHA),
    "VolumeAttributesClass": _LOCKED,
    "VolumeLimitScaling": _ALPHA,
    "WorkloadAwarePreemption": _switchable(_ALPHA),
}
_NEEDS_1_36: Final = {
    "GangScheduling": ("GenericWorkload",),
    "TopologyAwareWorkloadScheduling": ("GenericWorkload",),
    "WorkloadAwarePreemption": ("GangScheduling",),
}

_REMOVED_IN_1_37: Final = {"SchedulerQueueingHints", "SidecarContainers"}
_GATES_1_37: Final[Mapping[str, Gate]] = {
    **{name: gate for name, gate in _GATES_1_36.items() if name not in _REMOVED_IN_1_37},
    "CompositePodGroup": _ALPHA,
    "DRADerivedAttributes": _ALPHA,
    "DRADeviceCompatibilityGroups": _ALPHA,
    "DRADeviceTaintRules": _switchable(_GA_ON),
    "DRADeviceTaints": _GA_ON,
    "DRAExtendedResource": _LOCKED,
    "DRAFractionalCapacityRange": _BETA_OFF,
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
    "CompositePodGroup": ("GenericWorkload", "TopologyAwareWorkloadScheduling"),
    "DRADeviceBindingConditions": ("DRAResourceClaimDeviceStatus",),
    "DRADeviceCompatibilityGroups": ("DRAPartitionableDevices",),
    "DRADeviceTaintRules": ("DRADeviceTaints",),
    "DRAFractionalCapacityRange": ("DRAConsumableCapacity",),
    "DRAOptionalNodeOperations": ("NodeDeclaredFeatures",),
    "DRAWorkloadResourceClaims": ("GenericWorkload",),
    "InPlacePodVerticalScalingSchedulerPreemption": ("InPlacePodVerticalScaling",),
    "PodGroupPreemptionPolicy": ("GenericWorkload",),
    "TopologyAwareWorkloadScheduling": ("GenericWorkload",),
}

_V1_36: Final = Release(
    "1.36", MappingProxyType(dict(sorted(_GATES_1_36.items()))), MappingProxyType(_NEEDS_1_36), DEFAULT_PLUGINS
)
_V1_37: Final = replace(
    _V1_36,
    minor="1.37",
    gates=MappingProxyType(dict(sorted(_GATES_1_37.items()))),
    gate_needs=MappingProxyType(_NEEDS_1_37),
)

RELEASES: Final[Mapping[str, Release]] = {release.minor: release for release in (_V1_36, _V1_37)}
"""By minor, oldest first."""
NEWEST: Final = _V1_37


def release_of_server(major: str, minor: str) -> Release:
    """Return the release to decide as for an API server of that version: the nearest that podium has.

    Source: the fields of `/version`; managed clusters write minors such as `37+`.
    """
    digits = "".join(character for character in minor if character.isdigit())
    server = (int(major), int(digits))
    older = [release for release in RELEASES.values() if _number(release) <= server]
    return older[-1] if older else next(iter(RELEASES.values()))


def _number(release: Release) -> tuple[int, int]:
    major, _, minor = release.minor.partition(".")
    return int(major), int(minor)
