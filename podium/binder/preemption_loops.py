"""Detects and breaks preemption loops: victims come back to the node and are preempted for the same pods again.

Owns the definition of a loop, the Events about it, and the time for which the preemptors are kept from that node. Loops
arise if another scheduler gives the freed resources to the victims' successors, or if a kubelet rejects the preemptor.

A loop is between the preemptors of one owner and one node, whatever the names and owners of the pods that fill it: the
preemptors may preempt on any other node meanwhile. They are kept from the node for a second at first, and for twice as
long each time the victims come back, so that a tenant who keeps recreating pods there cannot hold them back for long.

Differs: upstream has no loop detection and keeps preempting.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from podium.binder.events.event import Event, plugin_event
from podium.binder.observer import PreemptionObserver
from podium.lib.clock import Clock
from podium.lib.expiring import ExpiringCache
from podium.lib.log import get_logger
from podium.objects.core import Pod

log = get_logger("binder")

LOOP_AT: Final = 3
"""The number of times that victims come back before that counts as a loop."""
_WINDOW_S: Final = 600.0
_HELD_BACK_S_MAX: Final = 300.0
_DOUBLINGS_MAX: Final = 9
_KNOWN_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Rounds:
    """The number of times that victims have come back to a node.

    Attributes:
        pod_uids: the pods on the node the last time, by uid.
        preemptor: the uid of the pod that preempted there the last time.
    """

    count: int
    pod_uids: frozenset[str]
    preemptor: str


@dataclass(slots=True)
class _Hold:
    """A hold that keeps one owner's preemptors from a node. `asking` are the pods that it affected, by uid."""

    until_s: float
    asking: dict[str, Pod] = field(default_factory=dict)


class PreemptionLoops:
    """Detects loops, by the owner of the preemptor and the node, and breaks them.

    If all victims were on the node before, many replicas are preempting one after the other. If one was created since
    the last time, it has come back, unless the pod that preempted last time now runs on the node.

    Args:
        pods_on: the pods that count on a node.
        record: records an Event.
    """

    def __init__(
        self,
        clock: Clock,
        pods_on: Callable[[str], Iterable[Pod]],
        record: Callable[[Event], None],
        observer: PreemptionObserver,
    ) -> None:
        self._clock = clock
        self._pods_on = pods_on
        self._record = record
        self._observer = observer
        self._rounds: ExpiringCache[_Rounds] = ExpiringCache(clock, _KNOWN_MAX)
        self._holds: dict[str, dict[str, _Hold]] = {}
        """By the preemptors' owner and then by node."""

    def held_back_from(self, pod: Pod) -> Collection[str]:
        """Return the nodes where the pod must not preempt for now, because pods of its owner have looped there."""
        holds = self._holds.get(_owner(pod))
        if not holds:
            return ()
        now_s = self._clock.monotonic()
        names = {name for name, hold in holds.items() if hold.until_s > now_s}
        for name in names:
            holds[name].asking[pod.uid] = pod
        return names

    def pop_released(self) -> list[Pod]:
        """Drop the holds that have ended; return the pods that they kept from preempting."""
        now_s = self._clock.monotonic()
        pods: dict[str, Pod] = {}
        for owner, holds in tuple(self._holds.items()):
            for name in [name for name, hold in holds.items() if hold.until_s <= now_s]:
                pods |= holds.pop(name).asking
            if not holds:
                del self._holds[owner]
        return list(pods.values())

    def begin(self, preemptor: Pod, node_name: str, victims: Sequence[Pod]) -> None:
        """Count a preemption of these victims, which is about to begin."""
        uids = {pod.uid for pod in self._pods_on(node_name)}.union(victim.uid for victim in victims)
        key = (_owner(preemptor), node_name)
        previous_round = self._rounds.get(key) or _Rounds(0, frozenset(uids), preemptor.uid)
        count, new = 0, None
        if previous_round.preemptor not in uids:
            new = next((victim for victim in victims if victim.uid not in previous_round.pod_uids), None)
            count = previous_round.count + (new is not None)
        if new is not None and count >= LOOP_AT:
            self._break(preemptor, node_name, new, count)
        self._rounds.put(key, _Rounds(count, frozenset(uids), preemptor.uid), _WINDOW_S)

    def _break(self, preemptor: Pod, node_name: str, victim: Pod, count: int) -> None:
        seconds = min(2.0 ** min(count - LOOP_AT, _DOUBLINGS_MAX), _HELD_BACK_S_MAX)
        hold = _Hold(self._clock.monotonic() + seconds)
        self._holds.setdefault(_owner(preemptor), {})[node_name] = hold
        self._observer.count_preemption_loop()
        note = (
            f"Pods like {victim.key} have come back to node {node_name} {count} times after they were preempted for "
            f"pods like this one; no preemption for these on that node for {seconds:.0f} s"
        )
        self._record(plugin_event(preemptor, "PreemptionLoop", note, "Preempting", is_warning=True))
        log.error(
            "Preemption loop", preemptor=preemptor.key, victim=victim.key, node=node_name, times=count, seconds=seconds
        )


def _owner(pod: Pod) -> str:
    """Return the pod's controller, which would recreate it; without a controller, the pod's own name."""
    controller = pod.metadata.controller
    return pod.key if controller is None else controller.uid
