"""Reserved capacity: how many more nodes each reservation has room for, as planned NodeClaims hold places in it.

Source: karpenter pkg/controllers/provisioning/scheduling/reservationmanager.go, v1.15.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from podium.provisioner.apis.dialects import RESERVATION_IDS
from podium.provisioner.apis.labels import RESERVED
from podium.provisioner.cloudprovider.instance_types import InstanceType, Offering

RESERVATION_ID: Final = RESERVATION_IDS[0]
"""The label by which the kwok provider tells reservations apart."""


def reservation_of(offering: Offering) -> str:
    """Return the reservation's id; "" if the offering is not reserved."""
    return min(offering.requirements.get(reservation_label(offering)).values, default="")


def reservation_label(offering: Offering) -> str:
    """Return the label by which the offering's provider tells reservations apart."""
    return next((key for key in RESERVATION_IDS if offering.requirements.get(key).values), RESERVATION_ID)


class Reservations:
    """The places in all reservations of some instance types, and who holds them.

    Args:
        credit: by reservation, places that become free when a node goes. Reservations that are not known stay so.
    """

    def __init__(self, instance_types: Iterable[InstanceType], credit: Mapping[str, int] | None = None) -> None:
        self._credit = credit or {}
        self._free: dict[str, int] = {}
        self._held: dict[str, set[str]] = {}
        for instance_type in instance_types:
            for offering in instance_type.offerings:
                if offering.capacity_type == RESERVED:
                    name, count = reservation_of(offering), offering.reservation_capacity
                    # Instance types may name one reservation with different counts. The smallest is safe.
                    self._free[name] = min(count, self._free.get(name, count))
        for name in self._free:
            self._free[name] += self._credit.get(name, 0)

    def is_full(self, offering: Offering) -> bool:
        """Return True if the reservation has no place at all, as opposed to none that is left."""
        return offering.reservation_capacity == 0 and not self._credit.get(reservation_of(offering))

    def can_hold(self, hostname: str, offering: Offering) -> bool:
        """Return True if the node holds a place in the offering's reservation already, or can have one."""
        name = reservation_of(offering)
        return name in self._held.get(hostname, ()) or self._free[name] > 0

    def hold(self, hostname: str, offerings: Iterable[Offering]) -> None:
        """Let the node hold a place in each of these reservations, and in no other."""
        reservation_ids = {reservation_of(offering) for offering in offerings}
        # A claim that is narrowed gives back places that it can no longer use, for the claims after it.
        held_ids = self._held.get(hostname, set())
        for name in reservation_ids - held_ids:
            self._free[name] -= 1
        for name in held_ids - reservation_ids:
            self._free[name] += 1
        self._held[hostname] = reservation_ids

    def __bool__(self) -> bool:
        """Return True if there is any reservation."""
        return bool(self._free)
