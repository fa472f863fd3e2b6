"""The labels by which providers describe their instance types, and what providers set on all nodes of a node class.

Owns these names. A NodePool may define any other label itself; these it only selects by, so that a catalogue without
them cannot answer what it asks.

Source: pkg/apis/v1/labels.go of aws/karpenter-provider-aws, pkg/apis/v1beta1/labels.go of
Azure/karpenter-provider-azure, pkg/apis/v1alpha1/labels.go of cloudpilot-ai/karpenter-provider-gcp, and the labels of
EKS Auto Mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Final

from podium.provisioner.apis.labels import (
    ARCH,
    CAPACITY_TYPE,
    INITIALIZED,
    INSTANCE_TYPE,
    NODE_POOL,
    OS,
    REGION,
    REGISTERED,
    WINDOWS_BUILD,
    ZONE,
)

AWS: Final = "karpenter.k8s.aws"
EKS_AUTO: Final = "eks.amazonaws.com"
AZURE: Final = "karpenter.azure.com"
AKS: Final = "kubernetes.azure.com"
GCP: Final = "karpenter.k8s.gcp"
GKE: Final = "cloud.google.com"

AWS_NAMES: Final = frozenset(
    {
        "instance-accelerator-count",
        "instance-accelerator-manufacturer",
        "instance-accelerator-name",
        "instance-capability-flex",
        "instance-category",
        "instance-cpu",
        "instance-cpu-manufacturer",
        "instance-cpu-sustained-clock-speed-mhz",
        "instance-ebs-bandwidth",
        "instance-encryption-in-transit-supported",
        "instance-family",
        "instance-generation",
        "instance-gpu-count",
        "instance-gpu-manufacturer",
        "instance-gpu-memory",
        "instance-gpu-name",
        "instance-hypervisor",
        "instance-local-nvme",
        "instance-memory",
        "instance-network-bandwidth",
        "instance-size",
        "instance-tenancy",
    }
)
"""The names that AWS' Karpenter and EKS Auto Mode give, each in its own domain, to the same property."""

_AZURE_NAMES: Final = frozenset(
    {
        "sku-cpu",
        "sku-family",
        "sku-gpu-count",
        "sku-gpu-manufacturer",
        "sku-gpu-name",
        "sku-memory",
        "sku-name",
        "sku-networking-accelerated",
        "sku-series",
        "sku-storage-ephemeralos-maxsize",
        "sku-storage-premium-capable",
        "sku-storage-ultra-ssd",
        "sku-version",
    }
)
_GCP_NAMES: Final = frozenset({"instance-cpu-model", "instance-shape", "machine-family"})
_PROPERTY_NAMES: Final = AWS_NAMES | _AZURE_NAMES | _GCP_NAMES
_PROPERTY_LABELS: Final = frozenset(
    {
        ARCH,
        CAPACITY_TYPE,
        INSTANCE_TYPE,
        OS,
        REGION,
        WINDOWS_BUILD,
        ZONE,
        f"{GKE}/gke-accelerator",
        f"{GKE}/gke-spot",
        f"{AKS}/os-sku",
        f"{AKS}/priority",
        f"{AKS}/scalesetpriority",
        "topology.k8s.aws/zone-id",
        "topology.k8s.gcp/zone-id",
    }
)
_KARPENTERS_OWN: Final = frozenset({NODE_POOL, REGISTERED, INITIALIZED})

NODE_LABELS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType({EKS_AUTO: {f"{EKS_AUTO}/compute-type": "auto"}})
"""By group of the node class: the labels that the provider sets on each node of it."""

RESERVATION_IDS: Final = ("karpenter.kwok.sh/reservation-id", f"{AWS}/capacity-reservation-id")
"""The labels by which providers tell reservations apart."""


def describes_instance_types(key: str, provider_groups: AbstractSet[str] = frozenset()) -> bool:
    """Return True if nodes have the label because of their instance type or offering, and not because it was chosen.

    Args:
        provider_groups: the groups of node classes. The labels of such a domain are the provider's.
    """
    if key in _PROPERTY_LABELS:
        return True
    domain, slash, name = key.rpartition("/")
    # Some people write the property without the domain of their provider.
    return key not in _KARPENTERS_OWN and (
        name in _PROPERTY_NAMES or (bool(slash) and (domain.startswith("karpenter.") or domain in provider_groups))
    )
