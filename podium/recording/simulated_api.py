"""A small API server in memory, for a scheduler whose decisions differ from the recorded ones.

Owns the objects and the watch events. Bindings and evictions succeed after their typical delays. External events apply
as recorded, except for what the recorded scheduler wrote to a pod: its node and its nomination.
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
from podium.recording.entries import REMOVE, Entry, item_of
from podium.recording.external_events import ExternalEvents

_PENDING = ("", "Pending")
_DELETED_AT = "1970-01-01T00:00:00Z"


@dataclass(slots=True)
class PodStory:
    """The course of one pod that podium was to place.

    Attributes:
        bound_s: when the watch showed its binding; None if it was not bound.
        is_gone: it was deleted, or has ended.
    """

    key: str
    seen_s: float
    node: str = ""
    bound_s: float | None = None
    is_gone: bool = False


class SimulatedApi:
    """The objects of the cluster, and the stories of its pods.

    Args:
        now: reads the virtual time.
        scheduler_names: the profiles, whose pods podium places.
    """

    def __init__(self, events: ExternalEvents, now: Callable[[], float], scheduler_names: frozenset[str]) -> None:
        self.stories: dict[str, PodStory] = {}
        self.preemptions = 0
        self._events, self._now, self._names = events, now, scheduler_names
        self._informers: dict[str, Informer[Any]] = {}
        self._evicted: set[str] = set()

    def add_informer(self, informer: Informer[Any]) -> None:
        """Keep the informer, through which podium sees changes."""
        self._informers[informer.resource.path] = informer

    @property
    def nodes(self) -> list[Node]:
        """The current nodes."""
        return list(cast(Informer[Node], self._informers[NODES.path]).list())

    @property
    def pods(self) -> list[Pod]:
        """The current pods."""
        return list(self._pods.list())

    @property
    def _pods(self) -> Informer[Pod]:
        return self._informers[PODS.path]

    # ------------------------------------------------------------ external events

    def apply(self, entry: Entry) -> None:
        """Apply an external watch event."""
        informer = self._informers.get(entry[1])
        if informer is None:
            return
        if entry[0] == REMOVE:
            if informer.get(entry[2]) is not None:
                self._remove(informer, entry[2])
            return
        item = item_of(entry)
        if isinstance(item, Pod):
            self._apply_pod(item)
        else:
            informer.set(item)

    def _apply_pod(self, pod: Pod) -> None:
        # podium evicts it here, so what became of it in the recording does not count.
        if pod.uid in self._evicted:
            return
        current = self._pods.get(pod.key)
        if current is None or current.uid != pod.uid:
            if pod.uid in self._events.recorded_nodes:
                # Its recorded binding was podium's own, and another configuration may choose otherwise.
                pod = _as_pending(pod)
            if not pod.node_name and pod.spec.scheduler_name in self._names and not pod.has_ended:
                self.stories[pod.uid] = PodStory(pod.key, self._now())
            self._pods.set(pod)
            return
        story = self.stories.get(pod.uid)
        if story is None:
            self._pods.set(pod)
            return
        merged_pod = self._with_own_node(pod, current)
        if merged_pod.has_ended:
            story.is_gone = True
        if merged_pod.node_name and not current.node_name:
            # Another scheduler bound it.
            del self.stories[pod.uid]
        if replace(merged_pod, metadata=current.metadata) != current or _meta(merged_pod) != _meta(current):
            self._pods.set(merged_pod)

    def _with_own_node(self, pod: Pod, current: Pod) -> Pod:
        """Return the recorded state with the node and the nomination that the pod has here."""
        is_by_podium = pod.uid in self._events.recorded_nodes
        node_name = current.node_name or ("" if is_by_podium else pod.node_name)
        status = pod.status
        if not node_name and not pod.has_ended:
            # A pod that waits here may run in the recording; its phase there must not make it run here.
            kept_status = current.status if status.phase not in _PENDING or pod.node_name else status
            status = replace(
                kept_status,
                conditions=current.status.conditions,
                nominated_node_name=current.status.nominated_node_name,
            )
        else:
            status = replace(status, nominated_node_name=current.status.nominated_node_name)
        return Pod(metadata=pod.metadata, spec=pod.spec, status=status, node_name=node_name)

    def _remove(self, informer: Informer[Any], key: str) -> None:
        item = informer.get(key)
        story = self.stories.get(item.uid) if isinstance(item, Pod) else None
        if story is not None:
            story.is_gone = True
        informer.remove(key)

    # ------------------------------------------------------------ podium's calls

    def current_pod(self, pod: Pod) -> Pod:
        """Return the current state of the pod. Raises: NotFound."""
        current = self._pods.get(pod.key)
        if current is None or current.uid != pod.uid:
            raise NotFound(f'pods "{pod.metadata.name}" not found', code=404, reason="NotFound")
        return current

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Bind the pod after the typical delay. Raises: NotFound."""
        await asyncio.sleep(self._events.bound_after_s)
        current = self.current_pod(pod)
        story = self.stories.get(pod.uid)
        if story is not None:
            story.node, story.bound_s = node_name, self._now()
        self._pods.set(current.on_node(node_name))

    async def remove_victim(self, pod: Pod) -> bool:
        """Delete the pod, which is gone after the typical delay; return False if it is already gone."""
        try:
            current = self.current_pod(pod)
        except NotFound:
            return False
        # It is ending already; a second call would count the preemption twice.
        if pod.uid in self._evicted:
            return True
        self.preemptions += 1
        self._evicted.add(pod.uid)
        metadata = replace(current.metadata, deletion_timestamp=_DELETED_AT)
        # By time, since the kubelet's grace period is what the recording shows as a delay.
        asyncio.get_running_loop().call_later(self._events.gone_after_s, self._finish_deletion, pod)
        self._pods.set(Pod(metadata=metadata, spec=current.spec, status=current.status, node_name=current.node_name))
        return True

    def _finish_deletion(self, pod: Pod) -> None:
        current = self._pods.get(pod.key)
        if current is not None and current.uid == pod.uid:
            self._remove(self._pods, pod.key)

    def change_status(self, pod: Pod, nominated_node: str | None, condition: PodCondition | None = None) -> None:
        """Set the nominated node and a condition of a pod. Raises: NotFound."""
        current = self.current_pod(pod)
        status: PodStatus = current.status
        if nominated_node is not None:
            status = replace(status, nominated_node_name=nominated_node)
        if condition is not None:
            conditions = (old for old in status.conditions if old.type != condition.type)
            status = replace(status, conditions=(*conditions, condition))
        if status != current.status:
            self._pods.set(
                Pod(metadata=current.metadata, spec=current.spec, status=status, node_name=current.node_name)
            )

    def set(self, resource: ResourceType[Any], item: KubeObject) -> None:
        """Set the state of an object."""
        if (informer := self._informers.get(resource.path)) is not None:
            informer.set(item)

    def get(self, resource: ResourceType[ObjectT], item: ObjectT) -> ObjectT:
        """Return the current state of the object. Raises: NotFound."""
        informer = self._informers.get(resource.path)
        current = None if informer is None else informer.get(item.key)
        if current is None:
            raise NotFound(f'{resource.kind} "{item.key}" not found', code=404, reason="NotFound")
        return cast(ObjectT, current)

    def delete(self, resource: ResourceType[Any], item: KubeObject) -> None:
        """Delete an object. Raises: NotFound."""
        self.get(resource, item)
        self._remove(self._informers[resource.path], item.key)


def _meta(pod: Pod) -> tuple[Any, ...]:
    """Return the metadata that podium acts on."""
    return (pod.metadata.labels, pod.metadata.annotations, pod.is_terminating)


def _as_pending(pod: Pod) -> Pod:
    return Pod(metadata=pod.metadata, spec=pod.spec, status=PodStatus(phase="Pending"), node_name="")


class SimulatedClient(ApiClient):
    """The client of a `SimulatedApi`."""

    def __init__(self, api: SimulatedApi, dispatcher: Dispatcher, clock: Clock) -> None:
        super().__init__(dispatcher, clock)
        self._api = api

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Bind the pod. Raises: NotFound."""
        await self._api.bind(pod, node_name)

    async def is_bound(self, pod: Pod, node_name: str) -> bool:
        """Tell whether the pod is bound to that node. Raises: NotFound."""
        return self._api.current_pod(pod).node_name == node_name

    async def read_failure(self, pod: Pod) -> str:
        """Return "": no kubelet rejects a pod here."""
        return ""

    async def patch_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> bool:
        """Set the condition and the nomination. Raises: NotFound."""
        self._api.change_status(pod, nominated_node_name, condition)
        return True

    async def send_status(self, item: Pod | PodGroup, compose: Compose, resource: ResourceType[Any] = PODS) -> None:
        """Set the nomination of a pod, and ignore the rest of the status. Raises: NotFound."""
        content = compose()
        if content is None or resource is not PODS or not isinstance(item, Pod):
            return
        status = msgspec.json.decode(content).get("status", {})
        if "nominatedNodeName" in status:
            self._api.change_status(item, status["nominatedNodeName"] or "")

    async def remove_condition(self, pod: Pod, kind: str) -> None:
        """Do nothing: no reader of conditions exists here."""

    async def delete_pod(self, pod: Pod) -> bool:
        """Delete the pod; return False if it is already gone."""
        return await self._api.remove_victim(pod)

    async def evict_pod(self, pod: Pod) -> bool:
        """Delete the pod; return False if it is already gone."""
        return await self._api.remove_victim(pod)

    async def patch(
        self, resource: ResourceType[ObjectT], item: ObjectT, change: Mapping[str, Any], subresource: str = ""
    ) -> ObjectT:
        """Apply the change to the object. Raises: NotFound."""
        content = _merge(msgspec.to_builtins(self._api.get(resource, item)), change)
        item = msgspec.convert(content, type(item))
        self._api.set(resource, item)
        return item

    async def create(self, resource: ResourceType[ObjectT], item: ObjectT, manifest: Mapping[str, Any]) -> ObjectT:
        """Add the object."""
        self._api.set(resource, item)
        return item

    async def read(self, resource: ResourceType[ObjectT], item: ObjectT) -> ObjectT:
        """Return the current state of the object. Raises: NotFound."""
        return self._api.get(resource, item)

    async def delete(self, resource: ResourceType[ObjectT], item: ObjectT) -> None:
        """Delete the object. Raises: NotFound."""
        self._api.delete(resource, item)

    async def merge_status(self, pod: Pod, status: Mapping[str, Any]) -> None:
        """Do nothing: no reader of these fields exists here."""


def _merge(item: Any, change: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a JSON merge patch."""
    content = dict(item) if isinstance(item, dict) else {}
    for name, value in change.items():
        if value is None:
            content.pop(name, None)
        else:
            content[name] = _merge(content.get(name), value) if isinstance(value, Mapping) else value
    return content
