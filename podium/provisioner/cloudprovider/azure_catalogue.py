"""Instance types from `az vm list-skus`, with prices from Azure's retail price API.

Owns the formats and Karpenter's formulae for what a node has left for pods. Never decides what is bought.

Source: pkg/providers/instancetype of Azure/karpenter-provider-azure, with its defaults: 7.5 % of the memory for the
hypervisor, 250 pods, a disk of 128 GB.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from podium.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from podium.provisioner.apis.dialects import AKS, AZURE
from podium.provisioner.apis.labels import CAPACITY_TYPE, ON_DEMAND, SPOT, ZONE
from podium.provisioner.cloudprovider.dialect_labels import ARCHITECTURES, labels_of_name
from podium.provisioner.cloudprovider.imported_fields import Field, in_requirement

HYPERVISOR_SHARE: Final = 0.075
PODS_MAX: Final = 250
DISK_GB: Final = 128
NO_ZONE: Final = "0"
"""The zone label of nodes outside all zones."""
MEMORY_SHARES: Final = ((4, 0.25), (4, 0.20), (8, 0.10), (112, 0.06), (math.inf, 0.02))
"""By step of GiB: the share that the kubelet keeps."""
_CPU_SHARES: Final = ((1, 0.06), (1, 0.04), (2, 0.02), (math.inf, 0.01))
_AMD_GPUS: Final = ("V620", "V710", "MI300X", "MI25")

Prices = Mapping[str, Mapping[str, float]]
"""By instance type and capacity type: the price per hour."""


def share_of(amount: float, shares: Sequence[tuple[float, float]]) -> float:
    """Return what is kept of an amount, of which each step has a share of its own."""
    reservation = 0.0
    for step, share in shares:
        reservation += min(amount, step) * share
        amount = max(amount - step, 0)
    return reservation


def azure_prices(items: Sequence[Field]) -> dict[str, dict[str, float]]:
    """Return the prices of Linux machines in the items of the retail price API."""
    prices: dict[str, dict[str, float]] = {}
    for item in items:
        sku = str(item.get("skuName", ""))
        # The API has a price of each machine for Windows, for the former low priority, and for reservations as well.
        is_other = "Windows" in str(item.get("productName", "")) or "Low Priority" in sku
        if not is_other and item.get("type", "Consumption") == "Consumption" and "armSkuName" in item:
            kind = SPOT if sku.endswith("Spot") else ON_DEMAND
            prices.setdefault(item.text("armSkuName"), {})[kind] = item.number("retailPrice")
    return prices


def azure_entries(skus: Sequence[Field], prices: Prices) -> Iterator[dict[str, Any]]:
    """Yield the machine sizes in the form of a catalogue; sizes that the subscription may not use are left out.

    Raises:
        FieldError: an entry lacks a field, or has one of another type.
    """
    for sku in skus:
        if sku.get("resourceType", "virtualMachines") == "virtualMachines" and not _is_restricted(sku):
            yield _entry(sku, prices.get(sku.text("name"), {}))


def _entry(sku: Field, prices: Mapping[str, float]) -> dict[str, Any]:
    name = sku.text("name")
    capabilities = {
        item.text("name"): Field({"value": item.get("value")}, item.path) for item in sku.items("capabilities")
    }
    cores = capabilities["vCPUs"].count("value") if "vCPUs" in capabilities else sku.count("vCPUs")
    memory_gib = capabilities["MemoryGB"].number("value") if "MemoryGB" in capabilities else sku.number("MemoryGB")
    flags = {key: str(field.get("value")) for key, field in capabilities.items()}
    usable = math.floor(int(memory_gib) * 2**30 * (1 - HYPERVISOR_SHARE))
    # A size without the capability has no GPU; one with a text that is no number has none that can be counted.
    gpus = int(flags.get("GPUs", "0")) if flags.get("GPUs", "0").isdigit() else 0
    labels = labels_of_name(name)
    manufacturer = "amd" if labels.get(f"{AZURE}/sku-gpu-name", "") in _AMD_GPUS else "nvidia"
    zones = sorted(
        {f"{place.text('location')}-{zone}" for place in sku.items("locationInfo") for zone in place.get("zones", [])}
    )
    # Azure still calls spot machines by their former name here.
    kinds = [ON_DEMAND, *([SPOT] if flags.get("LowPriorityCapable") == "True" else [])]
    return {
        "name": name,
        "architecture": ARCHITECTURES.get(flags.get("CpuArchitectureType", "x64"), "amd64"),
        "operatingSystems": ["linux"],
        "resources": {
            CPU: str(cores),
            MEMORY: str(usable),
            EPHEMERAL_STORAGE: f"{DISK_GB}G",
            PODS: str(PODS_MAX),
            **({f"{manufacturer}.com/gpu": str(gpus)} if gpus else {}),
        },
        "overhead": {
            "kubeReserved": {
                CPU: f"{int(1000 * share_of(cores, _CPU_SHARES))}m",
                MEMORY: f"{int(1024 * share_of(memory_gib, MEMORY_SHARES))}Mi",
            },
            "evictionThreshold": {MEMORY: "750Mi"},
        },
        "labels": {
            **labels,
            f"{AZURE}/sku-cpu": str(cores),
            f"{AZURE}/sku-memory": str(int(memory_gib * 1024)),
            f"{AZURE}/sku-gpu-count": str(gpus),
            **({f"{AZURE}/sku-gpu-manufacturer": manufacturer} if gpus else {}),
            f"{AZURE}/sku-storage-premium-capable": _flag(flags, "PremiumIO"),
            f"{AZURE}/sku-networking-accelerated": _flag(flags, "AcceleratedNetworkingEnabled"),
            f"{AZURE}/sku-storage-ultra-ssd": _flag(flags, "UltraSSDAvailable"),
            f"{AZURE}/placement-scope": "zonal" if zones else "regional",
            f"{AKS}/mode": ["system", "user"],
            f"{AKS}/os-sku": ["AzureLinux", "Ubuntu"],
        },
        "offerings": [_offering(kind, zone, prices) for zone in zones or [NO_ZONE] for kind in kinds],
    }


def _offering(kind: str, zone: str, prices: Mapping[str, float]) -> dict[str, Any]:
    return {
        **({"price": prices[kind]} if kind in prices else {"unpriced": True}),
        "requirements": [
            in_requirement(CAPACITY_TYPE, kind),
            in_requirement(ZONE, zone),
            in_requirement(f"{AKS}/scalesetpriority", "spot" if kind == SPOT else "regular"),
        ],
    }


def _flag(flags: Mapping[str, str], name: str) -> str:
    return str(flags.get(name) == "True").lower()


def _is_restricted(sku: Field) -> bool:
    restrictions = sku.items("restrictions") if "restrictions" in sku else ()
    return any(restriction.get("type") == "Location" for restriction in restrictions)
