"""The provider that makes Node objects, which stand for machines in a sandbox or a cluster of stand-ins.

Owns how such a node is made, and how its removal begins: it is cordoned, tainted and marked. `removal` goes on with it.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Final

from podium.binder import ApiClient
from podium.binder.events.event import Event
from podium.client.listing import all_objects
from podium.client.session import ApiSession
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.api_errors import AlreadyExists, Conflict, NotFound
from podium.objects.meta import ObjectMeta
from podium.provisioner.apis.objects import ProvidedNode
from podium.provisioner.controller import events
from podium.provisioner.controller.watched import PROVIDED_NODES
from podium.provisioner.disruption.sandbox_nodes import (
    is_being_removed,
    is_bought_here,
    manifest_of,
    removal_of,
)
from podium.provisioner.planners.planner import Removal
from podium.provisioner.provisioning.plan import NodePlan

log = get_logger("provisioner")

_TRIES: Final = 5


class SandboxProvider:
    """Implements `podium.provisioner.controller.provider.Provider`.

    Args:
        record: records an Event.
        in_own_words: whether Events have podium's words, since its rules judge where pods fit.
    """

    def __init__(
        self,
        client: ApiClient,
        session: ApiSession,
        record: Callable[[Event], None],
        clock: Clock,
        *,
        in_own_words: bool = False,
    ) -> None:
        self._in_own_words = in_own_words
        self._client = client
        self._session = session
        self._record = record
        self._clock = clock

    async def create(self, node: NodePlan) -> bool:
        """Create the Node object."""
        item = ProvidedNode(metadata=ObjectMeta(name=node.name))
        try:
            await self._client.create(PROVIDED_NODES, item, manifest_of(node, self._clock.now()))
        except AlreadyExists:
            node_seen = await self._client.read(PROVIDED_NODES, item)
            # A node that was not bought here, or goes, has the name: the caller plans anew rather than count on it.
            if not is_bought_here(node_seen) or is_being_removed(node_seen):
                raise
            log.info("Node has already been bought", node=node.name)
        return True

    async def delete(self, node: ProvidedNode, removal: Removal) -> None:
        """Begin to remove the node."""
        conflict: Conflict | None = None
        for _ in range(_TRIES):
            if is_being_removed(node):
                return
            try:
                await self._client.patch(PROVIDED_NODES, node, removal_of(node, self._clock.now()))
            except NotFound:
                return
            except Conflict as error:
                # The patch replaces the taints as they were read, so a node that has changed since is read again.
                conflict = error
                node = await self._client.read(PROVIDED_NODES, node)
                continue
            log.info("Removing node", node=node.name, plan=removal.id, reason=removal.reason)
            self._record(events.removing(node, removal.reason, removal.id, in_own_words=self._in_own_words))
            return
        assert conflict is not None
        raise conflict

    async def list(self) -> AbstractSet[str]:
        """Return the names of the Node objects."""
        nodes = await all_objects(self._session, PROVIDED_NODES, may_be_absent=False)
        return {node["metadata"]["name"] for node in nodes}
