"""Holds the pods that wait to be scheduled, and decides when each is attempted, gated, backed off and retried.

Owns the scheduling queue, the pods in flight and the nominated pods. Entirely synchronous: never waits, never does I/O,
never reads a clock that was not passed in, never refers to a plugin class.
"""

from podium.queues.backoff import PodBackoff
from podium.queues.changes import node_changes, pod_changes
from podium.queues.hints import HintMap, Hints, Strategy, build_hint_map
from podium.queues.listing import ListedPod, NextTry, QueueListing
from podium.queues.nominator import Nominator
from podium.queues.observer import QueueObserver
from podium.queues.ordering import SortsByKey, in_queue_order
from podium.queues.pod_groups import QueuedPodGroups
from podium.queues.scheduling_queue import SchedulingQueue
from podium.queues.states import QUEUE_STATES, QueueEvent, QueueState
from podium.queues.statistics import QueueStatistics
from podium.queues.values import AlreadyQueued, QueueProfile, QueueTimes

__all__ = [
    "QUEUE_STATES",
    "AlreadyQueued",
    "HintMap",
    "Hints",
    "ListedPod",
    "NextTry",
    "Nominator",
    "PodBackoff",
    "QueueEvent",
    "QueueListing",
    "QueueObserver",
    "QueueProfile",
    "QueueState",
    "QueueStatistics",
    "QueueTimes",
    "QueuedPodGroups",
    "SchedulingQueue",
    "SortsByKey",
    "Strategy",
    "build_hint_map",
    "in_queue_order",
    "node_changes",
    "pod_changes",
]
