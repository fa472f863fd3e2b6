"""Names the files of a running scheduler's configuration, so that it can be read again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from podium.config import KubeSchedulerConfiguration
from podium.framework.contract.plugin import Plugin


class Configured(Protocol):
    """A configuration that was read, and the available plugins by name."""

    @property
    def config(self) -> KubeSchedulerConfiguration:
        """The configuration, checked."""

    @property
    def plugins(self) -> Mapping[str, type[Plugin]]:
        """All available plugins."""


@dataclass(frozen=True, slots=True)
class ConfigurationSource:
    """The files that hold the configuration, and the function that reads them.

    Attributes:
        config: the configuration file; None if the defaults are used.
        plugins: the files of plugins.
        read: reads all of them and checks the result; raises an exception whose text says what is wrong.
    """

    config: Path | None
    plugins: Sequence[Path]
    read: Callable[[], Configured]

    def content(self) -> tuple[bytes, bytes]:
        """Return a digest of the configuration file and one of the plugins' files; a digest changes with its files."""
        return digest([] if self.config is None else [self.config]), digest(self.plugins)


def digest(paths: Sequence[Path]) -> bytes:
    """Return a digest of the files' contents, which changes with them."""
    digest = hashlib.sha256()
    for path in paths:
        # One that cannot be read counts as changed: `read` says what is wrong with it.
        with suppress(OSError):
            digest.update(path.read_bytes())
        digest.update(b"\0")
    return digest.digest()
