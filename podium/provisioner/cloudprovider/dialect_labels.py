"""The labels of instance types that follow from their names, sizes and zones, as each provider sets them.

Owns how names are read: AWS' `m6i.large`, Azure's `Standard_D4s_v5` and GCP's `n2-standard-4`. Labels that a catalogue
says itself are kept.

Source: pkg/providers/instancetype of aws/karpenter-provider-aws and of Azure/karpenter-provider-azure; skewer
v0.0.19 for the names of Azure; pkg/providers/instancetype of cloudpilot-ai/karpenter-provider-gcp.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from podium.objects.resource_names import CPU, MEMORY
from podium.provisioner.apis.dialects import AKS, AWS, AWS_NAMES, AZURE, EKS_AUTO, GCP, GKE
from podium.provisioner.apis.labels import ARCH, OS, REGION, ZONE
from podium.provisioner.cloudprovider.catalogue import Catalogue, with_every_label
from podium.provisioner.cloudprovider.instance_types import InstanceType, Offering
from podium.provisioner.scheduling.requirements import Requirement, Requirements

ARCHITECTURES: Final[Mapping[str, str]] = MappingProxyType(
    {"x86_64": "amd64", "x64": "amd64", "X86_64": "amd64", "aarch64": "arm64", "Arm64": "arm64", "ARM64": "arm64"}
)
"""What providers call the architectures of Kubernetes."""

_AWS_NAME: Final = re.compile(r"(?P<family>(?P<category>[a-z]+)(-[0-9]+tb)?(?P<generation>[0-9]+)[^.]*)\.(?P<size>.+)")
_AZURE_NAME: Final = re.compile(
    r"(Standard|Basic)_(?P<family>[A-Z])(?P<subfamily>[A-Z]?)[0-9]+(-[0-9]+)?(?P<features>[a-zP]*|C\+)"
    r"(_(?P<accelerator>[A-Z]+[0-9]+[a-z]*))?(_v(?P<version>[0-9]+))?"
)
_GCP_NAME: Final = re.compile(
    r"(?P<family>(?P<category>[a-z]+)(?P<generation>[0-9]+)[a-z]?)-(?P<shape>[a-z]+)(-(?P<size>[0-9]+[a-z]*))?(-.+)?"
)
_REGIONS: Final = (
    (_AWS_NAME, re.compile(r"(.+-[0-9]+)[a-z]")),
    (_AZURE_NAME, re.compile(r"([a-z]+[0-9]*)-[0-9]")),
    (_GCP_NAME, re.compile(r"(.+[0-9])-[a-z]")),
)
"""By form of an instance type's name: the region in the name of a zone."""


def with_dialects(catalogue: Catalogue, *, with_amounts: bool = True) -> Catalogue:
    """Return the catalogue with the labels of its provider's dialects, in which aliases have equal values.

    Instance types that differ in their operating systems only become one.

    Args:
        with_amounts: whether capacities are those by which the provider's labels tell cores and memory.
    """
    types = (_with_labels(instance_type, with_amounts) for instance_type in _without_twins(catalogue.instance_types))
    return with_every_label(Catalogue(tuple(types), catalogue.well_known))


def labels_of_name(name: str) -> dict[str, str]:
    """Return the labels that follow from the name of an instance type; none for a name of another form."""
    if match := _AWS_NAME.fullmatch(name):
        labels = {f"instance-{part}": match[part] for part in ("category", "family", "generation", "size")}
        labels["instance-capability-flex"] = str("-flex" in match["family"]).lower()
        return {f"{AWS}/{label}": value for label, value in labels.items()}
    if match := _AZURE_NAME.fullmatch(name):
        suffix = f"_v{match['version']}" if match["version"] else ""
        accelerator = {f"{AZURE}/sku-gpu-name": match["accelerator"]} if match["accelerator"] else {}
        return {
            f"{AZURE}/sku-name": name,
            f"{AZURE}/sku-family": match["family"],
            f"{AZURE}/sku-series": f"{match['family']}{match['subfamily']}{match['features']}{suffix}",
            f"{AZURE}/sku-version": match["version"] or "1",
            **accelerator,
        }
    if match := _GCP_NAME.fullmatch(name):
        parts = ("category", "family", "generation", "shape", "size")
        return {
            f"{GKE}/machine-family": match["family"],
            **{f"{GCP}/instance-{part}": match[part] for part in parts if match[part]},
        }
    return {}


def aliases_of(labels: Iterable[Requirement]) -> Iterator[Requirement]:
    """Yield what these labels are called in other dialects of the same provider, with equal values."""
    for requirement in labels:
        domain, _, name = requirement.key.rpartition("/")
        for first, second, names in (
            (AWS, EKS_AUTO, AWS_NAMES),
            (AZURE, AKS, frozenset({"sku-cpu", "sku-memory"})),
        ):
            if name in names and domain in (first, second):
                alias_domain = second if domain == first else first
                yield _with_key(requirement, f"{alias_domain}/{name}")


def _with_key(requirement: Requirement, key: str) -> Requirement:
    """Return the requirement on another label."""
    return Requirement(key, requirement.complement, requirement.values)


def _with_labels(instance_type: InstanceType, with_amounts: bool) -> InstanceType:
    architectures = instance_type.requirements.get(ARCH)
    requirements = {requirement.key: requirement for requirement in instance_type.requirements}
    if not architectures.complement:
        values = frozenset(ARCHITECTURES.get(value, value) for value in architectures.values)
        requirements[ARCH] = Requirement(ARCH, False, values)
    labels = labels_of_name(instance_type.name)
    if labels and with_amounts:
        labels |= _labels_of_amounts(instance_type)
    # What a file says of a label comes before what its name suggests.
    for key, value in labels.items():
        requirements.setdefault(key, Requirement.of(key, "In", (value,)))
    if regions := _regions_of(instance_type):
        requirements.setdefault(REGION, Requirement.of(REGION, "In", regions))
    for alias in list(aliases_of(requirements.values())):
        requirements.setdefault(alias.key, alias)
    return dataclasses.replace(instance_type, requirements=Requirements(requirements.values()))


def _labels_of_amounts(instance_type: InstanceType) -> dict[str, str]:
    cores, memory_mib = instance_type.capacity.get(CPU, 0) // 1000, instance_type.capacity.get(MEMORY, 0) // 2**20
    names = (
        (_AWS_NAME, f"{AWS}/instance-cpu", f"{AWS}/instance-memory"),
        (_AZURE_NAME, f"{AZURE}/sku-cpu", f"{AZURE}/sku-memory"),
        (_GCP_NAME, f"{GCP}/instance-cpu", f"{GCP}/instance-memory"),
    )
    cpu_label, memory_label = next(labels for form, *labels in names if form.fullmatch(instance_type.name))
    return {cpu_label: str(cores), memory_label: str(memory_mib)}


def _regions_of(instance_type: InstanceType) -> list[str]:
    """Return the regions of the zones that the instance type is offered in."""
    zone_form = next((zone for name, zone in _REGIONS if name.fullmatch(instance_type.name)), None)
    if zone_form is None:
        return []
    zones = instance_type.requirements.get(ZONE)
    matches = (zone_form.fullmatch(zone) for zone in sorted(zones.values))
    return sorted({match[1] for match in matches if match})


def _without_twins(instance_types: Sequence[InstanceType]) -> list[InstanceType]:
    """Return the instance types; those that differ in their operating systems only are one."""
    by_identity: dict[object, InstanceType] = {}
    for instance_type in instance_types:
        common_requirements = Requirements(
            requirement for requirement in instance_type.requirements if requirement.key != OS
        )
        amounts = (frozenset(amounts.items()) for amounts in (instance_type.capacity, instance_type.overhead.total))
        identity = (instance_type.name, common_requirements, *amounts, tuple(map(_terms_of, instance_type.offerings)))
        # Karpenter's list of AWS has each machine once for every system, which would count as two kinds of machines.
        twin = by_identity.get(identity)
        if twin is not None:
            systems = twin.requirements.get(OS).values | instance_type.requirements.get(OS).values
            instance_type = dataclasses.replace(
                twin, requirements=common_requirements.add(Requirement(OS, False, systems))
            )
        by_identity[identity] = instance_type
    return list(by_identity.values())


def _terms_of(offering: Offering) -> tuple[object, ...]:
    return offering.requirements, offering.price, offering.is_available, offering.reservation_capacity
