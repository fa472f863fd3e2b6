"""The fingerprint of the pods on a node, by which agent and scheduler see that they talk about the same pods.

Source: podfingerprint v0.2.2; the XXH64 algorithm (xxHash 0.8).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

_MASK: Final = (1 << 64) - 1
_PRIME_1: Final = 0x9E3779B185EBCA87
_PRIME_2: Final = 0xC2B2AE3D27D4EB4F
_PRIME_3: Final = 0x165667B19E3779F9
_PRIME_4: Final = 0x85EBCA77C2B2AE63
_PRIME_5: Final = 0x27D4EB2F165667C5
_STRIPE_BYTES: Final = 32
_PREFIX: Final = "pfp0v001"


def fingerprint(pods: Iterable[tuple[str, str]]) -> str:
    """Return the fingerprint of pods, given by namespace and name, in any order."""
    hashes = sorted(xxh64(name.encode(), xxh64(namespace.encode())) for namespace, name in pods)
    content = b"".join(value.to_bytes(8, "little") for value in hashes)
    return f"{_PREFIX}{xxh64(content):016x}"


def xxh64(content: bytes, seed: int = 0) -> int:
    """Return the XXH64 hash of the content."""
    length, position = len(content), 0
    if length >= _STRIPE_BYTES:
        lanes = [
            (seed + _PRIME_1 + _PRIME_2) & _MASK,
            (seed + _PRIME_2) & _MASK,
            seed,
            (seed - _PRIME_1) & _MASK,
        ]
        while position + _STRIPE_BYTES <= length:
            for index, word in enumerate(_words(content[position : position + _STRIPE_BYTES])):
                lanes[index] = _round(lanes[index], word)
            position += _STRIPE_BYTES
        value = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            value = ((value ^ _round(0, lane)) * _PRIME_1 + _PRIME_4) & _MASK
    else:
        value = (seed + _PRIME_5) & _MASK
    return _mix_tail((value + length) & _MASK, content[position:])


def _words(stripe: bytes) -> Iterator[int]:
    for start in range(0, len(stripe), 8):
        yield int.from_bytes(stripe[start : start + 8], "little")


def _mix_tail(value: int, tail: bytes) -> int:
    """Mix the last bytes, fewer than 32, into the value."""
    while len(tail) >= 8:
        value ^= _round(0, int.from_bytes(tail[:8], "little"))
        value = (_rotate(value, 27) * _PRIME_1 + _PRIME_4) & _MASK
        tail = tail[8:]
    if len(tail) >= 4:
        value ^= int.from_bytes(tail[:4], "little") * _PRIME_1 & _MASK
        value = (_rotate(value, 23) * _PRIME_2 + _PRIME_3) & _MASK
        tail = tail[4:]
    for byte in tail:
        value ^= byte * _PRIME_5 & _MASK
        value = _rotate(value, 11) * _PRIME_1 & _MASK
    for shift, prime in ((33, _PRIME_2), (29, _PRIME_3)):
        value = (value ^ value >> shift) * prime & _MASK
    return value ^ value >> 32


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * _PRIME_2) & _MASK, 31) * _PRIME_1 & _MASK


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK
