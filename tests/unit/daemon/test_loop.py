from __future__ import annotations

from random import Random
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from podium.client.dispatcher import Priority
from podium.framework.contract.cluster_event import ASSIGNED_POD_DELETE, EventRegistration, QueueingHint
from podium.framework.contract.post_filter import AskingPostFilterPlugin, PostFilterResult
from podium.framework.contract.status import Code, Status, error_status, unschedulable
from podium.framework.contract.steps import PAUSE
from podium.objects.api_errors import Conflict, InternalError, NotFound, TooManyRequests
from podium.objects.core import Pod
from podium.queues import QueueState
from tests.builders import node, pod
from tests.unit.binder.builders import Request
from tests.unit.daemon.loop_bench import LoopBench, fits, settle, with_changes
from tests.unit.framework.profiles import Built, permit, post_filter, raising, reserve
from tests.virtual_time import VIRTUAL_TIME, LoopClock

pytestmark = pytest.mark.anyio

WAIT = Status(Code.WAIT)


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


def answers(bench: LoopBench, ending: str, answer: Any) -> None:
    """Requests to paths with that ending get the answer, or the exception; others succeed."""

    def reply(request: Request) -> Any:
        if not request.path.endswith(ending):
            return {}
        result = answer() if callable(answer) else answer
        if isinstance(result, Exception):
            raise result
        return result

    bench.wire.answer = reply


# ---------------------------------------------------------------- bound


async def test_a_pod_that_fits_is_assumed_and_bound_with_an_event() -> None:
    bench = LoopBench()
    bench.put(node("n1"), pod("web-1"))
    with capture_logs() as logs:
        async with bench.running():
            assert bench.bindings == [("web-1", "n1")]
            assert bench.cache.is_assumed("uid-web-1")
            assert bench.place(pod("web-1")) is QueueState.GONE
    assert bench.recorder.notes == [("Scheduled", "Successfully assigned default/web-1 to n1")]
    assert bench.attempts("scheduled") == 1
    assert bench.metrics.value("scheduler_pod_scheduling_attempts") == 1
    (line,) = [entry for entry in logs if entry["event"] == "Successfully bound pod to node"]
    assert (line["pod"], line["node"], line["attempt"], line["feasible_nodes"]) == ("default/web-1", "n1", 1, 1)


async def test_a_pod_that_is_bound_is_no_longer_nominated() -> None:
    bench = LoopBench()
    bench.put(node("n1"), pod("web-1", nominated="n1"))
    assert bench.queue.nominator.node_of("uid-web-1") == "n1"
    async with bench.running():
        assert bench.bindings == [("web-1", "n1")]
    assert bench.queue.nominator.node_of("uid-web-1") is None


async def test_pods_that_come_later_wake_the_loop() -> None:
    bench = LoopBench()
    bench.put(node("n1"))
    async with bench.running():
        await anyio.sleep(100.0)
        bench.put(pod("late"))
        await settle()
        assert bench.bindings == [("late", "n1")]


# ---------------------------------------------------------------- no attempt


async def test_a_pod_that_is_being_deleted_is_skipped_with_an_event() -> None:
    bench = LoopBench()
    bench.put(node("n1"), pod("web-1", terminating=True))
    async with bench.running():
        assert bench.recorder.notes == [("FailedScheduling", "skip schedule deleting pod: default/web-1")]
        assert bench.wire.calls == []
        assert bench.place(pod("web-1")) is QueueState.GONE
    assert bench.queue.statistics().in_flight == 0
    assert bench.attempts("error") == bench.attempts("unschedulable") == 0


async def test_a_pod_that_is_assumed_already_is_dropped() -> None:
    bench = LoopBench()
    bench.put(node("n1"), pod("web-1"))
    bench.cache.assume_pod(pod("web-1"), "n1")
    async with bench.running():
        assert bench.place(pod("web-1")) is QueueState.GONE
        assert (bench.wire.calls, bench.recorder.notes) == ([], [])


async def test_a_pod_of_a_profile_that_is_not_there_is_dropped_and_logged() -> None:
    bench = LoopBench()
    stranger = pod("web-1", scheduler="nobody")
    bench.queue._requeuing._pre_enqueue_check.admits = lambda info: True  # type: ignore[method-assign]
    bench.queue.add(stranger)
    with capture_logs() as logs:
        async with bench.running():
            assert bench.place(stranger) is QueueState.GONE
            assert (bench.wire.calls, bench.recorder.notes) == ([], [])
    assert [(entry["log_level"], entry["profile"]) for entry in logs if entry.get("pod") == stranger.key] == [
        ("error", "nobody")
    ]


# ---------------------------------------------------------------- does not fit, fails


async def test_a_pod_that_does_not_fit_waits_with_condition_event_and_log_line() -> None:
    bench = LoopBench(fits(lambda name: unschedulable("too small")))
    bench.put(node("n1"), node("n2"), pod("web-1"))
    message = "0/2 nodes are available: 2 too small."
    with capture_logs() as logs:
        async with bench.running():
            assert bench.place(pod("web-1")) is QueueState.UNSCHEDULABLE
            assert bench.recorder.notes == [("FailedScheduling", message)]
            assert bench.conditions == [("Unschedulable", message)]
    assert bench.attempts("unschedulable") == 1
    (line,) = [entry for entry in logs if entry["event"].startswith("Unable to schedule pod")]
    assert (line["log_level"], line["pod"], line["reason"]) == ("info", "default/web-1", message)


async def test_what_a_filter_adds_to_its_reason_is_for_the_log_and_the_queue_page_alone() -> None:
    def details(_self: Any, _pod: Pod, _snapshot: Any, rows: Any) -> dict[str, int]:
        return {"untolerated taint team=a:NoSchedule": len(rows)}

    rejects = fits(lambda name: unschedulable("too small"))
    rejects.rejection_details = details
    bench = LoopBench(rejects)
    bench.put(node("n1"), node("n2"), pod("web-1"))
    with capture_logs() as logs:
        async with bench.running():
            assert bench.recorder.notes == [("FailedScheduling", "0/2 nodes are available: 2 too small.")]
            (info,) = bench.queue.listing.infos()
            description = bench.queue.listing.describe(info)
    details_text = "untolerated taint team=a:NoSchedule on 2 nodes"
    assert (description.reason, description.details) == ("0/2 nodes are available: 2 too small.", details_text)
    (line,) = [entry for entry in logs if entry["event"].startswith("Unable to schedule pod")]
    assert line["details"] == details_text


async def test_a_filter_that_cannot_add_anything_is_left_out() -> None:
    def details(_self: Any, *_: Any) -> Any:
        raise KeyError("team")

    rejects = fits(lambda name: unschedulable("too small"))
    rejects.rejection_details = details
    bench = LoopBench(rejects)
    bench.put(node("n1"), pod("web-1"))
    async with bench.running():
        (info,) = bench.queue.listing.infos()
        assert bench.queue.listing.describe(info).details == ""
        assert bench.place(pod("web-1")) is QueueState.UNSCHEDULABLE


async def test_the_text_of_a_plugins_failure_is_on_the_queue_page() -> None:
    bench = LoopBench(fits(lambda name: error_status("out of order")))
    bench.put(node("n1"), pod("web-1"))
    async with bench.running():
        (info,) = bench.queue.listing.infos()
        assert "out of order" in bench.queue.listing.describe(info).reason


async def test_without_nodes_the_pod_is_unschedulable_but_backs_off_as_after_an_error() -> None:
    bench = LoopBench()
    bench.put(pod("web-1"))
    async with bench.running():
        assert bench.place(pod("web-1")) is QueueState.ERROR_BACKOFF
        assert bench.conditions == [("Unschedulable", "no nodes available to schedule pods")]
    assert bench.attempts("unschedulable") == 1


async def test_a_filter_that_fails_is_an_error_and_the_pod_is_tried_again() -> None:
    fail = [True]
    bench = LoopBench(fits(lambda name: error_status("out of order") if fail[0] else None))
    bench.put(node("n1"), pod("web-1"))
    with capture_logs() as logs:
        async with bench.running():
            assert bench.place(pod("web-1")) is QueueState.ERROR_BACKOFF
            ((reason, message),) = bench.conditions
            assert reason == "SchedulerError"
            assert "out of order" in message
            fail[0] = False
            await anyio.sleep(3.0)
            assert bench.bindings == [("web-1", "n1")]
    assert (bench.attempts("error"), bench.attempts("scheduled")) == (1, 1)
    assert [entry["log_level"] for entry in logs if entry["event"] == "Error scheduling pod; retrying"] == ["error"]


async def test_a_status_that_cannot_be_written_is_logged_and_the_loop_goes_on() -> None:
    bench = LoopBench(fits(lambda name: unschedulable("no")))
    bench.put(node("n1"), pod("web-1"))
    answers(bench, "/status", InternalError("broken"))
    with capture_logs() as logs:
        async with bench.running():
            await anyio.sleep(1.0)
            assert bench.place(pod("web-1")) is QueueState.UNSCHEDULABLE
    assert [entry["log_level"] for entry in logs if entry["event"] == "Pod status could not be written"] == ["warning"]


async def test_that_a_pod_is_gone_when_its_status_is_written_alarms_nobody() -> None:
    bench = LoopBench(fits(lambda name: unschedulable("no")))
    bench.put(node("n1"), pod("web-1"))
    answers(bench, "/status", NotFound("gone"))
    with capture_logs() as logs:
        async with bench.running():
            await anyio.sleep(1.0)
    assert len(bench.conditions) == 1
    assert not [entry for entry in logs if entry["log_level"] in ("warning", "error")]


# ---------------------------------------------------------------- reserve and permit


def recording_reserve(world_story: list[str], name: str, answer: Any = lambda: None) -> type[Any]:
    def reserve_and_answer() -> Any:
        world_story.append(f"reserve {name}")
        return answer()

    return reserve(name, reserve_and_answer, lambda: world_story.append(f"unreserve {name}"))


@pytest.mark.parametrize(
    ("answer", "place", "condition", "result"),
    [
        (
            lambda: unschedulable("taken"),
            QueueState.UNSCHEDULABLE,
            ("Unschedulable", "0/1 nodes are available: 1 taken."),
            "unschedulable",
        ),
        (
            raising(ValueError("boom")),
            QueueState.ERROR_BACKOFF,
            ("SchedulerError", 'running Reserve plugin "Second": ValueError: boom'),
            "error",
        ),
    ],
)
async def test_a_failed_reserve_is_undone_in_reverse(
    answer: Any, place: QueueState, condition: tuple[str, str], result: str
) -> None:
    story: list[str] = []
    bench = LoopBench(
        recording_reserve(story, "First"), recording_reserve(story, "Second", answer), recording_reserve(story, "Third")
    )
    bench.put(node("n1"), node("n2"), pod("web-1", nominated="n1"))
    async with bench.running():
        assert story == ["reserve First", "reserve Second", "unreserve Third", "unreserve Second", "unreserve First"]
        assert not bench.cache.is_assumed("uid-web-1")
        assert bench.cache.statistics()["pods"] == 0
        assert bench.place(pod("web-1")) is place
        assert bench.conditions == [condition]
        assert bench.requests_sent("PATCH", "/status")[0].body["status"]["nominatedNodeName"] is None
        assert bench.bindings == []
    assert bench.attempts(result) == 1


async def test_a_permit_rejection_after_another_has_asked_to_wait_wins() -> None:
    story: list[str] = []
    bench = LoopBench(
        recording_reserve(story, "Room"),
        permit("Waits", lambda: (WAIT, 10.0)),
        permit("Rejects", lambda: (unschedulable("not now"), 0.0)),
    )
    bench.put(node("n1"), pod("web-1"))
    async with bench.running():
        assert story == ["reserve Room", "unreserve Room"]
        assert len(bench.waiting_pods) == 0
        assert not bench.cache.is_assumed("uid-web-1")
        info = bench.queue.get(pod("web-1"))
        assert info is not None
        assert (info.unschedulable_plugins, bench.place(pod("web-1"))) == ({"Rejects"}, QueueState.UNSCHEDULABLE)


async def test_a_permit_plugin_that_fails_sends_the_pod_into_backoff() -> None:
    bench = LoopBench(permit("Fails", raising(RuntimeError("no answer"))))
    bench.put(node("n1"), pod("web-1"))
    async with bench.running():
        assert bench.place(pod("web-1")) is QueueState.ERROR_BACKOFF
        assert bench.conditions == [("SchedulerError", 'running Permit plugin "Fails": RuntimeError: no answer')]


async def test_a_pod_whose_wait_is_ended_by_a_rejection_gives_its_room_back() -> None:
    story: list[str] = []
    bench = LoopBench(recording_reserve(story, "Room"), permit("Waits", lambda: (WAIT, 60.0)))
    bench.put(node("n1"), pod("web-1"))
    async with bench.running():
        assert bench.cache.is_assumed("uid-web-1")
        assert bench.queue.statistics().in_flight == 1
        waiting = bench.waiting_pods.get("uid-web-1")
        assert waiting is not None
        waiting.reject("Waits", "the others did not come")
        await settle()
        assert story == ["reserve Room", "unreserve Room"]
        assert not bench.cache.is_assumed("uid-web-1")
        # Its own end is no event for the pod itself: it would come back at once, and wait again.
        assert bench.place(pod("web-1")) is QueueState.UNSCHEDULABLE
        assert bench.conditions == [("Unschedulable", "0/1 nodes are available: 1 the others did not come.")]
    assert bench.attempts("unschedulable") == 1
    assert bench.queue.statistics().in_flight_events == 0


async def test_the_nomination_of_a_pod_that_waited_in_vain_is_taken_back_before_a_watch_has_shown_it() -> None:
    bench = LoopBench(permit("Waits", lambda: (WAIT, 60.0)))
    bench.put(node("n1"), pod("web-1"))
    async with bench.running():
        bench.waiting_pods.reject("uid-web-1")
        await settle()
    bodies = [request.body["status"] for request in bench.requests_sent("PATCH", "/status")]
    assert [body.get("nominatedNodeName", "") for body in bodies] == ["n1", None]
    assert bench.queue.nominator.node_of("uid-web-1") is None


async def test_room_that_a_rejected_pod_gives_back_wakes_others_but_not_itself() -> None:
    full = [False]
    bench = LoopBench(
        fits(lambda name: unschedulable("full") if full[0] else None, EventRegistration(ASSIGNED_POD_DELETE)),
        permit("Waits", lambda: (WAIT, 60.0)),
    )
    bench.put(node("n1"), pod("first"))
    async with bench.running():
        full[0] = True
        bench.put(pod("second"))
        await settle()
        assert bench.place(pod("second")) is QueueState.UNSCHEDULABLE
        await anyio.sleep(20.0)
        full[0] = False
        assert bench.waiting_pods.reject("uid-first")
        await settle()
        assert bench.place(pod("first")) is not QueueState.ACTIVE
        assert bench.waiting_pods.get("uid-first") is None
        assert bench.waiting_pods.get("uid-second") is not None


async def test_a_pod_that_may_go_in_the_end_is_bound() -> None:
    bench = LoopBench(permit("Waits", lambda: (WAIT, 60.0)))
    bench.put(node("n1"), pod("web-1"))
    async with bench.running():
        assert bench.bindings == []
        waiting = bench.waiting_pods.get("uid-web-1")
        assert waiting is not None
        waiting.allow("Waits")
        await settle()
        assert bench.bindings == [("web-1", "n1")]


async def test_a_pod_that_is_deleted_while_it_waits_leaves_nothing_behind() -> None:
    bench = LoopBench(permit("Waits", lambda: (WAIT, 60.0)))
    bench.put(node("n1"), pod("web-1"))
    async with bench.running():
        bench.delete(pod("web-1"))
        await settle()
        assert bench.cache.statistics()["pods"] == 0
        assert len(bench.waiting_pods) == 0
        assert bench.place(pod("web-1")) is QueueState.GONE
        assert bench.conditions == []
    assert bench.queue.statistics().in_flight == 0


# ---------------------------------------------------------------- binding fails


async def test_a_failed_binding_frees_the_room_tells_the_others_and_tries_again() -> None:
    hints: list[tuple[str, str]] = []

    def hint(waiting: Any, old: Any, new: Any) -> QueueingHint:
        hints.append((waiting.metadata.name, old.node_name))
        return QueueingHint.QUEUE

    bench = LoopBench(
        fits(
            lambda name: unschedulable("full") if bench.cache.statistics()["pods"] else None,
            EventRegistration(ASSIGNED_POD_DELETE, hint),
        )
    )
    failing = [True]
    bench.wire.latency_s = 1.0
    answers(bench, "/first/binding", lambda: Conflict("no") if failing[0] else {})
    bench.put(node("n1"), pod("first"), pod("second"))
    async with bench.running():
        assert bench.place(pod("second")) is QueueState.UNSCHEDULABLE
        await anyio.sleep(1.0)
        # The one who failed has not been asked whether its own end helps it.
        assert hints == [("second", "n1")]
        assert not bench.cache.is_assumed("uid-first")
        assert bench.place(pod("first")) is QueueState.ERROR_BACKOFF
        failing[0] = False
        await anyio.sleep(10.0)
        assert bench.bindings[:2] == [("first", "n1"), ("second", "n1")]
    (message,) = [message for reason, message in bench.conditions if reason == "SchedulerError"]
    assert message == 'running Bind plugin "DefaultBinder": no'
    assert bench.attempts("error") == 1


@pytest.mark.parametrize("node_name", ["n1", "n2"])
async def test_a_binding_that_failed_though_the_pod_is_bound_is_let_be(node_name: str) -> None:
    story: list[str] = []
    bench = LoopBench(
        recording_reserve(story, "Room"), fits(lambda name: None if name == "n1" else unschedulable("no"))
    )
    web = pod("web-1")

    def elsewhere() -> Exception:
        bench.put(web.on_node(node_name))
        return Conflict("already assigned")

    answers(bench, "/binding", elsewhere)
    bench.put(node("n1"), node("n2"), web)
    async with bench.running():
        await settle()
        assert story == ["reserve Room", "unreserve Room"]
        stored_pod = bench.cache.pod(web.uid)
        assert stored_pod is not None
        assert (stored_pod.node_name, bench.cache.is_assumed(web.uid)) == (node_name, False)
        assert bench.place(web) is QueueState.GONE
        assert bench.requests_sent("PATCH") == []
        assert bench.recorder.notes == []
    assert bench.queue.statistics().in_flight == 0
    assert bench.attempts("error") == 1


@pytest.mark.parametrize("missing", ["its binding", "its deletion", "that it was to be deleted"])
async def test_a_pod_that_is_pending_again_amid_its_binding_is_reserved_once_at_a_time(missing: str) -> None:
    """An etcd that is restored from a backup makes that so."""
    story: list[str] = []
    bench = LoopBench(recording_reserve(story, "Room"))
    web = pod("web-1")
    outcomes: list[Any] = [Conflict("no"), {}]
    answers(bench, "/binding", lambda: outcomes.pop(0))
    bench.wire.latency_s = 10.0
    bench.put(node("n1"), web)
    async with bench.running():
        await anyio.sleep(1.0)
        if missing == "its binding":
            bench.put(web.on_node("n1"))
        elif missing == "its deletion":
            bench.delete(web)
        else:
            bench.put(with_changes(web, terminating=True))
        bench.put(web)
        await anyio.sleep(8.0)
        assert bench.cache.is_assumed(web.uid)
        assert story == ["reserve Room"]
        await anyio.sleep(60.0)
        assert story == ["reserve Room", "unreserve Room", "reserve Room"]
        assert bench.bindings == [("web-1", "n1")] * 2


async def test_a_pod_that_is_deleted_during_its_binding_is_not_put_back() -> None:
    bench = LoopBench()
    web = pod("web-1")

    def delete_and_refuse() -> Exception:
        bench.delete(web)
        return Conflict("gone")

    answers(bench, "/binding", delete_and_refuse)
    bench.put(node("n1"), web)
    async with bench.running():
        await settle()
        assert bench.place(web) is QueueState.GONE
        assert bench.cache.statistics()["pods"] == 0
        assert bench.requests_sent("PATCH") == []


@pytest.mark.parametrize("is_watched", [True, False], ids=["the watch shows it first", "the answer shows it first"])
async def test_that_a_pod_is_gone_when_it_is_bound_alarms_nobody(is_watched: bool) -> None:
    bench = LoopBench()
    web = pod("web-1")

    def delete_and_refuse() -> Exception:
        if is_watched:
            bench.delete(web)
        return NotFound('pods "web-1" not found')

    answers(bench, "/binding", delete_and_refuse)
    bench.put(node("n1"), web)
    with capture_logs() as logs:
        async with bench.running():
            await settle()
            if not is_watched:
                bench.delete(web)
                await settle()
            assert bench.place(web) is QueueState.GONE
    assert not [entry for entry in logs if entry["log_level"] in ("warning", "error")]
    assert bench.attempts("error") == 1


async def test_a_pod_that_is_made_anew_during_the_binding_of_its_namesake_is_bound_itself() -> None:
    bench = LoopBench()
    web, namesake = pod("web-1"), pod("web-1", uid="uid-again")

    def other() -> Any:
        if bench.known[web.key] is web:
            bench.put(namesake)
            return Conflict("another one by now")
        return {}

    answers(bench, "/binding", other)
    bench.put(node("n1"), web)
    async with bench.running():
        await settle()
        assert [request.body["metadata"]["uid"] for request in bench.requests_sent("POST", "/binding")] == [
            "uid-web-1",
            "uid-again",
        ]
        assert bench.cache.is_assumed("uid-again")
        assert not bench.cache.is_assumed("uid-web-1")
        assert bench.recorder.notes == [("Scheduled", "Successfully assigned default/web-1 to n1")]
        assert bench.requests_sent("PATCH") == []


# ---------------------------------------------------------------- preemption


def evicting(*victims: Any) -> type[Any]:
    return post_filter("Preempts", lambda nodes_filtered: (PostFilterResult("n1", victims), None))


async def test_a_pod_for_which_room_is_made_is_nominated_and_held_back_until_that_is_done() -> None:
    victim = pod("victim", node="n1")
    bench = LoopBench(fits(lambda name: unschedulable("full")), evicting(victim))
    bench.wire.latency_s = 1.0
    bench.put(node("n1"), victim, pod("vip", priority=10))
    async with bench.running():
        assert bench.preemptions.is_preempting("uid-vip")
        assert bench.queue.nominator.node_of("uid-vip") == "n1"
        await anyio.sleep(5.0)
        assert [request.path.split("/")[-1] for request in bench.requests_sent("DELETE")] == ["victim"]
        assert not bench.preemptions.is_preempting("uid-vip")
    nominations = [
        request.body["status"].get("nominatedNodeName") for request in bench.requests_sent("PATCH", "/vip/status")
    ]
    assert nominations == ["n1"]
    assert bench.metrics.value("scheduler_preemption_victims") == 1
    assert bench.metrics.values("scheduler_preemption_goroutines_execution_total") == {("success",): 1}
    assert bench.metrics.value("scheduler_preemption_goroutines_duration_seconds", result="success") == 1


async def test_a_preemption_that_fails_is_counted_as_such() -> None:
    victim = pod("victim", node="n1")
    bench = LoopBench(fits(lambda name: unschedulable("full")), evicting(victim))
    answers(bench, "/victim", InternalError("etcd is away"))
    bench.put(node("n1"), victim, pod("vip", priority=10))
    async with bench.running():
        await anyio.sleep(10.0)
    counts = bench.metrics.values("scheduler_preemption_goroutines_execution_total")
    assert set(counts) == {("error",)}


async def test_binding_cycles_under_way_are_counted() -> None:
    bench = LoopBench()
    bench.wire.latency_s = 5.0
    bench.put(node("n1"), pod("web-1"), pod("web-2"))
    async with bench.running():
        assert bench.metrics.value("scheduler_goroutines", operation="binding") == 2
        await anyio.sleep(10.0)
        assert bench.metrics.value("scheduler_goroutines", operation="binding") == 0


async def test_victims_that_are_on_their_way_out_already_are_only_waited_for() -> None:
    victim = pod("victim", node="n1", terminating=True)
    bench = LoopBench(fits(lambda name: unschedulable("full")), evicting(victim))
    bench.put(node("n1"), victim, pod("vip", priority=10))
    async with bench.running():
        assert bench.queue.nominator.node_of("uid-vip") == "n1"
        assert not bench.preemptions.is_preempting("uid-vip")
        assert bench.requests_sent("DELETE") == []


@pytest.mark.parametrize(("result", "nominations"), [(PostFilterResult(""), [None]), (None, [])])
async def test_a_nomination_is_taken_back_or_left_as_the_plugin_says(result: Any, nominations: list[Any]) -> None:
    bench = LoopBench(
        fits(lambda name: unschedulable("full")),
        post_filter("Preempts", lambda nodes_filtered: (result, unschedulable("no"))),
    )
    bench.put(node("n1"), pod("web-1", nominated="n1"))
    async with bench.running():
        pass
    (patch,) = bench.requests_sent("PATCH", "/status")
    assert [value for key, value in patch.body["status"].items() if key == "nominatedNodeName"] == nominations


async def test_a_nomination_that_no_watch_has_shown_yet_is_taken_back_and_wakes_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers_of_plugin = iter([PostFilterResult("n1"), PostFilterResult("")])
    bench = LoopBench(
        fits(lambda name: unschedulable("full")),
        post_filter("Preempts", lambda nodes_filtered: (next(answers_of_plugin), unschedulable("no"))),
    )
    bench.put(node("n1"), pod("web-1"))
    async with bench.running():
        await anyio.sleep(100.0)
        labels, move_all = list[str](), bench.queue.move_all
        monkeypatch.setattr(
            bench.queue, "move_all", lambda event, *args: labels.append(event.label) or move_all(event, *args)
        )
        bench.put(node("n2"))
        await anyio.sleep(100.0)
    bodies = [request.body["status"] for request in bench.requests_sent("PATCH", "/status")]
    assert [body["nominatedNodeName"] for body in bodies] == ["n1", None]
    assert labels == ["NodeAdd", ASSIGNED_POD_DELETE.label]


async def test_a_preemption_of_many_does_not_stop_the_loop_for_good() -> None:
    victims = [pod(f"victim-{index}", node="n1") for index in range(400)]
    bench = LoopBench(
        fits(lambda name: unschedulable("full") if "vip" in waiting else None), evicting(*victims), fits_all_others()
    )
    waiting = {"vip"}
    bench.wire.latency_s = 0.1
    bench.put(node("n1"), *victims, pod("vip", priority=10))
    async with bench.running():
        assert bench.dispatcher.waiting(Priority.STATUS) > 16
        waiting.clear()
        bench.put(pod("web-1"))
        await anyio.sleep(60.0)
        assert ("web-1", "n1") in bench.bindings


async def test_the_cluster_goes_on_while_a_long_attempt_pauses_and_the_snapshot_does_not() -> None:
    clock, sightings, has_begun = HeldUpClock(), [], anyio.Event()

    class Pauses(Built, AskingPostFilterPlugin):
        def post_filter_asking(self, state, pod, snapshot, nodes_filtered, extenders):
            clock.late_s += 0.1
            has_begun.set()
            yield PAUSE
            sightings.append((len(bench.nodes), len(bench.cache.snapshot())))
            return None, unschedulable("no")

    bench = LoopBench(fits(lambda name: unschedulable("full") if name == "n1" else None), Pauses, clock=clock)
    bench.put(node("n1"), pod("web-1"))

    async def another_node_comes() -> None:
        await has_begun.wait()
        bench.put(node("n2"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(another_node_comes)
        async with bench.running():
            await anyio.sleep(5.0)
            assert bench.bindings == [("web-1", "n2")]
    assert sightings == [(2, 1)]


@pytest.mark.parametrize(
    "by_now", [None, pod("vip", uid="another"), pod("vip", node="n2")], ids=["deleted", "made anew", "bound"]
)
async def test_no_room_is_made_for_a_pod_that_has_gone_in_a_pause_of_its_attempt(by_now: Pod | None) -> None:
    victim, vip = pod("victim", node="n1"), pod("vip")

    class Pauses(Built, AskingPostFilterPlugin):
        def post_filter_asking(self, state, pod, snapshot, nodes_filtered, extenders):
            if pod.uid != vip.uid:
                return None, unschedulable("no")
            yield PAUSE
            bench.delete(vip)
            if by_now is not None:
                bench.put(by_now)
            return PostFilterResult("n1", (victim,)), None

    bench = LoopBench(fits(lambda name: unschedulable("full")), Pauses)
    bench.put(node("n1"), node("n2"), victim, vip)
    async with bench.running():
        await anyio.sleep(1.0)
    assert bench.attempts("unschedulable") > 0
    assert bench.requests_sent("DELETE") == []
    assert not bench.preemptions.is_preempting(vip.uid)


class HeldUpClock(LoopClock):
    """Goes on by as much as it is told that work has taken."""

    late_s = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.late_s


def fits_all_others() -> type[Any]:
    return fits(lambda name: None, name="Others")


# ---------------------------------------------------------------- backpressure, status and binding in order


async def test_the_loop_waits_while_the_api_server_is_behind() -> None:
    bench = LoopBench()
    bench.wire.latency_s = 0.4
    bench.put(node("n1", pods=1000, cpu="1000"), *(pod(f"web-{index:03}") for index in range(161)))
    async with bench.running():
        await settle()
        assert (len(bench.binding_cycles.under_way), bench.dispatcher.waiting(Priority.BINDING)) == (64, 64 - 32)
        bench.put(pod("later"))
        await anyio.sleep(0.3)
        assert bench.place(pod("later")) is QueueState.ACTIVE
        await anyio.sleep(10.0)
        assert bench.place(pod("later")) is QueueState.GONE
    assert len(bench.bindings) == 162


async def test_pods_elsewhere_are_bound_at_once_beside_a_hundred_whose_bindings_are_slow() -> None:
    bench = LoopBench()
    bench.wire.latency_of = lambda request: 10.0 if "/namespaces/slow/" in request.path else 0.01
    bench.put(node("n1", pods=1000, cpu="1000"), *(pod(f"slow-{index:03}", namespace="slow") for index in range(100)))
    async with bench.running():
        await settle()
        bench.put(*(pod(f"web-{index}") for index in range(10)))
        await anyio.sleep(1.0)
        assert {f"web-{index}" for index in range(10)} <= {name for name, _ in bench.bindings}
        # The namespace is known as slow: the next wave waits for nothing.
        await anyio.sleep(20.0)
        bench.put(*(pod(f"later-{index}") for index in range(10)))
        await anyio.sleep(0.1)
        assert {f"later-{index}" for index in range(10)} <= {name for name, _ in bench.bindings}


async def test_pods_elsewhere_are_bound_at_once_beside_a_namespace_whose_bindings_are_refused_with_429() -> None:
    bench = LoopBench()

    def answer(request: Request) -> Any:
        if "/namespaces/full/" in request.path:
            raise TooManyRequests("later", retry_after_s=60.0)
        return {}

    bench.wire.answer = answer
    bench.put(node("n1", pods=1000, cpu="1000"), *(pod(f"full-{index:03}", namespace="full") for index in range(100)))
    async with bench.running():
        await settle()
        bench.put(*(pod(f"web-{index}") for index in range(10)))
        await anyio.sleep(0.5)
        assert {f"web-{index}" for index in range(10)} <= {name for name, _ in bench.bindings}


@pytest.mark.parametrize(("avoids_conflicts", "bindings"), [(True, 17), (False, 30)])
async def test_the_loop_waits_for_the_watch_where_conflicts_with_others_are_to_be_avoided(
    avoids_conflicts: bool, bindings: int
) -> None:
    bench = LoopBench(avoids_conflicts=avoids_conflicts)
    theirs = pod("theirs", scheduler="somebody-else")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.conflicts.run)
        await settle()
        bench.put(node("n1", pods=1000, cpu="1000"), theirs, theirs.on_node("n1"))
        bench.put(*(pod(f"web-{number:02}") for number in range(30)))
        async with bench.running():
            await anyio.sleep(5.0)
            assert len(bench.bindings) == bindings
            for name, node_name in tuple(bench.bindings):
                bench.put(pod(name).on_node(node_name))
            await settle()
            assert len(bench.bindings) == 30
        tasks.cancel_scope.cancel()


async def test_a_pod_whose_node_is_filled_before_its_binding_is_sent_finds_another() -> None:
    bench = LoopBench(fits(lambda name: unschedulable("full") if name in full else None), avoids_conflicts=True)
    full = set[str]()
    bench.wire.latency_s = 1.0
    # 32 bindings are under way, the next one waits for its turn.
    bench.put(node("n1", cpu="33"), *(pod(f"web-{number:02}", cpu="1") for number in range(33)))
    async with bench.running():
        bench.put(pod("theirs", cpu="1", node="n1", scheduler="somebody-else"))
        full.add("n1")
        await anyio.sleep(1.5)
        assert len(bench.bindings) == 32
        why = 'running Bind plugin "DefaultBinder": node "n1" has been filled by another scheduler'
        assert ("FailedScheduling", why) in bench.recorder.notes
        bench.put(node("n2"))
        await anyio.sleep(10.0)
        assert bench.bindings[-1] == ("web-32", "n2")


async def test_a_status_that_is_still_on_its_way_is_not_overtaken_by_the_binding() -> None:
    fit = [False]
    bench = LoopBench(fits(lambda name: None if fit[0] else unschedulable("no")))
    bench.wire.latency_s = 5.0
    bench.put(node("n1"), pod("web-1"))
    async with bench.running():
        assert len(bench.requests_sent("PATCH", "/status")) == 1
        fit[0] = True
        bench.put(node("n2"))
        await anyio.sleep(3.0)
        assert bench.cache.is_assumed("uid-web-1")
        # The server may take the two in either order: a pod that is bound would be told that it does not fit.
        assert bench.bindings == []
        await anyio.sleep(3.0)
        assert len(bench.bindings) == 1
        await anyio.sleep(5.0)
    assert bench.attempts("scheduled") == 1


async def test_two_statuses_of_a_pod_are_written_one_after_the_other() -> None:
    reasons = ["first", "second"]
    bench = LoopBench(fits(lambda name: unschedulable(reasons[0])))
    bench.wire.latency_s = 5.0
    bench.put(node("n1"), pod("web-1"))
    async with bench.running():
        del reasons[0]
        bench.put(node("n2"))
        await anyio.sleep(3.0)
        assert bench.attempts("unschedulable") == 2
        assert len(bench.conditions) == 1
        await anyio.sleep(10.0)
    assert [message.rpartition(" ")[2] for _, message in bench.conditions] == ["first.", "second."]


@pytest.mark.long
async def test_whatever_fails_along_the_way_every_pod_is_bound_once_in_the_end() -> None:
    random = Random(7)
    bound_names: list[str] = []
    bench = LoopBench(
        fits(lambda name: random.choice([None, None, None, unschedulable("bad luck")])),
        reserve("Room", lambda: random.choice([None, None, None, unschedulable("bad luck")])),
        permit("Gang", lambda: random.choice([(None, 0.0), (WAIT, 5.0), (error_status("bad luck"), 0.0)])),
    )
    bench.wire.latency_s = 0.05

    def reply(request: Request) -> Any:
        if random.random() < 0.3:
            raise random.choice([Conflict("bad luck"), InternalError("bad luck"), NotFound("bad luck")])
        if request.path.endswith("/binding"):
            name = request.path.split("/")[-2]
            bound_names.append(name)
            bench.put(pod(name).on_node(request.body["target"]["name"]))
        return {}

    bench.wire.answer = reply
    names = [f"web-{index:03}" for index in range(150)]
    bench.put(node("n1", pods=200), *(pod(name) for name in names))
    with capture_logs() as logs:
        async with bench.running():
            await anyio.sleep(7200.0)
    assert sorted(bound_names) == names
    assert not [entry for entry in logs if entry["event"] == "Pod is in an unexpected queue state"]
    statistics = bench.queue.statistics()
    assert (statistics.in_flight, statistics.in_flight_events, statistics.active, statistics.unschedulable) == (
        0,
        0,
        0,
        0,
    )
    assert bench.cache.statistics() == {"nodes": 1, "pods": 150, "assumed_pods": 0}
    assert bench.attempts("scheduled") == 150
    assert (len(bench.waiting_pods), bench.queue.nominator.node_names()) == (0, ())


# ---------------------------------------------------------------- stop


async def test_stopping_waits_for_bindings_under_way_and_begins_no_more() -> None:
    bench = LoopBench()
    bench.wire.latency_s = 2.0
    bench.put(node("n1"), pod("web-1"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.loop.run)
        await settle()
        assert len(bench.binding_cycles.under_way) == 1
        bench.loop.stop()
        bench.put(pod("late"))
        started_s = bench.clock.monotonic()
        await bench.loop.wait_ended()
        assert bench.clock.monotonic() - started_s == pytest.approx(2.0, abs=0.1)
    assert bench.bindings == [("web-1", "n1")]
    assert bench.recorder.notes == [("Scheduled", "Successfully assigned default/web-1 to n1")]
    assert bench.place(pod("late")) is QueueState.ACTIVE


async def test_a_binding_that_fails_after_the_stop_ends_it_all_the_same() -> None:
    bench = LoopBench()
    bench.wire.latency_s = 2.0
    answers(bench, "/binding", Conflict("no"))
    bench.put(node("n1"), pod("web-1"))
    with capture_logs() as logs:
        async with bench.running():
            pass
    assert len(bench.binding_cycles.under_way) == 0
    assert bench.conditions == [("SchedulerError", 'running Bind plugin "DefaultBinder": no')]
    assert not [entry for entry in logs if entry["event"] == "Pod is in an unexpected queue state"]


async def test_pods_that_wait_at_permit_are_let_go_at_the_stop_without_a_word() -> None:
    story: list[str] = []
    bench = LoopBench(recording_reserve(story, "Room"), permit("Waits", lambda: (WAIT, 600.0)))
    web = pod("web-1")
    bench.put(node("n1"), web)
    async with bench.running():
        assert len(bench.waiting_pods) == 1
        stopped_at_s = bench.clock.monotonic()
    assert bench.clock.monotonic() - stopped_at_s < 1.0
    assert story[-1] == "unreserve Room"
    assert not bench.cache.is_assumed(web.uid)
    assert not bench.binding_cycles.under_way
    assert (len(bench.waiting_pods), bench.conditions, bench.bindings) == (0, [], [])
    assert bench.attempts("error") == bench.attempts("unschedulable") == 0


async def test_the_stop_of_a_loop_that_has_never_run_does_not_wait() -> None:
    bench = LoopBench()
    bench.loop.stop()
    await bench.loop.wait_ended()


async def test_stopping_a_loop_that_waits_for_the_api_server_ends_it() -> None:
    bench = LoopBench()
    bench.wire.latency_s = 1.0
    bench.put(node("n1", pods=1000, cpu="1000"), *(pod(f"web-{index:03}") for index in range(200)))
    async with bench.running():
        await settle()
        assert bench.dispatcher.waiting(Priority.BINDING) > 16
    assert len(bench.binding_cycles.under_way) == 0


async def test_a_loop_that_waits_for_the_api_server_goes_on_when_no_more_than_4_requests_wait() -> None:
    bench = LoopBench()
    bench.wire.latency_s = 0.4
    bench.put(node("n1", pods=1000, cpu="1000"), *(pod(f"web-{index:03}") for index in range(300)))
    async with bench.running():
        # 32 are under way and 32 wait; they go in the next round, and with nobody left waiting decisions go on.
        await anyio.sleep(0.2)
        assert (len(bench.binding_cycles.under_way), bench.dispatcher.waiting(Priority.BINDING)) == (64, 32)
        await anyio.sleep(0.4)
        assert (len(bench.binding_cycles.under_way), bench.dispatcher.waiting(Priority.BINDING)) == (64, 32)


async def test_a_mistake_of_ours_ends_the_loop_instead_of_being_lost() -> None:
    bench = LoopBench()
    bench.put(node("n1"), pod("web-1"))
    bench.cache.snapshot = raising(KeyError("mistake"))  # type: ignore[method-assign]
    with pytest.RaisesGroup(KeyError):
        await bench.loop.run()


async def test_a_change_of_a_pod_during_its_wait_is_what_goes_back_to_the_queue() -> None:
    bench = LoopBench(permit("Waits", lambda: (WAIT, 60.0)))
    web = pod("web-1")
    bench.put(node("n1"), web)
    async with bench.running():
        newer = with_changes(web, labels={"tier": "new"})
        bench.put(newer)
        waiting = bench.waiting_pods.get(web.uid)
        assert waiting is not None
        waiting.reject("Waits", "no")
        await settle()
        info = bench.queue.get(web)
        assert info is not None
        assert info.pod is newer
