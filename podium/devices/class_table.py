"""Finds the device class that provides an extended resource.

Source: k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache, v0.36.2. As upstream, the table depends on
the order in which classes come and go.
"""

from __future__ import annotations

from typing import Final

from podium.objects.devices import DeviceClass
from podium.objects.times import time_or_none

IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""The resource that every class provides is this and the class's name."""


class ClassTable:
    """Device classes by extended resource.

    Of several classes that name one resource the newest counts, then the first by name. A class that loses provides
    nothing, not even its implicit resource.
    """

    def __init__(self) -> None:
        self._classes: dict[str, DeviceClass] = {}

    def get(self, resource: str) -> DeviceClass | None:
        """Return the class that provides the resource; None if there is none."""
        return self._classes.get(resource)

    def add(self, new: DeviceClass, old: DeviceClass | None = None) -> None:
        """Add a class, or replace its older state."""
        explicit = new.spec.extended_resource_name
        rival = None if explicit is None else self._classes.get(explicit)
        if rival is not None and not _goes_before(new, rival):
            return
        if old is not None:
            self.remove(old)
        if explicit is not None:
            self._classes[explicit] = new
        self._classes[f"{IMPLICIT_PREFIX}{new.key}"] = new

    def remove(self, old: DeviceClass) -> None:
        """Remove a class, and with it the resource that it named, even if another class provides that."""
        self._classes.pop(f"{IMPLICIT_PREFIX}{old.key}", None)
        if old.spec.extended_resource_name is not None:
            self._classes.pop(old.spec.extended_resource_name, None)


def _goes_before(new: DeviceClass, rival: DeviceClass) -> bool:
    if _created_s(new) != _created_s(rival):
        return _created_s(new) > _created_s(rival)
    return new.key < rival.key


def _created_s(device_class: DeviceClass) -> float:
    created_s = time_or_none(device_class.metadata.creation_timestamp)
    return float("-inf") if created_s is None else created_s
