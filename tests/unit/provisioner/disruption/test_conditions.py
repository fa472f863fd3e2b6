"""The conditions of NodeClaims by which nodes are disrupted."""

from __future__ import annotations

from typing import Any

import pytest

from podium.provisioner.disruption.conditions import ClaimConditions, conditions_of
from podium.provisioner.state.reading import read_objects
from tests.unit.provisioner.clusters import CAPACITY_TYPE, NOW, Document, catalogue, instance_type, requirement
from tests.unit.provisioner.fleets import TYPES, machine, node_pool

V3 = "karpenter.sh/nodepool-hash-version"
HASH = "karpenter.sh/nodepool-hash"


def conditions(node: list[Document], pool: Document | None = None, *, time_s: float = NOW) -> ClaimConditions:
    objects = read_objects([*node, pool or node_pool()])
    return conditions_of(objects.node_claims, objects.node_pools, catalogue(*TYPES), time_s)["claim-a"]


@pytest.mark.parametrize(
    ("consolidate_after", "event_s_ago", "is_consolidatable"),
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
    consolidate_after: str, event_s_ago: float | None, is_consolidatable: bool
) -> None:
    claim_conditions = conditions(
        machine("a", pod_event_s_ago=event_s_ago), node_pool(consolidate_after=consolidate_after)
    )
    assert claim_conditions.is_consolidatable is is_consolidatable


def test_a_node_that_is_not_initialized_is_not_consolidatable() -> None:
    assert not conditions(machine("a", stage="registered")).is_consolidatable


def test_nodes_of_a_static_pool_do_not_become_consolidatable() -> None:
    assert not conditions(machine("a"), node_pool(replicas=2)).is_consolidatable


@pytest.mark.parametrize("claim", [{"deletionTimestamp": "2026-05-01T00:00:00Z"}, {}])
def test_a_claim_that_is_deleted_or_without_its_pool_keeps_what_it_says(claim: dict[str, Any]) -> None:
    written_conditions = {"Consolidatable": "Consolidatable", "Drifted": "SomeDrift"}
    pool = node_pool(consolidate_after="Never") if claim else node_pool("other")
    claim_conditions = conditions(machine("a", conditions=written_conditions, claim=claim, created_s_ago=100), pool)
    assert claim_conditions == ClaimConditions(True, "SomeDrift", NOW - 100)


# ---------------------------------------------------------------- drift


def hash_annotations(hash_: str, version: str = "v3") -> Document:
    return {"annotations": {HASH: hash_, V3: version}}


def drift(node: list[Document], pool: Document) -> str:
    return conditions(node, pool).drifted


@pytest.mark.parametrize(
    ("own", "version", "reason"),
    [("1", "v3", ""), ("2", "v3", "NodePoolDrifted"), ("2", "v2", "")],
)
def test_a_changed_pool_is_seen_by_its_hash_if_versions_are_equal(own: str, version: str, reason: str) -> None:
    pool = node_pool()
    pool["metadata"].update(hash_annotations("1"))
    assert drift(machine("a", claim=hash_annotations(own, version)), pool) == reason


def test_without_a_hash_on_both_sides_nothing_is_compared() -> None:
    assert drift(machine("a", claim=hash_annotations("2")), node_pool()) == ""


def test_labels_must_meet_the_requirements_of_the_pool() -> None:
    spot = node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "spot")])
    team = node_pool(requirements=[requirement("team", "In", "a")])
    assert drift(machine("a"), spot) == "RequirementsDrifted"
    assert drift(machine("a", capacity_type="spot"), spot) == ""
    assert drift(machine("a"), team) == "RequirementsDrifted", "a label that is not known is not met"


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (machine("a", 3, created_s_ago=3601), "InstanceTypeNotFound"),
        (machine("a", 3, created_s_ago=3600), ""),
        (machine("a", 4, zone="zone-9", created_s_ago=3601), "InstanceTypeNotFound"),
        (machine("a", 4, capacity_type="spot", zone="zone-3", created_s_ago=3601), "InstanceTypeNotFound"),
        (machine("a", 4, capacity_type="reserved", created_s_ago=3601), ""),  # goes on as on-demand
    ],
)
def test_an_instance_type_that_is_not_offered_any_more_is_drift(node: list[Document], reason: str) -> None:
    assert drift(node, node_pool()) == reason


def test_an_unavailable_offering_is_still_offered() -> None:
    kind = instance_type("c-4", 4, "8Gi")
    for offering in kind["offerings"]:
        offering["Available"] = False
    objects = read_objects([*machine("a", created_s_ago=3601), node_pool()])
    conditions = conditions_of(objects.node_claims, objects.node_pools, catalogue(kind), NOW)
    assert conditions["claim-a"].drifted == ""


def test_drift_counts_from_when_it_was_seen_first() -> None:
    spot = node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "spot")])
    written_conditions = {"Drifted": "NodePoolDrifted"}
    assert conditions(machine("a"), spot).drifted_since_s == NOW
    claim_conditions = conditions(machine("a", conditions=written_conditions, created_s_ago=500), spot)
    assert (claim_conditions.drifted, claim_conditions.drifted_since_s) == ("RequirementsDrifted", NOW - 500)


def test_a_claim_that_is_not_launched_has_not_drifted() -> None:
    node = machine("a", conditions={"Drifted": "NodePoolDrifted"})
    launched = node[0]["status"]["conditions"][0]
    launched["status"] = "False"
    assert drift(node, node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "spot")])) == ""
