"""What comes of sharing nodes: pods bound to a node that somebody else has filled meanwhile.

Owns what counts as a conflict, and to whom it is put down. Never prevents one: schedulers do not know of each other's
decisions before the API server has them.

Source: kubernetes pkg/kubelet/lifecycle/predicate.go, v1.36.2, for the reasons a kubelet gives.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from podium.cluster import Cache
from podium.lib.clock import Clock
from podium.lib.expiring import ExpiringCache
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError
from podium.objects.core import Pod
from podium.service.wakeup import WakeUp
from podium.telemetry import Metrics

log = get_logger("conflicts")

OVERFULL: Final = "overfull"
AVERTED: Final = "averted"
US: Final = "podium"
OTHERS: Final = "others"

_TOGETHER_S: Final = 10.0
"""Bindings by different hands within so long are taken for concurrent."""
_NODES_MAX: Final = 20_000
_DOUBTS_MAX: Final = 100
_REJECTIONS: Final = frozenset({"NodeAffinity", "NodeName", "NodePorts", "TaintToleration", "UnexpectedAdmissionError"})


class Conflicts:
    """Counts conflicts while it runs.

    The API server's order is the order of blame: it is the later binding that should not have been made. Pods that have
    ended leave the watch without saying why, so a pod of ours that goes before it has started is read once more.

    Args:
        read_failure: the reason of a pod that has failed, empty for one that has not.

    Cost: 1 us for each binding that is seen; where another hand has bound to the same node just before, a walk over
        its pods.
    """

    def __init__(
        self, cache: Cache, clock: Clock, metrics: Metrics, read_failure: Callable[[Pod], Awaitable[str]]
    ) -> None:
        self._cache = cache
        self._metrics = metrics
        self._read_failure = read_failure
        self._landed: ExpiringCache[bool] = ExpiringCache(clock, _NODES_MAX)
        self._doubts: deque[Pod] = deque(maxlen=_DOUBTS_MAX)
        self._wake_up = WakeUp()
        self._is_counting = False
        self._clock = clock
        self._sent: dict[str, float] = {}
        self._others_until_s = 0.0
        self._tell_confirmed: Callable[[], None] = lambda: None

    def bound(self, pod: Pod, *, by_us: bool) -> None:
        """A pod was seen bound; the cache counts it already."""
        if not self._is_counting:
            return
        if by_us:
            self._sent.pop(pod.uid, None)
            self._tell_confirmed()
        else:
            self._others_until_s = self._clock.monotonic() + _TOGETHER_S
        self._landed.put((pod.node_name, by_us), True, _TOGETHER_S)
        if self._landed.get((pod.node_name, not by_us)) and self._cache.is_overfull_for(pod):
            self._count(pod, OVERFULL, US if by_us else OTHERS)

    # ------------------------------------------------------------ avoiding them

    def when_confirmed(self, tell: Callable[[], None]) -> None:
        """Tell of each pod of ours that is seen bound."""
        self._tell_confirmed = tell

    def is_too_late(self, pod: Pod) -> bool:
        """Whether another scheduler has filled the pod's node since it was assumed there: a conflict that is averted.

        If not, the pod's binding is about to be sent.
        """
        is_filled = self._cache.is_overfull_for(pod, with_assumed=True)
        if is_filled:
            self._metrics.count_conflict(AVERTED, OTHERS)
        else:
            self._sent[pod.uid] = self._clock.monotonic()
        return is_filled

    def not_bound(self, pod: Pod) -> None:
        """The binding of a pod has failed."""
        self._sent.pop(pod.uid, None)

    def unconfirmed(self) -> int | None:
        """How many bindings were sent that nobody has seen yet; None where no other scheduler binds pods just now.

        What the watch has not shown of ours, it has not shown of others either.
        """
        now_s = self._clock.monotonic()
        if now_s >= self._others_until_s:
            return None
        while self._sent and next(iter(self._sent.values())) < now_s - _TOGETHER_S:
            del self._sent[next(iter(self._sent))]
        return len(self._sent)

    def gone_before_start(self, pod: Pod) -> None:
        """A pod of ours has left the watch, and was neither deleted nor seen running."""
        if self._is_counting:
            self._doubts.append(pod)
            self._wake_up.set()

    async def run(self) -> None:
        """Count from now on, and find out about pods that went too soon, one after the other."""
        self._is_counting = True
        while True:
            await self._wake_up.wait()
            while self._doubts:
                await self._find_out(self._doubts.popleft())

    async def _find_out(self, pod: Pod) -> None:
        try:
            reason = await self._read_failure(pod)
        except ApiError as error:
            log.info("Cannot find out why a pod has ended", pod=pod.key, error=str(error))
            return
        if reason.startswith("OutOf") or reason in _REJECTIONS:
            self._count(pod, reason, US)

    def _count(self, pod: Pod, kind: str, by: str) -> None:
        self._metrics.count_conflict(kind, by)
        log.warning("Conflict with another scheduler", kind=kind, by=by, pod=pod.key, node=pod.node_name)
