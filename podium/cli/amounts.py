"""The option `--requests`: the requests of a replica, as comma-separated NAME=AMOUNT."""

from __future__ import annotations

import difflib
import re
from typing import Final

from podium.config.names import label_key_errors
from podium.objects.errors import FieldError
from podium.objects.quantity import INT64_MAX, QuantityError, parse
from podium.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY

_STANDARD: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
_NANOS_IN_MILLI, _NANOS = 10**6, 10**9
_HUGE_PAGES: Final = re.compile(r"hugepages-[0-9]+[KMGTPE]i")


def amounts_of(text: str) -> dict[str, str]:
    """Parse the amounts, by resource.

    Raises:
        FieldError: containers cannot request a resource, a resource is named twice, or an amount is not valid.
    """
    amounts: dict[str, str] = {}
    for part in text.split(","):
        name, equals, amount = (field.strip() for field in part.partition("="))
        if not equals or not name or not amount:
            raise FieldError(part.strip() or '""', "expected NAME=AMOUNT, such as cpu=500m,memory=1Gi")
        _check_name(name)
        if name in amounts:
            raise FieldError(name, "given twice")
        _check_amount(name, amount)
        amounts[name] = amount
    return amounts


def _check_name(name: str) -> None:
    if name in _STANDARD or _HUGE_PAGES.fullmatch(name):
        return
    if "/" not in name:
        similar_names = difflib.get_close_matches(name, _STANDARD, n=1, cutoff=0.7)
        hint = (
            f"did you mean {similar_names[0]}?"
            if similar_names
            else "resources of devices have a domain, such as nvidia.com/gpu"
        )
        raise FieldError(name, f"no such resource; {hint}")
    if errors := label_key_errors(name):
        raise FieldError(name, errors[0])


def _check_amount(name: str, amount: str) -> None:
    try:
        quantity = parse(amount)
    except QuantityError as error:
        raise FieldError(name, str(error)) from error
    if quantity.unscaled < 0:
        raise FieldError(name, f"{amount} is negative")
    if quantity.nano_value > INT64_MAX * (_NANOS_IN_MILLI if name == CPU else _NANOS):
        raise FieldError(name, f"{amount} is too large")
    if name not in _STANDARD and quantity.value * 1000 != quantity.milli_value:
        raise FieldError(name, f"{amount} is not a whole number")
