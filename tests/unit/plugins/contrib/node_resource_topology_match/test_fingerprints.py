"""The hash and the fingerprint, by values that other implementations give."""

from __future__ import annotations

import pytest

from podium.plugins.contrib.node_resource_topology_match.fingerprints import fingerprint, xxh64


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_hashes_are_those_of_xxhash(content: bytes, expected: int) -> None:
    assert xxh64(content) == expected


def test_a_fingerprint_does_not_depend_on_the_order() -> None:
    pods = [("ns1", "n1"), ("ns1", "n2"), ("ns2", "n1"), ("ns3", "n1"), ("ns3", "n2")]
    assert fingerprint(pods) == fingerprint(reversed(pods)) == "pfp0v001b92008c14168b3a6"
