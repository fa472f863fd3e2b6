"""The search for devices: depth first, in a fixed order; the first full solution wins.

The order decides what users get: claims, requests and alternatives in the order of their specs, devices in that of
pools, slices and devices. Devices of one request are chosen as combinations: the next one comes after the previous one.
Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, v0.36.2.
Differs: a search ends after a number of steps, of which a long selector takes many; upstream's ends after a time.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Generator, Sequence
from itertools import islice
from types import GeneratorType
from typing import Any, Final, TypeAlias

from podium.devices.choices import Choices
from podium.devices.interruptible import Interruptible, Work
from podium.devices.pools import Pool
from podium.devices.requests import RESULTS_MAX, Candidate, ClaimData, RequestData, RequestReader


class Outcome(enum.Enum):
    """The result of a part of the search."""

    FOUND = enum.auto()
    DEAD_END = enum.auto()
    TOO_MANY = enum.auto()
    """A claim would get more devices than it can hold: other devices of the same request cannot help."""


_Part: TypeAlias = "Generator[_Part | Work | None, Outcome, Outcome]"
"""Yields the part that is to be done first, or as an `Interruptible` does."""
_Position: TypeAlias = tuple[int, int]
"""A device, by the numbers of its pool and of the device in the pool."""
_START: Final = (0, 0)


class Search:
    """Searches devices for the claims of a pod on one node.

    Args:
        pools: their devices may be chosen, in this order.
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
        accepts: Callable[[], bool] = lambda: True,
    ) -> None:
        self._accepts = accepts
        self.selected: dict[tuple[int, int], int] = {}
        self._claims = claims
        self._pools = pools
        self._reader = reader
        self._choices = choices

    def run(self) -> Interruptible[bool]:
        """Return True if there is a solution, which is then in the choices. Yields where it can be interrupted.

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
            if type(part) is not GeneratorType:
                yield part
                continue
            stack.append(part)
            if self._reader.budget.take():
                yield None
        return outcome is Outcome.FOUND

    def _request(self, claim: int, request: int) -> _Part:
        """Allocate a request and everything after it."""
        if claim >= len(self._claims):
            return Outcome.FOUND if self._accepts() else Outcome.DEAD_END
        requests = self._claims[claim].requests
        if request >= len(requests):
            outcome = yield self._request(claim + 1, 0)
            # As upstream: between claims it is a dead end like any other, as each claim has its own limit.
            return Outcome.DEAD_END if outcome is Outcome.TOO_MANY else outcome
        were_all_too_many = True
        for index, data in enumerate(requests[request]):
            self.selected[claim, request] = index
            outcome = yield self._devices(claim, request, data, 0, _START)
            if outcome is Outcome.FOUND:
                return outcome
            # Other alternatives may need fewer devices.
            were_all_too_many = were_all_too_many and outcome is Outcome.TOO_MANY
        return Outcome.TOO_MANY if were_all_too_many else Outcome.DEAD_END

    def _devices(self, claim: int, request: int, data: RequestData, count: int, start: _Position) -> _Part:
        """Allocate the devices of a request from the one at index `count` on, and everything after the request.

        Args: `start` is the first device to try.
        """
        if data.devices is not None and not data.devices:
            return Outcome.DEAD_END
        if count >= data.count:
            return (yield self._request(claim, request + 1))
        choices = self._choices
        if len(choices.by_claim[claim]) + data.count - count > RESULTS_MAX:
            return Outcome.TOO_MANY
        if data.devices is not None:
            return (yield from self._with_device(claim, request, data, count, data.devices[count], _START))
        take_step = self._reader.budget.take
        # After the device chosen last: the order of a request's devices does not matter, so only combinations are
        # tried.
        for index in range(start[0], len(self._pools)):
            pool = self._pools[index]
            first = start[1] if index == start[0] else 0
            for number, device in enumerate(islice(pool.devices, first, None), first):
                if take_step():
                    yield None
                # Upstream checks this first, so an expression that fails on a device goes unnoticed while that is
                # taken.
                if choices.is_in_use(claim, data, device.id):
                    continue  # Such a device is not shown to selectors.
                is_selectable = self._reader.is_selectable_soon(data, device)
                if is_selectable is None:
                    is_selectable = yield from self._reader.is_selectable(data, device)
                if is_selectable and choices.has_capacity(data, device):
                    candidate, following = Candidate(device, pool), (index, number + 1)
                    outcome = yield from self._with_device(claim, request, data, count, candidate, following)
                    if outcome is not Outcome.DEAD_END:
                        return outcome
        return Outcome.DEAD_END

    def _with_device(
        self, claim: int, request: int, data: RequestData, count: int, candidate: Candidate, following: _Position
    ) -> _Part:
        """Search as `_devices`, with this device; the search for the next one starts after it."""
        yield from self._choices.prepare(claim, data, candidate)
        if not self._choices.take(claim, data, candidate):
            return Outcome.DEAD_END
        outcome = yield self._devices(claim, request, data, count + 1, following)
        if outcome is not Outcome.FOUND:
            self._choices.undo(claim)
        return outcome
