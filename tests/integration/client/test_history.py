"""Informers whose API server goes back in time, as when etcd is restored from a backup."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest
from structlog.testing import capture_logs

from podium.client import history
from podium.objects.core import Pod
from tests.integration.client.fault_server import FaultServer, Request, Silence, bookmark, chunks, line, page, status
from tests.integration.client.test_informer import Recorder, Running, body, equal, pod_item, reflecting
from tests.integration.client.waiting import eventually

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _times_that_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_update(recorder: Recorder, old: Pod, new: Pod) -> None:
        assert recorder.alive[new.key] is old
        recorder.alive[new.key] = new
        recorder.story.append(("update", new.metadata.name))

    monkeypatch.setattr(Recorder, "on_update", on_update)


def node_of(running: Running, name: str) -> str | None:
    pod = running.pods.get(f"default/{name}")
    return None if pod is None else pod.node_name


async def restore(server: FaultServer, running: Running) -> None:
    """Pods are bound, made and deleted, and all that is undone unseen."""
    await running.informers.wait_synced()
    await running.informers.wait_connected()
    backup = server.back_up()
    server.put(pod_item("bound-later", nodeName="n"))
    server.delete("deleted-later")
    for index in range(5):
        server.put(pod_item(f"later-{index}"))
    await equal(running, server)
    assert node_of(running, "bound-later") == "n"
    server.restore(backup)


def catch_up(server: FaultServer) -> None:
    for index in range(40):
        server.put(pod_item(f"new-{index}"))


@pytest.fixture
def pods_before(server: FaultServer) -> None:
    for name in ("bound-later", "deleted-later", "same"):
        server.put(pod_item(name))


@pytest.mark.usefixtures("pods_before")
@pytest.mark.parametrize("versions", [lambda server: None, catch_up], ids=["below", "caught up"])
async def test_what_was_lost_is_found_out_when_the_watch_is_resumed(
    server: FaultServer, versions: Callable[[FaultServer], None]
) -> None:
    async with reflecting(server) as running:
        await restore(server, running)
        versions(server)
        server.drop_watches()
        await equal(running, server)
        assert node_of(running, "bound-later") == ""
        assert {"deleted-later", "same"} <= running.versions().keys()
        server.put(pod_item("after"))
        await equal(running, server)
        assert len(server.lists) == 2


@pytest.mark.usefixtures("pods_before")
@pytest.mark.parametrize("source", ["event", "bookmark"])
async def test_an_older_version_in_the_watch_is_a_reason_to_list_again(server: FaultServer, source: str) -> None:
    is_restored = anyio.Event()

    async def watch(request: Request) -> None:
        await request.connection.start_chunks()
        for name in ("same", "bound-later"):
            await request.connection.chunk(line("MODIFIED", server.objects[name]))
        await is_restored.wait()
        older = bookmark(server.version) if source == "bookmark" else line("MODIFIED", server.objects["bound-later"])
        await request.connection.chunk(older)
        raise Silence

    async with reflecting(server) as running:
        backup = server.back_up()
        server.list_faults.append(body(page("PodList", {"resourceVersion": "103"}, backup[1].values())))
        server.watch_faults.append(watch)
        server.put(pod_item("same", nodeName="n"))
        server.put(pod_item("bound-later", nodeName="n"))
        await equal(running, server)
        # The watch goes on.
        server.restore(backup)
        is_restored.set()
        await equal(running, server)
        assert node_of(running, "bound-later") == ""
        assert len(server.lists) == 2


@pytest.mark.usefixtures("pods_before")
@pytest.mark.parametrize("source", ["event", "bookmark"])
async def test_a_watch_that_goes_back_is_followed_by_a_list_though_all_that_was_lost_has_changed_again(
    server: FaultServer, source: str
) -> None:
    """Reading what changed last proves nothing then: each pod is at a version that is known of it."""
    is_restored = anyio.Event()

    async def watch(request: Request) -> None:
        await request.connection.start_chunks()
        for name in ("bound-later", "same"):
            await request.connection.chunk(line("MODIFIED", server.objects[name]))
        await is_restored.wait()
        repetition = bookmark(103) if source == "bookmark" else line("MODIFIED", server.objects["bound-later"])
        await request.connection.chunk(repetition)
        request.connection.reset()
        raise Silence

    async with reflecting(server) as running:
        backup = server.back_up()
        server.list_faults.append(body(page("PodList", {"resourceVersion": "103"}, backup[1].values())))
        server.watch_faults.append(watch)
        server.put(pod_item("bound-later", nodeName="n"))
        server.put(pod_item("same", nodeName="n"))
        await equal(running, server)
        server.restore(backup)
        server.put(pod_item("bound-later", nodeName="other"))
        server.put(pod_item("same", nodeName="other"))
        is_restored.set()
        await eventually(lambda: node_of(running, "bound-later") == node_of(running, "same") == "other")
        assert len(server.lists) == 2


@pytest.mark.usefixtures("pods_before")
async def test_a_watch_that_is_resumed_from_the_last_change_may_give_older_versions_than_the_list(
    server: FaultServer,
) -> None:
    """What was deleted before the list is given once more; nothing has gone back."""
    server.put(pod_item("deleted-before"))
    server.delete("deleted-before")
    server.version = 110
    server.watch_faults.append(status(504, "Timeout"))
    async with reflecting(server) as running:
        await eventually(lambda: len(server.watches) >= 2)
        assert server.watches[1].query["resourceVersion"] == "103"
        server.put(pod_item("after"))
        await equal(running, server)
        assert len(server.lists) == 1


@pytest.mark.usefixtures("pods_before")
async def test_an_empty_cluster_is_told_by_its_version(server: FaultServer) -> None:
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        backup = server.back_up()
        for name in ("bound-later", "deleted-later", "same"):
            server.delete(name)
        await equal(running, server)
        server.restore(backup)
        server.drop_watches()
        await equal(running, server)
        assert len(running.versions()) == 3


@pytest.mark.usefixtures("pods_before")
async def test_old_events_that_come_again_change_nothing_and_are_listed_for_once(server: FaultServer) -> None:
    """How often they are listed for if they keep coming is counted in virtual time, in the unit tests."""
    old = dict(server.objects)
    for name in old:
        server.put(pod_item(name, nodeName="n"))
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        events = [line(kind, item) for item in old.values() for kind in ("ADDED", "MODIFIED", "DELETED")]
        await running.informers.wait_connected()
        server.watch_faults.append(chunks(*(events * 20), bookmark(100), ending="end"))
        server.drop_watches()
        await eventually(lambda: len(server.lists) == 2)
        server.put(pod_item("after"))
        await equal(running, server)
        assert running.recorder.story == [*(("add", name) for name in old), ("add", "after")]
        assert len(server.lists) == 2


@pytest.mark.usefixtures("pods_before")
async def test_an_api_server_that_was_not_restarted_with_its_etcd_is_found_out_and_complained_of(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "CHECK_EVERY_S", 0.1)
    monkeypatch.setattr(history, "START_OVER_EVERY_S", 0.5)
    monkeypatch.setattr(history, "_START_OVER_S_MAX", 0.5)
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        backup = server.back_up()
        server.put(pod_item("bound-later", nodeName="n"))
        await equal(running, server)
        with capture_logs() as logs:
            # Lists and watches go on as before.
            server.etcd = backup
            await eventually(lambda: [entry for entry in logs if "restart it" in entry["event"]])
        assert node_of(running, "bound-later") == "n"
        # Now it is restarted.
        server.restore(backup)
        server.etcd = None
        server.drop_watches()
        await equal(running, server)
        assert node_of(running, "bound-later") == ""


@pytest.mark.usefixtures("pods_before")
async def test_a_watch_that_is_resumed_costs_two_reads_and_no_list(server: FaultServer) -> None:
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        await running.informers.wait_connected()
        server.drop_watches()
        await eventually(lambda: len(server.reads) == 2)
        server.put(pod_item("after"))
        await equal(running, server)
        assert len(server.lists) == 1


@pytest.mark.usefixtures("pods_before")
async def test_pods_that_change_while_the_watch_is_away_are_no_reason_to_list(server: FaultServer) -> None:
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        await running.informers.wait_connected()
        server.drop_watches()
        server.put(pod_item("same", nodeName="n"))
        server.put(pod_item("bound-later", nodeName="n"))
        server.delete("deleted-later")
        await equal(running, server)
        await eventually(lambda: len(server.reads) >= 1)
        await anyio.sleep(0.3)
        assert len(server.lists) == 1


async def test_bound_pods_that_are_pending_again_are_no_secret(server: FaultServer) -> None:
    """With a higher version, which a restore may bring about that raises versions."""
    server.put(pod_item("a", nodeName="n"))
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        pod_seen = running.pods.get("default/a")
        assert pod_seen is not None
        running.informers.saw_unbound(pod_seen)
        await eventually(lambda: len(server.lists) == 2)
        # Once more is not soon enough to be listed for again.
        running.informers.saw_unbound(pod_seen)
        await anyio.sleep(0.3)
        assert len(server.lists) == 2
