"""Configurations as they stand in recorded questions, each loaded once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from podium.config import (
    DEFAULT_GATES,
    ConfigGates,
    KubeSchedulerConfiguration,
    default_configuration,
    load,
    unsupported,
)
from podium.engine.errors import ClusterError
from podium.framework.contract.interface import Plugin
from podium.framework.profile.runtime import registry_of

_KEPT_MAX: Final = 64


def read_configuration(
    text: str, name: str, classes: Mapping[str, type[Plugin]], gates: ConfigGates = DEFAULT_GATES
) -> KubeSchedulerConfiguration:
    """The configuration in a text.

    Args:
        name: what to call the text.
        classes: the available plugins by name.

    Raises:
        ConfigError, ClusterError: it cannot be read, or asks for something that podium does not support.
    """
    registry = registry_of(classes)
    loaded = load(text, name, registry, gates)
    if refused := unsupported(loaded, classes, registry).undecidable:
        raise ClusterError("\n".join(f"{name}: {error.text}" for error in refused))
    return loaded.config


class Configurations:
    """Loads configurations, and keeps the latest ones.

    Args:
        classes: the available plugins by name.
        default: for questions without a configuration or feature gates of their own; by default upstream's defaults.
    """

    def __init__(self, classes: Mapping[str, type[Plugin]], default: KubeSchedulerConfiguration | None = None) -> None:
        self._classes = classes
        self._default = default or default_configuration()
        self._known: dict[tuple[bytes, ConfigGates], KubeSchedulerConfiguration] = {}

    def of(self, config: Mapping[str, Any] | None, gates: ConfigGates = DEFAULT_GATES) -> KubeSchedulerConfiguration:
        """The configuration with that content.

        Raises:
            ConfigError, ClusterError: it cannot be read, or asks for something that podium does not support.
        """
        if config is None:
            return self._default if gates == DEFAULT_GATES else default_configuration(gates)
        text = msgspec.json.encode(config)
        known = self._known.get((text, gates))
        if known is None:
            if len(self._known) >= _KEPT_MAX:
                self._known.clear()
            known = self._known[text, gates] = read_configuration(text.decode(), "config", self._classes, gates)
        return known
