"""Turns what attempts report into spans: `schedulingCycle`, and below it `bindingCycle`, phases and slow plugins.

The decision whether an attempt is sampled is made before it begins; nothing is kept of the others.

Source: KEP-5927 (Distributed tracing in kube-scheduler), a proposal; its names of spans are those of kube-scheduler's
functions.
Differs: a plugin has a span only if it took longer than `SLOW_PLUGIN_S`. There are no links to the API server's spans.
"""

from __future__ import annotations

import asyncio
import urllib.parse
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from random import Random
from typing import Final

from podium.binder import BindingObserver
from podium.daemon.face import Face
from podium.daemon.scheduler import Scheduler
from podium.daemon.span_export import SpanExport
from podium.engine.flight_recorder import AttemptObserver
from podium.engine.group_decisions import MemberDecision
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.contract.status import Code
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.schedule import Suggested
from podium.framework.profile.runtime import SLOW_PLUGIN_S
from podium.lib.clock import Clock
from podium.objects.core import Pod
from podium.telemetry.spans import Attributes, Span

_MILLION: Final = 1_000_000
_STEPS_MAX: Final = 500
"""A search for victims may call slow plugins many times."""
_MESSAGE_MAX: Final = 4000
_BINDING: Final = frozenset({"PreBindPreFlight", "WaitOnPermit", "PreBind", "Bind", "PostBind"})
_AFTER_DECISION: Final = _BINDING | {"Reserve", "Permit", "Unreserve"}
_FUNCTIONS: Final = {
    "PreBindPreFlight": "RunPreBindPreFlights",
    "Unreserve": "RunReservePluginsUnreserve",
    "WaitOnPermit": "WaitOnPermit",
}


@dataclass(frozen=True, slots=True)
class _Step:
    """A phase that has ended; or a plugin, then `plugin` is its name. Units: monotonic seconds."""

    point: str
    status: str
    started_s: float
    ended_s: float
    plugin: str = ""


@dataclass(slots=True)
class _Attempt:
    """A sampled attempt after its decision. `task` is the scheduling loop's; the binding cycle has another."""

    pod: Pod
    attributes: dict[str, str | int]
    started_s: float
    decided_s: float
    task: asyncio.Task[object] | None
    scheduling: list[_Step]
    binding: list[_Step] = field(default_factory=list)

    @property
    def steps(self) -> list[_Step]:
        """Those of the cycle that the running task is in."""
        return self.scheduling if asyncio.current_task() is self.task else self.binding


_attempt: ContextVar[_Attempt | None] = ContextVar("attempt", default=None)
"""The sampled attempt that the running task works on; the task of its binding cycle inherits it from the loop's."""


class Tracing(AttemptObserver, BindingObserver):
    """Makes a span of each sampled attempt when it has ended.

    Args:
        add: receives the `schedulingCycle`.

    Cost: a report of an attempt that is not sampled is one call; it keeps nothing.
    """

    def __init__(self, clock: Clock, random: Random, samples_per_million: int, add: Callable[[Span], None]) -> None:
        self._clock = clock
        self._random = random
        self._rate = samples_per_million / _MILLION
        self._add = add
        self._is_sampled = self._samples()
        self._steps: list[_Step] = []

    def _samples(self) -> bool:
        return self._random.random() < self._rate

    # ------------------------------------------------------------ phases and plugins

    def observe_extension_point(self, point: str, status: str, profile: str, seconds: float) -> None:
        """Record the span of a phase that has ended."""
        del profile
        self._note(point, status, seconds)

    def observe_permit_wait(self, status: str, seconds: float) -> None:
        """Record the span of a wait at Permit that has ended."""
        self._note("WaitOnPermit", status, seconds)

    def observe_plugin(self, plugin: str, point: str, status: str, seconds: float) -> None:
        """Record the span of a plugin call; slow ones of the scheduling cycle are reported even if not measured."""
        if point in _BINDING and seconds > SLOW_PLUGIN_S:
            self._note(point, status, seconds, plugin)

    def plugin_was_slow(self, plugin: str, point: str, pod: Pod, seconds: float) -> None:
        """Record a plugin call that took long in the scheduling cycle."""
        del pod
        self._note(point, "", seconds, plugin)

    def _note(self, point: str, status: str, seconds: float, plugin: str = "") -> None:
        if point in _AFTER_DECISION:
            attempt = _attempt.get()
            steps = None if attempt is None else attempt.steps
        else:
            # The next attempt has begun.
            _attempt.set(None)
            steps = self._steps if self._is_sampled else None
        if steps is not None and len(steps) < _STEPS_MAX:
            now_s = self._clock.monotonic()
            steps.append(_Step(point, status, now_s - seconds, now_s, plugin))

    # ------------------------------------------------------------ attempts

    def on_decision(
        self, info: QueuedPodInfo, cycle: Cycle, decision: MemberDecision, started_s: float, seconds: float
    ) -> None:
        """Begin the span of an attempt that is sampled, and have its binding cycle report each plugin."""
        is_sampled, self._is_sampled = self._is_sampled, self._samples()
        steps, self._steps = self._steps, []
        if not is_sampled:
            _attempt.set(None)
            return
        cycle.measures_plugins = True
        pod = cycle.pod
        attributes: dict[str, str | int] = {
            "k8s.namespace.name": pod.metadata.namespace,
            "k8s.pod.name": pod.metadata.name,
            "k8s.pod.uid": pod.uid,
            "podium.profile": cycle.framework.name,
            "podium.attempt": info.attempts,
        }
        if isinstance(decision, Suggested):
            attributes["k8s.node.name"] = decision.node_name
            attributes["podium.evaluated_nodes"] = decision.evaluated_nodes
            attributes["podium.feasible_nodes"] = decision.feasible_nodes
        # The phases of a pod group's attempt, in a fork, are those of all its pods; older ones, of abandoned attempts.
        attempt_steps = [] if cycle.snapshot.is_fork else [step for step in steps if step.ended_s >= started_s]
        task = asyncio.current_task()
        _attempt.set(_Attempt(pod, attributes, started_s, started_s + seconds, task, attempt_steps))

    def on_bound(self, pod: Pod, seconds: float) -> None:
        """End the spans of an attempt whose pod was bound."""
        del seconds
        self._end(pod, "scheduled", "")

    def on_failure(self, pod: Pod, result: str, message: str, seconds: float) -> None:
        """End the spans of an attempt that failed in one of its cycles."""
        del seconds
        self._end(pod, result, message)

    def _end(self, pod: Pod, result: str, message: str) -> None:
        attempt = _attempt.get()
        if attempt is None or attempt.pod.uid != pod.uid:
            return
        _attempt.set(None)
        now_s = self._clock.monotonic()
        scale = _Scale(self._clock.now() - now_s)
        message = message[:_MESSAGE_MAX]
        attempt.attributes["podium.result"] = result
        if message:
            attempt.attributes["podium.message"] = message
        failure = message if result == "error" else None
        children = scale.tree(attempt.scheduling)
        ended_s = max([attempt.decided_s, *(step.ended_s for step in attempt.scheduling)])
        if asyncio.current_task() is not attempt.task:
            below = scale.tree(attempt.binding)
            children.append(scale.span("bindingCycle", ended_s, now_s, attempt.attributes, below, failure))
            failure = None
        self._add(scale.span("schedulingCycle", attempt.started_s, ended_s, attempt.attributes, children, failure))


@dataclass(frozen=True, slots=True)
class _Scale:
    """Makes spans from times on the monotonic clock, whose zero is that many seconds after the epoch."""

    epoch_s: float

    def span(
        self,
        name: str,
        started_s: float,
        ended_s: float,
        attributes: Attributes,
        children: Sequence[Span] = (),
        failure: str | None = None,
    ) -> Span:
        started_ns, ended_ns = (int((self.epoch_s + at_s) * 1e9) for at_s in (started_s, ended_s))
        return Span(name, started_ns, ended_ns, attributes, children, failure)

    def tree(self, steps: Sequence[_Step]) -> list[Span]:
        """Return the steps in the order of their ends: a phase contains the plugins that ran during it."""
        spans: list[Span] = []
        loose: list[tuple[float, Span]] = []
        for step in steps:
            if step.plugin:
                attributes = {"podium.plugin": step.plugin, "podium.extension_point": step.point}
                loose.append((step.started_s, self.span(step.plugin, step.started_s, step.ended_s, attributes)))
                continue
            below = [span for started_s, span in loose if started_s >= step.started_s]
            loose = [entry for entry in loose if entry[0] < step.started_s]
            name = _FUNCTIONS.get(step.point, f"Run{step.point}Plugins")
            failure = step.status if step.status == Code.ERROR.label else None
            attributes = {"podium.status": step.status}
            spans.append(self.span(name, step.started_s, step.ended_s, attributes, below, failure))
        return spans + [span for _, span in loose]


def tracing(scheduler: Scheduler) -> Face:
    """Return the face that sends spans of attempts to a collector, if the options name one."""
    options = scheduler.options.tracing
    if options is None:
        return Face()
    # Needs the extra [otel].
    from podium.telemetry.otlp import sender_to

    export = SpanExport(sender_to(options.endpoint), urllib.parse.urlsplit(options.endpoint).netloc.rpartition("@")[2])
    scheduler.metrics.read_spans(export.counts)
    observer = Tracing(scheduler.clock, Random(), options.samples_per_million, export.add)
    return Face(observers=(observer,), tasks={"span export": export.run})
