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

    def conflicts(self, port: HostPort) -> bool:
        """Return True if one node cannot give both."""
        if (self.port, self.protocol) != (port.port, port.protocol):
            return False
        return self.address == port.address or self.address in _ANY or port.address in _ANY


@once_per_spec
def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Return the node's ports that the containers ask for; init containers do not count."""
    return tuple(
        HostPort(_canonical(port.host_ip or "0.0.0.0"), port.host_port, port.protocol)
        for container in spec.containers
        for port in container.ports
        if port.host_port
    )


def any_conflict(ports: Iterable[HostPort], ports_in_use: Iterable[HostPort]) -> bool:
    """Return True if any of the wanted ports is taken."""
    ports = tuple(ports)
    # Most pods have no host ports: the tuple is tested before the pods of the node are gone through.
    return bool(ports) and any(port.conflicts(port_in_use) for port_in_use in ports_in_use for port in ports)


def _canonical(address: str) -> str:
    try:
        ip_address = ipaddress.ip_address(address)
    except ValueError:
        return address
    # "::ffff:1.2.3.4" is the socket of 1.2.3.4.
    if isinstance(ip_address, ipaddress.IPv6Address) and ip_address.ipv4_mapped is not None:
        return str(ip_address.ipv4_mapped)
    return str(ip_address)
