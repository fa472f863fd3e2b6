import re
from pathlib import Path

import pytest

import podium
from podium.config.releases import NEWEST, RELEASES, Release, release_of_server
from podium.objects.resource_types import ALL

PODIUM = Path(podium.__file__).parent


@pytest.mark.parametrize(
    ("major", "minor", "release"),
    [
        ("1", "36", "1.36"),
        ("1", "37", "1.37"),
        ("1", "37+", "1.37"),
        ("1", "99", "1.37"),
        ("2", "0", "1.37"),
        ("1", "35", "1.36"),
        ("1", "9", "1.36"),
    ],
)
def test_server_gets_the_newest_release_that_is_not_newer(major: str, minor: str, release: str) -> None:
    assert release_of_server(major, minor) is RELEASES[release]


def test_releases_are_ordered_and_the_newest_is_one_of_them() -> None:
    assert list(RELEASES) == sorted(RELEASES)
    assert RELEASES[NEWEST.minor] is NEWEST


# What pkg/features/kube_features.go and component-base say of each minor; "" for a gate that the minor does not have.
STAGES = {
    "CompositePodGroup": ("", "alpha off"),
    "DRADerivedAttributes": ("", "alpha off"),
    "DRADeviceCompatibilityGroups": ("", "alpha off"),
    "DRADeviceTaintRules": ("beta off", "GA on"),
    "DRADeviceTaints": ("beta on", "GA on"),
    "DRAExtendedResource": ("beta on", "GA on locked"),
    "DRAFractionalCapacityRange": ("", "beta off"),
    "DRAOptionalNodeOperations": ("", "alpha off"),
    "DRAPrioritizedList": ("GA on", "GA on locked"),
    "DRAResourceClaimDeviceStatus": ("beta on", "GA on locked"),
    "DRAWorkloadResourceClaims": ("alpha off", "beta off"),
    "GangScheduling": ("alpha off", ""),
    "GenericWorkload": ("alpha off", "beta off"),
    "InPlacePodVerticalScalingSchedulerPreemption": ("", "alpha off"),
    "InterPodAffinityHostnameFastPath": ("", "alpha off"),
    "NativeHistograms": ("alpha off", "beta on"),
    "NodeDeclaredFeatures": ("beta on", "GA on locked"),
    "PodGroupPreemptionPolicy": ("", "alpha off"),
    "SchedulerPreQueueingHints": ("", "alpha off"),
    "SchedulerQueueingHints": ("GA on locked", ""),
    "SidecarContainers": ("GA on locked", ""),
    "StorageCapacityScoring": ("alpha off", "beta on"),
    "VolumeLimitScaling": ("alpha off", "beta on"),
    "WorkloadAwarePreemption": ("alpha off", ""),
}
NEEDS = {
    "CompositePodGroup": ("", "GenericWorkload TopologyAwareWorkloadScheduling"),
    "DRADeviceCompatibilityGroups": ("", "DRAPartitionableDevices"),
    "DRAFractionalCapacityRange": ("", "DRAConsumableCapacity"),
    "DRAOptionalNodeOperations": ("", "NodeDeclaredFeatures"),
    "GangScheduling": ("GenericWorkload", ""),
    "InPlacePodVerticalScalingSchedulerPreemption": ("", "InPlacePodVerticalScaling"),
    "PodGroupPreemptionPolicy": ("", "GenericWorkload"),
    "WorkloadAwarePreemption": ("GangScheduling", ""),
}


def stage(release: Release, name: str) -> str:
    gate = release.gates.get(name)
    if gate is None:
        return ""
    return f"{gate.stage.value} {'on' if gate.default else 'off'}{' locked' if gate.is_locked else ''}"


def test_gates_that_differ_are_those_of_the_table() -> None:
    old, new = RELEASES["1.36"], RELEASES["1.37"]
    names = {*old.gates, *new.gates}
    stages = {name: (stage(old, name), stage(new, name)) for name in names}
    assert {name: pair for name, pair in stages.items() if pair[0] != pair[1]} == STAGES
    assert {name for name, gate in new.gates.items() if gate.on_with} == {"DRAFractionalCapacityRange"}


def test_needs_of_gates_that_differ_are_those_of_the_table() -> None:
    old, new = RELEASES["1.36"], RELEASES["1.37"]
    needs = {
        name: (" ".join(old.gate_needs.get(name, ())), " ".join(new.gate_needs.get(name, ())))
        for name in {*old.gate_needs, *new.gate_needs}
    }
    assert {name: pair for name, pair in needs.items() if pair[0] != pair[1]} == NEEDS


def test_gates_of_a_plugin_exist_in_every_release() -> None:
    for release in RELEASES.values():
        assert {row.gate for row in release.plugins.values() if row.gate} <= release.gates.keys()


def test_paths_of_older_versions_are_those_of_resources_that_podium_knows() -> None:
    for release in RELEASES.values():
        for path, older_path in release.paths.items():
            (resource,) = (resource for resource in ALL if resource.path == path)
            assert older_path.rpartition("/")[2] == resource.plural
    assert not NEWEST.paths


def test_no_other_module_names_a_minor_but_for_its_sources() -> None:
    strays = [
        f"{path}: {line.strip()}"
        for path in sorted(PODIUM.rglob("*.py"))
        if path.name != "releases.py" or path.parent.name != "config"
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"1\.3[67]", line) and not line.lstrip().startswith("Source:")
    ]
    assert strays == []
