from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from podium.binder import Binder, BindingObserver, BindingStage, BindOutcome, BindPod, Event, PodsInPreBind, WaitingPods
from podium.framework.contract.bind import BindPlugin, PostBindPlugin, PreBindPlugin, PreBindPreFlightResult
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.status import SKIP, Code, Status, error_status, unresolvable, unschedulable
from podium.objects.api_errors import Conflict
from podium.objects.core import Pod
from tests.builders import pod
from tests.virtual_time import LoopClock

pytestmark = pytest.mark.anyio

Answer = Status | Exception | None


class BinderBench(BindingObserver):
    """The collaborators of a binding cycle, and the order of its calls."""

    def __init__(self) -> None:
        self.story: list[str] = []
        self.clock = LoopClock()
        self.waiting_pods = WaitingPods(self.clock)
        self.pods_in_pre_bind = PodsInPreBind()
        self.durations: list[tuple[str, str, str, float]] = []
        self.plugin_durations: list[tuple[str, str, str, float]] = []
        self.permit_waits: list[tuple[str, float]] = []
        self.failures: list[tuple[str, str, Exception]] = []
        self.events: list[Event] = []
        self.patch_failure: Exception | None = None
        self.binder = Binder(
            self.clock,
            statuses=self,
            events=self,
            observer=self,
            waiting_pods=self.waiting_pods,
            pods_in_pre_bind=self.pods_in_pre_bind,
        )

    async def patch_status(self, pod: Pod, *, nominated_node_name: str | None = None) -> bool:
        self.story.append(f"nominate {nominated_node_name}")
        if self.patch_failure is not None:
            raise self.patch_failure
        return True

    def record(self, event: Event) -> None:
        self.story.append(event.reason)
        self.events.append(event)

    def observe_extension_point(self, point: str, status: str, profile: str, seconds: float) -> None:
        self.durations.append((point, status, profile, seconds))

    def observe_plugin(self, plugin: str, point: str, status: str, seconds: float) -> None:
        self.plugin_durations.append((plugin, point, status, seconds))

    def observe_permit_wait(self, status: str, seconds: float) -> None:
        self.permit_waits.append((status, seconds))

    def plugin_failed(self, plugin: str, point: str, pod: Pod, error: BaseException) -> None:
        self.failures.append((plugin, point, error))

    async def run(self, plugins: Plugins, *, measure_plugins: bool = False) -> BindOutcome:
        return await self.binder.bind_pod(
            BindPod(pod(), "n1", CycleState(), plugins, lambda: self.story.append("permitted"), measure_plugins)
        )


class PreBinds(PreBindPlugin):
    """Answers, after a while, what it was told to."""

    def __init__(
        self,
        name: str,
        bench: BinderBench,
        answer: Answer = None,
        *,
        takes_s: float = 0.0,
        pre_flight: Answer = None,
        parallel: bool = False,
    ) -> None:
        self.name = name  # type: ignore[misc]
        self._bench = bench
        self._answer = answer
        self._takes_s = takes_s
        self._pre_flight = pre_flight
        self._parallel = parallel

    def pre_bind_pre_flight(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> tuple[PreBindPreFlightResult | None, Status | None]:
        if isinstance(self._pre_flight, Exception):
            raise self._pre_flight
        return PreBindPreFlightResult(self._parallel), self._pre_flight

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        self._bench.story.append(f"{self.name} begins")
        await anyio.sleep(self._takes_s)
        self._bench.story.append(f"{self.name} ends")
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


class Binds(BindPlugin):
    def __init__(self, name: str, bench: BinderBench, answer: Answer = None, *, takes_s: float = 0.0) -> None:
        self.name = name  # type: ignore[misc]
        self._bench = bench
        self._answer = answer
        self._takes_s = takes_s

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        self._bench.story.append(f"{self.name} binds")
        await anyio.sleep(self._takes_s)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


class PostBinds(PostBindPlugin):
    def __init__(self, name: str, bench: BinderBench, failure: Exception | None = None) -> None:
        self.name = name  # type: ignore[misc]
        self._bench = bench
        self._failure = failure

    async def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._bench.story.append(f"{self.name} is told")
        if self._failure is not None:
            raise self._failure


@dataclass
class Plugins:
    bind: Sequence[BindPlugin]
    pre_bind: Sequence[PreBindPlugin] = ()
    post_bind: Sequence[PostBindPlugin] = field(default_factory=tuple)


def error_of(outcome: BindOutcome) -> str:
    assert outcome.status is not None
    assert outcome.status.code is Code.ERROR
    assert not outcome.is_bound
    return outcome.status.message


async def test_a_plain_pod_is_permitted_and_bound_with_one_event_and_no_more() -> None:
    bench = BinderBench()
    outcome = await bench.run(Plugins([Binds("DefaultBinder", bench)]))
    assert outcome.is_bound
    assert outcome.stage is BindingStage.BOUND
    assert bench.story == ["permitted", "DefaultBinder binds", "Scheduled"]
    assert bench.events[0].note == "Successfully assigned default/web-1 to n1"


async def test_bind_time_is_measured_and_post_bind_does_not_delay_the_end() -> None:
    bench = BinderBench()
    started_s = bench.clock.monotonic()
    plugins = Plugins([Binds("DefaultBinder", bench, takes_s=2.0)], post_bind=[PostBinds("Tell", bench)])
    outcome = await bench.run(plugins, measure_plugins=True)
    assert outcome.ended_at_s - started_s == pytest.approx(2.0)
    assert bench.durations == [
        ("Bind", "Success", "podium", pytest.approx(2.0)),
        ("PostBind", "Success", "podium", 0.0),
    ]
    assert bench.plugin_durations == [
        ("DefaultBinder", "Bind", "Success", pytest.approx(2.0)),
        ("Tell", "PostBind", "Success", 0.0),
    ]


async def test_each_plugin_that_is_measured_has_its_own_status() -> None:
    bench = BinderBench()
    pre_bind = [PreBinds("A", bench, unschedulable("no")), PreBinds("B", bench, pre_flight=SKIP)]
    await bench.run(Plugins([Binds("DefaultBinder", bench)], pre_bind=pre_bind), measure_plugins=True)
    assert [report[:3] for report in bench.plugin_durations] == [
        ("A", "PreBindPreFlight", "Success"),
        ("B", "PreBindPreFlight", "Skip"),
        ("A", "PreBind", "Unschedulable"),
    ]


async def test_a_binder_that_skips_leaves_it_to_the_next() -> None:
    bench = BinderBench()
    outcome = await bench.run(Plugins([Binds("Extender", bench, SKIP), Binds("A", bench), Binds("B", bench)]))
    assert outcome.is_bound
    assert bench.story == ["permitted", "Extender binds", "A binds", "Scheduled"]


@pytest.mark.parametrize("names", [(), ("A", "B")])
async def test_if_every_binder_skips_the_pod_is_not_bound(names: tuple[str, ...]) -> None:
    bench = BinderBench()
    outcome = await bench.run(Plugins([Binds(name, bench, SKIP) for name in names]))
    assert outcome.status is not None
    assert outcome.status.code is Code.SKIP
    assert outcome.stage is BindingStage.BINDING
    assert not bench.events


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (error_status("no quorum"), "no quorum"),
        (ValueError("no quorum"), "ValueError: no quorum"),
        (ValueError(), "ValueError"),
        (Conflict("pod is already assigned", code=409, reason="Conflict"), "pod is already assigned"),
        (error_status(Conflict("pod is already assigned", code=409)), "pod is already assigned"),
        (ExceptionGroup("two", [ValueError("a"), ValueError("b")]), "ExceptionGroup: two (2 sub-exceptions)"),
    ],
)
async def test_a_binder_that_fails_ends_the_cycle_with_its_name(answer: Answer, words: str) -> None:
    bench = BinderBench()
    outcome = await bench.run(Plugins([Binds("A", bench, answer), Binds("B", bench)]))
    assert error_of(outcome) == f'running Bind plugin "A": {words}'
    assert outcome.stage is BindingStage.BINDING
    assert bench.story == ["permitted", "A binds"]
    assert bench.durations == [("Bind", "Error", "podium", 0.0)]


async def test_a_plugins_own_exception_is_kept_as_the_cause() -> None:
    bench = BinderBench()
    failure = ValueError("x")
    outcome = await bench.run(Plugins([Binds("A", bench, failure)]))
    assert outcome.status is not None
    assert outcome.status.error is not None
    assert outcome.status.error.__cause__ is failure


async def test_a_rejection_by_a_binder_is_passed_on_with_its_name() -> None:
    bench = BinderBench()
    outcome = await bench.run(Plugins([Binds("A", bench, unschedulable("not now"))]))
    assert outcome.status == unschedulable("not now").by("A")
    assert not outcome.is_rejected_at_permit


async def test_cancellation_goes_through() -> None:
    bench = BinderBench()
    with anyio.move_on_after(1.0) as scope:
        await bench.run(Plugins([Binds("A", bench, takes_s=10.0)]))
    assert scope.cancelled_caught
    assert "Scheduled" not in bench.story


async def test_what_post_bind_raises_changes_nothing() -> None:
    bench = BinderBench()
    posts = [PostBinds("First", bench, ValueError("x")), PostBinds("Second", bench)]
    outcome = await bench.run(Plugins([Binds("A", bench)], post_bind=posts))
    assert outcome.is_bound
    assert bench.story[-3:] == ["Scheduled", "First is told", "Second is told"]
    assert [(plugin, point, str(error)) for plugin, point, error in bench.failures] == [("First", "PostBind", "x")]


async def test_a_plugins_exception_is_reported_unless_it_is_an_api_error() -> None:
    own = BinderBench()
    await own.run(Plugins([Binds("A", own)], [PreBinds("Volumes", own, ValueError("x"))]))
    assert [(plugin, point, str(error)) for plugin, point, error in own.failures] == [("Volumes", "PreBind", "x")]
    servers = BinderBench()
    outcome = await servers.run(Plugins([Binds("A", servers, Conflict("pod is already assigned", code=409))]))
    assert not outcome.is_bound
    assert servers.failures == []


# ---------------------------------------------------------------- PreBind


@pytest.mark.parametrize("answer", [None, error_status("no disk")])
async def test_the_outcome_says_how_long_others_were_waited_for(answer: Answer) -> None:
    bench = BinderBench()
    bench.waiting_pods.add(pod(), "n1", {"Gang": 60.0})
    async with anyio.create_task_group() as tasks:

        async def allow() -> None:
            await anyio.sleep(7)
            waiting = bench.waiting_pods.get(pod().uid)
            assert waiting is not None
            waiting.allow("Gang")

        tasks.start_soon(allow)
        plugins = Plugins([Binds("A", bench, takes_s=3.0)], [PreBinds("Volumes", bench, answer, takes_s=20.0)])
        outcome = await bench.run(plugins)
    assert (outcome.is_bound, outcome.waited_s) == (answer is None, pytest.approx(27.0))


async def test_a_pod_with_pre_bind_work_is_nominated_before_it_begins() -> None:
    bench = BinderBench()
    outcome = await bench.run(Plugins([Binds("A", bench)], [PreBinds("Volumes", bench)]))
    assert outcome.is_bound
    assert bench.story == ["nominate n1", "permitted", "Volumes begins", "Volumes ends", "A binds", "Scheduled"]
    assert [(point, status) for point, status, _, _ in bench.durations] == [
        ("PreBindPreFlight", "Success"),
        ("PreBind", "Success"),
        ("Bind", "Success"),
    ]


async def test_a_pod_without_work_for_any_pre_bind_plugin_is_not_nominated() -> None:
    bench = BinderBench()
    outcome = await bench.run(Plugins([Binds("A", bench)], [PreBinds("Volumes", bench, pre_flight=SKIP)]))
    assert outcome.is_bound
    assert bench.story == ["permitted", "A binds", "Scheduled"]
    assert bench.durations[0][:2] == ("PreBindPreFlight", "Skip")


async def test_a_nomination_that_fails_stops_nothing() -> None:
    bench = BinderBench()
    bench.patch_failure = Conflict("no", code=409)
    outcome = await bench.run(Plugins([Binds("A", bench)], [PreBinds("Volumes", bench)]))
    assert outcome.is_bound


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (error_status("no claim"), 'running PreBindPreFlight "Volumes": no claim'),
        (KeyError("state"), "running PreBindPreFlight \"Volumes\": KeyError: 'state'"),
        (
            unschedulable("full"),
            (
                'PreBindPreFlight Volumes returned "Unschedulable", which is unsupported. '
                "It is supposed to return Success, Skip, or Error status"
            ),
        ),
    ],
)
async def test_a_pre_flight_that_is_neither_work_nor_skip_fails_the_cycle(answer: Answer, text: str) -> None:
    bench = BinderBench()
    plugins = Plugins([Binds("A", bench)], [PreBinds("Volumes", bench, pre_flight=answer)])
    outcome = await bench.run(plugins)
    assert error_of(outcome) == text
    assert outcome.stage is BindingStage.STARTED
    assert bench.story == []


async def test_neighbours_that_allow_it_run_together_and_others_alone_in_order() -> None:
    bench = BinderBench()
    plugins = [
        PreBinds("A", bench, takes_s=1.0, parallel=True),
        PreBinds("Idle", bench, pre_flight=SKIP),
        PreBinds("B", bench, takes_s=2.0, parallel=True),
        PreBinds("C", bench, takes_s=1.0),
        PreBinds("D", bench, takes_s=1.0, parallel=True),
    ]
    outcome = await bench.run(Plugins([Binds("Z", bench)], plugins))
    assert outcome.is_bound
    assert bench.story[2:-2] == [
        "A begins", "B begins", "A ends", "B ends", "C begins", "C ends", "D begins", "D ends",
    ]  # fmt: skip
    assert bench.durations[1] == ("PreBind", "Success", "podium", pytest.approx(4.0))


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (error_status("no disk"), 'running PreBind plugin "B": no disk'),
        (OSError("no disk"), 'running PreBind plugin "B": OSError: no disk'),
        (SKIP, 'running PreBind plugin "B": '),
    ],
)
async def test_a_failing_pre_bind_stops_its_neighbours_and_what_comes_after(answer: Answer, error: str) -> None:
    bench = BinderBench()
    started_s = bench.clock.monotonic()
    plugins = [
        PreBinds("A", bench, takes_s=60.0, parallel=True),
        PreBinds("B", bench, answer, takes_s=1.0, parallel=True),
        PreBinds("C", bench),
    ]
    outcome = await bench.run(Plugins([Binds("Z", bench)], plugins))
    assert error_of(outcome) == error
    assert outcome.stage is BindingStage.PRE_BINDING
    assert outcome.ended_at_s - started_s == pytest.approx(1.0)
    assert bench.story == ["nominate n1", "permitted", "A begins", "B begins", "B ends"]


async def test_a_rejection_in_pre_bind_is_passed_on_with_the_plugins_name() -> None:
    bench = BinderBench()
    outcome = await bench.run(Plugins([Binds("Z", bench)], [PreBinds("A", bench, unresolvable("no disk"))]))
    assert outcome.status == unresolvable("no disk").by("A")
    assert not outcome.is_rejected_at_permit


async def test_preemption_stops_a_pod_in_pre_bind_with_its_cause() -> None:
    bench = BinderBench()
    outcomes: list[BindOutcome] = []

    async def run() -> None:
        outcomes.append(await bench.run(Plugins([Binds("Z", bench)], [PreBinds("A", bench, takes_s=60.0)])))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await anyio.sleep(1.0)
        pre_bind = bench.pods_in_pre_bind.get("uid-web-1")
        assert pre_bind is not None
        assert pre_bind.cancel("preempted by DefaultPreemption")
        assert pre_bind.cancel("preempted once more")
    assert error_of(outcomes[0]) == "preempted by DefaultPreemption"
    assert outcomes[0].stage is BindingStage.PRE_BINDING
    assert bench.pods_in_pre_bind.get("uid-web-1") is None
    assert "Z binds" not in bench.story


async def test_a_pod_past_pre_bind_can_no_longer_be_stopped() -> None:
    bench = BinderBench()

    class Late(Binds):
        async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
            assert not pods_tracked[0].cancel("too late")
            return await super().bind(state, pod, node_name)

    class Peeking(PreBinds):
        async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
            pre_bind = bench.pods_in_pre_bind.get(pod.uid)
            assert pre_bind is not None
            pods_tracked.append(pre_bind)
            return None

    pods_tracked: list[Any] = []
    outcome = await bench.run(Plugins([Late("Z", bench)], [Peeking("A", bench)]))
    assert outcome.is_bound


async def test_cancellation_in_pre_bind_goes_through_and_leaves_nothing_behind() -> None:
    bench = BinderBench()
    with anyio.move_on_after(1.0) as scope:
        await bench.run(
            Plugins([Binds("Z", bench)], [PreBinds(name, bench, takes_s=9.0, parallel=True) for name in "AB"])
        )
    assert scope.cancelled_caught
    assert bench.pods_in_pre_bind.get("uid-web-1") is None


# ---------------------------------------------------------------- Permit


async def run_while(bench: BinderBench, plugins: Plugins, act: Callable[[], object]) -> BindOutcome:
    """Run the cycle of a pod that waits for Gang, and act after a second."""
    bench.waiting_pods.add(pod(), "n1", {"Gang": 30.0})
    outcomes: list[BindOutcome] = []

    async def run() -> None:
        outcomes.append(await bench.run(plugins))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await anyio.sleep(1.0)
        act()
    assert len(bench.waiting_pods) == 0
    return outcomes[0]


async def test_a_pod_made_to_wait_is_nominated_and_goes_on_when_allowed() -> None:
    bench = BinderBench()

    def allow() -> None:
        assert bench.story == ["nominate n1"]
        for waiting in bench.waiting_pods:
            waiting.allow("Gang")

    outcome = await run_while(bench, Plugins([Binds("A", bench)]), allow)
    assert outcome.is_bound
    assert bench.story == ["nominate n1", "permitted", "A binds", "Scheduled"]
    assert bench.permit_waits == [("Success", pytest.approx(1.0))]


async def test_a_pod_allowed_before_its_binding_cycle_began_does_not_wait_and_is_not_nominated() -> None:
    bench = BinderBench()
    bench.waiting_pods.add(pod(), "n1", {"Gang": 30.0}).allow("Gang")
    outcome = await bench.run(Plugins([Binds("A", bench)]))
    assert outcome.is_bound
    assert bench.permit_waits == [("Success", 0.0)]
    assert bench.story == ["permitted", "A binds", "Scheduled"]


async def test_a_pod_allowed_before_its_binding_cycle_began_is_nominated_if_it_waits_for_pre_bind() -> None:
    bench = BinderBench()
    bench.waiting_pods.add(pod(), "n1", {"Gang": 30.0}).allow("Gang")
    outcome = await bench.run(Plugins([Binds("A", bench)], [PreBinds("Volumes", bench)]))
    assert outcome.is_bound
    assert bench.story[:2] == ["nominate n1", "permitted"]


async def test_a_pod_rejected_before_its_binding_cycle_began_is_not_nominated() -> None:
    """Its room is free at once: another gang that is tried next may need it."""
    bench = BinderBench()
    bench.waiting_pods.add(pod(), "n1", {"Gang": 30.0}).reject("Gang", "the others did not come")
    outcome = await bench.run(Plugins([Binds("A", bench)]))
    assert outcome.is_rejected_at_permit
    assert bench.story == []


async def test_a_pod_that_waited_in_vain_is_unschedulable_by_that_plugin() -> None:
    bench = BinderBench()
    outcome = await run_while(bench, Plugins([Binds("A", bench)]), lambda: None)
    assert outcome.status == unschedulable("rejected due to timeout after waiting 30s at plugin Gang").by("Gang")
    assert outcome.is_rejected_at_permit
    assert bench.story == ["nominate n1"]
    assert bench.permit_waits == [("Unschedulable", pytest.approx(30.0))]


async def test_a_preempted_waiting_pod_fails_with_an_error() -> None:
    bench = BinderBench()

    def preempt() -> None:
        waiting = bench.waiting_pods.get("uid-web-1")
        assert waiting is not None
        waiting.preempt("DefaultPreemption", "preempted")

    outcome = await run_while(bench, Plugins([Binds("A", bench)]), preempt)
    assert error_of(outcome) == "waiting on permit for pod: preempted"
    assert outcome.stage is BindingStage.WAITING_ON_PERMIT
    assert not outcome.is_rejected_at_permit
    assert bench.permit_waits == [("Error", pytest.approx(1.0))]


async def test_pre_bind_begins_after_the_wait() -> None:
    bench = BinderBench()
    plugins = Plugins([Binds("A", bench)], [PreBinds("Volumes", bench)])
    await run_while(bench, plugins, lambda: [waiting_pod.allow("Gang") for waiting_pod in bench.waiting_pods])
    assert bench.story[:3] == ["nominate n1", "permitted", "Volumes begins"]


async def test_a_pod_whose_pre_flight_fails_waits_no_more() -> None:
    bench = BinderBench()
    bench.waiting_pods.add(pod(), "n1", {"Gang": 30.0})
    plugins = Plugins([Binds("A", bench)], [PreBinds("Volumes", bench, pre_flight=error_status("x"))])
    assert not (await bench.run(plugins)).is_bound
    assert len(bench.waiting_pods) == 0


async def test_a_cancelled_wait_leaves_no_waiting_pod() -> None:
    bench = BinderBench()
    bench.waiting_pods.add(pod(), "n1", {"Gang": 30.0})
    with anyio.move_on_after(1.0):
        await bench.run(Plugins([Binds("A", bench)]))
    assert len(bench.waiting_pods) == 0
