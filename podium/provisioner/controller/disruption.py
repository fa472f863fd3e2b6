"""The loop that removes nodes: it looks for nodes that may go, looks again a while later, and lets them go.

Source: karpenter pkg/controllers/disruption/controller.go and queue.go, v1.15.0.
Differs: one removal at a time, which is followed to its end. The nodes are not tainted before their replacements are
there.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final, Protocol

import anyio

from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError
from podium.provisioner.apis.objects import ClusterObjects, ProvidedNode
from podium.provisioner.controller.nominations import Nominations
from podium.provisioner.controller.provider import Provider
from podium.provisioner.controller.provisioning import NOT_SEEN_PAUSE_S, ComputeElsewhere, Report
from podium.provisioner.controller.purchasing import Purchasing
from podium.provisioner.controller.watched import WatchedCluster
from podium.provisioner.disruption.conditions import next_consolidatable_s
from podium.provisioner.planners.planner import Removal
from podium.provisioner.provisioning.launching import plan_id

log = get_logger("provisioner")

REPLACED_S_MAX: Final = 600.0
"""How long to wait for the nodes that take the place of others."""


class RemovalPlanner(Protocol):
    """Plans which nodes go."""

    def removal(self, objects: ClusterObjects, now_s: float, fixed_nodes: AbstractSet[str]) -> Removal | None:
        """Return the nodes that may go now."""
        ...

    def validate(
        self, removal: Removal, objects: ClusterObjects, now_s: float, fixed_nodes: AbstractSet[str]
    ) -> Removal | str:
        """Return the removal as far as it still holds, or why it does not."""
        ...

    def objection(self, removal: Removal, objects: ClusterObjects) -> str:
        """Return why the nodes must not go now, though what takes their place is there; empty if they may."""
        ...


class DisruptionLoop:
    """One removal after the other.

    Args:
        period_s: how long to wait when nothing can go.
        validated_after_s: how long after it was found a removal is looked at again.
        compute: runs the planner.
    """

    def __init__(
        self,
        cluster: WatchedCluster,
        planner: RemovalPlanner,
        provider: Provider,
        purchasing: Purchasing,
        nominations: Nominations,
        report: Report,
        clock: Clock,
        compute: ComputeElsewhere,
        *,
        period_s: float,
        validated_after_s: float,
    ) -> None:
        self._watched = cluster
        self._planner = planner
        self._provider = provider
        self._purchasing = purchasing
        self._nominations = nominations
        self._report = report
        self._clock = clock
        self._compute = compute
        self._period_s = period_s
        self._validated_after_s = validated_after_s

    async def step(self) -> float:
        """Remove nodes that may go, and return in how many seconds to look again."""
        # Removing nodes before waiting pods were planned once would remove what these pods need.
        if not self._nominations.is_known or not self._watched.is_current or await self._purchasing.unseen():
            return NOT_SEEN_PAUSE_S
        objects, now_s, fixed_nodes = self._watched.objects(), self._clock.now(), frozenset(self._nominations.current())
        removal = await self._compute(lambda: self._planner.removal(objects, now_s, fixed_nodes))
        if removal is None:
            self._report.record_removal(None)
            # No later than a node may go that may not yet.
            return min(self._period_s, next_consolidatable_s(objects, now_s) or self._period_s)
        removal = removal.with_id(plan_id(now_s, removal.nodes))
        savings = {} if removal.savings is None else {"savings": round(removal.savings, 4)}
        log.info("Nodes may be removed", plan=removal.id, reason=removal.reason, nodes=removal.nodes, **savings)
        for text in removal.warnings:
            log.warning("A removal ignores something", plan=removal.id, what=text)
        # Pods of a rollout come and go within seconds; a removal that still holds after that is worth the disruption.
        await anyio.sleep(self._validated_after_s)
        # One at a time with purchases: both read the cluster, and each would plan with nodes that the other takes away.
        async with self._purchasing.turn:
            valid = await self._validate(removal)
            if valid is None:
                return self._period_s
            bought = await self._purchasing.buy(valid.replacements)
            if bought.errors:
                # The others have no pods, and go as empty nodes unless pods come for them. These nodes stay for a
                # while, so that meanwhile others may go.
                self._nominations.add(valid.nodes)
                raise bought.errors[0]
            self._nominations.add([*valid.moves, *(replacement.name for replacement in valid.replacements)])
            leaving = [] if bought.nodes else await self._delete(valid)
        if bought.nodes:
            # Only now: until the replacement is ready the pods stay where they are.
            names = {node.name for node in bought.nodes}
            is_clear = await self._have_come(valid, names) and await self._is_clear(valid)
            leaving = await self._delete(valid) if is_clear else []
        if leaving:
            self._report.record_removal(valid)
        return NOT_SEEN_PAUSE_S if leaving and await self._is_noticed(leaving) else self._period_s

    async def _delete(self, removal: Removal) -> list[ProvidedNode]:
        """Begin to remove the nodes, and return those that are still there.

        Raises:
            ApiError: no node could be touched.
        """
        leaving: list[ProvidedNode] = []
        errors: list[ApiError] = []

        async def delete(node: ProvidedNode) -> None:
            try:
                await self._provider.delete(node, removal)
            except ApiError as error:
                # It stays until a later plan: what could be placed without all of them can be placed without some.
                log.warning("Node is not removed now", plan=removal.id, node=node.name, error=str(error))
                errors.append(error)
            else:
                leaving.append(node)

        # All at once: a request that is not answered must not keep the other nodes.
        async with anyio.create_task_group() as group:
            for name in removal.nodes:
                if (node := self._watched.node(name)) is not None:
                    group.start_soon(delete, node)
        if errors and not leaving:
            raise errors[0]
        return leaving

    async def _validate(self, removal: Removal) -> Removal | None:
        if not self._watched.is_current or await self._purchasing.unseen():
            return None
        objects, now_s, fixed_nodes = self._watched.objects(), self._clock.now(), frozenset(self._nominations.current())
        # In a thread as well: a validation simulates as much as the search for one command.
        valid = await self._compute(lambda: self._planner.validate(removal, objects, now_s, fixed_nodes))
        if isinstance(valid, str):
            log.info("Nodes are not removed after all", plan=removal.id, nodes=removal.nodes, why=valid)
            return None
        return valid.with_id(removal.id)

    async def _have_come(self, removal: Removal, names: AbstractSet[str]) -> bool:
        """Wait for what takes the place of the nodes, and return whether it is there."""
        with anyio.move_on_after(REPLACED_S_MAX):
            while not all(map(self._watched.is_ready, names)):
                # Neither on its way nor there any more.
                if self._watched.unseen(names) - await self._purchasing.unseen():
                    log.warning(
                        "Nodes stay, since what was to replace them is gone", plan=removal.id, nodes=removal.nodes
                    )
                    return False
                await anyio.sleep(NOT_SEEN_PAUSE_S)
            return True
        log.warning("Nodes are kept: their replacements did not come up", plan=removal.id, nodes=removal.nodes)
        return False

    async def _is_clear(self, removal: Removal) -> bool:
        """Return True if the nodes may go now: their replacements may have taken minutes."""
        objects = self._watched.objects()
        objection = await self._compute(lambda: self._planner.objection(removal, objects))
        if objection:
            log.info("Nodes are not removed after all", plan=removal.id, nodes=removal.nodes, why=objection)
        return not objection

    async def _is_noticed(self, nodes: list[ProvidedNode]) -> bool:
        """Wait until the watch shows that the nodes change, and return whether it does."""
        with anyio.move_on_after(NOT_SEEN_PAUSE_S * 10):
            while any(self._watched.node(node.name) is node for node in nodes):  # noqa: ASYNC110 - short
                await anyio.sleep(NOT_SEEN_PAUSE_S)
            return True
        return False
