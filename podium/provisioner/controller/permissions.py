"""The permissions that `podium provisioner run` needs with each provider.

Owns the table behind its roles in deploy/ and behind `podium doctor`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from podium.client.permissions import RECORDING_EVENTS, Needs, Permission, leading, watching
from podium.objects.resource_types import NODES, ResourceType
from podium.provisioner.controller.app import NAME, ProviderName
from podium.provisioner.controller.status import CONFIG_MAPS
from podium.provisioner.controller.watched import WATCHED
from podium.provisioner.planners.placing_planner import OTHERS
from podium.provisioner.state.manifests import NODE_CLAIMS

_ROLE: Final = "deploy/provisioner"


def _writing(resource: ResourceType[Any], *verbs: str) -> Iterable[Permission]:
    """Return the rights to write, with `get`: an object is read again when the answer to a write was lost."""
    return [Permission(resource.group, resource.plural, verb) for verb in (*verbs, "get")]


_WRITES: Final[Mapping[str, Iterable[Permission]]] = {
    "plan-only": (),
    "sandbox": (*_writing(NODES, "create", "patch", "delete"), Permission("", "pods/eviction", "create")),
    "karpenter": _writing(NODE_CLAIMS, "create", "delete"),
}


def needs(
    provider: ProviderName,
    *,
    namespace: str = "kube-system",
    places_with_podium: bool = False,
    leader_elect: bool = True,
) -> Needs:
    """Return the rights that a provisioner needs.

    Args:
        namespace: of the Lease and of the ConfigMap.
        places_with_podium: whether podium's own plugins judge where pods fit.
    """
    resources: dict[ResourceType[Any], str] = dict.fromkeys(WATCHED.values(), "the provisioner")
    # By podium's rules, plugins read further kinds, which need rights of their own.
    if places_with_podium:
        resources |= dict.fromkeys(OTHERS, "--rules podium")
    users = {rule: user for resource, user in resources.items() for rule in watching(resource)}
    users |= dict.fromkeys(RECORDING_EVENTS, "the provisioner")
    users |= dict.fromkeys(_WRITES[provider], f"--provider {provider}")
    users |= dict.fromkeys(_status(namespace), "the status")
    if leader_elect:
        users |= dict.fromkeys(leading(namespace, NAME), "leader election")
    return Needs(
        {permission: (user,) for permission, user in sorted(users.items())},
        {resource: (user,) for resource, user in resources.items()},
        role=_ROLE,
        required=frozenset({NODE_CLAIMS} if provider == "karpenter" else ()),
    )


def _status(namespace: str) -> Iterator[Permission]:
    # RBAC cannot restrict `create` by resource name.
    yield Permission(CONFIG_MAPS.group, CONFIG_MAPS.plural, "create", namespace)
    for verb in ("get", "patch"):
        yield Permission(CONFIG_MAPS.group, CONFIG_MAPS.plural, verb, namespace, NAME)
