"""What is replayed in place of the clock, the random source, the stores and the API client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from podium.binder import ApiClient
from podium.client.dispatcher import Compose, Dispatcher
from podium.lib.clock import Clock
from podium.objects.core import Pod, PodCondition
from podium.objects.pod_groups import PodGroup
from podium.objects.resource_types import PODS, ObjectT, ResourceType
from podium.recording import tape

T = TypeVar("T")


class RecordedCalls(Protocol):
    """The recorded answers to the calls of the API client."""

    async def __call__(self, read: Callable[[tape.Entry], T], compose: Compose | None = None) -> T:
        """Wait for the answer to the next call; `read` takes it from its entry."""


class PlayedClock:
    """A clock whose readings are those of two functions."""

    def __init__(self, now: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self.now, self.monotonic = now, monotonic


class PlayedRandom(tape.EntryRandom):
    """The recorded random numbers."""

    def __init__(self, draw: Callable[[], Any]) -> None:
        super().__init__(0)
        self._draw = draw

    def random(self) -> float:
        """The next recorded number."""
        return float(self._draw())

    def bits(self, k: int) -> int:
        """The next recorded number."""
        del k
        return int(self._draw())


class PlayedStores:
    """Implements `podium.daemon.boundary.StoresState`."""

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read

    @property
    def changes(self) -> int:
        """The recorded count."""
        return int(self._read() or 0)

    @property
    def is_consistent(self) -> bool:
        """The recorded state."""
        return bool(self._read())

    def wait_s(self) -> float:
        """The recorded time."""
        return float(self._read() or 0.0)


def _value(entry: tape.Entry) -> Any:
    return entry[3]


class PlayedClient(ApiClient):
    """Answers as the API server did."""

    def __init__(self, call: RecordedCalls, dispatcher: Dispatcher, clock: Clock) -> None:
        super().__init__(dispatcher, clock)
        self._call = call

    async def bind(self, pod: Pod, node_name: str) -> None:
        """As it was recorded."""
        await self._call(_value)

    async def is_bound(self, pod: Pod, node_name: str) -> bool:
        """As it was recorded."""
        return await self._call(_value)

    async def read_failure(self, pod: Pod) -> str:
        """As it was recorded."""
        return await self._call(_value)

    async def patch_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> bool:
        """As it was recorded."""
        return await self._call(_value)

    async def send_status(self, item: Pod | PodGroup, compose: Compose, resource: ResourceType[Any] = PODS) -> None:
        """As it was recorded."""
        await self._call(_value, compose)

    async def remove_condition(self, pod: Pod, kind: str) -> None:
        """As it was recorded."""
        await self._call(_value)

    async def delete_pod(self, pod: Pod) -> bool:
        """As it was recorded."""
        return await self._call(_value)

    async def evict_pod(self, pod: Pod) -> bool:
        """As it was recorded."""
        return await self._call(_value)

    async def patch(
        self, resource: ResourceType[ObjectT], item: ObjectT, change: Mapping[str, Any], subresource: str = ""
    ) -> ObjectT:
        """As it was recorded."""
        return await self._call(tape.item_of)

    async def create(self, resource: ResourceType[ObjectT], item: ObjectT, manifest: Mapping[str, Any]) -> ObjectT:
        """As it was recorded."""
        return await self._call(tape.item_of)

    async def read(self, resource: ResourceType[ObjectT], item: ObjectT) -> ObjectT:
        """As it was recorded."""
        return await self._call(tape.item_of)

    async def delete(self, resource: ResourceType[ObjectT], item: ObjectT) -> None:
        """As it was recorded."""
        await self._call(_value)

    async def merge_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        """As it was recorded."""
        await self._call(_value)
