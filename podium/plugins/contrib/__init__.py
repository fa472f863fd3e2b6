"""Plugins that kube-scheduler does not ship with, and that podium does: a profile has to enable them by name.

Owns ports of plugins that people have in their clusters today, under the names, args and objects that they know.
"""

from collections.abc import Mapping
from typing import Final

from podium.framework.contract.plugin import Plugin
from podium.plugins.contrib.capacity_scheduling.plugin import CapacityScheduling
from podium.plugins.contrib.coscheduling.plugin import Coscheduling
from podium.plugins.contrib.fragmentation_gradient_descent import FragmentationGradientDescent
from podium.plugins.contrib.gpu_packing import GpuPacking
from podium.plugins.contrib.load_variation_risk_balancing import LoadVariationRiskBalancing
from podium.plugins.contrib.low_risk_over_commitment import LowRiskOverCommitment
from podium.plugins.contrib.network_overhead import NetworkOverhead
from podium.plugins.contrib.node_load import NodeLoad
from podium.plugins.contrib.node_metadata import NodeMetadata
from podium.plugins.contrib.node_resource_topology_match.plugin import NodeResourceTopologyMatch
from podium.plugins.contrib.node_resources_allocatable import NodeResourcesAllocatable
from podium.plugins.contrib.peaks import Peaks
from podium.plugins.contrib.pod_state import PodState
from podium.plugins.contrib.preemption_toleration import PreemptionToleration
from podium.plugins.contrib.qos_sort import QOSSort
from podium.plugins.contrib.sy_sched import SySched
from podium.plugins.contrib.target_load_packing import TargetLoadPacking
from podium.plugins.contrib.topological_sort import TopologicalSort
from podium.plugins.contrib.topology_levels.plugin import TopologyLevels

CONTRIB: Final[Mapping[str, type[Plugin]]] = {
    "CapacityScheduling": CapacityScheduling,
    "Coscheduling": Coscheduling,
    "FragmentationGradientDescent": FragmentationGradientDescent,
    "GpuPacking": GpuPacking,
    "LoadVariationRiskBalancing": LoadVariationRiskBalancing,
    "LowRiskOverCommitment": LowRiskOverCommitment,
    "NetworkOverhead": NetworkOverhead,
    "NodeLoad": NodeLoad,
    "NodeMetadata": NodeMetadata,
    "NodeResourceTopologyMatch": NodeResourceTopologyMatch,
    "NodeResourcesAllocatable": NodeResourcesAllocatable,
    "Peaks": Peaks,
    "PodState": PodState,
    "PreemptionToleration": PreemptionToleration,
    "QOSSort": QOSSort,
    "SySched": SySched,
    "TargetLoadPacking": TargetLoadPacking,
    "TopologicalSort": TopologicalSort,
    "TopologyLevels": TopologyLevels,
}
"""Every plugin of this kind by name."""
SCHEDULER_PLUGINS: Final = CONTRIB.keys() - {
    "FragmentationGradientDescent",
    "GpuPacking",
    "NodeLoad",
    "TopologyLevels",
}
"""The names of those that the project scheduler-plugins has; the others are podium's own."""

__all__ = ["CONTRIB", "SCHEDULER_PLUGINS"]
