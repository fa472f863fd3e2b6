from __future__ import annotations

from collections.abc import Iterable

import anyio
import pytest

from podium.binder import (
    Event,
    PodsInPreBind,
    Preemption,
    PreemptionExecutor,
    PreemptionLoops,
    PreemptionObserver,
    RunningPreemptions,
    WaitingPods,
)
from podium.binder.preemption import DISRUPTION_TARGET
from podium.binder.preemption_loops import LOOP_AT
from podium.config import NEWEST, RELEASES
from podium.framework.contract.group_post_filter import GroupHelp
from podium.lib.clock import ManualClock
from podium.objects.api_errors import ApiError, Forbidden, Invalid, NotFound, OutcomeUnknown
from podium.objects.core import Pod, PodCondition
from tests.builders import pod, pod_group
from tests.virtual_time import LoopClock

pytestmark = pytest.mark.anyio

NO = Forbidden("no", code=403)
URGENT = pod("urgent", priority=100)


def victim(name: str, **fields: object) -> Pod:
    return pod(name, node="n1", priority=1, **fields)  # type: ignore[arg-type]


A, B, C = victim("a"), victim("b"), victim("c")


class PreemptionBench(PreemptionObserver):
    """Everything an executor touches. Implements `Evictor`, `Recorder` and `PreemptionObserver`.

    Args:
        errors: by what is written, such as `delete a`.
    """

    def __init__(
        self,
        *,
        errors: dict[str, ApiError] | None = None,
        nominated_pods: Iterable[Pod] = (),
        minor: str = NEWEST.minor,
    ) -> None:
        self.errors = errors or {}
        self.latency_s: dict[str, float] = {}
        self.pods: dict[str, Pod] = {}
        self.story: list[str] = []
        self.events: list[Event] = []
        self.conditions: list[PodCondition] = []
        self.victims: list[int] = []
        self.observations: list[tuple[str, int, int, int]] = []
        self.searches: list[tuple[str, str, float]] = []
        self.attempts_for_groups: list[str] = []
        self.attempts = 0
        self.activated: list[str] = []
        self.gated: set[str] = set()
        self.waiting, self.in_pre_bind = WaitingPods(LoopClock()), PodsInPreBind()
        self.under_way = RunningPreemptions(self.pods.get, self)
        self.executor = PreemptionExecutor(
            self,
            self,
            self.under_way,
            plugin="DefaultPreemption",
            waiting_pods=self.waiting,
            pods_in_pre_bind=self.in_pre_bind,
            nominated_to=lambda name: [
                nominee for nominee in nominated_pods if nominee.status.nominated_node_name == name
            ],
            activate=lambda candidate: self.activated.append(f"{candidate.metadata.name} {self.is_held_back}"),
            is_gated=lambda candidate: candidate.uid in self.gated,
            takes_room=lambda uid: any(pod.uid == uid for pod in self.pods.values()),
            release=RELEASES[minor],
        )

    @property
    def is_held_back(self) -> bool:
        return self.under_way.is_preempting(URGENT.uid)

    async def preempt(self, *victims: Pod) -> bool:
        preemption = self.executor.begin(Preemption(URGENT, "n1", victims))
        assert preemption is not None
        assert self.is_held_back
        outcome = await self.executor.carry_out(preemption)
        assert not self.is_held_back
        return outcome

    async def _write(self, operation: str) -> None:
        await anyio.sleep(self.latency_s.get(operation, 0.0))
        if operation in self.errors:
            raise self.errors[operation]
        self.story.append(operation)

    async def patch_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> bool:
        if condition is not None:
            self.conditions.append(condition)
        operation = "clear" if nominated_node_name == "" else f"announce{condition.status if condition else ''}"
        await self._write(f"{operation} {pod.metadata.name}")
        return True

    async def remove_condition(self, pod: Pod, kind: str) -> None:
        assert kind == DISRUPTION_TARGET
        await self._write(f"take back {pod.metadata.name}")

    async def delete_pod(self, pod: Pod) -> bool:
        await self._write(f"delete {pod.metadata.name}")
        return pod.metadata.name != "gone"

    def record(self, event: Event) -> None:
        self.events.append(event)

    def count_preemption_attempt(self) -> None:
        self.attempts += 1

    def count_group_preemption_attempt(self, result: str) -> None:
        self.attempts_for_groups.append(result)

    def observe_victim_search(self, preemptor: str, result: str, seconds: float) -> None:
        self.searches.append((preemptor, result, seconds))

    def observe_victims(self, preemptor: str, victims: int, disruptions: int, violations: int) -> None:
        self.victims.append(victims)
        self.observations.append((preemptor, victims, disruptions, violations))

    @property
    def event_notes(self) -> list[str]:
        return sorted(f"{event.regarding.name}: {event.note}" for event in self.events)


def note(name: str, *, in_memory: bool = False) -> str:
    suffix = " (in kube-scheduler memory)." if in_memory else ""
    return f"{name}: Preempted by pod uid-urgent on node n1{suffix}"


# ---------------------------------------------------------------- victims go


async def test_a_victim_gets_a_condition_then_its_delete_then_an_event() -> None:
    bench = PreemptionBench()
    assert await bench.preempt(victim("a", uid="u-a"))
    assert bench.story == ["announceTrue a", "delete a"]
    assert bench.event_notes == [note("a")]
    [condition] = bench.conditions
    assert condition == PodCondition(
        type="DisruptionTarget",
        status="True",
        reason="PreemptionByScheduler",
        message="podium: preempting to accommodate a higher priority pod",
    )
    assert (bench.events[0].type, bench.events[0].reason, bench.events[0].action) == (
        "Normal",
        "Preempted",
        "Preempting",
    )
    reference = bench.events[0].related
    assert reference is not None
    assert reference.uid == URGENT.uid
    assert (bench.victims, bench.activated) == ([1], [])


async def test_all_go_at_once_but_the_last() -> None:
    bench = PreemptionBench()
    bench.latency_s = {"delete a": 2.0, "delete b": 1.0}
    assert await bench.preempt(A, B, C)
    assert bench.story[-4:] == ["delete b", "delete a", "announceTrue c", "delete c"]
    assert bench.event_notes == [note("a"), note("b"), note("c")]


async def test_victims_that_are_leaving_already_are_left_alone() -> None:
    bench = PreemptionBench()
    assert await bench.preempt(victim("a", terminating=True), B)
    assert bench.story == ["announceTrue b", "delete b"]
    assert bench.victims == [2]


@pytest.mark.parametrize(("minor", "victims"), [("1.37", [1]), ("1.36", [])])
async def test_with_all_victims_leaving_there_is_nothing_to_carry_out(minor: str, victims: list[int]) -> None:
    bench = PreemptionBench(minor=minor)
    assert bench.executor.begin(Preemption(URGENT, "n1", [victim("a", terminating=True)])) is None
    assert not bench.is_held_back
    assert bench.victims == victims


@pytest.mark.parametrize(("minor", "activated"), [("1.37", ["urgent False"]), ("1.36", [])])
async def test_where_no_watch_shows_the_last_victim_going_the_preemptor_is_activated(
    minor: str, activated: list[str]
) -> None:
    bench = PreemptionBench(minor=minor)
    bench.waiting.add(A, "n1", {"Gang": 60.0})
    assert await bench.preempt(victim("b"), A)
    assert bench.activated == activated


async def test_a_last_victim_that_is_deleted_wakes_the_preemptor_by_its_event() -> None:
    bench = PreemptionBench()
    bench.waiting.add(A, "n1", {"Gang": 60.0})
    assert await bench.preempt(A, victim("b"))
    assert bench.activated == []


@pytest.mark.parametrize("error", [NotFound("gone", code=404), Invalid("another uid", code=422)])
async def test_a_victim_deleted_before_its_condition_is_no_failure_and_no_event(error: ApiError) -> None:
    bench = PreemptionBench(errors={"announceTrue a": error})
    assert await bench.preempt(A)
    assert (bench.story, bench.events) == ([], [])


async def test_a_victim_that_is_gone_before_it_is_deleted_is_no_failure_and_no_event() -> None:
    bench = PreemptionBench()
    assert await bench.preempt(victim("gone"))
    assert bench.events == []


# ---------------------------------------------------------------- victims that are not bound yet


async def test_a_victim_that_waits_on_permit_is_stopped_not_deleted() -> None:
    bench = PreemptionBench()
    waiting = bench.waiting.add(A, "n1", {"Gang": 60.0})
    assert await bench.preempt(A)
    status = await waiting.wait()
    assert status is not None
    assert (status.code.label, status.message, status.plugin) == ("Error", "preempted", "DefaultPreemption")
    assert bench.story == []
    assert bench.event_notes == [note("a", in_memory=True)]


async def test_a_victim_that_may_go_already_is_deleted() -> None:
    bench = PreemptionBench()
    bench.waiting.add(A, "n1", {"Gang": 60.0}).allow("Gang")
    assert await bench.preempt(A)
    assert bench.story == ["announceTrue a", "delete a"]


async def test_a_victim_in_pre_bind_is_cancelled_not_deleted() -> None:
    bench = PreemptionBench()
    in_pre_bind = bench.in_pre_bind.add(A.uid)
    assert await bench.preempt(A)
    assert in_pre_bind.cause == "preempted by DefaultPreemption"
    assert bench.story == []
    assert bench.event_notes == [note("a", in_memory=True)]


@pytest.mark.parametrize("more_victims", [(), (victim("b"),)])
async def test_the_preemptor_waits_until_a_stopped_victim_has_given_up_its_room(more_victims: tuple[Pod, ...]) -> None:
    bench = PreemptionBench()
    bench.pods[A.key] = A
    bench.in_pre_bind.add(A.uid)

    async def give_up_room() -> None:
        await anyio.sleep(0.3)
        assert bench.is_held_back
        assert bench.activated == []
        del bench.pods[A.key]

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(give_up_room)
        started_s = anyio.current_time()
        assert await bench.preempt(A, *more_victims)
        assert anyio.current_time() - started_s == pytest.approx(0.3, abs=0.02)
    assert bench.activated == ([] if more_victims else ["urgent False"])


async def test_a_victim_past_pre_bind_is_deleted() -> None:
    bench = PreemptionBench()
    bench.in_pre_bind.add(A.uid).mark_pre_bound()
    assert await bench.preempt(A)
    assert bench.story == ["announceTrue a", "delete a"]


# ---------------------------------------------------------------- nominations


async def test_pods_of_lower_priority_lose_their_nomination_to_the_node() -> None:
    nominees = [
        pod("lower", priority=99, nominated="n1"),
        pod("equal", priority=100, nominated="n1"),
        pod("elsewhere", priority=1, nominated="n2"),
    ]
    bench = PreemptionBench(nominated_pods=nominees)
    assert await bench.preempt(A)
    assert bench.story == ["clear lower", "announceTrue a", "delete a"]


async def test_a_nomination_that_cannot_be_cleared_is_a_failure_but_victims_go() -> None:
    bench = PreemptionBench(nominated_pods=[pod("lower", priority=1, nominated="n1")], errors={"clear lower": NO})
    assert not await bench.preempt(A)
    assert bench.story == ["announceTrue a", "delete a"]
    assert bench.activated == ["urgent False"]


async def test_a_nominated_pod_that_is_gone_is_no_failure() -> None:
    bench = PreemptionBench(
        nominated_pods=[pod("lower", priority=1, nominated="n1")], errors={"clear lower": NotFound("gone")}
    )
    assert await bench.preempt(A)


# ---------------------------------------------------------------- failures


async def test_a_failed_delete_is_taken_back_and_the_pod_tried_again_later() -> None:
    bench = PreemptionBench(errors={"delete a": NO})
    started_s = anyio.current_time()
    assert not await bench.preempt(A)
    assert anyio.current_time() - started_s == pytest.approx(1.0)
    assert bench.story == ["announceTrue a", "take back a"]
    assert bench.events == []
    assert bench.activated == ["urgent False"]


async def test_a_condition_that_was_there_before_is_put_back() -> None:
    condition = {"type": "DisruptionTarget", "status": "False", "reason": "Other"}
    bench = PreemptionBench(errors={"delete a": NO})
    assert not await bench.preempt(victim("a", status={"conditions": [condition]}))
    assert bench.story == ["announceTrue a", "announceFalse a"]


async def test_nothing_is_taken_back_where_the_delete_may_have_happened() -> None:
    bench = PreemptionBench(errors={"delete a": OutcomeUnknown("lost")})
    assert not await bench.preempt(A)
    assert bench.story == ["announceTrue a"]


async def test_what_cannot_be_taken_back_is_left() -> None:
    bench = PreemptionBench(errors={"delete a": NO, "take back a": NO})
    assert not await bench.preempt(A)
    assert bench.activated == ["urgent False"]


async def test_a_victim_without_its_condition_is_not_deleted() -> None:
    bench = PreemptionBench(errors={"announceTrue a": NO})
    assert not await bench.preempt(A)
    assert bench.story == []


async def test_the_last_victim_is_spared_where_another_cannot_go() -> None:
    bench = PreemptionBench(errors={"delete a": NO})
    assert not await bench.preempt(A, B, C)
    assert sorted(bench.story) == ["announceTrue a", "announceTrue b", "delete b", "take back a"]
    assert bench.event_notes == [note("b")]


async def test_a_preemption_that_is_cancelled_holds_nobody_back() -> None:
    bench = PreemptionBench()
    bench.latency_s["delete a"] = 60.0
    preemption = bench.executor.begin(Preemption(URGENT, "n1", [A]))
    assert preemption is not None
    with anyio.move_on_after(1.0):
        await bench.executor.carry_out(preemption)
    assert not bench.is_held_back


# ---------------------------------------------------------------- who is held back


def test_attempts_are_counted() -> None:
    bench = PreemptionBench()
    bench.under_way.attempted()
    assert bench.attempts == 1


def test_attempts_for_groups_are_counted_by_their_result() -> None:
    bench = PreemptionBench()
    bench.under_way.attempted_for_group("Success")
    assert (bench.attempts, bench.attempts_for_groups) == (0, ["Success"])


def test_a_search_for_victims_is_measured_until_it_ends() -> None:
    clock = ManualClock()
    bench = PreemptionBench()
    under_way = RunningPreemptions(bench.pods.get, bench, clock=clock)
    end_search = under_way.begin_search("podgroup")
    clock.advance(2.0)
    assert bench.searches == []
    end_search("Unschedulable")
    assert bench.searches == [("podgroup", "Unschedulable", 2.0)]


@pytest.mark.parametrize(("minor", "preemptor"), [("1.37", "podgroup"), ("1.36", "pod")])
def test_victims_for_a_group_are_counted_apart_since_1_37(minor: str, preemptor: str) -> None:
    bench = PreemptionBench(minor=minor)
    plan = GroupHelp((A, B), disruptions=1, violations=2)
    preemption = bench.executor.begin(Preemption.for_group(pod_group("gang"), [URGENT, C], plan))
    assert preemption is not None
    assert preemption.pods == (URGENT, C)
    assert bench.observations == [(preemptor, 2, 1, 2)]


@pytest.mark.parametrize(("minor", "version"), [("1.37", "v1beta1"), ("1.36", "v1alpha2")])
async def test_events_name_the_group_in_the_version_that_its_api_server_serves(minor: str, version: str) -> None:
    bench = PreemptionBench(minor=minor)
    preemption = bench.executor.begin(Preemption.for_group(pod_group("gang"), [URGENT], GroupHelp((A,))))
    assert preemption is not None
    await bench.executor.carry_out(preemption)
    assert [event.related.api_version for event in bench.events if event.related] == [f"scheduling.k8s.io/{version}"]


def test_nobody_else_is_held_back() -> None:
    bench = PreemptionBench()
    assert bench.executor.begin(Preemption(URGENT, "n1", [A])) is not None
    assert bench.is_held_back
    assert not bench.under_way.is_preempting("another")


@pytest.mark.parametrize(
    ("live_pod", "is_held_back"),
    [
        (A, True),
        (victim("a", terminating=True), False),
        (victim("a", uid="another"), False),
        (None, False),
    ],
)
def test_with_only_the_last_victim_left_the_cluster_says_when_the_pod_may_go_on(
    live_pod: Pod | None, is_held_back: bool
) -> None:
    bench = PreemptionBench()
    if live_pod is not None:
        bench.pods[live_pod.key] = live_pod
    preemption = bench.executor.begin(Preemption(URGENT, "n1", [B, A]))
    assert preemption is not None
    preemption.is_last_victim = True
    assert bench.is_held_back is is_held_back


async def test_the_end_of_one_preemption_does_not_end_the_next() -> None:
    bench = PreemptionBench()
    bench.latency_s["delete a"] = 1.0
    first = bench.executor.begin(Preemption(URGENT, "n1", [A]))
    assert first is not None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.executor.carry_out, first)
        await anyio.sleep(0.5)
        # The victim is gone before the answer to its deletion comes: the pod has been tried, and has new victims.
        assert not bench.is_held_back
        assert bench.executor.begin(Preemption(URGENT, "n2", [B, C])) is not None
        await anyio.sleep(1.0)
        assert bench.is_held_back


async def test_a_pod_that_was_to_be_woken_while_it_was_held_back_is_tried_when_it_no_longer_is() -> None:
    bench = PreemptionBench()
    bench.gated.add(URGENT.uid)
    assert await bench.preempt(A, B)
    assert bench.activated == ["urgent False"]


async def test_a_pod_that_was_to_be_woken_is_tried_only_when_its_victims_are_seen_to_go() -> None:
    bench = PreemptionBench()
    bench.gated.add(URGENT.uid)
    bench.pods |= {A.key: A, B.key: B}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.preempt, A, B)
        await anyio.sleep(0.1)
        del bench.pods[A.key]
        await anyio.sleep(0.1)
        assert not bench.activated
        bench.pods[B.key] = victim("b", terminating=True)
        await anyio.sleep(0.1)
        assert bench.activated == ["urgent False"]


async def test_a_pod_that_is_woken_while_its_victims_are_looked_for_is_left_alone() -> None:
    bench = PreemptionBench()
    bench.gated.add(URGENT.uid)
    bench.pods[A.key] = A
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.preempt, A)
        await anyio.sleep(0.1)
        bench.gated.clear()
        del bench.pods[A.key]
    assert not bench.activated


async def test_a_pod_that_was_to_be_woken_does_not_wait_for_ever_for_the_watch() -> None:
    bench = PreemptionBench()
    bench.gated.add(URGENT.uid)
    bench.pods[A.key] = A
    with anyio.fail_after(6.0):
        assert await bench.preempt(A)
    assert bench.activated == ["urgent False"]


async def test_a_pod_that_was_to_be_woken_by_nothing_yet_is_left_to_the_events() -> None:
    bench = PreemptionBench()
    assert await bench.preempt(A, B)
    assert not bench.activated


# ---------------------------------------------------------------- who preempts whom


def test_nobody_is_spared_or_held_back_unless_that_is_asked_for() -> None:
    under_way = PreemptionBench().under_way
    assert not under_way.is_protected(URGENT)
    assert not under_way.held_back_from(URGENT)
    assert not under_way.pop_released()


def test_a_preemption_that_begins_is_looked_at_for_a_loop() -> None:
    events: list[Event] = []
    loops = PreemptionLoops(ManualClock(), lambda _: (), events.append, PreemptionObserver())
    under_way = RunningPreemptions(
        {}.get, PreemptionBench(), is_protected=lambda candidate: candidate is URGENT, loops=loops
    )
    for number in range(LOOP_AT + 1):
        under_way.begin(Preemption(URGENT, "n1", [pod("back", uid=f"uid-{number}")]))
    assert set(under_way.held_back_from(URGENT)) == {"n1"}
    assert under_way.is_protected(URGENT)
    assert [event.reason for event in events] == ["PreemptionLoop"]


async def test_a_pod_that_was_held_back_in_a_loop_is_tried_again_when_that_is_over() -> None:
    bench = PreemptionBench()
    loops = PreemptionLoops(LoopClock(), lambda _: (), lambda _: None, PreemptionObserver())
    bench.under_way._loops = loops
    for number in range(LOOP_AT + 1):
        loops.begin(URGENT, "n1", [pod("back", uid=f"uid-{number}")])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.executor.wake_released)
        assert set(bench.under_way.held_back_from(URGENT)) == {"n1"}
        await anyio.sleep(0.9)
        assert bench.activated == []
        await anyio.sleep(2.0)
        assert bench.activated == ["urgent False"]
        assert not bench.under_way.held_back_from(URGENT)
        tasks.cancel_scope.cancel()
