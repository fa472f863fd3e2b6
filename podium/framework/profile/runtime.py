"""The framework of one profile: which plugins run at each extension point, in which order and with which weight.

Source: kubernetes pkg/scheduler/framework/runtime/framework.go, v1.36.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import ParamSpec, TypeVar, cast

from podium.cluster import NodeInfo
from podium.config import IN_TREE_PLUGINS, ExpandedPlugins, ExtensionPoint, PluginRegistry, expand_plugins
from podium.config import Profile as ProfileConfiguration
from podium.framework.contract.bind import BindPlugin, PermitPlugin, PostBindPlugin, PreBindPlugin, ReservePlugin
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.filter import (
    Detailing,
    FilterPlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    TableFilterPlugin,
)
from podium.framework.contract.group_post_filter import PodGroupPostFilterPlugin
from podium.framework.contract.handle import Handle
from podium.framework.contract.pausing import LongFilterPlugin
from podium.framework.contract.placements import PlacementGeneratePlugin, PlacementScorePlugin
from podium.framework.contract.plugin import Plugin, PreEnqueuePlugin, QueueSortPlugin, Scope
from podium.framework.contract.post_filter import PostFilterPlugin
from podium.framework.contract.score import PreScorePlugin, ScorePlugin, TableScorePlugin
from podium.framework.contract.status import (
    FAILED,
    MAY_REJECT,
    Code,
    PluginError,
    ScheduleError,
    Status,
    demand_nothing,
    demand_status,
    error_status,
    short_repr,
)
from podium.framework.contract.writing import BindingWriter, WritingPlugin
from podium.framework.profile.forms import Filter, Scorer, filter_form, score_form
from podium.framework.profile.observer import Observer
from podium.framework.profile.plugin_args import args_of
from podium.framework.profile.pod_signature import Profile
from podium.framework.profile.rejection import FilterOutcome, by_status
from podium.framework.profile.signature_cache import SignatureCache
from podium.lib.error_text import error_text
from podium.objects.core import Pod, PodSpec

T = TypeVar("T")
P = ParamSpec("P")

PERMIT_TIMEOUT_S_MAX = 15 * 60.0
_SUCCESS = Code.SUCCESS.label
_PERMIT_MAY = (Code.WAIT, *MAY_REJECT)
_WAITS = "one or more plugins asked to wait and no plugin rejected pod"
SLOW_PLUGIN_S = 0.1
"""A longer plugin call is logged as a warning, because all pods wait for it."""
MEASURED_EVERY = 10
"""One attempt in this many has its plugins measured one by one. Upstream draws lots, with the same chance."""

_CLASSES: Mapping[ExtensionPoint, tuple[type, ...]] = {
    ExtensionPoint.PRE_ENQUEUE: (PreEnqueuePlugin,),
    ExtensionPoint.QUEUE_SORT: (QueueSortPlugin,),
    ExtensionPoint.PRE_FILTER: (PreFilterPlugin,),
    ExtensionPoint.FILTER: (FilterPlugin, TableFilterPlugin),
    ExtensionPoint.POST_FILTER: (PostFilterPlugin,),
    ExtensionPoint.PRE_SCORE: (PreScorePlugin,),
    ExtensionPoint.SCORE: (ScorePlugin, TableScorePlugin),
    ExtensionPoint.RESERVE: (ReservePlugin,),
    ExtensionPoint.PERMIT: (PermitPlugin,),
    ExtensionPoint.PRE_BIND: (PreBindPlugin,),
    ExtensionPoint.BIND: (BindPlugin,),
    ExtensionPoint.POST_BIND: (PostBindPlugin,),
    ExtensionPoint.PLACEMENT_GENERATE: (PlacementGeneratePlugin,),
    ExtensionPoint.PLACEMENT_SCORE: (PlacementScorePlugin,),
    ExtensionPoint.POD_GROUP_POST_FILTER: (PodGroupPostFilterPlugin,),
}


@lru_cache(maxsize=1024)
def points_of(plugin: type[Plugin]) -> frozenset[ExtensionPoint]:
    """Return the extension points that a plugin class extends."""
    return frozenset(point for point, classes in _CLASSES.items() if issubclass(plugin, classes))


@lru_cache(maxsize=1024)
def _is_detailing(plugin: type[Plugin]) -> bool:
    """Return whether plugins of the class give details. A protocol reads all its members at each look."""
    return issubclass(plugin, Detailing)


def registry_of(classes: Mapping[str, type[Plugin]]) -> PluginRegistry:
    """Return the extension points of each class, for validating the configuration."""
    return {**IN_TREE_PLUGINS, **{name: points_of(plugin_class) for name, plugin_class in classes.items()}}


def expand(profile: ProfileConfiguration, classes: Mapping[str, type[Plugin]]) -> ExpandedPlugins:
    """Return the plugins that the profile runs at each extension point, given the available classes.

    Raises:
        ConfigError: the profile cannot be built.
    """
    return expand_plugins(profile, registry_of(classes))


def names_to_construct(
    profile: ProfileConfiguration, classes: Mapping[str, type[Plugin]], expansion: ExpandedPlugins | None = None
) -> Sequence[str]:
    """Return the plugins that a profile constructs: those that are available and enabled at any point.

    Args:
        expansion: the result of `expand`, if it is known.

    Raises:
        ConfigError: the profile cannot be built.
    """
    names = profile.plugins.enabled_names() | (expansion or expand(profile, classes)).names()
    return sorted(names & classes.keys())


@dataclass(frozen=True, slots=True)
class PermitResult:
    """The result of the Permit plugins: a rejection, or the waits in seconds by plugin, or neither to go on.

    `message` describes the wait.
    """

    status: Status | None
    waits: Mapping[str, float] = field(default_factory=dict)
    message: str = ""


class Framework:
    """The constructed plugins of one profile, in order. `name` is the scheduler name that it serves."""

    def __init__(
        self,
        profile: ProfileConfiguration,
        classes: Mapping[str, type[Plugin]],
        handle: Handle,
        observer: Observer,
        kept_plugins: Mapping[str, Plugin] = MappingProxyType({}),
        signatures: Callable[[Profile], SignatureCache] = SignatureCache,
        expansion: ExpandedPlugins | None = None,
    ) -> None:
        """Construct every enabled plugin, except `kept_plugins`, which stay in use with all that they know.

        `signatures` makes the cache of answers for pods of the same spec. `expansion` is the result of `expand`, if it
        is known.

        In-tree plugins of the default set that are not in `classes` are left out; the validation of the configuration
        reports them by name.

        Raises:
            ConfigError: the profile cannot be built from these plugins.
            PluginError: a plugin refused its args.
        """
        self.name = profile.scheduler_name
        self.percentage_of_nodes_to_score = profile.percentage_of_nodes_to_score
        self.release = profile.release
        self.clock = handle.clock
        self.observer = observer
        self.measures_plugins = False
        self.rows_needed = 0
        """As `PodSignature.rows_needed`, for the pods without a signature, whose specs are new."""
        self._attempts = 0
        plugins = expansion or expand(profile, classes)
        self._plugins = {
            name: kept_plugins[name] if name in kept_plugins else construct(classes[name], profile, handle)
            for name in names_to_construct(profile, classes, plugins)
        }
        self.queue_sort: QueueSortPlugin = self._plugins_at(plugins, ExtensionPoint.QUEUE_SORT, QueueSortPlugin)[0]
        self.pre_enqueue = self._plugins_at(plugins, ExtensionPoint.PRE_ENQUEUE, PreEnqueuePlugin)
        self.pre_filter = self._plugins_at(plugins, ExtensionPoint.PRE_FILTER, PreFilterPlugin)
        self.filters: Sequence[Filter] = [
            form for plugin in self._plugins_at(plugins, ExtensionPoint.FILTER, Plugin) if (form := filter_form(plugin))
        ]
        self.long_filters = frozenset(form.name for form in self.filters if isinstance(form.plugin, LongFilterPlugin))
        filtering = (*self.pre_filter, *(form.plugin for form in self.filters))
        self.detailing = {plugin.name: cast(Detailing, plugin) for plugin in filtering if _is_detailing(type(plugin))}
        self.post_filter = self._plugins_at(plugins, ExtensionPoint.POST_FILTER, PostFilterPlugin)
        has_own_point = ExtensionPoint.POD_GROUP_POST_FILTER not in profile.release.absent_points
        of_groups = ExtensionPoint.POD_GROUP_POST_FILTER if has_own_point else ExtensionPoint.POST_FILTER
        self.pod_group_post_filter = self._plugins_at(plugins, of_groups, PodGroupPostFilterPlugin)
        self.pre_score = self._plugins_at(plugins, ExtensionPoint.PRE_SCORE, PreScorePlugin)
        self.scorers: Sequence[tuple[Scorer, int]] = [
            (scorer, plugins.score_weights[plugin.name])
            for plugin in self._plugins_at(plugins, ExtensionPoint.SCORE, Plugin)
            if (scorer := score_form(plugin))
        ]
        self.signatures = signatures(self)
        self.reserve = self._plugins_at(plugins, ExtensionPoint.RESERVE, ReservePlugin)
        self.permit = self._plugins_at(plugins, ExtensionPoint.PERMIT, PermitPlugin)
        self.pre_bind = self._plugins_at(plugins, ExtensionPoint.PRE_BIND, PreBindPlugin)
        self.bind = self._plugins_at(plugins, ExtensionPoint.BIND, BindPlugin)
        self.post_bind = self._plugins_at(plugins, ExtensionPoint.POST_BIND, PostBindPlugin)
        self.placement_generate = self._plugins_at(plugins, ExtensionPoint.PLACEMENT_GENERATE, PlacementGeneratePlugin)
        self.placement_scorers: Sequence[tuple[PlacementScorePlugin, int]] = [
            (scorer, plugins.placement_score_weights[scorer.name])
            for scorer in self._plugins_at(plugins, ExtensionPoint.PLACEMENT_SCORE, PlacementScorePlugin)
        ]
        self.binding_writers = [plugin for plugin in self._plugins.values() if isinstance(plugin, BindingWriter)]
        self.writing = [plugin for plugin in self.binding_writers if isinstance(plugin, WritingPlugin)]

    def _plugins_at(self, plugins: ExpandedPlugins, point: ExtensionPoint, kind: type[T]) -> list[T]:
        candidates = (self._plugins.get(name) for name in plugins.at.get(point, ()))
        return [plugin for plugin in candidates if isinstance(plugin, kind)]

    @property
    def plugins(self) -> Mapping[str, Plugin]:
        """Every constructed plugin, by name."""
        return self._plugins

    # ------------------------------------------------------------ dry runs

    def run_add_pod(self, state: CycleState, pod: Pod, pod_to_add: Pod, node: NodeInfo) -> None:
        """Call AddPod of the PreFilter plugins: in `state`, `pod_to_add` is on the node.

        Raises:
            PluginError: a plugin failed.
        """
        for plugin, extensions in self._extensions(state, pod):
            status = self._answer(
                plugin, "PreFilterExtensionAddPod", pod, _add_pod, extensions, state, pod, pod_to_add, node
            )
            if status is not None:
                raise PluginError(f'running AddPod on PreFilter plugin "{plugin}": {status.message}')

    def run_remove_pod(self, state: CycleState, pod: Pod, pod_to_remove: Pod, node: NodeInfo) -> None:
        """Call RemovePod of the PreFilter plugins: in `state`, `pod_to_remove` is not on the node.

        Raises as `run_add_pod`.
        """
        for plugin, extensions in self._extensions(state, pod):
            status = self._answer(
                plugin, "PreFilterExtensionRemovePod", pod, _remove_pod, extensions, state, pod, pod_to_remove, node
            )
            if status is not None:
                raise PluginError(f'running RemovePod on PreFilter plugin "{plugin}": {status.message}')

    def _extensions(self, state: CycleState, pod: Pod) -> Iterator[tuple[str, PreFilterExtensions]]:
        for plugin in self.pre_filter:
            # Upstream: a plugin that skipped has no state that a change of pods could touch.
            if plugin.name in state.skipped_filters:
                continue
            try:
                extensions = plugin.pre_filter_extensions()
            except BaseException as error:
                point = "PreFilterExtensions"
                failure = self.plugin_failure(
                    plugin.name, point, pod, f'asking PreFilter plugin "{plugin.name}"', error
                )
                raise PluginError(str(failure)) from error
            if extensions is not None:
                yield plugin.name, extensions

    # ------------------------------------------------------------ after a node is chosen

    def run_reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Run the Reserve plugins in order up to the first failure. The caller then undoes all with `run_unreserve`."""
        at_s = started_s = self.clock.monotonic()
        status: Status | None = None
        for plugin in self.reserve:
            # Not through `_answer`: every pod is reserved by every plugin, mostly by those with nothing to do for it.
            try:
                answer = plugin.reserve(state, pod, node_name)
                if answer is not None:
                    answer = demand_status(answer)
            except BaseException as error:  # noqa: BLE001 - as in `_answer`
                answer = self._failure_of_call(plugin.name, "Reserve", pod, error)
            at_s = self.lap(plugin.name, "Reserve", pod, at_s, answer)
            if answer is not None and (status := self._failure(plugin, "Reserve", answer)) is not None:
                break
        self.observe("Reserve", status, started_s)
        return status

    def run_unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Run Unreserve of all plugins in reverse order. A failure is counted and does not stop the others."""
        started_s = self.clock.monotonic()
        status: Status | None = None
        # Of all plugins, also those after the one that failed, as upstream.
        for plugin in reversed(self.reserve):
            answer = self._answer(plugin.name, "Unreserve", pod, _unreserve, plugin, state, pod, node_name)
            status = answer or status
        self.observe("Unreserve", status, started_s)

    def run_permit(self, state: CycleState, pod: Pod, node_name: str) -> PermitResult:
        """Run the Permit plugins in order up to the first rejection or error. Waits are collected."""
        started_s = self.clock.monotonic()
        waits: dict[str, float] = {}
        failure: Status | None = None
        message = ""
        for plugin in self.permit:
            answer = self._answer(plugin.name, "Permit", pod, _permit, plugin, state, pod, node_name)
            status, timeout_s = answer if isinstance(answer, tuple) else (answer, 0.0)
            # The rest may still reject the pod, so the wait only begins after them.
            if status is not None and status.code is Code.WAIT:
                waits[plugin.name] = timeout_s
                message = ", ".join((*status.all_reasons, _WAITS))
                continue
            failure = self._failure(plugin, "Permit", status)
            if failure is not None:
                break
        self.observe("Permit", failure or (Status(Code.WAIT) if waits else None), started_s)
        return PermitResult(failure) if failure else PermitResult(None, waits, message)

    def observe(self, point: str, status: Status | None, started_s: float) -> float:
        """Record how long an extension point took, and return the time now."""
        label = status.code.label if status is not None else _SUCCESS
        now_s = self.clock.monotonic()
        self.observer.observe_extension_point(point, label, self.name, now_s - started_s)
        return now_s

    def begin_attempt(self) -> bool:
        """Count an attempt, and return whether its plugins are measured, each by itself."""
        self._attempts += 1
        # Every tenth, not one in ten by chance, which a replay could not repeat.
        self.measures_plugins = self._attempts % MEASURED_EVERY == 0
        return self.measures_plugins

    def lap(self, plugin: str, point: str, pod: Pod, started_s: float, status: Status | None = None) -> float:
        """Return the time after a plugin call that began at `started_s` and ended with this status.

        Reports slow calls to the observer, and every call of an attempt whose plugins are measured.
        """
        now_s = self.clock.monotonic()
        if self.measures_plugins:
            self.observe_call(plugin, point, status, now_s - started_s)
        if now_s - started_s > SLOW_PLUGIN_S:
            self.observer.plugin_was_slow(plugin, point, pod, now_s - started_s)
        return now_s

    def observe_call(self, plugin: str, point: str, status: Status | None, seconds: float) -> None:
        """Report how long a plugin took in an attempt whose plugins are measured."""
        self.observer.observe_plugin(plugin, point, status.code.label if status is not None else _SUCCESS, seconds)

    def observe_filter(self, plugin: str, pod: Pod, started_s: float, outcome: FilterOutcome, nodes: int) -> None:
        """Record one call of a filter over many nodes, like `lap`. Each status gets the share of its nodes."""
        seconds = self.clock.monotonic() - started_s
        if self.measures_plugins:
            # One call answers for many nodes, so each status gets its share of the time.
            for status, count in by_status(outcome, nodes):
                self.observe_call(plugin, "Filter", status, seconds * count / nodes)
        if seconds > SLOW_PLUGIN_S:
            self.observer.plugin_was_slow(plugin, "Filter", pod, seconds)

    def plugin_failure(
        self, plugin: str, point: str, pod: Pod, action: str, error: BaseException, started_s: float | None = None
    ) -> ScheduleError:
        """Report a plugin that raised an exception or returned an invalid value; return the error for the attempt.

        Args:
            started_s: when the call began, if it is to be measured.

        Any exception counts as the plugin's failure, including SystemExit and KeyboardInterrupt: podium is ended by
        signals only, and it handles these without exceptions.
        """
        self.observer.plugin_failed(plugin, point, pod, error)
        if started_s is not None:
            self.lap(plugin, point, pod, started_s, FAILED)
        return ScheduleError(f"{action}: {error_text(error)}")

    def scope_of(self, method: Callable[[PodSpec], Scope], plugin: str, pod: Pod) -> Scope:
        """Return a plugin's `filter_scope` or `score_scope`; CLUSTER if the call fails or does not return a Scope."""
        try:
            scope = method(pod.spec)
            if not isinstance(scope, Scope):
                raise PluginError(f"answered {short_repr(scope)}, which is not a Scope")
        except BaseException as error:  # noqa: BLE001 - the widest scope is right for every plugin
            self.observer.plugin_failed(plugin, "Scope", pod, error)
            return Scope.CLUSTER
        return scope

    def _answer(
        self, plugin: str, point: str, about: Pod, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T | Status:
        """Call the plugin and return its answer; any exception becomes an Error status."""
        started_s = self.clock.monotonic()
        answer: T | Status
        try:
            answer = call(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything, and must not end the attempt
            answer = self._failure_of_call(plugin, point, about, error)
        status: object = None
        if answer is not None:
            # Permit returns a status and a time to wait.
            status = answer[0] if isinstance(answer, tuple) else answer
        self.lap(plugin, point, about, started_s, status if status is None or isinstance(status, Status) else None)
        return answer

    def _failure_of_call(self, plugin: str, point: str, about: Pod, error: BaseException) -> Status:
        self.observer.plugin_failed(plugin, point, about, error)
        return error_status(error)

    @staticmethod
    def _failure(plugin: Plugin, point: str, status: Status | None) -> Status | None:
        """Return the status of a plugin that did not succeed, with its name on it, or None for success."""
        if status is None:
            return None
        if status.is_rejected:
            return status.by(plugin.name)
        return error_status(f'running {point} plugin "{plugin.name}": {status.message}').by(plugin.name)


def _unreserve(plugin: ReservePlugin, state: CycleState, pod: Pod, node_name: str) -> None:
    demand_nothing(plugin.unreserve(state, pod, node_name))


def _add_pod(
    extensions: PreFilterExtensions, state: CycleState, pod: Pod, pod_to_add: Pod, node: NodeInfo
) -> Status | None:
    return demand_status(extensions.add_pod(state, pod, pod_to_add, node))


def _remove_pod(
    extensions: PreFilterExtensions, state: CycleState, pod: Pod, pod_to_remove: Pod, node: NodeInfo
) -> Status | None:
    return demand_status(extensions.remove_pod(state, pod, pod_to_remove, node))


def _permit(plugin: PermitPlugin, state: CycleState, pod: Pod, node_name: str) -> tuple[Status | None, float]:
    status, timeout_s = plugin.permit(state, pod, node_name)
    return demand_status(status, _PERMIT_MAY), min(_demand_seconds(timeout_s), PERMIT_TIMEOUT_S_MAX)


def _demand_seconds(answer: object) -> float:
    # NaN fails this comparison as well, and True is no number of seconds.
    if isinstance(answer, int | float) and not isinstance(answer, bool) and 0 <= answer < math.inf:
        return answer
    raise PluginError(f"answered {short_repr(answer)} as the seconds to wait, which must be a number of at least 0")


def construct(plugin: type[Plugin], profile: ProfileConfiguration, handle: Handle) -> Plugin:
    """Construct the plugin with the profile's args.

    Raises:
        PluginError: the constructor failed. The message names the profile and the plugin.
    """
    try:
        instance = plugin(args_of(plugin, profile), handle)
        if instance.name != plugin.name:
            raise PluginError(f"it calls itself {short_repr(instance.name)}: the name is that of its class")
    except BaseException as error:
        raise PluginError(
            f"creating profile for scheduler name {profile.scheduler_name}: "
            f'initializing plugin "{plugin.name}": {error_text(error)}'
        ) from error
    return instance
