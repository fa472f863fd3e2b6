"""Instance types from what AWS' command line prints: `aws ec2 describe-instance-types` and its neighbours.

Owns the formats and Karpenter's formulae for what a node has left for pods. Never decides what is bought.

Source: pkg/providers/instancetype/types.go of aws/karpenter-provider-aws, with its defaults: 7.5 % of the memory for
the hypervisor, as many pods as network interfaces allow, a root volume of 20 GiB.
Differs: branch network interfaces, which Karpenter reads from a table of its own, are not counted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from podium.objects.errors import FieldError
from podium.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from podium.provisioner.apis.dialects import AWS, RESERVATION_IDS
from podium.provisioner.apis.labels import CAPACITY_TYPE, ON_DEMAND, RESERVED, SPOT, ZONE
from podium.provisioner.cloudprovider.catalogue import SPOT_SHARE
from podium.provisioner.cloudprovider.dialect_labels import ARCHITECTURES, labels_of_name
from podium.provisioner.cloudprovider.imported_fields import Field, in_requirement

HYPERVISOR_SHARE: Final = 0.075
GRAVITON_RESERVED_MIB: Final = 64
ROOT_VOLUME_GIB: Final = 20
_RESERVATION_ID: Final = RESERVATION_IDS[1]
_CPU_SHARES: Final = ((1000, 0.06), (1000, 0.01), (2000, 0.005), (math.inf, 0.0025))
"""By step of thousandths of a core: the share that the kubelet keeps."""
_GPU_RESOURCES: Final = {"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu", "Habana": "habana.ai/gaudi"}
_LINUX: Final = frozenset({"Linux/UNIX", "Linux/UNIX (Amazon VPC)"})


@dataclass(slots=True)
class AwsDocuments:
    """What the files say, together.

    Attributes:
        zones: By instance type, the zones that have it.
        on_demand: By instance type, its price per hour.
        spot: By instance type and zone, the time and the price per hour.
        reservations: By instance type, the entries of capacity reservations.
    """

    types: list[Field] = field(default_factory=list)
    zones: dict[str, set[str]] = field(default_factory=dict)
    on_demand: dict[str, float] = field(default_factory=dict)
    spot: dict[tuple[str, str], tuple[str, float]] = field(default_factory=dict)
    reservations: dict[str, list[Field]] = field(default_factory=dict)

    def take(self, name: str, items: Sequence[Field]) -> None:
        """Add the items of a document under this name, as the command line prints it.

        Raises:
            FieldError: an item lacks a field, or has one of another type.
        """
        for item in items:
            _READERS[name](self, item)

    def take_type(self, item: Field) -> None:
        """Add an entry of `describe-instance-types`."""
        self.types.append(item)

    def take_zone(self, item: Field) -> None:
        """Add an entry of `describe-instance-type-offerings`."""
        location_type = item.get("LocationType", "availability-zone")
        if location_type != "availability-zone":
            raise FieldError(item.path, f"is for each {location_type}: ask with --location-type availability-zone")
        self.zones.setdefault(item.text("InstanceType"), set()).add(item.text("Location"))

    def take_spot_price(self, item: Field) -> None:
        """Add an entry of `describe-spot-price-history`; the newest of a zone counts, of Linux."""
        if item.get("ProductDescription", "Linux/UNIX") in _LINUX:
            key = item.text("InstanceType"), item.text("AvailabilityZone")
            time = str(item.get("Timestamp", ""))
            if key not in self.spot or self.spot[key][0] <= time:
                self.spot[key] = time, item.number("SpotPrice")

    def take_product(self, item: Field) -> None:
        """Add an entry of `aws pricing get-products`; those of other systems and tenancies are left out."""
        try:
            content = json.loads(item.content) if isinstance(item.content, str) else item.content
        except ValueError as error:
            raise FieldError(item.path, f"not JSON: {error}") from error
        attributes = _at(content, "product", "attributes")
        linux_attributes = {
            "operatingSystem": "Linux",
            "tenancy": "Shared",
            "preInstalledSw": "NA",
            "capacitystatus": "Used",
        }
        if any(attributes.get(name, value) != value for name, value in linux_attributes.items()):
            return
        for term in _at(content, "terms", "OnDemand").values():
            for dimension in _at(term, "priceDimensions").values():
                price = Field(_at(dimension, "pricePerUnit"), item.path).number("USD")
                if price > 0 and "instanceType" in attributes:
                    self.on_demand[str(attributes["instanceType"])] = price

    def take_reservation(self, item: Field) -> None:
        """Add an entry of `describe-capacity-reservations`, unless it is over."""
        if item.get("State", "active") == "active":
            self.reservations.setdefault(item.text("InstanceType"), []).append(item)

    def entries(self, zones: Iterable[str], prices: Mapping[str, Mapping[str, float]]) -> Iterator[dict[str, Any]]:
        """Yield the instance types in the form of a catalogue.

        Args:
            zones: those that have an instance type of which no file says where it is.
            prices: by instance type and capacity type, per hour; they come before those of other files.

        Raises:
            FieldError: an entry lacks a field, or has one of another type.
        """
        spot_zones: dict[str, set[str]] = {}
        for name, zone in self.spot:
            spot_zones.setdefault(name, set()).add(zone)
        for item in self.types:
            name = item.text("InstanceType")
            # Spot prices name zones, too: whoever has them need not ask for the zones.
            named_zones = self.zones.get(name, set()) if self.zones else spot_zones.get(name) or set(zones)
            offerings = list(self._offerings(item, sorted(named_zones), prices.get(name, {})))
            # A type without an offering is one that the region does not have.
            entry = _instance_type(item)
            if offerings:
                yield {**entry, "offerings": offerings}

    def _offerings(self, item: Field, zones: Sequence[str], prices: Mapping[str, float]) -> Iterator[dict[str, Any]]:
        name = item.text("InstanceType")
        on_demand = prices.get(ON_DEMAND, self.on_demand.get(name))
        for kind in item.get("SupportedUsageClasses", [ON_DEMAND, SPOT]):
            for zone in zones:
                price, is_guess = on_demand, False
                if kind == SPOT:
                    price = prices.get(SPOT, self.spot.get((name, zone), ("", None))[1])
                    if price is None and on_demand is not None:
                        price, is_guess = on_demand * SPOT_SHARE, True
                if kind in (ON_DEMAND, SPOT):
                    yield {
                        **({"price": price} if price is not None else {}),
                        **({"unpriced": True} if price is None or is_guess else {}),
                        "requirements": [
                            in_requirement(CAPACITY_TYPE, kind),
                            in_requirement(ZONE, zone),
                            *([{"key": _RESERVATION_ID, "operator": "DoesNotExist"}] if self.reservations else []),
                        ],
                    }
        for reservation in self.reservations.get(name, ()):
            yield {
                # Reserved capacity is paid for whether it is used or not, so that it counts as almost free.
                "price": (on_demand or 0.0) / 10_000_000,
                "reservationCapacity": reservation.count("AvailableInstanceCount"),
                "requirements": [
                    in_requirement(CAPACITY_TYPE, RESERVED),
                    in_requirement(ZONE, reservation.text("AvailabilityZone")),
                    in_requirement(_RESERVATION_ID, reservation.text("CapacityReservationId")),
                ],
            }


_READERS: Final = {
    "InstanceTypes": AwsDocuments.take_type,
    "InstanceTypeOfferings": AwsDocuments.take_zone,
    "SpotPriceHistory": AwsDocuments.take_spot_price,
    "PriceList": AwsDocuments.take_product,
    "CapacityReservations": AwsDocuments.take_reservation,
}
AWS_DOCUMENTS: Final = frozenset(_READERS)
"""The fields under which AWS' command line prints what this module reads."""


def _instance_type(item: Field) -> dict[str, Any]:
    cores = item.field("VCpuInfo").count("DefaultVCpus")
    memory_mib = item.field("MemoryInfo").count("SizeInMiB")
    architectures = item.field("ProcessorInfo").get("SupportedArchitectures", [])
    architecture = next((ARCHITECTURES.get(name, name) for name in architectures if name != "i386"), "amd64")
    usable_mib = memory_mib - (GRAVITON_RESERVED_MIB if architecture == "arm64" else 0)
    # The hypervisor's share is no fixed amount, so that Karpenter subtracts what is enough for every type.
    usable_mib -= math.ceil(usable_mib * HYPERVISOR_SHARE)
    pods = _pods_of(item)
    return {
        "name": item.text("InstanceType"),
        "architecture": architecture,
        # What a node runs follows from its node class; one that is not for Windows runs Linux.
        "operatingSystems": ["linux", "windows"] if architecture == "amd64" else ["linux"],
        "resources": {
            CPU: str(cores),
            MEMORY: f"{usable_mib}Mi",
            EPHEMERAL_STORAGE: f"{ROOT_VOLUME_GIB}Gi",
            PODS: str(pods),
            **{name: str(count) for name, count in _devices_of(item).items() if count},
        },
        "overhead": {
            "kubeReserved": {CPU: f"{_reserved_cpu(cores)}m", MEMORY: f"{11 * pods + 255}Mi", EPHEMERAL_STORAGE: "1Gi"},
            "evictionThreshold": {MEMORY: "100Mi", EPHEMERAL_STORAGE: f"{ROOT_VOLUME_GIB // 10}Gi"},
        },
        "labels": {
            **labels_of_name(item.text("InstanceType")),
            **{f"{AWS}/instance-{name}": value for name, value in _labels_of(item, cores, memory_mib) if value},
        },
    }


def _pods_of(item: Field) -> int:
    """Return how many pods have an address each, with the network plugin of EKS."""
    network = item.field("NetworkInfo")
    cards = network.items("NetworkCards") if "NetworkCards" in network else []
    index = network.count("DefaultNetworkCardIndex") if "DefaultNetworkCardIndex" in network else 0
    card = cards[index] if index < len(cards) else network
    return card.count("MaximumNetworkInterfaces") * (network.count("Ipv4AddressesPerInterface") - 1) + 2


def _reserved_cpu(cores: int) -> int:
    milli, reserved = float(1000 * cores), 0
    for step, share in _CPU_SHARES:
        reserved += int(min(milli, step) * share)
        milli = max(milli - step, 0)
    return reserved


def _devices_of(item: Field) -> dict[str, int]:
    amounts = dict.fromkeys(_GPU_RESOURCES.values(), 0)
    for gpu in item.items_within("GpuInfo", "Gpus"):
        if (resource := _GPU_RESOURCES.get(gpu.text("Manufacturer"))) is not None:
            amounts[resource] += gpu.count("Count")
    neurons = item.items_within("NeuronInfo", "NeuronDevices")
    amounts["aws.amazon.com/neuron"] = sum(device.count("Count") for device in neurons)
    amounts["aws.amazon.com/neuroncore"] = sum(
        device.count("Count") * device.field("CoreInfo").count("Count") for device in neurons[:1]
    )
    network = item.field("NetworkInfo")
    amounts["vpc.amazonaws.com/efa"] = (
        network.field("EfaInfo").count("MaximumEfaInterfaces") if "EfaInfo" in network else 0
    )
    return amounts


def _labels_of(item: Field, cores: int, memory_mib: int) -> Iterator[tuple[str, str | list[str]]]:
    """Yield the properties that the entry says; a property that the instance type lacks is empty or left out."""
    network, processor = item.field("NetworkInfo"), item.field("ProcessorInfo")
    yield "cpu", str(cores)
    yield "memory", str(memory_mib)
    yield "hypervisor", str(item.get("Hypervisor", ""))
    yield "encryption-in-transit-supported", str(bool(network.get("EncryptionInTransitSupported", False))).lower()
    yield "tenancy", ["default", "dedicated"]
    yield "cpu-manufacturer", _kebab(processor.get("Manufacturer", ""))
    if "SustainedClockSpeedInGhz" in processor:
        yield "cpu-sustained-clock-speed-mhz", str(round(processor.number("SustainedClockSpeedInGhz") * 1000))
    if "InstanceStorageInfo" in item and item.field("InstanceStorageInfo").get("NvmeSupport") != "unsupported":
        yield "local-nvme", str(item.field("InstanceStorageInfo").get("TotalSizeInGB", ""))
    if "EbsInfo" in item and item.field("EbsInfo").get("EbsOptimizedSupport") == "default":
        yield "ebs-bandwidth", str(item.field("EbsInfo").field("EbsOptimizedInfo").count("MaximumBandwidthInMbps"))
    # Karpenter reads it from AWS' documentation; the sum over the cards is the same number.
    baseline = (
        [card.get("BaselineBandwidthInGbps") for card in network.items("NetworkCards")]
        if "NetworkCards" in network
        else []
    )
    if baseline and None not in baseline:
        yield "network-bandwidth", str(round(sum(baseline) * 1000))
    gpus = item.items_within("GpuInfo", "Gpus")
    if len(gpus) == 1:
        yield "gpu-name", _kebab(gpus[0].text("Name"))
        yield "gpu-manufacturer", _kebab(gpus[0].text("Manufacturer"))
        yield "gpu-count", str(gpus[0].count("Count"))
        yield "gpu-memory", str(gpus[0].field("MemoryInfo").count("SizeInMiB"))
    neurons = item.items_within("NeuronInfo", "NeuronDevices")
    accelerators = neurons or item.items_within("InferenceAcceleratorInfo", "Accelerators")
    if len(accelerators) == 1:
        yield "accelerator-name", _kebab(accelerators[0].get("Name", ""))
        yield "accelerator-manufacturer", "aws" if neurons else _kebab(accelerators[0].get("Manufacturer", ""))
        yield "accelerator-count", str(accelerators[0].count("Count"))


def _kebab(text: Any) -> str:
    return str(text).lower().replace(" ", "-")


def _at(content: Any, *names: str) -> dict[str, Any]:
    for name in names:
        content = content.get(name) if isinstance(content, dict) else None
    return content if isinstance(content, dict) else {}
