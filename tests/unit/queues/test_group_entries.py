"""A pod group is one entry of the queue."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from podium.config import PodGroupRules
from podium.framework.contract.cluster_event import ActionType, ClusterEvent, EventRegistration, HintScope, QueueingHint
from podium.framework.contract.plugin import PreEnqueuePlugin
from podium.framework.contract.queued_pod import QueuedPodGroupInfo
from podium.framework.contract.status import Status, error_status, unresolvable, unschedulable
from podium.objects.core import Pod
from podium.objects.pod_groups import PodGroup
from podium.objects.resource_types import EventResource
from podium.queues import AlreadyQueued, QueueState
from tests.builders import pod, pod_group
from tests.unit.queues.builders import QueueBench, WithoutArgs

POD_ADDED = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.ADD)
REJECTED = unschedulable("no room")
FAILED = error_status("broken")


def member(name: str, priority: int = 0) -> Pod:
    return pod(name, group="gang", priority=priority)


A, B, C = (member(name) for name in "abc")


class Quorum(WithoutArgs, PreEnqueuePlugin):
    """Gates the pods of a group until there are enough."""

    def __init__(self, min_count: int) -> None:
        self.min_count = min_count
        self.names: set[str] = set()
        self.asked: list[str] = []

    def pre_enqueue(self, pod: Pod) -> Status | None:
        self.asked.append(pod.metadata.name)
        return unresolvable("too few") if len(self.names) < self.min_count else None

    def events_to_register(self) -> Sequence[EventRegistration]:
        return (EventRegistration(POD_ADDED),)


class GroupBench(QueueBench):
    """A queue with groups as entries, and one group of the given size."""

    def __init__(self, min_count: int = 1, group: PodGroup | None = None, quorum: Quorum | None = None) -> None:
        self.quorum = Quorum(min_count) if quorum is None else quorum
        super().__init__(self.quorum, groups=PodGroupRules())
        if group is None:
            group = pod_group("gang", min_count=min_count)
        self.queue.put_group(group)

    def arrive(self, *pods: Pod) -> None:
        """What the handler of pods does."""
        for each in pods:
            self.quorum.names.add(each.metadata.name)
            self.add(each)
            self.queue.move_all(POD_ADDED, None, each)

    def pop_group(self) -> QueuedPodGroupInfo:
        entry = self.pop()
        assert isinstance(entry, QueuedPodGroupInfo)
        return entry

    def fail(self, entry: QueuedPodGroupInfo, status: Status = REJECTED) -> None:
        """All pods of the group fail, and the group returns."""
        for info in list(entry.members):
            self.queue.add_unschedulable_if_not_present(info)
        self.queue.end_group_attempt(entry, status)


def names_of(entry: QueuedPodGroupInfo) -> list[str]:
    return [info.pod.metadata.name for info in entry.members]


def test_a_group_is_popped_as_a_whole_and_only_when_it_is_complete() -> None:
    bench = GroupBench(min_count=3)
    bench.arrive(A, B)
    assert bench.queue.pop() is None
    assert bench.state_of(A) is bench.state_of(B) is QueueState.GATED
    bench.arrive(C)
    entry = bench.pop_group()
    assert names_of(entry) == ["a", "b", "c"]
    assert bench.queue.pop() is None
    assert [info.attempts for info in (entry, *entry.members)] == [1, 1, 1, 1]
    assert bench.state_of(C) is QueueState.IN_FLIGHT


def test_pods_before_their_group_wait_for_it_without_being_checked() -> None:
    bench = GroupBench()
    bench.queue.drop_group("default/gang")
    bench.arrive(A, B)
    assert bench.state_of(A) is QueueState.INCOMPLETE
    assert bench.quorum.asked == []
    assert bench.queue.statistics().pending_pods["incomplete"] == 2
    bench.queue.put_group(pod_group("gang"))
    assert names_of(bench.pop_group()) == ["a", "b"]


def test_a_pod_that_comes_while_its_group_is_tried_waits_for_its_return() -> None:
    bench = GroupBench()
    bench.arrive(A)
    entry = bench.pop_group()
    bench.arrive(B)
    assert bench.state_of(B) is QueueState.PENDING
    assert bench.queue.statistics().pending_pods["pending"] == 1
    bench.queue.done(A.uid)
    bench.queue.end_group_attempt(entry, None)
    assert names_of(bench.pop_group()) == ["b"]


def test_a_group_of_which_no_pod_is_left_does_not_return() -> None:
    bench = GroupBench()
    bench.arrive(A)
    entry = bench.pop_group()
    bench.queue.done(A.uid)
    bench.queue.end_group_attempt(entry, None)
    assert bench.queue.pop() is None
    bench.arrive(B)
    assert names_of(bench.pop_group()) == ["b"]


def test_pods_left_over_by_a_success_are_tried_again_at_once_in_their_old_turn() -> None:
    bench = GroupBench()
    bench.arrive(A, B)
    entry = bench.pop_group()
    began_s = entry.timestamp_s
    bench.clock.advance(5)
    bench.queue.done(A.uid)
    bench.queue.add_unschedulable_if_not_present(entry.members[1])
    bench.queue.end_group_attempt(entry, None)
    assert bench.state_of(B) is QueueState.ACTIVE
    again = bench.pop_group()
    assert (again.timestamp_s, again.unschedulable_count, names_of(again)) == (began_s, 0, ["b"])


def test_new_pods_after_a_success_take_a_new_turn() -> None:
    bench = GroupBench()
    bench.arrive(A)
    entry = bench.pop_group()
    bench.clock.advance(5)
    bench.arrive(B)
    bench.queue.done(A.uid)
    bench.queue.end_group_attempt(entry, None)
    assert bench.pop_group().timestamp_s == bench.clock.now()


def test_a_rejected_group_backs_off_and_no_event_ends_that() -> None:
    bench = GroupBench()
    bench.arrive(A, B)
    bench.fail(bench.pop_group())
    assert bench.state_of(A) is QueueState.ERROR_BACKOFF
    assert bench.queue.pop() is None, "a group is never popped before its backoff ends"
    bench.advance(2.0)
    entry = bench.pop_group()
    assert (entry.attempts, entry.unschedulable_count, entry.consecutive_errors_count) == (2, 1, 0)


def test_errors_and_rejections_of_a_group_are_counted_apart() -> None:
    bench = GroupBench()
    bench.arrive(A)
    bench.fail(bench.pop_group(), FAILED)
    bench.advance(2.0)
    entry = bench.pop_group()
    assert (entry.unschedulable_count, entry.consecutive_errors_count) == (0, 1)
    bench.fail(entry)
    bench.advance(3.0)
    entry = bench.pop_group()
    assert (entry.unschedulable_count, entry.consecutive_errors_count) == (1, 0)


def test_the_longest_backoff_of_a_group_grows_with_the_root_of_its_size() -> None:
    bench = GroupBench(min_count=4)
    bench.arrive(*(member(str(number)) for number in range(4)))
    for _ in range(8):
        entry = bench.pop_group()
        bench.fail(entry)
        bench.advance(40.0)
    tried_s = entry.timestamp_s
    assert entry.backoff_expiration_s == math.floor(tried_s + 20.0), "10 s for a pod, twice that for four"


def test_pods_of_a_group_are_tried_by_priority_attempts_time_and_name() -> None:
    bench = GroupBench()
    bench.arrive(member("z"), member("high", priority=5), member("b"), member("a"))
    entry = bench.pop_group()
    assert names_of(entry) == ["high", "a", "b", "z"], "all came at the same time"
    bench.arrive(member("a0"))
    bench.fail(entry)
    bench.advance(2.0)
    assert names_of(bench.pop_group()) == ["high", "a", "b", "z", "a0"], "the pod that was tried less comes later"


def test_groups_and_pods_are_ordered_by_the_groups_own_priority() -> None:
    bench = GroupBench(group=pod_group("gang", spec={"priority": 5}))
    bench.arrive(A)
    bench.add(pod("low", priority=4))
    bench.add(pod("high", priority=6))
    popped = [bench.pop(), bench.pop(), bench.pop()]
    assert [info.key for info in popped] == ["default/high", "podgroup/default/gang", "default/low"]


def test_one_gated_pod_gates_its_group_and_all_pods_are_checked() -> None:
    bench = GroupBench(min_count=2)
    bench.arrive(A)
    bench.arrive(pod("b", group="gang", gates=["wait"]))
    assert set(bench.quorum.asked) == {"a", "b"}
    assert bench.state_of(A) is QueueState.GATED
    assert bench.queue.statistics().queued_entities == {("gated", "podgroup"): 1}
    assert bench.queue.statistics().gated == 2


class OwnQuorum(Quorum):
    """Waits for pods of the same group, as its hint says of each pod."""

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return unresolvable("too few") if self._count(pod) < self.min_count else None

    def events_to_register(self) -> Sequence[EventRegistration]:
        return (EventRegistration(POD_ADDED, hint=self.after_pod_add, scope=HintScope.SPEC),)

    def after_pod_add(self, pod: Pod, old: object, new: object) -> QueueingHint:
        return QueueingHint.QUEUE if self._count(pod) >= self.min_count else QueueingHint.SKIP

    def _count(self, pod: Pod) -> int:
        return sum(name[0] == pod.metadata.name[0] for name in self.names)


def test_hints_are_asked_about_each_gated_group() -> None:
    bench = GroupBench(quorum=OwnQuorum(2))
    bench.queue.put_group(pod_group("other", min_count=2))
    bench.arrive(A, pod("x1", group="other"), pod("x2", group="other"))
    assert names_of(bench.pop_group()) == ["x1", "x2"]
    assert bench.state_of(A) is QueueState.GATED


def test_an_active_group_can_be_gated_by_a_pod_that_joins_it() -> None:
    bench = GroupBench()
    bench.arrive(A)
    assert bench.state_of(A) is QueueState.ACTIVE
    bench.arrive(pod("b", group="gang", gates=["wait"]))
    assert bench.state_of(A) is QueueState.GATED


def test_a_group_that_loses_pods_stays_until_the_last_one() -> None:
    bench = GroupBench()
    bench.arrive(A, B)
    bench.queue.delete(A)
    assert bench.state_of(A) is QueueState.GONE
    assert names_of(bench.pop_group()) == ["b"]


def test_a_group_without_pods_is_in_no_queue() -> None:
    bench = GroupBench()
    bench.arrive(A)
    bench.queue.delete(A)
    assert bench.queue.pop() is None
    assert bench.queue.statistics().queued_entities == {}


def test_the_pods_of_a_deleted_group_are_incomplete() -> None:
    bench = GroupBench()
    bench.arrive(A)
    bench.queue.drop_group("default/gang")
    assert bench.state_of(A) is QueueState.INCOMPLETE
    bench.queue.delete(A)
    assert bench.state_of(A) is QueueState.GONE
    assert bench.queue.statistics().incomplete == 0


def test_pending_pods_of_a_deleted_group_are_incomplete_and_the_group_does_not_return() -> None:
    bench = GroupBench()
    bench.arrive(A)
    entry = bench.pop_group()
    bench.arrive(B)
    bench.queue.drop_group("default/gang")
    bench.queue.add_unschedulable_if_not_present(entry.members[0])
    bench.queue.end_group_attempt(entry, REJECTED)
    assert bench.state_of(A) is bench.state_of(B) is QueueState.INCOMPLETE


def test_a_group_that_is_queued_already_does_not_return_twice() -> None:
    bench = GroupBench()
    bench.arrive(A)
    entry = bench.pop_group()
    bench.fail(entry)
    with pytest.raises(AlreadyQueued, match="pod group default/gang is already present in the backoff queue"):
        bench.queue.end_group_attempt(entry, REJECTED)


def test_activating_a_pod_activates_its_group() -> None:
    bench = GroupBench()
    bench.arrive(A, B)
    bench.fail(bench.pop_group())
    bench.queue.activate([A])
    assert bench.state_of(B) is QueueState.ACTIVE


def test_an_update_replaces_the_pod_in_its_group() -> None:
    bench = GroupBench()
    bench.arrive(A)
    bench.update(A, member("a", priority=0))
    assert bench.state_of(A) is QueueState.ACTIVE
    entry = bench.pop_group()
    assert entry.members[0].pod is not A


def test_a_bound_pod_whose_binding_fails_later_joins_its_group_again() -> None:
    bench = GroupBench()
    bench.arrive(A, B)
    entry = bench.pop_group()
    infos = list(entry.members)
    bench.queue.end_group_attempt(entry, None)
    bench.queue.add_unschedulable_if_not_present(infos[0])
    assert names_of(bench.pop_group()) == ["a"]


def test_the_listing_has_every_pod_with_the_state_of_its_group() -> None:
    bench = GroupBench()
    bench.arrive(A, B)
    bench.fail(bench.pop_group())
    bench.arrive(pod("c", group="other"))
    infos = {info.key: bench.queue.listing.describe(info) for info in bench.queue.listing.infos()}
    assert {key: listed.state for key, listed in infos.items()} == {
        "default/a": QueueState.ERROR_BACKOFF,
        "default/b": QueueState.ERROR_BACKOFF,
        "default/c": QueueState.INCOMPLETE,
    }
    next_try = infos["default/a"].next_try
    assert next_try is not None
    assert next_try.at_s is not None
    assert infos["default/c"].next_try is None


def test_a_pod_that_is_recreated_replaces_the_old_one_in_its_group() -> None:
    bench = GroupBench()
    bench.arrive(A, B)
    bench.arrive(pod("a", group="gang", uid="new"))
    assert [info.pod.uid for info in bench.pop_group().members] == ["new", B.uid]
