"""The objects of the cluster that admission reads."""

from __future__ import annotations

from typing import Any, Protocol

Json = dict[str, Any]


class Lookup(Protocol):
    """Reads stored objects. They are shared and must not be changed."""

    def named(self, plural: str, name: str) -> Json | None:
        """Return the cluster-wide object of that name, or None if it does not exist."""

    def all_of(self, plural: str, namespace: str = "") -> list[Json]:
        """Return the objects of a type in a namespace, or the cluster-wide ones, by name."""
