"""CapacityScheduling in whole attempts: borrowing, taking back, and refusals in upstream's words."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from podium.framework import PluginError
from podium.framework.contract.cluster_event import ActionType
from podium.library import Cluster
from podium.plugins.contrib.capacity_scheduling.plugin import CapacityScheduling
from podium.testing import check_contract
from tests.unit.plugins.contrib.capacity_scheduling.quota_bench import CONFIG, cluster, node, pod, quota


def victims(world: Cluster, incoming: dict[str, Any]) -> tuple[str | None, set[str]]:
    placement = world.place(incoming)
    assert placement.node is None
    return placement.nominated_node, {victim.key for victim in placement.victims}


def test_it_keeps_the_contract() -> None:
    check_contract(CapacityScheduling)


def test_it_registers_deleted_pods_and_quotas_under_upstreams_name() -> None:
    world = cluster(node("n1"))
    plugin = world.profiles["default-scheduler"].plugins["CapacityScheduling"]
    events = [registration.event for registration in plugin.events_to_register()]
    assert [(event.resource.value, event.action) for event in events] == [
        ("Pod", ActionType.DELETE),
        ("elasticquotas.v1alpha1.scheduling.x-k8s.io", ActionType.ALL),
    ]


def test_a_namespace_borrows_what_others_do_not_use() -> None:
    world = cluster(
        node("n1"), quota("a", min={"cpu": "2"}, max={"cpu": "4"}), quota("b", min={"cpu": "2"}), pod("a/x", "2", "n1")
    )
    assert world.place(pod("a/borrows", "2")).node == "n1"
    refusal = world.place(pod("a/too-much", "1"))
    assert (
        refusal.message == "0/1 nodes are available: Pod a/too-much is rejected in PreFilter because ElasticQuota a is "
        "more than Max. 0/1 nodes are available: 1 No victims found on node n1 for preemptor pod too-much."
    )
    free = world.place(pod("other/free", "1"))
    assert free.node == "n1"


def test_the_sum_of_all_guarantees_is_not_exceeded() -> None:
    world = cluster(node("n1"), quota("a", min={"cpu": "2"}), quota("b", min={"cpu": "2"}), pod("a/x", "4", "n1"))
    refusal = world.place(pod("a/y", "1"))
    assert "is rejected in PreFilter because total ElasticQuota used is more than min" in refusal.message
    assert "0/1 nodes are available: 1 No victims found on node n1 for preemptor pod y." in refusal.message


def test_what_was_borrowed_is_taken_back_whatever_the_priority_and_no_more_than_that() -> None:
    world = cluster(
        node("n1"),
        quota("a", min={"cpu": "2"}),
        quota("b", min={"cpu": "2"}),
        *(pod(f"a/x{number}", "1", "n1", priority=1000 + number) for number in range(4)),
    )
    assert victims(world, pod("b/owner", "2")) == ("n1", {"a/x0", "a/x1"})
    assert victims(world, pod("b/owner", "1")) == ("n1", {"a/x0"})


def test_above_its_guarantee_a_pod_preempts_lower_priorities_of_its_own_namespace_only() -> None:
    world = cluster(
        node("n1"),
        quota("a", min={"cpu": "2"}, max={"cpu": "3"}),
        quota("b", min={"cpu": "2"}),
        pod("a/low", "2", "n1"),
        pod("a/high", "1", "n1", priority=9),
        pod("b/x", "1", "n1"),
    )
    assert victims(world, pod("a/new", "1", priority=5)) == ("n1", {"a/low"})
    message = world.place(pod("a/new", "1")).message
    assert "1 No victims found on node n1 for preemptor pod new." in message


def test_pods_without_quotas_preempt_each_other_by_priority() -> None:
    world = cluster(
        node("n1", "2"),
        quota("a", min={"cpu": "1"}),
        pod("a/x", "1", "n1"),
        pod("free/y", "1", "n1"),
        pod("free/z", "0", "n1"),
    )
    assert victims(world, pod("free/new", "1", priority=5)) == ("n1", {"free/y"})


def test_victims_that_leave_the_maximum_exceeded_do_not_help() -> None:
    world = cluster(
        node("n1"),
        quota("a", min={"cpu": "1"}, max={"cpu": "2"}),
        quota("b", min={"cpu": "9"}),
        pod("a/high", "2", "n1", priority=9),
        pod("a/low", "0", "n1"),
    )
    assert "1 global quota max exceeded." in world.place(pod("a/new", "1", priority=5)).message


def test_what_was_borrowed_is_taken_back_on_a_full_node() -> None:
    world = cluster(
        node("n1", "4"),
        quota("a", min={"cpu": "2"}),
        quota("b", min={"cpu": "2"}),
        *(pod(f"a/x{number}", "1", "n1", priority=1000 + number) for number in range(4)),
    )
    assert victims(world, pod("b/owner", "2")) == ("n1", {"a/x0", "a/x1"})


def test_nominated_pods_that_exceed_the_quota_fail_the_node_as_upstream() -> None:
    """Upstream removes a victim twice if the quota is exceeded without it, too, and fails the second time."""
    waiting = pod("a/nominated", "2", priority=9, status={"nominatedNodeName": "n2"})
    world = cluster(
        node("n1", "3"),
        node("n2", "3"),
        quota("a", min={"cpu": "3"}, max={"cpu": "3"}),
        quota("b", min={"cpu": "9"}),
        pod("a/one", "2", "n1"),
        waiting,
    )
    evaluation = world.schedule(pod("a/new", "3", priority=5))
    status = evaluation.as_dict()["postfilter"]
    assert status["code"] == "Error"
    assert status["reasons"] == ["no corresponding pod one in pods of node n1"]


def test_why_names_the_quota_that_is_full_and_who_borrows() -> None:
    world = cluster(
        node("n1", "20"),
        quota("a", min={"cpu": "2"}, max={"cpu": "4"}),
        quota("b", min={"cpu": "4"}),
        quota("c", min={"cpu": "2"}),
        pod("a/x", "4", "n1"),
        pod("c/y", "3500m", "n1"),
    )
    [group] = world.why(pod("a/new", "2")).groups
    assert group.detail == (
        "quota a/quota: cpu 2 above its max, of which cpu 4 is in use; all quotas together: cpu 1500m above the sum of "
        "their min; a/quota has borrowed cpu 2, c/quota has borrowed cpu 1500m"
    )


def test_a_pod_that_must_not_preempt_does_not() -> None:
    world = cluster(node("n1", "1"), pod("free/y", "1", "n1"))
    incoming_pod = pod("free/new", "1", priority=5, spec={"preemptionPolicy": "Never"})
    assert world.place(incoming_pod).message.endswith("not eligible due to preemptionPolicy=Never.")


def test_a_pod_waits_for_the_victims_on_its_nominated_node() -> None:
    leaving = pod("a/x", "2", "n1")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    objects = (quota("a", min={"cpu": "1"}), quota("b", min={"cpu": "2"}), node("n1", "2"), leaving)
    incoming_pod = pod("b/owner", "2", status={"nominatedNodeName": "n1"})
    message = cluster(*objects).place(incoming_pod).message
    assert message.endswith("not eligible due to a terminating pod on the nominated node.")


def test_a_quota_that_cannot_be_read_rejects_its_pods_and_says_why() -> None:
    world = cluster(node("n1"), quota("a", min={"cpu": "two"}))
    message = world.place(pod("a/new")).message
    assert "ElasticQuota a/quota: spec.min[cpu]: " in message
    assert world.place(pod("b/new")).node == "n1"


def test_args_are_checked_and_say_what_a_missing_definition_means() -> None:
    config = copy.deepcopy(CONFIG)
    profile: Any = config["profiles"][0]  # type: ignore[index]
    profile["pluginConfig"] = [{"name": "CapacityScheduling", "args": {"whenMissing": "Perhaps"}}]
    with pytest.raises(PluginError, match="whenMissing"):
        cluster(node("n1"), config=config)
    profile["pluginConfig"][0]["args"] = {"whenMissing": "Reject"}
    world = cluster(node("n1"), config=config)
    plugin: Any = world.profiles["default-scheduler"].plugins["CapacityScheduling"]
    assert world.place(pod("a/new")).node == "n1"
    plugin.handle.is_missing = lambda resource: resource.plural == "elasticquotas"
    message = world.place(pod("a/other")).message
    assert "elasticquotas.scheduling.x-k8s.io is not installed" in message


def test_what_no_quota_guarantees_cannot_be_requested_where_there_is_one() -> None:
    """As upstream: the sum of all guarantees is 0 then, whatever the maximum is."""
    world = cluster(
        node("n1", **{"example.com/gpu": "4"}), quota("a", min={"cpu": "2"}, max={"cpu": "4", "example.com/gpu": "4"})
    )
    requests = {"cpu": "1", "example.com/gpu": "1"}
    assert "total ElasticQuota used is more than min" in world.place(pod("a/x", requests=requests)).message
    assert world.place(pod("free/x", requests=requests)).node == "n1"
    assert world.place(pod("a/y", requests={"cpu": "1"})).node == "n1"


@pytest.mark.parametrize(
    "spec",
    [
        {"min": {"cpu": "-5"}},
        {"min": {"cpu": "1e300"}, "max": {"cpu": "1e19"}},
        {"min": {"": "1", "a b": "2", "pods": "-1"}},
        {"min": {"cpu": "4"}, "max": {"cpu": "1"}},
        {"min": {"cpu": "x" * 2000}},
        {"parent": "nowhere", "namespaceSelector": {"matchExpressions": [{"key": "/", "operator": ""}]}},
    ],
)
def test_an_absurd_quota_is_named_and_pods_without_quota_do_not_suffer(spec: Any) -> None:
    world = cluster(node("n1"), quota("bad", **spec), quota("a", min={"cpu": "2"}))
    assert world.place(pod("free/x")).node == "n1"
    answer = world.place(pod("bad/x"))
    assert answer.node == "n1" or "ElasticQuota" in answer.message
    assert world.place(pod("a/x")).node == "n1" or "ElasticQuota" in world.place(pod("a/x")).message
