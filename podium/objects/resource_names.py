"""The resource names that the scheduler counts, and their classes.

Source: kubernetes pkg/apis/core/v1/helper/helpers.go and pkg/scheduler/util/utils.go, v1.36.2.
"""

from __future__ import annotations

import functools
from typing import Final

from podium.objects.selectors import is_qualified_name

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
STORAGE: Final = "storage"
PODS: Final = "pods"

_NATIVE_DOMAIN: Final = "kubernetes.io/"
_QUOTA_PREFIX: Final = "requests."
_HUGEPAGES_PREFIX: Final = "hugepages-"
_ATTACHABLE_VOLUMES_PREFIX: Final = "attachable-volumes-"
_BASIC: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})


def is_extended_resource(name: str) -> bool:
    """Return True for an extended resource: one outside Kubernetes' own domain, such as `example.com/gpu`."""
    if "/" not in name or _NATIVE_DOMAIN in name or name.startswith(_QUOTA_PREFIX):
        return False
    # A quota limits the resource under this longer name, so that name must be valid as well.
    return is_qualified_name(_QUOTA_PREFIX + name)


def is_hugepages(name: str) -> bool:
    """Return True for huge pages of any size, such as `hugepages-2Mi`."""
    return name.startswith(_HUGEPAGES_PREFIX)


def is_attachable_volumes(name: str) -> bool:
    """Return True for a limit on attachable volumes of some kind, such as `attachable-volumes-aws-ebs`."""
    return name.startswith(_ATTACHABLE_VOLUMES_PREFIX)


@functools.lru_cache(maxsize=4096)
def is_scalar_resource(name: str) -> bool:
    """Return True if it is counted by name: extended, huge pages, attachable volumes, or a `kubernetes.io/` name."""
    return is_extended_resource(name) or is_hugepages(name) or _NATIVE_DOMAIN in name or is_attachable_volumes(name)


def is_counted_resource(name: str) -> bool:
    """Return True if nodes are checked for it: cpu, memory, ephemeral storage and every scalar resource."""
    return name in _BASIC or is_scalar_resource(name)


def is_pod_level_resource(name: str) -> bool:
    """Return True if a pod may request it for all its containers together, in `spec.resources`."""
    return name in (CPU, MEMORY) or is_hugepages(name)
