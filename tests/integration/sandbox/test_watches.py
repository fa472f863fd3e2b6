"""What a watch sees: order, resuming, selections, bookmarks, its end."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

import aiohttp
import orjson
import pytest

from podium.sandbox import Sandbox
from podium.sandbox.fill import sample_pod

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request):
    """Watches live by timers, and those of the two loops are not alike."""
    return "asyncio", {"use_uvloop": request.param}


PODS = "/api/v1/namespaces/default/pods"


def label(store, name, **labels):
    store.patch("pods", name, {"metadata": {"labels": labels}})


async def test_a_watch_resumes_after_a_revision_and_misses_nothing(rest_api, sandbox):
    start = sandbox.store.create(sample_pod("a"))["metadata"]["resourceVersion"]
    sandbox.store.create(sample_pod("b"))
    watch = await rest_api.watch(f"{PODS}?watch=True&resourceVersion={start}")
    assert await watch.next_names(1) == [("ADDED", "b")]
    label(sandbox.store, "a", x="1")
    sandbox.store.delete("pods", "b")
    assert await watch.next_names(2) == [("MODIFIED", "a"), ("DELETED", "b")]


async def test_a_watch_without_a_revision_starts_with_what_is_there(rest_api, sandbox):
    sandbox.store.create(sample_pod("a"))
    watch = await rest_api.watch(f"{PODS}?watch=1")
    sandbox.store.create(sample_pod("b"))
    assert await watch.next_names(2) == [("ADDED", "a"), ("ADDED", "b")]


async def test_a_deletion_carries_the_revision_it_happened_at(rest_api, sandbox):
    created_pod = sandbox.store.create(sample_pod("a"))
    watch = await rest_api.watch(f"{PODS}?watch=1&resourceVersion={sandbox.store.revision}")
    sandbox.store.delete("pods", "a")
    event = await watch.next()
    assert int(event["object"]["metadata"]["resourceVersion"]) == sandbox.store.revision
    assert event["object"]["metadata"]["uid"] == created_pod["metadata"]["uid"]


async def test_an_object_enters_and_leaves_a_selection(rest_api, sandbox):
    sandbox.store.create(sample_pod("a"))
    watch = await rest_api.watch(f"{PODS}?watch=1&labelSelector=stage%3Dlive&resourceVersion={sandbox.store.revision}")
    label(sandbox.store, "a", stage="live")
    label(sandbox.store, "a", other="1")
    label(sandbox.store, "a", stage="gone")
    label(sandbox.store, "a", other="2")
    label(sandbox.store, "a", stage="live")
    sandbox.store.delete("pods", "a")
    events = [await watch.next() for _ in range(5)]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]
    metadata = events[2]["object"]["metadata"]
    assert metadata["labels"]["stage"] == "live", "what leaves is shown as it last was inside"
    assert int(metadata["resourceVersion"]) > int(events[1]["object"]["metadata"]["resourceVersion"])


async def test_a_bound_pod_leaves_the_selection_of_pending_pods(rest_api, sandbox):
    sandbox.store.create(sample_pod("a"))
    query = f"watch=1&fieldSelector=spec.nodeName%3D&resourceVersion={sandbox.store.revision}"
    watch = await rest_api.watch(f"/api/v1/pods?{query}")
    await rest_api.post(f"{PODS}/a/binding", {"target": {"name": "n1"}})
    assert await watch.next_names(1) == [("DELETED", "a")]


async def test_other_namespaces_and_names_are_not_seen(rest_api, sandbox):
    watch = await rest_api.watch(
        f"{PODS}?watch=1&fieldSelector=metadata.name%3Db&resourceVersion={sandbox.store.revision}"
    )
    for name, namespace in (("a", "default"), ("b", "team"), ("b", "default")):
        pod = sample_pod(name)
        pod["metadata"]["namespace"] = namespace
        sandbox.store.create(pod)
    event = await watch.next()
    assert (event["object"]["metadata"]["name"], event["object"]["metadata"]["namespace"]) == ("b", "default")


async def test_bookmarks_tell_the_present_revision(rest_api, sandbox):
    watch = await rest_api.watch(f"{PODS}?watch=1&allowWatchBookmarks=true&resourceVersion={sandbox.store.revision}")
    sandbox.store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "elsewhere"}})
    event = await watch.next()
    assert (event["type"], event["object"]["kind"]) == ("BOOKMARK", "Pod")
    assert event["object"]["metadata"]["resourceVersion"] == str(sandbox.store.revision)
    assert (await watch.next())["type"] == "BOOKMARK"


async def test_a_bookmark_never_runs_ahead_of_the_events(rest_api, sandbox):
    watch = await rest_api.watch(f"{PODS}?watch=1&allowWatchBookmarks=true&resourceVersion={sandbox.store.revision}")
    event_count, bookmarks = 0, 0
    for number in range(60):
        sandbox.store.create(sample_pod(f"p{number}"))
        await asyncio.sleep(0.002)
    while event_count < sandbox.store.revision:
        event = await watch.next()
        revision = int(event["object"]["metadata"]["resourceVersion"])
        bookmarks += event["type"] == "BOOKMARK"
        assert revision > event_count or (event["type"] == "BOOKMARK" and revision == event_count)
        event_count = revision
    assert bookmarks


async def test_a_bookmark_comes_shortly_before_the_end_of_a_watch():
    async with Sandbox(kubelets=False, bookmark_interval_s=60.0) as sandbox, aiohttp.ClientSession() as session:
        query = f"watch=1&allowWatchBookmarks=true&timeoutSeconds=3&resourceVersion={sandbox.store.revision}"
        async with session.get(f"{sandbox.url}{PODS}?{query}") as response:
            events = [orjson.loads(line)["type"] async for line in response.content]
    assert events == ["BOOKMARK"]


async def test_an_idle_watch_without_bookmarks_sleeps(rest_api, sandbox):
    await rest_api.watch(f"{PODS}?watch=1")
    cpu_start_s = time.thread_time()
    await asyncio.sleep(0.5)  # ten times the bookmark interval
    assert time.thread_time() - cpu_start_s < 0.4


async def test_initial_events_end_with_a_bookmark_that_says_so(rest_api, sandbox):
    sandbox.store.create(sample_pod("a"))
    rules = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    watch = await rest_api.watch(f"{PODS}?watch=1&{rules}")
    assert await watch.next_names(1) == [("ADDED", "a")]
    end = await watch.next()
    assert end["type"] == "BOOKMARK"
    assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_a_watch_ends_when_its_time_is_up(rest_api):
    watch = await rest_api.watch(f"{PODS}?watch=1&timeoutSeconds=1")
    assert await watch.next() is None


async def test_a_revision_that_is_forgotten_is_gone(rest_api, sandbox):
    start = sandbox.store.revision
    for name in "ab":
        sandbox.store.create(sample_pod(name))
    sandbox.store.compact(keep=1)
    watch = await rest_api.watch(f"{PODS}?watch=1&resourceVersion={start}")
    event = await watch.next()
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert await watch.next() is None


async def test_the_history_keeps_only_so_many_changes():
    async with Sandbox(kubelets=False, history_limit=10) as sandbox, aiohttp.ClientSession(sandbox.url) as session:
        start = sandbox.store.revision
        for number in range(30):
            sandbox.store.create(sample_pod(f"p{number}"))
        async with session.get(f"{PODS}?watch=1&resourceVersion={start}") as response:
            assert orjson.loads(await response.content.readline())["object"]["code"] == 410


async def test_a_watch_of_a_sandbox_that_was_replaced_is_told_410():
    async with Sandbox(kubelets=False) as first:
        port, last = first.port, first.store.create(sample_pod("a"))["metadata"]["resourceVersion"]
    later = datetime.now(UTC) + timedelta(seconds=1)
    async with (
        Sandbox(port, kubelets=False, now=lambda: later) as second,
        aiohttp.ClientSession(second.url) as session,
        session.get(f"{PODS}?watch=1&resourceVersion={last}") as response,
    ):
        assert orjson.loads(await response.content.readline())["object"]["code"] == 410


async def test_events_are_tables_for_those_who_ask(rest_api, sandbox):
    sandbox.store.create(sample_pod("a"))
    accept = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    async with rest_api.session.get(f"{PODS}?watch=1", headers=accept) as response:
        event = orjson.loads(await response.content.readline())
    assert (event["type"], event["object"]["kind"]) == ("ADDED", "Table")
    assert event["object"]["rows"][0]["cells"][0] == "a"


async def test_many_watches_see_the_same_thousand_events_in_order(rest_api, sandbox):
    watches = [await rest_api.watch(f"{PODS}?watch=1&resourceVersion={sandbox.store.revision}") for _ in range(5)]
    for number in range(1000):
        sandbox.store.create(sample_pod(f"p{number:04d}"))
    names = [("ADDED", f"p{number:04d}") for number in range(1000)]
    for watch in watches:
        assert await watch.next_names(1000) == names
