"""Carries decisions out: runs a pod's binding cycle (permit, prebind, bind, postbind), writes status and Events.

Owns the order of a binding cycle, the pods waiting at Permit, the interpretation of responses to a binding, the
eviction of victims, the requests to extenders, and the writing of Events. Never chooses a node and never undoes a
decision: the daemon does, from the outcome. Refers neither to queues nor to plugins.
"""

from podium.binder.api_client import ApiClient
from podium.binder.binding_cycle import (
    Binder,
    BindingExtenders,
    BindingPlugins,
    BindOutcome,
    BindPod,
    Recorder,
    StatusWriter,
)
from podium.binder.binding_stage import BINDING_CYCLE, BindingEvent, BindingStage
from podium.binder.events.event import (
    Event,
    ObjectReference,
    deleting_pod_skipped,
    failed_scheduling,
    preempted_event,
    reference_to,
    scheduled_event,
)
from podium.binder.events.recorder import EventRecorder, RecorderStatistics
from podium.binder.extenders.pool import ExtenderPool
from podium.binder.observer import BindingObserver, PreemptionObserver
from podium.binder.pods_in_pre_bind import PodInPreBind, PodsInPreBind
from podium.binder.preemption import Preemption, PreemptionExecutor, RunningPreemptions
from podium.binder.preemption_loops import PreemptionLoops
from podium.binder.status_patch import changes_status, not_scheduled, pod_group_status_patch, status_patch
from podium.binder.waiting_pods import WaitingPod, WaitingPods

__all__ = [
    "BINDING_CYCLE",
    "ApiClient",
    "BindOutcome",
    "BindPod",
    "Binder",
    "BindingEvent",
    "BindingExtenders",
    "BindingObserver",
    "BindingPlugins",
    "BindingStage",
    "Event",
    "EventRecorder",
    "ExtenderPool",
    "ObjectReference",
    "PodInPreBind",
    "PodsInPreBind",
    "Preemption",
    "PreemptionExecutor",
    "PreemptionLoops",
    "PreemptionObserver",
    "Recorder",
    "RecorderStatistics",
    "RunningPreemptions",
    "StatusWriter",
    "WaitingPod",
    "WaitingPods",
    "changes_status",
    "deleting_pod_skipped",
    "failed_scheduling",
    "not_scheduled",
    "pod_group_status_patch",
    "preempted_event",
    "reference_to",
    "scheduled_event",
    "status_patch",
]
