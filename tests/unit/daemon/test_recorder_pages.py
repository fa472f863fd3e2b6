"""The pages over HTTP, without TLS."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from podium.engine.flight_recorder import FlightRecorder
from podium.server.serving import Health
from podium.server.serving.server import application
from podium.telemetry import Metrics
from tests.builders import pod
from tests.unit.daemon.recorded_attempts import flight_recorder, recorder_pages
from tests.unit.queues.builders import QueueBench, Rejecter

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def asking(
    recorder: FlightRecorder | None, bench: QueueBench | None = None, leader: str | None = None
) -> AsyncIterator[TestClient[Any, Any]]:
    pages = recorder_pages(recorder, bench or QueueBench(), leader).pages
    async with TestClient(TestServer(application(Health(), Metrics(), dict, pages=pages))) as client:
        yield client


async def get(path: str, recorder: FlightRecorder | None = None, **fields: Any) -> Any:
    async with asking(recorder or flight_recorder(), **fields) as client, client.get(path) as answer:
        return await answer.json()


async def test_attempts_are_listed_the_newest_first() -> None:
    answer = await get("/debug/decisions")
    assert [
        (attempt["namespace"], attempt["name"], attempt["result"], attempt["node"]) for attempt in answer["attempts"]
    ] == [
        ("shop", "big", "unschedulable", ""),
        ("default", "web", "scheduled", "n1"),
    ]
    first = answer["attempts"][1]
    assert (first["at"], first["seconds"], first["nodes"]) == ("1970-01-01T00:00:01.000000Z", 0.25, 3)
    assert [line["event"] for line in first["story"]] == ["UnscheduledPodAdd", "Pop"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("namespace=shop", ["big"]),
        ("name=web", ["web"]),
        ("result=scheduled", ["web"]),
        ("namespace=shop&name=web", []),
        ("limit=1", ["big"]),
    ],
)
async def test_attempts_are_filtered(query: str, names: list[str]) -> None:
    assert [attempt["name"] for attempt in (await get(f"/debug/decisions?{query}"))["attempts"]] == names


@pytest.mark.parametrize("query", ["result=lost", "limit=0", "limit=1001", "limit=x", "output=yaml"])
async def test_bad_parameters_are_refused_by_name(query: str) -> None:
    async with asking(flight_recorder()) as client, client.get(f"/debug/decisions?{query}") as answer:
        assert answer.status == 400
        assert (await answer.text()).startswith(query.partition("=")[0])


async def test_the_table_has_a_line_for_each_attempt_and_the_reason_below() -> None:
    async with asking(flight_recorder()) as client, client.get("/debug/decisions?output=table") as answer:
        lines = (await answer.text()).splitlines()
    assert [line.split()[:3] for line in lines[:2]] == [
        ["TIME", "NAMESPACE", "NAME"],
        ["1970-01-01T00:00:01.000000Z", "shop", "big"],
    ]
    assert lines[2].strip().startswith("0/3 nodes are available: 1 had taints")
    assert lines[3].split()[2:] == ["web", "1", "scheduled", "n1", "1", "3", "of", "3", "1.00", "ms", "250.00", "ms"]


async def test_the_story_of_a_bound_pod_says_why_the_winner_won() -> None:
    answer = await get("/debug/pods/default/web?node=n0")
    assert (answer["bound_to"], answer["queue"], len(answer["attempts"])) == ("n1", None, 1)
    why = answer["why"]
    assert (why["node"], why["verdict"]) == ("n1", "n1 beats n2 by 30: Fit +20, Spread +10")
    assert why["scores"][0] == {"node": "n1", "total": 170, "plugins": {"Fit": 70, "Spread": 100}}
    assert why["blockers"] == {"n0": [{"plugin": "TaintToleration", "text": "had taints"}]}


async def test_the_story_of_a_pending_pod_says_what_rejected_it_and_when_it_is_tried_next() -> None:
    bench = QueueBench(Rejecter("NodeResourcesFit"))
    bench.add_rejected(pod("big", namespace="shop"), "NodeResourcesFit")
    answer = await get("/debug/pods/shop/big", bench=bench)
    assert answer["queue"]["queue"] == "unschedulable"
    assert answer["queue"]["nextTry"]["text"].startswith("when an event of NodeResourcesFit")
    assert [(group["plugin"], group["count"]) for group in answer["why"]["groups"]] == [
        ("NodeResourcesFit", 2),
        ("TaintToleration", 1),
    ]


async def test_a_pod_that_was_not_tried_yet_has_no_attempts() -> None:
    answer = await get("/debug/pods/default/new")
    assert (answer["exists"], answer["attempts"], answer["why"]) == (True, [], None)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("default/wep", "there is no pod default/wep; did you mean default/web?"),
        ("default/big", "there is no pod default/big; did you mean shop/big?"),
        ("default/web?node=n11", "there is no node n11; did you mean n1?"),
        ("default/%1b%5b2J%0a", "there is no pod default/\x1b[2J\n"),
    ],
)
async def test_an_unknown_pod_is_not_found_and_similar_ones_are_named(path: str, error: str) -> None:
    async with asking(flight_recorder()) as client, client.get(f"/debug/pods/{path}") as answer:
        assert (answer.status, (await answer.json())["message"]) == (404, error)


async def test_the_pages_answer_head_and_nothing_below_them() -> None:
    async with asking(flight_recorder()) as client:
        for path, status in (("decisions", 200), ("pods/default/web", 200), ("pods/default", 404), ("pods/a/b/c", 404)):
            async with client.head(f"/debug/{path}") as answer:
                assert answer.status == status


async def test_without_memory_the_pages_say_how_to_turn_the_recorder_on() -> None:
    async with asking(None) as client:
        for path in ("decisions", "pods/default/web"):
            async with client.get(f"/debug/{path}") as answer:
                assert answer.status == 404
                assert "--recorder-memory" in (await answer.json())["message"]


async def test_a_replica_that_stands_by_names_the_leader() -> None:
    assert (await get("/debug/pods/default/new", leader="other"))["leader"] == "other"
