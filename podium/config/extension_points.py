"""Facts about plugins in the v1 API: extension points, the plugins that extend them, and the default set.

Owns two tables: extension points with the name of the interface in upstream's messages, and in-tree plugins with the
extension points they extend, their weight, and the feature gate of each that has one, all as the newest release has
them: `podium.config.releases` says what is different in others. Never imports a plugin: a test checks that table and
classes agree.

Source: pkg/scheduler/apis/config/v1/default_plugins.go, pkg/scheduler/framework/plugins (kube-scheduler 1.37.2)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class ExtensionPoint(StrEnum):
    """A key of ``profiles[].plugins``; the value is the key as written in the file."""

    PRE_ENQUEUE = "preEnqueue"
    QUEUE_SORT = "queueSort"
    PRE_FILTER = "preFilter"
    FILTER = "filter"
    POST_FILTER = "postFilter"
    PRE_SCORE = "preScore"
    SCORE = "score"
    RESERVE = "reserve"
    PERMIT = "permit"
    PRE_BIND = "preBind"
    BIND = "bind"
    POST_BIND = "postBind"
    MULTI_POINT = "multiPoint"
    PLACEMENT_GENERATE = "placementGenerate"
    PLACEMENT_SCORE = "placementScore"
    POD_GROUP_POST_FILTER = "podGroupPostFilter"

    @property
    def interface(self) -> str:
        """The interface's name in upstream's messages: ``preFilter`` → ``PreFilterPlugin``."""
        return f"{self.value[0].upper()}{self.value[1:]}Plugin"


PluginRegistry = Mapping[str, frozenset[ExtensionPoint]]
"""Plugin name → the extension points it extends; the expansion needs no other fact about a plugin."""


@dataclass(frozen=True, slots=True)
class InTreePlugin:
    """The facts about one plugin of the default set.

    Attributes:
        weight: as the default set has it; 0 counts as 1 when scoring.
        gate: the feature gate without which it is not in the default set; "" if it always is. One that
            `config.feature_gates` does not name is alpha, and off by default.
    """

    points: frozenset[ExtensionPoint]
    weight: int = 0
    gate: str = ""


def _extends(points: str, weight: int = 0, gate: str = "") -> InTreePlugin:
    return InTreePlugin(frozenset(ExtensionPoint(point) for point in points.split()), weight, gate)


DEFAULT_PLUGINS: Final[Mapping[str, InTreePlugin]] = {
    "SchedulingGates": _extends("preEnqueue"),
    "PrioritySort": _extends("queueSort"),
    "NodeName": _extends("preFilter filter"),
    "NodeUnschedulable": _extends("preFilter filter"),
    "TaintToleration": _extends("preFilter filter preScore score", weight=3),
    "NodeAffinity": _extends("preFilter filter preScore score", weight=2),
    "NodePorts": _extends("preFilter filter"),
    "NodeResourcesFit": _extends("preFilter filter preScore score placementScore", weight=1),
    "VolumeRestrictions": _extends("preFilter filter"),
    "NodeVolumeLimits": _extends("preFilter filter"),
    "VolumeBinding": _extends("preFilter filter reserve preBind preScore score"),
    "VolumeZone": _extends("preFilter filter"),
    "PodTopologySpread": _extends("preFilter filter preScore score", weight=2),
    "InterPodAffinity": _extends("preFilter filter preScore score", weight=2),
    "DynamicResources": _extends(
        "preEnqueue preFilter filter postFilter podGroupPostFilter score reserve preBind", weight=2
    ),
    "DefaultPreemption": _extends("preEnqueue postFilter podGroupPostFilter"),
    "NodeResourcesBalancedAllocation": _extends("preScore score", weight=1),
    "ImageLocality": _extends("score", weight=1),
    "DefaultBinder": _extends("bind"),
    "NodeDeclaredFeatures": _extends("preFilter filter", gate="NodeDeclaredFeatures"),
    "GangScheduling": _extends("preEnqueue permit", gate="GenericWorkload"),
    "TopologyPlacementGenerator": _extends("placementGenerate", gate="TopologyAwareWorkloadScheduling"),
    "PodGroupPodsCount": _extends("placementScore", weight=1, gate="TopologyAwareWorkloadScheduling"),
}
"""In the order of the default ``multiPoint`` list."""

IN_TREE_PLUGINS: Final[PluginRegistry] = MappingProxyType({name: row.points for name, row in DEFAULT_PLUGINS.items()})

REMOVED_PLUGINS: Final = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
"""Plugin names that version v1 refuses."""
