"""Detects and breaks preemption loops: victims come back to the node and are preempted for the same pods again.

Owns when that is a loop, the Events about it, and how long the preemptors are kept from that node. Loops arise if
another scheduler gives the freed resources to the victims' successors, or if a kubelet rejects the preemptor.

A loop is between the preemptors of one owner and whoever fills one node, with pods of whatever names and owners: the
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
"""How many times victims come back before that counts as a loop."""
_WINDOW_S: Final = 600.0
_HELD_BACK_S_MAX: Final = 300.0
_DOUBLINGS_MAX: Final = 9
_KNOWN_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Rounds:
    """How often victims have come back to a node.

    Attributes:
        seen: the pods that were there the last time, by uid.
        preemptor: the uid of the pod that preempted there the last time.
    """

    count: int
    seen: frozenset[str]
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
        tell: records an Event.
    """

    def __init__(
        self,
        clock: Clock,
        pods_on: Callable[[str], Iterable[Pod]],
        tell: Callable[[Event], None],
        observer: PreemptionObserver,
    ) -> None:
        self._clock = clock
        self._pods_on = pods_on
        self._tell = tell
        self._observer = observer
        self._rounds: ExpiringCache[_Rounds] = ExpiringCache(clock, _KNOWN_MAX)
        self._holds: dict[str, dict[str, _Hold]] = {}
        """By the preemptors' owner and then by node."""

    def held_back_from(self, pod: Pod) -> Collection[str]:
        """The nodes where the pod must not preempt for now, because pods of its owner have looped there."""
        holds = self._holds.get(_owner(pod))
        if not holds:
            return ()
        now_s = self._clock.monotonic()
        names = {name for name, hold in holds.items() if hold.until_s > now_s}
        for name in names:
            holds[name].asking[pod.uid] = pod
        return names

    def released(self) -> list[Pod]:
        """Drop the holds that have ended; returns the pods that they kept from preempting."""
        now_s = self._clock.monotonic()
        pods: dict[str, Pod] = {}
        for owner, holds in tuple(self._holds.items()):
            for name in [name for name, hold in holds.items() if hold.until_s <= now_s]:
                pods |= holds.pop(name).asking
            if not holds:
                del self._holds[owner]
        return list(pods.values())

    def begun(self, preemptor: Pod, node_name: str, victims: Sequence[Pod]) -> None:
        """The victims are about to be preempted."""
        here = {each.uid for each in self._pods_on(node_name)}.union(each.uid for each in victims)
        key = (_owner(preemptor), node_name)
        known = self._rounds.get(key) or _Rounds(0, frozenset(here), preemptor.uid)
        count, new = 0, None
        if known.preemptor not in here:
            new = next((each for each in victims if each.uid not in known.seen), None)
            count = known.count + (new is not None)
        if new is not None and count >= LOOP_AT:
            self._break(preemptor, node_name, new, count)
        self._rounds.put(key, _Rounds(count, frozenset(here), preemptor.uid), _WINDOW_S)

    def _break(self, preemptor: Pod, node_name: str, victim: Pod, count: int) -> None:
        seconds = min(2.0 ** min(count - LOOP_AT, _DOUBLINGS_MAX), _HELD_BACK_S_MAX)
        hold = _Hold(self._clock.monotonic() + seconds)
        self._holds.setdefault(_owner(preemptor), {})[node_name] = hold
        self._observer.count_preemption_loop()
        note = (
            f"Pods like {victim.key} have come back to node {node_name} {count} times after they were preempted for "
            f"pods like this one; no preemption for these on that node for {seconds:.0f} s"
        )
        self._tell(plugin_event(preemptor, "PreemptionLoop", note, "Preempting", is_warning=True))
        log.error(
            "Preemption loop", preemptor=preemptor.key, victim=victim.key, node=node_name, times=count, seconds=seconds
        )


def _owner(pod: Pod) -> str:
    """The pod's controller, which would recreate it; the pod's own name if it has none."""
    controller = pod.metadata.controller
    return pod.key if controller is None else controller.uid
