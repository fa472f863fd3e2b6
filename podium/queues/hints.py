"""Which plugins are interested in an event, and whether the event makes it worth retrying a rejected pod.

Source: kubernetes pkg/scheduler/scheduler.go (buildQueueingHintMap) and backend/queue/scheduling_queue.go
(isPodWorthRequeuing), v1.36.2.
Differs: a registration without a hint function always queues, and no execution time is recorded for it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from podium.framework.contract.bind import PermitPlugin, ReservePlugin
from podium.framework.contract.cluster_event import (
    ALL_EVENTS,
    NODE_ADD,
    ActionType,
    ClusterEvent,
    EventRegistration,
    EventResource,
    HintFunction,
    HintScope,
    QueueingHint,
)
from podium.framework.contract.filter import FilterPlugin, PreFilterPlugin, TableFilterPlugin
from podium.framework.contract.plugin import Plugin, PreEnqueuePlugin
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.contract.status import PluginError, short_repr
from podium.framework.cycle.closed_nodes import NODE_CLOSED
from podium.framework.cycle.extenders import EXTENDER
from podium.lib.clock import Clock
from podium.lib.error_text import error_text
from podium.queues.observer import QueueObserver

HintMap: TypeAlias = Mapping[str, Sequence[EventRegistration]]
"""What each plugin of one profile has registered for, by plugin name."""


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


def build_hint_map(plugins: Iterable[Plugin], *, has_extenders: bool = False, may_close_nodes: bool = False) -> HintMap:
    """Collect the events that a profile's plugins have registered for.

    A plugin that cannot reject a pod counts only if it declares its events itself. A registration for added nodes
    that does not cover changed taints is widened to cover them: a node may be added with taints that are removed later.
    """
    hints: dict[str, Sequence[EventRegistration]] = {}
    for plugin in plugins:
        registers = type(plugin).events_to_register is not Plugin.events_to_register
        if registers or isinstance(plugin, _REJECTING):
            hints[plugin.name] = _with_taints(_registrations(plugin))
    if may_close_nodes:
        hints[NODE_CLOSED] = (_NODE_OPENED,)
    if has_extenders:
        hints[EXTENDER] = ALL_EVENTS
    return hints


def _registrations(plugin: Plugin) -> Sequence[EventRegistration]:
    """The plugin's event registrations.

    Raises:
        PluginError: the plugin fails, or returns something else; the message names the plugin.
    """
    try:
        registrations = tuple(plugin.events_to_register())
        for each in registrations:
            if not isinstance(each, EventRegistration):
                raise PluginError(f"answered {short_repr(each)}, which is not an EventRegistration")
    except BaseException as error:
        raise PluginError(f'asking plugin "{plugin.name}" for its events_to_register: {error_text(error)}') from error
    return registrations


def _with_taints(registrations: Sequence[EventRegistration]) -> Sequence[EventRegistration]:
    actions = ActionType(0)
    for registration in registrations:
        if registration.event.resource is EventResource.NODE:
            actions |= registration.event.action
    if actions & ActionType.ADD and not actions & ActionType.UPDATE_NODE_TAINT:
        return (*registrations, _NODE_TAINTED)
    return tuple(registrations)


def _plugins_of_scope(scope: HintScope, hint_map: HintMap) -> frozenset[str]:
    return frozenset(
        plugin
        for plugin, registrations in hint_map.items()
        if any(each.hint is not None and each.scope is scope for each in registrations)
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
    """How to requeue a pod after an event."""

    SKIP = enum.auto()
    AFTER_BACKOFF = enum.auto()
    IMMEDIATELY = enum.auto()


@dataclass(frozen=True, slots=True)
class Interest:
    """An event and the plugins that are interested in it.

    `hints` holds the matching registrations, by profile and then by plugin.
    `plugins` are the names of all interested plugins, over all profiles.
    `particular` are, by profile, the plugins with a hint whose answer may differ from pod to pod of one class.
    """

    event: ClusterEvent
    label: str
    is_wildcard: bool
    hints: Mapping[str, Mapping[str, tuple[EventRegistration, ...]]]
    plugins: tuple[str, ...]
    particular: Mapping[str, frozenset[str]]

    def tells_apart(self, profile: str, rejectors: frozenset[str]) -> bool:
        """Whether the hints must run for each pod of a class that these plugins rejected, not once for the class."""
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
        """Use other hint maps, of the same profiles, from now on."""
        self._maps = maps
        self._interests.clear()

    def interest(self, event: ClusterEvent) -> Interest:
        """The plugins that are interested in the event."""
        known = self._interests.get(event)
        if known is None:
            known = self._interests[event] = self._work_out(event)
        return known

    def _work_out(self, event: ClusterEvent) -> Interest:
        hints: dict[str, Mapping[str, tuple[EventRegistration, ...]]] = {}
        for profile, hint_map in self._maps.items():
            matching = {
                plugin: tuple(each for each in registrations if each.event.matches(event))
                for plugin, registrations in hint_map.items()
            }
            hints[profile] = {plugin: found for plugin, found in matching.items() if found}
        plugins = tuple(dict.fromkeys(plugin for by_plugin in hints.values() for plugin in by_plugin))
        particular = {profile: _plugins_of_scope(HintScope.ANYTHING, by_plugin) for profile, by_plugin in hints.items()}
        return Interest(event, event.label, event.is_wildcard, hints, plugins, particular)

    def events_of(self, plugin: str, profile: str) -> tuple[str, ...]:
        """The events that the plugin has registered for, as text."""
        registrations = self._maps.get(profile, {}).get(plugin, ())
        return tuple(dict.fromkeys(each.event.description for each in registrations))

    def label_readers(self) -> Mapping[str, frozenset[str]]:
        """By profile, the plugins with a hint that reads the labels of pods."""
        return {profile: _plugins_of_scope(HintScope.LABELS, hint_map) for profile, hint_map in self._maps.items()}

    def strategy(self, info: QueuedPodInfo, interest: Interest, old: Any, new: Any) -> Strategy:
        """Whether the event is worth another attempt of the pod, and how soon."""
        unschedulable, pending = info.unschedulable_plugins, info.pending_plugins
        if not unschedulable and not pending:
            return Strategy.AFTER_BACKOFF
        if interest.is_wildcard:
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
            each.hint is None or self._ask(plugin, each.hint, info, interest.label, old, new) for each in registrations
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
