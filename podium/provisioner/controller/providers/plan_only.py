"""The provider that buys and removes nothing: it says with Events what it would do."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet

from podium.binder.events.event import Event
from podium.provisioner.apis.objects import ProvidedNode
from podium.provisioner.controller import events
from podium.provisioner.planners.planner import Removal
from podium.provisioner.provisioning.plan import NodePlan


class PlanOnlyProvider:
    """Implements `podium.provisioner.controller.provider.Provider`.

    Args:
        record: records an Event.
        in_own_words: whether Events have podium's words, since its rules judge where pods fit.
    """

    def __init__(self, record: Callable[[Event], None], *, in_own_words: bool = False) -> None:
        self._record = record
        self._in_own_words = in_own_words

    async def create(self, node: NodePlan) -> bool:
        """Record an Event about each pod that the node would be bought for."""
        for pod in node.pods:
            self._record(events.node_planned(pod, node))
        return False

    async def delete(self, node: ProvidedNode, removal: Removal) -> None:
        """Record an Event about the node."""
        self._record(events.removal_planned(node, removal.reason, removal.id, in_own_words=self._in_own_words))

    async def list(self) -> AbstractSet[str]:
        """Return the empty set: no node is ever bought."""
        return frozenset()
