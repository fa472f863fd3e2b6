"""The client against the embedded API server and against the real one: it must not notice which it is."""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import anyio
import pytest

from podium.client.credentials import load
from podium.client.informer import Informer
from podium.client.informer_set import InformerSet
from podium.client.requests import STRATEGIC_MERGE_PATCH
from podium.client.session import ApiSession
from podium.lib.system_clock import SystemClock
from podium.objects import api_errors
from podium.objects.core import Node, Pod
from podium.objects.resource_types import NODES, PODS
from podium.objects.wire import BrokenObject, ObjectDecoder
from podium.sandbox import Sandbox
from tests.control_plane.cleanup import empty_cluster
from tests.control_plane.client import Client, Json
from tests.control_plane.servers import ControlPlane
from tests.integration.client.waiting import eventually
from tests.manifests import pod
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.anyio

PODS_PATH = "/api/v1/namespaces/default/pods"


@dataclass
class Server:
    """An empty cluster, and a client that is not ours to change it with."""

    kubeconfig: Path
    admin: Client
    control_plane: ControlPlane | None


@pytest.fixture(params=["sandbox", pytest.param("kube-apiserver", marks=pytest.mark.control_plane)])
async def cluster(request: pytest.FixtureRequest, anyio_backend: object, tmp_path: Path) -> AsyncIterator[Server]:
    if request.param == "sandbox":
        async with Sandbox(kubelets=False) as sandbox, Client(sandbox.url) as admin:
            yield Server(sandbox.write_kubeconfig(tmp_path / "kubeconfig"), admin, None)
        return
    plane: ControlPlane = request.getfixturevalue("control_plane")
    async with Client(plane.url, token=plane.admin_token, tls=plane.ssl_context()) as admin:
        await empty_cluster(admin)
        yield Server(plane.kubeconfig(), admin, plane)
        await empty_cluster(admin)


class Story:
    """What a handler is told, by name."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def on_add(self, new: Pod) -> None:
        self.events.append(("add", new.metadata.name))

    def on_update(self, old: Pod, new: Pod) -> None:
        assert old.uid == new.uid
        self.events.append(("update", new.metadata.name))

    def on_delete(self, old: Pod) -> None:
        self.events.append(("delete", old.metadata.name))

    def on_broken(self, broken_object: BrokenObject) -> None:
        raise AssertionError(broken_object)


@dataclass
class Ours:
    """Our side."""

    session: ApiSession
    informers: InformerSet
    pods: Informer[Pod]
    nodes: Informer[Node]
    story: Story


@pytest.fixture
async def ours(cluster: Server) -> AsyncIterator[Ours]:
    clock = SystemClock()
    async with ApiSession(await load(str(cluster.kubeconfig), clock)) as session, anyio.create_task_group() as group:
        informers = InformerSet(session, clock=clock, random=Random(0))
        informer_parts = Ours(session, informers, informers.informer(PODS), informers.informer(NODES), Story())
        informer_parts.pods.add_handler(informer_parts.story)
        group.start_soon(informers.run)
        await informers.wait_synced()
        yield informer_parts
        group.cancel_scope.cancel()


async def wait_events(ours: Ours, *events: tuple[str, str]) -> None:
    await eventually(lambda: ours.story.events == list(events))


def pod_a(ours: Ours) -> Pod:
    return ours.pods.get("default/a") or Pod()


async def test_changes_of_pods_are_followed_and_finished_pods_are_let_go(cluster: Server, ours: Ours) -> None:
    created_pod = await cluster.admin.create(PODS_PATH, pod("a"))
    await wait_events(ours, ("add", "a"))
    pod_seen = ours.pods.get("default/a")
    assert pod_seen is not None
    assert (pod_seen.uid, pod_seen.spec.scheduler_name) == (created_pod["metadata"]["uid"], "podium")
    await cluster.admin.create(PODS_PATH, pod("b"))
    await cluster.admin.patch(f"{PODS_PATH}/a", {"metadata": {"labels": {"x": "y"}}})
    await wait_events(ours, ("add", "a"), ("add", "b"), ("update", "a"))
    await cluster.admin.patch(f"{PODS_PATH}/b/status", {"status": {"phase": "Succeeded"}})
    await wait_events(ours, ("add", "a"), ("add", "b"), ("update", "a"), ("delete", "b"))
    assert [item.metadata.name for item in ours.pods.list()] == ["a"]


async def test_a_pod_is_bound_once_and_a_second_time_is_a_conflict(cluster: Server, ours: Ours) -> None:
    await cluster.admin.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    await cluster.admin.create(PODS_PATH, pod("a"))
    target = {"kind": "Node", "name": "n"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": target}
    body = json.dumps(binding).encode()
    await ours.session.post(f"{PODS_PATH}/a/binding", body)
    with pytest.raises(api_errors.Conflict):
        await ours.session.post(f"{PODS_PATH}/a/binding", body)
    with pytest.raises(api_errors.NotFound):
        await ours.session.post(f"{PODS_PATH}/absent/binding", body.replace(b'"a"', b'"absent"'))
    await eventually(lambda: pod_a(ours).node_name == "n")
    await eventually(lambda: ours.nodes.get("n") is not None)


async def test_a_condition_is_patched_into_the_status(cluster: Server, ours: Ours) -> None:
    await cluster.admin.create(PODS_PATH, pod("a"))
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "why"}
    await ours.session.request(
        "PATCH",
        f"{PODS_PATH}/a/status",
        json.dumps({"status": {"conditions": [condition]}}).encode(),
        content_type=STRATEGIC_MERGE_PATCH,
    )
    await eventually(lambda: pod_a(ours).status.condition("PodScheduled") is not None)
    assert pod_a(ours).status.conditions[0].message == "why"


async def test_errors_have_their_kind(cluster: Server, ours: Ours) -> None:
    await cluster.admin.create(PODS_PATH, pod("a"))
    with pytest.raises(api_errors.AlreadyExists):
        await ours.session.post(PODS_PATH, json.dumps(pod("a")).encode())
    with pytest.raises(api_errors.Invalid):
        await ours.session.post(PODS_PATH, json.dumps(pod("No Name")).encode())
    with pytest.raises(api_errors.BadRequest):
        await ours.session.post(PODS_PATH, b"{")
    with pytest.raises(api_errors.NotFound):
        await ours.session.request("GET", "/apis/absent.example/v1/things")


async def test_pages_of_a_list_join_to_the_whole(cluster: Server, ours: Ours) -> None:
    for index in range(7):
        await cluster.admin.create(PODS_PATH, pod(f"p{index}"))
    decoder, names, token = ObjectDecoder(PODS), list[str](), ""
    while True:
        suffix = f"&continue={token}" if token else ""
        page = decoder.page(await ours.session.request("GET", f"{PODS_PATH}?limit=3{suffix}"))
        assert len(page.items) <= 3
        names += [item.metadata.name for item in page.items]
        token = page.continue_token
        if not token:
            break
    assert names == [f"p{index}" for index in range(7)]


def kill_and_restart(control_plane: ControlPlane) -> None:
    assert control_plane.apiserver is not None
    control_plane.apiserver.kill()
    control_plane.start_apiserver()


@asynccontextmanager
async def watch_pods(control_plane: ControlPlane) -> AsyncIterator[tuple[Client, InformerSet, Story]]:
    """An informer of pods at work on an empty cluster, and an administrator."""
    clock = SystemClock()
    kubeconfig = control_plane.kubeconfig()
    async with (
        Client(control_plane.url, token=control_plane.admin_token, tls=control_plane.ssl_context()) as admin,
        ApiSession(await load(str(kubeconfig), clock)) as session,
        anyio.create_task_group() as group,
    ):
        await empty_cluster(admin)
        informers = InformerSet(session, clock=clock, random=Random(0))
        pods, story = informers.informer(PODS), Story()
        pods.add_handler(story)
        group.start_soon(informers.run)
        await informers.wait_synced()
        yield admin, informers, story
        await empty_cluster(admin)
        group.cancel_scope.cancel()


@pytest.mark.control_plane
@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": True})], ids=["uvloop"])
async def test_the_death_of_the_api_server_loses_nothing(control_plane: ControlPlane, anyio_backend: object) -> None:
    async with watch_pods(control_plane) as (admin, _, story):
        await admin.create(PODS_PATH, pod("before"))
        await anyio.to_thread.run_sync(kill_and_restart, control_plane)
        await admin.create(PODS_PATH, pod("after"))
        await eventually(lambda: len(story.events) >= 2)
        assert story.events == [("add", "before"), ("add", "after")]


def forget_in_etcd(control_plane: ControlPlane, key: str) -> None:
    """While no API server looks on, an object goes, and with it the history."""
    assert control_plane.apiserver is not None
    control_plane.apiserver.kill()
    answer = ask_etcd(control_plane, "deleterange", {"key": base64.b64encode(key.encode()).decode()})
    assert answer["deleted"] == "1"
    ask_etcd(control_plane, "compaction", {"revision": answer["header"]["revision"], "physical": True})
    control_plane.start_apiserver()


def ask_etcd(control_plane: ControlPlane, operation: str, body: Json) -> Json:
    request = urllib.request.Request(
        f"http://{control_plane.etcd_address}/v3/kv/{operation}", json.dumps(body).encode(), method="POST"
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        document: Json = json.load(answer)
    return document


@pytest.mark.control_plane
@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": True})], ids=["uvloop"])
async def test_what_etcd_has_forgotten_is_found_out_by_a_new_list(
    control_plane: ControlPlane, anyio_backend: object
) -> None:
    async with watch_pods(control_plane) as (admin, informers, story):
        await admin.create(PODS_PATH, pod("before"))
        await eventually(lambda: story.events == [("add", "before")])
        await anyio.to_thread.run_sync(forget_in_etcd, control_plane, "/registry/pods/default/before")
        await admin.create(PODS_PATH, pod("after"))
        await eventually(lambda: len(story.events) >= 3)
        assert sorted(story.events[1:]) == [("add", "after"), ("delete", "before")]
        assert informers.statistics()["pods"].lists_total == 2
