"""Writes a configuration back: as JSON values in upstream's shape, or as YAML.

Source: cmd/kube-scheduler/app/options/configfile.go, server.go (kube-scheduler 1.36.2: ``--write-config-to``)
"""

from dataclasses import replace
from typing import Any

from podium.config.args import NodeResourcesFitArgs
from podium.config.schema import CONFIGURATION
from podium.config.types import API_VERSION, KIND, KubeSchedulerConfiguration, PluginConfig, Profile
from podium.lib import yaml_writer


def to_dict(config: KubeSchedulerConfiguration) -> dict[str, Any]:
    """The configuration as JSON values, with apiVersion and kind."""
    return {"apiVersion": API_VERSION, "kind": KIND} | CONFIGURATION.write(config)


def effective(config: KubeSchedulerConfiguration) -> dict[str, Any]:
    """A completed configuration as upstream writes it: with the pluginConfig of plugins in use, sorted by name."""
    profiles = tuple(_in_use(profile) for profile in config.profiles)
    return to_dict(replace(config, profiles=profiles))


def _in_use(profile: Profile) -> Profile:
    enabled = profile.plugins.enabled_names()
    entries = [entry for entry in profile.plugin_config if entry.name in enabled and entry.args is not None]
    return replace(profile, plugin_config=tuple(sorted(entries, key=lambda entry: entry.name)))


def to_yaml(config: KubeSchedulerConfiguration) -> str:
    """The effective configuration as a YAML file that loads to the same configuration."""
    return yaml_writer.to_yaml(effective(config))


def configz(config: KubeSchedulerConfiguration) -> dict[str, Any]:
    """The content of ``/configz``."""
    return {"componentconfig": effective(config)}


def apply_extenders(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """Replace NodeResourcesFit's ignoredResources in every profile by the resources that extenders want ignored."""
    ignored = tuple(
        resource.name
        for extender in config.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    if not ignored:
        return config
    return replace(config, profiles=tuple(_ignoring(profile, ignored) for profile in config.profiles))


def _ignoring(profile: Profile, ignored: tuple[str, ...]) -> Profile:
    entries = (
        PluginConfig(entry.name, replace(entry.args, ignored_resources=ignored))
        if isinstance(entry.args, NodeResourcesFitArgs)
        else entry
        for entry in profile.plugin_config
    )
    return replace(profile, plugin_config=tuple(entries))
