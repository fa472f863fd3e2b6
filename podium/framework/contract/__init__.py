"""The plugin contract: all that plugins import, from its modules. In-tree plugins name it `fwk`."""

from podium.framework.contract.bind import (
    BindPlugin,
    PermitPlugin,
    PostBindPlugin,
    PreBindPlugin,
    PreBindPreFlightResult,
    ReservePlugin,
)
from podium.framework.contract.choosing import ChoosingPlugin
from podium.framework.contract.cluster_event import (
    ActionType,
    EventRegistration,
    HintFunction,
    HintScope,
    QueueingHint,
    on,
)
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.filter import (
    FilterPlugin,
    OnlyRows,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    TableFilterPlugin,
)
from podium.framework.contract.group_post_filter import GroupHelp, PodGroupPostFilterPlugin, UnscheduledGroup
from podium.framework.contract.handle import Handle, Lister
from podium.framework.contract.node_metrics import NodeMetrics
from podium.framework.contract.pausing import FilterInterrupted, LongFilterPlugin, Turn
from podium.framework.contract.placements import PlacementGeneratePlugin, PlacementScorePlugin
from podium.framework.contract.plugin import Plugin, PreEnqueuePlugin, QueueSortPlugin, Scope
from podium.framework.contract.pod_groups import (
    ChosenElsewhere,
    Placement,
    ProposedGroup,
    SimulatedGroup,
    ThoroughSearch,
)
from podium.framework.contract.post_filter import (
    AskingPostFilterPlugin,
    FilteredNodes,
    PostFilterPlugin,
    PostFilterResult,
)
from podium.framework.contract.questions import Victims
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.contract.score import MAX_NODE_SCORE, PreScorePlugin, ScorePlugin, TableScorePlugin
from podium.framework.contract.status import (
    SKIP,
    Code,
    GateNeededError,
    PluginError,
    ScheduleError,
    Status,
    error_status,
    unresolvable,
    unschedulable,
)
from podium.framework.contract.steps import Steps
from podium.framework.contract.writing import BindingInDoubt, BindingWriter, ObjectWrite, WritingPlugin
from podium.objects.resource_types import EventResource

__all__ = [
    "MAX_NODE_SCORE",
    "SKIP",
    "ActionType",
    "AskingPostFilterPlugin",
    "BindPlugin",
    "BindingInDoubt",
    "BindingWriter",
    "ChoosingPlugin",
    "ChosenElsewhere",
    "Code",
    "CycleState",
    "EventRegistration",
    "EventResource",
    "FilterInterrupted",
    "FilterPlugin",
    "FilteredNodes",
    "GateNeededError",
    "GroupHelp",
    "Handle",
    "HintFunction",
    "HintScope",
    "Lister",
    "LongFilterPlugin",
    "NodeMetrics",
    "ObjectWrite",
    "OnlyRows",
    "PermitPlugin",
    "Placement",
    "PlacementGeneratePlugin",
    "PlacementScorePlugin",
    "Plugin",
    "PluginError",
    "PodGroupPostFilterPlugin",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreBindPreFlightResult",
    "PreEnqueuePlugin",
    "PreFilterExtensions",
    "PreFilterPlugin",
    "PreFilterResult",
    "PreScorePlugin",
    "ProposedGroup",
    "QueueSortPlugin",
    "QueuedPodInfo",
    "QueueingHint",
    "ReservePlugin",
    "ScheduleError",
    "Scope",
    "ScorePlugin",
    "SimulatedGroup",
    "Status",
    "Steps",
    "TableFilterPlugin",
    "TableScorePlugin",
    "ThoroughSearch",
    "Turn",
    "UnscheduledGroup",
    "Victims",
    "WritingPlugin",
    "error_status",
    "on",
    "unresolvable",
    "unschedulable",
]
