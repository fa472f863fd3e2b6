"""The pages over HTTP, without TLS."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.to_thread
import pytest
from aiohttp.test_utils import TestClient, TestServer

from podium.config import KubeSchedulerConfiguration
from podium.daemon import profile_pages
from podium.daemon.faces import profiles
from podium.daemon.profile_pages import ProfilePages
from podium.server.serving import Health
from podium.server.serving.server import application
from podium.telemetry import Metrics
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def asking() -> AsyncIterator[TestClient[Any, Any]]:
    app = application(Health(), Metrics(), dict, pages=ProfilePages().pages)
    async with TestClient(TestServer(app)) as client:
        yield client


@pytest.mark.parametrize(("path", "unit"), [("profile", "seconds"), ("heap", "bytes")])
async def test_a_profile_is_a_file_that_speedscope_opens(path: str, unit: str) -> None:
    async with asking() as client, client.get(f"/debug/pprof/{path}?seconds=0.05") as answer:
        assert answer.status == 200
        assert ".speedscope.json" in answer.headers["Content-Disposition"]
        document = await answer.json()
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert [(profile["type"], profile["unit"]) for profile in document["profiles"]] == [("sampled", unit)]


async def test_the_index_names_both_and_is_named_by_the_index_of_all_paths() -> None:
    async with asking() as client:
        async with client.get("/debug/pprof/") as answer:
            assert "/debug/pprof/profile" in await answer.text()
        async with client.get("/") as answer:
            paths = (await answer.json())["paths"]
            assert {"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile"} <= set(paths)


@pytest.mark.parametrize("seconds", ["0", "-1", "61", "nan", "many"])
async def test_seconds_that_make_no_sense_are_refused(seconds: str) -> None:
    async with asking() as client, client.get(f"/debug/pprof/profile?seconds={seconds}") as answer:
        assert (answer.status, (await answer.text()).partition(":")[0]) == (400, "seconds")


@pytest.mark.parametrize("is_enabled", [True, False])
async def test_the_configuration_turns_them_off(is_enabled: bool) -> None:
    scheduler: Any = SimpleNamespace(config=KubeSchedulerConfiguration(enable_profiling=is_enabled))
    app = application(Health(), Metrics(), dict, pages=profiles(scheduler).pages)
    async with TestClient(TestServer(app)) as client, client.get("/debug/pprof/") as answer:
        assert answer.status == (200 if is_enabled else 404)


async def test_one_profile_is_made_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def measure(*_: Any) -> dict[str, Any]:
        begun.set()
        go_on.wait(PATIENCE_S)
        return {}

    monkeypatch.setattr(profile_pages, "memory_profile", measure)
    async with asking() as client, anyio.create_task_group() as tasks:
        statuses = []

        async def first() -> None:
            async with client.get("/debug/pprof/heap") as answer:
                statuses.append(answer.status)

        tasks.start_soon(first)
        assert await anyio.to_thread.run_sync(begun.wait, PATIENCE_S)
        async with client.get("/debug/pprof/profile?seconds=0.01") as answer:
            assert answer.status == 409
        go_on.set()
    assert statuses == [200]
