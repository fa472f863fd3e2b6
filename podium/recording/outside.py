"""What came to a recorded scheduler from outside, with the time of each change, and how long answers typically took.

Pure. Leaves out what followed from preemption by podium itself. Which states of a pod follow from its binding depends
on what is decided instead: `simulated_api` tells.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from podium.objects.resource_types import PODS
from podium.recording import tape

_EVICTION_SEEN_S_MAX = 30.0
"""A deletion that begins later than this after a preemption is not its consequence."""
_BURST_GAP_S_MAX = 0.02
"""Two decisions with a longer pause between them were not made one right after the other."""
_DELAY_S = 0.01


@dataclass(frozen=True, slots=True)
class Change:
    """A watch event; `entry` is the recorded one."""

    at_s: float
    entry: tape.Entry


@dataclass(slots=True)
class Outside:
    """What came from outside.

    Attributes:
        wall_s: the wall clock at the start.
        initial: what was there before scheduling began.
        changes: what came later, in order; times count from the start.
        ended_s: how long the recording is.
        placed: the last node that podium chose for each pod, by uid.
        bound_after_s, gone_after_s: typical times from a decision to the event that shows the pod bound, or its victim
            gone.
        attempt_s: the typical time between two decisions in a burst.
    """

    wall_s: float = 0.0
    initial: list[tape.Entry] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    ended_s: float = 0.0
    placed: dict[str, str] = field(default_factory=dict)
    bound_after_s: float = _DELAY_S
    gone_after_s: float = _DELAY_S
    attempt_s: float = 0.0


class _Reader:
    def __init__(self) -> None:
        self.outside = Outside()
        self._steady, self._times, self._wall = tape.Times(), tape.Times(), tape.Times()
        self._started_s: float | None = None
        self._offset_s: float | None = None
        self._now_s = 0.0
        self._has_begun = self._has_wall = False
        self._untimed: list[tape.Entry] = []
        self._decided_at: dict[str, float] = {}
        self._victims: dict[str, float] = {}
        self._leaving: dict[str, float] = {}
        self._last_decided_s: float | None = None
        self._bound_after: list[float] = []
        self._gone_after: list[float] = []
        self._gaps: list[float] = []

    def read(self, entry: tape.Entry) -> None:
        kind = entry[0]
        if kind == tape.MONOTONIC:
            steady_s = self._steady.take(entry[1])
            if self._started_s is None:
                self._started_s = steady_s
            if self._offset_s is None and self._times.last_s:
                self._offset_s = steady_s - self._times.last_s
            self._pass_to(steady_s)
        elif kind == tape.TIME:
            self._times.take(entry[1])
            if self._offset_s is not None:
                self._pass_to(self._times.last_s + self._offset_s)
        elif kind == tape.NOW:
            wall_s = self._wall.take(entry[1])
            if not self._has_wall:
                self._has_wall, self.outside.wall_s = True, wall_s - self._now_s
        elif kind == tape.RESUME:
            self._has_begun = True
        elif kind in (tape.PUT, tape.REMOVE):
            self._change(entry)
        elif kind == tape.DECIDED:
            self._decided(tape.Decided(*entry[1:]))

    def _pass_to(self, steady_s: float) -> None:
        assert self._started_s is not None
        self._now_s = max(self._now_s, steady_s - self._started_s)
        if self._untimed:
            self.outside.changes += [Change(self._now_s, each) for each in self._untimed]
            self._untimed.clear()

    def _change(self, entry: tape.Entry) -> None:
        if entry[1] == PODS.path and self._is_own_doing(entry):
            return
        if self._has_begun:
            # The handlers of a change read the clock, so the next reading tells its time.
            self._untimed.append(entry)
        else:
            self.outside.initial.append(entry)

    def _is_own_doing(self, entry: tape.Entry) -> bool:
        """Whether the event follows from a preemption by podium. Also learns how long answers take."""
        if entry[0] == tape.PUT:
            pod = tape.item_of(entry)
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
        return preempted_s is not None and self._now_s - preempted_s <= _EVICTION_SEEN_S_MAX

    def _decided(self, decided: tape.Decided) -> None:
        if self._last_decided_s is not None and self._now_s - self._last_decided_s <= _BURST_GAP_S_MAX:
            self._gaps.append(self._now_s - self._last_decided_s)
        self._last_decided_s = self._now_s
        if decided.node:
            self.outside.placed[decided.uid] = decided.node
            self._decided_at[decided.uid] = self._now_s
        for key in decided.victims:
            self._victims[key] = self._now_s

    def end(self) -> Outside:
        outside = self.outside
        outside.changes += [Change(self._now_s, each) for each in self._untimed]
        outside.ended_s = self._now_s
        outside.bound_after_s = median(self._bound_after or [_DELAY_S])
        outside.gone_after_s = median(self._gone_after or [_DELAY_S])
        outside.attempt_s = median(self._gaps or [0.0])
        return outside


def read_outside(entries: Iterable[tape.Entry]) -> Outside:
    """What came from outside, of the entries of a recording."""
    reader = _Reader()
    for entry in entries:
        reader.read(entry)
    return reader.end()
