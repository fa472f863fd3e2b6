"""The permissions that `podium shadow` and `podium record` need: to read what decisions depend on, and nothing else.

Owns the table behind the role in deploy/shadow and behind `podium doctor --shadow`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, Final

from podium.client.permissions import Needs, watching
from podium.config import KubeSchedulerConfiguration
from podium.engine.cluster import Cluster
from podium.engine.store import ObjectStore
from podium.framework.contract.plugin import Plugin
from podium.recording.shadow.observed import ObservedCluster

_ROLE: Final = "deploy/shadow/rbac.yaml"
_USERS: Final = ("the shadow",)


def needs(config: KubeSchedulerConfiguration, classes: Mapping[str, type[Plugin]]) -> Needs:
    """Return the needs of a shadow of a scheduler with this configuration.

    Raises: PluginError if a plugin cannot be constructed.
    """
    resources: dict[Any, tuple[str, ...]] = dict.fromkeys(
        ObservedCluster(Cluster(config, ObjectStore(()), classes)).resources, _USERS
    )
    permissions = sorted(chain.from_iterable(map(watching, resources)))
    return Needs(dict.fromkeys(permissions, _USERS), resources, role=_ROLE)
