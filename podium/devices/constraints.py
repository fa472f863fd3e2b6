"""Constraints of a claim on the attributes of its devices.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating, constraint.go and allocator_incubating.go,
v0.36.2 and v0.37.2.
"""

from __future__ import annotations

from podium.config.release_rules import DeviceRules
from podium.devices.inventory import SliceDevice
from podium.objects.claims import DeviceConstraint
from podium.objects.devices import DeviceAttribute

Value = tuple[str, str | int | bool]
"""The value of an attribute, with its type."""


class Constraint:
    """A constraint and the devices that have been added to it.

    Args:
        attribute: as `<domain>/<id>`.
        requests: names of requests, or `<request>/<subrequest>`; none means all.
    """

    def __init__(self, attribute: str, requests: tuple[str, ...]) -> None:
        self._attribute = attribute
        self._requests = frozenset(requests)

    def add(self, request: str, subrequest: str, device: SliceDevice) -> bool:
        """Add a device that is about to be allocated. False if it violates the constraint.

        Args:
            subrequest: its name, "" if the request is an exact one.
        """
        if not self._applies(request, subrequest):
            return True
        attribute = attribute_of(device, self._attribute)
        return attribute is not None and self._admit(request, value_of(attribute))

    def remove(self, request: str, subrequest: str) -> None:
        """Undo an addition."""
        if self._applies(request, subrequest):
            self._forget(request)

    def _applies(self, request: str, subrequest: str) -> bool:
        names = self._requests
        # A main request in the list stands for all of its alternatives.
        return not names or request in names or (bool(subrequest) and f"{request}/{subrequest}" in names)

    def _admit(self, request: str, value: Value | None) -> bool:
        raise NotImplementedError

    def _forget(self, request: str) -> None:
        raise NotImplementedError


class MatchAttribute(Constraint):
    """All devices must have the same value, of the same type."""

    def __init__(self, attribute: str, requests: tuple[str, ...]) -> None:
        super().__init__(attribute, requests)
        self._value: Value | None = None
        self._count = 0

    def _admit(self, request: str, value: Value | None) -> bool:
        del request
        if self._count == 0:
            self._value = value
        # The first device decides, even one whose attribute has no value, as upstream.
        elif value is None or value != self._value:
            return False
        self._count += 1
        return True

    def _forget(self, request: str) -> None:
        del request
        self._count -= 1


class DistinctAttribute(Constraint):
    """No device may have the value of another one."""

    def __init__(self, attribute: str, requests: tuple[str, ...]) -> None:
        super().__init__(attribute, requests)
        self._values: list[Value | None] = []

    def _admit(self, request: str, value: Value | None) -> bool:
        del request
        if self._values and (value is None or value in self._values):
            return False
        self._values.append(value)
        return True

    def _forget(self, request: str) -> None:
        del request
        self._values.pop()


class DistinctRequests(Constraint):
    """No device may have the value of another request's latest device, or of the one before it.

    Only the latest device's value of each request is remembered, and undoing a device forgets it.
    """

    def __init__(self, attribute: str, requests: tuple[str, ...]) -> None:
        super().__init__(attribute, requests)
        self._values: dict[str, Value | None] = {}

    def _admit(self, request: str, value: Value | None) -> bool:
        # Upstream remembers one value for each request: of several devices of one request only the last is compared.
        if self._values and (value is None or value in self._values.values()):
            return False
        self._values[request] = value
        return True

    def _forget(self, request: str) -> None:
        # With that, the value of an earlier device of the same request is forgotten, too, as upstream.
        self._values.pop(request, None)


def new_constraint(constraint: DeviceConstraint, rules: DeviceRules) -> Constraint | None:
    """Return the constraint without any device; None if its kind is unknown."""
    if constraint.match_attribute is not None:
        return MatchAttribute(constraint.match_attribute, constraint.requests)
    if constraint.distinct_attribute is not None:
        distinct = DistinctAttribute if rules.compare_all_distinct else DistinctRequests
        return distinct(constraint.distinct_attribute, constraint.requests)
    return None


def attribute_of(device: SliceDevice, name: str) -> DeviceAttribute | None:
    """Return the attribute by its full name, or by its id alone if the domain is the driver's."""
    attributes = device.device.attributes or {}
    domain, slash, identifier = name.partition("/")
    attribute = attributes.get(name)
    if attribute is None and slash and domain == device.id.driver:
        attribute = attributes.get(identifier)
    return attribute


def value_of(attribute: DeviceAttribute) -> Value | None:
    """Return the value with its type; None if there is none."""
    if attribute.string is not None:
        return "string", attribute.string
    if attribute.int_value is not None:
        return "int", attribute.int_value
    if attribute.bool_value is not None:
        return "bool", attribute.bool_value
    if attribute.version is not None:
        return "version", attribute.version
    return None
