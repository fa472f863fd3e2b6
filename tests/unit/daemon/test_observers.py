from __future__ import annotations

from random import Random
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from podium.binder import EventRecorder
from podium.binder.events.event import scheduled_event
from podium.client.dispatcher import Dispatcher, Priority
from podium.client.informer_set import InformerSet
from podium.daemon.observers import Observers, PluginMetrics, QueueMetrics, RequestMetrics, read_statistics
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.contract.status import PluginError
from podium.framework.profile.runtime import SLOW_PLUGIN_S
from podium.lib.clock import ManualClock
from podium.objects.api_errors import TooManyRequests
from podium.objects.node_metrics import NODE_METRICS
from podium.objects.resource_types import COSCHEDULING_POD_GROUPS, NODES, PODS
from podium.queues import QueueObserver
from podium.telemetry import Metrics
from tests.builders import pod


def test_what_enters_and_leaves_the_queue_is_counted() -> None:
    metrics = Metrics()
    observer = QueueMetrics(metrics)
    observer.incoming("active", "Pop", QueuedPodInfo(pod("a"), 0.0), is_moved=True)
    observer.unschedulable_delta("Fits", "podium", 2)
    observer.unschedulable_delta("Fits", "podium", -1)
    assert metrics.value("scheduler_queue_incoming_pods_total", queue="active", event="Pop") == 1
    assert metrics.value("scheduler_unschedulable_pods", plugin="Fits", profile="podium") == 1


def test_events_kept_for_pods_in_flight_are_read_when_somebody_asks() -> None:
    metrics = Metrics()
    observer = QueueMetrics(metrics)
    observer.in_flight_events_delta("NodeAdd", 3)
    observer.in_flight_events_delta("NodeAdd", -1)
    assert observer.in_flight_events() == {"NodeAdd": 2.0}
    assert metrics.value("scheduler_inflight_events", event="NodeAdd") == 2


def test_a_plugin_that_fails_is_counted_and_logged_with_its_pod() -> None:
    for observer_of in (QueueMetrics, PluginMetrics):
        metrics = Metrics()
        error = KeyError("mistake")
        with capture_logs() as logs:
            observer_of(metrics).plugin_failed("Gang", "Permit", pod("web-1"), error)
        (line,) = logs
        assert (line["log_level"], line["plugin"], line["extension_point"]) == ("error", "Gang", "Permit")
        assert (line["pod"], line["exc_info"]) == ("default/web-1", error)
        assert b'podium_unexpected_errors_total{where="plugin",name="Gang"} 1' in metrics.render()


def test_a_status_that_is_an_error_is_logged_without_a_traceback() -> None:
    with capture_logs() as logs:
        PluginMetrics(Metrics()).plugin_failed("Devices", "Filter", pod("web-1"), PluginError("claim c: no such key"))
    (line,) = logs
    assert line["error"] == "claim c: no such key"
    assert "exc_info" not in line


def test_a_hint_is_observed_and_logged_where_it_was_slow() -> None:
    metrics = Metrics()
    observer = QueueMetrics(metrics)
    with capture_logs() as logs:
        observer.hint_executed("Fits", "NodeAdd", "Queue", 0.0001)
        assert logs == []
        observer.hint_executed("Fits", "NodeAdd", "Queue", SLOW_PLUGIN_S * 2)
    assert [(entry["log_level"], entry["plugin"]) for entry in logs] == [("warning", "Fits")]
    family = "scheduler_queueing_hint_execution_duration_seconds"
    assert metrics.value(family, plugin="Fits", event="NodeAdd", hint="Queue") == 2


def test_a_pod_that_went_astray_is_logged_with_its_story() -> None:
    info = QueuedPodInfo(pod("web-1"), 0.0)
    with capture_logs() as logs:
        QueueMetrics(Metrics()).unexpected_state(info, "in two places")
    assert [(entry["pod"], entry["problem"]) for entry in logs] == [("default/web-1", "in two places")]
    assert "story" in logs[0]


def test_requests_are_counted_by_code_and_measured_unless_they_are_streams() -> None:
    metrics = Metrics()
    observer = RequestMetrics(metrics, "api:6443")
    observer.answered("POST", 201, 0.003, 150, 80)
    observer.answered("POST", None, 30.0, 150, None)
    observer.stream_answered(200)
    observer.stream_answered(None)
    codes = {("POST", "201"): 1, ("POST", "<error>"): 1, ("GET", "200"): 1, ("GET", "<error>"): 1}
    for (method, code), count in codes.items():
        assert metrics.value("rest_client_requests_total", method=method, code=code, host="api:6443") == count
    for name, count in {"request_duration_seconds": 2, "request_size_bytes": 2, "response_size_bytes": 1}.items():
        assert metrics.value(f"rest_client_{name}", verb="POST", host="api:6443") == count
    assert metrics.value("rest_client_request_duration_seconds", verb="GET", host="api:6443") == 0


class Wire:
    """Refuses the first write, and answers the others when it may."""

    def __init__(self) -> None:
        self.may_answer = anyio.Event()
        self.is_refusing = True

    async def request(self, *_: Any, **__: Any) -> bytes:
        if self.is_refusing:
            self.is_refusing = False
            raise TooManyRequests("later", retry_after_s=0.0)
        await self.may_answer.wait()
        return b""


@pytest.mark.anyio
async def test_what_others_count_is_read_when_somebody_asks() -> None:
    metrics, clock, wire = Metrics(), ManualClock(), Wire()
    absent: Any = None
    dispatcher = Dispatcher(wire, clock, in_flight_max=1)
    recorder = EventRecorder(dispatcher, clock, hostname="host-1", queue_max=1)
    informers = InformerSet(absent, clock=clock, random=Random(0))
    informers.informer(PODS)
    informers.informer(NODES)
    informers.informer(COSCHEDULING_POD_GROUPS)
    read_statistics(metrics, recorder, dispatcher, informers)

    assert metrics.values("podium_events_total") == {("written",): 0, ("dropped",): 0, ("given_up",): 0}
    for name in ("web-1", "web-2", "web-3"):
        recorder.record(scheduled_event(pod(name), "n1"))
    assert metrics.value("podium_events_total", result="dropped") == 2
    assert metrics.value("podium_events_waiting") == 1

    async with anyio.create_task_group() as group:
        for priority in (Priority.BINDING, Priority.BINDING, Priority.EVENT):
            group.start_soon(dispatcher.send, priority, "POST", "/pods")
        await anyio.wait_all_tasks_blocked()
        assert metrics.value("podium_writes_throttled_total") == 1
        assert metrics.value("podium_writes_in_flight") == 1
        assert metrics.values("podium_writes_waiting") == {("binding",): 1, ("status",): 0, ("event",): 1}
        wire.may_answer.set()
    assert metrics.value("podium_writes_in_flight") == 0

    pods = informers.statistics()["pods"]
    pods.lists_total, pods.watches_total, pods.events_total, pods.failures_total = 1, 2, 3, 4
    for count, name in enumerate(("lists", "watches", "events", "failures"), start=1):
        counts = metrics.values(f"podium_reflector_{name}_total")
        assert counts == {("pods",): count, ("nodes",): 0, ("podgroups",): 0}
    assert set(metrics.values("informer_queued_items")) == {
        ("kube-scheduler", "", "v1", "pods"),
        ("kube-scheduler", "", "v1", "nodes"),
    }
    # Nothing has been listed yet.
    assert metrics.values("informer_store_resource_version") == {}


def test_resources_that_nothing_watches_and_those_with_another_path_are_not_missing() -> None:
    metrics, clock = Metrics(), ManualClock()
    absent: Any = None
    dispatcher = Dispatcher(Wire(), clock, in_flight_max=1)
    informers = InformerSet(absent, clock=clock, random=Random(0), paths={PODS.path: "/api/v0/pods"})
    informers.informer(PODS)
    informers.informer(NODE_METRICS)
    read_statistics(metrics, EventRecorder(dispatcher, clock, hostname="host-1", queue_max=1), dispatcher, informers)
    assert not metrics.values("podium_resource_missing")
    assert metrics.render()


def test_where_nothing_is_measured_only_what_was_added_hears_reports() -> None:
    heard: list[str] = []

    class Listener(QueueObserver):
        def incoming(self, queue: str, event: str, info: QueuedPodInfo, *, is_moved: bool) -> None:
            heard.append(f"{queue} {event}")

    observers = Observers(Metrics(), "server", measures=False)
    observers.queue.observer.incoming("active", "Pop", QueuedPodInfo(pod("a"), 0.0), is_moved=True)
    observers.add(Listener())
    observers.queue.observer.incoming("active", "Pop", QueuedPodInfo(pod("a"), 0.0), is_moved=True)
    observers.plugins.observer.observe_plugin("Fits", "Filter", "Success", 1.0)
    assert heard == ["active Pop"]
