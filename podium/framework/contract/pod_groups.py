"""The state of pod groups that plugins see, and their answers about a group as a whole.

Source: staging kube-scheduler/framework/interface.go (PodGroupManager, PodGroupState, Placement), v1.36.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from podium.cluster import Rows
from podium.cluster.pod_groups import PodGroupState
from podium.config import PodGroupRules
from podium.objects.core import Pod


class PodGroups(Protocol):
    """The pod groups that are known, and what can be asked for them."""

    @property
    def rules(self) -> PodGroupRules:
        """The rules by which pods are scheduled in groups."""

    def state(self, key: str) -> PodGroupState | None:
        """Return the pods of the group with that key, as they are now, or None if there is none."""

    def scheduled(self) -> Iterable[Pod]:
        """The pods of all groups that have a node, bound or not; each names its node."""

    def activate(self, pods: Iterable[Pod]) -> None:
        """Move the pods to the active queue at once, whatever they wait for."""


@dataclass(frozen=True, slots=True)
class SimulatedGroup:
    """In the state of an attempt at a whole group: its pods as they are in that simulation; None outside of one."""

    state: PodGroupState | None


@dataclass(frozen=True, slots=True)
class ChosenElsewhere:
    """In the state of an attempt at a pod whose node another scheduler of a group has chosen.

    That one has asked Permit, which is not asked again, and has written the pod's claims, which are used as they are.
    """


@dataclass(frozen=True, slots=True)
class ThoroughSearch:
    """In the state of an attempt that looks for every way to place a pod.

    Attributes:
        ways_max: how many ways one plugin may find on a node; if there are more, the search misses some.
    """

    ways_max: int


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Nodes among which a whole pod group is tried, in the order in which they are looked at."""

    name: str
    rows: Rows


@dataclass(frozen=True, slots=True, eq=False)
class ProposedGroup:
    """A group with a node for each of `pods`, in one placement. `state` does not count these pods as scheduled."""

    state: PodGroupState
    placement: Placement
    pods: Sequence[Pod]
