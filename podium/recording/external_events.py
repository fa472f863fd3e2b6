"""Extracts the external events of a recording: watch events with their times, and the typical delays of answers.

Pure. Leaves out events that followed from podium's own preemptions. Which states of a pod follow from its binding
depends on what is decided instead, so `simulated_api` sorts those out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from podium.objects.resource_types import PODS
from podium.recording.entries import DECIDED, MONOTONIC, NOW, PUT, REMOVE, RESUME, TIME, Decision, Entry, Times, item_of

_EVICTION_SEEN_S_MAX = 30.0
"""A deletion that begins later than this after a preemption does not follow from it."""
_BURST_GAP_S_MAX = 0.02
"""A longer pause between two decisions ends a burst."""
_DELAY_S = 0.01


@dataclass(frozen=True, slots=True)
class Change:
    """A recorded watch event and its time since the start."""

    at_s: float
    entry: Entry


@dataclass(slots=True)
class ExternalEvents:
    """The events that other components caused.

    Attributes:
        wall_s: the wall clock at the start, in seconds since the epoch.
        initial: the watch events before scheduling began.
        changes: the later watch events, in order.
        ended_s: the end of the recording, in seconds since the start.
        recorded_nodes: the last node that podium chose for each pod, by uid.
        bound_after_s, gone_after_s: typical delays from a decision to the watch event of the binding, or of the
            victim's deletion.
        attempt_s: the typical time between two decisions in a burst.
    """

    wall_s: float = 0.0
    initial: list[Entry] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    ended_s: float = 0.0
    recorded_nodes: dict[str, str] = field(default_factory=dict)
    bound_after_s: float = _DELAY_S
    gone_after_s: float = _DELAY_S
    attempt_s: float = 0.0


class _Reader:
    def __init__(self) -> None:
        self.events = ExternalEvents()
        self._monotonic_times, self._loop_times, self._wall_times = Times(), Times(), Times()
        self._started_s: float | None = None
        self._offset_s: float | None = None
        self._now_s = 0.0
        self._has_begun = self._has_wall = False
        self._untimed: list[Entry] = []
        self._decided_at: dict[str, float] = {}
        self._victims: dict[str, float] = {}
        self._leaving: dict[str, float] = {}
        self._last_decided_s: float | None = None
        self._bound_after: list[float] = []
        self._gone_after: list[float] = []
        self._gaps: list[float] = []

    def read(self, entry: Entry) -> None:
        kind = entry[0]
        if kind == MONOTONIC:
            monotonic_s = self._monotonic_times.take(entry[1])
            if self._started_s is None:
                self._started_s = monotonic_s
            if self._offset_s is None and self._loop_times.last_s:
                # Loop time and monotonic time differ by a constant, which the first entry with both shows.
                self._offset_s = monotonic_s - self._loop_times.last_s
            self._advance_to(monotonic_s)
        elif kind == TIME:
            self._loop_times.take(entry[1])
            if self._offset_s is not None:
                self._advance_to(self._loop_times.last_s + self._offset_s)
        elif kind == NOW:
            wall_s = self._wall_times.take(entry[1])
            if not self._has_wall:
                self._has_wall, self.events.wall_s = True, wall_s - self._now_s
        elif kind == RESUME:
            self._has_begun = True
        elif kind in (PUT, REMOVE):
            self._add(entry)
        elif kind == DECIDED:
            self._add_decision(Decision(*entry[1:]))

    def _advance_to(self, monotonic_s: float) -> None:
        assert self._started_s is not None
        # Never back: events must come in the order in which they were seen.
        self._now_s = max(self._now_s, monotonic_s - self._started_s)
        if self._untimed:
            self.events.changes += [Change(self._now_s, entry) for entry in self._untimed]
            self._untimed.clear()

    def _add(self, entry: Entry) -> None:
        if entry[1] == PODS.path and self._is_consequence(entry):
            return
        if self._has_begun:
            # The event has the time of the next clock reading: its handlers read the clock.
            self._untimed.append(entry)
        else:
            self.events.initial.append(entry)

    def _is_consequence(self, entry: Entry) -> bool:
        """Tell whether the event of a pod follows from a preemption by podium. Also measures the delays."""
        if entry[0] == PUT:
            pod = item_of(entry)
            decided_s = self._decided_at.pop(pod.uid, None) if pod.node_name else None
            if decided_s is not None:
                self._bound_after.append(self._now_s - decided_s)
            if not pod.is_terminating:
                return False
            if self._is_expected(pod.key):
                self._leaving[pod.key] = self._victims.pop(pod.key)
            return pod.key in self._leaving
        key = entry[2]
        preempted_s = self._leaving.pop(key, None)
        if preempted_s is None and self._is_expected(key):
            preempted_s = self._victims.pop(key)
        if preempted_s is None:
            return False
        self._gone_after.append(self._now_s - preempted_s)
        return True

    def _is_expected(self, key: str) -> bool:
        preempted_s = self._victims.get(key)
        # A deletion long after a preemption has another cause.
        return preempted_s is not None and self._now_s - preempted_s <= _EVICTION_SEEN_S_MAX

    def _add_decision(self, decision: Decision) -> None:
        # Within a burst the scheduler never waits, so a gap is the time of an attempt.
        if self._last_decided_s is not None and self._now_s - self._last_decided_s <= _BURST_GAP_S_MAX:
            self._gaps.append(self._now_s - self._last_decided_s)
        self._last_decided_s = self._now_s
        if decision.node:
            self.events.recorded_nodes[decision.uid] = decision.node
            self._decided_at[decision.uid] = self._now_s
        for key in decision.victims:
            self._victims[key] = self._now_s

    def end(self) -> ExternalEvents:
        events = self.events
        events.changes += [Change(self._now_s, entry) for entry in self._untimed]
        events.ended_s = self._now_s
        # Medians: a single API server's hiccup must not slow down every simulated binding.
        events.bound_after_s = median(self._bound_after or [_DELAY_S])
        events.gone_after_s = median(self._gone_after or [_DELAY_S])
        events.attempt_s = median(self._gaps or [0.0])
        return events


def read_external_events(entries: Iterable[Entry]) -> ExternalEvents:
    """Read the external events from the entries of a recording."""
    reader = _Reader()
    for entry in entries:
        reader.read(entry)
    return reader.end()
