"""The feature gates that exist, those of them that podium can switch, and the parsing of `--feature-gates`.

Owns the gates that concern scheduling, with kube-scheduler's defaults. Gates are read only here: other components
receive the resulting settings, and never query a gate.

Source: pkg/features/kube_features.go and component-base/featuregate/feature_gate.go (kube-scheduler 1.36.2)
Differs: gates of other components are unknown; a gate that podium cannot switch may be named, but only with the value
that podium has; with NodeDeclaredFeatures off, a profile that enables the plugin by name still gets it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from podium.config.extension_points import DEFAULT_PLUGINS


@dataclass(frozen=True, slots=True)
class ConfigGates:
    """The gates that change a configuration's permitted fields or defaults, named in snake case."""

    dra_scheduler_filter_timeout: bool = True
    dra_device_binding_conditions: bool = True
    dra_resource_claim_device_status: bool = True
    dra_device_taint_rules: bool = False
    node_declared_features: bool = True
    storage_capacity_scoring: bool = False
    generic_workload: bool = False
    gang_scheduling: bool = False
    topology_aware_workload_scheduling: bool = False
    workload_aware_preemption: bool = False
    of_plugins: frozenset[str] = frozenset()
    """Those that are on, by their names, of the gates that do no more than add plugins to the default set."""

    def has(self, gate: str) -> bool:
        """Return True if the gate of that name is enabled."""
        attribute = GATES[gate].attribute
        return gate in self.of_plugins if attribute == _OF_PLUGINS else bool(getattr(self, attribute))

    @property
    def dra_binding_timeout(self) -> bool:
        """True if DynamicResources waits for device conditions, which requires two gates."""
        return self.dra_device_binding_conditions and self.dra_resource_claim_device_status

    @property
    def pod_groups(self) -> PodGroupRules | None:
        """The rules of scheduling pods in groups; None if each pod is scheduled alone."""
        if not self.generic_workload:
            return None
        return PodGroupRules(
            self.gang_scheduling, self.topology_aware_workload_scheduling, self.workload_aware_preemption
        )


@dataclass(frozen=True, slots=True)
class PodGroupRules:
    """The rules of scheduling pods in groups.

    Attributes:
        have_gangs: pods that are added may complete a gang that waits for them.
        are_placed_by_topology: a group may have to be placed in one topology domain.
        are_preempted_for: preemption makes room for a group as a whole, not for each of its pods.
    """

    have_gangs: bool = True
    are_placed_by_topology: bool = False
    are_preempted_for: bool = False


DEFAULT_GATES = ConfigGates()


class FeatureGateError(Exception):
    """`--feature-gates` contains unsupported settings; `problems` are sentences, each with the gate's name."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


class Stage(enum.Enum):
    """The maturity of a feature."""

    ALPHA = "alpha"
    BETA = "beta"
    GA = "GA"


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate. `attribute` is the field of `ConfigGates` that it switches; "" if podium supports only its default."""

    stage: Stage
    default: bool
    is_locked: bool = False
    attribute: str = ""


_LOCKED: Final = Gate(Stage.GA, default=True, is_locked=True)
_BETA_ON: Final = Gate(Stage.BETA, default=True)
_BETA_OFF: Final = Gate(Stage.BETA, default=False)
_ALPHA: Final = Gate(Stage.ALPHA, default=False)
_OF_PLUGINS: Final = "of_plugins"

_NAMED: Final[Mapping[str, Gate]] = {
    "AllAlpha": _ALPHA,
    "AllBeta": _BETA_OFF,
    "ClearingNominatedNodeNameAfterBinding": _BETA_ON,
    "ComponentFlagz": _BETA_ON,
    "ComponentStatusz": _BETA_ON,
    "CoordinatedLeaderElection": _BETA_OFF,
    "DRAAdminAccess": _LOCKED,
    "DRAConsumableCapacity": _BETA_ON,
    "DRADeviceBindingConditions": Gate(Stage.BETA, default=True, attribute="dra_device_binding_conditions"),
    "DRADeviceTaintRules": Gate(Stage.BETA, default=False, attribute="dra_device_taint_rules"),
    "DRADeviceTaints": _BETA_ON,
    "DRAExtendedResource": _BETA_ON,
    "DRAListTypeAttributes": _ALPHA,
    "DRANodeAllocatableResources": _ALPHA,
    "DRAPartitionableDevices": _BETA_ON,
    "DRAPrioritizedList": Gate(Stage.GA, default=True),
    "DRAResourceClaimDeviceStatus": Gate(Stage.BETA, default=True, attribute="dra_resource_claim_device_status"),
    "DRASchedulerFilterTimeout": Gate(Stage.BETA, default=True, attribute="dra_scheduler_filter_timeout"),
    "DRAWorkloadResourceClaims": _ALPHA,
    "DynamicResourceAllocation": _LOCKED,
    "GangScheduling": Gate(Stage.ALPHA, default=False, attribute="gang_scheduling"),
    "GenericWorkload": Gate(Stage.ALPHA, default=False, attribute="generic_workload"),
    "InPlacePodLevelResourcesVerticalScaling": _BETA_ON,
    "InPlacePodVerticalScaling": _LOCKED,
    "MatchLabelKeysInPodAffinity": _LOCKED,
    "MatchLabelKeysInPodTopologySpread": _BETA_ON,
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": _BETA_ON,
    "NodeDeclaredFeatures": Gate(Stage.BETA, default=True, attribute="node_declared_features"),
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
    "TopologyAwareWorkloadScheduling": Gate(Stage.ALPHA, default=False, attribute="topology_aware_workload_scheduling"),
    "VolumeAttributesClass": _LOCKED,
    "VolumeLimitScaling": _ALPHA,
    "WorkloadAwarePreemption": Gate(Stage.ALPHA, default=False, attribute="workload_aware_preemption"),
}
_BY_PLUGIN: Final = {
    row.gate: Gate(Stage.ALPHA, default=False, attribute=_OF_PLUGINS) for row in DEFAULT_PLUGINS.values() if row.gate
}
GATES: Final[Mapping[str, Gate]] = dict(sorted({**_BY_PLUGIN, **_NAMED}.items()))
"""Every gate by its name. One that only a plugin names is alpha."""

NEEDS: Final[Mapping[str, str]] = {
    "GangScheduling": "GenericWorkload",
    "TopologyAwareWorkloadScheduling": "GenericWorkload",
    "WorkloadAwarePreemption": "GangScheduling",
}
"""Gate → the gate that must be on for it."""

_BOOLEANS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


def parse_feature_gates(values: Iterable[str]) -> ConfigGates:
    """Parse the values of `--feature-gates`, each `Name=true,Name=false,…`; if a gate is repeated, the last value wins.

    Raises:
        FeatureGateError: lists everything that is wrong.
    """
    problems: list[str] = []
    settings: dict[str, bool] = {}
    for name, text in _pairs(values):
        value = None if text is None else _BOOLEANS.get(text)
        if value is not None:
            settings[name] = value
        elif text is None:
            problems.append(f"missing bool value for {name}")
        else:
            problems.append(f'invalid value of {name}={text}: expected "true" or "false"')
    problems += [problem for name, value in settings.items() if (problem := _problem(name, value=value))]
    problems = problems or [
        f"{name} is enabled, but depends on features that are disabled: [{prerequisite}]"
        for name, prerequisite in NEEDS.items()
        if settings.get(name) and not settings.get(prerequisite)
    ]
    if problems:
        raise FeatureGateError(problems)
    attributes = {name: GATES[name].attribute for name in settings}
    of_plugins = frozenset(name for name, value in settings.items() if value and attributes[name] == _OF_PLUGINS)
    switched = {
        attribute: settings[name] for name, attribute in attributes.items() if attribute not in ("", _OF_PLUGINS)
    }
    return ConfigGates(**switched, of_plugins=of_plugins)


def _pairs(values: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    for part in (part for value in values for part in value.split(",") if part):
        name, equals, text = part.partition("=")
        yield name.strip(), text.strip() if equals else None


def _problem(name: str, *, value: bool) -> str | None:
    gate = GATES.get(name)
    if gate is None:
        return f"unrecognized feature gate: {name}"
    if value == gate.default or gate.attribute:
        return None
    value_text, default_text = str(value).lower(), str(gate.default).lower()
    if gate.is_locked:
        return f"cannot set feature gate {name} to {value_text}, feature is locked to {default_text}"
    return f"cannot set feature gate {name} ({gate.stage.value}) to {value_text}: podium supports only {default_text}"
