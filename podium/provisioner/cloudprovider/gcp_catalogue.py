"""Instance types from `gcloud compute machine-types list --format=json`.

Owns the format and GKE's formulae for what a node has left for pods. Never decides what is bought.

Source: Google's documentation of GKE, "Plan GKE Standard node sizes"; labels of cloudpilot-ai/karpenter-provider-gcp.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from podium.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from podium.provisioner.apis.dialects import GCP, GKE
from podium.provisioner.apis.labels import CAPACITY_TYPE, ON_DEMAND, SPOT, ZONE
from podium.provisioner.cloudprovider.azure_catalogue import MEMORY_SHARES, Prices, share_of
from podium.provisioner.cloudprovider.dialect_labels import ARCHITECTURES, labels_of_name
from podium.provisioner.cloudprovider.imported_fields import Field, in_requirement

PODS_MAX: Final = 110
DISK_GB: Final = 100
_CPU_SHARES: Final = ((1, 0.06), (1, 0.01), (2, 0.005), (math.inf, 0.0025))


def gcp_entries(machine_types: Sequence[Field], prices: Prices) -> Iterator[dict[str, Any]]:
    """Yield the machine types in the form of a catalogue; the list has each of them once for every zone.

    Raises:
        FieldError: an entry lacks a field, or has one of another type.
    """
    by_name: dict[str, list[Field]] = {}
    for item in machine_types:
        by_name.setdefault(item.text("name"), []).append(item)
    for name, items in by_name.items():
        # Some are printed with the whole address of the zone.
        zones = sorted({item.text("zone").rpartition("/")[2] for item in items})
        yield _entry(items[0], zones, prices.get(name, {}))


def _entry(item: Field, zones: Sequence[str], prices: Mapping[str, float]) -> dict[str, Any]:
    name, cores, memory_mib = item.text("name"), item.count("guestCpus"), item.count("memoryMb")
    accelerators = item.items("accelerators") if "accelerators" in item else ()
    gpus = sum(accelerator.count("guestAcceleratorCount") for accelerator in accelerators)
    labels = labels_of_name(name)
    if accelerators:
        kind = accelerators[0].text("guestAcceleratorType")
        labels |= {f"{GKE}/gke-accelerator": kind, f"{GCP}/instance-gpu-name": kind}
        labels |= {f"{GCP}/instance-gpu-manufacturer": "nvidia", f"{GCP}/instance-gpu-count": str(gpus)}
    return {
        "name": name,
        "architecture": ARCHITECTURES.get(str(item.get("architecture", "X86_64")), "amd64"),
        "operatingSystems": ["linux"],
        "resources": {
            CPU: str(cores),
            MEMORY: f"{memory_mib}Mi",
            EPHEMERAL_STORAGE: f"{DISK_GB}G",
            PODS: str(PODS_MAX),
            **({"nvidia.com/gpu": str(gpus)} if gpus else {}),
        },
        "overhead": {
            "kubeReserved": {
                CPU: f"{math.ceil(1000 * share_of(cores, _CPU_SHARES))}m",
                MEMORY: f"{math.ceil(1024 * share_of(memory_mib / 1024, MEMORY_SHARES))}Mi",
            },
            "evictionThreshold": {MEMORY: "100Mi"},
        },
        "labels": {**labels, f"{GCP}/instance-cpu": str(cores), f"{GCP}/instance-memory": str(memory_mib)},
        "offerings": [
            {
                **({"price": prices[kind]} if kind in prices else {"unpriced": True}),
                "requirements": [
                    in_requirement(CAPACITY_TYPE, kind),
                    in_requirement(ZONE, zone),
                    {"key": f"{GKE}/gke-spot", "operator": "In", "values": ["true"]}
                    if kind == SPOT
                    else {"key": f"{GKE}/gke-spot", "operator": "DoesNotExist"},
                ],
            }
            for zone in zones
            for kind in (ON_DEMAND, SPOT)
        ],
    }
