"""Completes a configuration: defaults that depend on several fields, and upstream's merge of plugins (stage A).

Owns the profile's defaults and the few that depend on a feature gate. The dataclasses have all other defaults.

Source: apis/config/v1/defaults.go, default_plugins.go (kube-scheduler 1.36.2)
"""

from collections.abc import Container
from dataclasses import replace
from functools import lru_cache
from typing import Final

from podium.config.args import (
    ARGS_BY_PLUGIN,
    DynamicResourcesArgs,
    InTreeArgs,
    RawArgs,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from podium.config.extension_points import ExtensionPoint
from podium.config.feature_gates import DEFAULT_GATES, ConfigGates
from podium.config.types import (
    DEFAULT_SCHEDULER_NAME,
    KubeSchedulerConfiguration,
    Plugin,
    PluginConfig,
    Plugins,
    PluginSet,
    Profile,
)

EVERY_PLUGIN: Final = "*"
_CACHE_SIZE: Final = 64
"""The size of the caches: profiles share the parts that they leave to the defaults."""
_STORAGE_CAPACITY_SHAPE: Final = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))


@lru_cache(_CACHE_SIZE)
def default_plugins(gates: ConfigGates = DEFAULT_GATES) -> Plugins:
    """Return the plugins of a profile that configures none: one ``multiPoint`` list."""
    rows = gates.release.plugins.items()
    plugins = (Plugin(name, row.weight) for name, row in rows if not row.gate or gates.has(row.gate))
    return Plugins(multi_point=PluginSet(tuple(plugins)))


def merge_plugin_set(default: PluginSet, custom: PluginSet) -> PluginSet:
    """Merge the user's plugin set of one extension point into the default one.

    A default plugin that the user enables again keeps its position and takes the user's weight, unless the user also
    disables it; then it goes to the end, like all other plugins that the user adds. The result keeps the user's
    disabled list, for the expansion.
    """
    disabled_plugins = tuple(Plugin(plugin.name) for plugin in (*custom.disabled, *default.disabled))
    disabled = {plugin.name for plugin in disabled_plugins}
    if EVERY_PLUGIN in disabled:
        return PluginSet(custom.enabled, disabled_plugins)
    last_of = {plugin.name: index for index, plugin in enumerate(custom.enabled)}
    defaults = [plugin for plugin in default.enabled if plugin.name not in disabled]
    override_indices = {last_of[plugin.name] for plugin in defaults if plugin.name in last_of}
    overridden_defaults = [
        custom.enabled[last_of[plugin.name]] if plugin.name in last_of else plugin for plugin in defaults
    ]
    additions = [plugin for index, plugin in enumerate(custom.enabled) if index not in override_indices]
    return PluginSet((*overridden_defaults, *additions), disabled_plugins)


@lru_cache(_CACHE_SIZE)
def merge_plugins(default: Plugins, custom: Plugins) -> Plugins:
    """Apply ``merge_plugin_set`` at every extension point, ``multiPoint`` included."""
    sets = {point.name.lower(): merge_plugin_set(default.at(point), custom.at(point)) for point in ExtensionPoint}
    return Plugins(**sets)


@lru_cache(_CACHE_SIZE)
def _default_args(name: str, gates: ConfigGates) -> InTreeArgs | RawArgs | None:
    return _gated_args(ARGS_BY_PLUGIN[name](), "", gates, ())


def _gated_args(
    args: InTreeArgs | RawArgs | None, path: str, gates: ConfigGates, present: Container[str]
) -> InTreeArgs | RawArgs | None:
    """Add the defaults that depend on a gate; a field that the file sets is kept, for validation to check."""
    if isinstance(args, DynamicResourcesArgs):
        if not gates.has("DRASchedulerFilterTimeout") and f"{path}.filterTimeout" not in present:
            args = replace(args, filter_timeout_s=None)
        if not gates.dra_binding_timeout and f"{path}.bindingTimeout" not in present:
            args = replace(args, binding_timeout_s=None)
        if not gates.has("DRADeviceTaintRules"):
            args = replace(args, has_taint_rules=False)
        if gates.has("DRAFractionalCapacityRange"):
            args = replace(args, has_fractional_ranges=True)
    elif isinstance(args, VolumeBindingArgs) and gates.has("StorageCapacityScoring") and not args.shape:
        args = replace(args, shape=_STORAGE_CAPACITY_SHAPE)
    return args


def complete_profile(
    profile: Profile,
    gates: ConfigGates = DEFAULT_GATES,
    path: str = "",
    present: Container[str] = (),
) -> Profile:
    """Merge the default plugins into a profile, and add args for every enabled plugin that takes args."""
    plugins = merge_plugins(default_plugins(gates), profile.plugins)
    configured = [
        replace(entry, args=_gated_args(entry.args, f"{path}.pluginConfig[{i}].args", gates, present))
        for i, entry in enumerate(profile.plugin_config)
    ]
    names = {entry.name for entry in configured}
    missing = [
        PluginConfig(name, _default_args(name, gates))
        for name in sorted(plugins.enabled_names() - names)
        if name in ARGS_BY_PLUGIN
    ]
    release = gates.release.under(gates.on_gates)
    return replace(profile, plugins=plugins, plugin_config=(*configured, *missing), release=release)


def complete(
    config: KubeSchedulerConfiguration,
    gates: ConfigGates = DEFAULT_GATES,
    present: Container[str] = (),
) -> KubeSchedulerConfiguration:
    """Complete every profile of a configuration; without profiles, add the default one.

    Args: ``present``: paths of the fields that the file sets. They distinguish an empty schedulerName (an error) from
    an absent one (``default-scheduler``, if there is only one profile).
    """
    profiles = config.profiles or (Profile(),)
    if len(profiles) == 1 and not profiles[0].scheduler_name and "profiles[0].schedulerName" not in present:
        profiles = (replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER_NAME),)
    completed = (complete_profile(profile, gates, f"profiles[{i}]", present) for i, profile in enumerate(profiles))
    contention = config.enable_contention_profiling
    if not config.enable_profiling and "enableContentionProfiling" not in present:
        contention = False
    release = gates.release.under(gates.on_gates)
    return replace(config, profiles=tuple(completed), enable_contention_profiling=contention, release=release)


def default_configuration(gates: ConfigGates = DEFAULT_GATES) -> KubeSchedulerConfiguration:
    """Return the configuration that an empty file means."""
    return complete(KubeSchedulerConfiguration(), gates)
