"""The provisioner's loops in virtual time, with a provider that stands in for a cloud, and a watch that may lag."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from random import Random
from typing import Any, TypeVar, cast

import anyio
import msgspec

from podium.client.backoff import Backoff, BackoffPolicy
from podium.client.informer_set import InformerSet
from podium.client.session import ApiSession
from podium.engine.gangs import GROUPS
from podium.objects.api_errors import ApiError, Forbidden
from podium.objects.resource_types import POD_GROUPS
from podium.objects.wire import BrokenObject
from podium.provisioner.apis.objects import ClusterObjects, ProvidedNode
from podium.provisioner.controller.disruption import DisruptionLoop
from podium.provisioner.controller.loops import run_again_and_again
from podium.provisioner.controller.nominations import Nominations
from podium.provisioner.controller.provisioning import ProvisioningLoop
from podium.provisioner.controller.purchasing import Purchasing
from podium.provisioner.controller.watched import OVERLAYS, WATCHED, WatchedCluster
from podium.provisioner.disruption.sandbox_nodes import manifest_of
from podium.provisioner.planners.planner import Planner, Removal
from podium.provisioner.provisioning.batching import BatchingWindow
from podium.provisioner.provisioning.plan import NodePlan, Plan
from podium.provisioner.state.settings import Settings
from tests.unit.provisioner.clusters import TYPES, Document, catalogue, node_pool
from tests.virtual_time import LoopClock

T = TypeVar("T")

RESOURCES = {**WATCHED, **OVERLAYS, POD_GROUPS.kind: POD_GROUPS}


class World:
    """The state that outlives a process: the nodes, and how the provider's API behaves."""

    def __init__(self) -> None:
        self.documents: dict[tuple[str, str], Document] = {}
        self.creations: list[str] = []
        self.removals: list[str] = []
        self.lag_s = 0.0
        """The delay until a created node is seen."""
        self.refusals: list[ApiError] = []
        """The answers to the next creations; those that may have happened have."""
        self.loses: list[ApiError] = []
        """The errors of the next creations; none of them happens."""
        self.refused_pods: set[str] = set()
        """No node is made for pods of these names: the answer is always `refusal`."""
        self.refusal: ApiError = Forbidden("no")
        self.list_error: ApiError | None = None
        self.kept_nodes: set[str] = set()
        """Nodes whose removal is refused."""
        self.objection = ""
        """Why nodes whose replacements are there must not go."""
        self.ahead_s = 0.0
        """By how much the wall clock is set forward, or back."""


class WallClock(LoopClock):
    """The loop's time, and a wall clock that somebody sets."""

    def __init__(self, world: World) -> None:
        self._world = world

    def now(self) -> float:
        return super().now() + self._world.ahead_s


class Bench:
    """One process: its watch, its loops, and what they have reported."""

    def __init__(
        self,
        world: World,
        period_s: float = 10.0,
        *,
        removes_own_only: bool = False,
        settings: Settings = Settings(),  # noqa: B008 - immutable
    ) -> None:
        self.world = world
        self.clock = clock = WallClock(world)
        self.errors: list[str] = []
        self.plans: list[Plan] = []
        self.refused: list[str] = []
        self.removals: list[Removal] = []
        self._informers = informers = InformerSet(cast(ApiSession, None), clock=clock, random=Random(0))
        self.watched = cluster = WatchedCluster(
            informers, clock, None, GROUPS, removes_own_only=removes_own_only, has_overlays=settings.uses_overlays
        )
        self.planner = planner = Planner(catalogue(*TYPES[:2]), settings)
        self.purchasing = purchasing = Purchasing(self, cluster, clock)
        nominations = Nominations(clock, 20.0)
        self.provisioning = ProvisioningLoop(
            cluster, planner, purchasing, nominations, BatchingWindow(clock), self, clock, inline
        )
        self.disruption = DisruptionLoop(
            cluster,
            self,
            self,
            purchasing,
            nominations,
            self,
            clock,
            inline,
            period_s=period_s,
            validated_after_s=15.0,
        )
        for kind in (*WATCHED.values(), *GROUPS, *(OVERLAYS.values() if settings.uses_overlays else ())):
            informers.informer(kind).set_synced()
        for document in world.documents.values():
            self.see(document)

    @asynccontextmanager
    async def running(self, *, disrupts: bool = False) -> AsyncIterator[None]:
        """Runs the loops meanwhile."""
        steps = {"provisioning": self.provisioning.step} | ({"disruption": self.disruption.step} if disrupts else {})
        async with anyio.create_task_group() as group:
            for name, step in steps.items():
                backoff = Backoff(BackoffPolicy(first_s=1.0, longest_s=8.0), Random(0), self.clock)
                group.start_soon(run_again_and_again, name, step, backoff, self.clock, self)
            yield
            group.cancel_scope.cancel()

    # ------------------------------------------------------------ the watch

    def put(self, *documents: Document) -> None:
        """Objects that there are now, and that the watch shows."""
        for document in documents:
            self.world.documents[document["kind"], document["metadata"]["name"]] = document
            self.see(document)

    def see(self, document: Document) -> None:
        resource = RESOURCES[document["kind"]]
        self._informers.informer(resource).put(msgspec.convert(document, resource.type))

    def see_broken(self, kind: str, name: str) -> None:
        """Show an object that cannot be decoded."""
        report = BrokenObject(kind, "", name, f"uid-{name}", "1", "Expected `int`, got `str` - at `$.spec.x`")
        self._informers.informer(WATCHED[kind]).mark_broken(report, deleted=False)

    def drop(self, document: Document) -> None:
        """An object that is gone."""
        del self.world.documents[document["kind"], document["metadata"]["name"]]
        resource = RESOURCES[document["kind"]]
        self._informers.informer(resource).drop(msgspec.convert(document, resource.type))

    # ------------------------------------------------------------ the provider

    async def create(self, node_plan: NodePlan) -> bool:
        await anyio.sleep(0.05)
        if self.world.refused_pods & {pod.metadata.name for pod in node_plan.pods}:
            raise self.world.refusal
        if self.world.loses:
            raise self.world.loses.pop(0)
        key = "Node", node_plan.name
        if key not in self.world.documents:
            self.world.creations.append(node_plan.name)
            document = self.world.documents[key] = cast(dict[str, Any], manifest_of(node_plan, self.clock.now()))
            asyncio.get_running_loop().call_later(self.world.lag_s, self.see, document)
        if self.world.refusals:
            raise self.world.refusals.pop(0)
        return True

    async def delete(self, node: ProvidedNode, removal: Removal) -> None:
        if node.name in self.world.kept_nodes:
            raise self.world.refusal
        self.world.removals.append(node.name)
        self.drop(self.world.documents["Node", node.name])

    async def list(self) -> AbstractSet[str]:
        if self.world.list_error is not None:
            raise self.world.list_error
        return {name for kind, name in self.world.documents if kind == "Node"}

    # ------------------------------------------------------------ the planner's last look

    def removal(self, objects: ClusterObjects, now_s: float, fixed_nodes: AbstractSet[str]) -> Removal | None:
        return self.planner.removal(objects, now_s, fixed_nodes)

    def validate(
        self, removal: Removal, objects: ClusterObjects, now_s: float, fixed_nodes: AbstractSet[str]
    ) -> Removal | str:
        return self.planner.validate(removal, objects, now_s, fixed_nodes)

    def objection(self, removal: Removal, objects: ClusterObjects) -> str:
        return self.world.objection

    # ------------------------------------------------------------ what is reported

    def record_step(self, loop: str, seconds: float, *, is_error: bool) -> None:
        if is_error:
            self.errors.append(loop)

    def record_plan(self, plan: Plan, bought: tuple[NodePlan, ...], refused_nodes: tuple[NodePlan, ...] = ()) -> None:
        self.plans.append(plan)
        self.refused.extend(node.name for node in refused_nodes)

    def record_removal(self, removal: Removal | None) -> None:
        if removal is not None:
            self.removals.append(removal)


async def inline(compute: Callable[[], T], /) -> T:
    """Plans at once."""
    return compute()


def on_demand_pool(**fields: Any) -> Document:
    """A NodePool whose nodes may all go at once."""
    requirement = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
    return node_pool(requirements=[requirement], disruption={"budgets": [{"nodes": "100%"}]}, **fields)
