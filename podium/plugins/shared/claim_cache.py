"""The resource claims of the cluster, overlaid with states that were written and that the watch has not shown yet.

Source: kubernetes pkg/scheduler/util/assumecache/assume_cache.go, v1.36.2.
Differs: an object that is older than the last one from the watch means that the API server's history has gone back, and
replaces the assumption.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from podium.framework import contract as fwk
from podium.objects.claims import EXTENDED_RESOURCE_CLAIM, ResourceClaim
from podium.objects.core import Pod
from podium.objects.resource_versions import is_older
from podium.objects.unreadable import with_known_devices
from podium.plugins.shared.followed import Followed


class ClaimCache:
    """The claims by key. Handlers see assumptions as if the watch had delivered them.

    Invariant: handlers are called after the cache holds the new state.
    """

    def __init__(self, lister: fwk.Lister[ResourceClaim]) -> None:
        # A hundred thousand claims, read by the attempt that first needs one, would hold up all others. What a claim
        # held before it became unreadable is not known later.
        self._followed = Followed(lister, self._on_change, self._on_unreadable, at_once=True)
        self._claims: dict[str, ResourceClaim] = {}
        self._before: dict[str, ResourceClaim] = {}
        """The states from the watch beneath assumptions."""
        self._special: dict[str, str] = {}
        """The keys of the claims for extended resources, by the uid of their pod."""
        self._handlers: list[Any] = []

    def add_handler(self, handler: Any) -> None:
        """Add a handler for every change, the first report of each claim included; see `client.informer.Handler`."""
        self._handlers.append(handler)

    def read(self) -> None:
        """Report the existing claims to the handlers, once. Otherwise the first access to a claim does it."""
        self._followed.read()

    def get(self, key: str) -> ResourceClaim | None:
        """Return the claim as assumed, or None if the cache has no claim with that key."""
        self._followed.read()
        return self._claims.get(key)

    def list(self) -> Iterable[ResourceClaim]:
        """Return all claims as assumed, a live view: not to be held across an await."""
        self._followed.read()
        return self._claims.values()

    def of_extended_resources(self, pod: Pod) -> ResourceClaim | None:
        """Return the claim that was made for the pod's extended resources, or None."""
        self._followed.read()
        return self._claims.get(self._special.get(pod.uid, ""))

    def assume(self, claim: ResourceClaim) -> bool:
        """Assume this state, which an API server has returned. Return False if the claim is unknown or newer."""
        current = self.get(claim.key)
        if current is None or current.metadata.uid != claim.metadata.uid:
            return False
        if is_older(claim.metadata.resource_version, current.metadata.resource_version):
            return False
        self._before.setdefault(claim.key, current)
        self._set(current, claim)
        return True

    def restore(self, key: str) -> None:
        """Drop the assumption about a claim, if there is one."""
        last_written = self._before.pop(key, None)
        if last_written is not None:
            self._set(self._claims[key], last_written)

    # ------------------------------------------------------------ changes

    def _on_change(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        """Take a new state from the watch."""
        if new is None:
            assert old is not None
            self._before.pop(old.key, None)
            current = self._claims.pop(old.key, None)
            if current is not None:
                self._index(current, None)
                for handler in self._handlers:
                    handler.on_delete(current)
            return
        current, last_written = self._claims.get(new.key), self._before.get(new.key)
        new = with_known_devices(new, current)
        if current is not None and last_written is not None:
            version = new.metadata.resource_version
            is_progress = not is_older(version, last_written.metadata.resource_version)
            if is_progress and not is_older(current.metadata.resource_version, version):
                self._before[new.key] = new
                return
            del self._before[new.key]
        self._set(current, new)

    def _on_unreadable(self, unreadable: Any) -> None:
        for handler in self._handlers:
            handler.on_broken(unreadable)

    def _set(self, old: ResourceClaim | None, new: ResourceClaim) -> None:
        self._claims[new.key] = new
        self._index(old, new)
        for handler in self._handlers:
            if old is None:
                handler.on_add(new)
            else:
                handler.on_update(old, new)

    def _index(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        for claim in (old, new):
            if claim is None or claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) != "true":
                continue
            for owner in claim.metadata.owner_references:
                if owner.controller and new is not None:
                    self._special[owner.uid] = new.key
                elif owner.controller and self._special.get(owner.uid) == claim.key:
                    del self._special[owner.uid]
