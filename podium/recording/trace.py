"""A recording as a trace for Perfetto or chrome://tracing: attempts, bindings and waits in the queue as spans.

Owns where each span begins and ends. Needs no replay.

Source: the Trace Event Format of Chromium.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from podium.objects.resource_types import PODS
from podium.recording import tape

_PROCESS: Final = 1
_ATTEMPTS: Final = 1


def trace_events(entries: Iterable[tape.Entry]) -> Iterator[Mapping[str, Any]]:
    """The events of the trace, by time of their end. Units: microseconds since the first reading of the clock.

    An attempt lasts from the reading of the clock before its decision to the one after it; a binding from the decision
    to the watch event that shows it, or to its failure; a wait from the time when podium saw the pod, or put it back,
    to the decision.
    """
    yield {"ph": "M", "pid": _PROCESS, "name": "process_name", "args": {"name": "podium"}}
    yield {"ph": "M", "pid": _PROCESS, "tid": _ATTEMPTS, "name": "thread_name", "args": {"name": "attempts"}}
    spans = _Spans()
    for entry in entries:
        yield from spans.after(entry)


class _Spans:
    """What has begun and not ended yet."""

    def __init__(self) -> None:
        self._clock = tape.Times()
        self._start_s: float | None = None
        self._attempt: tuple[tape.Decided, float] | None = None
        self._waiting: dict[str, float] = {}
        self._binding: dict[str, tuple[float, tape.Decided]] = {}

    def after(self, entry: tape.Entry) -> Iterator[Mapping[str, Any]]:
        """The spans that end with this entry."""
        kind = entry[0]
        if kind == tape.MONOTONIC:
            yield from self._read(entry[1])
        elif kind == tape.DECIDED:
            yield from self._decided(tape.Decided(*entry[1:]))
        elif kind == tape.FAILED:
            _, uid, result, message, *_ = entry
            yield from self._binding_ends(uid, {"result": result, "message": message})
            self._waiting[uid] = self._now_us()
        elif kind == tape.PUT and entry[1] == PODS.path:
            pod = tape.item_of(entry)
            if pod.node_name:
                self._waiting.pop(pod.uid, None)
                yield from self._binding_ends(pod.uid, {"result": "bound"})
            elif pod.uid not in self._binding:
                self._waiting.setdefault(pod.uid, self._now_us())

    def _read(self, step: Any) -> Iterator[Mapping[str, Any]]:
        now_s = self._clock.take(step)
        if self._start_s is None:
            self._start_s = now_s
        if self._attempt is not None:
            decided, began_us = self._attempt
            self._attempt = None
            yield {
                "ph": "X",
                "pid": _PROCESS,
                "tid": _ATTEMPTS,
                "cat": "attempt",
                "name": decided.pod,
                "ts": began_us,
                "dur": self._now_us() - began_us,
                "args": _arguments(decided),
            }

    def _decided(self, decided: tape.Decided) -> Iterator[Mapping[str, Any]]:
        now_us = self._now_us()
        self._attempt = decided, now_us
        began_us = self._waiting.pop(decided.uid, None)
        if began_us is not None:
            yield from _span("queue", decided, began_us, now_us, {})
        if decided.node:
            self._binding[decided.uid] = now_us, decided

    def _binding_ends(self, uid: str, how: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
        begun = self._binding.pop(uid, None)
        if begun is not None:
            yield from _span("binding", begun[1], begun[0], self._now_us(), how)

    def _now_us(self) -> float:
        return 0.0 if self._start_s is None else round((self._clock.last_s - self._start_s) * 1e6, 3)


def _span(
    category: str, decided: tape.Decided, began_us: float, ended_us: float, how: Mapping[str, str]
) -> Iterator[Mapping[str, Any]]:
    """A span that others of its kind may overlap."""
    common = {"pid": _PROCESS, "cat": category, "id": f"{category}-{decided.uid}", "name": decided.pod}
    yield {"ph": "b", "ts": began_us, "args": _arguments(decided), **common}
    yield {"ph": "e", "ts": ended_us, "args": dict(how), **common}


def _arguments(decided: tape.Decided) -> dict[str, Any]:
    if decided.node:
        return {"node": decided.node, "score": decided.score, "feasible": decided.feasible}
    return {"decision": decided.kind, "nominated": decided.nominated or "", "victims": len(decided.victims)}
