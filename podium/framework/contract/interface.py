"""The plugin contract: one abstract class per extension point.

A plugin is a class that derives from those of the points it runs at; a misspelt method cannot go unnoticed, because the
abstract one then stays open. The colour of a method is its contract: plain `def` decides and must not wait; `async def`
carries a decision out. Every plugin is constructed as `Class(args, handle)`.

Filtering and scoring come in two forms. The table form answers for many rows of the snapshot at once; the node form
looks at one node. A plugin that has both must agree with itself.

Source: staging kube-scheduler/framework/interface.go, v1.36.2.
Differs: a success is None; scores are returned, and a failure to score is raised; the table form is podium's own.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, runtime_checkable

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.cluster.snapshot import BoolArray
from podium.framework.contract.cluster_event import ALL_EVENTS, EventRegistration
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.contract.status import PluginError, Status, told
from podium.lib.clock import Clock
from podium.objects.core import Pod, PodSpec
from podium.objects.resource_types import ObjectT, ResourceType

ListedT_co = TypeVar("ListedT_co", covariant=True)

MAX_NODE_SCORE = 100
"""Normalised scores lie between 0 and this."""


class ApiClient(Protocol):
    """What plugins may ask of the API server.

    Raises:
        podium.objects.api_errors.ApiError: the request failed, or its outcome is not known.
    """

    def bind(self, pod: Pod, node_name: str) -> Awaitable[None]:
        """Bind the pod to the node."""

    def patch(self, resource: ResourceType[ObjectT], item: ObjectT, change: Mapping[str, Any]) -> Awaitable[ObjectT]:
        """Merge the change, in the API's own shape, into the object as it was when `item` was read; its new state."""


class Lister(Protocol[ListedT_co]):
    """The objects of one kind as the API server last had them."""

    def get(self, key: str) -> ListedT_co | None:
        """The object of that key (`<namespace>/<name>`, or the name)."""

    def list(self) -> Iterable[ListedT_co]:
        """All of them, a live view: not to be held across an await."""

    def in_namespace(self, namespace: str) -> Iterable[ListedT_co]:
        """Those of one namespace, a live view too; cheap however many there are elsewhere."""


class Preemptions(Protocol):
    """The preemptions that are being carried out."""

    def attempted(self) -> None:
        """Be told that a pod has looked for victims, with or without success."""

    def is_preempting(self, uid: str) -> bool:
        """Whether room is still being made for the pod of that uid, so that it must not be tried yet."""

    def held_back_from(self, pod: Pod) -> Collection[str]:
        """The names of the nodes where the pod must not preempt for now: that has led nowhere, again and again."""

    def spares(self, victim: Pod) -> bool:
        """Whether the pod must not be preempted, whatever its priority."""


class WaitingPod(Protocol):
    """A pod that Permit plugins make wait. The first signal wins; later ones do nothing."""

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
        """The plugin lets it go; with the last of them it is bound."""

    def reject(self, plugin: str, message: str) -> bool:
        """End its wait: it is unschedulable, because of the plugin. Returns whether this was the first signal."""


class WaitingPods(Protocol):
    """The pods of all profiles that wait at Permit."""

    def get(self, uid: str) -> WaitingPod | None:
        """The waiting pod of that uid."""

    def __iter__(self) -> Iterator[WaitingPod]:
        """Those that wait now. The pod that a Permit plugin is being asked about is not among them yet."""


class Nominator(Protocol):
    """Which pods are expected on which node, because room is being made for them there."""

    def node_names(self) -> Sequence[str]:
        """The nodes that pods are nominated to."""

    def node_of(self, uid: str) -> str | None:
        """The node that the pod of that uid is nominated to."""

    def pods(self, node_name: str) -> Sequence[Pod]:
        """The pods that are nominated to the node."""


class Handle(Protocol):
    """What the framework lends to plugins."""

    @property
    def clock(self) -> Clock:
        """The clock to read; never the machine's own."""

    @property
    def random(self) -> Random:
        """The source of randomness."""

    @property
    def client(self) -> ApiClient:
        """The way to the API server, for the asynchronous extension points."""

    @property
    def preemptions(self) -> Preemptions:
        """Who makes room for whom at the moment."""

    @property
    def waiting_pods(self) -> WaitingPods:
        """The pods that wait at Permit, to be allowed or rejected from any other extension point."""

    @property
    def nominator(self) -> Nominator:
        """The pods that a node is promised to."""

    def snapshot(self) -> Snapshot:
        """The snapshot that the current attempt decides on."""

    def lister(self, resource: ResourceType[ObjectT]) -> Lister[ObjectT]:
        """The objects of a kind; only to be asked for while the plugin is constructed, so that they are watched."""

    def record(self, pod: Pod, reason: str, note: str, *, action: str = "Scheduling", is_warning: bool = False) -> None:
        """Tell whoever looks at the pod, by an Event. Returns at once; equal Events become a series.

        Args:
            reason, action: in a word, `UpperCamelCase`.
            note: a sentence; cut after 1,024 bytes.
        """


class Scope(enum.IntEnum):
    """How far a plugin looks, beside the pod's spec, for its answer about a node.

    All answers but those of the last are kept and given again to pods of the same spec, until something in scope has
    changed. What-if questions about filters of the first two can be put for many nodes at once.
    """

    NODE = 0
    """At the node itself: labels, taints, what it offers."""
    USAGE = 1
    """At the node, at how many pods are on it, and at what they request together."""
    PODS_ON_NODE = 2
    """At the node, and at the pods that are on it."""
    CLUSTER = 3
    """Anywhere: at other nodes, at other objects, at the pod's labels, at the clock."""


class Plugin(ABC):
    """A policy. Its name is that of its class, in the configuration, in metrics and in logs.

    `Args` is the type of its args, a dataclass or msgspec struct: the configuration's `pluginConfig` entry is held
    against it, and `args` is a value of it. Without `Args`, `args` is what the configuration says, or None.
    """

    name: ClassVar[str]
    Args: ClassVar[type | None] = None

    def __init__(self, args: Any, handle: Handle) -> None:
        self.args = args
        self.handle = handle

    def __init_subclass__(cls) -> None:
        """Name the plugin after its class, unless it names itself.

        Raises:
            TypeError: the name is not a text, but a property, say.
        """
        name: object = cls.__dict__.get("name", cls.__name__)
        if not isinstance(name, str) or not name:
            raise TypeError(f"{cls.__name__}.name: {told(name)} is not a name")
        cls.name = name

    def events_to_register(self) -> Sequence[EventRegistration]:
        """The events that may make a pod schedulable which this plugin rejected; by default all."""
        return ALL_EVENTS

    def filter_scope(self, spec: PodSpec) -> Scope:
        """How far PreFilter and Filter look for pods of that spec; by default anywhere.

        Within a smaller scope, PreFilter goes by the spec alone.
        """
        del spec
        return Scope.CLUSTER

    def score_scope(self, spec: PodSpec) -> Scope:
        """How far PreScore and Score look for pods of that spec; by default anywhere.

        Within a smaller scope, PreScore goes by the spec alone, and NormalizeScores by the scores alone: it must give
        equal scores for equal ones.
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
    """The only nodes worth looking at."""

    node_names: frozenset[str]

    def __post_init__(self) -> None:
        """Refuse a list, or a text, whose letters would count as names.

        Raises:
            PluginError: the names are not a set of texts.
        """
        names: object = self.node_names
        if not isinstance(names, frozenset | set) or not all(isinstance(name, str) for name in names):
            raise PluginError(f"PreFilterResult.node_names: {told(names)} is not a set of names")


class PreFilterExtensions(ABC):
    """Keeps a PreFilter's state true while pods are tried out on, or taken off, a node."""

    @abstractmethod
    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status | None:
        """`added` has been put on the node."""

    @abstractmethod
    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> Status | None:
        """`removed` has been taken off the node."""


class PreFilterPlugin(Plugin):
    """Looks at the pod and the whole cluster once, before any node."""

    @abstractmethod
    def pre_filter(
        self, state: CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        """Narrow the nodes down (None: all), or reject the pod, or answer Skip to leave out this plugin's filter."""

    def pre_filter_extensions(self) -> PreFilterExtensions | None:
        """How to keep the state true while pods are tried out; None where it does not depend on other pods."""
        return None


class FilterPlugin(Plugin):
    """Rejects nodes, one at a time."""

    @abstractmethod
    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Success, Unschedulable, UnschedulableAndUnresolvable, or Error."""


class TableFilterPlugin(Plugin):
    """Rejects nodes, many at a time."""

    @abstractmethod
    def filter_rows(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """A verdict for each of the rows: 0 where the node passes, else a code of the plugin's own.

        Returns:
            None where every row passes.
        """

    @abstractmethod
    def explain(self, state: CycleState, pod: Pod, verdict: int) -> Status:
        """What a verdict other than 0 means; it must not depend on the row."""


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """What a PostFilter plugin achieved. A nominated node of "" takes an earlier nomination back.

    `victims` are the pods that have to leave that node first, the most important one first.
    """

    nominated_node_name: str
    victims: tuple[Pod, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot be nominated or evicted.

        Raises:
            PluginError: names the field.
        """
        if not isinstance(self.nominated_node_name, str):
            raise PluginError(f"PostFilterResult.nominated_node_name: {told(self.nominated_node_name)} is not a text")
        if type(self.victims) is not tuple or not all(isinstance(victim, Pod) for victim in self.victims):
            raise PluginError(f"PostFilterResult.victims: {told(self.victims)} is not a tuple of pods")


class Trial(Protocol):
    """One node in a private world, where pods can be taken off and put back.

    Raises: `PluginError` from `add` and `remove`, where a plugin cannot follow.
    """

    @property
    def node(self) -> NodeInfo:
        """The node as it is in that world."""

    def remove(self, pod: Pod) -> None:
        """Take a pod off the node."""

    def add(self, pod: Pod) -> None:
        """Put a pod back that was taken off."""

    def status(self) -> Status | None:
        """How the incoming pod fares there: None where it fits. A filter that fails is an Error status."""


class Trials(Protocol):
    """Many nodes in a private world, where it is enough to count what pods take up.

    Raises: `ScheduleError` from `statuses` and `fits`, where a filter fails.
    """

    def name(self, row: int) -> str:
        """The node's name."""

    def bases(self, rows: Sequence[int]) -> Sequence[Basis]:
        """What an answer about each row goes by, beside the spec of the pod: for the same objects it is the same."""

    def pods(self, row: int) -> Mapping[str, Pod]:
        """The pods of a node by uid, as they are outside of that world."""

    def usage_of(self, rows: Iterable[int], pods: Iterable[Pod]) -> IntArray:
        """What each pod takes up on its node, as the columns count it. Shape: (columns, pods)."""

    def add(self, rows: Rows, usage: IntArray) -> None:
        """Put on each of the rows, which may repeat, what something takes up."""

    def remove(self, rows: Rows, usage: IntArray) -> None:
        """Take it off."""

    def statuses(self, rows: Rows) -> Mapping[int, Status]:
        """How the incoming pod fares on these rows, those left out on which it fits."""

    def fits(self, rows: Rows) -> BoolArray:
        """Whether the incoming pod fits on each of the rows, on all of which it has fitted before a change."""


Basis: TypeAlias = tuple[object, object, tuple[object, ...]]
"""A node, the pods on it, and those it is promised to."""


class FilteredNodes(Protocol):
    """How every node fared in filtering, for PostFilter plugins."""

    def codes(self) -> IntArray:
        """The status code by row; rows without a status of their own have that of nodes not looked at."""

    def status(self, row: int) -> Status:
        """The status of one row."""

    def trial(self, row: int) -> AbstractContextManager[Trial]:
        """Try things out on one node; its end undoes them. One at a time."""

    def trials(self) -> Trials | None:
        """Try things out on many nodes at once, in a world for that; None where a filter must see the pods."""


class PostFilterPlugin(Plugin):
    """Runs when no node fits."""

    @abstractmethod
    def post_filter(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, filtered: FilteredNodes
    ) -> tuple[PostFilterResult | None, Status | None]:
        """Success where the pod has been helped; Unschedulable where not."""


class PreScorePlugin(Plugin):
    """Looks at the feasible nodes once, before they are scored."""

    @abstractmethod
    def pre_score(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> Status | None:
        """Prepare, or answer Skip to leave this plugin's score out."""


class Scoring(Plugin):
    """What both forms of scoring have in common."""

    def normalize_scores(self, state: CycleState, pod: Pod, scores: IntArray) -> IntArray:
        """Bring the scores of the feasible nodes into 0..MAX_NODE_SCORE; by default they are there already."""
        del state, pod
        return scores

    def score_basis(self, spec: PodSpec, snapshot: Snapshot) -> Hashable:
        """What of all nodes together a score goes by that looks at the node only: it is good while this stays equal."""
        del spec, snapshot
        return None


class ScorePlugin(Scoring):
    """Scores feasible nodes, one at a time."""

    @abstractmethod
    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """The higher the better; any exception fails the attempt."""


class TableScorePlugin(Scoring):
    """Scores feasible nodes, all at once."""

    @abstractmethod
    def score_rows(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """An int64 score for each of the rows."""


class ReservePlugin(Plugin):
    """Keeps account of what a chosen node will have to give."""

    @abstractmethod
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Anything but success undoes the attempt."""

    @abstractmethod
    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Take `reserve` back; must be harmless where nothing was reserved."""


class PermitPlugin(Plugin):
    """Lets a pod through to binding, stops it, or makes it wait."""

    @abstractmethod
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        """Success, a rejection, or Wait with the seconds to wait at the most."""


@dataclass(frozen=True, slots=True)
class PreBindPreFlightResult:
    """Whether this PreBind may run beside its neighbours."""

    allow_parallel: bool = False


class PreBindPlugin(Plugin):
    """Makes ready what a pod needs on its node."""

    def pre_bind_pre_flight(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> tuple[PreBindPreFlightResult | None, Status | None]:
        """Skip where there is nothing to do for this pod; otherwise success."""
        del state, pod, node_name
        return None, None

    @abstractmethod
    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Anything but success undoes the attempt."""


class BindPlugin(Plugin):
    """Binds the pod."""

    @abstractmethod
    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Success, Skip to leave it to the next bind plugin, or an error."""


class PostBindPlugin(Plugin):
    """Is told of bound pods."""

    @abstractmethod
    async def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """The pod is bound; nothing can be undone any more."""


@runtime_checkable
class Detailing(Protocol):
    """A filter that can say more about the nodes it has rejected."""

    def rejection_details(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> Mapping[str, int]:
        """What it was about these nodes, and on how many of them."""
        ...
