"""Computes what a request consumes of a device's capacities, and checks that the device has that much left.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/consumable_capacity.go, v0.36.2
and v0.37.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from podium.config.release_rules import DeviceRules
from podium.devices.errors import CapacityError
from podium.objects.devices import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity
from podium.objects.meta import RawQuantity
from podium.objects.quantity import INT64_MAX, canonical_text, parse, quantity_format

_KIBI: Final = 1024
_NANO: Final = 10**9
_MILLI: Final = 10**6
_THOUSAND: Final = 1000
_NOT_REPRESENTABLE: Final = "capacity request cannot be represented in the device's range arithmetic"


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity that is consumed, as it was written. `raw` is None if it was computed."""

    text: str
    nano: int
    raw: RawQuantity | None = None

    @classmethod
    def of(cls, raw: RawQuantity) -> Amount:
        """Return the quantity as written in the API object."""
        return cls(canonical_text(raw), parse(raw).nano_value, raw)

    @classmethod
    def from_int(cls, number: int, form: str = "BinarySI") -> Amount:
        """Return an integer in a format of quantities, see `quantity_format`."""
        if form != "BinarySI":
            return cls.of(f"{number}e0" if form == "DecimalExponent" else str(number))
        if abs(number) < _KIBI:
            return cls(canonical_text(str(number)), parse(str(number)).nano_value)
        text = canonical_text(f"{number // _KIBI}Ki") if number % _KIBI == 0 else str(number)
        return cls(text, parse(text).nano_value)


def consumption(
    amounts: Mapping[str, RawQuantity], capacities: Mapping[str, DeviceCapacity], rules: DeviceRules
) -> dict[str, Amount]:
    """Return what a request consumes of each capacity of a device.

    Raises: CapacityError: an amount is negative, or does not fit into an int64 where it is to be rounded.
    """
    consumed_amounts = {}
    for name, capacity in capacities.items():
        try:
            amount = consumed_amounts[name] = _consumption_of(amounts.get(name), capacity, rules)
            if rules.check_amounts and amount.nano < 0:
                raise CapacityError("capacity value is negative")
        except CapacityError as error:
            raise CapacityError(f'capacity "{name}": {error}') from None
    return consumed_amounts


def has_capacity(
    amounts_requested: Mapping[str, RawQuantity],
    capacities: Mapping[str, DeviceCapacity],
    rules: DeviceRules,
    *consumptions: Mapping[str, int],
) -> bool:
    """Return True if the device has every requested capacity, its policies allow the amounts, and enough is left.

    Args:
        consumptions: what has been consumed already, in billionths.

    Raises: CapacityError: as `consumption`.
    """
    if not amounts_requested.keys() <= capacities.keys():
        return False
    # Policies hold for devices that are not shared as well.
    # Amounts first: upstream reports an amount that is no number before a device that is full.
    for name, amount in consumption(amounts_requested, capacities, rules).items():
        capacity = capacities[name]
        if capacity.request_policy is not None and _violates(amount, capacity.request_policy, rules):
            return False
        if amount.nano + sum(amounts.get(name, 0) for amounts in consumptions) > parse(capacity.value).nano_value:
            return False
    return True


def _consumption_of(request: RawQuantity | None, capacity: DeviceCapacity, rules: DeviceRules) -> Amount:
    policy = capacity.request_policy
    if request is None:
        # Without a default, a request that does not name the capacity takes all of it.
        is_full = policy is None or policy.default is None
        return Amount.of(capacity.value if is_full else policy.default)  # type: ignore[union-attr,arg-type]
    if policy is None:
        return Amount.of(request)
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_up(request, policy.valid_range.min, policy.valid_range, rules)
    exact = parse(request).nano_value
    valid = (value for value in policy.valid_values if exact <= parse(value).nano_value)
    return Amount.of(next(valid, request))


def _rounded_up(
    request: RawQuantity, minimum: RawQuantity, valid_range: CapacityRequestPolicyRange, rules: DeviceRules
) -> Amount:
    step = valid_range.step
    if parse(request).nano_value < parse(minimum).nano_value:
        return Amount.of(minimum)
    if step is not None and _is_in_thousandths(valid_range, rules):
        return _rounded_up_in_thousandths(request, minimum, step)
    # As upstream: steps are integers, so that fractions of a quantity are rounded up first.
    size = 0 if step is None else parse(step).value
    if step is None or not size:
        return Amount.of(request)
    least = parse(minimum).value
    if not rules.check_amounts:
        return Amount.from_int(least + size * -((least - parse(request).value) // size))
    if parse(request).nano_value > INT64_MAX * _NANO:
        raise CapacityError(f"{_NOT_REPRESENTABLE}: request {canonical_text(request)} exceeds MaxInt64")
    amount = least + size * -((least - parse(request).value) // size)
    if amount > INT64_MAX:
        rounding = f"rounding request {canonical_text(request)} up to the next step passes MaxInt64"
        raise CapacityError(f"{_NOT_REPRESENTABLE}: {rounding}")
    return Amount.from_int(amount, quantity_format(step))


def _is_in_thousandths(valid_range: CapacityRequestPolicyRange, rules: DeviceRules) -> bool:
    """Return True if the range and its step of at least 1m can be computed with in thousandths, without loss."""
    amounts = (valid_range.min, valid_range.max, valid_range.step)
    return (
        rules.round_to_thousandths
        and all(amount is None or _thousandths(amount) is not None for amount in amounts)
        and (valid_range.step is None or parse(valid_range.step).nano_value >= _MILLI)
    )


def _thousandths(raw: RawQuantity) -> int | None:
    """Return a quantity in thousandths; None if it has finer parts, or is too large for an int64 then."""
    quantity = parse(raw)
    return quantity.milli_value if quantity.milli_value * _MILLI == quantity.nano_value else None


def _rounded_up_in_thousandths(request: RawQuantity, minimum: RawQuantity, step: RawQuantity) -> Amount:
    amount, text = _thousandths(request), canonical_text(request)
    if amount is None:
        raise CapacityError(f"{_NOT_REPRESENTABLE}: request {text} is not a representable milli value")
    least, size = parse(minimum).milli_value, parse(step).milli_value
    amount = least + size * -((least - amount) // size)
    if amount > INT64_MAX:
        rounding = f"rounding request {text} up to the next step passes the milli-value range"
        raise CapacityError(f"{_NOT_REPRESENTABLE}: {rounding}")
    form = quantity_format(step)
    if amount % _THOUSAND == 0:
        return Amount.from_int(amount // _THOUSAND, form)
    return Amount.of(f"{amount}e-3" if form == "DecimalExponent" else f"{amount}m")


def _violates(amount: Amount, policy: CapacityRequestPolicy, rules: DeviceRules) -> bool:
    # As upstream, the default is recognized by its text: `1Gi` and `1024Mi` differ.
    if policy.default is not None and amount.raw == policy.default and not parse(policy.default).wide:
        return False
    if policy.valid_range is not None:
        return _is_outside(amount, policy.valid_range, rules)
    exact = (parse(value).nano_value for value in policy.valid_values)
    return bool(policy.valid_values) and amount.nano not in exact


def _is_outside(amount: Amount, valid_range: CapacityRequestPolicyRange, rules: DeviceRules) -> bool:
    if valid_range.max is not None and amount.nano > parse(valid_range.max).nano_value:
        return True
    if valid_range.step is not None and _is_in_thousandths(valid_range, rules):
        thousandths = _thousandths(amount.text if amount.raw is None else amount.raw)
        least = 0 if valid_range.min is None else parse(valid_range.min).milli_value
        return thousandths is None or (thousandths - least) % parse(valid_range.step).milli_value != 0
    size = 0 if valid_range.step is None else parse(valid_range.step).value
    least = 0 if valid_range.min is None else parse(valid_range.min).value
    # The range is counted from its minimum, not from zero.
    return bool(size) and (_whole(amount) - least) % size != 0


def _whole(amount: Amount) -> int:
    """Return the amount rounded up to an integer, which wraps around as upstream's does."""
    return parse(amount.text if amount.raw is None else amount.raw).value
