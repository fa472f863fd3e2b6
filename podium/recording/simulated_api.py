"""A small API server in memory, for a scheduler that decides otherwise than the recorded one.

Owns what the watches show. Bindings succeed, victims go, both after their typical times. What came from outside is
taken in as recorded, except what a pod owes to the recorded scheduler: its node, and its nomination.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from podium.binder import ApiClient
from podium.client.dispatcher import Compose, Dispatcher
from podium.client.informer import Informer
from podium.lib.clock import Clock
from podium.objects.api_errors import NotFound
from podium.objects.core import Node, Pod, PodCondition, PodStatus
from podium.objects.pod_groups import PodGroup
from podium.objects.resource_types import NODES, PODS, KubeObject, ObjectT, ResourceType
from podium.recording import tape
from podium.recording.outside import Outside

_PENDING = ("", "Pending")
_DELETED_AT = "1970-01-01T00:00:00Z"


@dataclass(slots=True)
class PodStory:
    """What has become of one pod that podium was to place.

    Attributes:
        bound_s: when its binding was seen; None if it was not bound.
        is_gone: whether it was deleted, or has ended.
    """

    key: str
    seen_s: float
    node: str = ""
    bound_s: float | None = None
    is_gone: bool = False


class SimulatedApi:
    """The objects, and what has become of the pods.

    Args:
        now: the virtual time.
        scheduler_names: of the profiles, whose pods podium places.
    """

    def __init__(self, outside: Outside, now: Callable[[], float], scheduler_names: frozenset[str]) -> None:
        self.stories: dict[str, PodStory] = {}
        self.preemptions = 0
        self._outside, self._now, self._names = outside, now, scheduler_names
        self._informers: dict[str, Informer[Any]] = {}
        self._evicted: set[str] = set()

    def watched(self, informer: Informer[Any]) -> None:
        """Keep the informer, which shows changes to podium."""
        self._informers[informer.resource.path] = informer

    @property
    def nodes(self) -> list[Node]:
        """The nodes as they are now."""
        return list(cast(Informer[Node], self._informers[NODES.path]).list())

    @property
    def pods(self) -> list[Pod]:
        """The pods as they are now."""
        return list(self._pods.list())

    @property
    def _pods(self) -> Informer[Pod]:
        return self._informers[PODS.path]

    # ------------------------------------------------------------ from outside

    def take_in(self, entry: tape.Entry) -> None:
        """Show what a watch has brought."""
        informer = self._informers.get(entry[1])
        if informer is None:
            return
        if entry[0] == tape.REMOVE:
            if informer.get(entry[2]) is not None:
                self._remove(informer, entry[2])
            return
        item = tape.item_of(entry)
        if isinstance(item, Pod):
            self._take_in_pod(item)
        else:
            informer.set(item)

    def _take_in_pod(self, pod: Pod) -> None:
        if pod.uid in self._evicted:
            return
        known = self._pods.get(pod.key)
        if known is None or known.uid != pod.uid:
            if pod.uid in self._outside.placed:
                pod = _as_pending(pod)
            if not pod.node_name and pod.spec.scheduler_name in self._names and not pod.has_ended:
                self.stories[pod.uid] = PodStory(pod.key, self._now())
            self._pods.set(pod)
            return
        story = self.stories.get(pod.uid)
        if story is None:
            self._pods.set(pod)
            return
        shown = self._with_own_node(pod, known)
        if shown.has_ended:
            story.is_gone = True
        if shown.node_name and not known.node_name:
            # Somebody else has bound it.
            del self.stories[pod.uid]
        if replace(shown, metadata=known.metadata) != known or _told(shown) != _told(known):
            self._pods.set(shown)

    def _with_own_node(self, pod: Pod, known: Pod) -> Pod:
        """The recorded state, with the node and the nomination that the pod has here."""
        is_by_podium = pod.uid in self._outside.placed
        node_name = known.node_name or ("" if is_by_podium else pod.node_name)
        status = pod.status
        if not node_name and not pod.has_ended:
            keeps = known.status if status.phase not in _PENDING or pod.node_name else status
            status = replace(
                keeps, conditions=known.status.conditions, nominated_node_name=known.status.nominated_node_name
            )
        else:
            status = replace(status, nominated_node_name=known.status.nominated_node_name)
        return Pod(metadata=pod.metadata, spec=pod.spec, status=status, node_name=node_name)

    def _remove(self, informer: Informer[Any], key: str) -> None:
        gone = informer.get(key)
        story = self.stories.get(gone.uid) if isinstance(gone, Pod) else None
        if story is not None:
            story.is_gone = True
        informer.remove(key)

    # ------------------------------------------------------------ by podium

    def known(self, pod: Pod) -> Pod:
        """The pod as it is now. Raises: NotFound."""
        known = self._pods.get(pod.key)
        if known is None or known.uid != pod.uid:
            raise NotFound(f'pods "{pod.metadata.name}" not found', code=404, reason="NotFound")
        return known

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Bind the pod, and show it. Raises: NotFound."""
        await asyncio.sleep(self._outside.bound_after_s)
        known = self.known(pod)
        story = self.stories.get(pod.uid)
        if story is not None:
            story.node, story.bound_s = node_name, self._now()
        self._pods.set(known.on_node(node_name))

    async def remove_victim(self, pod: Pod) -> bool:
        """Delete the pod, which is gone after the typical time; False if it is gone already."""
        try:
            known = self.known(pod)
        except NotFound:
            return False
        if pod.uid in self._evicted:
            return True
        self.preemptions += 1
        self._evicted.add(pod.uid)
        metadata = replace(known.metadata, deletion_timestamp=_DELETED_AT)
        asyncio.get_running_loop().call_later(self._outside.gone_after_s, self._go, pod)
        self._pods.set(Pod(metadata=metadata, spec=known.spec, status=known.status, node_name=known.node_name))
        return True

    def _go(self, pod: Pod) -> None:
        known = self._pods.get(pod.key)
        if known is not None and known.uid == pod.uid:
            self._remove(self._pods, pod.key)

    def change_status(self, pod: Pod, nominated: str | None, condition: PodCondition | None = None) -> None:
        """Set the nominated node and a condition of a pod. Raises: NotFound."""
        known = self.known(pod)
        status: PodStatus = known.status
        if nominated is not None:
            status = replace(status, nominated_node_name=nominated)
        if condition is not None:
            others = tuple(each for each in status.conditions if each.type != condition.type)
            status = replace(status, conditions=(*others, condition))
        if status != known.status:
            self._pods.set(Pod(metadata=known.metadata, spec=known.spec, status=status, node_name=known.node_name))

    def put(self, resource: ResourceType[Any], item: KubeObject) -> None:
        """Show another state of an object."""
        if (informer := self._informers.get(resource.path)) is not None:
            informer.set(item)

    def get(self, resource: ResourceType[ObjectT], item: ObjectT) -> ObjectT:
        """The object as it is now. Raises: NotFound."""
        informer = self._informers.get(resource.path)
        known = None if informer is None else informer.get(item.key)
        if known is None:
            raise NotFound(f'{resource.kind} "{item.key}" not found', code=404, reason="NotFound")
        return cast(ObjectT, known)

    def delete(self, resource: ResourceType[Any], item: KubeObject) -> None:
        """Delete an object. Raises: NotFound."""
        self.get(resource, item)
        self._remove(self._informers[resource.path], item.key)


def _told(pod: Pod) -> tuple[Any, ...]:
    """What of the metadata podium acts on."""
    return (pod.metadata.labels, pod.metadata.annotations, pod.is_terminating)


def _as_pending(pod: Pod) -> Pod:
    return Pod(metadata=pod.metadata, spec=pod.spec, status=PodStatus(phase="Pending"), node_name="")


class SimulatedClient(ApiClient):
    """The client of a `SimulatedApi`; each method is as that of `ApiClient`."""

    def __init__(self, api: SimulatedApi, dispatcher: Dispatcher, clock: Clock) -> None:
        super().__init__(dispatcher, clock)
        self._api = api

    async def bind(self, pod: Pod, node_name: str) -> None:
        """It succeeds, unless the pod is gone."""
        await self._api.bind(pod, node_name)

    async def is_bound(self, pod: Pod, node_name: str) -> bool:
        """Whether it is bound to that node."""
        return self._api.known(pod).node_name == node_name

    async def read_failure(self, pod: Pod) -> str:
        """No pod is rejected by its node."""
        del pod
        return ""

    async def patch_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> bool:
        """It succeeds."""
        self._api.change_status(pod, nominated_node_name, condition)
        return True

    async def send_status(self, item: Pod | PodGroup, compose: Compose, resource: ResourceType[Any] = PODS) -> None:
        """It succeeds; of the status, the nomination is kept."""
        content = compose()
        if content is None or resource is not PODS or not isinstance(item, Pod):
            return
        status = msgspec.json.decode(content).get("status", {})
        if "nominatedNodeName" in status:
            self._api.change_status(item, status["nominatedNodeName"] or "")

    async def remove_condition(self, pod: Pod, kind: str) -> None:
        """Nothing reads conditions here."""

    async def delete_pod(self, pod: Pod) -> bool:
        """The pod goes."""
        return await self._api.remove_victim(pod)

    async def evict_pod(self, pod: Pod) -> bool:
        """The pod goes."""
        return await self._api.remove_victim(pod)

    async def patch(
        self, resource: ResourceType[ObjectT], item: ObjectT, change: Mapping[str, Any], subresource: str = ""
    ) -> ObjectT:
        """The change is applied, and shown."""
        del subresource
        merged = _merged(msgspec.to_builtins(self._api.get(resource, item)), change)
        changed = msgspec.convert(merged, type(item))
        self._api.put(resource, changed)
        return changed

    async def create(self, resource: ResourceType[ObjectT], item: ObjectT, manifest: Mapping[str, Any]) -> ObjectT:
        """The object is there."""
        del manifest
        self._api.put(resource, item)
        return item

    async def read(self, resource: ResourceType[ObjectT], item: ObjectT) -> ObjectT:
        """The object as it is now."""
        return self._api.get(resource, item)

    async def delete(self, resource: ResourceType[ObjectT], item: ObjectT) -> None:
        """The object is gone."""
        self._api.delete(resource, item)

    async def merge_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        """Nothing reads these fields here."""


def _merged(item: Any, change: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON merge patch, applied."""
    merged = dict(item) if isinstance(item, dict) else {}
    for name, value in change.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), value) if isinstance(value, Mapping) else value
    return merged
