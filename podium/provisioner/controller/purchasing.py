"""Buys nodes from a provider, and knows which ones are on their way.

Owns the rule that nothing is planned before every node that was asked for is seen: else it would be bought twice. And
when a node that was refused is asked for again: each by itself, so that none holds up the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

import anyio

from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.api_errors import AlreadyExists, ApiError
from podium.provisioner.controller.provider import Provider
from podium.provisioner.controller.watched import REGISTERED_S_MAX, WatchedCluster
from podium.provisioner.provisioning.plan import NodePlan

log = get_logger("provisioner")

LOOKED_UP_AFTER_S: Final = 5.0
"""How long a node that was asked for may be unseen before the API server is asked whether there is one."""

LOOKED_UP_S_MAX: Final = 60.0
"""How long nothing is planned because that question has no answer."""

_AT_ONCE_MAX: Final = 10
_AGAIN_S: Final = 1.0
_AGAIN_S_MAX: Final = 15.0


@dataclass(frozen=True, slots=True)
class Bought:
    """What has become of the nodes that were asked for.

    Attributes:
        nodes: Those that there will be.
        errors: Of those that there may not be, and of those that are not asked for yet since they were refused before.
        refused_nodes: Those that were refused now.
        again_in_s: In how many seconds the first of the refused nodes may be asked for again; infinite without any.
    """

    nodes: tuple[NodePlan, ...]
    errors: tuple[ApiError, ...]
    refused_nodes: tuple[NodePlan, ...] = ()
    again_in_s: float = float("inf")


@dataclass(frozen=True, slots=True)
class _Refusal:
    """The last answer about a node, how many there were in a row, and when to ask again on the monotonic clock."""

    error: ApiError
    count: int
    again_at_s: float


class Purchasing:
    """Keeps what was asked of the provider until the watch shows it.

    Attributes:
        turn: Held from a look at the cluster until all was bought that follows from it, so that two loops never buy for
            the same pods.
    """

    def __init__(self, provider: Provider, cluster: WatchedCluster, clock: Clock) -> None:
        self.turn = anyio.Lock()
        self._provider = provider
        self._watched = cluster
        self._clock = clock
        self._asked_at_s: dict[str, float] = {}
        self._pods: dict[str, frozenset[str]] = {}
        self._undecoded_since_s: dict[str, float] = {}
        self._refusals: dict[str, _Refusal] = {}

    async def buy(self, nodes: Iterable[NodePlan]) -> Bought:
        """Ask for these nodes. One that is refused keeps no other from being asked for."""
        all_nodes = tuple(nodes)
        waiting, bought, refused_nodes, errors = iter(all_nodes), list[NodePlan](), list[NodePlan](), list[ApiError]()

        served_pods = self._served_pods()

        # All tasks take from one iterator, so that a slow request holds up one of them only.
        async def ask() -> None:
            for node in waiting:
                refusal = self._refusals.get(node.name)
                if refusal is not None and refusal.again_at_s > self._clock.monotonic():
                    errors.append(refusal.error)
                    continue
                pods = frozenset(pod.uid for pod in node.pods)
                if pods and pods <= served_pods:
                    # Each further node might be one more that cannot be decoded.
                    errors.append(AlreadyExists("the node that was bought for its pods cannot be decoded"))
                    continue
                # Before the request: however it ends, there may be a node from now on.
                self._asked_at_s[node.name] = self._clock.monotonic()
                self._pods[node.name] = pods
                try:
                    if await self._provider.create(node):
                        log.info("Bought node", plan=node.plan_id, node=node.name, what=node.text, pods=len(node.pods))
                        bought.append(node)
                        self._refusals.pop(node.name, None)
                        continue
                except ApiError as error:
                    log.warning(
                        "Node may not be bought", plan=node.plan_id, node=node.name, what=node.text, error=str(error)
                    )
                    errors.append(error)
                    # After a time-out the node may exist: it stays among those that were asked for until the watch or a
                    # list decides.
                    if error.may_have_happened:
                        continue
                    refused_nodes.append(node)
                    self._note_refusal(node.name, error)
                self._asked_at_s.pop(node.name, None)

        async with anyio.create_task_group() as group:
            for _ in range(_AT_ONCE_MAX):
                group.start_soon(ask)
        again_at_s = min(
            (self._refusals[node.name].again_at_s for node in all_nodes if node.name in self._refusals),
            default=float("inf"),
        )
        return Bought(tuple(bought), tuple(errors), tuple(refused_nodes), again_at_s - self._clock.monotonic())

    def _note_refusal(self, name: str, error: ApiError) -> None:
        now_s = self._clock.monotonic()
        # Names follow from pods, which come and go, so what is known of them would pile up.
        self._refusals = {
            key: refusal for key, refusal in self._refusals.items() if refusal.again_at_s > now_s - LOOKED_UP_S_MAX
        }
        former = self._refusals.get(name)
        count = 0 if former is None else former.count + 1
        pause_s = max(min(_AGAIN_S * 2.0 ** min(count, 10), _AGAIN_S_MAX), error.retry_after_s or 0.0)
        self._refusals[name] = _Refusal(error, count, now_s + pause_s)

    async def unseen(self) -> set[str]:
        """Return the nodes that were asked for and are not seen yet. Those that there are not are forgotten.

        Raises:
            ApiError: the API server would have to be asked, and does not answer.
        """
        now_s, undecoded_names = self._clock.monotonic(), self._watched.undecoded_names()
        # It is there; waiting for a readable form of it would keep everything else from being planned.
        for name in undecoded_names & self._asked_at_s.keys():
            self._undecoded_since_s[name] = now_s
        missing = self._watched.unseen(self._asked_at_s.keys()) - undecoded_names
        for name in self._asked_at_s.keys() - missing:
            del self._asked_at_s[name]
        self._pods = {
            name: pods for name, pods in self._pods.items() if name in missing or name in self._undecoded_since_s
        }
        overdue_s = self._clock.monotonic() - LOOKED_UP_AFTER_S
        overdue = {name for name in missing if self._asked_at_s[name] <= overdue_s}
        if overdue:
            for name in overdue - await self._existing_names(overdue):
                log.warning("Node was not bought", node=name)
                missing.discard(name)
                self._asked_at_s.pop(name, None)
        return missing

    def _served_pods(self) -> AbstractSet[str]:
        """Return the UIDs of the pods that have had a node bought lately which cannot be decoded."""
        since_s = self._clock.monotonic() - REGISTERED_S_MAX
        self._undecoded_since_s = {name: at_s for name, at_s in self._undecoded_since_s.items() if at_s > since_s}
        return {uid for name in self._undecoded_since_s for uid in self._pods.get(name, ())}

    async def _existing_names(self, names: AbstractSet[str]) -> AbstractSet[str]:
        """Return the names under which there are nodes.

        Raises:
            ApiError: the API server does not answer, and no node has been looked up in vain for too long.
        """
        try:
            # Listed from the API server, not the watch, which may lag behind by more than this wait.
            return await self._provider.list()
        except ApiError as error:
            given_up_s = self._clock.monotonic() - LOOKED_UP_S_MAX
            lost_names = {name for name in names if self._asked_at_s[name] <= given_up_s}
            if not lost_names:
                raise
            # Names follow from the pods: a node that there is after all is found when it is asked for again.
            log.warning("Nodes cannot be looked up", nodes=sorted(lost_names), error=str(error))
            return names - lost_names
