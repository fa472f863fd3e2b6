"""Identifies the questions of pods: claims with equal specs have the same answer on a node.

Owns nothing but the questions asked last; the answers are kept with the pools of the nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from podium.devices.requests import GetClass
from podium.objects.claims import ResourceClaim
from podium.objects.devices import DeviceClass

_QUESTIONS_MAX: Final = 64


class Question:
    """Claims of one kind, with the classes that they name. Compared by identity."""

    __slots__ = ("classes",)

    def __init__(self, classes: dict[str, DeviceClass | None]) -> None:
        self.classes = classes


class Questions:
    """The kinds of claims that pods asked for last."""

    def __init__(self) -> None:
        self._encoder = msgspec.msgpack.Encoder()
        self._cache: dict[bytes, Question] = {}

    def of(self, claims: Sequence[ResourceClaim], class_of: GetClass, steps_max: int) -> Question:
        """Return the question of these claims, the same one for claims with equal specs while the classes are the same.

        Args:
            steps_max: how long the search may be.
        """
        key = self._encoder.encode([steps_max, *(claim.spec.devices for claim in claims)])
        entry = self._cache.get(key)
        if entry is not None and all(class_of(name) is device_class for name, device_class in entry.classes.items()):
            return entry
        if len(self._cache) >= _QUESTIONS_MAX:
            self._cache.clear()
        requests = [request for claim in claims for request in claim.spec.devices.requests]
        names = [request.exactly.device_class_name for request in requests if request.exactly is not None]
        names += [alternative.device_class_name for request in requests for alternative in request.first_available]
        question = self._cache[key] = Question({name: class_of(name) for name in names})
        return question
