"""IP addresses and networks.

Source: k8s.io/apiserver/pkg/cel v0.36.2 and Go's net/netip.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any, ClassVar, TypeAlias

from podium.cel.errors import EvaluationError
from podium.cel.functions import Overload, ceiling, per_size
from podium.cel.types import CIDR, IP, Type
from podium.cel.values import Opaque, size_of

_ANY: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_BITS = re.compile(r"0|[1-9][0-9]{0,2}")
_LENGTH_MAX = 64
_LINK_LOCAL_MULTICAST = (ipaddress.ip_network("224.0.0.0/24"), ipaddress.ip_network("ff02::/16"))
_LINK_LOCAL = (ipaddress.ip_network("169.254.0.0/16"), ipaddress.ip_network("fe80::/10"))
_BROADCAST = ipaddress.IPv4Address("255.255.255.255")


class Address(Opaque):
    """An IP address."""

    __slots__ = ("address",)
    TYPE: ClassVar[Type] = IP

    def __init__(self, address: _ANY) -> None:
        self.address = address

    @property
    def size(self) -> int:
        """The number of bytes of the address."""
        return self.address.max_prefixlen // 8

    def equals(self, value: Address) -> bool:
        """Tell whether both are the same address."""
        return self.address == value.address

    def __str__(self) -> str:
        return str(self.address)


class Network(Opaque):
    """An address and its prefix length. The host bits of the address are kept."""

    __slots__ = ("address", "bits")
    TYPE: ClassVar[Type] = CIDR

    def __init__(self, address: _ANY, bits: int) -> None:
        self.address = address
        self.bits = bits

    @property
    def size(self) -> int:
        """The number of bytes of the prefix."""
        return -(-self.bits // 8)

    def equals(self, value: Network) -> bool:
        """Tell whether both have the same prefix length and the same address, host bits included."""
        return self.address == value.address and self.bits == value.bits

    def prefix(self, address: _ANY) -> int:
        """Return the prefix of an address, with this network's prefix length."""
        return int(address) >> (address.max_prefixlen - self.bits)

    def contains(self, address: _ANY) -> bool:
        """Tell whether an address is in the network."""
        return address.version == self.address.version and self.prefix(address) == self.prefix(self.address)

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"


def _address(text: str) -> _ANY:
    """Parse an address. Raises: EvaluationError: it is invalid, has a zone, or is an IPv4-mapped IPv6 address."""
    try:
        # Upstream refuses zones, which Python's ipaddress accepts.
        if len(text) > _LENGTH_MAX or "%" in text or "/" in text or not text.isascii():
            raise ValueError(text)
        address = ipaddress.ip_address(text)
    except ValueError:
        raise EvaluationError(f"IP Address {text[:_LENGTH_MAX]!r} parse error during conversion from string") from None
    if address.version == 6 and address.ipv4_mapped is not None:
        raise EvaluationError(f"IPv4-mapped IPv6 address {text!r} is not allowed")
    return address


def parse_address(text: str) -> Address:
    """Parse an IP address. Raises: EvaluationError."""
    return Address(_address(text))


def parse_network(text: str) -> Network:
    """Parse a network such as `10.0.0.0/8`. Raises: EvaluationError."""
    address_text, _, bits = text.rpartition("/")
    address = _address(address_text)
    # Go accepts neither leading zeros nor a sign in the length.
    if _BITS.fullmatch(bits) is None or int(bits) > address.max_prefixlen:
        raise EvaluationError(f"network address parse error during conversion from string: {text[:_LENGTH_MAX]!r}")
    return Network(address, int(bits))


def _is_address(text: str) -> bool:
    try:
        _address(text)
    except EvaluationError:
        return False
    return True


def _is_network(text: str) -> bool:
    try:
        parse_network(text)
    except EvaluationError:
        return False
    return True


def _is_canonical(text: str) -> bool:
    return str(_address(text)) == text


def _is_global_unicast(value: Address) -> bool:
    address = value.address
    # As Go's IsGlobalUnicast: private addresses are global in this sense; Python's is_global denies that.
    return not (
        address == _BROADCAST
        or address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or _within(value, _LINK_LOCAL)
    )


def _within(address: Address, networks: tuple[Any, ...]) -> bool:
    return any(address.address in network for network in networks)


def _contains_address(network: Network, address: Address) -> bool:
    return network.contains(address.address)


def _contains_network(network: Network, subnet: Network) -> bool:
    return network.bits <= subnet.bits and network.contains(subnet.address)


def _mask(network: Network) -> Network:
    spare = network.address.max_prefixlen - network.bits
    return Network(type(network.address)(int(network.address) >> spare << spare), network.bits)


def _contains_address_cost(arguments: tuple[Any, ...], _result: Any) -> int:
    network, content = arguments
    return ceiling(2 * network.size * 0.1) + (ceiling(size_of(content) * 0.1) if isinstance(content, str) else 0)


def _contains_network_cost(arguments: tuple[Any, ...], _result: Any) -> int:
    return _contains_address_cost(arguments, _result) + ceiling(arguments[0].size * 0.1) + 1


_PARSING = per_size(0.1, 0)

OVERLOADS = (
    Overload("string_to_ip", "ip(string) -> IP", parse_address, _PARSING),
    Overload("cidr_ip", "CIDR.ip() -> IP", lambda network: Address(network.address)),
    Overload("ip_to_string", "string(IP) -> string", str),
    Overload("cidr_to_string", "string(CIDR) -> string", str),
    Overload("is_ip", "isIP(string) -> bool", _is_address, _PARSING),
    Overload("ip_is_canonical", "ip::isCanonical(string) -> bool", _is_canonical, per_size(0.2, 0)),
    Overload("ip_family", "IP.family() -> int", lambda address: address.address.version),
    Overload("ip_is_unspecified", "IP.isUnspecified() -> bool", lambda address: address.address.is_unspecified),
    Overload("ip_is_loopback", "IP.isLoopback() -> bool", lambda address: address.address.is_loopback),
    Overload(
        "ip_is_link_local_multicast",
        "IP.isLinkLocalMulticast() -> bool",
        lambda address: _within(address, _LINK_LOCAL_MULTICAST),
    ),
    Overload(
        "ip_is_link_local_unicast", "IP.isLinkLocalUnicast() -> bool", lambda address: _within(address, _LINK_LOCAL)
    ),
    Overload("ip_is_global_unicast", "IP.isGlobalUnicast() -> bool", _is_global_unicast),
    Overload("string_to_cidr", "cidr(string) -> CIDR", parse_network, _PARSING),
    Overload("is_cidr", "isCIDR(string) -> bool", _is_network, _PARSING),
    Overload("cidr_contains_ip_ip", "CIDR.containsIP(IP) -> bool", _contains_address, _contains_address_cost),
    Overload(
        "cidr_contains_ip_string",
        "CIDR.containsIP(string) -> bool",
        lambda network, text: _contains_address(network, parse_address(text)),
        _contains_address_cost,
    ),
    Overload("cidr_contains_cidr", "CIDR.containsCIDR(CIDR) -> bool", _contains_network, _contains_network_cost),
    Overload(
        "cidr_contains_cidr_string",
        "CIDR.containsCIDR(string) -> bool",
        lambda network, text: _contains_network(network, parse_network(text)),
        _contains_network_cost,
    ),
    Overload("cidr_masked", "CIDR.masked() -> CIDR", _mask),
    Overload("cidr_prefix_length", "CIDR.prefixLength() -> int", lambda network: network.bits),
)
