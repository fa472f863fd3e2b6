"""Catalogues from the documents that people have: kwok's, and what the command lines of AWS, Azure and GCP print.

Owns telling the documents apart, and putting several together. Never reads a file: it takes what was parsed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from podium.objects.errors import FieldError
from podium.provisioner.apis.labels import CAPACITY_TYPE, ON_DEMAND
from podium.provisioner.cloudprovider.aws_catalogue import AWS_DOCUMENTS, AwsDocuments
from podium.provisioner.cloudprovider.azure_catalogue import azure_entries, azure_prices
from podium.provisioner.cloudprovider.catalogue import Catalogue, read_catalogue
from podium.provisioner.cloudprovider.dialect_labels import with_dialects
from podium.provisioner.cloudprovider.gcp_catalogue import gcp_entries
from podium.provisioner.cloudprovider.imported_fields import Field, items_of
from podium.provisioner.cloudprovider.instance_types import CAPACITY_TYPES

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
    entries = [*aws.entries(zones, prices), *azure_entries(skus, prices), *gcp_entries(machine_types, prices)]
    if not own and not entries:
        names = ", ".join(path.removesuffix(": ") for path, _ in documents)
        raise FieldError(names, "has no instance types, or none that is offered anywhere")
    catalogues = [read_catalogue(_priced(document, prices), path) for path, document in own]
    if entries:
        catalogues.append(read_catalogue(entries))
    types = tuple(instance_type for catalogue in catalogues for instance_type in catalogue.instance_types)
    return with_dialects(Catalogue(types, frozenset().union(*(catalogue.well_known for catalogue in catalogues))))


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


def _priced(document: object, prices: dict[str, dict[str, float]]) -> object:
    """Return a list of instance types with the prices of other files, where these have any."""
    if not prices or not isinstance(document, list):
        return document
    return [
        {**item, "offerings": [_priced_offering(offering, prices[item["name"]]) for offering in item["offerings"]]}
        if isinstance(item, dict) and item.get("name") in prices and isinstance(item.get("offerings"), list)
        else item
        for item in document
    ]


def _priced_offering(offering: Any, prices: dict[str, float]) -> Any:
    if not isinstance(offering, dict):
        return offering
    kind = offering.get("capacityType")
    for requirement in offering.get("requirements") or offering.get("Requirements") or ():
        if isinstance(requirement, dict) and requirement.get("key") == CAPACITY_TYPE:
            kind = next(iter(requirement.get("values") or ()), kind)
    rest = {name: value for name, value in offering.items() if name.lower() not in ("price", "unpriced")}
    return {**rest, "price": prices[kind]} if kind in prices else offering
