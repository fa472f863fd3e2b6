"""Catalogues: the instance types of a provider, in the format of Karpenter's kwok provider.

Owns the format, the labels that are derived from it, and the catalogue that is there without a file. Never reads a
file: it takes what was parsed from one.

Source: karpenter kwok/cloudprovider/helpers.go and kwok/tools/gen_instance_types.go, v1.15.0.
Differs: `Available: false` is honoured, and `CapacityOverride` and `OverheadOverride` of an offering are read; upstream
makes every offering available and drops overrides. A price must be there unless the offering is `unpriced`, and a
capacity type be one of Karpenter's. The older form of an offering, with `capacityType` and `zone`, is read too. An
instance type may have `labels`, `maxPods`, `overhead` and `devices`, which upstream's format has not.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from podium.objects.errors import FieldError
from podium.objects.meta import ResourceList
from podium.objects.quantity import canonical_text
from podium.objects.requests import Requests, whole_amounts
from podium.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_extended_resource
from podium.objects.selectors import is_label_value, is_qualified_name
from podium.provisioner.apis.labels import (
    ARCH,
    CAPACITY_TYPE,
    INSTANCE_CPU,
    INSTANCE_FAMILY,
    INSTANCE_MEMORY,
    INSTANCE_SIZE,
    INSTANCE_TYPE,
    KWOK_WELL_KNOWN,
    ON_DEMAND,
    OS,
    REGION,
    SPOT,
    WELL_KNOWN,
    ZONE,
    current_name,
)
from podium.provisioner.apis.objects import ClusterObjects
from podium.provisioner.cloudprovider.catalogue_devices import read_devices
from podium.provisioner.cloudprovider.instance_types import CAPACITY_TYPES, InstanceType, Offering, Overhead
from podium.provisioner.scheduling.requirements import Requirement, Requirements

DEFAULT_PODS: Final = 110
PRICE_MAX: Final = 1e12
"""Per hour. Sums over many nodes and a month stay numbers."""
OVERHEAD: Final = Overhead({CPU: 100, MEMORY: 10 * 2**20}, {}, {})
"""What every instance type of the format loses to the kubelet."""

GENERATED_CPUS: Final = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256)
GENERATED_FAMILIES: Final = {"c": 2, "s": 4, "m": 8}
"""Gibibytes of memory for each core, by family."""
GENERATED_ZONES: Final = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")
CPU_RANK: Final = 0.025
MEMORY_RANK: Final = 0.001
"""For each gigabyte."""
DEVICES_RANK: Final = 2.5
"""For each kind of device."""
SPOT_SHARE: Final = 0.7
GENERATED_PODS_MAX: Final = 1024

_AWS_SIZE = re.compile(r"\w+\.(nano|micro|small|medium|large|[0-9]*xlarge|metal)", re.ASCII)
_FAMILY_END = re.compile(r"[.-]")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Instance types, and the labels that are well known with them.

    Attributes:
        well_known: The well known labels of Karpenter, of the kwok provider, and every label of an offering.
    """

    instance_types: tuple[InstanceType, ...]
    well_known: frozenset[str]


def read_catalogue(document: object, path: str = "instanceTypes", *, is_priced: bool = True) -> Catalogue:
    """Read a catalogue from parsed JSON. Names of fields may be in upper or lower case; unknown fields are ignored.

    Args:
        path: what to call the document in errors.
        is_priced: whether the prices are what nodes cost.

    Raises:
        FieldError: a field is missing or has no usable value.
    """
    types = tuple(_instance_type(item, item_path, is_priced=is_priced) for item, item_path in _items(document, path))
    keys = {
        requirement.key
        for instance_type in types
        for offering in instance_type.offerings
        for requirement in offering.requirements
    }
    return with_every_label(Catalogue(types, WELL_KNOWN | KWOK_WELL_KNOWN | keys))


def with_every_label(catalogue: Catalogue) -> Catalogue:
    """Return the catalogue with each label of an instance type said of every instance type: others do not have it.

    An instance type that does not mention a label would take any requirement on it as met.
    """
    keys = {requirement.key for instance_type in catalogue.instance_types for requirement in instance_type.requirements}
    absences = {key: Requirement.of(key, "DoesNotExist") for key in keys}
    types = tuple(
        dataclasses.replace(
            instance_type,
            requirements=instance_type.requirements.union(
                absences[key] for key in keys - instance_type.requirements.keys()
            ),
        )
        if keys - instance_type.requirements.keys()
        else instance_type
        for instance_type in catalogue.instance_types
    )
    return Catalogue(types, catalogue.well_known | keys)


@functools.cache
def generated_catalogue(zones: tuple[str, ...] = GENERATED_ZONES) -> Catalogue:
    """Return the kwok provider's catalogue without a file: 144 generic instance types in these zones.

    No provider sells them: their prices are ranks by size, in which kwok's order is kept.
    """
    return read_catalogue(
        [
            _generated_type(family, cpu, memory_gib, arch, system, zones)
            for cpu in GENERATED_CPUS
            for family, factor in GENERATED_FAMILIES.items()
            for memory_gib in (cpu * factor,)
            for system in ("linux", "windows")
            for arch in ("amd64", "arm64")
        ],
        is_priced=False,
    )


def built_in_catalogue(objects: ClusterObjects) -> Catalogue:
    """Return the generic instance types, in the zones of the cluster's nodes if these are in other zones."""
    # Nodes of other zones could not get company otherwise: spreads and volumes tie pods to zones that must be on offer.
    zones = zones_of(objects)
    catalogue = generated_catalogue() if set(zones) <= set(GENERATED_ZONES) else generated_catalogue(zones)
    regions = Requirement.of(
        REGION, "In", sorted({node.metadata.labels.get(REGION, "") for node in objects.nodes} - {""})
    )
    if not regions.values:
        return catalogue
    types = (
        dataclasses.replace(instance_type, requirements=instance_type.requirements.add(regions))
        for instance_type in catalogue.instance_types
    )
    return Catalogue(tuple(types), catalogue.well_known)


def zones_of(objects: ClusterObjects) -> tuple[str, ...]:
    """Return the zones of the cluster's nodes, by name."""
    labels = (label for node in objects.nodes for label in node.metadata.labels.items())
    return tuple(sorted({value for key, value in labels if current_name(key) == ZONE and value}))


# ---------------------------------------------------------------- instance types


def _instance_type(item: object, path: str, *, is_priced: bool) -> InstanceType:
    fields = _Fields(item, path)
    name = fields.text("name")
    raw = fields.resources("resources")
    capacity = {PODS: DEFAULT_PODS, **_amounts(raw, f"{path}.resources")}
    if "maxPods" in fields:
        capacity[PODS] = fields.count("maxPods", "pods")
    rank = size_rank(capacity)
    offerings = tuple(
        _offering(item, item_path, rank, is_priced=is_priced) for item, item_path in fields.items("offerings")
    )
    # The texts stay as they are written: upstream compares these labels as strings, and "16Gi" is not "17179869184".
    cpu, memory = (canonical_text(raw[resource]) if resource in raw else "" for resource in (CPU, MEMORY))
    values = {
        INSTANCE_TYPE: [name],
        ARCH: [fields.text("architecture")],
        OS: [_text(item, where) for item, where in fields.items("operatingSystems")],
        ZONE: _offered_values(offerings, ZONE),
        CAPACITY_TYPE: _offered_values(offerings, CAPACITY_TYPE),
        INSTANCE_SIZE: [_size(name, cpu)],
        INSTANCE_FAMILY: [_family(name)],
        INSTANCE_CPU: [cpu],
        INSTANCE_MEMORY: [memory],
    }
    requirements = Requirements(Requirement.of(key, "In", requirement) for key, requirement in values.items())
    devices_path = f"{path}.devices"
    raw_devices = _mapping(fields.value("devices"), devices_path) if "devices" in fields else {}
    devices, counters = read_devices(raw_devices, devices_path)
    if "labels" in fields:
        labels = {current_name(label): label_values for label, label_values in fields.labels("labels")}
        # What the file says of a label replaces what follows from the name.
        name_labels = (requirement for requirement in requirements if requirement.key not in labels)
        requirements = Requirements(name_labels).union(
            Requirement.of(label, "In", label_values) for label, label_values in labels.items()
        )
    return InstanceType(
        name=name,
        requirements=requirements,
        offerings=offerings,
        capacity=capacity,
        overhead=_overhead(fields, "overhead") if "overhead" in fields else OVERHEAD,
        devices=devices,
        counters=counters,
    )


def _offered_values(offerings: tuple[Offering, ...], key: str) -> list[str]:
    """Return the values of a label over all offerings, available or not."""
    # Availability changes from hour to hour. A type whose zone has run out still counts as one of that zone.
    requirements = (offering.requirements.get(key) for offering in offerings)
    return [value for requirement in requirements if not requirement.complement for value in requirement.values]


def _size(name: str, cpu: str) -> str:
    """Return the size in a name of AWS's form, such as `m5.large`; else the number of cores."""
    match = _AWS_SIZE.fullmatch(name)
    return match[1] if match else cpu


def _family(name: str) -> str:
    """Return the part before the first `.` or `-`; without either, the first character."""
    end = _FAMILY_END.search(name)
    return name[: end.start()] if end else name[:1]


# ---------------------------------------------------------------- offerings


def _offering(item: object, path: str, rank: float, *, is_priced: bool) -> Offering:
    fields = _Fields(item, path)
    requirements = _offering_requirements(fields)
    if CAPACITY_TYPE in requirements and not any(map(requirements.get(CAPACITY_TYPE).has, CAPACITY_TYPES)):
        raise FieldError(path, f"has no {CAPACITY_TYPE} of {', '.join(CAPACITY_TYPES)}")  # and so no price
    is_unpriced = fields.boolean("unpriced", default=False)
    if is_unpriced and CAPACITY_TYPE in requirements and SPOT in requirements.get(CAPACITY_TYPE).values:
        rank *= SPOT_SHARE
    return Offering(
        requirements=requirements,
        price=rank if is_unpriced and "price" not in fields else fields.price("price"),
        is_priced=is_priced and not is_unpriced,
        is_available=fields.boolean("available", default=True),
        reservation_capacity=fields.count("reservationCapacity"),
        capacity_override=fields.amounts("capacityOverride") if "capacityOverride" in fields else None,
        overhead_override=_overhead(fields, "overheadOverride") if "overheadOverride" in fields else None,
    )


def _offering_requirements(fields: _Fields) -> Requirements:
    # The older form, in which Karpenter's repository still has its example.
    if "requirements" not in fields and "zone" in fields:
        return Requirements.of_labels({CAPACITY_TYPE: fields.text("capacityType"), ZONE: fields.text("zone")})
    return Requirements(_requirement(item, item_path) for item, item_path in fields.items("requirements"))


def _requirement(item: object, path: str) -> Requirement:
    fields = _Fields(item, path)
    values = [_text(item, item_path) for item, item_path in fields.items("values")] if "values" in fields else []
    return Requirement.of(fields.text("key"), fields.text("operator"), values, path=path)


def _overhead(fields: _Fields, name: str) -> Overhead:
    parts = _Fields(fields.value(name), f"{fields.path}.{name}")
    kube, system, eviction = (
        parts.amounts(part) if part in parts else {} for part in ("kubeReserved", "systemReserved", "evictionThreshold")
    )
    return Overhead(kube, system, eviction)


# ---------------------------------------------------------------- fields


class _Fields:
    """The fields of one object; their names are compared without regard to case, and null means missing."""

    def __init__(self, item: object, path: str) -> None:
        self.path = path
        # Go decodes JSON without regard to case, so such files work with Karpenter's own loader.
        self._fields = {name.lower(): value for name, value in _mapping(item, path).items() if value is not None}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._fields

    def value(self, name: str) -> Any:
        if name not in self:
            raise FieldError(f"{self.path}.{name}", "is missing")
        return self._fields[name.lower()]

    def text(self, name: str) -> str:
        text = _text(self.value(name), f"{self.path}.{name}")
        if not text:
            raise FieldError(f"{self.path}.{name}", "is empty")
        return text

    def items(self, name: str) -> Iterator[tuple[object, str]]:
        return _items(self.value(name), f"{self.path}.{name}")

    def resources(self, name: str) -> ResourceList:
        return _resources(self.value(name), f"{self.path}.{name}")

    def amounts(self, name: str) -> Requests:
        return _amounts(self.resources(name), f"{self.path}.{name}")

    def price(self, name: str) -> float:
        raw = self.value(name)
        # bool is an int in Python; infinities and NaN fail the comparison.
        if isinstance(raw, bool) or not isinstance(raw, int | float) or not 0 <= raw <= PRICE_MAX:
            raise FieldError(
                f"{self.path}.{name}", f"{raw!r} is not a price: a number that is not negative, at most {PRICE_MAX:g}"
            )
        return float(raw)

    def boolean(self, name: str, *, default: bool) -> bool:
        raw = self.value(name) if name in self else default
        if not isinstance(raw, bool):
            raise FieldError(f"{self.path}.{name}", f"{raw!r} is neither true nor false")
        return raw

    def count(self, name: str, noun: str = "nodes") -> int:
        raw = self.value(name) if name in self else 0
        if isinstance(raw, bool) or not isinstance(raw, int) or raw < 0:
            raise FieldError(f"{self.path}.{name}", f"{raw!r} is not a number of {noun}")
        return raw

    def labels(self, name: str) -> Iterator[tuple[str, list[str]]]:
        """Yield labels, each with the values that it may have: a text, or a list of them."""
        for label, values in _mapping(self.value(name), f"{self.path}.{name}").items():
            path = f"{self.path}.{name}[{label}]"
            if not is_qualified_name(label):
                raise FieldError(path, "cannot be the key of a label")
            for value in values if isinstance(values, list) else [values]:
                if not is_label_value(_text(value, path)):
                    raise FieldError(path, f'"{value}" cannot be the value of a label')
            yield label, values if isinstance(values, list) else [values]


def _items(raw: object, path: str) -> Iterator[tuple[object, str]]:
    """Return the items of a list, each with its path."""
    if not isinstance(raw, list):
        raise FieldError(path, "is not a list") if path else FieldError("catalogue", "is not a list of instance types")
    return ((item, f"{path}[{index}]") for index, item in enumerate(raw))


def _mapping(raw: object, path: str) -> Mapping[str, Any]:
    if not isinstance(raw, dict) or not all(isinstance(name, str) for name in raw):
        raise FieldError(path, "is not an object with named fields")
    return raw


def _text(raw: object, path: str) -> str:
    if not isinstance(raw, str):
        raise FieldError(path, f"{raw!r} is not a text")
    return raw


def _resources(raw: object, path: str) -> ResourceList:
    amounts: ResourceList = {}
    for name, amount in _mapping(raw, path).items():
        if isinstance(amount, bool) or not isinstance(amount, str | int | float):
            raise FieldError(f"{path}[{name}]", f"{amount!r} is not a quantity")
        amounts[name] = amount
    return amounts


def _amounts(raw: ResourceList, path: str) -> Requests:
    amounts = whole_amounts(raw, path)
    for name, amount in amounts.items():
        if amount < 0:
            raise FieldError(f"{path}[{name}]", f"{raw[name]} is negative")
    return amounts


# ---------------------------------------------------------------- the generated catalogue


def size_rank(capacity: Requests) -> float:
    """Return the rank of an on-demand instance type without a price: the smaller, the earlier.

    A core counts as much as 25 gigabytes of memory, and each kind of device as much as 100 cores, so that pods without
    devices leave those nodes alone. This is no price. It compares with the prices of a catalogue that has only some of
    the types as well as a guess can.
    """
    devices = sum(is_extended_resource(name) and amount > 0 for name, amount in capacity.items())
    cores, gigabytes = capacity.get(CPU, 0) / 1000, capacity.get(MEMORY, 0) / 1e9
    return CPU_RANK * cores + MEMORY_RANK * gigabytes + DEVICES_RANK * devices


def _generated_type(
    family: str, cpu: int, memory_gib: int, arch: str, system: str, zones: Sequence[str]
) -> dict[str, Any]:
    # kwok's generator prices its types by the same formula, so ranks of types without prices compare with them.
    price = size_rank({CPU: 1000 * cpu, MEMORY: memory_gib * 2**30})
    return {
        "name": f"{family}-{cpu}x-{arch}-{system}",
        "architecture": arch,
        "operatingSystems": [system],
        "resources": {
            CPU: str(cpu),
            MEMORY: f"{memory_gib}Gi",
            PODS: str(min(16 * cpu, GENERATED_PODS_MAX)),
            EPHEMERAL_STORAGE: "20Gi",
        },
        "offerings": [
            {
                "price": price * SPOT_SHARE if capacity_type == SPOT else price,
                "requirements": [
                    {"key": CAPACITY_TYPE, "operator": "In", "values": [capacity_type]},
                    {"key": ZONE, "operator": "In", "values": [zone]},
                ],
            }
            for zone in zones
            for capacity_type in (SPOT, ON_DEMAND)
        ],
    }
