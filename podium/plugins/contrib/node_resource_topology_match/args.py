"""The args of NodeResourceTopologyMatch; names and defaults are upstream's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Final, Literal

import msgspec

from podium.plugins.contrib.node_resource_topology_match.scores import LEAST_NUMA_NODES, STRATEGIES
from podium.plugins.contrib.plugin_args import PluginArgs, invalid

_Weight = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Seconds = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class ResourceWeight(msgspec.Struct, frozen=True):
    """The weight of a requested resource; 0 counts as 1."""

    name: str = ""
    weight: _Weight = 0


_CPU_AND_MEMORY: Final = (ResourceWeight("cpu", 1), ResourceWeight("memory", 1))


class ScoringStrategy(msgspec.Struct, frozen=True):
    """The strategy, and the weights of resources; without resources cpu and memory have the weight 1."""

    type: str = ""
    resources: tuple[ResourceWeight, ...] = ()


class CacheArgs(msgspec.Struct, frozen=True, rename="camel"):
    """How the cache with reservations follows the nodes; see `docs/policies.md`."""

    foreign_pods_detect: str | None = "All"
    resync_method: str | None = "Autodetect"
    informer_mode: str | None = "Dedicated"
    resync_scope: str | None = "All"


class NodeResourceTopologyMatchArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """The plugin's args.

    Attributes:
        cache_resync_period_seconds: above 0, placed pods are reserved until a later topology contains them, which is
            checked this often.
        discard_reserved_nodes: instead, a node takes no further pod while one is being bound to it.
        when_missing: podium's own: whether pods pass or are rejected while the API server does not serve
            NodeResourceTopologies.
    """

    scoring_strategy: ScoringStrategy | None = None
    cache_resync_period_seconds: _Seconds = 0
    discard_reserved_nodes: bool = False
    cache: CacheArgs | None = None
    preemption_mode: str | None = "Disabled"
    when_missing: Literal["Pass", "Reject"] = "Pass"

    def problems(self) -> Iterable[str]:
        """Return what is wrong with the values, in upstream's words."""
        strategy = self.scoring_strategy
        if strategy is not None and strategy.type not in (*STRATEGIES, LEAST_NUMA_NODES):
            yield invalid("scoringStrategy.type", strategy.type, "invalid ScoringStrategyType")
        if self.preemption_mode not in (None, "Disabled", "Enabled"):
            yield invalid("preemptionMode", self.preemption_mode, "invalid PreemptionMode")

    @property
    def strategy(self) -> str:
        """Return the name of the scoring strategy."""
        return "LeastAllocated" if self.scoring_strategy is None else self.scoring_strategy.type

    @property
    def weights(self) -> Mapping[str, int]:
        """Return the weights of resources that have one."""
        strategy = self.scoring_strategy
        resources = _CPU_AND_MEMORY if strategy is None or not strategy.resources else strategy.resources
        return {resource.name: resource.weight or 1 for resource in resources}

    @property
    def preempts(self) -> bool:
        """Return whether victims of a preemption free what they hold of NUMA nodes."""
        return self.preemption_mode == "Enabled"
