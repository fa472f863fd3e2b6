"""On which NUMA node each container with exclusive resources runs, as an agent has encoded it into the topology.

Source: numaplacement v0.1.0.
Differs: bytes that are not of the alphabet make the placement unknown; upstream panics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Final

from podium.plugins.contrib.node_resource_topology_match.fingerprints import xxh64
from podium.plugins.contrib.node_resource_topology_match.objects import NodeResourceTopology, attribute
from podium.plugins.contrib.node_resource_topology_match.topology import (
    POLICY_ATTRIBUTE,
    SINGLE_NUMA_NODE,
    numa_id_of,
)

_METADATA: Final = "topology.node.k8s.io/numaplacement-metadata"
_VECTOR: Final = "topology.node.k8s.io/numaplacement-vector"
_VERSION: Final = "npv0v001"
_ENCODING: Final = "leb89"
_ALPHABET: Final = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"&<>\\')
_ENDS: Final = 64
_BASE: Final = 25

ContainerKey = tuple[str, str, str]
"""Namespace, pod, container."""


def placement_of(nrt: NodeResourceTopology, containers: Iterable[ContainerKey]) -> Mapping[ContainerKey, int]:
    """Return the number of the NUMA node of each container; empty if the topology does not say, or contradicts itself.

    Args:
        containers: those on the node that have exclusive resources.
    """
    metadata = _metadata_of(nrt)
    by_hash = [key for _, key in sorted((xxh64("\0".join(key).encode()), key) for key in containers)]
    if metadata is None or len(by_hash) != metadata["cc"]:
        return {}
    busiest, count = metadata["bn"], metadata["nn"]
    placement: dict[ContainerKey, int] = {}
    vectors = [(numa_id_of(zone), vector) for zone in nrt.zones if (vector := attribute(zone.attributes, _VECTOR))]
    for numa_id, vector in vectors:
        positions = _positions(vector)
        if numa_id is None or numa_id >= count or numa_id == busiest or positions is None:
            return {}
        for position in positions:
            if position >= len(by_hash) or by_hash[position] in placement:
                return {}
            placement[by_hash[position]] = numa_id
    if busiest >= count or len(vectors) >= count:
        return {}
    return {**dict.fromkeys(by_hash, busiest), **placement}


def _positions(vector: str) -> list[int] | None:
    deltas = decode_vector(vector)
    return None if deltas is None else list(accumulate(deltas))


def _metadata_of(nrt: NodeResourceTopology) -> dict[str, int] | None:
    """Return the counts `cc` and `nn` and the busiest NUMA node `bn`; None if there are none that can be used."""
    text = attribute(nrt.attributes, _METADATA)
    if text is None or attribute(nrt.attributes, POLICY_ATTRIBUTE) != SINGLE_NUMA_NODE:
        return None
    version, *parts = text.split("::")
    fields = dict(part.partition("=")[::2] for part in parts)
    numbers = {name: int(fields[name]) for name in ("cc", "nn", "bn") if _is_number(fields.get(name, ""))}
    if version != _VERSION or fields.get("ve") != _ENCODING or len(numbers) < 3:
        return None
    return numbers


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def decode_vector(vector: str) -> list[int] | None:
    """Return the numbers in a vector; None if it is malformed."""
    numbers: list[int] = []
    high, has_high = 0, False
    for letter in vector:
        index = _ALPHABET.find(letter)
        if index < 0:
            return None
        if index >= _ENDS:
            high, has_high = high * _BASE + index - _ENDS, True
        else:
            numbers.append(_ENDS + _ENDS * high + index if has_high else index)
            high, has_high = 0, False
    return None if has_high else numbers
