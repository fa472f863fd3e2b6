"""Pods whose PreBind plugins are running: the last moment at which preemption can still stop them.

Owns the cancellation of PreBind and its cause. Never decides which pods to preempt.

Source: kubernetes pkg/scheduler/framework/runtime/pods_in_prebind_map.go, v1.36.2.
"""

from __future__ import annotations

import anyio


class PodInPreBind:
    """One pod's PreBind, which can be cancelled until it is marked as done."""

    __slots__ = ("_is_pre_bound", "cause", "scope")

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.cause: str | None = None
        self._is_pre_bound = False

    def cancel(self, cause: str) -> bool:
        """Stop PreBind; the first cause becomes the pod's error. Return False if it is too late to stop the pod."""
        if self._is_pre_bound:
            return False
        if self.cause is None:
            self.cause = cause
            self.scope.cancel()
        return True

    def mark_pre_bound(self) -> bool:
        """Mark PreBind as done: the pod can no longer be stopped. Return False if it was stopped before."""
        self._is_pre_bound = self.cause is None
        return self._is_pre_bound


class PodsInPreBind:
    """All pods in PreBind, by uid."""

    __slots__ = ("_by_uid",)

    def __init__(self) -> None:
        self._by_uid: dict[str, PodInPreBind] = {}

    def add(self, uid: str) -> PodInPreBind:
        """Add a pod whose PreBind has started."""
        pod = self._by_uid[uid] = PodInPreBind()
        return pod

    def get(self, uid: str) -> PodInPreBind | None:
        """Return the pod with that uid; None if it is not in PreBind."""
        return self._by_uid.get(uid)

    def remove(self, uid: str) -> None:
        """Remove a pod whose binding cycle has ended."""
        self._by_uid.pop(uid, None)
