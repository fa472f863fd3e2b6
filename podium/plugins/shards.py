"""Shards: keeps a member of a group of schedulers on the nodes that it owns.

Runs at: PreFilter, Filter, PostFilter, Reserve, Bind.
Verdict: UnschedulableAndUnresolvable for nodes of other members, and for pods that need all nodes while the member that
sees them changes; Skip at Bind for the member's own nodes.
Requeue: none; `daemon.shards` wakes all pods when the member gains nodes or sees all.
Cost: a hash for each member to find the pod's role; the search looks at the member's own rows only.
Source: none; it is podium's own, and enabled by `podium run --shards`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.framework import contract as fwk
from podium.objects.core import Pod
from podium.plugins.shared.shard_state import ShardState
from podium.shards import Role, Visits

_OTHER_SHARDS, _NOT_CHOSEN = 1, 2
_STATUSES: Final = {
    _OTHER_SHARDS: fwk.unresolvable("node(s) belonged to other shards"),
    _NOT_CHOSEN: fwk.unresolvable("node(s) were not the one chosen for the pod"),
}
_OF_OTHERS: Final = _STATUSES[_OTHER_SHARDS].by("Shards")
_NOT_YET: Final = fwk.unresolvable("preemption: only the member that sees all shards preempts")
_NOT_IN_SIGHT: Final = fwk.unresolvable("the pods of other shards are still being read")
_NO_OVERSEER: Final = fwk.unresolvable("the shard that sees all nodes is changing")
_PASSED_ON: Final = fwk.unschedulable()


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The member's role for the pod, and the node that another member has chosen."""

    role: Role
    target: str


@dataclass(frozen=True, slots=True)
class _HandedOver:
    """The chosen node belongs to another member, which has to bind the pod."""


class Shards(
    fwk.PreFilterPlugin,
    fwk.TableFilterPlugin,
    fwk.FilterPlugin,
    fwk.PostFilterPlugin,
    fwk.ReservePlugin,
    fwk.BindPlugin,
):
    """Rejects other members' nodes, and hands pods that need such a node to its owner."""

    def __init__(self, args: object, handle: fwk.Handle) -> None:
        super().__init__(args, handle)
        self._state = handle.shared(ShardState)

    def pre_filter(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[fwk.PreFilterResult | None, fwk.Status | None]:
        """Return Skip if nothing is left to filter, and UnschedulableAndUnresolvable if the member may not see all yet.

        A pod at home is tried on the member's own rows, of which none needs Filter; for one that only this member can
        place it is all rows.
        """
        role = self._state.role(pod)
        if role is Role.ALL and not self._state.oversees:
            return None, _NO_OVERSEER
        if role is not Role.NONE and self._state.lacks_pods_for(pod, role):
            return None, _NOT_IN_SIGHT
        state.write(_Attempt(role, Visits.of(pod).node if role is Role.TARGET else ""))
        if role is Role.TARGET:
            # The member that chose the node has waited for the gang, whose other pods never come here.
            state.write(fwk.ChosenElsewhere())
        elif role is Role.HOME:
            state.write(fwk.OnlyRows(self._state.own_rows(snapshot), _OF_OTHERS))
        return None, fwk.SKIP if role in (Role.ALL, Role.HOME) else None

    def filter_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Return a verdict for all nodes but the chosen one, if that is this member's."""
        attempt = state.read(_Attempt)
        is_owned = self._state.owned_rows(snapshot).take(rows)
        if attempt.role is Role.NONE:
            # Its members have changed while it waited; whoever decides on it now has it in the queue.
            is_owned = np.zeros(len(rows), np.bool_)
        verdicts = np.where(is_owned, _NOT_CHOSEN, _OTHER_SHARDS)
        verdicts[is_owned & (rows == snapshot.row_of.get(attempt.target, -1))] = 0
        return verdicts

    def explain(self, state: fwk.CycleState, pod: Pod, verdict: int) -> fwk.Status:
        """Return the status of a verdict."""
        return _STATUSES[verdict]

    def filter(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Return success or UnschedulableAndUnresolvable."""
        attempt = state.read(_Attempt)
        if attempt.role is Role.NONE or not self._state.owns(node.name):
            return _STATUSES[_OTHER_SHARDS]
        return None if node.name == attempt.target else _STATUSES[_NOT_CHOSEN]

    def post_filter(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, nodes: fwk.FilteredNodes
    ) -> tuple[fwk.PostFilterResult | None, fwk.Status | None]:
        """Stop before preemption: another shard may have room. The member that sees all nodes goes on to preempt."""
        attempt = state.find(_Attempt)
        return None, _PASSED_ON if attempt is None or attempt.role is Role.ALL else _NOT_YET

    def reserve(self, state: fwk.CycleState, pod: Pod, node_name: str) -> fwk.Status | None:
        """Reject a node that was given up during a long attempt, and note whose node it is."""
        role = state.read(_Attempt).role
        if role is Role.ALL and not self._state.oversees:
            return _NO_OVERSEER
        if self._state.owns(node_name):
            return None
        if role is not Role.ALL:
            return _STATUSES[_OTHER_SHARDS]
        state.write(_HandedOver())
        return None

    def unreserve(self, state: fwk.CycleState, pod: Pod, node_name: str) -> None:
        """Do nothing: the binding cycle says itself when it has ended."""

    async def bind(self, state: fwk.CycleState, pod: Pod, node_name: str) -> fwk.Status | None:
        """Return Skip for a node of the member's own; otherwise wait until the owner has bound the pod."""
        if state.find(_HandedOver) is None:
            return fwk.SKIP
        return await self._state.place(pod, node_name)

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register no event: `daemon.shards` wakes the pods."""
        return ()
