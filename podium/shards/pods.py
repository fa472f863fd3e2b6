"""Which member decides on a pending pod, and on which nodes. Every member computes the same from what all of them see.

A pod goes to the member that its owner's hash ranks first. Where it fits nowhere, the member writes its name into a
condition of the pod, and the next one in the ranking tries; once all have, the overseer places it on any node and may
preempt. Pods whose rules reach over shards, and gangs, go to the overseer from the start. It binds to
its own nodes only: a pod that it places on another's is handed to the owner with that node in the condition, and the
owner binds it there or refuses it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol

from podium.objects.core import Pod, PodCondition, PodSpec, once_per_spec
from podium.objects.coscheduling import GROUP_LABEL
from podium.objects.errors import FieldError
from podium.objects.pod_groups import group_of
from podium.objects.requests import pod_requests
from podium.shards.announcement import NAME, OVERSEER, View
from podium.shards.rendezvous import owner, ranking

CONDITION: Final = "podium/shards"
"""The type of the pod's condition in which members tell each other about the pod."""

_HOSTNAME: Final = "kubernetes.io/hostname"
_DO_NOT_SCHEDULE: Final = "DoNotSchedule"
_TRIED, _NODE = "tried: ", "node: "


class Role(enum.Enum):
    """What a member does with a pending pod."""

    NONE = "none"
    """Another member decides."""
    HOME = "home"
    """The member tries its own nodes, without preemption."""
    ALL = "all"
    """The member tries all nodes, and hands the pod over if it chooses another's."""
    TARGET = "target"
    """The member tries the one node that another member has chosen."""


@dataclass(frozen=True, slots=True)
class Visits:
    """What members have written about a pod.

    Attributes:
        tried: the members on whose nodes it did not fit.
        node: where its owner shall bind it; "" for nowhere.
    """

    tried: frozenset[str] = frozenset()
    node: str = ""

    @classmethod
    def of(cls, pod: Pod) -> Visits:
        """Read the pod's condition; what cannot be read is left out."""
        condition = pod.status.condition(CONDITION)
        if condition is None:
            return _NO_VISITS
        names: frozenset[str] = frozenset()
        node = ""
        for part in condition.message.split("; "):
            if part.startswith(_TRIED):
                listed_names = part.removeprefix(_TRIED).split(", ")
                names = frozenset(name for name in listed_names if NAME.fullmatch(name))
            elif part.startswith(_NODE):
                node = part.removeprefix(_NODE)
        return cls(names, node)

    def after(self, member: str) -> Visits:
        """Return the visits once the pod did not fit on this member's nodes."""
        return replace(self, tried=self.tried | {member})

    def condition(self) -> PodCondition:
        """Return the condition to write into the pod."""
        parts = [f"{_TRIED}{', '.join(sorted(self.tried))}"] if self.tried else []
        if self.node:
            parts.append(f"{_NODE}{self.node}")
        reason = "Placed" if self.node else "NextShard" if self.tried else "Refused"
        return PodCondition(type=CONDITION, status="False", reason=reason, message="; ".join(parts))


_NO_VISITS: Final = Visits()


def is_in_gang(pod: Pod) -> bool:
    """Return whether the pod starts together with others."""
    return group_of(pod) is not None or GROUP_LABEL in pod.metadata.labels


class _Owner(Protocol):
    @property
    def uid(self) -> str: ...


class OwnedMeta(Protocol):
    """The metadata of a pod, as far as its member goes by it."""

    @property
    def uid(self) -> str:
        """The pod's own."""
        ...

    @property
    def controller(self) -> _Owner | None:
        """The object that manages the pod."""
        ...


def owner_key(metadata: OwnedMeta) -> str:
    """Return the key that decides on the member of a pod with this metadata: its controller, or the pod itself."""
    controller = metadata.controller
    return f"pod/{metadata.uid}" if controller is None else f"owner/{controller.uid}"


def sees_all(spec: PodSpec, shard_key: str, is_device: Callable[[str], bool] = lambda _: False) -> bool:
    """Return whether the rules of such pods reach over shards, so that two members could break them together.

    These are hard spreads, required terms over topologies that shards share, and devices, which the nodes of several
    shards may reach.

    Args:
        is_device: whether an extended resource is one of devices, for which the scheduler makes a claim.
    """
    if spec.resource_claims or any(is_device(name) for name in _extended_resources(spec)):
        return True
    if any(rule.when_unsatisfiable == _DO_NOT_SCHEDULE for rule in spec.topology_spread_constraints):
        return True
    affinity = spec.affinity
    if affinity is None:
        return False
    return any(
        term.topology_key not in (_HOSTNAME, shard_key)
        for terms in (affinity.pod_affinity, affinity.pod_anti_affinity)
        if terms is not None
        for term in terms.required
    )


def needs_all_pods(spec: PodSpec) -> bool:
    """Return whether a decision on such pods counts pods on nodes of other members, too."""
    affinity = spec.affinity
    has_terms = affinity is not None and bool(affinity.pod_affinity or affinity.pod_anti_affinity)
    return has_terms or bool(spec.topology_spread_constraints)


@once_per_spec
def _extended_resources(spec: PodSpec) -> tuple[str, ...]:
    try:
        return tuple(name for name in pod_requests(spec) if "/" in name)
    except FieldError:
        return ()  # The handler of pods reports it.


def needs_overseer(pod: Pod, shard_key: str, is_device: Callable[[str], bool]) -> bool:
    """Return whether only a member that sees all nodes may decide on the pod, wherever it fits."""
    # One member has all gangs: two that see all nodes would place two gangs on the same ones, and neither as a whole.
    return is_in_gang(pod) or sees_all(pod.spec, shard_key, is_device)


def role_of(
    pod: Pod,
    member: str,
    members: View,
    shard_key: str,
    owner_of: Callable[[str], str],
    *,
    is_device: Callable[[str], bool] = lambda _: False,
    oversees: bool = True,
) -> Role:
    """Return what the member does with a pending pod.

    Args:
        members: those that are alive, this one included.
        owner_of: the member that the members' view gives a node to, by name; "" for an unknown node.
        is_device: as in `sees_all`.
        oversees: whether this member is the overseer now, if it is alone.
    """
    # Alone it decides as a scheduler without shards, preemption included.
    if len(members) == 1 and oversees:
        return Role.ALL
    visits = Visits.of(pod)
    if visits.node and (target_owner := owner_of(visits.node)):
        return Role.TARGET if target_owner == member else Role.NONE
    if not needs_overseer(pod, shard_key, is_device):
        # Looking it up in turn costs less than the whole ranking, which only pods need that have not fitted.
        if not visits.tried:
            return Role.HOME if owner(owner_key(pod.metadata), members) == member else Role.NONE
        following = next((name for name in ranking(owner_key(pod.metadata), members) if name not in visits.tried), "")
        if following:
            return Role.HOME if following == member else Role.NONE
    return Role.ALL if owner(OVERSEER, members) == member else Role.NONE
