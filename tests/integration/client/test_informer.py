"""Informers against a server that fails in every way a server can."""

from __future__ import annotations

import io
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from random import Random
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from podium.client.backoff import BackoffPolicy
from podium.client.credentials import load
from podium.client.informer import Informer
from podium.client.informer_set import InformerSet
from podium.client.reflector import ReflectorSettings
from podium.client.session import ApiSession
from podium.lib.system_clock import SystemClock
from podium.objects.core import Pod
from podium.objects.resource_types import PODS, REPLICA_SETS
from podium.objects.wire import BrokenObject
from tests.integration.client.fault_server import (
    Fault,
    FaultServer,
    Request,
    bookmark,
    chunks,
    error_event,
    line,
    page,
    reset,
    silence,
    status,
)
from tests.integration.client.waiting import eventually
from tests.relay import Relay

pytestmark = pytest.mark.anyio

QUICK = ReflectorSettings(
    idle_s_max=20.0,
    list_s_max=20.0,
    list_idle_s=20.0,
    backoff=BackoffPolicy(first_s=0.01, longest_s=0.05, refused_s=0.02),
)
# For servers that go silent: with others it would be the machine's pauses that count.
IMPATIENT = replace(QUICK, idle_s_max=0.5, list_idle_s=0.5)


def pod_item(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def in_pieces(content: bytes) -> list[bytes]:
    return [content[start : start + 7] for start in range(0, len(content), 7)]


class Recorder:
    """Keeps what it is told, and holds the informer to the order of events of one object."""

    def __init__(self) -> None:
        self.story: list[tuple[str, str]] = []
        self.alive: dict[str, Pod] = {}
        self.broken: list[BrokenObject] = []

    def on_add(self, new: Pod) -> None:
        assert new.key not in self.alive
        self.alive[new.key] = new
        self.story.append(("add", new.metadata.name))

    def on_update(self, old: Pod, new: Pod) -> None:
        assert self.alive[new.key] is old
        assert int(new.metadata.resource_version) > int(old.metadata.resource_version)
        self.alive[new.key] = new
        self.story.append(("update", new.metadata.name))

    def on_delete(self, old: Pod) -> None:
        assert self.alive.pop(old.key) is old
        self.story.append(("delete", old.metadata.name))

    def on_broken(self, broken_object: BrokenObject) -> None:
        self.broken.append(broken_object)


class Running:
    """An informer of pods at work."""

    def __init__(self, informers: InformerSet) -> None:
        self.informers = informers
        self.pods: Informer[Pod] = informers.informer(PODS)
        self.recorder = Recorder()
        self.pods.add_handler(self.recorder)

    def versions(self) -> dict[str, str]:
        assert {item.key: item for item in self.pods.list()} == self.recorder.alive
        return {item.metadata.name: item.metadata.resource_version for item in self.pods.list()}


@asynccontextmanager
async def reflecting(
    server: FaultServer | Relay, settings: ReflectorSettings = QUICK, *, seed: int = 0
) -> AsyncIterator[Running]:
    clock = SystemClock()
    credentials = await load(None, clock, master=f"http://127.0.0.1:{server.port}")
    async with ApiSession(credentials) as session, anyio.create_task_group() as group:
        running = Running(InformerSet(session, clock=clock, random=Random(seed), settings=settings))
        group.start_soon(running.informers.run)
        yield running
        group.cancel_scope.cancel()


def held_by(server: FaultServer) -> dict[str, str]:
    return {name: item["metadata"]["resourceVersion"] for name, item in server.objects.items()}


async def equal(running: Running, server: FaultServer) -> None:
    await eventually(lambda: running.versions() == held_by(server))


async def test_objects_are_listed_and_their_changes_followed(server: FaultServer) -> None:
    server.put(pod_item("a"))
    server.put(pod_item("b"))
    async with reflecting(server) as running:
        assert not running.informers.is_synced
        await running.informers.wait_synced()
        assert running.recorder.story == [("add", "a"), ("add", "b")]
        server.put(pod_item("a", priority=7))
        server.delete("b")
        server.put(pod_item("c"))
        await equal(running, server)
        assert running.recorder.story[2:] == [("update", "a"), ("delete", "b"), ("add", "c")]
        pod_seen = running.pods.get("default/a")
        assert pod_seen is not None
        assert pod_seen.priority == 7
        (list_request,), (watch_request,) = server.lists, server.watches
        assert list_request.query == {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
        assert watch_request.query["fieldSelector"] == list_request.query["fieldSelector"]
        assert watch_request.query["resourceVersion"] == "102"
        assert 15 <= int(watch_request.query["timeoutSeconds"]) <= 20


async def test_a_server_that_gives_only_pages_is_listed_page_by_page(server: FaultServer) -> None:
    server.page_items_max = 5
    for index in range(23):
        server.put(pod_item(f"p{index}"))
    async with reflecting(server, replace(QUICK, page_items=5)) as running:
        await running.informers.wait_synced()
        assert running.versions() == held_by(server)
        assert [request.query.get("limit") for request in server.lists] == [None, *["5"] * 5]
        server.put(pod_item("late"))
        await equal(running, server)
        assert server.watches[-1].query["resourceVersion"] == "123"


async def test_an_expired_continue_token_starts_the_list_again_in_one_piece(server: FaultServer) -> None:
    for index in range(8):
        server.put(pod_item(f"p{index}"))
    server.list_faults.extend([chunks(b'{"kind":"PodList"', ending="reset"), None, status(410, "Expired")])
    async with reflecting(server, replace(QUICK, page_items=5)) as running:
        await running.informers.wait_synced()
        assert running.versions() == held_by(server)
        assert [request.query.get("limit") for request in server.lists] == [None, "5", "5", None]


async def test_the_last_page_which_may_hold_everything_is_not_taken_in_one_turn(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    early: list[int] = []
    take = Informer.take_early

    def noting(informer: Informer[Any], items: Sequence[Any]) -> None:
        early.append(len(items))
        take(informer, items)

    monkeypatch.setattr(Informer, "take_early", noting)
    for index in range(13):
        server.put(pod_item(f"p{index}"))
    server.list_faults.append(chunks(b'{"kind":"PodList"', ending="reset"))
    async with reflecting(server, replace(QUICK, page_items=5)) as running:
        await running.informers.wait_synced()
        assert running.versions() == held_by(server)
    assert early == [5, 5]


@pytest.mark.parametrize("end", ["end", "reset", "silence"])
@pytest.mark.parametrize("missing", [1, 30])
async def test_a_torn_list_is_made_page_by_page(server: FaultServer, end: str, missing: int) -> None:
    server.put(pod_item("a"))
    server.put(pod_item("b"))
    content = page("PodList", {"resourceVersion": "102"}, server.objects.values()).rstrip()
    server.list_faults.append(chunks(content[:-missing], ending=end))
    async with reflecting(server, IMPATIENT) as running:
        await running.informers.wait_synced()
        assert running.versions() == held_by(server)
        assert [request.query.get("limit") for request in server.lists] == [None, "500"]
        assert running.recorder.story == [("add", "a"), ("add", "b")]


@pytest.mark.parametrize(
    "refusal",
    [
        status(400, "BadRequest"),
        status(504, "Timeout"),
        chunks(b"<html>", ending="end"),
        chunks(b'{"kind":"PodList"', ending="silence"),
        silence,
    ],
    ids=["refused", "given up", "no list", "too slow", "not answered"],
)
async def test_a_list_that_is_refused_in_one_piece_is_made_page_by_page(server: FaultServer, refusal: Fault) -> None:
    server.put(pod_item("a"))
    server.list_faults.append(refusal)
    async with reflecting(server, replace(QUICK, list_s_max=0.5)) as running:
        await running.informers.wait_synced()
        assert running.versions() == held_by(server)
        assert [request.query.get("limit") for request in server.lists] == [None, "500"]
        server.compact()
        server.put(pod_item("b"))
        server.compact()
        server.drop_watches()
        await equal(running, server)
        assert server.lists[-1].query.get("limit") is None


@pytest.mark.parametrize(("end", "version"), [("end", "150"), ("silence", "150"), ("reset", "102")])
async def test_a_watch_that_breaks_is_resumed_where_it_was(server: FaultServer, end: str, version: str) -> None:
    """Not from a bookmark where the connection broke: after a restore, its version may be that of another history."""
    server.put(pod_item("a"))
    async with reflecting(server, IMPATIENT if end == "silence" else QUICK) as running:
        await running.informers.wait_synced()
        server.put(pod_item("b"))
        await equal(running, server)
        server.version = 150
        server.watch_faults.append(chunks(bookmark(150), ending=end))
        server.drop_watches()
        await eventually(lambda: len(server.watches) >= 3)
        assert server.watches[1].query["resourceVersion"] == "102"
        assert server.watches[2].query["resourceVersion"] == version
        server.put(pod_item("c"))
        await equal(running, server)
        assert len(server.lists) == 1


async def test_a_watch_that_breaks_after_a_list_is_resumed_from_the_last_change_in_it(server: FaultServer) -> None:
    """Not from the version of the list, which another history may pass again after a restore."""
    server.put(pod_item("a"))
    server.put(pod_item("b"))
    server.version = 150
    server.watch_faults.append(status(504, "Timeout"))
    async with reflecting(server, QUICK) as running:
        await running.informers.wait_synced()
        await eventually(lambda: len(server.watches) >= 2)
        assert [watch.query["resourceVersion"] for watch in server.watches[:2]] == ["150", "102"]
        server.put(pod_item("c"))
        await equal(running, server)
        assert len(server.lists) == 1


async def test_a_watch_lasts_only_while_it_brings_something(server: FaultServer) -> None:
    """One that brings nothing is asked to end soon: its end is the sign of life."""
    quiet, lively = range(15, 21), range(300, 601)
    metadata = {"name": "x", "namespace": "default", "uid": "u", "resourceVersion": "150"}
    change = line("ADDED", {"metadata": metadata, "spec": {}})
    async with reflecting(server) as running:
        await running.informers.wait_connected()
        for content in (bookmark(150), change, change, bookmark(151)):
            server.watch_faults.append(chunks(content, ending="end"))
        server.drop_watches()
        await eventually(lambda: len(server.watches) >= 6)
        timeouts_s = [int(watch.query["timeoutSeconds"]) for watch in server.watches[:6]]
    assert [timeout_s in quiet for timeout_s in timeouts_s] == [True, True, True, False, False, True]
    assert all(timeout_s in quiet or timeout_s in lively for timeout_s in timeouts_s)


@pytest.mark.parametrize("brings_something", [False, True])
async def test_a_watch_whose_connection_is_dead_is_resumed_on_another(
    server: FaultServer, brings_something: bool
) -> None:
    settings = replace(QUICK, quiet_watch_s_min=1.0, quiet_watch_s_max=1.0, grace_s=0.2, idle_s_max=1.2)
    async with Relay(server.port) as relay, reflecting(relay, settings) as running:
        await running.informers.wait_synced()
        await running.informers.wait_connected()
        if brings_something:
            server.put(pod_item("a"))
            await equal(running, server)
        relay.swallow()
        server.put(pod_item("b"))
        await equal(running, server)
        assert len(server.lists) == 1
        assert next(iter(running.informers._reflectors.values())).statistics.failures_total == 0


async def test_a_list_that_is_slow_to_begin_gets_more_time_each_time(server: FaultServer) -> None:
    server.put(pod_item("a"))

    async def slow(request: Request) -> None:
        await anyio.sleep(0.7)
        await request.connection.answer(200, page("PodList", {"resourceVersion": "1"}, server.objects.values()))

    server.list_faults.extend([slow] * 5)
    async with reflecting(server, replace(QUICK, list_idle_s=0.2)) as running:
        await running.informers.wait_synced()
        assert running.versions() == held_by(server)
        assert 2 <= len(server.lists) <= 4


async def test_a_list_without_end_is_given_up(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podium.client.reflector._ITEMS_MAX", 5000)
    metadata = {"name": "x", "namespace": "default", "uid": "u", "resourceVersion": "7"}
    item = json.dumps({"metadata": metadata, "spec": {}}, separators=(",", ":"))
    byte_count = 0

    async def endless(request: Request) -> None:
        nonlocal byte_count
        await request.connection.start_chunks()
        await request.connection.chunk(
            b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":['
        )
        while True:
            await request.connection.chunk((item + ",").encode() * 1000)
            byte_count += 1000

    async def more(request: Request) -> None:
        items = [json.loads(item)] * 500
        await request.connection.answer(200, page("PodList", {"resourceVersion": "7", "continue": "more"}, items))

    server.list_faults.extend([endless, *[more] * 11])
    server.put(pod_item("a"))
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        assert running.versions() == held_by(server)
    assert byte_count < 100_000
    assert len(server.lists) == 1 + 11 + 1


async def test_empty_pages_without_end_are_given_up(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podium.client.reflector._ITEMS_MAX", 5000)
    empty = body(page("PodList", {"resourceVersion": "7", "continue": "more"}, []))
    # In one piece, and as many pages as are asked for, and then one more time.
    server.list_faults.extend([empty] * (1 + 11))
    server.put(pod_item("a"))
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        assert running.versions() == held_by(server)
        assert running.informers.statistics()["pods"].failures_total == 1
    assert len(server.lists) == 1 + 11 + 1


async def test_a_line_torn_by_a_reset_is_read_again_after_the_resume(server: FaultServer) -> None:
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        server.put(pod_item("a"))
        await equal(running, server)

        async def tear(request: Request) -> None:
            lines_sent = line("ADDED", server.objects["b"]) + line("ADDED", server.objects["c"])
            await chunks(lines_sent[:-30], ending="reset")(request)

        server.watch_faults.append(tear)
        server.drop_watches()
        server.put(pod_item("b"))
        server.put(pod_item("c"))
        await equal(running, server)
        assert running.recorder.story == [("add", "a"), ("add", "b"), ("add", "c")]


async def test_lists_and_lines_are_put_together_from_any_pieces(server: FaultServer) -> None:
    server.put(pod_item("a"))
    server.put(pod_item("b"))
    list_page = page("PodList", {"resourceVersion": "102"}, server.objects.values())
    server.list_faults.append(chunks(*in_pieces(list_page), ending="end"))
    server.put(pod_item("c"))
    server.put(pod_item("a", priority=1))
    changes = line("ADDED", server.objects["c"]) + line("MODIFIED", server.objects["a"])
    server.watch_faults.append(chunks(*in_pieces(changes), ending="silence"))
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        await equal(running, server)
        assert running.recorder.story == [("add", "a"), ("add", "b"), ("add", "c"), ("update", "a")]
        assert (len(server.lists), len(server.watches)) == (1, 1)


@pytest.mark.parametrize("as_event", [False, True])
async def test_410_lists_again_and_delivers_the_difference(server: FaultServer, as_event: bool) -> None:
    for name in "abc":
        server.put(pod_item(name))
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        if as_event:
            server.watch_faults.append(chunks(error_event(410, "Expired"), ending="end"))
        server.drop_watches()
        server.delete("a")
        server.put(pod_item("b", priority=1))
        server.put(pod_item("d"))
        server.compact()
        await equal(running, server)
        assert running.recorder.story[3:] == [("delete", "a"), ("update", "b"), ("add", "d")]


async def test_a_reflector_lists_again_on_request_whatever_it_is_doing(server: FaultServer) -> None:
    server.put(pod_item("a"))
    async with reflecting(server, IMPATIENT) as running:
        (reflector,) = running.informers._reflectors.values()
        server.list_faults.append(silence)
        await eventually(lambda: len(server.lists) == 1)
        reflector.list_again()
        await running.informers.wait_synced()
        await running.informers.wait_connected()
        assert [request.query.get("limit") for request in server.lists] == [None, None]
        # What changes while no watch tells of it.
        server.objects["a"]["spec"]["priority"] = 7
        server.version = 900
        server.objects["a"]["metadata"]["resourceVersion"] = "900"
        reflector.list_again()
        await eventually(lambda: [item.priority for item in running.pods.list()] == [7])
        await running.informers.wait_connected()
        server.put(pod_item("b"))
        await equal(running, server)


async def test_an_object_made_anew_while_nobody_looked_is_deleted_and_added(server: FaultServer) -> None:
    server.put(pod_item("a"))
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        server.drop_watches()
        server.delete("a")
        server.put({"metadata": {"name": "a", "namespace": "default", "uid": "another"}})
        server.compact()
        await equal(running, server)
        assert running.recorder.story[1:] == [("delete", "a"), ("add", "a")]


async def test_a_watch_that_always_ends_at_once_is_not_hammered(server: FaultServer) -> None:
    settings = ReflectorSettings(backoff=BackoffPolicy(first_s=0.05, longest_s=10.0))
    async with reflecting(server, settings) as running:
        await running.informers.wait_synced()
        server.watch_faults.extend([chunks(ending="end")] * 1000)
        server.drop_watches()
        await anyio.sleep(0.5)
        assert len(server.watches) < 8


@pytest.mark.parametrize("seen_first", [b"\n", bookmark(100)])
async def test_a_version_that_is_always_too_old_is_not_listed_for_over_and_over(
    server: FaultServer, seen_first: bytes
) -> None:
    settings = ReflectorSettings(backoff=BackoffPolicy(first_s=0.05, longest_s=10.0))
    async with reflecting(server, settings) as running:
        await running.informers.wait_synced()
        expired = chunks(seen_first, error_event(410, "Expired"), ending="end")
        server.watch_faults.extend([expired] * 1000)
        server.drop_watches()
        await anyio.sleep(0.5)
        assert len(server.lists) < 14
        await eventually(lambda: len(server.lists) > 1)


async def test_429_is_waited_out_as_long_as_the_server_says(server: FaultServer) -> None:
    server.list_faults.append(status(429, "TooManyRequests", retry_after="1"))
    start_s = time.monotonic()
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        assert time.monotonic() - start_s >= 1.0


@pytest.mark.parametrize("code_and_reason", [(403, "Forbidden"), (404, "NotFound"), (500, "InternalError")])
async def test_a_refused_list_is_tried_again_and_its_error_kept(
    server: FaultServer, code_and_reason: tuple[int, str]
) -> None:
    refuse, errors = status(*code_and_reason), []

    async def refused_again(request: Request) -> None:
        errors.append(running.informers.statistics()["pods"].last_error)
        await refuse(request)

    server.list_faults.extend([refused_again] * 3)
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        assert [error is not None for error in errors] == [False, True, True]
        statistics = running.informers.statistics()["pods"]
        assert statistics.failures_total == 3
        assert statistics.last_error is None


async def test_a_resource_that_an_older_server_lacks_counts_as_empty_until_it_is_served_and_is_named_once(
    anyio_backend: object, json_log: io.BytesIO
) -> None:
    server, clock = FaultServer(REPLICA_SETS.path, "ReplicaSet"), SystemClock()
    server.list_faults.extend([status(404, "NotFound")] * 20)
    server.put({"metadata": {"name": "a", "namespace": "default"}})
    listening = await server.start()
    credentials = await load(None, clock, master=f"http://127.0.0.1:{server.port}")
    async with ApiSession(credentials) as session, anyio.create_task_group() as group:
        informers = InformerSet(session, clock=clock, random=Random(0), settings=QUICK)
        sets = informers.informer(REPLICA_SETS)
        group.start_soon(informers.run)
        await informers.wait_synced()
        assert (len(sets), list(informers.unconnected)) == (0, [])
        await eventually(lambda: len(sets) == 1)
        await informers.wait_connected()
        group.cancel_scope.cancel()
    await server.stop(listening)
    assert json_log.getvalue().count(b"the API server does not serve this resource") == 1


async def test_a_server_without_pods_is_waited_for(server: FaultServer) -> None:
    missing, synced = status(404, "NotFound"), []

    async def still_missing(request: Request) -> None:
        synced.append(running.informers.is_synced)
        await missing(request)

    server.list_faults.extend([still_missing] * 3)
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        assert running.informers.statistics()["pods"].failures_total == 3
        assert synced == [False] * 3


async def test_an_unreachable_server_is_asked_until_it_is_there(server: FaultServer) -> None:
    server.list_faults.extend([reset, silence, reset])
    server.put(pod_item("a"))
    async with reflecting(server, IMPATIENT) as running:
        await running.informers.wait_synced()
        assert running.versions() == held_by(server)


async def test_a_broken_object_in_the_list_leaves_the_others_alone(server: FaultServer) -> None:
    server.put(pod_item("a"))
    server.put(pod_item("bad", priority="high"))
    server.put(pod_item("c", tolerations=None))
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        assert sorted(running.recorder.alive) == ["default/a", "default/c"]
        (broken_object,) = running.recorder.broken
        assert (broken_object.kind, broken_object.key) == ("Pod", "default/bad")
        assert "$.spec.priority" in broken_object.detail


async def test_a_broken_object_in_the_stream_is_reported_once_and_recovers(server: FaultServer) -> None:
    server.put(pod_item("bad", priority=1))
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        server.put(pod_item("bad", priority="high"))
        server.put(pod_item("bad", priority="high"))
        server.put(pod_item("good"))
        await eventually(lambda: running.pods.get("default/good") is not None)
        assert len(running.recorder.broken) == 1
        pod_seen = running.pods.get("default/bad")
        assert pod_seen is not None
        assert pod_seen.priority == 1
        server.put(pod_item("bad", priority=2))
        await equal(running, server)
        server.put(pod_item("bad", priority="high"))
        server.delete("bad")
        await equal(running, server)
        assert running.recorder.story[-1] == ("delete", "bad")


SENSELESS_LISTS = {
    "nothing": b"",
    "an empty object": b"{}",
    "null": b"null",
    "a Status": b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":200}',
    "a portal's page": b"<html><body>Please log in</body></html>",
    "a portal's JSON": b'{"error":"please log in","metadata":{"resourceVersion":"900"},"items":[]}',
    "another kind's list": page("NodeList", {"resourceVersion": "900"}, []),
    "one object": b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"z","namespace":"default","uid":"z"}}',
    "a list without items": b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"900"}}',
    "a list without a version": page("PodList", {}, []),
    "items that are not objects": page("PodList", {"resourceVersion": "900"}, [1, [], None]),
    "items without any content": page("PodList", {"resourceVersion": "900"}, [{}, {"metadata": {}}]),
    "items of another kind": page("PodList", {"resourceVersion": "900"}, [{"kind": "Node", "metadata": {"name": "n"}}]),
}


def body(content: bytes) -> Fault:
    """Answer with 200 and this."""

    async def fault(request: Request) -> None:
        await request.connection.answer(200, content)

    return fault


@pytest.mark.parametrize("content", SENSELESS_LISTS.values(), ids=SENSELESS_LISTS)
async def test_a_senseless_list_changes_nothing_and_is_asked_for_again(server: FaultServer, content: bytes) -> None:
    for name in ("a", "b"):
        server.put(pod_item(name))
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        # In one piece, then as a page, twice.
        server.list_faults.extend([body(content)] * 3)
        server.compact()
        server.delete("b")
        server.compact()
        server.drop_watches()
        await equal(running, server)
        assert running.recorder.story == [("add", "a"), ("add", "b"), ("delete", "b")]
        assert len(server.lists) == 5


@pytest.mark.parametrize("content", SENSELESS_LISTS.values(), ids=SENSELESS_LISTS)
async def test_a_senseless_first_list_is_no_sync(server: FaultServer, content: bytes) -> None:
    server.put(pod_item("a"))
    server.list_faults.extend([body(content)] * 3)
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        assert running.versions() == held_by(server)
        assert len(server.lists) == 4


async def test_a_change_of_another_kind_makes_a_new_list(server: FaultServer) -> None:
    server.put(pod_item("a"))
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        service = {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "a", "namespace": "default", "uid": "s"}}
        server.watch_faults.append(chunks(line("DELETED", service), ending="silence"))
        server.drop_watches()
        server.put(pod_item("b"))
        await equal(running, server)
        assert running.recorder.story == [("add", "a"), ("add", "b")]


async def test_objects_with_names_that_no_api_server_lets_through_are_broken(server: FaultServer) -> None:
    for name in ("a", " ", "a b", "../x", "a\nb"):
        server.put(pod_item(name))
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        server.put(pod_item("../y"))
        server.put(pod_item("c"))
        await eventually(lambda: "default/c" in running.recorder.alive)
        assert sorted(running.recorder.alive) == ["default/a", "default/c"]
        assert {broken_object.name for broken_object in running.recorder.broken} == {" ", "a b", "../x", "../y", "a\nb"}


async def test_a_line_that_is_no_event_makes_a_new_list(server: FaultServer) -> None:
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        server.watch_faults.append(chunks(b"<html>\n", ending="silence"))
        server.drop_watches()
        server.put(pod_item("a"))
        await equal(running, server)
        assert running.informers.statistics()["pods"].lists_total == 2


async def test_a_line_beyond_all_bounds_makes_a_new_list(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podium.client.streams._LINE_BYTES_MAX", 10_000)
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        server.watch_faults.append(chunks(*[b"x" * 1_000] * 20, ending="silence"))
        server.drop_watches()
        server.put(pod_item("a"))
        await equal(running, server)
        assert running.informers.statistics()["pods"].lists_total == 2


async def test_an_object_of_a_megabyte_and_a_half_is_taken_in_like_any_other(server: FaultServer) -> None:
    for name in ("a", "large", "z"):
        server.put(pod_item(name, nodeSelector={"key": "x" * 1_500_000} if name == "large" else {}))
    async with reflecting(server) as running:
        await running.informers.wait_synced()
        assert running.versions() == held_by(server)
        server.put(pod_item("larger", nodeSelector={"key": "x" * 1_600_000}))
        await equal(running, server)
        assert (len(server.lists), len(server.watches)) == (1, 1)


async def test_a_handler_that_fails_is_counted_and_stops_nothing(server: FaultServer) -> None:
    failures: list[tuple[str, str]] = []

    class Failing(Recorder):
        def on_add(self, new: Pod) -> None:
            raise LookupError(new.metadata.name)

    clock = SystemClock()
    credentials = await load(None, clock, master=f"http://127.0.0.1:{server.port}")
    server.put(pod_item("a"))
    async with ApiSession(credentials) as session, anyio.create_task_group() as group:
        informers = InformerSet(
            session,
            clock=clock,
            random=Random(0),
            on_handler_error=lambda resource, error: failures.append((resource, str(error))),
        )
        second_recorder = Recorder()
        informers.informer(PODS).add_handler(Failing())
        informers.informer(PODS).add_handler(second_recorder)
        group.start_soon(informers.run)
        await informers.wait_synced()
        assert failures == [("pods", "a")]
        assert second_recorder.story == [("add", "a")]
        group.cancel_scope.cancel()


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_no_change_is_lost_over_twenty_watch_drops(server: FaultServer, seed: int) -> None:
    random = Random(seed)
    for index in range(50):
        server.put(pod_item(f"p{index}"))
    async with reflecting(server, replace(QUICK, idle_s_max=0.3), seed=seed) as running:
        await running.informers.wait_synced()
        for _ in range(20):
            for _ in range(random.randrange(40)):
                name = f"p{random.randrange(80)}"
                if name in server.objects and random.random() < 0.4:
                    server.delete(name)
                else:
                    server.put(pod_item(name, priority=random.randrange(1000)))
                if random.random() < 0.2:
                    await checkpoint()
            if random.random() < 0.3:
                server.compact()
            if random.random() < 0.5:
                server.watch_faults.append(random.choice([reset, silence, status(500, "InternalError")]))
            server.drop_watches()
            await anyio.sleep(random.random() * 0.05)
        await equal(running, server)
        priorities = {item.metadata.name: item.priority for item in running.pods.list()}
        assert priorities == {name: item["spec"].get("priority", 0) for name, item in server.objects.items()}
