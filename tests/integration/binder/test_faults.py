"""Writing to an API server that has bad luck."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import anyio
import pytest

from podium.binder import (
    Binder,
    BindingObserver,
    BindOutcome,
    BindPod,
    EventRecorder,
    PodsInPreBind,
    WaitingPods,
    not_scheduled,
)
from podium.framework.contract.bind import BindPlugin, PostBindPlugin, PreBindPlugin
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.handle import ApiClient
from podium.framework.contract.status import Status
from podium.lib.system_clock import SystemClock
from podium.objects.api_errors import InternalError, OutcomeUnknown
from podium.objects.core import Pod
from tests.integration.binder.conftest import EVENTS, PODS, Cluster, FaultyCluster

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> object:
    return "asyncio", {"use_uvloop": True}


def bindings(cluster: Cluster, name: str) -> int:
    """Return the number of answers to bindings of the pod that got through."""
    return cluster.session.writes.count(f"POST {PODS}/{name}/binding")


async def test_a_lost_answer_leaves_the_pod_bound_exactly_once(faulty: FaultyCluster) -> None:
    cluster = faulty.cluster
    pod = await cluster.create_pod("a")
    faulty.faults.lose_response(verb="create", resource="pods", subresource="binding")
    await cluster.client.bind(pod, "n1")
    assert (await cluster.pod("a")).node_name == "n1"
    assert await cluster.changes_since(pod) == {"a": 1}
    assert bindings(cluster, "a") == 0


async def test_a_500_that_did_nothing_is_followed_by_another_try(faulty: FaultyCluster) -> None:
    cluster = faulty.cluster
    pod = await cluster.create_pod("a")
    faulty.faults.server_error(verb="create", resource="pods", subresource="binding")
    await cluster.client.bind(pod, "n1")
    assert (await cluster.pod("a")).node_name == "n1"
    assert bindings(cluster, "a") == 1


@pytest.mark.parametrize(
    ("code", "body"),
    [
        (200, "<html>Log in</html>"),
        (200, ""),
        (200, "{}"),
        (204, ""),
        (207, '{"kind":"Status","apiVersion":"v1","status":"Success"}'),
        (201, '{"kind":"Status","apiVersion":"v1","status":"Failure","code":409,"reason":"Conflict"}'),
        (201, '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"b","namespace":"default","uid":"x"}}'),
        (302, ""),
    ],
)
async def test_an_answer_that_makes_no_sense_is_followed_by_another_try(
    faulty: FaultyCluster, code: int, body: str
) -> None:
    cluster = faulty.cluster
    pod = await cluster.create_pod("a")
    faulty.faults.invalid_answer(code=code, body=body, verb="create", resource="pods", subresource="binding")
    faulty.faults.invalid_answer(code=code, body=body, verb="get", resource="pods")
    await cluster.client.bind(pod, "n1")
    assert (await cluster.pod("a")).node_name == "n1"
    assert await cluster.changes_since(pod) == {"a": 1}
    faulty.faults.invalid_answer(code=code, body=body, verb="patch", resource="pods", subresource="status")
    assert await cluster.client.patch_status(pod, condition=not_scheduled(pod, "no room", is_rejected=True))
    assert (await cluster.condition("a"))["message"] == "no room"
    faulty.faults.invalid_answer(code=code, body=body, verb="delete", resource="pods")
    assert await cluster.client.delete_pod(pod)
    assert (await cluster.pod("a")).is_terminating


async def test_a_pod_that_cannot_be_read_at_once_is_read_later(faulty: FaultyCluster) -> None:
    cluster = faulty.cluster
    pod = await cluster.create_pod("a")
    faulty.faults.lose_response(verb="create", resource="pods", subresource="binding")
    faulty.faults.server_error(2, code=503, verb="get", resource="pods")
    await cluster.client.bind(pod, "n1")
    assert await cluster.changes_since(pod) == {"a": 1}
    assert bindings(cluster, "a") == 0


async def test_a_server_that_only_fails_leaves_the_pod_unbound_and_says_so(faulty: FaultyCluster) -> None:
    cluster = faulty.cluster
    pod = await cluster.create_pod("a")
    faulty.faults.server_error(None, verb="create", resource="pods", subresource="binding")
    with pytest.raises(InternalError):
        await cluster.client.bind(pod, "n1")
    faulty.faults.clear()
    assert (await cluster.pod("a")).node_name == ""


async def test_a_pod_that_cannot_be_read_at_all_leaves_the_outcome_unknown(faulty: FaultyCluster) -> None:
    cluster = faulty.cluster
    pod = await cluster.create_pod("a")
    faulty.faults.lose_response(verb="create", resource="pods", subresource="binding")
    faulty.faults.server_error(None, verb="get", resource="pods")
    with pytest.raises(OutcomeUnknown):
        await cluster.client.bind(pod, "n1")


async def test_429_is_waited_out(faulty: FaultyCluster) -> None:
    cluster = faulty.cluster
    pod = await cluster.create_pod("a")
    faulty.faults.too_many_requests(verb="create", resource="pods", subresource="binding")
    started_s = time.monotonic()
    await cluster.client.bind(pod, "n1")
    assert time.monotonic() - started_s >= 1.0
    assert bindings(cluster, "a") == 1


async def test_a_status_patch_survives_errors_and_a_lost_answer(faulty: FaultyCluster) -> None:
    cluster = faulty.cluster
    pod = await cluster.create_pod("a")
    faulty.faults.server_error(2, verb="patch", resource="pods", subresource="status")
    faulty.faults.lose_response(verb="patch", resource="pods", subresource="status")
    assert await cluster.client.patch_status(pod, condition=not_scheduled(pod, "no room", is_rejected=True))
    assert (await cluster.condition("a"))["message"] == "no room"


class Binds(BindPlugin):
    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        await self._client.bind(pod, node_name)
        return None


@dataclass
class Plugins:
    bind: Sequence[BindPlugin]
    pre_bind: Sequence[PreBindPlugin] = ()
    post_bind: Sequence[PostBindPlugin] = ()


async def test_a_hundred_pods_are_bound_with_one_event_each_through_lost_answers_and_errors(
    faulty: FaultyCluster,
) -> None:
    cluster, clock = faulty.cluster, SystemClock()
    recorder = EventRecorder(cluster.dispatcher, clock, hostname="host-1", retry_s=0.1)
    binder = Binder(
        clock,
        statuses=cluster.client,
        events=recorder,
        observer=BindingObserver(),
        waiting_pods=WaitingPods(clock),
        pods_in_pre_bind=PodsInPreBind(),
    )
    pods = [await cluster.create_pod(f"p{index}") for index in range(100)]
    faulty.faults.lose_response(15, verb="create", resource="pods", subresource="binding")
    faulty.faults.server_error(10, verb="create", resource="pods", subresource="binding")
    faulty.faults.lose_response(10, verb="create", resource="events")
    plugins = Plugins([Binds(cluster.client)])
    outcomes: list[BindOutcome] = []

    async def bind(pod: Pod) -> None:
        outcomes.append(await binder.bind_pod(BindPod(pod, "n1", CycleState(), plugins, lambda: None)))

    async with anyio.create_task_group() as group:
        group.start_soon(recorder.run)
        async with anyio.create_task_group() as binding:
            for pod in pods:
                binding.start_soon(bind, pod)
        assert await recorder.aclose(10.0) == 0
    assert [outcome.status for outcome in outcomes] == [None] * 100
    assert {pod["spec"]["nodeName"] for pod in await cluster.admin.list(PODS)} == {"n1"}
    assert await cluster.changes_since(pods[-1]) == {pod.metadata.name: 1 for pod in pods}
    counts = Counter(event["regarding"]["name"] for event in await cluster.admin.list(EVENTS))
    assert counts == {pod.metadata.name: 1 for pod in pods}


async def test_a_conflict_ends_in_an_outcome_with_the_servers_words(faulty: FaultyCluster) -> None:
    cluster, clock = faulty.cluster, SystemClock()
    binder = Binder(
        clock,
        statuses=cluster.client,
        events=EventRecorder(cluster.dispatcher, clock, hostname="host-1"),
        observer=BindingObserver(),
        waiting_pods=WaitingPods(clock),
        pods_in_pre_bind=PodsInPreBind(),
    )
    pod = await cluster.create_pod("a")
    await cluster.client.bind(pod, "n1")
    plugins = Plugins([Binds(cluster.client)])
    outcome = await binder.bind_pod(BindPod(pod, "n2", CycleState(), plugins, lambda: None))
    assert outcome.status is not None
    assert outcome.status.message == (
        'running Bind plugin "Binds": Operation cannot be fulfilled on pods/binding "a": '
        'pod a is already assigned to node "n1"'
    )
