"""The in-tree plugins, one per file or folder; class name = configuration name.

Owns the plugins that kube-scheduler ships with. Never knows the queue, the binder or another plugin's state, and never
does I/O except through the handle.
"""

from collections.abc import Mapping
from typing import Final

from podium.framework.contract.plugin import Plugin
from podium.plugins.default_binder import DefaultBinder
from podium.plugins.default_preemption import DefaultPreemption
from podium.plugins.dynamic_resources.plugin import DynamicResources
from podium.plugins.gang_scheduling import GangScheduling
from podium.plugins.image_locality import ImageLocality
from podium.plugins.inter_pod_affinity.plugin import InterPodAffinity
from podium.plugins.node_affinity import NodeAffinity
from podium.plugins.node_declared_features import NodeDeclaredFeatures
from podium.plugins.node_name import NodeName
from podium.plugins.node_ports import NodePorts
from podium.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from podium.plugins.node_resources_fit import NodeResourcesFit
from podium.plugins.node_unschedulable import NodeUnschedulable
from podium.plugins.node_volume_limits import NodeVolumeLimits
from podium.plugins.pod_group_pods_count import PodGroupPodsCount
from podium.plugins.pod_topology_spread.plugin import PodTopologySpread
from podium.plugins.priority_sort import PrioritySort
from podium.plugins.scheduling_gates import SchedulingGates
from podium.plugins.taint_toleration import TaintToleration
from podium.plugins.topology_placement_generator import TopologyPlacementGenerator
from podium.plugins.volume_binding import VolumeBinding
from podium.plugins.volume_restrictions import VolumeRestrictions
from podium.plugins.volume_zone import VolumeZone

IN_TREE: Final[Mapping[str, type[Plugin]]] = {
    "SchedulingGates": SchedulingGates,
    "PrioritySort": PrioritySort,
    "NodeUnschedulable": NodeUnschedulable,
    "NodeName": NodeName,
    "TaintToleration": TaintToleration,
    "NodeAffinity": NodeAffinity,
    "NodePorts": NodePorts,
    "NodeResourcesFit": NodeResourcesFit,
    "VolumeRestrictions": VolumeRestrictions,
    "NodeVolumeLimits": NodeVolumeLimits,
    "VolumeBinding": VolumeBinding,
    "VolumeZone": VolumeZone,
    "PodTopologySpread": PodTopologySpread,
    "InterPodAffinity": InterPodAffinity,
    "DynamicResources": DynamicResources,
    "DefaultPreemption": DefaultPreemption,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocation,
    "ImageLocality": ImageLocality,
    "DefaultBinder": DefaultBinder,
    "NodeDeclaredFeatures": NodeDeclaredFeatures,
    "GangScheduling": GangScheduling,
    "TopologyPlacementGenerator": TopologyPlacementGenerator,
    "PodGroupPodsCount": PodGroupPodsCount,
}
"""Every plugin that a profile can enable by name."""

__all__ = ["IN_TREE"]
