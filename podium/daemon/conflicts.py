"""Detects conflicts between schedulers: pods bound to a node that another scheduler has filled meanwhile.

Owns what counts as a conflict, and which scheduler is held responsible. Cannot prevent conflicts: schedulers learn of
each other's decisions only through the API server.

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
from podium.server.wakeup import WakeUp
from podium.telemetry import Metrics

log = get_logger("conflicts")

OVERFULL: Final = "overfull"
AVERTED: Final = "averted"
US: Final = "podium"
OTHERS: Final = "others"

_TOGETHER_S: Final = 10.0
"""Bindings by different schedulers within this time are taken for concurrent."""
_NODES_MAX: Final = 20_000
_DOUBTS_MAX: Final = 100
_REJECTIONS: Final = frozenset({"NodeAffinity", "NodeName", "NodePorts", "TaintToleration", "UnexpectedAdmissionError"})


class Conflicts:
    """Counts conflicts while it runs.

    The API server's order decides which scheduler is responsible: that of the later binding. Pods that have ended leave
    the watch without a reason, so a pod that podium bound and that goes away before it has started is read once more.

    Args:
        read_failure: returns the reason of a failed pod; empty if the pod has not failed.

    Cost: 1 us for each binding that the watch shows; if another scheduler has bound to the same node just before, a
        walk over the node's pods.
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

    def on_bound(self, pod: Pod, *, by_us: bool) -> None:
        """Check a pod that the watch shows bound; the cache counts it already."""
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

    def on_confirmed(self, tell: Callable[[], None]) -> None:
        """Set the callback for bindings by podium that the watch confirms."""
        self._tell_confirmed = tell

    def is_too_late(self, pod: Pod) -> bool:
        """Return True if another scheduler has filled the pod's node since it was assumed: the conflict is averted.

        If not, the pod's binding counts as sent from now on.
        """
        is_filled = self._cache.is_overfull_for(pod, with_assumed=True)
        if is_filled:
            self._metrics.count_conflict(AVERTED, OTHERS)
        else:
            self._sent[pod.uid] = self._clock.monotonic()
        return is_filled

    def not_bound(self, pod: Pod) -> None:
        """Forget the pod, whose binding has failed."""
        self._sent.pop(pod.uid, None)

    def unconfirmed_count(self) -> int | None:
        """Return the number of sent bindings that the watch has not confirmed; None if no other scheduler binds now.

        While the watch lags behind podium's own bindings, it lags behind other schedulers' bindings too.
        """
        now_s = self._clock.monotonic()
        if now_s >= self._others_until_s:
            return None
        while self._sent and next(iter(self._sent.values())) < now_s - _TOGETHER_S:
            del self._sent[next(iter(self._sent))]
        return len(self._sent)

    def left_before_start(self, pod: Pod) -> None:
        """Count a pod that podium bound and that left the watch without having been deleted or seen running."""
        if self._is_counting:
            self._doubts.append(pod)
            self._wake_up.set()

    async def run(self) -> None:
        """Count conflicts until cancelled, and look up, one at a time, pods that left the watch too early."""
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
