"""Identifies the questions of pods: claims with equal specs have the same answer on a node.

Owns the questions asked last, and of a few which answers are valid; the answers are kept with the pools of the nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from podium.devices.allocated import AllocatedDevices
from podium.devices.inventory import Inventory
from podium.devices.requests import GetClass
from podium.devices.valid_answers import ValidAnswers
from podium.objects.claims import ResourceClaim
from podium.objects.devices import DeviceClass

_QUESTIONS_MAX: Final = 64
_KEPT_BY_ROW_MAX: Final = 4
"""Of so many questions the valid answers are kept by row, which takes about a hundred bytes for each node."""


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
        self._valid_answers: dict[Question, ValidAnswers] = {}

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

    def valid_answers(self, question: Question, inventory: Inventory, devices_in_use: AllocatedDevices) -> ValidAnswers:
        """Return the answers to the question that are still valid, of the few questions asked last."""
        answers = self._valid_answers.get(question)
        if answers is None or not answers.is_about(inventory, devices_in_use):
            if len(self._valid_answers) >= _KEPT_BY_ROW_MAX:
                self._valid_answers.clear()
            answers = self._valid_answers[question] = ValidAnswers(question, inventory, devices_in_use)
        return answers
