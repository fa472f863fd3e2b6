"""The provisioner's metrics.

Source: karpenter pkg/metrics/metrics.go, v1.15.0, for the kinds of things that are counted.
"""

from __future__ import annotations

from collections.abc import Iterable

from podium.provisioner.planners.planner import Removal
from podium.provisioner.provisioning.plan import NodePlan, Plan
from podium.telemetry.families import counter, exponential, gauge, histogram
from podium.telemetry.process_metrics import ProcessMetrics

_PREFIX = "podium_provisioner"


class ProvisionerMetrics(ProcessMetrics):
    """The metric families of one provisioner."""

    def __init__(self) -> None:
        self._steps_s = histogram(
            f"{_PREFIX}_loop_duration_seconds", "Time of one step of a loop.", exponential(0.001, 4, 10), "loop"
        )
        self._errors = counter(f"{_PREFIX}_loop_errors_total", "Steps of a loop that failed and are repeated.", "loop")
        self._bought = counter(f"{_PREFIX}_nodes_created_total", "Nodes that were bought.", "nodepool")
        self._refused = counter(
            f"{_PREFIX}_nodes_refused_total", "Nodes that were refused, and are asked for again.", "nodepool"
        )
        self._removed = counter(f"{_PREFIX}_nodes_removed_total", "Nodes whose removal has begun.", "reason")
        self._staying = gauge(f"{_PREFIX}_unschedulable_pods", "Pods that no node which can be bought would help.")
        super().__init__(
            self._steps_s, self._errors, self._bought, self._refused, self._removed, self._staying, elects=True
        )

    def record_step(self, loop: str, seconds: float, *, is_error: bool) -> None:
        """Count a step of a loop that has ended."""
        self._steps_s[(loop,)].observe(seconds)
        if is_error:
            self._errors[(loop,)].add()

    def record_plan(self, plan: Plan, bought: Iterable[NodePlan], refused_nodes: Iterable[NodePlan] = ()) -> None:
        """Count the pods that a plan leaves pending, and the nodes that were bought, and refused."""
        self._staying[()].set(len(plan.unschedulable))
        for node in bought:
            self._bought[(node.pool,)].add()
        for node in refused_nodes:
            self._refused[(node.pool,)].add()

    def record_removal(self, removal: Removal) -> None:
        """Count the nodes whose removal has begun."""
        self._removed[(removal.reason,)].add(len(removal.nodes))
