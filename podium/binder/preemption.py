"""Carries out preemptions: deletes the victims of a pod, while the pod itself is held back.

Owns the preemptions under way, the order in which victims are deleted, and their conditions and Events. Never chooses
victims and never binds the preemptor: that pod is attempted again after the victims have gone.

Source: kubernetes pkg/scheduler/framework/preemption/executor.go, v1.36.2 and v1.37.2; KEP-4832.
Differs: a victim is deleted by uid, so that no other pod of its name can be deleted, and deletes that cannot have
happened are retried as status patches are. If the delete of a victim fails for good, the condition that announced it is
removed. A failure does not stop the deletes of other victims that are under way, only that of the last; and the pod is
retried a second later, not at once, so that a server that refuses is not asked over and over. A pod that was gated when
an event would have requeued it is retried once the watch shows its victims going: the remaining events may not be ones
that requeue it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import anyio

from podium.binder.binding_cycle import Recorder
from podium.binder.events.event import preempted_event
from podium.binder.observer import PreemptionObserver
from podium.binder.pods_in_pre_bind import PodsInPreBind
from podium.binder.preemption_loops import PreemptionLoops
from podium.binder.waiting_pods import WaitingPods
from podium.config import NEWEST, Release
from podium.framework.contract.group_post_filter import GroupHelp
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.lib.system_clock import SystemClock
from podium.objects.api_errors import ApiError, Invalid, NotFound
from podium.objects.core import Pod, PodCondition
from podium.objects.pod_groups import PodGroup
from podium.objects.resource_types import POD_GROUPS

log = get_logger("binder")

DISRUPTION_TARGET: Final = "DisruptionTarget"
_REASON: Final = "PreemptionByScheduler"
_PAUSE_AFTER_FAILURE_S: Final = 1.0
_POD: Final = "pod"
_WHOLE_CLUSTER: Final = "cluster"
_SEEN_S_MAX: Final = 5.0
_LOOK_S: Final = 0.01
_RELEASE_EVERY_S: Final = 1.0


class Evictor(Protocol):
    """Writes to victims, and to pods that lose their nomination; `ApiClient` is one."""

    def patch_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> Awaitable[bool]:
        """Set a condition or the nominated node."""

    def remove_condition(self, pod: Pod, kind: str) -> Awaitable[None]:
        """Remove a condition."""

    def delete_pod(self, pod: Pod) -> Awaitable[bool]:
        """Delete this very pod; False if it was deleted already."""


_UNOBSERVED: Final = PreemptionObserver()


class RunningPreemptions:
    """The preemptions under way. Implements `podium.framework.contract.handle.Preemptions`.

    Args:
        lookup: returns the latest version of the pod with that key that the API server has sent.
        clock: only measures.
        is_protected: whether a pod must never be a victim, whatever its priority.
        loops: detects preemption loops; None disables the detection.

    Invariant: contains a pod from the decision to preempt until the delete of its last victim was requested.
    """

    def __init__(
        self,
        lookup: Callable[[str], Pod | None],
        observer: PreemptionObserver = _UNOBSERVED,
        clock: Clock | None = None,
        *,
        is_protected: Callable[[Pod], bool] = lambda _: False,
        loops: PreemptionLoops | None = None,
    ) -> None:
        self._lookup = lookup
        self._clock = clock or SystemClock()
        self._observer = observer
        self._is_protected = is_protected
        self._loops = loops
        self._by_uid: dict[str, Preemption] = {}

    def attempted(self) -> None:
        """Count an attempt to find victims for a pod."""
        self._observer.count_preemption_attempt()

    def attempted_for_group(self, result: str) -> None:
        """Count an attempt to find victims for a group."""
        self._observer.count_group_preemption_attempt(result)

    def begin_search(self, preemptor: str) -> Callable[[str], None]:
        """Return what ends the search for victims that begins now."""
        started_s = self._clock.monotonic()
        return lambda result: self._observer.observe_victim_search(
            preemptor, result, self._clock.monotonic() - started_s
        )

    def is_protected(self, victim: Pod) -> bool:
        """Return whether the pod must not be a victim of any preemptor."""
        return self._is_protected(victim)

    def held_back_from(self, pod: Pod) -> Collection[str]:
        """Return the nodes where the pod must not preempt for now, to break a loop."""
        return () if self._loops is None else self._loops.held_back_from(pod)

    def pop_released(self) -> Sequence[Pod]:
        """Return the pods that are no longer held back from a node, each only once."""
        return () if self._loops is None else self._loops.pop_released()

    def is_preempting(self, uid: str) -> bool:
        """Return whether deletes of the pod's victims are still outstanding.

        For the last victim, the watch decides: its delete event may arrive before the response to the delete, and must
        find the pod ready to be requeued.
        """
        preemption = self._by_uid.get(uid)
        if preemption is None:
            return False
        if not preemption.is_last_victim:
            return True
        return self.still_exists(preemption.victims[-1])

    def still_exists(self, victim: Pod) -> bool:
        """Return whether the pod exists and is not being deleted."""
        current = self._lookup(victim.key)
        return current is not None and current.uid == victim.uid and not current.is_terminating

    def observe_victims(self, preemption: Preemption, preemptor: str) -> None:
        """Count the victims of a preemption, including those that are being deleted already."""
        self._observer.observe_victims(
            preemptor, len(preemption.victims), preemption.disruptions, preemption.violations
        )

    def begin(self, preemption: Preemption) -> None:
        """Hold the pod back."""
        if self._loops is not None and preemption.group is None:
            self._loops.begin(preemption.preemptor, preemption.node_name, preemption.victims)
        self._by_uid[preemption.uid] = preemption

    def end(self, preemption: Preemption) -> None:
        """End a preemption whose deletes are requested or have failed, unless the pod has begun another meanwhile."""
        if self._by_uid.get(preemption.uid) is preemption:
            del self._by_uid[preemption.uid]


@dataclass(slots=True, eq=False)
class Preemption:
    """The instruction to preempt pods on a node, or for a group anywhere.

    Attributes:
        preemptor: the pod, or the first of the waiting pods of the group.
        victims: once the preemption has begun, without pods that are being deleted already.
        is_last_victim: whether only the last victim is left.
        ended_in_memory: whether the last victim was not bound yet, so that no watch shows it going.
        group: the group for which victims are preempted; None if they are preempted for the pod alone.
        other_pods: the other waiting pods of the group.
        disruptions: how many groups, or pods of groups, are evicted as one.
        violations: how many victims violate a disruption budget.
    """

    preemptor: Pod
    node_name: str
    victims: Sequence[Pod]
    is_last_victim: bool = False
    ended_in_memory: bool = False
    group: PodGroup | None = None
    other_pods: Sequence[Pod] = ()
    disruptions: int = 0
    violations: int = 0

    @classmethod
    def for_group(cls, group: PodGroup, pods: Sequence[Pod], plan: GroupHelp) -> Preemption:
        """Return the preemption of a plan for these waiting pods of a group."""
        preemptor, *other_pods = pods
        return cls(
            preemptor,
            _WHOLE_CLUSTER,
            plan.victims,
            group=group,
            other_pods=other_pods,
            disruptions=plan.disruptions,
            violations=plan.violations,
        )

    @property
    def uid(self) -> str:
        """The uid of the pod or the group."""
        return self.preemptor.uid if self.group is None else self.group.metadata.uid

    @property
    def key(self) -> str:
        """The key of the pod or the group."""
        return self.preemptor.key if self.group is None else self.group.key

    @property
    def priority(self) -> int:
        """The priority of the pod or the group."""
        return self.preemptor.priority if self.group is None else self.group.priority

    @property
    def kind(self) -> str:
        """The kind of the preemptor in conditions and Events."""
        return _POD if self.group is None else "podgroup"

    @property
    def pods(self) -> Sequence[Pod]:
        """The pods that wait for the preemption."""
        return (self.preemptor, *self.other_pods)


class PreemptionExecutor:
    """Carries out preemptions, each in a task of its own.

    Args:
        plugin: the name under which victims are rejected that wait at Permit or are in PreBind.
        nominated_to: the pods that are now nominated to a node.
        activate: moves the pod to the active queue.
        is_gated: whether the pod was gated when an event would have requeued it.
        takes_room: whether the pod of that uid counts on a node.
        release: which preemptions are counted, and after which the preemptor is activated.
    """

    def __init__(
        self,
        evictor: Evictor,
        events: Recorder,
        under_way: RunningPreemptions,
        *,
        plugin: str,
        waiting_pods: WaitingPods,
        pods_in_pre_bind: PodsInPreBind,
        nominated_to: Callable[[str], Iterable[Pod]],
        activate: Callable[[Pod], None],
        is_gated: Callable[[Pod], bool],
        takes_room: Callable[[str], bool],
        release: Release = NEWEST,
    ) -> None:
        self._evictor = evictor
        self._events = events
        self._under_way = under_way
        self._plugin = plugin
        self._waiting_pods = waiting_pods
        self._pods_in_pre_bind = pods_in_pre_bind
        self._nominated_to = nominated_to
        self._activate = activate
        self._is_gated = is_gated
        self._takes_room = takes_room
        self._rules = release.preemption
        self._groups = release.served(POD_GROUPS)

    def begin(self, preemption: Preemption) -> Preemption | None:
        """Hold the pod or the group back from now on; call this before it is requeued.

        Returns:
            The preemption to carry out; None if all victims are being deleted already.
        """
        victims = [victim for victim in preemption.victims if not victim.is_terminating]
        if victims or self._rules.count_terminating:
            preemptor = preemption.kind if self._rules.count_groups_apart else _POD
            self._under_way.observe_victims(preemption, preemptor)
        if not victims:
            # All of them end already: the pod only has to wait, and their deletes will wake it.
            return None
        preemption.victims = victims
        self._under_way.begin(preemption)
        return preemption

    async def carry_out(self, preemption: Preemption) -> bool:
        """Evict the victims; the pod can be retried afterwards. Raises nothing but cancellation.

        Returns:
            False if a request failed.
        """
        try:
            has_succeeded = await self._clear_lower_nominations(preemption)
            *first, last = preemption.victims
            # As upstream: the last delete must reach the watch when the pod can be queued again, so it comes alone.
            if await self._preempt_all(preemption, first):
                preemption.is_last_victim = True
                has_succeeded &= await self._preempt(preemption, last)
            else:
                has_succeeded = False
            # Its victims are still there, and an attempt at once would choose them again.
            if not has_succeeded:
                await anyio.sleep(_PAUSE_AFTER_FAILURE_S)
        finally:
            self._under_way.end(preemption)
        if has_succeeded and any(map(self._is_gated, preemption.pods)):
            await self._wait_for_room(preemption.victims)
        wakes = preemption.ended_in_memory and self._rules.wake_after_last_in_memory
        for pod in preemption.pods:
            if not has_succeeded or wakes or self._is_gated(pod):
                self._activate(pod)
        return has_succeeded

    async def wake_released(self) -> None:
        """Retry pods whose hold on a node has ended; runs until cancelled."""
        while True:
            await anyio.sleep(_RELEASE_EVERY_S)
            for pod in self._under_way.pop_released():
                self._activate(pod)

    async def _wait_for_room(self, victims: Sequence[Pod]) -> None:
        """Wait until the victims are seen to go: until then an attempt would choose them again."""
        with anyio.move_on_after(_SEEN_S_MAX):
            while any(self._takes_room(victim.uid) and self._under_way.still_exists(victim) for victim in victims):  # noqa: ASYNC110 - rare, and neither tells
                await asyncio.sleep(_LOOK_S)

    async def _clear_lower_nominations(self, preemption: Preemption) -> bool:
        """Clear the nominations of pods of lower priority on the node, which have to be placed elsewhere."""
        has_succeeded = True
        for pod in self._nominated_to(preemption.node_name):
            if pod.priority >= preemption.priority:
                continue
            try:
                await self._evictor.patch_status(pod, nominated_node_name="")
            except NotFound:
                # The pod is gone, and its nomination with it.
                continue
            except ApiError as error:
                log.error("Nomination could not be cleared", pod=pod.key, error=str(error))
                has_succeeded = False
        return has_succeeded

    async def _preempt_all(self, preemption: Preemption, victims: Sequence[Pod]) -> bool:
        """Preempt these victims concurrently."""
        results: list[bool] = []

        async def preempt(victim: Pod) -> None:
            results.append(await self._preempt(preemption, victim))

        async with anyio.create_task_group() as tasks:
            for victim in victims:
                tasks.start_soon(preempt, victim, name="preempt victim")
        return all(results)

    async def _preempt(self, preemption: Preemption, victim: Pod) -> bool:
        """Preempt one victim; True also if it was deleted already."""
        in_memory = self._stop(victim)
        preemption.ended_in_memory = in_memory and preemption.is_last_victim
        if in_memory:
            # It gives up its room on its way back to the queue. An attempt before that would choose it again, find
            # nothing left to stop, and delete it.
            await self._wait_for_room([victim])
        else:
            try:
                if not await self._delete(preemption, victim):
                    return True
            except ApiError as error:
                log.error(
                    "Victim could not be preempted",
                    preemptor=preemption.key,
                    victim=victim.key,
                    node=preemption.node_name,
                    error=str(error),
                )
                return False
        self._events.record(
            preempted_event(
                victim,
                preemption.preemptor,
                preemption.node_name,
                group=preemption.group,
                groups=self._groups,
                in_memory=in_memory,
            )
        )
        log.info(
            "Preemptor Pod preempted victim Pod",
            preemptor=preemption.key,
            victim=victim.key,
            node=preemption.node_name,
            in_memory=in_memory,
        )
        return True

    def _stop(self, victim: Pod) -> bool:
        """Reject a victim that is not bound yet: it frees its resources without being deleted."""
        waiting = self._waiting_pods.get(victim.uid)
        if waiting is not None:
            return waiting.preempt(self._plugin, "preempted")
        in_pre_bind = self._pods_in_pre_bind.get(victim.uid)
        return in_pre_bind is not None and in_pre_bind.cancel(f"preempted by {self._plugin}")

    async def _delete(self, preemption: Preemption, victim: Pod) -> bool:
        """Set the disruption condition, then delete; False if the victim was deleted already."""
        try:
            # Before the delete, because a controller that sees the pod end reads the reason from its condition.
            await self._evictor.patch_status(victim, condition=_disruption_condition(preemption, victim))
        except (NotFound, Invalid):  # Invalid: another pod has its name now
            return False
        try:
            return await self._evictor.delete_pod(victim)
        except ApiError as error:
            # If the delete may have happened, the condition is true, and must stay.
            if not error.may_have_happened:
                await self._take_back(victim)
            raise

    async def _take_back(self, victim: Pod) -> None:
        """Remove the condition of a victim that is not deleted: its later end must not look like a disruption."""
        condition = victim.status.condition(DISRUPTION_TARGET)
        try:
            if condition is None:
                await self._evictor.remove_condition(victim, DISRUPTION_TARGET)
            else:
                await self._evictor.patch_status(victim, condition=condition)
        except ApiError as error:
            log.warning("Condition could not be removed", pod=victim.key, error=str(error))


def _disruption_condition(preemption: Preemption, victim: Pod) -> PodCondition:
    name = preemption.preemptor.spec.scheduler_name
    return PodCondition(
        type=DISRUPTION_TARGET,
        status="True",
        reason=_REASON,
        message=f"{name}: preempting to accommodate a higher priority {preemption.kind}",
        observed_generation=victim.metadata.generation,
    )
