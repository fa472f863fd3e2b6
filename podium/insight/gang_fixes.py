"""What would make a whole gang fit: edits for the first member that gets no node, tried with the whole gang.

The members that fit are placed; what helps the first of the others is then looked for as for any pod, and applied to
the cluster without the gang: edits of the pod to every member like it, since they come from one template. Where that is
not enough, it goes on with the next member that gets no node. A request is lowered no further than the whole gang
needs, and nodes are added until it fits.

Cost: for each step a search for one pod, and an attempt at the whole gang for each set that it finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from podium.engine.cluster import Cluster
from podium.insight.applied_edits import EditsDoNotApplyError, apply_edits
from podium.insight.edits import INTRUSIVENESS, Edit, EditKind
from podium.insight.gangs import Gang, GangTrial, gang_of, try_gang
from podium.insight.node_edits import added_node
from podium.insight.pod_edits import granted, lower_request
from podium.insight.search import FixSearch
from podium.lib.time_limit import UNLIMITED, TimeIsUpError, TimeLimit
from podium.objects.core import Pod
from podium.objects.requests import filter_requests
from podium.objects.resource_types import NODES, PODS

_STEPS_MAX: Final = 3
_TRIED_MAX: Final = 10
_KEPT_MAX: Final = 3
_NODES_MAX: Final = 50
"""How many nodes are added to make one gang fit."""
_AMOUNTS_MAX: Final = 2000
_NAMES_MAX: Final = 5


@dataclass(frozen=True)
class GangEdit:
    """An edit, and if it is one of pods, the members that it changes alike."""

    edit: Edit
    members: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What it does, in words."""
        count = len(self.members)
        return f"{self.edit.text}, on each of {count} pods" if count > 1 else self.edit.text

    def as_dict(self, *, explain: bool = False) -> dict[str, Any]:
        """The edit as JSON values. The patch is the same for every member."""
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
        more = len(names) - _NAMES_MAX
        return ", ".join(names[:_NAMES_MAX]) + (f" and {more} more" if more > 0 else "")

    def as_dict(self, *, explain: bool = False) -> dict[str, Any]:
        """The fix as JSON values; with `explain` each edit also in words."""
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
        return len(self.gang.placed) + len(self.trial.nodes) >= self.gang.needed

    @property
    def rank(self) -> tuple[object, ...]:
        """Few edits first, then the least intrusive, then those that help most members."""
        kinds = sorted((INTRUSIVENESS[part.edit.kind] for part in self.edits), reverse=True)
        return len(self.edits), kinds, -len(self.trial.nodes), [part.edit.text for part in self.edits]


def gang_fixes(cluster: Cluster, gang: Gang, most: int, limit: TimeLimit = UNLIMITED) -> tuple[bool, list[GangFix]]:
    """Whether the gang fits as it is, and otherwise the smallest sets of edits after which it does.

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
        reached = _reached(states, limit)
        enough = sorted((state for state in reached if state.is_enough), key=lambda state: state.rank)
        if enough:
            return False, [_fix(state, is_minimum=step == 0 and len(state.edits) == 1) for state in enough[:most]]
        if limit.is_noticed:
            break
        states = sorted(reached, key=lambda state: state.rank)[:_KEPT_MAX]
    return False, []


def _reached(states: Sequence[_State], limit: TimeLimit) -> list[_State]:
    """The states one step after these, as far as they are found in time."""
    reached: list[_State] = []
    try:
        for state in states:
            for after in _after_one_step(state, limit):
                reached.append(after)
                limit.check()
    except TimeIsUpError:
        limit.is_noticed = True
    return reached


def _fix(state: _State, *, is_minimum: bool) -> GangFix:
    return GangFix(state.edits, state.trial.nodes, is_minimum)


def _after_one_step(state: _State, limit: TimeLimit) -> Iterator[_State]:
    """The states after edits that help the first member that gets no node, if they help the gang."""
    pod, tried = state.trial.first_failed, state.trial.tried
    if pod is None or tried is None or tried.spec.scheduler_name not in state.cluster.profiles:
        return
    own = {member.key for member in state.gang.members}
    search = FixSearch(state.trial.world, tried, limit)
    for fix in search.fixes(_TRIED_MAX):
        if any(_is_useless(edit, own, state.trial.selector) for edit in fix.edits):
            continue
        after = _lowered_for_all(state, pod, fix.edits) or _applied(state, pod, fix.edits)
        if after is None or len(after.trial.nodes) <= len(state.trial.nodes):
            continue
        if not after.is_enough and all(edit.kind is EditKind.ADD_NODE for edit in fix.edits):
            after = _with_more_nodes(after, fix.edits[0])
        if after is not None:
            yield after


def _is_useless(edit: Edit, own: set[str], selector: Mapping[str, str]) -> bool:
    """Whether it evicts a member, or gives up the domain that the gang was tried in."""
    if edit.kind is EditKind.EVICT:
        return f"{edit.namespace}/{edit.name}" in own
    return edit.kind is EditKind.DROP_NODE_SELECTOR and any(key in edit.text for key in selector)


def _applied(state: _State, pod: Pod, edits: Sequence[Edit]) -> _State | None:
    """The state after these edits; None if they do not apply to it."""
    world = state.cluster.fork()
    gang_edits = []
    of_pods = [edit for edit in edits if edit.object_kind == "Pod" and edit.kind is not EditKind.EVICT]
    alike = [member for member in state.gang.waiting if member.spec == pod.spec]
    for member in alike if of_pods else ():
        world.put_pending(granted(member, of_pods))
    others = [edit for edit in edits if edit not in of_pods]
    try:
        apply_edits(world, others)
    except EditsDoNotApplyError:
        return None
    names = tuple(member.key for member in alike)
    gang_edits = [GangEdit(edit, names if edit in of_pods else ()) for edit in edits]
    first = world.store.get(PODS, pod.key)
    gang = None if first is None else gang_of(world, first)
    if gang is None:
        return None
    return _State(world, gang, try_gang(world, gang), (*state.edits, *gang_edits))


def _lowered_for_all(state: _State, pod: Pod, edits: Sequence[Edit]) -> _State | None:
    """The state with the largest request with which the whole gang fits; None if that is not what the edit is about."""
    if len(edits) != 1 or edits[0].kind is not EditKind.LOWER_REQUEST:
        return None
    now, after = filter_requests(pod.spec), filter_requests(granted(pod, edits).spec)
    changed = [name for name, amount in now.items() if after.get(name, 0) != amount]
    if len(changed) != 1:
        return None
    (resource,) = changed
    best: _State | None = None
    amounts = _amounts(state, resource, now[resource])
    low, high = 0, len(amounts)
    while low < high:  # the amounts fall, so that from one on the gang fits
        middle = (low + high) // 2
        edit = lower_request(pod, resource, amounts[middle])
        tried = None if edit is None or not edit.patch else _applied(state, pod, [edit])
        if tried is not None and tried.is_enough:
            best, high = tried, middle
        else:
            low = middle + 1
    return best


def _amounts(state: _State, resource: str, now: int) -> Sequence[int]:
    """The amounts below the present one that may matter, the largest first: what is free of a node, in equal parts."""
    snapshot = state.cluster.engine_to_ask.cache.snapshot()
    free = (snapshot.allocatable(resource) - snapshot.requested(resource))[snapshot.order]
    count = len(state.gang.waiting)
    parts = {int(amount) // number for amount in set(free.tolist()) for number in range(1, count + 1)}
    return sorted((part for part in parts if 0 < part < now), reverse=True)[:_AMOUNTS_MAX]


def _with_more_nodes(state: _State, edit: Edit) -> _State | None:
    """The state with so many more nodes like the one that was added that the gang fits; None if it never does."""
    like = state.cluster.store.get(NODES, edit.name)
    if like is None:
        return None
    shown = edit.text
    while not state.is_enough and len(state.edits) < _NODES_MAX:
        _, more = added_node(like, {node.name for node in state.cluster.nodes})
        pod = state.gang.waiting[0]
        after = _applied(state, pod, [replace(more, text=shown)])
        if after is None or len(after.trial.nodes) <= len(state.trial.nodes):
            return None
        state = after
    return state if state.is_enough else None
