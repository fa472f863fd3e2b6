"""The search for devices: depth first, in a fixed order; the first full solution wins.

The order decides what users get: claims, requests and alternatives in the order of their specs, devices in that of
pools, slices and devices. Devices of one request are chosen as combinations: the next one comes after the previous one.
Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, v0.36.2.
Differs: a search ends after a number of steps; upstream's ends after a time.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Generator, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias

from podium.devices.choices import Choices
from podium.devices.errors import StepsExceededError
from podium.devices.inventory import SliceDevice
from podium.devices.pools import Pool
from podium.devices.requests import DEVICES_PER_TURN, RESULTS_MAX, Candidate, ClaimData, RequestData, RequestReader


class Outcome(enum.Enum):
    """What became of a part of the search."""

    FOUND = enum.auto()
    DEAD_END = enum.auto()
    TOO_MANY = enum.auto()
    """A claim would get more devices than it can hold: other devices of the same request cannot help."""


_Part: TypeAlias = "Generator[_Part | None, Outcome, Outcome]"
"""Yields the part that is to be done first, or None where the search can be interrupted."""
_Position: TypeAlias = tuple[int, int]
"""A device, by the numbers of its pool and of the device in the pool."""
_START: Final = (0, 0)


class Search:
    """Searches devices for the claims of a pod on one node.

    Args:
        pools: their devices may be chosen, in this order.
        steps_max: how many devices may be looked at; 0 means any number.
        accepts: called with each full solution in turn, which is in the choices then; the first accepted one wins.

    Attributes:
        selected: which alternative was taken, by index of claim and request.
    """

    def __init__(
        self,
        claims: Sequence[ClaimData],
        pools: Sequence[Pool],
        reader: RequestReader,
        choices: Choices,
        steps_max: int,
        accepts: Callable[[], bool] = lambda: True,
    ) -> None:
        self._accepts = accepts
        self.selected: dict[tuple[int, int], int] = {}
        self._claims = claims
        self._pools = pools
        self._reader = reader
        self._choices = choices
        self._steps_max = steps_max
        self._steps = 0

    def run(self) -> Generator[None, None, bool]:
        """Whether there is a solution; it is in the choices then. Yields where the search can be interrupted.

        Raises:
            AllocationError, StepsExceededError.
        """
        # The parts call each other as deep as there are devices to choose: more than Python's stack may allow.
        stack: list[Generator[Any, Any, Outcome]] = [self._request(0, 0)]
        outcome: Outcome | None = None
        while stack:
            try:
                part = stack[-1].send(outcome)
            except StopIteration as end:
                stack.pop()
                outcome = end.value
                continue
            outcome = None
            if part is None:
                yield
            else:
                stack.append(part)
        return outcome is Outcome.FOUND

    def _request(self, claim: int, request: int) -> _Part:
        """Allocate a request and everything after it."""
        if claim >= len(self._claims):
            return Outcome.FOUND if self._accepts() else Outcome.DEAD_END
        requests = self._claims[claim].requests
        if request >= len(requests):
            outcome = yield self._request(claim + 1, 0)
            return Outcome.DEAD_END if outcome is Outcome.TOO_MANY else outcome
        were_all_too_many = True
        for index, data in enumerate(requests[request]):
            self.selected[claim, request] = index
            outcome = yield self._devices(claim, request, data, 0, _START)
            if outcome is Outcome.FOUND:
                return outcome
            were_all_too_many = were_all_too_many and outcome is Outcome.TOO_MANY
        return Outcome.TOO_MANY if were_all_too_many else Outcome.DEAD_END

    def _devices(self, claim: int, request: int, data: RequestData, taken: int, start: _Position) -> _Part:
        """Allocate the devices of a request from the one at index `taken` on, and everything after the request.

        Args: `start` is the first device to try.
        """
        self._step()
        if data.devices is not None and not data.devices:
            return Outcome.DEAD_END
        if taken >= data.count:
            return (yield self._request(claim, request + 1))
        choices = self._choices
        if len(choices.by_claim[claim]) + data.count - taken > RESULTS_MAX:
            return Outcome.TOO_MANY
        if data.devices is not None:
            return (yield self._given_device(claim, request, data, taken, data.devices[taken]))
        for index in range(start[0], len(self._pools)):
            pool = self._pools[index]
            first = start[1] if index == start[0] else 0
            for number, device in enumerate(islice(pool.devices, first, None), first):
                self._step()
                if not self._steps % DEVICES_PER_TURN:
                    yield None
                if not self._is_usable(claim, data, device):
                    continue
                candidate = Candidate(device, pool)
                yield from choices.prepare(claim, data, candidate)
                if not choices.take(claim, data, candidate):
                    continue
                outcome = yield self._devices(claim, request, data, taken + 1, (index, number + 1))
                if outcome is Outcome.FOUND:
                    return outcome
                choices.undo(claim)
                if outcome is Outcome.TOO_MANY:
                    return outcome
        return Outcome.DEAD_END

    def _given_device(self, claim: int, request: int, data: RequestData, taken: int, candidate: Candidate) -> _Part:
        """As `_devices`, with this device."""
        yield from self._choices.prepare(claim, data, candidate)
        if not self._choices.take(claim, data, candidate):
            return Outcome.DEAD_END
        outcome = yield self._devices(claim, request, data, taken + 1, _START)
        if outcome is not Outcome.FOUND:
            self._choices.undo(claim)
        return outcome

    def _is_usable(self, claim: int, data: RequestData, device: SliceDevice) -> bool:
        """Whether it is worth trying to take the device. A device in use is not shown to selectors."""
        return (
            not self._choices.is_in_use(claim, data, device.id)
            and self._reader.is_selectable(data, device)
            and self._choices.has_room(data, device)
        )

    def _step(self) -> None:
        self._steps += 1
        if self._steps_max and self._steps > self._steps_max:
            raise StepsExceededError
