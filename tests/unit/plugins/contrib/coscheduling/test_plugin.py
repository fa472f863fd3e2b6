"""What Coscheduling decides about one pod; `tests/unit/daemon/test_coscheduling.py` has whole gangs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.framework.contract.cluster_event import QueueingHint
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.contract.status import Code, PluginError, Status, unresolvable, unschedulable
from podium.framework.profile.plugin_args import typed_args
from podium.objects.core import Pod
from podium.objects.coscheduling import GROUP_LABEL, MIN_MEMBER, CoschedulingPodGroup
from podium.objects.resource_types import COSCHEDULING_POD_GROUPS, PODS
from podium.plugins.contrib.coscheduling.plugin import Coscheduling, CoschedulingArgs
from podium.testing import check_contract
from tests.builders import cache_of, node, pod
from tests.unit.plugins.clusters import RecordingHandle

STATE = CycleState()


def group(name: str = "train", namespace: str = "default", created: str = "2026-01-01T00:00:00Z", **spec: Any) -> Any:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "creationTimestamp": created}
    return msgspec.convert({"metadata": metadata, "spec": {"minMember": 3, **spec}}, CoschedulingPodGroup)


def member(name: str, of: str = "train", needs: str = "", **fields: Any) -> Pod:
    metadata = {"annotations": {MIN_MEMBER: needs} if needs else {}, **fields.pop("metadata", {})}
    return pod(name, labels={GROUP_LABEL: of}, metadata=metadata, **fields)


def plugin(*items: Any, args: CoschedulingArgs | None = None, nodes: Any = (), **fields: Any) -> Coscheduling:
    pods = [each for each in items if isinstance(each, Pod)]
    groups = [each for each in items if not isinstance(each, Pod)]
    handle = RecordingHandle(
        cache_of(*nodes, *(each for each in pods if each.node_name)).snapshot(),
        objects={PODS: pods, COSCHEDULING_POD_GROUPS: groups},
        **fields,
    )
    made: Any = handle
    return Coscheduling(args or CoschedulingArgs(), made)


def pre_filter(made: Coscheduling, item: Pod) -> Status | None:
    return made.pre_filter(STATE, item, made.handle.snapshot())[1]


A, B, C = (member(name) for name in "abc")


def test_it_keeps_the_contract() -> None:
    check_contract(Coscheduling)


def test_pods_without_a_group_are_left_alone() -> None:
    made, alone = plugin(), pod("alone")
    assert pre_filter(made, alone) is None
    assert made.permit(STATE, alone, "n1") == (None, 0.0)
    assert made.reserve(STATE, alone, "n1") is None
    made.unreserve(STATE, alone, "n1")
    filtered: Any = None
    assert made.post_filter(STATE, alone, made.handle.snapshot(), filtered) == (
        None,
        unschedulable("can not find pod group"),
    )


def test_a_gang_without_enough_pods_is_not_tried() -> None:
    told = "pre-filter pod a cannot find enough sibling pods, current pods number: 2, minMember of group: 3"
    assert pre_filter(plugin(A, B, group()), A) == unresolvable(told)
    assert pre_filter(plugin(A, B, C, group()), A) is None


def test_pods_of_one_name_in_other_namespaces_are_another_gang() -> None:
    there = member("c", namespace="other")
    status = pre_filter(plugin(A, B, there, group()), A)
    assert status is not None
    assert "current pods number: 2," in status.message


def test_gated_siblings_do_not_count() -> None:
    told = unresolvable("pre-filter pod a cannot proceed due to gated pods in the same PodGroup")
    assert pre_filter(plugin(A, B, member("c", gates=["wait"]), group()), A) == told
    assert pre_filter(plugin(A, B, C, member("d", gates=["wait"]), group()), A) is None


def test_the_cluster_must_have_what_the_gang_needs_at_least() -> None:
    asks = group(minResources={"cpu": "6", "memory": "1Gi"})
    small, big = [node("n1", cpu="4")], [node("n1", cpu="4"), node("n2", cpu="2")]
    assert pre_filter(plugin(A, B, C, asks, nodes=small), A) == unresolvable("resource gap: cpu 2000m")
    assert pre_filter(plugin(A, B, C, asks, nodes=big), A) is None
    few = [node("n1", cpu="9", pods=2)]
    assert pre_filter(plugin(A, B, C, asks, nodes=few), A) == unresolvable("resource gap: pods 1")
    own = member("a", cpu="4", node="n1")
    assert pre_filter(plugin(own, B, C, asks, nodes=big), B) is None
    broken = group(minResources={"cpu": "much"})
    status = pre_filter(plugin(A, B, C, broken, nodes=big), A)
    assert status is not None
    assert "minResources" in status.message


def test_members_wait_for_each_other_and_the_first_one_has_the_others_tried() -> None:
    made = plugin(A, B, C, group())
    handle: Any = made.handle
    made.reserve(STATE, A, "n1")
    assert made.permit(STATE, A, "n1") == (Status(Code.WAIT), 60.0)
    assert handle.activated == [B.key, C.key]
    made.reserve(STATE, B, "n1")
    assert made.permit(STATE, B, "n1") == (Status(Code.WAIT), 60.0)
    assert handle.activated == [B.key, C.key]
    made.reserve(STATE, C, "n1")
    assert made.permit(STATE, C, "n1") == (None, 0.0)


def test_bound_members_count_after_a_restart() -> None:
    made = plugin(member("a", node="n1"), member("b", node="n1"), C, group(), nodes=[node()])
    made.reserve(STATE, C, "n1")
    assert made.permit(STATE, C, "n1") == (None, 0.0)


@pytest.mark.parametrize(
    ("spec", "args", "seconds"),
    [
        ({"scheduleTimeoutSeconds": 7}, CoschedulingArgs(), 7.0),
        ({}, CoschedulingArgs(permit_waiting_time_seconds=9), 9.0),
        ({}, CoschedulingArgs(permit_waiting_time_seconds=0), 60.0),
    ],
)
def test_how_long_members_wait(spec: Any, args: CoschedulingArgs, seconds: float) -> None:
    made = plugin(A, B, C, group(**spec), args=args)
    made.reserve(STATE, A, "n1")
    assert made.permit(STATE, A, "n1")[1] == seconds


def test_a_group_that_is_not_there_gets_no_nodes() -> None:
    made = plugin(A)
    assert pre_filter(made, A) is None
    assert made.permit(STATE, A, "n1") == (unschedulable("PodGroup not found"), 0.0)


def test_without_pod_groups_pods_say_how_many_they_are() -> None:
    first, second = member("a", needs="2"), member("b", needs="2")
    assert pre_filter(plugin(first), first) is not None
    made = plugin(first, second)
    assert pre_filter(made, first) is None
    made.reserve(STATE, first, "n1")
    assert made.permit(STATE, first, "n1") == (Status(Code.WAIT), 60.0)
    labelled = pod("c", labels={GROUP_LABEL: "train", MIN_MEMBER: "1"})
    made = plugin(labelled)
    made.reserve(STATE, labelled, "n1")
    assert made.permit(STATE, labelled, "n1") == (None, 0.0)


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "٣", "9" * 5000, " 2"])
def test_a_number_of_members_that_is_none_is_told(text: str) -> None:
    wrong = member("a", needs=text)
    status = pre_filter(plugin(wrong), wrong)
    assert status is not None
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message.startswith(f'pod default/a: {MIN_MEMBER} "{text[:40]}')
    assert status.message.endswith("is not a positive number of pods")


@pytest.mark.parametrize("needed", [0, -5, -(2**31)])
def test_a_group_that_needs_nobody_holds_nobody(needed: int) -> None:
    made = plugin(A, group(minMember=needed))
    assert pre_filter(made, A) is None
    made.reserve(STATE, A, "n1")
    assert made.permit(STATE, A, "n1") == (None, 0.0)


def test_a_group_that_needs_more_than_there_ever_are_waits() -> None:
    status = pre_filter(plugin(A, group(minMember=2**31 - 1)), A)
    assert status is not None
    assert status.message.endswith("minMember of group: 2147483647")


def rejected(made: Coscheduling, item: Pod) -> Status | None:
    filtered: Any = None
    return made.post_filter(STATE, item, made.handle.snapshot(), filtered)[1]


def test_a_gang_that_lacks_few_members_keeps_its_nodes() -> None:
    pods = [member(f"p{at}") for at in range(10)]
    made = plugin(*pods, group(minMember=10))
    for each in pods[:8]:
        made.reserve(STATE, each, "n1")
    told = "PodGroup default/train gets rejected due to Pod p9 is unschedulable even after PostFilter"
    assert rejected(made, pods[9]) == unschedulable(told)
    made.reserve(STATE, pods[8], "n1")
    assert rejected(made, pods[9]) == Status(Code.UNSCHEDULABLE)
    strict = plugin(*pods, group(minMember=10), args=CoschedulingArgs(pod_group_reject_percentage=0))
    for each in pods[:9]:
        strict.reserve(STATE, each, "n1")
    assert rejected(strict, pods[9]) == unschedulable(told)


def test_a_rejected_gang_backs_off() -> None:
    made = plugin(A, B, C, group(), args=CoschedulingArgs(pod_group_backoff_seconds=20))
    clock: Any = made.handle.clock
    rejected(made, A)
    assert pre_filter(made, B) == unresolvable("podGroup default/train failed recently")
    assert made.gangs.take_backed_off(clock.now()) == []
    clock.advance(20)
    assert pre_filter(made, B) is None
    assert [list(each.members) for each in made.gangs.take_backed_off(clock.now())] == [["uid-a", "uid-b", "uid-c"]]
    assert made.gangs.take_backed_off(clock.now()) == []


def test_gangs_stay_together_in_the_queue_by_age_and_failed_ones_go_last() -> None:
    old, new = group("old", created="2026-01-01T00:00:00Z"), group("new", created="2026-01-01T00:00:01Z")
    items = [member("a", "new"), member("b", "old"), member("c", "new"), member("d", "old")]
    made = plugin(old, new, *items)
    urgent = pod("urgent", priority=5)

    def order() -> list[str]:
        infos = [QueuedPodInfo(each, 1e12) for each in (*items, urgent)]
        return [each.pod.metadata.name for each in sorted(infos, key=made.sort_key)]

    assert order() == ["urgent", "b", "d", "a", "c"]
    first, second = (QueuedPodInfo(items[at], 0.0) for at in (1, 0))
    assert made.less(first, second)
    assert not made.less(second, first)
    made.handle.clock.advance(3e9)  # type: ignore[attr-defined]
    rejected(made, items[1])
    assert order() == ["urgent", "a", "c", "d", "b"]


def test_a_member_that_fits_nowhere_goes_after_its_siblings_until_they_have_failed() -> None:
    """Others may be enough. One that was not tried because its group backs off has not failed."""
    items = [A, B, C]
    made = plugin(*items, group())

    def order() -> list[str]:
        return [
            each.pod.metadata.name for each in sorted((QueuedPodInfo(each, 0.0) for each in items), key=made.sort_key)
        ]

    for failing, expected in ((A, "bca"), (B, "cab"), (C, "abc")):
        made.handle.clock.advance(20)  # type: ignore[attr-defined]
        rejected(made, failing)
        for sibling in items:
            rejected(made, sibling)
        assert "".join(order()) == expected


def test_hints_wake_the_members_of_that_group() -> None:
    made = plugin()
    queue, skip = QueueingHint.QUEUE, QueueingHint.SKIP
    assert made.after_pod_add(A, None, B) is queue
    assert made.after_pod_add(A, None, member("x", namespace="other")) is skip
    assert made.after_pod_add(pod(), None, pod("x")) is skip
    was, now = group(), group(minMember=2)
    assert made.after_pod_group_change(A, None, now) is queue
    assert made.after_pod_group_change(A, was, now) is queue
    assert made.after_pod_group_change(A, was, was) is skip
    assert made.after_pod_group_change(A, None, group("other")) is skip
    assert len(made.events_to_register()) == 2


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"permitWaitingTimeSeconds": -1}, "args.permitWaitingTimeSeconds: expected `int` >= 0"),
        ({"podGroupBackoffSeconds": "5s"}, "args.podGroupBackoffSeconds: expected `int`, got `str`"),
        ({"podGroupRejectPercentage": 101}, "args.podGroupRejectPercentage: expected `int` <= 100"),
        ({"podGroupBackoff": 5}, "args.podGroupBackoff: unknown field; known: "),
        ({"kind": "OtherArgs"}, "args.kind: invalid enum value 'OtherArgs'"),
    ],
)
def test_wrong_args_are_told_by_field(value: Any, told: str) -> None:
    with pytest.raises(PluginError) as caught:
        typed_args(Coscheduling, value)
    assert str(caught.value).startswith(told)


def test_args_are_read_as_scheduler_plugins_writes_them() -> None:
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "CoschedulingArgs"}
    read = typed_args(Coscheduling, {**head, "permitWaitingTimeSeconds": 10, "podGroupBackoffSeconds": 3})
    assert read == CoschedulingArgs(permit_waiting_time_seconds=10, pod_group_backoff_seconds=3)
    assert typed_args(Coscheduling, None) == CoschedulingArgs()


def test_a_rejected_gang_costs_one_step_for_each_member() -> None:
    """Each member that is rejected with the others is unreserved, and then finds nobody left to reject."""
    pods = [member(f"p{at}") for at in range(50)]
    asked: list[str] = []

    class Waiting:
        def get(self, uid: str) -> Any:
            asked.append(uid)
            return self

        def reject(self, plugin: str, why: str) -> bool:
            assert (plugin, why) == ("Coscheduling", "rejection in Unreserve")
            return True

    made = plugin(*pods, group(minMember=60), waiting_pods=Waiting())
    for each in pods:
        made.reserve(STATE, each, "n1")
        made.permit(STATE, each, "n1")
    for each in pods:
        made.unreserve(STATE, each, "n1")
    assert len(asked) == len(pods) - 1
