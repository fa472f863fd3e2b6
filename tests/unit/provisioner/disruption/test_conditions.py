"""The conditions of NodeClaims by which nodes are disrupted."""

from __future__ import annotations

from typing import Any

import pytest

from podium.provisioner.disruption.conditions import ClaimConditions, conditions_of
from podium.provisioner.state.reading import read_objects
from tests.unit.provisioner.clusters import CAPACITY_TYPE, NOW, Document, catalogue, instance_type, required
from tests.unit.provisioner.fleets import TYPES, machine, node_pool

V3 = "karpenter.sh/nodepool-hash-version"
HASH = "karpenter.sh/nodepool-hash"


def conditions(node: list[Document], pool: Document | None = None, *, now: float = NOW) -> ClaimConditions:
    objects = read_objects([*node, pool or node_pool()])
    return conditions_of(objects.node_claims, objects.node_pools, catalogue(*TYPES), now)["claim-a"]


@pytest.mark.parametrize(
    ("after", "event_s_ago", "expected"),
    [
        ("0s", None, True),
        ("0s", 0, True),
        ("Never", None, False),
        ("30m", None, True),  # initialised 30 minutes ago
        ("31m", None, False),
        ("5m", 299, False),
        ("5m", 300, True),
    ],
)
def test_a_node_is_consolidatable_once_pods_left_it_alone(
    after: str, event_s_ago: float | None, expected: bool
) -> None:
    found = conditions(machine("a", pod_event_s_ago=event_s_ago), node_pool(after=after))
    assert found.is_consolidatable is expected


def test_a_node_that_is_not_initialized_is_not_consolidatable() -> None:
    assert not conditions(machine("a", joined="registered")).is_consolidatable


def test_nodes_of_a_static_pool_do_not_become_consolidatable() -> None:
    assert not conditions(machine("a"), node_pool(replicas=2)).is_consolidatable


@pytest.mark.parametrize("claim", [{"deletionTimestamp": "2026-05-01T00:00:00Z"}, {}])
def test_a_claim_that_is_deleted_or_without_its_pool_keeps_what_it_says(claim: dict[str, Any]) -> None:
    said = {"Consolidatable": "Consolidatable", "Drifted": "SomeDrift"}
    pool = node_pool(after="Never") if claim else node_pool("other")
    found = conditions(machine("a", conditions=said, claim=claim, created_s_ago=100), pool)
    assert found == ClaimConditions(True, "SomeDrift", NOW - 100)


# ---------------------------------------------------------------- drift


def annotated(hash_: str, version: str = "v3") -> Document:
    return {"annotations": {HASH: hash_, V3: version}}


def drift(node: list[Document], pool: Document) -> str:
    return conditions(node, pool).drifted


@pytest.mark.parametrize(
    ("own", "version", "expected"),
    [("1", "v3", ""), ("2", "v3", "NodePoolDrifted"), ("2", "v2", "")],
)
def test_a_changed_pool_is_seen_by_its_hash_if_versions_are_equal(own: str, version: str, expected: str) -> None:
    pool = node_pool()
    pool["metadata"].update(annotated("1"))
    assert drift(machine("a", claim=annotated(own, version)), pool) == expected


def test_without_a_hash_on_both_sides_nothing_is_compared() -> None:
    assert drift(machine("a", claim=annotated("2")), node_pool()) == ""


def test_labels_must_meet_the_requirements_of_the_pool() -> None:
    spot = node_pool(requirements=[required(CAPACITY_TYPE, "In", "spot")])
    team = node_pool(requirements=[required("team", "In", "a")])
    assert drift(machine("a"), spot) == "RequirementsDrifted"
    assert drift(machine("a", capacity_type="spot"), spot) == ""
    assert drift(machine("a"), team) == "RequirementsDrifted", "a label that is not known is not met"


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (machine("a", 3, created_s_ago=3601), "InstanceTypeNotFound"),
        (machine("a", 3, created_s_ago=3600), ""),
        (machine("a", 4, zone="zone-9", created_s_ago=3601), "InstanceTypeNotFound"),
        (machine("a", 4, capacity_type="spot", zone="zone-3", created_s_ago=3601), "InstanceTypeNotFound"),
        (machine("a", 4, capacity_type="reserved", created_s_ago=3601), ""),  # goes on as on-demand
    ],
)
def test_an_instance_type_that_is_not_offered_any_more_is_drift(node: list[Document], expected: str) -> None:
    assert drift(node, node_pool()) == expected


def test_an_unavailable_offering_is_still_offered() -> None:
    kind = instance_type("c-4", 4, "8Gi")
    for each in kind["offerings"]:
        each["Available"] = False
    objects = read_objects([*machine("a", created_s_ago=3601), node_pool()])
    found = conditions_of(objects.node_claims, objects.node_pools, catalogue(kind), NOW)
    assert found["claim-a"].drifted == ""


def test_drift_counts_from_when_it_was_seen_first() -> None:
    spot = node_pool(requirements=[required(CAPACITY_TYPE, "In", "spot")])
    said = {"Drifted": "NodePoolDrifted"}
    assert conditions(machine("a"), spot).drifted_since_s == NOW
    known = conditions(machine("a", conditions=said, created_s_ago=500), spot)
    assert (known.drifted, known.drifted_since_s) == ("RequirementsDrifted", NOW - 500)


def test_a_claim_that_is_not_launched_has_not_drifted() -> None:
    node = machine("a", conditions={"Drifted": "NodePoolDrifted"})
    launched = node[0]["status"]["conditions"][0]
    launched["status"] = "False"
    assert drift(node, node_pool(requirements=[required(CAPACITY_TYPE, "In", "spot")])) == ""
