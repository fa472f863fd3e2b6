"""Carries moves out in a running cluster, one step after the other. With `running_cluster` this package's only I/O.

Owns the checks around each step: before it, that the nodes of the plan and their pods are as the rehearsal expects
them, and after it, that the replacement runs where it should. Any surprise ends the work: nothing is tried in another
way. At the end, however it comes, the nodes that were cordoned here are uncordoned.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import anyio
import orjson

from podium.binder import ApiClient
from podium.client.credentials import ConnectionConfigError, load
from podium.client.dispatcher import Dispatcher
from podium.client.requests import LIST_BYTES_MAX, MERGE_PATCH
from podium.client.session import ApiSession
from podium.insight.cluster import Cluster
from podium.insight.room.plan import RoomMove, RoomPlan
from podium.lib.clock import Clock
from podium.lib.error_text import UserFacingError
from podium.lib.system_clock import SystemClock
from podium.objects.api_errors import ApiError, NotFound, TooManyRequests
from podium.objects.core import Node, Pod
from podium.objects.resource_types import NODES, PODS
from podium.objects.wire import ObjectDecoder

STEP_S_MAX: Final = 300.0
"""How long a step may take by default: a replacement may have to pull an image, and a pod to end in peace."""
_AGAIN_S: Final = 0.5

T = TypeVar("T")

Report = Callable[[str], None]
"""Receives a line about what was done."""


class CarryingOutError(UserFacingError):
    """The moves were not carried out to the end; the message says what was different, and how far they got."""


@dataclass(slots=True)
class Expectation:
    """What the rehearsal expects of the nodes that a plan concerns.

    Attributes:
        nodes: the nodes as they were read, by name.
        pods: by node, the uids of the pods that count there.
        subjects: the uids of the pods in question, by key.
    """

    nodes: Mapping[str, Node]
    pods: dict[str, set[str]]
    subjects: Mapping[str, str]

    @classmethod
    def of(cls, cluster: Cluster, plan: RoomPlan) -> Expectation:
        """Return what is expected of the cluster that was read."""
        names = {name for step in plan.steps for name in (step.source, step.target, *step.cordons)}
        names |= set(plan.nodes.values())
        pods: dict[str, set[str]] = {name: set() for name in names}
        for pod in cluster.pods:
            if pod.node_name in pods:
                pods[pod.node_name].add(pod.uid)
        stored_nodes, stored_pods = cluster.store.objects(NODES), cluster.store.objects(PODS)
        return cls(
            {name: stored_nodes[name] for name in names}, pods, {key: stored_pods[key].uid for key in plan.nodes}
        )


class MoveCarrier:
    """Carries the moves of one plan out.

    Args:
        step_s_max: how long to wait for what follows an eviction.
    """

    def __init__(
        self,
        session: ApiSession,
        client: ApiClient,
        clock: Clock,
        report: Report,
        *,
        step_s_max: float = STEP_S_MAX,
    ) -> None:
        self._session = session
        self._client = client
        self._clock = clock
        self._report = report
        self._step_s_max = step_s_max
        self._cordons: set[str] = set()
        self._decoder = ObjectDecoder(PODS)
        self._node_decoder = ObjectDecoder(NODES)

    async def dry_run(self, plan: RoomPlan, expectation: Expectation) -> None:
        """Ask the API server about each eviction and each cordon without any effect.

        Raises:
            CarryingOutError: the cluster has changed, or one of them would be refused.
        """
        await self._check(expectation)
        for step in plan.steps:
            for name in step.cordons:
                await self._patch_node(name, {"unschedulable": True}, "?dryRun=All")
            await self._evict(step, is_dry_run=True)
            self._report(f"dry run: {step.pod} could be evicted from {step.source}")

    async def carry_out(self, plan: RoomPlan, expectation: Expectation) -> None:
        """Carry the steps out, and wait until the pods in question have their nodes.

        Raises:
            CarryingOutError: something was not as expected; the message says after how many steps.
        """
        count = 0
        try:
            for count, step in enumerate(plan.steps):
                await self._check(expectation)
                node = await self._carry_out_step(step, expectation)
                self._report(f"{count + 1} of {len(plan.steps)}: {step.pod} has moved from {step.source} to {node}")
            count = len(plan.steps)
            # Where no room was lacking, but a rule between pods held it back, the pod may have its node by now.
            await self._check(expectation, may_have_come=True)
            await self._hand_over(plan)
        except (CarryingOutError, ApiError) as error:
            raise CarryingOutError(f"stopped after {count} of {len(plan.steps)} moves: {error}") from error
        finally:
            with anyio.CancelScope(shield=True):
                await self._take_cordons_back()

    # ------------------------------------------------------------ one step

    async def _carry_out_step(self, step: RoomMove, expectation: Expectation) -> str:
        """Move one pod, and return the node of its replacement."""
        for name in step.cordons:
            # Noted first: a cordon whose answer is lost has to be taken back, too.
            self._cordons.add(name)
            await self._patch_node(name, {"unschedulable": True})
        pod = await self._pod(step.pod)
        if pod is None or pod.uid != step.uid:
            raise CarryingOutError(f"{step.pod} does not exist any more")
        # By what is new, since a StatefulSet gives the replacement the same name.
        former_uids = {sibling.uid for sibling in await self._siblings(pod)}
        await self._evict(step)
        replacement = await self._replacement(pod, former_uids)
        if step.opens and not (await self._after_attempt(replacement)).node_name:
            await self._client.patch_status(replacement, nominated_node_name=step.opens)
            await self._uncordon([step.opens])
        replacement = await self._running(replacement)
        await self._wait_until_gone(step)
        expectation.pods[step.source].discard(step.uid)
        if replacement.node_name in self._cordons:
            raise CarryingOutError(f"{replacement.key} came to {replacement.node_name} although that is cordoned")
        expectation.pods.get(replacement.node_name, set()).add(replacement.uid)
        await self._uncordon(step.uncordons)
        return replacement.node_name

    async def _evict(self, step: RoomMove, *, is_dry_run: bool = False) -> None:
        namespace, _, name = step.pod.partition("/")
        pod = await self._pod(f"{namespace}/{name}")
        if pod is None or pod.uid != step.uid:
            raise CarryingOutError(f"{step.pod} does not exist any more")
        try:
            evict = self._client.try_eviction if is_dry_run else self._client.evict_pod
            if not await evict(pod):
                raise CarryingOutError(f"{step.pod} was deleted by others")
        except TooManyRequests as error:
            raise CarryingOutError(f"a PodDisruptionBudget does not allow to evict {step.pod} now: {error}") from error

    async def _replacement(self, pod: Pod, former_uids: Collection[str]) -> Pod:
        """Wait for the pod that the controller creates in this one's place."""

        async def look() -> Pod | None:
            return next((entry for entry in await self._siblings(pod) if entry.uid not in former_uids), None)

        return await self._wait(look, f"no pod was created in the place of {pod.key}")

    async def _after_attempt(self, pod: Pod) -> Pod:
        """Wait until the scheduler has placed the pod, or has found no node for it."""

        async def look() -> Pod | None:
            current = await self._same(pod)
            condition = current.status.condition("PodScheduled")
            return current if current.node_name or (condition is not None and condition.status == "False") else None

        return await self._wait(look, f"no scheduler has tried {pod.key}")

    async def _running(self, pod: Pod) -> Pod:
        """Wait until the pod runs and is ready."""

        async def look() -> Pod | None:
            current = await self._same(pod)
            return current if current.node_name and _is_ready(current) else None

        return await self._wait(look, f"{pod.key} is not ready")

    async def _same(self, pod: Pod) -> Pod:
        current = await self._pod(pod.key)
        if current is None or current.uid != pod.uid:
            raise CarryingOutError(f"{pod.key} was deleted before it ran")
        return current

    async def _wait_until_gone(self, step: RoomMove) -> None:
        """Wait until the evicted pod has ended, so that its room is there."""

        async def look() -> bool | None:
            pod = await self._pod(step.pod)
            return True if pod is None or pod.uid != step.uid else None

        await self._wait(look, f"{step.pod} has not ended on {step.source}")

    async def _hand_over(self, plan: RoomPlan) -> None:
        """Give the pods in question their room, and wait until each has a node."""
        for key, node in plan.nodes.items():
            if (pod := await self._pod(key)) is not None and not pod.node_name:
                await self._client.patch_status(pod, nominated_node_name=node)
        await self._uncordon(plan.uncordons)
        for key, node in plan.nodes.items():

            async def look(key: str = key) -> Pod | None:
                pod = await self._pod(key)
                if pod is None:
                    raise CarryingOutError(f"{key} was deleted")
                return pod if pod.node_name else None

            pod = await self._wait(look, f"{key} has no node")
            self._report(f"{key} is on {pod.node_name}" + ("" if pod.node_name == node else f", not on {node}"))

    async def _wait(self, look: Callable[[], Awaitable[T | None]], problem: str) -> T:
        """Look again and again until there is something; raise `CarryingOutError` with the problem if it takes long."""
        deadline_s = self._clock.monotonic() + self._step_s_max
        while (result := await look()) is None:
            if self._clock.monotonic() >= deadline_s:
                raise CarryingOutError(f"{problem} after {self._step_s_max:g} s")
            await anyio.sleep(_AGAIN_S)
        return result

    # ------------------------------------------------------------ before each step

    async def _check(self, expectation: Expectation, *, may_have_come: bool = False) -> None:
        """Compare the nodes of the plan and their pods with the expectation.

        Args:
            may_have_come: whether the pods in question may have nodes already.

        Raises:
            CarryingOutError: they differ.
        """
        for name, node in expectation.nodes.items():
            current = await self._node(name)
            if current is None:
                raise CarryingOutError(f"the cluster has changed: node {name} does not exist any more")
            is_as_expected = current.status.allocatable == node.status.allocatable
            is_as_expected &= current.spec.unschedulable == (node.spec.unschedulable or name in self._cordons)
            if not is_as_expected:
                raise CarryingOutError(f"the cluster has changed: node {name} is not as it was")
            pods = {
                pod.uid: pod for pod in await self._pods(f"?fieldSelector=spec.nodeName%3D{name}") if not pod.has_ended
            }
            uids = expectation.pods[name] | (set(expectation.subjects.values()) if may_have_come else set())
            if strangers := sorted(pod.key for uid, pod in pods.items() if uid not in uids):
                raise CarryingOutError(f"the cluster has changed: {strangers[0]} has come to node {name}")
            if expectation.pods[name] - pods.keys():
                raise CarryingOutError(f"the cluster has changed: a pod has left node {name}")
        for key, uid in expectation.subjects.items():
            pod = await self._pod(key)
            if pod is None or pod.uid != uid:
                raise CarryingOutError(f"the cluster has changed: {key} does not exist any more")
            if pod.node_name and not may_have_come:
                raise CarryingOutError(f"the cluster has changed: {key} is on {pod.node_name} already")

    # ------------------------------------------------------------ requests

    async def _pods(self, query: str, namespace: str = "") -> Sequence[Pod]:
        path = f"/api/v1/namespaces/{namespace}/pods" if namespace else PODS.path
        body = await self._session.request("GET", path + query, answer_bytes_max=LIST_BYTES_MAX)
        return self._decoder.page(body).items

    async def _siblings(self, pod: Pod) -> Sequence[Pod]:
        """Return the pods of the same controller."""
        owner = pod.metadata.controller
        pods = await self._pods("", pod.metadata.namespace)
        return [entry for entry in pods if owner is not None and _controller(entry) == owner.uid]

    async def _pod(self, key: str) -> Pod | None:
        namespace, _, name = key.partition("/")
        pods = await self._pods(f"?fieldSelector=metadata.name%3D{name}", namespace)
        return next(iter(pods), None)

    async def _node(self, name: str) -> Node | None:
        body = await self._session.request(
            "GET", f"{NODES.path}?fieldSelector=metadata.name%3D{name}", answer_bytes_max=LIST_BYTES_MAX
        )
        return next(iter(self._node_decoder.page(body).items), None)

    async def _patch_node(self, name: str, spec: Mapping[str, Any], query: str = "") -> None:
        body = orjson.dumps({"spec": spec})
        await self._session.request("PATCH", f"{NODES.path}/{name}{query}", body, content_type=MERGE_PATCH)

    async def _uncordon(self, names: Collection[str]) -> None:
        for name in names:
            if name in self._cordons:
                await self._patch_node(name, {"unschedulable": None})
                self._cordons.discard(name)

    async def _take_cordons_back(self) -> None:
        for name in sorted(self._cordons):
            try:
                await self._uncordon([name])
            except NotFound:
                self._cordons.discard(name)
            except ApiError as error:
                self._report(f"node {name} is still cordoned, uncordon it: {error}")


def _controller(pod: Pod) -> str:
    owner = pod.metadata.controller
    return owner.uid if owner is not None else ""


def _is_ready(pod: Pod) -> bool:
    condition = pod.status.condition("Ready")
    return condition is not None and condition.status == "True"


@asynccontextmanager
async def carrying_out_with(
    live: tuple[str | None, str | None], report: Report, *, step_s_max: float = STEP_S_MAX
) -> AsyncIterator[MoveCarrier]:
    """Connect to the running cluster of a kubeconfig and a context.

    Raises:
        CarryingOutError: the cluster cannot be reached, or denies a request.
    """
    kubeconfig, context = live
    clock = SystemClock()
    try:
        credentials = await load(kubeconfig=kubeconfig, context=context, clock=clock)
        async with ApiSession(credentials) as session:
            yield MoveCarrier(
                session, ApiClient(Dispatcher(session, clock), clock), clock, report, step_s_max=step_s_max
            )
    except (ApiError, ConnectionConfigError) as error:
        raise CarryingOutError(str(error)) from error
