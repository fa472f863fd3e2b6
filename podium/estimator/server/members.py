"""The member clusters that are served, and whether what is known of each is fresh.

Owns what an estimate of a cluster that is not fresh comes to. One cluster's trouble never shows in another's answers.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final, Protocol

from podium.estimator.errors import EstimateError
from podium.estimator.member import MemberCluster

_NAMES_SHOWN: Final = 3


class Freshness(enum.Enum):
    """How far what is known of a cluster can be relied on."""

    UNKNOWN = enum.auto()
    """It has never been listed as a whole."""
    STALE = enum.auto()
    """It was listed, and now its API server fails."""
    FRESH = enum.auto()


class OnUnsynced(enum.Enum):
    """What to answer for a cluster that is not fresh."""

    LAST_KNOWN = "last-known"
    ERROR = "error"
    MAX = "max"


class Served(Protocol):
    """A cluster that is served."""

    @property
    def cluster(self) -> MemberCluster:
        """What is known of it."""
        ...

    @property
    def freshness(self) -> Freshness:
        """How far that can be relied on."""
        ...


class StillMember:
    """A cluster that never changes, such as a recorded one."""

    freshness = Freshness.FRESH

    def __init__(self, cluster: MemberCluster) -> None:
        self.cluster = cluster


class _Superseding:
    """A member followed anew: until everything is listed, what was known of it before."""

    def __init__(self, before: Served, now: Served) -> None:
        self._before: Served | None = before
        self._now = now

    def _current(self) -> Served:
        if self._now.freshness is not Freshness.UNKNOWN:
            self._before = None
        return self._before or self._now

    @property
    def cluster(self) -> MemberCluster:
        """What is known of it."""
        return self._current().cluster

    @property
    def freshness(self) -> Freshness:
        """Stale as long as only the earlier state is known."""
        return Freshness.STALE if self._current() is self._before else self._now.freshness


class _Gone:
    """A member that nobody follows any more."""

    freshness = Freshness.STALE

    def __init__(self, cluster: MemberCluster) -> None:
        self.cluster = cluster


class Members:
    """All member clusters, by the names that Karmada knows them by."""

    def __init__(self, served: Mapping[str, Served], on_unsynced: OnUnsynced = OnUnsynced.LAST_KNOWN) -> None:
        self._served = dict(served)
        self._on_unsynced = on_unsynced

    def put(self, name: str, served: Served) -> None:
        """Serve it from now on; what was known of a member of that name answers until this one is listed."""
        before = self._served.get(name)
        is_known = before is not None and before.freshness is not Freshness.UNKNOWN
        self._served[name] = _Superseding(_Gone(before.cluster), served) if before is not None and is_known else served

    def let_go(self, name: str) -> None:
        """The member is gone: one that was ever listed is as one that cannot be reached."""
        before = self._served.pop(name)
        if before.freshness is not Freshness.UNKNOWN:
            self._served[name] = _Gone(before.cluster)

    def __len__(self) -> int:
        """How many are served."""
        return len(self._served)

    def find(self, name: str) -> MemberCluster | None:
        """The cluster to ask; None where it is not fresh and no limit is to be answered.

        Raises:
            EstimateError: it is not served, or is not fresh and that is to be an error.
        """
        served = self._served.get(name)
        if served is None:
            raise EstimateError(f"cluster name does not match, got: {name}, desire: {self._names()}")
        freshness = served.freshness
        if freshness is Freshness.FRESH:
            return served.cluster
        if self._on_unsynced is OnUnsynced.MAX:
            return None
        if self._on_unsynced is OnUnsynced.LAST_KNOWN and freshness is Freshness.STALE:
            return served.cluster
        what = "has not been listed yet" if freshness is Freshness.UNKNOWN else "cannot be reached"
        raise EstimateError(f"cluster {name} {what}")

    def _names(self) -> str:
        names = sorted(self._served)
        shown = ", ".join(names[:_NAMES_SHOWN])
        return shown if len(names) <= _NAMES_SHOWN else f"{shown} or another of {len(names)}"

    def unsynced(self) -> list[str]:
        """The clusters that have never been listed."""
        return sorted(name for name, each in self._served.items() if each.freshness is Freshness.UNKNOWN)
