"""Quotas over several namespaces, in trees, with fair shares."""

from __future__ import annotations

import copy
from typing import Any

from podium.library import Cluster
from tests.unit.plugins.contrib.capacity_scheduling.quota_bench import CONFIG, cluster, node, pod, quota

TREES = copy.deepcopy(CONFIG)
PROFILE: Any = TREES["profiles"]
PROFILE[0]["pluginConfig"] = [{"name": "CapacityScheduling", "args": {"quotaTrees": True}}]


def namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def trees(*objects: dict[str, Any]) -> Cluster:
    return cluster(node("n1", "20"), *objects, config=TREES)


TEAM = {"matchLabels": {"team": "a"}}
COMPANY = quota("root", "company", min={"cpu": "8"}, max={"cpu": "8"})


def child(name: str, cpu_min: str, **spec: Any) -> dict[str, Any]:
    return quota(name, min={"cpu": cpu_min}, parent="root/company", **spec)


def victims(world: Cluster, asked: dict[str, Any]) -> set[str]:
    return {victim.key for victim in world.place(asked).victims}


def test_without_the_arg_selectors_and_parents_are_ignored() -> None:
    objects = (node("n1", "20"), COMPANY, child("a", "2", namespaceSelector=TEAM), namespace("a-1", team="a"))
    world = cluster(*objects)
    assert world.place(pod("a-1/x", "9")).node == "n1"
    assert trees(*objects[1:]).place(pod("a-1/x", "9")).node is None


def test_a_quota_covers_the_namespaces_that_its_selector_matches() -> None:
    world = trees(
        quota("teams", "a", min={"cpu": "4"}, max={"cpu": "4"}, namespaceSelector=TEAM),
        namespace("a-1", team="a"),
        namespace("a-2", team="a"),
        namespace("b"),
        pod("a-1/x", "3", "n1"),
    )
    refused = world.place(pod("a-2/y", "2"))
    assert "Pod a-2/y is rejected in PreFilter because ElasticQuota teams/a is more than Max" in refused.message
    assert world.place(pod("a-2/y", "1")).node == "n1"
    assert world.place(pod("b/free", "9")).node == "n1"
    assert world.place(pod("teams/free", "1")).node == "n1"


def test_what_is_used_counts_in_every_quota_above() -> None:
    world = trees(COMPANY, child("a", "4"), child("b", "4", max={"cpu": "9"}), pod("a/x", "5", "n1"))
    refused = world.place(pod("b/y", "4"))
    assert "ElasticQuota b/quota is more than Max" in refused.message
    [group] = world.why(pod("b/y", "4")).groups
    assert group.detail.startswith("quota root/company: cpu 1 above its max, of which cpu 5 is in use")
    assert world.place(pod("b/y", "3")).node == "n1"


def test_a_quota_below_takes_back_what_its_sibling_has_borrowed() -> None:
    world = trees(
        COMPANY, child("a", "4"), child("b", "4"), *(pod(f"a/x{number}", "1", "n1", priority=9) for number in range(8))
    )
    assert len(victims(world, pod("b/y", "2"))) == 2


def test_siblings_share_what_a_third_one_leaves_by_their_guarantees() -> None:
    """Of 8 cores, 4 are lent by c: a has a guarantee of 3 and b of 1, so that a may have 6 and b 2."""
    quotas = (COMPANY, child("a", "3"), child("b", "1"), child("c", "4"))
    greedy = [pod(f"b/x{number}", "1", "n1", priority=9) for number in range(5)]
    world = trees(*quotas, *greedy, *(pod(f"a/x{number}", "1", "n1") for number in range(3)))
    assert len(victims(world, pod("a/more", "1"))) == 1
    fair = trees(*quotas, *greedy[:2], *(pod(f"a/x{number}", "1", "n1") for number in range(6)))
    assert victims(fair, pod("a/more", "1")) == set()
    assert victims(fair, pod("b/more", "1")) == set()


def test_parents_that_do_not_exist_or_are_below_themselves_are_named() -> None:
    world = trees(
        quota("a", min={"cpu": "1"}, parent="missing"), quota("b", "one", parent="two"), quota("b", "two", parent="one")
    )
    assert "ElasticQuota a/quota: spec.parent: there is no quota a/missing" in world.place(pod("a/x")).message
    assert "spec.parent: b/" in world.place(pod("b/x")).message
    assert "is below itself" in world.place(pod("b/x")).message


def test_a_selector_that_is_invalid_selects_nothing() -> None:
    invalid = {"matchExpressions": [{"key": "team", "operator": "Maybe"}]}
    world = trees(quota("a", max={"cpu": "0"}, namespaceSelector=invalid), namespace("a"))
    assert world.place(pod("a/x")).node == "n1"


def test_namespaces_that_change_their_labels_change_their_quota() -> None:
    world = trees(
        quota("teams", "a", min={"cpu": "4"}, max={"cpu": "4"}, namespaceSelector=TEAM), namespace("a-1", team="a")
    )
    assert world.place(pod("a-1/x", "5")).node is None
    world.replace(namespace("a-1", team="b"))
    assert world.place(pod("a-1/x", "5")).node == "n1"


def test_odd_quotas_of_trees_are_named_with_object_and_field() -> None:
    invalid = {"matchExpressions": [{"key": "team", "operator": "Maybe"}]}
    everywhere: dict[str, Any] = {}
    world = trees(
        quota("a", parent="missing"),
        quota("b", namespaceSelector=invalid),
        quota("c", creation_time="2026-01-01T00:00:00Z", namespaceSelector=everywhere),
        namespace("x"),
        quota("y", min={"cpu": "-1"}, namespaceSelector={"matchLabels": {"none": "of them"}}),
    )
    plugin: Any = world.profiles["default-scheduler"].plugins["CapacityScheduling"]
    notes = plugin.notes()
    assert "ElasticQuota a/quota: spec.parent: there is no quota a/missing" in notes
    assert any(note.startswith("ElasticQuota b/quota: spec.namespaceSelector: ") for note in notes)
    assert "ElasticQuota c/quota: does not count in a beside a/quota, which is older" in notes
    assert "ElasticQuota y/quota: spec.min[cpu]: is negative" in notes
