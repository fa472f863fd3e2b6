"""Events and other writes to the API server, and what comes from its lists and watches."""

from __future__ import annotations

from podium.telemetry.families import (
    Bounds,
    ReadLabelledValues,
    ReadValue,
    ReadValues,
    histogram,
    read_counter,
    read_gauge,
)

_OF_INFORMERS = ("name", "group", "version", "resource")
_HANDLING_S = Bounds(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_INFORMERS_NAME = "kube-scheduler"
_VERSION_DIGITS = 15


class TrafficMetrics:
    """Events and other writes to the API server, and what comes from its lists and watches."""

    def __init__(self) -> None:
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
        self._resources_missing = read_gauge(
            "podium_resource_missing",
            "1 for each watched resource that the API server does not serve, as without its definition.",
            "resource",
        )
        # podium has no queue between watch and handlers, but dashboards of informers ask for it.
        self._informer_queued = read_gauge(
            "informer_queued_items",
            "Changes that are read and not handled yet: always 0, since each is handled as it is read.",
            *_OF_INFORMERS,
        )
        self._informer_version = read_gauge(
            "informer_store_resource_version", "The last 15 digits of the store's resource version.", *_OF_INFORMERS
        )
        self._handling_s = histogram(
            "informer_processing_latency_seconds",
            "Time to handle the changes that arrived together, with the pauses for other tasks.",
            _HANDLING_S,
            *_OF_INFORMERS,
        )
        super().__init__()

    def read_events(self, results: ReadValues, waiting: ReadValue) -> None:
        """Set the sources of the Event counts: written, dropped, given_up → count, and the number not written yet."""
        self._events.read_from(results)
        self._events_waiting.read_from(waiting)

    def read_writes(self, in_flight: ReadValue, waiting: ReadValues, throttled: ReadValue) -> None:
        """Set the sources of the write counts: in flight, waiting by priority, and refused with status 429."""
        self._writes_in_flight.read_from(in_flight)
        self._writes_waiting.read_from(waiting)
        self._writes_throttled.read_from(throttled)

    def read_reflectors(
        self, lists: ReadValues, watches: ReadValues, events: ReadValues, failures: ReadValues, missing: ReadValues
    ) -> None:
        """Set the sources of the reflectors' counts, each resource → count; of missing ones 1."""
        self._reflector_lists.read_from(lists)
        self._reflector_watches.read_from(watches)
        self._reflector_events.read_from(events)
        self._reflector_failures.read_from(failures)
        self._resources_missing.read_from(missing)

    def read_informers(self, read: ReadLabelledValues) -> None:
        """Set the source of the resource versions: API group, version and resource → number; -1 for none yet."""
        self._informer_queued.read_from(lambda: {(_INFORMERS_NAME, *labels): 0.0 for labels in read()})
        self._informer_version.read_from(
            lambda: {
                (_INFORMERS_NAME, *labels): version % 10**_VERSION_DIGITS
                for labels, version in read().items()
                if version >= 0
            }
        )

    def observe_handling(self, group: str, version: str, resource: str, seconds: float) -> None:
        """Record how long it took to handle the changes of a resource that arrived together."""
        self._handling_s[_INFORMERS_NAME, group, version, resource].observe(seconds)
