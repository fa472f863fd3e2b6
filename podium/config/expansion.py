"""Expands a completed profile to the plugins that run at each extension point (stage B), and reports obstacles.

Owns the expansion of ``multiPoint``, the order of plugins at a point, their weights, and the numbers of plugins that a
profile needs. Works from a registry (plugin name → extension points), so it needs no plugin's code.

Source: kubernetes v1.36.2 and v1.37.2, pkg/scheduler/framework/runtime/framework.go (NewFramework,
expandMultiPointPlugins), profile/profile.go
"""

import difflib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from podium.config.args import NodeResourcesFitArgs
from podium.config.defaults import EVERY_PLUGIN
from podium.config.extension_points import IN_TREE_PLUGINS, ExtensionPoint, PluginRegistry
from podium.config.feature_gates import DEFAULT_GATES, ConfigGates
from podium.config.field_errors import ConfigError, ErrorKind, ErrorList, FieldError
from podium.config.releases import Release
from podium.config.types import KubeSchedulerConfiguration, Plugin, Plugins, Profile
from podium.config.validation_args import node_resources_fit

_POINTS: Final = (
    ExtensionPoint.PRE_FILTER,
    ExtensionPoint.FILTER,
    ExtensionPoint.POST_FILTER,
    ExtensionPoint.RESERVE,
    ExtensionPoint.PRE_SCORE,
    ExtensionPoint.SCORE,
    ExtensionPoint.PRE_BIND,
    ExtensionPoint.BIND,
    ExtensionPoint.POST_BIND,
    ExtensionPoint.PERMIT,
    ExtensionPoint.PRE_ENQUEUE,
    ExtensionPoint.QUEUE_SORT,
    ExtensionPoint.PLACEMENT_GENERATE,
    ExtensionPoint.PLACEMENT_SCORE,
    ExtensionPoint.POD_GROUP_POST_FILTER,
)
"""The order in which upstream builds them, which decides which interface an error message names."""

_SCORE_MAX: Final = 100
_TOTAL_SCORE_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ExpandedPlugins:
    """A profile's plugin names in order by extension point, and the weights (never 0) of its scoring plugins."""

    at: Mapping[ExtensionPoint, tuple[str, ...]]
    score_weights: Mapping[str, int]
    placement_score_weights: Mapping[str, int]

    def names(self) -> frozenset[str]:
        """Return every plugin that runs at some extension point."""
        return frozenset(name for names in self.at.values() for name in names)


def expand_plugins(profile: Profile, registry: PluginRegistry = IN_TREE_PLUGINS) -> ExpandedPlugins:
    """Expand a completed profile.

    Raises: ConfigError with every reason why the profile can't be built.
    """
    expansion = _Expansion(profile, registry, "")
    plugins = expansion.run()
    if expansion.errors:
        raise ConfigError(expansion.errors)
    return plugins


def build_errors(
    config: KubeSchedulerConfiguration,
    registry: PluginRegistry = IN_TREE_PLUGINS,
    gates: ConfigGates = DEFAULT_GATES,
    skip: Container[int] = (),
) -> tuple[FieldError, ...]:
    """Return every reason why the profiles of a completed configuration can't be built.

    Args: ``skip``: indexes of unreadable profiles, whose plugins are not checked.
    """
    errors: list[FieldError] = []
    queue_sorts: list[tuple[int, Profile, str]] = []
    # Most files give all profiles the same plugins, and expanding them takes most of the time of a reload.
    good: dict[Plugins, ExpandedPlugins] = {}
    for i, profile in enumerate(config.profiles):
        errors += _fit_errors(profile, f"profiles[{i}]", gates)
        if i in skip:
            continue
        plugins = good.get(profile.plugins)
        if plugins is None:
            expansion = _Expansion(profile, registry, f"profiles[{i}].")
            plugins = expansion.run()
            errors += expansion.errors
            if not expansion.errors:
                good[profile.plugins] = plugins
        queue_sorts += [(i, profile, name) for name in plugins.at[ExtensionPoint.QUEUE_SORT][:1]]
    errors += _different_queue_sorts(queue_sorts)
    return tuple(errors)


def _fit_errors(profile: Profile, path: str, gates: ConfigGates) -> Iterator[FieldError]:
    """Validate NodeResourcesFit's args only if a profile enables the plugin: upstream does so when it is built."""
    if "NodeResourcesFit" not in profile.plugins.enabled_names():
        return
    for i, entry in enumerate(profile.plugin_config):
        if not isinstance(entry.args, NodeResourcesFitArgs):
            continue
        errors = ErrorList()
        node_resources_fit("", entry.args, gates, errors)
        for error in errors.errors:
            reason = f'initializing plugin "{entry.name}": {error.text.removeprefix(".")}'
            yield _unbuildable(profile, f"{path}.pluginConfig[{i}].args{error.path}", reason)


def _different_queue_sorts(queue_sorts: Sequence[tuple[int, Profile, str]]) -> Iterator[FieldError]:
    # Compared with the first profile alone, as upstream does.
    for i, profile, name in queue_sorts[1:]:
        _, first, first_name = queue_sorts[0]
        if name != first_name:
            detail = (
                f'different queue sort plugins for profile "{profile.scheduler_name}": "{name}", first: "{first_name}"'
            )
            yield FieldError(f"profiles[{i}].plugins.queueSort", ErrorKind.PROFILE, None, detail)
        elif profile.args_of(name) != first.args_of(name):
            detail = f'different queue sort plugin args for profile "{profile.scheduler_name}"'
            yield FieldError(f"profiles[{i}].pluginConfig", ErrorKind.PROFILE, None, detail)


def _unbuildable(profile: Profile, path: str, reason: str) -> FieldError:
    detail = f"creating profile for scheduler name {profile.scheduler_name}: {reason}"
    return FieldError(path, ErrorKind.PROFILE, None, detail)


class _Expansion:
    """The expansion of one profile; continues after an error, to find all errors."""

    def __init__(self, profile: Profile, registry: PluginRegistry, path: str) -> None:
        self.errors: list[FieldError] = []
        self._profile = profile
        self._plugins = profile.plugins
        self._registry = _as_in(profile.release, registry)
        self._path = f"{path}plugins"
        self._repeated: set[str] = set()
        self._refused: set[ExtensionPoint] = set()  # points with a name that can't run there

    def run(self) -> ExpandedPlugins:
        """Expand every point, then check the plugins that a profile must have."""
        # Once for the profile; otherwise each extension point would report the name again.
        for plugin in self._plugins.multi_point.enabled:
            if plugin.name not in self._registry:
                self._unknown(plugin.name, _POINTS[0], f"{self._path}.multiPoint.enabled", self._registry)
        names_by_point = {point: self._names_at(point) for point in _POINTS}
        self._check_cardinality(names_by_point)
        score = self._weights(ExtensionPoint.SCORE)
        return ExpandedPlugins(names_by_point, score, self._weights(ExtensionPoint.PLACEMENT_SCORE))

    def _names_at(self, point: ExtensionPoint) -> tuple[str, ...]:
        explicit = self._explicit(point)
        disabled = {plugin.name for plugin in self._plugins.at(point).disabled}
        # `*` disables what multiPoint would add; the point's own list is not affected.
        if EVERY_PLUGIN in disabled:
            return explicit
        overridden: set[str] = set()
        from_multi_point: dict[str, None] = {}
        for plugin in self._plugins.multi_point.enabled:
            name = plugin.name
            if name in disabled or point not in self._registry.get(name, ()):
                continue
            if name in explicit:
                overridden.add(name)
            elif name in from_multi_point:
                self._already_registered(name, point, f"{self._path}.multiPoint.enabled")
            else:
                from_multi_point[name] = None
        first = [name for name in explicit if name in overridden]
        last = [name for name in explicit if name not in overridden]
        return (*first, *from_multi_point, *last)

    def _explicit(self, point: ExtensionPoint) -> tuple[str, ...]:
        """Return the names that the point's own list enables and that can run there."""
        names: dict[str, None] = {}
        for i, plugin in enumerate(self._plugins.at(point).enabled):
            path = f"{self._path}.{point}.enabled[{i}]"
            if plugin.name not in self._registry:
                self._refused.add(point)
                fitting = [name for name, points in self._registry.items() if point in points]
                self._unknown(plugin.name, point, path, fitting)
            elif point not in self._registry[plugin.name]:
                self._refused.add(point)
                reason = f'plugin "{plugin.name}" does not extend {point.interface} plugin'
                self._error(path, reason, f"; it extends {', '.join(sorted(self._registry[plugin.name]))}")
            elif plugin.name in names:
                self._already_registered(plugin.name, point, path)
            else:
                names[plugin.name] = None
        return tuple(names)

    def _check_cardinality(self, names_by_point: Mapping[ExtensionPoint, tuple[str, ...]]) -> None:
        name = f'profile with scheduler name "{self._profile.scheduler_name}"'
        count = len(names_by_point[ExtensionPoint.QUEUE_SORT])
        # A name that was refused may have been the missing one, and one error is enough.
        if count != 1 and ExtensionPoint.QUEUE_SORT not in self._refused:
            reason = f"only one queue sort plugin required for {name}, but got {count}"
            self._error(f"{self._path}.queueSort", reason)
        if not names_by_point[ExtensionPoint.BIND] and ExtensionPoint.BIND not in self._refused:
            self._error(f"{self._path}.bind", f"at least one bind plugin is needed for {name}")
        if len(names_by_point[ExtensionPoint.PLACEMENT_GENERATE]) > 1:
            reason = f"at most one placement generate plugin is allowed for {name}"
            self._error(f"{self._path}.placementGenerate", reason)

    def _weights(self, point: ExtensionPoint) -> Mapping[str, int]:
        """Return the weight per plugin that extends the point: its own list overrides ``multiPoint``, 0 means 1."""
        # In this order, since the first weight of a name counts.
        candidates: tuple[Plugin, ...] = (*self._plugins.at(point).enabled, *self._plugins.multi_point.enabled)
        weights: dict[str, int] = {}
        for plugin in candidates:
            if point in self._registry.get(plugin.name, ()):
                weights.setdefault(plugin.name, plugin.weight or 1)
        if _could_overflow(weights.values()):
            kind = "score" if point is ExtensionPoint.SCORE else "placement score"
            self._error(f"{self._path}.{point}", f"{kind} plugins: total score of Score plugins could overflow")
        return weights

    def _unknown(self, name: str, point: ExtensionPoint, path: str, fitting: Iterable[str]) -> None:
        """Report a plugin that does not exist, where only the fitting ones could have been meant."""
        self._error(path, f'{point.interface} "{name}" does not exist', _nearest(name, fitting))

    def _already_registered(self, name: str, point: ExtensionPoint, path: str) -> None:
        if name not in self._repeated:  # a repetition in multiPoint is found again at every point
            self._error(path, f'plugin "{name}" already registered as "{point.interface}"')
        self._repeated.add(name)

    def _error(self, path: str, reason: str, hint: str = "") -> None:
        self.errors.append(replace(_unbuildable(self._profile, path, reason), hint=hint))


def _as_in(release: Release, registry: PluginRegistry) -> PluginRegistry:
    """Return the registry with the extension points that in-tree plugins have in that release."""
    return {
        name: release.plugins[name].points if points == IN_TREE_PLUGINS.get(name) else points - release.absent_points
        for name, points in registry.items()
    }


def _could_overflow(weights: Iterable[int]) -> bool:
    """Return whether upstream reports an overflow for plugins with these weights, in this order.

    It compares each weight with the difference between the largest 64-bit number and the total so far. If the total is
    negative, that difference itself overflows, so a negative weight is refused unless no plugin comes after it.
    """
    total = 0
    for weight in weights:
        if total < 0 or weight * _SCORE_MAX > _TOTAL_SCORE_MAX - total:
            return True
        total += weight * _SCORE_MAX
    return False


def _nearest(name: str, fitting: Iterable[str]) -> str:
    """Return a hint that names a similarly spelt plugin, or else says how to add a custom one."""
    by_lower_case = {plugin.lower(): plugin for plugin in fitting}
    matches = difflib.get_close_matches(name.lower(), by_lower_case, n=1)
    if not matches:
        return "; give --plugin MODULE:CLASS if it is a plugin of your own"
    return f'; did you mean "{by_lower_case[matches[0]]}"?'
