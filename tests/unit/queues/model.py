"""The scheduling queue's rules once more, in the plainest way: one list of pods, scanned for everything.

Plugins: `Fit` waits for new nodes, `Odd` for node labels that suit the pod's number,
`Level` for those that suit its priority, `Flaky` has a hint for node conditions that always fails, `Room` waits for
other pods to go, `Own` for other labels of the pod itself. `Gates` and `Preempting` hold pods back; the former waits
for the pod's gates to go, the latter registers for pods that go with a hint that never lets one of its own go.
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


class Happening(NamedTuple):
    """An event, and what it is about: the pod's number, or the parity and the level of a node."""

    name: str
    about: Any = None


@dataclass(eq=False)
class ModelPod:
    index: int
    priority: int
    has_gates: bool
    in_status: str
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
    happenings: list[Happening] = field(default_factory=list)

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

    def add(self, index: int, priority: int, has_gates: bool, in_status: str) -> None:
        pod = self.pods[index] = ModelPod(index, priority, has_gates, in_status, self.now_s)
        self.nominate(pod, None)
        self._to_active(pod, NEW)

    def update(self, pod: ModelPod, *, priority: int, labels: bool, drops_gates: bool, in_status: str) -> None:
        names = [OWN_LABEL] if labels else []
        names += [OWN_GATES] if drops_gates and pod.has_gates else []
        happenings = [Happening(name, pod.index) for name in names or [UPDATED]]
        if drops_gates:
            pod.has_gates = False
        pod.priority = priority
        had_status, pod.in_status = pod.in_status, in_status
        if pod.state is QueueState.IN_FLIGHT:
            for happening in happenings:
                self._remember(happening)
            return
        if had_status or in_status:
            self.nominate(pod, None)
        if pod.state not in WAITING:
            return
        for happening in happenings:
            worth = self._worth(pod, happening)
            if worth != "never" and self._requeue(pod, worth, happening.name):
                return

    def delete(self, pod: ModelPod) -> None:
        del self.pods[pod.index]
        self.preempting.discard(pod.index)

    def choices(self) -> list[ModelPod]:
        """The pods that may be popped now; several only where they are equal."""
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
        pod.state, pod.happenings = QueueState.IN_FLIGHT, []
        pod.attempts += 1

    def fail(self, pod: ModelPod, rejectors: Iterable[str], pending: Iterable[str], *, in_flight: bool) -> None:
        pod.rejectors, pod.pending, pod.gate = set(rejectors), set(pending), ""
        pod.timestamp_s, pod.flushed_s = self.now_s, 0.0
        pod.state = QueueState.GONE
        is_rejected = bool(pod.rejectors or pod.pending)
        pod.rejections, pod.errors = (pod.rejections + 1, 0) if is_rejected else (pod.rejections, pod.errors + 1)
        worth = (
            {self._worth(pod, happening) for happening in pod.happenings} if is_rejected and in_flight else {"later"}
        )
        if worth <= {"never"}:
            pod.state = QueueState.UNSCHEDULABLE
            self.entered["unschedulable", FAILED] += 1
        else:
            self._requeue(pod, "at once" if "at once" in worth else "later", FAILED)

    def nominate(self, pod: ModelPod, override: str | None) -> None:
        pod.nominated_node = override if override is not None else pod.in_status or None

    def happen(self, happening: Happening, concerns: Callable[[ModelPod], bool] = lambda pod: True) -> None:
        if happening.name not in OF_INTEREST:
            return
        for pod in self.at(*WAITING):
            if concerns(pod) and not (pod.gate and happening.name not in REGISTERED[pod.gate]):
                worth = self._worth(pod, happening)
                if worth != "never":
                    self._take_out(pod, worth, happening.name)
        self._remember(happening)

    def activate(self, pod: ModelPod) -> None:
        if pod.state is QueueState.IN_FLIGHT:
            self._remember(Happening(ACTIVATED, pod.index))
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
            self._take_out(pod, "later", TIMEOUT)
        if leftover:
            self._remember(Happening(TIMEOUT))

    def _remember(self, happening: Happening) -> None:
        for pod in self.at(QueueState.IN_FLIGHT):
            pod.happenings.append(happening)

    def _worth(self, pod: ModelPod, happening: Happening) -> str:
        if happening.name in (TIMEOUT, ACTIVATED):
            return "later" if happening.about in (None, pod.index) else "never"
        if any(_queues(plugin, pod, happening) for plugin in pod.pending):
            return "at once"
        return "later" if any(_queues(plugin, pod, happening) for plugin in pod.rejectors) else "never"

    def _take_out(self, pod: ModelPod, worth: str, event: str) -> None:
        """A pod that comes back gated counts as one that has come in."""
        pod.state = QueueState.GONE
        self._requeue(pod, worth, event)

    def _requeue(self, pod: ModelPod, worth: str, event: str) -> bool:
        if worth == "at once" or pod.backoff_ends_s < math.floor(self.now_s):
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
        # The gate that held it the last time is tried first, then in the order of the profile.
        pod.gate = pod.gate if pod.gate in closed_gates else min(closed_gates, key=["Preempting", "Gates"].index)
        pod.rejectors.add(pod.gate)
        if pod.state not in WAITING:
            self.entered["unschedulable", event] += 1
        pod.state = QueueState.GATED
        return False


def _queues(plugin: str, pod: ModelPod, happening: Happening) -> bool:
    name, about = happening
    if name not in REGISTERED[plugin]:
        return False
    match plugin:
        case "Odd":
            return bool(about[0] == pod.index % 2)
        case "Level":
            return bool(about[1] == pod.priority)
        case "Own" | "Gates":
            return bool(about == pod.index)
        case "Room":
            return bool(about != pod.index)
        case "Preempting":
            return False
    return True
