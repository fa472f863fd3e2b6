"""The loop over the waiting pods: which place each gets, and what is left to buy."""

from __future__ import annotations

import pytest

from tests.unit.provisioner.clusters import (
    CAPACITY_TYPE,
    HOSTNAME,
    TYPES,
    ZONE,
    Document,
    instance_type,
    node,
    node_affinity,
    node_pool,
    plan,
    pod,
    pod_affinity,
    requirement,
    spread,
)

WEB = {"app": "web"}


def sizes(answer: Document) -> list[int]:
    return sorted(len(claim["pods"]) for claim in answer["claims"])


def zones(answer: Document) -> list[str]:
    return sorted(
        value
        for claim in answer["claims"]
        for requirement in claim["requirements"]
        if requirement["key"] == ZONE
        for value in requirement["values"]
    )


def webs(count: int, **fields: object) -> list[Document]:
    return [pod(f"web-{index}", labels=WEB, **fields) for index in range(count)]  # type: ignore[arg-type]


def initial(**requests: str) -> Document:
    return {"name": "initial", "resources": {"requests": requests}}


def test_a_pod_gets_the_cheapest_type_that_has_room() -> None:
    (claim,) = plan(pod("a", cpu="100m"))["claims"]
    assert (claim["types"], claim["pods"], claim["pool"]) == (["small", "default", "arm"], ["default/a"], "pool")
    (claim,) = plan(pod("a", cpu="3"))["claims"]
    assert claim["types"] == ["default", "arm"]


def test_a_node_takes_as_many_pods_as_its_largest_type() -> None:
    assert sizes(plan(*webs(25, cpu="1m"))) == [5, 5, 5, 5, 5]


@pytest.mark.parametrize(
    ("pod_fields", "cheapest"),
    [
        pytest.param({"cpu": "100m", "memory": "100M"}, "small", id="memory 100M"),
        pytest.param({"cpu": "100m", "memory": "2000M"}, "small", id="memory 2000M"),
        pytest.param({"cpu": "1", "overhead": {"cpu": "2"}}, "default", id="1 cpu and 2 of overhead"),
        pytest.param({"initContainers": [initial(cpu="2")]}, "default", id="init container of 2 cpu"),
        pytest.param({"initContainers": [initial(**{"example.com/unknown": "0"})]}, "small", id="zero of an unknown"),
    ],
)
def test_the_cheapest_type_has_room_for_all_that_a_pod_requests(pod_fields: Document, cheapest: str) -> None:
    (claim,) = plan(pod("a", **pod_fields))["claims"]
    assert claim["types"][0] == cheapest


@pytest.mark.parametrize("light", [0, 20])
def test_light_pods_fill_what_heavy_ones_leave(light: int) -> None:
    amd64 = {"kubernetes.io/arch": "amd64"}
    heavy = [pod(f"heavy-{index}", cpu="10m", memory="1.8G", nodeSelector=amd64) for index in range(40)]
    light_pods = [pod(f"light-{index}", cpu="10m", memory="400M", nodeSelector=amd64) for index in range(light)]
    answer = plan(*heavy, *light_pods)
    assert [claim["types"][0] for claim in answer["claims"]] == ["default"] * 20
    assert sum(sizes(answer)) == 40 + light


def test_five_tiny_pods_share_the_smallest_type() -> None:
    (claim,) = plan(*webs(5, cpu="10m", memory="10M"))["claims"]
    assert (claim["types"][0], len(claim["pods"])) == ("small", 5)


def test_two_pods_too_large_for_one_node_get_two() -> None:
    types = [instance_type(f"type-{cpu}", cpu, f"{2 * cpu}Gi", 10 * cpu) for cpu in range(1, 6)]
    assert sizes(plan(pod("a", cpu="4500m"), pod("b"), types=types)) == [1, 1]


def test_a_zone_that_the_pool_labels_takes_all_pods_of_a_spread() -> None:
    pods = webs(4, topologySpreadConstraints=[spread()])
    answer = plan(*pods, node_pool(labels={ZONE: "zone-1"}), types=[instance_type("big", 64, "64Gi", 50)])
    assert sizes(answer) == [4]


def test_a_spread_over_an_unknown_label_is_met_nowhere() -> None:
    answer = plan(*webs(1, topologySpreadConstraints=[spread("example.com/unknown")]))
    assert (answer["claims"], list(answer["errors"])) == ([], ["default/web-0"])


def test_a_limit_leaves_room_for_one_of_two_pods_that_repel_each_other() -> None:
    apart = pod_affinity("web", HOSTNAME, anti=True)
    answer = plan(*webs(2, cpu="1500m", affinity=apart), node_pool(limits={"cpu": "3"}))
    assert (sizes(answer), len(answer["errors"])) == ([1], 1)


def test_a_pod_that_fits_no_type_stays() -> None:
    answer = plan(pod("a", memory="2Ti"))
    assert answer["claims"] == []
    assert answer["errors"]["default/a"].startswith("no instance type has enough resources, requirements=")


def test_nodes_that_are_there_come_first() -> None:
    answer = plan(pod("a"), pod("b", cpu="5"), node(cpu="4"))
    assert answer["existing"] == {"node-1": ["default/a"]}
    assert [claim["pods"] for claim in answer["claims"]] == [["default/b"]]


def test_the_heaviest_pool_is_tried_first_and_of_equals_the_last_by_name() -> None:
    assert plan(pod("a"), node_pool("one", weight=10), node_pool("two"))["claims"][0]["pool"] == "one"
    assert plan(pod("a"), node_pool("one"), node_pool("two"))["claims"][0]["pool"] == "two"


def test_every_pool_has_a_reason_for_a_pod_that_stays() -> None:
    taint = {"key": "gpu", "value": "a", "effect": "NoSchedule"}
    answer = plan(pod("a", nodeSelector={"team": "x"}), node_pool("one", taints=[taint]), node_pool("two"))
    assert answer["errors"]["default/a"] == (
        'incompatible requirements, label "team" does not have known values; '
        "did not tolerate taint (taint=gpu=a:NoSchedule)"
    )


@pytest.mark.parametrize(("cpu", "bought"), [("1750m", 1), ("2100m", 0)])
def test_a_limit_holds(cpu: str, bought: int) -> None:
    answer = plan(pod("a", cpu=cpu), node_pool(limits={"cpu": "2"}))
    assert len(answer["claims"]) == bought
    assert len(answer["errors"]) == 1 - bought


def test_the_reason_names_a_limit_below_every_type() -> None:
    answer = plan(pod("a"), node_pool(limits={"cpu": "1"}))
    text = "all available instance types exceed limits for nodepool (NodePool=pool)"
    assert answer["errors"] == {"default/a": text}


def test_a_limit_counts_the_largest_type_of_a_planned_node() -> None:
    apart = pod_affinity("web", HOSTNAME, anti=True)
    answer = plan(*webs(2, affinity=apart), node_pool(limits={"cpu": "4"}))
    assert (len(answer["claims"]), len(answer["errors"])) == (1, 1)


def test_the_reason_names_a_limit_of_no_nodes() -> None:
    answer = plan(pod("a"), node_pool(limits={"nodes": "0"}))
    assert answer["errors"] == {"default/a": "node limits have been exhausted for nodepool (NodePool=pool)"}


def test_a_limit_of_nodes_does_not_count_those_of_the_same_plan() -> None:
    answer = plan(*webs(2, affinity=pod_affinity("web", HOSTNAME, anti=True)), node_pool(limits={"nodes": "1"}))
    assert (len(answer["claims"]), answer["errors"]) == (2, {})


@pytest.mark.parametrize(("count", "pod_counts"), [(4, [1, 1, 2]), (11, [3, 4, 4])])
def test_pods_are_spread_over_zones(count: int, pod_counts: list[int]) -> None:
    answer = plan(*webs(count, topologySpreadConstraints=[spread()]), types=[instance_type("big", 64, "64Gi", 50)])
    assert sizes(answer) == pod_counts
    assert zones(answer) == ["zone-1", "zone-2", "zone-3"]


def test_zones_that_no_pool_has_are_not_waited_for() -> None:
    pool = node_pool(requirements=[requirement(ZONE, "In", "zone-1", "zone-2")])
    answer = plan(*webs(4, topologySpreadConstraints=[spread()]), pool, types=[instance_type("big", 64, "64Gi", 50)])
    assert sizes(answer) == [2, 2]


def test_too_few_domains_count_as_empty_ones() -> None:
    pool = node_pool(requirements=[requirement(ZONE, "In", "zone-1", "zone-2")])
    answer = plan(*webs(3, topologySpreadConstraints=[spread(minDomains=3)]), pool)
    assert (sizes(answer), len(answer["errors"])) == ([1, 1], 1)


@pytest.mark.parametrize(("skew", "pod_counts"), [(1, [1, 1, 1, 1]), (4, [4])])
def test_pods_are_spread_over_nodes(skew: int, pod_counts: list[int]) -> None:
    assert sizes(plan(*webs(4, cpu="100m", topologySpreadConstraints=[spread(HOSTNAME, skew=skew)]))) == pod_counts


def test_a_preference_is_kept_if_it_can_be_and_dropped_if_not() -> None:
    wish = node_affinity(preferences=[(10, requirement(ZONE, "In", "nowhere")), (5, requirement(ZONE, "In", "zone-2"))])
    assert zones(plan(pod("a", affinity=wish))) == ["zone-2"]
    assert zones(plan(pod("a", affinity=wish), ignore_preferences=True)) == []


def test_an_alternative_is_tried_when_the_first_fails() -> None:
    wish = node_affinity(requirement(ZONE, "In", "nowhere"), requirement(ZONE, "In", "zone-3"))
    assert zones(plan(pod("a", affinity=wish))) == ["zone-3"]


def test_a_prefer_no_schedule_taint_is_tolerated_last() -> None:
    pool = node_pool(taints=[{"key": "old", "effect": "PreferNoSchedule"}])
    assert sizes(plan(pod("a"), pool)) == [1]


def test_a_pod_that_follows_another_waits_for_it() -> None:
    first = pod("a-first", cpu="100m", labels={"app": "base"})
    answer = plan(pod("follower", cpu="2", affinity=pod_affinity("base", HOSTNAME)), first, types=[TYPES[1]])
    assert sizes(answer) == [2]


def test_pods_that_want_devices_stay() -> None:
    claims = [{"name": "gpu", "resourceClaimName": "gpu"}]
    answer = plan(pod("a", resourceClaims=claims))
    assert "Dynamic Resource Allocation" in answer["errors"]["default/a"]


def test_without_any_instance_type_only_nodes_that_are_there_take_pods() -> None:
    pool = node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "reserved")])
    answer = plan(pod("a", cpu="3"), pod("b", cpu="3"), pool, node(cpu="4"))
    assert list(answer["existing"]) == ["node-1"]
    assert list(answer["skipped"]) == ["pool"]
    assert list(answer["errors"].values()) == ["nodepool requirements filtered out all available instance types"]


def test_the_plan_is_the_same_each_time() -> None:
    objects = [*webs(12, topologySpreadConstraints=[spread(), spread(HOSTNAME, skew=3)]), node(zone="zone-1")]
    assert plan(*objects) == plan(*reversed(objects))
