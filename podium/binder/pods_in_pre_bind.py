"""Pods whose PreBind plugins are at work: the last moment at which preemption can still stop them.

Owns the cancellation of that work and its cause. Never decides whom to preempt.

Source: kubernetes pkg/scheduler/framework/runtime/pods_in_prebind_map.go, v1.36.2.
"""

from __future__ import annotations

import anyio


class PodInPreBind:
    """One pod's PreBind: cancellable until it is marked as done."""

    __slots__ = ("_is_pre_bound", "cause", "scope")

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.cause: str | None = None
        self._is_pre_bound = False

    def cancel(self, cause: str) -> bool:
        """Stop the work, the first cause given being the pod's error. Returns False where the pod is past stopping."""
        if self._is_pre_bound:
            return False
        if self.cause is None:
            self.cause = cause
            self.scope.cancel()
        return True

    def mark_pre_bound(self) -> bool:
        """From here on the pod cannot be stopped. Returns False where it has been stopped before."""
        self._is_pre_bound = self.cause is None
        return self._is_pre_bound


class PodsInPreBind:
    """All pods in PreBind, by uid."""

    __slots__ = ("_by_uid",)

    def __init__(self) -> None:
        self._by_uid: dict[str, PodInPreBind] = {}

    def add(self, uid: str) -> PodInPreBind:
        """PreBind of the pod begins."""
        pod = self._by_uid[uid] = PodInPreBind()
        return pod

    def get(self, uid: str) -> PodInPreBind | None:
        """The pod of that uid, None where it is not in PreBind."""
        return self._by_uid.get(uid)

    def remove(self, uid: str) -> None:
        """The pod's binding cycle is over."""
        self._by_uid.pop(uid, None)
