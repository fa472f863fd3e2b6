"""The PodGroupPostFilter extension point: what can be done for a pod group that cannot be scheduled.

Source: staging kube-scheduler/framework/interface.go (PodGroupPostFilterPlugin), v1.37.2.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from podium.cluster import PodUsage, Snapshot
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.status import Status
from podium.framework.contract.steps import Steps
from podium.objects.core import Pod
from podium.objects.pod_groups import PodGroup


@dataclass(frozen=True, slots=True)
class GroupHelp:
    """What makes a pod group fit.

    Attributes:
        victims: the pods to evict, the most important one first.
        nominations: by the uid of a pod, the node that it is nominated to, "" for none. Others keep their nomination.
        message: what the status of the group says about it.
        disruptions: how many groups, or pods of groups, are evicted as one.
        violations: how many victims violate a disruption budget.
    """

    victims: tuple[Pod, ...]
    nominations: Mapping[str, str] = field(default_factory=dict)
    message: str = ""
    disruptions: int = 0
    violations: int = 0


class GroupDryRun(Protocol):
    """A pod group with a node for each of its pods that fit, in a fork of the snapshot where victims come and go.

    Raises: `PluginError` from `add`, `remove` and `still_fits`, if a plugin fails.
    """

    @property
    def status(self) -> Status | None:
        """Why the group does not fit in the fork as it was; None if it does."""

    @property
    def nominations(self) -> Mapping[str, str]:
        """The node of each pod that fits, by the pod's uid."""

    def add(self, row: int, pod: Pod, usage: PodUsage) -> None:
        """Put a pod back that was taken off its node."""

    def remove(self, row: int, pod: Pod) -> None:
        """Take a pod off its node again."""

    def still_fits(self) -> bool:
        """Return whether each pod of the group still fits on its node, beside those before it."""


class PodAttempt(NamedTuple):
    """The attempt at one pod of a group; `pre_filtered_by` are the PreFilter plugins that it reached."""

    pod: Pod
    state: CycleState
    pre_filtered_by: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class UnscheduledGroup:
    """A pod group for which no placement was found.

    Attributes:
        pods: the waiting pods of the group, in the order in which they are tried.
        attempts: the attempts at those that were tried.
        simulate: tries the group once more on a fork of the snapshot.
    """

    group: PodGroup
    pods: Sequence[Pod]
    attempts: Sequence[PodAttempt]
    snapshot: Snapshot
    simulate: Callable[[Snapshot], Steps[GroupDryRun]]


class PodGroupPostFilterPlugin(Plugin):
    """Runs when a pod group as a whole cannot be scheduled."""

    @abstractmethod
    def pod_group_post_filter(self, unscheduled: UnscheduledGroup) -> Steps[GroupHelp | Status]:
        """Return what helps the group, or why nothing does."""
