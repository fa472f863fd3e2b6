"""Preemption that leads nowhere: victims come back to the node, and are told to go for the same pods once more.

Owns when that is a loop, who is told, and for how long those who would preempt are held back. That is so where another
scheduler gives the room that was made to the victims' successors, or where a kubelet turns the preemptor away.

Differs: upstream preempts on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from podium.binder.event import Event, noted
from podium.kube.objects import Pod
from podium.lib.clock import Clock
from podium.lib.expiring import ExpiringCache

log = structlog.get_logger(__name__)

LOOP_AT: Final = 3
"""So many times victims come back until it is a loop."""
_WINDOW_S: Final = 600.0
_HELD_BACK_S: Final = 300.0
_KNOWN_MAX: Final = 10_000


class LoopObserver(Protocol):
    """Is told of loops."""

    def count_preemption_loop(self) -> None:
        """Victims have come back once too often."""


@dataclass(frozen=True, slots=True)
class _Rounds:
    """How often victims of one owner have come back to a node, and which of its pods were there the last time."""

    count: int
    seen: frozenset[str]


class PreemptionLoops:
    """Notices loops, by who owns the preemptor and who the victims, and breaks them.

    A pod was there before and is a victim now: that is many replicas making room one after the other. A pod that has
    come since the last time is one that comes back.

    Args:
        pods_on: the pods that count on a node.
        tell: puts an Event on its way.
    """

    def __init__(
        self,
        clock: Clock,
        pods_on: Callable[[str], Iterable[Pod]],
        tell: Callable[[Event], None],
        observer: LoopObserver,
    ) -> None:
        self._pods_on = pods_on
        self._tell = tell
        self._observer = observer
        self._rounds: ExpiringCache[_Rounds] = ExpiringCache(clock, _KNOWN_MAX)
        self._held_back: ExpiringCache[bool] = ExpiringCache(clock, _KNOWN_MAX)

    def is_held_back(self, pod: Pod) -> bool:
        """Whether the pod must not preempt for now: it, or another of its owner, has done so in a loop."""
        return self._held_back.get(_owner(pod)) is not None

    def begun(self, preemptor: Pod, node_name: str, victims: Sequence[Pod]) -> None:
        """The victims are about to be told to go."""
        here = list(self._pods_on(node_name))
        for owner in dict.fromkeys(map(_owner, victims)):
            key = (_owner(preemptor), owner, node_name)
            known = self._rounds.get(key) or _Rounds(0, frozenset(each.uid for each in victims))
            came_back = any(each.uid not in known.seen for each in victims if _owner(each) == owner)
            count = known.count + came_back
            if count == LOOP_AT:
                self._break(preemptor, node_name, next(each for each in victims if _owner(each) == owner))
                count = 0
            seen = frozenset(each.uid for each in here if _owner(each) == owner)
            self._rounds.put(key, _Rounds(count, seen), _WINDOW_S)

    def _break(self, preemptor: Pod, node_name: str, victim: Pod) -> None:
        self._held_back.put(_owner(preemptor), True, _HELD_BACK_S)
        self._observer.count_preemption_loop()
        note = (
            f"Pods like {victim.key} have come back to node {node_name} {LOOP_AT} times after they were preempted for "
            f"pods like this one; no more preemption for these for {_HELD_BACK_S:.0f} s"
        )
        self._tell(noted(preemptor, "PreemptionLoop", note, "Preempting", is_warning=True))
        log.error("Preemption loop", preemptor=preemptor.key, victim=victim.key, node=node_name)


def _owner(pod: Pod) -> str:
    """What would make the pod anew; the pod's own name where nothing does."""
    return next((each.uid for each in pod.metadata.owner_references if each.controller), pod.key)
