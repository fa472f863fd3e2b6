"""Plugins of users that a changed configuration needs, constructed and not yet in use.

Owns what they may do until they are: ask for listers, and for what is shared. podium's own plugins are made where the
scheduler runs, since their constructors look at what it changes, and end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from podium.daemon.handle import PluginHandle
from podium.framework.contract.plugin import Plugin
from podium.plugins import IN_TREE
from podium.plugins.contrib import CONTRIB


@dataclass(frozen=True, slots=True)
class NewPlugins:
    """The plugins by profile and name, and the handle that they have.

    Invariant: they stay without their handle's services unless they come into use, however long a constructor lasts.
    """

    handle: PluginHandle
    by_profile: dict[str, Mapping[str, Plugin]] = field(default_factory=dict)

    def open(self) -> None:
        """Let the plugins use all of their handle, as they are in use from now on."""
        assert self.handle.opened is not None
        self.handle.opened.set()


def is_users(plugin: type[Plugin]) -> bool:
    """Return the class comes from elsewhere, and not with podium."""
    return plugin not in (*IN_TREE.values(), *CONTRIB.values())
