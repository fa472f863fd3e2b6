"""Facts about plugins in the v1 API: extension points, the plugins that extend them, and the default set.

Owns three tables: extension points with the name of the interface in upstream's messages, in-tree plugins with the
extension points they extend, and the default ``multiPoint`` list. Never imports a plugin: the package with the classes
checks that tables and classes agree.

Source: pkg/scheduler/apis/config/v1/default_plugins.go, pkg/scheduler/framework/plugins (kube-scheduler 1.36.2)
"""

from collections.abc import Mapping
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

    @property
    def interface(self) -> str:
        """The interface's name in upstream's messages: ``preFilter`` → ``PreFilterPlugin``."""
        return f"{self.value[0].upper()}{self.value[1:]}Plugin"


PluginRegistry = Mapping[str, frozenset[ExtensionPoint]]
"""Plugin name → the extension points it extends; the expansion needs no other fact about a plugin."""


def _extends(points: str) -> frozenset[ExtensionPoint]:
    return frozenset(ExtensionPoint(point) for point in points.split())


IN_TREE_PLUGINS: Final[PluginRegistry] = MappingProxyType(
    {
        "SchedulingGates": _extends("preEnqueue"),
        "PrioritySort": _extends("queueSort"),
        "NodeUnschedulable": _extends("filter"),
        "NodeName": _extends("filter"),
        "TaintToleration": _extends("filter preScore score"),
        "NodeAffinity": _extends("preFilter filter preScore score"),
        "NodePorts": _extends("preFilter filter"),
        "NodeResourcesFit": _extends("preFilter filter preScore score placementScore"),
        "VolumeRestrictions": _extends("preFilter filter"),
        "NodeVolumeLimits": _extends("preFilter filter"),
        "VolumeBinding": _extends("preFilter filter reserve preBind preScore score"),
        "VolumeZone": _extends("preFilter filter"),
        "PodTopologySpread": _extends("preFilter filter preScore score"),
        "InterPodAffinity": _extends("preFilter filter preScore score"),
        "DynamicResources": _extends("preEnqueue preFilter filter postFilter score reserve preBind"),
        "DefaultPreemption": _extends("preEnqueue postFilter"),
        "NodeResourcesBalancedAllocation": _extends("preScore score"),
        "ImageLocality": _extends("score"),
        "DefaultBinder": _extends("bind"),
        "NodeDeclaredFeatures": _extends("preFilter filter"),
        "GangScheduling": _extends("preEnqueue permit"),
        "TopologyPlacementGenerator": _extends("placementGenerate"),
        "PodGroupPodsCount": _extends("placementScore"),
    }
)

DEFAULT_MULTI_POINT: Final[tuple[tuple[str, int], ...]] = (
    ("SchedulingGates", 0),
    ("PrioritySort", 0),
    ("NodeUnschedulable", 0),
    ("NodeName", 0),
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodePorts", 0),
    ("NodeResourcesFit", 1),
    ("VolumeRestrictions", 0),
    ("NodeVolumeLimits", 0),
    ("VolumeBinding", 0),
    ("VolumeZone", 0),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("DynamicResources", 2),
    ("DefaultPreemption", 0),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
    ("DefaultBinder", 0),
    ("NodeDeclaredFeatures", 0),
)
"""Names and weights, in order, with the feature gates at their 1.36 defaults. Weight 0 counts as 1 when scoring."""

REMOVED_PLUGINS: Final = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
"""Plugin names that version v1 refuses."""
