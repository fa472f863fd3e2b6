"""Validates new resource claims, device classes and slices, as far as an allocation depends on their fields.

Source: kubernetes v1.36.2, pkg/apis/resource/validation/validation.go, and the defaults of pkg/apis/resource/v1.
Differs: names, lengths, limits of lists and costs of expressions are not checked; expressions are compiled when they
are first evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from podium.objects.claims import DeviceClaim, ExactDeviceRequest, ResourceClaim
from podium.objects.devices import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceCapacity,
    DeviceClass,
    DeviceSelector,
    ResourceSlice,
)
from podium.objects.meta import RawQuantity
from podium.objects.quantity import QuantityError, parse
from podium.objects.quantity import value as integer

_ALL: Final = "All"
_MODES: Final = (_ALL, "ExactCount")
_OPERATORS: Final = ("Equal", "Exists")
_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_ONE_OF: Final = "exactly one of `exactly` or `firstAvailable` is required"
_NO_REQUEST: Final = "must be the name of a request in the claim, or of a request and a subrequest separated by '/'"


def invalid_device_fields(item: object) -> Iterator[str]:
    """Yield the errors of a claim, class or slice, each with its field; none for an object of another kind."""
    validate = _VALIDATIONS.get(type(item))
    return iter(()) if validate is None else validate(item)


def _claim_errors(claim: ResourceClaim) -> Iterator[str]:
    path, devices = "spec.devices", claim.spec.devices
    names = [request.name for request in devices.requests]
    for index, request in enumerate(devices.requests):
        field = f"{path}.requests[{index}]"
        yield from _name_errors(names, index, field)
        if request.exactly is not None and request.first_available:
            yield f"{field}: {_ONE_OF}, but both are set"
        elif request.exactly is not None:
            yield from _request_errors(request.exactly, f"{field}.exactly")
        elif not request.first_available:
            yield f"{field}: {_ONE_OF}"
        alternatives = [alternative.name for alternative in request.first_available]
        for number, alternative in enumerate(request.first_available):
            yield from _name_errors(alternatives, number, f"{field}.firstAvailable[{number}]")
            yield from _request_errors(alternative, f"{field}.firstAvailable[{number}]")
    yield from _reference_errors(devices, path)
    for index, constraint in enumerate(devices.constraints):
        field = f"{path}.constraints[{index}]"
        attributes = {"matchAttribute": constraint.match_attribute, "distinctAttribute": constraint.distinct_attribute}
        if all(attribute is None for attribute in attributes.values()):
            yield f"{field}: one of {' or '.join(attributes)} is required"
        for name, attribute in attributes.items():
            if attribute is not None and "/" not in attribute:
                yield f'{field}.{name}: "{attribute}" must be a domain and a name separated by a slash'


def _name_errors(names: Sequence[str], index: int, field: str) -> Iterator[str]:
    if not names[index]:
        yield f"{field}.name: required"
    elif names[index] in names[:index]:
        yield f'{field}.name: duplicate "{names[index]}"'


def _request_errors(request: ExactDeviceRequest, field: str) -> Iterator[str]:
    if not request.device_class_name:
        yield f"{field}.deviceClassName: required"
    yield from _selector_errors(request.selectors, f"{field}.selectors")
    yield from _choice_errors(request.allocation_mode, _MODES, f"{field}.allocationMode")
    if request.allocation_mode == _ALL and request.count:
        yield f"{field}.count: {request.count} must not be specified when allocationMode is All"
    # The API server takes 0 for absent, and sets 1.
    elif request.count is not None and request.count < 0:
        yield f"{field}.count: {request.count} must be greater than zero"
    for index, toleration in enumerate(request.tolerations):
        path = f"{field}.tolerations[{index}]"
        yield from _choice_errors(toleration.operator, _OPERATORS, f"{path}.operator")
        if toleration.operator == "Exists" and toleration.value:
            yield f'{path}.value: "{toleration.value}" must be empty for the operator Exists'
        yield from _choice_errors(toleration.effect, _EFFECTS, f"{path}.effect")
    if request.capacity is not None:
        for name, amount in request.capacity.requests.items():
            yield from _amount_errors(amount, f"{field}.capacity.requests[{name}]")


def _choice_errors(value: str, choices: Sequence[str], field: str) -> Iterator[str]:
    # Absent values have a default.
    if value and value not in choices:
        yield f'{field}: unsupported value "{value}", supported are {", ".join(choices)}'


def _reference_errors(devices: DeviceClaim, path: str) -> Iterator[str]:
    """Yield errors for constraints and configurations of requests that the claim does not have."""
    names = {request.name for request in devices.requests}
    names |= {
        f"{request.name}/{alternative.name}" for request in devices.requests for alternative in request.first_available
    }
    references = {f"constraints[{index}]": constraint.requests for index, constraint in enumerate(devices.constraints)}
    references |= {f"config[{index}]": config.requests for index, config in enumerate(devices.config)}
    for field, referenced_names in references.items():
        for index, name in enumerate(referenced_names):
            if name not in names:
                yield f'{path}.{field}.requests[{index}]: "{name}" {_NO_REQUEST}'


def _class_errors(device_class: DeviceClass) -> Iterator[str]:
    yield from _selector_errors(device_class.spec.selectors, "spec.selectors")


def _selector_errors(selectors: Sequence[DeviceSelector], path: str) -> Iterator[str]:
    for index, selector in enumerate(selectors):
        if selector.cel is None:
            yield f"{path}[{index}].cel: required"
        elif not selector.cel.expression:
            yield f"{path}[{index}].cel.expression: required"


def _slice_errors(resource_slice: ResourceSlice) -> Iterator[str]:
    names = [device.name for device in resource_slice.spec.devices]
    duplicates = len(set(names)) < len(names)
    for index, device in enumerate(resource_slice.spec.devices):
        field = f"spec.devices[{index}]"
        # Slices may have many devices, and hardly ever two of a name.
        if duplicates or not device.name:
            yield from _name_errors(names, index, field)
        for name, capacity in (device.capacity or {}).items():
            path = f"{field}.capacity[{name}]"
            policy = capacity.request_policy or CapacityRequestPolicy()
            amounts = {"value": capacity.value, **_policy_amounts(policy)}
            # Amounts are compared only where all of them can be read.
            if unreadable := [error for key, raw in amounts.items() for error in _amount_errors(raw, f"{path}.{key}")]:
                yield from unreadable
            elif capacity.request_policy is not None:
                if not device.allow_multiple_allocations:
                    yield f"{path}.requestPolicy: allowMultipleAllocations must be true"
                yield from _policy_errors(policy, capacity, f"{path}.requestPolicy")


def _policy_amounts(policy: CapacityRequestPolicy) -> Mapping[str, RawQuantity]:
    """Return the amounts of the policy by their fields."""
    limits = policy.valid_range or CapacityRequestPolicyRange()
    amounts = {
        "default": policy.default,
        **{f"validValues[{index}]": value for index, value in enumerate(policy.valid_values)},
        **{f"validRange.{name}": getattr(limits, name) for name in ("min", "max", "step")},
    }
    return {f"requestPolicy.{name}": amount for name, amount in amounts.items() if amount is not None}


def _policy_errors(policy: CapacityRequestPolicy, capacity: DeviceCapacity, path: str) -> Iterator[str]:
    """Yield the contradictions between the default, the amounts that may be requested, and what the device has."""
    limits = policy.valid_range
    if policy.valid_values and limits is not None:
        yield f"{path}: cannot specify validValues and validRange at the same time"
        return
    default, available = policy.default, capacity.value
    if default is None:
        if policy.valid_values or limits is not None:
            yield f"{path}.default: required when validValues or validRange is defined"
        return
    for index, value in enumerate(policy.valid_values):
        if _is_more(value, available):
            yield f"{path}.validValues[{index}]: {value} is larger than the capacity of {available}"
        if index and not _is_more(value, policy.valid_values[index - 1]):
            yield f"{path}.validValues[{index}]: {value} must be larger than the value before it"
    if policy.valid_values and all(
        _is_more(value, default) or _is_more(default, value) for value in policy.valid_values
    ):
        yield f"{path}.default: {default} is not among validValues"
    if limits is not None:
        yield from _range_errors(limits, default, available, path)


def _range_errors(
    limits: CapacityRequestPolicyRange, default: RawQuantity, available: RawQuantity, path: str
) -> Iterator[str]:
    field = f"{path}.validRange"
    if limits.min is None:
        yield f"{field}.min: required when validRange is defined"
        return
    if _is_more(limits.min, default):
        yield f"{path}.default: {default} is less than the min of validRange, {limits.min}"
    if limits.max is not None and _is_more(default, limits.max):
        yield f"{path}.default: {default} is more than the max of validRange, {limits.max}"
    if limits.max is not None and _is_more(limits.min, limits.max):
        yield f"{field}.min: {limits.min} is larger than max, {limits.max}"
    for name, limit in (("min", limits.min), ("max", limits.max)):
        if limit is not None and _is_more(limit, available):
            yield f"{field}.{name}: {limit} is larger than the capacity of {available}"
    if limits.step is None:
        return
    # Upstream rounds all amounts up to integers here, so that fractions need not be multiples.
    step = integer(limits.step)
    if step <= 0:
        yield f"{field}.step: {limits.step} must be greater than zero"
        return
    for amount in (default, limits.max):
        if amount is not None and (integer(amount) - integer(limits.min)) % step:
            yield f"{field}.step: {amount} is not {limits.min} and a multiple of the step, {limits.step}"


def _is_more(amount: RawQuantity, limit: RawQuantity) -> bool:
    return parse(amount) > parse(limit)


def _amount_errors(amount: RawQuantity, field: str) -> Iterator[str]:
    try:
        parse(amount)
    except QuantityError as error:
        yield f"{field}: {error}"


_VALIDATIONS: Final[Mapping[type, Callable[[Any], Iterator[str]]]] = {
    ResourceClaim: _claim_errors,
    DeviceClass: _class_errors,
    ResourceSlice: _slice_errors,
}
