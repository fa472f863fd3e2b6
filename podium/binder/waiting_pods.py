"""Pods that a Permit plugin makes wait between their scheduling cycle and their binding.

Owns the plugins that each pod waits for, their deadlines, and the one signal that ends a wait. Starts no timer per pod:
a timeout is noticed when the pod is accessed, or by the binding cycle that awaits it.

Source: kubernetes pkg/scheduler/framework/runtime/waiting_pods_map.go, v1.36.2; spec of the wait: KEP-624.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import anyio

from podium.config import format_duration
from podium.framework.contract.status import Code, Status
from podium.framework.profile.runtime import PERMIT_TIMEOUT_S_MAX
from podium.lib.clock import Clock
from podium.objects.core import Pod


class WaitingPod:
    """One pod and the plugins that it still waits for.

    The first signal wins; later ones have no effect. A plugin's timeout is a signal too; it counts from the moment it
    was due, even if it is noticed only later.

    Args:
        timeouts_s: the longest wait by plugin name; at least one.
        on_reject: called when the wait ends otherwise than by the plugins' consent.
    """

    __slots__ = (
        "_clock",
        "_deadlines_s",
        "_has_ended",
        "_rejected",
        "_signal",
        "_timeouts_s",
        "_wake",
        "node_name",
        "pod",
    )

    def __init__(
        self,
        pod: Pod,
        node_name: str,
        timeouts_s: Mapping[str, float],
        clock: Clock,
        on_reject: Callable[[], None] = lambda: None,
    ) -> None:
        assert timeouts_s, "a waiting pod waits for at least one plugin"
        self.pod = pod
        self.node_name = node_name
        self._clock = clock
        now_s = clock.monotonic()
        # As upstream: no plugin may hold resources for longer than 15 minutes.
        self._timeouts_s = {plugin: min(wait_s, PERMIT_TIMEOUT_S_MAX) for plugin, wait_s in timeouts_s.items()}
        self._deadlines_s = {plugin: now_s + wait_s for plugin, wait_s in self._timeouts_s.items()}
        self._rejected = on_reject
        self._signal: Status | None = None
        self._has_ended = False
        self._wake: anyio.Event | None = None

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        """The plugins that have not allowed the pod yet."""
        return tuple(self._deadlines_s)

    @property
    def left_s(self) -> float:
        """The longest remaining wait in seconds."""
        return max(min(self._deadlines_s.values(), default=0.0) - self._clock.monotonic(), 0.0)

    @property
    def is_rejected(self) -> bool:
        """True if the wait has ended otherwise than by the plugins' consent."""
        return self._signal is not None

    def allow(self, plugin: str) -> None:
        """Record the plugin's consent; the wait ends with that of the last plugin."""
        if self.is_open():
            self._deadlines_s.pop(plugin, None)
            if not self._deadlines_s:
                self._end_wait()

    def reject(self, plugin: str, message: str) -> bool:
        """End the wait at once: the pod is unschedulable. Return whether this was the first signal."""
        return self._end(Status(Code.UNSCHEDULABLE, (message,), plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        """End the wait at once with an error, after which the pod is retried. Return as `reject`."""
        return self._end(Status(Code.ERROR, (message,), plugin))

    async def wait(self) -> Status | None:
        """Wait for the signal and return it; None if every plugin has allowed the pod."""
        # In a loop, since allowing a plugin may leave a later deadline.
        while self.is_open():
            # Made only here: the last pod of a gang lets the others through before anything waits for them.
            self._wake = self._wake or anyio.Event()
            with anyio.move_on_after(min(self._deadlines_s.values()) - self._clock.monotonic()):
                await self._wake.wait()
        return self._signal

    def is_open(self) -> bool:
        """Return whether there is no signal yet, counting a timeout that has passed."""
        # A decision stands, whatever is said after it.
        if self._has_ended:
            return False
        plugin = min(self._deadlines_s, key=self._deadlines_s.__getitem__)
        if self._deadlines_s[plugin] > self._clock.monotonic():
            return True
        waited = format_duration(self._timeouts_s[plugin])
        self._close(
            Status(Code.UNSCHEDULABLE, (f"rejected due to timeout after waiting {waited} at plugin {plugin}",), plugin)
        )
        return False

    def _end_wait(self) -> None:
        self._has_ended = True
        if self._wake is not None:
            self._wake.set()

    def _end(self, signal: Status) -> bool:
        if not self.is_open():
            return False
        self._close(signal)
        return True

    def _close(self, signal: Status) -> None:
        self._signal = signal
        self._end_wait()
        self._rejected()


class WaitingPods:
    """All pods that wait at Permit, by uid.

    Invariant: contains a pod from the end of its scheduling cycle until its binding cycle has seen the signal.

    Attributes:
        rejections: the number of waits that have ended otherwise than by the plugins' consent.
    """

    __slots__ = ("_by_uid", "_clock", "rejections")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_uid: dict[str, WaitingPod] = {}
        self.rejections = 0

    def add(self, pod: Pod, node_name: str, timeouts_s: Mapping[str, float]) -> WaitingPod:
        """Add a pod that Permit plugins make wait; see `WaitingPod`."""
        waiting = self._by_uid[pod.uid] = WaitingPod(pod, node_name, timeouts_s, self._clock, self._count_rejection)
        return waiting

    def _count_rejection(self) -> None:
        self.rejections += 1

    def get(self, uid: str) -> WaitingPod | None:
        """Return the waiting pod of that uid."""
        return self._by_uid.get(uid)

    def remove(self, uid: str) -> None:
        """Remove the pod, whose wait has ended or has never started."""
        self._by_uid.pop(uid, None)

    def reject(self, uid: str) -> bool:
        """End the wait of a deleted pod, if it waits. Return whether that ended a wait."""
        waiting = self._by_uid.get(uid)
        return waiting is not None and waiting.reject("", "removed")

    def __iter__(self) -> Iterator[WaitingPod]:
        """Return the pods waiting now; others may be added or removed meanwhile."""
        return iter(tuple(self._by_uid.values()))

    def __len__(self) -> int:
        return len(self._by_uid)
