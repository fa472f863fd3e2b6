"""Buys nodes from a provider, and knows which ones are on their way.

Owns the rule that nothing is planned before every node that was asked for is seen: else it would be bought twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import anyio

from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError
from podium.provisioner.controller.provider import Provider
from podium.provisioner.controller.watched import WatchedCluster
from podium.provisioner.provisioning.plan import NodePlan

log = get_logger("provisioner")

LOOKED_UP_AFTER_S: Final = 5.0
"""How long a node that was asked for may be unseen before the API server is asked whether there is one."""

_AT_ONCE_MAX: Final = 10


class Purchasing:
    """Keeps what was asked of the provider until the watch shows it.

    Args:
        awaits_machines: whether nodes are bought as NodeClaims, whose machines come later.

    Attributes:
        turn: Held from a look at the cluster until all was bought that follows from it, so that two loops never buy for
            the same pods.
    """

    def __init__(
        self, provider: Provider, cluster: WatchedCluster, clock: Clock, *, awaits_machines: bool = False
    ) -> None:
        self.turn = anyio.Lock()
        self._awaits_machines = awaits_machines
        self._provider = provider
        self._watched = cluster
        self._clock = clock
        self._asked_at_s: dict[str, float] = {}

    async def buy(self, nodes: Iterable[NodePlan]) -> Sequence[NodePlan]:
        """Ask for these nodes, and return those that there will be.

        Raises:
            ApiError: the first of the errors, after every node was asked for.
        """
        waiting, bought, errors = iter(tuple(nodes)), list[NodePlan](), list[ApiError]()

        # All tasks take from one iterator, so that a slow request holds up one of them only.
        async def ask() -> None:
            for node in waiting:
                # Before the request: however it ends, there may be a node from now on.
                self._asked_at_s[node.name] = self._clock.monotonic()
                try:
                    if await self._provider.create(node):
                        log.info("Bought node", node=node.name, what=node.text, pods=len(node.pods))
                        bought.append(node)
                        continue
                except ApiError as error:
                    log.warning("Node may not be bought", node=node.name, what=node.text, error=str(error))
                    errors.append(error)
                    # After a time-out the node may exist: it stays among those that were asked for until the watch or a
                    # list decides.
                    if error.may_have_happened:
                        continue
                self._asked_at_s.pop(node.name, None)

        async with anyio.create_task_group() as group:
            for _ in range(_AT_ONCE_MAX):
                group.start_soon(ask)
        if errors:
            raise errors[0]
        return bought

    async def unseen(self) -> set[str]:
        """Return the nodes that were asked for and are not seen yet. Those that there are not are forgotten.

        Raises:
            ApiError: the API server would have to be asked, and does not answer.
        """
        missing = self._watched.missing(self._asked_at_s.keys())
        for name in self._asked_at_s.keys() - missing:
            del self._asked_at_s[name]
        overdue_s = self._clock.monotonic() - LOOKED_UP_AFTER_S
        overdue = {name for name in missing if self._asked_at_s[name] <= overdue_s}
        if overdue:
            # Listed from the API server, not the watch, which may lag behind by more than this wait.
            for name in overdue - await self._provider.list():
                log.warning("Node was not bought", node=name)
                missing.discard(name)
                self._asked_at_s.pop(name, None)
        return missing | (self._watched.claims_without_machine() if self._awaits_machines else set())
