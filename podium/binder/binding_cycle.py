"""One pod's binding cycle: permit, prebind, bind, postbind.

Owns the order of the steps and the messages of their failures. Never undoes anything: the caller unreserves, forgets
and requeues, from the outcome.

Source: kubernetes pkg/scheduler/schedule_one.go (bindingCycle) and framework/runtime/framework.go, v1.36.2.
Differs: an extension point without plugins is not measured; a pod that is stopped during PreBind fails with the cause
alone, without the name of a plugin. A pod whose wait at Permit has ended before its binding cycle begins is not
nominated for it, because it is rejected or bound at once. Upstream writes a nomination for every pod of a gang, which
lasts until the binding that follows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

import anyio
import msgspec

from podium.binder.binding_stage import BINDING_CYCLE, BindingEvent, BindingStage
from podium.binder.events.event import Event, scheduled_event
from podium.binder.observer import BindingObserver
from podium.binder.plugin_calls import AsyncMethod, answering_nothing, failure, outcome_of, pre_flight, raised_in
from podium.binder.pods_in_pre_bind import PodsInPreBind
from podium.binder.waiting_pods import WaitingPod, WaitingPods
from podium.framework.contract.bind import BindPlugin, PostBindPlugin, PreBindPlugin
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.status import SKIP, Code, PluginError, Status, error_status
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError
from podium.objects.core import Pod

log = get_logger("binder")


class BindingPlugins(Protocol):
    """The plugins of a profile that run in the binding cycle, in their configured order."""

    @property
    def pre_bind(self) -> Sequence[PreBindPlugin]:
        """Prepare the binding."""

    @property
    def bind(self) -> Sequence[BindPlugin]:
        """Bind; the first plugin that does not skip binds the pod."""

    @property
    def post_bind(self) -> Sequence[PostBindPlugin]:
        """Run after the pod was bound."""


class StatusWriter(Protocol):
    """Writes the nominated node; `ApiClient` is one."""

    def patch_status(self, pod: Pod, *, nominated_node_name: str | None = None) -> Awaitable[bool]:
        """Set the pod's nominated node."""


class Recorder(Protocol):
    """Records Events; `EventRecorder` is one."""

    def record(self, event: Event) -> None:
        """Queue the Event and return at once."""


class BindingExtenders(Protocol):
    """The extenders that bind pods; `ExtenderPool` is one."""

    def bind(self, pod: Pod, node_name: str) -> Awaitable[Status | None]:
        """Let an extender bind the pod; Skip if no extender binds it."""


class BindPod(msgspec.Struct, frozen=True):
    """The instruction to bind an assumed pod.

    Args:
        on_permit_passed: called once, when the pod can no longer become unschedulable: the queue may drop the events
            that it has recorded for the pod.
        measure_plugins: whether the duration of every plugin is reported.
    """

    pod: Pod
    node_name: str
    state: CycleState
    plugins: BindingPlugins
    on_permit_passed: Callable[[], None]
    measure_plugins: bool = False


class BindOutcome(msgspec.Struct, frozen=True):
    """The outcome of an instruction to bind.

    Attributes:
        status: the failure, with the plugin's name if a plugin is the cause; None if the pod is bound.
        stage: the stage reached, or the one that failed.
        ended_at_s: the time of the binding, or of the failure, on the monotonic clock; excludes PostBind.
        waited_s: the duration of the wait at Permit, PreBind and PostBind.
        is_nominated: whether the pod's status may name its node as the nominated one.

    A rejection at `WAITING_ON_PERMIT` means that this plugin found the pod unschedulable; after any later failure the
    pod is retried.
    """

    status: Status | None
    stage: BindingStage
    ended_at_s: float
    waited_s: float = 0.0
    is_nominated: bool = False

    @property
    def is_bound(self) -> bool:
        """True if the pod is bound."""
        return self.status is None

    @property
    def has_failed_at_permit(self) -> bool:
        """True if the wait at Permit ended with a rejection or an error."""
        return self.stage is BindingStage.WAITING_ON_PERMIT and self.status is not None

    @property
    def is_rejected_at_permit(self) -> bool:
        """True if the pod was rejected while it waited at Permit."""
        return self.has_failed_at_permit and self.status is not None and self.status.is_rejected


class Binder:
    """Carries out instructions to bind, each in a task of its own.

    Cost: about 6 us plus the bind plugin's time, for a pod without PreBind work or a wait at Permit.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        statuses: StatusWriter,
        events: Recorder,
        observer: BindingObserver,
        waiting_pods: WaitingPods,
        pods_in_pre_bind: PodsInPreBind,
        extenders: BindingExtenders | None = None,
    ) -> None:
        self.clock = clock
        self.statuses = statuses
        self.events = events
        self.observer = observer
        self.waiting_pods = waiting_pods
        self.pods_in_pre_bind = pods_in_pre_bind
        self.extenders = extenders

    async def bind_pod(self, instruction: BindPod) -> BindOutcome:
        """Run the pod's binding cycle. Raises nothing but cancellation."""
        cycle = _BindingCycle(self, instruction)
        status = await cycle.run_to_bind()
        if status is not None:
            BINDING_CYCLE.next(cycle.stage, BindingEvent.STEP_FAILED)
            return BindOutcome(status, cycle.stage, self.clock.monotonic(), cycle.waited_s, cycle.is_nominated)
        # Before the Event and PostBind, which are no part of the time until the pod is bound.
        ended_at_s = self.clock.monotonic()
        self.events.record(scheduled_event(instruction.pod, instruction.node_name))
        if instruction.plugins.post_bind:
            await cycle.post_bind()
        return BindOutcome(None, cycle.stage, ended_at_s, cycle.waited_s)


class _BindingCycle:
    """The steps for one pod; each returns None or the status that ends the cycle."""

    __slots__ = ("_binder", "_instruction", "is_nominated", "stage", "waited_s")

    def __init__(self, binder: Binder, instruction: BindPod) -> None:
        self._binder = binder
        self._instruction = instruction
        self.stage = BindingStage.STARTED
        self.waited_s = 0.0
        self.is_nominated = False

    async def run_to_bind(self) -> Status | None:
        """Run every step up to the binding itself."""
        instruction = self._instruction
        waiting = self._binder.waiting_pods.get(instruction.pod.uid)
        groups: list[list[PreBindPlugin]] = []
        if waiting is not None or instruction.plugins.pre_bind:
            status = await self._prepare(waiting, groups)
            if status is not None:
                return status
        instruction.on_permit_passed()
        if groups and (status := await self._pre_bind(groups)) is not None:
            return status
        return await self._bind()

    async def post_bind(self) -> None:
        """Run the PostBind plugins; their failures are logged and have no other effect."""
        instruction = self._instruction
        started_s = self._binder.clock.monotonic()
        for plugin in instruction.plugins.post_bind:
            status = await self._call(answering_nothing(plugin.post_bind), plugin, "PostBind")
            if status is not None and raised_in(status) is None:
                log.error("Plugin failed", plugin=plugin.name, pod=instruction.pod.key, error=status.message)
        self.waited_s += self._report("PostBind", None, started_s)

    async def _prepare(self, waiting: WaitingPod | None, groups: list[list[PreBindPlugin]]) -> Status | None:
        """Run PreBindPreFlight, write the nominated node, and wait until Permit allows the pod."""
        instruction, binder = self._instruction, self._binder
        try:
            status = self._pre_flight(groups)
            if status is not None:
                return status
            waits = waiting is not None and waiting.is_open()
            was_rejected = waiting is not None and waiting.is_rejected
            # No other component has to know the node of a pod that is bound at once, and one that is rejected frees its
            # resources at once.
            if waits or (groups and not was_rejected):
                await self._nominate()
            return None if waiting is None else await self._wait_on_permit(waiting)
        finally:
            binder.waiting_pods.remove(instruction.pod.uid)

    def _pre_flight(self, groups: list[list[PreBindPlugin]]) -> Status | None:
        """Put the plugins that have PreBind work into groups that may run concurrently."""
        instruction = self._instruction
        if not instruction.plugins.pre_bind:
            return None
        started_s = self._binder.clock.monotonic()
        error: Status | None = None
        was_parallel = False
        for plugin in instruction.plugins.pre_bind:
            asked_s = self._binder.clock.monotonic() if instruction.measure_plugins else 0.0
            parallel, status = pre_flight(plugin, instruction.state, instruction.pod, instruction.node_name)
            if status is not None and status.error is not None:
                self._report_exception(plugin, "PreBindPreFlight", status)
            if instruction.measure_plugins:
                self._observe_plugin(plugin, "PreBindPreFlight", status, asked_s)
            if status is None:
                if parallel and was_parallel:
                    groups[-1].append(plugin)
                else:
                    groups.append([plugin])
                was_parallel = parallel
            elif status.code is not Code.SKIP:
                error = status
                break
        self._report("PreBindPreFlight", error or (None if groups else SKIP), started_s)
        return error

    async def _nominate(self) -> None:
        """Write the pod's target node to its status for other components. A failure does not stop the cycle."""
        instruction, self.is_nominated = self._instruction, True
        try:
            await self._binder.statuses.patch_status(instruction.pod, nominated_node_name=instruction.node_name)
        except ApiError as error:
            log.warning(
                "Failed to update the nominated node name in the binding cycle",
                pod=instruction.pod.key,
                nominated_node_name=instruction.node_name,
                error=str(error),
            )

    async def _wait_on_permit(self, waiting: WaitingPod) -> Status | None:
        self._move(BindingEvent.PERMIT_AWAITED)
        started_s = self._binder.clock.monotonic()
        status = await waiting.wait()
        seconds = self._binder.clock.monotonic() - started_s
        self.waited_s += seconds
        self._binder.observer.observe_permit_wait(_label(status), seconds)
        if status is None or status.is_rejected:
            return status
        return error_status(f"waiting on permit for pod: {status.message}").by(status.plugin)

    async def _pre_bind(self, groups: list[list[PreBindPlugin]]) -> Status | None:
        """Run the groups one after the other, unless the pod is stopped meanwhile."""
        self._move(BindingEvent.PRE_BIND_STARTED)
        uid, pods = self._instruction.pod.uid, self._binder.pods_in_pre_bind
        started_s = self._binder.clock.monotonic()
        status: Status | None = None
        pre_binding = pods.add(uid)
        try:
            with pre_binding.scope:
                for group in groups:
                    status = await self._pre_bind_group(group)
                    if status is not None:
                        break
            # From here on the pod is being bound, and can no longer be preempted in memory.
            if status is None and not pre_binding.mark_pre_bound():
                assert pre_binding.cause is not None
                status = error_status(PluginError(pre_binding.cause))
        finally:
            pods.remove(uid)
        self.waited_s += self._report("PreBind", status, started_s)
        return status

    async def _pre_bind_group(self, group: list[PreBindPlugin]) -> Status | None:
        """Run the plugins of a group concurrently; the first failure cancels the others."""
        if len(group) == 1:
            return await self._pre_bind_one(group[0])
        failures: list[Status] = []

        async def run(plugin: PreBindPlugin) -> None:
            status = await self._pre_bind_one(plugin)
            if status is not None:
                failures.append(status)
                # The binding has failed anyway, and the other plugins' work would be undone.
                tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            for plugin in group:
                tasks.start_soon(run, plugin, name=plugin.name)
        return failures[0] if failures else None

    async def _pre_bind_one(self, plugin: PreBindPlugin) -> Status | None:
        status = await self._call(plugin.pre_bind, plugin, "PreBind")
        return failure(status, plugin, "PreBind") if status is not None and status.code is Code.SKIP else status

    async def _bind(self) -> Status | None:
        self._move(BindingEvent.BIND_STARTED)
        instruction, extenders = self._instruction, self._binder.extenders
        status: Status | None = SKIP
        # As upstream: an extender that binds comes before the plugins.
        if extenders is not None:
            status = await extenders.bind(instruction.pod, instruction.node_name)
        if status is SKIP:
            status = await self._bind_by_plugin()
        if status is None:
            self._move(BindingEvent.BIND_SUCCEEDED)
        return status

    async def _bind_by_plugin(self) -> Status | None:
        started_s = self._binder.clock.monotonic()
        status: Status | None = SKIP
        for plugin in self._instruction.plugins.bind:
            status = await self._call(plugin.bind, plugin, "Bind")
            if status is None or status.code is not Code.SKIP:
                break
        self._report("Bind", status, started_s)
        return status

    async def _call(self, method: AsyncMethod, plugin: Plugin, point: str) -> Status | None:
        instruction = self._instruction
        call = outcome_of(method, plugin, point, instruction.state, instruction.pod, instruction.node_name)
        started_s = self._binder.clock.monotonic() if instruction.measure_plugins else 0.0
        status = await call
        if status is not None and status.error is not None:
            self._report_exception(plugin, point, status)
        if instruction.measure_plugins:
            self._observe_plugin(plugin, point, status, started_s)
        return status

    def _observe_plugin(self, plugin: Plugin, point: str, status: Status | None, started_s: float) -> None:
        seconds = self._binder.clock.monotonic() - started_s
        self._binder.observer.observe_plugin(plugin.name, point, _label(status), seconds)

    def _report_exception(self, plugin: Plugin, point: str, status: Status) -> None:
        if (error := raised_in(status)) is not None:
            self._binder.observer.plugin_failed(plugin.name, point, self._instruction.pod, error)

    def _move(self, event: BindingEvent) -> None:
        self.stage = BINDING_CYCLE.next(self.stage, event)

    def _report(self, point: str, status: Status | None, started_s: float) -> float:
        """Report that the extension point has run; return its duration in seconds."""
        profile = self._instruction.pod.spec.scheduler_name
        seconds = self._binder.clock.monotonic() - started_s
        self._binder.observer.observe_extension_point(point, _label(status), profile, seconds)
        return seconds


_SUCCESS: Final = Code.SUCCESS.label


def _label(status: Status | None) -> str:
    return _SUCCESS if status is None else status.code.label
