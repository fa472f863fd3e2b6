"""Clusters after edits that are made for a whole gang, and how many of its members they place.

An edit of a pod is made to all waiting members like it, since all come from one template.

Cost: an attempt for each member in each topology domain that the gang may use.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import msgspec

from podium.engine.cluster import Cluster
from podium.engine.gangs import Gang, GangTrial, gang_trials, try_in_domain
from podium.insight.applied_edits import EditsDoNotApplyError, apply_edits
from podium.insight.edits import Edit, EditKind
from podium.insight.json_patch import pointer
from podium.insight.pod_edits import apply_pod_edits
from podium.objects.core import Pod
from podium.objects.requests import filter_requests
from podium.objects.resource_types import NODES, PODS

DOMAINS_MAX: Final = 16
"""In how many topology domains edits are tried: those that take most members as it is."""
_NAMES_MAX: Final = 5


@dataclass(frozen=True)
class GangEdit:
    """An edit, and for an edit of a pod, the members that it changes alike."""

    edit: Edit
    members: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Says what the edit does."""
        count = len(self.members)
        return f"{self.edit.text}, on each of {count} pods" if count > 1 else self.edit.text

    def as_dict(self, *, explain: bool = False) -> dict[str, Any]:
        """Return the edit as JSON values. The patch is the same for every member."""
        answer = self.edit.as_dict() | ({"members": list(self.members)} if self.members else {})
        return answer | ({"text": self.text} if explain else {})


@dataclass(frozen=True)
class GangFix:
    """Edits after which a whole gang fits.

    Attributes:
        edits: in an order in which they apply.
        nodes: the node that each waiting member then gets.
        is_minimum: no smaller set of edits would do.
    """

    edits: tuple[GangEdit, ...]
    nodes: Mapping[str, str]
    is_minimum: bool

    @property
    def node(self) -> str:
        """The nodes of the members, in one text."""
        names = list(dict.fromkeys(self.nodes.values()))
        surplus = len(names) - _NAMES_MAX
        return ", ".join(names[:_NAMES_MAX]) + (f" and {surplus} more" if surplus > 0 else "")

    def as_dict(self, *, explain: bool = False) -> dict[str, Any]:
        """Return the fix as JSON values; with `explain` each edit also in words."""
        edits = [edit.as_dict(explain=explain) for edit in self.edits]
        return {"edits": edits, "nodes": dict(self.nodes), "minimum": self.is_minimum}


@dataclass(frozen=True)
class GangState:
    """A cluster after some edits, without the members that were tried in it."""

    cluster: Cluster
    gang: Gang
    edits: tuple[GangEdit, ...] = ()
    selectors: Sequence[Mapping[str, str]] = ()
    """The topology domains to try, as node labels; by default all."""

    @cached_property
    def trials(self) -> Sequence[GangTrial]:
        """The outcome in each topology domain, those that take most members first."""
        trials = (try_in_domain(self.cluster, self.gang, selector) for selector in self.selectors)
        outcomes = trials if self.selectors else gang_trials(self.cluster, self.gang)
        return sorted(outcomes, key=lambda trial: -len(trial.nodes))

    @property
    def best(self) -> GangTrial:
        """The outcome in the domain that takes most members."""
        return self.trials[0]

    @property
    def is_enough(self) -> bool:
        """Return whether the gang fits."""
        return self.gang.starts_in(self.best)

    def after(self, edits: Sequence[GangEdit]) -> GangState | None:
        """Return the state after these edits; None if they do not apply to it."""
        world = self.cluster.fork()
        by_pod: dict[str, list[Edit]] = {}
        for part in edits:
            for key in part.members:
                by_pod.setdefault(key, []).append(part.edit)
        for member in self.gang.waiting_members:
            if member.key in by_pod:
                world.put_pending(apply_pod_edits(member, by_pod[member.key]))
        try:
            apply_edits(world, [part.edit for part in edits if not part.members])
        except EditsDoNotApplyError:
            return None
        members = [world.store.get(PODS, member.key) or member for member in self.gang.members]
        selectors = self.selectors or [trial.selector for trial in self.trials[:DOMAINS_MAX]]
        return GangState(world, replace(self.gang, members=tuple(members)), (*self.edits, *edits), selectors)


def waiting_groups(gang: Gang) -> Sequence[Sequence[Pod]]:
    """Return the waiting members, those of one template together."""
    groups: dict[tuple[bytes, int], list[Pod]] = {}
    for member in gang.waiting_members:
        # The pods of a StatefulSet differ in the names of their claims alone.
        spec = msgspec.structs.replace(member.spec, volumes=())
        groups.setdefault((msgspec.msgpack.encode(spec), len(member.spec.volumes)), []).append(member)
    return list(groups.values())


def of_members(edit: Edit, members: Sequence[Pod]) -> GangEdit:
    """Return the edit of one of these members for all of them; of a claim to create only for those that name it."""
    if edit.kind is EditKind.CREATE_CLAIM:
        members = [member for member in members if member.spec == members[0].spec]
    return GangEdit(edit, tuple(member.key for member in members))


def of_cluster(edits: Sequence[Edit]) -> tuple[GangEdit, ...]:
    """Return edits that change no member."""
    return tuple(map(GangEdit, edits))


def kinds_of(edits: Sequence[GangEdit]) -> tuple[str, ...]:
    """Return the kinds of the edits, equal for sets that a reader would call the same advice."""
    return tuple(sorted(part.edit.kind.value for part in edits))


def members_per_node(state: GangState) -> float:
    """Return how many of the smallest members the largest node takes, by their requests."""
    snapshot = state.cluster.engine_to_ask.cache.snapshot()
    requests = [filter_requests(member.spec) for member in state.gang.waiting_members]
    resources = {name for request in requests for name, amount in request.items() if amount}
    shares = [
        snapshot.allocatable(name)[snapshot.order].max(initial=0) // least
        for name in resources
        if (least := min(request.get(name, 0) for request in requests))
    ]
    return float(min(shares, default=math.inf))


def is_useless(edit: Edit, members: set[str], trial: GangTrial, cluster: Cluster) -> bool:
    """Return whether the edit evicts a member, gives up the domain, or moves a node from another domain to it."""
    if edit.kind is EditKind.EVICT:
        return f"{edit.namespace}/{edit.name}" in members
    # The selector was added by the trial to try one domain; it is not in the pod.
    if edit.kind is EditKind.DROP_NODE_SELECTOR:
        return any(key in edit.text for key in trial.selector)
    if edit.kind is not EditKind.LABEL_NODE or not trial.selector:
        return False
    node = cluster.store.get(NODES, edit.name)
    return node is not None and any(
        key in node.metadata.labels and change["path"] == pointer("metadata", "labels", key)
        for key in trial.selector
        for change in edit.patch
    )
