"""Writing over connections that a balancer has lost without telling anybody."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from podium.binder import ApiClient
from podium.client.credentials import load
from podium.client.dispatcher import Dispatcher
from podium.client.session import ApiSession
from podium.lib.system_clock import SystemClock
from podium.objects.core import Pod
from podium.sandbox import Sandbox
from tests import manifests
from tests.builders import pod
from tests.relay import Relay

pytestmark = pytest.mark.anyio

ANSWER_S_MAX = 0.5


class RelayedServer:
    """The embedded API server behind a relay, and our way of writing to it."""

    def __init__(self, sandbox: Sandbox, relay: Relay, client: ApiClient) -> None:
        self.sandbox, self.relay, self.client = sandbox, relay, client

    def create(self, name: str) -> Pod:
        stored_pod = self.sandbox.store.create(manifests.pod(name))
        return pod(name, uid=stored_pod["metadata"]["uid"])

    def node_of(self, name: str) -> str | None:
        node: str | None = self.sandbox.store.get("pods", name)["spec"].get("nodeName")
        return node


@pytest.fixture
async def relayed_server(
    anyio_backend: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[RelayedServer]:
    monkeypatch.setattr("podium.client.dispatcher._REQUEST_S_MAX", ANSWER_S_MAX)
    clock = SystemClock()
    async with Sandbox(kubelets=False) as sandbox, Relay(int(sandbox.url.rpartition(":")[2])) as relay:
        credentials = await load(None, clock, master=f"http://127.0.0.1:{relay.port}")
        async with ApiSession(credentials) as session:
            yield RelayedServer(sandbox, relay, ApiClient(Dispatcher(session, clock), clock))


async def test_a_binding_on_a_dead_connection_is_looked_up_and_made_again_on_another(
    relayed_server: RelayedServer,
) -> None:
    await relayed_server.client.bind(relayed_server.create("a"), "n1")
    relayed_server.relay.swallow()
    with anyio.fail_after(20):
        await relayed_server.client.bind(relayed_server.create("b"), "n1")
    assert relayed_server.node_of("b") == "n1"
    assert relayed_server.relay.accepted == 2


async def test_one_dead_connection_is_enough_to_trust_none_that_was_idle_meanwhile(
    relayed_server: RelayedServer,
) -> None:
    async with anyio.create_task_group() as tasks:
        for name in "abcde":
            tasks.start_soon(relayed_server.client.bind, relayed_server.create(name), "n1")
    relayed_server.relay.swallow()
    started_s = anyio.current_time()
    for name in "fgh":
        await relayed_server.client.bind(relayed_server.create(name), "n1")
    assert anyio.current_time() - started_s < 4 * ANSWER_S_MAX
    assert relayed_server.node_of("h") == "n1"


async def test_a_binding_that_a_slow_server_makes_after_the_deadline_is_one_binding(
    relayed_server: RelayedServer,
) -> None:
    binding = {"verb": "create", "resource": "pods", "subresource": "binding"}
    relayed_server.sandbox.faults.latency(2 * ANSWER_S_MAX, times=1, **binding)
    slow = relayed_server.create("slow")
    version = relayed_server.sandbox.store.revision
    await relayed_server.client.bind(slow, "n1")
    await anyio.sleep(2 * ANSWER_S_MAX)
    assert relayed_server.node_of("slow") == "n1"
    assert relayed_server.sandbox.store.revision == version + 1
