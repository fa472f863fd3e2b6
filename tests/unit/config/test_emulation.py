from __future__ import annotations

import pytest

from podium.config.emulation import emulating
from podium.config.feature_gates import FeatureGateError, default_gates, parse_feature_gates
from podium.config.releases import NEWEST, RELEASES

V1_37 = RELEASES["1.37"]


def test_without_the_options_a_release_has_its_own_gates() -> None:
    assert emulating(NEWEST) is NEWEST
    assert emulating(V1_37, "1.37", "1.36") is V1_37


@pytest.mark.parametrize("version", ["1.36", "kube=1.36"])
def test_emulating_changes_gates_and_nothing_else(version: str) -> None:
    emulated = emulating(V1_37, version)
    on_gates = default_gates(emulated)
    assert not on_gates.has("StorageCapacityScoring")
    assert not on_gates.has("DRADeviceTaintRules")
    assert emulated.minor == "1.37"
    assert (emulated.events, emulated.queue, emulated.preemption) == (V1_37.events, V1_37.queue, V1_37.preemption)
    assert not emulated.gates["NodeDeclaredFeatures"].is_locked
    assert parse_feature_gates(["VolumeLimitScaling=true"], emulated).has("VolumeLimitScaling")


@pytest.mark.parametrize(("min_compatible", "is_on"), [("1.37", True), ("1.36", False), ("1.34", False)])
def test_a_gate_that_needs_a_minimum_compatibility_version_is_on_from_it_on(min_compatible: str, is_on: bool) -> None:
    release = emulating(V1_37, min_compatible=min_compatible)
    assert default_gates(release).has("DRAFractionalCapacityRange") is is_on
    assert not parse_feature_gates(["DRAFractionalCapacityRange=false"], release).has("DRAFractionalCapacityRange")


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        (
            "PodGroupPreemptionPolicy=false",
            (
                "cannot set feature gate PodGroupPreemptionPolicy to false, "
                "feature is PreAlpha at emulated version 1.36, min compatibility version 1.35"
            ),
        ),
        ("SidecarContainers=true", "unrecognized feature gate: SidecarContainers"),
    ],
)
def test_gates_that_are_not_there_cannot_be_set(setting: str, problem: str) -> None:
    with pytest.raises(FeatureGateError) as error:
        parse_feature_gates([setting], emulating(V1_37, "1.36"))
    assert error.value.problems == (problem,)


@pytest.mark.parametrize(
    ("emulated", "min_compatible", "problem"),
    [
        ("1.33", "", "emulation version 1.33 is not between [1.34, 1.37.0]"),
        ("1.38", "", "emulation version 1.38 is not between [1.34, 1.37.0]"),
        ("1.36", "1.37", "minCompatibilityVersion version 1.37 is not between [1.34, 1.36]"),
        ("", "1.33", "minCompatibilityVersion version 1.33 is not between [1.34, 1.37]"),
        ("1.35", "", "emulation version 1.35: podium knows the gates of 1.36, 1.37"),
        ("newest", "", "invalid version 'newest': expected major.minor, such as 1.36"),
    ],
)
def test_versions_that_do_not_go_together_are_refused(emulated: str, min_compatible: str, problem: str) -> None:
    with pytest.raises(FeatureGateError) as error:
        emulating(V1_37, emulated, min_compatible)
    assert error.value.problems == (problem,)
