"""Catalogues from the documents that people have: kwok's, and what the command lines of AWS, Azure and GCP print.

Owns telling the documents apart, and putting several together. Never reads a file: it takes what was parsed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from podium.objects.errors import FieldError
from podium.provisioner.apis.labels import CAPACITY_TYPE, ON_DEMAND, ZONE
from podium.provisioner.cloudprovider.aws_catalogue import AWS_DOCUMENTS, AwsDocuments
from podium.provisioner.cloudprovider.azure_catalogue import azure_entries, azure_prices
from podium.provisioner.cloudprovider.catalogue import Catalogue, read_catalogue
from podium.provisioner.cloudprovider.dialect_labels import with_dialects
from podium.provisioner.cloudprovider.gcp_catalogue import gcp_entries
from podium.provisioner.cloudprovider.imported_fields import Field, items_of
from podium.provisioner.cloudprovider.instance_types import CAPACITY_TYPES, InstanceType
from podium.provisioner.scheduling.requirements import Requirements

_OF_OFFERINGS: Final = (ZONE, CAPACITY_TYPE)
_FORMS: Final = (
    "is not a list of instance types, nor prices by name, nor what AWS', Azure's or GCP's command line prints of them"
)


def import_catalogue(documents: Sequence[tuple[str, object]], zones: Iterable[str] = ()) -> Catalogue:
    """Return the instance types of these documents together, with the labels of their provider's dialects.

    Args:
        documents: each with what stands before the path of a field in errors, and as parsed from JSON.
        zones: the zones of instance types of which no document says where they are.

    Raises:
        FieldError: a document is of no known form, a field is missing, or nothing has instance types.
    """
    aws, prices = AwsDocuments(), dict[str, dict[str, float]]()
    own: list[tuple[str, object]] = []
    skus: list[Field] = []
    machine_types: list[Field] = []
    for path, document in documents:
        if isinstance(document, list):
            items = items_of(document, path)
            first = items[0] if items else Field({}, path)
            if "VCpuInfo" in first:
                aws.take("InstanceTypes", items)
            elif "capabilities" in first:
                skus += items
            elif "guestCpus" in first:
                machine_types += items
            else:
                own.append((path, document))
        elif isinstance(document, dict):
            _take_object(Field(document, path), aws, prices)
        else:
            raise FieldError(f"{path}catalogue", _FORMS)
    catalogues = [read_catalogue(_with_prices(document, prices), path) for path, document in own]
    types_of_lists = [instance_type for catalogue in catalogues for instance_type in catalogue.instance_types]
    _demand_equal_devices(types_of_lists)
    # The list's zones are the region's, so that a description without zones has somewhere to be offered.
    zones_listed = {zone for instance_type in types_of_lists for zone in instance_type.requirements.get(ZONE).values}
    entries = [
        *aws.entries(sorted({*zones, *zones_listed}), prices),
        *azure_entries(skus, prices),
        *gcp_entries(machine_types, prices),
    ]
    if not own and not entries:
        names = ", ".join(path.removesuffix(": ") for path, _ in documents)
        raise FieldError(names, "has no instance types, or none that is offered anywhere")
    description = read_catalogue(entries)
    types = _together(types_of_lists, description.instance_types)
    well_known = description.well_known.union(*(catalogue.well_known for catalogue in catalogues))
    return with_dialects(Catalogue(tuple(types), well_known))


def _together(
    types_of_lists: Sequence[InstanceType], described_types: Sequence[InstanceType]
) -> Iterator[InstanceType]:
    """Yield the instance types of lists, and of providers' descriptions, which say more of the machine itself."""
    listed_by_name = {instance_type.name: instance_type for instance_type in types_of_lists}
    names = {instance_type.name for instance_type in described_types}
    yield from (instance_type for instance_type in types_of_lists if instance_type.name not in names)
    for described_type in described_types:
        twin = listed_by_name.get(described_type.name)
        # A description knows no devices for resource claims.
        instance_type = (
            described_type
            if twin is None
            else dataclasses.replace(described_type, devices=twin.devices, counters=twin.counters)
        )
        # The list knows the prices, where no price came with the description.
        if twin is None or any(offering.is_priced for offering in instance_type.offerings):
            yield instance_type
            continue
        of_machine = (rule for rule in instance_type.requirements if rule.key not in _OF_OFFERINGS)
        requirements = Requirements(of_machine).union(twin.requirements.get(key) for key in _OF_OFFERINGS)
        yield dataclasses.replace(instance_type, offerings=twin.offerings, requirements=requirements)


def _demand_equal_devices(types: Iterable[InstanceType]) -> None:
    """Refuse entries of one name with different devices. Raises: FieldError."""
    first_entries: dict[str, InstanceType] = {}
    for instance_type in types:
        if instance_type.devices:
            first = first_entries.setdefault(instance_type.name, instance_type)
            if (first.devices, first.counters) != (instance_type.devices, instance_type.counters):
                raise FieldError(f"{instance_type.name}.devices", "are others than in another entry of this type")


def _take_object(document: Field, aws: AwsDocuments, prices: dict[str, dict[str, float]]) -> None:
    names = AWS_DOCUMENTS & document.content.keys()
    for name in names:
        aws.take(name, document.items(name))
    if names:
        return
    if "Items" in document:
        prices.update(azure_prices(document.items("Items")))
        return
    for name, price in document.content.items():
        own = Field(price if isinstance(price, dict) else {ON_DEMAND: price}, f"{document.path}[{name}]")
        is_number = isinstance(price, int | float) and not isinstance(price, bool)
        if not own.content or not own.content.keys() <= set(CAPACITY_TYPES) or not (is_number or own.content is price):
            raise FieldError(f"{document.path}catalogue", _FORMS)
        prices[name] = {kind: own.number(kind) for kind in own.content}


def _with_prices(document: object, prices: dict[str, dict[str, float]]) -> object:
    """Return a list of instance types with the prices of other files, where these have any."""
    if not prices or not isinstance(document, list):
        return document
    return [
        {**item, "offerings": [_offering_with_price(offering, prices[item["name"]]) for offering in item["offerings"]]}
        if isinstance(item, dict) and item.get("name") in prices and isinstance(item.get("offerings"), list)
        else item
        for item in document
    ]


def _offering_with_price(offering: Any, prices: dict[str, float]) -> Any:
    if not isinstance(offering, dict):
        return offering
    kind = offering.get("capacityType")
    for requirement in offering.get("requirements") or offering.get("Requirements") or ():
        if isinstance(requirement, dict) and requirement.get("key") == CAPACITY_TYPE:
            kind = next(iter(requirement.get("values") or ()), kind)
    fields = {name: value for name, value in offering.items() if name.lower() not in ("price", "unpriced")}
    return {**fields, "price": prices[kind]} if kind in prices else offering
