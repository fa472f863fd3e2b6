"""Ports of the node that pods ask for, and whether two pods ask for the same.

Source: karpenter pkg/scheduling/hostportusage.go, v1.15.0.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from msgspec import Struct

from podium.objects.core import PodSpec, once_per_spec

_ANY = ("0.0.0.0", "::")


class HostPort(Struct, frozen=True):
    """A port of a node, on one of its addresses or on all."""

    address: str
    port: int
    protocol: str

    def conflicts(self, other: HostPort) -> bool:
        """Whether one node cannot give both."""
        if (self.port, self.protocol) != (other.port, other.protocol):
            return False
        return self.address == other.address or self.address in _ANY or other.address in _ANY


@once_per_spec
def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """The node's ports that the containers ask for; init containers do not count."""
    return tuple(
        HostPort(_canonical(port.host_ip or "0.0.0.0"), port.host_port, port.protocol)
        for container in spec.containers
        for port in container.ports
        if port.host_port
    )


def any_conflict(wanted: Iterable[HostPort], used: Iterable[HostPort]) -> bool:
    """Whether any of the wanted ports is taken."""
    wanted = tuple(wanted)
    return bool(wanted) and any(one.conflicts(other) for other in used for one in wanted)


def _canonical(address: str) -> str:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(found)
