"""The loop that buys nodes: it gathers pods that fit nowhere, plans, and asks the provider.

Source: karpenter pkg/controllers/provisioning/provisioner.go (Reconcile) and controller.go, v1.15.0.
Differs: nothing is planned until every node that was asked for is seen, where Karpenter adds it to its own state. A
node that is refused is asked for again by itself, where Karpenter's loop fails and backs off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol, TypeVar

from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.core import Pod
from podium.provisioner.apis.objects import ClusterObjects
from podium.provisioner.controller.nominations import Nominations
from podium.provisioner.controller.purchasing import Purchasing
from podium.provisioner.controller.watched import WatchedCluster
from podium.provisioner.disruption.sandbox_nodes import is_being_removed
from podium.provisioner.planners.planner import Removal
from podium.provisioner.provisioning.batching import BatchingState, BatchingWindow
from podium.provisioner.provisioning.launching import plan_id
from podium.provisioner.provisioning.plan import NodePlan, Plan
from podium.provisioner.state.validation import is_provisionable
from podium.server.wakeup import WakeUp

log = get_logger("provisioner")

TRIGGERED_AGAIN_S: Final = 10.0
"""How often pods that still wait are planned for again."""

NOT_SEEN_PAUSE_S: Final = 0.2
"""How long to wait for what was written to be seen."""

T = TypeVar("T")


class ComputeElsewhere(Protocol):
    """Runs a computation, without holding up the event loop."""

    async def __call__(self, compute: Callable[[], T], /) -> T:
        """Return the computation's result."""
        ...


class Report(Protocol):
    """Records the decisions of the provisioner."""

    def record_plan(self, plan: Plan, bought: tuple[NodePlan, ...], refused_nodes: tuple[NodePlan, ...] = ()) -> None:
        """Record a plan, and which of its nodes were bought, and which refused."""
        ...

    def record_removal(self, removal: Removal | None) -> None:
        """Record the nodes that are being removed, or None if none can go now."""
        ...


class PurchasePlanner(Protocol):
    """Plans which nodes to buy."""

    def plan(self, objects: ClusterObjects, now_s: float) -> Plan:
        """Plan what to buy now."""
        ...


class ProvisioningLoop:
    """One batch of pods after the other.

    Args:
        compute: runs the planner.
    """

    def __init__(
        self,
        cluster: WatchedCluster,
        planner: PurchasePlanner,
        purchasing: Purchasing,
        nominations: Nominations,
        window: BatchingWindow,
        report: Report,
        clock: Clock,
        compute: ComputeElsewhere,
    ) -> None:
        self._watched = cluster
        self._planner = planner
        self._purchasing = purchasing
        self._nominations = nominations
        self._window = window
        self._report = report
        self._clock = clock
        self._compute = compute
        self._wake_up = WakeUp()
        self._triggered_s = float("-inf")
        self._again_at_s = float("inf")
        self._warnings: frozenset[str] = frozenset()
        cluster.on_pod(self._on_pod)

    async def step(self) -> float:
        """Wait for a batch and buy for it, and return in how many seconds to look again."""
        if await self._wait_for_batch():
            return await self._provision()
        # No trigger within the first wait: whatever waits has been planned, so removals may begin.
        self._nominations.know()
        now_s = self._clock.monotonic()
        # Events may be missed, and limits, prices and nodes change without one.
        is_due = now_s >= self._again_at_s or now_s - self._triggered_s >= TRIGGERED_AGAIN_S
        if is_due and self._is_needed():
            self._trigger(None)
        return 0.0

    def _on_pod(self, pod: Pod) -> None:
        if is_provisionable(pod):
            self._trigger(pod.uid)

    def _trigger(self, uid: str | None) -> None:
        self._triggered_s = self._clock.monotonic()
        self._window.trigger(uid)
        self._wake_up.set()

    def _is_needed(self) -> bool:
        """Return True if pods wait for nodes, or their nodes go."""
        return any(map(is_provisionable, self._watched.pods())) or any(map(is_being_removed, self._watched.nodes()))

    def _warn(self, warnings: Iterable[str]) -> None:
        """Say what does not count in plans, and which gangs do not start, once for each text until it is gone."""
        current_warnings = frozenset(warnings)
        for text in sorted(current_warnings - self._warnings):
            log.warning("A plan has a warning", what=text)
        self._warnings = current_warnings

    async def _wait_for_batch(self) -> bool:
        self._window.begin()
        while (wake_at_s := self._window.wake_at_s) is not None:
            left_s = wake_at_s - self._clock.monotonic()
            if left_s > 0:
                await self._wake_up.wait(left_s)
            self._window.state()
        return self._window.state() is BatchingState.BATCHED

    async def _provision(self) -> float:
        async with self._purchasing.turn:
            return await self._provision_in_turn()

    async def _provision_in_turn(self) -> float:
        if not self._watched.is_current or await self._purchasing.unseen():
            # The pods still wait: without a trigger they would be planned only once others come.
            self._trigger(None)
            return NOT_SEEN_PAUSE_S
        try:
            objects, now_s = self._watched.objects(), self._clock.now()
            plan = await self._compute(lambda: self._planner.plan(objects, now_s))
            subjects = (*(node.name for node in plan.nodes), *plan.existing, *plan.unschedulable)
            plan = plan.with_id(plan_id(now_s, subjects))
            self._warn(plan.warnings)
            # Before the purchase: from now on disruption must leave these nodes to the pods.
            self._nominations.add([*plan.existing, *(node.name for node in plan.nodes)])
            log.info(
                "Planned nodes",
                plan=plan.id,
                nodes=len(plan.nodes),
                pods=sum(len(node.pods) for node in plan.nodes),
                pods_on_existing=sum(map(len, plan.existing.values())),
                staying=len(plan.unschedulable),
            )
            bought = await self._purchasing.buy(plan.nodes)
        except BaseException:
            # The pods still wait: the next step plans for them again, without a new trigger.
            self._trigger(None)
            raise
        # Also where some were refused: their pods go on waiting, which nothing else has to wait for.
        self._nominations.know()
        self._report.record_plan(plan, bought.nodes, bought.refused_nodes)
        self._again_at_s = self._clock.monotonic() + bought.again_in_s
        if any(error.may_have_happened for error in bought.errors):
            # Whether there is such a node is looked up before the next plan.
            self._trigger(None)
        return 0.0
