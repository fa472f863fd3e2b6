"""Loads the configurations that the library's callers give, and those of recorded questions, each once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from podium.config import (
    DEFAULT_GATES,
    NEWEST,
    RELEASES,
    ConfigGates,
    KubeSchedulerConfiguration,
    Release,
    default_configuration,
    default_gates,
    load,
    load_file,
    unsupported_features,
)
from podium.config import Plugin as EnabledPlugin
from podium.engine.errors import ClusterError
from podium.engine.object_files import PathLike
from podium.framework.contract.plugin import Plugin
from podium.framework.profile.runtime import registry_of

_KEPT_MAX: Final = 64

Config: TypeAlias = PathLike | Mapping[str, Any] | KubeSchedulerConfiguration
"""The path of a KubeSchedulerConfiguration, its content as parsed from JSON or YAML, or a loaded one."""


def read_configuration(
    text: str, name: str, classes: Mapping[str, type[Plugin]], gates: ConfigGates = DEFAULT_GATES
) -> KubeSchedulerConfiguration:
    """Read the configuration in a text.

    Args:
        name: what to call the text.
        classes: the available plugins by name.

    Raises:
        ConfigError, ClusterError: it cannot be read, or asks for something that podium does not support.
    """
    registry = registry_of(classes)
    load_result = load(text, name, registry, gates)
    if errors := unsupported_features(load_result, classes, registry).undecidable:
        raise ClusterError("\n".join(f"{name}: {error.text}" for error in errors))
    return load_result.config


class Configurations:
    """Loads configurations, and keeps the latest ones.

    Args:
        classes: the available plugins by name.
        default: for questions without a configuration or feature gates of their own; by default upstream's defaults.

    `release` is that of the default; all questions are decided as it.
    """

    def __init__(self, classes: Mapping[str, type[Plugin]], default: KubeSchedulerConfiguration | None = None) -> None:
        self._classes = classes
        self._default = default or default_configuration()
        self.release = self._default.release
        self._known: dict[tuple[bytes, ConfigGates], KubeSchedulerConfiguration] = {}

    def of(self, config: Mapping[str, Any] | None, gates: ConfigGates | None = None) -> KubeSchedulerConfiguration:
        """Return the configuration with that content; without gates, with those of the release.

        Raises:
            ConfigError, ClusterError: it cannot be read, or asks for something that podium does not support.
        """
        defaults = default_gates(self.release)
        gates = gates or defaults
        if config is None:
            return self._default if gates == defaults else default_configuration(gates)
        text = msgspec.json.encode(config)
        configuration = self._known.get((text, gates))
        if configuration is None:
            if len(self._known) >= _KEPT_MAX:
                self._known.clear()
            configuration = self._known[text, gates] = read_configuration(text.decode(), "config", self._classes, gates)
        return configuration


def read_config(
    config: Config | None,
    classes: Mapping[str, type[Plugin]],
    plugins: Sequence[type[Plugin]] = (),
    release: Release = NEWEST,
) -> KubeSchedulerConfiguration:
    """Read the given configuration; without one, return the default with these plugins added.

    One that was loaded before keeps its own release.
    """
    gates = default_gates(release)
    if isinstance(config, KubeSchedulerConfiguration):
        return config
    if config is None:
        return with_plugins(default_configuration(gates), plugins)
    registry = registry_of(classes)
    if isinstance(config, Mapping):
        load_result = load(msgspec.json.encode(config).decode(), "config", registry, gates)
    else:
        load_result = load_file(Path(config), registry, gates)
    errors = unsupported_features(load_result, classes, registry).undecidable
    if errors:
        raise ClusterError("\n".join(f"config: {error.text}" for error in errors))
    return load_result.config


def release_named(minor: str | None) -> Release:
    """Return the release of that minor, as `RELEASES` names it; the newest for None. Raises: ClusterError."""
    if minor is None:
        return NEWEST
    if minor not in RELEASES:
        raise ClusterError(f"decide_as: {minor!r} is not a minor that podium knows: {', '.join(RELEASES)}")
    return RELEASES[minor]


def with_plugins(config: KubeSchedulerConfiguration, plugins: Iterable[type[Plugin]]) -> KubeSchedulerConfiguration:
    """Return the configuration with these plugins enabled in its only profile, with weight 1."""
    (profile,) = config.profiles
    multi_point = profile.plugins.multi_point
    entries = (*multi_point.enabled, *(EnabledPlugin(plugin.name, 1) for plugin in plugins))
    plugin_set = replace(profile.plugins, multi_point=replace(multi_point, enabled=entries))
    return replace(config, profiles=(replace(profile, plugins=plugin_set),))
