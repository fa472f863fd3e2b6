"""Finds the plugins that are interested in an event, and decides whether it makes a rejected pod worth retrying.

Source: kubernetes v1.36.2 and v1.37.2, pkg/scheduler/scheduler.go (buildQueueingHintMap) and
backend/queue/scheduling_queue.go (isPodWorthRequeuing).
Differs: a registration without a hint function always queues, and no execution time is recorded for it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from podium.config import NEWEST, EventRules
from podium.framework.contract.bind import PermitPlugin, ReservePlugin
from podium.framework.contract.cluster_event import (
    ALL_EVENTS,
    NODE_ADD,
    ActionType,
    ClusterEvent,
    EventRegistration,
    HintFunction,
    HintScope,
    QueueingHint,
)
from podium.framework.contract.filter import FilterPlugin, PreFilterPlugin, TableFilterPlugin
from podium.framework.contract.plugin import Plugin, PreEnqueuePlugin
from podium.framework.contract.queued_pod import QueuedPodGroupInfo, QueuedPodInfo
from podium.framework.contract.status import PluginError, short_repr
from podium.framework.cycle.closed_nodes import NODE_CLOSED
from podium.framework.cycle.extenders import EXTENDER
from podium.lib.clock import Clock
from podium.lib.error_text import error_text
from podium.objects.resource_types import EventResource
from podium.queues.observer import QueueObserver

HintMap: TypeAlias = Mapping[str, Sequence[EventRegistration]]
"""The event registrations of one profile's plugins, by plugin name."""


_REJECTING = (
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    TableFilterPlugin,
    ReservePlugin,
    PermitPlugin,
)
_NODE_OPENED = EventRegistration(NODE_ADD)
_NODE_TAINTED = EventRegistration(ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT))


def build_hint_map(
    plugins: Iterable[Plugin],
    rules: EventRules = NEWEST.events,
    *,
    has_extenders: bool = False,
    may_close_nodes: bool = False,
) -> HintMap:
    """Collect the events that a profile's plugins have registered for.

    A plugin that cannot reject a pod counts only if it declares its events itself.
    """
    hints: dict[str, Sequence[EventRegistration]] = {}
    for plugin in plugins:
        # Upstream asks every plugin that can reject, also those that registered nothing, whose pods only time can free.
        registers = type(plugin).events_to_register is not Plugin.events_to_register
        if registers or isinstance(plugin, _REJECTING):
            registrations = _registrations(plugin)
            hints[plugin.name] = _with_taints(registrations) if rules.widen_node_add else registrations
    if may_close_nodes:
        hints[NODE_CLOSED] = (_NODE_OPENED,)
    if has_extenders:
        hints[EXTENDER] = ALL_EVENTS
    return hints


def _registrations(plugin: Plugin) -> Sequence[EventRegistration]:
    """Return the plugin's event registrations.

    Raises:
        PluginError: the plugin fails, or returns something else; the message names the plugin.
    """
    try:
        registrations = tuple(plugin.events_to_register())
        for registration in registrations:
            if not isinstance(registration, EventRegistration):
                raise PluginError(f"answered {short_repr(registration)}, which is not an EventRegistration")
    except BaseException as error:
        raise PluginError(f'asking plugin "{plugin.name}" for its events_to_register: {error_text(error)}') from error
    return registrations


def _with_taints(registrations: Sequence[EventRegistration]) -> Sequence[EventRegistration]:
    """Add changed taints to a registration for added nodes: a node may be added with taints that are removed later."""
    actions = ActionType(0)
    for registration in registrations:
        if registration.event.resource is EventResource.NODE:
            actions |= registration.event.action
    # Upstream adds taint updates to node additions: a node is added with a taint that goes later.
    if actions & ActionType.ADD and not actions & ActionType.UPDATE_NODE_TAINT:
        return (*registrations, _NODE_TAINTED)
    return tuple(registrations)


def _plugins_of_scope(scope: HintScope, hint_map: HintMap) -> frozenset[str]:
    return frozenset(
        plugin
        for plugin, registrations in hint_map.items()
        if any(registration.hint is not None and registration.scope is scope for registration in registrations)
    )


def demand_hint(answer: object) -> QueueingHint:
    """Check the return value of a queueing hint.

    Raises:
        PluginError: the value is not a QueueingHint.
    """
    if isinstance(answer, QueueingHint):
        return answer
    raise PluginError(f"answered {short_repr(answer)}, which is not a QueueingHint")


class Strategy(enum.Enum):
    """The ways to requeue a pod after an event."""

    SKIP = enum.auto()
    AFTER_BACKOFF = enum.auto()
    IMMEDIATELY = enum.auto()


@dataclass(frozen=True, slots=True)
class Interest:
    """An event and the plugins that are interested in it.

    `hints` holds the matching registrations, by profile and then by plugin.
    `plugins` are the names of all interested plugins, over all profiles.
    `particular` are, by profile, the plugins with a hint whose answer may differ between pods of one class.
    """

    event: ClusterEvent
    label: str
    is_wildcard: bool
    hints: Mapping[str, Mapping[str, tuple[EventRegistration, ...]]]
    plugins: tuple[str, ...]
    particular: Mapping[str, frozenset[str]]

    def tells_apart(self, profile: str, rejectors: frozenset[str]) -> bool:
        """Return whether the hints must run for each pod of a class that these plugins rejected, not just once."""
        return not self.particular[profile].isdisjoint(rejectors)


class Hints:
    """The hint maps of all profiles.

    Cost: the interested plugins are computed once per kind of event, then cached.
    """

    def __init__(self, maps: Mapping[str, HintMap], clock: Clock, observer: QueueObserver) -> None:
        self._maps = maps
        self._clock = clock
        self._observer = observer
        self._interests: dict[ClusterEvent, Interest] = {}

    def replace(self, maps: Mapping[str, HintMap]) -> None:
        """Replace the hint maps by others, of the same profiles."""
        self._maps = maps
        self._interests.clear()

    def interest(self, event: ClusterEvent) -> Interest:
        """Return the plugins that are interested in the event."""
        interest = self._interests.get(event)
        if interest is None:
            interest = self._interests[event] = self._compute_interest(event)
        return interest

    def _compute_interest(self, event: ClusterEvent) -> Interest:
        hints: dict[str, Mapping[str, tuple[EventRegistration, ...]]] = {}
        for profile, hint_map in self._maps.items():
            matching = {
                plugin: tuple(registration for registration in registrations if registration.event.matches(event))
                for plugin, registrations in hint_map.items()
            }
            hints[profile] = {plugin: matches for plugin, matches in matching.items() if matches}
        plugins = tuple(dict.fromkeys(plugin for by_plugin in hints.values() for plugin in by_plugin))
        particular = {profile: _plugins_of_scope(HintScope.ANYTHING, by_plugin) for profile, by_plugin in hints.items()}
        return Interest(event, event.label, event.is_wildcard, hints, plugins, particular)

    def events_of(self, plugin: str, profile: str) -> tuple[str, ...]:
        """Return the events that the plugin has registered for, as text."""
        registrations = self._maps.get(profile, {}).get(plugin, ())
        return tuple(dict.fromkeys(registration.event.description for registration in registrations))

    def label_readers(self) -> Mapping[str, frozenset[str]]:
        """Return, by profile, the plugins with a hint that reads the labels of pods."""
        return {profile: _plugins_of_scope(HintScope.LABELS, hint_map) for profile, hint_map in self._maps.items()}

    def strategy(self, info: QueuedPodInfo, interest: Interest, old: Any, new: Any) -> Strategy:
        """Decide whether the event is worth another attempt, and how soon: of a group if it is of one of its pods."""
        members: Iterable[QueuedPodInfo] = info.member_infos
        if isinstance(info, QueuedPodGroupInfo) and not interest.is_wildcard:
            members = _unlike_members(info, interest, old, new)
        best = Strategy.SKIP
        for member in members:
            strategy = self._strategy_of_pod(member, interest, old, new)
            if strategy is Strategy.IMMEDIATELY:
                return strategy
            if strategy is Strategy.AFTER_BACKOFF:
                best = strategy
        return best

    def _strategy_of_pod(self, info: QueuedPodInfo, interest: Interest, old: Any, new: Any) -> Strategy:
        unschedulable, pending = info.unschedulable_plugins, info.pending_plugins
        # Rejected by no plugin: the pod failed for an error, and any event may have removed its cause.
        if not unschedulable and not pending:
            return Strategy.AFTER_BACKOFF
        if interest.is_wildcard:
            # The wildcard also means that another pod was activated, which concerns only that pod.
            is_anothers = new is not None and new.uid != info.pod.uid
            return Strategy.SKIP if is_anothers else Strategy.AFTER_BACKOFF
        strategy = Strategy.SKIP
        for plugin, registrations in interest.hints[info.pod.spec.scheduler_name].items():
            is_pending = plugin in pending
            is_news = is_pending or (strategy is Strategy.SKIP and plugin in unschedulable)
            if not is_news or not self._queues(plugin, registrations, info, interest, old, new):
                continue
            if is_pending:
                return Strategy.IMMEDIATELY
            strategy = Strategy.AFTER_BACKOFF
            # Without pending plugins no hint can bring more than a backoff.
            if not pending:
                break
        return strategy

    def _queues(
        self,
        plugin: str,
        registrations: tuple[EventRegistration, ...],
        info: QueuedPodInfo,
        interest: Interest,
        old: Any,
        new: Any,
    ) -> bool:
        return any(
            registration.hint is None or self._ask(plugin, registration.hint, info, interest.label, old, new)
            for registration in registrations
        )

    def _ask(self, plugin: str, function: HintFunction, info: QueuedPodInfo, label: str, old: Any, new: Any) -> bool:
        started_s = self._clock.monotonic()
        outcome = "Error"
        try:
            hint = demand_hint(function(info.pod, old, new))
            outcome = hint.value
        except BaseException as error:  # noqa: BLE001 - a failing hint must not strand the pod: retry, even if in vain
            hint = QueueingHint.QUEUE
            self._observer.plugin_failed(plugin, "QueueingHint", info.pod, error)
        self._observer.hint_executed(plugin, label, outcome, self._clock.monotonic() - started_s)
        return hint is QueueingHint.QUEUE


def _unlike_members(entry: QueuedPodGroupInfo, interest: Interest, old: Any, new: Any) -> Iterator[QueuedPodInfo]:
    """Yield the pods of a group without those that hints cannot tell from the one before: most pods are replicas."""
    changed_pod = (new or old) if interest.event.is_about_pods else None
    changed_uid = "" if changed_pod is None else changed_pod.uid
    first: QueuedPodInfo | None = None
    is_particular = False
    for member in entry.members:
        pod = member.pod
        # What a hint may read of a pod; the changed pod itself is told apart by its uid.
        if (
            first is None
            or is_particular
            or pod.spec is not first.pod.spec
            or pod.metadata.labels != first.pod.metadata.labels
            or member.unschedulable_plugins != first.unschedulable_plugins
            or member.pending_plugins != first.pending_plugins
            or changed_uid in (pod.metadata.uid, first.pod.metadata.uid)
        ):
            first, rejectors = member, frozenset(member.rejector_plugins)
            is_particular = interest.tells_apart(pod.spec.scheduler_name, rejectors)
            yield member
