"""The page over HTTP, without TLS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from aiohttp.test_utils import TestClient, TestServer
from anyio.lowlevel import checkpoint

from podium.daemon.queue_page import queue_page
from podium.framework.contract.cluster_event import NODE_ADD, ActionType, on
from podium.lib.clock import ManualClock
from podium.lib.system_clock import SystemClock
from podium.objects.resource_types import EventResource
from podium.queues import QueueState
from podium.server.serving import Health
from podium.server.serving.server import application
from podium.telemetry import Metrics
from tests.builders import pod
from tests.unit.queues.builders import QueueBench, Rejecter

pytestmark = pytest.mark.anyio

FIT = Rejecter("Fit", on(EventResource.NODE, ActionType.ADD, ActionType.UPDATE_NODE_TAINT))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def asking(
    bench: QueueBench, leader: Callable[[], str | None] = lambda: None
) -> AsyncIterator[TestClient[Any, Any]]:
    pages = {"/debug/queue": queue_page(bench.queue.listing, SystemClock(), leader)}
    app = application(Health(), Metrics(), dict, pages=pages)
    async with TestClient(TestServer(app)) as client:
        yield client


def mixed_bench() -> QueueBench:
    """A pod in every place."""
    bench = QueueBench(FIT)
    bench.add(pod("backoff"))
    info = bench.pop()
    bench.queue.move_all(NODE_ADD)
    assert bench.reject(info, "Fit") is QueueState.BACKOFF
    bench.add_rejected(pod("failed", priority=9))
    info = bench.add_rejected(pod("rejected", priority=9, nominated="n1"), "Fit")
    info.last_failure = "0/3 nodes are available: 3 node(s) had untolerated taint(s)."
    info.last_details = "untolerated taint team=a:NoSchedule on 3 nodes"
    bench.add(pod("gated", gates=["a"]), pod("active"), pod("tried", priority=9))
    bench.pop()
    return bench


async def test_every_pod_is_listed_with_its_place_its_reasons_and_its_next_try() -> None:
    async with asking(mixed_bench()) as client, client.get("/debug/queue") as answer:
        content = await answer.json()
    pods = {entry["name"]: entry for entry in content["pods"]}
    assert content["continue"] == ""
    assert {name: entry["queue"] for name, entry in pods.items()} == {
        "active": "active",
        "backoff": "backoff",
        "failed": "error backoff",
        "gated": "gated",
        "rejected": "unschedulable",
        "tried": "in flight",
    }
    assert pods["rejected"] == {
        "namespace": "default",
        "name": "rejected",
        "uid": "uid-rejected",
        "schedulerName": "podium",
        "priority": 9,
        "queue": "unschedulable",
        "nominatedNodeName": "n1",
        "attempts": 1,
        "queuedAt": "1970-01-01T00:16:40.000000Z",
        "firstTriedAt": "1970-01-01T00:16:40.000000Z",
        "unschedulablePlugins": ["Fit"],
        "pendingPlugins": [],
        "gatingPlugin": "",
        "reason": "0/3 nodes are available: 3 node(s) had untolerated taint(s).",
        "details": "untolerated taint team=a:NoSchedule on 3 nodes",
        "nextTry": {
            "at": "1970-01-01T00:21:40.000000Z",
            "mayBeSooner": False,
            "onEvents": {"Fit": ["Node Add, UpdateNodeTaint"]},
            "text": "when an event of Fit: Node Add, UpdateNodeTaint; at 1970-01-01T00:21:40Z at the latest",
        },
        "story": [
            {
                "at": "1970-01-01T00:16:40.000000Z",
                "event": event,
                "from": old_state,
                "to": new_state,
                "plugin": "",
            }
            for event, old_state, new_state in (
                ("UnscheduledPodAdd", "gone", "active"),
                ("Pop", "active", "in flight"),
                ("ScheduleAttemptFailure", "in flight", "unschedulable"),
            )
        ],
    }
    assert pods["tried"]["nextTry"] is None
    assert pods["gated"]["reason"] == "gated"
    assert pods["gated"]["nextTry"]["text"] == "when an event of Gates: none; at 1970-01-01T00:21:40Z at the latest"
    assert pods["backoff"]["nextTry"]["text"] == "1970-01-01T00:16:42Z, or when no other pod waits"


@pytest.mark.parametrize(
    ("path", "headers"), [("?output=table", {}), ("", {"Accept": "text/plain"}), ("?output=table&limit=6", {})]
)
async def test_the_table_has_a_line_for_each_pod(path: str, headers: dict[str, str]) -> None:
    async with asking(mixed_bench()) as client, client.get(f"/debug/queue{path}", headers=headers) as answer:
        lines = (await answer.text()).splitlines()
    rows = [line for line in lines if not line.startswith("    ")]
    assert [line.split()[1] for line in rows] == ["NAME", "active", "backoff", "failed", "gated", "rejected", "tried"]
    assert rows[1].split() == ["default", "active", "active", "0", "0", "-", "1970-01-01T00:16:40Z"]
    assert rows[5].endswith("by 1970-01-01T00:21:40Z")
    assert rows[6].endswith("being tried")
    assert lines[lines.index(rows[5]) + 1 : lines.index(rows[6])] == [
        "    rejected by Fit: 0/3 nodes are available: 3 node(s) had untolerated taint(s).",
        "    in detail: untolerated taint team=a:NoSchedule on 3 nodes",
        "    woken by an event of Fit: Node Add, UpdateNodeTaint",
    ]


async def test_no_line_of_the_table_is_wider_than_a_terminal_or_moves_its_cursor() -> None:
    bench = QueueBench(FIT)
    info = bench.add_rejected(pod("web"), "Fit")
    info.last_failure = "\x1b[2J\n" + "word " * 5000
    info.last_details = "x" * 5000
    async with asking(bench) as client, client.get("/debug/queue?output=table") as answer:
        lines = (await answer.text()).splitlines()
    assert max(map(len, lines)) <= 100
    assert all(line.isprintable() for line in lines)
    assert len(lines) < 150


async def test_a_standby_names_the_leader_and_says_nothing_of_attempts() -> None:
    async with asking(mixed_bench(), lambda: "other_uid") as client:
        async with client.get("/debug/queue?pod=rejected") as answer:
            content = await answer.json()
        async with client.get("/debug/queue?output=table") as answer:
            lines = (await answer.text()).splitlines()
    assert content["leader"] == "other_uid"
    (rejected_entry,) = content["pods"]
    assert (rejected_entry["queue"], rejected_entry["attempts"]) == ("standby", None)
    assert rejected_entry["nextTry"] == {
        "at": None,
        "mayBeSooner": False,
        "onEvents": {},
        "text": "by the leader, other_uid",
    }
    assert lines[0] == "This replica stands by; other_uid leads: ask it why a pod waits."
    assert [line.split()[2] for line in lines[3:]] == ["standby"] * 6
    assert all(line.endswith("by the leader, other_uid") for line in lines[3:])


async def test_a_leader_with_a_hostile_name_moves_no_cursor() -> None:
    async with (
        asking(mixed_bench(), lambda: "\x1b[2Jother\n") as client,
        client.get("/debug/queue?output=table") as answer,
    ):
        lines = (await answer.text()).splitlines()
    assert all(line.isprintable() for line in lines)
    assert r"\x1b[2Jother\n leads" in lines[0]


async def test_a_standby_that_knows_no_leader_says_so() -> None:
    async with asking(mixed_bench(), lambda: "") as client, client.get("/debug/queue?output=table") as answer:
        assert (await answer.text()).startswith("This replica stands by; the leader is not known.\n")


async def test_the_table_of_one_pod_has_its_story() -> None:
    async with asking(mixed_bench()) as client, client.get("/debug/queue?output=table&pod=gated") as answer:
        lines = (await answer.text()).splitlines()
    assert lines[2:4] == ["    gated by Gates: gated", "    woken by an event of Gates: none"]
    assert lines[5:] == [
        "default/gated, uid-gated:",
        "  1970-01-01T00:16:40.000000Z UnscheduledPodAdd: gone -> gated (Gates)",
    ]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("pod=active", ["active"]),
        ("namespace=other", []),
        ("namespace=default&queue=error%20backoff", ["failed"]),
        ("queue=in%20flight", ["tried"]),
        ("limit=2", ["active", "backoff"]),
        ("continue=default/gated/uid-gated", ["rejected", "tried"]),
    ],
)
async def test_pods_are_chosen_and_paged(query: str, names: list[str]) -> None:
    async with asking(mixed_bench()) as client, client.get(f"/debug/queue?{query}") as answer:
        assert [entry["name"] for entry in (await answer.json())["pods"]] == names


@pytest.mark.parametrize("query", ["limit=0", "limit=5001", "limit=many", "queue=nowhere", "output=yaml"])
async def test_a_question_that_makes_no_sense_is_refused(query: str) -> None:
    async with asking(mixed_bench()) as client, client.get(f"/debug/queue?{query}") as answer:
        assert answer.status == 400
        assert (await answer.text()).startswith(query.partition("=")[0])


async def test_pages_lead_through_thousands_of_pods_each_once() -> None:
    bench = QueueBench()
    bench.add(*(pod(f"web-{number:04}") for number in range(1234)))
    names_seen: list[str] = []
    last_uid = ""
    async with asking(bench) as client:
        while True:
            async with client.get(f"/debug/queue?limit=500&continue={last_uid}") as answer:
                content = await answer.json()
            names_seen += [entry["name"] for entry in content["pods"]]
            last_uid = content["continue"]
            if not last_uid:
                break
        async with client.get("/debug/queue?output=table") as answer:
            assert (await answer.text()).endswith("\nThere are more: continue=default/web-0499/uid-web-0499\n")
    assert names_seen == [f"web-{number:04}" for number in range(1234)]


class HastyClock(ManualClock):
    """Every look at it takes a second, so that every turn is over."""

    def monotonic(self) -> float:
        self.advance(1.0)
        return super().monotonic()


@pytest.mark.parametrize("query", [{}, {"output": "table"}])
async def test_other_tasks_run_between_two_pods_of_a_page_however_long_their_texts_are(query: dict[str, str]) -> None:
    bench = QueueBench(FIT)
    for number in range(20):
        bench.add_rejected(pod(f"web-{number}"), "Fit").last_failure = "0/3 nodes are available: " + "long " * 2000
    turns, is_over = 0, False

    async def other() -> None:
        nonlocal turns
        while not is_over:
            turns += 1
            await checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        request: Any = SimpleNamespace(query=query, headers={})
        await queue_page(bench.queue.listing, HastyClock())(request)
        is_over = True
    assert turns >= 20
