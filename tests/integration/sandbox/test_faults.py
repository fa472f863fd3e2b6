"""Every fault does what it says, to the requests it is about, as often as it was asked to."""

import asyncio
import contextlib
import socket
import time
import warnings

import aiohttp
import pytest

from podium.sandbox.fill import sample_pod
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.anyio

PODS = "/api/v1/namespaces/default/pods"


async def test_errors_hit_the_next_matching_requests_only(rest_api, sandbox):
    sandbox.faults.server_error(times=2, verb="list", resource="pods")
    assert (await rest_api.get("/api/v1/nodes"))[0] == 200
    assert [(await rest_api.get(PODS))[0] for _ in range(3)] == [500, 500, 200]


@pytest.mark.parametrize(
    ("code", "reason"), [(403, "Forbidden"), (404, "NotFound"), (409, "Conflict"), (503, "ServiceUnavailable")]
)
async def test_an_error_gives_the_reason_that_goes_with_its_code(rest_api, sandbox, code, reason):
    sandbox.faults.server_error(code=code, verb="create", resource="pods")
    status, body = await rest_api.post(PODS, sample_pod("a"))
    assert (status, body["code"], body["reason"]) == (code, code, reason)


async def test_a_subresource_is_told_from_its_object(rest_api, sandbox):
    sandbox.faults.server_error(code=503, verb="create", resource="pods", subresource="binding")
    assert (await rest_api.post(PODS, sample_pod("a")))[0] == 201
    assert (await rest_api.post(f"{PODS}/a/binding", {"target": {"name": "n"}}))[0] == 503
    sandbox.faults.server_error(verb="create", resource="pods", subresource="-")
    assert (await rest_api.post(f"{PODS}/a/binding", {"target": {"name": "n"}}))[0] == 201
    assert (await rest_api.post(PODS, sample_pod("b")))[0] == 500


async def test_too_many_requests_says_when_to_come_back(rest_api, sandbox):
    sandbox.faults.too_many_requests(retry_after_s=3, verb="create")
    async with rest_api.session.post(PODS, json=sample_pod("a")) as response:
        body = await response.json()
        assert (response.status, response.headers["Retry-After"]) == (429, "3")
    assert body["details"]["retryAfterSeconds"] == 3
    assert (await rest_api.post(PODS, sample_pod("a")))[0] == 201


async def test_a_new_watch_can_be_answered_with_410(rest_api, sandbox):
    sandbox.faults.gone(resource="pods")
    assert (await rest_api.get(f"{PODS}?watch=1"))[0] == 410
    assert (await rest_api.watch(f"{PODS}?watch=1")).response.status == 200


async def test_open_watches_can_be_told_410(rest_api, sandbox):
    watch = await rest_api.watch(f"{PODS}?watch=1")
    node_watch = await rest_api.watch("/api/v1/nodes?watch=1&timeoutSeconds=1")
    assert sandbox.faults.expire_watches(resource="pods") == 1
    event = await watch.next()
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
    assert await watch.next() is None
    assert await node_watch.next() is None


async def test_open_watches_can_be_cut(rest_api, sandbox):
    watch = await rest_api.watch(f"{PODS}?watch=1")
    assert sandbox.faults.drop_watches() == 1
    with pytest.raises(aiohttp.ClientPayloadError):
        await watch.next()


async def test_open_watches_can_be_cut_within_a_line(rest_api, sandbox):
    watch = await rest_api.watch(f"{PODS}?watch=1")
    sandbox.faults.drop_watches(mid_line=True)
    received = b""
    with pytest.raises(aiohttp.ClientPayloadError):  # noqa: PT012 - the cut comes after some bytes
        while True:
            received += await watch.response.content.readany()
    assert received.startswith(b'{"type":')
    assert b"\n" not in received


async def test_a_lost_response_leaves_the_write_in_place(rest_api, sandbox):
    sandbox.faults.lose_response(verb="create", resource="pods")
    with pytest.raises(aiohttp.ClientConnectionError):
        await rest_api.post(PODS, sample_pod("a"))
    assert sandbox.store.get("pods", "a")["metadata"]["name"] == "a"


async def test_an_answer_can_be_torn(rest_api, sandbox):
    sandbox.store.create(sample_pod("a"))
    sandbox.faults.tear_response(verb="list", resource="pods")
    async with rest_api.session.get(PODS) as response:
        assert response.status == 200
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()
    status, body = await rest_api.get(PODS)
    assert (status, len(body["items"])) == (200, 1)


async def test_an_answer_can_make_no_sense(rest_api, sandbox):
    sandbox.faults.invalid_answer(code=207, body="<html>", verb="create", resource="pods")
    async with rest_api.session.post(PODS, json=sample_pod("a")) as response:
        assert (response.status, await response.text()) == (207, "<html>")
    assert (await rest_api.get(f"{PODS}/a"))[0] == 404


async def test_a_fault_may_belong_to_one_namespace(rest_api, sandbox):
    sandbox.faults.too_many_requests(verb="list", resource="pods", namespace="kube-system")
    assert (await rest_api.get(PODS))[0] == 200
    assert (await rest_api.get("/api/v1/namespaces/kube-system/pods"))[0] == 429


async def test_latency_delays_an_answer(rest_api, sandbox):
    sandbox.faults.latency(0.1, times=1)
    start = time.monotonic()
    await rest_api.get(PODS)
    assert time.monotonic() - start >= 0.1


async def test_connections_are_refused_for_a_while(rest_api, sandbox):
    watch = await rest_api.watch(f"{PODS}?watch=1")
    sandbox.faults.refuse_connections(1.0)
    with pytest.raises(aiohttp.ClientError):
        await watch.next()
    with pytest.raises(aiohttp.ClientConnectorError):
        await rest_api.get(PODS)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                assert (await rest_api.get(PODS))[0] == 200
                break
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.02)


async def test_a_connection_that_arrives_as_all_are_refused_is_closed_and_not_lost(sandbox):
    with warnings.catch_warnings(record=True) as left_open:
        warnings.simplefilter("always")
        arriving = [socket.create_connection(("127.0.0.1", sandbox.port)) for _ in range(3)]
        # In this turn the server accepts them; in the next one it would have known them.
        for _ in range(2):
            await asyncio.sleep(0)
        sandbox.faults.refuse_connections(60.0)
        for connection in arriving:
            with connection:
                connection.settimeout(PATIENCE_S)
                with contextlib.suppress(ConnectionResetError):
                    assert await asyncio.to_thread(connection.recv, 1) == b""
    assert not left_open


async def test_faults_are_given_over_http_too(rest_api, sandbox):
    command = {"fault": "server_error", "times": None, "verb": "list", "resource": "po"}
    assert (await rest_api.post("/sandbox/faults", command))[0] == 200
    assert (await rest_api.get(PODS))[0] == 500
    _, fault_list = await rest_api.get("/sandbox/faults")
    assert fault_list["rules"][0]["resource"] == "po"
    await rest_api.delete("/sandbox/faults")
    assert (await rest_api.get(PODS))[0] == 200


@pytest.mark.parametrize(
    "command", [{}, {"fault": "rain"}, {"fault": "gone", "size": 1}, {"fault": "gone", "resource": "x"}]
)
async def test_a_fault_that_does_not_exist_is_a_bad_request(rest_api, command):
    assert (await rest_api.post("/sandbox/faults", command))[0] == 400
