"""The plugin contract: one abstract class per extension point.

A plugin derives from the class of each extension point that it implements. A misspelt method is noticed when the
plugin is constructed, because the abstract method stays unimplemented. A plain `def` method decides and must not wait;
an `async def` method carries a decision out. Every plugin is constructed as `Class(args, handle)`.

Filtering and scoring have two forms. The table form answers for many rows of the snapshot at once; the node form
looks at one node. A plugin with both forms must give the same answers in both.

Source: staging kube-scheduler/framework/interface.go, v1.36.2.
Differs: a success is None; scores are returned, and a failure to score is raised; the table form is podium's own.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, runtime_checkable

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.cluster.pod_groups import PodGroupState
from podium.cluster.snapshot import BoolArray
from podium.framework.contract.cluster_event import ALL_EVENTS, EventRegistration
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.pod_groups import Placement, PodGroups, ProposedGroup
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.contract.status import Code, PluginError, Status, short_repr
from podium.lib.clock import Clock
from podium.objects.core import Pod, PodSpec
from podium.objects.resource_types import ObjectT, ResourceType

T = TypeVar("T")
ListedT_co = TypeVar("ListedT_co", covariant=True)

MAX_NODE_SCORE = 100
"""Normalised scores lie between 0 and this."""


class ApiClient(Protocol):
    """The API requests that plugins may make.

    Raises:
        podium.objects.api_errors.ApiError: the request failed, or its outcome is not known.
    """

    def bind(self, pod: Pod, node_name: str) -> Awaitable[None]:
        """Bind the pod to the node."""

    def patch(
        self, resource: ResourceType[ObjectT], item: ObjectT, change: Mapping[str, Any], subresource: str = ""
    ) -> Awaitable[ObjectT]:
        """Merge-patch the object, with the resourceVersion of `item` as precondition, and return its new state.

        Args:
            subresource: `status` to change the status.
        """

    def create(self, resource: ResourceType[ObjectT], item: ObjectT, manifest: Mapping[str, Any]) -> Awaitable[ObjectT]:
        """Create the object `item` from the manifest, and return it as the API server has it."""

    def read(self, resource: ResourceType[ObjectT], item: ObjectT) -> Awaitable[ObjectT]:
        """The object of that name as the API server has it now."""

    def delete(self, resource: ResourceType[ObjectT], item: ObjectT) -> Awaitable[None]:
        """Delete this very object. Harmless if it is gone."""

    def merge_status(self, pod: Pod, status: Mapping[str, Any]) -> Awaitable[None]:
        """Merge these fields into the pod's status."""


class Lister(Protocol[ListedT_co]):
    """The objects of one kind, from the informer's cache."""

    def get(self, key: str) -> ListedT_co | None:
        """The object with that key (`<namespace>/<name>`, or the name); None if there is none."""

    def list(self) -> Iterable[ListedT_co]:
        """All objects, as a live view: do not hold it across an await."""

    def in_namespace(self, namespace: str) -> Iterable[ListedT_co]:
        """The objects of one namespace, as a live view. The cost does not depend on other namespaces."""


class Preemptions(Protocol):
    """The preemptions that are being carried out."""

    def attempted(self) -> None:
        """Count one preemption attempt, successful or not."""

    def is_preempting(self, uid: str) -> bool:
        """Whether the preemption for the pod of that uid is still running, so that the pod must not be tried yet."""

    def held_back_from(self, pod: Pod) -> Collection[str]:
        """The nodes where the pod must not preempt for now, because preemptions there kept failing to help it."""

    def is_protected(self, victim: Pod) -> bool:
        """Whether the pod must not be preempted, whatever its priority."""


class WaitingPod(Protocol):
    """A pod that Permit plugins make wait. The first allow or reject decides; later ones do nothing."""

    @property
    def pod(self) -> Pod:
        """The pod as it was when its attempt began."""

    @property
    def node_name(self) -> str:
        """The node that was chosen for it."""

    @property
    def pending_plugins(self) -> Sequence[str]:
        """The plugins that have not allowed it yet."""

    def allow(self, plugin: str) -> None:
        """Record that the plugin allows the pod. The pod is bound once no pending plugin is left."""

    def reject(self, plugin: str, message: str) -> bool:
        """End the wait: the plugin rejects the pod as unschedulable. Returns whether this was the first signal."""


class WaitingPods(Protocol):
    """The pods of all profiles that are waiting at Permit."""

    def get(self, uid: str) -> WaitingPod | None:
        """The waiting pod with that uid; None if it does not wait."""

    def __iter__(self) -> Iterator[WaitingPod]:
        """The pods that wait now. The pod that is passed to a Permit plugin is not among them yet."""


class Nominator(Protocol):
    """The nominated pods by node: pods for which preemption makes room there."""

    def node_names(self) -> Sequence[str]:
        """The nodes that pods are nominated to."""

    def node_of(self, uid: str) -> str | None:
        """The node that the pod with that uid is nominated to; None if it is not nominated."""

    def pods(self, node_name: str) -> Sequence[Pod]:
        """The pods that are nominated to the node."""


class Handle(Protocol):
    """The services that the framework offers to plugins."""

    @property
    def clock(self) -> Clock:
        """The clock. Plugins must use it instead of the machine's clock."""

    @property
    def random(self) -> Random:
        """The source of randomness."""

    @property
    def client(self) -> ApiClient:
        """The API client, for the asynchronous extension points."""

    @property
    def preemptions(self) -> Preemptions:
        """The preemptions that are being carried out."""

    @property
    def waiting_pods(self) -> WaitingPods:
        """The pods that wait at Permit, to be allowed or rejected from any other extension point."""

    @property
    def nominator(self) -> Nominator:
        """The nominated pods of each node."""

    @property
    def pod_groups(self) -> PodGroups | None:
        """The pod groups; None if each pod is scheduled alone, because the feature gate GenericWorkload is off."""

    def snapshot(self) -> Snapshot:
        """The snapshot that the current attempt decides on."""

    def lister(self, resource: ResourceType[ObjectT]) -> Lister[ObjectT]:
        """The lister of a resource. Call it only in the constructor, so that the resource is watched in time."""

    def activate(self, pods: Iterable[Pod], after_s: float = 0.0) -> None:
        """Try these pods again after that many seconds, whatever they wait for; not those that are not queued then."""

    def shared(self, make: Callable[[Handle], T]) -> T:
        """What all plugins and profiles share: made by the first call with `make`, the same for all later ones.

        Call it only in the plugin's constructor, as `lister`.
        """

    def record(self, pod: Pod, reason: str, note: str, *, action: str = "Scheduling", is_warning: bool = False) -> None:
        """Record an Event for the pod. Returns at once; equal Events become a series.

        Args:
            reason, action: one `UpperCamelCase` word each.
            note: a sentence; cut after 1,024 bytes.
        """


class Scope(enum.IntEnum):
    """What a plugin's answer about a node depends on, besides the pod's spec.

    Answers of every scope but CLUSTER are cached for pods of the same spec until something in that scope changes. Dry
    runs can evaluate filters of scope NODE and USAGE for many nodes at once.
    """

    NODE = 0
    """The node itself: labels, taints, allocatable resources."""
    USAGE = 1
    """The node, the number of pods on it, and the sum of their requests, also as `nonzero_requested` counts them."""
    PODS_ON_NODE = 2
    """The node, and the pods on it."""
    CLUSTER = 3
    """Anything: other nodes, other objects, the pod's labels, the clock."""


class Plugin(ABC):
    """A scheduling plugin. Its class name is its name in the configuration, in metrics and in logs.

    `Args` is the type of its args, a dataclass or msgspec struct: the configuration's `pluginConfig` entry is validated
    against it, and `args` is a value of that type. Without `Args`, `args` is the unvalidated entry, or None.
    """

    name: ClassVar[str]
    Args: ClassVar[type | None] = None

    def __init__(self, args: Any, handle: Handle) -> None:
        self.args = args
        self.handle = handle

    def __init_subclass__(cls) -> None:
        """Name the plugin after its class, unless it names itself.

        Raises:
            TypeError: the name is not a string, but for example a property.
        """
        name: object = cls.__dict__.get("name", cls.__name__)
        if not isinstance(name, str) or not name:
            raise TypeError(f"{cls.__name__}.name: {short_repr(name)} is not a name")
        cls.name = name

    def events_to_register(self) -> Sequence[EventRegistration]:
        """The events that may make a pod schedulable that this plugin rejected. By default all events."""
        return ALL_EVENTS

    def filter_scope(self, spec: PodSpec) -> Scope:
        """What PreFilter and Filter depend on for pods of that spec. By default CLUSTER.

        With a smaller scope, PreFilter must depend on the spec alone.
        """
        del spec
        return Scope.CLUSTER

    def score_scope(self, spec: PodSpec) -> Scope:
        """What PreScore and Score depend on for pods of that spec. By default CLUSTER.

        With a smaller scope, PreScore must depend on the spec alone, and NormalizeScores on the scores alone: equal raw
        scores must become equal normalised scores.
        """
        del spec
        return Scope.CLUSTER


class PreEnqueuePlugin(Plugin):
    """Decides whether a pod may enter the active queue."""

    @abstractmethod
    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Anything but success keeps the pod gated."""


class QueueSortPlugin(Plugin):
    """Orders the active queue; there is exactly one."""

    @abstractmethod
    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        """Whether `a` goes before `b`."""


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """The only nodes that need to be filtered."""

    node_names: frozenset[str]

    def __post_init__(self) -> None:
        """Refuse anything but a set. A string would be read as a set of one-letter names.

        Raises:
            PluginError: the names are not a set of strings.
        """
        names: object = self.node_names
        if not isinstance(names, frozenset | set) or not all(isinstance(name, str) for name in names):
            raise PluginError(f"PreFilterResult.node_names: {short_repr(names)} is not a set of names")


class PreFilterExtensions(ABC):
    """Updates a PreFilter's state when a dry run adds a pod to a node or removes one from it."""

    @abstractmethod
    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status | None:
        """Update the state: `added` is now on the node."""

    @abstractmethod
    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> Status | None:
        """Update the state: `removed` is no longer on the node."""


class PreFilterPlugin(Plugin):
    """Looks at the pod and the whole cluster once, before any node is filtered."""

    @abstractmethod
    def pre_filter(
        self, state: CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        """Narrow the nodes down (None: all nodes), reject the pod, or return Skip to skip this plugin's Filter."""

    def pre_filter_extensions(self) -> PreFilterExtensions | None:
        """The AddPod and RemovePod extensions; None if the state does not depend on other pods."""
        return None


class FilterPlugin(Plugin):
    """Rejects nodes, one at a time."""

    @abstractmethod
    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Return success, Unschedulable, UnschedulableAndUnresolvable or Error for the node."""


class TableFilterPlugin(Plugin):
    """Rejects nodes, many at a time."""

    @abstractmethod
    def filter_rows(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """A verdict for each row: 0 if the node passes, otherwise a code of the plugin's own that `explain` translates.

        Returns:
            None if every row passes.

        Shape: one entry per row of `rows`.
        """

    @abstractmethod
    def explain(self, state: CycleState, pod: Pod, verdict: int) -> Status:
        """The status that a verdict other than 0 stands for. It must not depend on the row."""


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """The result of a PostFilter plugin. A nominated node of "" clears an earlier nomination.

    `victims` are the pods to evict from that node, the most important one first.
    """

    nominated_node_name: str
    victims: tuple[Pod, ...] = ()

    def __post_init__(self) -> None:
        """Refuse values that cannot be nominated or evicted.

        Raises:
            PluginError: names the field.
        """
        if not isinstance(self.nominated_node_name, str):
            raise PluginError(
                f"PostFilterResult.nominated_node_name: {short_repr(self.nominated_node_name)} is not a text"
            )
        if type(self.victims) is not tuple or not all(isinstance(victim, Pod) for victim in self.victims):
            raise PluginError(f"PostFilterResult.victims: {short_repr(self.victims)} is not a tuple of pods")


class NodeDryRun(Protocol):
    """A dry run on one node, in a fork of the snapshot: pods can be removed and added back.

    Raises: `PluginError` from `add` and `remove`, if a plugin's AddPod or RemovePod fails.
    """

    @property
    def node(self) -> NodeInfo:
        """The node as it is in the dry run."""

    def remove(self, pod: Pod) -> None:
        """Take a pod off the node."""

    def add(self, pod: Pod) -> None:
        """Put back a pod that was removed."""

    def status(self) -> Status | None:
        """The filters' status for the incoming pod: None if it fits. A filter that fails gives an Error status."""


class NodesDryRun(Protocol):
    """A dry run on many nodes at once, for filters that depend on the nodes' usage but not on the single pods.

    Raises: `ScheduleError` from `statuses` and `fits`, if a filter fails.
    """

    def name(self, row: int) -> str:
        """The node's name."""

    def bases(self, rows: Sequence[int]) -> Sequence[Basis]:
        """What the answer about each row depends on, besides the pod's spec: identical objects, identical answer."""

    def pods(self, row: int) -> Mapping[str, Pod]:
        """The pods of a node by uid, without the changes of the dry run."""

    def usage_of(self, rows: Iterable[int], pods: Iterable[Pod]) -> IntArray:
        """The usage that each pod adds to its node, by usage column.

        Shape: (columns, pods). Units: millicores, bytes and counts, as the columns of the snapshot.
        """

    def add(self, rows: Rows, usage: IntArray) -> None:
        """Add usage to each of the rows. Rows may repeat."""

    def remove(self, rows: Rows, usage: IntArray) -> None:
        """Subtract usage from each of the rows."""

    def statuses(self, rows: Rows) -> Mapping[int, Status]:
        """The rejections of the incoming pod by row. Rows on which it fits are absent."""

    def fits(self, rows: Rows) -> BoolArray:
        """Whether the incoming pod still fits on each of the rows after a change.

        It must have fitted on all of them before.

        Shape: one entry per row of `rows`.
        """


Basis: TypeAlias = tuple[object, object, tuple[object, ...]]
"""A node, the pods on it, and the pods nominated to it."""


class FilteredNodes(Protocol):
    """The filter result of every node, for PostFilter plugins."""

    def codes(self) -> IntArray:
        """The status code by row, also of nodes that were not examined. Shape: one entry per row of the snapshot."""

    def count(self, code: Code) -> int:
        """How many nodes have this status code."""

    def status(self, row: int) -> Status:
        """The status of one row."""

    def pods(self, row: int) -> Iterable[Pod]:
        """The pods on one node."""

    def dry_run(self, row: int) -> AbstractContextManager[NodeDryRun]:
        """Begin a dry run on one node. Leaving the context undoes its changes. Only one may be open at a time."""

    def dry_run_of_nodes(self) -> NodesDryRun | None:
        """Begin a dry run on many nodes at once; None if a filter depends on the single pods of a node."""


class PostFilterPlugin(Plugin):
    """Runs when no node fits."""

    @abstractmethod
    def post_filter(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, filtered: FilteredNodes
    ) -> tuple[PostFilterResult | None, Status | None]:
        """Return success if the plugin has helped the pod, Unschedulable if it cannot."""


class PreScorePlugin(Plugin):
    """Looks at the feasible nodes once, before they are scored."""

    @abstractmethod
    def pre_score(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> Status | None:
        """Prepare the scoring, or return Skip to skip this plugin's Score."""


class Scoring(Plugin):
    """The common base of both forms of scoring."""

    def normalize_scores(self, state: CycleState, pod: Pod, scores: IntArray) -> IntArray:
        """Normalise the scores of the feasible nodes to 0..MAX_NODE_SCORE. By default they are left as they are.

        Shape: as `scores`, one entry per feasible node.
        """
        del state, pod
        return scores

    def score_basis(self, spec: PodSpec, snapshot: Snapshot) -> Hashable:
        """The cluster-wide input of a node-scoped score. Cached scores stay valid while it is unchanged."""
        del spec, snapshot
        return None


class ScorePlugin(Scoring):
    """Scores feasible nodes, one at a time."""

    @abstractmethod
    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """Return the node's score, higher is better. Any exception fails the attempt."""


class TableScorePlugin(Scoring):
    """Scores feasible nodes, all at once."""

    @abstractmethod
    def score_rows(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """An int64 score for each of the rows. Shape: one entry per row of `rows`."""


class ReservePlugin(Plugin):
    """Reserves resources of the chosen node in the plugin's own state."""

    @abstractmethod
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Reserve. Any status but success makes the scheduler undo the attempt."""

    @abstractmethod
    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Undo `reserve`. Must be harmless if nothing was reserved."""


class PermitPlugin(Plugin):
    """Lets a pod through to binding, stops it, or makes it wait."""

    @abstractmethod
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        """Return success, a rejection, or Wait with the longest time to wait in seconds."""


class PlacementGeneratePlugin(Plugin):
    """Divides the nodes into placements, in each of which a whole pod group is tried."""

    @abstractmethod
    def generate_placements(
        self, key: str, state: PodGroupState, snapshot: Snapshot
    ) -> tuple[Sequence[Placement], Status | None]:
        """The placements for the group of that key, or why there are none."""


class PlacementScorePlugin(Plugin):
    """Scores placements in which a pod group can be scheduled."""

    @abstractmethod
    def score_placement(self, group: ProposedGroup, snapshot: Snapshot) -> int:
        """Return the placement's score, higher is better. Any exception fails the attempt."""

    def normalize_placement_scores(self, scores: Sequence[int]) -> Sequence[int]:
        """Normalise the scores of all placements to 0..MAX_NODE_SCORE. By default they are left as they are."""
        return scores


@dataclass(frozen=True, slots=True)
class PreBindPreFlightResult:
    """Whether this PreBind may run in parallel with its neighbours."""

    allow_parallel: bool = False


class PreBindPlugin(Plugin):
    """Prepares what a pod needs on its node before it is bound."""

    def pre_bind_pre_flight(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> tuple[PreBindPreFlightResult | None, Status | None]:
        """Return Skip if there is nothing to do for this pod, otherwise success."""
        del state, pod, node_name
        return None, None

    @abstractmethod
    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Prepare. Any status but success makes the scheduler undo the attempt."""


class BindPlugin(Plugin):
    """Binds the pod."""

    @abstractmethod
    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Return success, an error, or Skip to leave the pod to the next bind plugin."""


class PostBindPlugin(Plugin):
    """Runs after a pod is bound."""

    @abstractmethod
    async def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """React to the binding. The pod is bound, so nothing can be undone any more."""


@runtime_checkable
class Detailing(Protocol):
    """A filter that can give details about the nodes that it rejected."""

    def rejection_details(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> Mapping[str, int]:
        """Why these nodes were rejected, and on how many of them each detail holds."""
        ...
