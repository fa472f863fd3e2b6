"""A second, simple implementation of the scheduling queue's rules: one collection of pods, scanned for everything.

Plugins: `Fit` waits for new nodes, `Odd` for node labels that suit the parity of the pod's index,
`Level` for those that suit its priority, `Flaky` has a hint for node conditions that always fails, `Room` waits for
the deletion of other pods, `Own` for label changes of the pod itself. `Gates` and `Preempting` gate pods; the former
waits for the removal of the pod's scheduling gates, the latter has a hint for pod deletions that always skips.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from podium.queues import QueueState

NODE_ADD, NODE_TAINT, NODE_LABEL = "NodeAdd", "NodeUpdateNodeTaint", "NodeUpdateNodeLabel"
NODE_CONDITION, NODE_DELETE = "NodeUpdateNodeCondition", "NodeDelete"
POD_ADD, POD_DELETE, POD_LABEL = "AssignedPodAdd", "AssignedPodDelete", "AssignedPodUpdatePodLabel"
NEW, UPDATED = "UnscheduledPodAdd", "TargetPodUpdate"
OWN_LABEL = "TargetPodUpdatePodLabel"
OWN_GATES = "TargetPodUpdatePodSchedulingGatesEliminated"
ACTIVATED, TIMEOUT, FAILED = "ForceActivate", "UnschedulableTimeout", "ScheduleAttemptFailure"

REGISTERED: Final = {
    "Fit": {NODE_ADD},
    "Odd": {NODE_LABEL},
    "Level": {NODE_LABEL},
    "Flaky": {NODE_CONDITION},
    "Room": {POD_DELETE},
    "Own": {OWN_LABEL, POD_LABEL},
    "Gates": {OWN_GATES},
    "Preempting": {POD_DELETE},
}
OF_INTEREST: Final = set().union(*REGISTERED.values())
WAITING: Final = {QueueState.UNSCHEDULABLE, QueueState.GATED}
BACKING_OFF: Final = {QueueState.BACKOFF, QueueState.ERROR_BACKOFF}


class ModelEvent(NamedTuple):
    """An event, and its subject: the index of a pod, or the parity and the level of a node."""

    name: str
    subject: Any = None


@dataclass(eq=False)
class ModelPod:
    index: int
    priority: int
    has_gates: bool
    nominated_in_status: str
    timestamp_s: float
    flushed_s: float = 0.0
    state: QueueState = QueueState.GONE
    attempts: int = 0
    rejections: int = 0
    errors: int = 0
    rejectors: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    gate: str = ""
    nominated_node: str | None = None
    events: list[ModelEvent] = field(default_factory=list)

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
        self.entered: Counter[tuple[str, str]] = Counter()

    def at(self, *states: QueueState) -> list[ModelPod]:
        return [pod for pod in self.pods.values() if pod.state in states]

    # ------------------------------------------------------------ operations

    def add(self, index: int, priority: int, has_gates: bool, nominated_in_status: str) -> None:
        pod = self.pods[index] = ModelPod(index, priority, has_gates, nominated_in_status, self.now_s)
        self.nominate(pod, None)
        self._to_active(pod, NEW)

    def update(
        self, pod: ModelPod, *, priority: int, labels: bool, drops_gates: bool, nominated_in_status: str
    ) -> None:
        names = [OWN_LABEL] if labels else []
        names += [OWN_GATES] if drops_gates and pod.has_gates else []
        events = [ModelEvent(name, pod.index) for name in names or [UPDATED]]
        if drops_gates:
            pod.has_gates = False
        pod.priority = priority
        old_nomination, pod.nominated_in_status = pod.nominated_in_status, nominated_in_status
        if pod.state is QueueState.IN_FLIGHT:
            for event in events:
                self._remember(event)
            return
        if old_nomination or nominated_in_status:
            self.nominate(pod, None)
        if pod.state not in WAITING:
            return
        for event in events:
            strategy = self._strategy_for(pod, event)
            if strategy != "skip" and self._requeue(pod, strategy, event.name):
                return

    def delete(self, pod: ModelPod) -> None:
        del self.pods[pod.index]
        self.preempting.discard(pod.index)

    def choices(self) -> list[ModelPod]:
        """Return the pods that may be popped now: several if they are equal in order."""
        active = self.at(QueueState.ACTIVE)
        if active:
            first = min(pod.order for pod in active)
            return [pod for pod in active if pod.order == first]
        waiting = self.at(QueueState.BACKOFF)
        soonest = min(((pod.backoff_ends_s, pod.order) for pod in waiting), default=None)
        return [pod for pod in waiting if (pod.backoff_ends_s, pod.order) == soonest]

    def pop(self, pod: ModelPod) -> None:
        if pod.state is QueueState.BACKOFF:
            self.entered["active", "PopFromBackoffQ"] += 1
        pod.state, pod.events = QueueState.IN_FLIGHT, []
        pod.attempts += 1

    def fail(self, pod: ModelPod, rejectors: Iterable[str], pending: Iterable[str], *, in_flight: bool) -> None:
        pod.rejectors, pod.pending, pod.gate = set(rejectors), set(pending), ""
        pod.timestamp_s, pod.flushed_s = self.now_s, 0.0
        pod.state = QueueState.GONE
        is_rejected = bool(pod.rejectors or pod.pending)
        pod.rejections, pod.errors = (pod.rejections + 1, 0) if is_rejected else (pod.rejections, pod.errors + 1)
        strategies = (
            {self._strategy_for(pod, event) for event in pod.events} if is_rejected and in_flight else {"after backoff"}
        )
        if strategies <= {"skip"}:
            pod.state = QueueState.UNSCHEDULABLE
            self.entered["unschedulable", FAILED] += 1
        else:
            self._requeue(pod, "immediately" if "immediately" in strategies else "after backoff", FAILED)

    def nominate(self, pod: ModelPod, override: str | None) -> None:
        pod.nominated_node = override if override is not None else pod.nominated_in_status or None

    def move_all(self, event: ModelEvent, concerns: Callable[[ModelPod], bool] = lambda pod: True) -> None:
        if event.name not in OF_INTEREST:
            return
        for pod in self.at(*WAITING):
            if concerns(pod) and not (pod.gate and event.name not in REGISTERED[pod.gate]):
                strategy = self._strategy_for(pod, event)
                if strategy != "skip":
                    self._requeue_waiting(pod, strategy, event.name)
        self._remember(event)

    def activate(self, pod: ModelPod) -> None:
        if pod.state is QueueState.IN_FLIGHT:
            self._remember(ModelEvent(ACTIVATED, pod.index))
        elif pod.state in BACKING_OFF:
            self._enter_active(pod, ACTIVATED)
        elif pod.state in WAITING:
            self._to_active(pod, ACTIVATED)

    def advance(self, seconds: float) -> None:
        until_s = self.now_s + seconds
        while self.now_s < until_s:
            self.now_s = min(until_s, math.floor(self.now_s) + 1)
            for pod in self.at(*BACKING_OFF):
                if pod.backoff_ends_s < math.floor(self.now_s):
                    self._enter_active(pod, "BackoffComplete")
            if (self.now_s - self.started_s) % 30 == 0:
                self._flush_leftover()

    # ------------------------------------------------------------ rules

    def _flush_leftover(self) -> None:
        leftover = [pod for pod in self.at(*WAITING) if self.now_s - max(pod.timestamp_s, pod.flushed_s) > 300]
        for pod in leftover:
            pod.flushed_s = self.now_s
            self._requeue_waiting(pod, "after backoff", TIMEOUT)
        if leftover:
            self._remember(ModelEvent(TIMEOUT))

    def _remember(self, event: ModelEvent) -> None:
        for pod in self.at(QueueState.IN_FLIGHT):
            pod.events.append(event)

    def _strategy_for(self, pod: ModelPod, event: ModelEvent) -> str:
        if event.name in (TIMEOUT, ACTIVATED):
            return "after backoff" if event.subject in (None, pod.index) else "skip"
        if any(_queues(plugin, pod, event) for plugin in pod.pending):
            return "immediately"
        return "after backoff" if any(_queues(plugin, pod, event) for plugin in pod.rejectors) else "skip"

    def _requeue_waiting(self, pod: ModelPod, strategy: str, event: str) -> None:
        """Requeue a waiting pod. If a gate holds it, the metrics count it as incoming again."""
        pod.state = QueueState.GONE
        self._requeue(pod, strategy, event)

    def _requeue(self, pod: ModelPod, strategy: str, event: str) -> bool:
        if strategy == "immediately" or pod.backoff_ends_s < math.floor(self.now_s):
            return self._to_active(pod, event)
        if not self._passes_gates(pod, event):
            return False
        pod.state = QueueState.BACKOFF if pod.rejectors or pod.pending else QueueState.ERROR_BACKOFF
        self.entered["backoff", event] += 1
        return True

    def _to_active(self, pod: ModelPod, event: str) -> bool:
        passes = self._passes_gates(pod, event)
        if passes:
            self._enter_active(pod, event)
        return passes

    def _enter_active(self, pod: ModelPod, event: str) -> None:
        pod.state = QueueState.ACTIVE
        self.entered["active", event] += 1

    def _passes_gates(self, pod: ModelPod, event: str) -> bool:
        closed_gates = {
            name
            for name, is_closed in (("Gates", pod.has_gates), ("Preempting", pod.index in self.preempting))
            if is_closed
        }
        if not closed_gates:
            pod.gate = ""
            return True
        # The plugin that gated the pod last is called first, the others in the order of the profile.
        pod.gate = pod.gate if pod.gate in closed_gates else min(closed_gates, key=["Preempting", "Gates"].index)
        pod.rejectors.add(pod.gate)
        if pod.state not in WAITING:
            self.entered["unschedulable", event] += 1
        pod.state = QueueState.GATED
        return False


def _queues(plugin: str, pod: ModelPod, event: ModelEvent) -> bool:
    name, subject = event
    if name not in REGISTERED[plugin]:
        return False
    match plugin:
        case "Odd":
            return bool(subject[0] == pod.index % 2)
        case "Level":
            return bool(subject[1] == pod.priority)
        case "Own" | "Gates":
            return bool(subject == pod.index)
        case "Room":
            return bool(subject != pod.index)
        case "Preempting":
            return False
    return True
