"""The permissions that `podium provisioner run` needs with each provider.

Owns the table behind the provisioner's roles in deploy/ and behind `podium doctor`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from podium.client.permissions import RECORDING_EVENTS, Needs, Permission, leading, watching
from podium.engine.gangs import GROUPS
from podium.objects.resource_types import NODES, ResourceType
from podium.provisioner.controller.app import NAME, ProviderName
from podium.provisioner.controller.status import CONFIG_MAPS
from podium.provisioner.controller.watched import OVERLAYS, WATCHED
from podium.provisioner.planners.placing_planner import OTHERS
from podium.provisioner.state.manifests import NODE_CLAIMS

_ROLE: Final = "deploy/provisioner"


def _write_permissions(resource: ResourceType[Any], *verbs: str) -> Iterable[Permission]:
    """Return the permissions to write, and `get`: a write whose response is lost is checked by reading the object."""
    return [Permission(resource.group, resource.plural, verb) for verb in (*verbs, "get")]


_WRITES: Final[Mapping[str, Iterable[Permission]]] = {
    "plan-only": (),
    "sandbox": (*_write_permissions(NODES, "create", "patch", "delete"), Permission("", "pods/eviction", "create")),
    "karpenter": (
        *_write_permissions(NODE_CLAIMS, "create", "delete"),
        Permission(NODE_CLAIMS.group, f"{NODE_CLAIMS.plural}/status", "patch"),
    ),
}


def needs(
    provider: ProviderName,
    *,
    namespace: str = "kube-system",
    places_with_podium: bool = False,
    leader_elect: bool = True,
) -> Needs:
    """Return the permissions that a provisioner needs.

    Args:
        namespace: the namespace of the Lease and of the status ConfigMap.
        places_with_podium: whether podium's own plugins decide where pods fit.
    """
    resources: dict[ResourceType[Any], str] = dict.fromkeys((*WATCHED.values(), *GROUPS), "the provisioner")
    # Podium's plugins read further resources than Karpenter's rules do.
    if places_with_podium:
        resources = dict.fromkeys(OTHERS, "--rules podium") | resources
    components = {
        permission: component for resource, component in resources.items() for permission in watching(resource)
    }
    for resource in OVERLAYS.values():
        components |= dict.fromkeys(watching(resource), "the feature gate NodeOverlay")
    components |= dict.fromkeys(RECORDING_EVENTS, "the provisioner")
    components |= dict.fromkeys(_WRITES[provider], f"--provider {provider}")
    components |= dict.fromkeys(_status_permissions(namespace), "the status")
    if leader_elect:
        components |= dict.fromkeys(leading(namespace, NAME), "leader election")
    return Needs(
        {permission: (component,) for permission, component in sorted(components.items())},
        {resource: (component,) for resource, component in resources.items()},
        role=_ROLE,
        required=frozenset({NODE_CLAIMS} if provider == "karpenter" else ()),
    )


def _status_permissions(namespace: str) -> Iterator[Permission]:
    """Return the permissions to create the status ConfigMap and to keep it up to date."""
    # RBAC cannot restrict `create` by resource name.
    yield Permission(CONFIG_MAPS.group, CONFIG_MAPS.plural, "create", namespace)
    for verb in ("get", "patch"):
        yield Permission(CONFIG_MAPS.group, CONFIG_MAPS.plural, verb, namespace, NAME)
