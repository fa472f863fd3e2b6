from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.config.feature_gates import (
    DEFAULT_GATES,
    LOOSE_GROUPS,
    FeatureGateError,
    PodGroupRules,
    parse_feature_gates,
)
from podium.config.releases import NEWEST, RELEASES, Release


def test_without_the_flag_every_gate_has_its_default() -> None:
    assert parse_feature_gates([]) == parse_feature_gates([""]) == DEFAULT_GATES


def test_a_gate_that_users_may_switch_is_switched() -> None:
    assert parse_feature_gates(["DRASchedulerFilterTimeout=false"]) == replace(
        DEFAULT_GATES, on_gates=DEFAULT_GATES.on_gates - {"DRASchedulerFilterTimeout"}
    )


def test_gates_are_separated_by_commas_and_the_flag_may_be_repeated() -> None:
    gates = parse_feature_gates([" VolumeLimitScaling = False ,,DRADeviceBindingConditions=0", "PodLevelResources=T"])
    assert gates == replace(
        DEFAULT_GATES, on_gates=DEFAULT_GATES.on_gates - {"VolumeLimitScaling", "DRADeviceBindingConditions"}
    )


def test_the_last_value_of_a_gate_wins() -> None:
    assert parse_feature_gates(["VolumeLimitScaling=false", "VolumeLimitScaling=true"]) == DEFAULT_GATES


@pytest.mark.parametrize("name", NEWEST.gates)
def test_every_gate_may_be_set_to_its_default(name: str) -> None:
    assert parse_feature_gates([f"{name}={str(NEWEST.gates[name].default).lower()}"]) == DEFAULT_GATES


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("NoSuchGate=true", "unrecognized feature gate: NoSuchGate"),
        ("SidecarContainers=true", "unrecognized feature gate: SidecarContainers"),
        ("SchedulerQueueingHints=true", "unrecognized feature gate: SchedulerQueueingHints"),
        (
            "NodeDeclaredFeatures=false",
            "cannot set feature gate NodeDeclaredFeatures to false, feature is locked to true",
        ),
        ("GangScheduling=true,GenericWorkload=true", "unrecognized feature gate: GangScheduling"),
        ("WorkloadAwarePreemption=true", "unrecognized feature gate: WorkloadAwarePreemption"),
        (
            "DRAListTypeAttributes=true",
            "cannot set feature gate DRAListTypeAttributes (alpha) to true: podium supports only false",
        ),
        (
            "TopologyAwareWorkloadScheduling=true",
            "TopologyAwareWorkloadScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
        (
            "CompositePodGroup=true",
            "cannot set feature gate CompositePodGroup (alpha) to true: podium supports only false",
        ),
        (
            "PodGroupPreemptionPolicy=true",
            "cannot set feature gate PodGroupPreemptionPolicy (alpha) to true: podium supports only false",
        ),
        *(
            (
                f"{name}=true",
                f"cannot set feature gate {name} (alpha) to true: podium supports only false",
            )
            for name in (
                "DRADerivedAttributes",
                "DRADeviceCompatibilityGroups",
                "DRANodeAllocatableResources",
                "DRAOptionalNodeOperations",
                "InPlacePodVerticalScalingSchedulerPreemption",
                "InterPodAffinityHostnameFastPath",
                "SchedulerPreQueueingHints",
                "TaintTolerationComparisonOperators",
            )
        ),
        *(
            (f"{name}=true", f"cannot set feature gate {name} (beta) to true: podium supports only false")
            for name in ("CoordinatedLeaderElection", "DRAWorkloadResourceClaims", "SchedulerAsyncAPICalls")
        ),
        *(
            (f"{name}=false", f"cannot set feature gate {name} to false, feature is locked to true")
            for name in ("DRAExtendedResource", "DRAPrioritizedList", "DRAResourceClaimDeviceStatus")
        ),
        (
            "DRADeviceTaints=false",
            "cannot set feature gate DRADeviceTaints (GA) to false: podium supports only true",
        ),
        (
            "PodLevelResources=false",
            "cannot set feature gate PodLevelResources (beta) to false: podium supports only true",
        ),
        ("PodLevelResources", "missing bool value for PodLevelResources"),
        ("PodLevelResources=yes", 'invalid value of PodLevelResources=yes: expected "true" or "false"'),
        ("=true", "unrecognized feature gate: "),
    ],
)
def test_a_gate_that_cannot_be_had_is_named(value: str, problem: str) -> None:
    with pytest.raises(FeatureGateError) as error:
        parse_feature_gates([value])
    assert error.value.problems == (problem,)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("SidecarContainers=false", "cannot set feature gate SidecarContainers to false, feature is locked to true"),
        ("PodGroupPreemptionPolicy=true", "unrecognized feature gate: PodGroupPreemptionPolicy"),
        (
            "DRAResourceClaimDeviceStatus=false",
            (
                "DRADeviceBindingConditions is enabled, but depends on features that are disabled: "
                "[DRAResourceClaimDeviceStatus]"
            ),
        ),
        (
            "GangScheduling=true",
            "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
        (
            "WorkloadAwarePreemption=true,GenericWorkload=true",
            "WorkloadAwarePreemption is enabled, but depends on features that are disabled: [GangScheduling]",
        ),
    ],
)
def test_a_gate_that_1_36_does_not_have_is_named(value: str, problem: str) -> None:
    with pytest.raises(FeatureGateError) as error:
        parse_feature_gates([value], RELEASES["1.36"])
    assert error.value.problems == (problem,)


def test_1_36_has_gates_that_are_removed_or_locked_later() -> None:
    gates = parse_feature_gates(["SidecarContainers=true,NodeDeclaredFeatures=false"], RELEASES["1.36"])
    assert not gates.has("NodeDeclaredFeatures")


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(FeatureGateError) as error:
        parse_feature_gates(["A=true,GenericWorkload", "VolumeAttributesClass=false"])
    assert [problem.split()[-1] for problem in error.value.problems] == ["GenericWorkload", "A", "true"]


def test_pods_are_scheduled_in_groups_only_with_the_gate() -> None:
    assert DEFAULT_GATES.pod_groups is None
    assert parse_feature_gates(["GenericWorkload=true"]).pod_groups == PodGroupRules()
    gates = parse_feature_gates(["GenericWorkload=true,TopologyAwareWorkloadScheduling=true"])
    assert gates.pod_groups == PodGroupRules(are_placed_by_topology=True)


def test_pods_of_groups_wait_one_by_one_in_the_release_where_they_do() -> None:
    release = RELEASES["1.36"]
    gates = parse_feature_gates(["GenericWorkload=true,GangScheduling=true"], release)
    assert gates.pod_groups == LOOSE_GROUPS
    gates = parse_feature_gates(["GenericWorkload=true"], release)
    assert gates.pod_groups == replace(LOOSE_GROUPS, have_gangs=False)
    gates = parse_feature_gates(["GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true"], release)
    assert gates.pod_groups == replace(LOOSE_GROUPS, are_preempted_for=True)


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_locked_gates_cannot_be_switched_and_needs_are_gates(release: Release) -> None:
    assert not [name for name, gate in release.gates.items() if gate.is_locked and gate.is_switchable]
    for name, needs in release.gate_needs.items():
        assert {name, *needs} <= release.gates.keys()


@given(st.lists(st.text()), st.text("=,tTrue "))
def test_any_text_is_taken_or_refused(values: list[str], last_value: str) -> None:
    with suppress(FeatureGateError):
        assert parse_feature_gates([*values, last_value]) == DEFAULT_GATES
