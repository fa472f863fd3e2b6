"""The removal of nodes that stand for machines: their pods are evicted as budgets allow, then the node is deleted.

Owns what has been tried and when it is tried again. A removal is written on the node, so that the next process goes on
with it. Each eviction and each deletion is an attempt of its own: one that is refused, or never answered, is reported,
tried again, and holds up nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio
from anyio.abc import TaskGroup

from podium.binder import ApiClient
from podium.client.requests import LIST_BYTES_MAX
from podium.client.session import ApiSession
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError, InternalError, TooManyRequests
from podium.objects.core import Pod
from podium.objects.meta import ObjectMeta
from podium.objects.resource_types import PODS
from podium.objects.wire import ObjectDecoder
from podium.provisioner.apis.objects import ProvidedNode
from podium.provisioner.controller.loops import StepCounter
from podium.provisioner.controller.watched import PROVIDED_NODES, WatchedCluster
from podium.provisioner.disruption.sandbox_nodes import is_being_removed, is_bought_here
from podium.provisioner.scheduling.taints import DISRUPTED, untolerated_taints
from podium.provisioner.state.evictions import DO_NOT_DISRUPT, Evictions, is_active
from podium.provisioner.state.validation import is_mirror, is_owned_by_daemon_set

log = get_logger("provisioner")

NAME: Final = "removal"
EMPTY_FOR_S: Final = 2.0
"""How long a node takes no more pods before it is deleted: a binding may be under way."""

_AGAIN_S: Final = 1.0
_AGAIN_S_MAX: Final = 15.0


@dataclass(slots=True)
class _Failure:
    """The last failure of an attempt, how many there were in a row, and when to try again on the monotonic clock."""

    text: str
    count: int
    again_at_s: float


class NodeRemoval:
    """Empties and deletes the nodes that are marked for removal.

    Args:
        clock: only its monotonic time decides when a node is deleted.
        counter: counts the attempts.
    """

    def __init__(
        self, client: ApiClient, session: ApiSession, cluster: WatchedCluster, clock: Clock, counter: StepCounter
    ) -> None:
        self._client = client
        self._session = session
        self._watched = cluster
        self._clock = clock
        self._counter = counter
        self._under_way: set[str] = set()
        self._failures: dict[str, _Failure] = {}
        self._empty_since_s: dict[str, float] = {}

    async def run(self) -> None:
        """Go on with all removals until cancelled."""
        async with anyio.create_task_group() as group:
            while True:
                self._look(group)
                await anyio.sleep(_AGAIN_S)

    def _look(self, group: TaskGroup) -> None:
        """Start whatever can be tried now."""
        nodes = [node for node in self._watched.nodes() if is_bought_here(node) and is_being_removed(node)]
        pods = self._pods_on({node.name for node in nodes})
        self._forget_others(nodes, pods)
        for node in nodes:
            for pod in pods.get(node.name, ()):
                if self._may_be_evicted(pod):
                    self._try(group, pod.uid, f"Pod {pod.key}", partial(self._evict, pod))
            if node.name in pods:
                self._empty_since_s.pop(node.name, None)
                continue
            # By the monotonic clock since this process has seen it empty, not by the time that is written on the node:
            # a clock that is set back must not keep the node.
            since_s = self._empty_since_s.setdefault(node.name, self._clock.monotonic())
            if self._clock.monotonic() - since_s >= EMPTY_FOR_S:
                self._try(group, node.uid, f"Node {node.name}", partial(self._delete, node))

    def _pods_on(self, names: Iterable[str]) -> Mapping[str, list[Pod]]:
        # One pass over all pods, however many nodes go, and none while nothing goes.
        pods: dict[str, list[Pod]] = defaultdict(list)
        if names:
            for pod in self._watched.pods():
                if pod.node_name in names and is_waited_for(pod):
                    pods[pod.node_name].append(pod)
        return pods

    def _forget_others(self, nodes: Iterable[ProvidedNode], pods: Mapping[str, Iterable[Pod]]) -> None:
        # Nodes and pods come and go under ever new names, so what is known of them would pile up.
        uids = {node.uid for node in nodes} | {pod.uid for members in pods.values() for pod in members}
        self._failures = {uid: failure for uid, failure in self._failures.items() if uid in uids}
        names = {node.name for node in nodes}
        self._empty_since_s = {name: since_s for name, since_s in self._empty_since_s.items() if name in names}

    def _may_be_evicted(self, pod: Pod) -> bool:
        if Evictions((), self._clock.now()).is_protected(pod):
            self._note(pod.uid, f"Pod {pod.key}", f"its annotation {DO_NOT_DISRUPT} keeps it")
            return False
        return is_active(pod)

    def _try(self, group: TaskGroup, key: str, name: str, attempt: Callable[[], Awaitable[str | None]]) -> None:
        # An attempt may outlive many looks: one that hangs must not be started a second time.
        failure = self._failures.get(key)
        if key in self._under_way or (failure is not None and failure.again_at_s > self._clock.monotonic()):
            return
        self._under_way.add(key)
        group.start_soon(self._attempt, key, name, attempt)

    async def _attempt(self, key: str, name: str, attempt: Callable[[], Awaitable[str | None]]) -> None:
        started_s = self._clock.monotonic()
        error: ApiError | None = None
        try:
            obstacle = await attempt()
        except ApiError as refusal:
            error, obstacle = refusal, str(refusal)
        finally:
            self._under_way.discard(key)
        # 429 is a budget's answer, and 500 the one for a pod with several budgets: both may end at any time.
        is_refusal = error is None or isinstance(error, TooManyRequests | InternalError)
        self._counter.record_step(NAME, self._clock.monotonic() - started_s, is_error=not is_refusal)
        if obstacle is None:
            self._failures.pop(key, None)
        else:
            self._note(key, name, obstacle, grows=not is_refusal)

    def _note(self, key: str, name: str, obstacle: str, *, grows: bool = False) -> None:
        """Report an obstacle, once for each text, and set when to try again."""
        former = self._failures.get(key)
        if former is None or former.text != obstacle:
            log.warning("Node removal is held up", by=name, why=obstacle)
        count = former.count + 1 if former is not None and grows else 0
        pause_s = min(_AGAIN_S * 2.0 ** min(count, 10), _AGAIN_S_MAX)
        self._failures[key] = _Failure(obstacle, count, self._clock.monotonic() + pause_s)

    # ------------------------------------------------------------ attempts

    async def _evict(self, pod: Pod) -> str | None:
        if not await self._client.evict_pod(pod):
            # The watch will show it; if it never does, the log has said why.
            return "the API server says that the pod is gone, and the watch still shows it"
        log.info("Evicted pod", pod=pod.key, node=pod.node_name)
        return None

    async def _delete(self, node: ProvidedNode) -> str | None:
        # The watch may lag behind the scheduler by a binding, so the API server is asked before the node goes.
        path = f"{PODS.path}?fieldSelector=spec.nodeName%3D{node.name}"
        body = await self._session.request("GET", path, answer_bytes_max=LIST_BYTES_MAX)
        page = ObjectDecoder(PODS).page(body)
        for defect in page.broken:
            # No watch shows a pod that cannot be read, and nobody else would ever evict it.
            metadata = ObjectMeta(name=defect.name, namespace=defect.namespace, uid=defect.uid)
            await self._client.evict_pod(Pod(metadata=metadata))
        names = [item.key for item in page.items if is_waited_for(item)] + [defect.key for defect in page.broken]
        if names:
            return f"pod {names[0]} is on it, and the watch does not show it"
        await self._client.delete(PROVIDED_NODES, node)
        log.info("Removed node", node=node.name)
        return None


def is_waited_for(pod: Pod) -> bool:
    """Return True if a node that is being removed stays until the pod is gone."""
    if is_owned_by_daemon_set(pod) or is_mirror(pod) or pod.has_ended:
        return False
    return bool(untolerated_taints([DISRUPTED], pod.spec.tolerations))
