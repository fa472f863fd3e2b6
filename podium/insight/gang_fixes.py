"""Answers what would make a whole gang fit: edits for the first member that gets no node, tried with the whole gang.

The members that fit are placed. For the first of the others `FixSearch` looks for edits as for any pod. They are
applied to the cluster without the gang, and edits of the pod to every member like it, since all come from one template.
If that is not enough, the search continues with the next member that gets no node. A request is lowered no further than
the whole gang needs, and nodes are added until it fits.

Cost: for each step a search for one pod, and an attempt at the whole gang for each set that it finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from podium.engine.cluster import Cluster
from podium.engine.gangs import Gang, GangTrial, gang_of, try_gang
from podium.insight.applied_edits import EditsDoNotApplyError, apply_edits
from podium.insight.edits import INTRUSIVENESS, Edit, EditKind
from podium.insight.new_nodes import node_like
from podium.insight.pod_edits import apply_pod_edits, lower_request
from podium.insight.search import FixSearch
from podium.lib.time_limit import UNLIMITED, TimeIsUpError, TimeLimit
from podium.objects.core import Pod
from podium.objects.requests import filter_requests
from podium.objects.resource_types import NODES, PODS

_STEPS_MAX: Final = 3
_TRIED_MAX: Final = 10
_KEPT_MAX: Final = 3
_NODES_MAX: Final = 50
"""The maximum number of nodes that are added to make one gang fit."""
_AMOUNTS_MAX: Final = 2000
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
class _State:
    """A cluster after some edits, without the members that were tried in it."""

    cluster: Cluster
    gang: Gang
    trial: GangTrial
    edits: tuple[GangEdit, ...] = ()

    @property
    def is_enough(self) -> bool:
        return len(self.gang.placed_members) + len(self.trial.nodes) >= self.gang.min_count

    @property
    def rank(self) -> tuple[object, ...]:
        """The sort key: few edits come first, then the least intrusive ones, then those that help most members."""
        kinds = sorted((INTRUSIVENESS[part.edit.kind] for part in self.edits), reverse=True)
        return len(self.edits), kinds, -len(self.trial.nodes), [part.edit.text for part in self.edits]


def gang_fixes(
    cluster: Cluster, gang: Gang, fixes_max: int, limit: TimeLimit = UNLIMITED
) -> tuple[bool, list[GangFix]]:
    """Return whether the gang fits as it is, and otherwise the smallest sets of edits after which it does.

    Args:
        limit: when to end with the sets found by then.

    Raises:
        ScheduleError: a plugin failed.
    """
    start = _State(cluster, gang, try_gang(cluster, gang))
    if start.is_enough:
        return True, []
    states = [start]
    for step in range(_STEPS_MAX):
        successors = _successors(states, limit)
        sufficient_states = sorted((state for state in successors if state.is_enough), key=lambda state: state.rank)
        if sufficient_states:
            return False, [
                _fix(state, is_minimum=step == 0 and len(state.edits) == 1) for state in sufficient_states[:fixes_max]
            ]
        if limit.is_noticed:
            break
        # A beam: each step costs attempts at the whole gang, so only the best states are taken further.
        states = sorted(successors, key=lambda state: state.rank)[:_KEPT_MAX]
    return False, []


def _successors(states: Sequence[_State], limit: TimeLimit) -> list[_State]:
    """Return the states one step after these that are found within the time limit."""
    successors: list[_State] = []
    try:
        for state in states:
            for successor in _after_one_step(state, limit):
                successors.append(successor)
                limit.check()
    except TimeIsUpError:
        limit.is_noticed = True
    return successors


def _fix(state: _State, *, is_minimum: bool) -> GangFix:
    return GangFix(state.edits, state.trial.nodes, is_minimum)


def _after_one_step(state: _State, limit: TimeLimit) -> Iterator[_State]:
    """Yield the states after edits that help the first member that gets no node, if they help the gang."""
    pod, attempted_pod = state.trial.first_failed, state.trial.attempted_pod
    if pod is None or attempted_pod is None or attempted_pod.spec.scheduler_name not in state.cluster.profiles:
        return
    member_keys = {member.key for member in state.gang.members}
    search = FixSearch(state.trial.world, attempted_pod, limit)
    # The fixes of a pod are tried on a gang: most of them help it alone, so that a few are enough.
    for fix in search.fixes(_TRIED_MAX):
        if any(_is_useless(edit, member_keys, state.trial.selector) for edit in fix.edits):
            continue
        successor = _lower_for_all(state, pod, fix.edits) or _apply(state, pod, fix.edits)
        if successor is None or len(successor.trial.nodes) <= len(state.trial.nodes):
            continue
        # One new node helps one member; the gang may need as many as it has members.
        if not successor.is_enough and all(edit.kind is EditKind.ADD_NODE for edit in fix.edits):
            successor = _with_more_nodes(successor, fix.edits[0])
        if successor is not None:
            yield successor


def _is_useless(edit: Edit, member_keys: set[str], selector: Mapping[str, str]) -> bool:
    """Return whether the edit evicts a member, or gives up the domain that the gang was tried in."""
    if edit.kind is EditKind.EVICT:
        return f"{edit.namespace}/{edit.name}" in member_keys
    # The selector was added by the trial to try one domain; it is not in the pod.
    return edit.kind is EditKind.DROP_NODE_SELECTOR and any(key in edit.text for key in selector)


def _apply(state: _State, pod: Pod, edits: Sequence[Edit]) -> _State | None:
    """Return the state after these edits; None if they do not apply to it."""
    world = state.cluster.fork()
    gang_edits = []
    of_pods = [edit for edit in edits if edit.object_kind == "Pod" and edit.kind is not EditKind.EVICT]
    # Members of one template share an edit: who changes the template changes all of them.
    alike = [member for member in state.gang.waiting_members if member.spec == pod.spec]
    for member in alike if of_pods else ():
        world.put_pending(apply_pod_edits(member, of_pods))
    cluster_edits = [edit for edit in edits if edit not in of_pods]
    try:
        apply_edits(world, cluster_edits)
    except EditsDoNotApplyError:
        return None
    names = tuple(member.key for member in alike)
    gang_edits = [GangEdit(edit, names if edit in of_pods else ()) for edit in edits]
    first = world.store.get(PODS, pod.key)
    gang = None if first is None else gang_of(world, first)
    if gang is None:
        return None
    return _State(world, gang, try_gang(world, gang), (*state.edits, *gang_edits))


def _lower_for_all(state: _State, pod: Pod, edits: Sequence[Edit]) -> _State | None:
    """Return the state with the largest request with which the gang fits; None unless the edit lowers one request."""
    if len(edits) != 1 or edits[0].kind is not EditKind.LOWER_REQUEST:
        return None
    requests, requests_after = filter_requests(pod.spec), filter_requests(apply_pod_edits(pod, edits).spec)
    resources = [name for name, amount in requests.items() if requests_after.get(name, 0) != amount]
    if len(resources) != 1:
        return None
    (resource,) = resources
    best: _State | None = None
    amounts = _amounts(state, resource, requests[resource])
    low, high = 0, len(amounts)
    while low < high:  # the amounts fall, so that from one on the gang fits
        middle = (low + high) // 2
        edit = lower_request(pod, resource, amounts[middle])
        successor = None if edit is None or not edit.patch else _apply(state, pod, [edit])
        if successor is not None and successor.is_enough:
            best, high = successor, middle
        else:
            low = middle + 1
    return best


def _amounts(state: _State, resource: str, request: int) -> Sequence[int]:
    """Return lower requests that may fit, the largest first: each node's free capacity in equal parts."""
    snapshot = state.cluster.engine_to_ask.cache.snapshot()
    # Only at n equal parts of what some node has free does the number of members that fit change.
    free = (snapshot.allocatable(resource) - snapshot.requested(resource))[snapshot.order]
    count = len(state.gang.waiting_members)
    parts = {int(amount) // number for amount in set(free.tolist()) for number in range(1, count + 1)}
    return sorted((part for part in parts if 0 < part < request), reverse=True)[:_AMOUNTS_MAX]


def _with_more_nodes(state: _State, edit: Edit) -> _State | None:
    """Add nodes like the new one until the gang fits; return None if it never does."""
    like = state.cluster.store.get(NODES, edit.name)
    if like is None:
        return None
    text = edit.text
    while not state.is_enough and len(state.edits) < _NODES_MAX:
        extra_edit = node_like(state.cluster, like, {node.name for node in state.cluster.nodes})
        pod = state.gang.waiting_members[0]
        successor = _apply(state, pod, [replace(extra_edit, text=text)])
        if successor is None or len(successor.trial.nodes) <= len(state.trial.nodes):
            return None
        state = successor
    return state if state.is_enough else None
