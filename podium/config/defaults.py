"""Completing a configuration: what depends on more than one field, and upstream's merge of plugins (stage A).

Owns the profile's defaults. Plain defaults are the dataclasses' own.

Source: apis/config/v1/defaults.go, default_plugins.go (kube-scheduler 1.36.2)
"""

from dataclasses import replace

from podium.config.args import ARGS_BY_PLUGIN
from podium.config.extension_points import DEFAULT_MULTI_POINT, ExtensionPoint
from podium.config.types import (
    DEFAULT_SCHEDULER_NAME,
    KubeSchedulerConfiguration,
    Plugin,
    PluginConfig,
    Plugins,
    PluginSet,
    Profile,
)

EVERY_PLUGIN = "*"
DEFAULT_PLUGINS = Plugins(multi_point=PluginSet(tuple(Plugin(*entry) for entry in DEFAULT_MULTI_POINT)))


def merge_plugin_set(default: PluginSet, custom: PluginSet) -> PluginSet:
    """One extension point's default plugins with the user's set applied.

    A default that the user re-enables keeps its place and takes the user's weight, unless it is also disabled; then,
    like every other plugin of the user's, it goes to the end. The user's disabled list stays, for the expansion.
    """
    disabled = {plugin.name for plugin in (*default.disabled, *custom.disabled)}
    if EVERY_PLUGIN in disabled:
        return PluginSet(custom.enabled, custom.disabled)
    last_of = {plugin.name: index for index, plugin in enumerate(custom.enabled)}
    kept = [plugin for plugin in default.enabled if plugin.name not in disabled]
    replaced = {last_of[plugin.name] for plugin in kept if plugin.name in last_of}
    merged = [custom.enabled[last_of[plugin.name]] if plugin.name in last_of else plugin for plugin in kept]
    added = [plugin for index, plugin in enumerate(custom.enabled) if index not in replaced]
    return PluginSet((*merged, *added), custom.disabled)


def merge_plugins(default: Plugins, custom: Plugins) -> Plugins:
    """``merge_plugin_set`` at every extension point, ``multiPoint`` included."""
    merged = {point.name.lower(): merge_plugin_set(default.at(point), custom.at(point)) for point in ExtensionPoint}
    return Plugins(**merged)


def complete_profile(profile: Profile) -> Profile:
    """A profile with the default plugins merged in and args for every enabled plugin that takes any."""
    plugins = merge_plugins(DEFAULT_PLUGINS, profile.plugins)
    configured = {entry.name for entry in profile.plugin_config}
    missing = [
        PluginConfig(name, ARGS_BY_PLUGIN[name]())
        for name in sorted(plugins.enabled_names() - configured)
        if name in ARGS_BY_PLUGIN
    ]
    return replace(profile, plugins=plugins, plugin_config=(*profile.plugin_config, *missing))


def complete(config: KubeSchedulerConfiguration, *, names_profile: bool = False) -> KubeSchedulerConfiguration:
    """A configuration with at least one profile, every profile completed.

    Args: ``names_profile``: the file gives the only profile a schedulerName, be it an empty one; without that the
    only profile is called ``default-scheduler``.
    """
    profiles = config.profiles or (Profile(),)
    if len(profiles) == 1 and not names_profile and not profiles[0].scheduler_name:
        profiles = (replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER_NAME),)
    return replace(config, profiles=tuple(complete_profile(profile) for profile in profiles))


def default_configuration() -> KubeSchedulerConfiguration:
    """What an empty file means."""
    return complete(KubeSchedulerConfiguration())
