"""The scheduler's metrics: kube-scheduler's names, types, labels and buckets, and the methods that record them.

Owns every metric that podium exposes. Never decides anything and reads no clock: callers measure. The names of metrics
that upstream does not have start with `podium_`.

Source: pkg/scheduler/metrics/metrics.go, component-base/metrics (kube-scheduler 1.36.2).
Differs: plugin, hint and in-flight metrics are counted at once, not through a buffer that drops entries when full;
`scheduler_goroutines` counts tasks; `framework_extension_point_duration_seconds` has the status Unschedulable at Filter
if no node fits; `preemption_goroutines_execution_total` distinguishes failures from successes, and
`event_handling_duration_seconds` counts a generic update of a bound pod once.
"""

from __future__ import annotations

import platform
from typing import Any, Final, Literal

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest
from prometheus_client.openmetrics import exposition as open_metrics

import podium
from podium.objects.core import Pod
from podium.telemetry.families import (
    EXEMPLAR_LENGTH_MAX,
    Bounds,
    Exemplar,
    Family,
    ReadFamily,
    ReadValue,
    ReadValues,
    counter,
    exemplar_histogram,
    exponential,
    gauge,
    histogram,
    read_counter,
    read_gauge,
)
from podium.telemetry.logging import lines_lost

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OPEN_CONTENT_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"

AttemptResult = Literal["scheduled", "unschedulable", "error"]
GroupResult = Literal["scheduled", "unschedulable", "waiting_on_preemption", "error"]
QueueName = Literal["active", "backoff", "unschedulable"]

_ATTEMPTS_SHOWN_MAX = 14
_ATTEMPT_LABELS = (*((str(n),) for n in range(_ATTEMPTS_SHOWN_MAX + 1)), (f"{_ATTEMPTS_SHOWN_MAX + 1}+",))

_ATTEMPT_S = exponential(0.001, 2, 15)
_EXTENSION_POINT_S = exponential(0.0001, 2, 12)
_PLUGIN_S = exponential(0.00001, 1.5, 20)
_MESSAGE_BYTES = Bounds(64, 256, 512, *(float(4**power) for power in range(5, 13)))
_STALL_S = Bounds(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_REQUEST_S = Bounds(0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


def pod_exemplar(pod: Pod) -> Exemplar:
    """The labels that lead to a pod: by its name, or if that is too long, by its uid alone."""
    labels = (("namespace", pod.metadata.namespace), ("pod", pod.metadata.name), ("uid", pod.uid))
    is_short = sum(len(name) + len(value) for name, value in labels) <= EXEMPLAR_LENGTH_MAX
    return labels if is_short else labels[-1:]


def log_lines_lost() -> ReadFamily:
    """The counter that exposes `logging.lines_lost`."""
    family = read_counter(
        "podium_log_lines_lost_total", "Log lines lost because the log was not read or could not be written."
    )
    family.read_from(lines_lost)
    return family


class Metrics:
    """All metrics of one scheduler; a process may have several.

    Units: seconds everywhere. Cost: at most 1 us per call, for label values that were used before.
    Invariant: nothing is registered outside this object; `registry` belongs to it and accepts further collectors.
    `families` are all metrics except those of the registry.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)

        self._attempts = counter("scheduler_schedule_attempts_total", "Attempts to schedule pods.", "result", "profile")
        self._attempt_s = histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Time of an attempt, until the pod was bound or its failure was handled.",
            _ATTEMPT_S,
            "result",
            "profile",
        )
        self._algorithm_s = histogram(
            "scheduler_scheduling_algorithm_duration_seconds", "Time to choose a node.", _ATTEMPT_S
        )
        self._group_attempts = counter(
            "scheduler_podgroup_schedule_attempts_total", "Attempts to schedule pod groups.", "result", "profile"
        )
        self._group_attempt_s = histogram(
            "scheduler_podgroup_scheduling_attempt_duration_seconds",
            "Time of an attempt at a pod group, until its decision was carried out.",
            _ATTEMPT_S,
            "result",
            "profile",
        )
        self._group_algorithm_s = histogram(
            "scheduler_podgroup_scheduling_algorithm_duration_seconds",
            "Time to choose the nodes of a pod group.",
            _ATTEMPT_S,
        )
        # Without pod groups it is not shown at all, as those with labels.
        self._group_algorithm_s.clear()
        self._sli_s = histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Time from a pod's first entry into the active queue until it is bound.",
            exponential(0.01, 2, 20),
            "attempts",
        )
        self._latency_s = exemplar_histogram(
            "podium_pod_scheduling_latency_seconds",
            "Time that a schedulable pod took until it was bound, without waits at Permit, PreBind and PostBind.",
            exponential(0.0025, 2, 15),
            pod_exemplar,
        )
        self._pod_attempts = histogram(
            "scheduler_pod_scheduling_attempts", "Attempts that a pod took until it was bound.", exponential(1, 2, 5)
        )
        self._after_flush = counter(
            "scheduler_pod_scheduled_after_flush_total",
            "Pods that were bound after the periodic flush, not an event, had requeued them.",
        )
        self._extension_point_s = histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Time that all plugins of an extension point took.",
            _EXTENSION_POINT_S,
            "extension_point",
            "status",
            "profile",
        )
        self._plugin_s = histogram(
            "scheduler_plugin_execution_duration_seconds",
            "Time that one plugin took at an extension point, for all nodes at once, in one attempt of ten. At Filter, "
            "each status has the share of its nodes. Cached answers take no time.",
            _PLUGIN_S,
            "plugin",
            "extension_point",
            "status",
        )
        self._evaluations = counter(
            "scheduler_plugin_evaluation_total",
            "Calls of plugins; at Filter and Score, of each node. Answers that are cached for pods of one kind are no "
            "calls, and are not counted.",
            "plugin",
            "extension_point",
            "profile",
        )
        self._permit_wait_s = histogram(
            "scheduler_permit_wait_duration_seconds", "Time that pods waited at Permit.", _ATTEMPT_S, "result"
        )
        self._preemption_attempts = counter("scheduler_preemption_attempts_total", "Attempts to preempt.")
        self._victims = histogram("scheduler_preemption_victims", "Victims per preemption.", exponential(1, 2, 7))
        self._preemption_s = histogram(
            "scheduler_preemption_goroutines_duration_seconds",
            "Time of a preemption, until its last victim was deleted.",
            exponential(0.01, 2, 20),
            "result",
        )
        self._preemptions = counter(
            "scheduler_preemption_goroutines_execution_total", "Preemptions carried out.", "result"
        )
        self._claims_created = counter(
            "scheduler_resourceclaim_creates_total",
            "ResourceClaims that were created for extended resources.",
            "status",
        )
        self._devices_allocated = counter(
            "scheduler_dra_bindingconditions_allocations_total",
            "Allocated devices that have binding conditions, by how the wait for these ended.",
            "profile",
            "driver",
            "status",
        )
        self._devices_s = histogram(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "Time that pods waited for the binding conditions of their devices.",
            exponential(0.1, 2, 14),
            "profile",
            "driver",
            "status",
        )
        self._goroutines = gauge("scheduler_goroutines", "Tasks in progress.", "operation")
        self._unschedulable = gauge(
            "scheduler_unschedulable_pods", "Unschedulable pods by the plugin that rejected them.", "plugin", "profile"
        )

        self._incoming = counter("scheduler_queue_incoming_pods_total", "Pods added to queues.", "queue", "event")
        self._event_s = histogram(
            "scheduler_event_handling_duration_seconds",
            "Time to handle a cluster event.",
            exponential(0.0001, 2, 12),
            "event",
        )
        self._hint_s = histogram(
            "scheduler_queueing_hint_execution_duration_seconds",
            "Time that queueing hints took.",
            _PLUGIN_S,
            "plugin",
            "event",
            "hint",
        )
        self._pending = read_gauge("scheduler_pending_pods", "Pods waiting, by queue.", "queue")
        self._inflight = read_gauge("scheduler_inflight_events", "Events recorded for pods in flight.", "event")
        self._stray_pods = read_gauge(
            "podium_stray_pods",
            "Pods that have waited for 30 s for a scheduler whose name is similar to this profile's.",
            "profile",
        )
        self._cache_size = read_gauge("scheduler_cache_size", "Nodes and pods in the cache.", "type")
        self._recorder_attempts = read_gauge("podium_recorder_attempts", "Attempts in the flight recorder.")
        self._recorder_bytes = read_gauge("podium_recorder_bytes", "Memory of the flight recorder.")

        self._requests = counter("rest_client_requests_total", "Requests to the API server.", "code", "method", "host")
        self._request_s = histogram(
            "rest_client_request_duration_seconds", "Time of requests to the API server.", _REQUEST_S, "verb", "host"
        )
        self._rate_limit_s = histogram(
            "rest_client_rate_limiter_duration_seconds",
            "Time that requests waited for the client's rate limit.",
            _REQUEST_S,
            "verb",
            "host",
        )
        self._request_bytes = histogram(
            "rest_client_request_size_bytes", "Size of requests to the API server.", _MESSAGE_BYTES, "verb", "host"
        )
        self._response_bytes = histogram(
            "rest_client_response_size_bytes", "Size of the API server's answers.", _MESSAGE_BYTES, "verb", "host"
        )
        self._request_retries = counter(
            "rest_client_request_retries_total", "Requests that were retried.", "code", "verb", "host"
        )
        self._leader = gauge("leader_election_master_status", "1 while this process leads, otherwise 0.", "name")
        self._slowpath = counter(
            "leader_election_slowpath_total", "Renewals that had to read the lease before they wrote it.", "name"
        )

        self._events = read_counter(
            "podium_events_total",
            "Events that were written to the API server, dropped because the queue was full, or given up after errors.",
            "result",
        )
        self._events_waiting = read_gauge("podium_events_waiting", "Events that are not written yet.")
        self._writes_in_flight = read_gauge("podium_writes_in_flight", "Writes that the API server has not answered.")
        self._writes_waiting = read_gauge(
            "podium_writes_waiting", "Writes that are queued and not sent yet, by priority.", "priority"
        )
        self._writes_throttled = read_counter(
            "podium_writes_throttled_total", "Writes that the API server refused with status 429."
        )
        self._reflector_lists = read_counter("podium_reflector_lists_total", "Lists that were completed.", "resource")
        self._reflector_watches = read_counter(
            "podium_reflector_watches_total", "Watches that were opened.", "resource"
        )
        self._reflector_events = read_counter(
            "podium_reflector_events_total", "Object changes received from watches.", "resource"
        )
        self._reflector_failures = read_counter(
            "podium_reflector_failures_total", "Lists and watches that failed and were retried.", "resource"
        )

        self._unexpected = counter(
            "podium_unexpected_errors_total", "Exceptions caught from plugins, handlers and tasks.", "where", "name"
        )
        self._reloads = counter(
            "podium_configuration_reloads_total",
            "Changed configurations and kubeconfigs that were taken over, or refused.",
            "result",
        )
        self._reload_successful = read_gauge(
            "podium_configuration_last_reload_successful",
            "1 if the configuration and the kubeconfig that were read last are in use, or 0.",
        )
        self._spans = read_counter(
            "podium_tracing_spans_total",
            "Spans that were exported to the collector, or dropped because it was away or too slow.",
            "result",
        )
        self._slow = counter(
            "podium_slow_plugin_calls_total",
            "Plugin calls that blocked scheduling for more than 0.1 s.",
            "plugin",
            "extension_point",
        )
        self._stuck = counter(
            "podium_loop_stuck_total",
            "Calls that blocked the event loop for more than 5 s.",
            "plugin",
            "extension_point",
        )
        self._stall_s = histogram(
            "podium_loop_stall_seconds", "How late the event loop was, measured 50 times a second.", _STALL_S
        )
        self._stall_s_max = gauge("podium_loop_stall_max_seconds", "The longest time that the event loop was late.")
        self._broken = counter("podium_broken_objects_total", "Objects with a field that cannot be read.", "kind")
        self._conflicts = counter(
            "podium_conflicts_total",
            "Bindings to nodes without enough free capacity, by kind of conflict and by which scheduler bound last.",
            "kind",
            "by",
        )
        self._loops = counter("podium_preemption_loops_total", "Preemptions whose victims came back repeatedly.")
        self._log_lines_lost = log_lines_lost()
        self._malformed = counter("podium_malformed_requests_total", "Requests to the endpoints that are not HTTP.")
        self._dropped = counter(
            "podium_dropped_connections_total",
            "Connections to the endpoints that were closed early, by reason.",
            "reason",
        )
        self._build = gauge(
            "podium_build_info", "The versions that are running; the value is always 1.", "version", "python_version"
        )
        self._build[podium.__version__, platform.python_version()].set(1)
        self.families = tuple(each for each in vars(self).values() if isinstance(each, Family | ReadFamily))

    def render(self, *, is_open: bool = False) -> bytes:
        """All metrics in the text format (`CONTENT_TYPE`), or as OpenMetrics with exemplars (`OPEN_CONTENT_TYPE`).

        Cost: 0.7 us per line; a busy scheduler has a few thousand.
        """
        lines = (line for family in self.families for line in family.lines(is_open=is_open))
        others = open_metrics.generate_latest if is_open else generate_latest
        return "\n".join(lines).encode() + b"\n" + others(self.registry)

    def reset(self) -> None:
        """Reset counters and histograms; gauges, and values read from other components, stay unchanged."""
        for family in self.families:
            if isinstance(family, Family) and family.kind != "gauge":
                family.reset()

    def value(self, name: str, /, **labels: str) -> float:
        """A counter's or gauge's value, or a histogram's number of observations; 0 for a series that does not exist.

        Raises: KeyError for an unknown name or label.
        """
        family = self._family(name)
        if isinstance(family, ReadFamily):
            return family.values().get(tuple(labels[label] for label in family.labels), 0.0)
        series = family.get(tuple(labels[label] for label in family.labels))
        return 0.0 if series is None else series.value

    def values(self, name: str) -> dict[tuple[str, ...], float]:
        """The `value` of each series, by label values in the order of the labels.

        Raises: KeyError for an unknown name.
        """
        family = self._family(name)
        if isinstance(family, ReadFamily):
            return dict(family.values())
        return {labels: series.value for labels, series in family.items()}

    def _family(self, name: str) -> Family[Any] | ReadFamily:
        family = next((each for each in self.families if each.name == name), None)
        if family is None:
            raise KeyError(name)
        return family

    # Scheduling cycle and binding cycle

    def count_attempt(self, result: AttemptResult, profile: str, seconds: float) -> None:
        """An attempt has ended: its pod was bound, or its failure was handled."""
        self._attempts[result, profile].add()
        self._attempt_s[result, profile].observe(seconds)

    def observe_algorithm(self, seconds: float) -> None:
        """A scheduling cycle has ended, with or without a feasible node."""
        self._algorithm_s[()].observe(seconds)

    def count_group_attempt(self, result: GroupResult, profile: str, seconds: float) -> None:
        """An attempt at a pod group has ended."""
        self._group_attempts[result, profile].add()
        self._group_attempt_s[result, profile].observe(seconds)

    def observe_group_algorithm(self, seconds: float) -> None:
        """The nodes of a pod group were chosen, or there are none."""
        self._group_algorithm_s[()].observe(seconds)

    def count_bound(self, attempts: int, seconds: float, *, after_flush: bool = False) -> None:
        """A pod was bound.

        Args:
            attempts: how many attempts it took, from 1.
            seconds: since the pod first entered the active queue.
            after_flush: whether the periodic flush, not an event, requeued the pod.
        """
        self._sli_s[_ATTEMPT_LABELS[min(attempts, _ATTEMPTS_SHOWN_MAX + 1)]].observe(seconds)
        self._pod_attempts[()].observe(attempts)
        if after_flush:
            self._after_flush[()].add()

    def observe_latency(self, seconds: float, pod: Pod) -> None:
        """A pod was bound that many seconds after it had become schedulable: the objective of docs/monitoring.md."""
        self._latency_s[()].observe_of(seconds, pod)

    def observe_extension_point(self, point: str, status: str, profile: str, seconds: float) -> None:
        """All plugins of an extension point ran; the status is the extension point's."""
        self._extension_point_s[point, status, profile].observe(seconds)

    def observe_plugin(self, plugin: str, point: str, status: str, seconds: float) -> None:
        """One plugin ran, in a sampled cycle."""
        self._plugin_s[plugin, point, status].observe(seconds)

    def count_evaluations(self, plugin: str, point: str, profile: str, times: int = 1) -> None:
        """A plugin was called; for Filter, `times` is the number of nodes."""
        self._evaluations[plugin, point, profile].add(times)

    def observe_permit_wait(self, status: str, seconds: float) -> None:
        """A pod waited at Permit; `status` is the code that ended the wait."""
        self._permit_wait_s[(status,)].observe(seconds)

    def count_preemption_attempt(self) -> None:
        """A pod has looked for victims."""
        self._preemption_attempts[()].add()

    def observe_victims(self, victims: int) -> None:
        """A preemption chose that many victims."""
        self._victims[()].observe(victims)

    def observe_preemption(self, result: Literal["success", "error"], seconds: float) -> None:
        """A preemption was carried out, or has failed."""
        self._preemption_s[(result,)].observe(seconds)
        self._preemptions[(result,)].add()

    def count_created_claim(self, status: Literal["success", "failure"]) -> None:
        """A claim for extended resources was created, or could not be."""
        self._claims_created[(status,)].add()

    def count_allocated_device(self, profile: str, driver: str, status: str) -> None:
        """The wait for the binding conditions of a device has ended."""
        self._devices_allocated[profile, driver, status].add()

    def observe_device_wait(self, profile: str, driver: str, status: str, seconds: float) -> None:
        """A pod has waited for the binding conditions of its devices; once for each of them."""
        self._devices_s[profile, driver, status].observe(seconds)

    def add_goroutines(self, operation: str, change: int) -> None:
        """A task of that operation started (1) or ended (-1)."""
        self._goroutines[(operation,)].add(change)

    def add_unschedulable(self, plugin: str, profile: str, change: int) -> None:
        """A pod that the plugin rejected became unschedulable (1), or was requeued or deleted (-1)."""
        self._unschedulable[plugin, profile].add(change)

    # Queues and cache

    def count_incoming(self, queue: QueueName, event: str) -> None:
        """A pod entered a queue because of an event."""
        self._incoming[queue, event].add(1)

    def observe_event(self, event: str, seconds: float) -> None:
        """A cluster event was handled."""
        self._event_s[(event,)].observe(seconds)

    def observe_hint(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """A queueing hint ran; `hint` is Queue, QueueSkip or Error."""
        self._hint_s[plugin, event, hint].observe(seconds)

    def read_pending_pods(self, read: ReadValues) -> None:
        """Set the source of the number of waiting pods: active, backoff, unschedulable, gated → count."""
        self._pending.read_from(read)

    def read_stray_pods(self, read: ReadValues) -> None:
        """Set the source of the number of pods with a similar scheduler name: profile → count."""
        self._stray_pods.read_from(read)

    def read_inflight_events(self, read: ReadValues) -> None:
        """Set the source of the number of events recorded for pods in flight: event label → count."""
        self._inflight.read_from(read)

    def read_cache_size(self, read: ReadValues) -> None:
        """Set the source of the size of the cache: nodes, pods, assumed_pods → count."""
        self._cache_size.read_from(read)

    def read_recorder(self, attempts: ReadValue, nbytes: ReadValue) -> None:
        """Set the sources of the flight recorder's sizes."""
        self._recorder_attempts.read_from(attempts)
        self._recorder_bytes.read_from(nbytes)

    # API server and process

    def read_events(self, results: ReadValues, waiting: ReadValue) -> None:
        """Set the sources of the Event counts: written, dropped, given_up → count, and the number not written yet."""
        self._events.read_from(results)
        self._events_waiting.read_from(waiting)

    def read_writes(self, in_flight: ReadValue, waiting: ReadValues, throttled: ReadValue) -> None:
        """Set the sources of the write counts: in flight, waiting by priority, and refused with status 429."""
        self._writes_in_flight.read_from(in_flight)
        self._writes_waiting.read_from(waiting)
        self._writes_throttled.read_from(throttled)

    def read_reflectors(self, lists: ReadValues, watches: ReadValues, events: ReadValues, failures: ReadValues) -> None:
        """Set the sources of the reflectors' counts, each resource → count."""
        self._reflector_lists.read_from(lists)
        self._reflector_watches.read_from(watches)
        self._reflector_events.read_from(events)
        self._reflector_failures.read_from(failures)

    def count_request(self, method: str, host: str, code: str) -> None:
        """A request was answered; `code` is the HTTP status, or `<error>` if there was no answer."""
        self._requests[code, method, host].add()

    def observe_request(
        self, method: str, host: str, seconds: float, request_bytes: int, response_bytes: int | None
    ) -> None:
        """A request other than a watch ended; sizes are those of the bodies, None if there was no response."""
        key = (method, host)
        self._request_s[key].observe(seconds)
        self._request_bytes[key].observe(request_bytes)
        if response_bytes is not None:
            self._response_bytes[key].observe(response_bytes)

    def count_request_retry(self, method: str, host: str, code: str) -> None:
        """A request is about to be retried after a response with that code."""
        self._request_retries[code, method, host].add()

    def observe_rate_limit(self, method: str, host: str, seconds: float) -> None:
        """A request waited for the client's rate limit."""
        self._rate_limit_s[method, host].observe(seconds)

    def set_leader(self, name: str, *, leads: bool) -> None:
        """Record whether this process holds the lease of that name."""
        self._leader[(name,)].set(int(leads))

    def count_election_slowpath(self, name: str) -> None:
        """A leader had to read the lease of that name before it could renew it."""
        self._slowpath[(name,)].add()

    def count_unexpected_error(self, where: Literal["plugin", "handler", "task"], name: str) -> None:
        """An unexpected exception was caught, at one of the three places that catch every exception."""
        self._unexpected[where, name].add()

    def count_reload(self, result: str) -> None:
        """A changed configuration was `applied` or `refused`."""
        self._reloads[(result,)].add()

    def read_last_reload(self, is_successful: ReadValue) -> None:
        """Set the source of whether the configuration that was read last is in use."""
        self._reload_successful.read_from(is_successful)

    def read_spans(self, results: ReadValues) -> None:
        """Set the source of the counts of spans: exported, dropped → count."""
        self._spans.read_from(results)

    def count_slow_plugin(self, plugin: str, point: str) -> None:
        """A plugin blocked scheduling for too long."""
        self._slow[plugin, point].add()

    def count_stuck_loop(self, plugin: str, point: str) -> None:
        """A call blocked the event loop until the watchdog noticed; empty names mean that it is not a plugin."""
        self._stuck[plugin, point].add()

    def observe_loop_stall(self, seconds: float) -> None:
        """The lateness of the event loop was measured."""
        self._stall_s[()].observe(seconds)
        longest = self._stall_s_max[()]
        if seconds > longest.value:
            longest.set(seconds)

    def count_malformed_request(self) -> None:
        """A client sent something to the endpoints that is not HTTP."""
        self._malformed[()].add()

    def count_dropped_connection(self, reason: str) -> None:
        """A connection to the endpoints was closed: it was idle for too long, or there were too many."""
        self._dropped[(reason,)].add()

    def count_broken_object(self, kind: str) -> None:
        """An object with a field that cannot be read was found."""
        self._broken[(kind,)].add()

    def count_conflict(self, kind: str, by: str) -> None:
        """A pod was bound to a node that no longer had free capacity for it."""
        self._conflicts[kind, by].add()

    def count_preemption_loop(self) -> None:
        """Victims of a preemption have come back too many times."""
        self._loops[()].add()
