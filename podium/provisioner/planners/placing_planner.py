"""Plans by podium's own plugins: what is bought is what podium then places the pods on, as are the nodes that stay.

Owns the cluster that podium's plugins see. Which nodes are candidates, and in which order, is Karpenter's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, Final

from podium.config import KubeSchedulerConfiguration
from podium.engine.cluster import Cluster
from podium.engine.gangs import GROUPS
from podium.engine.store import ObjectStore
from podium.framework.contract.plugin import Plugin
from podium.objects.core import Pod
from podium.objects.resource_types import WITHOUT_GATES, KubeObject, ResourceType
from podium.provisioner.apis.objects import ClusterObjects
from podium.provisioner.disruption.broken_gangs import broken_gangs
from podium.provisioner.disruption.candidates import names_of
from podium.provisioner.disruption.disruption_state import MakeSimulator
from podium.provisioner.planners.placed_plans import plan_with_podium
from podium.provisioner.planners.placing_simulator import PlacingSimulator
from podium.provisioner.planners.planner import Planner, Removal
from podium.provisioner.provisioning.launching import with_names
from podium.provisioner.provisioning.plan import Plan
from podium.provisioner.state.reading import KINDS

OTHERS: Final = (*(resource for resource in WITHOUT_GATES if resource.kind not in KINDS), *GROUPS)
"""The kinds that only podium's plugins read."""


@dataclass(frozen=True, slots=True)
class PlacingPlanner:
    """Plans as a `Planner` does, but podium's own plugins judge where pods fit.

    Args:
        config: the profiles that place the pods.
        any_scheduler: whether the first profile decides for every scheduler that a pod names.
    """

    by_karpenter: Planner
    config: KubeSchedulerConfiguration
    classes: Mapping[str, type[Plugin]]
    any_scheduler: bool = False

    def plan(self, objects: ClusterObjects, now_s: float) -> Plan:
        """Plan what to buy now.

        Args:
            objects: with the others that podium's plugins read.
            now_s: the time, in seconds since the epoch.

        Raises:
            FieldError: an object has a value that has no meaning.
            ClusterError: an object cannot be used.
        """
        basis = self.by_karpenter.basis(objects)
        plan = plan_with_podium(basis, self._cluster(objects), now_s)
        return replace(plan, nodes=with_names(objects, plan.nodes), warnings=(*basis.warnings, *plan.warnings))

    def removal(self, objects: ClusterObjects, now_s: float, fixed_nodes: AbstractSet[str]) -> Removal | None:
        """Plan as `Planner.removal` does."""
        return self.by_karpenter.removal(objects, now_s, fixed_nodes, self._simulators(objects))

    def validate(
        self, removal: Removal, objects: ClusterObjects, now_s: float, fixed_nodes: AbstractSet[str]
    ) -> Removal | str:
        """Look again as `Planner.validate` does."""
        return self.by_karpenter.validate(removal, objects, now_s, fixed_nodes, self._simulators(objects))

    def objection(self, removal: Removal, objects: ClusterObjects) -> str:
        """Return which gang would break if the nodes went now; empty if none would."""
        names = names_of(removal.command.candidates)
        return "; ".join(gang.text for gang in broken_gangs(self.by_karpenter.basis(objects), names))

    def _simulators(self, objects: ClusterObjects) -> MakeSimulator:
        """Return a factory of simulators. The first call builds the cluster: where no node may go, none is needed."""
        return lambda basis, evictions, now_s: PlacingSimulator(self._cluster(objects), basis, evictions, now_s)

    def _cluster(self, objects: ClusterObjects) -> Cluster:
        return Cluster(self._config_for(objects.pods), ObjectStore(_objects_in(objects), WITHOUT_GATES), self.classes)

    def _config_for(self, pods: Iterable[Pod]) -> KubeSchedulerConfiguration:
        # `any_scheduler` answers for pods of other schedulers, too: each of their names gets a profile like the first.
        first = self.config.profiles[0]
        names = dict.fromkeys(pod.spec.scheduler_name for pod in pods)
        if not self.any_scheduler or not names:
            return self.config
        return replace(self.config, profiles=tuple(replace(first, scheduler_name=name) for name in names))


def _objects_in(objects: ClusterObjects) -> Iterator[tuple[ResourceType[Any], KubeObject]]:
    for resource in WITHOUT_GATES:
        if resource.kind in KINDS:
            yield from ((resource, item) for item in getattr(objects, KINDS[resource.kind][0]))
    yield from objects.others
