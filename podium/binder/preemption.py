"""Preemption carried out: the victims of a pod are told to go, while the pod itself is held back.

Owns who is making room for whom, the order in which victims go, and what their pods are told. Never chooses victims
and never binds the pod they make room for: that comes up again when the room is there.

Source: kubernetes pkg/scheduler/framework/preemption/executor.go, v1.36.2; KEP-4832.
Differs: a victim is deleted by uid, so that no other pod of its name can be hit, and deletes that cannot have happened
are tried again as status patches are. Where the delete of a victim fails for good, the condition that announced it is
taken back. A failure does not stop the deletes of other victims that are under way, only that of the last; and the pod
is tried again a second later, not at once, so that a server that refuses is not asked over and over. A pod that an
event would have woken while it was held back is tried afterwards, once its victims are seen to go: the events that are
left need not be such as wake it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import anyio

from podium.binder.binding_cycle import Recorder
from podium.binder.events.event import preempted
from podium.binder.pods_in_pre_bind import PodsInPreBind
from podium.binder.preemption_loops import PreemptionLoops
from podium.binder.waiting_pods import WaitingPods
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError, Invalid, NotFound
from podium.objects.core import Pod, PodCondition

log = get_logger("binder")

DISRUPTION_TARGET: Final = "DisruptionTarget"
_REASON: Final = "PreemptionByScheduler"
_PAUSE_AFTER_FAILURE_S: Final = 1.0
_SEEN_S_MAX: Final = 1.0
_LOOK_S: Final = 0.01
_RELEASE_EVERY_S: Final = 1.0


class Evictor(Protocol):
    """What is written about victims, and about pods that lose their nomination; `ApiClient` is one."""

    def patch_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> Awaitable[bool]:
        """Set a condition or the nominated node."""

    def remove_condition(self, pod: Pod, kind: str) -> Awaitable[None]:
        """Take a condition away."""

    def delete_pod(self, pod: Pod) -> Awaitable[bool]:
        """Delete this very pod; False where it is gone already."""


class PreemptionObserver(Protocol):
    """Is told of preemptions."""

    def count_preemption_attempt(self) -> None:
        """A pod has looked for victims."""

    def observe_victims(self, victims: int) -> None:
        """A preemption begins that has so many victims."""


class PreemptionsUnderWay:
    """Who makes room for whom. Implements `podium.framework.contract.interface.Preemptions`.

    Args:
        lookup: the pod of that key as the API server last had it.
        spares: whether a pod is nobody's victim, whatever its priority.
        loops: who notices them; None for nobody.

    Invariant: a pod is in here from the decision to preempt until its last victim has been told to go.
    """

    def __init__(
        self,
        lookup: Callable[[str], Pod | None],
        observer: PreemptionObserver,
        *,
        spares: Callable[[Pod], bool] = lambda _: False,
        loops: PreemptionLoops | None = None,
    ) -> None:
        self._lookup = lookup
        self._observer = observer
        self._spares = spares
        self._loops = loops
        self._of: dict[str, Preemption] = {}

    def attempted(self) -> None:
        """A pod has looked for victims."""
        self._observer.count_preemption_attempt()

    def spares(self, victim: Pod) -> bool:
        """Whether the pod stays, whoever wants its room."""
        return self._spares(victim)

    def held_back_from(self, pod: Pod) -> Collection[str]:
        """The nodes where the pod would only go on with a loop."""
        return () if self._loops is None else self._loops.held_back_from(pod)

    def released(self) -> Sequence[Pod]:
        """The pods that were held back from a node and no longer are; each is named once."""
        return () if self._loops is None else self._loops.released()

    def is_preempting(self, uid: str) -> bool:
        """Whether victims of the pod are still to be told to go.

        The last one's end is read off the cluster: the event that tells of it may come before our request returns,
        and must find the pod ready to be tried.
        """
        preemption = self._of.get(uid)
        if preemption is None:
            return False
        if not preemption.is_at_last:
            return True
        return self.stays(preemption.victims[-1])

    def stays(self, victim: Pod) -> bool:
        """Whether the pod is there and is not seen to go."""
        now = self._lookup(victim.key)
        return now is not None and now.uid == victim.uid and not now.is_terminating

    def begin(self, preemption: Preemption, chosen: int) -> None:
        """Hold the pod back; so many victims were chosen, those included that are on their way out already."""
        self._observer.observe_victims(chosen)
        if self._loops is not None:
            self._loops.begun(preemption.preemptor, preemption.node_name, preemption.victims)
        self._of[preemption.preemptor.uid] = preemption

    def end(self, preemption: Preemption) -> None:
        """All victims have been told, or that has failed. The pod may have begun another one in the meantime."""
        if self._of.get(preemption.preemptor.uid) is preemption:
            del self._of[preemption.preemptor.uid]


@dataclass(slots=True, eq=False)
class Preemption:
    """The instruction to make room on a node. `victims` are those that are not on their way out already.

    `is_at_last`: only the last of them is left.
    """

    preemptor: Pod
    node_name: str
    victims: Sequence[Pod]
    is_at_last: bool = False


class PreemptionExecutor:
    """Carries preemptions out, one task for each.

    Args:
        plugin: the name under which victims that wait at Permit, or are in PreBind, are stopped.
        nominated_to: the pods that are nominated to a node, as they are now.
        activate: try the pod again.
        is_gated: whether the pod was kept out of the queues when an event would have woken it.
        takes_room: whether the pod of that uid counts on a node.
    """

    def __init__(
        self,
        evictor: Evictor,
        events: Recorder,
        under_way: PreemptionsUnderWay,
        *,
        plugin: str,
        waiting_pods: WaitingPods,
        pods_in_pre_bind: PodsInPreBind,
        nominated_to: Callable[[str], Iterable[Pod]],
        activate: Callable[[Pod], None],
        is_gated: Callable[[Pod], bool],
        takes_room: Callable[[str], bool],
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

    def begin(self, preemptor: Pod, node_name: str, victims: Sequence[Pod]) -> Preemption | None:
        """Hold the pod back from now on; to be called before it returns to the queue.

        Returns:
            What to carry out; None where all victims are on their way out already.
        """
        left = [victim for victim in victims if not victim.is_terminating]
        if not left:
            return None
        preemption = Preemption(preemptor, node_name, left)
        self._under_way.begin(preemption, len(victims))
        return preemption

    async def carry_out(self, preemption: Preemption) -> bool:
        """Tell everybody concerned; the pod can be tried again afterwards. Raises nothing but cancellation.

        Returns:
            Whether all went well.
        """
        try:
            succeeded = await self._clear_lower_nominations(preemption)
            *first, last = preemption.victims
            if await self._preempt_all(preemption, first):
                preemption.is_at_last = True
                succeeded &= await self._preempt(preemption, last)
            else:
                succeeded = False
            if not succeeded:
                await anyio.sleep(_PAUSE_AFTER_FAILURE_S)
        finally:
            self._under_way.end(preemption)
        if succeeded and self._is_gated(preemption.preemptor):
            await self._see_them_go(preemption.victims)
        if not succeeded or self._is_gated(preemption.preemptor):
            self._activate(preemption.preemptor)
        return succeeded

    async def wake_released(self) -> None:
        """Try pods again that were held back from a node for a while; runs until cancelled."""
        while True:
            await anyio.sleep(_RELEASE_EVERY_S)
            for pod in self._under_way.released():
                self._activate(pod)

    async def _see_them_go(self, victims: Sequence[Pod]) -> None:
        """Wait for the watch, which follows the answers: until then an attempt would choose the same victims again."""
        with anyio.move_on_after(_SEEN_S_MAX):
            while any(self._takes_room(each.uid) and self._under_way.stays(each) for each in victims):  # noqa: ASYNC110 - rare, and neither tells
                await anyio.sleep(_LOOK_S)

    async def _clear_lower_nominations(self, preemption: Preemption) -> bool:
        """Pods of lower priority that count on the same room have to look elsewhere."""
        succeeded = True
        for pod in self._nominated_to(preemption.node_name):
            if pod.priority >= preemption.preemptor.priority:
                continue
            try:
                await self._evictor.patch_status(pod, nominated_node_name="")
            except NotFound:
                continue
            except ApiError as error:
                log.error("Nomination could not be cleared", pod=pod.key, error=str(error))
                succeeded = False
        return succeeded

    async def _preempt_all(self, preemption: Preemption, victims: Sequence[Pod]) -> bool:
        """Preempt these at the same time."""
        results: list[bool] = []

        async def preempt(victim: Pod) -> None:
            results.append(await self._preempt(preemption, victim))

        async with anyio.create_task_group() as tasks:
            for victim in victims:
                tasks.start_soon(preempt, victim, name="preempt victim")
        return all(results)

    async def _preempt(self, preemption: Preemption, victim: Pod) -> bool:
        """Make one victim go; True also where it is gone already."""
        in_memory = self._stop(victim)
        if not in_memory:
            try:
                if not await self._delete(preemption, victim):
                    return True
            except ApiError as error:
                log.error(
                    "Victim could not be preempted",
                    preemptor=preemption.preemptor.key,
                    victim=victim.key,
                    node=preemption.node_name,
                    error=str(error),
                )
                return False
        self._events.record(preempted(victim, preemption.preemptor, preemption.node_name, in_memory=in_memory))
        log.info(
            "Preemptor Pod preempted victim Pod",
            preemptor=preemption.preemptor.key,
            victim=victim.key,
            node=preemption.node_name,
            in_memory=in_memory,
        )
        return True

    def _stop(self, victim: Pod) -> bool:
        """Stop a victim that is not bound yet: it gives its room back without being deleted."""
        waiting = self._waiting_pods.get(victim.uid)
        if waiting is not None:
            return waiting.preempt(self._plugin, "preempted")
        in_pre_bind = self._pods_in_pre_bind.get(victim.uid)
        return in_pre_bind is not None and in_pre_bind.cancel(f"preempted by {self._plugin}")

    async def _delete(self, preemption: Preemption, victim: Pod) -> bool:
        """Announce the disruption, then delete; False where the victim is gone already."""
        try:
            await self._evictor.patch_status(victim, condition=_disrupted(preemption.preemptor, victim))
        except (NotFound, Invalid):  # Invalid: another pod has its name by now
            return False
        try:
            return await self._evictor.delete_pod(victim)
        except ApiError as error:
            if not error.may_have_happened:
                await self._take_back(victim)
            raise

    async def _take_back(self, victim: Pod) -> None:
        """The victim stays after all: nobody shall think that its end, if it ends, was a disruption."""
        before = victim.status.condition(DISRUPTION_TARGET)
        try:
            if before is None:
                await self._evictor.remove_condition(victim, DISRUPTION_TARGET)
            else:
                await self._evictor.patch_status(victim, condition=before)
        except ApiError as error:
            log.warning("Condition could not be taken back", pod=victim.key, error=str(error))


def _disrupted(preemptor: Pod, victim: Pod) -> PodCondition:
    return PodCondition(
        type=DISRUPTION_TARGET,
        status="True",
        reason=_REASON,
        message=f"{preemptor.spec.scheduler_name}: preempting to accommodate a higher priority pod",
        observed_generation=victim.metadata.generation,
    )
