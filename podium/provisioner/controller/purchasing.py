"""Buys nodes from a provider, and knows which ones are on their way.

Owns the rule that nothing is planned before every node that was asked for is seen: else it would be bought twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
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

LOOKED_UP_S_MAX: Final = 60.0
"""How long nothing is planned because that question has no answer."""

_AT_ONCE_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class Bought:
    """The nodes that there will be, and the errors of those that there may not be."""

    nodes: tuple[NodePlan, ...]
    errors: tuple[ApiError, ...]


class Purchasing:
    """Keeps what was asked of the provider until the watch shows it.

    Attributes:
        turn: Held from a look at the cluster until all was bought that follows from it, so that two loops never buy for
            the same pods.
    """

    def __init__(self, provider: Provider, cluster: WatchedCluster, clock: Clock) -> None:
        self.turn = anyio.Lock()
        self._provider = provider
        self._watched = cluster
        self._clock = clock
        self._asked_at_s: dict[str, float] = {}

    async def buy(self, nodes: Iterable[NodePlan]) -> Bought:
        """Ask for these nodes. One that is refused keeps no other from being asked for."""
        waiting, bought, errors = iter(tuple(nodes)), list[NodePlan](), list[ApiError]()

        # All tasks take from one iterator, so that a slow request holds up one of them only.
        async def ask() -> None:
            for node in waiting:
                # Before the request: however it ends, there may be a node from now on.
                self._asked_at_s[node.name] = self._clock.monotonic()
                try:
                    if await self._provider.create(node):
                        log.info("Bought node", plan=node.plan_id, node=node.name, what=node.text, pods=len(node.pods))
                        bought.append(node)
                        continue
                except ApiError as error:
                    log.warning(
                        "Node may not be bought", plan=node.plan_id, node=node.name, what=node.text, error=str(error)
                    )
                    errors.append(error)
                    # After a time-out the node may exist: it stays among those that were asked for until the watch or a
                    # list decides.
                    if error.may_have_happened:
                        continue
                self._asked_at_s.pop(node.name, None)

        async with anyio.create_task_group() as group:
            for _ in range(_AT_ONCE_MAX):
                group.start_soon(ask)
        return Bought(tuple(bought), tuple(errors))

    async def unseen(self) -> set[str]:
        """Return the nodes that were asked for and are not seen yet. Those that there are not are forgotten.

        Raises:
            ApiError: the API server would have to be asked, and does not answer.
        """
        missing = self._watched.unseen(self._asked_at_s.keys())
        for name in self._asked_at_s.keys() - missing:
            del self._asked_at_s[name]
        overdue_s = self._clock.monotonic() - LOOKED_UP_AFTER_S
        overdue = {name for name in missing if self._asked_at_s[name] <= overdue_s}
        if overdue:
            for name in overdue - await self._existing_names(overdue):
                log.warning("Node was not bought", node=name)
                missing.discard(name)
                self._asked_at_s.pop(name, None)
        return missing

    async def _existing_names(self, names: AbstractSet[str]) -> AbstractSet[str]:
        """Return the names under which there are nodes.

        Raises:
            ApiError: the API server does not answer, and no node has been looked up in vain for too long.
        """
        try:
            # Listed from the API server, not the watch, which may lag behind by more than this wait.
            return await self._provider.list()
        except ApiError as error:
            given_up_s = self._clock.monotonic() - LOOKED_UP_S_MAX
            lost_names = {name for name in names if self._asked_at_s[name] <= given_up_s}
            if not lost_names:
                raise
            # Names follow from the pods: a node that there is after all is found when it is asked for again.
            log.warning("Nodes cannot be looked up", nodes=sorted(lost_names), error=str(error))
            return names - lost_names
