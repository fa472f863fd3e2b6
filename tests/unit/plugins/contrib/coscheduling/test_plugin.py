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


def group(
    name: str = "train", namespace: str = "default", creation_time: str = "2026-01-01T00:00:00Z", **spec: Any
) -> Any:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "creationTimestamp": creation_time}
    return msgspec.convert({"metadata": metadata, "spec": {"minMember": 3, **spec}}, CoschedulingPodGroup)


def member(name: str, of: str = "train", needs: str = "", **fields: Any) -> Pod:
    metadata = {"annotations": {MIN_MEMBER: needs} if needs else {}, **fields.pop("metadata", {})}
    return pod(name, labels={GROUP_LABEL: of}, metadata=metadata, **fields)


def plugin(*items: Any, args: CoschedulingArgs | None = None, nodes: Any = (), **fields: Any) -> Coscheduling:
    pods = [item for item in items if isinstance(item, Pod)]
    groups = [item for item in items if not isinstance(item, Pod)]
    handle = RecordingHandle(
        cache_of(*nodes, *(pod for pod in pods if pod.node_name)).snapshot(),
        objects={PODS: pods, COSCHEDULING_POD_GROUPS: groups},
        **fields,
    )
    recording_handle: Any = handle
    return Coscheduling(args or CoschedulingArgs(), recording_handle)


def pre_filter(coscheduling: Coscheduling, item: Pod) -> Status | None:
    return coscheduling.pre_filter(STATE, item, coscheduling.handle.snapshot())[1]


A, B, C = (member(name) for name in "abc")


def test_it_keeps_the_contract() -> None:
    check_contract(Coscheduling)


def test_pods_without_a_group_are_left_alone() -> None:
    coscheduling, alone = plugin(), pod("alone")
    assert pre_filter(coscheduling, alone) is None
    assert coscheduling.permit(STATE, alone, "n1") == (None, 0.0)
    assert coscheduling.reserve(STATE, alone, "n1") is None
    coscheduling.unreserve(STATE, alone, "n1")
    filter_result: Any = None
    assert coscheduling.post_filter(STATE, alone, coscheduling.handle.snapshot(), filter_result) == (
        None,
        unschedulable("can not find pod group"),
    )


def test_a_gang_without_enough_pods_is_not_tried() -> None:
    message = "pre-filter pod a cannot find enough sibling pods, current pods number: 2, minMember of group: 3"
    assert pre_filter(plugin(A, B, group()), A) == unresolvable(message)
    assert pre_filter(plugin(A, B, C, group()), A) is None


def test_pods_of_one_name_in_other_namespaces_are_another_gang() -> None:
    foreign_member = member("c", namespace="other")
    status = pre_filter(plugin(A, B, foreign_member, group()), A)
    assert status is not None
    assert "current pods number: 2," in status.message


def test_gated_siblings_do_not_count() -> None:
    status_expected = unresolvable("pre-filter pod a cannot proceed due to gated pods in the same PodGroup")
    assert pre_filter(plugin(A, B, member("c", gates=["wait"]), group()), A) == status_expected
    assert pre_filter(plugin(A, B, C, member("d", gates=["wait"]), group()), A) is None


def test_the_cluster_must_have_what_the_gang_needs_at_least() -> None:
    asks = group(minResources={"cpu": "6", "memory": "1Gi"})
    small, big = [node("n1", cpu="4")], [node("n1", cpu="4"), node("n2", cpu="2")]
    assert pre_filter(plugin(A, B, C, asks, nodes=small), A) == unresolvable("resource gap: cpu 2000m")
    assert pre_filter(plugin(A, B, C, asks, nodes=big), A) is None
    small_nodes = [node("n1", cpu="9", pods=2)]
    assert pre_filter(plugin(A, B, C, asks, nodes=small_nodes), A) == unresolvable("resource gap: pods 1")
    own = member("a", cpu="4", node="n1")
    assert pre_filter(plugin(own, B, C, asks, nodes=big), B) is None
    unreadable_group = group(minResources={"cpu": "much"})
    status = pre_filter(plugin(A, B, C, unreadable_group, nodes=big), A)
    assert status is not None
    assert "minResources" in status.message


def test_members_wait_for_each_other_and_the_first_one_has_the_others_tried() -> None:
    coscheduling = plugin(A, B, C, group())
    handle: Any = coscheduling.handle
    coscheduling.reserve(STATE, A, "n1")
    assert coscheduling.permit(STATE, A, "n1") == (Status(Code.WAIT), 60.0)
    assert handle.activated == [B.key, C.key]
    coscheduling.reserve(STATE, B, "n1")
    assert coscheduling.permit(STATE, B, "n1") == (Status(Code.WAIT), 60.0)
    assert handle.activated == [B.key, C.key]
    coscheduling.reserve(STATE, C, "n1")
    assert coscheduling.permit(STATE, C, "n1") == (None, 0.0)


def test_bound_members_count_after_a_restart() -> None:
    coscheduling = plugin(member("a", node="n1"), member("b", node="n1"), C, group(), nodes=[node()])
    coscheduling.reserve(STATE, C, "n1")
    assert coscheduling.permit(STATE, C, "n1") == (None, 0.0)


@pytest.mark.parametrize(
    ("spec", "args", "seconds"),
    [
        ({"scheduleTimeoutSeconds": 7}, CoschedulingArgs(), 7.0),
        ({}, CoschedulingArgs(permit_waiting_time_seconds=9), 9.0),
        ({}, CoschedulingArgs(permit_waiting_time_seconds=0), 60.0),
    ],
)
def test_how_long_members_wait(spec: Any, args: CoschedulingArgs, seconds: float) -> None:
    coscheduling = plugin(A, B, C, group(**spec), args=args)
    coscheduling.reserve(STATE, A, "n1")
    assert coscheduling.permit(STATE, A, "n1")[1] == seconds


def test_a_group_that_is_not_there_gets_no_nodes() -> None:
    coscheduling = plugin(A)
    assert pre_filter(coscheduling, A) is None
    assert coscheduling.permit(STATE, A, "n1") == (unschedulable("PodGroup not found"), 0.0)


def test_without_pod_groups_pods_say_how_many_they_are() -> None:
    first, second = member("a", needs="2"), member("b", needs="2")
    assert pre_filter(plugin(first), first) is not None
    coscheduling = plugin(first, second)
    assert pre_filter(coscheduling, first) is None
    coscheduling.reserve(STATE, first, "n1")
    assert coscheduling.permit(STATE, first, "n1") == (Status(Code.WAIT), 60.0)
    labelled_pod = pod("c", labels={GROUP_LABEL: "train", MIN_MEMBER: "1"})
    coscheduling = plugin(labelled_pod)
    coscheduling.reserve(STATE, labelled_pod, "n1")
    assert coscheduling.permit(STATE, labelled_pod, "n1") == (None, 0.0)


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "٣", "9" * 5000, " 2"])
def test_an_invalid_number_of_members_is_named(text: str) -> None:
    wrong = member("a", needs=text)
    status = pre_filter(plugin(wrong), wrong)
    assert status is not None
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message.startswith(f'pod default/a: {MIN_MEMBER} "{text[:40]}')
    assert status.message.endswith("is not a positive number of pods")


@pytest.mark.parametrize("member_count", [0, -5, -(2**31)])
def test_a_group_that_needs_nobody_holds_nobody(member_count: int) -> None:
    coscheduling = plugin(A, group(minMember=member_count))
    assert pre_filter(coscheduling, A) is None
    coscheduling.reserve(STATE, A, "n1")
    assert coscheduling.permit(STATE, A, "n1") == (None, 0.0)


def test_a_group_that_needs_more_than_there_ever_are_waits() -> None:
    status = pre_filter(plugin(A, group(minMember=2**31 - 1)), A)
    assert status is not None
    assert status.message.endswith("minMember of group: 2147483647")


def post_filter_status(coscheduling: Coscheduling, item: Pod) -> Status | None:
    filter_result: Any = None
    return coscheduling.post_filter(STATE, item, coscheduling.handle.snapshot(), filter_result)[1]


def test_a_gang_that_lacks_few_members_keeps_its_nodes() -> None:
    pods = [member(f"p{at}") for at in range(10)]
    coscheduling = plugin(*pods, group(minMember=10))
    for sibling in pods[:8]:
        coscheduling.reserve(STATE, sibling, "n1")
    message = "PodGroup default/train gets rejected due to Pod p9 is unschedulable even after PostFilter"
    assert post_filter_status(coscheduling, pods[9]) == unschedulable(message)
    coscheduling.reserve(STATE, pods[8], "n1")
    assert post_filter_status(coscheduling, pods[9]) == Status(Code.UNSCHEDULABLE)
    strict = plugin(*pods, group(minMember=10), args=CoschedulingArgs(pod_group_reject_percentage=0))
    for sibling in pods[:9]:
        strict.reserve(STATE, sibling, "n1")
    assert post_filter_status(strict, pods[9]) == unschedulable(message)


def test_a_rejected_gang_backs_off() -> None:
    coscheduling = plugin(A, B, C, group(), args=CoschedulingArgs(pod_group_backoff_seconds=20))
    clock: Any = coscheduling.handle.clock
    post_filter_status(coscheduling, A)
    assert pre_filter(coscheduling, B) == unresolvable("podGroup default/train failed recently")
    assert coscheduling.gangs.take_backed_off(clock.now()) == []
    clock.advance(20)
    assert pre_filter(coscheduling, B) is None
    assert [list(gang.members) for gang in coscheduling.gangs.take_backed_off(clock.now())] == [
        ["uid-a", "uid-b", "uid-c"]
    ]
    assert coscheduling.gangs.take_backed_off(clock.now()) == []


def test_members_that_are_rejected_since_their_gang_backs_off_make_no_backoff_longer() -> None:
    coscheduling = plugin(A, B, C, group())
    clock: Any = coscheduling.handle.clock
    for item in (A, B, C):
        post_filter_status(coscheduling, item)
    clock.advance(1)
    assert pre_filter(coscheduling, B) is None
    post_filter_status(coscheduling, B)
    clock.advance(1.5)
    assert pre_filter(coscheduling, B) == unresolvable("podGroup default/train failed recently")
    clock.advance(0.5)
    assert pre_filter(coscheduling, B) is None


def test_gangs_stay_together_in_the_queue_by_age_and_failed_ones_go_last() -> None:
    old, new = group("old", creation_time="2026-01-01T00:00:00Z"), group("new", creation_time="2026-01-01T00:00:01Z")
    items = [member("a", "new"), member("b", "old"), member("c", "new"), member("d", "old")]
    coscheduling = plugin(old, new, *items)
    urgent = pod("urgent", priority=5)

    def order() -> list[str]:
        infos = [QueuedPodInfo(member_pod, 1e12) for member_pod in (*items, urgent)]
        return [info.pod.metadata.name for info in sorted(infos, key=coscheduling.sort_key)]

    assert order() == ["urgent", "b", "d", "a", "c"]
    first, second = (QueuedPodInfo(items[at], 0.0) for at in (1, 0))
    assert coscheduling.less(first, second)
    assert not coscheduling.less(second, first)
    coscheduling.handle.clock.advance(3e9)  # type: ignore[attr-defined]
    post_filter_status(coscheduling, items[1])
    assert order() == ["urgent", "a", "c", "d", "b"]


def test_a_member_that_fits_nowhere_goes_after_its_siblings_until_they_have_failed() -> None:
    """Others may be enough. One that was not tried because its group backs off has not failed."""
    items = [A, B, C]
    coscheduling = plugin(*items, group())

    def order() -> list[str]:
        return [
            info.pod.metadata.name
            for info in sorted((QueuedPodInfo(item, 0.0) for item in items), key=coscheduling.sort_key)
        ]

    for failing, order_expected in ((A, "bca"), (B, "cab"), (C, "abc")):
        coscheduling.handle.clock.advance(20)  # type: ignore[attr-defined]
        post_filter_status(coscheduling, failing)
        for sibling in items:
            post_filter_status(coscheduling, sibling)
        assert "".join(order()) == order_expected


def test_hints_wake_the_members_of_that_group() -> None:
    coscheduling = plugin()
    queue, skip = QueueingHint.QUEUE, QueueingHint.SKIP
    assert coscheduling.after_pod_add(A, None, B) is queue
    assert coscheduling.after_pod_add(A, None, member("x", namespace="other")) is skip
    assert coscheduling.after_pod_add(pod(), None, pod("x")) is skip
    was, new = group(), group(minMember=2)
    assert coscheduling.after_pod_group_change(A, None, new) is queue
    assert coscheduling.after_pod_group_change(A, was, new) is queue
    assert coscheduling.after_pod_group_change(A, was, was) is skip
    assert coscheduling.after_pod_group_change(A, None, group("other")) is skip
    assert len(coscheduling.events_to_register()) == 2


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"permitWaitingTimeSeconds": -1}, "args.permitWaitingTimeSeconds: expected `int` >= 0"),
        ({"podGroupBackoffSeconds": "5s"}, "args.podGroupBackoffSeconds: expected `int`, got `str`"),
        ({"podGroupRejectPercentage": 101}, "args.podGroupRejectPercentage: expected `int` <= 100"),
        ({"podGroupBackoff": 5}, "args.podGroupBackoff: unknown field; known: "),
        ({"kind": "OtherArgs"}, "args.kind: invalid enum value 'OtherArgs'"),
    ],
)
def test_wrong_args_are_named_by_field(value: Any, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        typed_args(Coscheduling, value)
    assert str(caught.value).startswith(message)


def test_args_are_read_as_scheduler_plugins_writes_them() -> None:
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "CoschedulingArgs"}
    read = typed_args(Coscheduling, {**head, "permitWaitingTimeSeconds": 10, "podGroupBackoffSeconds": 3})
    assert read == CoschedulingArgs(permit_waiting_time_seconds=10, pod_group_backoff_seconds=3)
    assert typed_args(Coscheduling, None) == CoschedulingArgs()


def test_a_rejected_gang_costs_one_step_for_each_member() -> None:
    """Each member that is rejected with the others is unreserved, and then finds nobody left to reject."""
    pods = [member(f"p{at}") for at in range(50)]
    names_asked: list[str] = []

    class Waiting:
        def get(self, uid: str) -> Any:
            names_asked.append(uid)
            return self

        def reject(self, plugin: str, why: str) -> bool:
            assert (plugin, why) == ("Coscheduling", "rejection in Unreserve")
            return True

    coscheduling = plugin(*pods, group(minMember=60), waiting_pods=Waiting())
    for sibling in pods:
        coscheduling.reserve(STATE, sibling, "n1")
        coscheduling.permit(STATE, sibling, "n1")
    for sibling in pods:
        coscheduling.unreserve(STATE, sibling, "n1")
    assert len(names_asked) == len(pods) - 1
