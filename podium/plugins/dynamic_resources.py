"""DynamicResources: devices for pods that claim them.

Runs at: PreEnqueue, PreFilter, Filter, PostFilter, Score, NormalizeScores, Reserve, PreBind. It only lets pods without
resource claims through, and for these it does nothing.
Verdict: UnschedulableAndUnresolvable from PreFilter for pods with resource claims. PostFilter: Unschedulable, or an
Error if another plugin's PreFilter stopped the attempt before this one's ran.
Requeue: a node is added, changes labels or grows; the pod's own claims have been generated.
Cost: constant.
Source: kubernetes pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, v1.36.2.
Differs: podium does not allocate devices yet. A pod with resource claims waits, and its condition says so; it enters
the queue even before its claims exist, so that users see that reason. ResourceClaims, ResourceSlices and DeviceClasses
are not watched, extended resources are never backed by devices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.framework.contract.cluster_event import (
    ActionType,
    EventRegistration,
    EventResource,
    HintScope,
    QueueingHint,
    on,
)
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.interface import (
    FilteredNodes,
    FilterPlugin,
    Handle,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreBindPreFlightResult,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    ReservePlugin,
    Scope,
    ScorePlugin,
    TableFilterPlugin,
    TableScorePlugin,
)
from podium.framework.contract.status import SKIP, PluginError, Status, error_status, unresolvable, unschedulable
from podium.objects.core import Pod, PodSpec
from podium.plugins.shared.hints import is_about, queue_if
from podium.plugins.shared.normalize import default_normalize

_NO_DEVICES: Final = unresolvable("podium cannot place pods with resource claims yet")
_NO_CLAIMS: Final = unschedulable("no new claims to deallocate")
_NOTHING_HELPS: Final = unresolvable()


@dataclass(frozen=True, slots=True)
class _Claims:
    """Written by PreFilter: whether the pod has resource claims."""

    any: bool


class DynamicResources(
    PreEnqueuePlugin,
    PreFilterPlugin,
    TableFilterPlugin,
    FilterPlugin,
    PostFilterPlugin,
    TableScorePlugin,
    ScorePlugin,
    ReservePlugin,
    PreBindPlugin,
):
    """Rejects pods with resource claims, and ignores all others."""

    def __init__(self, args: object, handle: Handle) -> None:
        del args, handle

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Return success even if claims are missing: a gated pod would get no condition that says why it waits."""
        del pod
        return None

    # ------------------------------------------------------------ filtering

    def filter_scope(self, spec: PodSpec) -> Scope:
        """NODE: the answer depends only on whether the pod's spec has claims."""
        del spec
        return Scope.NODE

    def score_scope(self, spec: PodSpec) -> Scope:
        """NODE: every score is 0."""
        del spec
        return Scope.NODE

    def pre_filter(
        self, state: CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        """Return Skip for a pod without claims, otherwise UnschedulableAndUnresolvable."""
        del snapshot
        claims = _Claims(bool(pod.spec.resource_claims))
        state.write(claims)
        return None, _NO_DEVICES if claims.any else SKIP

    def filter_rows(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Pass every node: the pod has no claims."""
        del state, snapshot
        return np.ones(len(rows), np.int64) if pod.spec.resource_claims else None

    def explain(self, state: CycleState, pod: Pod, verdict: int) -> Status:
        """The status of the only verdict."""
        del state, pod, verdict
        return _NO_DEVICES

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Pass every node: the pod has no claims."""
        del state, node
        return _NO_DEVICES if pod.spec.resource_claims else None

    def post_filter(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, filtered: FilteredNodes
    ) -> tuple[PostFilterResult | None, Status | None]:
        """Return Unschedulable: there are no claims to deallocate.

        For a pod with claims return UnschedulableAndUnresolvable, so that no pod is preempted in vain.
        """
        del pod, snapshot, filtered
        claims = state.find(_Claims)
        if claims is None:
            return None, error_status(PluginError("not found"))
        return None, _NOTHING_HELPS if claims.any else _NO_CLAIMS

    # ------------------------------------------------------------ scoring

    def score_rows(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Return 0: the pod has no claims."""
        del state, pod, snapshot
        return np.zeros(len(rows), np.int64)

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """Return 0: the pod has no claims."""
        del state, pod, node
        return 0

    def normalize_scores(self, state: CycleState, pod: Pod, scores: IntArray) -> IntArray:
        """Return the scores, which are all 0."""
        del state, pod
        return default_normalize(scores)

    # ------------------------------------------------------------ binding

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Do nothing: no devices are allocated."""
        del state, pod, node_name
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Do nothing: no devices were allocated."""

    def pre_bind_pre_flight(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> tuple[PreBindPreFlightResult | None, Status | None]:
        """Return Skip for a pod without claims."""
        del state, pod, node_name
        return None, SKIP

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Do nothing: no devices were allocated."""
        del state, pod, node_name
        return None

    # ------------------------------------------------------------ requeueing

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        """Nodes that may have devices now, and updates that show that the pod's claims have been generated."""
        actions = (ActionType.ADD, ActionType.UPDATE_NODE_LABEL, ActionType.UPDATE_NODE_ALLOCATABLE)
        generated = ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
        return (
            on(EventResource.NODE, *actions),
            on(EventResource.POD, generated, hint=self.after_claims_generated, scope=HintScope.SPEC),
        )

    def after_claims_generated(self, pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        """Queue if the event is about the pod itself and all its claims exist.

        Podium can tell only if the pod has none.
        """
        del old
        return queue_if(new is not None and is_about(pod, new) and not new.spec.resource_claims)
