"""The settings of feature gates: the values of `--feature-gates`, parsed against the gates of a release.

Owns the parsing. Gates are read only here and in the configuration's defaults: other components receive the resulting
settings, and never query a gate.

Source: component-base/featuregate/feature_gate.go (kube-scheduler 1.36.2, 1.37.2)
Differs: gates of other components are unknown; a gate that podium cannot switch may be named, but only with the value
that podium has; with NodeDeclaredFeatures off, a profile that enables the plugin by name still gets it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from podium.config.releases import NEWEST, Release, Stage


@dataclass(frozen=True, slots=True)
class ConfigGates:
    """The gates that are on, of a release."""

    release: Release = NEWEST
    on_gates: frozenset[str] = NEWEST.default_gates

    def has(self, gate: str) -> bool:
        """Return True if the gate of that name is on."""
        return gate in self.on_gates

    @property
    def dra_binding_timeout(self) -> bool:
        """True if DynamicResources waits for device conditions, which requires two gates."""
        return self.has("DRADeviceBindingConditions") and self.has("DRAResourceClaimDeviceStatus")

    @property
    def pod_groups(self) -> PodGroupRules | None:
        """The rules of scheduling pods in groups; None if each pod is scheduled alone."""
        if not self.has("GenericWorkload"):
            return None
        is_whole = self.release.queue.has_group_entries
        return PodGroupRules(
            are_entries=is_whole,
            have_gangs=is_whole or self.has("GangScheduling"),
            are_placed_by_topology=self.has("TopologyAwareWorkloadScheduling"),
            are_preempted_for=is_whole or self.has("WorkloadAwarePreemption"),
        )


@dataclass(frozen=True, slots=True)
class PodGroupRules:
    """The rules of scheduling pods in groups.

    Attributes:
        are_entries: a group is one entry of the queue; see `QueueRules.has_group_entries`.
        have_gangs: pods that are added may complete a gang that waits for them.
        are_placed_by_topology: a group may have to be placed in one topology domain.
        are_preempted_for: preemption makes room for a group as a whole, not for each of its pods.
    """

    are_entries: bool = True
    have_gangs: bool = True
    are_placed_by_topology: bool = False
    are_preempted_for: bool = True


LOOSE_GROUPS: Final = PodGroupRules(are_entries=False, are_preempted_for=False)
"""The rules of groups whose pods wait one by one."""
DEFAULT_GATES: Final = ConfigGates()


class FeatureGateError(Exception):
    """`--feature-gates` contains unsupported settings; `problems` are sentences, each with the gate's name."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


_BOOLEANS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


def default_gates(release: Release) -> ConfigGates:
    """Return the settings of a release without `--feature-gates`."""
    return ConfigGates(release, release.default_gates)


def parse_feature_gates(values: Iterable[str], release: Release = NEWEST) -> ConfigGates:
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
    problems += [problem for name, value in settings.items() if (problem := _problem(name, release, value=value))]
    on_gates = (release.default_gates | {name for name, value in settings.items() if value}) - {
        name for name, value in settings.items() if not value
    }
    # As upstream: needs are looked at only once every value is one that the gate may have.
    problems = problems or list(_unmet_needs(on_gates, release))
    if problems:
        raise FeatureGateError(problems)
    return ConfigGates(release, frozenset(on_gates))


def _unmet_needs(on_gates: frozenset[str], release: Release) -> Iterator[str]:
    for name, needs in release.gate_needs.items():
        missing = [gate for gate in needs if gate not in on_gates]
        if name in on_gates and missing:
            yield f"{name} is enabled, but depends on features that are disabled: [{' '.join(missing)}]"


def _pairs(values: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    for part in (part for value in values for part in value.split(",") if part):
        name, equals, text = part.partition("=")
        yield name.strip(), text.strip() if equals else None


def _problem(name: str, release: Release, *, value: bool) -> str | None:
    gate = release.gates.get(name)
    if gate is None:
        return f"unrecognized feature gate: {name}"
    if gate.stage is Stage.PRE_ALPHA:
        setting = f"cannot set feature gate {name} to {str(value).lower()}"
        return f"{setting}, feature is PreAlpha at emulated version {gate.emulated}"
    if value == gate.default or gate.is_switchable:
        return None
    value_text, default_text = str(value).lower(), str(gate.default).lower()
    if gate.is_locked:
        return f"cannot set feature gate {name} to {value_text}, feature is locked to {default_text}"
    return f"cannot set feature gate {name} ({gate.stage.value}) to {value_text}: podium supports only {default_text}"
