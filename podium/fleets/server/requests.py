"""Reads requests, whichever interface they come by.

Owns the limits of a request, the options' names, and the workloads that were asked about before. A request with an
option that is not known is refused: it would get the answer to another question.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import anyio.to_thread

from podium.config import parse_duration
from podium.engine.errors import ClusterError
from podium.engine.files import read_objects
from podium.engine.object_files import unique
from podium.fleets.ordering import Order, Prices
from podium.fleets.search import FleetQuestion
from podium.fleets.workload import Workload, read_workload

PODS_MAX: Final = 5_000
"""How many pods a workload may have: more would take longer than any caller waits."""
BODY_BYTES_MAX: Final = 1 << 20
TIMEOUT_S_MAX: Final = 30.0

_KEPT_MAX: Final = 256
_KEPT_BYTES_MAX: Final = 1 << 16
_OPTIONS: Final = ("order", "most", "clusters", "timeout")
_NAME: Final = "the request"


class BadRequestError(Exception):
    """The request cannot be answered; the text says why."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request.

    Attributes:
        clusters: ask no others; None for all.
        timeout_s: None unless it is given.
    """

    question: FleetQuestion
    clusters: Collection[str] | None
    timeout_s: float | None


class RequestReader:
    """Reads requests.

    Args:
        prices: for the cheapest.
    """

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._kept: OrderedDict[bytes, Workload] = OrderedDict()

    async def read(self, content: bytes, options: Mapping[str, str]) -> Request:
        """Return the request.

        Args:
            content: the workload, YAML or JSON.

        Raises:
            BadRequestError: the workload cannot be read, or an option is not known.
        """
        if unknown := sorted(options.keys() - set(_OPTIONS)):
            raise BadRequestError(f"{unknown[0]}: there is no such option; known are {', '.join(_OPTIONS)}")
        try:
            order = Order(options.get("order", Order.EMPTIEST.value))
        except ValueError:
            names = ", ".join(item.value for item in Order)
            raise BadRequestError(f"order: expected one of {names}, got {options['order']!r:.40}") from None
        if order is Order.CHEAPEST and not self._prices:
            raise BadRequestError("order: no prices are known here, so that none is the cheapest")
        clusters = (
            frozenset(filter(None, map(str.strip, options["clusters"].split(",")))) if "clusters" in options else None
        )
        question = FleetQuestion(await self._workload(content), order, self._prices, _most(options.get("most")))
        return Request(question, clusters, _timeout_s(options.get("timeout")))

    async def _workload(self, content: bytes) -> Workload:
        workload = self._kept.get(content)
        if workload is not None:
            self._kept.move_to_end(content)
            return workload
        try:
            # In a thread: YAML of a stranger may take seconds.
            workload = await anyio.to_thread.run_sync(_read, content)
        except ClusterError as error:
            raise BadRequestError(str(error)) from error
        if len(content) <= _KEPT_BYTES_MAX:
            self._kept[content] = workload
            if len(self._kept) > _KEPT_MAX:
                self._kept.popitem(last=False)
        return workload


def _read(content: bytes) -> Workload:
    return read_workload(unique(read_objects(content, _NAME), lambda _: None), PODS_MAX)


def _most(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 9 or not int(text):
        raise BadRequestError(f"most: expected a number from 1 up, got {text!r:.40}")
    return int(text)


def _timeout_s(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise BadRequestError(f"timeout: {error}") from error
    if not 0 < seconds <= TIMEOUT_S_MAX:
        raise BadRequestError(f"timeout: expected a duration up to {TIMEOUT_S_MAX:.0f}s, got {text!r:.40}")
    return seconds
