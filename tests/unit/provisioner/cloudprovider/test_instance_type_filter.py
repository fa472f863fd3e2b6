"""Instance types that are left, and the words for why none is."""

from __future__ import annotations

import pytest

from podium.objects.requests import Requests
from podium.provisioner.apis.labels import WELL_KNOWN
from podium.provisioner.cloudprovider.instance_type_filter import DaemonGroup, InstanceTypeFilter, Options
from podium.provisioner.scheduling.host_ports import HostPort
from podium.provisioner.scheduling.refusals import Refusal
from podium.provisioner.scheduling.requirements import Requirement, Requirements
from tests.unit.provisioner.clusters import CAPACITY_TYPE, ZONE, Document, catalogue, instance_type, requirement

ARCH = "kubernetes.io/arch"
TYPES = catalogue(
    instance_type("a", 2, "2Gi", zones=["zone-1"]), instance_type("b", 4, "4Gi", arch="arm64")
).instance_types


def filter_types(
    cpu: int, *requirement_documents: Document, groups: list[DaemonGroup] | None = None
) -> list[str] | Refusal:
    requirements = Requirements(
        Requirement.of(document["key"], document["operator"], document["values"]) for document in requirement_documents
    )
    requests: Requests = {"cpu": cpu}
    groups = groups or [DaemonGroup(TYPES)]
    types_filter = InstanceTypeFilter(TYPES, WELL_KNOWN)
    filtered_types = types_filter.filter_types(
        types_filter.columns.all,
        groups,
        requirements,
        requests,
        pod_requests=requests,
        ports=[HostPort("0.0.0.0", 80, "TCP")],
    )
    if isinstance(filtered_types, Options):
        return [instance_type.name for instance_type in types_filter.in_order(filtered_types.mask, groups)]
    return filtered_types


def names(answer: list[str] | Refusal) -> list[str]:
    assert isinstance(answer, list)
    return answer


def refusal_text(answer: list[str] | Refusal) -> str:
    assert isinstance(answer, Refusal)
    return answer.text().partition(", requirements=")[0]


def test_types_that_fit_are_left() -> None:
    assert names(filter_types(1000)) == ["a", "b"]
    assert names(filter_types(3000)) == ["b"]
    assert names(filter_types(1000, requirement(ARCH, "In", "amd64"))) == ["a"]


def test_types_stay_in_the_order_of_their_groups() -> None:
    assert names(filter_types(100, groups=[DaemonGroup(TYPES[1:]), DaemonGroup(TYPES[:1])])) == ["b", "a"]


def test_daemons_take_room_and_ports() -> None:
    busy = DaemonGroup(TYPES[:1], {"cpu": 1500})
    assert names(filter_types(1000, groups=[busy, DaemonGroup(TYPES[1:])])) == ["b"]
    daemon_group = DaemonGroup(TYPES[1:], ports=(HostPort("0.0.0.0", 80, "TCP"),))
    assert names(filter_types(1000, groups=[DaemonGroup(TYPES[:1]), daemon_group])) == ["a"]


MET = "no instance type met the scheduling requirements"


@pytest.mark.parametrize(
    ("cpu", "documents", "text"),
    [
        (99000, [requirement(ZONE, "In", "x")], f"{MET} or had enough resources or had a required offering"),
        (99000, [requirement(ARCH, "In", "x")], f"{MET} or had enough resources"),
        (1000, [requirement(ARCH, "In", "x")], "no instance type met all requirements"),
        (99000, [], "no instance type has enough resources"),
        (
            3000,
            [requirement(ARCH, "In", "amd64")],
            "no instance type which had enough resources and the required offering met the scheduling requirements",
        ),
    ],
)
def test_the_text_says_what_no_type_met(cpu: int, documents: list[Document], text: str) -> None:
    assert refusal_text(filter_types(cpu, *documents)) == text


@pytest.mark.parametrize("cpu", [1000, 99000])
def test_a_type_without_a_fitting_offering_never_has_enough_resources(cpu: int) -> None:
    """Every type is sold as spot, and in zone 3, but none as spot in zone 3: its resources make no difference."""
    requirements = [requirement(ZONE, "In", "zone-3"), requirement(CAPACITY_TYPE, "In", "spot")]
    assert (
        refusal_text(filter_types(cpu, *requirements))
        == "no instance type had enough resources or had a required offering"
    )


def test_the_refusal_names_requirements_and_resources() -> None:
    refusal = filter_types(
        99000, requirement(ARCH, "In", "amd64"), groups=[DaemonGroup(TYPES, {"cpu": 100, "pods": 1})]
    )
    assert isinstance(refusal, Refusal)
    assert refusal.text() == (
        "no instance type has enough resources, requirements=kubernetes.io/arch In [amd64], "
        'resources={"cpu":"99100m","pods":"1"}'
    )


def test_the_refusal_names_different_daemons_as_a_range() -> None:
    groups = [DaemonGroup(TYPES[:1], {"cpu": 100}), DaemonGroup(TYPES[1:], {"cpu": 200})]
    refusal = filter_types(99000, groups=groups)
    assert isinstance(refusal, Refusal)
    assert refusal.text().endswith('resources=min={"cpu":"99100m"}, max={"cpu":"99200m"}')


def test_a_million_cores_are_probably_a_typo() -> None:
    refusal = filter_types(1_000_000_000)
    assert isinstance(refusal, Refusal)
    assert refusal.text().endswith(" (CPU request >= 1 Million, m vs M typo?)")
