"""The pods of each group, whatever makes pods a group, kept up to date change by change."""

from __future__ import annotations

from collections.abc import Callable, Collection

from podium.framework import contract as fwk
from podium.objects.core import Pod
from podium.plugins.shared.followed import Followed


class PodsByKey:
    """The pods of a lister by a key that some of them have.

    Args:
        key_of: the pod's key; "" if it belongs to no group.
    """

    def __init__(self, lister: fwk.Lister[Pod], key_of: Callable[[Pod], str]) -> None:
        self._key_of = key_of
        self._by_key: dict[str, dict[str, Pod]] = {}
        self._followed = Followed(lister, self._on_pod_change)

    def of(self, key: str) -> Collection[Pod]:
        """Return the group's pods, as the API server has them."""
        self._followed.read()
        return self._by_key.get(key, {}).values()

    def _on_pod_change(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and (pods := self._by_key.get(key := self._key_of(old))) is not None:
            pods.pop(old.uid, None)
            if not pods:
                del self._by_key[key]
        if new is not None and (key := self._key_of(new)):
            self._by_key.setdefault(key, {})[new.uid] = new
