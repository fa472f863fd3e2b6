"""Converts a recording to a trace for Perfetto or chrome://tracing, with attempts, bindings and queue waits as spans.

Owns the start and the end of each span. Needs no replay.

Source: the Trace Event Format of Chromium.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from podium.objects.resource_types import PODS
from podium.recording.entries import DECIDED, FAILED, MONOTONIC, PUT, Decision, Entry, Times, item_of

_PROCESS: Final = 1
_ATTEMPTS: Final = 1


def trace_events(entries: Iterable[Entry]) -> Iterator[Mapping[str, Any]]:
    """Yield the events of the trace, by end time. Units: microseconds since the first reading of the clock.

    An attempt lasts from the clock reading before its decision to the one after it; a binding from the decision to its
    watch event or its failure; a wait from the pod's first watch event, or its return to the queue, to the decision.
    """
    yield {"ph": "M", "pid": _PROCESS, "name": "process_name", "args": {"name": "podium"}}
    yield {"ph": "M", "pid": _PROCESS, "tid": _ATTEMPTS, "name": "thread_name", "args": {"name": "attempts"}}
    spans = _Spans()
    for entry in entries:
        yield from spans.after(entry)


class _Spans:
    """The open spans."""

    def __init__(self) -> None:
        self._clock = Times()
        self._start_s: float | None = None
        self._attempt: tuple[Decision, float] | None = None
        self._waiting: dict[str, float] = {}
        self._binding: dict[str, tuple[float, Decision]] = {}

    def after(self, entry: Entry) -> Iterator[Mapping[str, Any]]:
        """Yield the spans that end with this entry."""
        kind = entry[0]
        if kind == MONOTONIC:
            yield from self._end_attempt(entry[1])
        elif kind == DECIDED:
            yield from self._end_wait(Decision(*entry[1:]))
        elif kind == FAILED:
            _, uid, result, message, *_ = entry
            yield from self._end_binding(uid, {"result": result, "message": message})
            self._waiting[uid] = self._now_us()
        elif kind == PUT and entry[1] == PODS.path:
            pod = item_of(entry)
            if pod.node_name:
                self._waiting.pop(pod.uid, None)
                yield from self._end_binding(pod.uid, {"result": "bound"})
            elif pod.uid not in self._binding:
                self._waiting.setdefault(pod.uid, self._now_us())

    def _end_attempt(self, step: Any) -> Iterator[Mapping[str, Any]]:
        now_s = self._clock.take(step)
        if self._start_s is None:
            self._start_s = now_s
        if self._attempt is not None:
            decision, began_us = self._attempt
            self._attempt = None
            yield {
                "ph": "X",
                "pid": _PROCESS,
                "tid": _ATTEMPTS,
                "cat": "attempt",
                "name": decision.pod,
                "ts": began_us,
                "dur": self._now_us() - began_us,
                "args": _arguments(decision),
            }

    def _end_wait(self, decision: Decision) -> Iterator[Mapping[str, Any]]:
        now_us = self._now_us()
        self._attempt = decision, now_us
        began_us = self._waiting.pop(decision.uid, None)
        if began_us is not None:
            yield from _span("queue", decision, began_us, now_us, {})
        if decision.node:
            self._binding[decision.uid] = now_us, decision

    def _end_binding(self, uid: str, details: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
        binding = self._binding.pop(uid, None)
        if binding is not None:
            yield from _span("binding", binding[1], binding[0], self._now_us(), details)

    def _now_us(self) -> float:
        return 0.0 if self._start_s is None else round((self._clock.last_s - self._start_s) * 1e6, 3)


def _span(
    category: str, decision: Decision, began_us: float, ended_us: float, details: Mapping[str, str]
) -> Iterator[Mapping[str, Any]]:
    """Yield the two events of a span that may overlap with others of its category."""
    common = {"pid": _PROCESS, "cat": category, "id": f"{category}-{decision.uid}", "name": decision.pod}
    yield {"ph": "b", "ts": began_us, "args": _arguments(decision), **common}
    yield {"ph": "e", "ts": ended_us, "args": dict(details), **common}


def _arguments(decision: Decision) -> dict[str, Any]:
    if decision.node:
        return {"node": decision.node, "score": decision.score, "feasible": decision.feasible}
    return {"decision": decision.kind, "nominated": decision.nominated or "", "victims": len(decision.victims)}
