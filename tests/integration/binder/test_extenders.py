"""Extenders asked over real HTTP: every verb, every way to fail, TLS."""

from __future__ import annotations

import asyncio
import base64
import gzip
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import anyio
import msgspec
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from podium.binder import ExtenderPool
from podium.client.credentials import ConnectionConfigError
from podium.config import Extender, ExtenderManagedResource, ExtenderTLSConfig
from podium.framework.contract.questions import (
    AskFilter,
    AskPreempt,
    AskPrioritize,
    ExtenderFailed,
    Filtered,
    Preemptable,
    Scored,
    Victims,
)
from podium.framework.contract.status import SKIP, Status
from podium.framework.cycle.extenders import Extenders
from podium.objects.api_errors import Conflict, OutcomeUnknown
from podium.objects.core import Node, Pod
from podium.objects.objects_with_json import node_with_json, pod_with_json
from tests import builders
from tests.builders import snapshot_of
from tests.extender_server import ExtenderServer, Reply, let_through, never, says, scores
from tests.integration.client.certificates import Authority
from tests.integration.client.waiting import eventually
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.anyio

VERBS: dict[str, Any] = {
    "filter_verb": "filter",
    "prioritize_verb": "prioritize",
    "preempt_verb": "preempt",
    "bind_verb": "bind",
    "weight": 1,
}


def pod_with_its_json(name: str = "web", **fields: Any) -> Pod:
    plain_pod = builders.pod(name, **fields)
    return pod_with_json(plain_pod, msgspec.json.encode(plain_pod))


def node_with_its_json(name: str) -> Node:
    plain_node = builders.node(name)
    return node_with_json(plain_node, msgspec.json.encode(plain_node))


NODES = [node_with_its_json("n0"), node_with_its_json("n1")]
OLD = pod_with_its_json("old", node="n0")
SNAPSHOT = snapshot_of(*NODES, OLD)


class Api:
    """Says where pods are, and counts tasks."""

    def __init__(self, answer: Callable[[], bool] = lambda: False) -> None:
        self.answer = answer
        self.reads: list[tuple[str, str]] = []
        self.goroutines: Counter[str] = Counter()
        self.most = 0

    async def is_bound(self, pod: Pod, node_name: str) -> bool:
        self.reads.append((pod.key, node_name))
        return self.answer()

    def add_goroutines(self, operation: str, change: int) -> None:
        self.goroutines[operation] += change
        self.most = max(self.most, self.goroutines[operation])


@asynccontextmanager
async def pool(*extenders: Extender, api: Api | None = None) -> AsyncIterator[ExtenderPool]:
    api_client = api or Api()
    async with ExtenderPool(Extenders(extenders, Random(1)), api_client, api_client) as opened:
        yield opened


async def filter_nodes(extender: Extender) -> Any:
    async with pool(extender) as extender_pool:
        return await extender_pool.answer(AskFilter(extender, pod_with_its_json(), NODES))


async def bind(extender: Extender, api: Api, item: Pod | None = None) -> Status | None:
    async with pool(extender, api=api) as extender_pool:
        return await extender_pool.bind(item or pod_with_its_json(), "n1")


# ---------------------------------------------------------------- every verb


@pytest.mark.parametrize("capable", [True, False])
async def test_every_verb_is_asked_and_its_answer_understood(capable: bool) -> None:
    replies: dict[str, Reply] = {
        "filter": let_through("n1"),
        "prioritize": scores(n1=7),
        "preempt": lambda args: {"NodeNameToMetaVictims": {"n0": {"Pods": [{"UID": OLD.uid}]}}},
        "bind": lambda args: {},
    }
    async with ExtenderServer(**replies) as server:
        extender = Extender(server.url, node_cache_capable=capable, **VERBS)
        async with pool(extender) as extender_pool:
            answers = [
                await extender_pool.answer(AskFilter(extender, pod_with_its_json(), NODES)),
                await extender_pool.answer(AskPrioritize([extender], pod_with_its_json(), NODES)),
                await extender_pool.answer(
                    AskPreempt(extender, pod_with_its_json(), {"n0": Victims((OLD,), 0)}, SNAPSHOT)
                ),
                await extender_pool.bind(pod_with_its_json(), "n1"),
            ]
    assert answers == [
        Filtered(("n1",), {}, {}),
        Scored([[("n0", 0), ("n1", 7)]]),
        Preemptable({"n0": Victims((OLD,), 0)}),
        None,
    ]
    assert [verb for verb, _ in server.asked] == ["filter", "prioritize", "preempt", "bind"]
    assert server.bodies("bind") == [{"PodName": "web", "PodNamespace": "default", "PodUID": "uid-web", "Node": "n1"}]


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("reply", "detail"),
    [
        (says("oops"), "failed filter: the answer makes no sense: JSON is malformed"),
        (says("{}", status=500), "failed filter: code 500"),
        (says("{}", status=201), "failed filter: code 201"),
        (never, "failed filter: no answer within 100ms"),
        (lambda args: {"Error": "no licence"}, "no licence"),
        (lambda args: {"NodeNames": ["n9"]}, 'claims a filtered node "n9" which is not found in the input node list'),
    ],
)
async def test_every_failure_says_what_is_wrong_and_with_which_extender(reply: Reply, detail: str) -> None:
    async with ExtenderServer(filter=reply) as server:
        timeout_s = 0.1 if reply is never else 20.0
        extender = Extender(server.url, filter_verb="filter", node_cache_capable=True, http_timeout_s=timeout_s)
        with capture_logs() as logs:
            answer = await filter_nodes(extender)
    assert isinstance(answer, ExtenderFailed)
    assert answer.message.startswith(f'extender "{server.url}": {detail}')
    [entry] = logs
    assert (entry["event"], entry["extender"], entry["pod"]) == ("Extender failed", server.url, "default/web")


async def test_missing_extender_is_named_by_its_url_without_the_password() -> None:
    async with ExtenderServer() as server:
        url = server.url
    answer = await filter_nodes(Extender(url.replace("://", "://ann:secret@"), filter_verb="filter"))
    assert answer.message.startswith(f'extender "{url}": failed filter: Cannot connect')
    assert "secret" not in answer.message


@pytest.mark.parametrize(
    ("url", "name"),
    [("nonsense", "nonsense"), ("http://[", "(no URL)"), ("ftp://ann:secret@host", "ftp://host")],
)
async def test_url_that_cannot_be_used_is_a_failure(url: str, name: str) -> None:
    answer = await filter_nodes(Extender(url, filter_verb="filter"))
    assert answer.message == f'extender "{name}": failed filter: the URL cannot be used'


async def test_large_bodies_go_through_both_ways() -> None:
    wide = builders.node("wide", labels={"padding": "x" * (1 << 22)})
    question_nodes = [node_with_json(wide, msgspec.json.encode(wide))]
    async with ExtenderServer(filter=lambda args: {"Nodes": args["Nodes"]}) as server:
        extender = Extender(server.url, filter_verb="filter")
        async with pool(extender) as extender_pool:
            answer = await extender_pool.answer(AskFilter(extender, pod_with_its_json(), question_nodes))
    assert answer == Filtered(("wide",), {}, {})


@pytest.mark.parametrize("is_compressed", [False, True], ids=["plain", "compressed"])
async def test_an_answer_that_is_longer_than_any_that_makes_sense_is_a_failure(is_compressed: bool) -> None:
    async def endless(args: Any) -> web.Response:
        body = gzip.compress(b" " * 100_000_000, 1) if is_compressed else b" " * 30_000_000
        return web.Response(body=body, headers={"Content-Encoding": "gzip"} if is_compressed else {})

    async with ExtenderServer(filter=endless) as server:
        extender = Extender(server.url, filter_verb="filter", node_cache_capable=True, http_timeout_s=60.0)
        answer = await filter_nodes(extender)
    assert isinstance(answer, ExtenderFailed)
    assert "failed filter: the answer has more than" in answer.message


async def test_user_and_password_of_the_url_are_sent() -> None:
    async with ExtenderServer(filter=let_through("n0")) as server:
        extender = Extender(server.url.replace("://", "://ann:secret@"), filter_verb="filter")
        assert isinstance(await filter_nodes(extender), Filtered)
        assert server.headers[0]["Authorization"] == "Basic " + base64.b64encode(b"ann:secret").decode()


async def test_ignored_failure_is_logged_as_such() -> None:
    async with ExtenderServer(filter=says("", status=503)) as server:
        with capture_logs() as logs:
            await filter_nodes(Extender(server.url, filter_verb="filter", ignorable=True))
    assert [entry["event"] for entry in logs] == ["Skipping extender as it returned error and has ignorable flag set"]


@asynccontextmanager
async def closing() -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that answers once on each connection and closes it when asked again; its URL, and what it was asked."""
    bodies: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            for answers in (True, False):
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(line for line in head.split(b"\r\n") if line.startswith(b"Content-Length:"))
                bodies.append(await reader.readexactly(int(length.partition(b":")[2])))
                if answers:
                    writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{"NodeNames":["n0"]}')
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", bodies


async def test_question_on_a_connection_that_is_just_being_closed_is_asked_again_on_another() -> None:
    async with closing() as (url, bodies):
        extender = Extender(url, filter_verb="filter", node_cache_capable=True)
        question = AskFilter(extender, pod_with_its_json(), NODES)
        async with pool(extender) as opened:
            answers = [await opened.answer(question) for _ in range(2)]
    assert answers == [Filtered(("n0",), {}, {})] * 2
    assert len(bodies) == 3


async def test_binding_is_asked_for_once_whatever_becomes_of_the_connection() -> None:
    async with closing() as (url, bodies):
        extender = Extender(url, bind_verb="bind")
        async with pool(extender) as opened:
            first, second = [await opened.bind(pod_with_its_json(), "n1") for _ in range(2)]
    assert first is None
    assert second is not None
    assert "Server disconnected" in second.message
    assert len(bodies) == 2


# ---------------------------------------------------------------- scores


async def test_all_extenders_score_at_the_same_time() -> None:
    barrier = asyncio.Barrier(2)

    async def when_both_are_asked(args: Any) -> Any:
        async with asyncio.timeout(PATIENCE_S):
            await barrier.wait()
        return [{"Host": "n0", "Score": 1}]

    async with ExtenderServer(a=when_both_are_asked, b=when_both_are_asked) as server:
        extenders = [Extender(server.url, prioritize_verb=verb, weight=1) for verb in "ab"]
        api = Api()
        async with pool(*extenders, api=api) as extender_pool:
            answer = await extender_pool.answer(AskPrioritize(extenders, pod_with_its_json(), NODES))
    assert answer == Scored([[("n0", 1)], [("n0", 1)]])
    assert (api.most, api.goroutines["prioritizing_extender"]) == (2, 0)


async def test_one_extender_without_scores_leaves_those_of_others() -> None:
    async with ExtenderServer(a=says("{}", status=500), b=scores(n1=3)) as server:
        extenders = [Extender(server.url, prioritize_verb=verb, weight=1) for verb in "ab"]
        async with pool(*extenders) as extender_pool:
            answer = await extender_pool.answer(AskPrioritize(extenders, pod_with_its_json(), NODES))
    failure, score_list = answer.each
    assert (failure.detail, score_list) == ("failed a: code 500", [("n0", 0), ("n1", 3)])


async def test_wrong_scores_are_logged_when_they_begin_and_count_as_upstream_counts_them() -> None:
    async with ExtenderServer(prioritize=scores(n1=11)) as server:
        extender = Extender(server.url, **VERBS)
        question = AskPrioritize([extender], pod_with_its_json(), NODES)
        async with pool(extender) as extender_pool:
            with capture_logs() as logs:
                assert await extender_pool.answer(question) == Scored([[("n0", 0), ("n1", 11)]])
                await extender_pool.answer(question)
                server.replies["prioritize"] = scores(n1=10)
                await extender_pool.answer(question)
                server.replies["prioritize"] = says("", status=500)
                await extender_pool.answer(question)
    assert [(entry["event"], entry["extender"], entry["error"]) for entry in logs] == [
        (
            "Extender does not return valid scores",
            server.url,
            'score 11 of node "n1" is not between 0 and 10; it counts as it is',
        ),
        (
            "Extender does not return valid scores",
            server.url,
            "no score given by this extender: failed prioritize: code 500",
        ),
    ]


# ---------------------------------------------------------------- bindings


async def test_pod_that_no_extender_binds_is_left_to_the_plugins() -> None:
    managing = Extender("http://x", bind_verb="bind", managed_resources=(ExtenderManagedResource("a.io/x"),))
    assert await bind(managing, Api()) is SKIP
    assert await bind(Extender("http://x", filter_verb="filter"), Api()) is SKIP


async def test_refused_binding_is_an_error_with_the_extenders_words() -> None:
    async with ExtenderServer(bind=lambda args: {"Error": "no licence"}) as server:
        api = Api()
        status = await bind(Extender(server.url, bind_verb="bind"), api)
    assert status is not None
    assert status.message == f'extender "{server.url}": no licence'
    assert api.reads == [("default/web", "n1")]


async def test_process_that_does_not_lead_any_more_asks_for_no_binding() -> None:
    async with ExtenderServer(bind=lambda args: {}) as server:
        extenders, api = Extenders((Extender(server.url, bind_verb="bind"),), Random(1)), Api()
        async with ExtenderPool(extenders, api, api, may_bind=lambda: False) as extender_pool:
            status = await extender_pool.bind(pod_with_its_json(), "n1")
    assert server.asked == []
    assert status is not None
    assert "this process is no longer the leader" in status.message


async def test_binding_whose_answer_is_lost_counts_where_the_pod_is_bound() -> None:
    async with ExtenderServer(bind=never) as server:
        extender = Extender(server.url, bind_verb="bind", http_timeout_s=0.1)
        assert await bind(extender, Api(lambda: True)) is None
        status = await bind(extender, Api(lambda: False))
    assert status is not None
    assert status.message == f'extender "{server.url}": failed bind: no answer within 100ms'


def elsewhere() -> bool:
    raise Conflict("pod is already assigned to node n7")


def unread() -> bool:
    raise OutcomeUnknown("the pod could not be read")


@pytest.mark.parametrize(("answer", "words"), [(elsewhere, "already assigned to node n7"), (unread, "not be read")])
async def test_binding_that_went_wrong_otherwise_is_an_error_with_what_is_known(answer: Any, words: str) -> None:
    async with ExtenderServer(bind=says("", status=500)) as server:
        status = await bind(Extender(server.url, bind_verb="bind"), Api(answer))
    assert status is not None
    assert "failed bind: code 500; and the pod: " in status.message
    assert words in status.message


async def test_plugins_bind_where_the_extender_fails_and_may_be_ignored() -> None:
    async with ExtenderServer(bind=says("", status=500)) as server:
        extender = Extender(server.url, bind_verb="bind", ignorable=True)
        assert await bind(extender, Api()) is SKIP
        assert await bind(extender, Api(lambda: True)) is None


async def test_bindings_under_way_are_limited() -> None:
    full, end = asyncio.Barrier(33), asyncio.Event()

    async def when_told(args: Any) -> Any:
        if not end.is_set():
            await full.wait()
        await end.wait()
        return {}

    async with (
        ExtenderServer(bind=when_told) as server,
        pool(Extender(server.url, bind_verb="bind")) as extender_pool,
        anyio.create_task_group() as tasks,
    ):
        for index in range(40):
            tasks.start_soon(extender_pool.bind, pod_with_its_json(f"web-{index}"), "n1")
        await full.wait()
        assert (len(server.asked), extender_pool._waiting_to_bind) == (32, 8)
        # The extender is slow: pods that it does not bind are not to wait for that.
        await eventually(lambda: extender_pool.backlog() == 0)
        assert extender_pool._waiting_to_bind == 8
        end.set()
    assert len(server.asked) == 40


# ---------------------------------------------------------------- TLS


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def data_of(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()


async def ask_over_tls(
    authority: Authority, tls: ExtenderTLSConfig | None, *, enable: bool = True, **server: Any
) -> Any:
    """What becomes of a question to a server with a certificate of the authority."""
    async with ExtenderServer(authority.server_context(**server), filter=let_through("n0")) as opened:
        extender = Extender(opened.url, filter_verb="filter", enable_https=enable, tls_config=tls)
        return await filter_nodes(extender)


async def test_certificate_is_verified_by_the_authority_of_the_configuration(
    authority: Authority, tmp_path: Path
) -> None:
    ip = {"ip": "127.0.0.1"}
    by_file = ExtenderTLSConfig(ca_file=str(authority.file))
    by_data = ExtenderTLSConfig(ca_data=data_of(authority.file))
    assert isinstance(await ask_over_tls(authority, by_file, **ip), Filtered)
    assert isinstance(await ask_over_tls(authority, by_data, **ip), Filtered)
    stranger = ExtenderTLSConfig(ca_file=str(Authority(tmp_path, "stranger").file))
    assert "certificate verify failed" in (await ask_over_tls(authority, stranger, **ip)).message


async def test_name_of_the_server_may_be_given(authority: Authority) -> None:
    trusting = ExtenderTLSConfig(ca_file=str(authority.file))
    assert "certificate verify failed" in (await ask_over_tls(authority, trusting, dns="extender.svc")).message
    named_config = replace(trusting, server_name="extender.svc")
    assert isinstance(await ask_over_tls(authority, named_config, dns="extender.svc"), Filtered)


async def test_nothing_is_verified_where_that_is_asked_for_or_no_authority_is_given(authority: Authority) -> None:
    assert isinstance(await ask_over_tls(authority, None), Filtered)
    assert isinstance(await ask_over_tls(authority, ExtenderTLSConfig(insecure=True), enable=False), Filtered)
    assert "certificate verify failed" in (await ask_over_tls(authority, None, enable=False)).message


@pytest.mark.parametrize("as_data", [True, False])
async def test_client_certificate_is_shown(authority: Authority, as_data: bool) -> None:
    certificate, key = authority.issue("podium")
    ours = (
        ExtenderTLSConfig(cert_data=data_of(certificate), key_data=data_of(key))
        if as_data
        else ExtenderTLSConfig(cert_file=str(certificate), key_file=str(key))
    )
    assert isinstance(await ask_over_tls(authority, ours, clients=True), Filtered)
    assert isinstance(await ask_over_tls(authority, None, clients=True), ExtenderFailed)


@pytest.mark.parametrize(
    ("tls", "field"),
    [
        (ExtenderTLSConfig(ca_file="nowhere.pem"), "caFile nowhere.pem"),
        (ExtenderTLSConfig(ca_data="not base64!"), "caData"),
        (ExtenderTLSConfig(ca_data=base64.b64encode(b"no certificate").decode()), "caData"),
        (ExtenderTLSConfig(cert_file="nowhere.crt", key_file="nowhere.key"), "client certificate or key"),
        (ExtenderTLSConfig(cert_data="!", key_data="!"), "certData"),
    ],
)
def test_tls_settings_that_cannot_be_used_are_named(tls: ExtenderTLSConfig, field: str) -> None:
    extenders = Extenders([Extender("https://host", tls_config=tls)], Random(1))
    with pytest.raises(ConnectionConfigError, match=f'extender "https://host": tlsConfig.{field}|tlsConfig: {field}'):
        ExtenderPool(extenders, Api(), Api())
