"""The scheduling queue's rules once more, in the plainest way: one list of pods, scanned for everything.

Plugins: `Fit` waits for new nodes, `Odd` for node labels that suit the pod, `Room` for deleted pods; `Gates` and
`Preempting` hold pods back, and only `Preempting` registers for something that others do as well: deleted pods.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from podium.queues import Place

Happening: TypeAlias = tuple[str, object]
"""The name of an event and what it is about."""

REJECTORS_THAT_CARE = {"NodeAdd": "Fit", "PodDelete": "Room"}
GATES_THAT_CARE = {"PodDelete": "Preempting"}
WAITING = {Place.UNSCHEDULABLE, Place.GATED}
BACKING_OFF = {Place.BACKOFF, Place.ERROR_BACKOFF}


@dataclass
class ModelPod:
    index: int
    priority: int
    has_gates: bool
    timestamp_s: float
    place: Place = Place.GONE
    rejections: int = 0
    errors: int = 0
    rejectors: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    gate: str = ""
    seen: list[Happening] = field(default_factory=list)

    @property
    def order(self) -> tuple[int, float]:
        return -self.priority, self.timestamp_s

    @property
    def backoff_ends_s(self) -> float:
        failures = self.errors or self.rejections
        return math.floor(self.timestamp_s + min(2.0 ** (failures - 1), 10.0)) if failures else -math.inf


class Model:
    def __init__(self, now_s: float) -> None:
        self.now_s = now_s
        self.started_s = now_s
        self.pods: dict[int, ModelPod] = {}
        self.preempting: set[int] = set()

    def at(self, *places: Place) -> list[ModelPod]:
        return [pod for pod in self.pods.values() if pod.place in places]

    # ------------------------------------------------------------ operations

    def add(self, index: int, priority: int, has_gates: bool) -> None:
        pod = self.pods[index] = ModelPod(index, priority, has_gates, self.now_s)
        self._to_active(pod)

    def drop_gates(self, pod: ModelPod) -> None:
        had_gates, pod.has_gates = pod.has_gates, False
        if pod.place is Place.IN_FLIGHT:
            self._remember(("Update", pod.index))
        elif pod.place in WAITING and had_gates and "Gates" in pod.rejectors:
            self._requeue(pod)

    def choices(self) -> list[ModelPod]:
        """The pods that may be popped now; several only where they are equal."""
        active = self.at(Place.ACTIVE)
        if active:
            first = min(pod.order for pod in active)
            return [pod for pod in active if pod.order == first]
        waiting = self.at(Place.BACKOFF)
        soonest = min(((pod.backoff_ends_s, pod.order) for pod in waiting), default=None)
        return [pod for pod in waiting if (pod.backoff_ends_s, pod.order) == soonest]

    def pop(self, pod: ModelPod) -> None:
        pod.place, pod.seen = Place.IN_FLIGHT, []

    def fail(self, pod: ModelPod, rejectors: Iterable[str], pending: Iterable[str], *, in_flight: bool) -> None:
        pod.rejectors, pod.pending, pod.gate = set(rejectors), set(pending), ""
        pod.timestamp_s = self.now_s
        pod.place = Place.GONE
        is_rejected = bool(pod.rejectors or pod.pending)
        pod.rejections, pod.errors = (pod.rejections + 1, 0) if is_rejected else (pod.rejections, pod.errors + 1)
        if not is_rejected or not in_flight:
            self._requeue(pod)
            return
        worth = [self._worth(pod, happening) for happening in pod.seen]
        if "at once" in worth:
            self._to_active(pod)
        elif "later" in worth:
            self._requeue(pod)
        else:
            pod.place = Place.UNSCHEDULABLE

    def happen(self, name: str, about: object = None) -> None:
        for pod in self.at(*WAITING):
            if pod.gate and GATES_THAT_CARE.get(name) != pod.gate:
                continue
            worth = self._worth(pod, (name, about))
            if worth == "at once":
                self._to_active(pod)
            elif worth == "later":
                self._requeue(pod)
        self._remember((name, about))

    def activate(self, pod: ModelPod) -> None:
        if pod.place is Place.IN_FLIGHT:
            self._remember(("ForceActivate", pod.index))
        elif pod.place in BACKING_OFF:
            pod.place = Place.ACTIVE
        elif pod.place in WAITING:
            self._to_active(pod)

    def advance(self, seconds: float) -> None:
        until_s = self.now_s + seconds
        while self.now_s < until_s:
            self.now_s = min(until_s, math.floor(self.now_s) + 1)
            for pod in self.at(*BACKING_OFF):
                if pod.backoff_ends_s < math.floor(self.now_s):
                    pod.place = Place.ACTIVE
            if (self.now_s - self.started_s) % 30 == 0:
                self._flush_leftover()

    # ------------------------------------------------------------ rules

    def _flush_leftover(self) -> None:
        leftover = [pod for pod in self.at(*WAITING) if self.now_s - pod.timestamp_s > 300]
        for pod in leftover:
            if not pod.gate:
                self._requeue(pod)
        if leftover:
            self._remember(("UnschedulableTimeout", None))

    def _remember(self, happening: Happening) -> None:
        for pod in self.at(Place.IN_FLIGHT):
            pod.seen.append(happening)

    def _worth(self, pod: ModelPod, happening: Happening) -> str:
        name, about = happening
        if name == "UnschedulableTimeout" or (name == "ForceActivate" and about == pod.index):
            return "later"
        caring = REJECTORS_THAT_CARE.get(name)
        if name == "NodeLabel" and about == pod.index % 2:
            caring = "Odd"
        if caring in pod.pending:
            return "at once"
        return "later" if caring in pod.rejectors else "never"

    def _requeue(self, pod: ModelPod) -> None:
        if pod.backoff_ends_s < math.floor(self.now_s):
            self._to_active(pod)
        elif self._passes_gates(pod):
            pod.place = Place.BACKOFF if pod.rejectors or pod.pending else Place.ERROR_BACKOFF

    def _to_active(self, pod: ModelPod) -> None:
        if self._passes_gates(pod):
            pod.place = Place.ACTIVE

    def _passes_gates(self, pod: ModelPod) -> bool:
        closed = {
            name
            for name, is_closed in (("Gates", pod.has_gates), ("Preempting", pod.index in self.preempting))
            if is_closed
        }
        if not closed:
            pod.gate = ""
            return True
        # The gate that held it the last time is tried first, then in the order of the profile.
        pod.gate = pod.gate if pod.gate in closed else min(closed, key=["Preempting", "Gates"].index)
        pod.rejectors.add(pod.gate)
        pod.place = Place.GATED
        return False
