"""The provider that makes Node objects, which stand for machines in a sandbox or a cluster of stand-ins.

Owns the removal of such a node: it is cordoned and tainted, its pods are evicted as PodDisruptionBudgets allow, and it
is deleted once none is left. A removal is written on the node, so that the next process goes on with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

import anyio

from podium.binder import ApiClient
from podium.binder.events.event import Event
from podium.client.listing import all_objects
from podium.client.requests import LIST_BYTES_MAX
from podium.client.session import ApiSession
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.api_errors import AlreadyExists, Conflict, InternalError, NotFound, TooManyRequests
from podium.objects.core import Pod
from podium.objects.meta import ObjectMeta
from podium.objects.resource_types import PODS
from podium.objects.wire import ObjectDecoder
from podium.provisioner.apis.objects import ProvidedNode
from podium.provisioner.controller import events
from podium.provisioner.controller.watched import PROVIDED_NODES, WatchedCluster
from podium.provisioner.disruption.sandbox_nodes import (
    is_being_removed,
    is_bought_here,
    manifest_of,
    removal_of,
    removed_since,
)
from podium.provisioner.provisioning.plan import NodePlan
from podium.provisioner.scheduling.taints import DISRUPTED, untolerated_taints
from podium.provisioner.state.evictions import Evictions, is_active
from podium.provisioner.state.validation import is_mirror, is_owned_by_daemon_set

log = get_logger("provisioner")

EMPTY_FOR_S: Final = 2.0
"""How long a node takes no more pods before it is deleted: a binding may be under way."""

_DRAIN_AGAIN_S: Final = 1.0
_EVICTIONS_AT_ONCE: Final = 10


class SandboxProvider:
    """Implements `podium.provisioner.controller.provider.Provider`.

    Args:
        record: records an Event.
        in_own_words: whether Events have podium's words, since its rules judge where pods fit.
    """

    def __init__(
        self,
        client: ApiClient,
        session: ApiSession,
        cluster: WatchedCluster,
        record: Callable[[Event], None],
        clock: Clock,
        *,
        in_own_words: bool = False,
    ) -> None:
        self._in_own_words = in_own_words
        self._client = client
        self._session = session
        self._watched = cluster
        self._record = record
        self._clock = clock
        self._held: dict[str, str] = {}

    async def create(self, node: NodePlan) -> bool:
        """Create the Node object."""
        item = ProvidedNode(metadata=ObjectMeta(name=node.name))
        try:
            await self._client.create(PROVIDED_NODES, item, manifest_of(node, self._clock.now()))
        except AlreadyExists:
            node_seen = await self._client.read(PROVIDED_NODES, item)
            # A node that was not bought here, or goes, has the name: the caller plans anew rather than count on it.
            if not is_bought_here(node_seen) or is_being_removed(node_seen):
                raise
            log.info("Node is bought already", node=node.name)
        return True

    async def delete(self, node: ProvidedNode, reason: str) -> None:
        """Begin to remove the node."""
        while not is_being_removed(node):
            try:
                await self._client.patch(PROVIDED_NODES, node, removal_of(node, self._clock.now()))
            except NotFound:
                return
            except Conflict:
                # The patch replaces the taints as they were read, so a node that has changed since is read again.
                node = await self._client.read(PROVIDED_NODES, node)
                continue
            log.info("Removing node", node=node.name, reason=reason)
            self._record(events.removing(node, reason, in_own_words=self._in_own_words))
            return

    async def list(self) -> AbstractSet[str]:
        """Return the names of the Node objects."""
        return {str(manifest["metadata"]["name"]) for manifest in await all_objects(self._session, PROVIDED_NODES)}

    # ------------------------------------------------------------ removal

    async def drain(self) -> float:
        """Evict pods of nodes that are being removed, and delete those without, and return when to look again, in s."""
        obstacles: dict[str, str] = {}
        for node in [node for node in self._watched.nodes() if is_bought_here(node) and is_being_removed(node)]:
            obstacles |= await self._drain(node)
        self._held = obstacles
        return _DRAIN_AGAIN_S

    async def _drain(self, node: ProvidedNode) -> Mapping[str, str]:
        pods = [pod for pod in self._watched.pods() if pod.node_name == node.name and is_waited_for(pod)]
        if pods:
            return await self._evict([pod for pod in pods if self._may_be_evicted(pod)])
        # The watch may lag behind the scheduler by a binding, so the API server is asked before the node goes.
        if self._clock.now() - removed_since(node) >= EMPTY_FOR_S and not await self._has_pods(node):
            await self._client.delete(PROVIDED_NODES, node)
            log.info("Removed node", node=node.name)
        return {}

    def _may_be_evicted(self, pod: Pod) -> bool:
        return is_active(pod) and not Evictions((), self._clock.now()).is_protected(pod)

    async def _evict(self, pods: Sequence[Pod]) -> Mapping[str, str]:
        """Evict the pods, and return by UID why some of them stay."""
        waiting: Iterator[Pod] = iter(pods)
        obstacles: dict[str, str] = {}

        async def evict() -> None:
            for pod in waiting:
                try:
                    if await self._client.evict_pod(pod):
                        log.info("Evicted pod", pod=pod.key, node=pod.node_name)
                except (TooManyRequests, InternalError) as error:
                    # The second is the answer for a pod with several budgets. Neither must keep other nodes waiting.
                    if self._held.get(pod.uid) != error.message:
                        log.info("Pod cannot be evicted now", pod=pod.key, node=pod.node_name, why=error.message)
                    obstacles[pod.uid] = error.message

        async with anyio.create_task_group() as group:
            for _ in range(_EVICTIONS_AT_ONCE):
                group.start_soon(evict)
        return obstacles

    async def _has_pods(self, node: ProvidedNode) -> bool:
        """Return True if pods were bound to the node that the watch does not show yet."""
        selector = f"?fieldSelector=spec.nodeName%3D{node.name}"
        body = await self._session.request("GET", PODS.path + selector, answer_bytes_max=LIST_BYTES_MAX)
        return any(is_waited_for(item) for item in ObjectDecoder(PODS).page(body).items if not item.has_ended)


def is_waited_for(pod: Pod) -> bool:
    """Return True if a node that is being removed stays until the pod is gone."""
    if is_owned_by_daemon_set(pod) or is_mirror(pod) or pod.has_ended:
        return False
    return bool(untolerated_taints([DISRUPTED], pod.spec.tolerations))
