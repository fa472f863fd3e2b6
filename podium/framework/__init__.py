"""The plugin contract and the pure algorithm: profiles, extension points, diagnosis.

One scheduling attempt is a synchronous, deterministic function of pod, snapshot, profile, clock and random source.
Never awaits, never does I/O, never reads a clock that was not passed in.

The names exported here are the public API for plugins.
"""

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.framework.contract.bind import BindPlugin, PermitPlugin, PostBindPlugin, PreBindPlugin, ReservePlugin
from podium.framework.contract.cluster_event import ActionType, EventRegistration, HintScope, QueueingHint, on
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.filter import (
    FilterPlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    TableFilterPlugin,
)
from podium.framework.contract.handle import Handle, Nominator, WaitingPod, WaitingPods
from podium.framework.contract.node_metrics import NodeMetrics
from podium.framework.contract.plugin import Plugin, PreEnqueuePlugin, QueueSortPlugin, Scope
from podium.framework.contract.post_filter import PostFilterPlugin, PostFilterResult
from podium.framework.contract.score import MAX_NODE_SCORE, PreScorePlugin, ScorePlugin, TableScorePlugin
from podium.framework.contract.status import SKIP, Code, PluginError, Status, error_status, unresolvable, unschedulable
from podium.lib.change_log import ChangeLog
from podium.objects import resource_types
from podium.objects.core import Node, Pod
from podium.objects.custom_resources import custom_resource, raw_objects
from podium.objects.meta import ClusterObject, NamespacedObject, Value
from podium.objects.node_metrics import MetricsQuery, MetricsSource
from podium.objects.resource_types import EventResource

__all__ = [
    "MAX_NODE_SCORE",
    "SKIP",
    "ActionType",
    "BindPlugin",
    "ChangeLog",
    "ClusterObject",
    "Code",
    "CycleState",
    "EventRegistration",
    "EventResource",
    "FilterPlugin",
    "Handle",
    "HintScope",
    "IntArray",
    "MetricsQuery",
    "MetricsSource",
    "NamespacedObject",
    "Node",
    "NodeInfo",
    "NodeMetrics",
    "Nominator",
    "PermitPlugin",
    "Plugin",
    "PluginError",
    "Pod",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFilterExtensions",
    "PreFilterPlugin",
    "PreFilterResult",
    "PreScorePlugin",
    "QueueSortPlugin",
    "QueueingHint",
    "ReservePlugin",
    "Rows",
    "Scope",
    "ScorePlugin",
    "Snapshot",
    "Status",
    "TableFilterPlugin",
    "TableScorePlugin",
    "Value",
    "WaitingPod",
    "WaitingPods",
    "custom_resource",
    "error_status",
    "on",
    "raw_objects",
    "resource_types",
    "unresolvable",
    "unschedulable",
]
