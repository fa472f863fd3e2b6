"""Amounts of resources as the texts of quantities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from podium.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, is_hugepages

_UNITS: Final = (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


def amount_text(resource: str, amount: int) -> str:
    """The amount as a quantity; `amount` is in thousandths for cpu."""
    if resource == CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in (MEMORY, EPHEMERAL_STORAGE) or is_hugepages(resource):
        for unit, size in _UNITS:
            if amount and amount % size == 0:
                return f"{amount // size}{unit}"
    return str(amount)


def amount_texts(amounts: Mapping[str, int]) -> dict[str, str]:
    """The amounts as quantities, by resource, in order of name."""
    return {name: amount_text(name, amount) for name, amount in sorted(amounts.items())}
