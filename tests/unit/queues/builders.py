"""Pods, plugins and a queue under virtual time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from podium.config import NEWEST, PodGroupRules, Release
from podium.framework.contract.cluster_event import EventRegistration
from podium.framework.contract.filter import FilterPlugin
from podium.framework.contract.plugin import Plugin, PreEnqueuePlugin, QueueSortPlugin
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.contract.status import Status, unresolvable
from podium.lib.clock import ManualClock
from podium.objects.core import Pod
from podium.queues import QueueObserver, QueueProfile, QueueState, QueueTimes, SchedulingQueue, build_hint_map

PROFILE = "podium"


class WithoutArgs(Plugin):
    """A plugin that needs neither args nor a handle."""

    def __init__(self) -> None:
        pass


class ByPriority(WithoutArgs, QueueSortPlugin):
    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        return self.sort_key(a) < self.sort_key(b)

    def sort_key(self, info: QueuedPodInfo) -> tuple[int, float]:
        return -info.pod.priority, info.timestamp_s


class Gates(WithoutArgs, PreEnqueuePlugin):
    """Gates pods that have scheduling gates."""

    registrations: tuple[EventRegistration, ...] = ()

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return unresolvable("gated") if pod.spec.scheduling_gates else None

    def events_to_register(self) -> Sequence[EventRegistration]:
        return self.registrations


class Rejecter(FilterPlugin):
    """A filter by any name, for its registrations."""

    def __init__(self, name: str, *registrations: EventRegistration) -> None:
        self.name = name  # type: ignore[misc]
        self._registrations = registrations

    def filter(self, state: Any, pod: Any, node: Any) -> None:
        return None

    def events_to_register(self) -> Sequence[EventRegistration]:
        return self._registrations


class Recorder(QueueObserver):
    """Counts what the queue tells."""

    def __init__(self) -> None:
        self.entered: list[tuple[str, str]] = []
        self.unschedulable: Counter[str] = Counter()
        self.in_flight_events: Counter[str] = Counter()
        self.hints: list[tuple[str, str, str]] = []
        self.failures: list[tuple[str, str, str]] = []
        self.astray: list[tuple[str, str]] = []

    def incoming(self, queue: str, event: str, info: QueuedPodInfo, *, is_moved: bool) -> None:
        self.entered.append((queue, event))

    def unschedulable_delta(self, plugin: str, profile: str, delta: int) -> None:
        self.unschedulable[plugin] += delta

    def in_flight_events_delta(self, event: str, delta: int) -> None:
        self.in_flight_events[event] += delta

    def hint_executed(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        self.hints.append((plugin, event, hint))

    def plugin_failed(self, plugin: str, point: str, pod: Pod, error: BaseException) -> None:
        self.failures.append((plugin, point, str(error)))

    def unexpected_state(self, info: QueuedPodInfo, problem: str) -> None:
        self.astray.append((info.pod.uid, problem))


class QueueBench:
    """A queue with one profile, everything it needs, and shorthands."""

    def __init__(
        self,
        *plugins: FilterPlugin | PreEnqueuePlugin,
        queue_sort: QueueSortPlugin | None = None,
        times: QueueTimes | None = None,
        start_s: float = 1000.0,
        observer: QueueObserver | None = None,
        groups: PodGroupRules | None = None,
        release: Release = NEWEST,
    ) -> None:
        self.clock = ManualClock(start_s)
        self.recorder = Recorder()
        self.api: dict[str, Pod] = {}
        self.wakes = 0
        has_gates = any(isinstance(plugin, Gates) for plugin in plugins)
        everyone = plugins if has_gates else (*plugins, Gates())
        self.queue = SchedulingQueue(
            [
                QueueProfile(
                    PROFILE,
                    [plugin for plugin in everyone if isinstance(plugin, PreEnqueuePlugin)],
                    build_hint_map(everyone, release.events),
                )
            ],
            queue_sort or ByPriority(),
            self.clock,
            self.api.get,
            wake=self._wake,
            times=times or QueueTimes(),
            observer=observer or self.recorder,
            groups=groups,
            release=release,
        )

    def _wake(self) -> None:
        self.wakes += 1

    def add(self, *pods: Pod) -> None:
        for pod in pods:
            self.api[pod.key] = pod
            self.queue.add(pod)

    def update(self, old: Pod, new: Pod) -> None:
        self.api[new.key] = new
        self.queue.update(old, new)

    def pop(self) -> QueuedPodInfo:
        info = self.queue.pop()
        assert info is not None
        return info

    def reject(self, info: QueuedPodInfo, *plugins: str, pending: Sequence[str] = ()) -> QueueState:
        """Handle a failure; without plugins it is an error. Return the state of the pod."""
        info.unschedulable_plugins = set(plugins)
        info.pending_plugins = set(pending)
        info.gating_plugin = ""
        self.queue.add_unschedulable_if_not_present(info)
        return self.queue.state_of(info.pod)

    def add_rejected(self, pod: Pod, *plugins: str, pending: Sequence[str] = ()) -> QueuedPodInfo:
        """Add the pod, try it, reject it."""
        self.add(pod)
        info = self.pop()
        assert info.pod is pod
        self.reject(info, *plugins, pending=pending)
        return info

    def advance(self, seconds: float) -> None:
        """Let time pass as the daemon does: timers run when they are due."""
        until_s = self.clock.now() + seconds
        self.queue.run_due_timers()
        while (left_s := until_s - self.clock.now()) > 0:
            self.clock.advance(min(left_s, self.queue.next_timer_s()))
            self.queue.run_due_timers()

    def state_of(self, pod: Pod) -> QueueState:
        return self.queue.state_of(pod)

    def popped_names(self) -> list[str]:
        """Pop all there is, and be done with it."""
        names = []
        while (info := self.queue.pop()) is not None:
            names.append(info.pod.metadata.name)
            self.queue.done(info.pod.uid)
        return names
