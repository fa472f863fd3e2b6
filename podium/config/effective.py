"""Writes a configuration back: as JSON values in upstream's shape, or as YAML.

Source: cmd/kube-scheduler/app/options/configfile.go, server.go (kube-scheduler 1.36.2, 1.37.2: ``--write-config-to``)
"""

from dataclasses import replace
from typing import Any

from podium.config.args import NodeResourcesFitArgs
from podium.config.schema import CONFIGURATION
from podium.config.types import API_VERSION, KIND, KubeSchedulerConfiguration, PluginConfig, Profile
from podium.lib import yaml_writer


def to_dict(config: KubeSchedulerConfiguration) -> dict[str, Any]:
    """Write the configuration as JSON values, with apiVersion and kind."""
    fields = CONFIGURATION.write(config)
    for profile in fields.get("profiles", ()):
        for point in config.release.absent_points:
            profile["plugins"].pop(point, None)
    return {"apiVersion": API_VERSION, "kind": KIND} | fields


def effective(config: KubeSchedulerConfiguration) -> dict[str, Any]:
    """Write a completed configuration as upstream does: with the pluginConfig of plugins in use, sorted by name."""
    profiles = tuple(_with_used_args(profile) for profile in config.profiles)
    return to_dict(replace(config, profiles=profiles))


def _with_used_args(profile: Profile) -> Profile:
    names = profile.plugins.enabled_names()
    entries = [entry for entry in profile.plugin_config if entry.name in names and entry.args is not None]
    return replace(profile, plugin_config=tuple(sorted(entries, key=lambda entry: entry.name)))


def to_yaml(config: KubeSchedulerConfiguration) -> str:
    """Write the effective configuration as a YAML file that loads to the same configuration."""
    return yaml_writer.to_yaml(effective(config))


def configz(config: KubeSchedulerConfiguration) -> dict[str, Any]:
    """Return the content of ``/configz``."""
    return {"componentconfig": effective(config)}


def apply_extenders(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """Replace NodeResourcesFit's ignoredResources in every profile by the resources with `ignoredByScheduler`."""
    resource_names = tuple(
        resource.name
        for extender in config.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    if not resource_names:
        return config
    return replace(
        config, profiles=tuple(_with_ignored_resources(profile, resource_names) for profile in config.profiles)
    )


def _with_ignored_resources(profile: Profile, resource_names: tuple[str, ...]) -> Profile:
    entries = (
        PluginConfig(entry.name, replace(entry.args, ignored_resources=resource_names))
        if isinstance(entry.args, NodeResourcesFitArgs)
        else entry
        for entry in profile.plugin_config
    )
    return replace(profile, plugin_config=tuple(entries))
