"""Amounts of resources as the texts of quantities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from podium.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, is_hugepages

_UNITS: Final = (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


def amount_text(resource: str, amount: int) -> str:
    """Return the amount as a quantity; `amount` is in thousandths for cpu."""
    if resource == CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in (MEMORY, EPHEMERAL_STORAGE) or is_hugepages(resource):
        for unit, size in _UNITS:
            if amount and amount % size == 0:
                return f"{amount // size}{unit}"
    return str(amount)


def amount_texts(amounts: Mapping[str, int]) -> dict[str, str]:
    """Return the amounts as quantities, by resource, in order of name."""
    return {name: amount_text(name, amount) for name, amount in sorted(amounts.items())}


def distinct_texts(resource: str, *amounts: int) -> list[str]:
    """Return the amounts for people: in whole cores or the largest unit, with up to three decimals.

    If rounding would make two amounts look equal, the exact quantities are returned.
    """
    short = [_round(resource, amount) for amount in amounts]
    is_clear = len(set(short)) == len(set(amounts))
    return short if is_clear else [amount_text(resource, amount) for amount in amounts]


def _round(resource: str, amount: int) -> str:
    if resource == CPU:
        return _decimal(amount, 1000, 3)
    if resource in (MEMORY, EPHEMERAL_STORAGE):
        for unit, size in (("Ti", 1 << 40), *_UNITS):
            if amount >= size:
                return _decimal(amount, size, 2) + unit
    return amount_text(resource, amount)


def _decimal(amount: int, unit: int, digits: int) -> str:
    """Return the amount in this unit, rounded down."""
    text = f"{amount // unit}.{amount % unit * 10**digits // unit:0{digits}}"
    return text.rstrip("0").rstrip(".")
