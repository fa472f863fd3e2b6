"""The one way to place a pod: decide, assume, reserve, run Permit; and undo all of it.

Owns the order of these steps and their reversal. Never binds and never waits: the daemon continues with the binding
cycle, while an offline caller stops here. Used by the daemon's loop, `podium.Cluster`, the estimator's accurate mode,
the test kit and the benchmarks.

Source: kubernetes pkg/scheduler/schedule_one.go (schedulingCycle, assumeAndReserve), v1.36.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from podium.cluster import Snapshot
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.pod_groups import ChosenElsewhere
from podium.framework.contract.status import Status
from podium.framework.contract.steps import Steps, run_unasked
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.explainer import Explainer
from podium.framework.cycle.extenders import NO_EXTENDERS, Extenders
from podium.framework.cycle.node_dry_runs import dry_runs_of
from podium.framework.cycle.schedule import Decision, attempt
from podium.framework.cycle.scoring import Pick, choose
from podium.framework.cycle.search import Rotation
from podium.framework.profile.runtime import Framework
from podium.objects.core import Pod
from podium.queues import Nominator


class AssumedPods(Protocol):
    """The nodes, and the pods that count on them: the cache, or a simulation.

    Raises: `CacheError` from `assume_pod` if the pod counts on a node already.
    """

    def snapshot(self) -> Snapshot:
        """Return the nodes and pods as they are now."""

    def assume_pod(self, pod: Pod, node_name: str) -> None:
        """Count the pod on the node."""

    def forget_pod(self, pod: Pod) -> bool:
        """Stop counting an assumed pod, and return whether it was assumed."""

    def is_assumed(self, uid: str) -> bool:
        """Return whether the pod is assumed."""

    def pod(self, uid: str) -> Pod | None:
        """Return the pod as it counts on its node; None if it does not."""


class PlacedPod(NamedTuple):
    """A pod for which a node was chosen.

    Attributes:
        status: the rejection by Reserve or Permit, after which the pod counts on no node; None if it is assumed.
        waits: plugin → seconds, if Permit makes the pod wait before it is bound; `waits_for` names the reason.
        nominated_to: the pod's nominated node until then; placing the pod removes the nomination.
    """

    framework: Framework
    state: CycleState
    pod: Pod
    node_name: str
    status: Status | None
    waits: Mapping[str, float]
    nominated_to: str | None
    waits_for: str = ""


@dataclass(slots=True, eq=False)
class Engine:
    """The state that decisions depend on, and the steps to place a pod.

    Attributes:
        cache: the nodes, and the pods that count on them.
        nominator: the nominated pods. A pod that is placed loses its nomination.
        percentage_of_nodes_to_score: for profiles without a value of their own.
        pick: chooses among the total scores.
        explainer: receives every verdict and score, if it is given.
        keeps_scores: whether each cycle keeps the scores of the nodes that it compared.
        asks_permit: whether Permit plugins are asked; not in the simulation of a group.
    """

    cache: AssumedPods
    nominator: Nominator
    percentage_of_nodes_to_score: int
    extenders: Extenders = NO_EXTENDERS
    pick: Pick = choose
    explainer: Explainer | None = None
    rotation: Rotation = field(default_factory=Rotation)
    keeps_scores: bool = False
    asks_permit: bool = True

    def cycle(self, framework: Framework, pod: Pod) -> Cycle:
        """Begin an attempt at the pod, on the cluster as it is now."""
        cycle = Cycle(
            framework,
            pod,
            self.cache.snapshot(),
            self.nominator,
            keeps_scores=self.keeps_scores,
            measures_plugins=framework.begin_attempt(),
        )
        cycle.state.dry_runs = dry_runs_of(cycle)
        return cycle

    def attempt(self, cycle: Cycle) -> Steps[Decision]:
        """Choose a node for the pod, calling the extenders that are interested in it."""
        return attempt(
            cycle,
            self.rotation,
            self.percentage_of_nodes_to_score,
            self.extenders,
            self.pick,
            self.explainer,
        )

    def decide(self, cycle: Cycle) -> Decision:
        """Choose a node without extenders, as `attempt` does with them."""
        return run_unasked(self.attempt(cycle))

    def place(self, cycle: Cycle, node_name: str) -> PlacedPod:
        """Assume the pod on the chosen node, reserve, and run Permit. Undo all of it if a plugin rejects the pod.

        Raises:
            CacheError: the pod counts on a node already.
        """
        framework, state, pod = cycle.framework, cycle.state, cycle.pod
        nominated_to = self.nominator.node_of(pod.uid)
        self.cache.assume_pod(pod, node_name)
        # The pod counts on its node from now on; its nomination would count it twice.
        self.nominator.delete(pod)
        status = framework.run_reserve(state, pod, node_name) if framework.reserve else None
        waits: Mapping[str, float] = {}
        waits_for = ""
        if status is None and framework.permit and self.asks_permit and state.find(ChosenElsewhere) is None:
            permit = framework.run_permit(state, pod, node_name)
            status, waits, waits_for = permit.status, permit.waits, permit.message
        # The pod may wait for minutes, and the verdicts on its nodes are of no more use.
        if waits:
            cycle.forget_nodes()
        placed_pod = PlacedPod(framework, state, pod, node_name, status, waits, nominated_to, waits_for)
        if status is not None:
            self._withdraw(placed_pod)
        return placed_pod

    def take_back(self, placed_pod: PlacedPod) -> None:
        """Undo the placement of a pod and restore its nomination.

        A pod whose binding the watch has confirmed meanwhile stays on its node.
        """
        if placed_pod.status is None:
            self._withdraw(placed_pod)
        # Unless it was nominated elsewhere meanwhile.
        if placed_pod.nominated_to is not None and self.nominator.node_of(placed_pod.pod.uid) is None:
            self.nominator.add(placed_pod.pod, placed_pod.nominated_to)

    def _withdraw(self, placed_pod: PlacedPod) -> None:
        placed_pod.framework.run_unreserve(placed_pod.state, placed_pod.pod, placed_pod.node_name)
        if self.cache.is_assumed(placed_pod.pod.uid):
            self.cache.forget_pod(placed_pod.pod)
