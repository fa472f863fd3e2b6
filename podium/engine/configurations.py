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


class Configurations:
    """Loads configurations, and keeps the latest ones.

    Args:
        classes: the available plugins by name.
        default: for questions without a configuration or feature gates of their own; by default upstream's defaults.
    """

    def __init__(self, classes: Mapping[str, type[Plugin]], default: KubeSchedulerConfiguration | None = None) -> None:
        self._classes = classes
        self._registry = registry_of(classes)
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
            known = self._known[text, gates] = self._load(text.decode(), gates)
        return known

    def _load(self, text: str, gates: ConfigGates) -> KubeSchedulerConfiguration:
        loaded = load(text, "config", self._registry, gates)
        refused = unsupported(loaded, self._classes, self._registry).undecidable
        if refused:
            raise ClusterError("\n".join(f"config: {error.text}" for error in refused))
        return loaded.config
