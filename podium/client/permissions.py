"""Permissions in RBAC's terms, and what a part of podium needs.

Owns the form of the tables behind the roles in deploy/ and behind `podium doctor`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from podium.objects.node_metrics import MetricsSource
from podium.objects.resource_types import ResourceType

_COORDINATION = "coordination.k8s.io"
_EVENTS = "events.k8s.io"


@dataclass(frozen=True, slots=True, order=True)
class Permission:
    """One verb on one resource. An empty namespace means all namespaces, an empty name every object."""

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        suffix = f" {self.name}" if self.name else ""
        return f"{self.verb} {resource}{suffix}" + (f" in {self.namespace}" if self.namespace else "")


@dataclass(frozen=True, slots=True)
class Needs:
    """The permissions and resources that are needed, each with the components that need it.

    Attributes:
        role: Where the roles are that grant the permissions.
        required: The resources that the API server must serve, beside those of the core group.
        metrics: The sources of node metrics that plugins read, each with these plugins.
    """

    permissions: Mapping[Permission, tuple[str, ...]]
    resources: Mapping[ResourceType[Any], tuple[str, ...]]
    role: str = "deploy/rbac.yaml"
    required: frozenset[ResourceType[Any]] = frozenset()
    metrics: Mapping[MetricsSource, tuple[str, ...]] = field(default_factory=dict)


RECORDING_EVENTS = (Permission(_EVENTS, "events", "create"), Permission(_EVENTS, "events", "patch"))


def watching(resource: ResourceType[Any]) -> Iterator[Permission]:
    """Return the permissions that an informer needs."""
    for verb in ("list", "watch"):
        yield Permission(resource.group, resource.plural, verb)


def leading(namespace: str, lease: str) -> Iterator[Permission]:
    """Return the permissions that leader election needs."""
    # RBAC cannot restrict `create` by resource name: the authorizer does not know the name of a new object.
    yield Permission(_COORDINATION, "leases", "create", namespace)
    for verb in ("get", "update"):
        yield Permission(_COORDINATION, "leases", verb, namespace, lease)


def sharing(namespace: str) -> Permission:
    """Return the permission that a member of a group of shards needs beside those of leader election."""
    return Permission(_COORDINATION, "leases", "list", namespace)
