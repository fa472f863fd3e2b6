"""The variable `device` of selectors."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from podium.cel.access import DomainMap
from podium.cel.libraries.quantities import Quantity
from podium.cel.values import NativeMap

_TEXT_MAX, _NAMES_MAX = 128, 200
"""The API allows less than this. For a device with more, costs are counted in every expression."""


class BoundDevice:
    """A device as CEL values. It is immutable and can be used with any number of selectors.

    Args:
        driver: the driver of the device's ResourceSlice, and the domain of names without one.
        attributes: an int, bool, string, or version for each name, or a list of them.
        capacity: a quantity for each name.
    """

    __slots__ = ("is_small", "variables")

    def __init__(
        self,
        driver: str,
        attributes: Mapping[str, Any],
        capacity: Mapping[str, Quantity],
        *,
        allow_multiple_allocations: bool = False,
    ) -> None:
        values = chain.from_iterable(value if isinstance(value, list) else (value,) for value in attributes.values())
        texts = [driver, *attributes, *capacity, *(value for value in values if isinstance(value, str))]
        self.is_small = len(texts) <= _NAMES_MAX and all(len(text) <= _TEXT_MAX for text in texts)
        self.variables: dict[str, Any] = {
            "driver": driver,
            "allowMultipleAllocations": allow_multiple_allocations,
            "attributes": _by_domain(attributes, driver),
            "capacity": _by_domain(capacity, driver),
        }


def _by_domain(values: Mapping[str, Any], driver: str) -> DomainMap:
    domains = DomainMap()
    for name, value in values.items():
        domain, slash, identifier = name.partition("/")
        if not slash:
            domain, identifier = driver, name
        domains.setdefault(domain, NativeMap())[identifier] = value
    return domains
