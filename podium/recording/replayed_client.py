"""The clock, the random source, the stores' state and the API client of a replay: each returns the recorded values."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar

from podium.binder import ApiClient
from podium.client.dispatcher import Compose, Dispatcher
from podium.lib.clock import Clock
from podium.objects.core import Pod, PodCondition
from podium.objects.pod_groups import PodGroup
from podium.objects.resource_types import PODS, ObjectT, ResourceType
from podium.recording.entries import Entry, EntryRandom, item_of

T = TypeVar("T")


class AnswerCall(Protocol):
    """Waits for the recorded answer to the next call."""

    def __call__(self, read: Callable[[Entry], T], compose: Compose | None = None) -> Awaitable[T]:
        """Return what `read` takes from the answer."""


class ReplayedClock:
    """Implements `podium.lib.clock.Clock` with two functions."""

    def __init__(self, now: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self.now, self.monotonic = now, monotonic


class ReplayedRandom(EntryRandom):
    """Returns the recorded random numbers."""

    def __init__(self, draw: Callable[[], Any]) -> None:
        super().__init__(0)
        self._draw_next = draw
        self._peeked: list[Any] = []

    def _draw(self) -> Any:
        return self._peeked.pop() if self._peeked else self._draw_next()

    def _randbelow(self, n: int) -> int:
        # Older recordings drew fractions for integers, see `_RecordedRandom`.
        number = self._draw()
        self._peeked.append(number)
        name = "_randbelow_without_getrandbits" if isinstance(number, float) else "_randbelow_with_getrandbits"
        return int(getattr(self, name)(n))

    def random(self) -> float:
        """Return the next recorded number in [0, 1)."""
        return float(self._draw())

    def bits(self, k: int) -> int:
        """Return the next recorded integer."""
        return int(self._draw())


class ReplayedStores:
    """Implements `podium.daemon.boundary.StoresState` with recorded values."""

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read

    @property
    def changes(self) -> int:
        """The recorded count of replacements."""
        return int(self._read() or 0)

    @property
    def is_consistent(self) -> bool:
        """The recorded state."""
        return bool(self._read())

    def wait_s(self) -> float:
        """Return the recorded wait."""
        return float(self._read() or 0.0)


def _value(entry: Entry) -> Any:
    return entry[3]


class ReplayedClient(ApiClient):
    """Answers every call as the API server did. Ignores the arguments: calls are matched by their order."""

    def __init__(self, answer: AnswerCall, dispatcher: Dispatcher, clock: Clock) -> None:
        super().__init__(dispatcher, clock)
        self._answer = answer

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Replay `ApiClient.bind`."""
        await self._answer(_value)

    async def is_bound(self, pod: Pod, node_name: str) -> bool:
        """Replay `ApiClient.is_bound`."""
        return await self._answer(_value)

    async def read_failure(self, pod: Pod) -> str:
        """Replay `ApiClient.read_failure`."""
        return await self._answer(_value)

    async def patch_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> bool:
        """Replay `ApiClient.patch_status`."""
        return await self._answer(_value)

    async def send_status(self, item: Pod | PodGroup, compose: Compose, resource: ResourceType[Any] = PODS) -> None:
        """Replay `ApiClient.send_status`."""
        await self._answer(_value, compose)

    async def remove_condition(self, pod: Pod, kind: str) -> None:
        """Replay `ApiClient.remove_condition`."""
        await self._answer(_value)

    async def delete_pod(self, pod: Pod) -> bool:
        """Replay `ApiClient.delete_pod`."""
        return await self._answer(_value)

    async def evict_pod(self, pod: Pod) -> bool:
        """Replay `ApiClient.evict_pod`."""
        return await self._answer(_value)

    async def patch(
        self, resource: ResourceType[ObjectT], item: ObjectT, change: Mapping[str, Any], subresource: str = ""
    ) -> ObjectT:
        """Replay `ApiClient.patch`."""
        return await self._answer(item_of)

    async def create(self, resource: ResourceType[ObjectT], item: ObjectT, manifest: Mapping[str, Any]) -> ObjectT:
        """Replay `ApiClient.create`."""
        return await self._answer(item_of)

    async def read(self, resource: ResourceType[ObjectT], item: ObjectT) -> ObjectT:
        """Replay `ApiClient.read`."""
        return await self._answer(item_of)

    async def delete(self, resource: ResourceType[ObjectT], item: ObjectT) -> None:
        """Replay `ApiClient.delete`."""
        await self._answer(_value)

    async def merge_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        """Replay `ApiClient.merge_status`."""
        await self._answer(_value)
