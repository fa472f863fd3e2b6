"""The served member clusters, and whether the state of each is fresh.

Owns what is answered for a cluster whose state is not fresh. A fault of one cluster never affects another's answers.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final, Protocol

from podium.estimator.errors import EstimateError
from podium.estimator.member import MemberCluster

_NAMES_SHOWN: Final = 3


class Freshness(enum.Enum):
    """The reliability of a cluster's known state."""

    UNKNOWN = enum.auto()
    """The cluster has never been listed completely."""
    STALE = enum.auto()
    """The cluster was listed, but now its API server fails."""
    FRESH = enum.auto()


class OnUnsynced(enum.Enum):
    """The answer for a cluster whose state is not fresh."""

    LAST_KNOWN = "last-known"
    ERROR = "error"
    MAX = "max"


class Served(Protocol):
    """A served member cluster."""

    @property
    def cluster(self) -> MemberCluster:
        """The known state of the cluster."""
        ...

    @property
    def freshness(self) -> Freshness:
        """The reliability of that state."""
        ...


class StaticMember:
    """A member cluster that never changes, such as a recorded one."""

    freshness = Freshness.FRESH

    def __init__(self, cluster: MemberCluster) -> None:
        self.cluster = cluster


class _Superseding:
    """A member with new informers. Its earlier state answers until these have listed everything."""

    def __init__(self, earlier: Served, current: Served) -> None:
        self._before: Served | None = earlier
        self._now = current

    def _current(self) -> Served:
        if self._now.freshness is not Freshness.UNKNOWN:
            self._before = None
        return self._before or self._now

    @property
    def cluster(self) -> MemberCluster:
        """The known state of the cluster."""
        return self._current().cluster

    @property
    def freshness(self) -> Freshness:
        """Stale as long as the earlier state answers."""
        return Freshness.STALE if self._current() is self._before else self._now.freshness


class _Gone:
    """A member that is no longer watched."""

    freshness = Freshness.STALE

    def __init__(self, cluster: MemberCluster) -> None:
        self.cluster = cluster


class Members:
    """All member clusters, by their names in Karmada."""

    def __init__(self, members: Mapping[str, Served], on_unsynced: OnUnsynced = OnUnsynced.LAST_KNOWN) -> None:
        self._served = dict(members)
        self._on_unsynced = on_unsynced

    def put(self, name: str, member: Served) -> None:
        """Serve a member from now on. An earlier member of that name answers until the new one is listed."""
        earlier = self._served.get(name)
        is_known = earlier is not None and earlier.freshness is not Freshness.UNKNOWN
        self._served[name] = (
            _Superseding(_Gone(earlier.cluster), member) if earlier is not None and is_known else member
        )

    def let_go(self, name: str) -> None:
        """Stop watching a member. If it was ever listed, it is treated like one whose API server cannot be reached."""
        earlier = self._served.pop(name)
        if earlier.freshness is not Freshness.UNKNOWN:
            self._served[name] = _Gone(earlier.cluster)

    def __len__(self) -> int:
        """Return the number of served members."""
        return len(self._served)

    def fresh(self) -> Mapping[str, MemberCluster]:
        """Return the clusters whose state is fresh, by name."""
        return {name: item.cluster for name, item in self._served.items() if item.freshness is Freshness.FRESH}

    def find(self, name: str) -> MemberCluster | None:
        """Return the cluster of that name, or None if its state is not fresh and the answer is to be no limit.

        Raises:
            EstimateError: the cluster is not served, or its state is not fresh and the answer is to be an error.
        """
        member = self._served.get(name)
        if member is None:
            raise EstimateError(f"cluster name does not match, got: {name}, desire: {self._names()}")
        freshness = member.freshness
        if freshness is Freshness.FRESH:
            return member.cluster
        if self._on_unsynced is OnUnsynced.MAX:
            return None
        if self._on_unsynced is OnUnsynced.LAST_KNOWN and freshness is Freshness.STALE:
            return member.cluster
        state = "has not been listed yet" if freshness is Freshness.UNKNOWN else "cannot be reached"
        raise EstimateError(f"cluster {name} {state}")

    def _names(self) -> str:
        names = sorted(self._served)
        sample = ", ".join(names[:_NAMES_SHOWN])
        return sample if len(names) <= _NAMES_SHOWN else f"{sample} or another of {len(names)}"

    def unsynced_names(self) -> list[str]:
        """Return the clusters that have never been listed."""
        return sorted(name for name, member in self._served.items() if member.freshness is Freshness.UNKNOWN)
