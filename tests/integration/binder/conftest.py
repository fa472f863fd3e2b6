"""An API server, embedded or real, and our way of writing to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from podium.binder import ApiClient
from podium.client.credentials import Credentials, load
from podium.client.dispatcher import Dispatcher
from podium.client.requests import JSON, Method
from podium.client.session import ApiSession
from podium.lib.system_clock import SystemClock
from podium.objects.api_errors import OutcomeUnknown
from podium.objects.core import Pod
from podium.sandbox import Faults, Sandbox
from tests import manifests
from tests.control_plane.cleanup import empty_cluster
from tests.control_plane.client import Client, Json
from tests.control_plane.servers import ControlPlane

PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"

_decode_pod = msgspec.json.Decoder(Pod, strict=False).decode


@dataclass
class LossySession:
    """The session, except that the answers to some writes, which did take effect, do not get through."""

    session: ApiSession
    to_lose: int = 0
    writes: list[str] = field(default_factory=list)

    async def request(
        self,
        method: Method,
        path: str,
        body: bytes | None = None,
        *,
        content_type: str = JSON,
        deadline_s: float = 30.0,
    ) -> bytes:
        answer = await self.session.request(method, path, body, content_type=content_type, deadline_s=deadline_s)
        if method != "GET":
            self.writes.append(f"{method} {path}")
            if self.to_lose:
                self.to_lose -= 1
                raise OutcomeUnknown("connection reset by peer")
        return answer


@dataclass
class Cluster:
    """What a test needs: an admin's client that is not ours, and ours."""

    admin: Client
    session: LossySession
    dispatcher: Dispatcher
    client: ApiClient

    async def create_pod(self, name: str) -> Pod:
        """A pending pod, as our informers would show it."""
        await self.admin.create(PODS, manifests.pod(name))
        return await self.pod(name)

    async def pod(self, name: str) -> Pod:
        return _decode_pod(await self.session.session.request("GET", f"{PODS}/{name}"))

    async def changes_since(self, pod: Pod) -> Counter[str]:
        """How often each pod has changed since that one was read."""
        version = pod.metadata.resource_version
        watch = self.admin.watch(PODS, resourceVersion=version, timeoutSeconds="1")
        return Counter([change["object"]["metadata"]["name"] async for change in watch])

    async def condition(self, name: str) -> Json:
        status = (await self.admin.get(f"{PODS}/{name}"))["status"]
        [pod_scheduled] = [condition for condition in status["conditions"] if condition["type"] == "PodScheduled"]
        return dict(pod_scheduled)


async def open_clusters(credentials: Credentials, admin: Client) -> AsyncIterator[Cluster]:
    clock = SystemClock()
    async with ApiSession(credentials) as session:
        lossy = LossySession(session)
        dispatcher = Dispatcher(lossy, clock)
        yield Cluster(admin, lossy, dispatcher, ApiClient(dispatcher, clock))


@pytest.fixture(params=["sandbox", pytest.param("kube-apiserver", marks=pytest.mark.control_plane)])
async def cluster(request: pytest.FixtureRequest, anyio_backend: object, tmp_path: Path) -> AsyncIterator[Cluster]:
    """The embedded API server, then the real one."""
    clock = SystemClock()
    if request.param == "sandbox":
        async with Sandbox(kubelets=False) as sandbox, Client(sandbox.url) as admin:
            async for opened_cluster in open_clusters(
                await load(str(sandbox.write_kubeconfig(tmp_path / "config")), clock), admin
            ):
                yield opened_cluster
        return
    plane: ControlPlane = request.getfixturevalue("control_plane")
    async with Client(plane.url, token=plane.admin_token, tls=plane.ssl_context()) as admin:
        await empty_cluster(admin)
        async for opened_cluster in open_clusters(await load(str(plane.kubeconfig()), clock), admin):
            yield opened_cluster
        await empty_cluster(admin)


@dataclass
class FaultyCluster:
    """The embedded API server with its faults."""

    cluster: Cluster
    faults: Faults


@pytest.fixture
async def faulty(anyio_backend: object, tmp_path: Path) -> AsyncIterator[FaultyCluster]:
    async with Sandbox(kubelets=False) as sandbox, Client(sandbox.url) as admin:
        credentials = await load(str(sandbox.write_kubeconfig(tmp_path / "config")), SystemClock())
        async for opened_cluster in open_clusters(credentials, admin):
            yield FaultyCluster(opened_cluster, sandbox.faults)
