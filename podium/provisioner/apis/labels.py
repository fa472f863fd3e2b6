"""The node labels that Karpenter knows: well known ones, restricted ones, and old names of the well known ones.

Owns the names. Never looks at a pod, a node or a NodePool.

Source: karpenter pkg/apis/v1/labels.go and kwok/apis/v1alpha1/labels.go, v1.15.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Final

NODE_POOL: Final = "karpenter.sh/nodepool"
CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
WINDOWS_BUILD: Final = "node.kubernetes.io/windows-build"
ARCH: Final = "kubernetes.io/arch"
OS: Final = "kubernetes.io/os"
HOSTNAME: Final = "kubernetes.io/hostname"
REGISTERED: Final = "karpenter.sh/registered"
INITIALIZED: Final = "karpenter.sh/initialized"

INSTANCE_SIZE: Final = "karpenter.kwok.sh/instance-size"
INSTANCE_FAMILY: Final = "karpenter.kwok.sh/instance-family"
INSTANCE_CPU: Final = "karpenter.kwok.sh/instance-cpu"
INSTANCE_MEMORY: Final = "karpenter.kwok.sh/instance-memory"

ON_DEMAND: Final = "on-demand"
SPOT: Final = "spot"
RESERVED: Final = "reserved"

NODE_CLASS: Final = ("karpenter.kwok.sh", "KWOKNodeClass")
"""Group and kind of the node class of the kwok provider."""

PLANNED_PODS: Final = "podium/planned-pods"
"""The annotation of a NodeClaim that podium has made: the UIDs of the pods that it was bought for."""

SIMULATED: Final = (REGISTERED, INITIALIZED)
"""Labels that DaemonSets may ask for, though a NodeClaim never does."""

WELL_KNOWN: Final = frozenset({NODE_POOL, CAPACITY_TYPE, ZONE, REGION, INSTANCE_TYPE, WINDOWS_BUILD, ARCH, OS})
"""The well known labels of every provider. A provider adds its own, and the keys of its offerings."""

KWOK_WELL_KNOWN: Final = frozenset({INSTANCE_SIZE, INSTANCE_FAMILY, INSTANCE_CPU, INSTANCE_MEMORY})
"""The well known labels that the kwok provider adds."""

CSI_ZONES: Final = ("topology.ebs.csi.aws.com/zone", "topology.disk.csi.azure.com/zone", "topology.gke.io/zone")
"""The labels by which the storage drivers of AWS, Azure and GCP name a node's zone."""

RESTRICTED_DOMAINS: Final = frozenset({"karpenter.sh", "karpenter.kwok.sh"})
"""Domains of Karpenter and of the kwok provider; only their well known labels may be asked for."""

_RESTRICTED: Final = frozenset({HOSTNAME})
_CURRENT_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "beta.kubernetes.io/arch": ARCH,
        "beta.kubernetes.io/os": OS,
        "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
        "failure-domain.beta.kubernetes.io/zone": ZONE,
        "failure-domain.beta.kubernetes.io/region": REGION,
        # Providers of Karpenter register the labels by which their storage drivers name zones, each its own.
        **dict.fromkeys(CSI_ZONES, ZONE),
    }
)


def current_name(key: str) -> str:
    """Return the label's name today: an old name of a well known label is replaced, any other key stays."""
    return _CURRENT_NAMES.get(key, key)


def is_restricted_label(key: str, well_known: AbstractSet[str]) -> bool:
    """Return True if pods and NodePools may not ask for this label, because Karpenter sets it itself.

    Args:
        well_known: all well known labels, those of the provider included.
    """
    if key in well_known:
        return False
    if key in _RESTRICTED:
        return True
    domain, slash, _ = key.partition("/")
    # Subdomains too: providers write labels of their own below these domains.
    return bool(slash) and any(
        domain == restricted_domain or domain.endswith(f".{restricted_domain}")
        for restricted_domain in RESTRICTED_DOMAINS
    )
