"""Turns the reports of the queue, the framework, the binder and the client into metrics and log lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from podium.binder import BindingObserver, EventRecorder, PreemptionObserver
from podium.client.dispatcher import Dispatcher
from podium.client.informer_set import InformerSet
from podium.client.observer import RequestObserver
from podium.client.reflector import ReflectorStatistics
from podium.engine.flight_recorder import AttemptObserver
from podium.framework.contract.queued_pod import QueuedPodGroupInfo, QueuedPodInfo
from podium.framework.contract.status import PluginError
from podium.framework.profile.runtime import SLOW_PLUGIN_S
from podium.lib.error_text import error_text
from podium.lib.fan_out import FanOut
from podium.lib.log import get_logger
from podium.objects.core import Pod
from podium.objects.resource_types import CUSTOM, ResourceType
from podium.plugins.shared.device_observer import DeviceObserver
from podium.queues import QueueObserver
from podium.telemetry import Metrics
from podium.telemetry.families import ReadValues
from podium.telemetry.subsystems.queues import EntityKind

log = get_logger("scheduler")

_NO_CODE = "<error>"

Observer: TypeAlias = AttemptObserver | BindingObserver | PreemptionObserver | QueueObserver | RequestObserver
"""An observer hears reports of one kind or of several."""


class Observers:
    """Passes the reports of the scheduler's parts to the metrics and to the observers of faces.

    Args:
        server: the API server's host and port.
        measures: whether plugins, queue and preemption are measured; False if the metrics have no reader.
    """

    def __init__(self, metrics: Metrics, server: str, *, measures: bool = True) -> None:
        self.plugins = FanOut[BindingObserver](BindingObserver)
        self.preemption = FanOut[PreemptionObserver](PreemptionObserver)
        self.queue = FanOut[QueueObserver](QueueObserver)
        self.attempts = FanOut[AttemptObserver](AttemptObserver)
        self.request_metrics = RequestMetrics(metrics, server)
        self.requests = FanOut[RequestObserver](RequestObserver, self.request_metrics)
        if measures:
            for observer in (PluginMetrics(metrics), PreemptionMetrics(metrics), QueueMetrics(metrics)):
                self.add(observer)

    def add(self, observer: Observer) -> None:
        """Have the observer hear the reports of each kind that it is an instance of."""
        if isinstance(observer, AttemptObserver):
            self.attempts.add(observer)
        if isinstance(observer, BindingObserver):
            self.plugins.add(observer)
        if isinstance(observer, PreemptionObserver):
            self.preemption.add(observer)
        if isinstance(observer, QueueObserver):
            self.queue.add(observer)
        if isinstance(observer, RequestObserver):
            self.requests.add(observer)


class PluginMetrics(BindingObserver):
    """Counts and measures the calls of plugins, and logs those that fail or are slow."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        # Bound directly, without a method in between: these are called many times for each pod.
        self.observe_extension_point = metrics.observe_extension_point  # type: ignore[method-assign]
        self.count_evaluations = metrics.count_evaluations  # type: ignore[method-assign]
        self.observe_plugin = metrics.observe_plugin  # type: ignore[method-assign]
        self.count_placements = metrics.count_placements  # type: ignore[method-assign]
        self.observe_placement = metrics.observe_placement  # type: ignore[method-assign]
        self.observe_permit_wait = metrics.observe_permit_wait  # type: ignore[method-assign]

    def plugin_failed(self, plugin: str, point: str, pod: Pod, error: BaseException) -> None:
        """Report a plugin that raised an exception."""
        _tell_failure(self._metrics, plugin, point, pod, error)

    def plugin_was_slow(self, plugin: str, point: str, pod: Pod, seconds: float) -> None:
        """Report a plugin call that took so long that it delayed all pods."""
        self._metrics.count_slow_plugin(plugin, point)
        log.warning("Slow plugin", plugin=plugin, extension_point=point, pod=pod.key, seconds=round(seconds, 3))


def _tell_failure(metrics: Metrics, plugin: str, point: str, pod: Pod, error: BaseException) -> None:
    metrics.count_unexpected_error("plugin", plugin)
    try:
        # A status says all there is to say: where it was looked at is of no interest.
        fields = {"error": error_text(error)} if isinstance(error, PluginError) else {"exc_info": error}
        log.error("Plugin failed", plugin=plugin, extension_point=point, pod=pod.key, **fields)
    except BaseException:  # noqa: BLE001 - an exception may fight its own traceback
        log.error("Plugin failed", plugin=plugin, extension_point=point, pod=pod.key, error=error_text(error))


class PreemptionMetrics(PreemptionObserver):
    """Counts preemptions."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def count_preemption_attempt(self) -> None:
        """Count a pod that looked for victims."""
        self._metrics.count_preemption_attempt()

    def count_group_preemption_attempt(self, result: str) -> None:
        """Count a pod group for which victims were looked for."""
        self._metrics.count_group_preemption_attempt(result)

    def observe_victim_search(self, preemptor: str, result: str, seconds: float) -> None:
        """Record a search for victims that has ended."""
        self._metrics.observe_victim_search(preemptor, result, seconds)

    def observe_victims(self, preemptor: str, victims: int, disruptions: int, violations: int) -> None:
        """Record the victims of a preemption that starts."""
        (self._metrics.observe_victims if preemptor == "pod" else self._metrics.observe_group_victims)(victims)
        self._metrics.observe_disruptions(preemptor, disruptions, violations)

    def count_preemption_loop(self) -> None:
        """Count a preemption whose victims have come back too many times."""
        self._metrics.count_preemption_loop()


class DeviceMetrics(DeviceObserver):
    """Counts claims for extended resources, and devices that were waited for."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def claim_created(self, *, is_success: bool) -> None:
        """Count a claim that was created, or could not be."""
        self._metrics.count_created_claim("success" if is_success else "failure")

    def devices_waited_for(self, profile: str, driver: str, status: str, seconds: float) -> None:
        """Record a wait for a pod's binding conditions that has ended."""
        self._metrics.observe_device_wait(profile, driver, status, seconds)

    def device_allocated(self, profile: str, driver: str, status: str) -> None:
        """Count a device with binding conditions for which the wait has ended."""
        self._metrics.count_allocated_device(profile, driver, status)


class RequestMetrics(RequestObserver):
    """Counts and measures the requests to the API server.

    Attributes:
        host: of the API server, with its port.
    """

    def __init__(self, metrics: Metrics, host: str) -> None:
        self._metrics = metrics
        self.host = host

    def answered(
        self, method: str, status: int | None, seconds: float, sent_bytes: int, received_bytes: int | None
    ) -> None:
        """Count a request that was answered or failed."""
        self._metrics.count_request(method, self.host, _NO_CODE if status is None else str(status))
        self._metrics.observe_request(method, self.host, seconds, sent_bytes, received_bytes)

    def stream_answered(self, status: int | None) -> None:
        """Count a list or watch that was answered or failed."""
        self._metrics.count_request("GET", self.host, _NO_CODE if status is None else str(status))

    def throttled(self, method: str, seconds: float) -> None:
        """Record a write that client-side throttling delayed."""
        self._metrics.observe_rate_limit(method, self.host, seconds)

    def retried(self, method: str, status: int) -> None:
        """Count a retried write."""
        self._metrics.count_request_retry(method, self.host, str(status))


class QueueMetrics(QueueObserver):
    """Counts what enters and leaves the queue, and measures queueing hints."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._in_flight: Counter[str] = Counter()
        metrics.read_inflight_events(self.in_flight_events)

    def in_flight_events(self) -> Mapping[str, float]:
        """Return the number of events recorded for pods in flight, by label."""
        return {event: float(count) for event, count in self._in_flight.items()}

    def incoming(self, queue: str, event: str, info: QueuedPodInfo, *, is_moved: bool) -> None:
        """Count a pod or group that entered a queue."""
        self._metrics.count_incoming(queue, event, len(info.member_infos))
        if is_moved:
            kind: EntityKind = "podgroup" if isinstance(info, QueuedPodGroupInfo) else "pod"
            self._metrics.count_incoming_entity(queue, event, kind)

    def unschedulable_delta(self, plugin: str, profile: str, delta: int) -> None:
        """Record a change of the number of waiting pods that the plugin rejected."""
        self._metrics.add_unschedulable(plugin, profile, delta)

    def in_flight_events_delta(self, event: str, delta: int) -> None:
        """Record a change of the number of events kept for pods in flight."""
        self._in_flight[event] += delta

    def hint_executed(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """Record a run of a hint function."""
        self._metrics.observe_hint(plugin, event, hint, seconds)
        if seconds > SLOW_PLUGIN_S:
            self._metrics.count_slow_plugin(plugin, "QueueingHint")
            log.warning("Slow plugin", plugin=plugin, extension_point="QueueingHint", seconds=round(seconds, 3))

    def plugin_failed(self, plugin: str, point: str, pod: Pod, error: BaseException) -> None:
        """Report a PreEnqueue plugin or a queueing hint that failed."""
        _tell_failure(self._metrics, plugin, point, pod, error)

    def unexpected_state(self, info: QueuedPodInfo, problem: str) -> None:
        """Report a pod that was not in the state that the queue expected."""
        log.error("Pod is in an unexpected queue state", pod=info.key, problem=problem, story=str(info.transitions))


def informer_labels(resource: ResourceType[Any]) -> tuple[str, str, str] | None:
    """Return the API group, version and resource of an informer; None for a custom resource, which upstream counts not.

    Source: client-go tools/cache/informer_metrics.go, v0.37.2: informers of the dynamic client have no name.
    """
    version = resource.api_version.rpartition("/")[2]
    return None if resource.gate == CUSTOM else (resource.group, version, resource.plural)


def read_statistics(metrics: Metrics, recorder: EventRecorder, dispatcher: Dispatcher, informers: InformerSet) -> None:
    """Export at each scrape the counters of the event recorder, the dispatcher and the reflectors."""

    def event_results() -> Mapping[str, float]:
        statistics = recorder.statistics()
        return {
            "written": statistics.written_total,
            "dropped": statistics.dropped_total,
            "given_up": statistics.given_up_total,
        }

    def writes_waiting() -> Mapping[str, float]:
        return {priority.name.lower(): count for priority, count in dispatcher.statistics().waiting.items()}

    def by_resource(count: Callable[[ReflectorStatistics], int]) -> ReadValues:
        return lambda: {
            resource: count(resource_statistics) for resource, resource_statistics in informers.statistics().items()
        }

    metrics.read_events(event_results, waiting=lambda: recorder.statistics().open)
    metrics.read_writes(
        in_flight=lambda: dispatcher.statistics().in_flight,
        waiting=writes_waiting,
        throttled=lambda: dispatcher.statistics().throttled_total,
    )
    metrics.read_informers(
        lambda: {
            labels: int(version) if version.isdecimal() else -1
            for resource, version in informers.versions().items()
            if (labels := informer_labels(resource)) is not None
        }
    )
    metrics.read_reflectors(
        lists=by_resource(lambda resource_statistics: resource_statistics.lists_total),
        watches=by_resource(lambda resource_statistics: resource_statistics.watches_total),
        events=by_resource(lambda resource_statistics: resource_statistics.events_total),
        failures=by_resource(lambda resource_statistics: resource_statistics.failures_total),
        missing=lambda: {resource.plural: 1 for resource in informers.resources if informers.is_absent(resource)},
    )
